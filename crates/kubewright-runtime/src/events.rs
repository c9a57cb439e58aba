//! Records Kubernetes Events about objects.
//!
//! A [`Recorder`] is cheap to clone, never blocks and never fails: it adds an event to a bounded queue and returns. The
//! [`Broadcaster`] writes events.k8s.io/v1 Events in the background:
//!
//! * *Aggregated.* Repetitions of an event become one Event with a count. Two events are equal if regarding object,
//!   related object, type, reason, action, note, annotations and reporting controller are equal. A recorder can [ignore
//!   the note](Recorder::ignoring_notes); then the Event keeps the first note. The first repetition is written
//!   immediately, later ones after 6 minutes without a repetition, or every 30 minutes.
//! * *Rate limited.* A controller may create 25 Events per object, and one more every 5 minutes. Repetitions do not
//!   count.
//! * *Best effort.* When the queue is full, the oldest event is dropped and the number of dropped events is logged.
//!
//! The numbers are those of client-go. There are two differences to its events.k8s.io/v1 recorder. The
//! `resourceVersion` of the object is ignored, so a controller that updates the status between two events still gets
//! one Event. And a different note makes a new Event, so that no Event has an old note with a new count.
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
//! recorder.normal(&object, "Created").note("Created the page");
//! recorder.warning(&object, "FailedCreate").action("Create").note(format_args!("{} of {} pages failed", 1, 3));
//! recorder.about(&object).related(&pod).normal("Scheduled").action("Binding").note("Assigned to node-1");
//! # }
//! ```

mod correlator;
mod occurrence;
mod queue;
mod sink;
mod spam;

use std::collections::BTreeMap;
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

/// The number of concurrent writes, so that a slow request does not delay the others.
const WRITES_AT_A_TIME: usize = 4;
/// How long shutdown waits for pending events.
const FLUSH: Duration = Duration::from_secs(1);

/// Writes events in the background, for all recorders of a process.
pub struct Broadcaster {
    shared: Arc<Shared>,
    rng: fastrand::Rng,
}

struct Shared {
    host: Box<str>,
    queue: Queue,
    clock: Arc<dyn Clock>,
}

impl Broadcaster {
    /// Creates a broadcaster for a process on `host`. Nothing is written before [`run`](Self::run).
    pub fn new(host: &str, clock: Arc<dyn Clock>, rng: fastrand::Rng) -> Self {
        Self { shared: Arc::new(Shared { host: host.into(), queue: Queue::default(), clock }), rng }
    }

    /// Creates a recorder that reports events as `controller`.
    ///
    /// The name must be a qualified name, such as `markdownview-controller` or `example.com/markdownview`; the API
    /// server rejects events with any other reporting controller.
    pub fn recorder(&self, controller: &str) -> Recorder {
        let source = Arc::new(Source::new(controller, &self.shared.host));
        Recorder { source, shared: self.shared.clone(), ignores_notes: false }
    }

    /// Writes events until `shutdown`, then flushes pending events for at most one second.
    ///
    /// Events recorded later are discarded.
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
                tracing::warn!(dropped = losses.dropped, suppressed = losses.suppressed, "Events dropped");
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
        // Events that were not flushed are counted below.
        let _ = timeout(FLUSH, flush).await;
        let unwritten = correlator.unwritten();
        if unwritten > 0 {
            tracing::warn!(unwritten, "Shutting down with unwritten events");
        }
    }
}

impl fmt::Debug for Broadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcaster").field("host", &self.shared.host).finish_non_exhaustive()
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
        Outcome::Refused => tracing::warn!(event = %name, error, "API server rejected event"),
        Outcome::Failed if gave_up => tracing::warn!(event = %name, error, "Failed to write event"),
        _ => tracing::debug!(event = %name, error, "Failed to write event; will retry"),
    }
}

/// Records Kubernetes Events about objects. Cheap to clone; never blocks, never fails.
///
/// Created by [`Broadcaster::recorder`] or [`Recorder::named`]. An event has a *reason* (one CamelCase word such as `FailedCreate`), an
/// *action* (what the controller did, such as `Create`) and a *note* (a human-readable sentence). Reason and action are
/// truncated to 128 bytes and the note to 1024 bytes, the limits of the API server.
#[derive(Clone)]
pub struct Recorder {
    source: Arc<Source>,
    shared: Arc<Shared>,
    ignores_notes: bool,
}

