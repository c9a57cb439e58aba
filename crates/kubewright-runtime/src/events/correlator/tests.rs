//! The correlator, step by step and against a model of the server.

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;

use super::super::occurrence::{EventType, Source, Subject};
use super::*;

const MINUTE: Duration = Duration::from_mins(1);

/// A correlator with its clock, and the server's Events by name.
struct World {
    correlator: Correlator,
    rng: fastrand::Rng,
    now: Instant,
    start: Instant,
    events: BTreeMap<String, i32>,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let rng = fastrand::Rng::with_seed(7);
        Self { correlator: Correlator::default(), rng, now, start: now, events: BTreeMap::new() }
    }

    fn see(&mut self, object: &str, reason: &str) {
        let mut pod = Pod::default();
        pod.metadata.name = Some(object.to_owned());
        let source = Arc::new(Source::new("c", "h"));
        let regarding = Subject::of(&pod).unwrap();
        let key = SeriesKey::new(source, regarding, None, EventType::Normal, reason, "A");
        let at = Timestamp::UNIX_EPOCH + (self.now - self.start);
        self.correlator.observe(Occurrence { key, note: String::new(), at }, self.now, &mut self.rng);
    }

    fn wait(&mut self, duration: Duration) {
        self.now += duration;
    }

    fn next(&mut self) -> Option<Write> {
        self.correlator.next_write(self.now)
    }

    fn answer(&mut self, write: &Write, outcome: Outcome) -> bool {
        self.correlator.done(write.id, outcome, self.now, &mut self.rng)
    }

    /// The server's response to a write.
    fn serve(&mut self, write: &Write) -> Outcome {
        match &write.request {
            Request::Create(_) if self.events.contains_key(&write.name) => {
                assert!(write.retried, "names are unique");
                Outcome::Exists
            }
            Request::Create(event) => {
                let count = event.series.as_ref().map_or(1, |series| series.count);
                self.events.insert(write.name.clone(), count);
                Outcome::Written
            }
            Request::Patch(series) => match self.events.get_mut(&write.name) {
                Some(count) => {
                    assert!(series.count > 1, "the server rejects a series with count 1");
                    assert!(series.count >= *count, "a count never decreases");
                    *count = series.count;
                    Outcome::Written
                }
                None => Outcome::Gone,
            },
        }
    }

    /// Answers every write that is due. Returns their number.
    fn settle(&mut self) -> usize {
        let mut writes = 0;
        while let Some(write) = self.next() {
            let outcome = self.serve(&write);
            self.answer(&write, outcome);
            writes += 1;
        }
        writes
    }

    fn counts(&self) -> Vec<i32> {
        self.events.values().copied().collect()
    }
}

#[test]
fn the_first_repetition_is_written_immediately_and_later_ones_at_the_end() {
    let mut world = World::new();
    world.see("web", "R");
    assert_eq!(world.settle(), 1);
    world.see("web", "R");
    assert_eq!(world.settle(), 1);
    assert_eq!(world.counts(), [2]);
    for _ in 0..98 {
        world.wait(Duration::from_secs(1));
        world.see("web", "R");
        assert_eq!(world.settle(), 0);
    }
    assert_eq!(world.correlator.wake_at(), Some(world.now + FINISH));
    world.wait(MINUTE * 5);
    assert_eq!(world.settle(), 0);
    world.wait(MINUTE);
    assert_eq!(world.settle(), 1);
    assert_eq!(world.counts(), [100]);
    // The series has ended: it is dropped, and the next occurrence creates a new Event.
    assert!(world.correlator.series.is_empty() && world.correlator.ids.is_empty());
    assert!(world.correlator.seen.is_empty() && world.correlator.wake_at().is_none());
    world.see("web", "R");
    world.settle();
    assert_eq!(world.counts(), [100, 1]);
}

