//! `mangrove generate`.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use mangrove::{Database, Error, Result, Value};
use mangrove_generate::{
    CountingSink, CsvSink, GenerateProgress, GraphCounts, GraphSink, GraphsonSink, MemorySink, knowledge, kronecker,
    social,
};

use super::query;
use crate::Failure;
use crate::args::{CommonArgs, GenerateArgs, GeneratorKind, KnowledgeArgs, KroneckerArgs};
use crate::clock::Stopwatch;
use crate::connection::graphs;
use crate::output::ResultFormat;
use crate::output::{TableColumn, render_table};

/// Makes a graph in memory, in a database or in files, and prints its counts.
pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    match &args.kind {
        GeneratorKind::Kronecker(args) => {
            let spec = kronecker_spec(args)?;
            generate(&args.common, FileFormat::Tables, &|sink| spec.generate(sink))
        }
        GeneratorKind::Social(args) => {
            let persons = args.scale_factor.map_or(Ok(args.persons), social::persons_at)?;
            let spec = social::SocialSpec { persons, seed: args.common.seed, threads: threads(&args.common) };
            generate(&args.common, FileFormat::Tables, &|sink| spec.generate(sink))
        }
        GeneratorKind::Knowledge(args) => {
            let KnowledgeArgs { entities, keys, common } = args;
            let spec = knowledge::KnowledgeSpec {
                entities: *entities,
                keys: *keys,
                seed: common.seed,
                threads: threads(common),
            };
            generate(common, FileFormat::Graphson, &|sink| spec.generate(sink))
        }
    }
}

/// The format of the files for a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Tables,
    Graphson,
}

impl FileFormat {
    /// Generates files in a folder. Returns the counts of the graph and the size of the files in bytes.
    fn write(self, folder: &Path, generator: GeneratorFn<'_>) -> Result<(GraphCounts, u64)> {
        match self {
            FileFormat::Tables => {
                let mut files = CsvSink::new(folder)?;
                Ok((counted(generator, &mut files)?, files.finish()?))
            }
            FileFormat::Graphson => {
                let mut files = GraphsonSink::new(folder)?;
                Ok((counted(generator, &mut files)?, files.finish()?))
            }
        }
    }

    /// The command line that loads the files.
    fn hint(self, folder: &Path) -> String {
        let map = match self {
            FileFormat::Tables => format!(" --map {}", folder.join("mapping.toml").display()),
            FileFormat::Graphson => String::new(),
        };
        format!("to ask it: mangrove serve --load {}{map}", folder.display())
    }
}

fn kronecker_spec(args: &KroneckerArgs) -> Result<kronecker::KroneckerSpec> {
    let schema = match &args.schema {
        Some(file) => kronecker::Schema::read(file)?,
        None => kronecker::Schema::with_counts(args.labels, args.ptypes),
    };
    Ok(kronecker::KroneckerSpec {
        scale: args.scale,
        edge_factor: args.edge_factor,
        schema,
        undirected: args.undirected,
        seed: args.common.seed,
        threads: threads(&args.common),
    })
}

fn threads(args: &CommonArgs) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, NonZero::get);
    args.threads.map_or_else(all, usize::from)
}

/// A generator with its arguments.
type GeneratorFn<'a> = &'a dyn Fn(&mut dyn GraphSink) -> Result<()>;

