//! The thread that owns the log file: it writes queued records, syncs, and reports progress.
//!
//! While it syncs, the next group collects in the [`Queue`]; there is no other batching. It keeps its own
//! [`State`], so a snapshot needs no lock of the store, and writes snapshots on a separate thread, so they
//! delay no commit.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kubewright_sync::ordered_watch;

use super::folder::{Folder, Kind};
use super::record::Record;
use super::recovery::Recovery;
use super::state::State;
use super::{frame, snapshot};
use crate::storage::Revision;

/// Buffer capacity that is kept between groups.
const BUFFER: usize = 1 << 20;

/// Destination of frames: a file, or a simulated disk in tests.
pub(super) trait Sink: Send {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    /// Removes everything after `length` bytes, and continues there.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// Creates the log that continues from a revision.
type Create = dyn Fn(&Folder, Revision) -> io::Result<File> + Send;

/// Settings for snapshots and files.
pub(super) struct Options {
    /// Minimum length of the log before a snapshot.
    pub(super) log_bytes: u64,
    /// Minimum ratio of log length to the size of live objects. Bounds both disk usage and the cost of
    /// snapshots.
    pub(super) times_live: u64,
    /// Pause before a write is tried again on a full disk.
    pub(super) retry: Duration,
    pub(super) sink: Box<dyn Fn(File) -> Box<dyn Sink> + Send>,
    pub(super) create: Box<Create>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log_bytes: 64 << 20,
            times_live: 4,
            retry: Duration::from_secs(1),
            sink: Box::new(|file| Box::new(file)),
            create: Box::new(|folder, revision| folder.create(Kind::Log, revision, |_| Ok(()))),
        }
    }
}

/// How far the log is durable.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    revision: Revision,
    forgets: u64,
    /// Permanent: after a failed sync the content of the disk is unknown.
    failure: Option<(io::ErrorKind, String)>,
    /// The disk is full. The write is tried again until there is space.
    full: Option<(io::ErrorKind, String)>,
}

impl Progress {
    /// Whether everything up to this revision is durable.
    pub(super) fn reaches(&self, revision: Revision, forgets: u64) -> bool {
        self.revision >= revision && self.forgets >= forgets
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn failure(&self) -> Option<io::Error> {
        self.failure.as_ref().map(error)
    }

    /// Why nothing can be written now, permanently or not.
    pub(super) fn obstacle(&self) -> Option<io::Error> {
        self.failure.as_ref().or(self.full.as_ref()).map(error)
    }
}

fn error((kind, text): &(io::ErrorKind, String)) -> io::Error {
    io::Error::new(*kind, text.clone())
}

/// Records waiting for the thread.
#[derive(Default)]
pub(super) struct Queue {
    pending: Mutex<Pending>,
    filled: Condvar,
}

#[derive(Default)]
struct Pending {
    records: Vec<Record>,
    closed: bool,
}

impl Queue {
    /// Queues records that are written or lost together.
    pub(super) fn push(&self, records: impl IntoIterator<Item = Record>) {
        let mut pending = self.lock();
        if !pending.closed {
            pending.records.extend(records);
            self.filled.notify_one();
        }
    }

    /// A queue without waiting: a full disk is an error at once.
    pub(super) fn closed() -> Self {
        let queue = Self::default();
        queue.close();
        queue
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// Waits for records or for the end. Returns all queued records, and whether they are the last.
    fn take(&self) -> (Vec<Record>, bool) {
        let idle = |pending: &mut Pending| pending.records.is_empty() && !pending.closed;
        let mut pending = self.filled.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut pending.records), pending.closed)
    }

