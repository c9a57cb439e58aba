//! The filter chain and the router: from an HTTP request to the handler of its verb.
//!
//! The filters are: compaction, authentication, limits, impersonation, audit, authorization, the body limit, and the wait for
//! the log. The router finds the resource, and the verb or subresource.

mod expensive;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Version, header};
use kubewright_apimachinery::status::ApiError;

use super::ApiServer;
use super::limits::TooManyRequests;
use crate::audit::Audited;
use crate::authn::tokens::Bearer;
use crate::authn::unauthorized;
use crate::encoding::body::Body;
use crate::encoding::negotiate::error_encoding;
use crate::encoding::request_body;
use crate::encoding::response::{self, Encoding};
use crate::endpoints::delete::{delete, delete_collection};
use crate::endpoints::discovery::Discovery;
use crate::endpoints::patch::patch;
use crate::off_worker::{off_worker, poll_off_worker, poll_over_socket};
use crate::registry::resource::Resource;
use crate::request::{OverSocket, Request, ResourcePath, Target};
use crate::stack::poll_on_large_stack;

impl ApiServer {
    /// Handles a request.
    pub async fn handle<B>(&self, request: http::Request<B>) -> Response<Body>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        self.stages.compaction.advance(self.stages.clock.now_micros(), self.stages.store.revision());
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let encoding = accept.map_or(Encoding::Json, error_encoding);
        let (parts, mut body) = request.into_parts();
        let audit_id = self.stages.ids.uid();
        let mut response = match self.answer(&parts, &mut body, &audit_id).await {
            Ok(response) => response,
            Err(error) => response::failure(&error),
        };
        let is_http1 = parts.extensions.get::<OverSocket>().is_some() && parts.version <= Version::HTTP_11;
        if is_http1 && !request_body::drain(&mut body).await {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if encoding != Encoding::Json && response.status().as_u16() >= 400 {
            response = response::failure_in(encoding, response);
        }
        let headers = response.headers_mut();
        if !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        }
        if let Ok(id) = HeaderValue::from_str(&audit_id) {
            headers.insert("audit-id", id);
        }
        response
    }

    async fn answer<B>(&self, parts: &Parts, body: &mut B, audit_id: &str) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        let bearer = match parts.headers.get(header::AUTHORIZATION).map(HeaderValue::to_str) {
            None => None,
            Some(Ok(header)) => Some(Bearer::read(header)),
            Some(Err(_)) => return Err(unauthorized()),
        };
        let sender = self.stages.authn.authenticate(parts, bearer.as_ref())?;
        let mut request = Request::new(parts, sender);
        let _permit = match self.stages.request_limits.admit(&request) {
            Ok(permit) => permit,
            Err(TooManyRequests) => return Ok(TooManyRequests::response()),
        };
        let received = self.stages.clock.now_micros();
        let user = self.stages.authn.acting_user(&request)?;
        let sender = std::mem::replace(&mut request.user, user);
        let mut answer = if request.over_socket {
            poll_over_socket(self.answer_as(&request, body)).await
        } else {
            self.answer_as(&request, body).await
        };
        if bearer == Some(Bearer::ExtraSpace) {
            let mut response = answer.unwrap_or_else(|error| response::failure(&error));
            response::warn(&mut response, &[Bearer::WARNING.to_owned()]);
            answer = Ok(response);
        }
        if let Some(audit) = &self.stages.audit {
            let times = (received, self.stages.clock.now_micros());
            audit.record(Audited::new(&request, parts, &sender, audit_id, answer.as_ref(), times));
        }
        answer
    }

    /// Handles an authenticated request.
    async fn answer_as<B>(&self, request: &Request, body: &mut B) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body + Unpin,
        B::Error: std::fmt::Display,
    {
        let authorized = self.stages.authz.authorize(request);
        if self.stages.audit.is_some() {
            request.audit_annotations.decided(authorized.as_ref().err());
        }
        authorized?;
        let head = request.method == Method::HEAD;
        let mut response = match &request.target {
            Target::Other => self.non_resource(request).await,
            Target::Resource(path) => {
                let (bytes, _reserved) = match request.method {
                    Method::GET | Method::HEAD => (bytes::Bytes::new(), Vec::new()),
                    _ => {
                        // Reject writes before they become visible: they could not be stored.
                        if let Some(error) = self.stages.store.failure() {
                            return Err(not_durable(&error));
                        }
                        request_body::read(body, &self.stages.request_limits).await?
                    }
                };
                self.durable_answer(request, path, &bytes).await
            }
        }?;
        if head {
            *response.body_mut() = Body::empty();
        }
        Ok(response)
    }
}

