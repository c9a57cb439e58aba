//! One version of an object, and the event for it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kubewright_apimachinery::json::{self, ParseOptions};
use serde_json::Value;

use super::{Attributes, Revision};

/// One version of an object. Immutable: encodings are computed once and shared by every reader.
#[derive(Debug)]
pub struct StoredObject {
    /// `namespace/name`, or the name of a cluster-scoped object.
    pub key: Arc<str>,
    /// Revision of the write; also its `metadata.resourceVersion`.
    pub revision: Revision,
    /// Indexed attributes.
    pub attributes: Attributes,
    /// The object as JSON, without `apiVersion` and `kind`.
    pub json: Bytes,
    encodings: OnceLock<Box<Encoding>>,
}

/// A cached encoding. A linked list is enough, because few versions are read in more than one encoding.
#[derive(Debug)]
struct Encoding {
    tag: u64,
    bytes: Bytes,
    next: OnceLock<Box<Encoding>>,
}

impl StoredObject {
    /// A version of an object whose resourceVersion is already set.
    pub fn new(key: Arc<str>, revision: Revision, attributes: Attributes, json: Bytes) -> Self {
        Self { key, revision, attributes, json, encodings: OnceLock::new() }
    }

    /// The encoding with key `tag`, computed by `encode` on first use. Concurrent first calls may both
    /// compute it; one result is kept.
    pub fn encoded(&self, tag: u64, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut slot = &self.encodings;
        while let Some(entry) = slot.get() {
            if entry.tag == tag {
                return entry.bytes.clone();
            }
            slot = &entry.next;
        }
        // Compute before claiming the slot: an encoding may use another one.
        let bytes = encode();
        let mut entry = Box::new(Encoding { tag, bytes: bytes.clone(), next: OnceLock::new() });
        while let Err(taken) = slot.set(entry) {
            entry = taken;
            match slot.get() {
                Some(other) => slot = &other.next,
                None => break,
            }
        }
        bytes
    }

    /// The encoding with key `tag`, if it is cached.
    pub fn known(&self, tag: u64) -> Option<Bytes> {
        let mut slot = &self.encodings;
        while let Some(entry) = slot.get() {
            if entry.tag == tag {
                return Some(entry.bytes.clone());
            }
            slot = &entry.next;
        }
        None
    }

    /// The object, decoded.
    pub fn object(&self) -> Value {
        json::parse(&self.json, ParseOptions::default()).map(|parsed| parsed.value).unwrap_or_default()
    }

    /// Namespace and name; the namespace is empty for cluster-scoped objects.
    pub fn namespace_and_name(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }
}

/// Type of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The object was created.
    Added,
    /// The object was updated.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    /// Type of the change.
    pub kind: EventKind,
    /// The version after the change; for a deletion, the last state at the deletion's revision.
    pub version: Arc<StoredObject>,
    /// The version before the change.
    pub previous: Option<Arc<StoredObject>>,
}

impl Event {
    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        self.version.revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_is_computed_once() {
        let version = StoredObject::new("a".into(), 1, Attributes::default(), Bytes::from_static(b"{}"));
        let mut made = 0;
        for _ in 0..3 {
            for tag in [7, 8] {
                let bytes = version.encoded(tag, || {
                    made += 1;
                    Bytes::from(tag.to_string())
                });
                assert_eq!(bytes, tag.to_string());
            }
        }
        assert_eq!(made, 2);
    }

    #[test]
    fn an_encoding_may_use_another_one() {
        let version = StoredObject::new("a".into(), 1, Attributes::default(), Bytes::from_static(b"{}"));
        let outer = version.encoded(1, || version.encoded(2, || Bytes::from_static(b"inner")));
        assert_eq!(outer, "inner");
        assert_eq!(version.encoded(2, Bytes::new), "inner");
    }
}
