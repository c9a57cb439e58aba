//! What an operator's author writes: a [`Reconciler`], and what it gets and gives.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::cache::Informer;
use crate::client::{Client, Writable};
use crate::controller::Cause;
use crate::events::Recorder;
use crate::queue::Causes;
use crate::{Clock, Key};

/// What follows from a reconcile that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing more to do until something changes.
    #[default]
    Done,
    /// Run again after this time, if nothing changes sooner.
    After(Duration),
    /// Run again soon, later each time.
    Backoff,
    /// It failed, and only a change can help: counted as an error, and not tried again before.
    Terminal,
}

impl Outcome {
    /// Nothing more to do until something changes.
    pub fn done() -> Self {
        Self::Done
    }

    /// Run again after this time, if nothing changes sooner.
    pub fn requeue_after(time: Duration) -> Self {
        Self::After(time)
    }

    /// Run again soon, later each time, as after an error but without one.
    pub fn requeue() -> Self {
        Self::Backoff
    }

    /// It failed, and only a change can help.
    pub fn terminal() -> Self {
        Self::Terminal
    }
}

/// Why a reconcile failed: any error, and whether trying again can help.
///
/// Every error converts into one with `?`, and is tried again with a backoff. [`Error::terminal`] is for what only a
/// change of the object can mend.
pub struct Error {
    source: Box<dyn std::error::Error + Send + Sync>,
    terminal: bool,
}

/// The result of a reconcile.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error that is tried again.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: source.into(), terminal: false }
    }

    /// An error that is not tried again before something changes.
    pub fn terminal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: source.into(), terminal: true }
    }

    /// Whether trying again cannot help.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }

    /// The error as its own type, such as [`client::Error`](crate::client::Error).
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error: &(dyn std::error::Error + 'static) = &*self.source;
        fmt::Display::fmt(&crate::error::Chain(error), f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Brings the world to what an object wants.
///
/// Called whenever the object, or something that it owns or depends on, may have changed. It must look at how things
/// are, not at what happened: calls are joined, repeated, and follow restarts.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Context, Outcome, Reconciler, Result};
///
/// struct Logger;
///
/// impl Reconciler for Logger {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome> {
///         tracing::info!(keys = map.data.as_ref().map_or(0, |data| data.len()), "{} changed", cx.key());
///         Ok(Outcome::done())
///     }
/// }
/// ```
pub trait Reconciler: Send + Sync + 'static {
    /// The type that the reconciler is for: one of k8s-openapi, a derived `CustomResource`, or
    /// [`DynamicObject`](kube::api::DynamicObject) with
    /// [`Manager::dynamic_controller`](crate::Manager::dynamic_controller).
    type Object: Writable;

    /// Brings the world to what the object wants. The object comes from the cache, and is shared.
    fn reconcile(
        &self,
        object: Arc<Self::Object>,
        cx: &Context,
    ) -> impl Future<Output = Result<Outcome>> + Send;

    /// Called instead when the object is gone: it was deleted, or it no longer matches the selector of the watch
    /// ([`What::Deselected`](crate::controller::What::Deselected) among the causes). For cleanup that needs no
    /// finalizer, such as metrics and memory.
    fn gone(&self, key: &Key, cx: &Context) -> impl Future<Output = Result<Outcome>> + Send {
        let _ = (key, cx);
        async { Ok(Outcome::Done) }
    }
}

/// Brings the world to what a key stands for. For keys that are no objects of one type; others want [`Reconciler`].
pub trait KeyReconciler: Send + Sync + 'static {
    /// Brings the world to what the key stands for.
    fn reconcile(&self, key: &Key, cx: &Context) -> impl Future<Output = Result<Outcome>> + Send;
}

/// What a reconcile may use.
pub struct Context {
    pub(crate) client: Client,
    pub(crate) key: Key,
    /// Where the object is read from; none for controllers of keys.
    pub(crate) informer: Option<Arc<Informer>>,
    pub(crate) id: ReconcileId,
    pub(crate) controller: Arc<str>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: CancellationToken,
    pub(crate) causes: Causes<Cause>,
    pub(crate) retries: u32,
}

impl Context {
    /// The client. Reads come from the cache where it watches; writes go to the server.
    ///
    /// What is written through it is waited for: the key is not reconciled again before the cache has seen it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What is reconciled.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The number of this run, as in its log lines.
    pub fn id(&self) -> ReconcileId {
        self.id
    }

    /// The controller that runs.
    pub fn controller(&self) -> &str {
        &self.controller
    }

    /// Records events.
    pub fn events(&self) -> &Recorder {
        &self.recorder
    }

    /// Tells the time, for what is written into objects.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Why this run takes place: which events of which objects, as far as they were kept. For looking at, such as
    /// `info!(because = %cx.causes(), "scaled")`, not for deciding: what is to be done follows from how things are.
    pub fn causes(&self) -> &Causes<Cause> {
        &self.causes
    }

    /// How often the key failed in a row before.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Resolves when the manager ends, for reconciles that wait for something.
    pub fn cancelled(&self) -> impl Future<Output = ()> + '_ {
        self.cancel.cancelled()
    }
}

/// The number of one run, unique among all.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReconcileId(pub(crate) u128);

impl fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A UUID of version 4, which log pipelines know.
        let bits = (self.0 & !(0xf << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
