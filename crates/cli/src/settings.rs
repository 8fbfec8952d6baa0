//! Every setting of `mangrove serve`, in one table.
//!
//! A line of [`SETTINGS`] is a key of the configuration file, a flag and an environment variable at once: `query_time`
//! would be `query_time = …`, `--query-time …` and `MANGROVE_QUERY_TIME=…`. Values are texts until the line's field
//! reads them, so the three ways take the same and refuse the same. Whoever adds a setting adds a line and a field of
//! [`Options`]. What values there are is in [`field`].

mod field;

use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use mangrove::{Database, DurabilityOptions, Error, Result, Settings, Value};
use mangrove_server::{Config, EngineLimits};

use self::field::Field;
pub use self::field::{memory_limit, quoted};
use crate::quantity::Size;

/// Everything that can be set, but for the graphs.
#[derive(Debug)]
pub struct Options {
    /// The server.
    pub server: Config,
    /// What queries and graphs may take.
    pub engine: EngineLimits,
    /// Where the main graph lives.
    pub data: Option<String>,
    /// How to read what is loaded into it.
    pub map: Option<PathBuf>,
    /// Where graphs that administrators create are kept.
    pub graphs_dir: Option<PathBuf>,
    /// How much memory the process may use for graphs, queries and messages together.
    pub memory_budget: Option<Size>,
    /// How much memory a graph may use.
    pub memory_limit: Option<Size>,
    /// Log and checkpoints of graphs in directories.
    pub durability: DurabilityOptions,
    /// What every graph has from its start on of what `mangrove config set` changes while it runs.
    pub graph_settings: GraphSettings,
    /// The certificate, with its key to be used together.
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's key.
    pub tls_key: Option<PathBuf>,
    /// Who may come in.
    pub users_file: Option<PathBuf>,
    /// Where the audit log goes, if not to the log.
    pub audit: Option<PathBuf>,
    /// What is logged.
    pub log: String,
    /// In which form.
    pub log_format: LogFormat,
}

/// Settings of graphs, which last as long as the process: what is to be so at every start is said at every start.
#[derive(Clone, Debug)]
pub struct GraphSettings {
    /// Whether garbage is collected.
    pub garbage_collection: bool,
    /// By how many threads.
    pub gc_workers: u64,
    /// How old a snapshot may get that holds garbage back; 0: any age.
    pub max_snapshot_age_ms: u64,
    /// How much memory recent commits may take that serializable transactions are checked against.
    pub commit_history_bytes: u64,
    /// Where `io()` finds its files.
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
    /// Sets them.
    pub fn apply(&self, database: &Database) -> Result<()> {
        self.apply_some(database, |_| true)?;
        database.set_io_directory(self.io_directory.as_deref())
    }

