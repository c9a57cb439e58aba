//! Fields that an endpoint ignores on writes.
//!
//! The main endpoint ignores the status and the status endpoint ignores everything else. Ignored fields must
//! not become owned.

use super::compare::Comparison;
use super::set::{Pattern, Set};

/// The fields that an endpoint ignores.
#[derive(Debug, Clone, Default)]
pub struct Reset {
    filter: Filter,
    /// Applies to this API version only; `None` means all versions.
    only: Option<String>,
}

#[derive(Debug, Clone, Default)]
enum Filter {
    #[default]
    Nothing,
    /// These fields and their children.
    These(Set),
    /// All fields except these and their children.
    AllBut(&'static [&'static [Pattern]]),
}

impl Reset {
    /// For an endpoint of a built-in kind. `subresource` is empty for the main endpoint.
    pub fn of_kind(group: &str, kind: &str, subresource: &str) -> Self {
        let filter = match (group, kind, subresource) {
            ("", "Pod", "ephemeralcontainers") => Filter::AllBut(EPHEMERAL_CONTAINERS),
            ("", "Pod", "resize") => Filter::AllBut(RESIZE),
            _ => match paths(group, kind, subresource) {
                [] => Filter::Nothing,
                paths => Filter::These(Set::of_fields(paths)),
            },
        };
        Self { filter, only: None }
    }

    /// For the main endpoint of a custom resource. With a status subresource it ignores the status.
    pub fn of_custom(api_version: &str, has_status: bool) -> Self {
        let filter = if has_status { Filter::These(Set::of_fields(STATUS)) } else { Filter::Nothing };
        Self { filter, only: Some(api_version.to_owned()) }
    }

    /// For the status endpoint of a custom resource.
    pub fn of_custom_status() -> Self {
        Self { filter: Filter::These(Set::of_fields(METADATA_AND_SPEC)), only: None }
    }

    pub(crate) fn filter(&self, api_version: &str, set: &mut Set) {
        if self.only.as_deref().is_some_and(|only| only != api_version) {
            return;
        }
        match &self.filter {
            Filter::Nothing => {}
            Filter::These(these) => {
                set.subtract_recursively(these);
            }
            Filter::AllBut(patterns) => set.keep_matching(patterns),
        }
    }

    pub(crate) fn filter_all(&self, api_version: &str, changes: &mut Comparison) {
        for set in changes.each_mut() {
            self.filter(api_version, set);
        }
    }
}

type Paths = &'static [&'static [&'static str]];

const STATUS: Paths = &[&["status"]];
const SPEC: Paths = &[&["spec"]];
const METADATA_AND_SPEC: Paths = &[&["metadata"], &["spec"]];

const EPHEMERAL_CONTAINERS: &[&[Pattern]] =
    &[&[Pattern::Field("spec"), Pattern::Field("ephemeralContainers")]];

const RESIZE: &[&[Pattern]] = &[
    &[Pattern::Field("spec"), Pattern::Field("containers"), Pattern::Any, Pattern::Field("resources")],
    &[Pattern::Field("spec"), Pattern::Field("containers"), Pattern::Any, Pattern::Field("resizePolicy")],
];

fn paths(group: &str, kind: &str, subresource: &str) -> Paths {
    match (group, kind, subresource) {
        ("apps", "Deployment", "status") => &[&["spec"], &["metadata", "labels"]],
        ("", "Pod", "status") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        ("certificates.k8s.io", "CertificateSigningRequest", "") => &[&["spec"], &["status"]],
        ("certificates.k8s.io", "CertificateSigningRequest", "status") => {
            &[&["spec"], &["status", "conditions"]]
        }
        ("certificates.k8s.io", "CertificateSigningRequest", "approval") => {
            &[&["spec"], &["status", "certificate"]]
        }
        // Upstream misspells the group here, so it ignores nothing.
        ("networking.k8s.io", "ServiceCIDR", _) => &[],
        (
            "storage.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "internal.apiserver.k8s.io"
            | "admissionregistration.k8s.io"
            | "apiregistration.k8s.io"
            | "resource.k8s.io"
            | "storagemigration.k8s.io",
            _,
            "status",
        ) => METADATA_AND_SPEC,
        (_, _, "status") => SPEC,
        ("", "Namespace", "finalize") => STATUS,
        (_, _, "") if has_status(group, kind) => STATUS,
        _ => &[],
    }
}

/// Whether the kind has a status subresource.
fn has_status(group: &str, kind: &str) -> bool {
    let kinds: &[&str] = match group {
        "" => &[
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "ReplicationController",
            "ResourceQuota",
            "Service",
        ],
        "apps" => &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
        "autoscaling" => &["HorizontalPodAutoscaler"],
        "batch" => &["CronJob", "Job"],
        "certificates.k8s.io" => &["CertificateSigningRequest", "PodCertificateRequest"],
        "networking.k8s.io" => &["Ingress"],
        "policy" => &["PodDisruptionBudget"],
        "storage.k8s.io" => &["VolumeAttachment"],
        "flowcontrol.apiserver.k8s.io" => &["FlowSchema", "PriorityLevelConfiguration"],
        "internal.apiserver.k8s.io" => &["StorageVersion"],
        "admissionregistration.k8s.io" => &["ValidatingAdmissionPolicy"],
        "apiregistration.k8s.io" => &["APIService"],
        "apiextensions.k8s.io" => &["CustomResourceDefinition"],
        "resource.k8s.io" => &["ResourceClaim"],
        "storagemigration.k8s.io" => &["StorageVersionMigration"],
        _ => &[],
    };
    kinds.contains(&kind)
}
