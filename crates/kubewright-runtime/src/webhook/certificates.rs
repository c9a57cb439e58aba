//! The certificates of the webhook server and their rotation.
//!
//! Owns [`Material`], the content of the one Secret that all replicas share, and [`next`], the decision about the next
//! step. Both are pure: the caller passes the time and what the targets trust, and [`Rotator`] carries the step out.
//! Targets are the webhook configurations, CRDs and APIServices whose `caBundle` must contain the CA.
//!
//! The invariant: every leaf that a replica may still serve is signed by a CA that every target trusts. A CA is therefore
//! replaced in three steps, each of them persisted before the next one starts, so that a crash resumes where it was:
//!
//! 1. [`Step::Announce`] adds the next CA to the Secret, and [`Step::Inject`] adds it to the bundle of every target.
//! 2. [`Step::Switch`] signs a leaf with the next CA once all targets trust it, and keeps the previous CA in the bundle.
//! 3. [`Step::Retire`] drops the previous CA when the last leaf that it signed has expired.

mod bundle;
mod issue;
mod metrics;
mod probe;
mod rotator;
mod secret;
mod targets;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use issue::IssueError;
pub use metrics::RotatorMetrics;
pub use rotator::{Readiness, Rotator, RotatorOptions};
pub use secret::SecretError;
pub use targets::{ExpectedTargets, Service};

/// How far certificates are dated back, for clocks that disagree.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);
/// How long all targets must have trusted the next CA before its leaf is served. API servers read webhook
/// configurations through informers and see a change with a delay.
const PROPAGATION: SignedDuration = SignedDuration::from_secs(60);
/// The longest time between two checks. Timers stop while a machine is suspended; the wall clock does not.
const RECHECK: SignedDuration = SignedDuration::from_mins(5);

/// How long new certificates are valid. They are renewed at two thirds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of a CA: ten years.
    pub ca: SignedDuration,
    /// Of a serving certificate: 90 days. It must be at least one hour: certificates are dated back by one hour, and a
    /// renewal at two thirds of the whole period must not be due at once.
    pub leaf: SignedDuration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { ca: SignedDuration::from_hours(10 * 365 * 24), leaf: SignedDuration::from_hours(90 * 24) }
    }
}

/// The validity period of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// `notBefore`.
    pub from: Timestamp,
    /// `notAfter`.
    pub until: Timestamp,
}

impl Validity {
    /// Two thirds of the lifetime, which leaves one third for retries.
    fn renew_at(self) -> Timestamp {
        let lifetime = self.until.duration_since(self.from);
        self.from.saturating_add(lifetime * 2 / 3).unwrap_or(self.until)
    }
}

/// A CA with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The private key, as PEM.
    pub key: String,
    /// When it is valid.
    pub validity: Validity,
}

/// A CA that no longer signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retired {
    /// The certificate, as PEM.
    pub certificate: String,
    /// When the last leaf that it signed expires.
    pub needed_until: Timestamp,
}

/// The certificate that replicas serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The private key, as PEM.
    pub key: String,
    /// When it is valid.
    pub validity: Validity,
    /// The DNS names that it is for.
    pub names: Vec<String>,
}

/// Everything that the replicas share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Material {
    /// The CA that signed the leaf.
    pub ca: Authority,
    /// The CA that is announced and not used yet.
    pub next: Option<Authority>,
    /// The previous CA, while leaves signed by it are valid.
    pub previous: Option<Retired>,
    /// The certificate that is served.
    pub leaf: Leaf,
}

impl Material {
    /// New certificates for these DNS names, with the default lifetimes.
    pub fn create(names: &[String], now: Timestamp) -> Result<Self, IssueError> {
        Self::create_for(names, Lifetimes::default(), now)
    }

    fn create_for(names: &[String], lifetimes: Lifetimes, now: Timestamp) -> Result<Self, IssueError> {
        let ca = Authority::issue(lifetimes.ca, now)?;
        let leaf = ca.sign(names, lifetimes.leaf, now)?;
        Ok(Self { ca, next: None, previous: None, leaf })
    }

