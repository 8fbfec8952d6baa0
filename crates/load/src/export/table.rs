//! The input of the writer of one table: the table, the export that it is part of, and the form of ids.

use std::path::PathBuf;

use mangrove_graph::{ElementKind, Error, GraphView, LabelSetId, Result, UserId, Value};
use smol_str::SmolStr;

use super::ExportOptions;
use super::elements::Selection;
use super::kind::{ColumnKind, Scalar};
use super::text::write_scalar;
use crate::values::FileId;

/// One file: the vertices or the edges of a label set.
pub(crate) struct ExportTable {
    pub(crate) set: LabelSetId,
    pub(crate) label: SmolStr,
    pub(crate) kind: ElementKind,
    pub(crate) path: PathBuf,
}

/// The input that all tables of an export share.
pub(crate) struct TablesExport<'e> {
    pub(crate) view: &'e dyn GraphView,
    pub(crate) selection: &'e Selection,
    pub(crate) options: &'e ExportOptions,
    /// How the ids of vertices, and those of edges, are written.
    pub(crate) vertex_ids: IdKind,
    pub(crate) edge_ids: IdKind,
}

/// The type that a column of ids must declare, so that the loader reads the same ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdKind {
    /// Nothing: all ids are whole numbers, which load as longs.
    Longs,
    /// Nothing: ids are longs and texts, and no text looks like a whole number.
    Plain,
    /// The type of all ids.
    Typed(Scalar),
}

impl IdKind {
    /// The part of the header after the name of a column of ids.
    pub(crate) fn suffix(self) -> String {
        match self {
            IdKind::Longs | IdKind::Plain => String::new(),
            IdKind::Typed(scalar) => format!(":{}", scalar.name()),
        }
    }

    /// The type with which an id is written.
    pub(crate) fn scalar(self, id: &Value) -> Scalar {
        match self {
            IdKind::Longs | IdKind::Plain => Scalar::of(id),
            IdKind::Typed(scalar) => scalar,
        }
    }
}

/// Fails if a header cannot hold a key.
pub(crate) fn check_key(key: &str, kind: ColumnKind) -> Result<()> {
    if key.trim() == key && !key.is_empty() {
        return Ok(());
    }
    let kind = kind.name();
    Err(Error::unsupported(format!(
        "the property key '{key}' ({kind}) is empty or begins or ends with space, which a header cannot hold; export \
         as GraphSON or jsonl"
    )))
}

/// Returns true if the loader reads the text of an id, without a type, as the same id.
pub(crate) fn is_plain_id(id: &Value) -> bool {
    let mut text = Vec::new();
    let written = write_scalar(&mut text, Scalar::of(id), id);
    written.is_ok() && UserId::from_value(id) == Some(FileId::parse(&String::from_utf8_lossy(&text)).to_user_id())
}

/// How the ids of vertices, or of edges, are written: such that the loader reads the same ids, or, for plain columns,
/// such that one type holds all of them.
pub(crate) fn id_kind(
    view: &dyn GraphView,
    selection: &Selection,
    is_plain: bool,
    kind: ElementKind,
) -> Result<IdKind> {
    let (mut plain, mut whole, mut met) = (true, true, None);
    let mut add = |id: &Value| {
        let scalar = Scalar::of(id);
        whole &= matches!(scalar, Scalar::I32 | Scalar::I64);
        // Ids of one type are the rule; only ids of another type than the first take more work.
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
    match kind {
        ElementKind::Vertex => Selection::each_vertex_id(view, &selection.labels, &mut |id| add(id)),
        ElementKind::Edge => Selection::each_edge_id(view, &selection.labels, &mut |id| add(id)),
    }?;
    Ok(match met {
        _ if is_plain && whole => IdKind::Longs,
        Some(scalar) if is_plain && scalar != Scalar::Uuid => IdKind::Plain,
        Some(scalar) if !plain => IdKind::Typed(scalar),
        Some(Scalar::I64) => IdKind::Longs,
        _ => IdKind::Plain,
    })
}
