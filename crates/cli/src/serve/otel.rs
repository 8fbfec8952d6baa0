//! Traces for a collector of OpenTelemetry: spans of requests go there by OTLP over HTTP, as protocol buffers.
//!
//! Active with the cargo feature `otel`, if the environment names a collector. The OpenTelemetry crates do the work.
//! The variables of its specification configure them: `OTEL_EXPORTER_OTLP_ENDPOINT` and `…_TRACES_ENDPOINT`,
//! `…_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` and `…_ARG`, `OTEL_BSP_…`. This
//! module connects them to the program:
//!
//! ```text
//! spans of mangrove_server ─► layer ─► sampler ─► bounded queue ─► thread of the batches ─► POST /v1/traces
//! ```
//!
//! No request waits for the collector. Spans that do not fit the queue are dropped. So are spans that cannot be
//! delivered, with a line in the log. At the end of the program, waiting spans are delivered within
//! [`DELIVERY_TIMEOUT`].
//!
//! Not here: TLS to the collector, gRPC, metrics (`/metrics` has those) and logs.

use std::env;
use std::time::Duration;

use async_trait::async_trait;
use mangrove::{Error, ErrorKind, Result};
use mangrove_server::{REQUEST_SPAN, TRACE_TARGET};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{KeyValue, global};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// How long a collector may take for a batch, and the end of the program for the spans that wait.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// The variables that name the collector. One of them must be set.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];

/// The collection of traces, while it runs.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Delivers waiting spans and ends. No span may come afterwards.
    pub fn finish(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(DELIVERY_TIMEOUT) {
            tracing::warn!("the last traces did not reach their collector: {error}");
        }
    }
}

/// A layer that collects the spans of requests and those within them; `None` if no collector is named.
pub fn start<S>() -> Result<Option<(impl Layer<S>, Traces)>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if !is_wanted(|name| env::var(name).ok())? {
        return Ok(None);
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(ExporterClient::new()?)
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|e| Error::invalid(format!("the collector of traces that the environment names: {e}")))?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
    global::set_text_map_propagator(TraceContextPropagator::new());
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("mangrove"))
        .with_location(false)
        .with_target(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| {
            metadata.is_span() && (metadata.target() == TRACE_TARGET || metadata.name() == REQUEST_SPAN)
        }));
    Ok(Some((layer, Traces(provider))))
}

/// Returns true if the environment names a collector. Fails if this program cannot reach one of that kind.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> Result<bool> {
    let first = |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let Some(endpoint) = first(&ENDPOINTS) else { return Ok(false) };
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(false);
    }
    if !endpoint.starts_with("http://") {
        return Err(Error::invalid(format!(
            "the collector of traces is `{endpoint}`: this program sends them to http://…, an agent on its machine or \
             network"
        )));
    }
    match first(&PROTOCOLS).as_deref() {
        None | Some("http/protobuf") => Ok(true),
        Some(other) => Err(Error::invalid(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL is `{other}`: this program speaks http/protobuf, which collectors take on \
             port 4318"
        ))),
    }
}

/// The attributes of all spans: the name of the service (unless the environment gives another), its version, and those
/// of the environment.
fn resource() -> Resource {
    let is_named = |name: &str, part: &str| env::var(name).is_ok_and(|value| value.contains(part));
    let builder = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match is_named("OTEL_SERVICE_NAME", "") || is_named("OTEL_RESOURCE_ATTRIBUTES", "service.name=") {
        true => builder.build(),
        false => builder.with_service_name("mangrove").build(),
    }
}

/// The HTTP client of the exporter. It runs on the thread of the batches, because the runtime of the server may have
/// ended.
#[derive(Debug)]
struct ExporterClient {
    http: HyperClient,
    runtime: Runtime,
}

impl ExporterClient {
    fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new(ErrorKind::Io, format!("traces cannot be sent: {e}")))?;
        Ok(ExporterClient { http: HyperClient::with_default_connector(DELIVERY_TIMEOUT, None), runtime })
    }
}

#[async_trait]
impl HttpClient for ExporterClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.block_on(self.http.send_bytes(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> Result<bool> {
        is_wanted(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn traces_are_sent_where_the_environment_names_a_collector_that_can_be_reached() {
        const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        assert_eq!(wanted(&[]), Ok(false));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(false));
        assert_eq!(wanted(&[ENDPOINT]), Ok(true));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://agent/v1/traces")]), Ok(true));
        assert_eq!(wanted(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]), Ok(false));
        assert_eq!(wanted(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]), Ok(true));
        let grpc = wanted(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
        assert!(grpc.message().contains("http/protobuf"), "{grpc}");
        let secure = wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector")]).unwrap_err();
        assert!(secure.message().contains("https://collector"), "{secure}");
    }
}
