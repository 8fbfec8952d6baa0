//! `mangrove load`.

pub mod args;

use std::io::{self, Write};

use mangrove::{Error, FileGroup, LoadReport, UpsertKeys};

use self::args::LoadArgs;
use crate::args::Format;
use crate::output::{Column, render_table};
use crate::{Failure, graphs, query};

/// Loads files and says what became of their rows.
pub fn run(args: &LoadArgs) -> Result<(), Failure> {
    if args.resume && !args.upsert {
        return Err(Error::invalid(
            "a load that was stopped left nothing behind, so there is nothing to go on with: run it again without --resume. Loads \
             with --upsert keep what they did",
        )
        .into());
    }
    let database = graphs::open(args.graph.data.as_deref(), args.graph.memory_limit, graphs::Missing::Create)?;
    let mut options = graphs::load_options(args.graph.map.as_deref())?;
    options.format = args.format.map(Into::into);
    options.delimiter = args.delimiter;
    options.array_delimiter = args.array_delimiter;
    for (texts, edges) in [(&args.nodes, false), (&args.relationships, true)] {
        for text in texts {
            options.groups.push(FileGroup::parse(text, edges)?);
        }
    }
    options.rejects.clone_from(&args.rejects);
    options.threads = args.threads.unwrap_or(options.threads);
    options.max_rejects = args.max_rejects.unwrap_or(options.max_rejects);
    let report = match args.upsert {
        false => graphs::load(&database, &args.files, &options)?,
        true => graphs::upsert(&database, &args.files, &options, UpsertKeys::parse(&args.keys)?)?,
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", report_table(&report))?;
    writeln!(out, "{}", summary(&report))?;
    for path in &report.skipped {
        eprintln!("left out, as the mapping has it: {}", path.display());
    }
    match &args.rejects {
        Some(path) if report.rejects > 0 => {
            let path = path.display();
            eprintln!(
                "the rejected rows and the reasons are in {path}; to mend them, edit the files in {path}.rows and load these with --upsert"
            );
        }
        None if report.rejects > 0 => eprintln!("to see the rejected rows, name a file with --rejects"),
        _ => {}
    }
    for script in &args.queries {
        writeln!(out, "\n{script}")?;
        query::answer(&database, script, Format::Table, &mut out)?;
    }
    if let Some(durability) = database.durability() {
        let directory = durability.directory.display();
        eprintln!(
            "the graph is kept in {directory}; to ask it: mangrove query --data {directory}, or mangrove serve --data {directory}"
        );
    } else if args.queries.is_empty() {
        eprintln!("`memory:` is forgotten now; to keep the graph name a directory with --data, to ask it use --query");
    }
    Ok(())
}

/// One row a file, and the totals.
pub fn report_table(report: &LoadReport) -> String {
    let columns =
        [Column::text("file"), Column::number("vertices"), Column::number("edges"), Column::number("rejects")];
    let mut rows: Vec<Vec<String>> = report
        .files
        .iter()
        .map(|file| {
            let name = file.path.display().to_string();
            vec![name, file.vertices.to_string(), file.edges.to_string(), file.rejects.to_string()]
        })
        .collect();
    let totals = [report.vertices, report.edges, report.rejects].map(|n| n.to_string());
    rows.push([vec!["total".to_owned()], totals.to_vec()].concat());
    render_table(&columns, &rows)
}

/// How much in how long.
pub fn summary(report: &LoadReport) -> String {
    let elements = report.vertices + report.edges;
    let rate = if report.seconds > 0.0 { elements as f64 / report.seconds } else { 0.0 };
    format!("{elements} vertices and edges in {:.3} s: {rate:.0} a second", report.seconds)
}
