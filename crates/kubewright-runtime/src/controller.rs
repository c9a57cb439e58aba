//! Controllers: the reconciled kind, further watches, and options.
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

use std::marker::PhantomData;
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

/// Options of a controller. [`ManagerOptions::controllers`](crate::ManagerOptions) has the defaults of all controllers
/// of a manager; the methods of [`ControllerBuilder`] change them for one.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The maximum number of concurrent reconciles. 1 by default.
    pub concurrency: usize,
    /// The timeout of a reconcile. None by default.
    pub timeout: Option<Duration>,
    /// The timeout of the first lists, after which the manager fails. Two minutes by default.
    pub sync_timeout: Duration,
    /// Whether the controller runs only on the leader. True by default.
    pub needs_leader: bool,
    /// Whether to start the sources before this replica becomes the leader, so that the workers of a new leader start
    /// immediately. False by default, as in controller-runtime.
    pub warmup: bool,
    /// Adds up to this fraction to the delay of [`Outcome::requeue_after`], so that objects that were created together
    /// do not stay synchronized. 0 by default.
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

/// Why a controller failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// The first list of a watched kind did not complete in time.
    #[error(
        "controller {controller}: {kind} was not listed within {after:?}; check that its CRD is installed and that the operator may list and watch it"
    )]
    NotSynced {
        /// The controller.
        controller: String,
        /// The kind that was not listed.
        kind: Gvk,
        /// The timeout.
        after: Duration,
    },
    /// The cache stopped before the controller started.
    #[error("controller {controller}: the cache stopped before {kind} was listed")]
    Stopped {
        /// The controller.
        controller: String,
        /// The kind that was not listed.
        kind: Gvk,
    },
}

/// Marks a controller that reconciles objects, see [`Manager::controller`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {}

/// Marks a controller that reconciles keys, see [`Manager::key_controller`]. It cannot own objects:
///
/// ```compile_fail,E0599
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright_runtime::{KeyReconciler, Manager};
/// fn register(manager: &Manager, reconciler: impl KeyReconciler) {
///     manager.key_controller("nightly", reconciler).owns::<ConfigMap>();
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {}

/// Builds a controller of [`Objects`] or of [`Keys`]. It takes effect with [`ControllerBuilder::register`].
#[must_use = "a controller runs only after register()"]
pub struct ControllerBuilder<C = Objects> {
    parts: Parts,
    of: PhantomData<C>,
}

struct Parts {
    manager: Manager,
    name: Option<String>,
    kind: Option<Kind>,
    reconciler: Arc<dyn Reconcile>,
    sources: Vec<KindSource>,
    channels: Vec<ChannelSource>,
    filters: Vec<Predicate<DynamicObject>>,
    finalizers: Vec<String>,
    without_status: bool,
    without_events: bool,
    options: ControllerOptions,
}

impl Manager {
    /// Builds a controller that reconciles each object of the reconciler's type when it changes.
    pub fn controller<R: Reconciler<Object: Object>>(&self, reconciler: R) -> ControllerBuilder {
        self.controller_with(reconciler, Watch::new())
    }

    /// Builds a controller for a kind that is known only at run time. [`Client::kind`](crate::Client::kind) finds a
    /// kind by its group, version and kind.
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
    /// let widgets = manager.dynamic_controller(kind.clone(), Auditor).build()?;
    /// // Later, for example when the CRD is deleted:
    /// widgets.remove().await;
    /// manager.cache().remove_kind(&kind, false);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dynamic_controller<R: Reconciler<Object = DynamicObject>>(
        &self,
        kind: Kind,
        reconciler: R,
    ) -> ControllerBuilder {
        let source = KindSource::object(kind, false, Watch::<DynamicObject>::new());
        ControllerBuilder::for_kind(self.clone(), source, reconciler)
    }

    /// Like [`Manager::controller`], for a selection of objects or events.
    pub fn controller_with<R: Reconciler<Object: Object>>(
        &self,
        reconciler: R,
        watch: Watch<R::Object>,
    ) -> ControllerBuilder {
        let source = KindSource::object(Kind::of::<R::Object>(), R::Object::metadata_api(), watch);
        ControllerBuilder::for_kind(self.clone(), source, reconciler)
    }

    /// Builds a controller without objects. Its keys come from [`ControllerBuilder::watches`] and
    /// [`ControllerBuilder::channel`].
    pub fn key_controller<R: KeyReconciler>(&self, name: &str, reconciler: R) -> ControllerBuilder<Keys> {
        ControllerBuilder::new(self.clone(), Arc::new(ByKey(reconciler))).named(name)
    }
}

