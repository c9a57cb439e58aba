//! The observed writes of objects: which field manager changed which fields, and when.
//!
//! Pure. A write is derived from two versions of an object: the changed fields, and the `managedFields` entry that
//! changed with them. The newest [`Limits::writes`] are kept.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

use super::Limits;

/// Number of changed fields to keep per write.
const FIELDS: usize = 8;
/// Depth of the paths of changed fields.
const DEPTH: usize = 3;

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Created,
    Modified,
    Deleted,
}

/// An observed write.
#[derive(Debug, Clone, Serialize)]
pub struct Write {
    pub number: u64,
    /// UID of the object.
    pub object: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    #[serde(skip)]
    pub owners: Vec<String>,
    pub verb: Verb,
    /// When it was observed, in milliseconds since 1970.
    pub at: u64,
    /// The resource version after the write; 0 if it was not observed.
    pub version: u64,
    /// The field manager; empty if unknown.
    pub manager: String,
    pub operation: String,
    pub subresource: String,
    pub changed: Vec<String>,
    /// Number of changed fields not kept.
    pub more: usize,
}

/// The writes, oldest first.
#[derive(Debug, Default)]
pub struct History {
    limits: Limits,
    writes: VecDeque<Write>,
    last: u64,
}

impl History {
    /// Empty, with limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds the write between two versions of an object. Versions without visible changes are skipped.
    pub fn wrote(&mut self, old: Option<&Value>, new: &Value, at: u64) {
        let mut changed = Vec::new();
        if let Some(old) = old {
            compare("", old, new, 0, &mut changed);
            if changed.is_empty() {
                return;
            }
        }
        let verb = if old.is_some() { Verb::Modified } else { Verb::Created };
        let writer = writer(old, new, &changed);
        let version = text(new, "/metadata/resourceVersion").parse().unwrap_or_default();
        self.add(verb, new, at, version, &writer, changed);
    }

    /// Adds the creation of an object that was found by a list.
    pub fn found(&mut self, object: &Value, created: u64) {
        let first = entries(object).min_by(|a, b| text(a, "/time").cmp(text(b, "/time")));
        let writer = first.map(Writer::of).unwrap_or_default();
        self.add(Verb::Created, object, created, 0, &writer, Vec::new());
    }

    /// Adds the deletion of an object.
    pub fn deleted(&mut self, object: &Value, at: u64) {
        self.add(Verb::Deleted, object, at, 0, &Writer::default(), Vec::new());
    }

    /// The writes, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().rev()
    }

    fn add(
        &mut self,
        verb: Verb,
        object: &Value,
        at: u64,
        version: u64,
        writer: &Writer<'_>,
        mut changed: Vec<String>,
    ) {
        self.last += 1;
        let more = changed.len().saturating_sub(FIELDS);
        changed.truncate(FIELDS);
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        self.writes.push_back(Write {
            number: self.last,
            object: text(object, "/metadata/uid").to_owned(),
            kind: text(object, "/kind").to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            owners: owners.into_iter().flatten().map(|owner| text(owner, "/uid").to_owned()).collect(),
            verb,
            at,
            version,
            manager: writer.manager.to_owned(),
            operation: writer.operation.to_owned(),
            subresource: writer.subresource.to_owned(),
            changed,
            more,
        });
        if self.writes.len() > self.limits.writes {
            self.writes.pop_front();
        }
    }
}

#[derive(Default)]
struct Writer<'a> {
    manager: &'a str,
    operation: &'a str,
    subresource: &'a str,
}

impl<'a> Writer<'a> {
    fn of(entry: &'a Value) -> Self {
        Self {
            manager: text(entry, "/manager"),
            operation: text(entry, "/operation"),
            subresource: text(entry, "/subresource"),
        }
    }
}

/// The field manager of a write: an entry that changed, else the newest one that owns a changed field. Times have
/// seconds only, so two writes of a manager within a second can leave its entry unchanged.
fn writer<'a>(old: Option<&Value>, new: &'a Value, changed: &[String]) -> Writer<'a> {
    let before: Vec<&Value> = old.map(|old| entries(old).collect()).unwrap_or_default();
    let score = |entry: &Value| {
        let is_new = !before.contains(&entry);
        // An entry that only lost fields to another manager keeps its time.
        let lost = before.iter().any(|old| same_manager(old, entry) && old["time"] == entry["time"]);
        let owns = changed.iter().any(|path| owns(entry, path));
        (u8::from(is_new && !lost) * 2 + u8::from(owns), text(entry, "/time").to_owned())
    };
    entries(new).max_by_key(|entry| score(entry)).map(Writer::of).unwrap_or_default()
}

fn same_manager(a: &Value, b: &Value) -> bool {
    ["manager", "operation", "subresource"].iter().all(|field| a[*field] == b[*field])
}

/// Whether an entry of `managedFields` has the first fields of a path.
fn owns(entry: &Value, path: &str) -> bool {
    let mut fields = entry.get("fieldsV1");
    for name in segments(path).take(2) {
        let Some(next) = fields.and_then(|fields| fields.get(format!("f:{name}"))) else { return false };
        fields = Some(next);
    }
    true
}

/// The field names of a path; `metadata.labels[app]` has three.
pub fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split(['.', '[', ']']).filter(|name| !name.is_empty())
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
}

