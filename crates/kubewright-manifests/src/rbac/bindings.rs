//! Binds the roles of an operator to a ServiceAccount, for `dev` and tests.
//!
//! The objects grant the same permissions as `config/rbac`, without kustomize. Names have a prefix, so that
//! they do not conflict with a deployed operator.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{API_VERSION, leader_election_role, metrics_auth_role, roles, rules, webhook_certificates_role};
use crate::inventory::Inventory;

/// The ServiceAccount of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The namespace of the ServiceAccount and of the leader election Lease.
    pub namespace: String,
    /// The prefix of all object names. The ServiceAccount is `<prefix>controller-manager`.
    pub prefix: String,
}

impl Account {
    /// The account with kubebuilder's names: `<name>-system/<name>-controller-manager`.
    pub fn of(name: &str) -> Self {
        // Names of managers may contain characters that are invalid in object names.
        let name: String = name
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' })
            .collect();
        let name = name.trim_matches('-');
        let name = if name.is_empty() { "operator" } else { name };
        Self { namespace: format!("{name}-system"), prefix: format!("{name}-") }
    }

    /// The name of the ServiceAccount.
    pub fn name(&self) -> String {
        format!("{}controller-manager", self.prefix)
    }

    /// The user name of the ServiceAccount.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name())
    }
}

/// Namespaces, the ServiceAccount, the generated roles and their bindings, in creation order.
///
/// Namespaced roles and roles with a `role_name` are bound too. In a project, the author binds those.
pub fn bound(inventory: &Inventory, account: &Account) -> Vec<Value> {
    let mut granted = roles(&rules(inventory));
    granted.extend(leader_election_role(inventory));
    granted.extend(metrics_auth_role(inventory));
    granted.extend(webhook_certificates_role(inventory));
    let mut namespaces = BTreeSet::from([account.namespace.clone()]);
    let mut objects = Vec::new();
    for mut role in granted {
        let name = format!("{}{}", account.prefix, role["metadata"]["name"].as_str().unwrap_or_default());
        role["metadata"]["name"] = name.as_str().into();
        let is_namespaced = role["kind"] == "Role";
        if is_namespaced && role["metadata"]["namespace"].is_null() {
            role["metadata"]["namespace"] = account.namespace.as_str().into();
        }
        namespaces.extend(role["metadata"]["namespace"].as_str().map(str::to_owned));
        let binding = json!({
            "apiVersion": API_VERSION,
            "kind": if is_namespaced { "RoleBinding" } else { "ClusterRoleBinding" },
            "metadata": role["metadata"],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": name },
            "subjects": [
                { "kind": "ServiceAccount", "name": account.name(), "namespace": account.namespace },
            ],
        });
        objects.extend([role, binding]);
    }
    let namespace =
        |name: &String| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let mut all: Vec<Value> = namespaces.iter().map(namespace).collect();
    all.push(json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": account.name(), "namespace": account.namespace },
    }));
    all.extend(objects);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::{Declared, Rule};

    #[test]
    fn every_role_is_bound_to_the_account() {
        let mut inventory = Inventory::new("shop");
        inventory.leader_election = true;
        inventory.secure_metrics = true;
        inventory.declared = ["", "infra"]
            .map(|namespace| {
                Declared::Rule(Rule {
                    groups: vec![String::new()],
                    resources: vec!["pods".into()],
                    verbs: vec!["get".into()],
                    namespace: namespace.into(),
                    ..Rule::default()
                })
            })
            .into();
        let account = Account::of("Shop.example");
        assert_eq!(
            account.user(),
            "system:serviceaccount:shop-example-system:shop-example-controller-manager"
        );
        let told: Vec<String> = bound(&inventory, &account)
            .iter()
            .map(|object| {
                let metadata = &object["metadata"];
                let namespace = metadata["namespace"].as_str().unwrap_or("-");
                format!(
                    "{} {namespace}/{}",
                    object["kind"].as_str().unwrap(),
                    metadata["name"].as_str().unwrap()
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        Namespace -/infra
        Namespace -/shop-example-system
        ServiceAccount shop-example-system/shop-example-controller-manager
        ClusterRole -/shop-example-manager-role
        ClusterRoleBinding -/shop-example-manager-role
        Role infra/shop-example-manager-role
        RoleBinding infra/shop-example-manager-role
        Role shop-example-system/shop-example-leader-election-role
        RoleBinding shop-example-system/shop-example-leader-election-role
        ClusterRole -/shop-example-metrics-auth-role
        ClusterRoleBinding -/shop-example-metrics-auth-role
        ");
    }
}
