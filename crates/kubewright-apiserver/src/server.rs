//! The server: what it is made of, and the way of a request through it.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::openapi::{Descriptions, NoDescriptions};

use crate::admission::{AdmissionPlugins, Chain, Webhooks};
use crate::allocate::InFlight;
use crate::audit::{Audit, Audited};
use crate::auth::{Authorization, Modes, Rbac, User};
use crate::body::Body;
use crate::certs::{Authority, CertificateError};
use crate::clock::{Clock, SystemClock};
use crate::definitions::Outlines;
use crate::ids::Ids;
use crate::input;
use crate::negotiate::errors_in_yaml;
use crate::openapi::{OpenApi, Published};
use crate::output;
use crate::pki::Pki;
use crate::request::{Request, ResourcePath, Target};
use crate::resources::{Registry, Served};
use crate::stack::poll_on_large_stack;
use crate::storage::log::{self, OpenError, Recovered};
use crate::storage::{Engine as _, Limits, Store};
use crate::tokens::{Bearer, TokenOptions, Tokens};
use crate::version::KubernetesVersion;
use crate::webhook_client::WebhookAddress;
use crate::write::attributes;

/// Which controllers of a cluster the server runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Controllers {
    /// None: a bare server, as envtest has it.
    None,
    /// Garbage collection, the deletion of namespaces, and the rules of aggregated ClusterRoles.
    #[default]
    Core,
}

/// What a server is started with.
#[derive(Clone)]
pub struct Options {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Seed of uids and generated names; by lot if none.
    pub seed: Option<u64>,
    /// How it is decided who may do what.
    pub authorization: Authorization,
    /// Which controllers run inside.
    pub controllers: Controllers,
    /// Which admission plugins are on.
    pub admission: AdmissionPlugins,
    /// How much of the past is kept for watches.
    pub limits: Limits,
    /// What built-in types and fields mean, for `kubectl explain`.
    pub descriptions: Arc<dyn Descriptions>,
    /// The version that the server says it is. Kinds, fields and rules do not follow it.
    pub version: KubernetesVersion,
    /// Called for every authenticated request.
    pub audit: Option<Arc<dyn Audit>>,
    /// How service account tokens are signed and verified.
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
            descriptions: Arc::new(NoDescriptions),
            version: KubernetesVersion::default(),
            audit: None,
            tokens: TokenOptions::default(),
        }
    }
}

/// A Kubernetes API server. Cheap to clone; clones are the same server.
///
/// It is a [`tower_service::Service`]: a client that takes one needs no socket. Each server is a world of its
/// own; [`ApiServer::fork`] copies one.
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
    /// The authority of client certificates, made when it is first needed.
    pub(crate) authority: Arc<OnceLock<Arc<Authority>>>,
    /// Where keys and certificates are kept, if anything is.
    pki: Option<Pki>,
    pub(crate) registry: RwLock<Arc<Registry>>,
    /// Held while definitions are followed, so that two do not take the same name.
    pub(crate) definitions: Mutex<Outlines>,
    pub(crate) in_flight: InFlight,
    pub(crate) openapi: Arc<OpenApi>,
    pub(crate) published: Published,
    pub(crate) version: KubernetesVersion,
    audit: Option<Arc<dyn Audit>>,
    limits: Limits,
}

impl ApiServer {
    /// A fresh server with the objects that clients expect to find.
    pub fn new(options: Options) -> Self {
        let server = Self::on(Store::new(options.limits), options);
        server.inner.bootstrap();
        server
    }

    /// A server that keeps its objects in a folder, with those that an earlier one left there.
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
        // Nobody kept them up while the folder was another kind of server's.
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
            }),
        }
    }

    /// Which controllers run inside.
    pub fn controllers(&self) -> Controllers {
        self.inner.controllers
    }

    /// A copy with the same contents that goes its own way. Copies no object.
    #[must_use]
    pub fn fork(&self) -> Self {
        let inner = &self.inner;
        // Before the store: rights may know less than it does, never more.
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
            }),
        };
        // A definition may have been written between the two.
        fork.inner.publish();
        fork
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// The authority that signs the certificates of clients, and the server's own where none is given.
    pub fn authority(&self) -> Result<Arc<Authority>, CertificateError> {
        self.inner.authority()
    }

    /// Makes the URL under which the server listens the issuer of service account tokens, unless the options name one.
    pub(crate) fn listen_at(&self, url: &str) {
        let issuers = self.inner.tokens.listen_at(url);
        if let Some(pki) = &self.inner.pki
            && let Err(error) = pki.keep_issuers(&issuers)
        {
            tracing::warn!(%error, "tokens of this run may not be accepted after a restart");
        }
    }

    /// A bearer token that stands for `user` from now on.
    pub fn add_token(&self, token: impl Into<String>, user: User) {
        self.inner.tokens.add(token.into(), user);
    }

    /// Calls `service` instead of opening a connection for every webhook, admission or conversion, whose
    /// `clientConfig` names `address`. Forks keep it.
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

    /// Keeps what is there, where it is kept, and ends well: another server may open the folder. What is written
    /// later is not kept.
    pub fn close(&self) -> std::io::Result<()> {
        self.inner.store.close()
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: http::Request<B>) -> Response<Body>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let yaml = accept.is_some_and(errors_in_yaml);
        let mut response = match self.answer(request).await {
            Ok(response) => response,
            Err(error) => output::failure(&error),
        };
        if yaml && response.status().as_u16() >= 400 {
            response = output::failure_in_yaml(response);
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

    /// Answers a request whose user is known.
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
                        // Refused before it takes effect: nobody is to see what cannot be kept.
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

    /// The user who sent a request. Only a request in-process without credentials is the administrator's.
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

    /// A request for a resource.
    async fn resource(
        self: &Arc<Self>,
        request: &Request,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let registry = self.registry();
        let Some(served) = registry.find(&path.group, &path.version, &path.resource) else {
            // Groups of custom resources have no router that could answer.
            let known = registry.is_built_in(&path.group) && registry.serves(&path.group, &path.version);
            return if known || path.group.is_empty() && path.version == "v1" {
                Err(no_resource())
            } else {
                Ok(no_page())
            };
        };
        // An object in a namespace has one in its path; an object of the cluster has none.
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
        // Schemas and rules are checked recursively, down to the deepest field.
        let writes = !matches!(request.method, Method::GET | Method::HEAD);
        let response = if served.defines_resources() && writes {
            poll_on_large_stack(handle).await
        } else {
            handle.await
        };
        let Some(warning) = served.deprecation().or_else(|| deprecated(served)) else { return response };
        // Sent whatever the result, unless the router refuses before the handler is reached.
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
        served: &Arc<Served>,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let verb = request.verb();
        let terminating = served.custom().is_some_and(|custom| custom.definition.terminating);
        // Discovery tells less of what is going away than is still served.
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

/// The warning of built-in resources that are deprecated.
fn deprecated(served: &Served) -> Option<&'static str> {
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

/// A group that is served has no such resource.
pub(crate) fn no_resource() -> ApiError {
    let mut error = ApiError::new(404, "NotFound", "the server could not find the requested resource");
    error.details = Some(Box::default());
    error
}

/// Nothing is served here.
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
