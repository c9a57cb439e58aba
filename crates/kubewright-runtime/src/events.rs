//! Events: what an operator tells people about an object, as `kubectl describe` shows it.
//!
//! A [`Recorder`] is cheap to copy, never waits and never fails its caller: it puts what happened into a short queue
//! and returns. The [`Broadcaster`] behind it writes events.k8s.io/v1 Events in the background:
//!
//! * *Aggregated.* The same thing about the same object, however often, is one Event with a count. It is the same if
//!   regarding and related object, type, reason, action and reporting controller are; the note of the first stays,
//!   unless the recorder tells events apart [by their notes](Recorder::by_note).
//!   The first repetition is written at once, later ones after 6 quiet minutes, or every 30 minutes.
//! * *Limited.* A controller may create 25 Events about an object, and one more every 5 minutes. Repetitions are free.
//! * *Lossy.* Events are for people. When the queue is full the oldest is dropped, and the log says how many.
//!
//! These are the numbers of client-go's recorders, except that an object's `resourceVersion` does not tell two events
//! apart: a controller that writes a status between them still gets one Event.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::sync::Arc;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright_runtime::SystemClock;
//! use kubewright_runtime::events::Broadcaster;
//!
//! let broadcaster = Broadcaster::new("host-1", Arc::new(SystemClock), fastrand::Rng::new());
//! let recorder = broadcaster.recorder("markdownview-controller");
//!
//! # let (object, pod) = (ConfigMap::default(), k8s_openapi::api::core::v1::Pod::default());
//! recorder.normal(&object, "Created", "Create", "the page is there");
//! recorder.warning(&object, "FailedCreate", "Create", format_args!("{} of {} pages failed", 1, 3));
//! recorder.about(&object).related(&pod).normal("Scheduled", "Binding", "on node-1");
//! # }
//! ```

mod correlator;
mod occurrence;
mod queue;
mod sink;
mod spam;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::{Instant, sleep_until, timeout};

use self::correlator::{Correlator, Outcome};
use self::occurrence::{EventType, Occurrence, SeriesKey, Source, Subject, limited};
use self::queue::Queue;
use self::sink::{Answer, Sink};
use crate::Clock;
use crate::owner::Referable;

/// So many writes are under way at a time: one that hangs or is slow must not hold up the others.
const WRITES_AT_A_TIME: usize = 4;
/// So long the end of the program waits for events.
const FLUSH: Duration = Duration::from_secs(1);

/// Writes events in the background, for all recorders of a program.
pub struct Broadcaster {
    host: Arc<str>,
    shared: Arc<Shared>,
    rng: fastrand::Rng,
}

struct Shared {
    queue: Queue,
    clock: Arc<dyn Clock>,
}

impl Broadcaster {
    /// A broadcaster of the program that runs on `host`. Nothing is written before [`run`](Self::run).
    pub fn new(host: &str, clock: Arc<dyn Clock>, rng: fastrand::Rng) -> Self {
        Self { host: host.into(), shared: Arc::new(Shared { queue: Queue::default(), clock }), rng }
    }

    /// A recorder for a controller, whose name the events will carry.
    ///
    /// The name must be a qualified name, such as `markdownview-controller` or `example.com/markdownview`: the API
    /// server refuses events of others.
    pub fn recorder(&self, controller: &str) -> Recorder {
        let source = Arc::new(Source::new(controller, &self.host));
        Recorder { source, shared: self.shared.clone(), by_note: false }
    }

    /// Writes events until `shutdown`, then what is left for at most a second.
    ///
    /// What is recorded after that goes nowhere.
    pub async fn run(mut self, client: kube::Client, shutdown: impl Future<Output = ()>) {
        let queue = &self.shared.queue;
        let sink = Sink::new(client);
        let mut correlator = Correlator::default();
        let mut writes = FuturesUnordered::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let now = Instant::now();
            take(queue, &mut correlator, &mut self.rng, now);
            if let Some(losses) = correlator.report(now) {
                tracing::warn!(
                    dropped = losses.dropped,
                    suppressed = losses.suppressed,
                    "events were not written"
                );
            }
            while writes.len() < WRITES_AT_A_TIME
                && let Some(write) = correlator.next_write(now)
            {
                writes.push(sink.send(write));
            }
            let wake = correlator.wake_at().filter(|_| writes.len() < WRITES_AT_A_TIME);
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(answer) = writes.next() => finish(&mut correlator, &mut self.rng, answer),
                () = queue.filled() => {}
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
            }
        }

        queue.close();
        take(queue, &mut correlator, &mut self.rng, Instant::now());
        correlator.flush();
        let flush = async {
            loop {
                while writes.len() < WRITES_AT_A_TIME
                    && let Some(write) = correlator.next_write(Instant::now())
                {
                    writes.push(sink.send(write));
                }
                let Some(answer) = writes.next().await else { break };
                finish(&mut correlator, &mut self.rng, answer);
            }
        };
        // What did not make it is counted below, whether it was refused or late.
        let _ = timeout(FLUSH, flush).await;
        let unwritten = correlator.unwritten();
        if unwritten > 0 {
            tracing::warn!(unwritten, "the program ends before these events were written");
        }
    }
}

