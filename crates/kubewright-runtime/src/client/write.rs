//! Writes: create, update, patch, apply, delete.
//!
//! Every write goes through [`Client::write`]: it checks the fence, sends the request, and tracks a write with an
//! unknown outcome. The caller tracks the version in the response.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::applied::ApplyIntent;
use super::unknown::{InFlight, Target, is_unknown};
use super::write_tracker::WriteResult;
use super::{Client, Delete, Error, Patch, Writable, path, read, selection};
use crate::query::Query;
use crate::{Gvk, Key, Kind, ListOptions, Object};

/// The default field manager.
const OWNER: &str = "kubewright";

impl Client {
    /// Creates an object, and returns it as the server stored it.
    pub async fn create<K: Writable>(&self, object: &K) -> Result<K::Stored, Error> {
        let kind = self.kind_of(object).await?;
        let meta = object.metadata();
        let name = meta.name.as_deref().unwrap_or_default();
        if name.is_empty() && meta.generate_name.as_deref().unwrap_or_default().is_empty() {
            return Err(Error::Nameless(kind.name().to_owned()));
        }
        let place = self.place(&kind, meta.namespace.as_deref(), name)?;
        let query = self.parameters(Query::new(kind.path(place.namespace())));
        let target = match name {
            "" => Target::Collection(place.namespace().map(str::to_owned)),
            _ => Target::Object(place),
        };
        let body = encoded(&kind, object)?;
        let body = self.write(&kind, &target, Method::POST, query, "application/json", body).await?;
        self.written(&kind, &target, &body)
    }

    /// Replaces an object. Fails with a conflict if it changed since `object` was read.
    pub async fn update<K: Writable>(&self, object: &K) -> Result<K, Error> {
        self.replace(object, None).await
    }

    pub(super) async fn replace<K: Writable>(&self, object: &K, part: Option<&str>) -> Result<K, Error> {
        let (kind, key) = self.locate(object).await?;
        let query = self.parameters(Query::new(path(&kind, &key, part)));
        let (target, body) = (Target::Object(key), encoded(&kind, object)?);
        let body = self.write(&kind, &target, Method::PUT, query, "application/json", body).await?;
        self.written(&kind, &target, &body)
    }

    /// Patches the object that `object` names, and returns the result.
    pub async fn patch<K: Writable>(&self, object: &K, patch: &Patch) -> Result<K, Error> {
        self.send_patch(object, patch, None).await
    }

    /// Patches an object or a subresource, and decodes the response as `A`.
    pub(super) async fn send_patch<K: Writable, A: Writable>(
        &self,
        object: &K,
        patch: &Patch,
        part: Option<&str>,
    ) -> Result<A, Error> {
        let (kind, key) = self.locate(object).await?;
        let body = self.write_patch(&kind, &key, patch, part).await?;
        self.written(&kind, &Target::Object(key), &body)
    }

    pub(crate) async fn write_patch(
        &self,
        kind: &Kind,
        key: &Key,
        patch: &Patch,
        part: Option<&str>,
    ) -> Result<Bytes, Error> {
        let mut query = self.parameters(Query::new(path(kind, key, part)));
        if patch.is_apply() && patch.force {
            query.push("force", true);
        }
        let bytes = serde_json::to_vec(patch.value()).map_err(|source| unwritable(kind, source))?;
        let target = Target::Object(key.clone());
        self.write(kind, &target, Method::PATCH, query, patch.content_type(), bytes).await
    }

    /// Server-side apply: sets the fields of `wanted`, and removes fields of an earlier apply that `wanted` does not
    /// have. A [`DynamicObject`](kube::api::DynamicObject) is applied in the same way.
    ///
    /// Takes ownership of conflicting fields; use [`Client::patch`] with [`Patch::apply`] to get a conflict instead.
    ///
    /// Nothing is sent if the cache shows that the apply would change nothing: the same intent was applied before, and
    /// all its fields still have the values from then. Other fields, such as the status, do not matter.
    pub async fn apply<K: Writable>(&self, wanted: &K) -> Result<K::Stored, Error> {
        let (kind, key) = self.locate(wanted).await?;
        let patch = Patch::apply(typed(&kind, wanted)?)?.force();
        let intent = ApplyIntent::new(&kind, &key, patch.value(), self.settings.field_owner.as_deref());
        let informer = self.watched(&kind, false, key.namespace()).filter(|_| !self.settings.dry_run);
        if let Some(informer) = &informer
            && let Some(entry) = informer.entry(&key)
            && self.shared.applied.is_fulfilled(&intent, entry.version(), entry.json())
        {
            return Ok((*informer.object::<K::Stored>(&entry)?).clone());
        }
        let body = self.write_patch(&kind, &key, &patch, None).await?;
        let applied: K::Stored = self.written(&kind, &Target::Object(key.clone()), &body)?;
        if informer.is_some() {
            self.shared.applied.note(&intent, version(&applied), &body);
        }
        Ok(applied)
    }

