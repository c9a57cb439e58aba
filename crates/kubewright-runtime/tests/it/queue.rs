//! The shared queue on a paused clock, and its metrics.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kubewright_runtime::Key;
use kubewright_runtime::queue::{DEFAULT_PRIORITY, LOW_PRIORITY, Options, QueueMetrics, SharedQueue};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::{Instant, advance, timeout};

fn queue() -> SharedQueue<Key> {
    SharedQueue::new(Options::default())
}

fn key(name: &str) -> Key {
    Key::namespaced("default", name)
}

/// Fails instead of waiting forever.
async fn soon<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_hours(1), future).await.expect("the future did not complete")
}

/// A waker that counts its calls.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Calls {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Polls once with a counting waker.
fn poll<F: Future + Unpin>(future: &mut F, calls: &Arc<Calls>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(calls));
    std::pin::Pin::new(future).poll(&mut Context::from_waker(&waker))
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_gets_an_added_item() {
    let queue = queue();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take().await }
    });
    tokio::task::yield_now().await;
    queue.add(key("web"), 3, ());
    let taken = soon(worker).await.unwrap().unwrap();
    assert_eq!((taken.item, taken.priority), (key("web"), 3));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_item_is_handed_out_at_its_time() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(key("later"), DEFAULT_PRIORITY, (), Duration::from_secs(50));
    queue.add_after(key("sooner"), DEFAULT_PRIORITY, (), Duration::from_secs(10));
    assert_eq!(soon(queue.take()).await.unwrap().item, key("sooner"));
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert_eq!(soon(queue.take()).await.unwrap().item, key("later"));
    assert_eq!(start.elapsed(), Duration::from_secs(50));
}

#[tokio::test(start_paused = true)]
async fn a_shorter_delay_that_is_added_later_resets_the_timer() {
    let queue = queue();
    queue.add_after(key("later"), DEFAULT_PRIORITY, (), Duration::from_secs(50));
    let start = Instant::now();
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.take().await.unwrap().item, start.elapsed()) }
    });
    advance(Duration::from_secs(1)).await;
    queue.add_after(key("sooner"), DEFAULT_PRIORITY, (), Duration::from_secs(1));
    assert_eq!(soon(worker).await.unwrap(), (key("sooner"), Duration::from_secs(2)));
}

#[tokio::test(start_paused = true)]
async fn a_failing_item_is_retried_after_5_10_20_and_40_ms() {
    let queue = queue();
    let start = Instant::now();
    queue.add(key("web"), DEFAULT_PRIORITY, ());
    let mut tries = Vec::new();
    for retries in 0..5 {
        let taken = soon(queue.take()).await.unwrap();
        assert_eq!(taken.retries, retries);
        tries.push(start.elapsed().as_millis());
        queue.add_rate_limited(taken.item.clone(), taken.priority, ());
        queue.done(&taken.item);
    }
    assert_eq!(tries, [0, 5, 15, 35, 75]);
    assert_eq!(queue.retries(&key("web")), 5);
    queue.forget(&key("web"));
    assert_eq!(queue.retries(&key("web")), 0);
}

#[tokio::test(start_paused = true)]
async fn a_woken_worker_wakes_the_next_one_while_there_are_items() {
    let queue = queue();
    let calls: Vec<_> = (0..4).map(|_| Arc::<Calls>::default()).collect();
    let mut workers: Vec<_> = calls.iter().map(|_| Box::pin(queue.take())).collect();
    for (worker, calls) in workers.iter_mut().zip(&calls) {
        assert!(poll(worker, calls).is_pending());
    }
    let woken = || calls.iter().map(|calls| calls.get()).collect::<Vec<_>>();
    for name in ["1", "1", "2", "3", "4"] {
        queue.add(key(name), DEFAULT_PRIORITY, ());
        assert_eq!(woken(), [0, 1, 0, 0]);
    }
    assert!(poll(&mut workers[1], &calls[1]).is_ready());
    assert_eq!(woken(), [0, 1, 1, 0]);
    assert!(poll(&mut workers[2], &calls[2]).is_ready());
    assert_eq!(woken(), [0, 1, 1, 1]);
    // Poll the first worker last: it is the timer.
    assert!(poll(&mut workers[3], &calls[3]).is_ready());
    assert_eq!(woken(), [1; 4]);
    assert!(poll(&mut workers[0], &calls[0]).is_ready());
    assert_eq!(woken(), [1; 4]);
}

