//! `cargo xtask soak`: runs the randomized tests of the runtime for hours on all cores.
//!
//! Starts the test binaries with seeds and counts in their environment, one batch per process, and sums up
//! the results. The first failure stops the run and prints the command that reproduces it.

use std::fmt;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};

/// Arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Runs the model tests of queue, store and cache, the simulations of leader election and of rotated webhook certificates,
the queue under shuttle, and managers with injected faults. Without a limit it runs for one hour; Ctrl-C stops it.

Examples:
  cargo xtask soak                                    one hour on all cores
  cargo xtask soak --hours 8                          overnight
  cargo xtask soak --minutes 5 --jobs 1               a short run in one process
  cargo xtask soak --cases 1000000 --schedules 20000  until both are reached
  cargo xtask soak --rotations 10000                  rotations of webhook certificates only
  cargo xtask soak --seed 7 --schedules 100           seeds starting at 7")]
pub struct SoakArgs {
    /// Stop after N hours
    #[arg(long, value_name = "N")]
    pub hours: Option<f64>,
    /// Stop after N minutes; added to --hours
    #[arg(long, value_name = "N")]
    pub minutes: Option<f64>,
    /// Stop after N cases of the models and the election simulation
    #[arg(long, value_name = "N")]
    pub cases: Option<u64>,
    /// Stop after N schedules of the queue and N seeds of whole managers
    #[arg(long, value_name = "N")]
    pub schedules: Option<u64>,
    /// Stop after N rotations of webhook certificates
    #[arg(long, value_name = "N")]
    pub rotations: Option<u64>,
    /// Number of parallel processes [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// The first seed [default: the current time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
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
}

impl Unit {
    /// Takes about one second.
    fn first_batch(self) -> u64 {
        match self {
            Self::Cases | Self::Schedules => 500,
            Self::Seeds => 20,
            Self::Rotations => 25,
        }
    }
}

/// A randomized test.
struct Proof {
    test: &'static str,
    unit: Unit,
    /// Whether it is a unit test.
    unit_test: bool,
    /// How many runs the test does for each requested one.
    times: u64,
}

const PROOFS: &[Proof] = &[
    proof("queue::tests::model::", Unit::Cases, true),
    proof("election::simulation::two_never_lead_at_once", Unit::Cases, true),
    proof("cache::store::tests::followers_and_indexes_agree", Unit::Cases, true),
    proof("cache::model::", Unit::Cases, false),
    // One test uses random schedules, the other schedules with few preemptions.
    Proof { times: 2, ..proof("queue_shuttle::", Unit::Schedules, false) },
    proof("manager_proofs::whatever_happens_to_the_watches", Unit::Seeds, false),
    proof("manager_proofs::the_same_seed_gives_the_same_trace", Unit::Seeds, false),
    proof("webhook::rotations::no_handshake_is_refused_and_no_write_is_lost", Unit::Rotations, false),
];

const fn proof(test: &'static str, unit: Unit, unit_test: bool) -> Proof {
    Proof { test, unit, unit_test, times: 1 }
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
        let Proof { test, unit_test, .. } = PROOFS[self.proof];
        let target = if unit_test { "--lib" } else { "--test it" };
        write!(f, "cargo test --release -p kubewright-runtime {target} -- {test}")
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
    done: u64,
    begun: u64,
    batch: u64,
}

struct Soak {
    programs: Programs,
    cases: Option<u64>,
    schedules: Option<u64>,
    rotations: Option<u64>,
    start: Instant,
    deadline: Option<Instant>,
    stop: Arc<AtomicBool>,
    state: Mutex<State>,
}

/// The test binaries.
struct Programs {
    unit_tests: PathBuf,
    tests: PathBuf,
}

