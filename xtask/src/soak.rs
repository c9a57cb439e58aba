//! `cargo xtask soak`: runs the randomized tests of the runtime and of the server for hours on all cores.
//!
//! Starts the test binaries with seeds and counts in their environment, one batch per process, and sums up
//! the results. The first failure stops the run and prints the command that reproduces it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};

/// Arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the model tests of queue, store and cache, the simulations of leader election and of rotated webhook certificates,
the queue under shuttle, managers with injected faults, and the check of requests and watches on a server that is killed.
Without a limit it runs for one hour; Ctrl-C stops it. A count is the number for each test. With counts only, the tests
without a count do not run.

Examples:
  cargo xtask soak                                one hour on all cores
  cargo xtask soak --hours 8                      overnight
  cargo xtask soak --minutes 5 --jobs 1           a short run in one process
  cargo xtask soak --cases 1000000 --seeds 20000  until each test has reached its count
  cargo xtask soak --rotations 10000              rotations of webhook certificates only
  cargo xtask soak --kills 1000                   nightly: a server that is killed 1000 times
  cargo xtask soak --seed 7 --seeds 100           seeds 7 to 106
  cargo xtask soak --only election --cases 100000 one test")]
pub struct SoakArgs {
    /// Stop after N hours
    #[arg(long, value_name = "N")]
    pub hours: Option<f64>,
    /// Stop after N minutes; added to --hours
    #[arg(long, value_name = "N")]
    pub minutes: Option<f64>,
    #[command(flatten)]
    counts: Counts,
    /// Number of parallel processes [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Run only tests whose name contains TEXT
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub only: String,
    /// The first seed [default: the current time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// How often each test runs, by what it repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
struct Counts {
    /// Stop each model test and the election simulation after N cases
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// Stop each test of the queue after N schedules
    #[arg(long, value_name = "N")]
    schedules: Option<u64>,
    /// Stop each test of whole managers after N seeds
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Stop after N rotations of webhook certificates, at least 25
    #[arg(long, value_name = "N")]
    rotations: Option<u64>,
    /// Stop after N kills of the server
    #[arg(long, value_name = "N")]
    kills: Option<u64>,
}

impl Counts {
    fn get(&self, unit: Unit) -> Option<u64> {
        match unit {
            Unit::Cases => self.cases,
            Unit::Schedules => self.schedules,
            Unit::Seeds => self.seeds,
            Unit::Rotations => self.rotations,
            Unit::Kills => self.kills,
        }
    }

    /// Whether tests without a count do not run: there is a count and no time limit.
    fn exclusive(&self, timed: bool) -> bool {
        !timed && UNITS.iter().any(|unit| self.get(*unit).is_some())
    }
}

/// What one test repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// proptest cases.
    Cases,
    /// shuttle schedules.
    Schedules,
    /// Seeds of a scenario with a manager and an API server.
    Seeds,
    /// Rotations of a CA, in one run of the simulation.
    Rotations,
    /// Kills of the server, in one run of the test.
    Kills,
}

const UNITS: [Unit; 5] = [Unit::Cases, Unit::Schedules, Unit::Seeds, Unit::Rotations, Unit::Kills];

impl Unit {
    /// Takes about one second.
    fn first_batch(self) -> u64 {
        match self {
            Self::Cases | Self::Schedules => 500,
            Self::Seeds => 20,
            Self::Rotations | Self::Kills => 25,
        }
    }

    /// The smallest batch that checks everything. The simulation of rotations requires a kill at each step only from
    /// 25 rotations on.
    fn smallest_batch(self) -> u64 {
        if self == Self::Rotations { 25 } else { 1 }
    }

    /// The plural noun.
    fn name(self) -> &'static str {
        match self {
            Self::Cases => "cases",
            Self::Schedules => "schedules",
            Self::Seeds => "seeds",
            Self::Rotations => "rotations",
            Self::Kills => "kills",
        }
    }
}

/// A test binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Program {
    RuntimeLib,
    Runtime,
    Cli,
}

impl Program {
    fn package(self) -> &'static str {
        match self {
            Self::RuntimeLib | Self::Runtime => "kubewright-runtime",
            Self::Cli => "kubewright-cli",
        }
    }

    /// The arguments of `cargo test` that select it.
    fn target(self) -> &'static [&'static str] {
        match self {
            Self::RuntimeLib => &["--lib"],
            Self::Runtime | Self::Cli => &["--test", "it"],
        }
    }
}

