//! Checking the rows of a bulk load against the rules of the schema.
//!
//! The loader calls the check before it stores a row of the batch. So a batch that breaks a rule adds nothing.

use mangrove_graph::{ElementKind, KeyId, LabelId, LabelSetId, Result, Value};

use crate::load::bulk::{BulkColumn, ColumnData};
use crate::schema::ElementImage;
use crate::store::Store;

impl Store {
    /// Fails if a row of a bulk load breaks a rule. `ends` gives the labels of the ends of a row's edge.
    pub(crate) fn check_rows(
        &self,
        kind: ElementKind,
        labels: LabelSetId,
        count: usize,
        columns: &[BulkColumn],
        ends: impl Fn(usize) -> Option<(Vec<LabelId>, Vec<LabelId>)>,
    ) -> Result<()> {
        let rules = self.rules();
        if rules.is_empty() {
            return Ok(());
        }
        let labels = self.catalog().labels_of(labels);
        if !rules.concern(kind, &labels) {
            return Ok(());
        }
        for row in 0..count {
            let mut values = Vec::new();
            columns.iter().for_each(|column| column_values(column, row, &mut values));
            let image = ElementImage { kind, labels: &labels, ends: ends(row), values: &values, is_whole: true };
            if let Some((id, what)) = rules.broken_by(&image, self.catalog()) {
                let named = format!("row {row} of the {}s that are loaded", kind.name());
                return Err(self.broken_error(&rules, id, &named, &what));
            }
        }
        Ok(())
    }
}

/// Appends the values of one row of a column. A row without a value appends nothing.
fn column_values(column: &BulkColumn, row: usize, out: &mut Vec<(KeyId, Option<Value>)>) {
    let mut push = |value: Value| out.push((column.key, Some(value)));
    match &column.values {
        ColumnData::Bool(values) => push(values[row].into()),
        ColumnData::I32(values) => push(values[row].into()),
        ColumnData::I64(values) => push(values[row].into()),
        ColumnData::F64(values) => push(values[row].into()),
        ColumnData::String(values) => push(values[row].clone().into()),
        ColumnData::Any(values) => values[row].iter().cloned().for_each(push),
        ColumnData::Multi(values) => values[row].values.iter().for_each(|one| push(one.value.clone())),
    }
}
