//! The server: its parts, and the filter chain of a request.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::openapi::{Descriptions, NoDescriptions};

use crate::admission::{AdmissionPlugins, Chain, Webhooks};
use crate::audit::{Audit, Audited};
use crate::auth::{Authorization, Modes, Rbac, User};
use crate::body::Body;
use crate::certs::{Authority, CertificateError};
use crate::clock::{Clock, SystemClock};
use crate::compaction::Compaction;
use crate::crd_controller::Outlines;
use crate::ids::Ids;
use crate::input;
use crate::negotiate::error_encoding;
use crate::openapi::{OpenApi, Published};
use crate::output::{self, Encoding};
use crate::pki::Pki;
use crate::request::{Request, ResourcePath, Target};
use crate::resources::{Registry, Resource};
use crate::service_ips::InFlight;
use crate::stack::poll_on_large_stack;
use crate::storage::log::{self, OpenError, Recovered};
use crate::storage::{Engine as _, Limits, Store};
use crate::tokens::{Bearer, TokenOptions, Tokens};
use crate::version::KubernetesVersion;
use crate::webhook_client::WebhookAddress;
use crate::write::attributes;

/// The cluster controllers that the server runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Controllers {
    /// None, as in envtest.
    None,
    /// Garbage collection, namespace deletion, ClusterRole aggregation, approval and signing of
    /// CertificateSigningRequests, and type checks of ValidatingAdmissionPolicies.
    #[default]
    Core,
}

/// Options of a server.
#[derive(Clone)]
pub struct Options {
    /// The server's clock.
    pub clock: Arc<dyn Clock>,
    /// Seed of UIDs and generated names; random if `None`.
    pub seed: Option<u64>,
    /// The authorization mode.
    pub authorization: Authorization,
    /// The controllers to run.
    pub controllers: Controllers,
    /// The enabled admission plugins.
    pub admission: AdmissionPlugins,
    /// How many events are kept for watches.
    pub limits: Limits,
    /// A list can be continued, or requested at an exact revision, for at least this interval and at most
    /// two. Zero disables compaction. Corresponds to kube-apiserver's `--etcd-compaction-interval`.
    pub compaction_interval: Duration,
    /// Descriptions of built-in types and fields, for `kubectl explain`.
    pub descriptions: Arc<dyn Descriptions>,
    /// The version that the server reports. Kinds, fields and rules do not depend on it.
    pub version: KubernetesVersion,
    /// Called for every authenticated request.
    pub audit: Option<Arc<dyn Audit>>,
    /// Signing and verification of service account tokens.
    pub tokens: TokenOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            seed: None,
            authorization: Authorization::default(),
            controllers: Controllers::default(),
            admission: AdmissionPlugins::default(),
            limits: Limits::default(),
            compaction_interval: Duration::from_mins(5),
            descriptions: Arc::new(NoDescriptions),
            version: KubernetesVersion::default(),
            audit: None,
            tokens: TokenOptions::default(),
        }
    }
}

/// A Kubernetes API server. Cheap to clone; clones share the same server.
///
/// It is a [`tower_service::Service`], so a client that accepts one needs no socket. Servers share no state;
/// [`ApiServer::fork`] copies one.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) authorization: Authorization,
    pub(crate) rbac: Rbac,
    pub(crate) modes: Modes,
    pub(crate) controllers: Controllers,
    pub(crate) admission: Arc<Chain>,
    pub(crate) webhooks: Webhooks,
    pub(crate) tokens: Tokens,
    /// The CA of client certificates, created on first use.
    pub(crate) authority: Arc<OnceLock<Arc<Authority>>>,
    /// Where keys and certificates are stored, with a data directory.
    pki: Option<Pki>,
    pub(crate) registry: RwLock<Arc<Registry>>,
    /// Held while CRDs are processed, so that two cannot get the same name.
    pub(crate) definitions: Mutex<Outlines>,
    pub(crate) in_flight: InFlight,
    pub(crate) openapi: Arc<OpenApi>,
    pub(crate) published: Published,
    pub(crate) version: KubernetesVersion,
    audit: Option<Arc<dyn Audit>>,
    limits: Limits,
    pub(crate) compaction: Compaction,
}

