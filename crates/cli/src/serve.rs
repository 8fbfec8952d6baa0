//! `mangrove serve`.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use mangrove::{Database, Error, ErrorKind, Limits, Result};
use mangrove_server::{Config, DatabaseEngine, Server};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::ServeArgs;
use crate::config::{GraphSetup, Isolation, Setup};
use crate::{Failure, graphs, load};

/// Serves until SIGINT or SIGTERM.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    log_to_stderr()?;
    let setup = Setup::new(args)?;
    let config = server_config(&setup);
    // Before minutes of loading, not after.
    config.check()?;
    let (engine, databases) = engine(&setup)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(ErrorKind::Io, format!("the server's threads could not be started: {e}")))?;
    let served = runtime.block_on(serve(config, engine));
    // What still runs was left behind, and is not waited for any longer.
    runtime.shutdown_background();
    for (name, database) in &databases {
        checkpoint(name, database);
    }
    served?;
    tracing::info!("stopped");
    Ok(())
}

/// The last checkpoint, so that the next start is quick. Without it nothing is lost: all that was acknowledged is in the
/// log.
fn checkpoint(name: &str, database: &Database) {
    if database.durability().is_none() {
        return;
    }
    match database.checkpoint() {
        Ok(Some(report)) => {
            tracing::info!(graph = name, bytes = report.bytes, pages = report.pages, "checkpoint taken");
        }
        Ok(None) => tracing::info!(graph = name, "nothing has changed since the last checkpoint"),
        Err(error) => tracing::error!(graph = name, "no checkpoint could be taken, the log has it all: {error}"),
    }
}

async fn serve(config: Config, engine: DatabaseEngine) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let server = Server::bind(config, Arc::new(engine)).await?;
    let address = server.local_address()?;
    let mut out = io::stdout();
    writeln!(out, "mangrove {} listens on ws://{address}/gremlin", env!("CARGO_PKG_VERSION"))?;
    out.flush()?;
    server.serve(stop).await?;
    Ok(())
}

fn server_config(setup: &Setup) -> Config {
    let mut config = Config::new(setup.listen);
    config.allow_remote = setup.allow_remote;
    if let Some(limit) = setup.evaluation_timeout() {
        config.limits.evaluation_timeout = limit;
    }
    if let Some(seconds) = setup.drain_seconds {
        config.limits.drain_max = Duration::from_secs(seconds);
    }
    config
}

/// Opens and fills every graph: behind an engine, and each with its name.
fn engine(setup: &Setup) -> Result<(DatabaseEngine, Vec<(String, Database)>)> {
    let query_memory_bytes = setup.query_memory_limit.map_or(Limits::default().memory_bytes, |limit| limit.bytes);
    let mut engine = DatabaseEngine::new(query_memory_bytes);
    let mut databases = Vec::new();
    for graph in &setup.graphs {
        let database = filled(graph, setup).map_err(|e| e.context(format!("graph {}", graph.name)))?;
        for (source, isolation) in &graph.sources {
            let isolation = match isolation {
                Isolation::Serializable => mangrove::Isolation::Serializable,
                Isolation::Snapshot => mangrove::Isolation::Snapshot,
            };
            engine = engine.source_with(source.as_str(), database.clone(), isolation);
        }
        databases.push((graph.name.clone(), database));
    }
    Ok((engine, databases))
}

fn filled(graph: &GraphSetup, setup: &Setup) -> Result<Database> {
    let database = graphs::open(graph.data.as_deref(), setup.memory_limit, graphs::Missing::Create)?;
    if !graph.load.is_empty() && !database.is_empty() {
        tracing::info!(graph = graph.name, "it is there already; --load is for an empty one, and was passed over");
    } else if !graph.load.is_empty() {
        let report = graphs::load(&database, &graph.load, &graphs::load_options(graph.map.as_deref())?)?;
        tracing::info!(graph = graph.name, rejects = report.rejects, "loaded {}", load::summary(&report));
    }
    Ok(database)
}

/// Completes when the process is asked to end.
fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    let watch = |kind: SignalKind, name: &str| {
        signal(kind).map_err(|e| Error::new(ErrorKind::Io, format!("cannot watch for {name}: {e}")))
    };
    let mut interrupt = watch(SignalKind::interrupt(), "SIGINT")?;
    let mut terminate = watch(SignalKind::terminate(), "SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("asked to stop");
    })
}

fn log_to_stderr() -> Result<()> {
    let wanted = std::env::var("MANGROVE_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(&wanted).map_err(|e| {
        Error::invalid(format!(
            "MANGROVE_LOG={wanted} is no log filter ({e}): try info, debug, or mangrove_server=debug"
        ))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