/// A randomized test, or with a name that ends in `::` all tests of a module.
struct Proof {
    test: &'static str,
    unit: Unit,
    program: Program,
    /// How many runs the test does for each requested one.
    times: u64,
}

const PROOFS: &[Proof] = &[
    proof("queue::tests::model::", Unit::Cases, Program::RuntimeLib),
    proof(
        "election::simulation::there_is_never_more_than_one_leader_and_one_leads_after_the_faults_end",
        Unit::Cases,
        Program::RuntimeLib,
    ),
    proof(
        "cache::store::tests::followers_and_indexes_agree_with_the_store",
        Unit::Cases,
        Program::RuntimeLib,
    ),
    proof("cache::model::", Unit::Cases, Program::Runtime),
    // Each test uses random schedules, then schedules with few preemptions.
    Proof { times: 2, ..proof("queue_shuttle::", Unit::Schedules, Program::Runtime) },
    proof("manager_proofs::state_converges_after_random_faults", Unit::Seeds, Program::Runtime),
    proof("manager_proofs::the_same_seed_gives_the_same_trace", Unit::Seeds, Program::Runtime),
    proof(
        "webhook::rotations::no_handshake_is_refused_and_no_write_is_lost",
        Unit::Rotations,
        Program::Runtime,
    ),
    proof("webhook::rotations::the_same_seed_gives_the_same_trace", Unit::Seeds, Program::Runtime),
    proof("crash::linear::requests_and_watches_are_linearizable_over_kills", Unit::Kills, Program::Cli),
];

const fn proof(test: &'static str, unit: Unit, program: Program) -> Proof {
    Proof { test, unit, program, times: 1 }
}

/// Target duration of a batch. Long enough to make process startup negligible.
const BATCH: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// The arguments of one test process.
#[derive(Debug, Clone)]
struct Batch {
    proof: usize,
    seed: u64,
    count: u64,
}

impl Batch {
    fn environment(&self) -> Vec<(&'static str, String)> {
        let (seed, count) = (self.seed, self.count);
        match PROOFS[self.proof].unit {
            Unit::Cases => {
                vec![("PROPTEST_RNG_SEED", seed.to_string()), ("PROPTEST_CASES", count.to_string())]
            }
            Unit::Schedules => {
                vec![("SHUTTLE_RANDOM_SEED", seed.to_string()), ("KUBEWRIGHT_SCHEDULES", count.to_string())]
            }
            Unit::Seeds => vec![("KUBEWRIGHT_SEEDS", format!("{seed}..{}", seed.saturating_add(count)))],
            Unit::Rotations => vec![
                ("KUBEWRIGHT_SEEDS", format!("{seed}..{}", seed.saturating_add(1))),
                ("KUBEWRIGHT_ROTATIONS", count.to_string()),
            ],
            Unit::Kills => vec![
                ("KUBEWRIGHT_CRASH_SEED", seed.to_string()),
                ("KUBEWRIGHT_CRASH_KILLS", count.to_string()),
            ],
        }
    }

    /// Reduces the batch to the failed seed if the output contains one.
    fn narrowed(mut self, output: &str) -> Self {
        if PROOFS[self.proof].unit == Unit::Seeds
            && let Some(seed) = named_seed(output)
            && (self.seed..self.seed.saturating_add(self.count)).contains(&seed)
        {
            self.seed = seed;
            self.count = 1;
        }
        self
    }
}

/// The command that reproduces a batch.
impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.environment() {
            write!(f, "{name}={value} ")?;
        }
        let Proof { test, program, .. } = PROOFS[self.proof];
        let target = program.target().join(" ");
        write!(f, "cargo test --release -p {} {target} -- {test}", program.package())
    }
}

/// The number in the first `seed N` of `text`.
fn named_seed(text: &str) -> Option<u64> {
    text.split("seed ").skip(1).find_map(|rest| {
        let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok()
    })
}

/// Results so far, and the next batch.
#[derive(Default)]
struct State {
    /// Per test: finished and started runs, and the size of the next batch.
    progress: Vec<Progress>,
    next_proof: usize,
    next_seed: u64,
    failure: Option<(Batch, String)>,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    /// The number of tests of the module, each of which did the runs.
    tests: u64,
    done: u64,
    begun: u64,
    batch: u64,
}

