//! How the registry treats single kinds, where it does not treat all alike.

use kubewright_apimachinery::gvk::Gvk;

/// What becomes of dependents if the request does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GarbageCollection {
    Background,
    Orphan,
    /// Objects of this kind never own any.
    Unsupported,
}

/// A PUT to a name that is not there creates the object.
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

/// A PUT without a resourceVersion replaces whatever is there; a custom resource never.
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

/// A deletion answers with the object rather than with a Status.
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
