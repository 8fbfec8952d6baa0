//! The graphs of a server by name, and the traversal sources that lead to them.
//!
//! Configured graphs stay as long as the server runs. Created graphs come and go by services of administrators. A
//! created graph lives in memory, or in a directory of its own below the server's directory for graphs, and is then
//! opened again at the next start. Its sources are `NAME` (serializable) and `NAMEsi` (snapshot isolation), unless its
//! creator names others. The file [`SETTINGS`] in its directory keeps the sources and the memory limit.
//!
//! A drop removes the graph from the registry at once, so that nothing new begins on it, and marks its directory.
//! Running requests go on; the last one closes the database and removes the directory. Until then the name is taken.
//! After a crash in between, the next start removes marked directories. `graph_directory` has the names and marks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{Database, Isolation};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_locks::{Mutex, RwLock, rank};
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};

use crate::access::caller::Caller;
use crate::access::graph_name::check_name;
use crate::graphs::graph_directory;
use crate::graphs::redaction::Logged;
use crate::metrics::graphs::QueryMeters;

/// The file with the settings of a created graph, in its directory.
const SETTINGS: &str = "graph.json";

/// The suffix of a graph's name that makes the name of its source for snapshot isolation.
const SNAPSHOT_SUFFIX: &str = "si";

/// A graph of the server.
pub struct Graph {
    /// Its name.
    pub name: SmolStr,
    /// `None` only while the graph itself is being dropped.
    database: Option<Database>,
    /// Its directory, if an administrator created it in one.
    directory: Option<PathBuf>,
    /// True if it came with the configuration.
    pub is_configured: bool,
    /// The counters of its queries. A copy that replaces it goes on counting.
    pub meters: Arc<QueryMeters>,
    /// The last error that was logged because a client got it without the directory.
    pub(crate) logged: Logged,
    is_doomed: AtomicBool,
    /// The directories of dropped graphs that still exist, shared with the registry.
    leaving: Arc<Mutex<Vec<PathBuf>, rank::LeavingDirectories>>,
}

impl Graph {
    /// The database.
    pub fn database(&self) -> &Database {
        self.database.as_ref().expect("it is taken out where the graph itself is dropped, and nowhere else")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // The database first: it holds the lock on the directory, and writes to it until it is closed.
        self.database = None;
        if !self.is_doomed.load(Ordering::Acquire) {
            return;
        }
        if let Some(directory) = &self.directory {
            match graph_directory::remove(directory) {
                Ok(()) => tracing::info!(graph = %self.name, "removed {}", directory.display()),
                Err(error) => tracing::error!(
                    graph = %self.name,
                    "what it left could not be removed, the next start tries again: {error}"
                ),
            }
            self.leaving.lock().retain(|leaving| leaving != directory);
        }
    }
}

/// A traversal source.
#[derive(Clone)]
pub struct GraphSource {
    /// Its name.
    pub name: SmolStr,
    /// The graph.
    pub graph: Arc<Graph>,
    /// The isolation level of its transactions.
    pub isolation: Isolation,
}

/// A graph with its sources.
pub type ListedGraph = (Arc<Graph>, Vec<(SmolStr, Isolation)>);

/// The options of a graph's creator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphOptions {
    /// The memory limit in bytes; `None` for the server's setting.
    pub memory_limit_bytes: Option<u64>,
    /// The traversal sources; empty for [`default_sources`].
    pub sources: Vec<(SmolStr, Isolation)>,
}

/// [`GraphOptions`] as the settings file has them.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    #[serde(default)]
    memory_limit_bytes: Option<u64>,
    #[serde(default)]
    sources: BTreeMap<String, String>,
}

impl GraphOptions {
    /// The sources of a graph of this name.
    fn sources_of(&self, name: &str) -> Vec<(SmolStr, Isolation)> {
        if self.sources.is_empty() { default_sources(name).to_vec() } else { self.sources.clone() }
    }

