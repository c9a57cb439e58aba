//! The trace exporter: OTLP over HTTP, configured by OpenTelemetry's environment variables.
//!
//! The SDK batches spans and exports them on its own thread. HTTP runs on that thread too, so exports and the
//! operator's tasks do not block each other.

use std::env;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Runtime;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{Layer, Registry};

use crate::logs::{self, LogsError};

/// OpenTelemetry's default timeout for exporting a batch.
const TIMEOUT: Duration = Duration::from_secs(10);
const PROTOCOL: &str = "http/protobuf";

/// Traces cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracesError {
    /// A variable selects an unsupported protocol.
    #[error("unsupported {variable}={value:?}: use {PROTOCOL}, usually on port 4318 of the collector")]
    Protocol {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The system's certificate authorities cannot be loaded.
    #[error("failed to set up TLS for the trace exporter")]
    Tls(#[source] rustls::Error),
    /// The runtime of the exporter could not be started.
    #[error("failed to start the trace exporter")]
    Runtime(#[source] std::io::Error),
    /// An endpoint, a header or a compression is invalid.
    #[error("failed to configure the trace exporter; check the environment variables OTEL_EXPORTER_OTLP_*")]
    Configure(#[source] opentelemetry_otlp::ExporterBuildError),
    /// Logging cannot be set up.
    #[error(transparent)]
    Logs(#[from] LogsError),
}

/// Exports spans until it is dropped. Dropping it exports pending spans.
#[derive(Debug)]
#[must_use = "dropping the exporter stops the export"]
pub struct Exporter(Option<SdkTracerProvider>);

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "Failed to export pending traces");
        }
    }
}

/// Sets up logging like [`logs::init`], and the trace exporter if the environment enables it.
///
/// `service` is the service name, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` has one. Drop the exporter
/// after the operator has stopped.
pub fn init(options: &logs::Options, service: &str) -> Result<Exporter, TracesError> {
    let Some(provider) = provider(service)? else {
        logs::init(options)?;
        return Ok(Exporter(None));
    };
    logs::init_with(options, layer(&provider))?;
    tracing::info!(service, "Starting trace exporter");
    Ok(Exporter(Some(provider)))
}

/// Exports spans of level `info` and above.
fn layer(provider: &SdkTracerProvider) -> impl Layer<Registry> + Send + Sync + use<> {
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("kubewright"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    layer.with_filter(LevelFilter::INFO)
}

fn provider(service: &str) -> Result<Option<SdkTracerProvider>, TracesError> {
    if !is_wanted(|name| env::var(name).ok()) {
        return Ok(None);
    }
    for variable in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match env::var(variable).ok().filter(|it| !it.is_empty()) {
            Some(value) if value != PROTOCOL => return Err(TracesError::Protocol { variable, value }),
            Some(_) => break,
            None => {}
        }
    }
    let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new()?).build();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter.map_err(TracesError::Configure)?)
        .with_resource(resource(service));
    Ok(Some(provider.build()))
}

/// The resource of the spans. Environment variables override the operator's name.
fn resource(service: &str) -> Resource {
    let named = env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty())
        || env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|it| it.contains("service.name="));
    let resource = Resource::builder();
    if named { resource.build() } else { resource.with_service_name(service.to_owned()).build() }
}

/// Whether the environment enables traces.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, value: &str| variable(name).is_some_and(|it| it.trim().eq_ignore_ascii_case(value));
    let is_set = |name: &str| variable(name).is_some_and(|it| !it.trim().is_empty());
    if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
        return false;
    }
    is("OTEL_TRACES_EXPORTER", "otlp")
        || is_set("OTEL_EXPORTER_OTLP_ENDPOINT")
        || is_set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
}

/// Sends batches on the calling thread.
struct Sender {
    runtime: Option<Runtime>,
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

impl Sender {
    fn new() -> Result<Self, TracesError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = rustls_platform_verifier::Verifier::new(provider.clone()).map_err(TracesError::Tls)?;
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TracesError::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let timeout = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
        let timeout = timeout.into_iter().find_map(|name| env::var(name).ok()?.parse().ok());
        Ok(Self {
            runtime: Some(runtime.map_err(TracesError::Runtime)?),
            client: legacy::Client::builder(TokioExecutor::new()).build(connector),
            timeout: timeout.map_or(TIMEOUT, Duration::from_millis),
        })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err("the exporter has stopped".into()) };
        runtime.block_on(async {
            tokio::time::timeout(self.timeout, async {
                let (head, body) = self.client.request(request.map(Full::new)).await?.into_parts();
                Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
            })
            .await
            .unwrap_or_else(|_| Err("the collector did not respond in time".into()))
        })
    }
}

impl HttpClient for Sender {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move { self.send(request) })
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // A runtime must not be dropped within another runtime, and no task is left to wait for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_exported_if_the_environment_enables_them() {
        for (variables, wanted) in [
            ("", false),
            ("OTEL_SERVICE_NAME=x", false),
            ("OTEL_EXPORTER_OTLP_ENDPOINT=", false),
            ("OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318", true),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4318/v1/traces", true),
            ("OTEL_TRACES_EXPORTER=otlp", true),
            ("OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318", false),
            ("OTEL_SDK_DISABLED=true OTEL_TRACES_EXPORTER=otlp", false),
        ] {
            let variable = |name: &str| {
                let pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
                pairs.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).next()
            };
            assert_eq!(is_wanted(variable), wanted, "{variables}");
        }
    }
}