/// Fields that change with every write.
const ALWAYS: &[&str] = &["metadata.managedFields", "metadata.resourceVersion", "metadata.generation"];

/// Appends the paths in which two values differ.
fn compare(path: &str, old: &Value, new: &Value, depth: usize, found: &mut Vec<String>) {
    if old == new || ALWAYS.contains(&path) {
        return;
    }
    let both = old.as_object().zip(new.as_object());
    let (Some((before, now)), true) = (both, depth < DEPTH) else {
        found.push(path.to_owned());
        return;
    };
    let mut names: Vec<&String> = before.keys().chain(now.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let plain = !name.contains(['.', '/']);
        let below = match (path.is_empty(), plain) {
            (true, _) => name.clone(),
            (false, true) => format!("{path}.{name}"),
            (false, false) => format!("{path}[{name}]"),
        };
        let absent = Value::Null;
        let (old, new) = (before.get(name).unwrap_or(&absent), now.get(name).unwrap_or(&absent));
        compare(&below, old, new, depth + 1, found);
    }
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manager: &str, second: u8, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": "Update", "time": format!("2026-01-01T00:00:{second:02}Z"), "fieldsV1": fields })
    }

    fn object(version: u64, replicas: u64, ready: u64, managed: &[Value]) -> Value {
        json!({
            "kind": "Deployment",
            "metadata": { "uid": "u", "name": "web", "namespace": "default", "resourceVersion": version.to_string(), "managedFields": managed },
            "spec": { "replicas": replicas }, "status": { "readyReplicas": ready },
        })
    }

    fn last(history: &History) -> (Verb, &str, Vec<&str>) {
        let write = history.newest().next().expect("a write");
        (write.verb, write.manager.as_str(), write.changed.iter().map(String::as_str).collect())
    }

    #[test]
    fn a_write_has_its_field_manager_and_changed_fields() {
        let spec = json!({ "f:spec": { "f:replicas": {} } });
        let status = json!({ "f:status": { "f:readyReplicas": {} } });
        let first = object(1, 2, 0, &[entry("kubectl", 1, &spec)]);
        let second = object(2, 2, 1, &[entry("kubectl", 1, &spec), entry("controller", 2, &status)]);
        let third = object(3, 3, 1, &[entry("kubectl", 3, &spec), entry("controller", 2, &status)]);
        let mut history = History::default();
        history.wrote(None, &first, 10);
        assert_eq!(last(&history), (Verb::Created, "kubectl", vec![]));
        history.wrote(Some(&first), &second, 20);
        assert_eq!(last(&history), (Verb::Modified, "controller", vec!["status.readyReplicas"]));
        history.wrote(Some(&second), &third, 30);
        assert_eq!(last(&history), (Verb::Modified, "kubectl", vec!["spec.replicas"]));
        assert_eq!(history.newest().next().map(|write| write.version), Some(3));
    }

    #[test]
    fn two_writes_of_a_manager_within_a_second_have_that_manager() {
        let spec = json!({ "f:spec": { "f:replicas": {} } });
        let status = json!({ "f:status": { "f:readyReplicas": {} } });
        // The other manager wrote in the same second.
        let managed = [entry("controller", 1, &status), entry("kubectl", 1, &spec)];
        let (before, after) = (object(1, 2, 0, &managed), object(2, 2, 1, &managed));
        let mut history = History::default();
        history.wrote(Some(&before), &after, 10);
        assert_eq!(last(&history).1, "controller");
    }

    #[test]
    fn a_manager_that_lost_a_field_did_not_write() {
        let mine = json!({ "f:spec": { "f:replicas": {}, "f:paused": {} } });
        let less = json!({ "f:spec": { "f:paused": {} } });
        let taken = json!({ "f:spec": { "f:replicas": {} } });
        let before = object(1, 2, 0, &[entry("kubectl", 5, &mine)]);
        let after = object(2, 3, 0, &[entry("kubectl", 5, &less), entry("scaler", 5, &taken)]);
        let mut history = History::default();
        history.wrote(Some(&before), &after, 10);
        assert_eq!(last(&history), (Verb::Modified, "scaler", vec!["spec.replicas"]));
    }

    #[test]
    fn invisible_writes_are_skipped_and_the_oldest_are_dropped() {
        let mut history = History::default();
        history.wrote(Some(&object(1, 2, 0, &[])), &object(2, 2, 0, &[]), 10);
        assert_eq!(history.newest().count(), 0);
        for number in 0..Limits::DEV.writes + 3 {
            history.deleted(&object(1, 2, 0, &[]), number as u64);
        }
        assert_eq!(history.newest().count(), Limits::DEV.writes);
        assert_eq!(history.newest().last().map(|write| write.at), Some(3));
    }

    #[test]
    fn names_with_dots_are_in_brackets() {
        let labels = |value: &str| json!({ "metadata": { "labels": { "app.kubernetes.io/name": value } } });
        let mut found = Vec::new();
        compare("", &labels("a"), &labels("b"), 0, &mut found);
        assert_eq!(found, ["metadata.labels[app.kubernetes.io/name]"]);
        assert_eq!(segments("metadata.labels[app]").collect::<Vec<_>>(), ["metadata", "labels", "app"]);
    }
}
