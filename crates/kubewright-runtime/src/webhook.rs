//! Admission and conversion webhooks.
//!
//! [`Webhooks`] is a set of paths with their handlers, and a [`tower_service::Service`] on `http` types: any server can
//! serve it, whatever version of kube it uses. The manager serves it over TLS on every replica, leader or not.
//!
//! - [`Defaulter`] and [`Validator`] are webhooks for one kind; [`AdmissionHandler`] is the level below.
//! - [`Spoke`] and [`Conversion`] convert custom resources between versions.
//! - [`ApiHandler`] serves an API group behind an APIService, with the same certificate.
//!
//! The invariant: one bad request, handler or object fails its own review and nothing else. Bodies are limited, every
//! request has a deadline, and a panic becomes a 500 response.

mod admission;
mod api;
mod bodies;
#[doc(hidden)]
pub mod certificates;
mod conversion;
mod diff;
mod merge;
mod metrics;
mod options;
#[doc(hidden)]
pub mod probe;
mod span;
mod started;
mod typed;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Full;
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_apimachinery::webhook as declared;
use prometheus_client::registry::Registry;
use tracing::Instrument as _;

use crate::journal::Reviews;
use crate::kind::{Gvk, Kind, Object, Scope};
use crate::panics::{Panic, contain, contain_future};
use crate::serve::{Response, not_found, text};
use admission::{Review, ReviewError, encode_error};
use api::DynApi;
use bodies::{Bodies, BodyError};
use conversion::Answer;
use metrics::WebhookMetrics;
use typed::{Defaulting, Validating};

pub use admission::{
    AdmissionHandler, AdmissionRequest, AdmissionResponse, DecodeError, GroupVersionKind,
    GroupVersionResource, Operation, Rejection, UserInfo,
};
pub use api::{ApiHandler, GroupVersion};
pub use conversion::{BoxError, CONVERSION_DATA, Conversion, ConversionError, Spoke};
pub use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
pub use kubewright_apimachinery::webhook::{Declaration, Item, MatchCondition};
pub use options::{CertificateMode, WebhookOptions, secret_name};
pub(crate) use started::check_started;
pub use typed::{Defaulter, Validation, Validator};

/// The path of conversion reviews, for all kinds.
pub const CONVERT_PATH: &str = "/convert";
/// The largest body that is read: an object, its predecessor, and the review around them.
const MAX_BODY: usize = 7 * 1024 * 1024;
/// The memory of all bodies together. The scaffold limits the manager's memory to 128 MiB.
const MAX_BODIES: usize = 32 * 1024 * 1024;
/// The deadline of a request without a `timeout` parameter: the API server's default.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest timeout that the API server accepts in a configuration.
const MAX_DEADLINE: Duration = Duration::from_secs(30);

/// The path of a kind's defaulting webhook, as kubebuilder names it: `/mutate-view-example-com-v1-markdownview`.
pub fn mutate_path<K: Object>() -> String {
    path("mutate", Kind::of::<K>().gvk())
}

/// The path of a kind's validating webhook, as kubebuilder names it: `/validate-view-example-com-v1-markdownview`.
pub fn validate_path<K: Object>() -> String {
    path("validate", Kind::of::<K>().gvk())
}

fn path(verb: &str, gvk: &Gvk) -> String {
    declared::path(verb, borrowed(gvk))
}

fn borrowed(gvk: &Gvk) -> kubewright_apimachinery::gvk::Gvk<'_> {
    let Gvk { group, version, kind } = gvk;
    kubewright_apimachinery::gvk::Gvk { group, version, kind }
}

/// The declaration of a handler for one kind, with defaults for everything that was omitted.
pub(crate) fn complete<H, K: Object>(declared: Declaration, mutating: bool) -> Declaration {
    let kind = Kind::of::<K>();
    let mut declared = Declaration { mutating, ..declared };
    if declared.item.path.is_empty() {
        std::any::type_name::<H>().clone_into(&mut declared.item.path);
    }
    declared.for_kind(borrowed(kind.gvk()), kind.plural(), kind.scope() == Scope::Namespaced)
}