impl ControllerBuilder<Objects> {
    fn for_kind<R: Reconciler>(manager: Manager, source: KindSource, reconciler: R) -> Self {
        let mut builder = Self::new(manager, Arc::new(ByObject(reconciler)));
        builder.parts.kind = Some(source.kind.clone());
        builder.parts.sources.push(source);
        builder
    }

    /// The reconciled kind.
    fn kind(&self) -> Kind {
        self.parts.kind.clone().expect("for_kind() sets the kind")
    }

    /// Reconciles an object when an object that it controls changes.
    pub fn owns<K: Object>(self) -> Self {
        self.owns_with::<K>(Watch::new())
    }

    /// Like [`ControllerBuilder::owns`], for a selection of objects or events.
    pub fn owns_with<K: Object>(mut self, watch: Watch<K>) -> Self {
        let owner = self.kind();
        self.parts.sources.push(KindSource::owner(Kind::of::<K>(), K::metadata_api(), watch, owner));
        self
    }

    /// Like [`ControllerBuilder::owns_with`], for a kind that is known only at run time.
    pub fn owns_kind(mut self, kind: Kind, watch: Watch<DynamicObject>) -> Self {
        let owner = self.kind();
        self.parts.sources.push(KindSource::owner(kind, false, watch, owner));
        self
    }

    /// Declares a finalizer that the reconciler adds to its objects, with [`finalizer::run`](crate::finalizer::run) or
    /// otherwise. The generated RBAC rules then grant `patch`.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.parts.finalizers.push(name.into());
        self
    }

    /// Declares that the reconciler does not write the status of its objects. The generated RBAC rules omit it.
    pub fn without_status(mut self) -> Self {
        self.parts.without_status = true;
        self
    }
}

impl<C> ControllerBuilder<C> {
    fn new(manager: Manager, reconciler: Arc<dyn Reconcile>) -> Self {
        let options = manager.options().controllers.clone();
        let parts = Parts {
            manager,
            name: None,
            kind: None,
            reconciler,
            sources: Vec::new(),
            channels: Vec::new(),
            filters: Vec::new(),
            finalizers: Vec::new(),
            without_status: false,
            without_events: false,
            options,
        };
        Self { parts, of: PhantomData }
    }

    /// Declares that the reconciler records no events. The generated RBAC rules omit `create` and `patch` of events if
    /// no other controller records any, and the manager serves no webhooks.
    pub fn without_events(mut self) -> Self {
        self.parts.without_events = true;
        self
    }

