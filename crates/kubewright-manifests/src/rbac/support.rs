//! Roles for leader election, metrics and the debug page.
//!
//! As in kubebuilder's `config/rbac`, they are separate files with separate bindings: leader election is only
//! granted in the operator's namespace, and other clients read metrics and the debug page. `kubewright init` writes them once.

use serde_json::{Value, json};

use super::API_VERSION;
use crate::inventory::Inventory;

/// The Role in `leader_election_role.yaml`.
pub const LEADER_ELECTION_ROLE: &str = "leader-election-role";
/// The ClusterRole in `metrics_auth_role.yaml`.
pub const METRICS_AUTH_ROLE: &str = "metrics-auth-role";
/// The ClusterRole in `metrics_reader_role.yaml`.
pub const METRICS_READER: &str = "metrics-reader";
/// The ClusterRole in `debug_page_reader_role.yaml`.
pub const DEBUG_PAGE_READER: &str = "debug-page-reader";

/// The Role in `webhook_certificates_role.yaml`.
pub const WEBHOOK_CERTIFICATES_ROLE: &str = "webhook-certificates-role";

/// The Secret with the webhook certificates, if the operator keeps them itself. Only this Secret can be read.
pub fn webhook_certificates_role(inventory: &Inventory) -> Option<Value> {
    let secret = format!("{}-webhook-cert", inventory.program);
    (inventory.webhook_certificates && inventory.serves_webhooks()).then(|| {
        json!({
            "apiVersion": API_VERSION,
            "kind": "Role",
            "metadata": { "name": WEBHOOK_CERTIFICATES_ROLE },
            "rules": [
                { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
                {
                    "apiGroups": [""],
                    "resourceNames": [secret],
                    "resources": ["secrets"],
                    "verbs": ["get", "list", "update", "watch"],
                },
            ],
        })
    })
}

/// The Role for Leases and the Events about them, if the operator uses leader election. kustomize sets the namespace
/// unless the operator specifies one.
pub fn leader_election_role(inventory: &Inventory) -> Option<Value> {
    let mut metadata = json!({ "name": LEADER_ELECTION_ROLE });
    if let Some(namespace) = &inventory.leader_election_namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    inventory.leader_election.then(|| {
        json!({
            "apiVersion": API_VERSION,
            "kind": "Role",
            "metadata": metadata,
            "rules": [
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resources": ["leases"],
                    "verbs": ["create", "get", "update"],
                },
                {
                    "apiGroups": ["events.k8s.io"],
                    "resources": ["events"],
                    "verbs": ["create", "patch"],
                },
            ],
        })
    })
}

/// The ClusterRole for TokenReviews and SubjectAccessReviews, if metrics are secured.
pub fn metrics_auth_role(inventory: &Inventory) -> Option<Value> {
    let review = |group: &str, resource: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": ["create"] });
    inventory.secure_metrics.then(|| {
        cluster_role(
            METRICS_AUTH_ROLE,
            &json!([
                review("authentication.k8s.io", "tokenreviews"),
                review("authorization.k8s.io", "subjectaccessreviews"),
            ]),
        )
    })
}

/// The ClusterRole for clients that scrape secured metrics.
pub fn metrics_reader_role(inventory: &Inventory) -> Option<Value> {
    let rules = json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]);
    inventory.secure_metrics.then(|| cluster_role(METRICS_READER, &rules))
}

/// The ClusterRole for users who read the debug page, which is secured like the metrics.
pub fn debug_page_reader_role(inventory: &Inventory) -> Option<Value> {
    let rules = json!([{ "nonResourceURLs": ["/debug/page"], "verbs": ["get"] }]);
    inventory.secure_metrics.then(|| cluster_role(DEBUG_PAGE_READER, &rules))
}

fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": rules,
    })
}
