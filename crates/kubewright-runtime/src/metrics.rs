//! `/metrics`: what a manager counts, for Prometheus.
//!
//! [`Metrics`] owns one registry. There is no global one: two managers in a process, or two tests, do not see each
//! other's numbers. Each module registers its own families with it, and so do users.
//!
//! With a [`Guard`] the page is for those only whom the API server knows and allows, as controller-runtime's secure
//! serving has it.

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

use crate::serve::{Handler, Response, not_found};

pub use guard::Guard;

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
    /// A registry with the numbers of this process: processor time, memory, open files, start, under Prometheus'
    /// usual names. They come from `/proc`, and are not there where that is not.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process));
        Self { registry: Arc::new(Mutex::new(registry)), handlers: Arc::default() }
    }

    /// Registers metrics, one's own too. Names are not checked: what is registered twice is shown twice.
    ///
    /// A collector that is registered here must not call this again while it encodes.
    pub fn with_registry<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The media type and the text of the page for a client that accepts this: OpenMetrics for those who name it,
    /// as Prometheus does, the older text format for all others.
    pub fn page(&self, accept: Option<&str>) -> (&'static str, String) {
        let mut page = String::new();
        let written =
            self.with_registry(|registry| prometheus_client::encoding::text::encode(&mut page, registry));
        // A String takes everything, so that only a user's own collector can fail.
        if written.is_err() {
            tracing::warn!("a collector failed; the metrics behind it are missing");
        }
        if accept.is_some_and(accepts_open_metrics) {
            (OPEN_METRICS, page)
        } else {
            (CLASSIC, text::classic(&page))
        }
    }

    /// Serves another path on the metrics server, such as `/debug/state`, with the same authentication and authorization.
    /// A second handler of a path replaces the first. `/metrics` cannot be replaced.
    pub fn add_handler(&self, path: impl Into<String>, handler: Handler) {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into(), handler);
    }

    /// Serves the page at `/metrics`, and the paths of [`Metrics::add_handler`]. With a guard, only requests that it
    /// allows are answered. A path that is not served is 404 for every client, without a call to the API server.
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

    /// The handler that was added for this path. `/metrics` has none.
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

/// Is version 1 of OpenMetrics, or any, among what is accepted? Not if its weight is 0.
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
    fn open_metrics_is_for_those_who_ask_for_it() {
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
    fn the_process_is_shown_under_prometheus_names() {
        let (_, page) = Metrics::new().page(None);
        for name in [
            "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total ",
            "\nprocess_resident_memory_bytes ",
            "\nprocess_virtual_memory_bytes ",
            "\nprocess_open_fds ",
            "\nprocess_max_fds ",
            "\nprocess_start_time_seconds ",
        ] {
            assert!(page.contains(name), "{name} is not in\n{page}");
        }
    }
}