impl State {
    fn new(seed: u64) -> Self {
        let first = |proof: &Proof| Progress { batch: proof.unit.first_batch(), ..Progress::default() };
        Self { progress: PROOFS.iter().map(first).collect(), next_seed: seed, ..Self::default() }
    }

    /// The next batch within the counts, of a test whose name contains `only`. The tests take turns.
    fn next(&mut self, counts: &Counts, exclusive: bool, only: &str) -> Option<Batch> {
        for _ in 0..PROOFS.len() {
            let proof = self.next_proof;
            self.next_proof = (proof + 1) % PROOFS.len();
            let Proof { test, unit, .. } = PROOFS[proof];
            if !test.contains(only) {
                continue;
            }
            let wanted = counts.get(unit).unwrap_or(if exclusive { 0 } else { u64::MAX });
            let progress = &mut self.progress[proof];
            let left = wanted.saturating_sub(progress.begun);
            if left == 0 {
                continue;
            }
            let count = progress.batch.min(left).max(unit.smallest_batch());
            progress.begun = progress.begun.saturating_add(count);
            let seed = self.next_seed;
            self.next_seed = seed.wrapping_add(count);
            return Some(Batch { proof, seed, count });
        }
        None
    }

    /// Records a batch that passed, with the number of tests that ran, and adapts the size of the next one.
    fn passed(&mut self, batch: &Batch, tests: u64, took: Duration) {
        let Proof { unit, times, .. } = PROOFS[batch.proof];
        let progress = &mut self.progress[batch.proof];
        progress.tests = tests;
        progress.done += batch.count * times;
        if took < BATCH / 2 {
            progress.batch = progress.batch.max(batch.count.saturating_mul(2));
        } else if took > BATCH * 2 {
            progress.batch = (batch.count / 2).max(unit.smallest_batch());
        }
    }
}

struct Soak {
    programs: BTreeMap<Program, PathBuf>,
    counts: Counts,
    /// Whether tests without a count do not run.
    exclusive: bool,
    /// A part of the names of the tests to run.
    only: String,
    start: Instant,
    deadline: Option<Instant>,
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
}

/// Builds the tests in release mode and runs them until a limit is reached or a test fails.
pub fn run(args: &SoakArgs) -> Result<()> {
    let limit = Duration::try_from_secs_f64(
        args.hours.unwrap_or_default() * 3600.0 + args.minutes.unwrap_or_default() * 60.0,
    )
    .context("invalid duration in --hours or --minutes")?;
    let timed = args.hours.is_some() || args.minutes.is_some();
    let exclusive = args.counts.exclusive(timed);
    let wanted = PROOFS.iter().filter(|proof| {
        proof.test.contains(&args.only) && (!exclusive || args.counts.get(proof.unit).is_some())
    });
    let programs: BTreeSet<_> = wanted.map(|proof| proof.program).collect();
    if programs.is_empty() {
        let names: Vec<_> = PROOFS.iter().map(|proof| proof.test).collect();
        bail!(
            "no test to run with --only {:?} and these counts; the tests are:\n  {}",
            args.only,
            names.join("\n  ")
        );
    }
    let programs = build(&programs)?;
    let start = Instant::now();
    let limit = if timed { Some(limit) } else { (!exclusive).then_some(Duration::from_hours(1)) };
    let seed = args.seed.unwrap_or_else(seed_from_clock);
    let soak = Soak {
        programs,
        counts: args.counts,
        exclusive,
        only: args.only.clone(),
        start,
        deadline: limit.map(|limit| start + limit),
        stop: stop_on_ctrl_c()?,
        state: Mutex::new(State::new(seed)),
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.unwrap_or(cores).max(1);
    println!("{jobs} processes, first seed {seed}");
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| soak.work())).collect();
        soak.report_until(|| workers.iter().all(std::thread::ScopedJoinHandle::is_finished));
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => bail!("a soak thread panicked"),
        })
    })?;
    soak.finish()
}

