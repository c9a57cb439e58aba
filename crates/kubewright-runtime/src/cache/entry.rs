//! One cached object: its JSON without what nobody reads, and the few facts that every event asks for.
//!
//! A typed Pod of k8s-openapi takes about five times the memory of its JSON, since every optional struct has its
//! full size. So the bytes are what is kept, and an object is decoded when somebody reads it. What is read again and
//! again is decoded once: see [`Hot`].
//!
//! An entry never changes. `apiVersion` and `kind` are left out: the informer knows them.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::DynamicObject;
use serde::Deserialize;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Key, Kind};

type Shared = dyn Any + Send + Sync;

/// How an object is changed before it is kept.
pub(crate) type Transform = Arc<dyn Fn(&str) -> Result<String, serde_json::Error> + Send + Sync>;

/// One object as the cache keeps it.
pub struct Entry {
    key: Key,
    version: u64,
    generation: i64,
    deleting: bool,
    meta: Range<u32>,
    body: Box<str>,
    decoded: Mutex<Decoded>,
}

/// The object as somebody read it.
#[derive(Default)]
struct Decoded {
    /// What [`Hot`] holds, or did.
    object: Option<Weak<Shared>>,
    /// When it was decoded, by [`Hot`]'s count; 0 if it never was.
    at: u64,
}

impl Entry {
    /// Reads an object as the server wrote it, in one pass.
    pub(crate) fn read(json: &str, keep_managed_fields: bool) -> Result<Self, serde_json::Error> {
        let Whole { metadata, others } = serde_json::from_str(json)?;
        let mut body = String::with_capacity(json.len());
        body.push_str("{\"metadata\":");
        let from = body.len();
        let mut facts = Facts::default();
        write_members(
            &mut body,
            metadata.iter().filter(|(name, value)| {
                facts.note(name, value);
                keep_managed_fields || name != "managedFields"
            }),
        );
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
            body: body.into_boxed_str(),
            decoded: Mutex::default(),
        })
    }

    /// Where the object is.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The resourceVersion as a number; 0 if it is none.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The generation; 0 for kinds that have none.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// How many bytes of JSON are kept.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether nothing is kept; never so.
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

    /// The metadata, decoded for the caller.
    pub fn meta(&self) -> Result<ObjectMeta, serde_json::Error> {
        serde_json::from_str(self.metadata())
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

    /// Who owns the object.
    pub fn owners(&self) -> Vec<OwnerReference> {
        #[derive(Deserialize)]
        struct Owned {
            #[serde(default, rename = "ownerReferences")]
            owners: Vec<OwnerReference>,
        }
        serde_json::from_str::<Owned>(self.metadata()).map(|meta| meta.owners).unwrap_or_default()
    }

    /// The object as its Rust type; shared with everybody who reads it now.
    pub(crate) fn decode<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
        hot: &Hot,
    ) -> Result<Arc<K>, serde_json::Error> {
        self.shared(hot, || serde_json::from_str(&self.body))
    }

    /// The object without a Rust type of its own.
    pub(crate) fn decode_dynamic(
        &self,
        kind: &Kind,
        hot: &Hot,
    ) -> Result<Arc<DynamicObject>, serde_json::Error> {
        self.shared(hot, || {
            let mut object: DynamicObject = serde_json::from_str(&self.body)?;
            object.types = Some(kind.type_meta());
            Ok(object)
        })
    }

    fn shared<K: Send + Sync + 'static>(
        &self,
        hot: &Hot,
        decode: impl FnOnce() -> Result<K, serde_json::Error>,
    ) -> Result<Arc<K>, serde_json::Error> {
        let known = self.decoded().object.as_ref().and_then(Weak::upgrade);
        if let Some(object) = known.and_then(|known| known.downcast::<K>().ok()) {
            return Ok(object);
        }
        // Outside the lock: two readers may both decode, and both are right.
        let object = Arc::new(decode()?);
        let now = hot.decoded(self.body.len());
        let mut decoded = self.decoded();
        let again = decoded.at > 0 && now.saturating_sub(decoded.at) < hot.limit as u64;
        decoded.at = now;
        if again {
            let shared: Arc<Shared> = object.clone();
            decoded.object = Some(Arc::downgrade(&shared));
            drop(decoded);
            hot.keep(shared, self.body.len());
        } else {
            // A reference, be it a weak one, would keep the memory of the object.
            decoded.object = None;
        }
        Ok(object)
    }

    fn decoded(&self) -> MutexGuard<'_, Decoded> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.version)
    }
}

/// Labels, annotations and finalizers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The finalizers.
    pub finalizers: Vec<String>,
}

