//! The command lines of `mangrove graph`, `queries`, `kill`, `promote` and `user`: what an administrator does to a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::ResultFormat;
use crate::quantity::Size;

pub const GRAPH_HELP: &str = "\
Examples:
  mangrove graph create --url ws://127.0.0.1:8182/gremlin books
  mangrove graph list --url ws://127.0.0.1:8182/gremlin
  mangrove graph drop --url ws://127.0.0.1:8182/gremlin books --yes

A new graph has the traversal sources NAME (serializable) and NAMEsi (snapshot isolation). It is kept in
the server's graphs_dir, or in memory with --memory. Scripts do the same with
g.call('mangrove.graph.create').";

pub const USER_HELP: &str = "\
--file is the file that the server's setting users_file names. A running server notices a change within
a second. Passwords are read from standard input (if it is a terminal, with a prompt) and kept as
Argon2 hashes. A role is read, write or admin.

Examples:
  mangrove user add --file users.toml ada --role '*=admin'
  mangrove user add --file users.toml web --role books=read --role carts=write <password.txt
  mangrove user grant --file users.toml web books=none
  mangrove user passwd --file users.toml ada
  mangrove user list --file users.toml";

/// The server of a command.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// The URL of the server, as in ws://127.0.0.1:8182/gremlin
    #[arg(long, value_name = "URL", env = "MANGROVE_URL")]
    pub url: String,

    /// How to print the answer
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub format: ResultFormat,
}

/// `mangrove graph`.
#[derive(Subcommand, Debug)]
pub enum GraphCommand {
    /// Create a graph
    Create {
        /// Its name: a letter, then letters, digits and underscores
        name: String,
        /// Keep it in memory only: it ends with the server
        #[arg(long)]
        memory: bool,
        /// Refuse writes while it uses this much memory, as in 4GiB [default: the server's memory_limit]
        #[arg(long, value_name = "SIZE")]
        memory_limit: Option<Size>,
        /// A traversal source and its isolation level, serializable or snapshot; may be given several times [default:
        /// NAME=serializable and NAMEsi=snapshot]
        #[arg(long = "source", value_name = "NAME=LEVEL")]
        sources: Vec<String>,
        /// The server.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Drop a graph with all its files; it cannot be restored
    Drop {
        /// Its name
        name: String,
        /// Do not ask for confirmation; required if standard input is not a terminal
        #[arg(long)]
        yes: bool,
        /// The server.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List the graphs
    List {
        /// The server.
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// `mangrove queries`.
#[derive(Args, Debug)]
pub struct QueriesArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `mangrove kill`.
#[derive(Args, Debug)]
pub struct KillArgs {
    /// The number of the query, as `mangrove queries` shows it
    #[arg(value_parser = query_number)]
    pub id: u64,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

fn query_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a query is named by its number, as `mangrove queries` shows it".to_owned())
}

const PROMOTE_HELP: &str = "\
The server runs with --follow. The owner before it acknowledges no further commit and serves no more
reads, whether it has died, hangs, or runs. Clients of this server go on, and may write.

Examples:
  mangrove serve --follow s3://graphs/social
  mangrove promote --url ws://127.0.0.1:8182/gremlin";

/// `mangrove promote`.
#[derive(Args, Debug)]
#[command(after_help = PROMOTE_HELP)]
pub struct PromoteArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `mangrove user`.
#[derive(Subcommand, Debug)]
pub enum UserCommand {
    /// Add a user; creates the file if needed
    Add {
        /// The name
        name: String,
        /// A role on a graph: read, write or admin, as in books=read. `*` stands for every graph that has no role of
        /// its own; may be given several times
        #[arg(long = "role", value_name = "GRAPH=ROLE")]
        roles: Vec<String>,
        /// The users file.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// Remove a user
    Remove {
        /// The name
        name: String,
        /// The users file.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// List the users and their roles
    List {
        /// The users file.
        #[command(flatten)]
        file: UsersFileArgs,
        /// How to print the users
        #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
        format: ResultFormat,
    },
    /// Change a user's password
    Passwd {
        /// The name
        name: String,
        /// The users file.
        #[command(flatten)]
        file: UsersFileArgs,
    },
    /// Change roles of a user: read, write, admin, or `none` to remove one
    Grant {
        /// The name
        name: String,
        /// The roles
        #[arg(required = true, value_name = "GRAPH=ROLE")]
        roles: Vec<String>,
        /// The users file.
        #[command(flatten)]
        file: UsersFileArgs,
    },
}

/// The users file of a command.
#[derive(Args, Debug)]
pub struct UsersFileArgs {
    /// The users file
    #[arg(long, value_name = "FILE", env = "MANGROVE_USERS_FILE")]
    pub file: PathBuf,
}