#[tokio::test(start_paused = true)]
async fn the_wake_up_of_a_dropped_worker_goes_to_another() {
    let queue = queue();
    let calls: Vec<_> = (0..3).map(|_| Arc::<Calls>::default()).collect();
    let mut workers: Vec<_> = calls.iter().map(|_| Box::pin(queue.take())).collect();
    for (worker, calls) in workers.iter_mut().zip(&calls) {
        assert!(poll(worker, calls).is_pending());
    }
    queue.add(key("1"), DEFAULT_PRIORITY, ());
    assert_eq!(calls[1].get(), 1);
    drop(workers.remove(1));
    assert_eq!(calls[2].get(), 1);
    assert!(poll(&mut workers[1], &calls[2]).is_ready());
    drop(workers);
    assert_eq!(calls[0].get(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_worker_is_the_timer_and_another_takes_over_when_it_is_dropped() {
    let queue = queue();
    queue.add_after(key("later"), DEFAULT_PRIORITY, (), Duration::from_secs(5));
    let calls: Vec<_> = (0..3).map(|_| Arc::<Calls>::default()).collect();
    let mut workers: Vec<_> = calls.iter().map(|_| Box::pin(queue.take())).collect();
    for (worker, calls) in workers.iter_mut().zip(&calls) {
        assert!(poll(worker, calls).is_pending());
    }
    drop(workers.remove(0));
    assert_eq!((calls[1].get(), calls[2].get()), (1, 0));
    assert!(poll(&mut workers[0], &calls[1]).is_pending());
    advance(Duration::from_secs(6)).await;
    assert_eq!((calls[1].get(), calls[2].get()), (2, 0));
    assert!(poll(&mut workers[0], &calls[1]).is_ready());
}

#[tokio::test(start_paused = true)]
async fn items_that_become_ready_together_wake_as_many_workers() {
    let queue = queue();
    for item in 0..5 {
        queue.add_after(key(&item.to_string()), DEFAULT_PRIORITY, (), Duration::from_secs(5));
    }
    let workers: Vec<_> = (0..5)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take().await.unwrap().item })
        })
        .collect();
    let start = Instant::now();
    let mut items = Vec::new();
    for worker in workers {
        items.push(soon(worker).await.unwrap());
    }
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    items.sort();
    assert_eq!(items, ["0", "1", "2", "3", "4"].map(key));
}

#[tokio::test(start_paused = true)]
async fn closing_ends_every_worker() {
    let queue = queue();
    queue.add_after(key("later"), DEFAULT_PRIORITY, (), Duration::from_secs(5));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take().await })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.close();
    for worker in workers {
        assert_eq!(soon(worker).await.unwrap(), None);
    }
    queue.add(key("late"), DEFAULT_PRIORITY, ());
    assert_eq!(soon(queue.take()).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_held_item_reaches_a_worker_after_its_release() {
    let queue = queue();
    queue.add(key("web"), DEFAULT_PRIORITY, ());
    let taken = soon(queue.take()).await.unwrap();
    assert!(queue.hold(taken));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take().await.unwrap().item }
    });
    advance(Duration::from_secs(1)).await;
    assert!(!worker.is_finished());
    assert!(queue.release(&key("web")));
    assert_eq!(soon(worker).await.unwrap(), key("web"));
}

#[tokio::test(start_paused = true)]
async fn idle_waits_for_waiting_running_and_held_items_but_not_for_delayed_ones() {
    let queue = queue();
    soon(queue.idle()).await;
    queue.add_after(key("later"), DEFAULT_PRIORITY, (), Duration::from_secs(5));
    soon(queue.idle()).await;

    let calls = Arc::<Calls>::default();
    let mut idle = pin!(queue.idle());
    queue.add(key("web"), DEFAULT_PRIORITY, ());
    assert!(poll(&mut idle, &calls).is_pending());
    let taken = soon(queue.take()).await.unwrap();
    assert!(poll(&mut idle, &calls).is_pending());
    queue.hold(taken);
    assert!(poll(&mut idle, &calls).is_pending());
    queue.release(&key("web"));
    soon(queue.take()).await.unwrap();
    assert_eq!(calls.get(), 0);
    queue.done(&key("web"));
    assert_eq!(calls.get(), 1);
    assert!(poll(&mut idle, &calls).is_ready());

    // Its delay has ended, so it waits for a worker now.
    advance(Duration::from_secs(5)).await;
    assert!(poll(&mut pin!(queue.idle()), &calls).is_pending());
    queue.close();
    soon(queue.idle()).await;
}

