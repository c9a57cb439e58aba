//! The changed fields of an object.
//!
//! [`Changed`] has the paths in which two versions of an object differ, in a deterministic order. Fields that every
//! write changes are left out.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// The number of paths to keep.
const KEPT: usize = 8;

/// Fields that change with every write.
const ALWAYS: [&str; 3] = ["metadata.generation", "metadata.managedFields", "metadata.resourceVersion"];

/// A missing value.
static NULL: Value = Value::Null;

/// The paths of changed fields.
///
/// Displayed as `spec.replicas, status.readyReplicas`, with ` and 3 more` if there are more than eight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The first eight paths, such as `status.readyReplicas` or `metadata.labels[app.kubernetes.io/name]`. If a field
    /// was added or removed, its path stands for its whole value. List items with a `name` or `type` use it as the
    /// index, as in `status.conditions[Available].status`. If the length of a list changed, the path is that of the
    /// list.
    pub paths: Vec<String>,
    /// The number of further paths.
    pub more: usize,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.paths.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

/// Compares two versions of an object as JSON. Invalid JSON has no fields.
pub(super) fn changed(old: &[u8], new: &[u8]) -> Changed {
    let read = |json| serde_json::from_slice(json).unwrap_or(Value::Null);
    let mut found = Changed::default();
    compare(&mut String::new(), &read(old), &read(new), &mut found);
    found
}

/// Records the paths in which two values differ. Restores `path` before it returns.
fn compare(path: &mut String, old: &Value, new: &Value, found: &mut Changed) {
    if old == new || ALWAYS.contains(&path.as_str()) {
        return;
    }
    let end = path.len();
    match (old, new) {
        (Value::Object(before), Value::Object(now)) => {
            // Sorted here, because a feature of serde_json that any crate can enable changes the order of maps.
            let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            for name in names {
                push_name(path, name);
                compare(path, before.get(name).unwrap_or(&NULL), now.get(name).unwrap_or(&NULL), found);
                path.truncate(end);
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (at, (old, new)) in before.iter().zip(now).enumerate() {
                match called(old).filter(|name| called(new) == Some(name)) {
                    Some(name) => push_item(path, name),
                    None => push_item(path, &at.to_string()),
                }
                compare(path, old, new, found);
                path.truncate(end);
            }
        }
        _ if found.paths.len() < KEPT => found.paths.push(path.clone()),
        _ => found.more += 1,
    }
}

fn push_name(path: &mut String, name: &str) {
    if name.contains(['.', '/']) {
        push_item(path, name);
    } else {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    }
}

fn push_item(path: &mut String, item: &str) {
    path.push('[');
    path.push_str(item);
    path.push(']');
}

/// The index of a list item in a path.
fn called(item: &Value) -> Option<&str> {
    item.get("name").or_else(|| item.get("type"))?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn between(old: &Value, new: &Value) -> Changed {
        changed(old.to_string().as_bytes(), new.to_string().as_bytes())
    }

    #[test]
    fn fields_that_differ_are_named_by_their_paths() {
        let old = json!({
            "metadata": { "resourceVersion": "1", "generation": 1, "labels": { "app": "a", "x.io/y": "z" } },
            "spec": { "replicas": 1, "paused": true, "containers": [{ "name": "web", "image": "a" }] },
            "status": { "conditions": [{ "type": "Available", "status": "False" }] },
        });
        let new = json!({
            "metadata": { "resourceVersion": "2", "generation": 2, "labels": { "app": "b", "x.io/y": "w" } },
            "spec": { "replicas": 1, "containers": [{ "name": "web", "image": "b" }] },
            "status": { "conditions": [{ "type": "Available", "status": "True" }], "ready": { "now": 1 } },
        });
        let paths = [
            "metadata.labels.app",
            "metadata.labels[x.io/y]",
            "spec.containers[web].image",
            "spec.paused",
            "status.conditions[Available].status",
            "status.ready",
        ];
        assert_eq!(between(&old, &new), Changed { paths: paths.map(str::to_owned).into(), more: 0 });
        assert_eq!(between(&old, &old), Changed::default());
    }

    #[test]
    fn items_without_names_use_their_index_and_lists_of_another_length_have_one_path() {
        let (old, new) = (json!({ "a": [1, 2], "b": [1] }), json!({ "a": [1, 3], "b": [1, 2] }));
        assert_eq!(between(&old, &new).to_string(), "a[1], b");
        let (old, new) = (json!([{ "name": "a", "x": 1 }]), json!([{ "name": "b", "x": 1 }]));
        assert_eq!(between(&json!({ "l": old }), &json!({ "l": new })).to_string(), "l[0].name");
    }

    #[test]
    fn after_eight_paths_the_others_are_counted() {
        let object = |value: u8| Value::Object((0..10).map(|at| (format!("f{at}"), json!(value))).collect());
        let found = between(&object(1), &object(2));
        assert_eq!((found.paths.len(), found.more), (8, 2));
        assert!(found.to_string().ends_with("f6, f7 and 2 more"), "{found}");
    }
}
