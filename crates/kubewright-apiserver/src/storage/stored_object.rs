//! One version of one object, and the event that brought it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::selector::Labels;
use kubewright_structured_merge::packed;
use serde_json::Value;

use super::Revision;

/// What a search needs of an object, so that nothing must be decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// What field selectors may ask for besides name and namespace.
    pub fields: Box<[(&'static str, Box<str>)]>,
    /// Uids of `metadata.ownerReferences`.
    pub owners: Box<[Box<str>]>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

impl Labels for Attributes {
    fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }
}

/// One version of an object. Immutable: encodings are computed once and shared by every reader.
#[derive(Debug)]
pub struct StoredObject {
    /// `namespace/name`, or the name alone.
    pub key: Arc<str>,
    /// When it came to be; also its `metadata.resourceVersion`.
    pub revision: Revision,
    /// What a search needs.
    pub attributes: Attributes,
    /// The object as JSON, without `apiVersion` and `kind`.
    pub json: Bytes,
    encodings: OnceLock<Box<Encoding>>,
}

/// Other encodings of one version; a short list, since few clients ask for more than one.
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

    /// The encoding called `tag`, made by `encode` the first time it is asked for. Two readers who ask for it
    /// first at the same time may both make it; one of the two is kept.
    pub fn encoded(&self, tag: u64, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut slot = &self.encodings;
        while let Some(entry) = slot.get() {
            if entry.tag == tag {
                return entry.bytes.clone();
            }
            slot = &entry.next;
        }
        // Made before the slot is claimed: one encoding may ask for another.
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

    /// The encoding called `tag`, if it was made before.
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

    /// The object, decoded and [packed].
    pub fn packed(&self) -> Value {
        packed::parse(&self.json).unwrap_or_default()
    }

    /// Namespace and name; the namespace is empty for objects of the cluster.
    pub fn namespace_and_name(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It came to be.
    Added,
    /// It changed.
    Modified,
    /// It went away.
    Deleted,
}

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The version after the change; of a deletion, how the object looked last, at the deletion's revision.
    pub version: Arc<StoredObject>,
    /// The version before the change.
    pub previous: Option<Arc<StoredObject>>,
}

impl Event {
    /// When it happened.
    pub fn revision(&self) -> Revision {
        self.version.revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_is_made_once() {
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
    fn one_encoding_may_be_made_of_another() {
        let version = StoredObject::new("a".into(), 1, Attributes::default(), Bytes::from_static(b"{}"));
        let outer = version.encoded(1, || version.encoded(2, || Bytes::from_static(b"inner")));
        assert_eq!(outer, "inner");
        assert_eq!(version.encoded(2, Bytes::new), "inner");
    }
}
