//! Events: what an operator tells people about an object, as `kubectl describe` shows it.
//!
//! A [`Recorder`] is cheap to copy, never waits and never fails its caller: it puts what happened into a short queue
//! and returns. The [`Broadcaster`] behind it writes events.k8s.io/v1 Events in the background:
//!
//! * *Aggregated.* The same thing about the same object, however often, is one Event with a count. It is the same if
//!   regarding and related object, type, reason, action, note and reporting controller are. A recorder can
//!   [ignore the note](Recorder::ignoring_notes); then the Event keeps the first one.
//!   The first repetition is written at once, later ones after 6 quiet minutes, or every 30 minutes.
//! * *Limited.* A controller may create 25 Events about an object, and one more every 5 minutes. Repetitions are free.
//! * *Lossy.* Events are for people. When the queue is full the oldest is dropped, and the log says how many.
//!
//! These are the numbers of client-go's recorders. Two things differ from its recorder for events.k8s.io/v1: an object's
//! `resourceVersion` does not tell two events apart, so a controller that writes a status between them still gets one
//! Event; and a changed note is a new Event, so that no Event shows an old text with a new count.
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
        Recorder { source, shared: self.shared.clone(), ignores_notes: false }
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

/// Records Kubernetes Events about objects. Cheap to clone; never waits, never fails.
///
/// Made by [`Broadcaster::recorder`]. An event has a *reason*, one CamelCase word for programs (`FailedCreate`), an
/// *action*, what the controller did (`Create`), and a *note*, a sentence for people. Reason and action are cut at 128
/// bytes and the note at 1024, where the API server would refuse the event.
#[derive(Clone)]
pub struct Recorder {
    source: Arc<Source>,
    shared: Arc<Shared>,
    ignores_notes: bool,
}

impl Recorder {
    /// A recorder for which events that differ only in their notes are one Event, which keeps the first note and counts
    /// the others. For notes that are new each time, such as durations.
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

/// The objects of an event; see [`Recorder::about`].
#[must_use = "an event is recorded by `normal(reason).note(..)` or `warning(reason).note(..)`"]
#[derive(Debug)]
pub struct About<'a> {
    recorder: &'a Recorder,
    regarding: Option<Subject>,
    related: Option<Subject>,
}

impl<'a> About<'a> {
    /// Names a second object that took part, such as the pod that was created for the object.
    pub fn related(mut self, related: &impl Referable) -> Self {
        self.related = Subject::of(related);
        self
    }

    /// An event of type Normal. [`EventBuilder::note`] records it.
    pub fn normal(self, reason: &'a str) -> EventBuilder<'a> {
        EventBuilder { about: self, type_: EventType::Normal, reason, action: None }
    }

    /// An event of type Warning. [`EventBuilder::note`] records it.
    pub fn warning(self, reason: &'a str) -> EventBuilder<'a> {
        EventBuilder { about: self, type_: EventType::Warning, reason, action: None }
    }
}

/// An event that is not recorded yet; [`note`](Self::note) does that.
#[must_use = "an event is recorded by `note`"]
#[derive(Debug)]
pub struct EventBuilder<'a> {
    about: About<'a>,
    type_: EventType,
    reason: &'a str,
    action: Option<&'a str>,
}

impl<'a> EventBuilder<'a> {
    /// What the controller did, in one CamelCase word such as `Create`. The reason otherwise.
    pub fn action(mut self, action: &'a str) -> Self {
        self.action = Some(action);
        self
    }

    /// Records the event with this text for people. It is anything that can be shown; `format_args!` is the cheapest.
    pub fn note(self, note: impl fmt::Display) {
        self.record(&note);
    }

    fn record(self, note: &dyn fmt::Display) {
        let Self { about: About { recorder, regarding, related }, type_, reason, action } = self;
        let Some(regarding) = regarding else {
            tracing::warn!(reason, %note, "event not recorded: the object has no apiVersion and kind");
            return;
        };
        if !is_word(reason) {
            tracing::warn!(reason, %note, "the reason of an event should be one CamelCase word");
        }
        let action = action.unwrap_or(reason);
        let mut key = SeriesKey::new(recorder.source.clone(), regarding, related, type_, reason, action);
        let note = limited(note);
        key.note = (!recorder.ignores_notes).then(|| note.clone());
        let at = recorder.shared.clock.now();
        recorder.shared.queue.push(Occurrence { key, note, at });
    }
}

/// Whether a reason looks like one, and not like a sentence.
fn is_word(reason: &str) -> bool {
    reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
