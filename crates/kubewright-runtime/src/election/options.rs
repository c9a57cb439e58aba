//! What a contender is told: which Lease, by which name, and how patient to be.
//!
//! Once [`ElectionOptions::settle`] has let them pass, the [`Settings`] keep every promise that the proof in
//! [`fence`](crate::fence) needs. Numbers are client-go's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Where the kubelet writes the namespace of a pod.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Where Linux says what the machine, or the pod, is called.
const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";

/// client-go waits between one retry period and that many more of them.
pub(crate) const JITTER_FACTOR: f64 = 1.2;

/// What an [`Election`](crate::Election) is about.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::ElectionOptions;
///
/// let options = ElectionOptions {
///     namespace: Some("operators".to_owned()),
///     lease_duration: Duration::from_secs(60),
///     renew_deadline: Duration::from_secs(40),
///     ..ElectionOptions::new("guestbook.example.com")
/// };
/// assert_eq!(options.retry_period, Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionOptions {
    /// The namespace of the Lease. None is the namespace of the pod that this process runs in.
    pub namespace: Option<String>,
    /// The name of the Lease: what controller-runtime calls the leader election ID.
    pub name: String,
    /// Who this contender is. No two processes may ever share it. None is `hostname_uuid`.
    pub identity: Option<String>,
    /// How long the others wait for a sign of life before they take over; whole seconds, as the Lease stores them.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up, and for how long its writes may leave after the last
    /// renewal that worked.
    pub renew_deadline: Duration,
    /// How long to wait between tries.
    pub retry_period: Duration,
    /// Whether to give the Lease up when cancelled, so that the next leader need not wait for it to expire.
    ///
    /// What writes around the [`Fence`](crate::Fence) must have ended by then.
    pub release_on_cancel: bool,
    /// Labels that the Lease gets, beside those that it has.
    pub labels: BTreeMap<String, String>,
}

impl ElectionOptions {
    /// client-go's numbers (15 s, 10 s and 2 s), for a Lease in the pod's own namespace that is released on a clean
    /// end.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            namespace: None,
            name: name.into(),
            identity: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_cancel: true,
            labels: BTreeMap::new(),
        }
    }

    /// Fills in what was left out, and refuses what cannot work.
    pub(super) fn settle(self, rng: &mut fastrand::Rng) -> Result<Settings, ElectionOptionsError> {
        use ElectionOptionsError as Error;

        let Self { lease_duration, renew_deadline, retry_period, .. } = self;
        if self.name.is_empty() {
            return Err(Error::Name);
        }
        if self.identity.as_deref() == Some("") {
            return Err(Error::Identity);
        }
        let lease_seconds = i32::try_from(lease_duration.as_secs()).unwrap_or(0);
        if lease_seconds < 1 || lease_duration.subsec_nanos() != 0 {
            return Err(Error::LeaseDuration { lease_duration });
        }
        if renew_deadline > longest_renew_deadline(lease_duration) {
            return Err(Error::RenewDeadline { renew_deadline, lease_duration });
        }
        if retry_period.is_zero() || renew_deadline <= retry_period.mul_f64(JITTER_FACTOR) {
            return Err(Error::RetryPeriod { retry_period, renew_deadline });
        }
        let namespace = match self.namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => namespace,
            None => pod_namespace().map_err(ElectionOptionsError::Namespace)?,
        };
        Ok(Settings {
            namespace,
            name: self.name,
            identity: self.identity.unwrap_or_else(|| unique_identity(rng)),
            lease_seconds,
            renew_deadline,
            retry_period,
            release_on_cancel: self.release_on_cancel,
            labels: self.labels,
        })
    }
}

/// Options that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ElectionOptionsError {
    /// The Lease has no name.
    #[error(
        "leader election needs the name of a Lease; name it for the operator, such as guestbook.example.com"
    )]
    Name,
    /// The contender has no name.
    #[error("the identity of a contender is empty; leave it out to get a unique one")]
    Identity,
    /// The Lease cannot hold the duration.
    #[error("a lease duration of {lease_duration:?} cannot be stored; use whole seconds, at least 1")]
    LeaseDuration {
        /// As it was given.
        lease_duration: Duration,
    },
    /// The leader would give up too late.
    #[error(
        "a renew deadline of {renew_deadline:?} is too long for a lease duration of {lease_duration:?}; \
         use at most {:?}, so that a leader stops before others take over although their clocks drift",
        longest_renew_deadline(*lease_duration)
    )]
    RenewDeadline {
        /// As it was given.
        renew_deadline: Duration,
        /// As it was given.
        lease_duration: Duration,
    },
    /// The leader would not get to a second try.
    #[error(
        "a retry period of {retry_period:?} does not fit a renew deadline of {renew_deadline:?}; \
         use more than 0, and less than {:?}, so that a renewal can be tried again",
        renew_deadline.div_f64(JITTER_FACTOR)
    )]
    RetryPeriod {
        /// As it was given.
        retry_period: Duration,
        /// As it was given.
        renew_deadline: Duration,
    },
    /// Nobody said where the Lease is to be.
    #[error("not running in a cluster, so set the namespace of the leader election Lease")]
    Namespace(#[source] std::io::Error),
}

