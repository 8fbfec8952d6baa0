//! The order of things in a load.
//!
//! 1. The files are listed: folders are opened, formats chosen, rules of the mapping looked up.
//! 2. Every table is planned (`draft`); a file that cannot be planned stops the load before anything is loaded.
//! 3. Untyped columns are typed, one pass over each table that has any.
//! 4. Vertices of every file; then, with all ids known, edges of every file. Within each, elements with chosen
//!    ids before those whose ids the store chooses.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;
use mangrove_graph::{Error, ErrorKind, Result};

use crate::context::{Context, cannot_read, in_file};
use crate::draft::Table;
use crate::identity::{Identities, UpsertKeys};
use crate::input::{Spool, unpacked_name};
use crate::labels::{self, Labels};
use crate::layout::header_names;
use crate::mapping::{Defaults, FileRule, Mapping};
use crate::plan::{Rows, TablePlan, UserIds};
use crate::progress::{LoadReport, Progress, UpsertCounts};
use crate::reject::Rejects;
use crate::sink::Sink;
use crate::{graphml, graphson, table};

/// How many rows may be rejected before a load stops, unless the options say otherwise.
pub const MAX_REJECTS_DEFAULT: u64 = 1000;

/// How long an element of a file may be, unless the options say otherwise.
pub const ELEMENT_BYTES_MAX_DEFAULT: u64 = 64 << 20;

/// How many threads parse unless the options say otherwise: more than keep the one busy that takes what they parsed only hold memory.
const THREADS_DEFAULT_MAX: NonZeroUsize = NonZeroUsize::new(8).expect("eight is not zero");

/// How many files a message names.
const SHOWN_FILES: usize = 8;

/// How deep folders are looked into; only a circle of links lies deeper.
const FOLDER_DEPTH_MAX: usize = 32;

/// What kind of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Rows and columns: `.csv`, `.tsv`; `.dat` and `.txt` when named, and any file a mapping has a rule for.
    Table,
    /// JSON: GraphSON in adjacency form, one vertex a line or all in one object, or one vertex or edge a line: `.json`, `.jsonl`,
    /// `.ndjson`, `.graphson`.
    GraphSon,
    /// GraphML: `.graphml`, `.xml`.
    GraphMl,
    /// Rows and columns, whose types the file says: `.parquet`.
    Parquet,
}

impl Format {
    /// Whether each row is a vertex or an edge, and all rows of a file are of one kind.
    fn is_table(self) -> bool {
        matches!(self, Format::Table | Format::Parquet)
    }

    /// The format an extension stands for, without one that says how the file is compressed. In a folder, `.dat` and `.txt` may
    /// be anything.
    fn of(path: &Path, by_name: bool) -> Option<Self> {
        let path = unpacked_name(path);
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" | "tsv" => Format::Table,
            "dat" | "txt" if by_name => Format::Table,
            "json" | "jsonl" | "ndjson" | "graphson" => Format::GraphSon,
            "graphml" | "xml" => Format::GraphMl,
            "parquet" => Format::Parquet,
            _ => return None,
        })
    }
}

/// How to load.
#[derive(Clone)]
pub struct LoadOptions {
    /// What the columns of tables mean, where their headers do not say.
    pub mapping: Option<Mapping>,
    /// The format of every file; `None`: by extension.
    pub format: Option<Format>,
    /// Between the fields of tables; `None`: the mapping's, or detected.
    pub delimiter: Option<char>,
    /// Between the elements of arrays, where neither mapping nor header says it; `None`: a semicolon.
    pub array_delimiter: Option<char>,
    /// Files whose label is said with them, the first of which may have the header of all.
    pub groups: Vec<FileGroup>,
    /// Where rejected rows are written; `None`: they are only counted.
    pub rejects: Option<PathBuf>,
    /// Set: elements that are in the graph already are not rejected but replaced; ends of edges may be vertices of the graph. The sink
    /// must be one that does so.
    pub upsert: Option<UpsertKeys>,
    /// How many rows may be rejected; 0: the first bad row stops the load.
    pub max_rejects: u64,
    /// How many threads parse; what is loaded does not depend on it.
    pub threads: NonZeroUsize,
    /// How long an element may be: a line of a table or of JSON, a node or an edge of GraphML, a vertex of GraphSON. It is
    /// in memory whole, and a packed file of some megabytes may hold one of gigabytes.
    pub element_bytes_max: u64,
    /// The time since some fixed point, for the report.
    pub clock: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            mapping: None,
            format: None,
            delimiter: None,
            array_delimiter: None,
            groups: Vec::new(),
            rejects: None,
            upsert: None,
            max_rejects: MAX_REJECTS_DEFAULT,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(THREADS_DEFAULT_MAX),
            element_bytes_max: ELEMENT_BYTES_MAX_DEFAULT,
            clock: Arc::new(|| Duration::ZERO),
        }
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("mapping", &self.mapping.is_some())
            .field("format", &self.format)
            .field("delimiter", &self.delimiter)
            .field("rejects", &self.rejects)
            .field("upsert", &self.upsert.is_some())
            .field("max_rejects", &self.max_rejects)
            .field("threads", &self.threads)
            .field("element_bytes_max", &self.element_bytes_max)
            .finish_non_exhaustive()
    }
}

