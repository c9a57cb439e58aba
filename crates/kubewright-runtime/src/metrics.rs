//! The metrics of a manager, served at `/metrics` for Prometheus.
//!
//! [`Metrics`] owns one registry. There is no global registry: two managers in a process, or two tests, have separate
//! metrics. Each module registers its metric families, and so can users.
//!
//! With a [`Guard`], requests are authenticated and authorized by the API server, as with controller-runtime's secure
//! serving.

mod guard;
mod process;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::Full;
use prometheus_client::registry::Registry;

use crate::serve::not_found;

pub use guard::Guard;

pub use crate::serve::{Handler, Request, Response, text};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of a manager. Clones share them.
///
/// ```
/// use kubewright_runtime::metrics::Metrics;
/// use prometheus_client::metrics::counter::Counter;
///
/// let metrics = Metrics::new();
/// let sold: Counter = Counter::default();
/// metrics.with_registry(|registry| registry.register("pizzas_sold", "Pizzas sold", sold.clone()));
/// sold.inc();
/// assert!(metrics.page(None).1.contains("pizzas_sold_total 1"));
/// ```
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    /// Further paths of the metrics server.
    handlers: Arc<Mutex<BTreeMap<String, Handler>>>,
}

impl Metrics {
    /// A registry with the process metrics (CPU time, memory, open file descriptors, start time) under Prometheus'
    /// standard names. They come from `/proc` and are omitted where it does not exist.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process));
        Self { registry: Arc::new(Mutex::new(registry)), handlers: Arc::default() }
    }

    /// Registers metrics. Names are not checked: a family registered twice appears twice.
    ///
    /// A collector that is registered here must not call this again while it encodes.
    pub fn with_registry<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The content type and the body for a client: OpenMetrics if its Accept header includes it, as Prometheus' does,
    /// otherwise the older text format.
    pub fn page(&self, accept: Option<&str>) -> (&'static str, String) {
        let mut page = String::new();
        let written =
            self.with_registry(|registry| prometheus_client::encoding::text::encode(&mut page, registry));
        // Writing to a String cannot fail, so only a user's collector can.
        if let Err(error) = written {
            tracing::warn!(%error, "Failed to collect metrics; the response is incomplete");
        }
        if accept.is_some_and(accepts_open_metrics) {
            (OPEN_METRICS, page)
        } else {
            (CLASSIC, text::classic(&page))
        }
    }

    /// Serves another path on the metrics server, such as `/debug/state`, with the same authentication and
    /// authorization. A second handler for a path replaces the first. `/metrics` cannot be replaced.
    pub fn add_handler(&self, path: impl Into<String>, handler: Handler) {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into(), handler);
    }

    /// Serves `/metrics` and the paths of [`Metrics::add_handler`]. With a guard, every request is authorized first.
    /// Unknown paths get 404 without a call to the API server.
    pub fn handler(&self, guard: Option<Guard>) -> Handler {
        let metrics = self.clone();
        Handler::new(move |request| {
            let (metrics, guard) = (metrics.clone(), guard.clone());
            async move {
                let path = request.uri().path();
                let handler = metrics.handler_at(path);
                if handler.is_none() && path != "/metrics" {
                    return not_found();
                }
                if let Some(guard) = guard
                    && let Err(refusal) = guard.check(request.method(), path, request.headers()).await
                {
                    return refusal;
                }
                match handler {
                    Some(handler) => handler.handle(request).await,
                    None => metrics.answer(request.headers()),
                }
            }
        })
    }

    /// The handler added for this path. `/metrics` has none.
    fn handler_at(&self, path: &str) -> Option<Handler> {
        let handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.get(path).filter(|_| path != "/metrics").cloned()
    }

    fn answer(&self, headers: &HeaderMap) -> Response {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let (media, page) = self.page(accept);
        let mut response = http::Response::new(Full::new(Bytes::from(page)));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        response
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Whether OpenMetrics 1.0.0, or OpenMetrics without a version, is accepted with a weight above 0.
fn accepts_open_metrics(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/openmetrics-text"))
            && parts.all(|parameter| match parameter.split_once('=') {
                Some(("version", version)) => version == "1.0.0",
                Some(("q", weight)) => weight.parse::<f32>().is_ok_and(|weight| weight > 0.0),
                _ => true,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_served_only_if_accepted() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
                          version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert!(accepts_open_metrics(prometheus));
        assert!(accepts_open_metrics("text/plain, application/openmetrics-text"));
        for other in [
            "*/*",
            "text/plain",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0",
        ] {
            assert!(!accepts_open_metrics(other), "{other}");
        }
        let metrics = Metrics::new();
        let (media, page) = metrics.page(Some(prometheus));
        assert_eq!(media, OPEN_METRICS);
        assert!(page.ends_with("# EOF\n"));
        let (media, page) = metrics.page(None);
        assert_eq!(media, CLASSIC);
        assert!(!page.contains("# EOF"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_metrics_have_prometheus_names() {
        let (_, page) = Metrics::new().page(None);
        for name in [
            "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total ",
            "\nprocess_resident_memory_bytes ",
            "\nprocess_virtual_memory_bytes ",
            "\nprocess_open_fds ",
            "\nprocess_max_fds ",
            "\nprocess_start_time_seconds ",
        ] {
            assert!(page.contains(name), "missing {name:?} in\n{page}");
        }
    }
}
