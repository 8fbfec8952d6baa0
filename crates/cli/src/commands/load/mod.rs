//! `mangrove load`: loads files and reports what happened to their rows. `server` is the sink that sends batches to a
//! server.

mod server;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mangrove::{
    ColumnReport, Database, ElementKind, Error, FileGroup, FileReport, LoadOptions, LoadReport, Parameters, TextColumn,
    UpsertCounts, UpsertKeys,
};

use self::server::ServerSink;
use crate::args::LoadArgs;
use crate::client::{Ask, Client};
use crate::commands::query;
use crate::connection::graphs;
use crate::output::ResultFormat;
use crate::output::{TableColumn, render_table};
use crate::{Failure, output};

/// Loads files and reports what happened to their rows.
pub fn run(args: &LoadArgs) -> Result<(), Failure> {
    if args.resume && !args.upsert {
        return Err(Error::invalid(
            "a load without --upsert leaves nothing if it is stopped, so there is nothing to resume: run it again \
             without \
             --resume",
        )
        .into());
    }
    if args.url.is_some() && !args.upsert {
        return Err(Error::invalid(
            "a graph of a running server may be in use and need not be empty, so only an upsert can load into it: add \
             --upsert",
        )
        .into());
    }
    let keys = UpsertKeys::parse(&args.keys)?.with_edge_keys(&args.edge_keys)?;
    let options = load_options(args)?;
    if args.dry_run {
        let upsert = args.upsert.then_some(keys);
        return dry_run(args, &LoadOptions { upsert, ..options });
    }
    if let Some(url) = &args.url {
        return into_server(args, url, &LoadOptions { upsert: Some(keys), ..options });
    }
    let new = NewDirectory::of(args.graph.data.as_deref());
    let database = graphs::open(args.graph.data.as_deref(), args.graph.memory_limit, graphs::Missing::Create)?;
    let loaded = match args.upsert {
        false => graphs::load(&database, &args.files, &options),
        true => graphs::upsert(&database, &args.files, &options, keys),
    };
    let report = match loaded {
        Ok(report) => report,
        Err(error) => {
            new.remove_unused(database);
            return Err(error.into());
        }
    };
    let mut out = io::stdout().lock();
    tell(args, &report, &mut out)?;
    for script in &args.queries {
        writeln!(out, "\n{script}")?;
        query::answer(&database, script, ResultFormat::Table, &mut out)?;
    }
    if let Some(durability) = database.durability() {
        let location = durability.location;
        eprintln!(
            "the graph is kept in {location}; to ask it: mangrove query --data {location}, or mangrove serve --data \
             {location}"
        );
    } else if args.queries.is_empty() {
        eprintln!("`memory:` is forgotten now; to keep the graph name a directory with --data, to ask it use --query");
    }
    Ok(())
}

/// Upserts files into a graph of a running server. If the load ends early, the server keeps the batches that it took.
fn into_server(args: &LoadArgs, url: &str, options: &LoadOptions) -> Result<(), Failure> {
    let mut client = Client::connect(url)?.with_source(args.source.as_deref());
    let report = graphs::load_into(&mut ServerSink::new(&mut client), &args.files, options).map_err(|error| {
        error.context("the load ended early; the server keeps the batches it took, and the same load may be run again")
    })?;
    let mut out = io::stdout().lock();
    tell(args, &report, &mut out)?;
    let none = Parameters::new();
    for script in &args.queries {
        writeln!(out, "\n{script}")?;
        let mut results = client.ask(&Ask::new(script, &none))?;
        output::print(&mut results, ResultFormat::Table, &mut out)?;
    }
    Ok(out.flush()?)
}

/// Prints what happened to the rows, and how to correct the rejected ones.
fn tell(args: &LoadArgs, report: &LoadReport, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}", report_table(report, args.upsert))?;
    writeln!(out, "{}", graphs::load_summary(report))?;
    tell_texts(report);
    let why = match args.graph.map.is_some() {
        true => "as the mapping skips it or has no rule for it",
        false => "as its extension names no format",
    };
    report.skipped.iter().for_each(|path| eprintln!("left out, {why}: {}", path.display()));
    match &args.rejects {
        Some(path) if report.rejects > 0 => {
            let (path, command) = (path.display(), mending(args, path));
            eprintln!(
                "the rejected rows and the reasons are in {path}; to mend them, edit the files in {path}.rows and run: \
                 {command}"
            );
        }
        None if report.rejects > 0 => eprintln!("to see the rejected rows, name a file with --rejects"),
        _ => {}
    }
    Ok(())
}

/// Prints how files would be read, and what their rows would become.
fn dry_run(args: &LoadArgs, options: &LoadOptions) -> Result<(), Failure> {
    let tried = graphs::dry_run(&args.files, options)?;
    let mut out = io::stdout().lock();
    for table in &tried.tables {
        writeln!(out, "{}: {}", table.path.display(), table.rows)?;
        let row = |column: &ColumnReport| {
            let kind = if column.inferred { format!("{} (inferred)", column.kind) } else { column.kind.clone() };
            vec![column.column.clone(), column.meaning.clone(), kind]
        };
        let rows: Vec<Vec<String>> = table.columns.iter().map(row).collect();
        writeln!(out, "{}\n", render_table(&["column", "is", "type"].map(TableColumn::text), &rows))?;
    }
    writeln!(out, "{}", report_table(&tried.report, false))?;
    tell_texts(&tried.report);
    tried.report.skipped.iter().for_each(|path| eprintln!("left out: {}", path.display()));
    if tried.outside > 0 {
        eprintln!("{} ends of edges are in no file; an upsert looks for them in the graph", tried.outside);
    }
    if tried.report.rejects > 0 && args.rejects.is_none() {
        eprintln!("to see the rejected rows, name a file with --rejects");
    }
    eprintln!("nothing was written");
    Ok(())
}

