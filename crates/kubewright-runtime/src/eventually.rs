//! Waiting for what an operator will have done, in tests.
//!
//! An operator acts some time after its cause, so a test asks until the answer is right ([`eventually`]), or asks
//! that it stays right ([`consistently`]). Both poll by tokio's clock. On a paused clock, which moves on only when
//! everything else is idle, a poll is all that a wait costs: there the pauses grow with the time that has passed, so
//! that ten minutes take some seventy polls and not six thousand.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Between the first tries; most of what a test waits for is there at once.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// Between later tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// On a paused clock a later pause is this part of the time that has passed: what is seen late is seen at most so much
/// later.
const PAUSED_PART: u32 = 8;
/// How far the system's clock must move until it is known whether tokio's moves with it.
const TICK: Duration = Duration::from_nanos(1);

/// The pauses between tries.
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

/// Whether tokio's clock stands still while the system's moves on.
fn clock_is_paused() -> bool {
    let (tokio, system) = (Instant::now(), std::time::Instant::now());
    while system.elapsed() < TICK {
        std::hint::spin_loop();
    }
    Instant::now() == tokio
}

/// Asks until the answer is `Ok`, at most for `limit`.
///
/// The error of a try says what was seen instead; the last one is in the error of the whole.
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
) -> Result<T, NeverError> {
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
            Err(_) => return Err(NeverError { waited: start.elapsed(), tries, last_seen, unanswered: true }),
        }
        let now = Instant::now();
        if now >= deadline {
            return Err(NeverError { waited: now - start, tries, last_seen, unanswered: false });
        }
        // The last try is at the deadline itself: what is right by then is right in time.
        sleep(pauses.next().min(deadline - now)).await;
    }
}

/// Asks again and again for as long as `duration`, and fails at the first answer that is not `Ok`.
///
/// Returns the last answer. For what must *not* happen, which [`eventually`] cannot show.
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
) -> Result<T, NotConsistentError> {
    let start = Instant::now();
    let deadline = start + duration;
    let mut pauses = Pauses::new(start);
    let mut tries = 0;
    loop {
        tries += 1;
        let value = match check().await {
            Ok(value) => value,
            Err(seen) => {
                return Err(NotConsistentError {
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

/// What [`eventually`] waited for did not come.
///
/// Its `Debug` is its message, so that `unwrap` in a test says what was seen.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct NeverError {
    /// How long it was waited for.
    pub waited: Duration,
    /// How often it was asked.
    pub tries: u32,
    /// What the last try that was answered said.
    pub last_seen: Option<String>,
    /// Whether the last try was cut off at the deadline without an answer.
    pub unanswered: bool,
}

impl fmt::Display for NeverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not within {:?}, in {}", self.waited, Tries(self.tries))?;
        if self.unanswered {
            f.write_str(", the last of which never answered")?;
        }
        match &self.last_seen {
            Some(seen) => write!(f, "; last seen: {seen}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for NeverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What [`consistently`] watched did not stay so.
///
/// Its `Debug` is its message, so that `unwrap` in a test says what was seen.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct NotConsistentError {
    /// How long it held.
    pub held: Duration,
    /// How long it should have held.
    pub duration: Duration,
    /// How often it was asked.
    pub tries: u32,
    /// What was seen instead.
    pub seen: String,
}

impl fmt::Display for NotConsistentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, duration, tries, seen } = self;
        write!(f, "held for {held:?} of {duration:?}, in {}; then seen: {seen}", Tries(*tries))
    }
}

impl fmt::Debug for NotConsistentError {
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
    async fn an_answer_that_is_right_at_once_costs_no_time() {
        let start = Instant::now();
        assert_eq!(eventually(Duration::from_secs(1), async || Ok::<_, String>(7)).await.unwrap(), 7);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_right_only_at_the_deadline_is_in_time() {
        let start = Instant::now();
        let limit = Duration::from_millis(777);
        let late = async || if start.elapsed() >= limit { Ok(()) } else { Err("early") };
        eventually(limit, late).await.unwrap();
        let never = eventually(limit, async || Err::<(), _>("3 of 5 pods")).await.unwrap_err();
        insta::assert_snapshot!(never, @"not within 777ms, in 13 tries; last seen: 3 of 5 pods");
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
    async fn what_comes_late_is_seen_an_eighth_later_at_most() {
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
    async fn a_try_that_hangs_does_not_hang_the_test() {
        let mut first = true;
        let hangs = async || {
            if std::mem::take(&mut first) { Err::<(), _>("nothing") } else { pending().await }
        };
        let never = eventually(Duration::from_secs(2), hangs).await.unwrap_err();
        insta::assert_snapshot!(never, @"not within 2s, in 2 tries, the last of which never answered; last seen: nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_within_the_time_is_not_consistent() {
        let start = Instant::now();
        let check = async || {
            let elapsed = start.elapsed();
            if elapsed < Duration::from_millis(40) { Ok(elapsed) } else { Err("a second pod") }
        };
        let error = consistently(Duration::from_secs(1), check).await.unwrap_err();
        insta::assert_snapshot!(error, @"held for 75ms of 1s, in 5 tries; then seen: a second pod");
    }

    #[tokio::test(start_paused = true)]
    async fn what_stays_is_asked_until_the_end() {
        let start = Instant::now();
        let last =
            consistently(Duration::from_secs(3), async || Ok::<_, String>(start.elapsed())).await.unwrap();
        assert_eq!(last, Duration::from_secs(3));
    }
}
