//! Writes: create, update, patch, apply, delete.
//!
//! Every write goes through [`Client::write`]: it asks the fence, sends, and notes what the cache is to see.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, header};
use serde::Deserialize;
use serde_json::Value;

use super::applied::Wish;
use super::ledger::Wrote;
use super::{Client, Delete, Error, Patch, Writable, path, read, selection};
use crate::query::Query;
use crate::{Key, Kind, List, Object};

/// The manager of fields that were written without naming one.
const OWNER: &str = "kubewright";

impl Client {
    /// Creates an object, and returns it as the server stored it.
    pub async fn create<K: Writable>(&self, object: &K) -> Result<K, Error> {
        let kind = self.kind_of(object).await?;
        let meta = object.object_meta();
        let name = meta.name.as_deref().unwrap_or_default();
        if name.is_empty() && meta.generate_name.as_deref().unwrap_or_default().is_empty() {
            return Err(Error::Nameless(kind.name().to_owned()));
        }
        let place = self.place(&kind, meta.namespace.as_deref(), name)?;
        let query = self.parameters(Query::new(kind.path(place.namespace())));
        let body =
            self.write(&kind, Method::POST, query, "application/json", encoded(&kind, object)?).await?;
        let created: K = read(&kind, &body)?;
        self.note(&kind, &created);
        Ok(created)
    }

    /// Replaces an object. Fails with a conflict if it changed since `object` was read.
    pub async fn update<K: Writable>(&self, object: &K) -> Result<K, Error> {
        self.replace(object, None).await
    }

    pub(super) async fn replace<K: Writable>(&self, object: &K, part: Option<&str>) -> Result<K, Error> {
        let (kind, key) = self.locate(object).await?;
        let query = self.parameters(Query::new(path(&kind, &key, part)));
        let body = self.write(&kind, Method::PUT, query, "application/json", encoded(&kind, object)?).await?;
        let updated: K = read(&kind, &body)?;
        self.note(&kind, &updated);
        Ok(updated)
    }

    /// Patches the object that `object` names, and returns it as it is now.
    pub async fn patch<K: Writable>(&self, object: &K, patch: &Patch) -> Result<K, Error> {
        self.send_patch(object, patch, None).await
    }

    pub(super) async fn send_patch<K: Writable>(
        &self,
        object: &K,
        patch: &Patch,
        part: Option<&str>,
    ) -> Result<K, Error> {
        let (kind, key) = self.locate(object).await?;
        let body = self.write_patch(&kind, &key, patch, part).await?;
        let patched: K = read(&kind, &body)?;
        self.note(&kind, &patched);
        Ok(patched)
    }

    async fn write_patch(
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
        self.write(kind, Method::PATCH, query, patch.content_type(), bytes).await
    }

    /// Server-side apply: the object becomes what `wanted` says, and fields that earlier applies said go.
    ///
    /// Fields that others own are taken over; for a conflict instead, patch with [`Patch::apply`].
    ///
    /// Nothing is sent if the cache knows that it would change nothing: the same was applied before, and every field
    /// that `wanted` names is as it was after that. So a status that others write, or their labels, cost no request.
    pub async fn apply<K: Object>(&self, wanted: &K) -> Result<K, Error> {
        let (kind, key) = self.locate(wanted).await?;
        let patch = Patch::apply(typed(&kind, wanted)?)?.force();
        let wish = Wish::new(&kind, &key, patch.value(), self.settings.field_owner.as_deref());
        let informer = self.watched(&kind, false, key.namespace()).filter(|_| !self.settings.dry_run);
        if let Some(informer) = &informer
            && let Some(entry) = informer.entry(&key)
            && self.shared.applied.is_fulfilled(&wish, entry.version(), entry.json())
        {
            return Ok((*informer.decode::<K>(&entry)?).clone());
        }
        let body = self.write_patch(&kind, &key, &patch, None).await?;
        let applied: K = read(&kind, &body)?;
        self.note(&kind, &applied);
        if informer.is_some() {
            self.shared.applied.note(&wish, version(&applied), &body);
        }
        Ok(applied)
    }

    /// Deletes an object.
    pub async fn delete<K: Writable>(&self, object: &K) -> Result<(), Error> {
        self.delete_with(object, &Delete::new()).await
    }

    /// Deletes an object in a given way.
    pub async fn delete_with<K: Writable>(&self, object: &K, how: &Delete) -> Result<(), Error> {
        let (kind, key) = self.locate(object).await?;
        self.remove(&kind, &key, how).await
    }

    /// Deletes the object of a key.
    pub async fn delete_key<K: Object>(&self, key: &Key, how: &Delete) -> Result<(), Error> {
        let kind = Kind::of::<K>();
        let key = self.placed_key(&kind, key)?;
        self.remove(&kind, &key, how).await
    }

