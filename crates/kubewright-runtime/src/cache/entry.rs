//! One cached object: its JSON without `managedFields`, and the metadata that every event needs.
//!
//! A typed Pod of k8s-openapi takes about five times the memory of its JSON, because every optional struct has its
//! full size. So the cache stores JSON and decodes objects when they are read. Objects that are read repeatedly stay
//! decoded: see [`Hot`].
//!
//! An entry is immutable. It omits `apiVersion` and `kind`, which the informer knows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::DynamicObject;
use serde::Deserialize;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::hot::{Held, Hot, Shared};
use crate::decode::decode;
use crate::{Key, Kind};

/// Changes an object before it is stored.
pub(crate) type Transform = Arc<dyn Fn(&str) -> Result<String, serde_json::Error> + Send + Sync>;

/// One object as the cache stores it.
pub struct Entry {
    key: Key,
    version: u64,
    generation: i64,
    deleting: bool,
    meta: Range<u32>,
    /// The byte range of the labels in the body; empty if there are none.
    labels: Range<u32>,
    /// The byte range of the owner references in the body; empty if there are none.
    owners: Range<u32>,
    body: Box<str>,
    /// The decoded object; unset until the first read.
    decoded: OnceLock<Decoded>,
}

/// How this entry keeps its decoded object.
enum Decoded {
    /// While it is read repeatedly.
    Hot(Mutex<Reads>),
    /// For as long as the entry exists.
    Kept(Kept),
}

/// The reads of an object that [`Hot`] may keep.
#[derive(Default)]
struct Reads {
    /// The object; [`Hot`] empties it.
    held: Option<Arc<Held>>,
    /// [`Hot`]'s count when the object was last decoded; 0 if it never was.
    at: u64,
}

/// A kept object, and those of other types that the entry was read as. A linked list is enough: nearly all entries are
/// read as one type.
struct Kept {
    object: Arc<Shared>,
    next: OnceLock<Box<Kept>>,
}

