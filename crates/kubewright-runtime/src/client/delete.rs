//! How objects are deleted.

use serde::Serialize;

/// How an object is deleted.
///
/// ```
/// use kubewright_runtime::Delete;
///
/// let gently = Delete::foreground().grace_period(30);
/// ```
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delete {
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<Preconditions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) dry_run: Vec<&'static str>,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

impl Delete {
    /// As the kind is deleted by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The object goes now, its dependents after it.
    pub fn background() -> Self {
        Self { propagation_policy: Some("Background"), ..Self::default() }
    }

    /// The dependents go first.
    pub fn foreground() -> Self {
        Self { propagation_policy: Some("Foreground"), ..Self::default() }
    }

    /// The dependents stay.
    pub fn orphan() -> Self {
        Self { propagation_policy: Some("Orphan"), ..Self::default() }
    }

    /// How many seconds the object has to end.
    #[must_use]
    pub fn grace_period(mut self, seconds: u32) -> Self {
        self.grace_period_seconds = Some(seconds);
        self
    }

    /// Only if the object still is the one with this uid.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.get_or_insert_default().uid = Some(uid.into());
        self
    }

    /// Only if the object still is at this resourceVersion.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.preconditions.get_or_insert_default().resource_version = Some(version.into());
        self
    }
}
