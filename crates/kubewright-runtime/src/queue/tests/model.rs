//! The queue against a simple model of vectors with linear search.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::{Backoff, Options, Queue, RateLimit, Taken, key};
use crate::Key;

/// Groups in the order of their turns, each with its items.
type Ring = Vec<(Option<String>, Vec<Key>)>;

/// The merged adds of a waiting item.
#[derive(Debug, Clone)]
struct Added {
    priority: i32,
    since: Duration,
    causes: Vec<u8>,
}

#[derive(Default)]
struct Model {
    backoff: Backoff,
    limit: Option<RateLimit>,
    /// The tokens of the bucket in nanoseconds, and when they were computed.
    tokens: (i128, Duration),
    oldest_every: Option<u32>,
    turns: u32,
    /// By priority.
    rings: BTreeMap<i32, Ring>,
    /// Ready items, by when they became ready.
    ready: Vec<Key>,
    /// Running items that run again.
    again: Vec<Key>,
    delayed: Vec<(Duration, u64, Key)>,
    numbers: u64,
    running: Vec<(Key, Duration)>,
    held: Vec<Key>,
    added: BTreeMap<Key, Added>,
    failures: BTreeMap<Key, u32>,
    adds: u64,
    retries: u64,
    closed: bool,
}

impl Model {
    fn new(options: &Options) -> Self {
        let tokens =
            options.rate_limit.map_or(0, |limit| limit.interval.as_nanos() * u128::from(limit.burst));
        Self {
            backoff: options.backoff,
            limit: options.rate_limit,
            tokens: (tokens.cast_signed(), Duration::ZERO),
            oldest_every: options.oldest_every.map(NonZeroU32::get),
            ..Self::default()
        }
    }

    fn runs(&self, item: &Key) -> bool {
        self.running.iter().any(|(running, _)| running == item)
    }

    fn add(&mut self, item: &Key, priority: i32, cause: u8, delay: Duration, now: Duration) {
        self.advance(now);
        if self.closed {
            return;
        }
        if delay > Duration::ZERO {
            self.retries += 1;
        }
        let before = self.added.get(item).map(|added| added.priority);
        let added =
            self.added.entry(item.clone()).or_insert(Added { priority, since: now, causes: Vec::new() });
        added.causes.push(cause);
        added.priority = added.priority.max(priority);
        if self.held.contains(item) || self.again.contains(item) {
            return;
        }
        if self.ready.contains(item) {
            if before.is_some_and(|before| before < priority) {
                self.leave_line(item);
                self.join_line(item, false);
            }
            return;
        }
        let waits_until = self.delayed.iter().find(|(.., delayed)| delayed == item).map(|(at, ..)| *at);
        if waits_until.is_some_and(|at| at <= now + delay) {
            return;
        }
        self.delayed.retain(|(.., delayed)| delayed != item);
        if delay == Duration::ZERO {
            self.due(item, now);
        } else {
            self.delayed.push((now + delay, self.numbers, item.clone()));
            self.numbers += 1;
        }
    }

    fn add_rate_limited(&mut self, item: &Key, priority: i32, cause: u8, now: Duration) -> Duration {
        if self.closed {
            return Duration::ZERO;
        }
        let failures = self.failures.entry(item.clone()).or_default();
        let mut delay = self.backoff.delay(*failures);
        *failures += 1;
        if let Some(limit) = self.limit {
            let interval = limit.interval.as_nanos().cast_signed();
            let (tokens, counted) = self.tokens;
            let gained = now.abs_diff(counted).as_nanos().cast_signed();
            let tokens = (tokens + gained).min(interval * i128::from(limit.burst)) - interval;
            self.tokens = (tokens, now);
            delay = delay.max(Duration::from_nanos(u64::try_from(-tokens).unwrap_or(0)));
        }
        self.add(item, priority, cause, delay, now);
        delay
    }

    fn due(&mut self, item: &Key, since: Duration) {
        self.adds += 1;
        self.added.get_mut(item).unwrap().since = since;
        if self.runs(item) {
            self.again.push(item.clone());
        } else {
            self.ready.push(item.clone());
            self.join_line(item, false);
        }
    }

    fn advance(&mut self, now: Duration) {
        while let Some((at, number, item)) = self.delayed.iter().min().filter(|(at, ..)| *at <= now).cloned()
        {
            self.delayed.retain(|(_, other, _)| *other != number);
            self.due(&item, at);
        }
    }

    fn join_line(&mut self, item: &Key, front: bool) {
        let group = item.namespace().map(str::to_owned);
        let ring = self.rings.entry(self.added[item].priority).or_default();
        if !ring.iter().any(|(other, _)| *other == group) {
            ring.push((group.clone(), Vec::new()));
        }
        let (_, line) = ring.iter_mut().find(|(other, _)| *other == group).unwrap();
        line.insert(if front { 0 } else { line.len() }, item.clone());
    }

