//! Options of leader election.
//!
//! [`LeaderElectionOptions::settle`] validates them. The resulting [`Settings`] satisfy all assumptions of the proof in
//! [`fence`](crate::fence). The defaults are client-go's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The file with the namespace of the pod.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The file with the hostname on Linux.
const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";

/// A standby waits between 1 and 1 + 1.2 retry periods between attempts, as in client-go.
pub(crate) const JITTER_FACTOR: f64 = 1.2;

/// Options of leader election.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::LeaderElectionOptions;
///
/// let options = LeaderElectionOptions {
///     namespace: Some("operators".to_owned()),
///     lease_duration: Duration::from_secs(60),
///     renew_deadline: Duration::from_secs(40),
///     ..LeaderElectionOptions::new("guestbook.example.com")
/// };
/// assert_eq!(options.retry_period, Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElectionOptions {
    /// The namespace of the Lease. Defaults to the namespace of the pod.
    pub namespace: Option<String>,
    /// The name of the Lease (the leader election ID in controller-runtime).
    pub name: String,
    /// The identity of this replica. Must be unique per process. Defaults to `hostname_uuid`.
    pub identity: Option<String>,
    /// How long standby replicas wait after the last observed renewal before they acquire the Lease; whole seconds, as
    /// stored in the Lease.
    pub lease_duration: Duration,
    /// How long the leader tries to renew the Lease before it gives up. Also how long its fence stays open after the
    /// last successful renewal was sent.
    pub renew_deadline: Duration,
    /// The delay between attempts.
    pub retry_period: Duration,
    /// Whether to release the Lease on cancellation, so that the next leader does not wait until it expires.
    ///
    /// Writes that do not go through a [`Client`](crate::Client) must have finished by then.
    pub release_on_cancel: bool,
    /// Labels to add to the Lease.
    pub labels: BTreeMap<String, String>,
}

impl LeaderElectionOptions {
    /// client-go's defaults (15 s, 10 s and 2 s), for a Lease in the pod's namespace that is released on shutdown.
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

    /// Applies defaults and validates.
    pub(super) fn settle(self, rng: &mut fastrand::Rng) -> Result<Settings, LeaderElectionOptionsError> {
        use LeaderElectionOptionsError as Error;

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
            None => pod_namespace().map_err(LeaderElectionOptionsError::Namespace)?,
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

/// Invalid leader election options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderElectionOptionsError {
    /// The name of the Lease is empty.
    #[error("leader election needs a Lease name; set one such as guestbook.example.com")]
    Name,
    /// The identity is empty.
    #[error("leader election identity is empty; leave it unset to generate a unique one")]
    Identity,
    /// The lease duration is not a positive number of whole seconds.
    #[error("invalid lease duration {lease_duration:?}: must be whole seconds, at least 1")]
    LeaseDuration {
        /// The configured lease duration.
        lease_duration: Duration,
    },
    /// The renew deadline is too close to the lease duration.
    #[error(
        "renew deadline {renew_deadline:?} is too long for lease duration {lease_duration:?}: \
         must be at most {:?}, so that the leader stops before its Lease expires despite clock drift",
        longest_renew_deadline(*lease_duration)
    )]
    RenewDeadline {
        /// The configured renew deadline.
        renew_deadline: Duration,
        /// The configured lease duration.
        lease_duration: Duration,
    },
    /// The retry period leaves no time for a second attempt.
    #[error(
        "invalid retry period {retry_period:?} for renew deadline {renew_deadline:?}: \
         must be greater than 0 and less than {:?}, so that a failed renewal can be retried",
        renew_deadline.div_f64(JITTER_FACTOR)
    )]
    RetryPeriod {
        /// The configured retry period.
        retry_period: Duration,
        /// The configured renew deadline.
        renew_deadline: Duration,
    },
    /// The namespace of the Lease is unknown outside of a pod.
    #[error("not running in a cluster: set the leader election namespace")]
    Namespace(#[source] std::io::Error),
}

/// Validated options without gaps.
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

/// Clocks may drift by 1 % each, one fast and one slow.
fn longest_renew_deadline(lease_duration: Duration) -> Duration {
    lease_duration / 100 * 98
}

/// The namespace of the pod that this process runs in.
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

/// `hostname_uuid`, as in controller-runtime. The hostname is for readability.
fn unique_identity(rng: &mut fastrand::Rng) -> String {
    // UUID version 4, variant 1 (RFC 9562).
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

/// The name of this machine, or of the Pod.
pub(crate) fn hostname() -> String {
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

    fn options() -> LeaderElectionOptions {
        LeaderElectionOptions { namespace: Some("default".to_owned()), ..LeaderElectionOptions::new("lock") }
    }

    fn refusal(options: LeaderElectionOptions) -> String {
        options.settle(&mut fastrand::Rng::with_seed(1)).expect_err("the options are invalid").to_string()
    }

    #[test]
    fn the_defaults_are_those_of_client_go() {
        let settings = options().settle(&mut fastrand::Rng::with_seed(1)).unwrap();
        assert_eq!(settings.lease_seconds, 15);
        assert_eq!((settings.renew_deadline.as_secs(), settings.retry_period.as_secs()), (10, 2));
    }

    #[test]
    fn an_error_says_what_to_do() {
        let ms = Duration::from_millis;
        let refusals = [
            LeaderElectionOptions { name: String::new(), ..options() },
            LeaderElectionOptions { identity: Some(String::new()), ..options() },
            LeaderElectionOptions { lease_duration: ms(15_500), ..options() },
            LeaderElectionOptions { lease_duration: ms(0), ..options() },
            LeaderElectionOptions { renew_deadline: ms(15_000), ..options() },
            LeaderElectionOptions { retry_period: ms(9_000), ..options() },
            LeaderElectionOptions { retry_period: ms(0), ..options() },
        ]
        .map(refusal)
        .join("\n");
        insta::assert_snapshot!(refusals, @r"
        leader election needs a Lease name; set one such as guestbook.example.com
        leader election identity is empty; leave it unset to generate a unique one
        invalid lease duration 15.5s: must be whole seconds, at least 1
        invalid lease duration 0ns: must be whole seconds, at least 1
        renew deadline 15s is too long for lease duration 15s: must be at most 14.7s, so that the leader stops before its Lease expires despite clock drift
        invalid retry period 9s for renew deadline 10s: must be greater than 0 and less than 8.333333333s, so that a failed renewal can be retried
        invalid retry period 0ns for renew deadline 10s: must be greater than 0 and less than 8.333333333s, so that a failed renewal can be retried
        ");
    }

    #[test]
    fn the_longest_renew_deadline_that_the_error_names_is_accepted() {
        let options = LeaderElectionOptions { renew_deadline: Duration::from_millis(14_700), ..options() };
        assert!(options.settle(&mut fastrand::Rng::with_seed(1)).is_ok());
    }

    #[test]
    fn the_lease_namespace_defaults_to_the_pods() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "operators\n").unwrap();
        assert_eq!(namespace_in(file.path()).unwrap(), "operators");

        std::fs::write(file.path(), "\n").unwrap();
        assert!(namespace_in(file.path()).is_err());
        let error = namespace_in(Path::new("no/such/file")).map_err(LeaderElectionOptionsError::Namespace);
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "not running in a cluster: set the leader election namespace");
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
