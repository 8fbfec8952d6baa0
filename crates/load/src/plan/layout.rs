//! The layout of a text table: the delimiter and the quotes of its fields, and the names of its columns.

use std::io::Read;
use std::path::Path;

use mangrove_graph::{Error, Result};

use crate::input::{Input, RecordOutcome, RecordReader, TableDialect, detect_delimiter, unpacked_name};
use crate::mapping::{Defaults, FileRule};

/// Bytes at the start of a file in which the first line is searched for the delimiter.
const PEEK_BYTES: u64 = 64 * 1024;

/// The most columns of a table. Each costs some hundred bytes before a row is read (LOAD-1).
const COLUMN_COUNT_MAX: usize = 1 << 18;

/// The delimiter, quote and escape of a file: its rule's, else the defaults', else the delimiter that its first line
/// shows.
pub(crate) fn dialect(
    path: &Path,
    rule: &FileRule,
    defaults: &Defaults,
    delimiter: Option<char>,
) -> Result<TableDialect> {
    let given = rule.delimiter.or(defaults.delimiter).or(delimiter);
    let delimiter = match given {
        Some(delimiter) => ascii(delimiter, "delimiter")?,
        None if unpacked_name(path).extension().is_some_and(|extension| extension == "tsv") => b'\t',
        None => {
            let mut front = Vec::new();
            Input::open(path)?.take(PEEK_BYTES).read_to_end(&mut front)?;
            detect_delimiter(front.split(|byte| *byte == b'\n').next().unwrap_or_default())
        }
    };
    let quote = rule.quote.as_deref().or(defaults.quote.as_deref()).unwrap_or("\"");
    let escape = rule.escape.as_deref().or(defaults.escape.as_deref()).unwrap_or("");
    Ok(TableDialect { delimiter, quote: character(quote, "quote")?, escape: character(escape, "escape")? })
}

/// The names in the first line of a file, and its delimiter.
pub(crate) fn header_names(path: &Path, delimiter: Option<char>) -> Result<(Vec<String>, char)> {
    let rule = FileRule::default();
    let dialect = dialect(path, &rule, &Defaults::default(), delimiter)?;
    Ok((names(path, &rule, dialect, true)?, char::from(dialect.delimiter)))
}

fn character(text: &str, what: &str) -> Result<Option<u8>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Ok(None),
        (Some(character), None) => ascii(character, what).map(Some),
        _ => Err(Error::invalid(format!("{what} is one character, or empty for none, not '{text}'"))),
    }
}

fn ascii(character: char, what: &str) -> Result<u8> {
    match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() => Ok(byte),
        _ => Err(Error::invalid(format!("{what} must be an ASCII character, not '{character}'"))),
    }
}

/// The names of the columns: the rule's, or those in the first row.
pub(crate) fn names(path: &Path, rule: &FileRule, dialect: TableDialect, header: bool) -> Result<Vec<String>> {
    let mut reader = RecordReader::new(Input::open(path)?, dialect);
    let first = match reader.next()? {
        RecordOutcome::Row => Some(&reader),
        RecordOutcome::Broken(reason) if header => {
            return Err(Error::invalid(format!("the header is broken: {reason}")));
        }
        RecordOutcome::Broken(_) | RecordOutcome::End => None,
    };
    match (&rule.columns, header, first) {
        (Some(columns), true, Some(row)) if columns.len() != row.len() => Err(Error::invalid(format!(
            "the mapping names {} columns, but the header has {}",
            columns.len(),
            row.len()
        ))),
        (Some(columns), _, _) => Ok(columns.clone()),
        (None, true, Some(row)) if row.len() > COLUMN_COUNT_MAX => {
            Err(Error::invalid(format!("the header has {} columns, more than {COLUMN_COUNT_MAX}", row.len())))
        }
        (None, true, Some(row)) => {
            Ok((0..row.len()).map(|at| String::from_utf8_lossy(row.field(at)).into_owned()).collect())
        }
        (None, true, None) => Err(Error::invalid("the file is empty: it has not even a header")),
        (None, false, _) => {
            Err(Error::invalid("a file without a header needs names for its columns in the mapping (columns = […])"))
        }
    }
}
