//! Special cases of the registry for single kinds.

use kubewright_apimachinery::gvk::Gvk;

/// The default propagation policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GarbageCollection {
    Background,
    Orphan,
    /// Objects of this kind never have dependents.
    Unsupported,
}

/// Whether a PUT creates a missing object.
pub(crate) fn creates_on_update(gvk: Gvk<'_>) -> bool {
    matches!(
        (gvk.group, gvk.kind),
        ("", "LimitRange" | "Event" | "Service" | "Endpoints")
            | ("events.k8s.io", "Event")
            | ("coordination.k8s.io", "Lease")
            | ("node.k8s.io", "RuntimeClass")
            | ("rbac.authorization.k8s.io", _)
    )
}

/// Whether a PUT without a resourceVersion is allowed. Never for custom resources.
pub(crate) fn updates_unconditionally(gvk: Gvk<'_>) -> bool {
    let always_conditional = [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "flowcontrol.apiserver.k8s.io",
    ];
    let conditional = matches!(
        (gvk.group, gvk.kind),
        ("node.k8s.io", "RuntimeClass")
            | ("policy", "PodDisruptionBudget")
            | ("storage.k8s.io", "CSIDriver" | "CSIStorageCapacity" | "VolumeAttachment" | "CSINode")
    );
    !conditional && !always_conditional.contains(&gvk.group)
}

/// Whether a deletion returns the object instead of a Status.
pub(crate) fn returns_deleted(gvk: Gvk<'_>) -> bool {
    matches!(
        (gvk.group, gvk.kind),
        (
            "",
            "ResourceQuota"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "ServiceAccount"
                | "Namespace"
                | "Pod"
                | "Service"
                | "PodTemplate"
        ) | (
            "storage.k8s.io",
            "CSIDriver" | "StorageClass" | "VolumeAttachment" | "CSINode" | "VolumeAttributesClass"
        ) | ("resource.k8s.io", _)
    )
}

pub(crate) fn garbage_collection(gvk: Gvk<'_>) -> GarbageCollection {
    match (gvk.group, gvk.kind) {
        ("", "ReplicationController") | ("batch", "Job") => GarbageCollection::Orphan,
        ("" | "events.k8s.io", "Event") => GarbageCollection::Unsupported,
        _ => GarbageCollection::Background,
    }
}
