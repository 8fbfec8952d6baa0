//! What a server is to do, put together from defaults, a file, the environment and flags.
//!
//! A later one of these wins over an earlier one. Flags and environment arrive together (the command line
//! has already let the flag win), so here there are two layers: [`ServeArgs`] over [`File`].
//!
//! Two kinds of graphs: the *main* one, of `--data` and `--load`, with the sources `g` and `gsi`; and the
//! *named* ones of the file, each with the sources it lists. The main graph is there unless the named ones
//! take its sources and nobody asks for it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mangrove::{Error, ErrorKind, Result};
use serde::Deserialize;

use crate::args::ServeArgs;
use crate::quantity::{Size, TimeLimit};

/// Gremlin Server's port.
const PORT_DEFAULT: u16 = 8182;

/// The sources of the main graph.
const MAIN_SOURCES: [(&str, Isolation); 2] = [("g", Isolation::Serializable), ("gsi", Isolation::Snapshot)];

/// What a server is to do.
#[derive(Debug)]
pub struct Setup {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether other machines may reach it.
    pub allow_remote: bool,
    /// How long a query may run; `None`: the server's default.
    pub evaluation_timeout: Option<TimeLimit>,
    /// How much memory a graph may use; `None`: the database's default.
    pub memory_limit: Option<Size>,
    /// How much memory a query may hold; `None`: the database's default.
    pub query_memory_limit: Option<Size>,
    /// How long queries may go on when the server is asked to stop; `None`: the server's default.
    pub drain_seconds: Option<u64>,
    /// The graphs.
    pub graphs: Vec<GraphSetup>,
}

/// One graph of a server.
#[derive(Debug, PartialEq)]
pub struct GraphSetup {
    /// Its name, for messages.
    pub name: String,
    /// Where it lives.
    pub data: Option<String>,
    /// What to load at start.
    pub load: Vec<PathBuf>,
    /// How to read what is loaded.
    pub map: Option<PathBuf>,
    /// Its traversal sources.
    pub sources: Vec<(String, Isolation)>,
}

/// How transactions of a traversal source see each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// As if one ran after the other.
    Serializable,
    /// Each on a snapshot; of two that write the same, one fails.
    Snapshot,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    allow_remote: bool,
    data: Option<String>,
    load: Vec<PathBuf>,
    map: Option<PathBuf>,
    evaluation_timeout: Option<TimeLimit>,
    memory_limit: Option<Size>,
    query_memory_limit: Option<Size>,
    drain_seconds: Option<u64>,
    graphs: BTreeMap<String, NamedGraph>,
}

/// A table `[graphs.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedGraph {
    data: Option<String>,
    #[serde(default)]
    load: Vec<PathBuf>,
    map: Option<PathBuf>,
    sources: BTreeMap<String, Isolation>,
}

impl Setup {
    /// Puts it together.
    pub fn new(args: ServeArgs) -> Result<Self> {
        let file = args.config.as_deref().map(File::read).transpose()?.unwrap_or_default();
        let mut graphs: Vec<GraphSetup> = file.graphs.into_iter().map(NamedGraph::setup).collect();
        let main = GraphSetup {
            name: "main".to_owned(),
            data: args.graph.data.or(file.data),
            load: if args.load.is_empty() { file.load } else { args.load },
            map: args.graph.map.or(file.map),
            sources: MAIN_SOURCES.map(|(name, isolation)| (name.to_owned(), isolation)).to_vec(),
        };
        let is_asked_for = main.data.is_some() || !main.load.is_empty();
        if is_asked_for || first_shared_source(&main, &graphs).is_none() {
            graphs.insert(0, main);
        }
        check_sources(&graphs)?;
        Ok(Setup {
            listen: args.listen.or(file.listen).unwrap_or((Ipv4Addr::LOCALHOST, PORT_DEFAULT).into()),
            allow_remote: args.allow_remote || file.allow_remote,
            evaluation_timeout: args.evaluation_timeout.or(file.evaluation_timeout),
            memory_limit: args.graph.memory_limit.or(file.memory_limit),
            query_memory_limit: args.query_memory_limit.or(file.query_memory_limit),
            drain_seconds: args.drain_seconds.or(file.drain_seconds),
            graphs,
        })
    }

    /// How long a query may run; the outer `None` leaves it to the server.
    pub fn evaluation_timeout(&self) -> Option<Option<Duration>> {
        self.evaluation_timeout.map(TimeLimit::duration)
    }
}

