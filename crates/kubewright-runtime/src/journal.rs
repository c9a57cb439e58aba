//! The journal: a live stream of an operator's reconciles and webhook calls, for a program that shows them.
//!
//! A manager with an address ([`ManagerOptions::journal`](crate::ManagerOptions::journal), set by the environment
//! variable [`VARIABLE`] in operators) connects there and writes one [`Record`] per line, as JSON: which reconciles
//! start and why, their API requests, their results, the queue depth, and the reviews of its webhooks. The listener
//! accepts only operators with its token ([`TOKEN_VARIABLE`]).
//!
//! Invariants:
//!
//! - The journal never blocks. Records go through a bounded buffer and are dropped when it is full.
//! - Without a listener, no records are created. The manager retries every second without logging.
//! - [`Record::Ended`] and [`Record::Request`] follow a [`Record::Started`] on the same connection, unless the buffer
//!   was full.
//!
//! The debug page of a manager receives the same records in the process ([`DebugPage`](crate::debug_page::DebugPage)).
//!
//! It is for observation only; operators must not depend on it.

mod reconciles;
mod reviews;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

pub(crate) use self::reconciles::{Asking, PAUSE, Reconciles, Trail};
pub(crate) use self::reviews::{Converted, Reviews};
pub(crate) use self::writer::Writer;
use crate::Clock;
use crate::controller::Trigger;
use crate::webhook::Operation;

/// The environment variable with the address of the journal, such as `127.0.0.1:4000`.
pub const VARIABLE: &str = "KUBEWRIGHT_JOURNAL";

/// The environment variable with the token of the journal, which the listener compares.
pub const TOKEN_VARIABLE: &str = "KUBEWRIGHT_JOURNAL_TOKEN";

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
    /// A webhook responded to an admission review.
    Admission(Admission),
    /// The conversion webhook responded to a review.
    Conversion(Conversion),
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
    /// The token of [`TOKEN_VARIABLE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
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
    /// The resource version of that object when the reconcile started, if fields changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
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
    /// The resource version of the written object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
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

/// A webhook responded to an admission review. Fields have the meaning of `admission.k8s.io/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    /// The time of the response.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The name of the webhook; its path if it is not declared.
    pub webhook: String,
    /// The path of the webhook.
    pub path: String,
    /// The operation on the object.
    pub operation: Operation,
    /// The API group of the object.
    #[serde(default)]
    pub group: String,
    /// The API version of the object.
    #[serde(default)]
    pub version: String,
    /// The kind of the object.
    pub kind: String,
    /// The subresource; empty for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The namespace of the object; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object, or its `generateName`.
    pub name: String,
    /// The user who sent the request.
    #[serde(default)]
    pub user: String,
    /// Whether the request is a dry run.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The status code of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The message of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The first 50 operations of the patch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<PatchOperation>,
    /// The number of further operations.
    #[serde(default)]
    pub more_patches: usize,
    /// The duration.
    pub ms: f64,
}

/// An operation of a JSON patch (RFC 6902). Values of Secrets are replaced, long values are cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatchOperation {
    /// The operation, such as `add`.
    pub op: String,
    /// The path, as JSON pointer.
    pub path: String,
    /// The new value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The value before the patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
}

/// The conversion webhook responded to a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// The time of the response.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The API group of the objects.
    #[serde(default)]
    pub group: String,
    /// The kind of the objects.
    pub kind: String,
    /// The versions of the objects, such as `view.example.com/v1`.
    pub from: Vec<String>,
    /// The requested version.
    pub to: String,
    /// The number of objects.
    pub objects: usize,
    /// The first eight objects, as `namespace/name`.
    #[serde(default)]
    pub names: Vec<String>,
    /// Why the conversion failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The duration.
    pub ms: f64,
}

/// Accepts records. Cheap to clone; clones share one journal.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    /// To the writer of the connection, if there is an address.
    records: Option<mpsc::Sender<Record>>,
    /// Whether there is, or may be, a listener at that address.
    heard: AtomicBool,
    /// To the debug page of this process.
    page: Option<mpsc::Sender<Record>>,
    clock: Arc<dyn Clock>,
}

/// The listener of a journal.
pub(crate) struct Listener {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The token that it expects.
    pub(crate) token: Option<String>,
}

impl Journal {
    /// Creates a journal for a listener at an address, for the debug page, or for both. The writer sends the records and,
    /// first, the token to the address.
    pub(crate) fn new(
        listener: Option<Listener>,
        page: Option<mpsc::Sender<Record>>,
        clock: Arc<dyn Clock>,
    ) -> (Self, Option<Writer>) {
        let (records, receiver) = mpsc::channel(BUFFERED);
        // Assume a listener until connecting fails, so that the first records are not lost.
        let heard = AtomicBool::new(listener.is_some());
        let records = listener.is_some().then_some(records);
        let journal = Self(Arc::new(Shared { records, heard, page, clock }));
        let writer = listener
            .map(|Listener { address, token }| Writer::new(address, token, journal.clone(), receiver));
        (journal, writer)
    }

    /// A channel for the debug page.
    pub(crate) fn for_page() -> (mpsc::Sender<Record>, mpsc::Receiver<Record>) {
        mpsc::channel(BUFFERED)
    }

    /// Whether records should be created.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.page.is_some() || self.0.heard.load(Ordering::Relaxed)
    }

    /// Writes a record if there is a listener. Never blocks.
    fn write(&self, record: impl FnOnce(Timestamp) -> Record) {
        if !self.is_heard() {
            return;
        }
        let record = record(self.0.clock.now());
        let listener = self.0.records.as_ref().filter(|_| self.0.heard.load(Ordering::Relaxed));
        // A full buffer means that the reader is slow; drop the record.
        let _ = match (listener, &self.0.page) {
            (Some(listener), Some(page)) => {
                let _ = page.try_send(record.clone());
                listener.try_send(record)
            }
            (Some(only), None) | (None, Some(only)) => only.try_send(record),
            (None, None) => Ok(()),
        };
    }

    fn set_heard(&self, heard: bool) {
        self.0.heard.store(heard, Ordering::Relaxed);
    }
}

/// In milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    // Exact for 285 years.
    #[expect(clippy::cast_precision_loss, reason = "no duration is that long")]
    let micros = time.as_micros() as f64;
    micros / 1000.0
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
            resource_version: Some("7".to_owned()),
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
                r#""changed":["status.readyReplicas"],"more":0,"resource_version":"7"}]}"#,
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
            resource_version: None,
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
