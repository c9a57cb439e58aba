//! The journal: a live stream of an operator's reconciles, for a program that shows them.
//!
//! A manager with an address ([`ManagerOptions::journal`](crate::ManagerOptions::journal), set by the environment
//! variable [`VARIABLE`] in operators) connects there and writes one [`Record`] per line, as JSON: which reconciles
//! start and why, their API requests, their results, and the queue depth.
//!
//! Invariants:
//!
//! - The journal never blocks. Records go through a bounded buffer and are dropped when it is full.
//! - Without a listener, no records are created. The manager retries every second without logging.
//! - [`Record::Ended`] and [`Record::Request`] follow a [`Record::Started`] on the same connection, unless the buffer
//!   was full.
//!
//! It is for observation only; operators must not depend on it.

mod reconciles;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub(crate) use self::reconciles::{Asking, PAUSE, Reconciles, Trail};
pub(crate) use self::writer::Writer;
use crate::Clock;
use crate::controller::Trigger;

/// The environment variable with the address of the journal, such as `127.0.0.1:4000`.
pub const VARIABLE: &str = "KUBEWRIGHT_JOURNAL";

/// The capacity of the buffer.
const BUFFERED: usize = 4096;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Record {
    /// Identifies the operator; the first line of each connection.
    Hello(Hello),
    /// A reconcile started.
    Started(Started),
    /// A reconcile sent a request to the API server.
    Request(Request),
    /// A reconcile ended.
    Ended(Ended),
    /// The number of queued or running keys changed.
    Queue(Queue),
}

/// Identifies the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The time of the connection.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The name of the operator.
    pub operator: String,
    /// The process ID.
    pub pid: u32,
    /// The names of its controllers, in registration order.
    pub controllers: Vec<String>,
}

/// A reconcile started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The time.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The reconcile ID, as in the log; see [`Context::id`](crate::Context::id).
    pub id: String,
    /// The controller.
    pub controller: String,
    /// The kind that the controller reconciles; `None` for a controller of keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// The number of consecutive failures of the key before this reconcile.
    pub attempt: u32,
    /// How long the key was due before it started.
    pub waited_ms: f64,
    /// The first eight causes.
    pub causes: Vec<Cause>,
    /// The number of further causes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_causes: u32,
}

/// The cause of a reconcile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// What triggered it.
    pub why: Trigger,
    /// The kind of the triggering object, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace of that object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of that object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The paths of up to eight changed fields, such as `status.readyReplicas`.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The number of further changed fields.
    #[serde(default)]
    pub more: usize,
}

/// A request to the API server through [`Context::client`](crate::Context::client).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The time of the response.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The reconcile ID.
    pub id: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The status code, if there was a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The duration.
    pub ms: f64,
    /// The error, if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A reconcile ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The time.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The reconcile ID.
    pub id: String,
    /// The duration.
    pub ms: f64,
    /// The result.
    pub outcome: Ending,
    /// The delay before the key is reconciled again, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<f64>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Successful.
    Done,
    /// Successful, and requeued after a fixed time.
    Requeue,
    /// Successful, and requeued with backoff.
    Backoff,
    /// A terminal error, which is not retried.
    Terminal,
    /// An error, which is retried.
    Error,
    /// A panic.
    Panic,
    /// The reconcile timed out.
    Timeout,
}

/// The number of queued and running keys of a controller. Written on change, at most five times a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// The time.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The controller.
    pub controller: String,
    /// The number of keys that wait for a worker.
    pub depth: usize,
    /// The number of keys that are being reconciled.
    pub active: usize,
}

/// Accepts records. Cheap to clone; clones share one journal.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    records: mpsc::Sender<Record>,
    /// Whether there is, or may be, a listener.
    heard: AtomicBool,
    clock: Arc<dyn Clock>,
}

impl Journal {
    /// Creates a journal for the listener at an address, and its writer.
    pub(crate) fn new(address: SocketAddr, clock: Arc<dyn Clock>) -> (Self, Writer) {
        let (records, receiver) = mpsc::channel(BUFFERED);
        // Assume a listener until connecting fails, so that the first records are not lost.
        let journal = Self(Arc::new(Shared { records, heard: AtomicBool::new(true), clock }));
        (journal.clone(), Writer::new(address, journal, receiver))
    }

    /// Whether records should be created.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.heard.load(Ordering::Relaxed)
    }

    /// Writes a record if there is a listener. Never blocks.
    fn write(&self, record: impl FnOnce(Timestamp) -> Record) {
        if self.is_heard() {
            // The buffer is full because the listener is slow; drop the record.
            let _ = self.0.records.try_send(record(self.0.clock.now()));
        }
    }

    fn set_heard(&self, heard: bool) {
        self.0.heard.store(heard, Ordering::Relaxed);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Timestamps in RFC 3339 format with microseconds.
mod micros {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{at:.6}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        "2026-01-02T03:04:05.6Z".parse().unwrap()
    }

    /// Serializes a record, and checks that it deserializes again.
    fn line(record: &Record) -> String {
        let line = serde_json::to_string(record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), *record);
        line
    }

    #[test]
    fn the_format_of_a_record_is_stable() {
        let cause = Cause {
            why: Trigger::Modified,
            kind: Some("Deployment".to_owned()),
            namespace: Some("default".to_owned()),
            name: Some("x".to_owned()),
            changed: vec!["status.readyReplicas".to_owned()],
            more: 0,
        };
        let started = Started {
            at: at(),
            id: "1".to_owned(),
            controller: "markdownview".to_owned(),
            kind: Some("MarkdownView".to_owned()),
            namespace: Some("default".to_owned()),
            name: "sample".to_owned(),
            attempt: 0,
            waited_ms: 1.2,
            causes: vec![cause],
            more_causes: 0,
        };
        assert_eq!(
            line(&Record::Started(started)),
            concat!(
                r#"{"type":"started","at":"2026-01-02T03:04:05.600000Z","id":"1","controller":"markdownview","#,
                r#""kind":"MarkdownView","namespace":"default","name":"sample","attempt":0,"waited_ms":1.2,"#,
                r#""causes":[{"why":"modified","kind":"Deployment","namespace":"default","name":"x","#,
                r#""changed":["status.readyReplicas"],"more":0}]}"#,
            )
        );
    }

    #[test]
    fn empty_fields_are_omitted() {
        let ended = Ended {
            at: at(),
            id: "1".to_owned(),
            ms: 12.3,
            outcome: Ending::Done,
            after_s: None,
            error: None,
        };
        assert_eq!(
            line(&Record::Ended(ended)),
            r#"{"type":"ended","at":"2026-01-02T03:04:05.600000Z","id":"1","ms":12.3,"outcome":"done"}"#
        );
        let request = Request {
            at: at(),
            id: "1".to_owned(),
            method: "GET".to_owned(),
            path: "/api".to_owned(),
            status: None,
            ms: 0.8,
            error: Some("refused".to_owned()),
        };
        assert_eq!(
            line(&Record::Request(request)),
            concat!(
                r#"{"type":"request","at":"2026-01-02T03:04:05.600000Z","id":"1","method":"GET","path":"/api","#,
                r#""ms":0.8,"error":"refused"}"#,
            )
        );
    }
}
