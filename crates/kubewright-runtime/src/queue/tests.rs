//! Tests of single properties of the queue. [`model`] tests all of them together.

mod model;

use std::num::NonZeroU32;
use std::time::Duration;

use super::{
    Backoff, DEFAULT_PRIORITY, LOW_PRIORITY, Options, Queue, RateLimit, Running, Taken, Waiting, WaitsFor,
};
use crate::Key;

const START: Duration = Duration::from_secs(100);

fn ms(millis: u64) -> Duration {
    START + Duration::from_millis(millis)
}

/// Strict priorities.
fn strict() -> Options {
    Options { oldest_every: None, ..Options::default() }
}

fn key(text: &str) -> Key {
    let (namespace, name) =
        text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name));
    Key::new(namespace, name)
}

/// A queue with its time at [`START`].
struct Test(Queue<Key, &'static str>);

impl Test {
    fn new(options: Options) -> Self {
        Self(Queue::new(options))
    }

    /// A queue with these items at the default priority.
    fn with(items: &[&str]) -> Self {
        let mut test = Self::new(strict());
        for item in items {
            test.add(item, DEFAULT_PRIORITY);
        }
        test
    }

    fn add(&mut self, item: &str, priority: i32) {
        self.0.add(key(item), priority, "test", START);
    }

    fn fail(&mut self, item: &str, now: Duration) -> Duration {
        self.0.add_rate_limited(key(item), DEFAULT_PRIORITY, "failed", now)
    }

    fn take(&mut self) -> Option<Taken<Key, &'static str>> {
        self.0.next(START)
    }

    /// Takes everything that is ready.
    fn all(&mut self, now: Duration) -> Vec<String> {
        std::iter::from_fn(|| self.0.next(now)).map(|taken| taken.item.to_string()).collect()
    }
}

#[test]
fn an_item_is_not_handed_out_twice_at_once() {
    let mut test = Test::with(&["a/1"]);
    assert_eq!(test.all(START), ["a/1"]);
    test.add("a/1", DEFAULT_PRIORITY);
    test.add("a/1", 7);
    assert_eq!(test.take(), None);
}

#[test]
fn an_item_added_while_it_runs_runs_once_more_after_it_is_done() {
    let mut test = Test::with(&["a/1"]);
    test.take();
    test.add("a/1", 3);
    test.add("a/1", 5);
    assert_eq!((test.0.len(), test.0.ready()), (1, 0));
    assert_eq!(test.0.done(&key("a/1"), ms(4)), Some(Duration::from_millis(4)));
    let again = test.0.next(ms(6)).unwrap();
    assert_eq!((again.priority, again.waited, again.causes.adds()), (5, Duration::from_millis(6), 2));
    test.0.done(&key("a/1"), ms(7));
    assert_eq!(test.all(ms(7)), [""; 0]);
}

#[test]
fn an_item_that_is_done_and_never_failed_leaves_nothing_behind() {
    let mut test = Test::with(&["a/1", "a/2"]);
    test.all(START);
    test.0.done(&key("a/1"), START);
    test.0.done(&key("a/2"), START);
    assert!(test.0.is_idle());
    assert!(test.0.index.is_empty() && test.0.slots.is_empty());
}

