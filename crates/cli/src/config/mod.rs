//! The settings and graphs of a server, put together from defaults, a file, the environment and flags. Each of these
//! wins over those before it.
//!
//! [`crate::settings`] has the table of settings. Here are the file, the order of the four sources, and the graphs:
//!
//! - the *main* graph, of `data` and `load`, with the traversal sources `g` and `gsi`;
//! - the *named* graphs of the file, each with the sources it lists, or else NAME and NAMEsi.
//!
//! The main graph exists unless named graphs take its sources and neither `data` nor `load` asks for it.

#[cfg(test)]
mod any_file;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use mangrove::{Error, ErrorKind, ExecutorOptions, IdRule, Isolation, Result, is_home_address};
use mangrove_server::{TlsFiles, UsersSource};
use mangrove_server::{check_graph_name, default_sources, isolation_name, isolation_of};
use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::args::ServeArgs;
use crate::quantity::Size;
use crate::settings::{LISTEN_DEFAULT, Options, Origin, SETTINGS, Setting, memory_limit, quoted};

/// An environment variable with the text of a users file, for systems that have no place for the file.
const USERS_VARIABLE: &str = "MANGROVE_USERS";

/// The name of the main graph.
const MAIN: &str = "main";

/// The sources of the main graph.
const MAIN_SOURCES: [(&str, Isolation); 2] = [("g", Isolation::Serializable), ("gsi", Isolation::Snapshot)];

/// Keys of the file that are not settings.
const LOAD: &str = "load";
const GRAPHS: &str = "graphs";

/// The keys of a table `[graphs.NAME]`.
const GRAPH_KEYS: [&str; 8] = ["data", "follow", "ids", "io_directory", LOAD, "map", "memory_limit", "sources"];

/// The configuration of a server: its settings and its graphs.
#[derive(Debug)]
pub struct Setup {
    /// The settings.
    pub options: Options,
    /// The graphs.
    pub graphs: Vec<GraphSetup>,
    /// The source of each setting that is not a default, by name.
    origins: BTreeMap<&'static str, Origin>,
}

/// One graph of a server.
#[derive(Debug, PartialEq)]
pub struct GraphSetup {
    /// Its name.
    pub name: String,
    /// Its directory or address.
    pub data: Option<String>,
    /// Its address, if its owner is to be followed.
    pub follow: Option<String>,
    /// The files to load at start, if it is empty.
    pub load: Vec<PathBuf>,
    /// The mapping for them.
    pub map: Option<PathBuf>,
    /// Its memory limit, in bytes.
    pub memory_limit: Option<Size>,
    /// How ids are read.
    pub ids: IdRule,
    /// The directory of its `io()`, if it differs from that of the setting.
    pub io_directory: Option<PathBuf>,
    /// Its traversal sources.
    pub sources: Vec<(String, Isolation)>,
}

/// The configuration file.
#[derive(Debug, Default)]
struct ConfigFile {
    settings: Vec<(&'static Setting, String)>,
    load: Vec<PathBuf>,
    graphs: Vec<GraphSetup>,
}

impl Setup {
    /// Reads all four sources.
    pub fn new(args: &ServeArgs) -> Result<Self> {
        let folder = args.config.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
        let file = args.config.as_deref().map(|path| ConfigFile::read(path, &folder)).transpose()?.unwrap_or_default();
        let mut options = Options::new(LISTEN_DEFAULT);
        let mut origins = BTreeMap::new();
        for (setting, text) in &file.settings {
            set(&mut options, setting, text, &Origin::File)?;
            setting.resolve(&mut options, &folder);
            origins.insert(setting.name, Origin::File);
        }
        for (setting, text, origin) in &args.settings.0 {
            set(&mut options, setting, text, origin)?;
            origins.insert(setting.name, origin.clone());
        }
        let load = if args.load.is_empty() { file.load } else { args.load.clone() };
        let mut graphs = with_main(&options, load, file.graphs)?;
        for graph in &mut graphs {
            graph.memory_limit = graph.memory_limit.or(options.memory_limit);
        }
        secure(&mut options)?;
        check_executors(options.executors)?;
        check_directories(&options, &graphs)?;
        Ok(Setup { options, graphs, origins })
    }

