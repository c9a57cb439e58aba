//! Options of a delete request.

use serde::Serialize;

/// Options of a delete request.
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
    /// The default deletion of the kind.
    pub fn new() -> Self {
        Self::default()
    }

    /// Deletes the object first, and its dependents in the background.
    pub fn background() -> Self {
        Self { propagation_policy: Some("Background"), ..Self::default() }
    }

    /// Deletes the dependents before the object.
    pub fn foreground() -> Self {
        Self { propagation_policy: Some("Foreground"), ..Self::default() }
    }

    /// Keeps the dependents.
    pub fn orphan() -> Self {
        Self { propagation_policy: Some("Orphan"), ..Self::default() }
    }

    /// The grace period in seconds.
    #[must_use]
    pub fn grace_period(mut self, seconds: u32) -> Self {
        self.grace_period_seconds = Some(seconds);
        self
    }

    /// Deletes the object only if it still has this uid.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.get_or_insert_default().uid = Some(uid.into());
        self
    }

    /// Deletes the object only if it still has this resourceVersion.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.preconditions.get_or_insert_default().resource_version = Some(version.into());
        self
    }
}