impl Soak {
    fn work(&self) -> Result<()> {
        while let Some(batch) = self.next() {
            let begun = Instant::now();
            let Some((success, output)) = self.start(&batch)? else { return Ok(()) };
            let passed = passed(&output);
            let mut state = self.state();
            if !success {
                state.failure.get_or_insert((batch.narrowed(&output), output));
                self.stop.store(true, Ordering::SeqCst);
                return Ok(());
            }
            ensure!(
                passed > 0,
                "no test matches {}; update the list in xtask/src/soak.rs",
                PROOFS[batch.proof].test
            );
            state.passed(&batch, passed, begun.elapsed());
        }
        Ok(())
    }

    fn next(&self) -> Option<Batch> {
        if self.stop.load(Ordering::SeqCst) || self.deadline.is_some_and(|it| Instant::now() >= it) {
            return None;
        }
        self.state().next(&self.counts, self.exclusive, &self.only)
    }

    /// Runs a batch and returns whether it passed, with its output. Returns `None` if the soak was stopped.
    fn start(&self, batch: &Batch) -> Result<Option<(bool, String)>> {
        let Proof { test, program, .. } = PROOFS[batch.proof];
        let program = self.programs.get(&program).context("a test that is not wanted was started")?;
        let mut command = Command::new(program);
        command.arg(test).arg("--test-threads=1").envs(batch.environment());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a separate process group Ctrl-C does not reach the tests.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().with_context(|| format!("start {}", program.display()))?;
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let err = scope.spawn(move || {
                let mut text = Vec::new();
                err.as_mut().map(|it| it.read_to_end(&mut text)).transpose().map(|_| text)
            });
            let out = scope.spawn(move || {
                let mut text = Vec::new();
                out.as_mut().map(|it| it.read_to_end(&mut text)).transpose().map(|_| text)
            });
            let status = loop {
                if let Some(status) = child.try_wait()? {
                    break status;
                }
                if self.stop.load(Ordering::SeqCst) {
                    kill(&mut child)?;
                    return Ok(None);
                }
                std::thread::sleep(POLL);
            };
            let mut output = String::new();
            for text in [out.join(), err.join()].into_iter().flatten() {
                output.push_str(&String::from_utf8_lossy(&text?));
            }
            Ok(Some((status.success(), output)))
        })
    }

    /// Prints progress: every second on a terminal, otherwise every minute.
    fn report_until(&self, over: impl Fn() -> bool) {
        let terminal = std::io::stderr().is_terminal();
        let pause = if terminal { Duration::from_secs(1) } else { Duration::from_mins(1) };
        let mut printed = Instant::now();
        while !over() {
            std::thread::sleep(POLL);
            if printed.elapsed() >= pause {
                printed = Instant::now();
                let (before, after) = if terminal { ("\r", "   ") } else { ("", "\n") };
                eprint!("{before}{}: {}{after}", clock(self.start.elapsed()), self.done());
            }
        }
        if terminal {
            eprintln!();
        }
    }

    fn finish(&self) -> Result<()> {
        let state = self.state();
        println!("{} in {}", done(&state.progress), clock(self.start.elapsed()));
        for (proof, progress) in PROOFS.iter().zip(&state.progress) {
            let each = if progress.tests > 1 {
                format!(", each of {} tests", progress.tests)
            } else {
                String::new()
            };
            println!("  {:>12} {} of {}{each}", progress.done, proof.unit.name(), proof.test);
        }
        let Some((batch, output)) = &state.failure else {
            println!("lost 0");
            return Ok(());
        };
        eprintln!("{output}");
        bail!("a test failed; reproduce it with\n  {batch}");
    }

    fn done(&self) -> String {
        done(&self.state().progress)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs of all tests, by unit.
fn done(progress: &[Progress]) -> String {
    let of = |unit| -> u64 {
        let tests = PROOFS.iter().zip(progress).filter(|(proof, _)| proof.unit == unit);
        tests.map(|(_, it)| it.done * it.tests).sum()
    };
    UNITS.map(|unit| format!("{} {}", of(unit), unit.name())).join(", ")
}

/// Kills a test with the servers that it has started.
fn kill(child: &mut Child) -> Result<()> {
    #[cfg(unix)]
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).context("kill a test")?;
    }
    #[cfg(not(unix))]
    child.kill().context("kill a test")?;
    child.wait().context("wait for a killed test")?;
    Ok(())
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The number of passed tests in the output of a test binary.
fn passed(output: &str) -> u64 {
    let result = output.lines().find_map(|line| line.strip_prefix("test result: ok. "));
    result.and_then(|line| line.split_once(' ')?.0.parse().ok()).unwrap_or(0)
}

