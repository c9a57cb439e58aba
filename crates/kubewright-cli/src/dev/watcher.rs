//! Watches the operator's sources and samples.
//!
//! File system events become a [`Change`] after a short quiet period, since editors write files in several
//! steps. A file counts as changed if its content did, so touching a file or writing the same content starts
//! no build. Changes accumulate until they are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::Hint as _;
use crate::project::Sources;

/// Quiet period before a change is reported.
const QUIET: Duration = Duration::from_millis(50);
/// Samples directory, relative to the project root.
pub(crate) const SAMPLES: &str = "config/samples";

/// What was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// When the first event was seen.
    pub(crate) since: Option<Instant>,
    /// A source file of the binary.
    pub(crate) code: bool,
    /// A Cargo.toml: the set of sources may have changed.
    pub(crate) manifest: bool,
    /// Cargo.lock, which cargo also writes.
    pub(crate) lock: bool,
    pub(crate) samples: bool,
}

impl Change {
    fn is_any(self) -> bool {
        self.code || self.lock || self.samples
    }
}

/// Watches files.
pub(crate) struct Watcher {
    notify: RecommendedWatcher,
    events: mpsc::UnboundedReceiver<notify::Result<Event>>,
    /// Watched directories and modes.
    watched: BTreeMap<PathBuf, RecursiveMode>,
    sources: Sources,
    samples: PathBuf,
    /// Content hashes of known files; `None` if removed.
    seen: BTreeMap<PathBuf, Option<u64>>,
    pending: Change,
    /// Time of the last event.
    last: Instant,
}

impl Watcher {
    /// Starts watching the sources and samples of a project.
    pub(crate) fn start(root: &Path, sources: Sources) -> Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let notify = notify::recommended_watcher(move |event| {
            // The receiver may be gone.
            let _ = sender.send(event);
        })
        .context("cannot watch files")?;
        let mut watcher = Self {
            notify,
            events,
            watched: BTreeMap::new(),
            sources,
            samples: root.join(SAMPLES),
            seen: BTreeMap::new(),
            pending: Change::default(),
            last: Instant::now(),
        };
        watcher.read_all();
        watcher.watch_all()?;
        Ok(watcher)
    }

    /// Replaces the watched sources.
    pub(crate) fn watch(&mut self, sources: Sources) -> Result<()> {
        if sources != self.sources {
            self.sources = sources;
            self.read_all();
            self.watch_all()?;
        }
        Ok(())
    }

    /// Waits for a change, to be read with [`Watcher::take`]. Cancel-safe.
    pub(crate) async fn changed(&mut self) -> Result<()> {
        loop {
            let event = if self.pending.is_any() {
                tokio::select! {
                    biased;
                    event = self.events.recv() => event,
                    () = tokio::time::sleep_until(self.last + QUIET) => return Ok(()),
                }
            } else {
                self.events.recv().await
            };
            let Some(event) = event else {
                // The notify watcher only ends together with this one.
                return std::future::pending().await;
            };
            self.saw(event.context("file watcher failed")?)?;
        }
    }

    /// Takes the accumulated changes.
    pub(crate) fn take(&mut self) -> Change {
        std::mem::take(&mut self.pending)
    }

    fn saw(&mut self, event: Event) -> Result<()> {
        if event.need_rescan() {
            // Events were lost: assume that everything changed.
            self.add(Change { code: true, manifest: true, samples: true, ..Change::default() });
            return Ok(());
        }
        let names = matches!(
            event.kind,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
        );
        if !names && !matches!(event.kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any)) {
            return Ok(());
        }
        for path in event.paths {
            if names && (path.is_dir() || self.watched.contains_key(&path)) {
                // A directory was created or removed, possibly one that should be watched.
                self.watch_all()?;
                self.came(&path);
            } else {
                self.look_at(path);
            }
        }
        Ok(())
    }

    /// Checks all files of a new directory.
    fn came(&mut self, folder: &Path) {
        for path in files(folder) {
            self.look_at(path);
        }
    }

    /// Checks whether a file changed.
    fn look_at(&mut self, path: PathBuf) {
        let change = self.meaning(&path);
        if !change.is_any() {
            return;
        }
        // Any event extends the quiet period, even without a change of content.
        self.last = Instant::now();
        let now = fingerprint(&path);
        // An unknown file is new.
        if self.seen.insert(path, now).flatten() != now {
            self.add(change);
        }
    }

    fn add(&mut self, change: Change) {
        self.last = Instant::now();
        let pending = &mut self.pending;
        pending.since.get_or_insert(self.last);
        pending.code |= change.code;
        pending.manifest |= change.manifest;
        pending.lock |= change.lock;
        pending.samples |= change.samples;
    }

    /// Classifies a change of a file.
    fn meaning(&self, path: &Path) -> Change {
        let nothing = Change::default();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return nothing };
        // Ignore temporary files of editors.
        if name.starts_with(['.', '#'])
            || name.ends_with(['~', '#'])
            || path.extension().is_some_and(|kind| kind == "swp")
            || name == "4913"
        {
            return nothing;
        }
        if path.starts_with(&self.samples) {
            return Change { samples: true, ..nothing };
        }
        if self.sources.code.iter().any(|folder| path.starts_with(folder)) {
            return Change { code: true, ..nothing };
        }
        if !path.parent().is_some_and(|folder| self.sources.roots.contains(folder)) {
            return nothing;
        }
        match name {
            "Cargo.toml" => Change { code: true, manifest: true, ..nothing },
            "Cargo.lock" => Change { lock: true, ..nothing },
            "rust-toolchain" | "rust-toolchain.toml" => Change { code: true, ..nothing },
            _ => Change { code: Path::new(name).extension().is_some_and(|kind| kind == "rs"), ..nothing },
        }
    }

    /// Hashes all files, so that rewriting the same content is not a change.
    fn read_all(&mut self) {
        let folders = self.sources.code.iter().chain([&self.samples]);
        let mut paths: Vec<PathBuf> = folders.flat_map(|folder| files(folder)).collect();
        for root in &self.sources.roots {
            let entries = fs::read_dir(root).into_iter().flatten().flatten();
            paths.extend(entries.map(|entry| entry.path()).filter(|path| path.is_file()));
        }
        for path in paths {
            if self.meaning(&path).is_any() && !self.seen.contains_key(&path) {
                let now = fingerprint(&path);
                self.seen.insert(path, now);
            }
        }
    }

    /// Updates the file system watches.
    fn watch_all(&mut self) -> Result<()> {
        let mut wanted = BTreeMap::new();
        // Parents of the samples directory are watched for its creation.
        let above = self.samples.ancestors().skip(1).take(2).map(Path::to_owned);
        for folder in self.sources.roots.iter().cloned().chain(above) {
            wanted.insert(folder, RecursiveMode::NonRecursive);
        }
        for folder in self.sources.code.iter().chain([&self.samples]) {
            wanted.insert(folder.clone(), RecursiveMode::Recursive);
        }
        wanted.retain(|folder, _| folder.is_dir());
        let gone: BTreeSet<PathBuf> =
            self.watched.keys().filter(|folder| !wanted.contains_key(*folder)).cloned().collect();
        for folder in gone {
            // The watch may be gone with the directory.
            let _ = self.notify.unwatch(&folder);
            self.watched.remove(&folder);
        }
        for (folder, mode) in wanted {
            if self.watched.get(&folder) != Some(&mode) {
                self.notify
                    .watch(&folder, mode)
                    .with_context(|| format!("cannot watch {}", folder.display()))
                    .hint("if the inotify limit is reached, raise it: `sysctl fs.inotify.max_user_watches=524288`")?;
                self.watched.insert(folder, mode);
            }
        }
        Ok(())
    }
}

