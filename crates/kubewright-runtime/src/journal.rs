//! The journal: what an operator does, told to a program that listens, such as a page that shows it live.
//!
//! A manager whose options name an address ([`ManagerOptions::journal`](crate::ManagerOptions::journal); operators
//! take it from the variable [`VARIABLE`]) connects there and writes one [`Record`] a line, as JSON: which reconciles
//! start and why, what each asks of the API server, how it ends, and how many keys wait.
//!
//! Invariants:
//!
//! - Nobody waits for the journal. Records go through a buffer with a bound, and are dropped where it is full.
//! - Where nobody listens, no record is made. The manager tries again every second, and says nothing about it.
//! - What ends was started: there is no [`Record::Ended`] and no [`Record::Request`] without an earlier
//!   [`Record::Started`] on the same connection, unless the buffer was full.
//!
//! It is for looking at, not for deciding: what matters is in objects, events and metrics.

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

/// The variable by which an operator is told where to write its journal, such as `127.0.0.1:4000`.
pub const VARIABLE: &str = "KUBEWRIGHT_JOURNAL";

/// How many records wait for a listener that is slow.
const BUFFERED: usize = 4096;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Record {
    /// Who writes; the first line of each connection.
    Hello(Hello),
    /// A reconcile starts.
    Started(Started),
    /// A reconcile asked the API server something.
    Request(Request),
    /// A reconcile ended.
    Ended(Ended),
    /// Another number of keys waits or runs.
    Queue(Queue),
}

/// Who writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// When it connected.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The name of the operator.
    pub operator: String,
    /// Its process.
    pub pid: u32,
    /// The names of its controllers, in the order in which they were registered.
    pub controllers: Vec<String>,
}

/// A reconcile starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// When.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// Its number, as in the log; see [`Context::id`](crate::Context::id).
    pub id: String,
    /// The controller.
    pub controller: String,
    /// What the controller is for; nothing if it is for keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// How often the key failed in a row before.
    pub attempt: u32,
    /// How long after its time it started.
    pub waited_ms: f64,
    /// Why: the first eight causes.
    pub causes: Vec<Cause>,
    /// How many there were beside these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_causes: u32,
}

/// Why a reconcile takes place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// What happened.
    pub why: Trigger,
    /// The kind of the object that it happened to; none where it happened to no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The namespace of that object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of that object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The paths of up to eight fields that are others than before, such as `status.readyReplicas`.
    #[serde(default)]
    pub changed: Vec<String>,
    /// How many there are beside these.
    #[serde(default)]
    pub more: usize,
}

/// A reconcile asked the API server something, through [`Context::client`](crate::Context::client).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// When it was answered.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// Which reconcile.
    pub id: String,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The status of the answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took.
    pub ms: f64,
    /// Why there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A reconcile ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// Which reconcile.
    pub id: String,
    /// How long it took.
    pub ms: f64,
    /// How it ended.
    pub outcome: Ending,
    /// After how many seconds the key runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<f64>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Well, until something changes.
    Done,
    /// Well, and it wants to run again after a time.
    Requeue,
    /// Well, and it wants to run again soon, later each time.
    Backoff,
    /// With an error that only a change can mend.
    Terminal,
    /// With an error.
    Error,
    /// With a panic.
    Panic,
    /// It took too long.
    Timeout,
}

/// How many keys of a controller wait and run. Written when that changed, at most five times a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// When.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// The controller.
    pub controller: String,
    /// How many keys wait for a worker.
    pub depth: usize,
    /// How many run.
    pub active: usize,
}

/// Takes records. Cheap to clone; all clones are one journal.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    records: mpsc::Sender<Record>,
    /// Whether somebody listens, or may do so in a moment.
    heard: AtomicBool,
    clock: Arc<dyn Clock>,
}

impl Journal {
    /// A journal for who listens at an address, and what writes it there.
    pub(crate) fn new(address: SocketAddr, clock: Arc<dyn Clock>) -> (Self, Writer) {
        let (records, receiver) = mpsc::channel(BUFFERED);
        // Until it is known that nobody listens, somebody might: what happens first is what is looked at first.
        let journal = Self(Arc::new(Shared { records, heard: AtomicBool::new(true), clock }));
        (journal.clone(), Writer::new(address, journal, receiver))
    }

    /// Whether it is worth making a record.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.heard.load(Ordering::Relaxed)
    }

    /// Writes what is made for this moment, if somebody listens. Never waits.
    fn write(&self, record: impl FnOnce(Timestamp) -> Record) {
        if self.is_heard() {
            // Full: the listener is slow, and misses this one.
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

/// Times as RFC 3339 has them, to the microsecond.
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

    /// A record as it is written, after it was read again.
    fn line(record: &Record) -> String {
        let line = serde_json::to_string(record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), *record);
        line
    }

    #[test]
    fn a_line_is_what_readers_were_promised() {
        let cause = Cause {
            why: Trigger::Changed,
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
    fn what_there_is_not_is_left_out() {
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