/// Builds the tests in release mode and runs them until a limit is reached or a test fails.
pub fn run(args: &SoakArgs) -> Result<()> {
    let limit = Duration::try_from_secs_f64(
        args.hours.unwrap_or_default() * 3600.0 + args.minutes.unwrap_or_default() * 60.0,
    )
    .context("invalid duration in --hours or --minutes")?;
    let timed = args.hours.is_some() || args.minutes.is_some();
    let counted = args.cases.is_some() || args.schedules.is_some() || args.rotations.is_some();
    let programs = build()?;
    let start = Instant::now();
    let limit = if timed { Some(limit) } else { (!counted).then_some(Duration::from_hours(1)) };
    // With only some of the counts, tests without a count do not run.
    let count = |count: Option<u64>| count.or((counted && !timed).then_some(0));
    let seed = args.seed.unwrap_or_else(seed_from_clock);
    let soak = Soak {
        programs,
        cases: count(args.cases),
        schedules: count(args.schedules),
        rotations: count(args.rotations),
        start,
        deadline: limit.map(|limit| start + limit),
        stop: stop_on_ctrl_c()?,
        state: Mutex::new(State {
            progress: PROOFS
                .iter()
                .map(|proof| Progress { batch: proof.unit.first_batch(), ..Progress::default() })
                .collect(),
            next_seed: seed,
            ..State::default()
        }),
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
            let progress = &mut state.progress[batch.proof];
            progress.done += batch.count * passed * PROOFS[batch.proof].times;
            if begun.elapsed() < BATCH / 2 {
                progress.batch = progress.batch.max(batch.count.saturating_mul(2));
            } else if begun.elapsed() > BATCH * 2 {
                progress.batch = (batch.count / 2).max(1);
            }
        }
        Ok(())
    }

    /// The next batch. The tests take turns.
    fn next(&self) -> Option<Batch> {
        if self.stop.load(Ordering::SeqCst) || self.deadline.is_some_and(|it| Instant::now() >= it) {
            return None;
        }
        let mut state = self.state();
        for _ in 0..PROOFS.len() {
            let proof = state.next_proof;
            state.next_proof = (proof + 1) % PROOFS.len();
            let unit = PROOFS[proof].unit;
            let wanted = match unit {
                Unit::Cases => self.cases,
                Unit::Schedules | Unit::Seeds => self.schedules,
                Unit::Rotations => self.rotations,
            };
            let begun: u64 = (0..PROOFS.len())
                .filter(|other| PROOFS[*other].unit == unit)
                .map(|other| state.progress[other].begun)
                .sum();
            let left = wanted.map_or(u64::MAX, |wanted| wanted.saturating_sub(begun));
            if left == 0 {
                continue;
            }
            let count = state.progress[proof].batch.min(left);
            state.progress[proof].begun += count;
            let seed = state.next_seed;
            state.next_seed = seed.wrapping_add(count);
            return Some(Batch { proof, seed, count });
        }
        None
    }

    /// Runs a batch and returns whether it passed, with its output. Returns `None` if the soak was stopped.
    fn start(&self, batch: &Batch) -> Result<Option<(bool, String)>> {
        let Proof { test, unit_test, .. } = PROOFS[batch.proof];
        let program = if unit_test { &self.programs.unit_tests } else { &self.programs.tests };
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
                    child.kill()?;
                    child.wait()?;
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
            println!("  {:>12} of {}", progress.done, proof.test);
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

fn done(progress: &[Progress]) -> String {
    let of = |unit| -> u64 {
        PROOFS.iter().zip(progress).filter(|(proof, _)| proof.unit == unit).map(|(_, it)| it.done).sum()
    };
    format!(
        "{} cases, {} schedules, {} seeds, {} rotations",
        of(Unit::Cases),
        of(Unit::Schedules),
        of(Unit::Seeds),
        of(Unit::Rotations)
    )
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

fn build() -> Result<Programs> {
    println!("building the tests in release");
    let mut command = crate::cargo();
    command.args([
        "test",
        "--release",
        "--package",
        "kubewright-runtime",
        "--lib",
        "--test",
        "it",
        "--no-run",
    ]);
    command.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = command.output().context("start cargo")?;
    ensure!(output.status.success(), "building the tests failed");
    let mut programs = (None, None);
    for message in cargo_metadata::Message::parse_stream(&*output.stdout) {
        let cargo_metadata::Message::CompilerArtifact(artifact) =
            message.context("parse cargo's messages")?
        else {
            continue;
        };
        let Some(program) = artifact.executable else { continue };
        let slot = if artifact.target.is_test() { &mut programs.1 } else { &mut programs.0 };
        *slot = Some(program.into_std_path_buf());
    }
    let (Some(unit_tests), Some(tests)) = programs else { bail!("cargo built no test binaries") };
    Ok(Programs { unit_tests, tests })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(unit: Unit) -> Batch {
        let proof = PROOFS.iter().position(|proof| proof.unit == unit).unwrap();
        Batch { proof, seed: 40, count: 8 }
    }

    #[test]
    fn a_failure_prints_the_command_that_reproduces_it() {
        insta::assert_snapshot!(batch(Unit::Cases), @"PROPTEST_RNG_SEED=40 PROPTEST_CASES=8 cargo test --release -p kubewright-runtime --lib -- queue::tests::model::");
        insta::assert_snapshot!(batch(Unit::Schedules), @"SHUTTLE_RANDOM_SEED=40 KUBEWRIGHT_SCHEDULES=8 cargo test --release -p kubewright-runtime --test it -- queue_shuttle::");
        insta::assert_snapshot!(batch(Unit::Seeds), @"KUBEWRIGHT_SEEDS=40..48 cargo test --release -p kubewright-runtime --test it -- manager_proofs::whatever_happens_to_the_watches");
        insta::assert_snapshot!(batch(Unit::Rotations), @"KUBEWRIGHT_SEEDS=40..41 KUBEWRIGHT_ROTATIONS=8 cargo test --release -p kubewright-runtime --test it -- webhook::rotations::no_handshake_is_refused_and_no_write_is_lost");
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

    #[test]
    fn passed_tests_are_counted_from_the_result_line() {
        assert_eq!(passed("running 6 tests\ntest result: ok. 6 passed; 0 failed; 0 ignored\n"), 6);
        assert_eq!(passed("test result: FAILED. 5 passed; 1 failed\n"), 0);
    }
}
