//! Kubernetes operators in Rust: the crate that an operator imports.
//!
//! An operator watches objects in a cluster and moves the cluster's actual state toward their desired state. This crate
//! re-exports the runtime ([`Manager`], [`Client`], [`Reconciler`] and related types) and adds an entry point
//! ([`macro@main`], [`Operator`], [`Flags`]).
//!
//! # An operator
//!
//! ```no_run
//! use kubewright::k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::prelude::*;
//! use kubewright::serde_json::json;
//! use kubewright::{Context, Patch, Result};
//!
//! struct Labeller;
//!
//! impl Reconciler for Labeller {
//!     type Object = ConfigMap;
//!
//!     async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
//!         let keys = map.data.as_ref().map_or(0, |data| data.len()).to_string();
//!         if map.labels().get("keys") != Some(&keys) {
//!             let patch = Patch::merge(json!({"metadata": {"labels": {"keys": keys}}}));
//!             cx.client().patch(map, &patch).await?;
//!         }
//!         Ok(Outcome::done())
//!     }
//! }
//!
//! #[kubewright::main]
//! async fn main(manager: Manager) -> Result<()> {
//!     manager.controller(Labeller).register()?;
//!     manager.run().await
//! }
//! ```
//!
//! The program has the flags of kubebuilder's scaffold (`--help` lists them), logs text on a terminal and JSON
//! elsewhere, connects to the cluster of the current kubeconfig context or of its pod, serves `/healthz`, `/readyz` and
//! `/metrics`, and shuts down gracefully on SIGTERM.
//!
//! # In a test
//!
//! A test creates the manager itself, against an API server in the same process, and runs it until the expected state
//! is reached.
//!
//! ```
//! use std::time::Duration;
//! # use kubewright::k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::prelude::*;
//! use kubewright::{Key, ManagerOptions, Result, kube};
//! # use kubewright::{Context, Patch};
//! # use kubewright::serde_json::json;
//! # struct Labeller;
//! # impl Reconciler for Labeller {
//! #     type Object = ConfigMap;
//! #     async fn reconcile(&self, map: &ConfigMap, cx: &Context) -> Result<Outcome> {
//! #         let keys = map.data.as_ref().map_or(0, |data| data.len()).to_string();
//! #         if map.labels().get("keys") != Some(&keys) {
//! #             let patch = Patch::merge(json!({"metadata": {"labels": {"keys": keys}}}));
//! #             cx.client().patch(map, &patch).await?;
//! #         }
//! #         Ok(Outcome::done())
//! #     }
//! # }
//! use kubewright_apiserver::{ApiServer, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let kube = kube::Client::new(ApiServer::new(Options::default()), "default");
//! let manager = Manager::new(kube, ManagerOptions::new("labeller"))?;
//! manager.controller(Labeller).register()?;
//!
//! let client = manager.client().clone();
//! let seen = async {
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some("colours".to_owned());
//!     map.data = Some([("sky".to_owned(), "blue".to_owned())].into());
//!     let map = client.namespaced("default").create(&map).await.expect("created");
//!     let key = Key::of(&map);
//!     kubewright::eventually(Duration::from_secs(30), async || match client.get::<ConfigMap>(&key).await {
//!         Ok(map) if map.labels().get("keys").is_some_and(|keys| keys == "1") => Ok(()),
//!         other => Err(format!("{other:?}")),
//!     })
//!     .await
//!     .expect("labelled");
//! };
//! manager.run_until(seen).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Custom resources
//!
//! [`CustomResource`] derives a kind from a struct. It is kube's derive macro, and its code refers to other crates, so
//! an operator with its own kinds also depends on those crates. The operator chooses the version of Kubernetes by a
//! feature of `k8s-openapi`:
//!
//! ```toml
//! [dependencies]
//! kubewright = "0.1"
//! k8s-openapi = { version = "0.29", features = ["v1_36", "schemars"] }
//! # Needed by derive(CustomResource, KubeSchema, Serialize, Deserialize):
//! kube = { version = "5", default-features = false }
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! serde_json = "1"
//! ```
//!
//! An operator without its own kinds needs only the first two lines; everything else is re-exported here: [`kube`],
//! [`k8s_openapi`], [`serde`], [`serde_json`], [`tracing`] and others. An operator with its own kinds can do without
//! the other lines too, if it passes the paths to each derive (`#[kube(crates(...))]`, `#[x_kube(crates(...))]`,
//! `#[serde(crate = "...")]`, `#[schemars(crate = "...")]`).
//!
//! ```
//! use kubewright::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
//! #[kube(group = "example.com", version = "v1", kind = "Guestbook", namespaced, status = "GuestbookStatus")]
//! pub struct GuestbookSpec {
//!     #[x_kube(validation = "self > 0")]
//!     pages: i32,
//! }
//!
//! #[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
//! pub struct GuestbookStatus {
//!     #[serde(default)]
//!     conditions: Vec<kubewright::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
//! }
//!
//! assert_eq!(Guestbook::crd().name_any(), "guestbooks.example.com");
//! ```
//!
//! # Overview
//!
//! | task | see |
//! |---|---|
//! | reconcile objects | [`Reconciler`], [`Context`], [`Outcome`], [`ReconcileError`] |
//! | choose what to watch | [`controller`]: `owns`, `watches`, predicates, concurrency |
//! | read and write objects | [`Client`], [`Patch`], [`Key`], [`ListOptions`], [`client`], [`cache`] |
//! | build built-in kinds with checked fields | [`object!`], [`object()`] |
//! | server-side apply | [`macro@ApplyConfiguration`], [`apply`] |
//! | owner references, finalizers, conditions, events | [`owner`], [`finalizer`], [`condition`], [`events`] |
//! | admission and conversion webhooks | [`mod@webhook`] |
//! | CRDs, RBAC rules and webhooks in the manifests | [`crds!`], [`schema`], [`macro@rbac`], [`macro@webhook`] |
//! | texts of OLM bundles | [`macro@olm`] |
//! | leader election | [`LeaderElectionOptions`]; `--leader-elect` |
//! | health probes and metrics | [`health`], [`metrics`] |
//! | the work queue, also without a manager | [`queue`] |
//! | entry point, flags, logs, connection | [`macro@main`], [`Operator`], [`Flags`], [`logs`], [`connect`] |
//!
//! # Stability
//!
//! What this crate exports is the public API; `public-api.txt` next to its manifest lists it, and a test compares the
//! list with the sources. Items that are hidden in the documentation, and the crates below this one, are not part of
//! it. Types of [`kube`], [`k8s_openapi`], [`anyhow`], [`jiff`], [`serde_json`], [`prometheus_client`], [`schemars`],
//! [`tokio`] and [`clap`] are part of it: a new major version of one of them is a breaking release of this crate.

