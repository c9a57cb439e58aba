//! The connection of the journal.
//!
//! Owns [`Writer`], the task that connects to the listener and writes records. Failures are retried, and neither logged
//! nor passed on.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Hello, Journal, Record};

/// The timeout of connecting and of each write.
const PATIENCE: Duration = Duration::from_secs(1);

/// The delay between connection attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// The approximate size of a write, in bytes.
const AT_ONCE: usize = 64 * 1024;

/// Writes the journal.
pub(crate) struct Writer {
    address: SocketAddr,
    token: Option<String>,
    journal: Journal,
    records: mpsc::Receiver<Record>,
}

/// Why a connection ended.
enum Talk {
    /// The listener closed the connection or is too slow.
    Gone,
    /// All records were written.
    Over,
}

impl Writer {
    pub(super) fn new(
        address: SocketAddr,
        token: Option<String>,
        journal: Journal,
        records: mpsc::Receiver<Record>,
    ) -> Self {
        Self { address, token, journal, records }
    }

    /// Runs until `stop`, then writes the buffered records within the timeout.
    pub(crate) async fn run(mut self, operator: String, controllers: Vec<String>, stop: CancellationToken) {
        loop {
            let connected = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                connected = timeout(PATIENCE, TcpStream::connect(self.address)) => connected,
            };
            if let Ok(Ok(stream)) = connected {
                self.journal.set_heard(true);
                let hello = Record::Hello(Hello {
                    at: self.journal.0.clock.now(),
                    operator: operator.clone(),
                    pid: std::process::id(),
                    controllers: controllers.clone(),
                    token: self.token.clone(),
                });
                if let Ok(Talk::Over) = self.talk(stream, hello, &stop).await {
                    return;
                }
            }
            self.journal.set_heard(false);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
            // Drop buffered records: a new listener could not relate them to a reconcile.
            while self.records.try_recv().is_ok() {}
        }
    }

    async fn talk(&mut self, stream: TcpStream, hello: Record, stop: &CancellationToken) -> io::Result<Talk> {
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = stream.into_split();
        let (mut lines, mut said) = (Vec::new(), [0; 64]);
        let mut next = Some(hello);
        loop {
            while let Some(record) = next {
                serde_json::to_writer(&mut lines, &record)?;
                lines.push(b'\n');
                next = if lines.len() < AT_ONCE { self.records.try_recv().ok() } else { None };
            }
            match timeout(PATIENCE, writer.write_all(&lines)).await {
                Ok(written) => written?,
                Err(_) => return Ok(Talk::Gone),
            }
            lines.clear();
            next = tokio::select! {
                biased;
                record = self.records.recv() => record,
                () = stop.cancelled() => None,
                // Data from the listener is ignored; only end of file matters.
                read = reader.read(&mut said) => match read? {
                    0 => return Ok(Talk::Gone),
                    _ => continue,
                },
            };
            if next.is_none() {
                let _ = timeout(PATIENCE, writer.shutdown()).await;
                return Ok(Talk::Over);
            }
        }
    }
}