/// Which decoded objects are kept.
#[derive(Clone, Copy)]
pub(crate) enum Keep<'a> {
    /// Those that are read repeatedly, within a budget.
    Hot(&'a Hot),
    /// This one, within the same budget: it is new, and other readers follow.
    New(&'a Hot),
    /// All that have been read, for as long as they are cached.
    All,
}

impl Entry {
    /// Parses an object as the server sent it, in one pass.
    pub(crate) fn read(json: &str, keep_managed_fields: bool) -> Result<Self, serde_json::Error> {
        let Whole { metadata, others } = serde_json::from_str(json)?;
        let mut body = String::with_capacity(json.len());
        body.push_str("{\"metadata\":");
        let from = body.len();
        let mut facts = Facts::default();
        let (mut labels, mut owners) = (0..0, 0..0);
        body.push('{');
        for (name, value) in &metadata {
            facts.note(name, value);
            if !keep_managed_fields && name == "managedFields" {
                continue;
            }
            if body.len() > from + 1 {
                body.push(',');
            }
            write_member(&mut body, name, value);
            let written = || narrow(body.len() - value.get().len())..narrow(body.len());
            match &**name {
                "labels" => labels = written(),
                "ownerReferences" => owners = written(),
                _ => {}
            }
        }
        body.push('}');
        let to = body.len();
        for (name, value) in &others {
            if !matches!(&**name, "apiVersion" | "kind") {
                body.push(',');
                write_member(&mut body, name, value);
            }
        }
        body.push('}');
        Ok(Self {
            key: Key::new(facts.namespace.as_deref(), facts.name.as_deref().unwrap_or_default()),
            version: facts.version,
            generation: facts.generation,
            deleting: facts.deleting,
            meta: narrow(from)..narrow(to),
            labels,
            owners,
            body: body.into_boxed_str(),
            decoded: OnceLock::new(),
        })
    }

    /// The namespace and name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The resourceVersion as a number; 0 if it is not a number.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The generation; 0 for kinds without one.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Whether the object has a deletion timestamp.
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// The size of the stored JSON in bytes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Always false: an entry has at least its metadata.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// The object as JSON, without `apiVersion` and `kind`.
    pub fn json(&self) -> &[u8] {
        self.body.as_bytes()
    }

    fn metadata(&self) -> &str {
        &self.body[self.meta.start as usize..self.meta.end as usize]
    }

    /// Decodes the metadata.
    pub fn meta(&self) -> Result<ObjectMeta, serde_json::Error> {
        serde_json::from_str(self.metadata())
    }

    /// The labels as JSON, in the server's order; empty if there are none.
    pub(crate) fn labels_json(&self) -> &str {
        &self.body[self.labels.start as usize..self.labels.end as usize]
    }

    /// The labels, borrowed from the JSON.
    pub(crate) fn labels(&self) -> Labels<'_> {
        serde_json::from_str(self.labels_json()).unwrap_or_default()
    }

    /// Labels, annotations and finalizers.
    pub fn marks(&self) -> Marks {
        serde_json::from_str(self.metadata()).unwrap_or_default()
    }

    /// The uid.
    pub fn uid(&self) -> String {
        #[derive(Deserialize)]
        struct Uid {
            #[serde(default)]
            uid: String,
        }
        serde_json::from_str::<Uid>(self.metadata()).map(|meta| meta.uid).unwrap_or_default()
    }

    /// The owner references.
    pub fn owners(&self) -> Vec<OwnerReference> {
        let owners = &self.body[self.owners.start as usize..self.owners.end as usize];
        if owners.is_empty() { Vec::new() } else { serde_json::from_str(owners).unwrap_or_default() }
    }

    /// Decodes the object as its Rust type. Readers share the result.
    pub(crate) fn decode<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        keep: Keep<'_>,
    ) -> Result<Arc<K>, serde_json::Error> {
        self.shared(keep, || decode(&self.body))
    }

    /// Decodes the object as a dynamic object.
    pub(crate) fn decode_dynamic(
        &self,
        kind: &Kind,
        keep: Keep<'_>,
    ) -> Result<Arc<DynamicObject>, serde_json::Error> {
        self.shared(keep, || {
            let mut object: DynamicObject = serde_json::from_str(&self.body)?;
            object.types = Some(kind.type_meta());
            Ok(object)
        })
    }

    fn shared<K: Send + Sync + 'static>(
        &self,
        keep: Keep<'_>,
        decode: impl FnOnce() -> Result<K, serde_json::Error>,
    ) -> Result<Arc<K>, serde_json::Error> {
        let known = self.decoded.get().and_then(|decoded| match decoded {
            Decoded::Hot(reads) => lock(reads).held.as_ref().and_then(|held| held.get()).and_then(downcast),
            Decoded::Kept(kept) => kept.find(),
        });
        if let Some(object) = known {
            return Ok(object);
        }
        // Decode without holding a lock. Two readers may both decode, with the same result.
        let object = Arc::new(decode()?);
        Ok(match keep {
            Keep::Hot(hot) => self.keep_if_hot(hot, object, false),
            Keep::New(hot) => self.keep_if_hot(hot, object, true),
            Keep::All => match self.decoded.get_or_init(|| Decoded::Kept(Kept::new(object.clone()))) {
                Decoded::Kept(kept) => kept.add(object),
                Decoded::Hot(_) => object,
            },
        })
    }

    fn keep_if_hot<K: Send + Sync + 'static>(&self, hot: &Hot, object: Arc<K>, is_new: bool) -> Arc<K> {
        let Decoded::Hot(reads) = self.decoded.get_or_init(|| Decoded::Hot(Mutex::default())) else {
            return object;
        };
        let now = hot.decoded(self.body.len());
        let mut reads = lock(reads);
        let is_repeated = reads.at > 0 && now.saturating_sub(reads.at) < hot.limit();
        let fits = self.body.len() as u64 <= hot.limit();
        reads.at = now;
        if fits && (is_new || is_repeated) {
            let held = Arc::new(Held::new(object.clone()));
            reads.held = Some(held.clone());
            drop(reads);
            hot.keep(&held, self.body.len());
        }
        object
    }
}

