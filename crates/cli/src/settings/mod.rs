//! Every setting of `mangrove serve`, in one table.
//!
//! A line of [`SETTINGS`] is a key of the configuration file, a flag and an environment variable at once: `query_time`
//! would be `query_time = …`, `--query-time …` and `MANGROVE_QUERY_TIME=…`. A value is text until the field of its line
//! reads it, so all three accept and refuse the same texts. To add a setting, add a line here and a field to
//! [`Options`]. [`field`] has the types of values. The table in docs/operations.md is made from this one, by a test.

mod field;

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use mangrove::{Database, DurabilityOptions, Error, ExecutorOptions, Result, Settings, Value};
use mangrove_server::{Config, EngineLimits};

use self::field::Field;
pub use self::field::{memory_limit, quoted};
use crate::quantity::Size;

/// The default address to listen on, with the port of Gremlin Server.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8182);

/// All settings but the named graphs.
#[derive(Debug)]
pub struct Options {
    /// The server.
    pub server: Config,
    /// Limits of queries and graphs.
    pub engine: EngineLimits,
    /// The executors of the process.
    pub executors: ExecutorOptions,
    /// The directory of the main graph, or its address.
    pub data: Option<String>,
    /// The address of the main graph, if its owner is to be followed.
    pub follow: Option<String>,
    /// The etcd in which the owner of each graph at an address is elected.
    pub cluster: Option<String>,
    /// The URL of this server, for others of the cluster.
    pub advertise: Option<String>,
    /// The mapping for files that are loaded into it.
    pub map: Option<PathBuf>,
    /// The directory of the graphs that administrators create.
    pub graphs_dir: Option<PathBuf>,
    /// The memory budget of graphs, queries and messages together, in bytes.
    pub memory_budget: Option<Size>,
    /// The memory limit of each graph, in bytes.
    pub memory_limit: Option<Size>,
    /// Log and checkpoints of graphs in directories.
    pub durability: DurabilityOptions,
    /// Settings that every graph starts with, and that `mangrove config set` changes while it runs.
    pub graph_settings: GraphSettings,
    /// The certificate. It needs `tls_key`.
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's key.
    pub tls_key: Option<PathBuf>,
    /// The users file.
    pub users_file: Option<PathBuf>,
    /// The file of the audit log; `None`: it is part of the log.
    pub audit: Option<PathBuf>,
    /// The log filter.
    pub log: String,
    /// The form of the log.
    pub log_format: LogFormat,
}

/// Settings of graphs that can change while the process runs. A change lasts until the process ends.
#[derive(Clone, Debug)]
pub struct GraphSettings {
    /// True if garbage is collected.
    pub garbage_collection: bool,
    /// Collector threads per graph.
    pub gc_workers: u64,
    /// The age in milliseconds at which a snapshot that keeps garbage alive is ended; 0: never.
    pub max_snapshot_age_ms: u64,
    /// Bytes of history of recent commits, against which serializable transactions are checked.
    pub commit_history_bytes: u64,
    /// The directory of `io()`.
    pub io_directory: Option<PathBuf>,
}

impl Default for GraphSettings {
    fn default() -> Self {
        let Settings { garbage_collection, gc_workers, max_snapshot_age_ms, commit_history_bytes, .. } =
            Settings::default();
        GraphSettings {
            garbage_collection: garbage_collection.into_inner(),
            gc_workers: gc_workers.into_inner() as u64,
            max_snapshot_age_ms: max_snapshot_age_ms.into_inner(),
            commit_history_bytes: commit_history_bytes.into_inner(),
            io_directory: None,
        }
    }
}

impl GraphSettings {
    /// Applies all settings to a database.
    pub fn apply(&self, database: &Database) -> Result<()> {
        self.apply_some(database, |_| true)?;
        database.set_io_directory(self.io_directory.as_deref())
    }