mod flags;
mod manifests;
mod operator;

/// Parses command lines. A public dependency, version 4: [`Flags`] and [`Operator::run_with_args`] use its traits.
pub use clap;
pub use kube::{self, CustomResource, CustomResourceExt, KubeSchema, Resource, ResourceExt};
/// Derives a partial type for server-side apply, in which every field is optional.
///
/// ```
/// use kubewright::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, KubeSchema, ApplyConfiguration, Serialize, Deserialize, Clone, Debug)]
/// #[kube(group = "example.com", version = "v1", kind = "Guestbook", namespaced, status = "GuestbookStatus")]
/// #[serde(rename_all = "camelCase")]
/// pub struct GuestbookSpec {
///     page_count: i32,
///     #[apply(nested)]
///     cover: Option<Cover>,
/// }
///
/// #[derive(KubeSchema, ApplyConfiguration, Serialize, Deserialize, Clone, Debug)]
/// pub struct Cover {
///     color: String,
///     title: String,
/// }
///
/// #[derive(KubeSchema, ApplyConfiguration, Serialize, Deserialize, Clone, Debug)]
/// pub struct GuestbookStatus {
///     entries: i32,
/// }
///
/// let cover = CoverApply::default().color("red");
/// let wanted = GuestbookApply::new("visitors").namespace("default").spec(GuestbookSpecApply::default().cover(cover));
/// assert_eq!(
///     serde_json::to_value(&wanted)?,
///     serde_json::json!({
///         "apiVersion": "example.com/v1",
///         "kind": "Guestbook",
///         "metadata": {"name": "visitors", "namespace": "default"},
///         "spec": {"cover": {"color": "red"}},
///     })
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// `client.apply(&wanted)` sends it, and `GuestbookApply::extract` extracts it from the live object; see [`apply`].
///
pub use kubewright_macros::ApplyConfiguration;
/// Turns an operator's main function into a program.
///
/// ```no_run
/// use kubewright::Manager;
///
/// #[kubewright::main]
/// async fn main(manager: Manager) -> kubewright::Result<()> {
///     // Register controllers here.
///     manager.run().await
/// }
/// ```
///
pub use kubewright_macros::main;
/// Creates a Kubernetes object whose fields are checked at compile time.
///
/// The kind comes first; `apiVersion` and `kind` follow from it. Then come the fields, as in YAML or JSON. The value is an
/// [`ApplyObject`](object::ApplyObject): it holds exactly these fields, so that server-side apply owns no others.
///
/// ```
/// # use std::collections::BTreeMap;
/// use kubewright::k8s_openapi::api::apps::v1::Deployment;
/// use kubewright::object;
/// use kubewright::object::ApplyObject;
///
/// fn web(name: &str, replicas: i32, image: Option<String>) -> ApplyObject<Deployment> {
///     let labels = BTreeMap::from([("app", name)]);
///     object! { Deployment {
///         metadata: { name: name, namespace: "default", labels: &labels },
///         spec: {
///             replicas: replicas,
///             selector: { matchLabels: &labels },
///             template: {
///                 metadata: { labels: &labels },
///                 spec: {
///                     containers: [{
///                         name: "web",
///                         image?: image,
///                         args: ["--name", format!("{name}.example.com")],
///                         ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
///                         resources: { limits: { cpu: "500m", memory: "1Gi" } },
///                     }],
///                 },
///             },
///         },
///     } }
/// }
///
/// let web = web("web", 3, None);
/// assert_eq!(web.fields()["spec"]["replicas"], 3);
/// assert!(web.fields()["spec"]["template"]["spec"]["containers"][0].get("image").is_none());
/// let whole: Deployment = web.complete()?;
/// assert_eq!(whole.spec.and_then(|spec| spec.replicas), Some(3));
/// # Ok::<(), kubewright::client::Error>(())
/// ```
///
/// `client.apply(&web)` sends it and returns the Deployment as the server stored it.
///
/// # What is checked
///
/// A field that the kind does not have is an error at its key:
///
/// ```compile_fail
/// # use kubewright::object;
/// // error: `DeploymentSpec` has no field `replica`; did you mean `replicas`?
/// object! { Deployment { metadata: { name: "web" }, spec: { replica: 3, .. } } };
/// ```
///
/// Also checked are the types of literals, enum values, quantities and base64, required fields, and the types of
/// expressions:
///
/// ```compile_fail,E0277
/// # use kubewright::object;
/// let replicas = "3".to_owned();
/// object! { Deployment { metadata: { name: "web" }, spec: { replicas: replicas, .. } } };
/// ```
///
/// The content of structs and of [`serde_json::Value`] is checked at run time. The error is returned by
/// [`ApplyObject::check`](object::ApplyObject::check), `client.apply` and
/// [`ApplyObject::complete`](object::ApplyObject::complete).
///
/// # Custom resources
///
/// The macro cannot see the fields of your own types. The object is decoded as its type when it is created, and an
/// unknown field is a run-time error with a suggestion. For a partial custom resource, derive
/// [`macro@ApplyConfiguration`]. For a kind without a Rust type, use [`kube::api::DynamicObject`].
///
/// ```
/// use kubewright::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
/// #[kube(group = "example.com", version = "v1", kind = "Guestbook", namespaced)]
/// #[serde(rename_all = "camelCase")]
/// pub struct GuestbookSpec {
///     page_count: i32,
/// }
///
/// let book = object! { Guestbook { metadata: { name: "visitors" }, spec: { pageCont: 3 } } };
/// assert_eq!(
///     book.check().unwrap_err().to_string(),
///     "Guestbook visitors: spec.pageCont: unknown field; did you mean `pageCount`?"
/// );
/// ```
///
pub use kubewright_macros::object;
/// Describes a kind and its operator in OLM bundles.
///
/// ```
/// use kubewright::declare::{self, Declared};
/// use kubewright::olm;
/// use kubewright::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[olm(display_name = "Web Order", description = "An order of the web shop.", categories = "Database")]
/// #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
/// #[kube(group = "sales.example.com", version = "v1", kind = "Order", namespaced)]
/// pub struct OrderSpec {}
///
/// let is_of_order = |declared: &Declared| matches!(declared, Declared::Olm(olm) if olm.display_name == "Web Order");
/// assert!(declare::all().iter().any(is_of_order));
/// ```
///
pub use kubewright_macros::olm;
/// Declares an RBAC rule that the operator needs, in addition to those of its controllers.
///
/// ```
/// use kubewright::declare::{self, Declared};
/// use kubewright::rbac;
///
/// #[rbac(groups = "apps", resources = "deployments, deployments/status", verbs = "get, list, watch, patch")]
/// #[rbac(groups = "", resources = ["secrets"], resource_names = ["token"], verbs = ["get"], namespace = "vault")]
/// #[rbac(urls = "/metrics", verbs = "get")]
/// struct Guestbooks;
///
/// let is_of_metrics = |declared: &Declared| matches!(declared, Declared::Rule(rule) if rule.urls == ["/metrics"]);
/// assert!(declare::all().iter().any(is_of_metrics));
/// ```
///
pub use kubewright_macros::rbac;