impl ApiServer {
    /// A new server with the bootstrap objects.
    pub fn new(options: Options) -> Self {
        let server = Self::on(Store::new(options.limits), options);
        server.inner.bootstrap();
        server
    }

    /// A server that stores its objects in a directory, and recovers existing ones from it.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovered), OpenError> {
        let opened = log::open(dir, options.limits, |resource, object| {
            attributes(Registry::default().stored(resource).map(|served| &**served), object)
        })?;
        let fresh = opened.engine.revision() == 0;
        let (pki, contents) =
            Pki::open(dir).map_err(|source| OpenError::Io { path: dir.join("pki"), source })?;
        let mut options = options;
        options.tokens.signing_key.get_or_insert(contents.signing_key);
        let server = Self::on_with(Store::with(opened.engine, Some(opened.log)), options, Some(pki));
        server.inner.authority.get_or_init(|| Arc::new(contents.authority));
        for issuer in contents.issuers.into_iter().rev() {
            server.inner.tokens.lead_with(&issuer);
        }
        if fresh {
            server.inner.bootstrap();
        }
        server.inner.resume_definitions();
        // A previous server without controllers may not have updated aggregated roles.
        if server.inner.controllers == Controllers::Core {
            server.inner.aggregate_roles();
        }
        Ok((server, opened.recovered))
    }

    fn on(store: Store, options: Options) -> Self {
        Self::on_with(store, options, None)
    }

    fn on_with(store: Store, options: Options, pki: Option<Pki>) -> Self {
        let ids = Ids::new(options.seed);
        let compaction = Compaction::new(options.compaction_interval, options.clock.now_micros());
        Self {
            inner: Arc::new(Inner {
                store,
                clock: options.clock,
                ids,
                authorization: options.authorization,
                rbac: Rbac::default(),
                modes: Modes::default(),
                controllers: options.controllers,
                admission: Arc::new(Chain::new(&options.admission)),
                webhooks: Webhooks::default(),
                tokens: Tokens::new(options.tokens),
                authority: Arc::default(),
                pki,
                registry: RwLock::default(),
                definitions: Mutex::default(),
                in_flight: InFlight::default(),
                openapi: Arc::new(OpenApi::new(options.descriptions, options.version)),
                published: Published::default(),
                version: options.version,
                audit: options.audit,
                limits: options.limits,
                compaction,
            }),
        }
    }

    /// The controllers that the server runs.
    pub fn controllers(&self) -> Controllers {
        self.inner.controllers
    }

    /// An independent copy with the same objects. Objects are shared, not copied.
    #[must_use]
    pub fn fork(&self) -> Self {
        let inner = &self.inner;
        // Fork RBAC before the store: its index may be older than the store, but not newer.
        let rbac = inner.rbac.fork();
        let fork = Self {
            inner: Arc::new(Inner {
                store: inner.store.fork(),
                clock: inner.clock.clone(),
                ids: inner.ids.fork(),
                authorization: inner.authorization.clone(),
                rbac,
                modes: Modes::default(),
                controllers: inner.controllers,
                admission: inner.admission.clone(),
                webhooks: inner.webhooks.fork(),
                tokens: inner.tokens.fork(),
                authority: inner.authority.clone(),
                pki: None,
                registry: RwLock::new(Arc::new(inner.registry().fork())),
                definitions: Mutex::default(),
                in_flight: InFlight::default(),
                openapi: inner.openapi.clone(),
                published: Published::default(),
                version: inner.version,
                audit: inner.audit.clone(),
                limits: inner.limits,
                compaction: inner.compaction.fork(),
            }),
        };
        // A CRD may have been written between the two forks.
        fork.inner.publish();
        fork
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// The CA of client certificates, and of the serving certificate if none is given.
    pub fn authority(&self) -> Result<Arc<Authority>, CertificateError> {
        self.inner.authority()
    }

    /// Makes the server's URL the issuer of service account tokens, unless the options set one.
    pub(crate) fn listen_at(&self, url: &str) {
        let issuers = self.inner.tokens.listen_at(url);
        if let Some(pki) = &self.inner.pki
            && let Err(error) = pki.keep_issuers(&issuers)
        {
            tracing::warn!(%error, "failed to store token issuers; tokens may be rejected after a restart");
        }
    }

    /// Adds a static bearer token for `user`.
    pub fn add_token(&self, token: impl Into<String>, user: User) {
        self.inner.tokens.add(token.into(), user);
    }

    /// Calls `service` in-process for all admission and conversion webhooks whose `clientConfig` has
    /// `address`. Forks inherit it.
    pub fn add_webhook_handler<S, B>(&self, address: WebhookAddress, service: S)
    where
        S: tower_service::Service<http::Request<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        S::Error: std::fmt::Display,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.inner.webhooks.handlers.add(address, service);
    }

    /// Flushes the log and releases the data directory. Later writes are not stored.
    pub fn close(&self) -> std::io::Result<()> {
        self.inner.store.close()
    }

    /// Handles a request.
    pub async fn handle<B>(&self, request: http::Request<B>) -> Response<Body>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        self.inner.compaction.advance(self.inner.clock.now_micros(), self.inner.store.revision());
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let encoding = accept.map_or(Encoding::Json, error_encoding);
        let mut response = match self.answer(request).await {
            Ok(response) => response,
            Err(error) => output::failure(&error),
        };
        if encoding != Encoding::Json && response.status().as_u16() >= 400 {
            response = output::failure_in(encoding, response);
        }
        let headers = response.headers_mut();
        if !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        }
        if let Ok(id) = HeaderValue::from_str(&self.inner.ids.uid()) {
            headers.insert("audit-id", id);
        }
        response
    }

    async fn answer<B>(&self, request: http::Request<B>) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let bearer = match parts.headers.get(header::AUTHORIZATION).map(HeaderValue::to_str) {
            None => None,
            Some(Ok(header)) => Some(Bearer::read(header)),
            Some(Err(_)) => return Err(unauthorized()),
        };
        let sender = self.inner.authenticate(&parts, bearer.as_ref())?;
        let mut request = Request::new(&parts, sender);
        request.user = self.inner.acting_user(&request)?;
        let mut answer = self.answer_as(&request, body).await;
        if bearer == Some(Bearer::ExtraSpace) {
            let mut response = answer.unwrap_or_else(|error| output::failure(&error));
            output::warn(&mut response, &[Bearer::WARNING.to_owned()]);
            answer = Ok(response);
        }
        if let Some(audit) = &self.inner.audit {
            let code = answer.as_ref().map_or_else(|error| error.code, |response| response.status().as_u16());
            audit.record(Audited::new(&request, code));
        }
        answer
    }

    /// Handles an authenticated request.
    async fn answer_as<B>(&self, request: &Request, body: B) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        self.inner.authorize(request)?;
        let head = request.method == Method::HEAD;
        let mut response = match &request.target {
            Target::Other => self.inner.other(request),
            Target::Resource(path) => {
                let bytes = match request.method {
                    Method::GET | Method::HEAD => bytes::Bytes::new(),
                    _ => {
                        // Reject writes before they become visible: they could not be stored.
                        if let Some(error) = self.inner.store.failure() {
                            return Err(not_durable(&error));
                        }
                        input::read(body).await?
                    }
                };
                let response = self.inner.resource(request, path, &bytes).await;
                if !matches!(request.method, Method::GET | Method::HEAD) && response.is_ok() {
                    self.inner
                        .store
                        .synced(self.inner.store.revision())
                        .await
                        .map_err(|error| not_durable(&error))?;
                }
                response
            }
        }?;
        if head {
            *response.body_mut() = Body::empty();
        }
        Ok(response)
    }
}

