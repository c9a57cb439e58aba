//! Durable storage: a directory with a log of commits, and snapshots.
//!
//! # Guarantee
//!
//! Everything that [`Durability::synced`] has confirmed with `Ok` survives a crash at any moment. Of later commits a
//! prefix may survive, in the order of revisions. The prefix can end within a batch, because
//! [`Durability::record`] does not mark batch ends. Events are not stored: clients must restart their watches.
//!
//! # Directory
//!
//! | file | content |
//! |---|---|
//! | `lock` | empty; locked while the directory is open |
//! | `log-N` | the commits after revision N, up to the N of the next log |
//! | `snapshot-N` | the objects at revision N; continued by `log-N` |
//! | `*.tmp` | an unfinished file; removed by [`open`] |
//!
//! N has 20 digits, so that names sort. A file gets its name only when its header (for a snapshot: its whole
//! content) is on disk, so a damaged header is never the result of a crash.
//!
//! # Format
//!
//! Numbers are little-endian. A file is a header and frames; a frame holds records.
//!
//! - header: magic (8 bytes), format version (u32), N (u64), CRC-32 of these 20 bytes;
//! - frame: the marker `FF 6B 77 FE`, which cannot occur in UTF-8, length of the payload (u32), CRC-32 of length
//!   and payload, payload;
//! - record: kind (u8), followed as the kind requires by revision (u64), and resource, key and JSON, each prefixed
//!   with its length (u32). Attributes are recomputed from the JSON.
//!
//! | kind | record | fields |
//! |---|---|---|
//! | 1 | put | revision, resource, key, JSON |
//! | 2 | delete | revision, resource, key |
//! | 3 | forget | resource |
//! | 4 | opened | first revision of this run; the directory is in use from here |
//! | 5 | closed | last revision; the server shut down cleanly |
//! | 6 | end of a snapshot | number of objects |
//!
//! A frame is one group commit, and the next one is written only after it is synced. So a bad frame at the end
//! of the last log is a torn, unconfirmed write if the file ends within the frame, or if a sector of the frame has
//! only zeros: it was never written. [`open`] truncates it. Any other bad frame was complete: that is damage, and
//! [`open`] fails. The same holds for a bad frame that is followed by a good frame or by another log.
//!
//! # Revisions
//!
//! The state in memory is ahead of the log: responses and watch events wait until it is synced, but uids and names of
//! commits in flight may already be in use, for example by a webhook. Revisions that a crash loses must not be reused:
//! after a shutdown without `closed`, the counter skips [`GAP`] revisions, and `opened` records
//! this on disk before the first commit. A commit returns when it is synced, so a crash loses at most the commits in
//! flight: concurrent requests times writes per batch. A server that kept committing after a failure
//! ([`Log::failure`]) would use up the gap; it must reject writes instead.

mod folder;
mod frame;
mod record;
mod recovery;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{fs, io};

use kubewright_apimachinery::json;
use kubewright_sync::ordered_watch;
use serde_json::Value;

use super::{Attributes, Durability, Limits, Memory, Outcome, Recorded, Revision, StoredObject};
use folder::Folder;
pub(crate) use folder::sync_dir;
use record::Record;
use writer::{Options, Progress, Queue, Writer};

/// Number of revisions skipped after a crash. Far more than can be in flight.
pub const GAP: Revision = 1_000_000;

/// An open directory.
pub struct Opened {
    /// The recovered objects and revision counter.
    pub engine: Memory,
    /// Records commits from now on.
    pub log: Arc<Log>,
    /// What recovery found.
    pub recovered: Recovered,
}

/// What [`open`] found in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Number of objects.
    pub objects: usize,
    /// Length of the torn write that was truncated.
    pub truncated_bytes: u64,
    /// The last server shut down cleanly, or the directory is new.
    pub clean: bool,
}

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has locked it.
    #[error("{} is in use by another server; stop that one or choose another directory", .0.display())]
    Locked(PathBuf),
    /// A later release wrote it.
    #[error("{} has format {found}; this release reads up to {known}: use a newer release", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's format version.
        found: u32,
        /// The newest format version of this release.
        known: u32,
    },
    /// Synced data is damaged. Nothing was changed.
    #[error("{} is damaged at byte {offset}: {reason}; restore the directory from a backup", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Byte offset of the damage.
        offset: u64,
        /// Description of the damage.
        reason: &'static str,
    },
    /// The last frame of the log, which can contain confirmed commits, is damaged. Nothing was changed.
    #[error(
        "{} is damaged at byte {offset}: {reason}; restore the directory from a backup, or truncate the file to \
         {offset} bytes to lose the last commits",
        .path.display()
    )]
    DamagedEnd {
        /// The file.
        path: PathBuf,
        /// Byte offset of the damaged frame.
        offset: u64,
        /// Description of the damage.
        reason: &'static str,
    },
    /// A required file is missing. Nothing was changed.
    #[error("no log continues from revision {from}: {} is missing; restore the directory from a backup", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The last revision that the other files contain.
        from: Revision,
    },
    /// Reading or writing failed.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { path: path.to_owned(), source }
    }
}

/// Opens a directory, or creates it. Calls `attributes` for every object, grouped by resource.
pub fn open(
    dir: &Path,
    limits: Limits,
    attributes: impl Fn(&str, &Value) -> Attributes,
) -> Result<Opened, OpenError> {
    open_with(dir, limits, Options::default(), attributes)
}

