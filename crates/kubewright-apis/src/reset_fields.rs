//! Fields that the endpoints of built-in kinds ignore on writes.
//!
//! The main endpoint ignores the status and the status endpoint ignores the spec. A field that an endpoint ignores gets
//! no field manager.

type Paths = &'static [&'static [&'static str]];

/// The fields that an endpoint ignores. Each path includes its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetFields {
    /// These fields.
    These(Paths),
    /// All fields except these. `*` stands for any item of a list.
    AllBut(Paths),
}

impl ResetFields {
    /// For an endpoint of a built-in kind. `subresource` is empty for the main endpoint.
    pub fn of(group: &str, kind: &str, subresource: &str) -> Self {
        match (group, kind, subresource) {
            ("", "Pod", "ephemeralcontainers") => Self::AllBut(&[&["spec", "ephemeralContainers"]]),
            ("", "Pod", "resize") => Self::AllBut(RESIZE),
            _ => Self::These(paths(group, kind, subresource)),
        }
    }
}

const STATUS: Paths = &[&["status"]];
const SPEC: Paths = &[&["spec"]];
const METADATA_AND_SPEC: Paths = &[&["metadata"], &["spec"]];
const RESIZE: Paths =
    &[&["spec", "containers", "*", "resources"], &["spec", "containers", "*", "resizePolicy"]];

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