fn generate(args: &CommonArgs, files: FileFormat, generator: GeneratorFn<'_>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let stopwatch = Stopwatch::start();
    let database = graphs::open(args.data.as_deref(), args.memory_limit, graphs::Missing::Create)?;
    let (counts, size) = match &args.out {
        Some(folder) => {
            let (counts, bytes) = files.write(folder, generator)?;
            (counts, format!("{bytes} bytes in {}", folder.display()))
        }
        None => {
            let mut memory = MemorySink::new(&database)?;
            let counts = counted(generator, &mut memory)?;
            memory.finish()?;
            (counts, format!("{} bytes in memory", database.memory().total_bytes()))
        }
    };
    let seconds = stopwatch.elapsed().as_secs_f64();
    writeln!(out, "{}", table(&counts))?;
    let elements = counts.vertices + counts.edges;
    let rate = elements as f64 / seconds.max(f64::MIN_POSITIVE);
    writeln!(out, "{elements} vertices and edges in {seconds:.3} s: {rate:.0} a second; {size}")?;
    writeln!(out, "digest {:016x}", counts.digest)?;
    if args.check {
        if let Some(folder) = &args.out {
            load(&database, folder)?;
        }
        check(&database, &counts)?;
        writeln!(out, "checked: the database counts the same")?;
    }
    for script in &args.queries {
        writeln!(out, "\n{script}")?;
        query::answer(&database, script, ResultFormat::Table, &mut out)?;
    }
    match &args.out {
        Some(folder) => eprintln!("{}", files.hint(folder)),
        None if args.data.is_some() => {}
        None if args.queries.is_empty() => {
            eprintln!("the graph is forgotten now; ask it with --query, or keep it with --data or --out")
        }
        None => {}
    }
    Ok(())
}

/// Generates into a sink and counts, with a progress bar if standard error is a terminal.
fn counted(generator: GeneratorFn<'_>, sink: &mut dyn GraphSink) -> Result<GraphCounts> {
    let bar = bar();
    let mut show = |progress: GenerateProgress, counts: &GraphCounts| {
        if !bar.is_hidden() {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            let (vertices, edges) = (counts.vertices, counts.edges);
            bar.set_message(format!("{}: {vertices} vertices, {edges} edges", progress.stage));
        }
    };
    let mut counted = CountingSink::new(sink, &mut show);
    let outcome = generator(&mut counted);
    let counts = counted.counts;
    bar.finish_and_clear();
    outcome.map(|()| counts)
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed}")
        .expect("the template is a constant that a test renders");
    ProgressBar::new(0).with_style(style)
}

fn table(counts: &GraphCounts) -> String {
    let columns = ["V", "E", "VP", "EP", "bytes of VP and EP", "vertex labels", "edge labels"];
    let row = [
        counts.vertices,
        counts.edges,
        counts.vertex_properties,
        counts.edge_properties,
        counts.property_bytes,
        counts.vertices_by_label.len() as u64,
        counts.edges_by_label.len() as u64,
    ];
    render_table(&columns.map(TableColumn::number), &[row.map(|count| count.to_string()).to_vec()])
}

/// Loads the generated files.
fn load(database: &Database, folder: &Path) -> Result<()> {
    let mapping = folder.join("mapping.toml");
    let options = graphs::load_options(mapping.exists().then_some(mapping.as_path()))?;
    let report = graphs::load(database, &[folder.to_owned()], &options)?;
    match report.rejects {
        0 => Ok(()),
        rejects => Err(Error::bug(format!("{rejects} generated rows were rejected"))),
    }
}

/// Fails if the counts of the database differ from those of the generator.
fn check(database: &Database, counts: &GraphCounts) -> Result<()> {
    for (script, expected) in [
        ("g.V().count()", counts.vertices),
        ("g.E().count()", counts.edges),
        ("g.V().properties().count()", counts.vertex_properties),
        ("g.E().properties().count()", counts.edge_properties),
    ] {
        let found = database.query(script)?.collect()?;
        if found != [Value::I64(expected as i64)] {
            return Err(Error::bug(format!("{script} answers {found:?}, but {expected} were generated")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        bar().set_message("edges");
    }

    #[test]
    fn what_is_generated_is_what_the_database_has() {
        let database = graphs::open(None, None, graphs::Missing::Create).unwrap();
        let mut memory = MemorySink::new(&database).unwrap();
        let spec = kronecker::KroneckerSpec { scale: 6, ..kronecker::KroneckerSpec::default() };
        let mut counts = counted(&|sink| spec.generate(sink), &mut memory).unwrap();
        memory.finish().unwrap();
        check(&database, &counts).unwrap();
        counts.edges += 1;
        assert!(check(&database, &counts).unwrap_err().message().contains("g.E().count()"));
    }
}