#[tokio::test(start_paused = true)]
async fn the_metrics_are_those_of_controller_runtime() {
    let mut registry = Registry::default();
    let metrics = QueueMetrics::register(&mut registry);
    let queue: SharedQueue<Key> = metrics.queue("view", Options::default());
    queue.add(key("1"), DEFAULT_PRIORITY, ());
    queue.add(key("2"), DEFAULT_PRIORITY, ());
    queue.add(key("3"), LOW_PRIORITY, ());
    queue.add_after(key("4"), LOW_PRIORITY, (), Duration::from_hours(1));
    advance(Duration::from_millis(20)).await;
    let first = soon(queue.take()).await.unwrap().item;
    advance(Duration::from_secs(2)).await;
    queue.done(&first);
    soon(queue.take()).await.unwrap();
    advance(Duration::from_secs(3)).await;
    soon(queue.take()).await.unwrap();
    advance(Duration::from_secs(1)).await;
    queue.add(key("5"), LOW_PRIORITY, ());

    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("# HELP") && !line.contains("_bucket{"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    # TYPE workqueue_queue_duration_seconds histogram
    workqueue_queue_duration_seconds_sum{name="view",controller="view"} 7.06
    workqueue_queue_duration_seconds_count{name="view",controller="view"} 3
    # TYPE workqueue_work_duration_seconds histogram
    workqueue_work_duration_seconds_sum{name="view",controller="view"} 2.0
    workqueue_work_duration_seconds_count{name="view",controller="view"} 1
    # TYPE workqueue_depth gauge
    workqueue_depth{name="view",controller="view",priority="0"} 0
    workqueue_depth{name="view",controller="view",priority="-100"} 1
    # TYPE workqueue_adds counter
    workqueue_adds_total{name="view",controller="view"} 4
    # TYPE workqueue_retries counter
    workqueue_retries_total{name="view",controller="view"} 1
    # TYPE workqueue_unfinished_work_seconds gauge
    workqueue_unfinished_work_seconds{name="view",controller="view"} 5.0
    # TYPE workqueue_longest_running_processor_seconds gauge
    workqueue_longest_running_processor_seconds{name="view",controller="view"} 4.0
    # EOF
    "#);
    let buckets =
        text.lines().filter_map(|line| line.strip_prefix("workqueue_work_duration_seconds_bucket{le="));
    let buckets: Vec<_> = buckets.map(|line| line.split(',').next().unwrap().trim_matches('"')).collect();
    let expected = "1e-8 1e-7 0.000001 0.00001 0.0001 0.001 0.01 0.1 1.0 10.0 100.0 1000.0 +Inf";
    assert_eq!(buckets.join(" "), expected);
}

#[tokio::test(start_paused = true)]
async fn a_queue_has_metrics_until_it_is_dropped_or_replaced_by_name() {
    let mut registry = Registry::default();
    let metrics = QueueMetrics::register(&mut registry);
    let adds = |registry: &Registry| {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        let adds = text.lines().filter(|line| line.starts_with("workqueue_adds_total"));
        adds.map(|line| line.rsplit_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let first: SharedQueue<Key> = metrics.queue("view", Options::default());
    first.add(key("1"), DEFAULT_PRIORITY, ());
    assert_eq!(adds(&registry), ["1"]);
    let second: SharedQueue<Key> = metrics.queue("view", Options::default());
    assert_eq!(adds(&registry), ["0"]);
    let other: SharedQueue<Key> = metrics.queue("other", Options::default());
    assert_eq!(adds(&registry), ["0", "0"]);
    drop((first, second, other));
    assert_eq!(adds(&registry), [""; 0]);
}
