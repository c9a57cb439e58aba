//! Rate limiters of retries.
//!
//! Owns [`RateLimiter`] and client-go's limiters. The queue counts failures itself, so most limiters have no state per
//! item. They never read a clock: the queue passes the time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::{Backoff, Bucket, RateLimit, nanos};
use crate::Key;

/// Computes the delay before a failed item is retried.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::Key;
/// use kubewright_runtime::queue::RateLimiter;
///
/// /// Retries in one namespace are slow.
/// #[derive(Clone)]
/// struct SlowNamespace(&'static str);
///
/// impl RateLimiter for SlowNamespace {
///     fn when(&mut self, key: &Key, failures: u32, _: Duration) -> Duration {
///         let seconds = if key.namespace() == Some(self.0) { 60 } else { 1 };
///         Duration::from_secs(seconds) * (failures + 1)
///     }
/// }
/// ```
pub trait RateLimiter<T = Key>: Send + 'static {
    /// The delay before the retry. `failures` is the number of consecutive failures before this one, `now` the time
    /// since the queue was created.
    fn when(&mut self, item: &T, failures: u32, now: Duration) -> Duration;

    /// Called when the item succeeds or is not retried. Limiters with state per item drop it here.
    fn forget(&mut self, item: &T) {
        let _ = item;
    }
}

/// Exponential per item.
impl<T> RateLimiter<T> for Backoff {
    fn when(&mut self, _: &T, failures: u32, _: Duration) -> Duration {
        self.delay(failures)
    }
}

/// A token bucket for all items of a queue.
#[derive(Debug, Clone)]
pub struct BucketLimiter(Bucket);

impl BucketLimiter {
    /// Creates a full bucket.
    pub fn new(limit: RateLimit) -> Self {
        Self(Bucket::new(limit))
    }
}

impl<T> RateLimiter<T> for BucketLimiter {
    fn when(&mut self, _: &T, _: u32, now: Duration) -> Duration {
        Duration::from_nanos(self.0.reserve(nanos(now)))
    }
}

/// The longer delay of two limiters. Nest it to combine more.
///
/// ```
/// use kubewright_runtime::queue::{Backoff, BucketLimiter, MaxOf, RateLimit};
///
/// // The default limiter of client-go.
/// let limiter = MaxOf(Backoff::default(), BucketLimiter::new(RateLimit::client_go()));
/// ```
#[derive(Debug, Clone)]
pub struct MaxOf<A, B>(pub A, pub B);

impl<T, A: RateLimiter<T>, B: RateLimiter<T>> RateLimiter<T> for MaxOf<A, B> {
    fn when(&mut self, item: &T, failures: u32, now: Duration) -> Duration {
        self.0.when(item, failures, now).max(self.1.when(item, failures, now))
    }

    fn forget(&mut self, item: &T) {
        self.0.forget(item);
        self.1.forget(item);
    }
}

/// A short delay for the first failures of an item, and a long one afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastSlow {
    /// The delay after the first failures.
    pub fast: Duration,
    /// The delay after further failures.
    pub slow: Duration,
    /// The number of failures with the short delay.
    pub fast_tries: u32,
}

impl<T> RateLimiter<T> for FastSlow {
    fn when(&mut self, _: &T, failures: u32, _: Duration) -> Duration {
        if failures < self.fast_tries { self.fast } else { self.slow }
    }
}

/// Limits the delays of another limiter to a maximum.
#[derive(Debug, Clone)]
pub struct WithMaxWait<L> {
    /// The limiter.
    pub limiter: L,
    /// The maximum delay.
    pub max: Duration,
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn when(&mut self, item: &T, failures: u32, now: Duration) -> Duration {
        self.limiter.when(item, failures, now).min(self.max)
    }

    fn forget(&mut self, item: &T) {
        self.limiter.forget(item);
    }
}

/// Creates a rate limiter for each queue, so that queues do not share a bucket.
pub struct Limiter<T = Key>(Arc<dyn Fn() -> Box<dyn RateLimiter<T>> + Send + Sync>);

impl<T> Limiter<T> {
    /// Clones this limiter for each queue.
    pub fn new(limiter: impl RateLimiter<T> + Clone + Sync) -> Self {
        Self(Arc::new(move || Box::new(limiter.clone())))
    }

    pub(super) fn start(&self) -> Box<dyn RateLimiter<T>> {
        (self.0)()
    }
}

impl<T> Clone for Limiter<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Limiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").finish_non_exhaustive()
    }
}

/// Adds up to `factor` times the duration, so that many items do not come back at the same time.
pub(crate) fn jittered(duration: Duration, factor: f64, rng: &mut fastrand::Rng) -> Duration {
    if factor > 0.0 { duration.saturating_add(duration.mul_f64(rng.f64() * factor)) } else { duration }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn delays(mut limiter: impl RateLimiter<&'static str>, tries: u32) -> Vec<u64> {
        let delay = |failures| limiter.when(&"a", failures, SECOND).as_millis();
        (0..tries).map(delay).map(|delay| u64::try_from(delay).unwrap()).collect()
    }

    #[test]
    fn limiters_behave_as_in_client_go() {
        let backoff = Backoff { base: Duration::from_millis(1), max: SECOND };
        assert_eq!(delays(backoff, 12), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
        let limit = RateLimit { interval: SECOND, burst: 2 };
        assert_eq!(delays(BucketLimiter::new(limit), 4), [0, 0, 1000, 2000]);
        assert_eq!(delays(MaxOf(backoff, BucketLimiter::new(limit)), 4), [1, 2, 1000, 2000]);
        let fast_slow = FastSlow { fast: Duration::from_millis(5), slow: SECOND, fast_tries: 2 };
        assert_eq!(delays(fast_slow, 4), [5, 5, 1000, 1000]);
        let max = Duration::from_millis(20);
        assert_eq!(delays(WithMaxWait { limiter: fast_slow, max }, 3), [5, 5, 20]);
    }

    #[test]
    fn queues_do_not_share_a_bucket() {
        let limiter = Limiter::<&str>::new(BucketLimiter::new(RateLimit { interval: SECOND, burst: 1 }));
        for _ in 0..2 {
            let mut queue = limiter.start();
            assert_eq!([0; 2].map(|_| queue.when(&"a", 0, SECOND)), [Duration::ZERO, SECOND]);
        }
    }

    #[test]
    fn jitter_adds_at_most_its_fraction() {
        let mut rng = fastrand::Rng::with_seed(1);
        let delays: Vec<Duration> = (0..1000).map(|_| jittered(SECOND, 0.5, &mut rng)).collect();
        assert!(delays.iter().all(|it| (SECOND..SECOND.mul_f64(1.5)).contains(it)));
        assert!(
            delays.iter().any(|it| *it > SECOND.mul_f64(1.4))
                && delays.iter().any(|it| *it < SECOND.mul_f64(1.1))
        );
        assert_eq!(jittered(SECOND, 0.0, &mut rng), SECOND);
        assert_eq!(jittered(Duration::MAX, 0.5, &mut rng), Duration::MAX);
    }
}
