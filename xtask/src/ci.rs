//! `cargo xtask ci`: runs every check of this repository, one step after another.
//!
//! The last line of the output is the sum of all test results. No step sets `RUSTFLAGS`, because changed
//! flags recompile every dependency. No step after `fetch` uses the network.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use crate::{repo_root, target_dir, tidy};
use report::{Failure, Report};

pub mod book;
pub mod fetch;
pub mod install;
pub mod package;
pub mod report;
pub mod tools;

/// Disk space of target/ after all steps in a clean checkout, half of it incremental state. `.ci/run` builds without
/// that.
const DISK_GB: u64 = 16;

/// Duration of all steps in a clean checkout on two cores.
const MINUTES: u64 = 30;

/// Arguments of `cargo xtask ci`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask ci                         all steps
  cargo xtask ci --quick                 format, lints and unit tests
  cargo xtask ci --only clippy,tidy      some of the steps
  cargo xtask ci --skip doc              all but some
  cargo xtask ci --nightly               all steps, the tests of optional features, and 1000 kills of the server
  cargo xtask ci --no-fail-fast          run the remaining steps after a failure")]
pub struct CiArgs {
    /// Run format, lints and unit tests only; under 3 minutes when everything is built
    #[arg(long, conflicts_with_all = ["only", "skip"])]
    pub quick: bool,
    /// Also run `features`, which compiles most dependencies again, and `kills`
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    pub nightly: bool,
    /// Run only these steps
    #[arg(long, value_name = "STEP", value_delimiter = ',', conflicts_with = "skip")]
    pub only: Vec<Step>,
    /// Skip these steps
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub skip: Vec<Step>,
    /// Run the remaining steps after a step failed
    #[arg(long)]
    pub no_fail_fast: bool,
}

/// One step of `cargo xtask ci`. The variants are in execution order; steps that fail quickly come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// Install the programs that the tests call
    Tools,
    /// Download all packages; the steps after it run offline
    Fetch,
    /// `cargo fmt`
    Fmt,
    /// `cargo clippy`, also of the feature `debug-page`, warnings are errors
    Clippy,
    /// `cargo xtask tidy`
    Tidy,
    /// `cargo doc`, warnings are errors
    Doc,
    /// `cargo package` of every published crate
    Package,
    /// `mdbook build` of docs/, warnings are errors
    Book,
    /// The unit tests; they are also part of `test`
    Unit,
    /// The examples in the documentation
    Doctest,
    /// The tests of the feature `debug-page`, which compiles little more than `test`
    DebugPage,
    /// All other tests
    Test,
    /// The tests of the features `otlp`, `profiling` and `debug-page`; only with --nightly
    Features,
    /// A server that is killed 1000 times while clients write; only with --nightly
    Kills,
}

/// Runs the selected steps.
pub fn run(args: &CiArgs) -> Result<()> {
    let root = repo_root()?;
    let steps = steps(args);
    announce(&root, &steps)?;
    let mut run = Run { report: Report::default(), times: Vec::new(), failures: Vec::new() };
    let start = Instant::now();
    for (index, step) in steps.iter().enumerate() {
        let offline = steps[..index].contains(&Step::Fetch);
        if !run.step(&root, *step, offline, index + 1, steps.len())? && !args.no_fail_fast {
            break;
        }
    }
    run.summarise(&root, start.elapsed());
    match run.failures.len() {
        0 => Ok(()),
        1 => bail!("1 check failed"),
        many => bail!("{many} checks failed"),
    }
}

/// Prints the steps, the tools to install and the expected time and disk space.
fn announce(root: &Path, steps: &[Step]) -> Result<()> {
    let names: Vec<_> = steps.iter().map(|step| step.name()).collect();
    eprintln!("ci: steps: {}", names.join(", "));
    if steps.contains(&Step::Tools) {
        for line in tools::plan(&tools::missing_here(root)?, install::Machine::probe()) {
            eprintln!("ci: {line}");
        }
    }
    if steps.contains(&Step::Test) {
        let free = free_gb(root);
        let shown = free.map_or(String::new(), |free| format!(", {free} GB free"));
        eprintln!(
            "ci: a clean checkout takes about {MINUTES} minutes on 2 cores and {DISK_GB} GB in target/{shown}"
        );
        if free.is_some_and(|free| free < DISK_GB) {
            eprintln!(
                "ci: warning: the disk may fill up; set CARGO_TARGET_DIR to a directory on another disk"
            );
        }
    }
    Ok(())
}