impl fmt::Debug for Broadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcaster").field("host", &self.host).finish_non_exhaustive()
    }
}

fn take(queue: &Queue, correlator: &mut Correlator, rng: &mut fastrand::Rng, now: Instant) {
    let (occurrences, dropped) = queue.take();
    correlator.lost(dropped);
    for occurrence in occurrences {
        correlator.observe(occurrence, now, rng);
    }
}

fn finish(correlator: &mut Correlator, rng: &mut fastrand::Rng, answer: Answer) {
    let Answer { id, name, outcome, error } = answer;
    let gave_up = correlator.done(id, outcome, Instant::now(), rng);
    let Some(error) = error else { return };
    let error = &error as &dyn std::error::Error;
    match outcome {
        Outcome::Refused => tracing::warn!(event = %name, error, "the API server refused an event"),
        Outcome::Failed if gave_up => tracing::warn!(event = %name, error, "an event could not be written"),
        _ => tracing::debug!(event = %name, error, "an event could not be written yet"),
    }
}

/// Records what happens to objects, for people to read. Cheap to clone; never waits, never fails.
///
/// Made by [`Broadcaster::recorder`]. The words: the *reason* says in one CamelCase word why (`FailedCreate`), the
/// *action* what was done (`Create`), the *note* says it in a sentence. Reason and action are cut at 128 bytes and
/// the note at 1024, where the API server would refuse the event.
#[derive(Clone)]
pub struct Recorder {
    source: Arc<Source>,
    shared: Arc<Shared>,
    by_note: bool,
}

impl Recorder {
    /// A recorder for which events with other notes are other events, as they are for kube-controller-manager and for
    /// operators on client-go's older recorder. A note that is new each time then makes a new Event each time, up to
    /// the limit.
    #[must_use]
    pub fn by_note(&self) -> Self {
        Self { by_note: true, ..self.clone() }
    }

    /// Records that something went as it should.
    ///
    /// The note is anything that can be shown; `format_args!` is the cheapest.
    pub fn normal(&self, regarding: &impl Referable, reason: &str, action: &str, note: impl fmt::Display) {
        self.about(regarding).normal(reason, action, note);
    }

    /// Records that something went wrong.
    pub fn warning(&self, regarding: &impl Referable, reason: &str, action: &str, note: impl fmt::Display) {
        self.about(regarding).warning(reason, action, note);
    }

    /// An event about an object, to which a second one can be [`related`](About::related).
    pub fn about(&self, regarding: &impl Referable) -> About<'_> {
        About { recorder: self, regarding: Subject::of(regarding), related: None }
    }

    /// An event about an object of which one has only a reference, or about a part of one (`fieldPath`).
    pub fn about_reference(&self, regarding: ObjectReference) -> About<'_> {
        About { recorder: self, regarding: Subject::of_reference(regarding), related: None }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.source.controller).finish()
    }
}

/// An event that is being made; see [`Recorder::about`]. It is recorded by [`normal`](Self::normal) or
/// [`warning`](Self::warning).
#[must_use = "an event is recorded by `normal` or `warning`"]
#[derive(Debug)]
pub struct About<'a> {
    recorder: &'a Recorder,
    regarding: Option<Subject>,
    related: Option<Subject>,
}

impl About<'_> {
    /// Names a second object that took part, such as the pod that was created for the object.
    pub fn related(mut self, related: &impl Referable) -> Self {
        self.related = Subject::of(related);
        self
    }

    /// Records that something went as it should.
    pub fn normal(self, reason: &str, action: &str, note: impl fmt::Display) {
        self.record(EventType::Normal, reason, action, &note);
    }

    /// Records that something went wrong.
    pub fn warning(self, reason: &str, action: &str, note: impl fmt::Display) {
        self.record(EventType::Warning, reason, action, &note);
    }

    fn record(self, type_: EventType, reason: &str, action: &str, note: &dyn fmt::Display) {
        let Self { recorder, regarding, related } = self;
        let Some(regarding) = regarding else {
            tracing::warn!(reason, %note, "an event is about an object that does not say its apiVersion and kind");
            return;
        };
        let mut key = SeriesKey::new(recorder.source.clone(), regarding, related, type_, reason, action);
        let note = limited(note);
        key.note = recorder.by_note.then(|| note.clone());
        let at = recorder.shared.clock.now();
        recorder.shared.queue.push(Occurrence { key, note, at });
    }
}
