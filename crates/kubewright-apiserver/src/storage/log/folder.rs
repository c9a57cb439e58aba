//! The data directory: its lock, the names of its files, and their creation.
//!
//! A file gets its name after its contents are synced, and the name is durable when [`Folder::create`]
//! returns.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{OpenError, frame};
use crate::storage::Revision;

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Snapshot,
}

impl Kind {
    pub(super) fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"kwrt-log",
            Self::Snapshot => b"kwrt-snp",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Log => "log-",
            Self::Snapshot => "snapshot-",
        }
    }
}

/// The files of a directory by revision, oldest first.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) logs: Vec<Revision>,
    pub(super) snapshots: Vec<Revision>,
}

/// A directory that this process has locked.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Creates the directory if necessary and locks it for as long as the returned file is open.
    pub(super) fn open(dir: &Path) -> Result<(Self, File), OpenError> {
        let folder = Self { path: dir.to_owned() };
        if !dir.is_dir() {
            make_private_dir(dir).map_err(OpenError::io(dir))?;
            if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                sync_dir(parent).map_err(OpenError::io(parent))?;
            }
        }
        let path = dir.join("lock");
        let lock =
            private().write(true).create(true).truncate(false).open(&path).map_err(OpenError::io(&path))?;
        match lock.try_lock() {
            Ok(()) => Ok((folder, lock)),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked(dir.to_owned())),
            Err(TryLockError::Error(source)) => Err(OpenError::Io { path, source }),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.path
    }

    pub(super) fn path(&self, kind: Kind, revision: Revision) -> PathBuf {
        self.path.join(format!("{}{revision:020}", kind.prefix()))
    }

    pub(super) fn files(&self) -> io::Result<Files> {
        let mut files = Files::default();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(revision) = parse(name, Kind::Log) {
                files.logs.push(revision);
            } else if let Some(revision) = parse(name, Kind::Snapshot) {
                files.snapshots.push(revision);
            }
        }
        files.logs.sort_unstable();
        files.snapshots.sort_unstable();
        Ok(files)
    }

    /// Creates a file from its header and what `fill` writes. Returns when it would survive a crash.
    pub(super) fn create(
        &self,
        kind: Kind,
        revision: Revision,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<File> {
        let path = self.path(kind, revision);
        let unfinished = path.with_extension("tmp");
        let finish = || -> io::Result<File> {
            let mut file = private().write(true).create(true).truncate(true).open(&unfinished)?;
            file.write_all(&frame::header(kind, revision))?;
            fill(&mut file)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            Ok(file)
        };
        let file = finish().inspect_err(|_| {
            // Free the space: the disk may be full. A file that remains is removed at the next start.
            let _ = fs::remove_file(&unfinished);
        })?;
        if let Err(error) = sync_dir(&self.path) {
            // The log continues in the previous file, so recovery would miss the revisions before this one.
            fs::remove_file(&path).map_err(io::Error::other)?;
            return Err(error);
        }
        Ok(file)
    }

    /// Removes the files that a snapshot of `revision` replaces.
    pub(super) fn prune(&self, revision: Revision) -> io::Result<()> {
        let files = self.files()?;
        let logs = files.logs.iter().map(|log| (Kind::Log, *log));
        let snapshots = files.snapshots.iter().map(|snapshot| (Kind::Snapshot, *snapshot));
        for (kind, old) in logs.chain(snapshots).filter(|(_, old)| *old < revision) {
            fs::remove_file(self.path(kind, old))?;
        }
        Ok(())
    }

    /// Removes unfinished files.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let ours = parse(name, Kind::Log).is_some() || parse(name, Kind::Snapshot).is_some();
            if ours && path.extension().is_some_and(|extension| extension == "tmp") {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn parse(name: &str, kind: Kind) -> Option<Revision> {
    let digits = name.strip_prefix(kind.prefix())?;
    if digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Objects include Secrets: only the owner may read the files.
fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only unix has modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Makes directory entries durable. Only possible, and needed, on Unix.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}
