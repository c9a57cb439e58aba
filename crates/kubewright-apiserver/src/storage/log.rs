//! Objects that survive the server: a log of commits in a folder, and snapshots of what the log leads to.
//!
//! # Promise
//!
//! What [`Durability::synced`] has answered with `Ok` is there after a crash at any moment. Of what it has not,
//! a beginning may be there, in the order of revisions; that can be a part of a batch, since
//! [`Durability::record`] does not say where a batch ends. Events are not kept: watches start anew.
//!
//! # Folder
//!
//! | file | what it holds |
//! |---|---|
//! | `lock` | nothing; it is locked as long as the folder is open |
//! | `log-N` | what was committed after revision N, up to the N of the next log |
//! | `snapshot-N` | the objects as they were at revision N, where `log-N` goes on |
//! | `*.tmp` | a file that was not finished; removed by [`open`] |
//!
//! N has 20 digits, so that names sort. A file gets its name only when its beginning (a snapshot: all of it)
//! is on the disk, so a damaged header is never the work of a crash.
//!
//! # Format
//!
//! Numbers are little-endian. A file is a header and frames; a frame holds records.
//!
//! - header: magic (8 bytes), format version (u32), N (u64), CRC-32 of these 20 bytes;
//! - frame: the marker `FF 6B 77 FE`, which UTF-8 cannot hold, length of the payload (u32), CRC-32 of length
//!   and payload, payload;
//! - record: kind (u8) and then, as the kind needs them, revision (u64), and resource, key and JSON, each
//!   behind its length (u32). Attributes are computed again from the JSON.
//!
//! | kind | record | |
//! |---|---|---|
//! | 1 | put | revision, resource, key, JSON |
//! | 2 | delete | revision, resource, key |
//! | 3 | forget | resource |
//! | 4 | opened | revision the counter starts from; the folder is in use from here |
//! | 5 | closed | last revision; ended in good order |
//! | 6 | end of a snapshot | number of objects |
//!
//! A frame is one group commit, and the next one is written only when it is synced. So a bad frame at the end
//! of the last log is a write that a crash cut off, which nobody was told about: it is cut away. A bad frame
//! with a good one behind it, or with another log, was once synced: that is damage, and [`open`] refuses it.
//!
//! # Revisions
//!
//! Commits are visible before they are synced, so a crash can lose revisions that clients have seen. They must
//! not come again with another meaning: after an end without `closed`, the counter goes on [`GAP`] further,
//! and `opened` says so on the disk before anything else happens. A commit is answered when it is synced, so
//! what can be lost is at most what is in flight: requests at a time, times the writes of a batch. A server
//! that goes on to commit after a failure ([`Log::failure`]) would use the gap up; it must refuse instead.

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
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{fs, io};

use kubewright_apimachinery::json;
use kubewright_sync::ordered_watch;
use serde_json::Value;

use super::{Attributes, Durability, Limits, Memory, Recorded, Revision, StoredObject};
use folder::Folder;
use record::Record;
use writer::{Options, Progress, Queue, Writer};

/// How far the counter jumps after a crash. Far more than can be in flight; a `u64` has room for it.
pub const GAP: Revision = 1_000_000;

/// An open folder.
pub struct Opened {
    /// The objects as they were, with the counter where it goes on.
    pub engine: Memory,
    /// Takes what is committed from now on.
    pub log: Arc<Log>,
    /// What was found.
    pub recovered: Recovered,
}

/// What [`open`] found in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Objects.
    pub objects: usize,
    /// Length of the unfinished write that was cut away.
    pub truncated_bytes: u64,
    /// The last server ended in good order, or there was none.
    pub clean: bool,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has it.
    #[error("{} is in use by another server; stop that one or choose another folder", .0.display())]
    Locked(PathBuf),
    /// A later release wrote it.
    #[error("{} has format {found}; this release reads up to {known}: use a newer one", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format this release knows.
        known: u32,
    },
    /// What was synced is not there any more. Nothing was changed.
    #[error("{} is damaged at byte {offset}: {reason}; restore the folder from a copy", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A file that must be there is not. Nothing was changed.
    #[error("no log goes on from revision {from}: {} is missing; restore the folder from a copy", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The revision up to which the other files reach.
        from: Revision,
    },
    /// Reading or writing failed.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file or folder.
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

/// Opens a folder, or makes a new one. `attributes` is asked for every object, by the order of resources.
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
    // Deletions among them left no trace: a watch that goes on from before must not miss them.
    engine.forget_past();

    let log_path = folder.path(folder::Kind::Log, found.start);
    let (mut writer, progress) = Writer::new(folder, found, options);
    // On the disk before anybody can see a revision that comes after it.
    writer.commit(vec![Record::Opened { revision }]).map_err(OpenError::io(&log_path))?;
    let log = Log::start(writer, progress, lock).map_err(OpenError::io(dir))?;
    Ok(Opened { engine, log: Arc::new(log), recovered })
}

/// The log of an open folder. Dropping it closes it.
pub struct Log {
    queue: Arc<Queue>,
    progress: ordered_watch::Receiver<Progress>,
    /// How often [`Durability::forget`] was called: it takes no revision to wait for.
    forgets: AtomicU64,
    /// Who joins it gets the folder's lock, to give it up.
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

    /// Why nothing can be made durable any more. Once there is a reason it stays: after a failed sync nobody
    /// knows what the disk holds. A server must then refuse writes before it commits them.
    pub fn failure(&self) -> Option<io::Error> {
        self.progress.borrow().failure()
    }

    /// Writes what is queued and notes the good end. Waits for the disk, and for a snapshot that is under way.
    /// What is committed later is not kept, and [`Durability::synced`] says so. The folder is free then.
    pub fn close(&self) -> io::Result<()> {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            return Err(io::Error::other("the log's thread panicked"));
        }
        self.failure().map_or(Ok(()), Err)
    }

    fn append(&self, records: impl IntoIterator<Item = Record>) {
        // Where nobody takes records any more, do not collect them.
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

    fn synced(&self, revision: Revision) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        let forgets = self.forgets.load(Ordering::SeqCst);
        let mut progress = self.progress.clone();
        Box::pin(async move {
            match progress.wait_for(|progress| progress.settles(revision, forgets)).await {
                Ok(progress) => progress.failure().map_or(Ok(()), Err),
                Err(_) => Err(io::Error::other("the log is closed")),
            }
        })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The failure was logged when it happened, and told to everyone who waited.
        let _ = self.close();
    }
}
