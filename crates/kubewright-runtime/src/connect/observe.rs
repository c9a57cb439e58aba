//! Request metrics and logs.
//!
//! Owns client-go's request metrics, under the same names. It sits below the retries, so each attempt counts. Body
//! sizes are measured except for watches and other streams.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::deadline::is_stream;
use super::warnings::Warnings;

/// client-go's size buckets, in bytes.
const SIZES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];
/// client-go's latency buckets, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RetryLabels {
    code: String,
    verb: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: String,
    host: String,
}

/// The metrics of client-go's REST client:
///
/// - `rest_client_requests_total{code,method,host}`
/// - `rest_client_request_duration_seconds{verb,host}`
/// - `rest_client_request_retries_total{code,verb,host}`
/// - `rest_client_request_size_bytes{verb,host}`
/// - `rest_client_response_size_bytes{verb,host}`
#[derive(Debug, Clone)]
pub struct ClientMetrics {
    requests: Family<RequestLabels, Counter>,
    durations: Family<VerbLabels, Histogram, Buckets>,
    retries: Family<RetryLabels, Counter>,
    request_sizes: Family<VerbLabels, Histogram, fn() -> Histogram>,
    response_sizes: Family<VerbLabels, Histogram, fn() -> Histogram>,
}

/// The upper bounds of a histogram's buckets.
#[derive(Debug, Clone)]
struct Buckets(Arc<[f64]>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl ClientMetrics {
    /// Creates and registers the metrics, with client-go's buckets.
    pub fn register(registry: &mut Registry) -> Self {
        Self::register_with_buckets(registry, BUCKETS)
    }

    /// Creates and registers the metrics, with these buckets of `rest_client_request_duration_seconds`: their upper
    /// bounds in seconds, in increasing order.
    pub fn register_with_buckets(registry: &mut Registry, buckets: impl IntoIterator<Item = f64>) -> Self {
        let made = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(Buckets(buckets.into_iter().collect())),
            retries: Family::default(),
            request_sizes: Family::new_with_constructor(|| Histogram::new(SIZES)),
            response_sizes: Family::new_with_constructor(|| Histogram::new(SIZES)),
        };
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            made.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, until the response headers. Broken down by verb, and host",
            made.durations.clone(),
        );
        registry.register(
            "rest_client_request_retries",
            "Number of request retries, partitioned by status code, verb, and host",
            made.retries.clone(),
        );
        registry.register(
            "rest_client_request_size_bytes",
            "Request size in bytes. Broken down by verb and host",
            made.request_sizes.clone(),
        );
        registry.register(
            "rest_client_response_size_bytes",
            "Response size in bytes. Broken down by verb and host",
            made.response_sizes.clone(),
        );
        made
    }

    /// Counts one attempt.
    fn count(&self, method: &http::Method, host: &str, status: Option<http::StatusCode>, took: f64) {
        let (code, method, host) = (code_of(status), method.as_str().to_owned(), host.to_owned());
        let labels = VerbLabels { verb: method.clone(), host: host.clone() };
        self.durations.get_or_create(&labels).observe(took);
        self.requests.get_or_create(&RequestLabels { code, method, host }).inc();
    }

    /// Counts a retry by the outcome of the previous attempt.
    pub(super) fn count_retry(&self, method: &http::Method, host: &str, status: Option<http::StatusCode>) {
        let (verb, host) = (method.as_str().to_owned(), host.to_owned());
        self.retries.get_or_create(&RetryLabels { code: code_of(status), verb, host }).inc();
    }
}

/// The `code` label of an outcome. client-go uses `<error>` for a missing response.
fn code_of(status: Option<http::StatusCode>) -> String {
    status.map_or_else(|| "<error>".to_owned(), |status| status.as_str().to_owned())
}

/// The host label of a request.
pub(super) fn host_of(uri: &http::Uri) -> &str {
    uri.authority().map_or("", http::uri::Authority::as_str)
}

/// The layer of [`Observe`].
#[derive(Debug, Clone)]
pub struct ObserveLayer {
    metrics: Option<ClientMetrics>,
    warnings: Arc<Warnings>,
}

impl ObserveLayer {
    /// Logs requests and server warnings, and counts requests if `metrics` is set.
    pub fn new(metrics: Option<ClientMetrics>) -> Self {
        Self { metrics, warnings: Arc::default() }
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, with: self.clone() }
    }
}

/// Logs each request at debug level when its response begins, and counts it. Logs each distinct `Warning` header once.
/// The services below already box their futures, so this one does not.
#[derive(Debug, Clone)]
pub struct Observe<S> {
    inner: S,
    with: ObserveLayer,
}

