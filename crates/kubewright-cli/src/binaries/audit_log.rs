//! The audit log of `kube-apiserver`: one JSON event per line.
//!
//! Events are written by a thread of their own, so that a slow disk delays no request. If the output is not read, such as
//! that of a pipe, events are dropped and counted.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kubewright_apiserver::audit::{Audit, Audited};

/// Maximum number of events that wait for the thread.
const EVENTS: usize = 10_000;
/// How long the end of the server waits for the last events.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Writes the events of a server. Dropping it writes the events that are left, unless the output is not read.
pub(super) struct AuditLog {
    /// `None` ends the thread.
    events: Mutex<Option<SyncSender<String>>>,
    dropped: Arc<AtomicU64>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl AuditLog {
    /// Appends to a file; `-` is the standard output.
    pub(super) fn open(path: &str) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = if path == "-" {
            Box::new(io::stdout())
        } else {
            Box::new(OpenOptions::new().create(true).append(true).open(Path::new(path))?)
        };
        Self::start(out)
    }

    fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (events, received) = sync_channel(EVENTS);
        let (ends, ended) = sync_channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        std::thread::Builder::new().name("kubewright-audit".to_owned()).spawn({
            let dropped = dropped.clone();
            move || {
                write(BufWriter::new(out), &received, &dropped);
                drop(ends);
            }
        })?;
        Ok(Self { events: Mutex::new(Some(events)), dropped, ended: Mutex::new(ended) })
    }
}

impl AuditLog {
    fn add(&self, event: String) {
        if let Some(events) = self.events.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && events.try_send(event).is_err()
        {
            // The thread is behind, or it has ended after an error, which it has logged.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Audit for AuditLog {
    fn record(&self, request: Audited) {
        self.add(request.event.to_string());
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(LAST_EVENTS) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("audit log is not read; the last events are lost");
        }
    }
}

/// Writes events until the server ends. Flushes when no event is waiting.
fn write(mut out: impl Write, events: &Receiver<String>, dropped: &AtomicU64) {
    while let Ok(first) = events.recv() {
        let mut all = std::iter::once(first).chain(events.try_iter());
        let written = all.try_for_each(|event| writeln!(out, "{event}"));
        if let Err(error) = written.and_then(|()| out.flush()) {
            tracing::error!(%error, "Failed to write audit events; the audit log is closed");
            return;
        }
        let dropped = dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "audit events were dropped, because the audit log was not read");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// An output that accepts writes when the test permits it.
    struct Pipe(Receiver<()>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn events_are_dropped_while_the_output_is_not_read() {
        let (permit, permits) = channel();
        let log = AuditLog::start(Pipe(permits)).unwrap();
        for _ in 0..2 * EVENTS {
            log.add("x".repeat(100));
        }
        assert!(log.dropped.load(Ordering::Relaxed) > 0);
        // The end of the output ends the thread.
        drop(permit);
    }
}