impl Kept {
    fn new(object: Arc<Shared>) -> Self {
        Self { object, next: OnceLock::new() }
    }

    fn find<K: Send + Sync + 'static>(&self) -> Option<Arc<K>> {
        std::iter::successors(Some(self), |kept| kept.next.get().map(|next| &**next))
            .find(|kept| kept.object.is::<K>())
            .and_then(|kept| downcast(kept.object.clone()))
    }

    /// Adds an object. Returns it, or the one that another reader has added first.
    fn add<K: Send + Sync + 'static>(&self, object: Arc<K>) -> Arc<K> {
        let mut last = self;
        loop {
            if last.object.is::<K>() {
                return downcast(last.object.clone()).unwrap_or(object);
            }
            last = last.next.get_or_init(|| Box::new(Self::new(object.clone())));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.version)
    }
}

/// Labels, annotations and finalizers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Marks {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The finalizers.
    pub finalizers: Vec<String>,
}

fn downcast<K: Send + Sync + 'static>(object: Arc<Shared>) -> Option<Arc<K>> {
    object.downcast().ok()
}

/// The labels of an object, borrowed from its JSON.
#[derive(Debug, Default)]
pub(crate) struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl Labels<'_> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(label, value)| (&**label, &**value))
    }

    pub(crate) fn has(&self, label: &str) -> bool {
        self.0.iter().any(|(name, _)| name == label)
    }
}

impl<'de> Deserialize<'de> for Labels<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Labels<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels<'de>, A::Error> {
                let mut labels: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::with_capacity(8);
                while let Some((Name(label), Name(value))) = map.next_entry()? {
                    // For duplicate labels the last value counts, as in every JSON decoder.
                    labels.retain(|(known, _)| *known != label);
                    labels.push((label, value));
                }
                Ok(Labels(labels))
            }
        }

        deserializer.deserialize_map(Read)
    }
}

#[derive(Default)]
struct Facts<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    version: u64,
    generation: i64,
    deleting: bool,
}

impl<'a> Facts<'a> {
    fn note(&mut self, name: &str, value: &'a RawValue) {
        match name {
            "name" => self.name = text(value),
            "namespace" => self.namespace = text(value),
            "resourceVersion" => self.version = text(value).and_then(|it| it.parse().ok()).unwrap_or(0),
            "generation" => self.generation = value.get().parse().unwrap_or(0),
            "deletionTimestamp" => self.deleting = value.get() != "null",
            _ => {}
        }
    }
}

fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// The members of a JSON object in order, with raw values.
type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The members of an object and of its metadata.
#[derive(Default)]
struct Whole<'a> {
    metadata: Members<'a>,
    others: Members<'a>,
}

impl<'de> Deserialize<'de> for Whole<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Whole<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Whole<'de>, A::Error> {
                let mut whole = Whole { others: Vec::with_capacity(8), ..Whole::default() };
                while let Some(Name(name)) = map.next_key()? {
                    if name == "metadata" {
                        Metadata(whole.metadata) = map.next_value()?;
                    } else {
                        whole.others.push((name, map.next_value()?));
                    }
                }
                Ok(whole)
            }
        }

        deserializer.deserialize_map(Read)
    }
}

struct Metadata<'a>(Members<'a>);

