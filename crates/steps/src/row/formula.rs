//! `math()` and `format()`: each makes one value for a row from the values in its computed columns. `format()` also
//! reads properties of the row's element.

use mangrove_graph::{Error, Result, Value, numeric};
use mangrove_plan::expression::{Expression, Part};
use mangrove_plan::logical::Name;

use crate::computed::lookup::compute_key;
use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::row::function::text::{TextWriter, Texts, is_collection};
use crate::row::map::MapOperator;
use crate::row::operator::RowOperator;
use crate::rows::{ObjectColumn, Rows};

/// `math()`: an expression over doubles. A row whose variable has no value is dropped.
pub(crate) struct Math {
    expression: Expression,
}

impl Math {
    /// An expression whose variables are the computed columns.
    pub fn new(expression: Expression) -> Self {
        Math { expression }
    }
}

impl RowOperator for Math {
    fn apply(&mut self, rows: Rows, _context: &ExecutionContext, _: &mut Meter<'_>) -> Result<Rows> {
        let mut kept = Vec::with_capacity(rows.len());
        let mut results = Vec::with_capacity(rows.len());
        let mut variables = Vec::with_capacity(rows.computed.len());
        'rows: for row in 0..rows.len() {
            variables.clear();
            for column in 0..rows.computed.len() {
                let Some(value) = rows.computed_value(column, row) else { continue 'rows };
                variables.push(numeric::to_f64(value).ok_or_else(|| {
                    Error::evaluation(format!(
                        "math() computes with numbers, and one of its variables is {}",
                        a_type(value)
                    ))
                })?);
            }
            kept.push(row as u32);
            let result = self.expression.value(&variables);
            results.push(Value::F64(result.ok_or_else(|| Error::evaluation("division by zero in math()"))?));
        }
        Ok(rows.derive(&kept, ObjectColumn::Values(results)))
    }
}

/// `format()`: fills in a template. A name is a property of the row's element, or else the value of its computed column
/// (a map's entry, a side effect, a step label). A row whose variable has no value, or null, is dropped.
pub(crate) struct Format {
    parts: Vec<Part>,
    /// The values of the variables for the rows of a batch, one column for each.
    columns: Vec<Vec<Option<Value>>>,
    /// The texts of the elements in `columns`, except elements inside collections.
    texts: Texts,
}

impl Format {
    /// A template whose variables are the computed columns.
    pub fn new(parts: Vec<Part>) -> Self {
        Format { parts, columns: Vec::new(), texts: Texts::default() }
    }
}

impl MapOperator for Format {
    fn prepare(&mut self, rows: &Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<()> {
        self.columns = self.read(rows, context)?;
        self.texts = Texts::of_objects(self.columns.iter().flatten().flatten(), context, meter)?;
        Ok(())
    }

    fn recycle(&mut self) {
        self.columns = Vec::new();
        self.texts = Texts::default();
    }

    fn map(
        &mut self,
        _rows: &Rows,
        row: usize,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let values = || self.columns.iter().filter_map(|column| column[row].as_ref());
        // A collection may hold many elements, so their ids are read for this row alone.
        let of_collections;
        let texts = match values().any(is_collection) {
            true => {
                of_collections = Texts::of(values(), context, meter)?;
                &of_collections
            }
            false => &self.texts,
        };
        let mut text = TextWriter::new("format", meter);
        let mut columns = self.columns.iter();
        for part in &self.parts {
            match part {
                Part::Text(fixed) => text.push_str(fixed)?,
                Part::Name(_) | Part::By => {
                    let value = columns.next().and_then(|column| column[row].as_ref());
                    let Some(value) = value.filter(|value| **value != Value::Null) else { return Ok(None) };
                    texts.write(value, &mut text)?;
                }
            }
        }
        Ok(Some(text.into_value()))
    }
}

impl Format {
    /// Returns the values of the variables, one column for each.
    fn read(&self, rows: &Rows, context: &ExecutionContext) -> Result<Vec<Vec<Option<Value>>>> {
        let variables = self.parts.iter().filter(|part| !matches!(part, Part::Text(_)));
        variables
            .enumerate()
            .map(|(number, part)| {
                let mut column: Vec<Option<Value>> =
                    (0..rows.len()).map(|row| rows.computed_value(number, row).cloned()).collect();
                if let Part::Name(name) = part {
                    prefer_properties(rows, name, &mut column, context)?;
                }
                Ok(column)
            })
            .collect()
    }
}

/// Puts the property of this name into the column, for each row whose element has it.
fn prefer_properties(rows: &Rows, name: &Name, column: &mut [Option<Value>], context: &ExecutionContext) -> Result<()> {
    let is_element =
        |row: &usize| matches!(rows.object(*row), Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_));
    let elements: Vec<u32> = (0..rows.len()).filter(is_element).map(|row| row as u32).collect();
    let found = compute_key(&rows.objects.gather(&elements), name, context)?;
    for (row, value) in elements.into_iter().zip(found) {
        if value.is_some() {
            column[row as usize] = value;
        }
    }
    Ok(())
}
