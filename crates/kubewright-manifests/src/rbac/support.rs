//! Roles that do not come from rules, but from how an operator runs.
//!
//! They are files of their own in kubebuilder's `config/rbac`, with bindings of their own: leader election is granted in
//! the operator's namespace alone, and metrics are also read by others. `kubewright init` writes them once.

use serde_json::{Value, json};

use super::API_VERSION;
use crate::declarations::Declarations;

/// The Role in `leader_election_role.yaml`.
pub const LEADER_ELECTION_ROLE: &str = "leader-election-role";
/// The ClusterRole in `metrics_auth_role.yaml`.
pub const METRICS_AUTH_ROLE: &str = "metrics-auth-role";
/// The ClusterRole in `metrics_reader_role.yaml`.
pub const METRICS_READER: &str = "metrics-reader";

/// The Role in `webhook_certificates_role.yaml`.
pub const WEBHOOK_CERTIFICATES_ROLE: &str = "webhook-certificates-role";

/// The Secret with the webhook certificates, if the operator keeps them itself. Only this Secret can be read.
pub fn webhook_certificates_role(declarations: &Declarations) -> Option<Value> {
    let secret = format!("{}-webhook-cert", declarations.program);
    (declarations.webhook_certificates && declarations.serves_webhooks()).then(|| {
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

/// Leases, if the operator elects a leader. The namespace is kustomize's to set unless the
/// operator names one.
pub fn leader_election_role(declarations: &Declarations) -> Option<Value> {
    let mut metadata = json!({ "name": LEADER_ELECTION_ROLE });
    if let Some(namespace) = &declarations.leader_election_namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    declarations.leader_election.then(|| {
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
            ],
        })
    })
}

/// Asking the API server who somebody is and what they may do, if metrics are secured.
pub fn metrics_auth_role(declarations: &Declarations) -> Option<Value> {
    let review = |group: &str, resource: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": ["create"] });
    declarations.secure_metrics.then(|| {
        cluster_role(
            METRICS_AUTH_ROLE,
            &json!([
                review("authentication.k8s.io", "tokenreviews"),
                review("authorization.k8s.io", "subjectaccessreviews"),
            ]),
        )
    })
}

/// Reading secured metrics: for whoever scrapes them.
pub fn metrics_reader_role(declarations: &Declarations) -> Option<Value> {
    let rules = json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]);
    declarations.secure_metrics.then(|| cluster_role(METRICS_READER, &rules))
}

fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": rules,
    })
}