    fn write(&self, directory: &Path) -> Result<()> {
        let sources = self.sources.iter().map(|(name, level)| (name.to_string(), isolation_name(*level).to_owned()));
        let kept = SettingsFile { memory_limit_bytes: self.memory_limit_bytes, sources: sources.collect() };
        let path = directory.join(SETTINGS);
        let text = serde_json::to_string_pretty(&kept).expect("a map of texts is JSON");
        let written = fs::File::create(&path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::File::open(directory)?.sync_all()
        });
        written.map_err(|e| Error::new(ErrorKind::Io, format!("{}: {e}", path.display())))
    }

    /// Reads the options of the graph in a directory; the default if there is no file.
    fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(SETTINGS);
        let fault = |why: String| Error::new(ErrorKind::Io, format!("{}: {why}", path.display()));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(GraphOptions::default()),
            Err(e) => return Err(fault(e.to_string())),
        };
        let kept: SettingsFile = serde_json::from_str(&text).map_err(|e| fault(e.to_string()))?;
        let sources = kept.sources.into_iter().map(|(name, level)| Ok((name.into(), isolation_of(&level)?)));
        Ok(GraphOptions { memory_limit_bytes: kept.memory_limit_bytes, sources: sources.collect::<Result<_>>()? })
    }
}

/// The name of an isolation level: `serializable` or `snapshot`.
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Serializable => "serializable",
        _ => "snapshot",
    }
}

/// The isolation level of a name.
pub fn isolation_of(name: &str) -> Result<Isolation> {
    match name {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        other => Err(Error::invalid(format!(
            "there is no isolation level `{other}`: write \"serializable\" or \"snapshot\""
        ))),
    }
}

/// Opens a graph: in a directory, which is created if necessary, or in memory; with its own memory limit, if it has
/// one.
pub type GraphOpener = Box<dyn Fn(Option<&Path>, Option<u64>) -> Result<Database> + Send + Sync>;

/// The graphs of a server. `sources` is locked for a look-up or one change only.
pub struct Registry {
    sources: RwLock<Vec<GraphSource>, rank::GraphSources>,
    /// Allows one creation or drop at a time. It is held while a database is opened, so that readers of `sources` do not
    /// wait.
    changing: Mutex<(), rank::GraphChanges>,
    /// The directory below which created graphs live.
    home: Option<PathBuf>,
    open: GraphOpener,
    leaving: Arc<Mutex<Vec<PathBuf>, rank::LeavingDirectories>>,
    count_max: usize,
}

impl Registry {
    /// An empty registry, which opens created graphs with `open`.
    pub fn new(count_max: usize, open: GraphOpener) -> Self {
        Registry {
            sources: RwLock::default(),
            changing: Mutex::default(),
            home: None,
            open,
            leaving: Arc::default(),
            count_max,
        }
    }

    /// Replaces the function that opens created graphs.
    pub fn open_with(&mut self, open: GraphOpener) {
        self.open = open;
    }

    /// Keeps graphs that are created below a directory, and opens those that are there already. Directories of graphs
    /// that were dropped are removed.
    pub fn keep_in(&mut self, directory: PathBuf) -> Result<()> {
        for path in graph_directory::graphs_below(&directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            check_name(name).map_err(|e| e.context(path.display()))?;
            let opened = GraphOptions::read(&path)
                .and_then(|options| Ok(((self.open)(Some(&path), options.memory_limit_bytes)?, options)));
            let (database, options) = opened.map_err(|e| e.context(format!("graph {name}")))?;
            self.add(self.graph(name, database, Some(path.clone()), false), options.sources_of(name))?;
        }
        self.home = Some(directory);
        Ok(())
    }

    fn graph(&self, name: &str, database: Database, directory: Option<PathBuf>, is_configured: bool) -> Arc<Graph> {
        self.graph_with(name, database, directory, is_configured, Arc::default())
    }

    fn graph_with(
        &self,
        name: &str,
        database: Database,
        directory: Option<PathBuf>,
        is_configured: bool,
        meters: Arc<QueryMeters>,
    ) -> Arc<Graph> {
        Arc::new(Graph {
            name: name.into(),
            database: Some(database),
            directory,
            is_configured,
            meters,
            logged: Logged::default(),
            is_doomed: AtomicBool::new(false),
            leaving: Arc::clone(&self.leaving),
        })
    }