#[test]
fn a_continuing_series_is_written_every_half_hour() {
    let mut world = World::new();
    world.see("web", "R");
    world.see("web", "R");
    world.settle();
    let mut writes = Vec::new();
    for minute in 1..=100 {
        world.wait(MINUTE);
        if world.settle() > 0 {
            writes.push(minute);
        }
        world.see("web", "R");
    }
    assert_eq!(writes, [30, 60, 90]);
}

#[test]
fn repetitions_during_a_write_are_sent_in_one_more_write() {
    let mut world = World::new();
    world.see("web", "R");
    let create = world.next().unwrap();
    for _ in 0..9 {
        world.see("web", "R");
    }
    assert!(world.next().is_none(), "a series has one write at a time");
    let outcome = world.serve(&create);
    world.answer(&create, outcome);
    assert_eq!(world.settle(), 1);
    assert_eq!(world.counts(), [10]);
}

#[test]
fn a_write_is_tried_twelve_times_about_ten_seconds_apart() {
    let mut world = World::new();
    world.see("web", "R");
    for round in 1..=12 {
        let write = world.next().unwrap();
        assert_eq!(write.retried, round > 1);
        let gave_up = world.answer(&write, Outcome::Failed);
        assert_eq!(gave_up, round == 12);
        if !gave_up {
            let pause = world.correlator.wake_at().unwrap() - world.now;
            assert!((RETRY..RETRY.mul_f64(1.25)).contains(&pause), "{pause:?}");
            world.wait(pause);
        }
    }
    world.wait(RETRY * 2);
    assert!(world.next().is_none());
    // Other series are not delayed.
    world.see("other", "R");
    assert_eq!(world.settle(), 1);
}

#[test]
fn a_rejected_series_is_dropped_when_it_ends_and_retried_if_it_continues() {
    let mut world = World::new();
    world.see("web", "R");
    let write = world.next().unwrap();
    world.answer(&write, Outcome::Refused);
    for _ in 0..29 {
        world.wait(MINUTE);
        world.see("web", "R");
        assert!(world.next().is_none());
    }
    world.wait(MINUTE);
    assert_eq!(world.settle(), 1);
    assert_eq!(world.counts(), [30]);

    world.see("other", "R");
    let write = world.next().unwrap();
    world.answer(&write, Outcome::Refused);
    world.wait(FINISH);
    world.settle();
    assert!(world.correlator.series.is_empty());
}

#[test]
fn an_event_that_expired_is_created_again_with_its_count() {
    let mut world = World::new();
    world.see("web", "R");
    world.settle();
    world.events.clear();
    world.see("web", "R");
    assert_eq!(world.settle(), 2, "a patch with NotFound, then a create");
    assert_eq!(world.counts(), [2]);
}

#[test]
fn different_events_have_different_names_even_if_the_clock_stands_still() {
    let mut world = World::new();
    for reason in ["A", "B", "C"] {
        world.see("web", reason);
    }
    assert_eq!(world.settle(), 3);
    assert_eq!(world.counts(), [1, 1, 1]);
}

#[test]
fn creates_per_object_are_limited_and_repetitions_are_not() {
    let mut world = World::new();
    for reason in 0..40 {
        world.see("web", &format!("R{reason}"));
        world.see("web", "R0");
    }
    world.settle();
    assert_eq!(world.events.len(), 25);
    assert_eq!(world.events.values().max(), Some(&41));
    assert_eq!(world.correlator.report(world.now), Some(Losses { dropped: 0, suppressed: 15 }));
    world.wait(super::super::spam::REFILL);
    world.see("web", "one more");
    world.see("web", "too many");
    world.settle();
    assert_eq!(world.events.len(), 26);
}

#[test]
fn losses_are_reported_once_a_minute() {
    let mut world = World::new();
    assert_eq!(world.correlator.report(world.now), None);
    world.correlator.lost(3);
    assert_eq!(world.correlator.report(world.now), Some(Losses { dropped: 3, suppressed: 0 }));
    world.correlator.lost(1);
    world.correlator.lost(1);
    assert_eq!(world.correlator.report(world.now), None);
    assert_eq!(world.correlator.wake_at(), Some(world.now + REPORT));
    world.wait(REPORT);
    assert_eq!(world.correlator.report(world.now), Some(Losses { dropped: 2, suppressed: 0 }));
    assert_eq!(world.correlator.wake_at(), None);
}