impl File {
    /// Reads a file; the paths in it are beside it.
    fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Error::new(ErrorKind::Io, format!("cannot read the configuration file {}: {e}", path.display()))
        })?;
        let mut file: File = toml::from_str(&text).map_err(|e| {
            Error::new(ErrorKind::Syntax, format!("the configuration file {} does not parse: {e}", path.display()))
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let beside = |path: &mut PathBuf| *path = folder.join(&*path);
        let data_beside = |data: &mut String| {
            // `memory:` and its like are no paths.
            if !data.contains(':') {
                *data = folder.join(&*data).to_string_lossy().into_owned();
            }
        };
        file.load.iter_mut().chain(&mut file.map).for_each(beside);
        file.data.iter_mut().for_each(data_beside);
        for graph in file.graphs.values_mut() {
            graph.load.iter_mut().chain(&mut graph.map).for_each(beside);
            graph.data.iter_mut().for_each(data_beside);
        }
        Ok(file)
    }
}

impl NamedGraph {
    fn setup((name, graph): (String, NamedGraph)) -> GraphSetup {
        let sources = graph.sources.into_iter().collect();
        GraphSetup { name, data: graph.data, load: graph.load, map: graph.map, sources }
    }
}

fn first_shared_source<'a>(main: &'a GraphSetup, others: &[GraphSetup]) -> Option<&'a str> {
    let taken = |name: &str| others.iter().any(|graph| graph.sources.iter().any(|(source, _)| source == name));
    main.sources.iter().map(|(name, _)| name.as_str()).find(|name| taken(name))
}

/// Every graph can be reached, and a source names one graph.
fn check_sources(graphs: &[GraphSetup]) -> Result<()> {
    for (at, graph) in graphs.iter().enumerate() {
        if graph.sources.is_empty() {
            return Err(Error::invalid(format!(
                "the graph {0} has no traversal source, so no client could reach it: give it one, as in sources = {{ \
                 g{0} = \"serializable\" }}",
                graph.name
            )));
        }
        if let Some(source) = first_shared_source(graph, &graphs[at + 1..]) {
            return Err(Error::invalid(format!(
                "the traversal source {source} is given to the graph {} and to another one: rename one of them",
                graph.name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The setup that a configuration file and flags give.
    fn setup(name: &str, file: &str, change: impl FnOnce(&mut ServeArgs)) -> Result<Setup> {
        let folder = std::env::temp_dir().join(format!("mangrove-config-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("mangrove.toml");
        std::fs::write(&path, file).unwrap();
        let mut args = ServeArgs { config: Some(path), ..ServeArgs::default() };
        change(&mut args);
        let setup = Setup::new(args);
        std::fs::remove_dir_all(&folder).unwrap();
        setup
    }

    fn sources(setup: &Setup) -> Vec<&str> {
        setup.graphs.iter().flat_map(|graph| graph.sources.iter().map(|(name, _)| name.as_str())).collect()
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let file = "listen = \"127.0.0.1:1\"\nevaluation_timeout = \"5s\"\nmemory_limit = \"1GiB\"";
        let from_file = setup("file", file, |_| {}).unwrap();
        assert_eq!(from_file.listen.port(), 1);
        assert_eq!(from_file.evaluation_timeout(), Some(Some(Duration::from_secs(5))));
        assert_eq!(from_file.memory_limit, Some(Size { bytes: 1 << 30 }));
        let from_flag = setup("flag", file, |args| {
            args.listen = Some("127.0.0.1:2".parse().unwrap());
            args.evaluation_timeout = Some(TimeLimit::None);
        })
        .unwrap();
        assert_eq!((from_flag.listen.port(), from_flag.evaluation_timeout()), (2, Some(None)));
        let default = Setup::new(ServeArgs::default()).unwrap();
        assert_eq!(default.listen.to_string(), "127.0.0.1:8182");
        assert_eq!(sources(&default), ["g", "gsi"]);
    }

    #[test]
    fn named_graphs_stand_beside_the_main_one_or_take_its_place() {
        let modern = "[graphs.modern]\nload = [\"a.json\"]\nsources = { gmodern = \"serializable\" }";
        let beside = setup("beside", modern, |_| {}).unwrap();
        assert_eq!(sources(&beside), ["g", "gsi", "gmodern"]);
        assert!(beside.graphs[1].load[0].is_absolute());
        let own = "[graphs.modern]\nsources = { g = \"snapshot\" }";
        assert_eq!(sources(&setup("own", own, |_| {}).unwrap()), ["g"]);
        let error = setup("both", own, |args| args.load = vec!["b.csv".into()]).unwrap_err();
        assert!(error.message().contains("traversal source g "), "{error}");
    }

    #[test]
    fn mistakes_in_the_file_are_named() {
        for (name, file, part) in [
            ("key", "lisen = \"127.0.0.1:1\"", "lisen"),
            ("isolation", "[graphs.a]\nsources = { ga = \"loose\" }", "loose"),
            ("none", "[graphs.a]\nsources = {}", "no traversal source"),
            ("limit", "memory_limit = \"much\"", "is not a size"),
        ] {
            let error = setup(name, file, |_| {}).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
        let args = ServeArgs { config: Some("no-such-file.toml".into()), ..ServeArgs::default() };
        assert!(Setup::new(args).unwrap_err().message().contains("no-such-file.toml"));
    }
}
