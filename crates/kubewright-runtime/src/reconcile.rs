//! The API of reconcilers: [`Reconciler`], its arguments and its results.
//!
//! Owns the traits of reconcilers, [`Outcome`], and terminal errors. The work queue decides when a reconciler runs, and
//! the controller handles its result.

pub(crate) mod adapter;
mod context;
mod function;
mod object;

use std::fmt;
use std::time::Duration;

/// The error of a reconcile.
///
/// This is [`anyhow::Error`], because a reconciler is application code: `?` accepts every [`std::error::Error`] and
/// every [`anyhow::Result`], and `bail!` and `.context()` work. The error is logged with its chain, and the key is
/// retried with backoff. Use [`terminal`] for errors that a retry cannot fix.
pub use anyhow::Error;

pub(crate) use self::adapter::policy_outcome;
pub use self::context::Context;
pub(crate) use self::context::{ContextParts, OWNER_INDEX};
pub use self::function::{FunctionReconciler, ReconcileFunction, reconcile_fn};
use kube::core::Status;

use crate::Key;
use crate::client::{self, Writable};

/// The result of a reconcile. The same type as [`anyhow::Result`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// When a key runs again after a successful reconcile.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::Outcome;
///
/// let later = Outcome::requeue_after(Duration::from_secs(60)).priority(10);
/// assert_ne!(later, Outcome::done());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    pub(crate) next: Next,
    pub(crate) priority: Option<i32>,
}

/// The next run after an [`Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Next {
    #[default]
    Done,
    After(Duration),
    Backoff,
    Terminal,
}

impl Outcome {
    fn of(next: Next) -> Self {
        Self { next, priority: None }
    }

    /// Runs the key again only when something changes.
    pub fn done() -> Self {
        Self::of(Next::Done)
    }

    /// Runs the key again after this time, or earlier if something changes.
    pub fn requeue_after(time: Duration) -> Self {
        Self::of(Next::After(time))
    }

    /// Runs the key again with backoff, as after an error but without one.
    pub fn requeue() -> Self {
        Self::of(Next::Backoff)
    }

    /// The reconcile failed, and a retry cannot help. It counts as an error, and the key runs again only when something
    /// changes.
    pub fn terminal() -> Self {
        Self::of(Next::Terminal)
    }

    /// The priority of the requested run. Higher priorities run first. By default, it is the priority of the current
    /// run.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }
}

/// Marks an error as terminal. See [`terminal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal;

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("terminal error")
    }
}

/// Marks an error as terminal: the key does not run again before something changes.
///
/// The error keeps its type, so that [`Error::downcast_ref`] finds it.
///
/// ```
/// use kubewright_runtime::{is_terminal, terminal};
///
/// #[derive(Debug, PartialEq, thiserror::Error)]
/// #[error("no image named {0:?}")]
/// struct NoImage(String);
///
/// let error = terminal(NoImage("web".to_owned())).context("deploying");
/// assert!(is_terminal(&error));
/// assert_eq!(error.downcast_ref::<NoImage>(), Some(&NoImage("web".to_owned())));
/// assert_eq!(format!("{error:#}"), "deploying: terminal error: no image named \"web\"");
/// ```
pub fn terminal(error: impl Into<Error>) -> Error {
    error.into().context(Terminal)
}

/// Whether an error is [`terminal`].
pub fn is_terminal(error: &Error) -> bool {
    error.is::<Terminal>()
}

/// The client error in the chain of an error, if any.
pub(crate) fn client_error(error: &Error) -> Option<&client::Error> {
    error.downcast_ref().or_else(|| error.chain().find_map(|cause| cause.downcast_ref()))
}

/// Whether the cause of an error is a conflict, of this crate's client or of kube's `Api`.
pub(crate) fn is_conflict(error: &Error) -> bool {
    if let Some(failure) = adapter::failure(error) {
        return is_conflict(failure);
    }
    // The source of `kube::Error::Api` is its `Status`.
    let by_kube = |cause: &(dyn std::error::Error + 'static)| {
        let status = cause.downcast_ref::<Box<Status>>().map(|status| &**status);
        status.or_else(|| cause.downcast_ref()).is_some_and(client::is_conflict)
    };
    client_error(error).is_some_and(client::Error::is_conflict) || error.chain().any(by_kube)
}

