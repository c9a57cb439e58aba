//! The interface between a manager and its debug page.
//!
//! The page itself is the crate `kubewright-page`, so that operators without it contain none of its code. The manager
//! binds `--debug-page-bind-address`, decides who may read the page ([`Access`]), and passes what happens
//! ([`Observed`]). The page only reads.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Cache;
use crate::journal::Record;
use crate::metrics::Guard;
use crate::serve::Handler;

/// The path that readers need access to: a SubjectAccessReview for `get` on this non-resource URL.
pub const PATH: &str = "/debug/page";

/// The page of a manager.
pub trait DebugPage: Send + Sync + 'static {
    /// Follows the manager. The future is dropped when the manager stops.
    fn follow(&self, observed: Observed) -> BoxFuture<'static, ()>;

    /// Answers requests. `stop` ends those that wait for changes.
    fn handler(&self, access: Access, stop: CancellationToken) -> Handler;
}

/// What the page follows.
pub struct Observed {
    /// The name of the operator.
    pub operator: String,
    /// The names of its controllers, in registration order.
    pub controllers: Vec<String>,
    /// Reconciles and webhook reviews. Records are dropped while the page is slow.
    pub records: mpsc::Receiver<Record>,
    /// The cached objects.
    pub cache: Cache,
}

/// Who may read the page.
#[derive(Debug, Clone)]
pub enum Access {
    /// Local programs, without authentication: plain HTTP on a loopback address. The page must check the `Host` header.
    Local,
    /// Bearers of a token with access to [`PATH`]. The page must check every request for data.
    Authorized(Guard),
}
