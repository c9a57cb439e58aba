//! The shared queue under rare thread schedules.
//!
//! Compiles the sources of the library with shuttle's locks and threads. A lost wake-up is a deadlock, which shuttle
//! detects. The clock is a counter: it advances by one millisecond at each read.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use kubewright_runtime::Key;
use kubewright_runtime::queue::{DEFAULT_PRIORITY, Item, Options, Queue, Taken};
use shuttle::future::{block_on, spawn};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::{check_pct, check_random};

use self::shared::SharedQueue;

#[expect(dead_code, unreachable_pub, reason = "the test uses only a part of the library's source")]
#[path = "../../src/queue/shared.rs"]
mod shared;
#[path = "../../src/queue/waiters.rs"]
mod waiters;

/// Shuttle's locks, and a clock that is part of the schedule.
mod sync {
    use std::future::Future;
    use std::ops::Add;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(super) use shuttle::sync::{Arc, Mutex, MutexGuard};

    shuttle::lazy_static! {
        static ref CLOCK: AtomicU64 = AtomicU64::new(0);
    }

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) struct Instant(Duration);

    impl Instant {
        pub(super) fn now() -> Self {
            Self(Duration::from_millis(CLOCK.fetch_add(1, Ordering::SeqCst)))
        }

        pub(super) fn duration_since(self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, time: Duration) -> Self {
            Self(self.0 + time)
        }
    }

    pub(super) struct Sleep(Instant);

    pub(super) fn sleep_until(deadline: Instant) -> Sleep {
        Sleep(deadline)
    }

    impl Sleep {
        pub(super) fn deadline(&self) -> Instant {
            self.0
        }

        pub(super) fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
            self.0 = deadline;
        }
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            if Instant::now() >= self.0 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
}

/// No metrics.
mod metrics {
    use std::time::Duration;

    pub(super) enum Handles {}

    impl Handles {
        pub(super) fn taken(&self, _: Duration) {
            match *self {}
        }

        pub(super) fn done(&self, _: Duration) {
            match *self {}
        }
    }
}

/// The number of schedules per test and scheduler.
const SCHEDULES: usize = 200;

fn key(name: usize) -> Key {
    Key::namespaced("default", &name.to_string())
}

/// Runs items until the queue is closed, and returns their number. Asserts that no item runs concurrently with itself.
async fn worker(queue: SharedQueue<Key>, running: Arc<Mutex<BTreeSet<Key>>>) -> usize {
    let mut runs = 0;
    while let Some(taken) = queue.take().await {
        assert!(running.lock().unwrap().insert(taken.item.clone()), "{} runs twice at once", taken.item);
        shuttle::future::yield_now().await;
        assert!(running.lock().unwrap().remove(&taken.item));
        queue.done(&taken.item);
        runs += 1;
    }
    runs
}

/// Runs a test with random schedules, and with schedules of few preemptions.
fn check(test: fn()) {
    let schedules = crate::seeds::schedules(SCHEDULES);
    check_random(test, schedules);
    check_pct(test, schedules, 3);
}

#[test]
fn every_item_reaches_a_worker_and_none_reaches_two() {
    check(|| {
        let queue = SharedQueue::<Key>::new(Options::default());
        let running = Arc::default();
        let workers: Vec<_> = (0..3).map(|_| spawn(worker(queue.clone(), Arc::clone(&running)))).collect();
        let sources: Vec<_> = (0..2)
            .map(|source| {
                let queue = queue.clone();
                shuttle::thread::spawn(move || {
                    for item in 0..3 {
                        queue.add(key(2 * item + source), DEFAULT_PRIORITY, ());
                        queue.add(key(100), DEFAULT_PRIORITY, ());
                    }
                })
            })
            .collect();
        for source in sources {
            source.join().unwrap();
        }
        block_on(queue.idle());
        assert!(queue.inspect(|queue, _| queue.is_idle()));
        queue.close();
        let runs: usize = workers.into_iter().map(|worker| block_on(worker).unwrap()).sum();
        assert!((7..=12).contains(&runs), "{runs}");
    });
}

