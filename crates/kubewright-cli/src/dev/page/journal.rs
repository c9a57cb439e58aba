//! The operator's journal: JSON lines over TCP, from the manager that `kubewright dev` started.
//!
//! The reader takes what it knows and passes over the rest, so that an operator of another version of kubewright is
//! still shown. A connection begins with `hello`; anything else, such as a browser that was told to write here, is
//! closed unread.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::state::Shared;

/// Longest line that is read.
const LINE: u64 = 1 << 20;
/// Operators that may write at once: the old one and the new one, and some that somebody started by hand.
const OPERATORS: usize = 16;

/// A line.
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
    /// A controller may reconcile keys that are no objects.
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

/// Why it reconciles.
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

/// Reads what operators write, for as long as it is polled.
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
                // Out of file descriptors, or a client that went away at once.
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
        // The end, or a line that is too long.
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
