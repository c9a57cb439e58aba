//! The client: reads from the cache where it watches, from the server otherwise, and writes.
//!
//! [`Client`] is what reconcilers get. It is generic only at its surface: inside, a request is a kind, a key and
//! JSON. It takes and gives kube's types, and [`Client::kube`] is the client below.

mod applied;
mod delete;
mod error;
mod mapper;
mod patch;
mod retry;
mod status;
mod subresource;
mod unknown;
mod upsert;
mod watch;
mod write;
pub(crate) mod write_tracker;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::Either;
use http::{Request, header};
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::applied::Applied;
pub use self::delete::Delete;
pub use self::error::{Error, ignore_not_found};
use self::mapper::Mapper;
pub use self::patch::Patch;
pub use self::retry::{Retry, retry_on_conflict};
pub(crate) use self::status::encoded_status;
pub use self::subresource::Subresource;
pub use self::upsert::Upsert;
pub use self::watch::{WatchEvent, WatchStream};
use self::write_tracker::WriteTracker;
use crate::cache::Cache;
use crate::decode::decode;
use crate::fence::Fence;
use crate::journal::Trail;
use crate::owner::{KindOf, Referable};
use crate::query::{self, Query};
use crate::{Gvk, Key, Kind, List, Object, Scope, traces, wire};

const PAGE: usize = 500;

tokio::task_local! {
    /// The client of the reconcile that this task runs.
    static RECONCILE: Client;
}

/// Talks to the API server. Cheap to clone; clones share connection and cache.
///
/// # In a reconcile
///
/// Writes in a reconcile are tracked, so that its key does not run again before the cache has seen them. This holds for
/// every client with a cache, such as a stored clone of [`Manager::client`](crate::Manager::client) or of the client
/// of an earlier reconcile. In a task that the reconcile spawned, it holds for clones of this reconcile's own client
/// only, and as long as the reconcile runs.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    settings: Settings,
    /// Set by [`Client::fenced`].
    fence: Option<Fence>,
    /// Of the reconcile that this client was made for.
    writes: Option<WriteTracker>,
    /// Of the reconcile that this client was made for, if the journal is on.
    trail: Option<Arc<Trail>>,
}

struct Shared {
    kube: kube::Client,
    cache: Option<Cache>,
    /// The fence of clients that have none of their own, outside of a reconcile.
    fence: Fence,
    mapper: Mapper,
    applied: Applied,
}

#[derive(Clone, Default)]
struct Settings {
    uncached: bool,
    dry_run: bool,
    field_owner: Option<Arc<str>>,
    field_validation: Option<&'static str>,
    namespace: Option<Arc<str>>,
}

/// How a server treats fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped in silence.
    Ignore,
    /// They are dropped, with a warning.
    Warn,
    /// The request fails.
    Strict,
}

/// What can be written: every [`Object`], [`DynamicObject`], and
/// [`ApplyObject`](crate::object::ApplyObject).
///
/// Implemented for all of them; there is nothing to write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes object that can be written",
    note = "use a type of k8s-openapi, a type with `#[derive(CustomResource)]`, or `DynamicObject`",
    note = "pass the object itself: `&*object` for an `Arc`"
)]
pub trait Writable: Referable + Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The type of the whole object, as the server returns it.
    type Stored: Writable;
}

impl<K> Writable for K
where
    K: kube::Resource<DynamicType: KindOf<K>> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    type Stored = <K::DynamicType as KindOf<K>>::Stored;
}

impl Client {
    /// A client without a cache: everything is asked of the server.
    pub fn new(kube: kube::Client) -> Self {
        Self::on(kube, None, Fence::open())
    }

    /// A client that reads from a cache what the cache watches.
    pub fn cached(kube: kube::Client, cache: Cache) -> Self {
        Self::on(kube, Some(cache), Fence::open())
    }

    /// A client, and the fence of all its clones that get no other.
    pub(crate) fn on(kube: kube::Client, cache: Option<Cache>, fence: Fence) -> Self {
        let shared = Shared { kube, cache, fence, mapper: Mapper::default(), applied: Applied::default() };
        Self {
            shared: Arc::new(shared),
            settings: Settings::default(),
            fence: None,
            writes: None,
            trail: None,
        }
    }

