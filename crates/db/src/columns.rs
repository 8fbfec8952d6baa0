//! The open columns of checkpoints: what `durable` wants of a format, by the Parquet files of `load`.

use std::io::Write;

use mangrove_durable::open::columns::{ColumnsFormat, ColumnsOrigin, ColumnsTable, ManifestColumnsFile, WriteTable};
use mangrove_graph::{GraphView, Result};
use mangrove_load::export::{self, ColumnsIds, columns_tables, compare_columns, write_columns};

/// Writes open columns as Parquet.
#[derive(Debug)]
pub(crate) struct ParquetColumns;

impl ColumnsFormat for ParquetColumns {
    fn each_table(&self, view: &dyn GraphView, of: ColumnsOrigin, file: &mut WriteTable<'_>) -> Result<()> {
        let (tables, ids) = columns_tables(view)?;
        for table in tables {
            let notes = [
                ("mangrove.database", of.database.to_string()),
                ("mangrove.timestamp", of.at_ts.to_string()),
                ("mangrove.elements", table.kind.plural().to_owned()),
                ("mangrove.label", view.catalog().label_set_name(table.labels).to_string()),
                ("mangrove.label_set", table.labels.0.to_string()),
            ];
            let mut write_rows = |out: &mut (dyn Write + Send)| write_columns(view, table, ids, &notes, out);
            file(ColumnsTable { kind: table.kind, labels: table.labels }, &mut write_rows)?;
        }
        Ok(())
    }
}

/// Compares open columns with a graph, file by file.
#[derive(Default, Debug)]
pub(crate) struct ColumnsComparison {
    /// Of all ids of the graph, once they were looked through.
    ids: Option<ColumnsIds>,
}

impl ColumnsComparison {
    /// The first difference of a file from the graph, as text.
    pub(crate) fn compare(
        &mut self,
        view: &dyn GraphView,
        file: &ManifestColumnsFile,
        bytes: Vec<u8>,
    ) -> Result<Option<String>> {
        let ids = match self.ids {
            Some(ids) => ids,
            None => *self.ids.insert(columns_tables(view)?.1),
        };
        let ColumnsTable { kind, labels } = file.table();
        compare_columns(view, export::ColumnsTable { kind, labels }, ids, bytes)
    }
}