#[test]
fn a_worker_that_is_dropped_after_its_wake_up_passes_it_on() {
    check(|| {
        let queue = SharedQueue::<Key>::new(Options::default());
        let patient = spawn({
            let queue = queue.clone();
            async move { queue.take().await.unwrap().item }
        });
        let hasty = spawn({
            let queue = queue.clone();
            async move {
                let mut take = pin!(queue.take());
                let mut polls = 0;
                // Gives up at its second poll, woken or not.
                poll_fn(|cx| {
                    polls += 1;
                    if polls > 1 {
                        return Poll::Ready(None);
                    }
                    cx.waker().wake_by_ref();
                    take.as_mut().poll(cx)
                })
                .await
            }
        });
        queue.add(key(1), DEFAULT_PRIORITY, ());
        let taken: Option<Taken<Key>> = block_on(hasty).unwrap();
        if let Some(taken) = taken {
            queue.done(&taken.item);
            queue.add(key(1), DEFAULT_PRIORITY, ());
        }
        assert_eq!(block_on(patient).unwrap(), key(1));
    });
}

#[test]
fn a_delayed_item_reaches_a_worker_whichever_worker_is_the_timer() {
    check(|| {
        let queue = SharedQueue::<Key>::new(Options::default());
        let runs = Arc::new(AtomicUsize::new(0));
        let done = |queue: &SharedQueue<Key>, runs: &AtomicUsize, item: &Key| {
            queue.done(item);
            if runs.fetch_add(1, Ordering::SeqCst) == 2 {
                queue.close();
            }
        };
        let patient = || {
            let (queue, runs) = (queue.clone(), Arc::clone(&runs));
            spawn(async move {
                while let Some(taken) = queue.take().await {
                    done(&queue, &runs, &taken.item);
                }
            })
        };
        // Is polled twice, may be the timer, and is dropped.
        let hasty = || {
            let (queue, runs) = (queue.clone(), Arc::clone(&runs));
            spawn(async move {
                for _ in 0..2 {
                    let mut take = pin!(queue.take());
                    if let Poll::Ready(Some(taken)) = poll_fn(|cx| Poll::Ready(take.as_mut().poll(cx))).await
                    {
                        done(&queue, &runs, &taken.item);
                    }
                    shuttle::future::yield_now().await;
                }
            })
        };
        let workers = [hasty(), patient(), patient()];
        queue.add_after(key(1), DEFAULT_PRIORITY, (), Duration::from_millis(20));
        queue.add_after(key(2), DEFAULT_PRIORITY, (), Duration::from_millis(10));
        queue.add(key(3), DEFAULT_PRIORITY, ());
        // From here on only the workers read the clock, and only the clock makes items ready.
        drop(queue);
        for worker in workers {
            block_on(worker).unwrap();
        }
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn closing_ends_every_worker_and_every_idle_waiter() {
    check(|| {
        let queue = SharedQueue::<Key>::new(Options::default());
        let running = Arc::default();
        let workers: Vec<_> = (0..3).map(|_| spawn(worker(queue.clone(), Arc::clone(&running)))).collect();
        let idler = spawn({
            let queue = queue.clone();
            async move {
                queue.add(key(1), DEFAULT_PRIORITY, ());
                queue.idle().await;
            }
        });
        queue.add(key(2), DEFAULT_PRIORITY, ());
        queue.close();
        block_on(idler).unwrap();
        for worker in workers {
            assert!(block_on(worker).unwrap() <= 2);
        }
    });
}

#[test]
fn a_released_item_reaches_a_worker() {
    check(|| {
        let queue = SharedQueue::<Key>::new(Options::default());
        queue.add(key(1), DEFAULT_PRIORITY, ());
        let taken = block_on(queue.take()).unwrap();
        let worker = spawn({
            let queue = queue.clone();
            async move { queue.take().await.unwrap().causes.adds() }
        });
        let source = shuttle::thread::spawn({
            let queue = queue.clone();
            move || queue.add(key(1), DEFAULT_PRIORITY, ())
        });
        assert!(queue.hold(taken));
        assert!(queue.release(&key(1)));
        source.join().unwrap();
        // The add was before the worker took the item, or during its run.
        let adds = block_on(worker).unwrap();
        queue.done(&key(1));
        let left = queue.inspect(|queue, _| queue.len());
        assert!(adds == 2 && left == 0 || adds == 1 && left == 1, "{adds} {left}");
    });
}
