//! Polling assertions for tests.
//!
//! An operator acts asynchronously, so a test polls until a check passes ([`eventually`]), or verifies that it keeps
//! passing ([`consistently`]), as with Gomega. Both use tokio's clock. A paused clock advances only when everything is
//! idle, so there the intervals grow with the elapsed time: ten minutes take about 70 polls instead of 6,000.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The first interval; most checks pass immediately.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest interval.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// On a paused clock, intervals grow to this fraction of the elapsed time, which bounds how late a result is seen.
const PAUSED_PART: u32 = 8;
/// How far the system clock must advance to tell whether tokio's clock does too.
const TICK: Duration = Duration::from_nanos(1);

/// The intervals between polls.
struct Pauses {
    start: Instant,
    next: Duration,
    is_paused: bool,
}

impl Pauses {
    fn new(start: Instant) -> Self {
        Self { start, next: FIRST_PAUSE, is_paused: clock_is_paused() }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next;
        let longest = if self.is_paused { self.start.elapsed() / PAUSED_PART } else { Duration::ZERO };
        self.next = (pause * 2).min(LONGEST_PAUSE.max(longest));
        pause
    }
}

/// Whether tokio's clock is paused.
fn clock_is_paused() -> bool {
    let (tokio, system) = (Instant::now(), std::time::Instant::now());
    while system.elapsed() < TICK {
        std::hint::spin_loop();
    }
    Instant::now() == tokio
}

/// Polls until `check` returns `Ok`, for at most `limit`.
///
/// An error of `check` describes the current state; the last one is part of [`EventuallyError`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use kubewright_runtime::eventually;
///
/// let mut pods = 0;
/// let seen = eventually(Duration::from_secs(30), async || {
///     pods += 1;
///     if pods == 3 { Ok(pods) } else { Err(format!("{pods} pods")) }
/// });
/// assert_eq!(seen.await.unwrap(), 3);
/// # }
/// ```
pub async fn eventually<T, E: fmt::Display>(
    limit: Duration,
    mut check: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, EventuallyError> {
    let start = Instant::now();
    let deadline = start + limit;
    let mut pauses = Pauses::new(start);
    let mut tries = 0;
    let mut last_seen = None;
    loop {
        tries += 1;
        match timeout_at(deadline, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(seen)) => last_seen = Some(seen.to_string()),
            Err(_) => {
                return Err(EventuallyError { waited: start.elapsed(), tries, last_seen, unanswered: true });
            }
        }
        let now = Instant::now();
        if now >= deadline {
            return Err(EventuallyError { waited: now - start, tries, last_seen, unanswered: false });
        }
        // The last try is at the deadline itself.
        sleep(pauses.next().min(deadline - now)).await;
    }
}

/// Polls for `duration` and fails on the first error of `check`.
///
/// Returns the last value. Use it for things that must *not* happen.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use kubewright_runtime::consistently;
///
/// let restarts = 0;
/// let quiet = consistently(Duration::from_secs(10), async || {
///     if restarts == 0 { Ok(()) } else { Err(format!("{restarts} restarts")) }
/// });
/// quiet.await.unwrap();
/// # }
/// ```
pub async fn consistently<T, E: fmt::Display>(
    duration: Duration,
    mut check: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, ConsistentlyError> {
    let start = Instant::now();
    let deadline = start + duration;
    let mut pauses = Pauses::new(start);
    let mut tries = 0;
    loop {
        tries += 1;
        let value = match check().await {
            Ok(value) => value,
            Err(seen) => {
                return Err(ConsistentlyError {
                    held: start.elapsed(),
                    duration,
                    tries,
                    seen: seen.to_string(),
                });
            }
        };
        let now = Instant::now();
        if now >= deadline {
            return Ok(value);
        }
        sleep(pauses.next().min(deadline - now)).await;
    }
}

/// [`eventually`] timed out.
///
/// `Debug` is the same as `Display`, so that `unwrap` prints a readable message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct EventuallyError {
    /// The time waited.
    pub waited: Duration,
    /// The number of polls.
    pub tries: u32,
    /// The error of the last completed poll.
    pub last_seen: Option<String>,
    /// Whether the last poll did not complete before the deadline.
    pub unanswered: bool,
}