    /// The name in metrics and logs, the lowercase kind by default. It must be unique.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.parts.name = Some(name.into());
        self
    }

    /// Reconciles the keys that a map function returns when an object of another type changes. The function is called
    /// with the object before and after the change, so that keys it no longer refers to are reconciled, too.
    ///
    /// The function may read the cache: no event is delivered before every type that this controller watches or
    /// [reads](Self::reads) is listed, and every type that is cached when the manager starts.
    pub fn watches<K: Object>(self, map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.watches_with(Watch::new(), map)
    }

    /// Like [`ControllerBuilder::watches`], for a selection of objects or events.
    pub fn watches_with<K: Object>(
        mut self,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.parts.sources.push(KindSource::mapped(Kind::of::<K>(), K::metadata_api(), watch, map));
        self
    }

    /// Like [`ControllerBuilder::watches_with`], for a kind that is known only at run time.
    pub fn watches_kind(
        mut self,
        kind: Kind,
        watch: Watch<DynamicObject>,
        map: impl Fn(&DynamicObject, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.parts.sources.push(KindSource::mapped(kind, false, watch, map));
        self
    }

    /// Like [`ControllerBuilder::watches_with`], for objects of another [`Cluster`]. The map function gets the cache of
    /// the manager's own cluster.
    pub fn watches_in<K: Object>(
        mut self,
        cluster: &Cluster,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        let source = KindSource::mapped(Kind::of::<K>(), K::metadata_api(), watch, map);
        self.parts.sources.push(source.in_cache(cluster.cache().clone()));
        self
    }

    /// Caches a type that the reconciler or a map function reads. Its events do not trigger reconciles.
    ///
    /// The controller starts after the type is listed, and the generated RBAC rules allow to get, list and watch it.
    /// Reading a type from [`Cache::get`] or [`Cache::list`] that is neither declared here nor watched is an error.
    pub fn reads<K: Object>(mut self) -> Self {
        self.parts.sources.push(KindSource::read::<K>());
        self
    }

    /// Drops events that do not pass the predicate, of all watched types. With several filters, an event must pass all.
    ///
    /// The object is a [`DynamicObject`], because the types differ; [`Watch::filter`] has typed predicates. Filters
    /// also apply to watches that are added to a running controller, but not to channels.
    pub fn filter(mut self, predicate: Predicate<DynamicObject>) -> Self {
        self.parts.filters.push(predicate);
        self
    }

    /// Reconciles the keys that are sent to a channel.
    pub fn channel(mut self, keys: mpsc::Receiver<Key>) -> Self {
        self.parts.channels.push(keys);
        self
    }

    /// The maximum number of concurrent reconciles; 1 by default.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.parts.options.concurrency = workers;
        self
    }

    /// The timeout of a reconcile. The future of the reconcile is dropped at its current await point.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.options.timeout = Some(timeout);
        self
    }

    /// The timeout of the first lists, after which the manager fails; two minutes by default. The controller waits for
    /// its own types, and for all types that are cached when the manager starts, including those of other controllers.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.parts.options.sync_timeout = timeout;
        self
    }

    /// Limits the retries per second, over all keys.
    pub fn rate_limit(mut self, limit: queue::RateLimit) -> Self {
        self.parts.options.queue.rate_limit = Some(limit);
        self
    }

    /// The delay of a retry by the number of failures; 5 ms to 1000 s by default.
    pub fn backoff(mut self, backoff: queue::Backoff) -> Self {
        self.parts.options.queue.backoff = backoff;
        self
    }

    /// Computes the delay of retries, instead of [`backoff`](Self::backoff) and [`rate_limit`](Self::rate_limit).
    pub fn rate_limiter(mut self, limiter: impl queue::RateLimiter + Clone + Sync) -> Self {
        self.parts.options.queue.rate_limiter = Some(queue::Limiter::new(limiter));
        self
    }

    /// Adds up to this fraction to the delay of each retry; 0 by default.
    pub fn backoff_jitter(mut self, fraction: f64) -> Self {
        self.parts.options.queue.jitter = fraction;
        self
    }

    /// Adds up to this fraction to the delay of [`Outcome::requeue_after`]; 0 by default.
    pub fn requeue_jitter(mut self, fraction: f64) -> Self {
        self.parts.options.requeue_jitter = fraction;
        self
    }

    /// Starts the sources before this replica becomes the leader; see [`ControllerOptions::warmup`].
    pub fn warmup(mut self) -> Self {
        self.parts.options.warmup = true;
        self
    }

    /// Runs on every replica, not only on the leader.
    pub fn without_leader(mut self) -> Self {
        self.parts.options.needs_leader = false;
        self
    }

    /// Registers the controller. It starts with the manager, or now if the manager is running.
    pub fn register(self) -> Result<(), RegisterError> {
        self.build().map(drop)
    }

    /// Like [`ControllerBuilder::register`], and returns a handle that changes or removes the controller.
    pub fn build(self) -> Result<ControllerHandle<C>, RegisterError> {
        let Parts {
            manager,
            name,
            kind,
            reconciler,
            sources,
            channels,
            filters,
            finalizers,
            without_status,
            without_events,
            options,
        } = self.parts;
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
            without_events,
            options,
        };
        let handle = manager.add_controller(controller)?;
        Ok(ControllerHandle::new(handle, handled, added))
    }
}

struct ByObject<R>(R);

impl<R: Reconciler> Reconcile for ByObject<R> {
    fn run<'a>(&'a self, key: &'a Key, cx: &'a Context) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let informer = cx.informer().expect("an object controller has an informer");
            match (informer.get(key)?, cx.removal()) {
                (Some(entry), _) => {
                    let object: Arc<R::Object> = informer.object(&entry)?;
                    cx.set_object(object.clone());
                    self.0.reconcile(&object, cx).await
                }
                (None, Some(Removal::Deselected)) => self.0.deselected(key, cx).await,
                (None, Some(Removal::Deleted)) => self.0.deleted(key, cx).await,
                // Without a selector, an object that is not in the cache does not exist.
                (None, _) if informer.settings().is_all() => self.0.deleted(key, cx).await,
                // It is not known whether the object exists.
                (None, Some(Removal::Unknown)) => self.0.deselected(key, cx).await,
                // A watch of another kind queued an object that the selector does not match.
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
