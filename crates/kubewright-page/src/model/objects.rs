//! The entry of an object in the tree: names, owners, references, readiness and conditions.
//!
//! Pure. It contains no field of the spec, and no data.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::readiness::{self, Shown};
use super::references::{self, Reference};
use super::system_objects;

/// A watched kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindName {
    /// `deployments.apps`
    pub key: String,
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// An object in the tree.
#[derive(Serialize)]
pub struct ObjectEntry<'a> {
    id: &'a str,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    created: &'a str,
    owners: Vec<&'a str>,
    references: BTreeSet<Reference>,
    readiness: Shown,
    conditions: Vec<[&'a str; 3]>,
    custom: bool,
    system: bool,
    changed: u64,
}

/// The entry of an object. `changed` is the time of its last change, in milliseconds since 1970.
pub fn object_entry<'a>(kind: &'a KindName, id: &'a str, object: &'a Value, changed: u64) -> ObjectEntry<'a> {
    let list = |path: &str| object.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let field = |value: &'a Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    ObjectEntry {
        id,
        group: &kind.group,
        version: &kind.version,
        kind: &kind.kind,
        namespace: text(object, "/metadata/namespace").unwrap_or_default(),
        name: text(object, "/metadata/name").unwrap_or_default(),
        created: text(object, "/metadata/creationTimestamp").unwrap_or_default(),
        owners: list("/metadata/ownerReferences").filter_map(|owner| owner.get("uid")?.as_str()).collect(),
        references: references::references(object),
        readiness: readiness::shown(&kind.group, &kind.kind, object),
        conditions: list("/status/conditions")
            .map(|condition| {
                [field(condition, "type"), field(condition, "status"), field(condition, "reason")]
            })
            .collect(),
        custom: system_objects::is_custom(&kind.group),
        system: system_objects::is_system_object(&kind.group, &kind.kind, object),
        changed,
    }
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path)?.as_str()
}
