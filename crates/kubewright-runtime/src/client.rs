//! The client: reads watched kinds from the cache and everything else from the server, and writes to the server.
//!
//! Reconcilers use [`Client`]. Only its methods are generic: internally a request is a kind, a key and JSON. It uses
//! kube's types, and [`Client::kube`] returns a kube client that is fenced and tracked in the same way.

mod applied;
mod delete;
mod error;
mod kube_client;
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

use ::http::{Request, header};
use bytes::Bytes;
use futures_util::future::Either;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::applied::Applied;
pub use self::delete::Delete;
pub(crate) use self::error::is_conflict;
pub use self::error::{Error, ignore_not_found};
use self::mapper::Mapper;
pub use self::patch::Patch;
pub use self::retry::{Retry, retry_on_conflict};
pub(crate) use self::status::encoded_status;
pub use self::subresource::Subresource;
pub use self::upsert::Upsert;
pub use self::watch::{WatchEvent, WatchStream};
use self::write_tracker::WriteTracker;
use crate::cache::{Cache, Informer};
use crate::decode::decode;
use crate::fence::Fence;
pub use crate::fence::{FenceLayer, FenceService};
use crate::journal::Trail;
use crate::owner::{KindOf, Referable};
use crate::query::{self, Query};
use crate::{Gvk, Key, Kind, ListOptions, Object, Scope, http, traces};

const PAGE: usize = 500;

tokio::task_local! {
    /// The client of the reconcile that this task runs.
    static RECONCILE: Client;
}

/// Talks to the API server. Cheap to clone; clones share connection and cache.
///
/// # In a reconcile
///
/// Writes in a reconcile are tracked, so that its key does not run again before the cache has seen them. This applies
/// to every client with a cache, such as a stored clone of [`Manager::client`](crate::Manager::client) or the client of
/// an earlier reconcile. In a task that the reconcile spawned, it applies only to clones of this reconcile's own
/// client, and only while the reconcile runs.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    settings: Settings,
    /// Set by [`Client::fenced`].
    fence: Option<Fence>,
    /// The tracker of the reconcile that this client was created for.
    writes: Option<WriteTracker>,
    /// The trail of the reconcile that this client was created for, if the journal is enabled.
    trail: Option<Arc<Trail>>,
}

struct Shared {
    kube: kube::Client,
    cache: Option<Cache>,
    /// The default fence of clients outside a reconcile.
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

/// How the server treats unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them silently.
    Ignore,
    /// Drops them with a warning.
    Warn,
    /// Rejects the request.
    Strict,
}

