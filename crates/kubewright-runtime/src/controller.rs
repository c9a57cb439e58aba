//! Controllers: which objects one is for, what else concerns them, and how it runs.
//!
//! ```no_run
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret}};
//! # use kubewright_runtime::{Context, Key, Manager, Outcome, Reconciler, Result};
//! # struct Restarter;
//! # impl Reconciler for Restarter {
//! #     type Object = Deployment;
//! #     async fn reconcile(&self, _: &Deployment, _: &Context) -> Result<Outcome> { Ok(Outcome::done()) }
//! # }
//! # fn example(manager: Manager) -> Result<(), Box<dyn std::error::Error>> {
//! manager
//!     .controller(Restarter)
//!     .owns::<ConfigMap>()
//!     .watches::<Secret>(|secret, _cache| vec![Key::of(secret)])
//!     .concurrency(4)
//!     .register()?;
//! # Ok(())
//! # }
//! ```

mod cause;
mod changed;
mod event;
mod forwarder;
mod handle;
mod metrics;
mod pending_writes;
mod predicate;
mod requests;
mod runner;
mod source;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kube::Resource as _;
use kube::api::DynamicObject;
use tokio::sync::mpsc;

pub use self::cause::{Cause, Trigger};
pub use self::changed::Changed;
pub use self::event::Event;
pub(crate) use self::handle::AddedSource;
pub use self::handle::{ControllerHandle, WatchHandle};
pub(crate) use self::metrics::ControllerMetrics;
pub use self::predicate::Predicate;
use self::runner::Reconcile;
pub(crate) use self::runner::{Controller, ControllerDeps};
use self::source::ChannelSource;
pub(crate) use self::source::KindSource;
pub(crate) use self::source::Role;
pub use self::source::Watch;
use crate::cache::{Cache, Removal};
use crate::manager::{Cluster, Manager, RegisterError};
use crate::queue;
use crate::reconcile::{Context, Error, KeyReconciler, Outcome, Reconciler};
use crate::{Gvk, Key, Kind, Object};

/// How a controller runs. [`ManagerOptions::controllers`](crate::ManagerOptions) has the defaults of all controllers of a
/// manager; the methods of [`ControllerBuilder`] change them for one.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// How many keys are reconciled at once. 1 by default.
    pub concurrency: usize,
    /// How long a reconcile may take. No limit by default.
    pub timeout: Option<Duration>,
    /// How long the first lists may take before the manager fails. Two minutes by default.
    pub sync_timeout: Duration,
    /// Whether the controller runs on the leader only. True by default.
    pub needs_leader: bool,
    /// Whether the sources fill the queue before this replica leads, so that the workers of a new leader start at once.
    /// False by default, as in controller-runtime.
    pub warmup: bool,
    /// Adds up to this fraction to the time of [`Outcome::requeue_after`], so that objects that were created together
    /// do not run together for ever. 0 by default.
    pub requeue_jitter: f64,
    /// The work queue: backoff, rate limit and jitter of retries.
    pub queue: queue::Options,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            concurrency: 1,
            timeout: None,
            sync_timeout: Duration::from_mins(2),
            needs_leader: true,
            warmup: false,
            requeue_jitter: 0.0,
            queue: queue::Options::default(),
        }
    }
}

/// Why a controller ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// What is watched did not become known in time.
    #[error(
        "controller {controller}: {kind} was not listed within {after:?}; is its CRD installed, and may the operator list and watch it?"
    )]
    NotSynced {
        /// The controller.
        controller: String,
        /// What could not be listed.
        kind: Gvk,
        /// How long it waited.
        after: Duration,
    },
    /// The cache ended before the controller had started.
    #[error("controller {controller}: the cache ended before {kind} was listed")]
    Stopped {
        /// The controller.
        controller: String,
        /// What was to be listed.
        kind: Gvk,
    },
}

/// A controller in the making. Nothing happens before [`ControllerBuilder::register`].
#[must_use = "a controller runs only after register()"]
pub struct ControllerBuilder {
    manager: Manager,
    name: Option<String>,
    kind: Option<Kind>,
    reconciler: Arc<dyn Reconcile>,
    sources: Vec<KindSource>,
    channels: Vec<ChannelSource>,
    filters: Vec<Predicate<DynamicObject>>,
    finalizers: Vec<String>,
    without_status: bool,
    options: ControllerOptions,
}

