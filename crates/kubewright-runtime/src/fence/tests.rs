//! The fence on a paused clock.

use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use tokio::sync::oneshot;
use tokio::time::advance;

use super::*;
use crate::TokioClock;

const START: Timestamp = Timestamp::UNIX_EPOCH;

/// A wall clock that the test sets.
struct Dial(Mutex<Timestamp>);

impl Clock for Dial {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// A fence with `span` left on both clocks.
fn held(span: Duration) -> (Gate, Fence) {
    let (gate, fence) = Fence::closed(Arc::new(TokioClock::starting_at(START)));
    gate.hold(Instant::now() + span, START + span);
    (gate, fence)
}

#[tokio::test(start_paused = true)]
async fn a_fence_is_closed_before_the_election_is_won() {
    let (_gate, fence) = Fence::closed(Arc::new(TokioClock::starting_at(START)));
    assert_eq!(fence.check(), Err(Fenced::NotLeading));
    assert_eq!(fence.guard(async { panic!("polled") }).await, Err::<(), _>(Fenced::NotLeading));
}

#[tokio::test(start_paused = true)]
async fn a_fence_is_open_until_its_deadline_exclusively() {
    let (_gate, fence) = held(seconds(10));
    let deadline = fence.check().unwrap();
    assert_eq!(deadline.remaining(), Some(seconds(10)));

    advance(Duration::from_nanos(9_999_999_999)).await;
    assert_eq!(fence.check(), Ok(deadline));
    advance(Duration::from_nanos(1)).await;
    assert_eq!(fence.check(), Err(Fenced::Expired));
    assert_eq!(deadline.remaining(), Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_running_future_is_dropped_at_the_deadline() {
    let (_gate, fence) = held(seconds(10));
    let (sender, receiver) = oneshot::channel::<()>();
    let started = Instant::now();
    let guarded = fence.guard(async move {
        let _sender = sender;
        std::future::pending::<()>().await;
    });
    assert_eq!(guarded.await, Err(Fenced::Expired));
    assert_eq!(started.elapsed(), seconds(10));
    assert!(receiver.await.is_err(), "the future was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_extends_the_time_of_a_running_future() {
    let (gate, fence) = held(seconds(10));
    let started = Instant::now();
    let renewals = async {
        for second in [4, 12] {
            tokio::time::sleep_until(started + seconds(second)).await;
            gate.hold(Instant::now() + seconds(10), START + started.elapsed() + seconds(10));
        }
    };
    let guarded = fence.guard(std::future::pending::<()>());
    let (ended, ()) = tokio::join!(guarded, renewals);
    assert_eq!(ended, Err(Fenced::Expired));
    assert_eq!(started.elapsed(), seconds(22));
}

#[tokio::test(start_paused = true)]
async fn a_future_that_completes_in_time_returns_its_output() {
    let (_gate, fence) = held(seconds(10));
    let guarded = fence.guard(async {
        tokio::time::sleep(seconds(9)).await;
        7
    });
    assert_eq!(guarded.await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn closing_drops_running_futures_immediately() {
    let (gate, fence) = held(seconds(10));
    let started = Instant::now();
    let close = async {
        tokio::time::sleep(seconds(3)).await;
        gate.close();
    };
    let (ended, ()) = tokio::join!(fence.guard(std::future::pending::<()>()), close);
    assert_eq!(ended, Err(Fenced::NotLeading));
    assert_eq!(started.elapsed(), seconds(3));
    assert_eq!(fence.clone().check(), Err(Fenced::NotLeading));
}

#[tokio::test(start_paused = true)]
async fn a_future_is_not_polled_again_after_the_deadline() {
    let (_gate, fence) = held(seconds(10));
    let polls = AtomicUsize::new(0);
    let mut guarded = pin!(fence.guard(poll_fn(|_| {
        polls.fetch_add(1, Ordering::Relaxed);
        Poll::<()>::Pending
    })));
    assert!(poll_once(guarded.as_mut()).await.is_pending());
    // The process is paused and resumes after the deadline.
    advance(seconds(11)).await;
    assert_eq!(poll_once(guarded.as_mut()).await, Poll::Ready(Err(Fenced::Expired)));
    assert_eq!(polls.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_machine_is_detected_by_the_wall_clock() {
    let dial = Arc::new(Dial(Mutex::new(START)));
    let (gate, fence) = Fence::closed(dial.clone());
    gate.hold(Instant::now() + seconds(10), START + seconds(10));
    let mut guarded = pin!(fence.guard(poll_fn(|_| Poll::<()>::Pending)));
    assert!(poll_once(guarded.as_mut()).await.is_pending());

    // An hour that the monotonic clock did not see.
    *dial.0.lock().unwrap() = START + seconds(3600);
    assert_eq!(fence.check(), Err(Fenced::Suspended));
    assert_eq!(poll_once(guarded.as_mut()).await, Poll::Ready(Err(Fenced::Suspended)));

    // No other replica acquired the Lease meanwhile, and it is renewed.
    gate.hold(Instant::now() + seconds(10), START + seconds(3610));
    assert!(fence.check().is_ok());
    // Setting the wall clock back has no effect.
    *dial.0.lock().unwrap() = START;
    assert!(fence.check().is_ok());
}
