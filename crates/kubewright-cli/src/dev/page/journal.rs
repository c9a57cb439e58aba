//! The operator's journal: JSON lines over TCP from the manager that `kubewright dev` started.
//!
//! Unknown records are skipped, so that operators of other kubewright versions work. A connection must start
//! with `hello`; others, such as a browser, are closed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::state::Shared;

/// Maximum line length.
const LINE: u64 = 1 << 20;
/// Maximum number of operators that write at the same time.
const OPERATORS: usize = 16;

/// A journal record.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Record {
    Hello(Hello),
    Started(Started),
    Request(Call),
    Ended(Ended),
    Queue(Queue),
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hello {
    pub(super) at: String,
    pub(super) operator: String,
    #[serde(default)]
    pub(super) pid: u32,
    #[serde(default)]
    pub(super) controllers: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Started {
    pub(super) at: String,
    pub(super) id: String,
    pub(super) controller: String,
    /// Empty for controllers whose keys are not objects.
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) attempt: u32,
    #[serde(default)]
    pub(super) waited_ms: f64,
    #[serde(default)]
    pub(super) causes: Vec<Cause>,
    #[serde(default)]
    pub(super) more_causes: u64,
}

/// Why it was reconciled.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Cause {
    pub(super) why: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) changed: Vec<String>,
    #[serde(default)]
    pub(super) more: u64,
}

/// A call to the API server.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Call {
    #[serde(skip_serializing)]
    pub(super) id: String,
    pub(super) at: String,
    pub(super) method: String,
    pub(super) path: String,
    #[serde(default)]
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) ms: f64,
    #[serde(default)]
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Ended {
    pub(super) id: String,
    pub(super) ms: f64,
    pub(super) outcome: String,
    #[serde(default)]
    pub(super) after_s: Option<f64>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Queue {
    pub(super) at: String,
    pub(super) controller: String,
    pub(super) depth: u64,
    #[serde(default)]
    pub(super) active: u64,
}

/// Reads journals while polled.
pub(super) async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut readers = JoinSet::new();
    let mut connection = 0;
    loop {
        tokio::select! {
            accepted = listener.accept(), if readers.len() < OPERATORS => match accepted {
                Ok((stream, _)) => {
                    connection += 1;
                    readers.spawn(read(connection, stream, shared.clone()));
                }
                // Out of file descriptors, or the client disconnected early.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = readers.join_next() => {}
        }
    }
}

async fn read(connection: u64, stream: TcpStream, shared: Arc<Shared>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    let mut greeted = false;
    loop {
        line.clear();
        let Ok(_) = (&mut reader).take(LINE).read_until(b'\n', &mut line).await else { break };
        // End of stream, or the line is too long.
        if line.last() != Some(&b'\n') {
            break;
        }
        let record = serde_json::from_slice(&line);
        if !greeted && !matches!(record, Ok(Record::Hello(_))) {
            return;
        }
        greeted = true;
        if let Ok(record) = record {
            shared.update(|state| state.work.record(connection, record, &mut state.board));
        }
    }
    shared.update(|state| state.work.closed(connection, &mut state.board));
}