    /// The settings as a configuration file with the same meaning, with the source of each value.
    pub fn print(&mut self) -> String {
        let mut text = String::new();
        for setting in SETTINGS {
            let origin = self.origins.get(setting.name).unwrap_or(&Origin::Default);
            let _ = match setting.show(&mut self.options) {
                Some(value) => writeln!(text, "{:<56} # {origin}", format!("{} = {value}", setting.name)),
                None => writeln!(text, "# {} is not set", setting.name),
            };
        }
        // Like `data`, this is a key of the first part of the file.
        if let Some(main) = self.graphs.iter().find(|graph| graph.is_main() && !graph.load.is_empty()) {
            let _ = writeln!(text, "{}", main.loaded());
        }
        for graph in &self.graphs {
            graph.print(&mut text);
        }
        text
    }
}

impl GraphSetup {
    fn is_main(&self) -> bool {
        self.name == MAIN && self.sources.iter().any(|(name, _)| name == MAIN_SOURCES[0].0)
    }

    /// The `load` line of the file.
    fn loaded(&self) -> String {
        let files: Vec<String> = self.load.iter().map(|path| quoted(path.display())).collect();
        format!("{LOAD} = [{}]", files.join(", "))
    }

    fn print(&self, text: &mut String) {
        // The settings describe the main graph; it is shown as a comment.
        let is_main = self.is_main();
        let comment = if is_main { "# " } else { "" };
        let string = |text: &dyn std::fmt::Display| quoted(text);
        let _ = writeln!(text, "\n{comment}[graphs.{}]", self.name);
        if let Some(data) = &self.data {
            let _ = writeln!(text, "{comment}data = {}", string(data));
        }
        if let Some(follow) = &self.follow {
            let _ = writeln!(text, "{comment}follow = {}", string(follow));
        }
        if !self.load.is_empty() {
            let _ = writeln!(text, "{comment}{}", self.loaded());
        }
        if self.ids == IdRule::Numbers {
            let _ = writeln!(text, "{comment}ids = \"numbers\"");
        }
        if let Some(directory) = &self.io_directory {
            let _ = writeln!(text, "{comment}io_directory = {}", string(&directory.display()));
        }
        if let Some(map) = &self.map {
            let _ = writeln!(text, "{comment}map = {}", string(&map.display()));
        }
        if let Some(limit) = self.memory_limit.filter(|_| !is_main) {
            let _ = writeln!(text, "memory_limit = {}", limit.bytes);
        }
        let source = |(name, isolation): &(String, Isolation)| format!("{name} = \"{}\"", isolation_name(*isolation));
        let sources: Vec<String> = self.sources.iter().map(source).collect();
        let _ = writeln!(text, "{comment}sources = {{ {} }}", sources.join(", "));
    }
}

/// The most executor threads. A larger number is a mistake: more threads than cores make nothing faster.
const EXECUTOR_COUNT_MAX: usize = 1_024;

/// The highest nice value of Linux.
const NICE_MAX: u32 = 19;

fn check_executors(options: ExecutorOptions) -> Result<()> {
    if options.count > EXECUTOR_COUNT_MAX {
        return Err(Error::invalid(format!(
            "executor_count is {}, at most {EXECUTOR_COUNT_MAX} is allowed",
            options.count
        )));
    }
    if options.nice > NICE_MAX {
        return Err(Error::invalid(format!("executor_nice is {}, at most {NICE_MAX} is allowed", options.nice)));
    }
    Ok(())
}

fn set(options: &mut Options, setting: &Setting, text: &str, origin: &Origin) -> Result<()> {
    setting.set(options, text).map_err(|e| Error::invalid(format!("{} ({origin}): {e}", setting.name)))
}

/// Sets up TLS and users. Each needs both of its parts.
fn secure(options: &mut Options) -> Result<()> {
    options.server.tls = match (&options.tls_certificate, &options.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }),
        (None, None) => None,
        (Some(_), None) => return Err(Error::invalid("tls_certificate is set and tls_key is not: TLS needs both")),
        (None, Some(_)) => return Err(Error::invalid("tls_key is set and tls_certificate is not: TLS needs both")),
    };
    options.server.users = match (&options.users_file, std::env::var(USERS_VARIABLE)) {
        (Some(_), Ok(_)) => {
            return Err(Error::invalid(format!("users_file and {USERS_VARIABLE} are both set; users come from one")));
        }
        (Some(path), Err(_)) => Some(UsersSource::File(path.clone())),
        (None, Ok(text)) => Some(UsersSource::Text(text)),
        (None, Err(_)) => None,
    };
    Ok(())
}