impl Manager {
    /// A controller for the objects of a reconciler: each is reconciled when it changes.
    pub fn controller<R: Reconciler<Object: Object>>(&self, reconciler: R) -> ControllerBuilder {
        self.controller_of(reconciler, Watch::new())
    }

    /// A controller for a kind that is known at run time only. [`Client::kind`](crate::Client::kind) finds a kind by its
    /// group, version and kind.
    ///
    /// ```no_run
    /// # use kube::api::DynamicObject;
    /// # use kubewright_runtime::{Context, Gvk, Manager, Outcome, Reconciler, Result};
    /// struct Auditor;
    ///
    /// impl Reconciler for Auditor {
    ///     type Object = DynamicObject;
    ///
    ///     async fn reconcile(&self, object: &DynamicObject, cx: &Context) -> Result<Outcome> {
    ///         tracing::info!(kind = ?object.types, "{} changed", cx.key());
    ///         Ok(Outcome::done())
    ///     }
    /// }
    ///
    /// # async fn example(manager: Manager) -> Result<(), Box<dyn std::error::Error>> {
    /// let kind = manager.client().kind(&Gvk::new("example.com", "v1", "Widget")).await?;
    /// let widgets = manager.dynamic_controller(kind, Auditor).build()?;
    /// // Later, for example when the CRD is deleted:
    /// widgets.remove().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dynamic_controller<R: Reconciler<Object = DynamicObject>>(
        &self,
        kind: Kind,
        reconciler: R,
    ) -> ControllerBuilder {
        ControllerBuilder {
            sources: vec![KindSource::object(kind.clone(), false, Watch::<DynamicObject>::new())],
            kind: Some(kind),
            ..ControllerBuilder::new(self.clone(), Arc::new(ByObject(reconciler)))
        }
    }

    /// The same for some of the objects, or some of their changes.
    pub fn controller_of<R: Reconciler<Object: Object>>(
        &self,
        reconciler: R,
        watch: Watch<R::Object>,
    ) -> ControllerBuilder {
        let kind = Kind::of::<R::Object>();
        let source = KindSource::object(kind.clone(), R::Object::metadata_api(), watch);
        ControllerBuilder {
            sources: vec![source],
            kind: Some(kind),
            ..ControllerBuilder::new(self.clone(), Arc::new(ByObject(reconciler)))
        }
    }

    /// Runs a reconciler once, by hand: the object is read from the server, and nothing is queued. For tests.
    ///
    /// What controllers registered, and indexes, are listed into a cache of this call's own, which the reconciler reads
    /// from. Without any, it reads from the server.
    pub async fn reconcile_once<R: Reconciler<Object: Object>>(
        &self,
        reconciler: &R,
        key: &Key,
    ) -> Result<Outcome, Error> {
        self.once(key, async |cx| {
            let object = cx.client().uncached().get_opt::<R::Object>(key).await?;
            match object {
                Some(object) => {
                    cx.set_object(object.clone());
                    reconciler.reconcile(&object, cx).await
                }
                None => reconciler.deleted(key, cx).await,
            }
        })
        .await
    }

    /// A controller of keys that come from [`ControllerBuilder::watches`] and [`ControllerBuilder::channel`] only.
    pub fn key_controller<R: KeyReconciler>(&self, name: &str, reconciler: R) -> ControllerBuilder {
        ControllerBuilder::new(self.clone(), Arc::new(ByKey(reconciler))).named(name)
    }
}

impl ControllerBuilder {
    fn new(manager: Manager, reconciler: Arc<dyn Reconcile>) -> Self {
        let options = manager.options().controllers.clone();
        Self {
            manager,
            name: None,
            kind: None,
            reconciler,
            sources: Vec::new(),
            channels: Vec::new(),
            filters: Vec::new(),
            finalizers: Vec::new(),
            without_status: false,
            options,
        }
    }