/// Webhooks by path. Cheap to clone; clones share their handlers.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::webhook::{Rejection, Validation, Validator, Webhooks, validate_path};
///
/// struct Named;
///
/// impl Validator for Named {
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
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let webhooks = Webhooks::new();
/// webhooks.validator(validate_path::<ConfigMap>(), Named)?;
///
/// let review = r#"{
///     "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
///     "request": { "uid": "1", "operation": "CREATE", "object": { "metadata": { "name": "a" } } }
/// }"#;
/// let request = http::Request::post("/validate--v1-configmap").header("content-type", "application/json");
/// let response = webhooks.handle(request.body(Full::new(Bytes::from(review)))?).await;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Webhooks(Arc<Shared>);

struct Shared {
    admission: RwLock<BTreeMap<String, Arc<dyn DynHandler>>>,
    conversions: RwLock<Vec<Conversion>>,
    apis: RwLock<Vec<(GroupVersion, Arc<dyn DynApi>)>>,
    bodies: Bodies,
    metrics: WebhookMetrics,
    journal: OnceLock<Reviews>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            admission: RwLock::default(),
            conversions: RwLock::default(),
            apis: RwLock::default(),
            bodies: Bodies::new(MAX_BODIES, MAX_BODY),
            metrics: WebhookMetrics::default(),
            journal: OnceLock::new(),
        }
    }
}

/// The handler of a path.
enum Route {
    Admission(Arc<dyn DynHandler>),
    Conversion(Vec<Conversion>),
    Api(Arc<dyn DynApi>),
}

/// A webhook cannot be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Two webhooks have one path.
    #[error("a webhook is already registered at {0}; choose another path")]
    PathTaken(String),
    /// A path must start with a slash.
    #[error("webhook path must start with \"/\" and have no query, got {0:?}")]
    BadPath(String),
    /// The handler has no declaration.
    #[error(
        "{0} does not declare which requests it handles; add #[webhook(...)] to its impl of AdmissionHandler"
    )]
    Undeclared(&'static str),
    /// The kind has a conversion already.
    #[error(
        "a conversion of {kind} in group {group:?} is already registered; add the version to it as a spoke"
    )]
    ConversionTaken {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
    },
    /// An API service needs a group and a version.
    #[error(
        "invalid group {group:?} or version {version:?} of an API service; use for example metrics.example.com and v1"
    )]
    BadGroupVersion {
        /// API group.
        group: String,
        /// Version.
        version: String,
    },
}

/// [`AdmissionHandler`] as a trait object.
trait DynHandler: Send + Sync {
    fn handle<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, AdmissionResponse>;
}

impl<H: AdmissionHandler> DynHandler for H {
    fn handle<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, AdmissionResponse> {
        AdmissionHandler::handle(self, request).boxed()
    }
}

impl Webhooks {
    /// No webhooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves a defaulting webhook. [`mutate_path`] is the usual path.
    pub fn defaulter(&self, path: impl Into<String>, defaulter: impl Defaulter) -> Result<(), RegisterError> {
        self.admission(path, Defaulting(defaulter))
    }

    /// Serves a validating webhook. [`validate_path`] is the usual path.
    pub fn validator(&self, path: impl Into<String>, validator: impl Validator) -> Result<(), RegisterError> {
        self.admission(path, Validating(validator))
    }

    /// Serves any admission webhook.
    pub fn admission(
        &self,
        path: impl Into<String>,
        handler: impl AdmissionHandler,
    ) -> Result<(), RegisterError> {
        let path = path.into();
        if !path.starts_with('/') || path.contains(['?', '#']) {
            return Err(RegisterError::BadPath(path));
        }
        let is_api = self.apis().iter().any(|api| api.serves(&path));
        let mut routes = self.0.admission.write().unwrap_or_else(PoisonError::into_inner);
        if path == CONVERT_PATH || is_api || routes.contains_key(&path) {
            return Err(RegisterError::PathTaken(path));
        }
        self.0.metrics.registered(&path);
        routes.insert(path, Arc::new(handler));
        Ok(())
    }

