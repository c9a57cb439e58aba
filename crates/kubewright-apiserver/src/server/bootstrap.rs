//! Bootstrap objects: namespaces, RBAC roles and other objects that every new server has.
//!
//! Each server has its own copies, with its own UIDs and times. Tests start many servers, so the templates
//! are split once per process, and a server only inserts its values.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use kubewright_apis::{facts, selectable};
use serde_json::Value;

use crate::ids::Ids;
use crate::registry::resource::{Registry, Resource};
use crate::registry::store::{attributes, encoder};
use crate::server::{ApiServer, Controllers};
use crate::storage::{Attributes, Change, Encoder, Expect, Write};

/// An object whose text depends only on its UID and the time.
struct Prepared {
    storage: Arc<str>,
    key: Arc<str>,
    attributes: Attributes,
    /// The text up to the first field of its metadata.
    head: &'static str,
    /// The remaining text, split where the start time is inserted.
    rest: Vec<&'static str>,
    /// The rules of an aggregated ClusterRole, which are set from the start if controllers run.
    rules: Option<&'static str>,
}

/// The end of an aggregated role's text.
const NO_RULES: &str = "null}";

#[derive(Default)]
struct Objects {
    prepared: Vec<Prepared>,
    /// Path and text of the objects that are rendered for each server.
    others: Vec<(&'static str, &'static str)>,
}

static OBJECTS: LazyLock<Objects> = LazyLock::new(|| {
    let registry = Registry::default();
    let mut objects = Objects::default();
    let mut last = None;
    for (path, text) in facts::bootstrap_objects() {
        // Objects of a resource are adjacent.
        let resource = match last {
            Some((last_path, resource)) if last_path == path => resource,
            _ => find_path(&registry, path),
        };
        last = Some((path, resource));
        match resource.and_then(|resource| prepare(resource, text)) {
            Some(object) => objects.prepared.push(object),
            None => objects.others.push((path, text)),
        }
    }
    objects
});