/// Prints which columns are text because of a few of their fields.
fn tell_texts(report: &LoadReport) {
    for file in &report.files {
        for text in &file.texts {
            let TextColumn { property, otherwise, count, fields, line, sample } = text;
            eprintln!(
                "{}: '{property}' is text, because {count} of {fields} fields are not of the type {otherwise}, the \
                 first '{sample}' on line \
                 {line}; a type in the header or the mapping would reject these rows",
                file.path.display()
            );
        }
    }
}

fn load_options(args: &LoadArgs) -> Result<LoadOptions, Error> {
    let mut options = graphs::load_options(args.graph.map.as_deref())?;
    options.format = args.format.map(Into::into);
    options.delimiter = args.delimiter;
    options.array_delimiter = args.array_delimiter;
    for (texts, kind) in [(&args.nodes, ElementKind::Vertex), (&args.relationships, ElementKind::Edge)] {
        for text in texts {
            options.groups.push(FileGroup::parse(text, kind)?);
        }
    }
    options.rejects.clone_from(&args.rejects);
    options.threads = args.threads.unwrap_or(options.threads);
    options.max_rejects = args.max_rejects.unwrap_or(options.max_rejects);
    options.element_bytes_max = args.max_element_size.map_or(options.element_bytes_max, |size| size.bytes);
    Ok(options)
}

/// The directory that the load creates, if there was none or it was empty.
struct NewDirectory(Option<PathBuf>);

impl NewDirectory {
    fn of(data: Option<&str>) -> Self {
        let absent = |path: &PathBuf| !path.exists();
        NewDirectory(data.map(PathBuf::from).filter(absent))
    }

    /// Removes the directory after a failed load that left nothing in it.
    fn remove_unused(self, database: Database) {
        let made = database.durability().and_then(|durability| Some(durability.location.directory()?.to_owned()));
        let unused = database.is_empty();
        drop(database);
        if let (Some(new), Some(made), true) = (self.0, made, unused)
            && new.canonicalize().ok() == made.canonicalize().ok()
        {
            // Best effort: an empty database may stay, which the next load fills.
            let _ = std::fs::remove_dir_all(&made);
        }
    }
}

/// The command that loads corrected rows, with the options that matter: mapping, format and keys.
fn mending(args: &LoadArgs, rejects: &Path) -> String {
    let mut command = format!("mangrove load {} --upsert", shell_word(&format!("{}.rows", rejects.display())));
    let mut option = |name: &str, value: &str| command.push_str(&format!(" {name} {}", shell_word(value)));
    args.graph.map.iter().for_each(|map| option("--map", &map.to_string_lossy()));
    args.keys.iter().for_each(|key| option("--key", key));
    args.edge_keys.iter().for_each(|key| option("--edge-key", key));
    args.delimiter.iter().for_each(|delimiter| option("--delimiter", &delimiter.to_string()));
    args.array_delimiter.iter().for_each(|delimiter| option("--array-delimiter", &delimiter.to_string()));
    match &args.url {
        Some(url) => {
            option("--url", url);
            args.source.iter().for_each(|source| option("--source", source));
        }
        None => option("--data", args.graph.data.as_deref().unwrap_or("DIR")),
    }
    command
}

/// Quotes a text as one word of a shell.
fn shell_word(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:,=@+".contains(character);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The report: one row a file, and totals. For an upsert with the counts of what it did; with counts of values if there
/// are files of values.
pub fn report_table(report: &LoadReport, upsert: bool) -> String {
    let with_values = report.files.iter().any(|file| file.values > 0);
    let mut names = vec!["vertices", "edges"];
    names.extend(with_values.then_some("values"));
    names.extend(upsert.then_some(["created", "updated", "unchanged"]).into_iter().flatten());
    names.push("rejects");
    let columns: Vec<TableColumn> =
        [TableColumn::text("file")].into_iter().chain(names.into_iter().map(TableColumn::number)).collect();
    let row = |name: String, file: &FileReport| {
        let UpsertCounts { created, updated, unchanged } = file.upserts;
        let mut counts = vec![file.vertices, file.edges];
        counts.extend(with_values.then_some(file.values));
        counts.extend(upsert.then_some([created, updated, unchanged]).into_iter().flatten());
        counts.push(file.rejects);
        [name].into_iter().chain(counts.iter().map(u64::to_string)).collect::<Vec<String>>()
    };
    let total = FileReport {
        vertices: report.vertices,
        edges: report.edges,
        values: report.files.iter().map(|file| file.values).sum(),
        upserts: report.upserts,
        rejects: report.rejects,
        ..FileReport::default()
    };
    let mut rows: Vec<Vec<String>> =
        report.files.iter().map(|file| row(file.path.display().to_string(), file)).collect();
    rows.push(row("total".to_owned(), &total));
    render_table(&columns, &rows)
}
