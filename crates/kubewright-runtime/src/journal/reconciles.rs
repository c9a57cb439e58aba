//! Creates the journal records of one controller's reconciles.
//!
//! [`Reconciles`] belongs to a controller, [`Trail`] to one reconcile. A trail exists only if there was a listener when
//! its reconcile started.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::{Cause, Ended, Ending, Journal, Queue, Record, Request, Started, millis};
use crate::controller::Cause as Happened;
use crate::queue::Taken;
use crate::reconcile::ReconcileId;
use crate::{Key, Kind};

/// The minimum interval between two records of the queue.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// The journal of one controller.
pub(crate) struct Reconciles {
    journal: Journal,
    controller: Arc<str>,
    kind: Option<Kind>,
    reported: Mutex<Reported>,
}

/// The last recorded queue state.
#[derive(Default)]
struct Reported {
    depth: usize,
    active: usize,
    at: Option<Instant>,
}

impl Reconciles {
    pub(crate) fn new(journal: Journal, controller: Arc<str>, kind: Option<Kind>) -> Self {
        Self { journal, controller, kind, reported: Mutex::default() }
    }

    /// Records the start of a reconcile; `None` without a listener.
    pub(crate) fn started(&self, id: ReconcileId, taken: &Taken<Key, Happened>) -> Option<Arc<Trail>> {
        if !self.journal.is_heard() {
            return None;
        }
        let id: Arc<str> = id.to_string().into();
        self.journal.write(|at| {
            Record::Started(Started {
                at,
                id: id.to_string(),
                controller: self.controller.to_string(),
                kind: self.kind.as_ref().map(|kind| kind.name().to_owned()),
                namespace: taken.item.namespace().map(str::to_owned),
                name: taken.item.name().to_owned(),
                attempt: taken.retries,
                waited_ms: millis(taken.waited),
                causes: taken.causes.iter().map(Cause::from).collect(),
                more_causes: taken.causes.left_out(),
            })
        });
        Some(Arc::new(Trail { journal: self.journal.clone(), id, since: Instant::now() }))
    }

    /// Records the numbers of queued and running keys, if they changed and [`PAUSE`] has passed.
    pub(crate) fn queue(&self, look: impl FnOnce() -> (usize, usize)) {
        if !self.journal.is_heard() {
            return;
        }
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let (depth, active) = look();
        if (reported.depth, reported.active) != (depth, active) {
            *reported = Reported { depth, active, at: Some(Instant::now()) };
            let controller = self.controller.to_string();
            self.journal.write(|at| Record::Queue(Queue { at, controller, depth, active }));
        }
    }
}

impl From<&Happened> for Cause {
    fn from(cause: &Happened) -> Self {
        let object = Some(&cause.object).filter(|_| cause.trigger.is_of_an_object());
        let changed = cause.changed();
        Self {
            why: cause.trigger,
            kind: cause.kind.as_ref().filter(|_| object.is_some()).map(|kind| kind.name().to_owned()),
            namespace: object.and_then(|key| key.namespace()).map(str::to_owned),
            name: object.map(|key| key.name().to_owned()),
            changed: changed.paths.clone(),
            more: changed.more,
            resource_version: cause.version().map(|version| version.to_string()),
        }
    }
}

/// The journal of one reconcile.
pub(crate) struct Trail {
    journal: Journal,
    id: Arc<str>,
    since: Instant,
}

impl Trail {
    /// Records the end of the reconcile.
    pub(crate) fn ended(&self, outcome: Ending, again_in: Option<Duration>, error: Option<String>) {
        let (id, ms) = (self.id.to_string(), millis(self.since.elapsed()));
        let after_s = again_in.map(|pause| pause.as_secs_f64());
        self.journal.write(|at| Record::Ended(Ended { at, id, ms, outcome, after_s, error }));
    }

    /// Starts the record of an API request.
    pub(crate) fn asks<B>(self: &Arc<Self>, request: &http::Request<B>) -> Asking {
        Asking {
            trail: self.clone(),
            method: request.method().to_string(),
            path: request.uri().to_string(),
            since: Instant::now(),
            answer: Err("cancelled before the response".to_owned()),
            version: None,
        }
    }
}

/// A request in flight. It is recorded on drop, also if the request was cancelled.
pub(crate) struct Asking {
    trail: Arc<Trail>,
    method: String,
    path: String,
    since: Instant,
    answer: Result<u16, String>,
    version: Option<String>,
}

impl Asking {
    /// Sets the status code or the error, and the response body of a write.
    pub(crate) fn answered(mut self, answer: Result<u16, String>, body: Option<&[u8]>) {
        self.answer = answer;
        if self.method != "GET" {
            self.version = body.and_then(resource_version);
        }
    }
}

/// The resource version of an object.
fn resource_version(json: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Written {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: Option<String>,
    }
    serde_json::from_slice::<Written>(json).ok()?.metadata.resource_version
}

impl Drop for Asking {
    fn drop(&mut self) {
        let (id, method, path) =
            (self.trail.id.to_string(), std::mem::take(&mut self.method), std::mem::take(&mut self.path));
        let (status, error) = match &mut self.answer {
            Ok(status) => (Some(*status), None),
            Err(error) => (None, Some(std::mem::take(error))),
        };
        let ms = millis(self.since.elapsed());
        let resource_version = self.version.take();
        self.trail.journal.write(|at| {
            Record::Request(Request { at, id, method, path, status, ms, error, resource_version })
        });
    }
}