/// Declares an admission webhook, on the impl of its handler.
///
/// Omitted values follow from the handler's kind. The handler is served, and its webhook is part of the manifests, once
/// it is registered with [`Manager::validator`], [`Manager::defaulter`] or [`Manager::admission`]. A handler that is
/// not registered is an error of `kubewright manifests`.
///
/// ```
/// use kubewright::k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright::webhook;
/// use kubewright::webhook::{Rejection, Validation, Validator};
///
/// struct NotEmpty;
///
/// #[webhook(verbs = "create, update", failure_policy = ignore)]
/// impl Validator for NotEmpty {
///     type Object = ConfigMap;
///
///     async fn validate_create(&self, new: &ConfigMap, v: &mut Validation<'_>) -> Result<(), Rejection> {
///         if new.data.is_none() {
///             v.required("data", "an empty ConfigMap has no use");
///         }
///         Ok(())
///     }
/// }
///
/// assert_eq!(NotEmpty::webhook().failure_policy, "ignore");
/// ```
///
/// An [`AdmissionHandler`](webhook::AdmissionHandler) has no kind, so name, path and rules are required. With `url`,
/// the attribute can be on any item and declares a webhook that is served outside of the cluster:
///
/// ```
/// use kubewright::webhook;
///
/// #[webhook(
///     name = "vguestbook-v1.kb.io",
///     mutating = false,
///     url = "https://hooks.example.com/guestbooks",
///     groups = "example.com",
///     versions = "v1",
///     resources = "guestbooks",
///     verbs = "create, update",
///     timeout_seconds = 5,
///     namespace_selector = { matchExpressions: [{ key: "guests", operator: "Exists" }] },
///     match_conditions = [("not-by-nodes", "!('system:nodes' in request.userInfo.groups)")],
/// )]
/// struct Guestbooks;
/// ```
///
pub use kubewright_macros::webhook;
#[doc(inline)]
pub use kubewright_manifests::{crds, schema};
#[doc(inline)]
pub use kubewright_runtime::object::object;
#[doc(inline)]
pub use kubewright_runtime::{
    AddressError, Addresses, BindAddress, Cache, CacheOptions, CacheOptionsError, Client, Clock, Cluster,
    ConsistentlyError, Context, Delete, EventuallyError, FunctionReconciler, Gvk, Handle, Key, KeyReconciler,
    Kind, KindOptions, LabelSelector, LeaderElectionOptions, LeaderElectionOptionsError, ListOptions,
    Manager, ManagerError, ManagerOptions, Object, Outcome, Patch, ReconcileError, ReconcileFunction,
    ReconcileId, Reconciler, RegisterError, Result, Scope, SystemClock, TaskContext, Terminal, TokioClock,
    Upsert, consistently, eventually, is_terminal, reconcile_fn, terminal,
};
pub use {anyhow, jiff, k8s_openapi, prometheus_client, schemars, serde, serde_json, tokio, tracing};

