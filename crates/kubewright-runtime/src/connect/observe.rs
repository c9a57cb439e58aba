//! What goes out, counted and logged.
//!
//! Owns the metrics of client-go by their names. It sits below the retries, so each attempt counts, and looks at the
//! head of an answer only: bodies, watches among them, pass untouched.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::{Layer, Service};

/// client-go's, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    verb: String,
    host: String,
}

/// `rest_client_requests_total{code,method,host}` and `rest_client_request_duration_seconds{verb,host}`.
#[derive(Debug, Clone)]
pub struct ClientMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
}

impl ClientMetrics {
    /// Makes the families and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let made = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        };
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            made.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, until the head of the answer. Broken down by verb, and host",
            made.durations.clone(),
        );
        made
    }

    /// Counts one attempt. Without a status it failed on the way, which client-go writes as `<error>`.
    fn count(&self, method: &http::Method, host: &str, status: Option<http::StatusCode>, took: f64) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.as_str().to_owned());
        let (method, host) = (method.as_str().to_owned(), host.to_owned());
        let labels = DurationLabels { verb: method.clone(), host: host.clone() };
        self.durations.get_or_create(&labels).observe(took);
        self.requests.get_or_create(&RequestLabels { code, method, host }).inc();
    }
}

/// Puts [`Observe`] around a service.
#[derive(Debug, Clone)]
pub struct ObserveLayer(Option<ClientMetrics>);

impl ObserveLayer {
    /// Logs, and counts if there is where to.
    pub fn new(metrics: Option<ClientMetrics>) -> Self {
        Self(metrics)
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, metrics: self.0.clone() }
    }
}

/// Logs each request at debug level once its answer has begun, and counts it. The services below box their futures
/// already, so that this one does not.
#[derive(Debug, Clone)]
pub struct Observe<S> {
    inner: S,
    metrics: Option<ClientMetrics>,
}

impl<S, A, B> Service<Request<A>> for Observe<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Unpin,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Observing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        Observing {
            method: request.method().clone(),
            uri: request.uri().clone(),
            metrics: self.metrics.clone(),
            start: Instant::now(),
            answer: self.inner.call(request),
        }
    }
}

/// An answer that is waited for.
pub struct Observing<F> {
    method: http::Method,
    uri: http::Uri,
    metrics: Option<ClientMetrics>,
    start: Instant,
    answer: F,
}

impl<F, B, E> Future for Observing<F>
where
    F: Future<Output = Result<Response<B>, E>> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        let status = answer.as_ref().ok().map(Response::status);
        let took = self.start.elapsed();
        let Self { method, uri, metrics, .. } = &*self;
        tracing::debug!(%method, %uri, status = status.map(|status| status.as_u16()), ?took, "asked the API server");
        if let Some(metrics) = metrics {
            let host = uri.authority().map_or("", http::uri::Authority::as_str);
            metrics.count(method, host, status, took.as_secs_f64());
        }
        Poll::Ready(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_counted_under_client_go_names() {
        let mut registry = Registry::default();
        let layer = ObserveLayer::new(Some(ClientMetrics::register(&mut registry)));
        let service = layer.layer(tower::service_fn(|request: Request<()>| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                match request.uri().path() {
                    "/gone" => Err("gone"),
                    "/missing" => Ok(Response::builder().status(404).body(()).unwrap()),
                    _ => Ok(Response::new(())),
                }
            })
        }));
        for path in ["/a", "/b", "/missing", "/gone"] {
            let request = Request::get(format!("https://10.0.0.1:443{path}")).body(()).unwrap();
            let _ = service.clone().oneshot(request).await;
        }
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            r#"rest_client_requests_total{code="200",method="GET",host="10.0.0.1:443"} 2"#,
            r#"rest_client_requests_total{code="404",method="GET",host="10.0.0.1:443"} 1"#,
            r#"rest_client_requests_total{code="<error>",method="GET",host="10.0.0.1:443"} 1"#,
            r#"rest_client_request_duration_seconds_bucket{le="0.1",verb="GET",host="10.0.0.1:443"} 0"#,
            r#"rest_client_request_duration_seconds_bucket{le="0.25",verb="GET",host="10.0.0.1:443"} 4"#,
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
        }
    }
}