impl<'de> Deserialize<'de> for Metadata<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Metadata<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metadata")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata<'de>, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Metadata(members))
            }
        }

        deserializer.deserialize_map(Read)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn write_member(body: &mut String, name: &str, value: &RawValue) {
    if name.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        body.push_str(&serde_json::to_string(name).expect("a string serializes to JSON"));
    } else {
        body.push('"');
        body.push_str(name);
        body.push('"');
    }
    body.push(':');
    body.push_str(value.get());
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).expect("metadata starts and ends within 4 GiB")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"},"metadata":{"name":"m","namespace":"n",
        "resourceVersion":"7","generation":3,"managedFields":[{"manager":"x"}],"labels":{"app":"web"},"uid":"u",
        "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"q","controller":true}]}}"#;

    fn entry() -> Entry {
        Entry::read(MAP, false).unwrap()
    }

    #[test]
    fn common_metadata_is_parsed_up_front() {
        let entry = entry();
        assert_eq!(entry.key().to_string(), "n/m");
        assert_eq!((entry.version(), entry.generation(), entry.is_deleting()), (7, 3, false));
        assert_eq!(entry.uid(), "u");
        assert_eq!(entry.marks().labels["app"], "web");
        assert_eq!(entry.owners()[0].name, "p");
        assert_eq!(entry.meta().unwrap().name.as_deref(), Some("m"));
    }

    #[test]
    fn managed_fields_are_dropped_unless_requested() {
        assert!(!String::from_utf8_lossy(entry().json()).contains("managedFields"));
        let whole = Entry::read(MAP, true).unwrap();
        assert!(String::from_utf8_lossy(whole.json()).contains("managedFields"));
    }

    #[test]
    fn labels_are_read_without_the_rest_of_the_metadata() {
        let entry = entry();
        assert_eq!(entry.labels_json(), r#"{"app":"web"}"#);
        assert_eq!(entry.labels().iter().collect::<Vec<_>>(), [("app", "web")]);
        assert!(entry.labels().has("app") && !entry.labels().has("web"));
        for (labels, read) in [
            ("{}", vec![]),
            ("null", vec![]),
            (r#"{"a":"1","b":"","a":"2"}"#, vec![("b", ""), ("a", "2")]),
            (r#"{"a\"b":"c\\d"}"#, vec![("a\"b", "c\\d")]),
        ] {
            let json = format!(
                r#"{{"metadata":{{"managedFields":[],"labels":{labels},"name":"m"}},"labels":{{}}}}"#
            );
            let entry = Entry::read(&json, false).unwrap();
            assert_eq!(entry.labels().iter().collect::<Vec<_>>(), read, "{labels}");
            let mut marks: Vec<_> = read.iter().map(|(l, v)| ((*l).to_owned(), (*v).to_owned())).collect();
            marks.sort();
            assert_eq!(entry.marks().labels.into_iter().collect::<Vec<_>>(), marks, "{labels}");
        }
        assert_eq!(Entry::read("{}", false).unwrap().labels().iter().count(), 0);
    }

    #[test]
    fn a_kind_that_is_kept_decoded_is_decoded_once_per_type() {
        let entry = entry();
        let first = entry.decode::<ConfigMap>(Keep::All).unwrap();
        let dynamic = entry.decode_dynamic(&Kind::of::<ConfigMap>(), Keep::All).unwrap();
        assert!(Arc::ptr_eq(&first, &entry.decode::<ConfigMap>(Keep::All).unwrap()));
        assert!(Arc::ptr_eq(&dynamic, &entry.decode_dynamic(&Kind::of::<ConfigMap>(), Keep::All).unwrap()));
    }

    #[test]
    fn a_dynamic_object_has_its_api_version_and_kind() {
        let entry = entry();
        let kind = Kind::of::<ConfigMap>();
        let object = entry.decode_dynamic(&kind, Keep::Hot(&Hot::new(0))).unwrap();
        assert_eq!(object.types.as_ref().unwrap().kind, "ConfigMap");
        assert_eq!(object.data["data"]["a"], "b");
    }

    #[test]
    fn an_escaped_member_name_stays_escaped() {
        let entry = Entry::read(r#"{"metadata":{"name":"m"},"a\"b\\":1}"#, false).unwrap();
        assert_eq!(entry.json(), br#"{"metadata":{"name":"m"},"a\"b\\":1}"#);
        let bare = Entry::read("{}", false).unwrap();
        assert_eq!(bare.json(), br#"{"metadata":{}}"#);
    }

    #[test]
    fn json_that_is_not_an_object_is_rejected() {
        for wrong in ["", "[]", "1", "{\"metadata\":[]}", "{\"metadata\":{}", "null"] {
            assert!(Entry::read(wrong, false).is_err(), "{wrong} was read");
        }
    }
}