/// Files of one label, as Neo4j's importer takes them (`--nodes=Person=header.csv,part1.csv,part2.csv`): the first line of the
/// first file is the header of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGroup {
    /// The label; of nodes besides those of a label column.
    pub label: Option<String>,
    /// Whether the files hold edges.
    pub edges: bool,
    /// At least one.
    pub files: Vec<PathBuf>,
}

impl FileGroup {
    /// From `Label=file,file` or `file,file`; several labels are separated by `:`.
    pub fn parse(text: &str, edges: bool) -> Result<Self> {
        let (label, files) = match text.split_once('=') {
            Some((label, files)) => (Some(label.replace(':', "::")), files),
            None => (None, text),
        };
        let files: Vec<PathBuf> = files.split(',').filter(|file| !file.is_empty()).map(PathBuf::from).collect();
        if files.is_empty() || label.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid(format!("'{text}' names no files: write LABEL=HEADER.csv,PART.csv")));
        }
        Ok(FileGroup { label, edges, files })
    }

    /// How each file is read.
    fn rules(&self, delimiter: Option<char>) -> Result<Vec<FileRule>> {
        let mut rule = FileRule { label: self.label.clone(), delimiter, ..FileRule::default() };
        let first = &self.files[0];
        let (names, found) = header_names(first, delimiter).map_err(in_file(first))?;
        // A column of types says more than the name of the group.
        if self.edges && names.iter().any(|name| name.to_ascii_uppercase().ends_with(":TYPE")) {
            rule.label = None;
        }
        rule.delimiter = Some(found);
        let rest = FileRule { columns: Some(names), header: Some(false), ..rule.clone() };
        let mut rules = vec![rest; self.files.len()];
        rules[0] = rule;
        Ok(rules)
    }
}

