//! Skips server-side applies that would change nothing.
//!
//! [`Applied`] remembers, per object, the last intent and the values of its fields after that apply. It compares the
//! object then with the object now, not the intent with the object, because the server normalizes values. Lists are
//! compared as a whole, because only the server knows which items belong to an intent.
//!
//! Invariant: in doubt, the apply is sent.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::{Key, Kind};

/// The number of applies to remember. Beyond it, the older half is dropped.
const REMEMBERED: usize = 16_384;

/// The fields that a field manager applies to an object.
pub(super) struct ApplyIntent<'a> {
    id: (Kind, Key),
    wanted: &'a Value,
    /// Hash of the fields and the field manager.
    hash: u64,
}

impl<'a> ApplyIntent<'a> {
    pub(super) fn new(kind: &Kind, key: &Key, wanted: &'a Value, owner: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        wanted.to_string().hash(&mut hasher);
        owner.hash(&mut hasher);
        Self { id: (kind.clone(), key.clone()), wanted, hash: hasher.finish() }
    }

    /// A hash of the object's values in the fields of the intent. It covers the uid: a recreated object is a new
    /// object.
    fn fields(&self, object: &[u8]) -> Option<u64> {
        let object: Value = serde_json::from_slice(object).ok()?;
        let mut hasher = DefaultHasher::new();
        hash_fields(&Value::Null, object.pointer("/metadata/uid"), &mut hasher);
        for (name, wanted) in self.wanted.as_object()? {
            // The cache drops these two.
            if name != "apiVersion" && name != "kind" {
                name.hash(&mut hasher);
                hash_fields(wanted, object.get(name), &mut hasher);
            }
        }
        Some(hasher.finish())
    }
}

fn hash_fields(wanted: &Value, object: Option<&Value>, hasher: &mut DefaultHasher) {
    match (wanted, object) {
        (Value::Object(wanted), Some(Value::Object(object))) => {
            for (name, wanted) in wanted {
                name.hash(hasher);
                hash_fields(wanted, object.get(name), hasher);
            }
        }
        (_, Some(value)) => value.to_string().hash(hasher),
        (_, None) => hasher.write_u8(0),
    }
}

/// The last apply per object.
#[derive(Default)]
pub(super) struct Applied(Mutex<HashMap<(Kind, Key), State>>);

/// The state of an object after an apply.
#[derive(Clone, Copy)]
struct State {
    intent: u64,
    version: u64,
    /// Hash of the fields that the intent names; `None` if the object could not be parsed.
    fields: Option<u64>,
}

impl Applied {
    /// Whether this intent was applied last and its fields have not changed since.
    pub(super) fn is_fulfilled(&self, intent: &ApplyIntent<'_>, version: u64, object: &[u8]) -> bool {
        let Some(state) = self.states().get(&intent.id).copied() else { return false };
        if state.intent != intent.hash || state.version == 0 || version < state.version {
            return false;
        }
        if version > state.version {
            if state.fields.is_none() || state.fields != intent.fields(object) {
                return false;
            }
            // The next check only needs to compare the version.
            self.states().insert(intent.id.clone(), State { version, ..state });
        }
        true
    }

    /// Records the object after an apply.
    pub(super) fn note(&self, intent: &ApplyIntent<'_>, version: u64, object: &[u8]) {
        let state = State { intent: intent.hash, version, fields: intent.fields(object) };
        let mut states = self.states();
        if states.len() >= REMEMBERED && !states.contains_key(&intent.id) {
            let mut versions: Vec<u64> = states.values().map(|state| state.version).collect();
            let (_, middle, _) = versions.select_nth_unstable(REMEMBERED / 2);
            let middle = *middle;
            states.retain(|_, state| state.version > middle);
        }
        states.insert(intent.id.clone(), state);
    }

    fn states(&self) -> MutexGuard<'_, HashMap<(Kind, Key), State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    /// Whether version 2 of an object fulfils an intent that was applied with version 1 as the response.
    fn is_fulfilled(wanted: &Value, answer: &Value, now: &Value) -> bool {
        let (kind, key) = (Kind::of::<Deployment>(), Key::namespaced("default", "web"));
        let (applied, intent) = (Applied::default(), ApplyIntent::new(&kind, &key, wanted, None));
        applied.note(&intent, 1, answer.to_string().as_bytes());
        applied.is_fulfilled(&intent, 2, now.to_string().as_bytes())
    }

    #[test]
    fn fields_outside_the_intent_do_not_matter() {
        let wanted = json!({ "kind": "Deployment", "metadata": { "labels": { "a": "1" } }, "spec": { "cpu": "1000m" } });
        let spec = json!({ "cpu": "1", "replicas": 1 });
        let answer = json!({ "kind": "Deployment", "metadata": { "labels": { "a": "1" } }, "spec": spec });
        let now = |labels: Value, spec: Value| json!({ "metadata": { "labels": labels }, "spec": spec, "status": {} });
        let labels = json!({ "a": "1", "b": "2" });
        assert!(is_fulfilled(&wanted, &answer, &now(labels.clone(), json!({ "cpu": "1", "replicas": 3 }))));
        assert!(!is_fulfilled(&wanted, &answer, &now(labels.clone(), json!({ "cpu": "2", "replicas": 1 }))));
        assert!(!is_fulfilled(&wanted, &answer, &now(labels, json!({ "replicas": 1 }))));
        assert!(!is_fulfilled(&wanted, &answer, &now(json!({}), spec)));
    }

    #[test]
    fn a_recreated_object_is_applied_again() {
        let (wanted, object) = (json!({ "metadata": {} }), |uid: &str| json!({ "metadata": { "uid": uid } }));
        assert!(is_fulfilled(&wanted, &object("a"), &object("a")));
        assert!(!is_fulfilled(&wanted, &object("a"), &object("b")));
    }

    #[test]
    fn a_list_is_compared_as_a_whole() {
        let wanted = json!({ "spec": { "containers": [{ "name": "web" }] } });
        let object = |image: &str| json!({ "spec": { "containers": [{ "name": "web", "image": image }] } });
        assert!(is_fulfilled(&wanted, &object("a"), &object("a")));
        assert!(!is_fulfilled(&wanted, &object("a"), &object("b")));
    }

    #[test]
    fn an_older_object_does_not_fulfil_an_intent() {
        let (kind, key) = (Kind::of::<Deployment>(), Key::namespaced("default", "web"));
        let (applied, wanted) = (Applied::default(), json!({ "spec": {} }));
        let intent = ApplyIntent::new(&kind, &key, &wanted, Some("me"));
        applied.note(&intent, 5, b"{\"spec\":{}}");
        assert!(applied.is_fulfilled(&intent, 5, b"") && !applied.is_fulfilled(&intent, 4, b"{\"spec\":{}}"));
        assert!(!applied.is_fulfilled(
            &ApplyIntent::new(&kind, &key, &wanted, Some("you")),
            5,
            b"{\"spec\":{}}"
        ));
    }
}
