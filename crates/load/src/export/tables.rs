//! One file a label, for formats that are tables: which files there are, and several written at once.
//!
//! Files are named after what they hold, `vertices_person.csv` and `edges_knows.csv`; characters that file systems or
//! patterns could take amiss become `_`, and a number tells names apart that became equal. Labels
//! themselves stand in the files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_graph::{Error, ErrorKind, GraphView, LabelSetId, Result, UserId, Value};
use smol_str::SmolStr;

use super::elements::Selection;
use super::kind::{Kind, Scalar, Schema};
use super::output::Output;
#[cfg(feature = "parquet")]
use super::parquet;
use super::{Counts, ExportFormat, ExportOptions, ExportProgress, ExportReport, Losses, Target, csv};
use crate::id_map::FileId;

/// One file: the vertices or the edges of a label set.
pub(crate) struct Table {
    pub(crate) set: LabelSetId,
    pub(crate) label: SmolStr,
    pub(crate) edges: bool,
    pub(crate) path: PathBuf,
}

/// What all tables of an export share.
pub(crate) struct Setting<'e> {
    pub(crate) view: &'e dyn GraphView,
    pub(crate) selection: &'e Selection,
    pub(crate) options: &'e ExportOptions,
    /// How the ids of all vertices, and of all edges, are written.
    pub(crate) vertex_ids: IdKind,
    pub(crate) edge_ids: IdKind,
}

/// What the texts of a column of ids need beside them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdKind {
    /// Nothing: all are whole numbers, which are longs.
    Longs,
    /// Nothing: whole numbers are longs, other texts are texts.
    Plain,
    /// A type.
    Typed(Scalar),
}

/// Writes the tables of a graph into a folder, which may be there and then must be empty.
pub(crate) fn write(
    view: &dyn GraphView,
    selection: &Selection,
    folder: &Path,
    options: &ExportOptions,
    progress: &mut dyn FnMut(ExportProgress) -> Result<()>,
) -> Result<ExportReport> {
    #[cfg(not(feature = "parquet"))]
    if options.format == ExportFormat::Parquet {
        return Err(Error::unsupported(
            "this program was built without Parquet (the feature `parquet` of mangrove-load)",
        ));
    }
    #[cfg(feature = "parquet")]
    if options.format == ExportFormat::Parquet {
        parquet::codec(options.compression)?;
    }
    prepare_folder(folder)?;
    let tables = list(view, selection, folder, options)?;
    let setting = Setting {
        view,
        selection,
        options,
        vertex_ids: id_kind(view, selection, options.plain, false)?,
        edge_ids: id_kind(view, selection, options.plain, true)?,
    };
    let next = AtomicUsize::new(0);
    let shared = Mutex::new(Shared { counts: Counts::default(), losses: Losses::default(), failure: None });
    let work = |tell: &mut dyn FnMut(Counts) -> Result<()>| {
        // A number a worker takes is nobody else's; nothing more is published by it.
        while let Some(table) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
            if shared.lock().expect("no holder panics").failure.is_some() {
                return;
            }
            let outcome = write_table(&setting, table, &shared, tell);
            let mut shared = shared.lock().expect("no holder panics");
            match outcome {
                Ok(losses) => shared.losses.add(losses),
                Err(e) => {
                    shared.failure.get_or_insert(e);
                }
            }
        }
    };
    let others = options.threads.get().min(tables.len().max(1)) - 1;
    std::thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| work(&mut |_| Ok(())));
        }
        // The callback is the caller's, so it is called on the caller's thread.
        work(progress);
    });
    let Shared { counts, losses, failure } = shared.into_inner().expect("no holder panics");
    match failure {
        Some(failure) => Err(failure),
        None => {
            progress(counts)?;
            Ok(ExportReport { vertices: counts.vertices, edges: counts.edges, losses })
        }
    }
}

/// What workers tell each other.
struct Shared {
    counts: Counts,
    losses: Losses,
    failure: Option<Error>,
}

fn write_table(
    setting: &Setting<'_>,
    table: &Table,
    shared: &Mutex<Shared>,
    tell: &mut dyn FnMut(Counts) -> Result<()>,
) -> Result<Losses> {
    let mut before = Counts::default();
    let mut add = |counts: Counts| {
        let mut shared = shared.lock().expect("no holder panics");
        shared.counts.vertices += counts.vertices - before.vertices;
        shared.counts.edges += counts.edges - before.edges;
        before = counts;
        match &shared.failure {
            // Another worker's; it is reported once.
            Some(_) => Err(Error::new(ErrorKind::Cancelled, "another table failed")),
            None => Ok(shared.counts),
        }
    };
    let mut progress = |counts: Counts| add(counts).and_then(&mut *tell);
    #[cfg(feature = "parquet")]
    if setting.options.format == ExportFormat::Parquet {
        // Rows become columns before anything of them is written.
        let mut nowhere = std::io::sink();
        let mut target = Target { out: &mut nowhere, losses: Losses::default(), progress: &mut progress };
        let (output, counts) = parquet::write(setting, table, Output::create(&table.path)?, &mut target)?;
        (target.progress)(counts)?;
        output.finish()?;
        return Ok(target.losses);
    }
    let schema = schema(setting, table)?;
    let mut output = Output::create(&table.path)?;
    let mut target = Target { out: &mut output, losses: Losses::default(), progress: &mut progress };
    let counts = csv::write(setting, table, &schema, &mut target)?;
    let losses = target.losses;
    (target.progress)(counts)?;
    output.finish()?;
    Ok(losses)
}

