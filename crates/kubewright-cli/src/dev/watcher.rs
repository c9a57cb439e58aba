//! The files that an operator is made from, and when they were saved.
//!
//! Events of the file system become a [`Change`] once it has been quiet for a moment, as editors write a file in several
//! steps. A file counts as changed when its bytes did, so that neither an editor's touch nor a generator that writes the
//! same again starts a build. No change is lost: what is not taken stays.

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

/// How long nothing must happen before a change is told.
const QUIET: Duration = Duration::from_millis(50);
/// Where samples are, from the root of a project.
pub(crate) const SAMPLES: &str = "config/samples";

/// What was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// When the first of it was seen.
    pub(crate) since: Option<Instant>,
    /// Something that the program is built from.
    pub(crate) code: bool,
    /// A Cargo.toml: there may be other sources now.
    pub(crate) manifest: bool,
    /// Cargo.lock, which cargo also writes itself.
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
    /// Folders, and whether with all that is below.
    watched: BTreeMap<PathBuf, RecursiveMode>,
    sources: Sources,
    samples: PathBuf,
    /// What is in the files that were seen to change; none for those that are gone.
    seen: BTreeMap<PathBuf, Option<u64>>,
    pending: Change,
    /// When something happened last.
    last: Instant,
}

impl Watcher {
    /// Watches the sources of the project in a folder, and its samples, from now on.
    pub(crate) fn start(root: &Path, sources: Sources) -> Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let notify = notify::recommended_watcher(move |event| {
            // Whoever listened has ended.
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

    /// Watches other sources.
    pub(crate) fn watch(&mut self, sources: Sources) -> Result<()> {
        if sources != self.sources {
            self.sources = sources;
            self.read_all();
            self.watch_all()?;
        }
        Ok(())
    }

    /// Waits for a change, which [`Watcher::take`] has then. Can be given up and called again.
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
                // The watcher of the file system has ended, which it does only with us.
                return std::future::pending().await;
            };
            self.saw(event.context("cannot watch files any more")?)?;
        }
    }

    /// What changed since the last time.
    pub(crate) fn take(&mut self) -> Change {
        std::mem::take(&mut self.pending)
    }

    fn saw(&mut self, event: Event) -> Result<()> {
        if event.need_rescan() {
            // Events were lost: anything may have changed.
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
                // A folder came, or went: with all that is in it, and perhaps one that was missing.
                self.watch_all()?;
                self.came(&path);
            } else {
                self.look_at(path);
            }
        }
        Ok(())
    }

    /// Looks at all files of a folder that is new.
    fn came(&mut self, folder: &Path) {
        for path in files(folder) {
            self.look_at(path);
        }
    }

    /// Whether a file that something happened to has changed.
    fn look_at(&mut self, path: PathBuf) {
        let change = self.meaning(&path);
        if !change.is_any() {
            return;
        }
        // A save that goes on keeps everybody waiting, whatever the file has meanwhile.
        self.last = Instant::now();
        let now = fingerprint(&path);
        // A file that nobody knows was not there before.
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

    /// What it means if a file has changed.
    fn meaning(&self, path: &Path) -> Change {
        let nothing = Change::default();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return nothing };
        // Editors keep their own files beside ours.
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

    /// Knows what is in all files now, so that what is written the same again is no change.
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

    /// Watches what is there of all that should be watched, and no more.
    fn watch_all(&mut self) -> Result<()> {
        let mut wanted = BTreeMap::new();
        // Of the folders above samples it is only of interest that they come.
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
            // With the folder, its watch has gone.
            let _ = self.notify.unwatch(&folder);
            self.watched.remove(&folder);
        }
        for (folder, mode) in wanted {
            if self.watched.get(&folder) != Some(&mode) {
                self.notify
                    .watch(&folder, mode)
                    .with_context(|| format!("cannot watch {}", folder.display()))
                    .hint("where the system's limit is reached, raise it: `sysctl fs.inotify.max_user_watches=524288`")?;
                self.watched.insert(folder, mode);
            }
        }
        Ok(())
    }
}

/// All files below a folder. What cannot be read is not there.
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

/// Tells the bytes of a file from others; none if there is no such file.
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
    async fn saved_files_are_told_by_what_they_are() {
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
    async fn what_is_saved_without_a_change_or_by_an_editor_for_itself_is_passed_over() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write("src/main.rs", "fn main() {}");
        project.write("src/.main.rs.swp", "1");
        project.write("src/main.rs~", "1");
        project.write("README.md", "1");
        project.write("src/sedx1y2z3", "1");
        fs::remove_file(project.path("src/sedx1y2z3")).unwrap();
        // All that came before this is told with it, if it is told at all.
        project.write("Cargo.lock", "version = 4");
        assert_eq!(next(&mut watcher).await, Change { lock: true, ..NOTHING });
    }

    #[tokio::test]
    async fn a_file_that_takes_the_place_of_another_is_a_save_and_so_is_one_that_goes() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write(".new", "fn main() { work() }");
        fs::rename(project.path(".new"), project.path("src/main.rs")).unwrap();
        assert_eq!(next(&mut watcher).await, CODE);
        fs::remove_file(project.path("src/main.rs")).unwrap();
        assert_eq!(next(&mut watcher).await, CODE);
    }

    #[tokio::test]
    async fn folders_that_come_later_are_watched_too() {
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
    async fn a_change_that_nobody_took_stays() {
        let project = Project::new();
        let mut watcher = project.watcher();
        project.write("src/main.rs", "fn main() { work() }");
        watcher.changed().await.unwrap();
        assert_eq!(next(&mut watcher).await, CODE);
    }
}