fn open_with(
    dir: &Path,
    limits: Limits,
    options: Options,
    attributes: impl Fn(&str, &Value) -> Attributes,
) -> Result<Opened, OpenError> {
    let (folder, lock) = Folder::open(dir)?;
    let found = recovery::recover(&folder)?;
    let clean = found.state.clean;
    let recovered = Recovered { objects: found.state.objects(), truncated_bytes: found.truncated, clean };

    let mut engine = Memory::new(limits);
    for (resource, key, entry) in found.state.iter() {
        let object = json::parse(&entry.json, json::ParseOptions::default()).map_err(|error| {
            let what = format!("the object {key} of {resource} is not JSON: {error}");
            OpenError::io(dir)(io::Error::new(io::ErrorKind::InvalidData, what))
        })?;
        let attributes = attributes(resource, &object.value);
        engine.restore(
            resource,
            StoredObject::new(key.clone(), entry.revision, attributes, entry.json.clone()),
        );
    }
    let revision = if clean { found.state.revision } else { found.state.revision.saturating_add(GAP) };
    engine.advance(revision);
    // The log has no events, so a watch from an earlier revision would miss deletions.
    engine.forget_past();

    let log_path = folder.path(folder::Kind::Log, found.start);
    let (mut writer, progress) = Writer::new(folder, found, options);
    // Must be on disk before a client can see a later revision.
    writer.commit(vec![Record::Opened { revision }], &Queue::closed()).map_err(OpenError::io(&log_path))?;
    let log = Log::start(writer, progress, lock).map_err(OpenError::io(dir))?;
    Ok(Opened { engine, log: Arc::new(log), recovered })
}

/// The log of an open directory. Dropping it closes it.
pub struct Log {
    queue: Arc<Queue>,
    progress: ordered_watch::Receiver<Progress>,
    /// Number of [`Durability::forget`] calls, which have no revision to wait for.
    forgets: AtomicU64,
    /// Returns the directory's lock when joined.
    thread: Mutex<Option<JoinHandle<fs::File>>>,
}

impl Log {
    fn start(
        writer: Writer,
        progress: ordered_watch::Receiver<Progress>,
        lock: fs::File,
    ) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let thread = std::thread::Builder::new().name("kubewright-log".to_owned()).spawn({
            let queue = queue.clone();
            move || {
                writer.run(&queue);
                lock
            }
        })?;
        Ok(Self { queue, progress, forgets: AtomicU64::new(0), thread: Mutex::new(Some(thread)) })
    }

    /// Why commits cannot be made durable now: the disk is full, or permanently after a failed sync, when the content of
    /// the disk is unknown. The server must then reject writes before it commits them.
    pub fn failure(&self) -> Option<io::Error> {
        self.progress.borrow().obstacle()
    }

    /// Writes the queued records and marks a clean shutdown. Waits for the disk and for a running snapshot.
    /// Later commits are not stored, and [`Durability::synced`] fails for them. Releases the directory's
    /// lock.
    pub fn close(&self) -> io::Result<()> {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            return Err(io::Error::other("the log thread panicked"));
        }
        self.failure().map_or(Ok(()), Err)
    }

    fn append(&self, records: impl IntoIterator<Item = Record>) {
        // Do not queue records after the writer has ended.
        if !self.progress.is_closed() {
            self.queue.push(records);
        }
    }
}

impl Durability for Log {
    fn record(&self, batch: &[Recorded]) {
        self.append(batch.iter().map(|recorded| {
            let (resource, version) = (recorded.resource.clone(), &recorded.version);
            let (key, revision) = (version.key.clone(), version.revision);
            if recorded.deleted {
                Record::Delete { resource, key, revision }
            } else {
                Record::Put { resource, key, revision, json: version.json.clone() }
            }
        }));
    }

    fn forget(&self, resource: &str) {
        self.forgets.fetch_add(1, Ordering::SeqCst);
        self.append([Record::Forget { resource: resource.into() }]);
    }

    fn failure(&self) -> Option<io::Error> {
        Log::failure(self)
    }

    fn close(&self) -> io::Result<()> {
        Log::close(self)
    }

    fn durable(&self) -> Revision {
        self.progress.borrow().revision()
    }

    fn synced(&self, revision: Revision) -> Outcome<'_> {
        let forgets = self.forgets.load(Ordering::SeqCst);
        let mut progress = self.progress.clone();
        Box::pin(async move {
            let settled =
                |progress: &Progress| progress.reaches(revision, forgets) || progress.obstacle().is_some();
            match progress.wait_for(settled).await {
                Ok(progress) if progress.reaches(revision, forgets) => Ok(()),
                Ok(progress) => progress.obstacle().map_or(Ok(()), Err),
                Err(_) => Err(io::Error::other("the log is closed")),
            }
        })
    }

    fn recovered(&self) -> Outcome<'_> {
        let mut progress = self.progress.clone();
        Box::pin(async move {
            let settled = |progress: &Progress| progress.failure().is_some() || progress.obstacle().is_none();
            match progress.wait_for(settled).await {
                Ok(progress) => progress.failure().map_or(Ok(()), Err),
                Err(_) => Err(io::Error::other("the log is closed")),
            }
        })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The failure was logged when it happened and returned to all waiting callers.
        let _ = self.close();
    }
}
