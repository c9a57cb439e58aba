//! The reconciles of one controller, as the journal tells of them.
//!
//! Owns from which moments records are made: [`Reconciles`] of a controller, [`Trail`] of one reconcile. Neither
//! exists where there is no journal, and a trail only where somebody listened when its reconcile started.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Cause, Ended, Ending, Journal, Queue, Record, Request, Started};
use crate::controller::Cause as Happened;
use crate::queue::Taken;
use crate::reconcile::ReconcileId;
use crate::{Key, Kind};

/// How long a controller says nothing of its queue after it did.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// The reconciles of one controller.
pub(crate) struct Reconciles {
    journal: Journal,
    controller: Arc<str>,
    kind: Option<Kind>,
    told: Mutex<Told>,
}

/// What was said of the queue last, and when.
#[derive(Default)]
struct Told {
    depth: usize,
    active: usize,
    at: Option<Instant>,
}

impl Reconciles {
    pub(crate) fn new(journal: Journal, controller: Arc<str>, kind: Option<Kind>) -> Self {
        Self { journal, controller, kind, told: Mutex::default() }
    }

    /// A reconcile starts. Nothing comes of it if nobody listens.
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

    /// Tells how many keys wait and run, if that changed and was not told a moment ago.
    pub(crate) fn queue(&self, look: impl FnOnce() -> (usize, usize)) {
        if !self.journal.is_heard() {
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.at.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let (depth, active) = look();
        if (told.depth, told.active) != (depth, active) {
            *told = Told { depth, active, at: Some(Instant::now()) };
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
        }
    }
}

/// One reconcile.
pub(crate) struct Trail {
    journal: Journal,
    id: Arc<str>,
    since: Instant,
}

impl Trail {
    /// The reconcile ended.
    pub(crate) fn ended(&self, outcome: Ending, again_in: Option<Duration>, error: Option<String>) {
        let (id, ms) = (self.id.to_string(), millis(self.since.elapsed()));
        let after_s = again_in.map(|pause| pause.as_secs_f64());
        self.journal.write(|at| Record::Ended(Ended { at, id, ms, outcome, after_s, error }));
    }

    /// The reconcile asks the API server something.
    pub(crate) fn asks<B>(self: &Arc<Self>, request: &http::Request<B>) -> Asking {
        Asking {
            trail: self.clone(),
            method: request.method().to_string(),
            path: request.uri().to_string(),
            since: Instant::now(),
            answer: Err("given up before there was an answer".to_owned()),
        }
    }
}

/// A request on its way. It is told when this is dropped, also if nobody waits for it any more.
pub(crate) struct Asking {
    trail: Arc<Trail>,
    method: String,
    path: String,
    since: Instant,
    answer: Result<u16, String>,
}

impl Asking {
    /// There is an answer, or there will be none.
    pub(crate) fn answered(mut self, answer: Result<u16, String>) {
        self.answer = answer;
    }
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
        self.trail.journal.write(|at| Record::Request(Request { at, id, method, path, status, ms, error }));
    }
}

/// In milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    // Exact for 285 years.
    #[expect(clippy::cast_precision_loss, reason = "nobody waits that long")]
    let micros = time.as_micros() as f64;
    micros / 1000.0
}
