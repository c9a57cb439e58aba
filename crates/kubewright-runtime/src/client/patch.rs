//! All patch types of the API server.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Error;

/// A patch to send instead of a whole object.
#[derive(Debug, Clone)]
pub struct Patch {
    pub(crate) body: Body,
    /// Take ownership of fields of other managers. Only for apply patches.
    pub(crate) force: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Patch {
    fn of(body: Body) -> Self {
        Self { body, force: false }
    }

    /// A JSON merge patch: objects are merged, `null` removes, lists are replaced.
    ///
    /// ```
    /// use kubewright_runtime::Patch;
    /// use serde_json::json;
    ///
    /// let patch = Patch::merge(json!({ "metadata": { "labels": { "seen": "true" } } }));
    /// ```
    pub fn merge(patch: Value) -> Self {
        Self::of(Body::Merge(patch))
    }

    /// A JSON merge patch from anything that serializes.
    pub fn merge_from(patch: impl Serialize) -> Result<Self, Error> {
        Ok(Self::merge(value(patch)?))
    }

    /// A strategic merge patch: lists are merged by their keys. Built-in kinds only.
    pub fn strategic(patch: Value) -> Self {
        Self::of(Body::Strategic(patch))
    }

    /// A strategic merge patch from anything that serializes.
    pub fn strategic_from(patch: impl Serialize) -> Result<Self, Error> {
        Ok(Self::strategic(value(patch)?))
    }

    /// A JSON patch: a list of operations.
    pub fn json(operations: Value) -> Self {
        Self::of(Body::Json(operations))
    }

    /// A JSON patch from anything that serializes.
    pub fn json_from(operations: impl Serialize) -> Result<Self, Error> {
        Ok(Self::json(value(operations)?))
    }

    /// A server-side apply patch with the desired fields.
    pub fn apply(wanted: impl Serialize) -> Result<Self, Error> {
        let mut wanted = value(wanted)?;
        // The server rejects apply configurations with these fields.
        if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        Ok(Self::of(Body::Apply(wanted)))
    }

    /// Takes ownership of conflicting fields instead of failing with a conflict. Only for apply patches.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// A merge patch with the difference between two states of an object.
    ///
    /// Concurrent changes of other fields are kept. Use [`Patch::optimistic`] to fail on any concurrent change.
    pub fn between<K: Serialize>(old: &K, new: &K) -> Result<Self, Error> {
        let (old, new) = (value(old)?, value(new)?);
        Ok(Self::of(Body::Merge(difference(&old, &new).unwrap_or_else(|| Value::Object(Map::new())))))
    }

    /// Fails with a conflict if the object no longer has this resourceVersion. For merge patches.
    #[must_use]
    pub fn optimistic(mut self, resource_version: &str) -> Self {
        if let Body::Merge(patch) | Body::Strategic(patch) = &mut self.body
            && let Some(patch) = patch.as_object_mut()
        {
            let metadata = patch.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("resourceVersion".to_owned(), Value::from(resource_version));
            }
        }
        self
    }

    /// Whether the patch changes nothing.
    pub fn is_empty(&self) -> bool {
        match &self.body {
            Body::Merge(patch) | Body::Strategic(patch) => patch.as_object().is_some_and(Map::is_empty),
            Body::Json(operations) => operations.as_array().is_some_and(Vec::is_empty),
            Body::Apply(_) => false,
        }
    }

    pub(crate) fn content_type(&self) -> &'static str {
        match self.body {
            Body::Json(_) => "application/json-patch+json",
            Body::Merge(_) => "application/merge-patch+json",
            Body::Strategic(_) => "application/strategic-merge-patch+json",
            Body::Apply(_) => "application/apply-patch+yaml",
        }
    }

    pub(crate) fn value(&self) -> &Value {
        match &self.body {
            Body::Json(value) | Body::Merge(value) | Body::Strategic(value) | Body::Apply(value) => value,
        }
    }

    pub(crate) fn is_apply(&self) -> bool {
        matches!(self.body, Body::Apply(_))
    }
}

impl<T: Serialize> TryFrom<kube::api::Patch<T>> for Patch {
    type Error = Error;

    fn try_from(patch: kube::api::Patch<T>) -> Result<Self, Error> {
        match patch {
            kube::api::Patch::Apply(wanted) => Self::apply(wanted),
            kube::api::Patch::Merge(patch) => Self::merge_from(patch),
            kube::api::Patch::Strategic(patch) => Self::strategic_from(patch),
            kube::api::Patch::Json(operations) => Self::json_from(operations),
            _ => Err(Error::UnknownPatch),
        }
    }
}

fn value(patch: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(patch).map_err(|source| Error::Encode { what: "a patch".to_owned(), source })
}

/// The merge patch from `old` to `new`; `None` if they are equal.
pub(super) fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for (name, before) in old {
        match new.get(name) {
            None => {
                patch.insert(name.clone(), Value::Null);
            }
            Some(now) => patch.extend(difference(before, now).map(|change| (name.clone(), change))),
        }
    }
    for (name, now) in new {
        if !old.contains_key(name) {
            patch.insert(name.clone(), now.clone());
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changed_fields_are_sent() {
        let old = json!({"metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}, "spec": {"ports": [1, 2], "n": 1}});
        let new =
            json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"ports": [1], "n": 1, "m": 2}});
        let patch = Patch::between(&old, &new).unwrap();
        assert_eq!(
            *patch.value(),
            json!({"metadata": {"labels": {"y": null}}, "spec": {"ports": [1], "m": 2}})
        );
        assert!(Patch::between(&old, &old).unwrap().is_empty());
        assert_eq!(patch.optimistic("7").value()["metadata"]["resourceVersion"], "7");
    }

    fn merged(target: &Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut result = target.as_object().cloned().unwrap_or_default();
        for (name, change) in patch {
            if change.is_null() {
                result.remove(name);
            } else {
                let before = result.get(name).cloned().unwrap_or(Value::Null);
                result.insert(name.clone(), merged(&before, change));
            }
        }
        Value::Object(result)
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i8>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn applying_the_difference_to_old_gives_new(old in document(), new in document()) {
            let object = |value: Value| json!({"spec": value});
            let (old, new) = (object(old), object(new));
            let patch = Patch::between(&old, &new).unwrap();
            prop_assert_eq!(merged(&old, patch.value()), new);
        }
    }
}
