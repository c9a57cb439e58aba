//! The full object, with a line diff of its last change.
//!
//! Pure. The lines are those of the YAML, with removed lines in between. `resourceVersion` and
//! `managedFields` are never marked, because they change with every write.

use kubewright_manifests::yaml;
use kubewright_page::model::history::Write;
use serde::Serialize;
use serde_json::{Map, Value};
use similar::{Algorithm, ChangeTag, TextDiff};

/// An object for the pane.
#[derive(Debug, Serialize)]
pub(super) struct Detail {
    pub(super) id: String,
    /// Lines with a mark: 0 unchanged, 1 added, -1 removed.
    pub(super) lines: Vec<(i8, String)>,
    /// `managedFields`, collapsed because they are longer than the object.
    pub(super) managed: String,
    pub(super) managers: usize,
    /// Whether there is a previous version.
    pub(super) compared: bool,
    /// Time of the last change, in milliseconds since 1970.
    pub(super) changed: u64,
    pub(super) conditions: Value,
    /// The last writes of the object, newest first.
    pub(super) writes: Vec<Write>,
}

/// Removes `managedFields` from an object.
pub(super) fn without_managed_fields(object: &mut Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.and_then(|metadata| metadata.remove("managedFields")).unwrap_or_default()
}

/// Whether two versions differ visibly.
pub(super) fn differs(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old != new };
    let metadata = |fields: &Map<String, Value>| fields.get("metadata").and_then(Value::as_object).cloned();
    differ_beyond(&["metadata"], old, new)
        || differ_beyond(
            &["managedFields", "resourceVersion"],
            &metadata(old).unwrap_or_default(),
            &metadata(new).unwrap_or_default(),
        )
}

fn differ_beyond(quiet: &[&str], old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let rest =
        |fields: &Map<String, Value>| fields.keys().filter(|name| !quiet.contains(&name.as_str())).count();
    rest(old) != rest(new)
        || old.iter().any(|(name, value)| !quiet.contains(&name.as_str()) && new.get(name) != Some(value))
}

/// Compares the object with its previous version, which has no `managedFields`.
pub(super) fn detail(id: &str, mut current: Value, previous: Option<&Value>, changed: u64) -> Detail {
    let managed = without_managed_fields(&mut current);
    let new = text(&current);
    let lines = match previous {
        None => new.lines().map(|line| (0, line.to_owned())).collect(),
        Some(previous) => compare(&text(previous), &new),
    };
    Detail {
        id: id.to_owned(),
        lines,
        managers: managed.as_array().map_or(0, Vec::len),
        managed: if managed.is_null() { String::new() } else { text(&managed) },
        compared: previous.is_some(),
        changed,
        conditions: current
            .pointer("/status/conditions")
            .cloned()
            .unwrap_or_else(|| Value::Array(Vec::new())),
        writes: Vec::new(),
    }
}

fn text(value: &Value) -> String {
    let text = yaml::document(value);
    text.strip_prefix("---\n").map_or_else(|| text.clone(), str::to_owned)
}

fn compare(old: &str, new: &str) -> Vec<(i8, String)> {
    let difference = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(old, new);
    let mut lines = Vec::new();
    for change in difference.iter_all_changes() {
        let line = change.value().trim_end_matches('\n').to_owned();
        let is_version = line.starts_with("  resourceVersion: ");
        match change.tag() {
            ChangeTag::Delete if is_version => {}
            ChangeTag::Insert if is_version => lines.push((0, line)),
            ChangeTag::Equal => lines.push((0, line)),
            ChangeTag::Insert => lines.push((1, line)),
            ChangeTag::Delete => lines.push((-1, line)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn version(number: &str, replicas: i64) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "web", "resourceVersion": number, "managedFields": [{ "manager": "kubectl" }] },
            "spec": { "replicas": replicas },
        })
    }

    #[test]
    fn changed_lines_are_marked_with_their_old_value() {
        let mut before = version("7", 2);
        without_managed_fields(&mut before);
        let detail = detail("u", version("8", 3), Some(&before), 5);
        let lines: Vec<String> = detail.lines.iter().map(|(mark, line)| format!("{mark:2} {line}")).collect();
        assert_eq!(
            lines,
            [
                " 0 apiVersion: apps/v1",
                " 0 kind: Deployment",
                " 0 metadata:",
                " 0   name: web",
                " 0   resourceVersion: \"8\"",
                " 0 spec:",
                "-1   replicas: 2",
                " 1   replicas: 3",
            ]
        );
        assert_eq!((detail.managers, detail.managed.as_str()), (1, "- manager: kubectl\n"));
    }

    #[test]
    fn a_first_version_has_no_marks() {
        let detail = detail("u", version("7", 2), None, 5);
        assert!(!detail.compared && detail.lines.iter().all(|(mark, _)| *mark == 0));
    }

    #[test]
    fn invisible_changes_are_not_a_difference() {
        let mut managed = version("8", 2);
        managed["metadata"]["managedFields"] = json!([]);
        assert!(!differs(&version("7", 2), &managed));
        assert!(differs(&version("7", 2), &version("8", 3)));
    }
}
