//! The permissions of the manager's ServiceAccount: the rules of the roles that are bound to it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::delivery::rendered::{Object, Rendered};

/// The permissions of an account, and the objects that grant them.
#[derive(Debug)]
pub(super) struct Permissions {
    account: String,
    /// Rules in the operator's namespace.
    namespaced: Vec<Value>,
    /// Rules in all namespaces.
    cluster: Vec<Value>,
    objects: BTreeSet<String>,
}

impl Permissions {
    pub(super) fn of(objects: &Rendered, manager: &Object) -> Self {
        let account = manager.value().pointer("/spec/template/spec/serviceAccountName");
        let account = account.and_then(Value::as_str).unwrap_or("default").to_owned();
        let mut found = Self {
            objects: BTreeSet::new(),
            namespaced: Vec::new(),
            cluster: Vec::new(),
            account: account.clone(),
        };
        let is_account = |object: &&Object| object.kind() == "ServiceAccount" && object.name() == account;
        found.objects.extend(objects.objects.iter().filter(is_account).map(Object::id));
        for binding in objects.objects.iter().filter(|object| is_bound_to(object, &account, manager)) {
            let role = &binding.value()["roleRef"];
            let role = objects.objects.iter().find(|object| {
                role["kind"] == object.kind()
                    && role["name"] == object.name()
                    && (object.namespace().is_none() || object.namespace() == binding.namespace())
            });
            let Some(role) = role else { continue };
            // OLM creates roles in the operator's namespace and for the cluster.
            if is_elsewhere(binding, manager) {
                continue;
            }
            found.objects.extend([binding.id(), role.id()]);
            let rules = role.value()["rules"].as_array().into_iter().flatten();
            let granted =
                if binding.kind() == "RoleBinding" { &mut found.namespaced } else { &mut found.cluster };
            for rule in rules {
                if !granted.contains(rule) {
                    granted.push(rule.clone());
                }
            }
        }
        found
    }

    /// Whether OLM creates an object from these permissions.
    pub(super) fn contains(&self, object: &Object) -> bool {
        self.objects.contains(&object.id())
    }

    /// The fields of an install strategy.
    pub(super) fn add_to(&self, spec: &mut Value) {
        for (field, rules) in [("clusterPermissions", &self.cluster), ("permissions", &self.namespaced)] {
            if !rules.is_empty() {
                spec[field] = json!([{ "serviceAccountName": self.account, "rules": rules }]);
            }
        }
    }
}

/// Whether an object is a Role or a binding in another namespace than the operator's, which OLM cannot create.
pub(super) fn is_elsewhere(object: &Object, manager: &Object) -> bool {
    matches!(object.kind(), "Role" | "RoleBinding") && object.namespace() != manager.namespace()
}

fn is_bound_to(object: &Object, account: &str, manager: &Object) -> bool {
    matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding")
        && object.value()["subjects"].as_array().into_iter().flatten().any(|subject| {
            subject["kind"] == "ServiceAccount"
                && subject["name"] == account
                && subject["namespace"].as_str() == manager.namespace()
        })
}