    /// Applies the settings whose names `is_meant` selects, while the graph is in use. The directory of `io()` is none
    /// of them.
    pub fn apply_some(&self, database: &Database, is_meant: impl Fn(&str) -> bool) -> Result<()> {
        let number = |n: u64| Value::I64(n.try_into().unwrap_or(i64::MAX));
        let settings = [
            ("garbage_collection", Value::Bool(self.garbage_collection)),
            ("gc_workers", number(self.gc_workers)),
            ("max_snapshot_age_ms", number(self.max_snapshot_age_ms)),
            ("commit_history_bytes", number(self.commit_history_bytes)),
        ];
        let mut meant = settings.iter().filter(|(name, _)| is_meant(name));
        meant.try_for_each(|(name, value)| database.configure(name, value).map(drop))
    }
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

impl Options {
    /// The defaults.
    pub fn new(listen: SocketAddr) -> Self {
        Options {
            server: Config::new(listen),
            engine: EngineLimits::default(),
            executors: ExecutorOptions::default(),
            data: None,
            follow: None,
            cluster: None,
            advertise: None,
            map: None,
            graphs_dir: None,
            memory_budget: None,
            memory_limit: None,
            durability: DurabilityOptions::default(),
            graph_settings: GraphSettings::default(),
            tls_certificate: None,
            tls_key: None,
            users_file: None,
            audit: None,
            log: "info".to_owned(),
            log_format: LogFormat::Text,
        }
    }
}

/// A setting.
pub struct Setting {
    /// Its key in the configuration file.
    pub name: &'static str,
    /// The placeholder of its value in `--help`.
    value: &'static str,
    summary: &'static str,
    /// The field of the options that holds its value.
    field: fn(&mut Options) -> &mut dyn Field,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! settings {
    ($($name:literal $value:literal $($field:ident).+ : $summary:literal;)*) => {
        &[$(Setting {
            name: $name,
            value: $value,
            summary: $summary,
            field: |options| &mut options.$($field).+,
        }),*]
    };
}

/// All settings, in the order in which they are shown.
pub const SETTINGS: &[Setting] = settings! {
    "listen" "ADDRESS" server.listen: "Address and port to listen on; port 0 takes a free port";
    "allow_remote" "BOOL" server.allow_remote: "Listen on an address that other machines can reach, although TLS or users are not set up";
    "data" "DIR" data:
        "The directory of the main graph, or its address, as s3://BUCKET/DIRECTORY; `memory:` is a new, empty graph that \
         ends with the process";
    "follow" "ADDRESS" follow:
        "The address of the main graph, as s3://BUCKET/DIRECTORY, if another server is its owner: this one follows it, \
         serves reads, and becomes the owner when it is told to (`mangrove promote`, or the signal SIGUSR1)";
    "cluster" "ADDRESS" cluster:
        "The etcd, as etcd://HOST:PORT,HOST:PORT, in which servers elect the owner of each graph whose `data` is an address; \
         the others follow it, and one of them becomes the owner when it ends";
    "advertise" "URL" advertise: "The URL of this server, for the others of the cluster; not set: that of `listen`";
    "map" "FILE" map: "A mapping: what the columns of loaded tables mean, if their headers do not say it";
    "graphs_dir" "DIR" graphs_dir: "The directory of the graphs that administrators create";
    "io_directory" "DIR" graph_settings.io_directory:
        "The only directory in which `g.io(…)` reads and writes files; without it, io() is refused";
    "tls_certificate" "FILE" tls_certificate: "The certificate chain (PEM). If it is set, the server accepts TLS only";
    "tls_key" "FILE" tls_key: "The certificate's private key (PEM)";
    "users_file" "FILE" users_file: "The file of users, as `mangrove user` writes it; without it, no login is needed";
    "login_failures_user_max" "COUNT" server.lockout.user_max:
        "Wrong logins for one name after which further ones are refused without a check";
    "login_failures_address_max" "COUNT" server.lockout.address_max:
        "Wrong logins from one address after which further ones are refused without a check";
    "login_lockout" "TIME" server.lockout.lasts: "How long after the last wrong login they are refused; 0s: never";
    "allowed_origins" "ORIGINS" server.browsers.allowed_origins:
        "Origins of web pages that may send requests, besides the server's own: http://localhost:5173,https://…; `*`: \
         every page";
    "allowed_hosts" "NAMES" server.browsers.allowed_hosts:
        "Host names that requests may be addressed to; not set: loopback names on a loopback address, any name \
         elsewhere";
    "memory_budget" "SIZE" memory_budget:
        "Refuse work while graphs, queries and messages use this much memory; not set: 3/4 of the machine's or control \
         group's";
    "memory_limit" "SIZE" memory_limit: "Refuse writes to a graph while it uses this much memory";
    "log_segment_size" "SIZE" durability.log.segment_bytes_max:
        "The largest size of a log file, at most 1GiB; the first has 1MiB, and each is twice as large as the one \
         before";
    "feed" "CONTENT" durability.log.feed:
        "What the log has for the change feed: `off`; `after`, the changes; `full`, also the values before";
    "log_keep" "SIZE" durability.log.keep_bytes:
        "Keep log files up to this size for readers of the change feed, although a checkpoint has what is in them";
    "checkpoint_log_size" "SIZE" durability.checkpoint_log_bytes:
        "Take a checkpoint when the log has grown by this size; a shorter log is recovered faster; `none`: a quarter of \
         the checkpoint's size, at least 64MiB; 0: never";
    "checkpoint_interval" "TIME" durability.checkpoint_after:
        "Take a checkpoint also when this time has passed since the last one and something was committed";
    "log_interval" "TIME" durability.object_log.log_interval:
        "In a home of objects: the time between two puts of the log at least. Commits take that much longer, and requests \
         cost less";
    "log_puts_per_second_max" "COUNT" durability.object_log.puts_per_second:
        "In a home of objects: the most puts of the log a second; `none`: any number";
    "read_lease" "TIME" durability.object_log.lease:
        "In a home of objects: how long a proof that no other process has opened the graph holds for reads. The same for \
         all processes that open the graph";
    "reads_without_home" "BOOL" durability.object_log.reads_without_home:
        "In a home of objects that does not answer: serve reads without that proof";
    "retain_for" "TIME" durability.retention.retain_for:
        "In a home of objects: every moment of this time can be restored; what only older moments need is deleted with \
         the next checkpoint";
    "retain_at_least" "COUNT" durability.retention.retain_at_least:
        "In a home of objects: keep so many checkpoints, although they are older; at least 2";
    "open_columns" "BOOL" durability.open_columns:
        "Write the elements of each label as a Parquet file with every checkpoint";
    "garbage_collection" "BOOL" graph_settings.garbage_collection: "Collect old versions and deleted elements";
    "gc_workers" "COUNT" graph_settings.gc_workers: "Collector threads per graph, at most 16";
    "max_snapshot_age_ms" "COUNT" graph_settings.max_snapshot_age_ms:
        "The age in milliseconds at which a snapshot that keeps garbage alive is ended; 0: never";
    "commit_history_bytes" "SIZE" graph_settings.commit_history_bytes:
        "Memory per graph for the history of recent commits; above it, the oldest serializable transactions cannot \
         commit";
    "graph_count_max" "COUNT" engine.graph_count_max: "The most graphs";
    "evaluation_timeout" "TIME" server.limits.evaluation_timeout: "How long a query may run if its request names no time";
    "evaluation_timeout_max" "TIME" server.limits.evaluation_timeout_max:
        "The longest time that a request may name, and what 0 in a request means; `none`: no limit";
    "query_memory_limit" "SIZE" engine.query_memory_bytes: "The most memory of one query";
    "result_count_max" "COUNT" engine.result_count_max: "The most results of a query";
    "result_bytes_max" "SIZE" server.limits.result_bytes_max: "The largest size of one result, about";
    "held_result_bytes_max" "SIZE" server.limits.held_result_bytes_max: "The largest size of the results that a writing request holds back until its commit, about";
    "held_result_count_max" "COUNT" server.limits.held_result_count_max:
        "The most results that a writing request holds back until its commit";
    "worker_count_max" "COUNT" server.limits.worker_count_max: "The most queries that run at once";
    "executor_count" "COUNT" executors.count:
        "Threads on which queries take turns that are not over soon, at most 1024; 0: one for each core";
    "executor_nice" "COUNT" executors.nice:
        "By how much the nice value of these threads is higher than that of the process, at most 19, so that light \
         queries go before heavy ones; 0: not at all";
    "tenant_weights" "WEIGHTS" engine.tenant_weights:
        "Shares of busy executors, 100 for each tenant that is not named, as in user/ada=300,user/web=50; on a server \
         without users graph/NAME=…; tenant/NAME=… for a tenant that traversals name";
    "conflict_retry_count_max" "COUNT" server.limits.conflict_retry_count_max:
        "How often a request is retried after a conflict";
    "connection_count_max" "COUNT" server.limits.connection_count_max: "The most connections";
    "connection_count_address_max" "COUNT" server.limits.connection_count_address_max:
        "The most connections of one address (for IPv6, of a /64 network); raise it behind a proxy";
    "connection_count_user_max" "COUNT" server.limits.connection_count_user_max: "The most WebSockets of one user";
    "in_flight_count_max" "COUNT" server.limits.in_flight_count_max: "The most requests of one connection that run at once";
    "message_bytes_max" "SIZE" server.limits.message_bytes_max: "The largest size of a request";
    "body_bytes_max" "SIZE" server.limits.body_bytes_max: "The largest size of the body of an HTTP request";
    "body_timeout" "TIME" server.limits.body_timeout: "How long the body of an HTTP request may take to arrive";
    "batch_bytes_max" "SIZE" server.limits.batch_bytes_max: "The largest size of the results in one response, about";
    "batch_size" "COUNT" server.limits.batch_size: "Results in one message, if the request does not say it";
    "batch_size_max" "COUNT" server.limits.batch_size_max: "The most results in one message that a request may ask for";
    "outgoing_count_max" "COUNT" server.limits.outgoing_count_max:
        "How many messages wait for a slow client before its queries pause";
    "write_stall_max" "TIME" server.limits.write_stall_max: "How long a client may read nothing of an answer";
    "ping_interval" "TIME" server.limits.ping_interval: "The time between two pings of a client";
    "silence_max" "TIME" server.limits.silence_max: "How long a client may send nothing, not even an answer to a ping";
    "handshake_timeout" "TIME" server.limits.handshake_timeout: "How long a TLS handshake may take";
    "header_timeout" "TIME" server.limits.header_timeout: "How long the head of an HTTP request may take to arrive";
    "authentication_timeout" "TIME" server.limits.authentication_timeout:
        "How long a client may take to log in";
    "login_bytes_max" "SIZE" server.limits.login_bytes_max:
        "The most bytes that a client may send over a WebSocket before it has logged in";
    "session_count_max" "COUNT" server.limits.session_count_max: "The most sessions";
    "session_count_address_max" "COUNT" server.limits.session_count_address_max: "The most sessions of one address";
    "session_count_user_max" "COUNT" server.limits.session_count_user_max:
        "The most sessions of one user, if users log in";
    "session_idle_max" "TIME" server.limits.session_idle_max: "How long a session may be idle before it expires";
    "session_remembered_min" "TIME" server.limits.session_remembered_min:
        "The shortest time for which the id of an expired session is refused";
    "closing_seconds" "SECONDS" server.limits.closing_min:
        "How long a server that was told to stop continues to serve while /health says `closing`, so that a load \
         balancer notices";
    "drain_seconds" "SECONDS" server.limits.drain_max: "How long running queries may continue after the server was told to stop";
    "slow_query" "TIME" engine.slow_query: "Log queries that take longer than this, with their plans; `none`: no query";
    "audit" "FILE" audit: "Write the audit log to this file, one JSON object a line";
    "log" "FILTER" log: "The log filter: info, debug, mangrove_audit=off, …";
    "log_format" "FORMAT" log_format: "The form of the log: text, or json (one object a line)";
};

/// Settings that a running server can change at SIGHUP. They apply to requests (some of them to connections) that begin
/// afterwards.
const AT_ONCE: [&str; 34] = [
    "memory_budget",
    "memory_limit",
    "garbage_collection",
    "gc_workers",
    "max_snapshot_age_ms",
    "commit_history_bytes",
    "evaluation_timeout",
    "evaluation_timeout_max",
    "query_memory_limit",
    "result_count_max",
    "tenant_weights",
    "result_bytes_max",
    "held_result_bytes_max",
    "held_result_count_max",
    "conflict_retry_count_max",
    "in_flight_count_max",
    "message_bytes_max",
    "body_bytes_max",
    "body_timeout",
    "batch_bytes_max",
    "batch_size",
    "batch_size_max",
    "outgoing_count_max",
    "write_stall_max",
    "ping_interval",
    "silence_max",
    "handshake_timeout",
    "header_timeout",
    "authentication_timeout",
    "login_bytes_max",
    "session_idle_max",
    "closing_seconds",
    "drain_seconds",
    "slow_query",
];

/// The prefix of our environment variables.
const PREFIX: &str = "MANGROVE_";

/// Environment variables that are not settings: those of `serve` itself, and of commands that connect to a server.
const OTHER_VARIABLES: [&str; 6] =
    ["MANGROVE_CONFIG", "MANGROVE_USERS", "MANGROVE_URL", "MANGROVE_USER", "MANGROVE_PASSWORD", "MANGROVE_TLS_CA"];

/// Environment variables with our prefix that mean nothing. One whose name is like that of a setting is an error,
/// because a misspelt limit would not apply.
pub fn unknown_variables() -> Result<Vec<String>> {
    let mut unknown = Vec::new();
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let Some(rest) = name.strip_prefix(PREFIX).filter(|_| !is_known(name)) else { continue };
        let hint = mangrove_gremlin::suggest(rest, SETTINGS.iter().map(|setting| setting.name));
        if !hint.is_empty() {
            return Err(Error::invalid(format!("the environment has {name}, and there is no such setting{hint}")));
        }
        unknown.push(name.to_owned());
    }
    unknown.sort();
    Ok(unknown)
}

/// Returns true if an environment variable has a meaning, or is one that Kubernetes sets for a service named
/// `mangrove`.
fn is_known(name: &str) -> bool {
    let is_of_kubernetes =
        name.starts_with("MANGROVE_SERVICE_") || name == "MANGROVE_PORT" || name.starts_with("MANGROVE_PORT_");
    is_of_kubernetes || OTHER_VARIABLES.contains(&name) || SETTINGS.iter().any(|setting| setting.variable() == name)
}

impl Setting {
    /// Finds the setting of a key. For an unknown key, the error names the nearest.
    pub fn find(name: &str, further: &[&str]) -> Result<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let names = SETTINGS.iter().map(|setting| setting.name).chain(further.iter().copied());
            let hint = mangrove_gremlin::suggest(name, names);
            Error::invalid(format!("there is no setting `{name}` (`mangrove serve --print-config` shows all){hint}"))
        })
    }

    /// Returns true if a new value takes effect at SIGHUP, without a restart.
    pub fn counts_at_once(&self) -> bool {
        AT_ONCE.contains(&self.name)
    }

    /// Sets the value from text.
    pub fn set(&self, options: &mut Options, text: &str) -> Result<(), String> {
        (self.field)(options).read(text)
    }

    /// The value as the configuration file has it; `None` if it is not set.
    pub fn show(&self, options: &mut Options) -> Option<String> {
        (self.field)(options).show()
    }

    /// Makes a path relative to a folder.
    pub fn resolve(&self, options: &mut Options, folder: &Path) {
        (self.field)(options).resolve(folder);
    }

    fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_ascii_uppercase())
    }

    fn arg(&self) -> Arg {
        let default = self.show(&mut Options::new(LISTEN_DEFAULT));
        let default = default.map_or_else(String::new, |value| format!(" [default: {}]", value.trim_matches('"')));
        let arg = Arg::new(self.name)
            .long(self.flag())
            .env(self.variable())
            .value_name(self.value)
            .help(format!("{}{default}", self.summary))
            .action(ArgAction::Set);
        let setting = SETTINGS.iter().find(|setting| setting.name == self.name).expect("it is one of them");
        // Checked here, so that a mistake is reported as one of the command line, with exit code 2.
        let arg = arg.value_parser(move |text: &str| {
            setting.set(&mut Options::new(LISTEN_DEFAULT), text).map(|()| text.to_owned())
        });
        if self.value == "BOOL" {
            return arg.num_args(0..=1).require_equals(true).default_missing_value("true");
        }
        arg
    }
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File => f.write_str("file"),
            Origin::Environment(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// The settings that the command line and the environment give.
#[derive(Clone, Debug, Default)]
pub struct Given(pub Vec<(&'static Setting, String, Origin)>);

impl Given {
    /// The settings that the environment gives.
    pub fn from_environment() -> Self {
        let given = |setting: &'static Setting| {
            let variable = setting.variable();
            let text = std::env::var(&variable).ok()?;
            Some((setting, text, Origin::Environment(variable)))
        };
        Given(SETTINGS.iter().filter_map(given).collect())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| command.arg(setting.arg()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Given::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Given::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            let Some(text) = matches.get_one::<String>(setting.name) else { continue };
            let origin = match matches.value_source(setting.name) {
                Some(ValueSource::EnvVariable) => Origin::Environment(setting.variable()),
                _ => Origin::Flag(setting.flag()),
            };
            self.0.push((setting, text.clone(), origin));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read_again() {
        for setting in SETTINGS {
            let mut options = Options::new(LISTEN_DEFAULT);
            let Some(shown) = setting.show(&mut options) else { continue };
            setting.set(&mut options, shown.trim_matches('"')).unwrap_or_else(|e| panic!("{}: {e}", setting.name));
            assert_eq!(setting.show(&mut options), Some(shown), "{}", setting.name);
        }
    }

    #[test]
    fn the_manual_has_every_setting_as_it_is() {
        let mut table = String::from("| key | default | what it is |\n|---|---|---|\n");
        for setting in SETTINGS {
            let default = setting.show(&mut Options::new(LISTEN_DEFAULT));
            let default =
                default.map_or_else(|| "not set".to_owned(), |value| format!("`{}`", value.trim_matches('"')));
            let summary = setting.summary.replace('|', "\\|");
            table.push_str(&format!("| `{}` | {default} | {summary} |\n", setting.name));
        }
        crate::manual::check("operations.md", "settings", &table);
    }

    #[test]
    fn settings_that_count_at_once_are_settings() {
        assert_eq!(SETTINGS.iter().filter(|setting| setting.counts_at_once()).count(), AT_ONCE.len());
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_refused() {
        let mut options = Options::new(LISTEN_DEFAULT);
        for (name, value, part) in [
            ("listen", "somewhere", "127.0.0.1:8182"),
            ("connection_count_max", "many", "whole number"),
            ("ping_interval", "none", "cannot be `none`"),
            ("allow_remote", "maybe", "neither true nor false"),
            ("log_format", "xml", "text or json"),
        ] {
            let error = Setting::find(name, &[]).unwrap().set(&mut options, value).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