impl Inner {
    pub(crate) fn authority(&self) -> Result<Arc<Authority>, CertificateError> {
        if let Some(authority) = self.authority.get() {
            return Ok(authority.clone());
        }
        let authority = Arc::new(Authority::new()?);
        Ok(self.authority.get_or_init(|| authority).clone())
    }

    /// Authenticates a request. Only an in-process request without credentials runs as the administrator.
    fn authenticate(
        &self,
        parts: &http::request::Parts,
        bearer: Option<&Bearer<'_>>,
    ) -> Result<User, ApiError> {
        let carried = parts.extensions.get::<User>().cloned();
        let user = match bearer {
            None => carried.unwrap_or_else(User::admin),
            Some(Bearer::Token(token)) => {
                let audiences = self.tokens.api_audiences();
                self.authenticate_token(token, &audiences).map_err(|_| unauthorized())?.user
            }
            Some(Bearer::Absent | Bearer::ExtraSpace) => carried.unwrap_or_else(User::anonymous),
        };
        if self.admits(&user) { Ok(user) } else { Err(unauthorized()) }
    }

    /// Handles a request for a resource.
    async fn resource(
        self: &Arc<Self>,
        request: &Request,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let registry = self.registry();
        let Some(served) = registry.find(&path.group, &path.version, &path.resource) else {
            // Upstream has no router for groups of custom resources, so the response is a plain 404.
            let known = registry.is_built_in(&path.group) && registry.serves(&path.group, &path.version);
            return if known || path.group.is_empty() && path.version == "v1" {
                Err(no_resource())
            } else {
                Ok(no_page())
            };
        };
        // A namespaced object needs a namespace in its path; a cluster-scoped object must not have one.
        let misplaced = match (served.namespaced(), path.namespace.is_empty()) {
            (true, true) => !path.name.is_empty(),
            (false, false) => path.resource != "namespaces",
            _ => false,
        };
        if path.too_deep || misplaced {
            return if served.custom().is_some() { Ok(no_page()) } else { Err(no_resource()) };
        }
        let handle = async {
            if path.subresource.is_empty() {
                self.verb(request, served, path, body).await
            } else {
                self.subresource(request, served, path, body).await
            }
        };
        // CRD schemas and rules are checked recursively, down to the deepest field.
        let writes = !matches!(request.method, Method::GET | Method::HEAD);
        let response = if served.defines_resources() && writes {
            poll_on_large_stack(handle).await
        } else {
            handle.await
        };
        let Some(warning) = served.deprecation().or_else(|| deprecated(served)) else { return response };
        // Sent with any result, unless the router rejects the request before the handler.
        if let Err(error) = &response
            && served.custom().is_none()
            && (error.code == 405 || error.message.starts_with("406: ") || error.message.starts_with("415: "))
        {
            return response;
        }
        let mut response = response.unwrap_or_else(|error| output::failure(&error));
        output::warn(&mut response, &[warning.to_owned()]);
        Ok(response)
    }