fn prepare(resource: &Resource, text: &'static str) -> Option<Prepared> {
    const METADATA: &str = "\"metadata\":{";
    const TRANSITION: &str = "\"lastTransitionTime\":\"";
    // Objects with other placeholders are rendered for each server.
    if memchr::memchr(b'<', text.as_bytes()).is_some() {
        return None;
    }
    // Nearly all texts start with the metadata.
    let at = if text[1..].starts_with(METADATA) { 1 } else { text.find(METADATA)? };
    let (head, mut tail) = text.split_at(at + METADATA.len());
    let (key, attributes) = searchable(resource, text, tail)?;
    let mut rest = Vec::with_capacity(1);
    // Only objects with a status have conditions.
    if resource.subresource("status").is_some() {
        while let Some(at) = tail.find(TRANSITION) {
            let (part, time) = tail.split_at(at + TRANSITION.len());
            rest.push(part);
            tail = &time[time.find('"')?..];
        }
    }
    rest.push(tail);
    let is_sum = text.starts_with(r#"{"aggregationRule""#) && tail.ends_with(NO_RULES);
    let rules = is_sum
        .then(|| facts::aggregated_roles().find_map(|(name, rules)| (name == key).then_some(rules)))
        .flatten();
    Some(Prepared { storage: resource.storage.clone(), key: key.into(), attributes, head, rest, rules })
}

/// The key and attributes of an object. `metadata` is its text from the first metadata field on, which is
/// sufficient for most objects. Scanning it avoids decoding all objects when the first server of a process
/// starts.
fn searchable(resource: &Resource, text: &str, metadata: &str) -> Option<(String, Attributes)> {
    if selectable::own(resource.stored()).is_some() {
        let object = read(text)?;
        let key = resource.key(object.str_at("metadata.namespace"), object.str_at("metadata.name"));
        return Some((key, attributes(Some(resource.stored()), &object)));
    }
    let (mut name, mut namespace, mut labels) = ("", "", Vec::new());
    let (mut depth, mut field, mut entry) = (1, "", "");
    // No metadata value contains a quote, so every second part is a string.
    let mut left = Some(metadata);
    let mut parts = std::iter::from_fn(|| {
        let text = left?;
        let Some(quote) = memchr::memchr(b'"', text.as_bytes()) else { return left.take() };
        left = Some(&text[quote + 1..]);
        Some(&text[..quote])
    });
    loop {
        let between = parts.next()?;
        for byte in between.bytes() {
            depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        }
        if depth == 0 {
            break;
        }
        let part = parts.next()?;
        match (between, depth, field) {
            (":", 1, "name") => name = part,
            (":", 1, "namespace") => namespace = part,
            (":", 2, "labels") => labels.push((entry, part)),
            (":", ..) => {}
            (_, 1, _) => field = part,
            _ => entry = part,
        }
    }
    Some((resource.key(namespace, name), Attributes::with_labels("", labels)))
}

impl Prepared {
    fn write(&self, uid: &str, now: &str, sums: bool) -> Write {
        let Self { storage, key, attributes, head, rest, rules } = self;
        let rules = rules.filter(|_| sums);
        let size = head.len()
            + rest.iter().map(|part| part.len() + now.len()).sum::<usize>()
            + rules.map_or(0, str::len)
            + uid.len();
        let mut text = String::with_capacity(size + 64);
        for part in [head, "\"creationTimestamp\":\"", now, "\",\"resourceVersion\":\""] {
            text.push_str(part);
        }
        let at = text.len();
        for part in ["\",\"uid\":\"", uid, "\","] {
            text.push_str(part);
        }
        for (index, part) in rest.iter().enumerate() {
            text.push_str(if index > 0 { now } else { "" });
            text.push_str(part);
        }
        if let Some(rules) = rules {
            text.truncate(text.len() - NO_RULES.len());
            text.push_str(rules);
            text.push('}');
        }
        let attributes = attributes.with_uid(uid);
        let object = Encoder::new(move |revision| {
            let (before, after) = text.split_at(at);
            Bytes::from([before, &revision.to_string(), after].concat())
        });
        let change = Change::Put { object, attributes };
        Write { resource: storage.clone(), key: key.clone(), expect: Expect::Absent, change }
    }
}

impl ApiServer {
    /// Writes the bootstrap objects into an empty store.
    pub(super) fn bootstrap(&self) {
        let objects = &self.stages.objects;
        let now = time::format_rfc3339(objects.clock.now());
        let Objects { prepared, others } = &*OBJECTS;
        let sums = objects.controllers == Controllers::Core;
        let mut batch: Vec<Write> =
            prepared.iter().map(|object| object.write(&objects.ids.uid(), &now, sums)).collect();
        let registry = objects.registry();
        let others =
            others.iter().filter_map(|(path, text)| filled_in(&objects.ids, &registry, path, text, &now));
        batch.extend(others);
        objects.bootstrap(batch);
    }
}

/// Renders an object whose text depends on the server.
fn filled_in(ids: &Ids, registry: &Registry, path: &str, text: &str, now: &str) -> Option<Write> {
    let text = text
        .replace(r#""client-ca-file":"<set at start>""#, "")
        .replace("<set at start>", &now[..10])
        .replace("<host>", "localhost")
        .replace("<hash>", &ids.uid().replace('-', "")[..26])
        .replace("<identity>", &ids.uid());
    let resource = find_path(registry, path)?;
    let mut object = read(&text)?;
    object.set_at("metadata.uid", ids.uid());
    object.set_at("metadata.creationTimestamp", now);
    resource.strategy.canonicalize(&mut object).ok()?;
    let key = resource.key(object.str_at("metadata.namespace"), object.str_at("metadata.name"));
    let (object, attributes) = resource.strategy.to_storage(object);
    let change = Change::Put { object: encoder(object), attributes };
    Some(Write { resource: resource.storage.clone(), key: key.into(), expect: Expect::Absent, change })
}

/// Uses the parser of requests, so that a process does not load a second one.
fn read(text: &str) -> Option<Value> {
    json::parse(text.as_bytes(), ParseOptions::default()).ok().map(|read| read.value)
}

fn find_path<'a>(registry: &'a Registry, path: &str) -> Option<&'a Arc<Resource>> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["api", version, plural] => registry.find("", version, plural),
        ["apis", group, version, plural] => registry.find(group, version, plural),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Engine as _, Limits, Memory};

    #[test]
    fn prepared_texts_are_in_storage_form() {
        let registry = Registry::default();
        for (path, text) in facts::bootstrap_objects() {
            let resource = find_path(&registry, path).unwrap();
            let mut object: Value = serde_json::from_str(text).unwrap();
            let before = object.clone();
            if prepare(resource, text).is_some() {
                resource.strategy.canonicalize(&mut object).unwrap();
                object.as_object_mut().unwrap().remove("apiVersion");
                object.as_object_mut().unwrap().remove("kind");
                assert_eq!(object, before, "{path}");
            }
        }
    }

    #[test]
    fn scanned_attributes_match_the_decoded_object() {
        for object in &OBJECTS.prepared {
            let text = format!("{}{}", object.head, object.rest.join(""));
            let whole: Value = serde_json::from_str(&text).unwrap();
            let resource = Registry::default().stored(&object.storage).cloned().unwrap();
            assert_eq!(object.attributes, attributes(Some(resource.stored()), &whole), "{text}");
            let key = resource.key(whole.str_at("metadata.namespace"), whole.str_at("metadata.name"));
            assert_eq!(*object.key, *key);
            let times = text.matches("lastTransitionTime").count();
            assert_eq!(object.rest.len(), times + 1, "{text}");
        }
    }

    #[test]
    fn most_objects_are_prepared_once() {
        let Objects { prepared, others } = &*OBJECTS;
        assert!(prepared.len() > 150 && others.len() < 5, "{} and {}", prepared.len(), others.len());
    }

    #[test]
    fn a_prepared_object_gets_its_own_uid_and_time() {
        for object in &OBJECTS.prepared {
            let write = object.write("u-1", "2030-01-01T00:00:00Z", false);
            let version = Memory::new(Limits::default()).commit(vec![write]).unwrap().remove(0);
            let (value, attributes) = (version.object(), &version.attributes);
            assert_eq!(value.str_at("metadata.uid"), "u-1");
            assert_eq!(attributes.uid(), "u-1");
            assert_eq!(value.str_at("metadata.creationTimestamp"), "2030-01-01T00:00:00Z");
            assert_eq!(value.str_at("metadata.resourceVersion"), "1");
            for condition in value.list_at("status.conditions") {
                assert_eq!(condition.str_at("lastTransitionTime"), "2030-01-01T00:00:00Z");
            }
        }
    }
}
