//! Attributes of reconciles, and spans of API requests.
//!
//! Attributes are set on the exported span only, not as fields, so that log lines do not change.

use http::{Request, StatusCode};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::Status;
use opentelemetry_http::HeaderInjector;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Instrument as _, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::Key;
use crate::error::Chain;
use crate::journal::Ending;

/// The name of request spans in this process; exported spans are named after the HTTP method.
const REQUEST: &str = "api_request";

/// Sets the object attributes of a reconcile.
pub(crate) fn reconciles(span: &Span, key: &Key) {
    if let Some(namespace) = key.namespace() {
        span.set_attribute("k8s.namespace.name", namespace.to_owned());
    }
    span.set_attribute("k8s.object.name", key.name().to_owned());
}

/// Sets the result of a reconcile, with the journal's values.
pub(crate) fn ended(span: &Span, how: impl FnOnce() -> (Ending, Option<String>)) {
    if span.is_disabled() {
        return;
    }
    let (ending, error) = how();
    let (result, failed) = match ending {
        Ending::Done => ("done", false),
        Ending::Requeue => ("requeue", false),
        Ending::Backoff => ("backoff", false),
        Ending::Terminal => ("terminal", true),
        Ending::Error => ("error", true),
        Ending::Panic => ("panic", true),
        Ending::Timeout => ("timeout", true),
    };
    span.set_attribute("result", result);
    if failed {
        span.set_status(Status::error(error.unwrap_or_else(|| result.to_owned())));
    }
}

/// Creates the span of a request and adds its `traceparent` header.
pub(crate) fn request<B>(request: &mut Request<B>) -> Span {
    let span = info_span!(REQUEST, otel.name = request.method().as_str(), otel.kind = "client");
    if span.is_disabled() {
        return span;
    }
    span.set_attribute("http.request.method", request.method().as_str().to_owned());
    span.set_attribute("url.path", request.uri().path().to_owned());
    TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(request.headers_mut()));
    span
}

/// Runs a request in its span.
pub(crate) async fn follow<T, E: std::error::Error + 'static>(
    span: Span,
    sent: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let answer = sent.instrument(span.clone()).await;
    if let Err(error) = &answer
        && !span.is_disabled()
    {
        span.set_status(Status::error(Chain(error).to_string()));
    }
    answer
}

/// Sets the status code of the current request.
pub(crate) fn answered(code: StatusCode) {
    let span = Span::current();
    if span.metadata().is_some_and(|metadata| metadata.name() == REQUEST) {
        span.set_attribute("http.response.status_code", i64::from(code.as_u16()));
    }
}
