//! `mangrove serve`: from the settings to a server that listens, and to its orderly end.
//!
//! ```text
//! settings ─ logging ─ starting (/health says so) ─ open, recover, load ─ listen ─ signal ─ drain ─ checkpoint ─ end
//!                                                                          └─ SIGHUP: reload
//! ```

mod audit_log;
mod budget;
mod election;
mod follow_again;
mod logging;
mod notify;
#[cfg(feature = "otel")]
mod otel;
mod reload;

use std::future::Future;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove::{Database, DatabaseOptions, Error, ErrorKind, Executors, MemoryBudget, Result};
use mangrove_server::{DatabaseEngine, Server, Starting, blocking_thread_count};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use self::audit_log::AuditLog;
use self::election::{Elected, Elections};
use self::logging::Logging;
use self::reload::Reload;
use crate::args::ServeArgs;
use crate::config::{GraphSetup, Setup};
use crate::connection::graphs;
use crate::connection::graphs::Opened;
use crate::quantity::Size;
use crate::settings::{LogFormat, Options};
use crate::{Failure, settings};

/// How long an idle worker thread lives. When it ends, the allocator returns the memory that the thread allocated and
/// others have freed, above all sent answers. That is sooner than tokio's default of ten seconds.
const WORKER_IDLE_MAX: Duration = Duration::from_secs(2);

/// How often a server looks for a graph that the owner makes, and the pause between two looks.
const FOLLOW_ATTEMPTS: u32 = 50;
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut setup = Setup::new(args)?;
    let strangers = settings::unknown_variables()?;
    if args.print_config {
        for name in strangers {
            eprintln!("warning: {}", stranger(&name));
        }
        io::stdout().lock().write_all(setup.print().as_bytes())?;
        return Ok(());
    }
    let logging = logging::start(&setup.options)?;
    for name in strangers {
        tracing::warn!("{}", stranger(&name));
    }
    let is_json = setup.options.log_format == LogFormat::Json;
    match logged(args, setup, &logging) {
        // With JSON logs, standard error has JSON objects only, to the last line.
        Err(Failure::Error(error)) if is_json && tracing::enabled!(tracing::Level::ERROR) => {
            tracing::error!("{}", error.message());
            Err(Failure::Told)
        }
        outcome => outcome,
    }
}

/// The warning about an environment variable that is no setting and not like one.
fn stranger(name: &str) -> String {
    format!("the environment has {name}, which is no setting of mangrove (`mangrove serve --print-config` shows all)")
}

/// Runs the server; everything from here on is logged.
fn logged(args: &ServeArgs, setup: Setup, logging: &Logging) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(WORKER_IDLE_MAX)
        .max_blocking_threads(blocking_thread_count(&setup.options.server.limits))
        .build()
        .map_err(|e| Error::new(ErrorKind::Io, format!("the server's threads could not be started: {e}")))?;
    // Listens before recovery and loading, which may take minutes. Until then, `/health` says that the server is
    // starting.
    let (starting, signals) = runtime.block_on(async {
        // A signal that arrives before the server listens is handled afterwards and does not end the process.
        let signals = Signals {
            hangup: watch(SignalKind::hangup(), "SIGHUP")?,
            promote: watch(SignalKind::user_defined1(), "SIGUSR1")?,
        };
        Starting::listen(setup.options.server.clone()).await.map(|starting| (starting, signals))
    })?;
    if !Executors::configure_shared(setup.options.executors) {
        return Err(Error::bug("a query ran before the executors had their options").into());
    }
    let scheme = if setup.options.server.tls.is_some() { "wss" } else { "ws" };
    let mut elections = elections(&setup.options, scheme, runtime.handle())?;
    let engine = Arc::new(engine(&setup, elections.as_mut())?);
    let lost = elections.as_ref().map(Elections::lost);
    let candidates = elections.as_ref().map(Elections::candidates).unwrap_or_default();
    let served = runtime.block_on(async {
        let shared = Arc::clone(&engine);
        let server = starting.ready(shared).await?;
        let reload = Reload::new(args.clone(), setup, server.limits(), Arc::clone(&engine));
        let promoted = on_promote(signals.promote, Arc::clone(&engine));
        let reloaded = on_hangup(signals.hangup, reload, logging.audit.clone());
        let followed = follow_again::watch(Arc::clone(&engine), candidates);
        let beside = async {
            tokio::join!(reloaded, promoted, followed);
        };
        serve(server, scheme, beside, lost).await
    });
    if let Some(elections) = &elections {
        elections.release();
    }
    // Queries that still run after the drain time are abandoned.
    runtime.shutdown_background();
    match elections {
        // The server that is elected next has the graph in memory, so it needs no checkpoint and waits for none.
        Some(elections) => {
            drop(engine);
            elections.resign();
        }
        None => engine.databases().iter().for_each(|(name, database)| checkpoint(name, database)),
    }
    logging.finish();
    served?;
    tracing::info!("stopped");
    Ok(())
}

