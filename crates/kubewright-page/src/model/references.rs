//! References of an object to others, by the naming conventions of the Kubernetes API.
//!
//! Pure. Fields such as `configMapRef`, `secretName` or `scaleTargetRef` are found at any depth of any kind, so custom
//! resources that follow the conventions are included. Owner references are not.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Maximum number of references per object.
const REFERENCES: usize = 32;

/// Fields whose value is the name of an object in the same namespace.
const NAMES: &[(&str, &str)] = &[
    ("secretName", "Secret"),
    ("configMapName", "ConfigMap"),
    ("serviceAccountName", "ServiceAccount"),
    ("claimName", "PersistentVolumeClaim"),
    ("volumeName", "PersistentVolume"),
    ("nodeName", "Node"),
    ("storageClassName", "StorageClass"),
    ("ingressClassName", "IngressClass"),
    ("priorityClassName", "PriorityClass"),
    ("runtimeClassName", "RuntimeClass"),
    ("serviceName", "Service"),
];

/// Fields whose value has the `name` of an object of this kind.
const OBJECTS: &[(&str, &str)] = &[
    ("configMap", "ConfigMap"),
    ("configMapRef", "ConfigMap"),
    ("configMapKeyRef", "ConfigMap"),
    ("secret", "Secret"),
    ("secretRef", "Secret"),
    ("secretKeyRef", "Secret"),
    ("imagePullSecrets", "Secret"),
    ("service", "Service"),
    ("serviceRef", "Service"),
];

/// Fields whose value has `kind` and `name`.
const KINDS: &[&str] = &["targetRef", "scaleTargetRef", "roleRef", "subjects"];

/// A reference: kind, namespace, name.
pub type Reference = (String, String, String);

/// The references of an object, sorted.
pub fn references(object: &Value) -> BTreeSet<Reference> {
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let mut found = BTreeSet::new();
    // Its schema has the fields of other objects.
    if object.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition") {
        return found;
    }
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status" | "data")) {
        look(name, value, namespace, &mut found);
    }
    found
}

fn look(field: &str, value: &Value, namespace: &str, found: &mut BTreeSet<Reference>) {
    if found.len() >= REFERENCES {
        return;
    }
    match value {
        Value::String(name) => {
            if let Some((_, kind)) = NAMES.iter().find(|(known, _)| *known == field) {
                add(kind, "", name, namespace, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| look(field, item, namespace, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            if let Some((_, kind)) = OBJECTS.iter().find(|(known, _)| *known == field) {
                add(kind, text("namespace"), text("name"), namespace, found);
            } else if (KINDS.contains(&field) || field.ends_with("Ref")) && is_reference(fields) {
                add(text("kind"), text("namespace"), text("name"), namespace, found);
            }
            for (name, value) in fields {
                look(name, value, namespace, found);
            }
        }
        _ => {}
    }
}

fn is_reference(fields: &Map<String, Value>) -> bool {
    ["kind", "name"].iter().all(|name| fields.get(*name).is_some_and(Value::is_string))
}

fn add(kind: &str, namespace: &str, name: &str, own: &str, found: &mut BTreeSet<Reference>) {
    if !name.is_empty() {
        let namespace = if namespace.is_empty() { own } else { namespace };
        found.insert((kind.to_owned(), namespace.to_owned(), name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(object: &Value) -> Vec<String> {
        references(object)
            .into_iter()
            .map(|(kind, namespace, name)| format!("{kind} {namespace}/{name}"))
            .collect()
    }

    #[test]
    fn a_pod_template_refers_to_its_volumes_variables_and_account() {
        let pod = json!({
            "serviceAccountName": "robot",
            "volumes": [{ "name": "a", "configMap": { "name": "pages" } }, { "name": "b", "secret": { "secretName": "key" } }],
            "containers": [{ "env": [{ "valueFrom": { "secretKeyRef": { "name": "token", "key": "k" } } }] }],
        });
        let deployment =
            json!({ "metadata": { "namespace": "default" }, "spec": { "template": { "spec": pod } } });
        assert_eq!(
            shown(&deployment),
            [
                "ConfigMap default/pages",
                "Secret default/key",
                "Secret default/token",
                "ServiceAccount default/robot"
            ]
        );
    }

    #[test]
    fn fields_that_end_with_ref_are_found_in_any_kind() {
        let scaler = json!({
            "metadata": { "namespace": "default" },
            "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "web" }, "databaseRef": { "kind": "Database", "name": "main", "namespace": "data" } },
        });
        assert_eq!(shown(&scaler), ["Database data/main", "Deployment default/web"]);
        let binding = json!({
            "metadata": { "name": "b" }, "roleRef": { "kind": "ClusterRole", "name": "admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "robot", "namespace": "default" }],
        });
        assert_eq!(shown(&binding), ["ClusterRole /admin", "ServiceAccount default/robot"]);
    }

    #[test]
    fn data_and_status_are_not_searched() {
        let map = json!({ "data": { "secretName": "x" }, "status": { "secretName": "y" }, "metadata": {} });
        assert!(shown(&map).is_empty());
    }

    #[test]
    fn references_are_bounded() {
        let names: Vec<Value> =
            (0..100).map(|number| json!({ "secretName": format!("s{number}") })).collect();
        assert_eq!(references(&json!({ "spec": { "all": names } })).len(), REFERENCES);
    }
}