    /// The name in metrics and logs; the kind in small letters otherwise. No two controllers share one.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Reconciles an object when something that it controls changes.
    pub fn owns<K: Object>(self) -> Self {
        self.owns_with::<K>(Watch::new())
    }

    /// The same for some of what it owns, or some of the changes.
    ///
    /// # Panics
    ///
    /// If the controller is for keys: they own nothing.
    pub fn owns_with<K: Object>(mut self, watch: Watch<K>) -> Self {
        let owner = self.kind.clone().expect("a controller of keys owns nothing; use watches()");
        self.sources.push(KindSource::owner(Kind::of::<K>(), K::metadata_api(), watch, owner));
        self
    }

    /// As [`ControllerBuilder::owns_with`], for a kind that is known at run time only.
    ///
    /// # Panics
    ///
    /// If the controller is for keys, which own nothing.
    pub fn owns_kind(mut self, kind: Kind, watch: Watch<DynamicObject>) -> Self {
        let owner = self.kind.clone().expect("a controller of keys owns nothing; use watches_kind()");
        self.sources.push(KindSource::owner(kind, false, watch, owner));
        self
    }

    /// Reconciles the keys that a function returns when an object of another type changes. The function is called with
    /// the object before and after the change, so that what it no longer points at is reconciled as well.
    ///
    /// The function may read the cache: no event is delivered before every type that any controller of the manager
    /// watches or [reads](Self::reads) is listed.
    pub fn watches<K: Object>(self, map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.watches_with(Watch::new(), map)
    }

    /// The same for some of the objects, or some of their changes.
    pub fn watches_with<K: Object>(
        mut self,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(KindSource::mapped(Kind::of::<K>(), K::metadata_api(), watch, map));
        self
    }

    /// As [`ControllerBuilder::watches_with`], for a kind that is known at run time only.
    pub fn watches_kind(
        mut self,
        kind: Kind,
        watch: Watch<DynamicObject>,
        map: impl Fn(&DynamicObject, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(KindSource::mapped(kind, false, watch, map));
        self
    }

    /// As [`ControllerBuilder::watches_with`], for the objects of another [`Cluster`]. The function gets the cache of the
    /// manager's own cluster.
    pub fn watches_in<K: Object>(
        mut self,
        cluster: &Cluster,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        let source = KindSource::mapped(Kind::of::<K>(), K::metadata_api(), watch, map);
        self.sources.push(source.in_cache(cluster.cache().clone()));
        self
    }

    /// Caches a type that the reconciler or a mapping function reads. Its events reconcile nothing.
    ///
    /// The controller starts when the type is listed, and the generated RBAC rules let the operator get, list and watch
    /// it. Reading a type that is neither declared here nor watched is an error in [`Cache::get`] and [`Cache::list`].
    pub fn reads<K: Object>(mut self) -> Self {
        self.sources.push(KindSource::read::<K>());
        self
    }

    /// Declares a finalizer that the reconciler adds to its objects, with [`finalizer::run`](crate::finalizer::run) or
    /// otherwise: the generated RBAC rules let the operator patch them.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.finalizers.push(name.into());
        self
    }

    /// Declares that the reconciler does not write the status of its objects: the generated RBAC rules leave it out.
    pub fn without_status(mut self) -> Self {
        self.without_status = true;
        self
    }

    /// Drops changes that do not pass, of every type that the controller watches. Of several filters, all must pass.
    ///
    /// The object is a [`DynamicObject`], since the types differ; [`Watch::filter`] has predicates for one type. Filters
    /// apply to watches that are added to a running controller as well, and not to channels.
    pub fn filter(mut self, predicate: Predicate<DynamicObject>) -> Self {
        self.filters.push(predicate);
        self
    }

    /// Reconciles the keys that are sent to a channel.
    pub fn channel(mut self, keys: mpsc::Receiver<Key>) -> Self {
        self.channels.push(keys);
        self
    }