/// Options without gaps, of which the protocol is known to work.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) lease_seconds: i32,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    pub(crate) release_on_cancel: bool,
    pub(crate) labels: BTreeMap<String, String>,
}

/// Clocks may run wrong by 1 % each, one fast and one slow.
fn longest_renew_deadline(lease_duration: Duration) -> Duration {
    lease_duration / 100 * 98
}

/// The namespace of the pod that this program runs in.
pub(crate) fn pod_namespace() -> std::io::Result<String> {
    namespace_in(Path::new(NAMESPACE_FILE))
}

fn namespace_in(file: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(file)?;
    match text.trim() {
        "" => Err(std::io::Error::other(format!("{} is empty", file.display()))),
        namespace => Ok(namespace.to_owned()),
    }
}

/// `hostname_uuid`, as controller-runtime has it. The random half makes it unique; the name is for people.
fn unique_identity(rng: &mut fastrand::Rng) -> String {
    // Version 4 (random), variant 1: the bits that RFC 9562 fixes.
    let random = rng.u128(..) & !(0xf000 << 64) & !(0xc000 << 48) | (0x4000 << 64) | (0x8000 << 48);
    format!(
        "{}_{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        hostname(),
        random >> 96,
        (random >> 80) & 0xffff,
        (random >> 64) & 0xffff,
        (random >> 48) & 0xffff,
        random & 0xffff_ffff_ffff,
    )
}

fn hostname() -> String {
    std::fs::read_to_string(HOSTNAME_FILE)
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ElectionOptions {
        ElectionOptions { namespace: Some("default".to_owned()), ..ElectionOptions::new("lock") }
    }

    fn refusal(options: ElectionOptions) -> String {
        options.settle(&mut fastrand::Rng::with_seed(1)).expect_err("these cannot work").to_string()
    }

    #[test]
    fn the_defaults_are_those_of_client_go() {
        let settings = options().settle(&mut fastrand::Rng::with_seed(1)).unwrap();
        assert_eq!(settings.lease_seconds, 15);
        assert_eq!((settings.renew_deadline.as_secs(), settings.retry_period.as_secs()), (10, 2));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let ms = Duration::from_millis;
        let refusals = [
            ElectionOptions { name: String::new(), ..options() },
            ElectionOptions { identity: Some(String::new()), ..options() },
            ElectionOptions { lease_duration: ms(15_500), ..options() },
            ElectionOptions { lease_duration: ms(0), ..options() },
            ElectionOptions { renew_deadline: ms(15_000), ..options() },
            ElectionOptions { retry_period: ms(9_000), ..options() },
            ElectionOptions { retry_period: ms(0), ..options() },
        ]
        .map(refusal)
        .join("\n");
        insta::assert_snapshot!(refusals, @r"
        leader election needs the name of a Lease; name it for the operator, such as guestbook.example.com
        the identity of a contender is empty; leave it out to get a unique one
        a lease duration of 15.5s cannot be stored; use whole seconds, at least 1
        a lease duration of 0ns cannot be stored; use whole seconds, at least 1
        a renew deadline of 15s is too long for a lease duration of 15s; use at most 14.7s, so that a leader stops before others take over although their clocks drift
        a retry period of 9s does not fit a renew deadline of 10s; use more than 0, and less than 8.333333333s, so that a renewal can be tried again
        a retry period of 0ns does not fit a renew deadline of 10s; use more than 0, and less than 8.333333333s, so that a renewal can be tried again
        ");
    }

    #[test]
    fn the_longest_deadline_that_is_named_is_accepted() {
        let options = ElectionOptions { renew_deadline: Duration::from_millis(14_700), ..options() };
        assert!(options.settle(&mut fastrand::Rng::with_seed(1)).is_ok());
    }

    #[test]
    fn a_pod_contends_in_its_own_namespace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "operators\n").unwrap();
        assert_eq!(namespace_in(file.path()).unwrap(), "operators");

        std::fs::write(file.path(), "\n").unwrap();
        assert!(namespace_in(file.path()).is_err());
        let error = namespace_in(Path::new("no/such/file")).map_err(ElectionOptionsError::Namespace);
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "not running in a cluster, so set the namespace of the leader election Lease");
    }

    #[test]
    fn an_identity_is_the_hostname_and_a_random_uuid() {
        let identity = unique_identity(&mut fastrand::Rng::with_seed(1));
        let (host, uuid) = identity.rsplit_once('_').unwrap();
        assert_eq!(host, hostname());
        let lengths: Vec<_> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&uuid[14..15], "4", "version 4: {uuid}");
        assert!("89ab".contains(&uuid[19..20]), "variant 1: {uuid}");
        assert_ne!(identity, unique_identity(&mut fastrand::Rng::with_seed(2)));
    }
}