    /// Deletes an object.
    pub async fn delete<K: Writable>(&self, object: &K) -> Result<(), Error> {
        self.delete_with(object, &Delete::new()).await
    }

    /// Deletes an object with options.
    pub async fn delete_with<K: Writable>(&self, object: &K, how: &Delete) -> Result<(), Error> {
        let (kind, key) = self.locate(object).await?;
        self.remove(&kind, &key, how).await
    }

    /// Deletes an object by key.
    pub async fn delete_key<K: Object>(&self, key: &Key, how: &Delete) -> Result<(), Error> {
        let kind = Kind::of::<K>();
        let key = self.key_in_namespace(&kind, key)?;
        self.remove(&kind, &key, how).await
    }

    async fn remove(&self, kind: &Kind, key: &Key, how: &Delete) -> Result<(), Error> {
        let (target, body) = (Target::Object(key.clone()), self.options(how, kind)?);
        let query = Query::new(path(kind, key, None));
        let body = self.write(kind, &target, Method::DELETE, query, "application/json", body).await?;
        let answer: Answer = self.answer(kind, &target, &body)?;
        self.note_deleted(kind, key, answer);
        Ok(())
    }

    /// Tracks the response to the deletion of an object.
    pub(super) fn note_deleted(&self, kind: &Kind, key: &Key, answer: Answer) {
        match (answer.kind.as_str(), answer.details) {
            ("Status", Some(details)) if !details.uid.is_empty() => {
                self.wrote(kind, key, None, &WriteResult::Removed(details.uid));
            }
            ("Status", _) => {}
            _ => self.note_answer(kind, key, &answer.metadata),
        }
    }

    /// Deletes all objects of a list in one request. For namespaced kinds the list must have a namespace.
    pub async fn delete_all_of<K: Object>(&self, list: &ListOptions, how: &Delete) -> Result<(), Error> {
        self.remove_all(&Kind::of::<K>(), list, how).await
    }

    /// Deletes all objects of a list, for a kind that is known only at run time.
    pub async fn delete_all_of_dynamic(
        &self,
        gvk: &Gvk,
        list: &ListOptions,
        how: &Delete,
    ) -> Result<(), Error> {
        self.remove_all(&self.kind(gvk).await?, list, how).await
    }

    async fn remove_all(&self, kind: &Kind, list: &ListOptions, how: &Delete) -> Result<(), Error> {
        let list = self.list_in_namespace(kind, list)?;
        if kind.scope() == crate::Scope::Namespaced && list.namespace.is_none() {
            return Err(Error::NamespaceMissing { kind: kind.name().to_owned(), name: "*".to_owned() });
        }
        let (target, body) = (Target::Collection(list.namespace.clone()), self.options(how, kind)?);
        let query = selection(kind, &list)?;
        let body = self.write(kind, &target, Method::DELETE, query, "application/json", body).await?;
        let answer: Answer = self.answer(kind, &target, &body)?;
        self.note_all_deleted(kind, answer);
        Ok(())
    }

    /// Tracks the response to the deletion of a collection.
    pub(super) fn note_all_deleted(&self, kind: &Kind, answer: Answer) {
        for Item { metadata } in answer.items.unwrap_or_default() {
            let key = metadata.key();
            match (metadata.deletion_timestamp.is_some(), metadata.resource_version.parse()) {
                // Already terminating: this request may have changed nothing.
                (true, _) => self.note_answer(kind, &key, &metadata),
                // The response has the objects before their deletion, without their next version.
                (false, Ok(version)) => {
                    self.wrote(
                        kind,
                        &key,
                        metadata.labels.as_ref(),
                        &WriteResult::Deleted(metadata.uid, version),
                    );
                }
                (false, Err(_)) => {}
            }
        }
    }

    fn options(&self, how: &Delete, kind: &Kind) -> Result<Vec<u8>, Error> {
        let mut how = how.clone();
        if self.settings.dry_run {
            how.dry_run = vec!["All"];
        }
        serde_json::to_vec(&how).map_err(|source| unwritable(kind, source))
    }

    /// Sends a write. If the response is lost, tracks the write as one that the server may have processed.
    pub(super) async fn write(
        &self,
        kind: &Kind,
        target: &Target,
        method: Method,
        query: Query,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<Bytes, Error> {
        let request = Request::builder()
            .method(method)
            .uri(query.as_str())
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, "application/json")
            .body(body)
            .map_err(Error::Build)?;
        let fence = self.fence();
        fence.check().map_err(|_| Error::Fenced)?;
        // Also tracked if the caller drops this future while it waits.
        let sent = self.in_flight(kind, target);
        let result = fence.guard(self.send(request)).await.unwrap_or(Err(Error::Fenced));
        if !result.as_ref().is_err_and(is_unknown) {
            sent.settle();
        }
        result
    }