/// All files below a directory. Unreadable entries are skipped.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => found.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    found
}

/// The hash of a file's content, or `None` if it does not exist.
fn fingerprint(path: &Path) -> Option<u64> {
    let bytes = fs::read(path).ok()?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Project {
        folder: tempfile::TempDir,
    }

    impl Project {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("src")).unwrap();
            let project = Self { folder };
            project.write("Cargo.toml", "[package]");
            project.write("src/main.rs", "fn main() {}");
            project
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.path(path), text).unwrap();
        }

        fn watcher(&self) -> Watcher {
            let sources = Sources {
                roots: BTreeSet::from([self.folder.path().to_owned()]),
                code: BTreeSet::from([self.path("src")]),
            };
            Watcher::start(self.folder.path(), sources).unwrap()
        }
    }

    async fn next(watcher: &mut Watcher) -> Change {
        tokio::time::timeout(Duration::from_secs(20), watcher.changed()).await.expect("a change").unwrap();
        Change { since: None, ..watcher.take() }
    }

    const NOTHING: Change = Change { since: None, code: false, manifest: false, lock: false, samples: false };
    const CODE: Change = Change { code: true, ..NOTHING };
    const SAMPLE: Change = Change { samples: true, ..NOTHING };

    #[tokio::test]
    async fn changes_are_classified_by_file() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write("src/main.rs", "fn main() { work() }");
        assert_eq!(next(&mut watcher).await, CODE);
        project.write("Cargo.toml", "[package]\nname = 'x'");
        assert_eq!(next(&mut watcher).await, Change { manifest: true, ..CODE });
        project.write("Cargo.lock", "version = 4");
        assert_eq!(next(&mut watcher).await, Change { lock: true, ..NOTHING });
        project.write("build.rs", "fn main() {}");
        assert_eq!(next(&mut watcher).await, CODE);
    }

    #[tokio::test]
    async fn unchanged_and_temporary_files_are_ignored() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write("src/main.rs", "fn main() {}");
        project.write("src/.main.rs.swp", "1");
        project.write("src/main.rs~", "1");
        project.write("README.md", "1");
        project.write("src/sedx1y2z3", "1");
        fs::remove_file(project.path("src/sedx1y2z3")).unwrap();
        // Earlier events would be reported together with this one.
        project.write("Cargo.lock", "version = 4");
        assert_eq!(next(&mut watcher).await, Change { lock: true, ..NOTHING });
    }

    #[tokio::test]
    async fn renames_and_removals_are_changes() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write(".new", "fn main() { work() }");
        fs::rename(project.path(".new"), project.path("src/main.rs")).unwrap();
        assert_eq!(next(&mut watcher).await, CODE);
        fs::remove_file(project.path("src/main.rs")).unwrap();
        assert_eq!(next(&mut watcher).await, CODE);
    }

    #[tokio::test]
    async fn new_directories_are_watched() {
        let project = Project::new();
        let mut watcher = project.watcher();
        fs::create_dir_all(project.path("config/samples")).unwrap();
        project.write("config/samples/order.yaml", "kind: Order");
        assert_eq!(next(&mut watcher).await, SAMPLE);
        project.write("config/samples/order.yaml", "kind: Other");
        assert_eq!(next(&mut watcher).await, SAMPLE);
        fs::create_dir(project.path("src/controllers")).unwrap();
        project.write("src/controllers/order.rs", "fn order() {}");
        assert_eq!(next(&mut watcher).await, CODE);
    }

    #[tokio::test]
    async fn changes_accumulate_until_taken() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write("src/main.rs", "fn main() { work() }");
        watcher.changed().await.unwrap();
        assert_eq!(next(&mut watcher).await, CODE);
    }
}
