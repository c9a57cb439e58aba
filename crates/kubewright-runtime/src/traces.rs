//! Traces of reconciles, for an OpenTelemetry collector.
//!
//! With the cargo feature `otlp`, each reconcile is a span with the attributes `controller`, `controller_kind`,
//! `k8s.namespace.name`, `k8s.object.name`, `reconcile_id` and `result`. Requests that it sends through its client are
//! child spans, and carry the header `traceparent`. Spans and log lines of the operator's own code are in the same trace.
//! Each admission review is a span with the fields of its log lines.
//!
//! `init` sets up logs and the exporter. Traces are exported by OTLP over HTTP, if `OTEL_EXPORTER_OTLP_ENDPOINT` or
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set, or `OTEL_TRACES_EXPORTER` is `otlp`. The other variables of
//! OpenTelemetry's SDK apply: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`,
//! `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_BSP_*`, `OTEL_SDK_DISABLED`.
//!
//! Without the feature, the functions here do nothing: there are no request spans and nothing is exported.

#[cfg(feature = "otlp")]
mod export;
#[cfg_attr(not(feature = "otlp"), path = "traces/spans_off.rs")]
mod spans;

#[cfg(feature = "otlp")]
pub use self::export::{Exporter, TracesError, init};
pub(crate) use self::spans::{answered, ended, follow, reconciles, request};