/// Objects that can be written: every [`Object`], [`DynamicObject`], and
/// [`ApplyObject`](crate::object::ApplyObject).
///
/// Implemented for all of them; do not implement it yourself.
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
    /// Creates a client without a cache. All reads go to the server.
    ///
    /// Create kube's client with [`connect::client`](crate::connect::client). A client of `kube::Client::try_from`
    /// repeats any request after status 429, 503 or 504, so that one create can send two POSTs, unless `default_retry` of
    /// its `kube::Config` is false.
    pub fn new(kube: kube::Client) -> Self {
        Self::on(kube, None, Fence::open())
    }

    /// Creates a client that reads the watched kinds from a cache.
    pub fn cached(kube: kube::Client, cache: Cache) -> Self {
        Self::on(kube, Some(cache), Fence::open())
    }

    /// Creates a client with a default fence for its clones.
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

    /// Returns a client that sends writes on every replica, not only on the leader.
    ///
    /// Use it for objects that belong to one replica. Two replicas that write the same object overwrite each
    /// other.
    #[must_use]
    pub fn unfenced(&self) -> Self {
        self.fenced(Fence::open())
    }

    /// Returns a client that sends writes only while this fence is open.
    #[must_use]
    pub(crate) fn fenced(&self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self.clone() }
    }

    /// A `tower` layer with the fence of this client, for a client of another version of kube or of another library.
    ///
    /// Requests through it are fenced, but not tracked: a key may run again before the cache has seen them.
    pub fn fence_layer(&self) -> FenceLayer {
        FenceLayer::new(self.fence())
    }

    /// The underlying kube client, for reads: it is neither fenced nor tracked.
    pub(crate) fn raw(&self) -> &kube::Client {
        &self.shared.kube
    }

    /// The cache that this client reads from.
    pub fn cache(&self) -> Option<&Cache> {
        self.shared.cache.as_ref()
    }

    /// Returns a client that always reads from the server.
    #[must_use]
    pub fn uncached(&self) -> Self {
        self.but(|settings| settings.uncached = true)
    }

    /// Returns a client that sends writes as dry run: the server checks them and does not persist them.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.but(|settings| settings.dry_run = true)
    }

    /// Returns a client that writes with this field manager.
    #[must_use]
    pub fn field_owner(&self, owner: &str) -> Self {
        self.but(|settings| settings.field_owner = Some(owner.into()))
    }

    /// Returns a client with this validation of unknown fields.
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

    /// Returns a client for one namespace. It sets the namespace of objects without one, and rejects other namespaces.
    #[must_use]
    pub fn namespaced(&self, namespace: &str) -> Self {
        self.but(|settings| settings.namespace = Some(namespace.into()))
    }

    fn but(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut other = self.clone();
        change(&mut other.settings);
        other
    }

    /// Returns the client of one reconcile: tracks its writes, and records its requests in the trail, if any.
    pub(crate) fn for_reconcile(&self, writes: WriteTracker, trail: Option<Arc<Trail>>) -> Self {
        Self { writes: Some(writes), trail, ..self.clone() }
    }

    /// Runs the reconcile of this client. Other clients used in it track their writes in the same way.
    pub(crate) fn run_reconcile<F: Future>(&self, reconcile: F) -> impl Future<Output = F::Output> {
        RECONCILE.scope(self.clone(), reconcile)
    }

    /// A property of the running reconcile, if this client is a clone of the same client.
    fn of_reconcile<T>(&self, get: impl FnOnce(&Self) -> Option<T>) -> Option<T> {
        let same =
            |running: &Self| Arc::ptr_eq(&running.shared, &self.shared).then(|| get(running)).flatten();
        RECONCILE.try_with(same).ok().flatten()
    }

    /// The tracker of writes. The running reconcile takes precedence: a stored client may belong to one that has ended.
    fn writes(&self) -> Option<WriteTracker> {
        let running = RECONCILE.try_with(|running| running.writes.clone()).ok().flatten();
        running.or_else(|| self.writes.clone())
    }

    /// The fence of writes: that of this client, else of the running controller, else of the manager.
    fn fence(&self) -> Fence {
        let own = self.fence.clone().or_else(|| self.of_reconcile(|running| running.fence.clone()));
        own.unwrap_or_else(|| self.shared.fence.clone())
    }

    /// The trail of the running reconcile, if the journal is enabled.
    fn trail(&self) -> Option<Arc<Trail>> {
        self.of_reconcile(|running| running.trail.clone()).or_else(|| self.trail.clone())
    }

    /// Sends a request and reads the whole response. All requests of a client, but those of [`Client::kube`], go
    /// through here.
    pub(crate) fn send(
        &self,
        mut request: Request<Vec<u8>>,
    ) -> impl Future<Output = Result<Bytes, Error>> + '_ {
        let kube = &self.shared.kube;
        let span = traces::request(&mut request);
        let sent = match &self.trail() {
            None => Either::Left(http::send(kube, request)),
            // Boxed, because few requests are recorded and every future would reserve space for it.
            Some(trail) => {
                let asking = trail.asks(&request);
                Either::Right(Box::pin(http::send_followed(kube, request, asking)))
            }
        };
        traces::follow(span, sent)
    }

    /// Gets one object, from the cache if it watches the type, otherwise from the server.
    pub async fn get<K: Object>(&self, key: &Key) -> Result<Arc<K>, Error> {
        let kind = Kind::of::<K>();
        let key = self.key_in_namespace(&kind, key)?;
        if let Some(informer) = self.to_read(&kind, K::metadata_api(), key.namespace())? {
            informer.readable().await?;
            return match informer.entry(&key) {
                Some(entry) => informer.decode(&entry),
                None => Err(not_found(&kind, &key)),
            };
        }
        let body = self.fetch(&kind, &key, K::metadata_api()).await?;
        read(&kind, &body).map(Arc::new)
    }

    /// Gets one object, or `None` if it does not exist.
    pub async fn get_opt<K: Object>(&self, key: &Key) -> Result<Option<Arc<K>>, Error> {
        ignore_not_found(self.get(key).await)
    }

    /// Lists objects of a type, from the cache if it watches the type, otherwise from the server.
    pub async fn list<K: Object>(&self, list: &ListOptions) -> Result<Vec<Arc<K>>, Error> {
        let kind = Kind::of::<K>();
        let list = self.list_in_namespace(&kind, list)?;
        if let Some(informer) = self.to_read(&kind, K::metadata_api(), list.namespace.as_deref())? {
            informer.readable().await?;
            return informer.entries(&list)?.iter().map(|entry| informer.decode(entry)).collect();
        }
        let read =
            |item: &RawValue| decode(item.get()).map(Arc::new).map_err(|source| unreadable(&kind, source));
        Ok(self.fetch_all(&kind, &list, K::metadata_api(), read).await?.0)
    }

    /// Looks up the resource of a kind that is known only at run time.
    pub async fn kind(&self, gvk: &Gvk) -> Result<Kind, Error> {
        self.shared.mapper.kind(self, gvk).await
    }

    /// Gets one object of a kind that is known only at run time.
    pub async fn get_dynamic(&self, gvk: &Gvk, key: &Key) -> Result<Arc<DynamicObject>, Error> {
        let kind = self.kind(gvk).await?;
        let key = self.key_in_namespace(&kind, key)?;
        if let Some(informer) = self.to_read(&kind, false, key.namespace())? {
            informer.readable().await?;
            return match informer.entry(&key) {
                Some(entry) => informer.decode_dynamic(&entry),
                None => Err(not_found(&kind, &key)),
            };
        }
        let body = self.fetch(&kind, &key, false).await?;
        read(&kind, &body).map(Arc::new)
    }

    /// Lists objects of a kind that is known only at run time.
    pub async fn list_dynamic(
        &self,
        gvk: &Gvk,
        list: &ListOptions,
    ) -> Result<Vec<Arc<DynamicObject>>, Error> {
        let kind = self.kind(gvk).await?;
        let list = self.list_in_namespace(&kind, list)?;
        if let Some(informer) = self.to_read(&kind, false, list.namespace.as_deref())? {
            informer.readable().await?;
            return informer.entries(&list)?.iter().map(|entry| informer.decode_dynamic(entry)).collect();
        }
        let read = |item: &RawValue| {
            let mut object: DynamicObject =
                serde_json::from_str(item.get()).map_err(|source| unreadable(&kind, source))?;
            object.types = Some(kind.type_meta());
            Ok(Arc::new(object))
        };
        Ok(self.fetch_all(&kind, &list, false, read).await?.0)
    }

    /// Gets an object from the server, bypassing the cache.
    pub(crate) async fn fresh<K: Writable>(&self, object: &K) -> Result<Option<K>, Error> {
        let (kind, key) = self.locate(object).await?;
        match ignore_not_found(self.fetch(&kind, &key, false).await)? {
            Some(body) => read(&kind, &body).map(Some),
            None => Ok(None),
        }
    }

    /// The informer that serves a read. Fails if a controller will watch the kind, but the cache has not started.
    fn to_read(
        &self,
        kind: &Kind,
        metadata_only: bool,
        namespace: Option<&str>,
    ) -> Result<Option<Arc<Informer>>, Error> {
        if self.reads_from().is_some_and(|cache| cache.will_serve(kind, metadata_only, namespace)) {
            return Err(Error::CacheNotStarted(kind.gvk().to_string()));
        }
        Ok(self.watched(kind, metadata_only, namespace))
    }

    fn watched(&self, kind: &Kind, metadata_only: bool, namespace: Option<&str>) -> Option<Arc<Informer>> {
        let cache = self.reads_from()?;
        let informer = cache.watching(kind, metadata_only).filter(|informer| !informer.is_missing())?;
        // A cache of some namespaces cannot serve reads of others. Listing all namespaces lists all that are watched.
        (namespace.is_none() || informer.covers(namespace)).then_some(informer)
    }

    /// The cache that serves reads in the current task.
    fn reads_from(&self) -> Option<Cache> {
        let cache = self.shared.cache.as_ref().filter(|_| !self.settings.uncached)?;
        Some(cache.replacement().unwrap_or_else(|| cache.clone()))
    }

    async fn fetch(&self, kind: &Kind, key: &Key, metadata_only: bool) -> Result<Bytes, Error> {
        let accept = if metadata_only { http::METADATA } else { "application/json" };
        let request = Request::get(path(kind, key, None)).header(header::ACCEPT, accept).body(Vec::new());
        self.send(request.map_err(Error::Build)?).await
    }

    /// Lists objects on the server, in pages. Returns them with the resourceVersion of the list.
    async fn fetch_all<T>(
        &self,
        kind: &Kind,
        list: &ListOptions,
        metadata_only: bool,
        read: impl Fn(&RawValue) -> Result<T, Error>,
    ) -> Result<(Vec<T>, String), Error> {
        let accept = if metadata_only { http::METADATA_LIST } else { "application/json" };
        let most = list.limit.unwrap_or(usize::MAX);
        let (mut found, mut token, mut in_pages) = (Vec::new(), String::new(), true);
        if most == 0 {
            // The server treats a limit of zero as no limit.
            return Ok((found, String::new()));
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
                // The continue token has expired: list everything in one request, which cannot expire.
                Err(error) if error.is_expired() && !token.is_empty() => {
                    (found, token, in_pages) = (Vec::new(), String::new(), false);
                    continue;
                }
                body => body?,
            };
            let page = http::text(&body).and_then(serde_json::from_str::<Page<'_>>);
            let page = page.map_err(|source| unreadable(kind, source))?;
            for item in page.items.unwrap_or_default().into_iter().take(most - found.len()) {
                found.push(read(item)?);
            }
            token = page.metadata.r#continue;
            if token.is_empty() || found.len() >= most {
                return Ok((found, page.metadata.resource_version));
            }
        }
    }

    /// The key in the namespace of this client.
    fn key_in_namespace(&self, kind: &Kind, key: &Key) -> Result<Key, Error> {
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

    /// The list in the namespace of this client.
    fn list_in_namespace(&self, kind: &Kind, list: &ListOptions) -> Result<ListOptions, Error> {
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
        Ok(ListOptions { namespace, ..list.clone() })
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
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: String,
    r#continue: String,
}

/// The path of an object or a subresource.
fn path(kind: &Kind, key: &Key, subresource: Option<&str>) -> String {
    let mut path = kind.path(key.namespace());
    path.push('/');
    // Names of RBAC objects may contain any characters.
    query::encode(&mut path, key.name());
    if let Some(subresource) = subresource {
        path.push('/');
        path.push_str(subresource);
    }
    path
}

/// The path and query of a list.
fn selection(kind: &Kind, list: &ListOptions) -> Result<Query, Error> {
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
    http::text(body).and_then(decode).map_err(|source| unreadable(kind, source))
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