impl ApiServer {
    /// Handles a request for a non-resource path. As other reads, discovery shows only what is durable.
    async fn non_resource(&self, request: &Request) -> Result<Response<Body>, ApiError> {
        let discovery = &self.stages.discovery;
        if !Discovery::shows_resources(&request.path) {
            return discovery.answer(request);
        }
        let response = off_worker(|| discovery.answer(request));
        self.stages
            .store
            .synced(self.stages.resources.revision())
            .await
            .map_err(|error| not_durable(&error))?;
        response
    }

    /// Handles a request for a resource. No response shows a state that a crash could still undo. An error such as 404
    /// shows one, too. Watches wait per event.
    async fn durable_answer(
        &self,
        request: &Request,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let store = &self.stages.store;
        loop {
            let only_durable = store.readable().is_some();
            let response = self.resource(request, path, body).await;
            if request.is_watch() {
                return response;
            }
            let reads = matches!(request.method, Method::GET | Method::HEAD);
            match store.synced(store.revision()).await {
                Ok(()) => return response,
                Err(error) if !reads => return Err(not_durable(&error)),
                Err(_) if only_durable => return response,
                // The log failed after the object was read: read what is durable.
                Err(_) => {}
            }
        }
    }

    /// Handles a request for a resource.
    async fn resource(
        &self,
        request: &Request,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let registry = self.stages.resources.current();
        let Some(resource) = registry.find(&path.group, &path.version, &path.resource) else {
            // Upstream has no router for groups of custom resources, so the response is a plain 404.
            let known = registry.is_built_in(&path.group) && registry.serves(&path.group, &path.version);
            return if known || path.group.is_empty() && path.version == "v1" {
                Err(no_resource())
            } else {
                Ok(no_page())
            };
        };
        // A namespaced object needs a namespace in its path; a cluster-scoped object must not have one.
        let misplaced = match (resource.namespaced(), path.namespace.is_empty()) {
            (true, true) => !path.name.is_empty(),
            (false, false) => path.resource != "namespaces",
            _ => false,
        };
        if path.too_deep || misplaced {
            return if resource.is_routed() { Err(no_resource()) } else { Ok(no_page()) };
        }
        // Boxed, because it is a part of each of the futures below.
        let handle = Box::pin(async {
            if path.subresource.is_empty() {
                self.verb(request, resource, path, body).await
            } else {
                self.stages.subresources.answer(request, resource, path, body).await
            }
        });
        // CRD schemas and rules are checked recursively, down to the deepest field.
        let writes = !matches!(request.method, Method::GET | Method::HEAD);
        let response = if request.over_socket && self.is_expensive(request, resource, path, body) {
            poll_off_worker(poll_on_large_stack(handle)).await
        } else if resource.defines_resources() && writes {
            poll_on_large_stack(handle).await
        } else {
            handle.await
        };
        let Some(warning) = resource.deprecation() else { return response };
        // Sent with any result, unless the router rejects the request before the handler.
        if let Err(error) = &response
            && resource.is_routed()
            && (error.code == 405 || error.message.starts_with("406: ") || error.message.starts_with("415: "))
        {
            return response;
        }
        let mut response = response.unwrap_or_else(|error| response::failure(&error));
        response::warn(&mut response, &[warning.to_owned()]);
        Ok(response)
    }

    async fn verb(
        &self,
        request: &Request,
        resource: &Arc<Resource>,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let stages = &self.stages;
        let verb = request.verb();
        let terminating = resource.crd().is_some_and(|custom| custom.info.terminating);
        // A terminating CRD still serves verbs that discovery no longer lists.
        if !resource.can(verb) && !terminating {
            return Err(ApiError::method_not_allowed());
        }
        if path.name.is_empty() && matches!(verb, "update" | "patch") {
            return Err(ApiError::method_not_allowed());
        }
        if !resource.is_stored() {
            return stages.reviews.answer(request, resource, path, body).await;
        }
        let namespace = if resource.namespaced() { path.namespace.as_str() } else { "" };
        match verb {
            "get" => stages.reads.get(request, resource, namespace, &path.name).await,
            "list" => stages.reads.list(request, resource, namespace, "").await,
            "watch" => stages.reads.watch(request, resource, namespace, &path.name).await,
            "create" if resource.namespaced() && namespace.is_empty() => {
                if resource.is_routed() {
                    Err(ApiError::method_not_allowed())
                } else {
                    Ok(no_page())
                }
            }
            "create" => stages.writes.create(request, resource, namespace, body).await,
            "update" => stages.writes.update(request, resource, namespace, &path.name, "", body).await,
            "patch" => patch(&stages.writes, request, resource, namespace, &path.name, "", body).await,
            "delete" => delete(&stages.writes, request, resource, namespace, &path.name, body).await,
            "deletecollection" => {
                delete_collection(&stages.writes, &stages.reads, request, resource, namespace, body).await
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }
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
    response::respond(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
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
