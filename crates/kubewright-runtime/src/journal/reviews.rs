//! Creates the journal records of webhook calls.
//!
//! [`Reviews`] belongs to the webhook server, [`Reviewing`] to one admission review. Values of Secrets are replaced
//! before a record is created.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Admission, Conversion, Journal, PatchOperation, Record, millis};
use crate::webhook::{AdmissionRequest, AdmissionResponse};

/// The number of patch operations in a record.
const OPERATIONS: usize = 50;
/// The size of a value in a record, in characters of JSON. Longer values are cut and become text.
const VALUE: usize = 2_000;
/// The number of object names in the record of a conversion.
const NAMES: usize = 8;

/// The journal of a webhook server.
pub(crate) struct Reviews {
    journal: Journal,
    /// The declared names of the webhooks by path.
    names: BTreeMap<String, String>,
}

impl Reviews {
    pub(crate) fn new(journal: Journal, names: BTreeMap<String, String>) -> Self {
        Self { journal, names }
    }

    /// Starts the record of an admission review; `None` without a listener.
    pub(crate) fn admission(&self, path: &str, request: &AdmissionRequest) -> Option<Reviewing> {
        if !self.journal.is_heard() {
            return None;
        }
        let AdmissionRequest { kind, sub_resource, namespace, operation, user_info, dry_run, .. } = request;
        let record = Admission {
            at: self.journal.0.clock.now(),
            webhook: self.names.get(path).map_or(path, String::as_str).to_owned(),
            path: path.to_owned(),
            operation: *operation,
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            subresource: sub_resource.clone(),
            namespace: namespace.clone(),
            name: request.shown_name(),
            user: user_info.username.clone(),
            dry_run: *dry_run,
            allowed: false,
            code: None,
            message: Some(
                "no response: the review timed out or the API server closed the connection".to_owned(),
            ),
            warnings: Vec::new(),
            patch: Vec::new(),
            more_patches: 0,
            ms: 0.0,
        };
        Some(Reviewing { journal: self.journal.clone(), since: Instant::now(), record })
    }

    /// Records a conversion review.
    pub(crate) fn conversion(&self, review: &Converted, error: Option<&str>, took: Duration) {
        let Converted { group, kind, from, to, objects, names } = review;
        self.journal.write(|at| {
            Record::Conversion(Conversion {
                at,
                group: group.clone(),
                kind: kind.clone(),
                from: from.clone(),
                to: to.clone(),
                objects: *objects,
                names: names.clone(),
                error: error.map(str::to_owned),
                ms: millis(took),
            })
        });
    }

    /// Whether records should be created.
    pub(crate) fn is_heard(&self) -> bool {
        self.journal.is_heard()
    }
}

/// The request of a conversion review.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    group: String,
    kind: String,
    from: Vec<String>,
    to: String,
    objects: usize,
    names: Vec<String>,
}

impl Converted {
    /// Reads the objects of a review.
    pub(crate) fn of(desired: &str, objects: &[Value]) -> Self {
        let text =
            |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let name = |object: &Value| {
            let name = text(object, "/metadata/name")?;
            let namespace = text(object, "/metadata/namespace");
            Some(namespace.map_or(name.clone(), |namespace| format!("{namespace}/{name}")))
        };
        let mut from: Vec<String> = objects.iter().filter_map(|object| text(object, "/apiVersion")).collect();
        from.sort_unstable();
        from.dedup();
        Self {
            group: desired.split_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: objects.iter().find_map(|object| text(object, "/kind")).unwrap_or_default(),
            from,
            to: desired.to_owned(),
            objects: objects.len(),
            names: objects.iter().filter_map(name).take(NAMES).collect(),
        }
    }
}

/// An admission review in progress. It is recorded on drop, also if it timed out.
pub(crate) struct Reviewing {
    journal: Journal,
    since: Instant,
    record: Admission,
}

impl Reviewing {
    /// Sets the response.
    pub(crate) fn answered(mut self, request: &AdmissionRequest, response: &AdmissionResponse) {
        let record = &mut self.record;
        record.allowed = response.is_allowed();
        record.code = response.code();
        record.message = Some(response.message()).filter(|message| !message.is_empty()).map(str::to_owned);
        record.warnings = response.warning_texts().to_vec();
        let patch = response.patch();
        record.more_patches = patch.len().saturating_sub(OPERATIONS);
        if !patch.is_empty() {
            let before = request.object.as_deref().map(RawValue::get).unwrap_or_default();
            let before: Value = serde_json::from_str(before).unwrap_or_default();
            let secret = record.group.is_empty() && record.kind == "Secret";
            let shown = |operation: &Value| shown(operation, &before, secret);
            record.patch = patch.iter().take(OPERATIONS).filter_map(shown).collect();
        }
    }
}

impl Drop for Reviewing {
    fn drop(&mut self) {
        let mut record = self.record.clone();
        record.ms = millis(self.since.elapsed());
        self.journal.write(|at| Record::Admission(Admission { at, ..record }));
    }
}

/// A patch operation with the value that it replaces.
fn shown(operation: &Value, object: &Value, secret: bool) -> Option<PatchOperation> {
    let path = operation.get("path")?.as_str()?.to_owned();
    let hidden = secret
        && ["/data", "/stringData", "/metadata/annotations"].iter().any(|field| path.starts_with(field));
    let value = |value: &Value| if hidden { "(redacted)".into() } else { bounded(value) };
    Some(PatchOperation {
        op: operation.get("op")?.as_str()?.to_owned(),
        value: operation.get("value").map(value),
        before: object.pointer(&path).map(value),
        path,
    })
}

fn bounded(value: &Value) -> Value {
    let text = value.to_string();
    match text.char_indices().nth(VALUE) {
        None => value.clone(),
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operation_has_the_value_that_it_replaces() {
        let object = json!({ "spec": { "replicas": 1 } });
        let operation = json!({ "op": "replace", "path": "/spec/replicas", "value": 3 });
        let replaced = shown(&operation, &object, false).expect("an operation");
        assert_eq!((replaced.value, replaced.before), (Some(json!(3)), Some(json!(1))));
        let added = json!({ "op": "add", "path": "/spec/image", "value": "a" });
        assert_eq!(shown(&added, &object, false).expect("an operation").before, None);
    }

    #[test]
    fn values_of_secrets_are_replaced() {
        let object = json!({ "data": { "password": "aHVudGVyMg==" } });
        let operation = json!({ "op": "replace", "path": "/data/password", "value": "c2VjcmV0" });
        let text = format!("{:?}", shown(&operation, &object, true));
        assert!(
            text.contains("(redacted)") && !text.contains("aHVudGVyMg") && !text.contains("c2VjcmV0"),
            "{text}"
        );
    }

    #[test]
    fn long_values_are_cut() {
        let long = Value::from("x".repeat(VALUE * 2));
        let cut = bounded(&long);
        assert!(cut.as_str().is_some_and(|text| text.ends_with("… (4002 bytes)")), "{cut}");
    }
}
