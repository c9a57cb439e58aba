//! The operator's journal: JSON lines over TCP from the manager that `kubewright dev` started.
//!
//! Unknown records are skipped, so that operators of other kubewright versions work. A connection must start
//! with `hello` and the token that `dev` sets in the operator's environment; others are closed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    Admission(Box<Admission>),
    Conversion(Conversion),
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
    #[serde(default)]
    pub(super) token: String,
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
    /// Version of the object when the reconcile started.
    #[serde(default)]
    pub(super) resource_version: Option<String>,
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
    /// Version of the written object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource_version: Option<String>,
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

/// An admission review.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Admission {
    pub(super) at: String,
    pub(super) webhook: String,
    pub(super) operation: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) subresource: String,
    #[serde(default)]
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) user: String,
    #[serde(default)]
    pub(super) dry_run: bool,
    pub(super) allowed: bool,
    #[serde(default)]
    pub(super) code: Option<u16>,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    /// JSON patch operations, each with the value `before`.
    #[serde(default)]
    pub(super) patch: Vec<Value>,
    #[serde(default)]
    pub(super) more_patches: u64,
    pub(super) ms: f64,
}

/// A conversion review.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Conversion {
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) from: Vec<String>,
    pub(super) to: String,
    pub(super) objects: u64,
    /// The first objects, as `namespace/name`.
    #[serde(default)]
    pub(super) names: Vec<String>,
    #[serde(default)]
    pub(super) error: Option<String>,
    pub(super) ms: f64,
}

/// Reads journals while polled.
pub(super) async fn listen(listener: TcpListener, token: Arc<str>, shared: Arc<Shared>) {
    let mut readers = JoinSet::new();
    let mut connection = 0;
    loop {
        tokio::select! {
            accepted = listener.accept(), if readers.len() < OPERATORS => match accepted {
                Ok((stream, _)) => {
                    connection += 1;
                    readers.spawn(read(connection, stream, token.clone(), shared.clone()));
                }
                // Out of file descriptors, or the client disconnected early.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = readers.join_next() => {}
        }
    }
}

async fn read(connection: u64, stream: TcpStream, token: Arc<str>, shared: Arc<Shared>) {
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
        if !greeted {
            let Ok(Record::Hello(hello)) = &record else { return };
            if *hello.token != *token {
                return shared.update(|state| {
                    state.status.rejected.insert(hello.operator.clone());
                    state.publish_status();
                });
            }
        }
        greeted = true;
        if let Ok(record) = record {
            shared.update(|state| state.record(connection, record));
        }
    }
    shared.update(|state| state.work.closed(connection, &mut state.board));
}
