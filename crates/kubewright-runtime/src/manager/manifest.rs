//! What a manager would run, without running it.
//!
//! Owns the [`ManagerManifest`], and the connection that goes nowhere: an operator's `main` is called with a manager that only
//! takes note of what is registered, so that its manifests can be written where there is no cluster.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{self, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use kube::client::Body;

use crate::controller::{Controller, Role};
use crate::reconcile::Error;
use crate::webhook::{Conversion, Declaration};
use crate::{Kind, cache};

/// What a manager runs, in the order in which it was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagerManifest {
    /// The name of the operator.
    pub name: String,
    /// Its controllers.
    pub controllers: Vec<ControllerManifest>,
    /// The namespaces that it watches; all of them if empty.
    pub namespaces: Vec<String>,
    /// Kinds that are cached without a controller, such as those that only have an index.
    pub cached: Vec<Kind>,
    /// Its admission webhooks.
    pub webhooks: Vec<Declaration>,
    /// The kinds whose versions it converts.
    pub conversions: Vec<ConversionManifest>,
}

/// A kind whose versions the operator converts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversionManifest {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Its versions: the hub first, then the spokes.
    pub versions: Vec<String>,
}

impl From<&Conversion> for ConversionManifest {
    fn from(conversion: &Conversion) -> Self {
        let (group, kind) = conversion.group_kind();
        let version = |api_version: &str| match api_version.rsplit_once('/') {
            Some((_, version)) => version.to_owned(),
            None => api_version.to_owned(),
        };
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            versions: conversion.versions().map(version).collect(),
        }
    }
}

/// What a controller reconciles, and what makes it do so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerManifest {
    /// Its name in metrics and logs.
    pub name: String,
    /// What it is for; nothing if it is for keys.
    pub kind: Option<Kind>,
    /// What that owns.
    pub owns: Vec<Kind>,
    /// What else is watched.
    pub watches: Vec<Kind>,
    /// What is cached for reads only.
    pub reads: Vec<Kind>,
    /// The finalizers that it adds to objects of its kind.
    pub finalizers: Vec<String>,
    /// Whether it leaves the status of its kind alone.
    pub without_status: bool,
}

impl From<&Controller> for ControllerManifest {
    fn from(controller: &Controller) -> Self {
        let of = |role| {
            let sources = controller.sources.iter().filter(move |source| source.role == role);
            sources.map(|source| source.kind.clone()).collect()
        };
        Self {
            name: controller.name.to_string(),
            kind: controller.kind.clone(),
            owns: of(Role::Owned),
            watches: of(Role::Watched),
            reads: of(Role::Read),
            finalizers: controller.finalizers.clone(),
            without_status: controller.without_status,
        }
    }
}

/// What a manager does with its manifest instead of running.
pub(super) type Told = Box<dyn FnOnce(ManagerManifest) + Send>;

/// What a manager waits for before it starts anything.
pub(super) type BeforeRun = Box<dyn FnOnce(ManagerManifest) -> BoxFuture<'static, Result<(), Error>> + Send>;

/// The kinds of a cache, each once.
pub(super) fn cached(cache: &cache::Cache) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = cache.registered();
    kinds.dedup();
    kinds
}

/// A connection to no cluster: whatever is asked is answered with what is wrong about asking.
#[derive(Clone)]
struct Nowhere;

impl tower_service::Service<Request<Body>> for Nowhere {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let message = format!(
            "{} {} before the manager runs: there is no cluster where only manifests are asked for; do it in a task",
            request.method(),
            request.uri().path(),
        );
        let status = serde_json::json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 503,
            "reason": "ServiceUnavailable", "message": message,
        });
        let mut response = Response::new(Full::from(status.to_string()));
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        ready(Ok(response))
    }
}

/// A client of no cluster.
pub(super) fn nowhere() -> kube::Client {
    kube::Client::new(Nowhere, "default")
}
