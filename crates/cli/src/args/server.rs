//! The command lines of `mangrove graph`, `queries`, `kill` and `user`: what an administrator does to a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;
use crate::quantity::Size;

pub const GRAPH_HELP: &str = "\
Examples:
  mangrove graph create --url ws://127.0.0.1:8182/gremlin books
  mangrove graph list --url ws://127.0.0.1:8182/gremlin
  mangrove graph drop --url ws://127.0.0.1:8182/gremlin books --yes

A graph that is created has the traversal sources NAME and NAMEsi. It is kept below the server's
graphs_dir, or in memory with --memory. Scripts do the same by g.call('mangrove.graph.create').";

pub const USER_HELP: &str = "\
The users file is the one that the server's setting users_file names; a running server reads it again
within a second. Passwords are read from standard input, or asked for where that is a terminal, and
kept as Argon2 hashes.

Examples:
  mangrove user add --file users.toml ada --role '*=admin'
  mangrove user add --file users.toml web --role books=read --role carts=write <password.txt
  mangrove user grant --file users.toml web books=none
  mangrove user passwd --file users.toml ada
  mangrove user list --file users.toml";

/// A server.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// The server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL")]
    pub url: String,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// `mangrove graph`.
#[derive(Subcommand, Debug)]
pub enum GraphCommand {
    /// Create a graph
    Create {
        /// Its name: a letter, then letters, digits and underscores
        name: String,
        /// In memory: it is gone when the server ends
        #[arg(long)]
        memory: bool,
        /// Refuse writes while it uses this much memory [default: the server's]
        #[arg(long, value_name = "SIZE")]
        memory_limit: Option<Size>,
        /// A traversal source and its isolation level, serializable or snapshot; may be given several times [default: NAME
        /// and NAMEsi]
        #[arg(long = "source", value_name = "NAME=LEVEL")]
        sources: Vec<String>,
        /// Where.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Drop a graph that was created, with its files; nothing brings it back
    Drop {
        /// Its name
        name: String,
        /// Do not ask whether it is meant; needed where nobody can be asked
        #[arg(long)]
        yes: bool,
        /// Where.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List the graphs
    List {
        /// Where.
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// `mangrove queries`.
#[derive(Args, Debug)]
pub struct QueriesArgs {
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `mangrove kill`.
#[derive(Args, Debug)]
pub struct KillArgs {
    /// Its number, as `mangrove queries` shows it
    #[arg(value_parser = query_number)]
    pub id: u64,
    /// Where.
    #[command(flatten)]
    pub server: ServerArgs,
}

fn query_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a query is named by its number, as `mangrove queries` shows it".to_owned())
}

/// `mangrove user`.
#[derive(Subcommand, Debug)]
pub enum UserCommand {
    /// Add a user; the file is made if it is not there
    Add {
        /// The name
        name: String,
        /// A role on a graph, as in books=read; `*` is every graph that is not named; may be given several times
        #[arg(long = "role", value_name = "GRAPH=ROLE")]
        roles: Vec<String>,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// Remove a user
    Remove {
        /// The name
        name: String,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// List the users and their roles
    List {
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
        /// How to print them
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Change a user's password
    Passwd {
        /// The name
        name: String,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// Give a user roles: read, write or admin, or `none` to take one away
    Grant {
        /// The name
        name: String,
        /// The roles
        #[arg(required = true, value_name = "GRAPH=ROLE")]
        roles: Vec<String>,
        /// Where.
        #[command(flatten)]
        file: UsersFileArgs,
    },
}

/// Which users.
#[derive(Args, Debug)]
pub struct UsersFileArgs {
    /// The users file
    #[arg(long, value_name = "FILE", env = "MANGROVE_USERS_FILE")]
    pub file: PathBuf,
}