pub(crate) fn seed_from_clock() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
        .context("register the Ctrl-C handler")?;
    Ok(stop)
}

/// Builds test binaries with one command, so that packages share the builds of dependencies.
fn build(wanted: &BTreeSet<Program>) -> Result<BTreeMap<Program, PathBuf>> {
    println!("building the tests in release");
    let mut command = crate::cargo();
    command.args(["test", "--release", "--no-run"]);
    for package in wanted.iter().map(|program| program.package()).collect::<BTreeSet<_>>() {
        command.args(["--package", package]);
    }
    for target in wanted.iter().map(|program| program.target()).collect::<BTreeSet<_>>() {
        command.args(target);
    }
    command.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = command.output().context("start cargo")?;
    ensure!(output.status.success(), "building the tests failed");
    let mut programs = BTreeMap::new();
    for message in cargo_metadata::Message::parse_stream(&*output.stdout) {
        let cargo_metadata::Message::CompilerArtifact(artifact) =
            message.context("parse cargo's messages")?
        else {
            continue;
        };
        let target = if artifact.target.is_test() { &["--test", "it"][..] } else { &["--lib"] };
        let package = artifact.manifest_path.parent().and_then(|folder| folder.file_name());
        let is = |program: &&Program| Some(program.package()) == package && program.target() == target;
        // Building the tests of the command line also builds its binary, which has no tests.
        if artifact.profile.test
            && let (Some(path), Some(program)) = (artifact.executable, wanted.iter().find(is))
        {
            programs.insert(*program, path.into_std_path_buf());
        }
    }
    ensure!(programs.len() == wanted.len(), "cargo built {programs:?} of the tests {wanted:?}");
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn batch(unit: Unit) -> Batch {
        let proof = PROOFS.iter().position(|proof| proof.unit == unit).unwrap();
        Batch { proof, seed: 40, count: 8 }
    }

    #[test]
    fn a_failure_prints_the_command_that_reproduces_it() {
        insta::assert_snapshot!(batch(Unit::Cases), @"PROPTEST_RNG_SEED=40 PROPTEST_CASES=8 cargo test --release -p kubewright-runtime --lib -- queue::tests::model::");
        insta::assert_snapshot!(batch(Unit::Schedules), @"SHUTTLE_RANDOM_SEED=40 KUBEWRIGHT_SCHEDULES=8 cargo test --release -p kubewright-runtime --test it -- queue_shuttle::");
        insta::assert_snapshot!(batch(Unit::Seeds), @"KUBEWRIGHT_SEEDS=40..48 cargo test --release -p kubewright-runtime --test it -- manager_proofs::state_converges_after_random_faults");
        insta::assert_snapshot!(batch(Unit::Rotations), @"KUBEWRIGHT_SEEDS=40..41 KUBEWRIGHT_ROTATIONS=8 cargo test --release -p kubewright-runtime --test it -- webhook::rotations::no_handshake_is_refused_and_no_write_is_lost");
        insta::assert_snapshot!(batch(Unit::Kills), @"KUBEWRIGHT_CRASH_SEED=40 KUBEWRIGHT_CRASH_KILLS=8 cargo test --release -p kubewright-cli --test it -- crash::linear::requests_and_watches_are_linearizable_over_kills");
    }

    #[test]
    fn a_failed_batch_is_narrowed_to_the_seed_in_its_output() {
        let output = "thread panicked:\nseed 43: line 7 differs";
        assert_eq!(
            batch(Unit::Seeds).narrowed(output).environment(),
            [("KUBEWRIGHT_SEEDS", "43..44".to_owned())]
        );
        let other = "seed 99: not of this batch";
        assert_eq!(
            batch(Unit::Seeds).narrowed(other).environment(),
            [("KUBEWRIGHT_SEEDS", "40..48".to_owned())]
        );
    }

    /// Runs all batches, each in the given time, and returns the counts per test.
    fn finish(counts: Counts, took: Duration) -> BTreeMap<&'static str, Vec<u64>> {
        let mut state = State::new(1);
        let mut batches = BTreeMap::<_, Vec<u64>>::new();
        while let Some(batch) = state.next(&counts, counts.exclusive(false), "") {
            batches.entry(PROOFS[batch.proof].test).or_default().push(batch.count);
            state.passed(&batch, 1, took);
        }
        batches
    }

    #[test]
    fn each_test_reaches_the_count_of_its_unit() {
        let counts = Counts { cases: Some(10_001), seeds: Some(7), ..Counts::default() };
        for took in [Duration::ZERO, BATCH, BATCH * 3] {
            let batches = finish(counts, took);
            let tests = |unit| PROOFS.iter().filter(move |proof| proof.unit == unit).map(|proof| proof.test);
            for (unit, count) in [(Unit::Cases, 10_001), (Unit::Seeds, 7)] {
                assert!(tests(unit).count() > 1);
                for test in tests(unit) {
                    assert_eq!(batches[test].iter().sum::<u64>(), count, "{test}");
                }
            }
            assert_eq!(batches.len(), tests(Unit::Cases).count() + tests(Unit::Seeds).count(), "{batches:?}");
        }
    }

    #[test]
    fn a_batch_of_rotations_is_never_too_small_for_a_kill_at_each_step() {
        let counts = Counts { rotations: Some(1_010), ..Counts::default() };
        for took in [Duration::ZERO, BATCH, BATCH * 3] {
            let batches: Vec<u64> = finish(counts, took).into_values().flatten().collect();
            assert!(batches.iter().all(|count| *count >= 25), "{batches:?}");
            assert!(batches.iter().sum::<u64>() >= 1_010, "{batches:?}");
        }
    }

    #[test]
    fn without_a_count_all_tests_run() {
        let mut state = State::new(1);
        let counts = Counts { cases: Some(1), ..Counts::default() };
        let timed = counts.exclusive(true);
        let tests: BTreeSet<usize> =
            (0..PROOFS.len() * 2).filter_map(|_| Some(state.next(&counts, timed, "")?.proof)).collect();
        assert_eq!(tests.len(), PROOFS.len());
    }

    #[test]
    fn with_a_part_of_a_name_only_matching_tests_run() {
        let mut state = State::new(1);
        let counts = Counts { cases: Some(1000), ..Counts::default() };
        let batches = std::iter::from_fn(|| state.next(&counts, true, "election"));
        let tests: BTreeSet<&str> = batches.map(|batch| PROOFS[batch.proof].test).collect();
        assert_eq!(tests.len(), 1, "{tests:?}");
        assert!(tests.iter().all(|test| test.contains("election")), "{tests:?}");
    }

    /// A renamed test would match no name, and the soak would end with an error after its build.
    #[test]
    fn every_test_of_the_list_is_in_the_sources() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for Proof { test, program, .. } in PROOFS {
            let folder = if program.target() == ["--lib"] { "src" } else { "tests/it" };
            let (module, name) = test.rsplit_once("::").expect("a test in a module");
            let path = crates.join(program.package()).join(folder).join(module.replace("::", "/"));
            let source = std::fs::read_to_string(path.with_extension("rs"))
                .unwrap_or_else(|error| panic!("{test}: {}: {error}", path.display()));
            assert!(declares_test(&source, name), "{test} is not in {}.rs", path.display());
        }
    }

    /// Whether a function with this name has the attribute of a test. With an empty name, any function.
    fn declares_test(source: &str, name: &str) -> bool {
        let mut is_test = false;
        source.lines().map(str::trim_start).any(|line| {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some((_, declared)) = line.split_once("fn ") {
                let declared = declared.split(['(', '<']).next().unwrap_or_default();
                return std::mem::take(&mut is_test) && (name.is_empty() || declared == name);
            }
            false
        })
    }

    #[test]
    fn a_function_without_the_attribute_of_a_test_is_no_test() {
        let source =
            "fn helper() {}\n#[tokio::test(start_paused = true)]\nasync fn works() {}\nfn other() {}";
        assert!(declares_test(source, "works") && declares_test(source, ""));
        assert!(!declares_test(source, "work") && !declares_test(source, "other"));
        assert!(!declares_test("fn helper() {}", ""));
    }

    #[test]
    fn passed_tests_are_counted_from_the_result_line() {
        assert_eq!(passed("running 6 tests\ntest result: ok. 6 passed; 0 failed; 0 ignored\n"), 6);
        assert_eq!(passed("test result: FAILED. 5 passed; 1 failed\n"), 0);
    }
}
