//! In-process webhook handlers.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use tower_service::Service;

use super::MAX_ANSWER;

/// The address of a webhook, as in a `clientConfig`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WebhookAddress {
    /// Scheme, host and port of a URL: `https://127.0.0.1:9443`.
    Url(String),
    /// A Service.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// The Service's name.
        name: String,
    },
}

type Answering = Pin<Box<dyn Future<Output = Result<http::Response<Bytes>, String>> + Send>>;
/// Handles a request to a webhook.
pub(super) type Handler = Arc<dyn Fn(http::Request<Full<Bytes>>) -> Answering + Send + Sync>;

/// The handlers of one server.
#[derive(Default)]
pub(crate) struct Handlers {
    by_address: RwLock<HashMap<WebhookAddress, Handler>>,
}

impl Handlers {
    /// A copy for a forked server.
    pub(crate) fn fork(&self) -> Self {
        let handlers = self.by_address.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self { by_address: RwLock::new(handlers) }
    }

    pub(super) fn get(&self, address: &WebhookAddress) -> Option<Handler> {
        self.by_address.read().unwrap_or_else(PoisonError::into_inner).get(address).cloned()
    }

    pub(crate) fn add<S, B>(&self, address: WebhookAddress, service: S)
    where
        S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: std::fmt::Display,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let handler: Handler = Arc::new(move |request| {
            let mut service = service.clone();
            Box::pin(async move {
                std::future::poll_fn(|context| service.poll_ready(context))
                    .await
                    .map_err(|error| error.to_string())?;
                let response = service.call(request).await.map_err(|error| error.to_string())?;
                let (parts, body) = response.into_parts();
                let body =
                    Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| error.to_string())?;
                Ok(http::Response::from_parts(parts, body.to_bytes()))
            })
        });
        self.by_address.write().unwrap_or_else(PoisonError::into_inner).insert(address, handler);
    }
}
