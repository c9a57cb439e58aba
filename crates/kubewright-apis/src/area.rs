//! Which family of rules a built-in kind belongs to.

use kubewright_apimachinery::gvk::Gvk;

/// Families of built-in kinds whose rules stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Pod, PodTemplate, Node.
    Pods,
    /// apps, batch, autoscaling, policy and ReplicationController.
    Workloads,
    /// Service, Endpoints and everything of networking and discovery.
    Services,
    /// All the rest.
    Misc,
}

/// The family of a built-in kind.
pub(crate) fn area(gvk: Gvk<'_>) -> Area {
    match (gvk.group, gvk.kind) {
        ("", "Pod" | "PodTemplate" | "Node" | "Binding") => Area::Pods,
        ("", "ReplicationController") | ("apps" | "batch" | "autoscaling" | "policy", _) => Area::Workloads,
        ("", "Service" | "Endpoints") | ("networking.k8s.io" | "discovery.k8s.io", _) => Area::Services,
        _ => Area::Misc,
    }
}