pub use self::flags::{Flags, FlagsError};
pub use self::operator::Operator;

/// Runs reconcile functions of kube-rs, `reconcile(Arc<K>, Arc<Ctx>) -> Result<Action, E>`, on controllers.
pub mod adapter {
    #[doc(inline)]
    pub use kubewright_runtime::adapter::{Action, adapt};
}

/// Typed server-side apply: partial objects with only the fields that a field manager sets.
pub mod apply {
    #[doc(inline)]
    pub use kubewright_runtime::apply::{
        ApplyConfiguration, Configuration, Configured, ExtractError, NoStatus, Partial, extract,
    };
}

/// The cache of watched objects, its options and its indexes.
pub mod cache {
    #[doc(inline)]
    pub use kubewright_runtime::cache::{
        Cache, CacheOptions, CacheOptionsError, Change, DECODED_BUDGET, Entry, Follower, Index, Informer,
        KindOptions, Marks, NamespaceOptions, Occasion, RESYNC, Removal, WATCH_FAILURE,
    };
}

/// Reads and writes objects: errors, retries, subresources and watches of [`Client`].
pub mod client {
    #[doc(inline)]
    pub use kubewright_runtime::client::{
        Client, Delete, Error, FenceLayer, FenceService, FieldValidation, Patch, Retry, Subresource, Upsert,
        WatchEvent, WatchStream, ignore_not_found, retry_on_conflict,
    };
}