    /// Adds a graph of the configuration.
    pub fn configure(
        &self,
        name: &str,
        database: Database,
        sources: impl IntoIterator<Item = (SmolStr, Isolation)>,
    ) -> Result<()> {
        self.add(self.graph(name, database, None, true), sources)
    }

    /// Puts another copy of a configured graph in the place of the present one, which it returns. The present
    /// one stays open while a request uses it.
    pub fn replace(&self, name: &str, database: Database) -> Result<Arc<Graph>> {
        let _changing = self.changing.lock();
        let before = self.named(name)?;
        let meters = Arc::clone(&before.meters);
        let graph = self.graph_with(name, database, None, before.is_configured, meters);
        for source in self.sources.write().iter_mut().filter(|source| Arc::ptr_eq(&source.graph, &before)) {
            source.graph = Arc::clone(&graph);
        }
        Ok(before)
    }

    fn add(&self, graph: Arc<Graph>, sources: impl IntoIterator<Item = (SmolStr, Isolation)>) -> Result<()> {
        let mut known = self.sources.write();
        let first = known.len();
        for (name, isolation) in sources {
            if let Some(other) = known.iter().find(|source| source.name == name) {
                let message = format!("the graph {} has a traversal source `{name}` already", other.graph.name);
                known.truncate(first);
                return Err(Error::invalid(message));
            }
            known.push(GraphSource { name, graph: Arc::clone(&graph), isolation });
        }
        Ok(())
    }

    /// The source with a name, if the caller may know of it (SERVER-3).
    pub fn find(&self, name: &str, caller: &Caller) -> Result<GraphSource> {
        let sources = self.sources.read();
        // SERVER-3: without a right the error is that of an unknown name.
        let found = sources.iter().find(|source| source.name == name && caller.access(&source.graph.name).is_some());
        found.cloned().ok_or_else(|| Error::invalid(format!("there is no traversal source `{name}` on this server")))
    }

    /// The names of the sources that the caller may know of (SERVER-3).
    pub fn sources(&self, caller: &Caller) -> Vec<SmolStr> {
        let sources = self.sources.read();
        let visible = sources.iter().filter(|source| caller.access(&source.graph.name).is_some());
        visible.map(|source| source.name.clone()).collect()
    }

    /// Every graph once, with its sources.
    pub fn graphs(&self) -> Vec<ListedGraph> {
        let mut graphs: Vec<ListedGraph> = Vec::new();
        for GraphSource { name, graph, isolation } in self.sources.read().iter() {
            match graphs.iter_mut().find(|(known, _)| Arc::ptr_eq(known, graph)) {
                Some((_, sources)) => sources.push((name.clone(), *isolation)),
                None => graphs.push((Arc::clone(graph), vec![(name.clone(), *isolation)])),
            }
        }
        graphs
    }

    /// Creates a graph, in memory or in a directory of its own.
    pub fn create(&self, name: &str, in_memory: bool, options: &GraphOptions) -> Result<()> {
        let _changing = self.changing.lock();
        check_name(name)?;
        let wanted = options.sources_of(name);
        wanted.iter().try_for_each(|(source, _)| check_name(source).map_err(|e| e.context("as a traversal source")))?;
        let graphs = self.graphs();
        if graphs.len() >= self.count_max {
            return Err(Error::invalid(format!(
                "the server has {} graphs, as many as it may; drop some, or raise the limit graph_count_max",
                graphs.len()
            )));
        }
        if graphs.iter().any(|(graph, _)| graph.name == name) {
            return Err(Error::new(ErrorKind::DuplicateId, format!("there is a graph `{name}` already")));
        }
        // Before a directory is made for it.
        for (source, _) in &wanted {
            if let Some((other, _)) =
                graphs.iter().find(|(_, sources)| sources.iter().any(|(known, _)| known == source))
            {
                return Err(Error::invalid(format!(
                    "the graph `{name}` would have the traversal source `{source}`, which the graph `{}` has; choose \
                     another name",
                    other.name
                )));
            }
        }
        let directory = if in_memory { None } else { Some(self.new_directory(name)?) };
        let database = match &directory {
            None => (self.open)(None, options.memory_limit_bytes)?,
            Some(directory) => self.create_in(directory, options)?,
        };
        let graph = self.graph(name, database, directory, false);
        self.add(Arc::clone(&graph), wanted).inspect_err(|_| graph.is_doomed.store(true, Ordering::Release))
    }

