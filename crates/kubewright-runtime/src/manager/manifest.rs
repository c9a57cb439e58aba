//! Describes what a manager would run, without running it.
//!
//! Owns the [`ManagerManifest`] and a client without a cluster. An operator's `main` runs with a manager that only
//! records what is registered, so that manifests can be generated without a cluster.

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
use crate::webhook::{Conversion, Declaration, GroupVersion};
use crate::{Kind, cache};

/// The registered controllers and webhooks, in registration order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagerManifest {
    /// The name of the operator.
    pub name: String,
    /// Its controllers.
    pub controllers: Vec<ControllerManifest>,
    /// The namespaces that it watches; empty means all.
    pub namespaces: Vec<String>,
    /// Kinds that are cached without a controller, such as those that only have an index.
    pub cached: Vec<Kind>,
    /// Its admission webhooks.
    pub webhooks: Vec<Declaration>,
    /// The kinds whose versions it converts.
    pub conversions: Vec<ConversionManifest>,
    /// The versions of API groups that it serves.
    pub api_services: Vec<GroupVersion>,
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

/// The kinds that a controller reconciles and watches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerManifest {
    /// The name in metrics and logs.
    pub name: String,
    /// The kind that it reconciles; `None` for a controller of keys.
    pub kind: Option<Kind>,
    /// The kinds that it owns.
    pub owns: Vec<Kind>,
    /// The other kinds that it watches.
    pub watches: Vec<Kind>,
    /// The kinds that are cached for reads only.
    pub reads: Vec<Kind>,
    /// The finalizers that it adds to objects of its kind.
    pub finalizers: Vec<String>,
    /// Whether it never writes the status of its kind.
    pub without_status: bool,
    /// Whether it records no events.
    pub without_events: bool,
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
            without_events: controller.without_events,
        }
    }
}

/// Receives the manifest instead of running the manager.
pub(super) type OnManifest = Box<dyn FnOnce(ManagerManifest) + Send>;

/// Runs before the manager starts anything.
pub(super) type BeforeRun = Box<dyn FnOnce(ManagerManifest) -> BoxFuture<'static, Result<(), Error>> + Send>;

/// The kinds in a cache, without duplicates.
pub(super) fn cached(cache: &cache::Cache) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = cache.registered();
    kinds.dedup();
    kinds
}

/// A connection to no cluster; every request fails with status 503.
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
            "{} {} before the manager runs: no cluster is available while manifests are generated; send the request in a task",
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

/// A client without a cluster.
pub(super) fn nowhere() -> kube::Client {
    kube::Client::new(Nowhere, "default")
}
