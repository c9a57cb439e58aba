//! System objects, which exist in every cluster or let the operator run, and are hidden by default.
//!
//! Pure. In doubt an object is shown.

use serde_json::Value;

/// The label of objects that `kubewright dev` applies so that the operator can run.
pub const LABEL: &str = "kubewright.dev/dev";

const NAMESPACES: &[&str] = &["kube-system", "kube-public", "kube-node-lease"];

/// Built-in API groups. All others are custom.
const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "metrics.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether objects of this group are custom resources.
pub fn is_custom(group: &str) -> bool {
    !BUILT_IN.contains(&group)
}

/// Whether this is a system object.
pub fn is_system_object(group: &str, kind: &str, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let label = |label: &str| metadata["labels"].get(label).and_then(Value::as_str);
    if NAMESPACES.contains(&namespace) {
        return true;
    }
    if is_setup(group, kind) && label(LABEL).is_some() {
        return true;
    }
    match (group, kind) {
        ("", "Namespace") => name == "default" || NAMESPACES.contains(&name),
        ("", "Service") => namespace == "default" && name == "kubernetes",
        ("", "ConfigMap") => name == "kube-root-ca.crt",
        ("", "ServiceAccount") => name == "default",
        ("discovery.k8s.io", "EndpointSlice") => {
            namespace == "default" && label("kubernetes.io/service-name") == Some("kubernetes")
        }
        ("rbac.authorization.k8s.io", _) => {
            label("kubernetes.io/bootstrapping").is_some() || name.starts_with("system:")
        }
        ("apiregistration.k8s.io", "APIService") => {
            label("kube-aggregator.kubernetes.io/automanaged").is_some()
        }
        ("scheduling.k8s.io", "PriorityClass") => name.starts_with("system-"),
        // Endpoints duplicate EndpointSlices and are deprecated.
        ("", "Endpoints")
        | ("coordination.k8s.io", "Lease" | "LeaseCandidate")
        | ("storage.k8s.io", "CSINode" | "CSIStorageCapacity")
        | ("networking.k8s.io", "ServiceCIDR" | "IPAddress")
        | ("flowcontrol.apiserver.k8s.io" | "internal.apiserver.k8s.io", _) => true,
        _ => false,
    }
}

/// Whether `kubewright dev` creates objects of this kind, so that the operator can run.
fn is_setup(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "Namespace" | "ServiceAccount")
            | ("rbac.authorization.k8s.io", _)
            | (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
            )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hidden(group: &str, kind: &str, metadata: &Value) -> bool {
        is_system_object(group, kind, &json!({ "metadata": metadata }))
    }

    #[test]
    fn objects_of_every_cluster_are_system_objects() {
        let rbac = "rbac.authorization.k8s.io";
        assert!(hidden("", "Namespace", &json!({ "name": "kube-system" })));
        assert!(hidden("", "Secret", &json!({ "name": "x", "namespace": "kube-system" })));
        assert!(hidden("", "Service", &json!({ "name": "kubernetes", "namespace": "default" })));
        assert!(hidden("", "ConfigMap", &json!({ "name": "kube-root-ca.crt", "namespace": "mine" })));
        assert!(hidden("coordination.k8s.io", "Lease", &json!({ "name": "node-1", "namespace": "mine" })));
        assert!(hidden(rbac, "ClusterRole", &json!({ "name": "system:node" })));
        let label = json!({ "name": "edit", "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" } });
        assert!(hidden(rbac, "ClusterRole", &label));
    }

    #[test]
    fn permissions_and_webhooks_that_dev_applies_are_system_objects() {
        let labeled =
            json!({ "name": "mine", "namespace": "default", "labels": { "kubewright.dev/dev": "shop" } });
        let other = json!({ "name": "mine", "namespace": "default", "labels": { "app": "shop" } });
        for (group, kind) in [
            ("", "Namespace"),
            ("", "ServiceAccount"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ] {
            assert!(hidden(group, kind, &labeled), "{kind}");
            assert!(!hidden(group, kind, &other), "{kind}");
        }
        assert!(!hidden("apiextensions.k8s.io", "CustomResourceDefinition", &labeled));
    }

    #[test]
    fn user_objects_are_not_system_objects() {
        assert!(!hidden("", "Namespace", &json!({ "name": "mine" })));
        assert!(!hidden("", "Service", &json!({ "name": "kubernetes", "namespace": "mine" })));
        assert!(!hidden("", "ConfigMap", &json!({ "name": "sample", "namespace": "default" })));
        assert!(!hidden(
            "rbac.authorization.k8s.io",
            "Role",
            &json!({ "name": "mine", "namespace": "default" })
        ));
        assert!(!hidden(
            "view.example.com",
            "MarkdownView",
            &json!({ "name": "sample", "namespace": "default" })
        ));
    }

    #[test]
    fn groups_that_are_not_built_in_are_custom() {
        assert!(is_custom("view.example.com") && is_custom("gateway.networking.k8s.io"));
        assert!(!is_custom("") && !is_custom("apps") && !is_custom("networking.k8s.io"));
    }
}
