//! Limits how many events a controller may create per object.
//!
//! One token bucket per controller and object. It holds as many buckets as client-go's filter; beyond that, the least
//! recently used bucket is dropped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::occurrence::{ObjectIdentity, SeriesKey, Source};

/// The capacity of a bucket.
pub(super) const BURST: u32 = 25;
/// The time to refill one token.
pub(super) const REFILL: Duration = Duration::from_mins(5);
const BUCKETS: usize = 4096;

type Owner = (Arc<Source>, Arc<ObjectIdentity>);

#[derive(Debug, Default)]
pub(super) struct SpamFilter {
    buckets: BTreeMap<Owner, Bucket>,
    /// Buckets by last use, a growing number.
    used: BTreeMap<u64, Owner>,
    uses: u64,
}

#[derive(Debug)]
struct Bucket {
    tokens: u32,
    /// When the current refill interval began.
    since: Instant,
    used: u64,
}

impl SpamFilter {
    /// Whether another event of this series may be created.
    pub(super) fn admit(&mut self, key: &SeriesKey, now: Instant) -> bool {
        let owner = (key.source.clone(), key.regarding.object.clone());
        let use_ = self.uses;
        self.uses += 1;
        let bucket =
            self.buckets.entry(owner.clone()).or_insert(Bucket { tokens: BURST, since: now, used: use_ });
        self.used.remove(&bucket.used);
        bucket.used = use_;
        self.used.insert(use_, owner);
        let admitted = bucket.take(now);
        if self.buckets.len() > BUCKETS
            && let Some((_, oldest)) = self.used.pop_first()
        {
            self.buckets.remove(&oldest);
        }
        admitted
    }
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let refills = now.saturating_duration_since(self.since).as_secs() / REFILL.as_secs();
        let refills = u32::try_from(refills).unwrap_or(u32::MAX);
        if refills >= BURST - self.tokens {
            // A full bucket does not accumulate time.
            self.tokens = BURST;
            self.since = now;
        } else {
            self.tokens += refills;
            self.since += REFILL * refills;
        }
        let admitted = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use proptest::prelude::*;

    use super::super::occurrence::{EventType, Subject};
    use super::*;

    fn key(controller: &str, name: &str) -> SeriesKey {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        let source = Arc::new(Source::new(controller, "h"));
        SeriesKey::new(source, Subject::of(&pod).unwrap(), None, EventType::Normal, "R", "A")
    }

    #[tokio::test]
    async fn each_controller_has_a_bucket_for_each_object() {
        let now = Instant::now();
        let mut filter = SpamFilter::default();
        for (controller, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
            let admitted = (0..100).filter(|_| filter.admit(&key(controller, name), now)).count();
            assert_eq!(admitted, 25);
        }
    }

    #[tokio::test]
    async fn the_least_recently_used_bucket_is_dropped() {
        let now = Instant::now();
        let mut filter = SpamFilter::default();
        for _ in 0..25 {
            assert!(filter.admit(&key("a", "first"), now) && filter.admit(&key("a", "second"), now));
        }
        for other in 0..BUCKETS - 2 {
            filter.admit(&key("a", &other.to_string()), now);
        }
        assert!(!filter.admit(&key("a", "first"), now), "it is still tracked");
        filter.admit(&key("a", "one more"), now);
        assert!(!filter.admit(&key("a", "first"), now), "it was used recently");
        assert!(filter.admit(&key("a", "second"), now), "it was not");
        assert_eq!(filter.buckets.len(), BUCKETS);
        assert_eq!(filter.used.len(), BUCKETS);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The model counts in fractions of a token.
        #[test]
        fn a_bucket_is_a_token_bucket(pauses in proptest::collection::vec(0..900_u64, 1..120)) {
            let mut now = Instant::now();
            let mut filter = SpamFilter::default();
            let mut seconds = u64::from(BURST) * REFILL.as_secs();
            for pause in pauses {
                now += Duration::from_secs(pause);
                seconds = (seconds + pause).min(u64::from(BURST) * REFILL.as_secs());
                let expected = seconds >= REFILL.as_secs();
                if expected {
                    seconds -= REFILL.as_secs();
                }
                prop_assert_eq!(filter.admit(&key("a", "x"), now), expected);
            }
        }
    }
}