/// Takes the last checkpoint, so that the next start is quick. If it fails nothing is lost: every acknowledged commit
/// is in the log.
fn checkpoint(name: &str, database: &Database) {
    if database.durability().is_none() || database.following().is_some() {
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

/// Signals that do not end the server.
struct Signals {
    hangup: Signal,
    promote: Signal,
}

async fn serve(
    server: Server,
    scheme: &str,
    beside: impl Future<Output = ()> + Send + 'static,
    lost: Option<Arc<Notify>>,
) -> Result<(), Failure> {
    let is_lost = Arc::new(AtomicBool::new(false));
    let stop = stop_signal()?;
    let stop = {
        let is_lost = Arc::clone(&is_lost);
        async move {
            let Some(lost) = lost else { return stop.await };
            tokio::select! {
                () = stop => {}
                () = lost.notified() => is_lost.store(true, Ordering::Relaxed),
            }
        }
    };
    let beside = tokio::spawn(beside);
    let address = server.local_address()?;
    // The one line on standard output is for programs that start a server and need its address. The log has the same as
    // an event.
    let mut out = io::stdout();
    writeln!(out, "mangrove {} listens on {scheme}://{address}/gremlin", env!("CARGO_PKG_VERSION"))?;
    out.flush()?;
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(url = format!("{scheme}://{address}/gremlin"), version, "listens");
    notify::tell(notify::READY);
    let served = server.serve(stop).await;
    // It holds the graphs, which are closed next.
    beside.abort();
    let _ = beside.await;
    served?;
    if is_lost.load(Ordering::Relaxed) {
        // A supervisor starts the server again, which then follows the new owner.
        let message = "another server has taken a graph over; start this one again, and it follows that one";
        return Err(Error::new(ErrorKind::Closed, message).into());
    }
    Ok(())
}

/// The elections of owners, if the server is one of a cluster.
fn elections(options: &Options, scheme: &str, runtime: &Handle) -> Result<Option<Elections>> {
    let Some(cluster) = &options.cluster else { return Ok(None) };
    let listens = || format!("{scheme}://{}/gremlin", options.server.listen);
    let me = options.advertise.clone().unwrap_or_else(listens);
    Elections::new(cluster, me, runtime.clone()).map(Some)
}

/// Opens and fills every graph.
fn engine(setup: &Setup, mut elections: Option<&mut Elections>) -> Result<DatabaseEngine> {
    let budget = budget::of(setup.options.memory_budget);
    let mut engine = DatabaseEngine::drawing_on(budget.clone(), setup.options.engine.clone());
    for graph in &setup.graphs {
        let database = filled(graph, &setup.options, &budget, elections.as_deref_mut())
            .map_err(|e| e.context(format!("graph {}", graph.name)))?;
        let sources = graph.sources.iter().map(|(name, isolation)| (name.as_str().into(), *isolation));
        engine.graph(&graph.name, database, sources)?;
    }
    engine.create_graphs(Box::new(opener(&setup.options, budget)), setup.options.graphs_dir.clone())?;
    Ok(engine)
}

/// Opens graphs that administrators create, with the settings of the server and a limit of their own.
fn opener(
    options: &Options,
    memory_budget: MemoryBudget,
) -> impl Fn(Option<&Path>, Option<u64>) -> Result<Database> + Send + Sync + 'static {
    let (memory_limit, durability) = (options.memory_limit, options.durability.clone());
    let opened = DatabaseOptions { durability, memory_budget, ..DatabaseOptions::default() };
    let settings = options.graph_settings.clone();
    move |directory, own_limit| {
        let location = directory.map(Path::to_string_lossy);
        let limit = own_limit.map(|bytes| Size { bytes }).or(memory_limit);
        let Opened { database, seconds } =
            graphs::open_with(location.as_deref(), limit, graphs::Missing::Create, opened.clone())?;
        tell_recovery(&database, seconds);
        settings.apply(&database)?;
        Ok(database)
    }
}

fn filled(
    graph: &GraphSetup,
    options: &Options,
    budget: &MemoryBudget,
    elections: Option<&mut Elections>,
) -> Result<Database> {
    let (durability, memory_budget) = (options.durability.clone(), budget.clone());
    let opened = DatabaseOptions { durability, memory_budget, ..DatabaseOptions::default() };
    let address = graph.data.as_deref().filter(|data| mangrove::is_home_address(data));
    let mut election = elections.zip(address);
    let elected = election.as_mut().map(|(elections, address)| elections.stand(address)).transpose()?;
    let followed = match elected {
        Some(Elected::Follower(owner)) => {
            tracing::info!(graph = graph.name, owner, "another server is the owner; this one follows it");
            address
        }
        _ => graph.follow.as_deref(),
    };
    let Opened { database, seconds } = match followed {
        Some(address) => follow(address, graph.memory_limit, &opened, election.is_some())?,
        None => graphs::open_with(graph.data.as_deref(), graph.memory_limit, graphs::Missing::Create, opened)?,
    };
    if let Some((elections, _)) = election {
        elections.opened(&database);
    }
    tell_recovery(&database, seconds);
    options.graph_settings.apply(&database)?;
    database.set_id_rule(graph.ids);
    if let Some(directory) = &graph.io_directory {
        database.set_io_directory(Some(directory))?;
    }
    if !graph.load.is_empty() && (!database.is_empty() || database.following().is_some()) {
        tracing::info!(graph = graph.name, "it is there already; --load is for an empty one, and was passed over");
    } else if !graph.load.is_empty() {
        let report = graphs::load(&database, &graph.load, &graphs::load_options(graph.map.as_deref())?)?;
        tracing::info!(graph = graph.name, rejects = report.rejects, "loaded {}", graphs::load_summary(&report));
    }
    Ok(database)
}

/// Follows the owner of the graph at an address. An owner that was elected just now may have to make the graph first.
fn follow(address: &str, memory_limit: Option<Size>, options: &DatabaseOptions, was_elected: bool) -> Result<Opened> {
    let mut attempts = if was_elected { FOLLOW_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        match graphs::follow_with(address, memory_limit, options.clone()) {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts > 0 => std::thread::sleep(FOLLOW_PAUSE),
            opened => return opened,
        }
    }
}

/// Logs what recovery found where a graph is kept.
fn tell_recovery(database: &Database, seconds: f64) {
    let (Some(found), Some(durability)) = (database.recovery(), database.durability()) else { return };
    let location = durability.location;
    tracing::info!(
        %location,
        vertices = found.graph.vertices,
        edges = found.graph.edges,
        checkpoint_bytes = found.checkpoint_bytes,
        commits = found.commits_replayed,
        log_bytes = found.log.bytes,
        seconds,
        "recovered the graph"
    );
    if let Some(torn) = graphs::torn(&found) {
        tracing::warn!(%location, "{torn}");
    }
}

/// Completes at SIGINT or SIGTERM.
fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = watch(SignalKind::interrupt(), "SIGINT")?;
    let mut terminate = watch(SignalKind::terminate(), "SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("asked to stop");
        notify::tell(notify::STOPPING);
    })
}

