//! The group versions in which upstream registers `DeleteOptions` and `WatchEvent`.
//!
//! Every group registers these two kinds, so their schemas list many group versions.
//! [`crate::facts::resources`] has the served ones.

use serde_json::{Value, json};

/// The group versions that a document lists for these kinds.
#[derive(Clone, Copy)]
pub(super) enum CrossRegistered {
    /// Core and the document's own.
    Document { group: &'static str, version: &'static str },
    /// All that client libraries register: documents of custom resources.
    Clients,
    /// All that the server registers: the v2 document.
    Everywhere,
}

impl CrossRegistered {
    /// The value of `x-kubernetes-group-version-kind`, sorted by group and version.
    pub(super) fn kinds(self, kind: &str) -> Value {
        let of = |group: &str, version: &str| json!({ "group": group, "version": version, "kind": kind });
        match self {
            Self::Document { group: "", version: "v1" } => json!([of("", "v1")]),
            Self::Document { group, version } => json!([of("", "v1"), of(group, version)]),
            Self::Clients => known(|group| !SERVER_ONLY.contains(&group), of),
            Self::Everywhere => known(|_| true, of),
        }
    }
}

fn known(wanted: impl Fn(&str) -> bool, of: impl Fn(&str, &str) -> Value) -> Value {
    let groups = KNOWN.iter().filter(|(group, _)| wanted(group));
    groups.flat_map(|(group, versions)| versions.iter().map(|version| of(group, version))).collect()
}

/// Groups without generated client types.
const SERVER_ONLY: [&str; 4] =
    ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];

/// From the registry package that `facts/types.txt` is generated from.
const KNOWN: [(&str, &[&str]); 26] = [
    ("", &["v1"]),
    ("admission.k8s.io", &["v1", "v1beta1"]),
    ("admissionregistration.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1", "v1beta1", "v1beta2", "v1beta3"]),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];
