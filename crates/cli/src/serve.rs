//! `mangrove serve`.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use mangrove::{Database, Error, ErrorKind, Result};
use mangrove_server::{Config, DatabaseEngine, Server};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::ServeArgs;
use crate::config::{GraphSetup, Setup};
use crate::settings::{LogFormat, Options};
use crate::{Failure, graphs, load};

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut setup = Setup::new(args)?;
    if args.print_config {
        io::stdout().lock().write_all(setup.print().as_bytes())?;
        return Ok(());
    }
    log_to_stderr(&setup.options)?;
    // Before minutes of loading, not after.
    setup.options.server.check()?;
    let engine = Arc::new(engine(&setup)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(ErrorKind::Io, format!("the server's threads could not be started: {e}")))?;
    let served = runtime.block_on(serve(setup.options.server, Arc::clone(&engine)));
    // What still runs was left behind, and is not waited for any longer.
    runtime.shutdown_background();
    for (name, database) in &engine.databases() {
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

async fn serve(config: Config, engine: Arc<DatabaseEngine>) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let scheme = if config.tls.is_some() { "wss" } else { "ws" };
    let server = Server::bind(config, engine).await?;
    let address = server.local_address()?;
    let mut out = io::stdout();
    writeln!(out, "mangrove {} listens on {scheme}://{address}/gremlin", env!("CARGO_PKG_VERSION"))?;
    out.flush()?;
    server.serve(stop).await?;
    Ok(())
}

/// Opens and fills every graph.
fn engine(setup: &Setup) -> Result<DatabaseEngine> {
    let mut engine = DatabaseEngine::with_limits(setup.options.engine.clone());
    for graph in &setup.graphs {
        let database = filled(graph, &setup.options).map_err(|e| e.context(format!("graph {}", graph.name)))?;
        let sources = graph.sources.iter().map(|(name, isolation)| (name.as_str().into(), *isolation));
        engine.graph(&graph.name, database, sources)?;
    }
    if let Some(directory) = &setup.options.graphs_dir {
        let (memory_limit, durability) = (setup.options.memory_limit, setup.options.durability.clone());
        let open = move |path: &Path| {
            graphs::open_with(path.to_str(), memory_limit, graphs::Missing::Create, durability.clone())
        };
        engine.keep_graphs_in(directory.clone(), Box::new(open))?;
    }
    Ok(engine)
}

fn filled(graph: &GraphSetup, options: &Options) -> Result<Database> {
    let durability = options.durability.clone();
    let database = graphs::open_with(graph.data.as_deref(), options.memory_limit, graphs::Missing::Create, durability)?;
    options.graph_settings.apply(&database)?;
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

fn log_to_stderr(options: &Options) -> Result<()> {
    let wanted = &options.log;
    let filter = EnvFilter::try_new(wanted).map_err(|e| {
        Error::invalid(format!("log = {wanted} is no log filter ({e}): try info, debug, or mangrove_server=debug"))
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match options.log_format {
        LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