    fn leave_line(&mut self, item: &Key) {
        for ring in self.rings.values_mut() {
            for (_, line) in ring.iter_mut() {
                line.retain(|other| other != item);
            }
            ring.retain(|(_, line)| !line.is_empty());
        }
        self.rings.retain(|_, ring| !ring.is_empty());
    }

    fn next(&mut self, now: Duration) -> Option<Key> {
        self.advance(now);
        let oldest = self.ready.first()?.clone();
        self.turns += 1;
        let item = if self.oldest_every == Some(self.turns) {
            self.turns = 0;
            oldest
        } else {
            let ring = self.rings.values_mut().next_back()?;
            ring.rotate_left(1);
            ring.last()?.1.first()?.clone()
        };
        self.leave_line(&item);
        self.ready.retain(|ready| *ready != item);
        self.running.push((item.clone(), now));
        Some(item)
    }

    fn done(&mut self, item: &Key, now: Duration) -> Option<Duration> {
        self.advance(now);
        let (_, since) = self.running.iter().find(|(running, _)| running == item)?.clone();
        self.running.retain(|(running, _)| running != item);
        if self.again.contains(item) {
            self.again.retain(|again| again != item);
            self.ready.push(item.clone());
            self.join_line(item, false);
        }
        now.checked_sub(since)
    }

    fn retract(&mut self, item: &Key) -> bool {
        if !self.again.contains(item) {
            return false;
        }
        self.again.retain(|again| again != item);
        // Only the priority of the next add counts.
        self.added.get_mut(item).unwrap().priority = i32::MIN;
        true
    }

    /// `taken` has the priority, time and causes with which the item was handed out.
    fn hold(&mut self, item: &Key, mut taken: Added) -> bool {
        if !self.runs(item) {
            return false;
        }
        self.running.retain(|(running, _)| running != item);
        if self.closed {
            return true;
        }
        self.again.retain(|again| again != item);
        self.delayed.retain(|(.., delayed)| delayed != item);
        if let Some(later) = self.added.remove(item) {
            taken.priority = taken.priority.max(later.priority);
            taken.causes.extend(later.causes);
        }
        self.added.insert(item.clone(), taken);
        self.held.push(item.clone());
        true
    }

    fn release(&mut self, item: &Key, now: Duration) -> bool {
        self.advance(now);
        if !self.held.contains(item) {
            return false;
        }
        self.held.retain(|held| held != item);
        self.ready.push(item.clone());
        self.join_line(item, true);
        true
    }

    fn close(&mut self) {
        self.closed = true;
        self.rings.clear();
        self.ready.clear();
        self.again.clear();
        self.delayed.clear();
        self.held.clear();
        self.added.clear();
        self.failures.clear();
    }

    fn depth(&self) -> Vec<(i32, usize)> {
        let mut depth = BTreeMap::new();
        for item in self.ready.iter().chain(&self.again) {
            *depth.entry(self.added[item].priority).or_default() += 1;
        }
        depth.into_iter().rev().collect()
    }
}