/// Free space on the disk of the target directory.
fn free_gb(root: &Path) -> Option<u64> {
    let target = target_dir(root);
    let folder = target.ancestors().find(|folder| folder.exists())?;
    let output = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let kilobytes: u64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kilobytes / 1_000_000)
}

/// Results so far.
struct Run {
    report: Report,
    times: Vec<(Step, Duration)>,
    failures: Vec<Failure>,
}

impl Run {
    /// Runs one step and returns whether it passed.
    fn step(&mut self, root: &Path, step: Step, offline: bool, number: usize, of: usize) -> Result<bool> {
        let mut command = step.command(root)?;
        if offline {
            command.env("CARGO_NET_OFFLINE", "true");
        }
        let (name, shown) = (step.name(), line(&command));
        eprintln!("ci: [{number}/{of}] {name}: {shown}");
        let start = Instant::now();
        let tests_failed = self.report.failures.len();
        let done = match step {
            Step::Tools => tools::ensure_installed(root),
            Step::Fetch => fetch::run(root),
            Step::Package => package::run(root, offline),
            Step::Book => book::run(root),
            Step::Tidy => tidy::run(&tidy::TidyArgs { root: Some(root.to_path_buf()) }),
            Step::Unit | Step::Doctest | Step::DebugPage | Step::Test | Step::Features => {
                run_tests(command, &mut self.report, &mut std::io::stdout())
            }
            Step::Fmt | Step::Clippy | Step::Doc | Step::Kills => succeed(command.status(), &shown),
        };
        let took = start.elapsed();
        self.times.push((step, took));
        let Err(error) = done else {
            eprintln!("ci: [{number}/{of}] {name} passed in {}", duration(took));
            return Ok(true);
        };
        eprintln!("ci: [{number}/{of}] {name} failed after {}: {error:#}", duration(took));
        let tests = self.report.failures.split_off(tests_failed);
        if tests.is_empty() {
            self.failures
                .push(Failure { name: name.into(), command: format!("cargo xtask ci --only {name}") });
        }
        self.failures.extend(tests);
        Ok(false)
    }

    /// Prints the durations, the failures and the test totals.
    fn summarise(&self, root: &Path, took: Duration) {
        let times: Vec<_> =
            self.times.iter().map(|(step, took)| format!("{} {}", step.name(), duration(*took))).collect();
        eprintln!("\nci: {}; {} total", times.join(", "), duration(took));
        if !self.failures.is_empty() {
            eprintln!("\nci: failures, each with the command that runs it alone:");
            // Tests find the programs in target/tools only through PATH.
            let bin = tools::bin(root);
            let shown = bin.strip_prefix(root).map_or(bin.clone(), |folder| Path::new("$PWD").join(folder));
            let path = if bin.exists() { format!("PATH={}:$PATH ", shown.display()) } else { String::new() };
            for Failure { name, command } in &self.failures {
                let path = if command.starts_with("cargo test") { &*path } else { "" };
                eprintln!("  {name}\n      {path}{command}");
            }
        }
        match self.report.closing_line() {
            Some(line) => println!("\nci: {line}"),
            None if self.failures.is_empty() => println!("\nci: all steps passed"),
            None => {}
        }
    }
}

/// Runs `cargo test`, copies its output to `shown_on` line by line, and collects the results.
fn run_tests(mut command: Command, report: &mut Report, shown_on: &mut dyn Write) -> Result<()> {
    let shown = line(&command);
    if std::io::stdout().is_terminal() {
        if !command.get_args().any(|argument| argument == "--") {
            command.arg("--");
        }
        command.env("CARGO_TERM_COLOR", "always").args(["--color", "always"]);
    }
    // A single pipe for both streams preserves the order of the lines.
    let (output, input) = std::io::pipe().context("create a pipe")?;
    command.stdout(input.try_clone().context("create a pipe")?).stderr(input);
    let mut child = command.spawn().with_context(|| format!("start `{shown}`"))?;
    // `command` holds the write end of the pipe. While it is open, reading never reaches the end.
    drop(command);
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    while output.read_until(b'\n', &mut bytes).context("read the output of the tests")? > 0 {
        shown_on.write_all(&bytes).context("write the output of the tests")?;
        report.line(&String::from_utf8_lossy(&bytes));
        bytes.clear();
    }
    report.finish();
    succeed(child.wait(), &shown)
}

