//! Roles in other namespaces than the operator's.
//!
//! `namespace` in `config/default` moves every object to the operator's namespace. For these Roles, which the code declares
//! with a namespace, transformers that run later restore it. kustomize identifies objects by kind, name and namespace, so
//! the names must differ even if all namespaces are equal.

use serde_json::{Value, json};

use super::{API_VERSION, MANAGER_ROLE};

/// kubebuilder's names of the operator's ServiceAccount and its namespace, without the prefix of a project.
const ACCOUNT: &str = "controller-manager";
const NAMESPACE: &str = "system";

/// Roles as files of a project.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// All roles, with bindings of those in other namespaces.
    pub(crate) objects: Vec<Value>,
    /// Transformers of kustomize that restore namespaces; empty if all roles are in the operator's namespace.
    pub(crate) transformers: Vec<Value>,
}

impl Placed {
    /// `own` are the namespaces that the operator watches. A namespaced operator runs in the only one. Roles with a name of
    /// their own keep it, and the user binds them.
    pub(crate) fn new(roles: Vec<Value>, own: &[String]) -> Self {
        let mut placed = Self::default();
        for mut role in roles {
            let text =
                |pointer: &str| role.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
            if namespace.is_empty() || own == [namespace.as_str()] {
                placed.objects.push(role);
                continue;
            }
            if name != MANAGER_ROLE {
                placed.restore("Role", &name, &namespace);
                placed.objects.push(role);
                continue;
            }
            let name = format!("{name}-{namespace}");
            role["metadata"]["name"] = name.as_str().into();
            placed.objects.extend([role, binding(&name, &namespace)]);
            placed.restore("Role", &name, &namespace);
            placed.restore("RoleBinding", &name, &namespace);
            placed.transformers.push(subject(&name));
        }
        placed
    }

    fn restore(&mut self, kind: &str, name: &str, namespace: &str) {
        let patch = json!([{ "op": "replace", "path": "/metadata/namespace", "value": namespace }]);
        self.transformers.push(json!({
            "apiVersion": "builtin",
            "kind": "PatchTransformer",
            "metadata": { "name": format!("{}-{name}", kind.to_lowercase()) },
            "patch": patch.to_string(),
            "target": { "group": "rbac.authorization.k8s.io", "kind": kind, "name": name },
        }));
    }
}

fn binding(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "RoleBinding",
        "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }],
    })
}

/// The final name and namespace of the account in a binding. kustomize does not find them by itself, because the
/// ServiceAccount is in another namespace than the binding.
fn subject(name: &str) -> Value {
    let replacements: Vec<Value> = ["name", "namespace"]
        .iter()
        .map(|field| {
            json!({
                "source": { "kind": "ServiceAccount", "name": ACCOUNT, "fieldPath": format!("metadata.{field}") },
                "targets": [{
                    "select": { "kind": "RoleBinding", "name": name },
                    "fieldPaths": [format!("subjects.0.{field}")],
                }],
            })
        })
        .collect();
    json!({
        "apiVersion": "builtin",
        "kind": "ReplacementTransformer",
        "metadata": { "name": format!("subject-{name}") },
        "replacements": replacements,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, namespace: &str) -> Value {
        json!({ "kind": "Role", "metadata": { "name": name, "namespace": namespace }, "rules": [] })
    }

    fn names(values: &[Value]) -> Vec<String> {
        let name = |value: &Value| {
            let metadata = &value["metadata"];
            format!("{} {}", value["kind"].as_str().unwrap(), metadata["name"].as_str().unwrap())
        };
        values.iter().map(name).collect()
    }

    #[test]
    fn roles_of_the_operators_namespace_are_unchanged() {
        let cluster = json!({ "kind": "ClusterRole", "metadata": { "name": MANAGER_ROLE }, "rules": [] });
        let roles = vec![cluster, role(MANAGER_ROLE, "shop-system")];
        let placed = Placed::new(roles.clone(), &["shop-system".to_owned()]);
        assert_eq!(placed.objects, roles);
        assert_eq!(placed.transformers, Vec::<Value>::new());
    }

    #[test]
    fn roles_of_several_namespaces_have_different_names() {
        let placed = Placed::new(vec![role(MANAGER_ROLE, "infra"), role(MANAGER_ROLE, "vault")], &[]);
        let roles = ["infra", "vault"]
            .map(|it| [format!("Role manager-role-{it}"), format!("RoleBinding manager-role-{it}")]);
        assert_eq!(names(&placed.objects), roles.concat());
        assert_eq!(placed.transformers.len(), 6);
    }

    #[test]
    fn a_role_with_its_own_name_keeps_it() {
        let placed = Placed::new(vec![role("reader", "infra")], &["shop-system".to_owned()]);
        assert_eq!(names(&placed.objects), ["Role reader"]);
        assert_eq!(names(&placed.transformers), ["PatchTransformer role-reader"]);
    }
}
