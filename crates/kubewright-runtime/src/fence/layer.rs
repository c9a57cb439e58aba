//! The fence as a `tower` layer, for HTTP clients that are not [`Client`](crate::Client).
//!
//! The layer knows only types of `http` and `tower`, so that the client builder of every version of kube accepts it.

use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::{Method, Request, header};
use tower::{BoxError, Layer, Service};

use super::Fence;
use crate::client::Error;

/// A `tower` layer that sends writes only while this replica leads.
///
/// [`Client::fence_layer`](crate::Client::fence_layer) creates it. A write that is not sent fails with
/// [`client::Error::Fenced`](crate::client::Error::Fenced). Every request but GET, HEAD and OPTIONS is a write; so is a
/// GET that upgrades the connection, such as exec. A write that is running when the fence closes is dropped.
///
/// ```
/// # async fn example(manager: kubewright_runtime::Manager) -> Result<(), Box<dyn std::error::Error>> {
/// use kube::client::ClientBuilder;
///
/// // Of any version of kube: the layer has no types of kube.
/// let config = kube::Config::infer().await?;
/// let client = ClientBuilder::try_from(config)?.with_layer(&manager.client().fence_layer()).build();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FenceLayer {
    fence: Fence,
}

impl FenceLayer {
    pub(crate) fn new(fence: Fence) -> Self {
        Self { fence }
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = FenceService<S>;

    fn layer(&self, inner: S) -> FenceService<S> {
        FenceService { inner, fence: self.fence.clone() }
    }
}

/// The service of a [`FenceLayer`].
#[derive(Debug, Clone)]
pub struct FenceService<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<Request<B>> for FenceService<S>
where
    S: Service<Request<B>, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_read = is_read(&request);
        // The inner service may start to send before its future is polled.
        if !is_read && self.fence.check().is_err() {
            return Box::pin(async { Err(Error::Fenced.into()) });
        }
        let sent = self.inner.call(request);
        if is_read {
            return Box::pin(async { sent.await.map_err(Into::into) });
        }
        let fence = self.fence.clone();
        Box::pin(async move {
            match fence.guard(sent).await {
                Ok(sent) => sent.map_err(Into::into),
                Err(_) => Err(Error::Fenced.into()),
            }
        })
    }
}

/// Whether a request changes nothing. An upgraded connection can carry anything.
pub(crate) fn is_read<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && !request.headers().contains_key(header::UPGRADE)
}
