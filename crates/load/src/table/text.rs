//! The rows of text tables, parsed by several threads.
//!
//! The thread of the load cuts the file into chunks of whole rows, which costs hardly more than reading it. Other
//! threads cut chunks into fields and turn the fields into values (`row`).

use mangrove_graph::{Error, Result, Value};
use smol_str::SmolStr;

use super::row::{
    End, EndLookup, ParsedRows, RejectReason, RowFields, RowId, TableRow, kind_of, not_an_id, not_of_type, read_row,
};
use crate::input::{Chunk, Input, RecordOutcome, RecordReader};
use crate::parallel::in_order;
use crate::plan::{IdPlan, PropertyPlan, TablePlan, TextForm};
use crate::state::{LoadContext, Pass};
use crate::values::{Inference, list_items, plain_integer};

/// Bytes of text in a chunk, about.
const CHUNK_BYTES: usize = 512 * 1024;

/// A file that is being cut into chunks.
struct Chunks {
    reader: RecordReader<Input>,
}

impl Chunks {
    /// Opens the file of a plan. Its header, if it has one, is appended to `head`.
    fn open(plan: &TablePlan, form: &TextForm, line_bytes_max: u64, head: &mut Vec<u8>) -> Result<Self> {
        let mut reader = RecordReader::new(Input::open(&plan.path)?, form.dialect).with_lines_of(line_bytes_max);
        if form.header {
            match reader.next()? {
                RecordOutcome::Row => head.extend_from_slice(reader.raw()),
                // The file has changed since it was planned.
                RecordOutcome::Broken(reason) => return Err(Error::invalid(format!("the header is broken: {reason}"))),
                RecordOutcome::End => {}
            }
        }
        Ok(Chunks { reader })
    }

    /// The next chunk, and the bytes of the file that were read up to its end.
    fn next(&mut self) -> Result<Option<(Chunk, u64)>> {
        let chunk = self.reader.next_chunk(CHUNK_BYTES)?;
        Ok(chunk.map(|chunk| (chunk, self.reader.input().bytes_taken())))
    }
}

/// Calls `take` with the parsed rows of a table, in their order.
pub(crate) fn each_batch(
    ctx: &mut LoadContext<'_>,
    plan: &TablePlan,
    form: &TextForm,
    mut take: impl FnMut(&mut LoadContext<'_>, ParsedRows) -> Result<()>,
) -> Result<()> {
    let mut head = Vec::new();
    let mut chunks = Chunks::open(plan, form, ctx.element_bytes_max, &mut head)?;
    ctx.rejects.set_header(plan.file, &head);
    let ends = EndLookup::of(ctx, plan);
    in_order(
        ctx.threads,
        || chunks.next(),
        |(chunk, bytes_taken), deliver| {
            let mut batch = parse(plan, form, chunk, bytes_taken);
            ends.iter().for_each(|ends| ends.resolve(&mut batch));
            deliver(batch);
            Ok(())
        },
        |batch| take(ctx, batch),
    )
}

/// Infers the types of the untyped columns of a table from all its rows. Broken rows and rows with a wrong number of
/// fields do not count; the loading pass rejects them.
pub(crate) fn infer_types(ctx: &mut LoadContext<'_>, plan: &mut TablePlan, form: &TextForm) -> Result<()> {
    let seen = plan.clone();
    let untyped: Vec<usize> = plan.properties().iter().filter(|p| p.kind.is_none()).map(|p| p.column).collect();
    let mut inferences = vec![Inference::default(); untyped.len()];
    let mut chunks = Chunks::open(&seen, form, ctx.element_bytes_max, &mut Vec::new())?;
    in_order(
        ctx.threads,
        || chunks.next(),
        |(chunk, bytes_taken), deliver| {
            deliver((infer(&seen, form, chunk, &untyped), bytes_taken));
            Ok(())
        },
        |((of_chunk, rows), bytes_taken)| {
            inferences.iter_mut().zip(of_chunk).for_each(|(inference, other)| inference.merge(other));
            ctx.rows(&Pass { file: seen.file, path: &seen.path }, rows, bytes_taken)
        },
    )?;
    let open = plan.properties_mut().iter_mut().filter(|property| property.kind.is_none());
    for (property, inference) in open.zip(inferences) {
        property.kind = Some(inference.column_type());
        property.inferred = true;
        ctx.files[seen.file].texts.extend(inference.exceptions(&property.key));
    }
    ctx.end_pass(&Pass { file: seen.file, path: &seen.path });
    Ok(())
}

/// Statistics of the columns of a chunk, and the number of its rows.
fn infer(plan: &TablePlan, form: &TextForm, chunk: Chunk, columns: &[usize]) -> (Vec<Inference>, u64) {
    let mut inferences = vec![Inference::default(); columns.len()];
    let mut reader = RecordReader::of_chunk(chunk, form.dialect);
    let mut rows = 0;
    loop {
        match reader.next_in_chunk() {
            RecordOutcome::End => return (inferences, rows),
            RecordOutcome::Row if reader.len() == form.width => {
                let fields = TextFields { plan, reader: &reader };
                for (column, inference) in columns.iter().zip(&mut inferences) {
                    if !fields.is_null(*column) {
                        inference.add(reader.field(*column), reader.line());
                    }
                }
            }
            RecordOutcome::Row | RecordOutcome::Broken(_) => {}
        }
        rows += 1;
    }
}

fn parse(plan: &TablePlan, form: &TextForm, chunk: Chunk, bytes_taken: u64) -> ParsedRows {
    let mut reader = RecordReader::of_chunk(chunk, form.dialect);
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    loop {
        let cells = match reader.next_in_chunk() {
            RecordOutcome::End => break,
            RecordOutcome::Broken(reason) => Err(reason.to_owned()),
            RecordOutcome::Row if reader.len() != form.width => {
                Err(format!("expected {} fields, found {}", form.width, reader.len()))
            }
            RecordOutcome::Row => Ok(read_row(plan, &TextFields { plan, reader: &reader }, &mut values)),
        };
        rows.push(TableRow { line: reader.line(), raw: reader.raw_range(), cells });
    }
    ParsedRows { rows, values, text: reader.into_text(), bytes_taken }
}

/// The fields of the current row of a reader.
struct TextFields<'r> {
    plan: &'r TablePlan,
    reader: &'r RecordReader<std::io::Empty>,
}