    async fn verb(
        self: &Arc<Self>,
        request: &Request,
        served: &Arc<Resource>,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let verb = request.verb();
        let terminating = served.custom().is_some_and(|custom| custom.definition.terminating);
        // A terminating CRD still serves verbs that discovery no longer lists.
        if !served.can(verb) && !terminating {
            return Err(ApiError::method_not_allowed());
        }
        if path.name.is_empty() && matches!(verb, "update" | "patch") {
            return Err(ApiError::method_not_allowed());
        }
        if !served.is_stored() {
            return self.virtual_resource(request, served, path, body).await;
        }
        let namespace = if served.namespaced() { path.namespace.as_str() } else { "" };
        match verb {
            "get" => self.get(request, served, namespace, &path.name).await,
            "list" => self.list(request, served, namespace, "").await,
            "watch" => self.watch(request, served, namespace, &path.name).await,
            "create" if served.namespaced() && namespace.is_empty() => match served.custom() {
                Some(_) => Ok(no_page()),
                None => Err(ApiError::method_not_allowed()),
            },
            "create" => self.create(request, served, namespace, body).await,
            "update" => self.update(request, served, namespace, &path.name, "", body).await,
            "patch" => self.patch(request, served, namespace, &path.name, "", body).await,
            "delete" => self.delete(request, served, namespace, &path.name, body).await,
            "deletecollection" => self.delete_collection(request, served, namespace, body).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

/// The deprecation warning of a built-in resource.
fn deprecated(served: &Resource) -> Option<&'static str> {
    match (served.group(), served.plural()) {
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

fn unauthorized() -> ApiError {
    ApiError::new(401, "Unauthorized", "Unauthorized")
}

fn not_durable(error: &std::io::Error) -> ApiError {
    ApiError::internal(format!("writes cannot be made durable: {error}"))
}

/// The 404 Status for an unknown resource of a served group.
pub(crate) fn no_resource() -> ApiError {
    let mut error = ApiError::new(404, "NotFound", "the server could not find the requested resource");
    error.details = Some(Box::default());
    error
}

/// The plain 404 response for an unknown path.
pub(crate) fn no_page() -> Response<Body> {
    output::respond(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

impl<B> tower_service::Service<http::Request<B>> for ApiServer
where
    B: http_body::Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