impl fmt::Display for EventuallyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timed out after {:?} and {}", self.waited, Tries(self.tries))?;
        if self.unanswered {
            f.write_str(", the last of which did not complete")?;
        }
        match &self.last_seen {
            Some(seen) => write!(f, "; last seen: {seen}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for EventuallyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A check of [`consistently`] failed.
///
/// `Debug` is the same as `Display`, so that `unwrap` prints a readable message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct ConsistentlyError {
    /// How long the check passed.
    pub held: Duration,
    /// How long it should have passed.
    pub duration: Duration,
    /// The number of polls.
    pub tries: u32,
    /// The error of the check.
    pub seen: String,
}

impl fmt::Display for ConsistentlyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, duration, tries, seen } = self;
        write!(f, "failed after {held:?} of {duration:?} and {}: {seen}", Tries(*tries))
    }
}

impl fmt::Debug for ConsistentlyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

struct Tries(u32);

impl fmt::Display for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "try" } else { "tries" };
        write!(f, "{} {plural}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_that_passes_immediately_takes_no_time() {
        let start = Instant::now();
        assert_eq!(eventually(Duration::from_secs(1), async || Ok::<_, String>(7)).await.unwrap(), 7);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_passes_at_the_deadline_is_in_time() {
        let start = Instant::now();
        let limit = Duration::from_millis(777);
        let late = async || if start.elapsed() >= limit { Ok(()) } else { Err("early") };
        eventually(limit, late).await.unwrap();
        let never = eventually(limit, async || Err::<(), _>("3 of 5 pods")).await.unwrap_err();
        insta::assert_snapshot!(never, @"timed out after 777ms and 13 tries; last seen: 3 of 5 pods");
        assert_eq!(format!("{never:?}"), never.to_string());
    }

    #[tokio::test(start_paused = true)]
    async fn ten_minutes_on_a_paused_clock_take_few_polls() {
        let limit = Duration::from_mins(10);
        let never = eventually(limit, async || Err::<(), _>("no")).await.unwrap_err();
        assert_eq!(never.waited, limit);
        assert!(never.tries < 100, "{never}");
        let mut polls = 0;
        let always = async || {
            polls += 1;
            Ok::<_, String>(())
        };
        consistently(limit, always).await.unwrap();
        assert!(polls < 100, "{polls} polls");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_result_is_seen_at_most_an_eighth_later() {
        let start = Instant::now();
        for seconds in [1, 10, 60, 500] {
            let begun = Instant::now();
            let due = Duration::from_secs(seconds);
            let late = async || if begun.elapsed() >= due { Ok(begun.elapsed()) } else { Err("early") };
            let seen = eventually(Duration::from_mins(10), late).await.unwrap();
            assert!(seen <= due + due / 8 + LONGEST_PAUSE, "{due:?}: {seen:?}");
        }
        assert!(start.elapsed() < Duration::from_mins(12));
    }

    #[tokio::test]
    async fn the_real_clock_is_not_paused() {
        assert!(!clock_is_paused());
        let mut pauses = Pauses::new(Instant::now() - Duration::from_mins(10));
        assert_eq!(std::iter::repeat_with(|| pauses.next()).nth(10), Some(LONGEST_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_times_out() {
        let mut first = true;
        let hangs = async || {
            if std::mem::take(&mut first) { Err::<(), _>("nothing") } else { pending().await }
        };
        let never = eventually(Duration::from_secs(2), hangs).await.unwrap_err();
        insta::assert_snapshot!(never, @"timed out after 2s and 2 tries, the last of which did not complete; last seen: nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_fails_within_the_duration_is_not_consistent() {
        let start = Instant::now();
        let check = async || {
            let elapsed = start.elapsed();
            if elapsed < Duration::from_millis(40) { Ok(elapsed) } else { Err("a second pod") }
        };
        let error = consistently(Duration::from_secs(1), check).await.unwrap_err();
        insta::assert_snapshot!(error, @"failed after 75ms of 1s and 5 tries: a second pod");
    }

    #[tokio::test(start_paused = true)]
    async fn a_passing_check_is_polled_until_the_end() {
        let start = Instant::now();
        let last =
            consistently(Duration::from_secs(3), async || Ok::<_, String>(start.elapsed())).await.unwrap();
        assert_eq!(last, Duration::from_secs(3));
    }
}
