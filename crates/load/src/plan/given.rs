//! The plans of tables that a program hands over.

use std::path::Path;

use mangrove_graph::{Error, Result};

use super::table_plan::{
    EdgePlan, EndPlan, GLOBAL_SPACE, IdPlan, LabelPlan, PropertyPlan, RowsPlan, TableForm, TablePlan, UserIds,
    VertexPlan,
};
use crate::source::{SourceElements, SourceLabel, SourceProperty, SourceTable};
use crate::values::ColumnType;

/// The plan of a table, which has this number among those of the load.
///
/// # Errors
///
/// `InvalidArgument` if the table has no such column, or names a property twice.
pub(crate) fn plan_source(file: usize, table: &SourceTable<'_>) -> Result<TablePlan> {
    let column = |at: usize| match at < table.columns.len() {
        true => Ok(at),
        false => Err(Error::invalid(format!("there is no column {at}: the table has {}", table.columns.len()))),
    };
    let id = |at: usize| Ok::<_, Error>(IdPlan { column: column(at)?, kind: None });
    let end =
        |at: usize| Ok::<_, Error>(EndPlan { column: id(at)?, space: GLOBAL_SPACE.to_owned(), skip_missing: false });
    let label = |label: &SourceLabel| {
        let column = label.column.map(column).transpose()?;
        Ok::<_, Error>(LabelPlan { constant: label.constant.clone(), column, ..LabelPlan::default() })
    };
    let properties = |all: &[SourceProperty]| {
        let plan = |(at, property): (usize, &SourceProperty)| {
            if all[..at].iter().any(|other| other.key == property.key) {
                return Err(Error::invalid(format!("two columns become the property '{}'", property.key)));
            }
            Ok(PropertyPlan {
                column: column(property.column)?,
                key: property.key.clone(),
                key_index: at,
                kind: Some(ColumnType::Any),
                inferred: false,
                cardinality: None,
            })
        };
        all.iter().enumerate().map(plan).collect::<Result<Vec<_>>>()
    };
    let rows = match &table.elements {
        SourceElements::Vertices { label: of, id: ids, properties: all } => RowsPlan::Vertices(VertexPlan {
            label: label(of)?,
            id: ids.map(id).transpose()?,
            space: GLOBAL_SPACE.to_owned(),
            user_ids: if ids.is_some() { UserIds::Own } else { UserIds::Automatic },
            id_property: None,
            key: None,
            properties: properties(all)?,
            constants: Vec::new(),
        }),
        SourceElements::Edges { label: of, source, target, id: ids, properties: all } => RowsPlan::Edges(EdgePlan {
            label: label(of)?,
            source: end(*source)?,
            target: end(*target)?,
            id: ids.map(id).transpose()?,
            key: None,
            properties: properties(all)?,
            constants: Vec::new(),
            foreign: None,
        }),
    };
    Ok(TablePlan {
        file,
        path: Path::new(&table.name).to_owned(),
        columns: table.columns.clone(),
        form: TableForm::Source,
        nulls: Vec::new(),
        quoted_nulls: false,
        rows,
    })
}
