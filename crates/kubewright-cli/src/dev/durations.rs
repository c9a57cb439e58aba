//! How long builds took. They are kept between runs, so that `dev` can announce each build with its duration.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::report::shown;

/// CPU seconds of the first build of a scaffolded project, with its dependencies (`cargo xtask bench dev`).
const COLD: u64 = 220;
/// CPU seconds of a build of the operator alone.
const WARM: u64 = 20;

/// The reason of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The first build of a run.
    Start,
    Save,
}

/// The durations of the last builds.
#[derive(Debug)]
pub(crate) struct Durations {
    file: PathBuf,
    start: Option<Duration>,
    save: Option<Duration>,
    /// Whether an earlier build compiled the dependencies.
    is_warm: bool,
}

impl Durations {
    /// Reads the durations from the state directory of a project. `target` is its target directory.
    pub(crate) fn read(state: &Path, target: &Path) -> Self {
        let file = state.join("durations");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let of = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name)?.1.parse().map(Duration::from_millis).ok()
        };
        Self { start: of("start"), save: of("save"), file, is_warm: is_warm(target) }
    }

    /// What the next build compiles, and roughly how long it takes.
    pub(crate) fn announce(&self, package: &str, reason: Reason) -> String {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
        match (reason, self.start, self.save) {
            (Reason::Save, _, Some(last)) => format!("{package}; the last build took {}", shown(last)),
            (Reason::Save, _, None) => format!("{package}; this takes some seconds"),
            (Reason::Start, Some(last), _) => {
                format!("{package}; the first build of the last run took {}", shown(last))
            }
            (Reason::Start, None, _) if self.is_warm => {
                format!(
                    "{package}; its dependencies are compiled, so this takes about {}",
                    about(WARM, cores)
                )
            }
            (Reason::Start, None, _) => {
                format!("{package} and its dependencies; the first build takes about {}", about(COLD, cores))
            }
        }
    }

    /// Records a successful build. The durations are hints, so a failure to write them is ignored.
    pub(crate) fn record(&mut self, reason: Reason, took: Duration) {
        match reason {
            Reason::Start => self.start = Some(took),
            Reason::Save => self.save = Some(took),
        }
        let known = [("start", self.start), ("save", self.save)];
        let lines =
            known.iter().filter_map(|(name, took)| Some(format!("{name} {}\n", (*took)?.as_millis())));
        let _ = fs::write(&self.file, lines.collect::<String>());
    }
}

/// CPU time in wall time of this machine.
fn about(cpu: u64, cores: u64) -> String {
    let seconds = cpu.div_ceil(cores).next_multiple_of(5);
    if seconds < 90 { format!("{seconds} s") } else { format!("{} minutes", seconds.div_ceil(60)) }
}

/// Whether the target directory has a build of the runtime that every operator depends on.
fn is_warm(target: &Path) -> bool {
    let Ok(mut compiled) = fs::read_dir(target.join("debug/.fingerprint")) else { return false };
    compiled.any(|it| it.is_ok_and(|it| it.file_name().to_string_lossy().starts_with("kubewright-runtime-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_announced_with_an_estimate_and_then_with_the_last_duration() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Durations::read(folder.path(), folder.path());
        let cold = read().announce("shop", Reason::Start);
        assert!(cold.starts_with("shop and its dependencies; the first build takes about "), "{cold}");
        fs::create_dir_all(folder.path().join("debug/.fingerprint/kubewright-runtime-0123")).unwrap();
        let warm = read().announce("shop", Reason::Start);
        assert!(warm.starts_with("shop; its dependencies are compiled, so this takes about "), "{warm}");
        assert_eq!(read().announce("shop", Reason::Save), "shop; this takes some seconds");

        read().record(Reason::Start, Duration::from_secs(94));
        assert_eq!(
            read().announce("shop", Reason::Start),
            "shop; the first build of the last run took 1 min 34 s"
        );
        read().record(Reason::Save, Duration::from_millis(1900));
        assert_eq!(read().announce("shop", Reason::Save), "shop; the last build took 1.9 s");
        assert_eq!(read().start, Some(Duration::from_secs(94)));
    }

    #[test]
    fn estimates_are_in_wall_time() {
        assert_eq!(about(220, 2), "2 minutes");
        assert_eq!(about(220, 8), "30 s");
        assert_eq!(about(20, 2), "10 s");
    }
}