#[test]
fn an_empty_queue_keeps_no_memory_of_a_large_burst() {
    let keys: Vec<String> = (0..2 * super::SPARE).map(|number| format!("a/{number}")).collect();
    let mut test = Test::with(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    test.all(START);
    assert!(test.0.slots.capacity() > super::SPARE);
    for name in &keys {
        test.0.done(&key(name), START);
    }
    assert_eq!((test.0.slots.capacity(), test.0.index.capacity()), (0, 0));
}

#[test]
fn done_of_an_item_that_does_not_run_changes_nothing() {
    let mut test = Test::with(&["a/1"]);
    assert_eq!(test.0.done(&key("a/1"), START), None);
    assert_eq!(test.0.done(&key("a/2"), START), None);
    assert_eq!(test.all(START), ["a/1"]);
}

#[test]
fn adds_of_a_waiting_item_become_one_with_the_highest_priority() {
    let mut test = Test::with(&["a/1", "a/2", "a/1"]);
    test.add("a/2", 9);
    test.add("a/2", LOW_PRIORITY);
    let taken = test.take().unwrap();
    assert_eq!((taken.item, taken.priority, taken.causes.adds()), (key("a/2"), 9, 3));
    assert_eq!(test.all(START), ["a/1"]);
}

#[test]
fn a_delayed_item_is_handed_out_at_its_time() {
    let mut test = Test::new(strict());
    test.0.add_after(key("a/1"), DEFAULT_PRIORITY, "later", Duration::from_millis(10), START);
    test.0.add_after(key("a/2"), DEFAULT_PRIORITY, "later", Duration::from_millis(5), START);
    assert_eq!((test.0.next_at(), test.0.len(), test.0.delayed()), (Some(ms(5)), 0, 2));
    assert_eq!(test.all(ms(4)), [""; 0]);
    assert_eq!(test.all(ms(9)), ["a/2"]);
    // It waited since the end of its delay, not since the add.
    assert_eq!(test.0.next(ms(13)).unwrap().waited, Duration::from_millis(3));
    assert_eq!(test.0.next_at(), None);
}

#[test]
fn the_earliest_time_of_several_adds_wins() {
    let mut test = Test::new(strict());
    for delay in [10, 4, 20] {
        test.0.add_after(key("a/1"), DEFAULT_PRIORITY, "later", Duration::from_millis(delay), START);
    }
    assert_eq!((test.0.next_at(), test.0.delayed()), (Some(ms(4)), 1));
    assert_eq!(test.0.next(ms(4)).unwrap().causes.adds(), 3);
}

#[test]
fn an_immediate_add_pulls_a_delayed_item_forward() {
    let mut test = Test::new(strict());
    test.0.add_after(key("a/1"), 3, "later", Duration::from_secs(10), START);
    test.add("a/1", DEFAULT_PRIORITY);
    let taken = test.take().unwrap();
    assert_eq!((taken.priority, test.0.next_at()), (3, None));
    assert_eq!(taken.causes.iter().collect::<Vec<_>>(), [&"later", &"test"]);
}

#[test]
fn a_delayed_add_of_a_ready_item_does_not_delay_it() {
    let mut test = Test::with(&["a/1"]);
    test.0.add_after(key("a/1"), DEFAULT_PRIORITY, "later", Duration::from_secs(10), START);
    assert_eq!(test.all(START), ["a/1"]);
    assert_eq!(test.0.next_at(), None);
}

#[test]
fn a_delay_that_ends_while_the_item_runs_makes_it_run_again() {
    let mut test = Test::with(&["a/1"]);
    test.take();
    test.0.add_after(key("a/1"), DEFAULT_PRIORITY, "later", Duration::from_millis(5), START);
    assert_eq!(test.all(ms(6)), [""; 0]);
    assert_eq!(test.0.len(), 1);
    test.0.done(&key("a/1"), ms(7));
    assert_eq!(test.0.next(ms(8)).unwrap().waited, Duration::from_millis(3));
}

#[test]
fn a_delay_outlasts_the_run_in_which_it_was_added() {
    let mut test = Test::with(&["a/1"]);
    test.take();
    test.0.add_after(key("a/1"), DEFAULT_PRIORITY, "later", Duration::from_millis(5), START);
    test.0.done(&key("a/1"), ms(1));
    assert_eq!(test.all(ms(4)), [""; 0]);
    assert_eq!(test.all(ms(5)), ["a/1"]);
}

#[test]
fn delays_that_end_together_are_handed_out_in_the_order_of_their_first_adds() {
    let mut test = Test::new(strict());
    for item in ["a/3", "a/1", "a/2", "a/3"] {
        test.0.add_after(key(item), DEFAULT_PRIORITY, "later", Duration::from_millis(5), START);
    }
    assert_eq!(test.all(ms(5)), ["a/3", "a/1", "a/2"]);
}

#[test]
fn each_failure_doubles_the_delay_of_that_item_alone_until_it_is_forgotten() {
    let mut test = Test::new(strict());
    let delays: Vec<_> = (0..5).map(|_| test.fail("a/1", START).as_millis()).collect();
    assert_eq!(delays, [5, 10, 20, 40, 80]);
    assert_eq!(test.fail("a/2", START).as_millis(), 5);
    assert_eq!((test.0.retries(&key("a/1")), test.0.retries(&key("a/2"))), (5, 1));
    test.0.forget(&key("a/1"));
    assert_eq!(test.0.retries(&key("a/1")), 0);
    assert_eq!(test.fail("a/1", START).as_millis(), 5);
}

#[test]
fn failures_are_remembered_while_the_item_neither_waits_nor_runs() {
    let mut test = Test::new(strict());
    test.fail("a/1", START);
    assert_eq!(test.0.next(ms(5)).unwrap().retries, 1);
    test.0.done(&key("a/1"), ms(5));
    assert_eq!(test.0.retries(&key("a/1")), 1);
    assert!(test.0.is_idle());
    test.0.forget(&key("a/1"));
    assert!(test.0.index.is_empty() && test.0.slots.is_empty());
}

#[test]
fn a_retry_waits_for_the_longer_of_its_backoff_and_the_limit_of_all() {
    let limit = RateLimit { interval: Duration::from_millis(7), burst: 1 };
    let mut test = Test::new(Options { rate_limit: Some(limit), ..strict() });
    let delays: Vec<_> = (1..=4).map(|item| test.fail(&format!("a/{item}"), START).as_millis()).collect();
    assert_eq!(delays, [5, 7, 14, 21]);
    // Other adds take no token.
    test.add("b/1", DEFAULT_PRIORITY);
    assert_eq!(test.all(START), ["b/1"]);
    // The backoff of the fifth failure is longer than the delay of the bucket.
    let later = ms(10_000);
    for expected in [10, 20, 40] {
        assert_eq!(test.fail("a/1", later).as_millis(), expected);
    }
}

#[test]
fn the_limit_of_client_go_is_ten_per_second_after_a_hundred() {
    let mut test = Test::new(Options { rate_limit: Some(RateLimit::client_go()), ..strict() });
    let delays: Vec<_> = (0..120).map(|item| test.fail(&format!("a/{item}"), START).as_millis()).collect();
    assert!(delays[..100].iter().all(|delay| *delay == 5));
    assert_eq!(delays[100..103], [100, 200, 300]);
    assert_eq!(delays[119], 2000);
}

#[test]
fn higher_priorities_are_handed_out_first() {
    let mut test = Test::new(strict());
    test.add("a/low", LOW_PRIORITY);
    test.add("a/default", DEFAULT_PRIORITY);
    test.add("a/high", 10);
    test.add("a/lowest", i32::MIN);
    test.add("a/highest", i32::MAX);
    assert_eq!(
        test.0.depth().map(|(priority, _)| priority).collect::<Vec<_>>(),
        [i32::MAX, 10, 0, -100, i32::MIN]
    );
    assert_eq!(test.all(START), ["a/highest", "a/high", "a/default", "a/low", "a/lowest"]);
}

#[test]
fn namespaces_take_turns_and_a_namespace_is_first_come_first_served() {
    let mut test = Test::with(&["a/3", "a/1", "a/2", "b/2", "b/1", "node", "c/1"]);
    assert_eq!(test.all(START), ["a/3", "b/2", "node", "c/1", "a/1", "b/1", "a/2"]);
}

#[test]
fn a_hundred_thousand_keys_of_a_namespace_delay_one_of_another_by_one() {
    let mut test = Test::new(Options::default());
    for name in 0..100_000 {
        test.0.add(Key::namespaced("big", &name.to_string()), DEFAULT_PRIORITY, "test", START);
    }
    test.take();
    test.add("small/1", DEFAULT_PRIORITY);
    let next: Vec<_> = (0..2).map(|_| test.take().unwrap().item).collect();
    assert!(next.contains(&key("small/1")), "{next:?}");
}

#[test]
fn a_namespace_that_comes_back_waits_for_its_turn() {
    let mut test = Test::with(&["a/1", "b/1", "b/2", "c/1", "c/2"]);
    let mut order = vec![test.take().unwrap().item];
    test.add("a/2", DEFAULT_PRIORITY);
    order.extend((0..4).map(|_| test.take().unwrap().item));
    assert_eq!(order, ["a/1", "b/1", "c/1", "a/2", "b/2"].map(key));
}

#[test]
fn a_steady_stream_of_high_priorities_does_not_starve_a_low_one() {
    let mut test = Test::new(Options::default());
    test.add("a/old", LOW_PRIORITY);
    test.add("a/older than most", LOW_PRIORITY);
    let mut handed_out = Vec::new();
    for name in 0..200 {
        test.add(&format!("b/{name}"), DEFAULT_PRIORITY);
        handed_out.push(test.take().unwrap().item);
    }
    assert_eq!(handed_out.iter().position(|item| *item == key("a/old")), Some(63));
    assert_eq!(handed_out.iter().position(|item| *item == key("a/older than most")), Some(127));
}

#[test]
fn a_middle_priority_is_not_starved_by_higher_and_lower_ones() {
    let mut test = Test::new(Options::default());
    test.add("a/middle", -1);
    for name in 0..64 {
        test.add(&format!("low/{name}"), LOW_PRIORITY);
        test.add(&format!("high/{name}"), DEFAULT_PRIORITY);
        let taken = test.take().unwrap().item;
        assert_eq!(taken == key("a/middle"), name == 63, "{taken} at {name}");
    }
}

#[test]
fn the_interval_of_the_oldest_item_can_be_changed_and_disabled() {
    let order = |oldest_every| {
        let mut test = Test::new(Options { oldest_every, ..Options::default() });
        test.add("a/low", LOW_PRIORITY);
        (0..100).for_each(|name| test.add(&format!("b/{name}"), DEFAULT_PRIORITY));
        test.all(START).iter().position(|item| item == "a/low")
    };
    assert_eq!(order(NonZeroU32::new(3)), Some(2));
    assert_eq!(order(NonZeroU32::new(1)), Some(0));
    assert_eq!(order(None), Some(100));
}

#[test]
fn a_raised_priority_keeps_the_age_of_an_item() {
    let mut test = Test::new(Options { oldest_every: NonZeroU32::new(2), ..Options::default() });
    test.add("a/1", LOW_PRIORITY);
    test.add("b/1", 5);
    test.add("b/2", 5);
    test.add("a/1", DEFAULT_PRIORITY);
    assert_eq!(test.all(START), ["b/1", "a/1", "b/2"]);
}

#[test]
fn a_held_item_is_not_handed_out_before_it_is_released_to_the_front_of_its_group() {
    let mut test = Test::with(&["a/1", "a/2", "b/1", "b/2"]);
    let taken = test.take().unwrap();
    assert!(test.0.hold(taken));
    assert_eq!((test.0.held(), test.0.len(), test.0.running().count()), (1, 3, 0));
    test.add("a/1", DEFAULT_PRIORITY);
    assert_eq!(test.0.len(), 3);
    assert_eq!(test.take().unwrap().item, key("b/1"));
    assert!(test.0.release(&key("a/1"), START));
    assert_eq!(test.all(START), ["a/1", "b/2", "a/2"]);
}

#[test]
fn a_released_item_keeps_its_priority_causes_and_waiting_time() {
    let mut test = Test::new(strict());
    test.0.add(key("a/1"), 3, "first", START);
    let taken = test.0.next(ms(2)).unwrap();
    test.0.add(key("a/1"), 1, "while it ran", ms(3));
    assert!(test.0.hold(taken));
    test.0.add_after(key("a/1"), 2, "while it was held", Duration::from_secs(1), ms(4));
    assert_eq!((test.0.len(), test.0.delayed()), (0, 0));
    assert!(test.0.release(&key("a/1"), ms(5)));
    let again = test.0.next(ms(6)).unwrap();
    assert_eq!((again.priority, again.waited), (3, Duration::from_millis(6)));
    assert_eq!(again.causes.iter().collect::<Vec<_>>(), [&"first", &"while it ran", &"while it was held"]);
    test.0.done(&key("a/1"), ms(7));
    assert_eq!(test.all(ms(10_000)), [""; 0]);
}

#[test]
fn only_running_items_can_be_held_and_only_held_items_released() {
    let mut test = Test::with(&["a/1"]);
    assert!(!test.0.release(&key("a/1"), START));
    let taken = test.take().unwrap();
    assert!(!test.0.release(&key("a/1"), START));
    assert!(test.0.hold(taken.clone()));
    assert!(!test.0.hold(taken.clone()));
    assert_eq!(test.0.done(&key("a/1"), START), None);
    assert!(test.0.release(&key("a/1"), START));
    assert!(!test.0.hold(taken.clone()));
    test.take();
    test.0.done(&key("a/1"), START);
    assert!(!test.0.hold(taken));
    assert!(test.0.is_idle());
}

#[test]
fn a_closed_queue_accepts_and_hands_out_nothing_but_lets_runs_end() {
    let mut test = Test::with(&["a/1", "a/2", "a/3", "a/4"]);
    test.take();
    test.0.add_after(key("a/1"), DEFAULT_PRIORITY, "later", Duration::from_millis(1), START);
    test.take();
    test.add("a/2", DEFAULT_PRIORITY);
    let held = test.take().unwrap();
    test.0.hold(held);
    test.0.close();
    test.0.close();
    test.add("a/5", DEFAULT_PRIORITY);
    assert_eq!(test.fail("a/6", START), Duration::ZERO);
    assert_eq!((test.0.len(), test.0.delayed(), test.0.held(), test.0.next_at()), (0, 0, 0, None));
    assert!(!test.0.release(&key("a/3"), START));
    assert!(!test.0.is_idle());
    assert!(test.0.done(&key("a/1"), ms(5)).is_some());
    assert!(test.0.done(&key("a/2"), ms(5)).is_some());
    assert!(test.0.is_idle() && test.0.is_closed());
    assert_eq!(test.all(ms(100)), [""; 0]);
    assert!(test.0.index.is_empty() && test.0.slots.is_empty());
}

#[test]
fn an_item_held_after_close_is_dropped() {
    let mut test = Test::with(&["a/1"]);
    let taken = test.take().unwrap();
    test.0.close();
    assert!(test.0.hold(taken));
    assert!(test.0.is_idle());
}

#[test]
fn inspect_lists_waiting_and_running_items() {
    let mut test = Test::with(&["a/1", "a/2", "a/3"]);
    test.take();
    let held = test.0.next(ms(1)).unwrap();
    test.0.hold(held);
    test.0.add(key("a/1"), 4, "again", ms(2));
    test.0.add_after(key("a/4"), 1, "later", Duration::from_millis(8), ms(2));
    let waiting: Vec<_> =
        test.0.waiting().map(|Waiting { item, waits_for, .. }| (item.as_str(), waits_for)).collect();
    assert_eq!(
        waiting,
        [
            ("a/3", WaitsFor::Worker(START)),
            ("a/1", WaitsFor::Done(ms(2))),
            ("a/2", WaitsFor::Release(START)),
            ("a/4", WaitsFor::Time(ms(10))),
        ]
    );
    let running: Vec<_> = test.0.running().map(|Running { item, since }| (item.as_str(), since)).collect();
    assert_eq!(running, [("a/1", START)]);
    assert_eq!(test.0.depth().collect::<Vec<_>>(), [(4, 1), (0, 1)]);
    assert_eq!(test.0.unfinished(ms(7)), (Duration::from_millis(7), Duration::from_millis(7)));
    assert_eq!((test.0.counts().adds, test.0.counts().retries), (4, 1));
}

#[test]
fn unused_priorities_are_dropped() {
    let mut test = Test::new(Options::default());
    for priority in 0..1000 {
        test.add("a/1", priority);
        test.take();
        test.0.done(&key("a/1"), START);
    }
    assert!(test.0.depth().count() <= 8);
}

#[test]
fn a_clock_that_runs_backwards_breaks_nothing() {
    let mut test = Test::with(&["a/1"]);
    assert_eq!(test.0.next(Duration::ZERO).unwrap().waited, Duration::ZERO);
    assert_eq!(test.0.done(&key("a/1"), Duration::ZERO), Some(Duration::ZERO));
    test.0.add_after(key("a/1"), 0, "later", Duration::MAX, START);
    assert_eq!(test.0.delayed(), 1);
}