fn succeed(status: std::io::Result<std::process::ExitStatus>, shown: &str) -> Result<()> {
    let status = status.with_context(|| format!("start `{shown}`"))?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// The selected steps in execution order.
pub fn steps(args: &CiArgs) -> Vec<Step> {
    use Step::{Clippy, Features, Fetch, Fmt, Kills, Tidy, Tools, Unit};
    if args.quick {
        return vec![Tools, Fetch, Fmt, Clippy, Tidy, Unit];
    }
    let chosen = |step: &Step| {
        if args.only.is_empty() {
            let is_nightly = matches!(step, Features | Kills);
            *step != Unit && (!is_nightly || args.nightly) && !args.skip.contains(step)
        } else {
            args.only.contains(step)
        }
    };
    Step::value_variants().iter().copied().filter(chosen).collect()
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Fetch => "fetch",
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Tidy => "tidy",
            Self::Doc => "doc",
            Self::Package => "package",
            Self::Book => "book",
            Self::Unit => "unit",
            Self::Doctest => "doctest",
            Self::DebugPage => "debug-page",
            Self::Test => "test",
            Self::Features => "features",
            Self::Kills => "kills",
        }
    }

    /// The command that runs this step. Our own steps run through `cargo xtask`.
    fn command(self, root: &Path) -> Result<Command> {
        let words: &[&str] = match self {
            Self::Tools => &["xtask", "ci", "--only", "tools"],
            Self::Fetch => &["xtask", "ci", "--only", "fetch"],
            Self::Package => &["xtask", "ci", "--only", "package"],
            Self::Book => &["xtask", "ci", "--only", "book"],
            Self::Tidy => &["xtask", "tidy"],
            Self::Kills => &["xtask", "soak", "--kills", "1000"],
            Self::Fmt => &["fmt", "--all", "--check"],
            Self::Clippy => &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--features",
                "kubewright/debug-page",
                "--",
                "-D",
                "warnings",
            ],
            Self::Doc => &["doc", "--workspace", "--no-deps"],
            Self::Unit => &["test", "--workspace", "--lib", "--no-fail-fast"],
            Self::Doctest => &["test", "--workspace", "--doc", "--no-fail-fast"],
            // All targets without `test = false`: unit tests, `tests/`, and examples with tests.
            Self::Test => &["test", "--workspace", "--tests", "--no-fail-fast"],
            Self::DebugPage => &[
                "test",
                "--package",
                "kubewright",
                "--features",
                "kubewright/debug-page",
                "--test",
                "it",
                "--no-fail-fast",
                "--",
                "debug_page::",
            ],
            Self::Features => &[
                "test",
                "--package",
                "kubewright-runtime",
                "--package",
                "kubewright",
                "--features",
                "kubewright-runtime/otlp,kubewright-runtime/profiling,kubewright/debug-page",
                "--test",
                "it",
                "--no-fail-fast",
                "--",
                "traces::",
                "profiling::",
                "debug_page::",
            ],
        };
        let mut command = crate::cargo();
        command.args(words).current_dir(root).env("PATH", tools::path(root)?);
        // Developers of Go operators may have these set. The tests must not run against that cluster.
        for name in ["KUBEBUILDER_ASSETS", "KUBECONFIG", "TEST_ASSET_ETCD", "USE_EXISTING_CLUSTER"] {
            command.env_remove(name);
        }
        if self == Self::Test {
            command.envs(tools::left_out(root)?.into_iter().map(|name| (name, "1")));
        }
        if self == Self::Doc {
            command.env("RUSTDOCFLAGS", "-D warnings");
        }
        Ok(command)
    }
}