/// An operation on a queue. Times are in milliseconds, with few values so that they collide.
#[derive(Debug, Clone)]
enum Step {
    Add(Key, i32, u8),
    AddAfter(Key, i32, u8, u64),
    AddRateLimited(Key, i32, u8),
    Forget(Key),
    Next,
    Done(Key),
    DoneOldest,
    /// Reverts the adds during a run, then adds a retry.
    Retract(Key, i32, u8),
    Hold(Key),
    Release(Key),
    Pass(u64),
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    const KEYS: [&str; 8] = ["a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "node-1", "node-2"];
    let key = || prop::sample::select(&KEYS[..]).prop_map(key);
    let priority = || prop::sample::select(vec![-100, 0, 0, 5]);
    let step = prop_oneof![
        60 => (key(), priority(), 0..12u8).prop_map(|(key, priority, cause)| Step::Add(key, priority, cause)),
        30 => (key(), priority(), 0..12u8, 0..12u64).prop_map(|(key, priority, cause, delay)| Step::AddAfter(key, priority, cause, delay)),
        30 => (key(), priority(), 0..12u8).prop_map(|(key, priority, cause)| Step::AddRateLimited(key, priority, cause)),
        10 => key().prop_map(Step::Forget),
        80 => Just(Step::Next),
        30 => key().prop_map(Step::Done),
        40 => Just(Step::DoneOldest),
        20 => (key(), priority(), 0..12u8).prop_map(|(key, priority, cause)| Step::Retract(key, priority, cause)),
        20 => key().prop_map(Step::Hold),
        20 => key().prop_map(Step::Release),
        40 => (0..8u64).prop_map(Step::Pass),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 1..150)
}

fn options() -> impl Strategy<Value = Options> {
    let limit = RateLimit { interval: Duration::from_millis(3), burst: 2 };
    let backoff = Backoff { base: Duration::from_millis(2), max: Duration::from_millis(20) };
    (prop::option::of(Just(limit)), 0..5u32).prop_map(move |(rate_limit, oldest_every)| Options {
        backoff,
        rate_limit,
        oldest_every: NonZeroU32::new(oldest_every),
        ..Options::default()
    })
}

/// The first eight distinct causes.
fn kept(causes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for cause in causes {
        if !kept.contains(cause) && kept.len() < 8 {
            kept.push(*cause);
        }
    }
    kept
}

proptest! {
    #![proptest_config(crate::seeds::cases(300))]

    #[test]
    fn the_queue_does_what_the_model_does(options in options(), steps in steps()) {
        let mut model = Model::new(&options);
        let mut queue: Queue<Key, u8> = Queue::new(options);
        let mut now = Duration::ZERO;
        let mut taken: BTreeMap<Key, (Taken<Key, u8>, Added)> = BTreeMap::new();
        let mut seen: Vec<Key> = Vec::new();
        for step in steps {
            match step {
                Step::Add(item, priority, cause) => {
                    seen.push(item.clone());
                    model.add(&item, priority, cause, Duration::ZERO, now);
                    queue.add(item, priority, cause, now);
                }
                Step::AddAfter(item, priority, cause, delay) => {
                    seen.push(item.clone());
                    let delay = Duration::from_millis(delay);
                    model.add(&item, priority, cause, delay, now);
                    queue.add_after(item, priority, cause, delay, now);
                }
                Step::AddRateLimited(item, priority, cause) => {
                    seen.push(item.clone());
                    let delay = model.add_rate_limited(&item, priority, cause, now);
                    prop_assert_eq!(queue.add_rate_limited(item, priority, cause, now), delay);
                }
                Step::Forget(item) => {
                    model.failures.remove(&item);
                    queue.forget(&item);
                }
                Step::Next => {
                    let expected = model.next(now);
                    let next = queue.next(now);
                    prop_assert_eq!(next.as_ref().map(|next| &next.item), expected.as_ref());
                    if let Some(next) = next {
                        let added = model.added.remove(&next.item).unwrap();
                        prop_assert_eq!(next.priority, added.priority);
                        prop_assert_eq!(Some(next.waited), now.checked_sub(added.since));
                        prop_assert_eq!(next.causes.iter().copied().collect::<Vec<_>>(), kept(&added.causes));
                        prop_assert_eq!(next.causes.adds() as usize, added.causes.len());
                        prop_assert_eq!(next.retries, model.failures.get(&next.item).copied().unwrap_or(0));
                        taken.insert(next.item.clone(), (next, added));
                    }
                }
                Step::Done(item) => prop_assert_eq!(queue.done(&item, now), model.done(&item, now)),
                Step::DoneOldest => {
                    if let Some((item, _)) = model.running.first().cloned() {
                        prop_assert_eq!(queue.done(&item, now), model.done(&item, now));
                    }
                }
                Step::Retract(item, priority, cause) => {
                    let retracted = model.retract(&item);
                    prop_assert_eq!(queue.retract(&item), retracted);
                    if retracted {
                        let delay = model.add_rate_limited(&item, priority, cause, now);
                        prop_assert_eq!(queue.add_rate_limited(item, priority, cause, now), delay);
                    }
                }
                Step::Hold(item) => {
                    if let Some((taken, added)) = taken.get(&item) {
                        prop_assert_eq!(queue.hold(taken.clone()), model.hold(&item, added.clone()));
                    }
                }
                Step::Release(item) => prop_assert_eq!(queue.release(&item, now), model.release(&item, now)),
                Step::Pass(time) => now += Duration::from_millis(time),
                Step::Close => {
                    model.close();
                    queue.close();
                }
            }
            prop_assert_eq!(queue.ready(), model.ready.len());
            prop_assert_eq!(queue.len(), model.ready.len() + model.again.len());
            prop_assert_eq!(queue.depth().filter(|(_, depth)| *depth > 0).collect::<Vec<_>>(), model.depth());
            prop_assert_eq!(queue.delayed(), model.delayed.len());
            prop_assert_eq!(queue.next_at(), model.delayed.iter().map(|(at, ..)| *at).min());
            prop_assert_eq!(queue.held(), model.held.len());
            let running: Vec<_> = queue.running().map(|running| (running.item.clone(), running.since)).collect();
            prop_assert_eq!(&running, &model.running);
            prop_assert_eq!(queue.is_idle(), queue.is_empty() && running.is_empty() && model.held.is_empty());
            prop_assert_eq!(queue.waiting().count(), model.added.len());
            prop_assert_eq!((queue.counts().adds, queue.counts().retries), (model.adds, model.retries));
            for item in &seen {
                prop_assert_eq!(queue.retries(item), model.failures.get(item).copied().unwrap_or(0));
            }
            // Every slot is accounted for: no leaks.
            let known = seen.iter().collect::<std::collections::BTreeSet<_>>().into_iter().filter(|item| {
                model.added.contains_key(*item) || model.runs(item) || model.failures.contains_key(*item)
            });
            prop_assert_eq!(queue.slots.len(), known.count());
            prop_assert_eq!(queue.index.len(), queue.slots.len());
        }
    }
}
