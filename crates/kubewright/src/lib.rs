//! Kubernetes operators in Rust: what an operator imports.
//!
//! An operator is a program that watches objects in a cluster and brings the world to what they want. This crate is
//! what such a program is written with: the runtime ([`Manager`], [`Client`], [`Reconciler`] and what belongs to
//! them), its entry point ([`macro@main`], [`Operator`], [`Flags`]), and the crates below it under one roof.
//!
//! # An operator
//!
//! ```no_run
//! use kubewright::k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::prelude::*;
//! use kubewright::serde_json::json;
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
//! elsewhere, connects to the cluster that `kubectl` would use or to the one whose pod it is, answers `/healthz`,
//! `/readyz` and `/metrics`, and ends on SIGTERM with what it runs.
//!
//! # In a test
//!
//! What the entry point does, a test does by hand: on a manager of its own, against an API server in the same process,
//! until it has seen what it wants.
//!
//! ```
//! use std::time::Duration;
//! # use kubewright::k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::prelude::*;
//! use kubewright::{ManagerOptions, kube};
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
//!     let map = client.namespaced("default").create(&map).await.expect("it is new");
//!     let key = Key::of(&map);
//!     kubewright::eventually(Duration::from_secs(30), async || match client.get::<ConfigMap>(&key).await {
//!         Ok(map) if map.labels().get("keys").is_some_and(|keys| keys == "1") => Ok(()),
//!         other => Err(format!("{other:?}")),
//!     })
//!     .await
//!     .expect("it is labelled");
//! };
//! manager.run_until(seen).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Kinds of one's own
//!
//! [`CustomResource`] makes a kind of a struct. It is kube's derive, and expands to the names of other crates, so an
//! operator that has kinds of its own depends on them too. The version of Kubernetes is the operator's choice as
//! well, by a feature of `k8s-openapi`:
//!
//! ```toml
//! [dependencies]
//! kubewright = "0.1"
//! k8s-openapi = { version = "0.29", features = ["v1_36", "schemars"] }
//! # What derive(CustomResource, KubeSchema, Serialize, Deserialize) expands to:
//! kube = { version = "5", default-features = false }
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! serde_json = "1"
//! ```
//!
//! Without kinds of its own an operator needs the first two lines only; everything else is here: [`kube`],
//! [`k8s_openapi`], [`serde`], [`serde_json`], [`tracing`] and others. With kinds it can do the same, if it tells each
//! derive where to look (`#[kube(crates(...))]`, `#[x_kube(crates(...))]`, `#[serde(crate = "...")]`,
//! `#[schemars(crate = "...")]`); four lines in the manifest are less.
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
//! # Where things are
//!
//! | for | see |
//! |---|---|
//! | what to do with an object | [`Reconciler`], [`Context`], [`Outcome`], [`Error`] |
//! | which objects, and when | [`controller`]: `owns`, `watches`, predicates, concurrency |
//! | reading and writing | [`Client`], [`Patch`], [`Key`], [`List`], [`cache`] |
//! | children of built-in kinds, without typos | [`object!`], [`object()`] |
//! | writing only what is meant | [`macro@ApplyConfiguration`], [`apply`] |
//! | owners, conditions, events | [`owner`], [`condition`], [`events`] |
//! | kinds, rights and webhooks in the manifests | [`crds!`], [`schema`], [`macro@rbac`], [`macro@webhook`], [`declare`] |
//! | one leader among replicas | [`ElectionOptions`]; `--leader-elect` |
//! | probes and numbers | [`health`], [`metrics`] |
//! | why something is reconciled | [`Context::causes`], [`journal`] |
//! | the program | [`macro@main`], [`Operator`], [`Flags`], [`logs`], [`connect`] |

mod flags;
mod manifests;
mod operator;

pub use kube::{self, CustomResource, CustomResourceExt, KubeSchema, Resource, ResourceExt};
/// Leaves out of a struct what one manager does not mean: partial types for server-side apply.
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
/// `client.apply(&wanted)` sends it, and `GuestbookApply::extract` finds it again in the object: [`apply`] tells more.
///
pub use kubewright_macros::ApplyConfiguration;
/// Makes a program of an operator's main function.
///
/// ```no_run
/// use kubewright::prelude::*;
///
/// #[kubewright::main]
/// async fn main(manager: Manager) -> Result<()> {
///     // Register controllers here.
///     manager.run().await
/// }
/// ```
///
pub use kubewright_macros::main;
/// Makes a Kubernetes object whose fields are checked at compile time.
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
/// So is a literal of another type, a string that an enum does not have, text that is not a quantity or base64 where one
/// belongs, a required field that is missing, and an expression of a type that does not fit:
///
/// ```compile_fail,E0277
/// # use kubewright::object;
/// let replicas = "3".to_owned();
/// object! { Deployment { metadata: { name: "web" }, spec: { replicas: replicas, .. } } };
/// ```
///
/// The content of structs and of [`serde_json::Value`] is known at run time only. It is checked then, and the error is
/// returned by [`ApplyObject::check`](object::ApplyObject::check), by `client.apply` and by
/// [`ApplyObject::complete`](object::ApplyObject::complete).
///
/// # Custom resources
///
/// The macro cannot see the fields of your own types. The object is read as the type when it is made, and a field that the
/// type does not have is an error at run time, with a suggestion. For a part of a custom resource, derive
/// [`macro@ApplyConfiguration`]. A kind without a Rust type is a [`kube::api::DynamicObject`].
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
/// Declares a right that the operator needs, beside those that follow from its controllers.
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
/// Declares how the API server calls an admission webhook, on the impl of its handler.
///
/// What is left out follows from the handler's kind. The handler is served, and its webhook is in the manifest, once it is
/// registered with [`Manager::validator`], [`Manager::defaulter`] or [`Manager::admission`]. A handler that is not
/// registered is an error of `kubewright manifests`.
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
/// An [`AdmissionHandler`](webhook::AdmissionHandler) has no kind, so name, path and rules are required. With `url`, the
/// attribute goes on any item, and declares a webhook that is served outside of the cluster:
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
pub use kubewright_manifests::{crd, crds, declare, schema};
#[doc(inline)]
pub use kubewright_runtime::*;
pub use {anyhow, jiff, k8s_openapi, prometheus_client, schemars, serde, serde_json, tokio, tracing};

pub use self::flags::Flags;
pub use self::operator::Operator;

/// What nearly every operator uses: `use kubewright::prelude::*;`.
pub mod prelude {
    pub use crate::{
        ApplyConfiguration, Client, Context, CustomResource, CustomResourceExt, Error, Key, KubeSchema, List,
        Manager, Object, Outcome, Patch, Reconciler, ResourceExt, Result, object, rbac, webhook,
    };
}