impl TextFields<'_> {
    /// Returns true if a field has no value. In quotes only an empty field and the texts that header or mapping name
    /// count as no value.
    fn is_null(&self, column: usize) -> bool {
        let field = self.reader.field(column);
        self.plan.nulls.iter().any(|null| null.as_bytes() == field)
            && (self.plan.quoted_nulls || field.is_empty() || !self.reader.is_quoted(column))
    }

    /// The text of a field; `None` if it has no value.
    fn str(&self, column: usize) -> Result<Option<&str>, RejectReason> {
        if self.is_null(column) {
            return Ok(None);
        }
        let text = std::str::from_utf8(self.reader.field(column));
        text.map(Some).map_err(|_| format!("field {} is not valid UTF-8", column + 1))
    }
}

impl RowFields for TextFields<'_> {
    fn value(&self, property: &PropertyPlan) -> Result<Value, RejectReason> {
        let kind = kind_of(property);
        match self.str(property.column)? {
            // A field in quotes has a value, even if it is empty.
            None if !self.plan.quoted_nulls && self.reader.is_quoted(property.column) => Ok(kind.empty()),
            None => Ok(Value::Null),
            Some(text) => kind.parse(text).ok_or_else(|| not_of_type(text, property)),
        }
    }

    fn id(&self, id: &IdPlan) -> Result<Option<RowId>, RejectReason> {
        let Some(text) = self.str(id.column)? else { return Ok(None) };
        match &id.kind {
            None => Ok(Some(RowId::of_text(text))),
            Some(kind) => {
                let id = kind.parse(text).and_then(|value| RowId::of_value(&value));
                id.map(Some).ok_or_else(|| not_an_id(text, kind))
            }
        }
    }

    fn end(&self, id: &IdPlan) -> End {
        // Nearly all ids are numbers, which are read without a copy of their text.
        match plain_integer(self.reader.field(id.column)) {
            Some(number) if id.kind.is_none() && !self.is_null(id.column) => return End::Int(number),
            _ => {}
        }
        match self.id(id) {
            Ok(None) => End::None,
            Ok(Some(id)) => End::Id(Box::new(id)),
            Err(reason) => End::Bad(reason),
        }
    }

    fn text(&self, column: usize) -> Result<Option<SmolStr>, RejectReason> {
        Ok(self.str(column)?.map(SmolStr::from))
    }

    fn keys(&self, column: usize, separator: Option<char>) -> Vec<SmolStr> {
        match (self.str(column), separator) {
            (Ok(Some(text)), Some(separator)) => {
                list_items(text, separator).map(|item| SmolStr::from(item.trim())).collect()
            }
            (Ok(Some(text)), None) => vec![SmolStr::from(text)],
            _ => Vec::new(),
        }
    }
}
