//! `cargo xtask ci`: every check of this repository, one after the other.
//!
//! Owns the list of steps and their order. The tests run last and nothing is printed after them, so that the
//! output ends with the test runner's closing line. No step sets `RUSTFLAGS`: that would compile the world
//! again between two steps. Own lines go to stderr, like cargo's.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use crate::{repo_root, tidy};

pub mod tools;

/// Arguments of `cargo xtask ci`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask ci                         all steps
  cargo xtask ci --only clippy,tidy      some of them
  cargo xtask ci --skip doc              all but some")]
pub struct CiArgs {
    /// Run only these steps
    #[arg(long, value_name = "STEP", value_delimiter = ',', conflicts_with = "skip")]
    pub only: Vec<Step>,
    /// Leave these steps out
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub skip: Vec<Step>,
}

/// One step of `cargo xtask ci`, in the order in which they run: what fails fast comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// The programs that the tests call
    Tools,
    /// `cargo fmt`
    Fmt,
    /// `cargo clippy`, warnings are errors
    Clippy,
    /// `cargo xtask tidy`
    Tidy,
    /// `cargo doc`, warnings are errors
    Doc,
    /// The examples in the documentation
    Doctest,
    /// All other tests
    Test,
}

/// Runs the chosen steps and stops at the first that fails.
pub fn run(args: &CiArgs) -> Result<()> {
    let root = repo_root()?;
    for step in steps(args) {
        let command = step.command(&root)?;
        eprintln!("ci: {}: {}", step.name(), line(&command));
        let start = Instant::now();
        let done = step.run(&root, command);
        let seconds = start.elapsed().as_secs_f64();
        if let Err(error) = done {
            let name = step.name();
            bail!(
                "step `{name}` failed after {seconds:.1} s: {error:#}\nto run it alone: cargo xtask ci --only {name}"
            );
        }
        if step != Step::Test {
            eprintln!("ci: {} took {seconds:.1} s", step.name());
        }
    }
    Ok(())
}

/// The steps that `args` choose, in their one order.
pub fn steps(args: &CiArgs) -> Vec<Step> {
    Step::value_variants()
        .iter()
        .copied()
        .filter(|step| args.only.is_empty() || args.only.contains(step))
        .filter(|step| !args.skip.contains(step))
        .collect()
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Tidy => "tidy",
            Self::Doc => "doc",
            Self::Doctest => "doctest",
            Self::Test => "test",
        }
    }

    /// What to type to run this step without xtask; for the steps that are our own, what to type with it.
    fn command(self, root: &Path) -> Result<Command> {
        let words: &[&str] = match self {
            Self::Tools => &["xtask", "ci", "--only", "tools"],
            Self::Tidy => &["xtask", "tidy"],
            Self::Fmt => &["fmt", "--all", "--check"],
            Self::Clippy => &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
            Self::Doc => &["doc", "--workspace", "--no-deps"],
            Self::Doctest => &["test", "--workspace", "--doc"],
            // Every target that does not say `test = false`: unit tests, `tests/`, and examples with tests.
            Self::Test => &["test", "--workspace", "--tests", "--no-fail-fast"],
        };
        let mut command = crate::cargo();
        command.args(words).current_dir(root).env("PATH", tools::path(root)?);
        if self == Self::Doc {
            command.env("RUSTDOCFLAGS", "-D warnings");
        }
        Ok(command)
    }

    fn run(self, root: &Path, mut command: Command) -> Result<()> {
        match self {
            Self::Tools => tools::check(root),
            Self::Tidy => tidy::run(&tidy::TidyArgs { root: Some(root.to_path_buf()) }),
            _ => {
                let status = command.status().with_context(|| format!("start `{}`", line(&command)))?;
                ensure!(status.success(), "`{}` ended with {status}", line(&command));
                Ok(())
            }
        }
    }
}

/// The command as one would type it.
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
    fn only_and_skip_choose_steps_but_not_their_order() {
        let only = CiArgs { only: vec![Step::Test, Step::Fmt], ..CiArgs::default() };
        assert_eq!(steps(&only), [Step::Fmt, Step::Test]);
        let skip = CiArgs { skip: vec![Step::Tools, Step::Doc], ..CiArgs::default() };
        assert_eq!(steps(&skip), [Step::Fmt, Step::Clippy, Step::Tidy, Step::Doctest, Step::Test]);
    }

    #[test]
    fn a_step_is_chosen_by_the_name_that_it_prints() {
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
    fn the_printed_command_can_be_typed() {
        let doc = Step::Doc.command(Path::new(".")).unwrap();
        assert_eq!(line(&doc), "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps");
    }
}
