//! Where the log of the server goes: lines for people or JSON objects on standard error, and the audit log in its own
//! file if it has one.
//!
//! With the feature `otel`, spans also go to a collector of traces, if the environment names one. Every line about a
//! request is within the span `request`, which has its id and operation.

use std::io::{self, IsTerminal};

use mangrove::{Error, Result};
use mangrove_server::AUDIT_TARGET;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::audit_log::AuditLog;
use crate::settings::{LogFormat, Options};

/// The parts of logging that outlive its start.
#[derive(Debug)]
pub struct Logging {
    /// The audit log, if it has a file.
    pub audit: Option<AuditLog>,
    #[cfg(feature = "otel")]
    traces: Option<super::otel::Traces>,
}

impl Logging {
    /// Delivers waiting spans. The server calls it at its end.
    pub fn finish(&self) {
        #[cfg(feature = "otel")]
        if let Some(traces) = &self.traces {
            traces.finish();
        }
    }
}

/// Starts logging, as the settings say. Called once.
pub fn start(options: &Options) -> Result<Logging> {
    let audit = options.audit.clone().map(AuditLog::open).transpose()?;
    let to_file = audit.clone().map(|log| {
        let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false);
        layer
            .with_span_list(false)
            .with_writer(log)
            .with_filter(Targets::new().with_target(AUDIT_TARGET, LevelFilter::INFO))
    });
    let to_stderr = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let to_stderr: Box<dyn Layer<Registry> + Send + Sync> = match options.log_format {
        LogFormat::Text => to_stderr.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => to_stderr.json().flatten_event(true).with_span_list(false).boxed(),
    };
    let to_stderr = to_stderr.with_filter(filter(&options.log, audit.is_some())?);
    let registry = tracing_subscriber::registry().with(to_stderr).with(to_file);
    #[cfg(feature = "otel")]
    let (registry, traces) = {
        let (layer, traces) = super::otel::start()?.unzip();
        (registry.with(layer), traces)
    };
    registry.init();
    if options.log_format == LogFormat::Json {
        // A panic is a JSON object, too.
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    }
    Ok(Logging {
        audit,
        #[cfg(feature = "otel")]
        traces,
    })
}

/// The filter of standard error. Entries of the audit log are part of it unless they have a file.
fn filter(wanted: &str, has_audit_file: bool) -> Result<EnvFilter> {
    let mut directives = wanted.to_owned();
    if has_audit_file && !wanted.contains(AUDIT_TARGET) {
        directives.push_str(&format!(",{}=off", AUDIT_TARGET));
    }
    EnvFilter::try_new(directives).map_err(|e| {
        Error::invalid(format!("log = {wanted} is no log filter ({e}): try info, debug, or mangrove_server=debug"))
    })
}