    /// Sets those of these names that may change while the graph is in use.
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
            data: None,
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
    /// What its value is, in capitals.
    value: &'static str,
    summary: &'static str,
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

/// All settings, as they are shown.
pub const SETTINGS: &[Setting] = settings! {
    "listen" "ADDRESS" server.listen: "Address and port; port 0 takes a free one";
    "allow_remote" "BOOL" server.allow_remote: "Listen where other machines can reach it although it lacks TLS or users";
    "data" "DIR" data: "The directory the main graph is kept in; `memory:` is a new, empty graph";
    "map" "FILE" map: "What the columns of loaded tables mean, where their headers do not say";
    "graphs_dir" "DIR" graphs_dir: "Where graphs that administrators create are kept";
    "io_directory" "DIR" graph_settings.io_directory:
        "Where `g.io(…)` reads and writes files, and nowhere else; without it, io() is refused";
    "tls_certificate" "FILE" tls_certificate: "The certificate chain (PEM); with it, only TLS is spoken";
    "tls_key" "FILE" tls_key: "The certificate's private key (PEM)";
    "users_file" "FILE" users_file: "Who may come in, as `mangrove user` writes it";
    "login_failures_user_max" "COUNT" server.lockout.user_max:
        "Wrong logins for one name before further ones are refused unseen";
    "login_failures_address_max" "COUNT" server.lockout.address_max:
        "Wrong logins from one address before further ones are refused unseen";
    "login_lockout" "TIME" server.lockout.lasts: "For how long after the last wrong one; 0s: never";
    "allowed_origins" "ORIGINS" server.browsers.allowed_origins:
        "Pages that browsers may ask from, beside the server's own: http://localhost:5173,https://…; `*`: every page";
    "allowed_hosts" "NAMES" server.browsers.allowed_hosts:
        "Names the server may be asked by; none: loopback names on a loopback address, any elsewhere";
    "memory_budget" "SIZE" memory_budget:
        "Refuse work while graphs, queries and messages use this much memory; not set: 3/4 of the machine's or control group's";
    "memory_limit" "SIZE" memory_limit: "Refuse writes while a graph uses this much memory";
    "log_segment_size" "SIZE" durability.log.segment_bytes_max:
        "How large files of the log grow in a graph's directory: from 1MiB on each is twice the one before; at most 1GiB";
    "checkpoint_log_size" "SIZE" durability.checkpoint_log_bytes:
        "Take a checkpoint when the log has grown by so much (a shorter one is recovered faster); 0: never for that";
    "checkpoint_interval" "TIME" durability.checkpoint_after:
        "Take a checkpoint, too, when so much time has passed since the last one and something was committed";
    "garbage_collection" "BOOL" graph_settings.garbage_collection: "Collect old versions and what was deleted";
    "gc_workers" "COUNT" graph_settings.gc_workers: "How many threads a graph has for that, at most 16";
    "max_snapshot_age_ms" "COUNT" graph_settings.max_snapshot_age_ms:
        "How old a snapshot may get that holds garbage back; 0: any age";
    "commit_history_bytes" "SIZE" graph_settings.commit_history_bytes:
        "Memory a graph for what recent commits wrote; above it the oldest serializable transactions cannot commit";
    "graph_count_max" "COUNT" engine.graph_count_max: "Graphs at once";
    "evaluation_timeout" "TIME" server.limits.evaluation_timeout: "How long a query may run, if its request names no time";
    "evaluation_timeout_max" "TIME" server.limits.evaluation_timeout_max:
        "The longest time a request may name; 0 in a request means this; `none`: no limit";
    "query_memory_limit" "SIZE" engine.query_memory_bytes: "How much memory one query may hold at a time";
    "result_count_max" "COUNT" engine.result_count_max: "How many results a query may have";
    "result_bytes_max" "SIZE" server.limits.result_bytes_max: "About how many bytes one result may have";
    "held_result_bytes_max" "SIZE" server.limits.held_result_bytes_max: "About how many bytes results that are held back may take";
    "held_result_count_max" "COUNT" server.limits.held_result_count_max:
        "Results that a request that writes may hold back until its commit";
    "worker_count_max" "COUNT" server.limits.worker_count_max: "Queries at once";
    "conflict_retry_count_max" "COUNT" server.limits.conflict_retry_count_max:
        "How often a request is run again after a conflict";
    "connection_count_max" "COUNT" server.limits.connection_count_max: "Connections at once";
    "connection_count_address_max" "COUNT" server.limits.connection_count_address_max:
        "Of those, connections of one address (of IPv6 a network of 64 bits): raise it behind a proxy";
    "connection_count_user_max" "COUNT" server.limits.connection_count_user_max: "Of those, WebSockets of one user";
    "in_flight_count_max" "COUNT" server.limits.in_flight_count_max: "Requests of one connection at once";
    "message_bytes_max" "SIZE" server.limits.message_bytes_max: "The size of a request";
    "body_bytes_max" "SIZE" server.limits.body_bytes_max: "The size of the body of an HTTP request";
    "body_timeout" "TIME" server.limits.body_timeout: "How long the body of an HTTP request may take to arrive";
    "batch_bytes_max" "SIZE" server.limits.batch_bytes_max: "About how many bytes of results a response holds";
    "batch_size" "COUNT" server.limits.batch_size: "Results in one message, unless the request says otherwise";
    "batch_size_max" "COUNT" server.limits.batch_size_max: "The largest batch a request may ask for";
    "outgoing_count_max" "COUNT" server.limits.outgoing_count_max:
        "Messages that wait for a slow client before its queries do";
    "write_stall_max" "TIME" server.limits.write_stall_max: "How long a client may take none of an answer";
    "ping_interval" "TIME" server.limits.ping_interval: "How often a client is asked whether it is still there";
    "silence_max" "TIME" server.limits.silence_max: "How long a client may be silent, answers to pings included";
    "handshake_timeout" "TIME" server.limits.handshake_timeout: "How long a TLS handshake may take";
    "header_timeout" "TIME" server.limits.header_timeout: "How long the head of an HTTP request may take";
    "authentication_timeout" "TIME" server.limits.authentication_timeout:
        "How long a client may take to prove who it is";
    "login_bytes_max" "SIZE" server.limits.login_bytes_max:
        "How much a client may send over a WebSocket before it has logged in";
    "session_count_max" "COUNT" server.limits.session_count_max: "Sessions at once";
    "session_count_address_max" "COUNT" server.limits.session_count_address_max: "Of those, sessions of one address";
    "session_count_user_max" "COUNT" server.limits.session_count_user_max:
        "Of those, sessions of one user, where users log in";
    "session_idle_max" "TIME" server.limits.session_idle_max: "How long a session may be idle";
    "session_remembered_min" "TIME" server.limits.session_remembered_min:
        "How long the name of a session that expired is refused at least";
    "closing_seconds" "SECONDS" server.limits.closing_min:
        "How long a server that is asked to stop serves on while /health says `closing`, for a load balancer to notice";
    "drain_seconds" "SECONDS" server.limits.drain_max: "How long queries may go on when the server is asked to stop";
    "slow_query" "TIME" engine.slow_query: "Log queries that take longer, with their plans";
    "audit" "FILE" audit: "Write the audit log to a file of its own, an object of JSON a line";
    "log" "FILTER" log: "What is logged: info, debug, mangrove_audit=off, …";
    "log_format" "FORMAT" log_format: "text, or json: an object a line";
};

/// Settings that count as soon as they are read again: for requests, of some of them connections, that begin after that.
const AT_ONCE: [&str; 33] = [
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

/// What the names of our variables of the environment begin with.
const PREFIX: &str = "MANGROVE_";

/// Variables that are no settings: those of `serve` itself, and of commands that ask a server.
const OTHER_VARIABLES: [&str; 6] =
    ["MANGROVE_CONFIG", "MANGROVE_USERS", "MANGROVE_URL", "MANGROVE_USER", "MANGROVE_PASSWORD", "MANGROVE_TLS_CA"];

/// Variables of the environment that look like ours and mean nothing. One whose name is near a setting's is an error: a
/// limit that is misspelt does not count.
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

/// Returns true if a variable of the environment has its meaning, or is one of those that Kubernetes sets for a service named
/// `mangrove`.
fn is_known(name: &str) -> bool {
    let is_of_kubernetes =
        name.starts_with("MANGROVE_SERVICE_") || name == "MANGROVE_PORT" || name.starts_with("MANGROVE_PORT_");
    is_of_kubernetes || OTHER_VARIABLES.contains(&name) || SETTINGS.iter().any(|setting| setting.variable() == name)
}

impl Setting {
    /// The setting of a key in the file; an unknown one is an error that names the nearest.
    pub fn find(name: &str, further: &[&str]) -> Result<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let names = SETTINGS.iter().map(|setting| setting.name).chain(further.iter().copied());
            let hint = mangrove_gremlin::suggest(name, names);
            Error::invalid(format!("there is no setting `{name}` (`mangrove serve --print-config` shows all){hint}"))
        })
    }

    /// Returns true if a new value counts when the server reads its settings again (SIGHUP), and not after a restart only.
    pub fn counts_at_once(&self) -> bool {
        AT_ONCE.contains(&self.name)
    }

    /// Changes it.
    pub fn set(&self, options: &mut Options, text: &str) -> Result<(), String> {
        (self.field)(options).read(text)
    }

    /// Its value as the configuration file has it; `None` where nothing is set.
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
        let default = self.show(&mut Options::new(crate::config::LISTEN_DEFAULT));
        let default = default.map_or_else(String::new, |value| format!(" [default: {}]", value.trim_matches('"')));
        let arg = Arg::new(self.name)
            .long(self.flag())
            .env(self.variable())
            .value_name(self.value)
            .help(format!("{}{default}", self.summary))
            .action(ArgAction::Set);
        let setting = SETTINGS.iter().find(|setting| setting.name == self.name).expect("it is one of them");
        // Looked at here, so that a mistake is the command line's, with its exit code.
        let arg = arg.value_parser(move |text: &str| {
            setting.set(&mut Options::new(crate::config::LISTEN_DEFAULT), text).map(|()| text.to_owned())
        });
        if self.value == "BOOL" {
            return arg.num_args(0..=1).require_equals(true).default_missing_value("true");
        }
        arg
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
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

/// What the command line and the environment set.
#[derive(Clone, Debug, Default)]
pub struct Given(pub Vec<(&'static Setting, String, Origin)>);

impl Given {
    /// What the environment sets.
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
            let mut options = Options::new(crate::config::LISTEN_DEFAULT);
            let Some(shown) = setting.show(&mut options) else { continue };
            setting.set(&mut options, shown.trim_matches('"')).unwrap_or_else(|e| panic!("{}: {e}", setting.name));
            assert_eq!(setting.show(&mut options), Some(shown), "{}", setting.name);
        }
    }

    #[test]
    fn the_manual_has_every_setting_as_it_is() {
        let mut table = String::from("| key | default | what it is |\n|---|---|---|\n");
        for setting in SETTINGS {
            let default = setting.show(&mut Options::new(crate::config::LISTEN_DEFAULT));
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
        let mut options = Options::new(crate::config::LISTEN_DEFAULT);
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