    /// What every target must trust: CA certificates only, never a leaf. They are in the order in which they were issued,
    /// so that [`Step::Switch`] does not change the bundle.
    pub fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|next| next.certificate.as_str());
        let previous = self.previous.as_ref().map(|previous| previous.certificate.as_str());
        [previous, Some(self.ca.certificate.as_str()), next].into_iter().flatten().collect()
    }

    /// The material after a step. Steps that change nothing in the Secret return it as it is.
    pub fn after(
        &self,
        step: &Step,
        names: &[String],
        lifetimes: Lifetimes,
        now: Timestamp,
    ) -> Result<Self, IssueError> {
        let mut material = self.clone();
        match step {
            Step::Create => return Self::create_for(names, lifetimes, now),
            Step::Renew => {
                let mut names = names.to_vec();
                // During a rollout, replicas of the old and the new version may want different names. Before the leaf is
                // due, names are only added, so that the replicas do not replace each other's leaf.
                if now < self.leaf.validity.renew_at() {
                    let kept = self.leaf.names.iter().filter(|name| !names.contains(name));
                    let kept: Vec<String> = kept.cloned().collect();
                    names.extend(kept);
                }
                material.leaf = self.ca.sign(&names, lifetimes.leaf, now)?;
            }
            Step::Announce => material.next = Some(Authority::issue(lifetimes.ca, now)?),
            Step::Switch => {
                if let Some(next) = material.next.take() {
                    let needed_until = self.leaf.validity.until;
                    material.previous =
                        Some(Retired { certificate: self.ca.certificate.clone(), needed_until });
                    material.leaf = next.sign(names, lifetimes.leaf, now)?;
                    material.ca = next;
                }
            }
            Step::Retire => material.previous = None,
            Step::Inject | Step::Wait(_) => {}
        }
        Ok(material)
    }
}

/// The next step of the rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// There are no certificates: create the Secret, unless another replica has done so.
    Create,
    /// The leaf is due for renewal, or lacks a DNS name: sign a new one with the same CA.
    Renew,
    /// A target does not have the bundle: apply it, and read the target back.
    Inject,
    /// The CA is due for renewal: add its successor to the Secret.
    Announce,
    /// All targets trust the next CA: sign a leaf with it.
    Switch,
    /// No leaf of the previous CA is valid: drop it.
    Retire,
    /// Nothing, until this time or a change.
    Wait(Timestamp),
}

impl Step {
    /// Name of the step in metrics and events.
    fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Renew => "renew",
            Self::Inject => "inject",
            Self::Announce => "announce",
            Self::Switch => "switch",
            Self::Retire => "retire",
            Self::Wait(_) => "wait",
        }
    }
}

/// What the targets trust, as read from the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Targets {
    /// The bundle of at least one target lacks a certificate of [`Material::bundle`], or has a retired CA.
    Differ,
    /// Every target has had all certificates of the bundle since this time.
    TrustSince(Timestamp),
}

/// Decides the next step.
///
/// A leaf is renewed before anything else: it needs no change of the targets, so it works while they cannot be written.
pub fn next(material: Option<&Material>, names: &[String], targets: Targets, now: Timestamp) -> Step {
    let Some(material) = material else { return Step::Create };
    let leaf = &material.leaf;
    let has_names = names.iter().all(|name| leaf.names.contains(name));
    if !has_names || now >= leaf.validity.renew_at() && leaf.validity.until < material.ca.validity.until {
        return Step::Renew;
    }
    let Targets::TrustSince(since) = targets else { return Step::Inject };
    let propagated = since.saturating_add(PROPAGATION).unwrap_or(since);
    if material.next.is_some() {
        return if now >= propagated { Step::Switch } else { Step::Wait(propagated) };
    }
    if let Some(previous) = &material.previous {
        if now >= previous.needed_until {
            return Step::Retire;
        }
    } else if now >= material.ca.validity.renew_at() {
        return Step::Announce;
    }
    Step::Wait(now.saturating_add(RECHECK).unwrap_or(now))
}