/// Status conditions, by the rules of apimachinery.
pub mod condition {
    #[doc(inline)]
    pub use kubewright_runtime::condition::{
        ConditionStatus, ConditionUpdate, find_condition, is_false, is_present_and_equal, is_true,
        remove_condition, set_condition,
    };
}

/// Connects to a cluster, for programs that do not use [`Operator`] and for further clusters.
pub mod connect {
    #[doc(inline)]
    pub use kubewright_runtime::connect::{
        AuthError, ClientMetrics, ConnectError, InferError, KubeconfigError, Options, PluginError, Source,
        TlsError, client, infer, user_agent,
    };
}

/// Builds controllers: the reconciled kind, further watches, predicates and options.
pub mod controller {
    #[doc(inline)]
    pub use kubewright_runtime::controller::{
        Cause, Changed, ControllerBuilder, ControllerError, ControllerHandle, ControllerOptions, Event, Keys,
        Objects, Predicate, Trigger, Watch, WatchHandle,
    };
}

/// Generates CustomResourceDefinitions from Rust types.
pub mod crd {
    #[doc(inline)]
    pub use kubewright_manifests::crd::{Described, Options, kind, of, with};
}

/// What attributes of this program declare for the manifests.
pub mod declare {
    #[doc(hidden)]
    pub use kubewright_manifests::declare::{Declaration, submit};
    #[doc(inline)]
    pub use kubewright_manifests::declare::{
        Declared, Handler, Item, Kind, MatchCondition, Olm, Rule, Webhook, all,
    };
}