    /// Serves the conversions of a kind, at [`CONVERT_PATH`].
    pub fn conversion(&self, conversion: Conversion) -> Result<(), RegisterError> {
        let mut conversions = self.0.conversions.write().unwrap_or_else(PoisonError::into_inner);
        if conversions.iter().any(|other| other.group_kind() == conversion.group_kind()) {
            let (group, kind) = conversion.group_kind();
            return Err(RegisterError::ConversionTaken { group: group.to_owned(), kind: kind.to_owned() });
        }
        self.0.metrics.registered(CONVERT_PATH);
        conversions.push(conversion);
        Ok(())
    }

    /// Serves a version of an API group, at `/apis/GROUP/VERSION` and below.
    pub fn api(&self, group: &str, version: &str, handler: impl ApiHandler) -> Result<(), RegisterError> {
        let api = GroupVersion::new(group, version)?;
        if self.paths().iter().any(|path| api.serves(path)) {
            return Err(RegisterError::PathTaken(api.path()));
        }
        self.0.metrics.registered(&api.path());
        self.0.apis.write().unwrap_or_else(PoisonError::into_inner).push((api, Arc::new(handler)));
        Ok(())
    }

    /// The paths that are served, in order. Those of API groups are prefixes.
    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> =
            self.0.admission.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        if !self.conversions().is_empty() {
            paths.push(CONVERT_PATH.to_owned());
        }
        paths.extend(self.apis().iter().map(GroupVersion::path));
        paths.sort();
        paths
    }

    /// The versions of API groups that are served.
    pub fn apis(&self) -> Vec<GroupVersion> {
        let apis = self.0.apis.read().unwrap_or_else(PoisonError::into_inner);
        apis.iter().map(|(api, _)| api.clone()).collect()
    }

    /// The handler of a path, with the path under which it is registered.
    fn route(&self, path: &str) -> Option<(String, Route)> {
        let admission = self.0.admission.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(handler) = admission {
            return Some((path.to_owned(), Route::Admission(handler)));
        }
        let conversions = if path == CONVERT_PATH { self.conversions() } else { Vec::new() };
        if !conversions.is_empty() {
            return Some((path.to_owned(), Route::Conversion(conversions)));
        }
        let apis = self.0.apis.read().unwrap_or_else(PoisonError::into_inner);
        let (api, handler) = apis.iter().find(|(api, _)| api.serves(path))?;
        Some((api.path(), Route::Api(handler.clone())))
    }

    /// The conversions that are served.
    pub fn conversions(&self) -> Vec<Conversion> {
        self.0.conversions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// Adds the webhooks' metrics to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.0.metrics.register(registry);
    }

    /// Records reviews in a journal. The first one wins.
    pub(crate) fn record(&self, reviews: Reviews) {
        let _ = self.0.journal.set(reviews);
    }

    /// Answers one HTTP request.
    pub async fn handle<B>(&self, request: http::Request<B>) -> Response
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let Some((path, route)) = self.route(parts.uri.path()) else { return not_found() };
        if parts.method != Method::POST && !matches!(route, Route::Api(_)) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "webhooks must be called with POST\n");
        }
        let _in_flight = self.0.metrics.started(&path);
        let start = tokio::time::Instant::now();
        let deadline = deadline(&parts.uri);
        let answering = async {
            let (body, _held) = match self.0.bodies.read(body).await {
                Ok(read) => read,
                Err(error) => {
                    let status = match error {
                        BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
                        BodyError::Read(_) => StatusCode::BAD_REQUEST,
                        BodyError::TooSlow => StatusCode::SERVICE_UNAVAILABLE,
                    };
                    return text(status, format!("{error}\n"));
                }
            };
            match route {
                Route::Admission(handler) => json(self.review(&path, &*handler, &parts.headers, &body).await),
                Route::Conversion(conversions) => json(self.convert(&conversions, &body)),
                Route::Api(handler) => {
                    self.forward(&path, &*handler, http::Request::from_parts(parts, body)).await
                }
            }
        };
        let response = tokio::time::timeout(deadline, answering).await.unwrap_or_else(|_| {
            tracing::warn!(webhook = path, ?deadline, "Webhook timed out");
            text(StatusCode::GATEWAY_TIMEOUT, format!("webhook timed out after {deadline:?}\n"))
        });
        self.0.metrics.answered(&path, response.status().as_u16(), start.elapsed());
        response
    }

    async fn review(&self, path: &str, handler: &dyn DynHandler, headers: &HeaderMap, body: &[u8]) -> Bytes {
        let review = match check(headers, body).and_then(|()| Review::decode(body)) {
            Ok(review) => review,
            Err(error) => {
                tracing::warn!(webhook = path, %error, "Rejected invalid admission review");
                return encode_error(&error);
            }
        };
        let span = span::review(path, &review.request);
        self.answer(path, handler, &review).instrument(span).await
    }

    /// Answers a review with its handler, in the span of the review.
    async fn answer(&self, path: &str, handler: &dyn DynHandler, review: &Review) -> Bytes {
        let request = &review.request;
        let recording = self.0.journal.get().and_then(|reviews| reviews.admission(path, request));
        let answering = contain_future(async { handler.handle(request).await });
        let response = answering.await.unwrap_or_else(|Panic { message, at, times }| {
            self.0.metrics.panicked();
            tracing::error!(panic = message, at, times, "Webhook panicked");
            AdmissionResponse::errored(500, format!("panic: {message} [recovered]"))
        });
        tracing::debug!(
            allowed = response.is_allowed(),
            message = response.message(),
            "Handled admission request"
        );
        if let Some(recording) = recording {
            recording.answered(request, &response);
        }
        review.encode(&response)
    }

    async fn forward(&self, path: &str, handler: &dyn DynApi, mut request: http::Request<Bytes>) -> Response {
        api::without_user(request.headers_mut());
        match contain_future(async { handler.handle(request).await }).await {
            Ok(response) => response.map(Full::new),
            Err(Panic { message, at, times }) => {
                self.0.metrics.panicked();
                tracing::error!(api = path, panic = message, at, times, "API handler panicked");
                text(StatusCode::INTERNAL_SERVER_ERROR, format!("panic: {message} [recovered]\n"))
            }
        }
    }

    fn convert(&self, conversions: &[Conversion], body: &[u8]) -> Bytes {
        let start = tokio::time::Instant::now();
        let reviews = self.0.journal.get().filter(|reviews| reviews.is_heard());
        let converting = contain(|| conversion::answer(conversions, body, reviews.is_some()));
        let (answer, review, error) = match converting {
            Ok(Answer { body, review, error, desired }) => {
                if let Some(error) = &error {
                    tracing::warn!(
                        webhook = CONVERT_PATH,
                        desired_api_version = desired,
                        %error,
                        "Conversion failed"
                    );
                }
                (body, review, error)
            }
            Err(Panic { message, at, times }) => {
                self.0.metrics.conversion_panicked();
                tracing::error!(webhook = CONVERT_PATH, panic = message, at, times, "Conversion panicked");
                let message = format!("panic: {message} [recovered]");
                (conversion::failed(body, &message), None, Some(message))
            }
        };
        if let Some(reviews) = reviews {
            reviews.conversion(&review.unwrap_or_default(), error.as_deref(), start.elapsed());
        }
        answer
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Webhooks").field(&self.paths()).finish()
    }
}

impl<B> tower_service::Service<http::Request<B>> for Webhooks
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let webhooks = self.clone();
        Box::pin(async move { Ok(webhooks.handle(request).await) })
    }
}

fn check(headers: &HeaderMap, body: &[u8]) -> Result<(), ReviewError> {
    if body.is_empty() {
        return Err(ReviewError::Empty);
    }
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let json =
        media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"));
    if json { Ok(()) } else { Err(ReviewError::ContentType(media.to_owned())) }
}

/// The API server passes its timeout in the query parameter `timeout`.
fn deadline(uri: &Uri) -> Duration {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    let timeout = parameters.find_map(|parameter| parameter.strip_prefix("timeout="));
    let timeout =
        timeout.and_then(|text| parse_go_duration(text).ok()).and_then(|nanos| u64::try_from(nanos).ok());
    timeout.filter(|nanos| *nanos > 0).map_or(DEADLINE, Duration::from_nanos).min(MAX_DEADLINE)
}

fn json(body: Bytes) -> Response {
    let mut response = http::Response::new(Full::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
