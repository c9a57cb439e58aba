//! Delays of retries.
//!
//! [`Backoff`] applies per item, and [`RateLimit`] to all items together. Integer nanoseconds without floating point:
//! the delays are the same on every machine.

use std::time::Duration;

/// Exponential delay of an item by the number of consecutive failures, as in client-go.
/// [`Options::jitter`](super::Options::jitter) adds jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure. It doubles with each further failure.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Default for Backoff {
    /// 5 ms doubling to 1000 s, as in client-go and controller-runtime.
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// The delay of an item with this number of earlier failures.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kubewright_runtime::queue::Backoff;
    ///
    /// let backoff = Backoff::default();
    /// assert_eq!(backoff.delay(0), Duration::from_millis(5));
    /// assert_eq!(backoff.delay(3), Duration::from_millis(40));
    /// assert_eq!(backoff.delay(18), Duration::from_secs(1000));
    /// ```
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures);
        factor.and_then(|factor| self.base.checked_mul(factor)).map_or(self.max, |delay| delay.min(self.max))
    }
}

/// A limit of the retries of all items together: a token bucket with `burst` tokens that gains one every `interval`.
///
/// As in client-go, it applies to retries ([`add_rate_limited`](super::Queue::add_rate_limited)) and not to other adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The time for one token.
    pub interval: Duration,
    /// The number of retries without a delay after an idle time. At least one.
    pub burst: u32,
}

impl RateLimit {
    /// 10 per second with a burst of 100, as in client-go's default rate limiter.
    pub fn client_go() -> Self {
        Self { interval: Duration::from_millis(100), burst: 100 }
    }
}

/// The state of a [`RateLimit`].
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    interval: u64,
    /// The time in which an empty bucket becomes full.
    span: u64,
    /// When the bucket will be full if no token is taken.
    full_at: u64,
}

impl Bucket {
    pub(super) fn new(limit: RateLimit) -> Self {
        let interval = nanos(limit.interval);
        Self { interval, span: interval.saturating_mul(u64::from(limit.burst.max(1))), full_at: 0 }
    }

    /// Takes a token, possibly a future one, and returns the time until it is available.
    pub(super) fn reserve(&mut self, now: u64) -> u64 {
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        self.full_at.saturating_sub(self.span).saturating_sub(now)
    }
}

/// Time as the queue stores it: half the size of a [`Duration`], enough for 584 years.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_from_5_ms_to_1000_s_and_stays_there() {
        let backoff = Backoff::default();
        let delays: Vec<_> = (0..20).map(|failures| backoff.delay(failures).as_millis()).collect();
        assert_eq!(delays[..6], [5, 10, 20, 40, 80, 160]);
        assert_eq!(delays[16..], [327_680, 655_360, 1_000_000, 1_000_000]);
        assert_eq!(backoff.delay(u32::MAX), backoff.max);
    }

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_one_token_per_interval() {
        let mut bucket = Bucket::new(RateLimit::client_go());
        let second = 1_000_000_000;
        assert!((0..100).all(|_| bucket.reserve(second) == 0));
        assert_eq!(bucket.reserve(second), second / 10);
        assert_eq!(bucket.reserve(second), 2 * second / 10);
        // Half a second gives five tokens, of which two are already reserved.
        let later = second + second / 2;
        assert!((0..3).all(|_| bucket.reserve(later) == 0));
        assert_eq!(bucket.reserve(later), second / 10);
    }

    #[test]
    fn a_bucket_never_holds_more_than_its_burst() {
        let mut bucket = Bucket::new(RateLimit { interval: Duration::from_secs(1), burst: 2 });
        let hour = 3_600_000_000_000;
        assert_eq!([0; 2].map(|_| bucket.reserve(hour)), [0, 0]);
        assert_eq!(bucket.reserve(hour), 1_000_000_000);
    }
}