/// The named graphs and, if it exists, the main graph.
fn with_main(options: &Options, load: Vec<PathBuf>, mut graphs: Vec<GraphSetup>) -> Result<Vec<GraphSetup>> {
    let main = GraphSetup {
        name: MAIN.to_owned(),
        data: options.data.clone(),
        follow: options.follow.clone(),
        load,
        map: options.map.clone(),
        memory_limit: options.memory_limit,
        ids: IdRule::Any,
        io_directory: None,
        sources: MAIN_SOURCES.map(|(name, isolation)| (name.to_owned(), isolation)).to_vec(),
    };
    let is_asked_for = main.data.is_some() || main.follow.is_some() || !main.load.is_empty();
    let is_free = first_shared_source(&main, &graphs).is_none() && graphs.iter().all(|graph| graph.name != MAIN);
    if is_asked_for || is_free {
        graphs.insert(0, main);
    }
    check_graphs(&graphs)?;
    Ok(graphs)
}

impl ConfigFile {
    /// Reads a file. Paths in it are relative to `folder`.
    fn read(path: &Path, folder: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Error::new(ErrorKind::Io, format!("cannot read the configuration file {}: {e}", path.display()))
        })?;
        ConfigFile::parse(&text, folder).map_err(|e| e.context(path.display()))
    }

    fn parse(text: &str, folder: &Path) -> Result<Self> {
        let table: BTreeMap<String, Value> = toml::from_str(text)
            .map_err(|e| Error::new(ErrorKind::Syntax, format!("the configuration file does not parse: {e}")))?;
        let mut file = ConfigFile::default();
        for (key, value) in table {
            file.take(&key, value, folder).map_err(|ConfigFault { path, error }| match line_of(text, &path) {
                Some(line) => error.context(format!("line {line}")),
                None => error,
            })?;
        }
        Ok(file)
    }

    fn take(&mut self, key: &str, value: Value, folder: &Path) -> Result<(), ConfigFault> {
        if let (GRAPHS, Value::Table(graphs)) = (key, &value) {
            for (name, graph) in graphs {
                let named = named_graph(name, graph.clone(), folder);
                self.graphs.push(named.map_err(|fault| fault.below(name).below(GRAPHS))?);
            }
            return Ok(());
        }
        self.take_setting(key, value, folder).map_err(|error| ConfigFault::at(key, error))
    }

    fn take_setting(&mut self, key: &str, value: Value, folder: &Path) -> Result<()> {
        match (key, value) {
            (LOAD, value) => self.load = paths(LOAD, value, folder)?,
            (GRAPHS, _) => return Err(Error::invalid("graphs are tables: [graphs.NAME]")),
            (key, value) => {
                let setting = Setting::find(key, &[LOAD, GRAPHS])?;
                self.settings.push((setting, scalar(key, value)?));
            }
        }
        Ok(())
    }
}

/// A mistake in the file, with the keys that lead to it.
struct ConfigFault {
    path: Vec<String>,
    error: Error,
}

impl ConfigFault {
    fn at(key: &str, error: Error) -> Self {
        ConfigFault { path: vec![key.to_owned()], error }
    }

    /// The same mistake, within a table of this name.
    fn below(mut self, name: &str) -> Self {
        self.path.insert(0, name.to_owned());
        self
    }
}

/// The line of a key, or of the innermost table that leads to it.
fn line_of(text: &str, path: &[String]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (mut table, mut place) = (document.get_ref(), None);
    for name in path {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        place = Some(key.span().start);
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    Some(text[..place?].matches('\n').count() + 1)
}

/// A value of the file as the text that a flag would have.
fn scalar(key: &str, value: Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        // An array becomes a list. A setting that is one value refuses a list itself.
        Value::Array(values) if !values.is_empty() => {
            let texts: Vec<String> = values.into_iter().map(|value| scalar(key, value)).collect::<Result<_>>()?;
            Ok(texts.join(","))
        }
        other => Err(Error::invalid(format!("{key} is one value, not a {}", other.type_str()))),
    }
}