#[test]
fn the_least_recently_seen_series_is_dropped_when_full() {
    let mut world = World::new();
    for object in 0..SERIES {
        world.see(&format!("pod-{object}"), "R");
        world.wait(Duration::from_millis(1));
    }
    world.see("pod-0", "R");
    world.see("one-more", "R");
    assert_eq!(world.correlator.series.len(), SERIES);
    assert_eq!(world.settle(), SERIES);
    assert!(world.events.keys().any(|name| name.starts_with("pod-0.")), "it was seen recently");
    assert!(!world.events.keys().any(|name| name.starts_with("pod-1.")));
    assert_eq!(world.correlator.report(world.now), Some(Losses { dropped: 1, suppressed: 0 }));
}

#[test]
fn a_flush_tries_every_write_once() {
    let mut world = World::new();
    for _ in 0..5 {
        world.see("counted", "R");
        world.settle();
    }
    world.see("waiting", "R");
    let write = world.next().unwrap();
    world.answer(&write, Outcome::Failed);
    world.see("clean", "R");
    world.settle();
    assert_eq!(world.correlator.unwritten(), 3 + 1);

    world.correlator.flush();
    let write = world.next().unwrap();
    assert!(world.answer(&write, Outcome::Failed), "no retry during shutdown");
    assert_eq!(world.settle(), 1);
    assert_eq!(world.correlator.unwritten(), 3);
}

#[derive(Debug, Clone)]
enum Step {
    See(u8, u8),
    Wait(u64),
    /// Takes one write and answers it: successfully, with the response lost, or with the request lost.
    Serve,
    Unheard,
    Lost,
    /// Takes one write and leaves it in flight.
    Write,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_u8, 0..2_u8).prop_map(|(object, reason)| Step::See(object, reason)),
        2 => (0..400_u64).prop_map(Step::Wait),
        4 => Just(Step::Serve),
        1 => Just(Step::Unheard),
        1 => Just(Step::Lost),
        1 => Just(Step::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Invariant: whatever is lost, late or duplicated, the server's counts finally add up to what was recorded.
    #[test]
    fn nothing_is_lost_and_nothing_is_counted_twice(steps in proptest::collection::vec(step(), 0..200)) {
        let mut world = World::new();
        let mut under_way = Vec::new();
        let mut seen = 0;
        let mut failures = 0;
        for step in steps {
            match step {
                Step::See(object, reason) => {
                    world.see(&format!("pod-{object}"), &format!("R{reason}"));
                    seen += 1;
                }
                Step::Wait(seconds) => world.wait(Duration::from_secs(seconds)),
                Step::Write => under_way.extend(world.next()),
                Step::Serve | Step::Unheard | Step::Lost => {
                    let Some(write) = under_way.pop().or_else(|| world.next()) else { continue };
                    // A write is given up after twelve failures; another test covers that.
                    let fails = failures < 11 && !matches!(step, Step::Serve);
                    failures += u32::from(fails);
                    let mut outcome = Outcome::Failed;
                    if !fails || matches!(step, Step::Unheard) {
                        let served = world.serve(&write);
                        if !fails {
                            outcome = served;
                        }
                    }
                    world.answer(&write, outcome);
                }
            }
        }
        for write in under_way {
            let outcome = world.serve(&write);
            world.answer(&write, outcome);
        }
        world.correlator.flush();
        world.settle();
        prop_assert_eq!(world.correlator.unwritten(), 0);
        let suppressed = world.correlator.losses.suppressed;
        let counted: i32 = world.counts().iter().sum();
        prop_assert_eq!(u64::try_from(counted).unwrap() + suppressed, seen);
    }
}
