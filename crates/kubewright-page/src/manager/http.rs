//! The requests to a manager's page.
//!
//! Static files are public: they contain no data, and a browser cannot send a token for them. Every request for data is
//! authorized, also each poll for changes, so that a removed permission ends a session. Without a token the page itself
//! has status 401 and asks for one. On a loopback address without authentication, only local host names are accepted,
//! which prevents DNS rebinding.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::Full;
use kubewright_runtime::internal::debug_page::{Access, PATH};
use kubewright_runtime::internal::serve::{Handler, Request, Response, text};
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::assets::{self, Mode};

/// Entries per response, so that the browser can render in between.
const ENTRIES: usize = 500;
/// How long a poll waits for changes.
const WAIT: Duration = Duration::from_secs(15);

#[derive(Clone)]
struct Page {
    shared: Arc<Shared>,
    access: Access,
    stop: CancellationToken,
}

pub(super) fn handler(shared: Arc<Shared>, access: Access, stop: CancellationToken) -> Handler {
    let page = Page { shared, access, stop };
    Handler::new(move |request| {
        let page = page.clone();
        async move { with_headers(page.answer(request).await) }
    })
}

impl Page {
    async fn answer(&self, request: Request) -> Response {
        if matches!(self.access, Access::Local) && !is_local(&request) {
            let why = "this page is local only: open it as http://127.0.0.1:PORT or http://localhost:PORT\n";
            return text(StatusCode::FORBIDDEN, why);
        }
        if request.method() != Method::GET {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n");
            refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            return refusal;
        }
        let path = request.uri().path();
        let Some(path) = path.strip_prefix(PATH).filter(|path| path.starts_with('/')) else {
            return if path == PATH || path == "/" { redirect() } else { not_found() };
        };
        let is_data = matches!(path, "/updates" | "/object" | "/why");
        let file = assets::file(path, Mode::Manager);
        if !is_data && file.is_none() {
            return not_found();
        }
        if is_data || path == "/" {
            match (self.check(&request).await, file) {
                (Ok(()), _) => {}
                // The page asks for a token.
                (Err(refusal), Some((sort, html))) if refusal.status() == StatusCode::UNAUTHORIZED => {
                    return typed(refusal.status(), sort, html);
                }
                (Err(refusal), _) => return refusal,
            }
        }
        match path {
            "/updates" => self.updates(query(&request, "after")).await,
            "/object" => {
                json(query(&request, "id").and_then(|id| self.shared.read(|state| state.detail(id))))
            }
            "/why" => {
                // Colons of IDs are escaped by some clients.
                let id = query(&request, "id").map(|id| id.replace("%3A", ":"));
                json(id.and_then(|id| self.shared.read(|state| state.why(&id))))
            }
            path => match assets::file(path, Mode::Manager) {
                Some((sort, content)) => typed(StatusCode::OK, sort, content),
                None => not_found(),
            },
        }
    }

    async fn check(&self, request: &Request) -> Result<(), Response> {
        match &self.access {
            Access::Local => Ok(()),
            // One path for all requests, so that a reader needs one rule.
            Access::Authorized(guard) => guard.check(&Method::GET, PATH, request.headers()).await,
        }
    }

    /// The entries after a position. Waits if there are none, and then returns 204.
    async fn updates(&self, after: Option<&str>) -> Response {
        let mut changes = self.shared.changes();
        let position = after.and_then(|id| self.shared.position(id)).unwrap_or(0);
        let poll = async {
            loop {
                changes.mark_unchanged();
                if let Some(batch) = self.shared.read(|state| state.after(position, ENTRIES)) {
                    return Some(batch);
                }
                changes.changed().await.ok()?;
            }
        };
        let polled = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            polled = timeout(WAIT, poll) => polled.ok().flatten(),
        };
        match polled {
            None => typed(StatusCode::NO_CONTENT, "application/json", String::new()),
            Some(batch) => {
                let id = format!("{}-{}", self.shared.epoch(), batch.position);
                let body = format!("{{\"id\":\"{id}\",\"batch\":{}}}", batch.text);
                typed(StatusCode::OK, "application/json", body)
            }
        }
    }
}

fn is_local(request: &Request) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(assets::is_local)
}

fn query<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find_map(|(key, value)| (key == name).then_some(value))
}

fn json(value: Option<impl Serialize>) -> Response {
    match value.map(|value| serde_json::to_string(&value)) {
        None => not_found(),
        Some(Ok(json)) => typed(StatusCode::OK, "application/json", json),
        Some(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "not found\n")
}

/// The links of the page are relative to a path that ends with a slash.
fn redirect() -> Response {
    let mut response = text(StatusCode::FOUND, "");
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/debug/page/"));
    response
}

fn typed(status: StatusCode, sort: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = http::Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(sort));
    response
}

fn with_headers(mut response: Response) -> Response {
    for (name, value) in assets::HEADERS {
        response.headers_mut().insert(*name, HeaderValue::from_static(value));
    }
    response
}