/// The objects that are read again and again, decoded.
///
/// An object gets in when it is decoded for the second time before as much JSON was decoded as may be in here. So those
/// that are read in turn, and whose turn comes back too late, do not push each other out: each goes when its reader
/// drops it, on the reader's thread, which is where an allocator likes it best.
///
/// Bounded by the JSON of what it holds: what is decoded is larger, so the bound is meant to be small.
pub(crate) struct Hot {
    limit: usize,
    /// How much JSON was decoded so far.
    count: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    objects: VecDeque<(Arc<Shared>, usize)>,
    bytes: usize,
}

impl Hot {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, count: AtomicU64::new(0), held: Mutex::default() }
    }

    /// Counts what was decoded, and tells how much that is by now.
    fn decoded(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.count.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    fn keep(&self, object: Arc<Shared>, bytes: usize) {
        if bytes > self.limit {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.objects.push_back((object, bytes));
        held.bytes += bytes;
        let mut gone = Vec::new();
        while held.bytes > self.limit {
            let Some(oldest) = held.objects.pop_front() else { break };
            held.bytes -= oldest.1;
            gone.push(oldest);
        }
        drop(held);
        // Dropping a large object takes time; nobody waits for it.
        drop(gone);
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

/// The members of an object in their order, values as they are written.
type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The members of an object, and those of its metadata.
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

fn write_members<'i, 'd: 'i>(
    body: &mut String,
    members: impl Iterator<Item = &'i (Cow<'d, str>, &'d RawValue)>,
) {
    body.push('{');
    for (at, (name, value)) in members.enumerate() {
        if at > 0 {
            body.push(',');
        }
        write_member(body, name, value);
    }
    body.push('}');
}

fn write_member(body: &mut String, name: &str, value: &RawValue) {
    if name.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        body.push_str(&serde_json::to_string(name).expect("a text can be written to memory"));
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
    fn what_everybody_asks_for_is_read_at_once() {
        let entry = entry();
        assert_eq!(entry.key().to_string(), "n/m");
        assert_eq!((entry.version(), entry.generation(), entry.is_deleting()), (7, 3, false));
        assert_eq!(entry.uid(), "u");
        assert_eq!(entry.marks().labels["app"], "web");
        assert_eq!(entry.owners()[0].name, "p");
        assert_eq!(entry.meta().unwrap().name.as_deref(), Some("m"));
    }

    #[test]
    fn managed_fields_are_left_out_unless_somebody_wants_them() {
        assert!(!String::from_utf8_lossy(entry().json()).contains("managedFields"));
        let whole = Entry::read(MAP, true).unwrap();
        assert!(String::from_utf8_lossy(whole.json()).contains("managedFields"));
    }

    #[test]
    fn what_is_read_again_is_decoded_twice_and_no_more() {
        let (entry, hot) = (entry(), Hot::new(10_000));
        let first: Arc<ConfigMap> = entry.decode(&hot).unwrap();
        assert_eq!(first.data.as_ref().unwrap()["a"], "b");
        let second = Arc::as_ptr(&entry.decode::<ConfigMap>(&hot).unwrap());
        assert_ne!(Arc::as_ptr(&first), second);
        assert_eq!(second, Arc::as_ptr(&entry.decode::<ConfigMap>(&hot).unwrap()));
    }

    #[test]
    fn what_is_read_in_turn_is_not_kept_when_its_turn_comes_back_too_late() {
        let hot = Hot::new(10_000);
        let entries: Vec<Entry> = (0..100).map(|_| entry()).collect();
        for entry in entries.iter().chain(&entries) {
            entry.decode::<ConfigMap>(&hot).unwrap();
        }
        assert_eq!(hot.held.lock().unwrap().bytes, 0);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let hot = Hot::new(10_000);
        let entries: Vec<Entry> = (0..100).map(|_| entry()).collect();
        for entry in &entries {
            for _ in 0..3 {
                entry.decode::<ConfigMap>(&hot).unwrap();
            }
        }
        let held = hot.held.lock().unwrap().bytes;
        assert!((9_000..=10_000).contains(&held), "{held}");
    }

    #[test]
    fn a_dynamic_object_says_what_it_is() {
        let entry = entry();
        let kind = Kind::of::<ConfigMap>();
        let object = entry.decode_dynamic(&kind, &Hot::new(0)).unwrap();
        assert_eq!(object.types.as_ref().unwrap().kind, "ConfigMap");
        assert_eq!(object.data["data"]["a"], "b");
    }

    #[test]
    fn a_name_that_must_be_escaped_stays_one() {
        let entry = Entry::read(r#"{"metadata":{"name":"m"},"a\"b\\":1}"#, false).unwrap();
        assert_eq!(entry.json(), br#"{"metadata":{"name":"m"},"a\"b\\":1}"#);
        let bare = Entry::read("{}", false).unwrap();
        assert_eq!(bare.json(), br#"{"metadata":{}}"#);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for wrong in ["", "[]", "1", "{\"metadata\":[]}", "{\"metadata\":{}", "null"] {
            assert!(Entry::read(wrong, false).is_err(), "{wrong} was read");
        }
    }
}