fn watch(kind: SignalKind, name: &str) -> Result<Signal> {
    signal(kind).map_err(|e| Error::new(ErrorKind::Io, format!("cannot watch for {name}: {e}")))
}

/// At every SIGUSR1, makes the server the owner of the graphs whose owner it follows.
async fn on_promote(mut promote: Signal, engine: Arc<DatabaseEngine>) {
    while promote.recv().await.is_some() {
        let followed = engine.databases().into_iter().filter(|(_, database)| database.following().is_some());
        for (graph, database) in followed {
            // The outcome is logged there.
            let promoted = tokio::task::spawn_blocking(move || database.promote()).await;
            if let Ok(Err(error)) = promoted {
                tracing::error!(%graph, "SIGUSR1: the server did not become the owner: {error}");
            }
        }
    }
}

/// At every SIGHUP, opens the audit log again and reads the settings again. Users and certificates are watched
/// elsewhere.
async fn on_hangup(mut hangup: Signal, mut reload: Reload, audit: Option<AuditLog>) {
    while hangup.recv().await.is_some() {
        reload.run();
        match audit.as_ref().map(AuditLog::reopen) {
            Some(Ok(())) => tracing::info!("SIGHUP: the audit log is open"),
            Some(Err(error)) => tracing::error!("SIGHUP: the audit log could not be opened anew: {error}"),
            None => {}
        }
    }
}