    /// The same client, whose writes are sent only while this fence is open.
    #[must_use]
    pub fn fenced(&self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self.clone() }
    }

    /// kube's client below.
    pub fn kube(&self) -> &kube::Client {
        &self.shared.kube
    }

    /// The cache that is read from.
    pub fn cache(&self) -> Option<&Cache> {
        self.shared.cache.as_ref()
    }

    /// The same client, reading from the server always.
    #[must_use]
    pub fn uncached(&self) -> Self {
        self.but(|settings| settings.uncached = true)
    }

    /// The same client, whose writes are checked by the server and not done.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.but(|settings| settings.dry_run = true)
    }

    /// The same client, writing under this name.
    #[must_use]
    pub fn field_owner(&self, owner: &str) -> Self {
        self.but(|settings| settings.field_owner = Some(owner.into()))
    }

    /// The same client, with its way to treat unknown fields.
    #[must_use]
    pub fn field_validation(&self, validation: FieldValidation) -> Self {
        self.but(|settings| {
            settings.field_validation = Some(match validation {
                FieldValidation::Ignore => "Ignore",
                FieldValidation::Warn => "Warn",
                FieldValidation::Strict => "Strict",
            });
        })
    }

    /// The same client for one namespace: objects without one are put there, and others are refused.
    #[must_use]
    pub fn namespaced(&self, namespace: &str) -> Self {
        self.but(|settings| settings.namespace = Some(namespace.into()))
    }

    fn but(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut other = self.clone();
        change(&mut other.settings);
        other
    }

    /// The same client for one reconcile: its writes are noted, and its requests leave a trail if there is one.
    pub(crate) fn noting(&self, writes: WriteTracker, trail: Option<Arc<Trail>>) -> Self {
        Self { writes: Some(writes), trail, ..self.clone() }
    }

    /// Runs the reconcile that this client was made for. Other clients that it uses write as this one does.
    pub(crate) fn during<F: Future>(&self, reconcile: F) -> impl Future<Output = F::Output> {
        RECONCILE.scope(self.clone(), reconcile)
    }

    /// Something of the reconcile that runs, if this client is a clone of the same client.
    fn of_reconcile<T>(&self, get: impl FnOnce(&Self) -> Option<T>) -> Option<T> {
        let same =
            |running: &Self| Arc::ptr_eq(&running.shared, &self.shared).then(|| get(running)).flatten();
        RECONCILE.try_with(same).ok().flatten()
    }

    /// Where writes are noted. The reconcile that runs comes first: a stored client is of another one, which ended.
    fn writes(&self) -> Option<WriteTracker> {
        let running = RECONCILE.try_with(|running| running.writes.clone()).ok().flatten();
        running.or_else(|| self.writes.clone())
    }

    /// The fence of writes: the client's own, or that of the controller that runs, or that of the manager.
    fn fence(&self) -> Fence {
        let own = self.fence.clone().or_else(|| self.of_reconcile(|running| running.fence.clone()));
        own.unwrap_or_else(|| self.shared.fence.clone())
    }

    /// Sends a request and reads the whole answer. Everything that a client asks goes through here.
    pub(crate) fn send(
        &self,
        mut request: Request<Vec<u8>>,
    ) -> impl Future<Output = Result<Bytes, Error>> + '_ {
        let kube = &self.shared.kube;
        let span = traces::request(&mut request);
        let trail = self.of_reconcile(|running| running.trail.clone()).or_else(|| self.trail.clone());
        let sent = match &trail {
            None => Either::Left(wire::send(kube, request)),
            // Boxed: hardly any request is followed, and every future would have to have room for it.
            Some(trail) => {
                let asking = trail.asks(&request);
                Either::Right(Box::pin(wire::send_followed(kube, request, asking)))
            }
        };
        traces::follow(span, sent)
    }

    /// One object. From the cache if it watches the type, else from the server.
    pub async fn get<K: Object>(&self, key: &Key) -> Result<Arc<K>, Error> {
        let kind = Kind::of::<K>();
        let key = self.placed_key(&kind, key)?;
        if let Some(informer) = self.watched(&kind, K::metadata_api(), key.namespace()) {
            informer.readable().await?;
            return match informer.entry(&key) {
                Some(entry) => informer.decode(&entry),
                None => Err(not_found(&kind, &key)),
            };
        }
        let body = self.fetch(&kind, &key, K::metadata_api()).await?;
        read(&kind, &body).map(Arc::new)
    }

    /// One object, or none if it is not there.
    pub async fn get_opt<K: Object>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        ignore_not_found(self.get(key).await)
    }

    /// Objects of a type. From the cache if it watches the type, else from the server.
    pub async fn list<K: Object>(&self, list: &List) -> Result<Vec<Arc<K>>, Error> {
        let kind = Kind::of::<K>();
        let list = self.placed_list(&kind, list)?;
        if let Some(informer) = self.watched(&kind, K::metadata_api(), list.namespace.as_deref()) {
            informer.readable().await?;
            return informer.entries(&list)?.iter().map(|entry| informer.decode(entry)).collect();
        }
        let read =
            |item: &RawValue| decode(item.get()).map(Arc::new).map_err(|source| unreadable(&kind, source));
        self.fetch_all(&kind, &list, K::metadata_api(), read).await
    }

    /// Where a kind that is known at run time only is served.
    pub async fn kind(&self, gvk: &Gvk) -> Result<Kind, Error> {
        self.shared.mapper.kind(self, gvk).await
    }

    /// One object of a kind that is known at run time only.
    pub async fn get_dynamic(&self, gvk: &Gvk, key: &Key) -> Result<Arc<DynamicObject>, Error> {
        let kind = self.kind(gvk).await?;
        let key = self.placed_key(&kind, key)?;
        if let Some(informer) = self.watched(&kind, false, key.namespace()) {
            informer.readable().await?;
            return match informer.entry(&key) {
                Some(entry) => informer.decode_dynamic(&entry),
                None => Err(not_found(&kind, &key)),
            };
        }
        let body = self.fetch(&kind, &key, false).await?;
        read(&kind, &body).map(Arc::new)
    }

    /// Objects of a kind that is known at run time only.
    pub async fn list_dynamic(&self, gvk: &Gvk, list: &List) -> Result<Vec<Arc<DynamicObject>>, Error> {
        let kind = self.kind(gvk).await?;
        let list = self.placed_list(&kind, list)?;
        if let Some(informer) = self.watched(&kind, false, list.namespace.as_deref()) {
            informer.readable().await?;
            return informer.entries(&list)?.iter().map(|entry| informer.decode_dynamic(entry)).collect();
        }
        let read = |item: &RawValue| {
            let mut object: DynamicObject =
                serde_json::from_str(item.get()).map_err(|source| unreadable(&kind, source))?;
            object.types = Some(kind.type_meta());
            Ok(Arc::new(object))
        };
        self.fetch_all(&kind, &list, false, read).await
    }

    /// An object as the server has it now, whatever the cache says.
    pub(crate) async fn fresh<K: Writable>(&self, object: &K) -> Result<Option<K>, Error> {
        let (kind, key) = self.locate(object).await?;
        match ignore_not_found(self.fetch(&kind, &key, false).await)? {
            Some(body) => read(&kind, &body).map(Some),
            None => Ok(None),
        }
    }

    fn watched(
        &self,
        kind: &Kind,
        metadata_only: bool,
        namespace: Option<&str>,
    ) -> Option<Arc<crate::cache::Informer>> {
        let cache = self.shared.cache.as_ref().filter(|_| !self.settings.uncached)?;
        let informer = cache.watching(kind, metadata_only).filter(|informer| !informer.is_missing())?;
        // A cache of some namespaces knows nothing of the others. A list of all is a list of all that is watched.
        (namespace.is_none() || informer.covers(namespace)).then_some(informer)
    }

    async fn fetch(&self, kind: &Kind, key: &Key, metadata_only: bool) -> Result<Bytes, Error> {
        let accept = if metadata_only { wire::METADATA } else { "application/json" };
        let request = Request::get(path(kind, key, None)).header(header::ACCEPT, accept).body(Vec::new());
        self.send(request.map_err(Error::Build)?).await
    }

    async fn fetch_all<T>(
        &self,
        kind: &Kind,
        list: &List,
        metadata_only: bool,
        read: impl Fn(&RawValue) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let accept = if metadata_only { wire::METADATA_LIST } else { "application/json" };
        let most = list.limit.unwrap_or(usize::MAX);
        let (mut found, mut token, mut in_pages) = (Vec::new(), String::new(), true);
        if most == 0 {
            // A server takes a limit of zero for none.
            return Ok(found);
        }
        loop {
            let mut query = selection(kind, list)?;
            if in_pages {
                query.push("limit", PAGE.min(most - found.len()));
            }
            if !token.is_empty() {
                query.push("continue", &token);
            }
            let request = Request::get(query.as_str()).header(header::ACCEPT, accept).body(Vec::new());
            let body = match self.send(request.map_err(Error::Build)?).await {
                // The rest of the list is forgotten: all of it in one piece, which cannot be.
                Err(error) if error.is_expired() && !token.is_empty() => {
                    (found, token, in_pages) = (Vec::new(), String::new(), false);
                    continue;
                }
                body => body?,
            };
            let page = wire::text(&body).and_then(serde_json::from_str::<Page<'_>>);
            let page = page.map_err(|source| unreadable(kind, source))?;
            for item in page.items.unwrap_or_default().into_iter().take(most - found.len()) {
                found.push(read(item)?);
            }
            token = page.metadata.r#continue;
            if token.is_empty() || found.len() >= most {
                return Ok(found);
            }
        }
    }

    /// The key within the namespace of this client.
    fn placed_key(&self, kind: &Kind, key: &Key) -> Result<Key, Error> {
        self.place(kind, key.namespace(), key.name())
    }

    fn place(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<Key, Error> {
        if kind.scope() == Scope::Cluster {
            return Ok(Key::cluster(name));
        }
        match (namespace.filter(|it| !it.is_empty()), self.settings.namespace.as_deref()) {
            (Some(namespace), Some(client)) if namespace != client => Err(Error::OtherNamespace {
                kind: kind.name().to_owned(),
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                client: client.to_owned(),
            }),
            (Some(namespace), _) | (None, Some(namespace)) => Ok(Key::namespaced(namespace, name)),
            (None, None) => {
                Err(Error::NamespaceMissing { kind: kind.name().to_owned(), name: name.to_owned() })
            }
        }
    }

    /// The list within the namespace of this client.
    fn placed_list(&self, kind: &Kind, list: &List) -> Result<List, Error> {
        let wanted = list.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = match (kind.scope(), wanted, self.settings.namespace.as_deref()) {
            (Scope::Cluster, _, _) => None,
            (_, Some(namespace), Some(client)) if namespace != client => {
                return Err(Error::OtherNamespace {
                    kind: kind.name().to_owned(),
                    name: "*".to_owned(),
                    namespace: namespace.to_owned(),
                    client: client.to_owned(),
                });
            }
            (_, wanted, client) => wanted.or(client).map(str::to_owned),
        };
        Ok(List { namespace, ..list.clone() })
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PageMeta {
    r#continue: String,
}

/// The path of one object, or of a part of it.
fn path(kind: &Kind, key: &Key, subresource: Option<&str>) -> String {
    let mut path = kind.path(key.namespace());
    path.push('/');
    // Names of roles may have any letters.
    query::encode(&mut path, key.name());
    if let Some(subresource) = subresource {
        path.push('/');
        path.push_str(subresource);
    }
    path
}

/// The path of a list.
fn selection(kind: &Kind, list: &List) -> Result<Query, Error> {
    let mut query = Query::new(kind.path(list.namespace.as_deref()));
    let labels = list.label_selector()?;
    if !labels.is_empty() {
        query.push("labelSelector", labels);
    }
    if !list.fields.is_empty() {
        query.push("fieldSelector", list.field_selector());
    }
    Ok(query)
}

fn read<T: DeserializeOwned>(kind: &Kind, body: &[u8]) -> Result<T, Error> {
    wire::text(body).and_then(decode).map_err(|source| unreadable(kind, source))
}

fn unreadable(kind: &Kind, source: serde_json::Error) -> Error {
    Error::Decode { what: format!("an object of {}", kind.gvk()), source }
}

fn not_found(kind: &Kind, key: &Key) -> Error {
    let Gvk { group, .. } = kind.gvk();
    let resource =
        if group.is_empty() { kind.plural().to_owned() } else { format!("{}.{group}", kind.plural()) };
    let message = format!("{resource} \"{}\" not found", key.name());
    Error::Status(Box::new(kube::core::Status::failure(&message, "NotFound").with_code(404)))
}