/// Moves the cluster's actual state toward an object's desired state.
///
/// Called whenever the object, or something that it owns or depends on, may have changed. A reconciler acts on the
/// current state, not on the event: events are coalesced, repeated, and replayed after a restart.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Context, Outcome, Reconciler, Result};
///
/// struct Logger;
///
/// impl Reconciler for Logger {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
///         tracing::info!(keys = map.data.as_ref().map_or(0, |data| data.len()), "{} changed", cx.key());
///         Ok(Outcome::done())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler",
    label = "does not implement `Reconciler`",
    note = "write `impl Reconciler for {Self}` with `type Object` and `async fn reconcile`",
    note = "an async function `fn(&Object, &Context) -> Result<Outcome>` becomes one with `reconcile_fn(function)`"
)]
pub trait Reconciler: Send + Sync + 'static {
    /// The reconciled type: one of k8s-openapi, a derived `CustomResource`, or
    /// [`DynamicObject`](kube::api::DynamicObject) with
    /// [`Manager::dynamic_controller`](crate::Manager::dynamic_controller).
    type Object: Writable;

    /// Moves actual state toward the object's desired state.
    ///
    /// The object comes from the cache and is shared; [`Context::object_arc`] returns it as an `Arc`.
    fn reconcile(&self, object: &Self::Object, cx: &Context) -> impl Future<Output = Result<Outcome>> + Send;

    /// Called instead of [`reconcile`](Self::reconcile) when the object was deleted. Use it for cleanup that needs no
    /// finalizer, such as metrics and memory.
    ///
    /// Not called for an object that no longer matches the selector of the watch; see [`deselected`](Self::deselected).
    /// It may be called for an object that was never reconciled, if an object that it owned changes.
    fn deleted(&self, key: &Key, cx: &Context) -> impl Future<Output = Result<Outcome>> + Send {
        let _ = (key, cx);
        async { Ok(Outcome::done()) }
    }

    /// Called instead of [`reconcile`](Self::reconcile) when the object no longer matches the selector of the watch.
    /// The object may still exist. Its later changes and its deletion are not reported.
    fn deselected(&self, key: &Key, cx: &Context) -> impl Future<Output = Result<Outcome>> + Send {
        let _ = (key, cx);
        async { Ok(Outcome::done()) }
    }
}

/// Reconciles a key that does not name an object of one type. For objects, implement [`Reconciler`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key reconciler",
    label = "does not implement `KeyReconciler`",
    note = "write `impl KeyReconciler for {Self}` with `async fn reconcile(&self, key: &Key, cx: &Context)`",
    note = "a `Reconciler` of objects is registered with `Manager::controller`"
)]
pub trait KeyReconciler: Send + Sync + 'static {
    /// Moves actual state toward the desired state of the key.
    fn reconcile(&self, key: &Key, cx: &Context) -> impl Future<Output = Result<Outcome>> + Send;
}

/// The unique ID of one reconcile.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReconcileId(pub(crate) u128);

impl fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Formatted as a UUID version 4.
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

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use kube::core::Status;

    use super::*;

    fn conflict() -> client::Error {
        client::Error::Status(Box::new(Status::failure("it changed", "Conflict").with_code(409)))
    }

    #[test]
    fn a_client_error_is_found_in_the_chain() {
        let plain = Error::from(conflict());
        let with_context = Err::<(), _>(conflict()).context("applying").context("reconciling").unwrap_err();
        let name = || "example.com/cleanup".to_owned();
        let nested =
            Error::from(crate::finalizer::Error::Add { name: name(), source: conflict() }).context("x");
        for error in [plain, with_context, nested] {
            assert!(client_error(&error).is_some_and(client::Error::is_conflict), "{error:?}");
        }
        assert!(client_error(&Error::msg("none")).is_none());
    }

    #[test]
    fn a_terminal_error_with_context_stays_terminal_and_typed() {
        let error = terminal(conflict());
        assert!(is_terminal(&error) && is_terminal(&Err::<(), _>(error).context("applying").unwrap_err()));
        assert!(client_error(&terminal(conflict())).is_some_and(client::Error::is_conflict));
        assert!(!is_terminal(&Error::from(conflict())));
    }
}