impl<S, A, B> Service<Request<A>> for Observe<S>
where
    A: Body,
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Unpin,
{
    type Response = Response<Measured<B>>;
    type Error = S::Error;
    type Future = Observing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        Observing {
            method: request.method().clone(),
            uri: request.uri().clone(),
            size: request.body().size_hint().exact(),
            is_stream: is_stream(&request),
            with: self.with.clone(),
            start: Instant::now(),
            answer: self.inner.call(request),
        }
    }
}

/// The response future.
pub struct Observing<F> {
    method: http::Method,
    uri: http::Uri,
    /// The size of the request body, if known.
    size: Option<u64>,
    is_stream: bool,
    with: ObserveLayer,
    start: Instant,
    answer: F,
}

impl<F, B, E> Future for Observing<F>
where
    F: Future<Output = Result<Response<B>, E>> + Unpin,
{
    type Output = Result<Response<Measured<B>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        let status = answer.as_ref().ok().map(Response::status);
        let took = self.start.elapsed();
        let Self { method, uri, with: ObserveLayer { metrics, warnings }, .. } = &*self;
        tracing::debug!(%method, %uri, status = status.map(|status| status.as_u16()), ?took, "Sent request to the API server");
        if let Ok(answer) = &answer {
            warnings.log(answer.headers());
        }
        let mut size = None;
        if let Some(metrics) = metrics {
            metrics.count(method, host_of(uri), status, took.as_secs_f64());
            let labels = VerbLabels { verb: method.as_str().to_owned(), host: host_of(uri).to_owned() };
            if let Some(sent) = self.size {
                observe(&metrics.request_sizes, &labels, sent);
            }
            size = (answer.is_ok() && !self.is_stream).then(|| Size {
                bytes: 0,
                labels,
                sizes: metrics.response_sizes.clone(),
            });
        }
        Poll::Ready(answer.map(|answer| answer.map(|body| Measured { body, size })))
    }
}

type Sizes = Family<VerbLabels, Histogram, fn() -> Histogram>;

fn observe(sizes: &Sizes, labels: &VerbLabels, bytes: u64) {
    #[expect(clippy::cast_precision_loss, reason = "precision beyond 2^53 bytes does not matter")]
    sizes.get_or_create(labels).observe(bytes as f64);
}

/// A response body whose size is observed when it has been read or is dropped.
#[derive(Debug)]
pub struct Measured<B> {
    body: B,
    size: Option<Size>,
}

#[derive(Debug)]
struct Size {
    bytes: u64,
    labels: VerbLabels,
    sizes: Sizes,
}

impl Drop for Size {
    fn drop(&mut self) {
        observe(&self.sizes, &self.labels, self.bytes);
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Measured<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match (&frame, &mut self.size) {
            (Some(Ok(frame)), Some(size)) => {
                size.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            (None, size) => *size = None,
            _ => {}
        }
        Poll::Ready(frame)
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
    use std::time::Duration;

    use http_body_util::{BodyExt as _, Full};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_counted_under_client_go_names() {
        let mut registry = Registry::default();
        let layer = ObserveLayer::new(Some(ClientMetrics::register(&mut registry)));
        let service = layer.layer(tower::service_fn(|request: Request<Full<Bytes>>| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                match request.uri().path() {
                    "/gone" => Err("gone"),
                    "/missing" => Ok(Response::builder().status(404).body(Full::from("no")).unwrap()),
                    _ => Ok(Response::new(Full::from(vec![b'x'; 300]))),
                }
            })
        }));
        for path in ["/a", "/b?watch=true", "/missing", "/gone"] {
            let request =
                Request::get(format!("https://10.0.0.1:443{path}")).body(Full::from(vec![b'x'; 100]));
            if let Ok(answer) = service.clone().oneshot(request.unwrap()).await {
                answer.into_body().collect().await.unwrap();
            }
        }
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            r#"rest_client_requests_total{code="200",method="GET",host="10.0.0.1:443"} 2"#,
            r#"rest_client_requests_total{code="404",method="GET",host="10.0.0.1:443"} 1"#,
            r#"rest_client_requests_total{code="<error>",method="GET",host="10.0.0.1:443"} 1"#,
            r#"rest_client_request_duration_seconds_bucket{le="0.1",verb="GET",host="10.0.0.1:443"} 0"#,
            r#"rest_client_request_duration_seconds_bucket{le="0.25",verb="GET",host="10.0.0.1:443"} 4"#,
            r#"rest_client_request_size_bytes_sum{verb="GET",host="10.0.0.1:443"} 400.0"#,
            r#"rest_client_request_size_bytes_count{verb="GET",host="10.0.0.1:443"} 4"#,
            // The response of the watch is not measured.
            r#"rest_client_response_size_bytes_sum{verb="GET",host="10.0.0.1:443"} 302.0"#,
            r#"rest_client_response_size_bytes_bucket{le="512.0",verb="GET",host="10.0.0.1:443"} 2"#,
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
        }
    }
}
