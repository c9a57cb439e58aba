//! Why a manager did not start, or ended.

use std::time::Duration;

use crate::cache::CacheOptionsError;
use crate::certs::CertificateError;
use crate::controller::ControllerError;
use crate::reconcile;
use crate::serve::BindError;
use crate::{ElectionOptionsError, Gvk, webhook};

/// A controller or a task that a manager cannot take.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another one has that name.
    #[error("{0:?} is registered twice: give one of them another name, controllers with named()")]
    NameTaken(String),
    /// It has no name.
    #[error("a controller has no name: give it one with named()")]
    Nameless,
    /// Nothing would ever be reconciled.
    #[error("controller {0:?} has no source: add watches() or channel()")]
    NoSource(String),
    /// The manager already runs.
    #[error("cannot register {0:?}: the manager already started")]
    Started(String),
    /// A webhook cannot be served.
    #[error(transparent)]
    Webhook(#[from] webhook::RegisterError),
    /// The manager has stopped.
    #[error("cannot register {0:?}: the manager has stopped")]
    Stopped(String),
    /// The kind has an index of that name.
    #[error("{kind} has two indexes named {index:?}: give one of them another name")]
    IndexTaken {
        /// The kind.
        kind: Gvk,
        /// The name of the index.
        index: String,
    },
}

/// Why a manager did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The function given to [`Manager::before_run`](crate::Manager::before_run) failed.
    #[error("the manager cannot start: {0}")]
    BeforeRun(reconcile::Error),
    /// A port could not be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The certificate of the metrics cannot be used.
    #[error("the metrics cannot be served over TLS")]
    Certificate(#[from] CertificateError),
    /// The certificate of the webhook server cannot be used.
    #[error("webhooks cannot be served over TLS")]
    WebhookCertificate(#[source] CertificateError),
    /// The namespace of the webhook Service is not known.
    #[error(
        "webhooks: not running in a cluster, so there is no Service for a self-signed certificate; use `kubewright dev`, or set \
         --webhook-cert-path DIR, --webhook-service-namespace NAME, or --webhook-bind-address=0 to serve no webhooks"
    )]
    WebhookNamespace(#[source] std::io::Error),
    /// The cache cannot work with its options.
    #[error("the cache cannot start")]
    Cache(#[from] CacheOptionsError),
    /// Leader election cannot work like this.
    #[error("leader election cannot start")]
    Election(#[from] ElectionOptionsError),
    /// A controller could not start.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// A task failed.
    #[error("{name} failed: {failure:#}")]
    Task {
        /// The task.
        name: String,
        /// What it said.
        failure: reconcile::Error,
    },
    /// A task panicked.
    #[error("{name} panicked")]
    Panicked {
        /// The task.
        name: String,
        /// The panic.
        #[source]
        source: tokio::task::JoinError,
    },
    /// Another replica leads now. The process must end: what it knows may be old.
    #[error("the leadership was lost")]
    LeadershipLost,
    /// Signals cannot be received.
    #[error("signals cannot be received")]
    Signals(#[source] std::io::Error),
    /// A second signal came before everything had ended.
    #[error("ended by a second signal before everything had ended")]
    Interrupted,
    /// Something did not end in time, and was dropped.
    #[error("not everything ended within {after:?}: {}", still.join(", "))]
    ShutdownTimedOut {
        /// How long it was waited for.
        after: Duration,
        /// What was still running.
        still: Vec<String>,
    },
    /// A cluster cannot be attached.
    #[error("the cluster cannot be attached")]
    Attach(#[from] RegisterError),
    /// The manager has stopped.
    #[error("the manager has stopped")]
    Stopped,
    /// The manager was run before.
    #[error("a manager runs once")]
    RanBefore,
}