    /// How many keys are reconciled at once; 1 otherwise.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.options.concurrency = workers;
        self
    }

    /// Ends a reconcile that takes longer. Its future is dropped where it waits, so nothing of it goes on.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// How long the first lists may take before the manager fails; two minutes otherwise. The controller waits for
    /// all types that are cached when the manager starts, those of other controllers as well.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.options.sync_timeout = timeout;
        self
    }

    /// Limits how many retries leave the queue per second, over all keys.
    pub fn rate_limit(mut self, limit: queue::RateLimit) -> Self {
        self.options.queue.rate_limit = Some(limit);
        self
    }

    /// How long a key waits by how often it failed; 5 ms to 1000 s otherwise.
    pub fn backoff(mut self, backoff: queue::Backoff) -> Self {
        self.options.queue.backoff = backoff;
        self
    }

    /// Decides how long a key that failed waits, instead of [`backoff`](Self::backoff) and
    /// [`rate_limit`](Self::rate_limit).
    pub fn rate_limiter(mut self, limiter: impl queue::RateLimiter + Clone + Sync) -> Self {
        self.options.queue.rate_limiter = Some(queue::Limiter::new(limiter));
        self
    }

    /// Adds up to this fraction to the delay of each retry; 0 otherwise.
    pub fn backoff_jitter(mut self, fraction: f64) -> Self {
        self.options.queue.jitter = fraction;
        self
    }

    /// Adds up to this fraction to the time of [`Outcome::requeue_after`]; 0 otherwise.
    pub fn requeue_jitter(mut self, fraction: f64) -> Self {
        self.options.requeue_jitter = fraction;
        self
    }

    /// Fills the queue before this replica leads; see [`ControllerOptions::warmup`].
    pub fn warmup(mut self) -> Self {
        self.options.warmup = true;
        self
    }

    /// Runs on every replica, not only on the one that leads.
    pub fn without_leader(mut self) -> Self {
        self.options.needs_leader = false;
        self
    }

    /// Registers the controller. It starts with the manager, or now if the manager runs.
    pub fn register(self) -> Result<(), RegisterError> {
        self.build().map(drop)
    }

    /// As [`ControllerBuilder::register`], and returns what changes and removes the controller later.
    pub fn build(self) -> Result<ControllerHandle, RegisterError> {
        let Self {
            manager,
            name,
            kind,
            reconciler,
            sources,
            channels,
            filters,
            finalizers,
            without_status,
            options,
        } = self;
        let name = name.or_else(|| kind.as_ref().map(|kind| kind.name().to_lowercase())).unwrap_or_default();
        let (added, later) = mpsc::unbounded_channel();
        let (name, handled) = (name.into(), kind.clone());
        let filters = filters.into();
        let controller = Controller {
            name,
            kind,
            reconciler,
            sources,
            channels,
            later,
            filters,
            finalizers,
            without_status,
            options,
        };
        let handle = manager.add_controller(controller)?;
        Ok(ControllerHandle { handle, kind: handled, sources: added })
    }
}

struct ByObject<R>(R);

impl<R: Reconciler> Reconcile for ByObject<R> {
    fn run<'a>(&'a self, key: &'a Key, cx: &'a Context) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let informer = cx.informer().expect("a controller of objects watches them");
            match (informer.get(key)?, cx.removal()) {
                (Some(entry), _) => {
                    let object: Arc<R::Object> = informer.object(&entry)?;
                    cx.set_object(object.clone());
                    self.0.reconcile(&object, cx).await
                }
                (None, Some(Removal::Deselected)) => self.0.deselected(key, cx).await,
                (None, Some(Removal::Deleted)) => self.0.deleted(key, cx).await,
                // Without a selector, what is not in the cache does not exist.
                (None, _) if informer.settings().is_all() => self.0.deleted(key, cx).await,
                // It is not known whether the object exists.
                (None, Some(Removal::Unknown)) => self.0.deselected(key, cx).await,
                // An object outside of the selector, for which a watch of another kind asked.
                (None, None) => Ok(Outcome::done()),
            }
        })
    }
}

struct ByKey<R>(R);

impl<R: KeyReconciler> Reconcile for ByKey<R> {
    fn run<'a>(&'a self, key: &'a Key, cx: &'a Context) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.0.reconcile(key, cx))
    }
}