/// Looks the properties of a table through for its columns.
fn schema(setting: &Setting<'_>, table: &Table) -> Result<Schema> {
    let mut schema = Schema::default();
    let labels = Selection::only(table.set);
    match table.edges {
        false => Selection::each_vertex(setting.view, &labels, &mut |row| {
            schema.add(row.properties);
            Ok(())
        }),
        true => setting.selection.each_edge(setting.view, &labels, &mut |row| {
            schema.add(row.properties);
            Ok(())
        }),
    }?;
    schema.seal();
    Ok(schema)
}

fn prepare_folder(folder: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    if std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        let message = format!(
            "{} is not empty: files of another export would be loaded together with this one; name a new folder",
            folder.display()
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn list(view: &dyn GraphView, selection: &Selection, folder: &Path, options: &ExportOptions) -> Result<Vec<Table>> {
    let mut taken = HashSet::new();
    let mut tables = Vec::new();
    let extension = match (options.format, options.compression) {
        // What compresses inside has the same name.
        (ExportFormat::Parquet, _) => "parquet".to_owned(),
        (_, None) => "csv".to_owned(),
        (_, Some(packed)) => format!("csv.{}", packed.extension()),
    };
    for edges in [false, true] {
        for set in selection.sets(view, edges)? {
            let label = view.catalog().label_set_name(set);
            let safe: String =
                label.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).take(100).collect();
            let stem = format!("{}_{safe}", if edges { "edges" } else { "vertices" });
            let name = (1..)
                .map(|number| if number == 1 { stem.clone() } else { format!("{stem}_{number}") })
                .find(|name| taken.insert(name.to_lowercase()))
                .expect("some number is free");
            tables.push(Table { set, label, edges, path: folder.join(format!("{name}.{extension}")) });
        }
    }
    Ok(tables)
}

/// How ids have to be written for the loader to read the same ones.
/// For plain columns: so that one type holds all of them.
fn id_kind(view: &dyn GraphView, selection: &Selection, is_plain: bool, edges: bool) -> Result<IdKind> {
    let (mut plain, mut whole, mut met) = (true, true, None);
    let mut add = |id: &Value| {
        let scalar = Scalar::of(id);
        whole &= matches!(scalar, Scalar::I32 | Scalar::I64);
        // Only what is unlike the rest needs a closer look: ids of one type are the rule.
        plain &= match id {
            Value::I64(_) => true,
            Value::String(text) => {
                !text.is_empty() && text.trim() == text.as_str() && matches!(FileId::parse(text), FileId::Text(_))
            }
            _ => false,
        };
        met = Some(match met {
            None => scalar,
            Some(other) if other == scalar => scalar,
            Some(_) => Scalar::Any,
        });
    };
    match edges {
        false => Selection::each_vertex_id(view, &selection.labels, &mut |id| add(id)),
        true => Selection::each_edge_id(view, &selection.labels, &mut |id| add(id)),
    }?;
    Ok(match met {
        _ if is_plain && whole => IdKind::Longs,
        Some(scalar) if is_plain && scalar != Scalar::Uuid => IdKind::Plain,
        Some(scalar) if !plain => IdKind::Typed(scalar),
        Some(Scalar::I64) => IdKind::Longs,
        _ => IdKind::Plain,
    })
}

impl IdKind {
    /// What stands behind the name of a column of ids.
    pub(crate) fn suffix(self) -> String {
        match self {
            IdKind::Longs | IdKind::Plain => String::new(),
            IdKind::Typed(scalar) => format!(":{}", scalar.name()),
        }
    }

    /// What the texts are written as.
    pub(crate) fn scalar(self, id: &Value) -> Scalar {
        match self {
            IdKind::Longs | IdKind::Plain => Scalar::of(id),
            IdKind::Typed(scalar) => scalar,
        }
    }
}

/// Whether a text is a key that a header can name.
pub(crate) fn check_key(key: &str, kind: Kind) -> Result<()> {
    if key.trim() == key && !key.is_empty() {
        return Ok(());
    }
    let kind = kind.name();
    Err(Error::unsupported(format!(
        "the property key '{key}' ({kind}) is empty or begins or ends with space, which a header cannot hold; export as GraphSON or jsonl"
    )))
}

/// The id a reader of plain texts would make of a text.
pub(crate) fn is_plain_id(id: &Value) -> bool {
    let mut text = Vec::new();
    let written = super::text::write_scalar(&mut text, Scalar::of(id), id);
    written.is_ok() && UserId::from_value(id) == Some(FileId::parse(&String::from_utf8_lossy(&text)).to_user_id())
}