/// Loads files, and the files in folders, into a sink. The path `-` stands for standard input.
///
/// A folder stands for its files, those of its folders included, in the order of their names: with a mapping
/// those it has a rule for, without one those whose extension names a format. A file that is given by name
/// and has no rule is read by its header.
///
/// # Errors
///
/// When a file cannot be read or planned, when a document is damaged, when there are more rejects than
/// allowed, and whatever the sink returns. What the sink was given before then is in it.
pub fn load(
    files: &[PathBuf],
    options: &LoadOptions,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<LoadReport> {
    load_seeing(files, options, sink, progress, &mut |_| {})
}

/// As [`load`]; shows the plans of the tables, with all types, before anything is handed over.
pub(crate) fn load_seeing(
    files: &[PathBuf],
    options: &LoadOptions,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(Progress<'_>),
    see: &mut dyn FnMut(&[TablePlan]),
) -> Result<LoadReport> {
    let begin = (options.clock)();
    let listing = Listing::new(files, options)?;
    let paths: Vec<PathBuf> = listing.files.iter().map(|file| file.path.clone()).collect();
    let mut plans = plan_tables(&listing, options)?;
    let identities = identities(&listing, &plans, options)?;
    let rejects = Rejects::new(options.rejects.clone(), options.max_rejects);
    let mut ctx = Context::new(sink, progress, rejects, &paths, identities, options);
    for plan in &plans {
        // One pass to load it, and one more to type it.
        (0..1 + u32::from(plan.untyped())).try_for_each(|_| ctx.expect_pass(plan.file, &plan.path))?;
    }
    for (at, file) in listing.documents() {
        // Vertices and edges.
        (0..2).try_for_each(|_| ctx.expect_pass(at, &file.path))?;
    }
    for plan in plans.iter_mut().filter(|plan| plan.untyped()) {
        let path = plan.path.clone();
        table::infer_types(&mut ctx, plan).map_err(in_file(&path))?;
    }
    see(&plans);
    for plan in plans.iter().filter(|plan| matches!(plan.rows, Rows::Values(_))) {
        table::load(&mut ctx, plan).map_err(in_file(&plan.path))?;
    }
    each_table(&mut ctx, &plans, Turn { vertices: true, chosen_ids: true })?;
    each_document(&mut ctx, &listing, graphson::load_vertices, graphml::load_vertices)?;
    each_table(&mut ctx, &plans, Turn { vertices: true, chosen_ids: false })?;
    table::reject_ownerless(&mut ctx, &plans)?;
    each_table(&mut ctx, &plans, Turn { vertices: false, chosen_ids: true })?;
    each_document(&mut ctx, &listing, graphson::load_edges, graphml::load_edges)?;
    each_table(&mut ctx, &plans, Turn { vertices: false, chosen_ids: false })?;
    ctx.rejects.finish()?;
    Ok(LoadReport {
        vertices: ctx.files.iter().map(|file| file.vertices).sum(),
        edges: ctx.files.iter().map(|file| file.edges).sum(),
        upserts: UpsertCounts::sum(&ctx.files),
        rejects: ctx.rejects.count(),
        files: ctx.files,
        skipped: listing.skipped,
        seconds: (options.clock)().saturating_sub(begin).as_secs_f64(),
    })
}

/// Whose turn it is among the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Turn {
    vertices: bool,
    /// Whether users chose the ids. They go first: see [`Sink`].
    chosen_ids: bool,
}

impl Turn {
    fn of(plan: &TablePlan) -> Option<Self> {
        match &plan.rows {
            Rows::Vertices(plan) => Some(Turn { vertices: true, chosen_ids: plan.user_ids != UserIds::Automatic }),
            Rows::Edges(plan) => Some(Turn { vertices: false, chosen_ids: plan.id.is_some() }),
            // They are read before all vertices.
            Rows::Values(_) => None,
        }
    }
}

fn each_table(ctx: &mut Context<'_>, plans: &[TablePlan], turn: Turn) -> Result<()> {
    let mut plans = plans.iter().filter(|plan| Turn::of(plan) == Some(turn));
    plans.try_for_each(|plan| table::load(ctx, plan).map_err(in_file(&plan.path)))
}

/// How what is loaded is recognized in the graph, of a load that upserts; an error where it could not be.
fn identities(listing: &Listing, plans: &[TablePlan], options: &LoadOptions) -> Result<Option<Identities>> {
    let Some(keys) = &options.upsert else { return Ok(None) };
    let identities = Identities::of_upsert(keys, plans, options.mapping.as_ref())?;
    if identities.has_keys() {
        let Labels { vertices, edges } = labels::of(listing, plans, &identities, options)?;
        identities.check_labels(&vertices, &edges)?;
    }
    Ok(Some(identities))
}

type LoadDocument = fn(&mut Context<'_>, usize, &Path) -> Result<()>;

pub(crate) fn each_document(
    ctx: &mut Context<'_>,
    listing: &Listing,
    graphson: LoadDocument,
    graphml: LoadDocument,
) -> Result<()> {
    for (at, file) in listing.documents() {
        let load = if file.format == Format::GraphSon { graphson } else { graphml };
        load(ctx, at, &file.path).map_err(in_file(&file.path))?;
    }
    Ok(())
}

fn plan_tables(listing: &Listing, options: &LoadOptions) -> Result<Vec<TablePlan>> {
    let no_defaults = Defaults::default();
    let defaults = options.mapping.as_ref().map_or(&no_defaults, |mapping| &mapping.defaults);
    let tables = listing
        .tables()
        .map(|(at, file)| {
            let rule = file.rule.as_ref();
            let open = match file.format {
                Format::Parquet => Table::open_parquet(at, &file.path, rule, defaults),
                _ => Table::open(at, &file.path, rule, defaults, options.delimiter),
            };
            open.map(|table| table.with_array_delimiter(options.array_delimiter)).map_err(in_file(&file.path))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut spaces = HashSet::new();
    tables.iter().for_each(|table| table.referenced_spaces(&mut spaces));
    let mut plans = Vec::new();
    for (table, (_, file)) in tables.iter().zip(listing.tables()) {
        let unruled = options.mapping.is_some() && file.rule.is_none();
        let context = |error: Error| match unruled {
            true => error.context("no rule of the mapping matches this file, so its header must say what it holds"),
            false => error,
        };
        plans.extend(table.plans(&spaces).map_err(context).map_err(in_file(table.path()))?);
    }
    Ok(plans)
}

pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    format: Format,
    rule: Option<FileRule>,
}

/// The files of a load.
pub(crate) struct Listing {
    pub(crate) files: Vec<Listed>,
    skipped: Vec<PathBuf>,
    /// What came by standard input, for as long as it is read.
    _spools: Vec<Spool>,
}

impl Listing {
    fn new(given: &[PathBuf], options: &LoadOptions) -> Result<Self> {
        let mut spools = Vec::new();
        // Each path with whether it was given by name.
        let mut found: Vec<(PathBuf, bool)> = Vec::new();
        for path in given {
            if path.as_os_str() == "-" {
                let spool = Spool::new(io::stdin().lock())?;
                found.push((spool.path().to_owned(), true));
                spools.push(spool);
            } else if path.is_dir() {
                list_folder(path, 0, &mut found)?;
            } else {
                std::fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
                found.push((path.clone(), true));
            }
        }
        let all: Vec<PathBuf> = found.iter().map(|(path, _)| path.clone()).collect();
        let all: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
        let mut listing = Listing { files: Vec::new(), skipped: Vec::new(), _spools: spools };
        for (path, by_name) in found {
            listing.add(path, by_name, options, &all)?;
        }
        for group in &options.groups {
            for (path, rule) in group.files.iter().zip(group.rules(options.delimiter)?) {
                listing.files.push(Listed { path: path.clone(), format: Format::Table, rule: Some(rule) });
            }
        }
        if listing.files.is_empty() {
            return Err(listing.nothing_to_load(options.mapping.is_some()));
        }
        Ok(listing)
    }

    /// The error for a load without a file: what there is in its place, and why that is left out.
    fn nothing_to_load(&self, mapped: bool) -> Error {
        let names: Vec<String> = self.skipped.iter().take(SHOWN_FILES).map(|path| path.display().to_string()).collect();
        let more = match self.skipped.len().saturating_sub(SHOWN_FILES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = match (names.is_empty(), mapped) {
            (true, _) => "there is no file to load: the folders are empty".to_owned(),
            (false, true) => format!(
                "there is no file to load: the mapping leaves out, or has no rule for, {}{more}",
                names.join(", ")
            ),
            (false, false) => format!(
                "there is no file to load: of {}{more} the extensions name no format; name the files one by one, say with --format what they \
                 are, or with --map what is in them (mappings of known data sets: {})",
                names.join(", "),
                Mapping::shipped_names().collect::<Vec<_>>().join(", ")
            ),
        };
        Error::new(ErrorKind::NotFound, message)
    }

    fn add(&mut self, path: PathBuf, by_name: bool, options: &LoadOptions, all: &[&Path]) -> Result<()> {
        let rule = options.mapping.as_ref().and_then(|mapping| mapping.rule_for(&path, all));
        let by_extension = options.format.or_else(|| Format::of(&path, by_name));
        let format = match rule {
            Some(rule) if rule.skip => None,
            Some(_) if by_extension == Some(Format::Parquet) => by_extension,
            Some(_) => Some(Format::Table),
            None if by_name => Some(by_extension.ok_or_else(|| unknown_format(&path))?),
            None if options.mapping.is_some() => None,
            None => by_extension,
        };
        match format {
            Some(format) => self.files.push(Listed { path, format, rule: rule.cloned() }),
            None => self.skipped.push(path),
        }
        Ok(())
    }

    /// The files whose rows are all of one kind.
    fn tables(&self) -> impl Iterator<Item = (usize, &Listed)> {
        self.files.iter().enumerate().filter(|(_, file)| file.format.is_table())
    }

    /// The files that hold vertices and edges together.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (usize, &Listed)> {
        self.files.iter().enumerate().filter(|(_, file)| !file.format.is_table())
    }
}

fn list_folder(folder: &Path, depth: usize, found: &mut Vec<(PathBuf, bool)>) -> Result<()> {
    if depth > FOLDER_DEPTH_MAX {
        let message = format!("{}: folders lie too deep in one another; is a link part of a circle?", folder.display());
        return Err(Error::invalid(message));
    }
    let entries = std::fs::read_dir(folder).map_err(|e| cannot_read(folder, &e))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list_folder(&path, depth + 1, found)?;
        } else {
            found.push((path, false));
        }
    }
    Ok(())
}

fn unknown_format(path: &Path) -> Error {
    let path_name = path.display();
    if unpacked_name(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return Error::invalid(format!(
            "{path_name} is no file of vertices or edges; if it is the mapping that says what the others mean, give it \
             with --map {path_name}"
        ));
    }
    Error::invalid(format!(
        "{path_name}: the extension names no format (csv, tsv, dat, txt; parquet; json, jsonl, graphson; graphml, xml): \
         name the format, or give the file a rule in a mapping"
    ))
}