impl Recorder {
    /// A recorder that reports events as `controller`, with the limits of [`Broadcaster::recorder`]. Create it once.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::Manager;
    /// # fn example(manager: &Manager, object: &ConfigMap) {
    /// let recorder = manager.events().named("page-backup");
    /// recorder.normal(object, "BackedUp").note("Copied 3 pages");
    /// # }
    /// ```
    #[must_use]
    pub fn named(&self, controller: &str) -> Self {
        Self { source: Arc::new(Source::new(controller, &self.shared.host)), ..self.clone() }
    }

    /// A recorder that aggregates events that differ only in their notes into one Event with the first note. For notes
    /// that vary each time, such as durations.
    #[must_use]
    pub fn ignoring_notes(&self) -> Self {
        Self { ignores_notes: true, ..self.clone() }
    }

    /// An event of type Normal. [`EventBuilder::note`] records it.
    pub fn normal<'a>(&'a self, regarding: &impl Referable, reason: &'a str) -> EventBuilder<'a> {
        self.about(regarding).normal(reason)
    }

    /// An event of type Warning. [`EventBuilder::note`] records it.
    pub fn warning<'a>(&'a self, regarding: &impl Referable, reason: &'a str) -> EventBuilder<'a> {
        self.about(regarding).warning(reason)
    }

    /// Starts an event about an object; a second one can be added with [`related`](About::related).
    pub fn about(&self, regarding: &impl Referable) -> About<'_> {
        About { recorder: self, regarding: Subject::of(regarding), related: None }
    }

    /// Starts an event about an object given by reference, or about a part of it (`fieldPath`).
    pub fn about_reference(&self, regarding: ObjectReference) -> About<'_> {
        About { recorder: self, regarding: Subject::of_reference(regarding), related: None }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.source.controller).finish()
    }
}

/// The objects that an event is about; see [`Recorder::about`].
#[must_use = "an event is recorded by `normal(reason).note(..)` or `warning(reason).note(..)`"]
#[derive(Debug)]
pub struct About<'a> {
    recorder: &'a Recorder,
    regarding: Option<Subject>,
    related: Option<Subject>,
}

impl<'a> About<'a> {
    /// Adds a second object that is involved, such as the Pod created for the first one.
    pub fn related(mut self, related: &impl Referable) -> Self {
        self.related = Subject::of(related);
        self
    }

    /// An event of type Normal. [`EventBuilder::note`] records it.
    pub fn normal(self, reason: &'a str) -> EventBuilder<'a> {
        EventBuilder::new(self, EventType::Normal, reason)
    }

    /// An event of type Warning. [`EventBuilder::note`] records it.
    pub fn warning(self, reason: &'a str) -> EventBuilder<'a> {
        EventBuilder::new(self, EventType::Warning, reason)
    }
}

/// An event that is recorded by [`note`](Self::note).
#[must_use = "an event is recorded by `note`"]
#[derive(Debug)]
pub struct EventBuilder<'a> {
    about: About<'a>,
    type_: EventType,
    reason: &'a str,
    action: Option<&'a str>,
    annotations: BTreeMap<String, String>,
}

impl<'a> EventBuilder<'a> {
    fn new(about: About<'a>, type_: EventType, reason: &'a str) -> Self {
        Self { about, type_, reason, action: None, annotations: BTreeMap::new() }
    }

    /// What the controller did, as one CamelCase word such as `Create`. Defaults to the reason.
    pub fn action(mut self, action: &'a str) -> Self {
        self.action = Some(action);
        self
    }

    /// Adds an annotation to the Event, for a program that reads it. Events with different annotations are different
    /// Events, so a value that varies each time prevents aggregation.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Records the event with a human-readable note. `format_args!` is the cheapest form.
    pub fn note(self, note: impl fmt::Display) {
        self.record(&note);
    }

    fn record(self, note: &dyn fmt::Display) {
        let Self { about: About { recorder, regarding, related }, type_, reason, action, annotations } = self;
        let Some(regarding) = regarding else {
            tracing::warn!(reason, %note, "Event not recorded: object has no apiVersion and kind");
            return;
        };
        if !is_word(reason) {
            tracing::warn!(kind = regarding.kind(), object = regarding.key(), reason, %note, "Event reason should be one CamelCase word");
        }
        let action = action.unwrap_or(reason);
        let mut key = SeriesKey::new(recorder.source.clone(), regarding, related, type_, reason, action);
        let note = limited(note);
        key.note = (!recorder.ignores_notes).then(|| note.clone());
        key.annotations = annotations;
        let at = recorder.shared.clock.now();
        recorder.shared.queue.push(Occurrence { key, note, at });
    }
}

/// Whether a reason is a single word.
fn is_word(reason: &str) -> bool {
    reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
