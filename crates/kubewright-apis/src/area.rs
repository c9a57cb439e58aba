//! Groups built-in kinds by the modules that implement them.

use kubewright_apimachinery::gvk::Gvk;

/// Families of built-in kinds with a common module of defaults, strategy and validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Pod, PodTemplate, Node.
    Pods,
    /// apps, batch, autoscaling, policy and ReplicationController.
    Workloads,
    /// Service, Endpoints and the kinds of networking.k8s.io and discovery.k8s.io.
    Services,
    /// All other kinds.
    Other,
}

pub(crate) fn area(gvk: Gvk<'_>) -> Area {
    match (gvk.group, gvk.kind) {
        ("", "Pod" | "PodTemplate" | "Node" | "Binding") => Area::Pods,
        ("", "ReplicationController") | ("apps" | "batch" | "autoscaling" | "policy", _) => Area::Workloads,
        ("", "Service" | "Endpoints") | ("networking.k8s.io" | "discovery.k8s.io", _) => Area::Services,
        _ => Area::Other,
    }
}
