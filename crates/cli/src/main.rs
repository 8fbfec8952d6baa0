//! The `mangrove` program: the command line around the embedded database (crate `mangrove`) and the server.
//!
//! | module | content |
//! |---|---|
//! | [`args`] | the command line; its doc comments are the texts of `--help` |
//! | [`settings`] | every setting of a server, in one table; [`quantity`]: sizes and times as people write them |
//! | [`config`] | the settings of a server put together: defaults, file, environment, flags |
//! | [`serve`] | `mangrove serve`: logs, audit log, SIGHUP, memory budget, service manager |
//! | [`commands`] | one module for each other command |
//! | [`connection`] | the other end of a command: a server, through [`client`], or a graph that this program opens |
//! | [`output`] | results as a table, JSON or CSV |
//!
//! Rules that hold for every command:
//!
//! - Results go to standard output, and nothing else does.
//! - The exit code is 0 only on success, 1 after an error, 2 if the command line is wrong.
//! - An error is one clear sentence on standard error, with the way out.

#![forbid(unsafe_code)]

mod args;
mod client;
mod clock;
mod commands;
mod config;
mod connection;
#[cfg(test)]
#[path = "../tests/cli/manual.rs"]
mod manual;
mod output;
mod parameters;
mod quantity;
mod question;
mod serve;
mod settings;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use commands::{
    algo, bench, changes, console, demo, export, generate, health, load, manage, query, shell, stats, store, user,
};
use mangrove::Error;

#[global_allocator]
static ALLOCATOR: mangrove_allocator::Allocator = mangrove_allocator::Allocator;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Console(args) => console::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Algo(args) => algo::run(&args),
        Command::Demo(args) => demo::run(&args),
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
        Command::Promote(args) => manage::promote(&args),
        Command::Changes(args) => changes::run(&args),
        Command::Backup(args) => manage::backup(&args),
        Command::Restore(args) => store::restore(&args),
        Command::Verify(args) => store::verify(&args.data),
        Command::Bench(args) => bench::run(args),
        Command::Generate(args) => generate::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man => shell::man(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the results has closed the pipe and wants no more.
        Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(Failure::Error(error)) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

/// The cause for which a command ended early.
#[derive(Debug)]
enum Failure {
    /// The reader of standard output closed it (`mangrove query … | head`).
    ReaderGone,
    /// An error that the log has reported already.
    Told,
    /// An error to report.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// An error while writing results.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Error(Error::from(error).context("standard output")),
        }
    }
}