fn paths(key: &str, value: Value, folder: &Path) -> Result<Vec<PathBuf>> {
    let one = |value: Value| Ok(folder.join(scalar(key, value)?));
    match value {
        Value::Array(values) => values.into_iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// A table `[graphs.NAME]`.
fn named_graph(name: &str, value: Value, folder: &Path) -> Result<GraphSetup, ConfigFault> {
    let of_graph = |error: Error| ConfigFault { path: Vec::new(), error };
    check_graph_name(name).map_err(of_graph)?;
    let Value::Table(table) = value else {
        return Err(of_graph(Error::invalid(format!("a graph is a table: [graphs.{name}]"))));
    };
    let sources = default_sources(name).map(|(source, isolation)| (source.to_string(), isolation)).to_vec();
    let (name, ids) = (name.to_owned(), IdRule::Any);
    let mut graph = GraphSetup {
        name,
        data: None,
        follow: None,
        load: Vec::new(),
        map: None,
        memory_limit: None,
        ids,
        io_directory: None,
        sources,
    };
    for (key, value) in table {
        let taken = graph.take(&key, value, folder);
        taken.map_err(|error| ConfigFault::at(&key, error.context(format!("graphs.{}", graph.name))))?;
    }
    Ok(graph)
}

impl GraphSetup {
    /// Reads a key of its table.
    fn take(&mut self, key: &str, value: Value, folder: &Path) -> Result<()> {
        match key {
            "data" => {
                let location = scalar(key, value)?;
                // `memory:` and other locations with a scheme are not paths.
                let is_path = !location.contains(':');
                self.data = Some(if is_path { folder.join(location).to_string_lossy().into_owned() } else { location });
            }
            "follow" => self.follow = Some(scalar(key, value)?),
            LOAD => self.load = paths(key, value, folder)?,
            "map" => self.map = Some(folder.join(scalar(key, value)?)),
            "memory_limit" => {
                let size = memory_limit(&scalar(key, value)?).map_err(|e| Error::invalid(format!("{key}: {e}")))?;
                self.memory_limit = Some(size);
            }
            "ids" => self.ids = id_rule(value)?,
            "io_directory" => self.io_directory = Some(folder.join(scalar(key, value)?)),
            "sources" => self.sources = sources_of(value)?,
            unknown => {
                let hint = mangrove_gremlin::suggest(unknown, GRAPH_KEYS.into_iter());
                let known = GRAPH_KEYS.join(", ");
                return Err(Error::invalid(format!("a graph has no setting `{unknown}`, but {known}{hint}")));
            }
        }
        Ok(())
    }
}

fn id_rule(value: Value) -> Result<IdRule> {
    match value.as_str() {
        Some("any") => Ok(IdRule::Any),
        Some("numbers") => Ok(IdRule::Numbers),
        _ => Err(Error::invalid(
            "ids is \"any\" (the string \"1\" is another id than the number 1) or \"numbers\" (it names that number)",
        )),
    }
}

fn sources_of(value: Value) -> Result<Vec<(String, Isolation)>> {
    let Value::Table(table) = value else {
        return Err(Error::invalid("sources is a table, as in sources = { g = \"serializable\" }"));
    };
    let source = |(name, value): (String, Value)| {
        check_graph_name(&name).map_err(|e| e.context("as a traversal source"))?;
        let isolation =
            isolation_of(value.as_str().unwrap_or("(no text)")).map_err(|e| e.context(format!("the source {name}")))?;
        Ok((name, isolation))
    };
    table.into_iter().map(source).collect()
}

fn first_shared_source<'a>(main: &'a GraphSetup, others: &[GraphSetup]) -> Option<&'a str> {
    let taken = |name: &str| others.iter().any(|graph| graph.sources.iter().any(|(source, _)| source == name));
    main.sources.iter().map(|(name, _)| name.as_str()).find(|name| taken(name))
}

/// Fails if the directory for new graphs is the directory of a graph, or above one: at the next start, that graph would
/// be taken for a created one.
fn check_directories(options: &Options, graphs: &[GraphSetup]) -> Result<()> {
    let Some(home) = &options.graphs_dir else { return Ok(()) };
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let own = absolute(home);
    for GraphSetup { name, data, .. } in graphs {
        let Some(directory) = data.as_ref().filter(|data| !data.contains(':')).map(|data| absolute(Path::new(data)))
        else {
            continue;
        };
        if own.starts_with(&directory) || directory.parent() == Some(&own) {
            return Err(Error::invalid(format!(
                "graphs_dir is {} and the graph {name} is kept in {}: graphs that are created need a directory of \
                 their own, \
                 as {}",
                home.display(),
                directory.display(),
                directory.with_file_name("graphs").display()
            )));
        }
    }
    Ok(())
}

