//! Errors of a manager.

use std::net::SocketAddr;
use std::time::Duration;

use crate::cache::CacheOptionsError;
use crate::certs::CertificateError;
use crate::controller::ControllerError;
use crate::reconcile;
use crate::serve::BindError;
use crate::{Gvk, LeaderElectionOptionsError, webhook};

/// Why a controller, task or webhook cannot be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another controller or cluster has that name.
    #[error("{0:?} is already registered: choose another name (for a controller, use named())")]
    NameTaken(String),
    /// The controller has no name.
    #[error("controller has no name: set one with named()")]
    Nameless,
    /// The controller has no source, so it would never reconcile.
    #[error("controller {0:?} has no source: add watches() or channel()")]
    NoSource(String),
    /// The manager already runs.
    #[error("cannot register {0:?}: manager already started")]
    Started(String),
    /// A webhook cannot be served.
    #[error(transparent)]
    Webhook(#[from] webhook::RegisterError),
    /// The manager has stopped.
    #[error("cannot register {0:?}: manager has stopped")]
    Stopped(String),
    /// The kind already has an index of that name.
    #[error("{kind} already has an index named {index:?}: choose another name")]
    IndexTaken {
        /// The kind.
        kind: Gvk,
        /// The name of the index.
        index: String,
    },
}

/// Why a manager did not start, or why it stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The function given to [`Manager::before_run`](crate::Manager::before_run) failed.
    #[error("before_run hook failed: {0}")]
    BeforeRun(reconcile::Error),
    /// A server could not listen on its address.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The certificate of the metrics server cannot be used.
    #[error("failed to load the certificate of the metrics server")]
    Certificate(#[from] CertificateError),
    /// The debug page is not part of the program.
    #[error(
        "--debug-page-bind-address: the debug page is not compiled in; enable the cargo feature `debug-page` of kubewright, \
         and run the manager with #[kubewright::main] or kubewright::operator!()"
    )]
    NoDebugPage,
    /// The debug page would be served to the network without authentication.
    #[error(
        "--debug-page-bind-address: {0} is not a loopback address, and --metrics-secure=false disables authentication; use \
         127.0.0.1:PORT, or remove --metrics-secure=false"
    )]
    OpenDebugPage(SocketAddr),
    /// The certificate of the webhook server cannot be used.
    #[error("failed to load the certificate of the webhook server")]
    WebhookCertificate(#[source] CertificateError),
    /// The namespace of the webhook Service is not known.
    #[error(
        "webhooks: not running in a cluster, so there is no Service for a self-signed certificate; use `kubewright dev`, or set \
         --webhook-cert-path DIR, --webhook-service-namespace NAME, or --webhook-bind-address=0 to serve no webhooks"
    )]
    WebhookNamespace(#[source] std::io::Error),
    /// The cache options are invalid.
    #[error("invalid cache options")]
    Cache(#[from] CacheOptionsError),
    /// The leader election options are invalid.
    #[error("invalid leader election options")]
    Election(#[from] LeaderElectionOptionsError),
    /// A controller could not start.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// A task failed.
    #[error("task {name} failed: {failure:#}")]
    Task {
        /// The task.
        name: String,
        /// The error that it returned.
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
    /// Another replica may lead now. The process must exit, because its state may be stale.
    #[error("leader election lost")]
    LeadershipLost,
    /// Signal handlers cannot be installed.
    #[error("failed to install signal handlers")]
    Signals(#[source] std::io::Error),
    /// A second signal arrived during graceful shutdown.
    #[error("graceful shutdown interrupted by a second signal")]
    Interrupted,
    /// Some components did not stop in time and were dropped.
    #[error("graceful shutdown timed out after {after:?}; still running: {}", still.join(", "))]
    ShutdownTimedOut {
        /// The graceful shutdown timeout.
        after: Duration,
        /// The components that were still running.
        still: Vec<String>,
    },
    /// A cluster cannot be attached.
    #[error("failed to attach cluster")]
    Attach(#[from] RegisterError),
    /// The manager has stopped.
    #[error("manager has stopped")]
    Stopped,
    /// The manager has already run; see [`Manager::run`](crate::Manager::run).
    #[error("manager already ran; create a new one to run again")]
    RanBefore,
}
