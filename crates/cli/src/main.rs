//! The `mangrove` program: `serve`, `query`, `console`, `load`, `generate`, `bench`.
//!
//! Everything it does is the embedded database's (crate `mangrove`) or the server's; here is what a person
//! at a terminal needs around them:
//!
//! - [`args`]: the command line; [`settings`]: everything a server can be told, in one table; [`config`]: the file, the
//!   environment and the flags that tell it, and which of them wins;
//!   [`quantity`]: sizes and lengths of time as people write them.
//! - [`budget`]: how much memory a server may use.
//! - [`graphs`]: a graph opened and its files loaded, with a progress bar.
//! - [`logging`], [`audit_log`], [`notify`]: what a server says, and to whom.
//! - [`reload`]: what a server does at SIGHUP.
//! - [`serve`], [`query`], [`console`], [`stats`], [`load`], [`generate`], [`bench`]: one command each; [`manage`]: `index`, `config`,
//!   `graph`, `queries`, `kill`, `checkpoint` and `inspect`; [`user`]: who may come in; [`store`]: `verify`, and looks into a database's files.
//! - [`connection`]: whom to ask: a server by [`client`], or a graph opened here by [`local`]. [`variables`] and
//!   [`parameters`] are what goes with a question.
//! - [`health`]: how a server is; [`shell`]: manual page and completions.
//! - [`output`]: results as a table, JSON or CSV.
//!
//! Invariants: results go to standard output and nothing else does; the exit code is 0 only on success, 1
//! for an error that was met, 2 for a command line that is wrong; an error is one clear sentence on standard
//! error with the way out.
//!
//! Not here: export and backup: later versions.

#![forbid(unsafe_code)]

mod args;
mod audit_log;
mod bench;
mod budget;
mod client;
mod clock;
mod config;
mod connection;
mod console;
mod export;
mod generate;
mod graphs;
mod health;
mod load;
mod local;
mod logging;
mod manage;
#[cfg(test)]
#[path = "../tests/cli/manual.rs"]
mod manual;
mod notify;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod parameters;
mod quantity;
mod query;
mod reload;
mod serve;
mod settings;
mod shell;
mod stats;
mod store;
mod user;
mod variables;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use mangrove::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Console(args) => console::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Graph(command) => manage::graph(&command),
        Command::User(command) => user::run(&command),
        Command::Health(args) => health::run(&args),
        Command::Queries(args) => manage::queries(&args),
        Command::Kill(args) => manage::kill(&args),
        Command::Index(command) => manage::index(&command),
        Command::Schema(command) => manage::schema(&command),
        Command::Config(command) => manage::config(&command),
        Command::Inspect(command) => manage::inspect(&command),
        Command::Checkpoint(args) => manage::checkpoint(&args),
        Command::Verify(args) => store::verify(&args.data),
        Command::Bench(args) => bench::run(args),
        Command::Generate(args) => generate::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man => shell::man(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the results wanted no more of them.
        Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(Failure::Error(error)) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

/// Why a command ended early.
#[derive(Debug)]
enum Failure {
    /// The reader of standard output closed it (`mangrove query … | head`).
    ReaderGone,
    /// Something went wrong, and the log says what.
    Told,
    /// Something went wrong.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// Failures to write results.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Error(Error::from(error).context("standard output")),
        }
    }
}