    async fn remove(&self, kind: &Kind, key: &Key, how: &Delete) -> Result<(), Error> {
        let body = self.options(how, kind)?;
        let body = self
            .write(kind, Method::DELETE, Query::new(path(kind, key, None)), "application/json", body)
            .await?;
        let answer: Answer = read(kind, &body)?;
        match (answer.kind.as_str(), answer.details) {
            ("Status", Some(details)) if !details.uid.is_empty() => {
                self.wrote(kind, key, None, &Wrote::Gone(details.uid));
            }
            ("Status", _) => {}
            _ => self.note_answer(kind, key, &answer.metadata),
        }
        Ok(())
    }

    /// Deletes all objects of a list in one request per namespace.
    pub async fn delete_all_of<K: Object>(&self, list: &List, how: &Delete) -> Result<(), Error> {
        let kind = Kind::of::<K>();
        let list = self.placed_list(&kind, list)?;
        if kind.scope() == crate::Scope::Namespaced && list.namespace.is_none() {
            return Err(Error::NamespaceMissing { kind: kind.name().to_owned(), name: "*".to_owned() });
        }
        let body = self.options(how, &kind)?;
        let body =
            self.write(&kind, Method::DELETE, selection(&kind, &list)?, "application/json", body).await?;
        let answer: Answer = read(&kind, &body)?;
        for Item { metadata } in answer.items.unwrap_or_default() {
            let key = Key::new(metadata.namespace.as_deref(), &metadata.name);
            match metadata.deletion_timestamp {
                Some(_) => self.note_answer(&kind, &key, &metadata),
                None => self.wrote(&kind, &key, None, &Wrote::Gone(metadata.uid)),
            }
        }
        Ok(())
    }

    fn options(&self, how: &Delete, kind: &Kind) -> Result<Vec<u8>, Error> {
        let mut how = how.clone();
        if self.settings.dry_run {
            how.dry_run = vec!["All"];
        }
        serde_json::to_vec(&how).map_err(|source| unwritable(kind, source))
    }

    /// Sends what changes something.
    pub(super) async fn write(
        &self,
        _kind: &Kind,
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
        self.fence.guard(self.send(request)).await.map_err(|_| Error::Fenced)?
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

    pub(super) async fn kind_of<K: Writable>(&self, object: &K) -> Result<Kind, Error> {
        match K::known_kind() {
            Some(kind) => Ok(kind),
            None => self.kind(&object.named_kind().ok_or(Error::Kindless)?).await,
        }
    }

    pub(super) async fn locate<K: Writable>(&self, object: &K) -> Result<(Kind, Key), Error> {
        let kind = self.kind_of(object).await?;
        let meta = object.object_meta();
        let name = meta.name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::Nameless(kind.name().to_owned()))?;
        let key = self.place(&kind, meta.namespace.as_deref(), name)?;
        Ok((kind, key))
    }

    fn note<K: Writable>(&self, kind: &Kind, written: &K) {
        let meta = written.object_meta();
        let key = Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        // An object without labels is known to have none.
        let none = BTreeMap::new();
        let labels = meta.labels.as_ref().unwrap_or(&none);
        self.wrote(kind, &key, Some(labels), &Wrote::Version(version(written)));
    }

    /// Notes what an answer says of the object that was written, or of a part of it.
    pub(super) fn note_answer(&self, kind: &Kind, key: &Key, metadata: &AnswerMeta) {
        if let Ok(version) = metadata.resource_version.parse() {
            self.wrote(kind, key, metadata.labels.as_ref(), &Wrote::Version(version));
        }
    }

    fn wrote(&self, kind: &Kind, key: &Key, labels: Option<&BTreeMap<String, String>>, wrote: &Wrote) {
        if let (Some(ledger), Some(cache), false) = (&self.ledger, &self.shared.cache, self.settings.dry_run)
        {
            ledger.note(cache, kind, key, wrote, labels);
        }
    }
}

/// The answer to a write, as far as it tells what the cache will see: an object, a list, a part or a Status.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Answer {
    kind: String,
    /// Of a Status.
    details: Option<Details>,
    pub(super) metadata: AnswerMeta,
    /// Of a list.
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

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnswerMeta {
    name: String,
    namespace: Option<String>,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

fn version<K: Writable>(object: &K) -> u64 {
    object.object_meta().resource_version.as_deref().and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn encoded<K: Writable>(kind: &Kind, object: &K) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(object).map_err(|source| unwritable(kind, source))
}

/// The object with its `apiVersion` and `kind`, which an apply must have.
fn typed<K: Object>(kind: &Kind, object: &K) -> Result<Value, Error> {
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