    /// Creates a graph in a directory, and opens it. After an error there is no graph.
    fn create_in(&self, directory: &Path, options: &GraphOptions) -> Result<Database> {
        let made = self.make_in(directory, options);
        made.map_err(|error| match graph_directory::give_up(directory) {
            Ok(()) => error,
            Err(left) => {
                error.context(format!("what is left could not be removed, the next start tries again: {left}"))
            }
        })
    }

    fn make_in(&self, directory: &Path, options: &GraphOptions) -> Result<Database> {
        let unfinished = graph_directory::begin(directory)?;
        drop((self.open)(Some(&unfinished), options.memory_limit_bytes)?);
        if *options != GraphOptions::default() {
            options.write(&unfinished)?;
        }
        graph_directory::finish(directory)?;
        (self.open)(Some(directory), options.memory_limit_bytes)
    }

    /// The directory of a new graph with this name.
    fn new_directory(&self, name: &str) -> Result<PathBuf> {
        let Some(home) = &self.home else {
            return Err(Error::invalid(format!(
                "the server has no directory for new graphs: start it with graphs_dir = \"DIR\", or create the graph \
                 in \
                 memory, as in call('mangrove.graph.create').with('name', '{name}').with('memory', true)"
            )));
        };
        let directory = home.join(name);
        if self.leaving.lock().contains(&directory) || directory.exists() {
            return Err(Error::new(
                ErrorKind::DuplicateId,
                format!("{} is still there, of a graph that was dropped; try again shortly", directory.display()),
            ));
        }
        Ok(directory)
    }

    /// Drops a created graph: nothing new begins on it, and its files are removed after the last request on it.
    pub fn drop_graph(&self, name: &str) -> Result<()> {
        let _changing = self.changing.lock();
        let graph = self.named(name)?;
        if graph.is_configured {
            return Err(Error::invalid(format!(
                "the graph `{name}` comes with the server's configuration and would be there again at the next start; \
                 remove it there"
            )));
        }
        if let Some(directory) = &graph.directory {
            graph_directory::mark(directory)?;
            self.leaving.lock().push(directory.clone());
        }
        graph.is_doomed.store(true, Ordering::Release);
        self.sources.write().retain(|source| !Arc::ptr_eq(&source.graph, &graph));
        Ok(())
    }

    /// The graph with a name.
    pub fn named(&self, name: &str) -> Result<Arc<Graph>> {
        let sources = self.sources.read();
        let found = sources.iter().find(|source| source.graph.name == name);
        found.map(|source| Arc::clone(&source.graph)).ok_or_else(|| {
            let hint = mangrove_gremlin::suggest(name, sources.iter().map(|source| source.graph.name.as_str()));
            Error::new(ErrorKind::NotFound, format!("there is no graph `{name}`{hint}; mangrove.graph.list shows them"))
        })
    }
}