/// A graph that is followed has no other place, and nothing is loaded into it.
fn check_followed(graph: &GraphSetup) -> Result<()> {
    let Some(address) = &graph.follow else { return Ok(()) };
    let wrong = |what: &str| Err(Error::invalid(format!("the graph {}: {what}", graph.name)));
    match graph {
        _ if !is_home_address(address) => {
            wrong(&format!("`follow` has `{address}`, which is no address; write s3://BUCKET/DIRECTORY"))
        }
        GraphSetup { data: Some(_), .. } => {
            wrong("`data` and `follow` are both set; `data` would take the graph over, `follow` leaves it to its owner")
        }
        GraphSetup { load, .. } if !load.is_empty() => wrong("`load` and `follow` are both set; its owner loads files"),
        _ => Ok(()),
    }
}

/// Fails if a graph has no traversal source, or if a name or a source stands for two graphs.
fn check_graphs(graphs: &[GraphSetup]) -> Result<()> {
    for (at, graph) in graphs.iter().enumerate() {
        if graph.sources.is_empty() {
            return Err(Error::invalid(format!(
                "the graph {0} has no traversal source, so no client could reach it: give it one, as in sources = {{ \
                 g{0} = \"serializable\" }}, or leave `sources` out",
                graph.name
            )));
        }
        check_followed(graph)?;
        if let Some(source) = first_shared_source(graph, &graphs[at + 1..]) {
            return Err(Error::invalid(format!(
                "the traversal source {source} is given to the graph {} and to another one: rename one of them",
                graph.name
            )));
        }
        if graphs[at + 1..].iter().any(|other| other.name == graph.name) {
            return Err(Error::invalid(format!(
                "there are two graphs called {}: the one of `data` and `load` has this name",
                graph.name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::Given;

    /// The setup that a configuration file and flags give.
    fn setup(name: &str, file: &str, flags: &[(&str, &str)], load: &[&str]) -> Result<Setup> {
        let folder = std::env::temp_dir().join(format!("mangrove-config-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("mangrove.toml");
        std::fs::write(&path, file).unwrap();
        let flags = flags
            .iter()
            .map(|&(name, value)| (Setting::find(name, &[]).unwrap(), value.to_owned(), Origin::Flag(name.to_owned())));
        let load = load.iter().map(PathBuf::from).collect();
        let setup =
            Setup::new(&ServeArgs { config: Some(path), settings: Given(flags.collect()), load, print_config: false });
        std::fs::remove_dir_all(&folder).unwrap();
        setup
    }

    #[test]
    fn executors_beyond_their_bounds_are_refused() {
        for (name, value, part) in [
            ("executor_count", "1025", "at most 1024"),
            ("executor_nice", "20", "at most 19"),
            ("tenant_weights", "ada=3", "user/NAME=WEIGHT"),
        ] {
            let error = setup("executors", "", &[(name, value)], &[]).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
        let file = "executor_count = 3\nexecutor_nice = 0\ntenant_weights = [\"user/ada=300\", \"user/web=50\"]";
        let options = setup("executors", file, &[], &[]).unwrap().options;
        assert_eq!(options.executors, ExecutorOptions { count: 3, nice: 0 });
        assert_eq!(options.engine.tenant_weights.to_string(), "user/ada=300,user/web=50");
    }

    fn sources(setup: &Setup) -> Vec<&str> {
        setup.graphs.iter().flat_map(|graph| graph.sources.iter().map(|(name, _)| name.as_str())).collect()
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let file = "listen = \"127.0.0.1:1\"\nevaluation_timeout = \"5s\"\nmemory_limit = \"1GiB\"";
        let from_file = setup("file", file, &[], &[]).unwrap().options;
        assert_eq!(from_file.server.listen.port(), 1);
        assert_eq!(from_file.server.limits.evaluation_timeout, Some(Duration::from_secs(5)));
        assert_eq!(from_file.memory_limit.map(|limit| limit.bytes), Some(1 << 30));
        let flags = [("listen", "127.0.0.1:2"), ("evaluation_timeout", "none")];
        let mut from_flag = setup("flag", file, &flags, &[]).unwrap();
        let server = &from_flag.options.server;
        assert_eq!((server.listen.port(), server.limits.evaluation_timeout), (2, None));
        let printed = from_flag.print();
        for (line, origin) in [
            ("listen = \"127.0.0.1:2\"", "# --listen"),
            ("memory_limit = 1073741824", "# file"),
            ("batch_size = 64", "# default"),
        ] {
            assert!(printed.lines().any(|l| l.starts_with(line) && l.ends_with(origin)), "{line}\n{printed}");
        }
        // The printed file has the same meaning.
        let mut again = setup("again", &printed, &[], &[]).unwrap();
        let values = |text: &str| text.lines().map(|l| l.split(" #").next().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(values(&again.print()), values(&printed));
        let default = Setup::new(&ServeArgs::default()).unwrap();
        assert_eq!(default.options.server.listen.to_string(), "127.0.0.1:8182");
        assert_eq!(sources(&default), ["g", "gsi"]);
    }

    #[test]
    fn log_checkpoints_and_settings_of_graphs_have_their_place_in_the_file() {
        let file = "checkpoint_log_size = \"1MiB\"\ncheckpoint_interval = \"5m\"\nlog_segment_size = \"128KiB\"\n\
                    gc_workers = 3\ngarbage_collection = false";
        let options = setup("durability", file, &[("checkpoint_log_size", "2MiB")], &[]).unwrap().options;
        let durability = &options.durability;
        assert_eq!((durability.checkpoint_log_bytes, durability.log.segment_bytes_max), (Some(2 << 20), 128 << 10));
        assert_eq!(durability.checkpoint_after, Some(Duration::from_secs(300)));
        let database = mangrove::Database::in_memory();
        options.graph_settings.apply(&database).unwrap();
        let said = |name: &str| database.config().into_iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!((said("gc_workers"), said("garbage_collection")), (3_i64.into(), false.into()));
    }

    #[test]
    fn named_graphs_stand_beside_the_main_one_or_take_its_place() {
        let modern = "[graphs.modern]\nload = [\"a.json\"]\nsources = { gmodern = \"serializable\" }";
        let beside = setup("beside", modern, &[], &[]).unwrap();
        assert_eq!(sources(&beside), ["g", "gsi", "gmodern"]);
        assert!(beside.graphs[1].load[0].is_absolute());
        assert_eq!(sources(&setup("own names", "[graphs.books]", &[], &[]).unwrap()), ["g", "gsi", "books", "bookssi"]);
        let limited = "memory_limit = \"1GiB\"\n[graphs.small]\nmemory_limit = \"1MiB\"\n[graphs.other]";
        let limits: Vec<u64> =
            setup("limited", limited, &[], &[]).unwrap().graphs.iter().map(|g| g.memory_limit.unwrap().bytes).collect();
        assert_eq!(limits, [1 << 30, 1 << 30, 1 << 20]);
        let own = "[graphs.modern]\nsources = { g = \"snapshot\" }";
        assert_eq!(sources(&setup("own", own, &[], &[]).unwrap()), ["g"]);
        let error = setup("both", own, &[], &["b.csv"]).unwrap_err();
        assert!(error.message().contains("traversal source g "), "{error}");
    }

    #[test]
    fn mistakes_in_the_file_are_named() {
        for (name, file, part) in [
            ("key", "batch_size = 1\nlisen = \"127.0.0.1:1\"", "line 2: there is no setting `lisen`"),
            ("graph key", "[graphs.a]\nsource = {}", "did you mean `sources`"),
            (
                "graph key's line",
                "batch_size = 1\n\n[graphs.a]\nlisten = \"x\"",
                "line 4: graphs.a: a graph has no setting",
            ),
            ("inline", "[graphs]\nb = { data = \"b\",\n  limit = 1 }", "line 3: graphs.b"),
            ("graphs in the graph", "data = \"gd\"\ngraphs_dir = \"gd\"", "a directory of their own"),
            ("graphs below it", "data = \"gd\"\ngraphs_dir = \"gd/graphs\"", "a directory of their own"),
            ("the graph in graphs", "graphs_dir = \"all\"\n[graphs.books]\ndata = \"all/books\"", "the graph books"),
            ("graph name", "[graphs.\"a b\"]", "cannot name a graph"),
            (
                "source name",
                "[graphs.a]\nsources = { \"a b\" = \"snapshot\" }",
                "as a traversal source: `a b` cannot name",
            ),
            ("isolation", "[graphs.a]\nsources = { ga = \"loose\" }", "loose"),
            ("none", "[graphs.a]\nsources = {}", "no traversal source"),
            ("limit", "memory_limit = \"much\"", "memory_limit (file): `much` is not a size"),
            ("kind", "batch_size = [1, 2]", "`1,2` is no whole number"),
            ("table", "batch_size = { a = 1 }", "batch_size is one value, not a table"),
            ("half", "tls_key = \"key.pem\"", "TLS needs both"),
        ] {
            let error = setup(name, file, &[], &[]).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
        let args = ServeArgs { config: Some("no-such-file.toml".into()), ..ServeArgs::default() };
        assert!(Setup::new(&args).unwrap_err().message().contains("no-such-file.toml"));
    }
}
