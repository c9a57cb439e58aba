//! Controllers: which objects one is for, what else concerns them, and how it runs.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret}};
//! # use kubewright_runtime::{Context, Key, Manager, Outcome, Reconciler, Result};
//! # struct Restarter;
//! # impl Reconciler for Restarter {
//! #     type Object = Deployment;
//! #     async fn reconcile(&self, _: Arc<Deployment>, _: &Context) -> Result<Outcome> { Ok(Outcome::done()) }
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
mod debts;
mod event;
mod metrics;
mod predicate;
mod pump;
mod runner;
mod source;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

pub use self::cause::{Cause, What};
pub use self::changed::Changed;
pub use self::event::Event;
pub(crate) use self::metrics::ControllerMetrics;
pub use self::predicate::Predicate;
use self::runner::Reconcile;
pub(crate) use self::runner::{Controller, Surroundings};
pub(crate) use self::source::Role;
pub use self::source::Watch;
use self::source::{ChannelSource, KindSource};
use crate::cache::Cache;
use crate::manager::{Manager, RegisterError};
use crate::queue;
use crate::reconcile::{Context, Error, KeyReconciler, Outcome, Reconciler};
use crate::{Gvk, Key, Kind, Object};

/// How a controller runs.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) concurrency: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) sync_timeout: Duration,
    pub(crate) needs_leader: bool,
    pub(crate) queue: queue::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 1,
            timeout: None,
            sync_timeout: Duration::from_mins(2),
            needs_leader: true,
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
    options: Options,
}

impl Manager {
    /// A controller for the objects of a reconciler: each is reconciled when it changes.
    pub fn controller<R: Reconciler>(&self, reconciler: R) -> ControllerBuilder {
        self.controller_of(reconciler, Watch::new())
    }

    /// The same for some of the objects, or some of their changes.
    pub fn controller_of<R: Reconciler>(&self, reconciler: R, watch: Watch<R::Object>) -> ControllerBuilder {
        let source = KindSource::object(watch);
        let kind = source.kind.clone();
        ControllerBuilder {
            sources: vec![source],
            kind: Some(kind),
            ..ControllerBuilder::new(self.clone(), Arc::new(ByObject(reconciler)))
        }
    }

    /// Runs a reconciler once, by hand: the object is read from the server, and nothing is queued. For tests.
    pub async fn reconcile_once<R: Reconciler>(&self, reconciler: &R, key: &Key) -> Result<Outcome, Error> {
        let client = self.client().uncached();
        let object = client.get_opt::<R::Object>(key).await?;
        let cx = self.context("reconcile-once", client, key);
        match object {
            Some(object) => reconciler.reconcile(object, &cx).await,
            None => reconciler.gone(key, &cx).await,
        }
    }

    /// A controller of keys that come from [`ControllerBuilder::watches`] and [`ControllerBuilder::channel`] only.
    pub fn key_controller<R: KeyReconciler>(&self, name: &str, reconciler: R) -> ControllerBuilder {
        ControllerBuilder::new(self.clone(), Arc::new(ByKey(reconciler))).named(name)
    }
}

impl ControllerBuilder {
    fn new(manager: Manager, reconciler: Arc<dyn Reconcile>) -> Self {
        let options = Options::default();
        Self {
            manager,
            name: None,
            kind: None,
            reconciler,
            sources: Vec::new(),
            channels: Vec::new(),
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
        self.owns_some::<K>(Watch::new())
    }

    /// The same for some of what it owns, or some of the changes.
    ///
    /// # Panics
    ///
    /// If the controller is for keys: they own nothing.
    pub fn owns_some<K: Object>(mut self, watch: Watch<K>) -> Self {
        let owner = self.kind.clone().expect("a controller of keys owns nothing; use watches()");
        self.sources.push(KindSource::owner(watch, owner));
        self
    }

    /// Reconciles what a function names when an object of another type changes. It is asked about the object before
    /// and after, so that what it no longer points at is reconciled as well.
    pub fn watches<K: Object>(self, map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.watches_some(Watch::new(), map)
    }

    /// The same for some of the objects, or some of their changes.
    pub fn watches_some<K: Object>(
        mut self,
        watch: Watch<K>,
        map: impl Fn(&K, &Cache) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(KindSource::mapped(watch, map));
        self
    }

    /// Reconciles the keys that are sent to a channel.
    pub fn channel(mut self, keys: mpsc::Receiver<Key>) -> Self {
        self.channels.push(keys);
        self
    }

    /// How many keys are reconciled at once; 1 otherwise.
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.options.concurrency = workers.max(1);
        self
    }

    /// Ends a reconcile that takes longer. Its future is dropped where it waits, so nothing of it goes on.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// How long the first lists may take before the manager fails; two minutes otherwise.
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

    /// Runs on every replica, not only on the one that leads.
    pub fn without_leader(mut self) -> Self {
        self.options.needs_leader = false;
        self
    }

    /// Hands the controller to its manager, which runs it.
    pub fn register(self) -> Result<(), RegisterError> {
        let Self { manager, name, kind, reconciler, sources, channels, options } = self;
        let name = name.or_else(|| kind.as_ref().map(|kind| kind.name().to_lowercase())).unwrap_or_default();
        manager.add_controller(Controller { name: name.into(), kind, reconciler, sources, channels, options })
    }
}

struct ByObject<R>(R);

impl<R: Reconciler> Reconcile for ByObject<R> {
    fn run<'a>(&'a self, key: &'a Key, cx: &'a Context) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let informer = cx.informer.as_ref().expect("a controller of objects watches them");
            match informer.entry(key) {
                Some(entry) => self.0.reconcile(informer.decode(&entry)?, cx).await,
                None => self.0.gone(key, cx).await,
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