/// The sources of a graph whose creator names none.
pub fn default_sources(name: &str) -> [(SmolStr, Isolation); 2] {
    [(name.into(), Isolation::Serializable), (format_smolstr!("{name}{SNAPSHOT_SUFFIX}"), Isolation::Snapshot)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anybody() -> Caller {
        Caller::anybody("test")
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mangrove-registry-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn kept_in(home: &Path) -> Registry {
        let mut registry = registry(8);
        registry.keep_in(home.to_owned()).unwrap();
        registry
    }

    fn registry(count_max: usize) -> Registry {
        let open = |path: Option<&Path>, memory_limit: Option<u64>| {
            let mut options = mangrove::DatabaseOptions::default();
            options.memory_limit_bytes = memory_limit.unwrap_or(options.memory_limit_bytes);
            let location = path.map_or("memory:", |path| path.to_str().expect("a test's path is text"));
            Database::open(location, &options)
        };
        Registry::new(count_max, Box::new(open))
    }

    fn create(registry: &Registry, name: &str, in_memory: bool) -> Result<()> {
        registry.create(name, in_memory, &GraphOptions::default())
    }

    #[test]
    fn a_graph_in_a_directory_is_there_at_the_next_start_until_it_is_dropped() {
        let home = folder("kept");
        {
            let registry = kept_in(&home);
            create(&registry, "books", false).unwrap();
            registry.find("books", &anybody()).unwrap().graph.database().query("g.addV('book')").unwrap();
            assert_eq!(registry.sources(&anybody()), ["books", "bookssi"]);
        }
        let registry = kept_in(&home);
        let source = registry.find("bookssi", &anybody()).unwrap();
        assert_eq!(source.graph.database().query("g.V()").unwrap().count(), 1);
        registry.drop_graph("books").unwrap();
        assert!(registry.find("books", &anybody()).is_err());
        // Running requests go on, and the name is taken until they have ended.
        assert_eq!(source.graph.database().query("g.V()").unwrap().count(), 1);
        assert!(create(&registry, "books", false).unwrap_err().message().contains("still there"));
        drop(source);
        assert!(!home.join("books").exists());
        create(&registry, "books", false).unwrap();
        assert_eq!(registry.find("books", &anybody()).unwrap().graph.database().query("g.V()").unwrap().count(), 0);
        drop(registry);
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn what_a_graphs_creator_said_counts_at_the_next_start_too() {
        let home = folder("options");
        let options = GraphOptions {
            memory_limit_bytes: Some(3 << 20),
            sources: vec![("a".into(), Isolation::Snapshot), ("b".into(), Isolation::Serializable)],
        };
        kept_in(&home).create("books", false, &options).unwrap();
        let registry = kept_in(&home);
        assert_eq!(registry.sources(&anybody()), ["a", "b"]);
        let found = registry.find("a", &anybody()).unwrap();
        assert_eq!(found.isolation, Isolation::Snapshot);
        assert_eq!(found.graph.database().memory().limit_bytes, 3 << 20);
        let twin = registry.create("other", true, &options).unwrap_err();
        assert!(twin.message().contains("traversal source `a`"), "{twin}");
        drop((found, registry));
        fs::write(home.join("books").join(SETTINGS), "{\"sources\": {\"a\": \"loose\"}}").unwrap();
        let mut wrong = super::tests::registry(8);
        let refused = wrong.keep_in(home.clone()).unwrap_err();
        assert!(refused.message().contains("loose") && refused.message().contains("graph books"), "{refused}");
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn names_are_checked_and_configured_graphs_stay() {
        let registry = registry(2);
        registry.configure("main", Database::in_memory(), [("g".into(), Isolation::Serializable)]).unwrap();
        for wrong in ["", "1a", "a-b", "../up", "*", "a b", &"a".repeat(65)] {
            assert!(create(&registry, wrong, true).unwrap_err().message().contains("cannot name a graph"), "{wrong}");
        }
        assert!(create(&registry, "g", true).unwrap_err().message().contains("traversal source `g`"));
        assert!(create(&registry, "a", false).unwrap_err().message().contains("graphs_dir"));
        create(&registry, "a", true).unwrap();
        assert!(create(&registry, "b", true).unwrap_err().message().contains("graph_count_max"));
        assert!(registry.drop_graph("main").unwrap_err().message().contains("configuration"));
        assert!(registry.drop_graph("mai").unwrap_err().message().contains("`main`"));
        registry.drop_graph("a").unwrap();
        assert_eq!(registry.sources(&anybody()), ["g"]);
    }
}
