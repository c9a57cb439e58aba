//! Runs reconcile functions of kube-rs, `reconcile(Arc<K>, Arc<Ctx>) -> Result<Action, E>`, on controllers of this crate.
//!
//! Objects pass as JSON, so `K` can be a type of any version of kube.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use super::{Context, Error, Outcome, Reconciler, Result, terminal};

/// When an adapted function runs again. It has the constructors of kube's `Action`, whose field is private: import it
/// instead of `kube::runtime::controller::Action`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action(Outcome);

impl Action {
    /// Runs the object again after this time, or earlier if something changes.
    #[must_use]
    pub fn requeue(after: Duration) -> Self {
        Self(Outcome::requeue_after(after))
    }

    /// Runs the object again only when something changes.
    #[must_use]
    pub fn await_change() -> Self {
        Self(Outcome::done())
    }
}

impl From<Action> for Outcome {
    fn from(action: Action) -> Self {
        action.0
    }
}

/// Creates a reconciler from the reconcile function, the error policy and the context of a `kube::runtime::Controller`.
///
/// It is for [`Manager::dynamic_controller`](crate::Manager::dynamic_controller). The functions return [`Action`] or
/// another type that converts into an [`Outcome`]. After an error, the error policy decides when the object runs again;
/// [`Outcome::requeue`] selects the controller's backoff. The error is logged and counted in any case.
///
/// An object that does not decode as `K` is a terminal error: its controller waits until the object changes.
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright_runtime::{Kind, Manager, RegisterError};
/// use kubewright_runtime::adapter::{Action, adapt};
///
/// struct Ctx;
///
/// async fn reconcile(map: Arc<ConfigMap>, _: Arc<Ctx>) -> Result<Action, std::fmt::Error> {
///     tracing::info!(version = map.metadata.resource_version, "a ConfigMap changed");
///     Ok(Action::requeue(Duration::from_secs(300)))
/// }
///
/// fn error_policy(_: Arc<ConfigMap>, _: &std::fmt::Error, _: Arc<Ctx>) -> Action {
///     Action::requeue(Duration::from_secs(5))
/// }
///
/// fn register(manager: &Manager) -> Result<(), RegisterError> {
///     let reconciler = adapt(reconcile, error_policy, Arc::new(Ctx));
///     manager.dynamic_controller(Kind::of::<ConfigMap>(), reconciler).register()
/// }
/// ```
pub fn adapt<K, C, E, F, R, A, P, B>(
    reconcile: F,
    error_policy: P,
    ctx: Arc<C>,
) -> impl Reconciler<Object = DynamicObject>
where
    K: DeserializeOwned + Send + Sync + 'static,
    C: Send + Sync + 'static,
    E: std::error::Error + Send + Sync + 'static,
    F: Fn(Arc<K>, Arc<C>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<A, E>> + Send,
    A: Into<Outcome>,
    P: Fn(Arc<K>, &E, Arc<C>) -> B + Send + Sync + 'static,
    B: Into<Outcome>,
{
    Adapter { reconcile, error_policy, ctx, of: PhantomData }
}

struct Adapter<K, C, E, F, P> {
    reconcile: F,
    error_policy: P,
    ctx: Arc<C>,
    of: PhantomData<fn(K) -> E>,
}

impl<K, C, E, F, R, A, P, B> Reconciler for Adapter<K, C, E, F, P>
where
    K: DeserializeOwned + Send + Sync + 'static,
    C: Send + Sync + 'static,
    E: std::error::Error + Send + Sync + 'static,
    F: Fn(Arc<K>, Arc<C>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<A, E>> + Send,
    A: Into<Outcome>,
    P: Fn(Arc<K>, &E, Arc<C>) -> B + Send + Sync + 'static,
    B: Into<Outcome>,
{
    type Object = DynamicObject;

    async fn reconcile(&self, object: &DynamicObject, _: &Context) -> Result<Outcome> {
        let decoded: Result<K, _> = serde_json::to_value(object).and_then(serde_json::from_value);
        let object =
            Arc::new(decoded.map_err(|error| terminal(Error::new(error).context("decode the object")))?);
        match (self.reconcile)(object.clone(), self.ctx.clone()).await {
            Ok(action) => Ok(action.into()),
            Err(error) => {
                let outcome = (self.error_policy)(object, &error, self.ctx.clone()).into();
                Err(Error::new(PolicyError { error: Error::new(error), outcome }))
            }
        }
    }
}

/// An error with the outcome that an error policy chose. It displays as the error.
#[derive(Debug)]
struct PolicyError {
    error: Error,
    outcome: Outcome,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// The outcome that an error policy chose for an error.
pub(crate) fn policy_outcome(error: &Error) -> Option<Outcome> {
    error.downcast_ref::<PolicyError>().map(|error| error.outcome)
}

/// The error of an adapted function.
pub(super) fn failure(error: &Error) -> Option<&Error> {
    error.downcast_ref::<PolicyError>().map(|error| &error.error)
}
