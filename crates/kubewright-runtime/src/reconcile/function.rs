//! Async functions as reconcilers.
//!
//! Stable Rust cannot require that the future of an [`AsyncFn`] is [`Send`], so [`reconcile_fn`] uses its own trait,
//! [`ReconcileFunction`], which every matching `async fn` implements.

use std::fmt;
use std::marker::PhantomData;

use super::{Context, Outcome, Reconciler, Result};
use crate::client::Writable;

/// Creates a reconciler from an async function. The type of its first argument is the reconciled type.
///
/// Methods such as [`Reconciler::deleted`] need an `impl Reconciler`.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Context, Manager, Outcome, RegisterError, Result, reconcile_fn};
///
/// async fn log_changes(map: &ConfigMap, cx: &Context) -> Result<Outcome> {
///     tracing::info!(version = map.metadata.resource_version, "{} changed", cx.key());
///     Ok(Outcome::done())
/// }
///
/// fn register(manager: &Manager) -> Result<(), RegisterError> {
///     manager.controller(reconcile_fn(log_changes)).register()
/// }
/// ```
pub fn reconcile_fn<K, F>(function: F) -> FunctionReconciler<K, F>
where
    K: Writable,
    F: for<'a> ReconcileFunction<'a, K> + Send + Sync + 'static,
{
    FunctionReconciler { function, object: PhantomData }
}

/// A reconciler that calls an async function; see [`reconcile_fn`].
pub struct FunctionReconciler<K, F> {
    function: F,
    object: PhantomData<fn(&K)>,
}

impl<K, F> fmt::Debug for FunctionReconciler<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionReconciler").finish_non_exhaustive()
    }
}

impl<K, F> Reconciler for FunctionReconciler<K, F>
where
    K: Writable,
    F: for<'a> ReconcileFunction<'a, K> + Send + Sync + 'static,
{
    type Object = K;

    async fn reconcile(&self, object: &K, cx: &Context) -> Result<Outcome> {
        self.function.call(object, cx).await
    }
}

/// An async function of an object and a [`Context`]. Implemented for all matching functions; do not implement it
/// yourself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a reconciler",
    note = "write `async fn reconcile(object: &{K}, cx: &Context) -> Result<Outcome>`",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` guard or `MutexGuard` across an `.await`"
)]
pub trait ReconcileFunction<'a, K> {
    /// The future of the function.
    type Future: Future<Output = Result<Outcome>> + Send + 'a;

    /// Calls the function.
    fn call(&self, object: &'a K, cx: &'a Context) -> Self::Future;
}

impl<'a, K, F, R> ReconcileFunction<'a, K> for F
where
    K: 'a,
    F: Fn(&'a K, &'a Context) -> R,
    R: Future<Output = Result<Outcome>> + Send + 'a,
{
    type Future = R;

    fn call(&self, object: &'a K, cx: &'a Context) -> R {
        self(object, cx)
    }
}