    /// Waits for the timeout or until the queue is closed. Returns whether the queue is closed.
    fn pause(&self, time: Duration) -> bool {
        let open = |pending: &mut Pending| !pending.closed;
        let waited = self.filled.wait_timeout_while(self.lock(), time, open);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of the thread. See the [module](self).
pub(super) struct Writer {
    folder: Folder,
    options: Options,
    file: Box<dyn Sink>,
    /// The revision in the file's name.
    start: Revision,
    /// Length of the file.
    length: u64,
    /// Total length of the logs since the last snapshot.
    bytes: u64,
    /// A new log could not be created, because the disk is full.
    delayed: bool,
    state: State,
    /// Dropped with the thread, which ends every wait.
    progress: ordered_watch::Sender<Progress>,
    snapshot: Option<JoinHandle<()>>,
    buffer: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        folder: Folder,
        found: Recovery,
        options: Options,
    ) -> (Self, ordered_watch::Receiver<Progress>) {
        let (sender, progress) = ordered_watch::channel(Progress::default());
        let Recovery { state, log, start, bytes, .. } = found;
        let length = log.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        let writer = Self {
            folder,
            file: (options.sink)(log),
            options,
            start,
            length,
            bytes,
            delayed: false,
            state,
            progress: sender,
            snapshot: None,
            buffer: Vec::new(),
        };
        (writer, progress)
    }

    /// Runs until the queue is closed or a write fails.
    pub(super) fn run(mut self, queue: &Queue) {
        if let Err(error) = self.work(queue) {
            let path = self.folder.path(Kind::Log, self.start);
            tracing::error!(%error, path = %path.display(), "log write failed; server is now read-only");
            let text = format!("cannot write {}: {error}", path.display());
            self.progress.send_modify(|progress| progress.failure = Some((error.kind(), text)));
        }
        // Join before the directory's lock is released: the snapshot writes there.
        self.finish_snapshot();
    }

    fn work(&mut self, queue: &Queue) -> io::Result<()> {
        loop {
            let (records, last) = queue.take();
            if !records.is_empty() {
                self.commit(records, queue)?;
            }
            if last {
                return self.commit(vec![Record::Closed { revision: self.state.revision }], queue);
            }
            if self.wants_snapshot() {
                match self.rotate() {
                    Ok(()) => {
                        self.delayed = false;
                        self.start_snapshot();
                    }
                    Err(error) if is_full(&error) => self.delay_rotation(&error),
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Continues with the current log, because the disk is full. The next commit tries again.
    fn delay_rotation(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.delayed, true) {
            let path = self.folder.path(Kind::Log, self.state.revision);
            tracing::warn!(
                %error,
                path = %path.display(),
                "no space left on device for a new log; continuing with the current one"
            );
        }
    }

    /// Makes the records durable as one frame and reports progress.
    pub(super) fn commit(&mut self, records: Vec<Record>, queue: &Queue) -> io::Result<()> {
        frame::encode(&mut self.buffer, &records)?;
        let forgets = records.iter().filter(|record| matches!(record, Record::Forget { .. })).count() as u64;
        for record in records {
            // Validate before writing: an inconsistent log could not be read again.
            self.state.apply(record).map_err(io::Error::other)?;
        }
        self.write(queue)?;
        self.file.sync()?;
        self.length += self.buffer.len() as u64;
        self.bytes += self.buffer.len() as u64;
        self.buffer.shrink_to(BUFFER);
        let revision = self.state.revision;
        self.progress.send_modify(|progress| {
            progress.revision = revision;
            progress.forgets += forgets;
            progress.full = None;
        });
        Ok(())
    }

    /// Writes the buffer. On a full disk, tries again until there is space or the queue is closed. Nothing was synced,
    /// so the part that was written can be removed.
    fn write(&mut self, queue: &Queue) -> io::Result<()> {
        let mut reported = false;
        loop {
            let Err(error) = self.file.write(&self.buffer) else {
                if reported {
                    let path = self.folder.path(Kind::Log, self.start);
                    tracing::info!(path = %path.display(), "log is writable again");
                }
                return Ok(());
            };
            if !is_full(&error) {
                return Err(error);
            }
            self.file.truncate(self.length)?;
            if !std::mem::replace(&mut reported, true) {
                let path = self.folder.path(Kind::Log, self.start);
                tracing::error!(
                    %error,
                    path = %path.display(),
                    "no space left on device; rejecting writes until space is available"
                );
                let text = format!("cannot write {}: {error}", path.display());
                self.progress.send_modify(|progress| progress.full = Some((error.kind(), text)));
            }
            if queue.pause(self.options.retry) {
                return Err(error);
            }
        }
    }

    fn wants_snapshot(&self) -> bool {
        self.bytes > self.options.log_bytes
            && self.bytes > self.options.times_live.saturating_mul(self.state.bytes)
            && self.snapshot.as_ref().is_none_or(JoinHandle::is_finished)
            // Otherwise the new log would have the same name.
            && self.state.revision > self.start
    }

    /// Starts a new log, and a snapshot of the state at its start.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let file = (self.options.create)(&self.folder, self.state.revision)?;
        self.file = (self.options.sink)(file);
        self.start = self.state.revision;
        self.length = frame::HEADER as u64;
        self.bytes = 0;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    fn start_snapshot(&mut self) {
        self.finish_snapshot();
        let (folder, state) = (self.folder.clone(), self.state.clone());
        let thread = std::thread::Builder::new().name("kubewright-snapshot".to_owned()).spawn(move || {
            if let Err(error) = snapshot::write(&folder, &state).and_then(|()| folder.prune(state.revision)) {
                // No data is lost: the logs remain, and the next snapshot removes them.
                let path = folder.path(Kind::Snapshot, state.revision);
                tracing::warn!(%error, path = %path.display(), "failed to write snapshot");
            }
        });
        match thread {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => {
                tracing::warn!(%error, path = %self.folder.dir().display(), "failed to start snapshot thread");
            }
        }
    }

    fn finish_snapshot(&mut self) {
        if let Some(Err(_)) = self.snapshot.take().map(JoinHandle::join) {
            tracing::warn!(path = %self.folder.dir().display(), "snapshot thread panicked");
        }
    }
}

/// Whether a write failed because the disk or the quota is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