    /// A write whose outcome is unknown until it is settled.
    pub(super) fn in_flight<'a>(&'a self, kind: &'a Kind, target: &'a Target) -> InFlight<'a> {
        let writes = if self.settings.dry_run { None } else { self.writes() };
        InFlight::new(self, kind, target, writes)
    }

    /// Decodes the response to a write. If that fails, the write happened, but its version is unknown.
    pub(super) fn answer<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        target: &Target,
        body: &[u8],
    ) -> Result<T, Error> {
        read(kind, body).inspect_err(|_| drop(self.in_flight(kind, target)))
    }

    /// Decodes the object in the response to a write, and tracks its version.
    fn written<K: Writable>(&self, kind: &Kind, target: &Target, body: &[u8]) -> Result<K, Error> {
        let written: K = self.answer(kind, target, body)?;
        self.note(kind, &written);
        Ok(written)
    }

    pub(super) fn parameters(&self, mut query: Query) -> Query {
        let settings = &self.settings;
        if settings.dry_run {
            query.push("dryRun", "All");
        }
        query.push("fieldManager", settings.field_owner.as_deref().unwrap_or(OWNER));
        if let Some(validation) = settings.field_validation {
            query.push("fieldValidation", validation);
        }
        query
    }

    pub(crate) async fn kind_of<K: Writable>(&self, object: &K) -> Result<Kind, Error> {
        match K::known_kind() {
            Some(kind) => Ok(kind),
            None => self.kind(&object.gvk().ok_or(Error::Kindless)?).await,
        }
    }

    pub(super) async fn locate<K: Writable>(&self, object: &K) -> Result<(Kind, Key), Error> {
        let kind = self.kind_of(object).await?;
        let meta = object.metadata();
        let name = meta.name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::Nameless(kind.name().to_owned()))?;
        let key = self.place(&kind, meta.namespace.as_deref(), name)?;
        Ok((kind, key))
    }

    fn note<K: Writable>(&self, kind: &Kind, written: &K) {
        let meta = written.metadata();
        let key = Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        // A missing map means that the object has no labels.
        let none = BTreeMap::new();
        let labels = meta.labels.as_ref().unwrap_or(&none);
        self.wrote(kind, &key, Some(labels), &WriteResult::Version(version(written)));
    }

    /// Tracks the object in the response to a write.
    pub(super) fn note_written(&self, kind: &Kind, key: &Key, mut metadata: AnswerMeta) {
        // A missing map means that the object has no labels.
        metadata.labels.get_or_insert_default();
        self.note_answer(kind, key, &metadata);
    }

    /// Tracks the version in the response to a write of an object or a subresource.
    pub(super) fn note_answer(&self, kind: &Kind, key: &Key, metadata: &AnswerMeta) {
        if let Ok(version) = metadata.resource_version.parse() {
            self.wrote(kind, key, metadata.labels.as_ref(), &WriteResult::Version(version));
        }
    }

    fn wrote(&self, kind: &Kind, key: &Key, labels: Option<&BTreeMap<String, String>>, wrote: &WriteResult) {
        if let (Some(writes), Some(cache), false) = (self.writes(), &self.shared.cache, self.settings.dry_run)
        {
            writes.note(cache, kind, key, wrote, labels);
        }
    }
}

/// The parts of a response that predict what the cache will see. It is an object, a list, a subresource or a Status.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Answer {
    kind: String,
    /// Only in a Status.
    details: Option<Details>,
    pub(super) metadata: AnswerMeta,
    /// Only in a list.
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: AnswerMeta,
}

/// The name in the body of a request.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Identity {
    name: Option<String>,
}

impl Identity {
    /// The name, unless it is empty.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnswerMeta {
    name: String,
    namespace: Option<String>,
    uid: String,
    pub(super) resource_version: String,
    deletion_timestamp: Option<String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
}

impl AnswerMeta {
    pub(super) fn key(&self) -> Key {
        Key::new(self.namespace.as_deref(), &self.name)
    }
}

fn version<K: Writable>(object: &K) -> u64 {
    object.metadata().resource_version.as_deref().and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn encoded<K: Writable>(kind: &Kind, object: &K) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(object).map_err(|source| unwritable(kind, source))
}

/// The object with `apiVersion` and `kind`, which an apply requires.
fn typed<K: Writable>(kind: &Kind, object: &K) -> Result<Value, Error> {
    let mut value = serde_json::to_value(object).map_err(|source| unwritable(kind, source))?;
    if let Some(members) = value.as_object_mut() {
        let types = kind.type_meta();
        members.entry("apiVersion").or_insert_with(|| Value::from(types.api_version));
        members.entry("kind").or_insert_with(|| Value::from(types.kind));
    }
    Ok(value)
}

fn unwritable(kind: &Kind, source: serde_json::Error) -> Error {
    Error::Encode { what: kind.name().to_owned(), source }
}