/// Kubernetes Events.
pub mod events {
    #[doc(inline)]
    pub use kubewright_runtime::events::{About, Broadcaster, EventBuilder, Recorder};
}

/// Finalizers: cleanup before an object is deleted.
pub mod finalizer {
    #[doc(inline)]
    pub use kubewright_runtime::finalizer::{Error, Event, add, contains, ensure, release, remove, run};
}

/// Checks of the health probes.
pub mod health {
    #[doc(inline)]
    pub use kubewright_runtime::health::Checks;
}

/// client-go's parts for a control loop without a manager: informer, store, indexer, lister and event handler.
pub mod informer {
    #[doc(inline)]
    pub use kubewright_runtime::informer::{EventHandler, Indexer, Informer, Lister, Store};
}

/// Sets up logging.
pub mod logs {
    #[doc(inline)]
    pub use kubewright_runtime::logs::{Color, Format, LogsError, Options, capture, init, layer, subscriber};
}

/// The metrics registry, and further paths of the metrics server.
pub mod metrics {
    #[doc(inline)]
    pub use kubewright_runtime::metrics::{Handler, Metrics, Request, Response, text};
}

/// Objects for server-side apply that hold exactly the fields of [`object!`] or [`object()`].
pub mod object {
    #[doc(inline)]
    pub use kubewright_runtime::object::{Applies, ApplyObject, Checked, ObjectError};
    #[doc(hidden)]
    pub use kubewright_runtime::object::{shape, template};
}

/// Owner references, by the rules of controllerutil.
pub mod owner {
    #[doc(inline)]
    pub use kubewright_runtime::owner::{
        OwnerError, OwnerOptions, controller_of, has_owner_reference, is_controlled_by,
        remove_owner_reference, set_controller_reference, set_controller_reference_with, set_owner_reference,
    };
}

/// The work queue of controllers, which also works without a manager.
pub mod queue {
    #[doc(inline)]
    pub use kubewright_runtime::queue::{
        Backoff, BucketLimiter, Causes, Counts, DEFAULT_PRIORITY, FastSlow, Item, LOW_PRIORITY, Limiter,
        MaxOf, Namespace, Options, Processing, Queue, QueueMetrics, RateLimit, RateLimiter, Running,
        SharedQueue, Taken, Waiting, WaitsFor, WithMaxWait, WorkQueue,
    };
}

/// Label selectors.
pub mod selector {
    #[doc(inline)]
    pub use kubewright_runtime::selector::{LabelSelector, ParseError};
}

/// Admission and conversion webhooks.
pub mod webhook {
    #[doc(inline)]
    pub use kubewright_runtime::webhook::{
        AdmissionHandler, AdmissionRequest, AdmissionResponse, ApiHandler, BoxError, CONVERSION_DATA,
        CONVERT_PATH, CertificateMode, Conversion, ConversionError, Declaration, DecodeError, Defaulter,
        ErrorList, FieldError, GroupVersion, GroupVersionKind, GroupVersionResource, Item, MatchCondition,
        Operation, Path, RegisterError, Rejection, Spoke, UserInfo, Validation, Validator, WebhookOptions,
        Webhooks, mutate_path, validate_path,
    };
}

/// The imports of most files of an operator: `use kubewright::prelude::*;`.
///
/// No name here is also a name of std, [`anyhow`] or [`kube`], except for items that are re-exports of theirs. Therefore
/// [`Client`], [`Context`] and [`Result`] are not here: import them from the crate's root. Traits are imported for
/// their methods only; import a trait by name to implement it or to use it as a bound.
pub mod prelude {
    pub use kube::{CustomResource, CustomResourceExt as _, KubeSchema, Resource as _, ResourceExt as _};
    pub use kubewright_macros::{ApplyConfiguration, object, rbac, webhook};
    pub use kubewright_runtime::{KeyReconciler, Manager, Outcome, Reconciler};
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
