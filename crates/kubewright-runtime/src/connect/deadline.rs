//! The deadline of a request, from the first attempt through all retries to the last byte of the response.
//!
//! Requests with an endless response have no deadline: watches, streamed lists, logs, `exec` and other streaming
//! subresources.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, header};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Service};

/// The response was not complete in time.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no complete response from the API server within {0:?}")]
pub(crate) struct DeadlineExceeded(pub(crate) Duration);

/// Whether the response to a request is an endless stream.
pub(super) fn is_stream<B>(request: &Request<B>) -> bool {
    let uri = request.uri();
    let parameters = uri.query().unwrap_or_default().split('&');
    let mut on = parameters.filter_map(|pair| match pair.split_once('=') {
        Some((name, "true" | "1")) => Some(name),
        _ => None,
    });
    let path = uri.path();
    let subresource = path.rsplit('/').next().unwrap_or_default();
    on.any(|name| matches!(name, "watch" | "follow"))
        || matches!(subresource, "log" | "exec" | "attach" | "portforward" | "proxy")
        || path.contains("/proxy/")
        || request.headers().contains_key(header::UPGRADE)
}

/// Fails requests that exceed their deadline.
#[derive(Debug, Clone)]
pub(super) struct Deadline<S> {
    inner: S,
    within: Option<Duration>,
}

impl<S> Deadline<S> {
    pub(super) fn new(inner: S, within: Option<Duration>) -> Self {
        Self { inner, within }
    }
}

impl<S, A, B> Service<Request<A>> for Deadline<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Bounded<B>>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let limit =
            self.within.filter(|_| !is_stream(&request)).map(|within| (Instant::now() + within, within));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Some((at, within)) = limit else {
                return Ok(answer.await?.map(|body| Bounded { body, limit: None }));
            };
            let answer = tokio::time::timeout_at(at, answer).await;
            let answer = answer.unwrap_or_else(|_| Err(Box::new(DeadlineExceeded(within))))?;
            let limit = Some((Box::pin(tokio::time::sleep_until(at)), within));
            Ok(answer.map(|body| Bounded { body, limit }))
        })
    }
}

/// A response body that fails at the deadline.
#[derive(Debug)]
pub(super) struct Bounded<B> {
    body: B,
    limit: Option<(Pin<Box<Sleep>>, Duration)>,
}

impl<B> http_body::Body for Bounded<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some((timer, within)) = &mut this.limit else { return Poll::Pending };
        timer.as_mut().poll(cx).map(|()| Some(Err(DeadlineExceeded(*within).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};
    use tower::ServiceExt as _;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_response_fails_at_its_deadline() {
        let silent = tower::service_fn(|_: Request<()>| {
            std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>()
        });
        let started = Instant::now();
        let error = Deadline::new(silent, Some(LIMIT)).oneshot(Request::new(())).await.unwrap_err();
        assert!(error.is::<DeadlineExceeded>(), "{error}");
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_stalls_fails_at_the_deadline() {
        let half = tower::service_fn(|_: Request<()>| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let body = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
            Ok::<_, BoxError>(Response::new(body))
        });
        let started = Instant::now();
        let answer = Deadline::new(half, Some(LIMIT)).oneshot(Request::new(())).await.unwrap();
        let error = answer.into_body().collect().await.unwrap_err();
        assert!(error.is::<DeadlineExceeded>(), "{error}");
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[test]
    fn streams_have_no_deadline() {
        let is = |uri: &str| is_stream(&Request::get(uri).body(()).unwrap());
        for stream in [
            "/api/v1/pods?watch=true&sendInitialEvents=true",
            "/api/v1/pods?limit=5&watch=1",
            "/api/v1/namespaces/a/pods/b/log?follow=true",
            "/api/v1/namespaces/a/pods/b/exec",
            "/api/v1/namespaces/a/services/b/proxy/metrics",
        ] {
            assert!(is(stream), "{stream}");
        }
        for whole in
            ["/api/v1/pods?limit=500", "/api/v1/pods?watch=false", "/api/v1/namespaces/log/pods", "/version"]
        {
            assert!(!is(whole), "{whole}");
        }
    }
}
