//! The audit log of `kube-apiserver`: one JSON event per line.
//!
//! Events are written by a thread of their own, so that a slow disk delays no request.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use kubewright_apiserver::audit::{Audit, Audited};

/// Writes the events of a server. Dropping it writes the events that are left.
pub(super) struct AuditLog {
    events: Mutex<Option<Sender<String>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl AuditLog {
    /// Appends to a file; `-` is the standard output.
    pub(super) fn open(path: &str) -> io::Result<Self> {
        let out: Box<dyn Write + Send> = if path == "-" {
            Box::new(io::stdout())
        } else {
            Box::new(OpenOptions::new().create(true).append(true).open(Path::new(path))?)
        };
        let (events, received) = channel();
        let thread = std::thread::Builder::new()
            .name("kubewright-audit".to_owned())
            .spawn(move || write(BufWriter::new(out), &received))?;
        Ok(Self { events: Mutex::new(Some(events)), thread: Mutex::new(Some(thread)) })
    }
}

impl Audit for AuditLog {
    fn record(&self, request: Audited) {
        if let Some(events) = self.events.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            // The thread ends only after an error, which it has logged.
            let _ = events.send(request.event.to_string());
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// Writes events until the server ends. Flushes when no event is waiting.
fn write(mut out: impl Write, events: &Receiver<String>) {
    while let Ok(first) = events.recv() {
        let mut all = std::iter::once(first).chain(events.try_iter());
        let written = all.try_for_each(|event| writeln!(out, "{event}"));
        if let Err(error) = written.and_then(|()| out.flush()) {
            tracing::error!(%error, "Failed to write audit events; the audit log is closed");
            return;
        }
    }
}