/// `2m03s`, or `4s`.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of seconds"
    )]
    let seconds = seconds as u64;
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{:02}s", seconds % 60),
    }
}

/// The command as a user types it.
fn line(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let (true, Some(value)) = (name != "PATH", value) {
            words.push(format!("{}='{}'", name.display(), value.display()));
        }
    }
    words.push(command.get_program().display().to_string());
    words.extend(command.get_args().map(|word| word.display().to_string()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_run_last() {
        assert_eq!(steps(&CiArgs::default()).last(), Some(&Step::Test));
    }

    #[test]
    fn optional_features_are_tested_nightly_and_on_request() {
        assert!(!steps(&CiArgs::default()).contains(&Step::Features));
        assert!(!steps(&CiArgs::default()).contains(&Step::Kills));
        let nightly = steps(&CiArgs { nightly: true, ..CiArgs::default() });
        assert_eq!(nightly[nightly.len() - 3..], [Step::Test, Step::Features, Step::Kills]);
        let only = CiArgs { only: vec![Step::Features], ..CiArgs::default() };
        assert_eq!(steps(&only), [Step::Features]);
    }

    #[test]
    fn only_and_skip_select_steps_but_keep_their_order() {
        let only = CiArgs { only: vec![Step::Test, Step::Fmt], ..CiArgs::default() };
        assert_eq!(steps(&only), [Step::Fmt, Step::Test]);
        let skip = CiArgs { skip: vec![Step::Tools, Step::Doc, Step::Fetch], ..CiArgs::default() };
        assert_eq!(
            steps(&skip),
            [
                Step::Fmt,
                Step::Clippy,
                Step::Tidy,
                Step::Package,
                Step::Book,
                Step::Doctest,
                Step::DebugPage,
                Step::Test
            ]
        );
    }

    #[test]
    fn quick_runs_format_lints_and_unit_tests() {
        let quick = steps(&CiArgs { quick: true, ..CiArgs::default() });
        assert_eq!(quick[2..], [Step::Fmt, Step::Clippy, Step::Tidy, Step::Unit]);
        assert!(!steps(&CiArgs::default()).contains(&Step::Unit), "`test` runs the unit tests too");
    }

    #[test]
    fn step_names_match_the_command_line_values() {
        for step in Step::value_variants() {
            assert_eq!(Step::from_str(step.name(), false), Ok(*step));
        }
    }

    #[test]
    fn no_step_changes_the_compiler_flags() {
        for step in Step::value_variants() {
            let command = step.command(Path::new(".")).unwrap();
            assert!(command.get_envs().all(|(name, _)| name != "RUSTFLAGS"), "{}", line(&command));
        }
    }

    #[test]
    fn tests_do_not_use_the_users_cluster() {
        let test = Step::Test.command(Path::new(".")).unwrap();
        assert!(test.get_envs().any(|(name, value)| name == "USE_EXISTING_CLUSTER" && value.is_none()));
    }

    #[test]
    fn the_printed_command_can_be_pasted_into_a_shell() {
        let doc = Step::Doc.command(Path::new(".")).unwrap();
        assert_eq!(line(&doc), "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps");
    }

    #[test]
    fn durations_are_minutes_and_seconds() {
        assert_eq!(duration(Duration::from_millis(3_600)), "4s");
        assert_eq!(duration(Duration::from_secs(123)), "2m03s");
    }

    #[test]
    fn a_failing_test_binary_fails_the_run_and_its_tests_are_reported() {
        let mut cargo = Command::new("sh");
        cargo.arg("-c").arg(
            "echo 'test one ... ok'; echo 'test two ... FAILED'
             echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s'
             echo 'error: test failed, to rerun pass `--lib`' >&2; exit 101",
        );
        let mut report = Report::default();
        let mut shown = Vec::new();
        let error = run_tests(cargo, &mut report, &mut shown).unwrap_err();
        assert!(String::from_utf8(shown).unwrap().starts_with("test one ... ok\ntest two ... FAILED\n"));
        assert_eq!(error.to_string(), "exit status: 101");
        assert_eq!(report.closing_line().as_deref(), Some("1 passed, 1 failed"));
        assert_eq!(report.failures[0].command, "cargo test --lib -- --exact two");
    }
}
