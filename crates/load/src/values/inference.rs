//! The type of an untyped column, inferred from all its fields.
//!
//! The rule: the column gets the first of *long, double, boolean, date* that fits every field with a value. If none
//! fits, it is *string*. Whole numbers must be in plain form (`007` and `+1` are text, because leading zeros mean
//! something). Doubles must contain a digit (`NaN` is text). Dates are ISO 8601.
//!
//! If a type fits at least half of the fields and the column is *string* nevertheless, the other fields are reported
//! ([`Inference::exceptions`]): usually they are mistakes in the file.
//!
//! Fields without a value are not added here. The parts of a column may be read by several threads and merged in the
//! order of the file: the result is the same.

use super::column_type::{ColumnType, boolean};
use super::file_id::plain_integer;
use super::temporal;
use super::temporal::TimeFormat;
use crate::progress::TextColumn;

/// The types that are tried, in their order.
const TYPES: [ColumnType; 4] =
    [ColumnType::I64, ColumnType::F64, ColumnType::Bool, ColumnType::DateTime(TimeFormat::Iso)];

/// The most characters of a field that a report shows.
const SAMPLE_CHARACTERS: usize = 40;

/// Statistics of the fields of a column that were seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inference {
    fields: u64,
    fits: [Fits; TYPES.len()],
}

/// The number of fields that a type fits, and the first field that it does not fit.
#[derive(Clone, Debug, Default)]
struct Fits {
    count: u64,
    /// The first field that the type does not fit, with its line number.
    exception: Option<(u64, String)>,
}

impl Inference {
    /// Takes a field into account.
    pub(crate) fn add(&mut self, field: &[u8], line: u64) {
        self.fields += 1;
        let text = std::str::from_utf8(field).unwrap_or("\u{fffd}");
        let long = plain_integer(field).is_some();
        let fits = [long, long || is_double(text), boolean(text).is_some(), temporal::iso(text).is_some()];
        for (of_type, fits) in self.fits.iter_mut().zip(fits) {
            if fits {
                of_type.count += 1;
            } else if of_type.exception.is_none() {
                of_type.exception = Some((line, text.chars().take(SAMPLE_CHARACTERS).collect()));
            }
        }
    }

    /// Adds the statistics of a later part of the column.
    pub(crate) fn merge(&mut self, later: Self) {
        self.fields += later.fields;
        for (own, later) in self.fits.iter_mut().zip(later.fits) {
            own.count += later.count;
            own.exception = own.exception.take().or(later.exception);
        }
    }

    /// The type that the column gets.
    pub(crate) fn column_type(&self) -> ColumnType {
        let fitting = TYPES.into_iter().zip(&self.fits).find(|(_, fits)| self.fields > 0 && fits.count == self.fields);
        fitting.map_or(ColumnType::String, |(kind, _)| kind)
    }

    /// A report on the fields that make the column text, if one other type fits at least half of the fields.
    pub(crate) fn exceptions(&self, property: &str) -> Option<TextColumn> {
        let most = self.fits.iter().map(|fits| fits.count).max().filter(|most| most * 2 >= self.fields && *most > 0)?;
        let (kind, fits) = TYPES.iter().zip(&self.fits).find(|(_, fits)| fits.count == most)?;
        let (line, sample) = fits.exception.clone()?;
        Some(TextColumn {
            property: property.to_owned(),
            otherwise: kind.name(),
            count: self.fields - most,
            fields: self.fields,
            line,
            sample,
        })
        .filter(|_| self.column_type() == ColumnType::String)
    }
}

/// Returns true if a text is a double by the rule.
fn is_double(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let leading_zeros = unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.as_bytes()[1].is_ascii_digit();
    // As a double, a whole number beyond 64 bits would lose digits.
    let whole = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !whole || plain_integer(text.as_bytes()).is_some();
    unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && !leading_zeros
        && fits
        && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(fields: &[&str]) -> Inference {
        let mut inference = Inference::default();
        (1..).zip(fields).for_each(|(line, field)| inference.add(field.as_bytes(), line));
        inference
    }

    #[test]
    fn types_are_inferred_by_the_rule() {
        let infer = |fields: &[&str]| inferred(fields).column_type();
        assert_eq!(infer(&[]), ColumnType::String);
        assert_eq!(infer(&["1", "-2"]), ColumnType::I64);
        assert_eq!(infer(&["1", "2.5", "1e3"]), ColumnType::F64);
        assert_eq!(infer(&["2.5", "1"]), ColumnType::F64);
        assert_eq!(infer(&["1", "007"]), ColumnType::String);
        assert_eq!(infer(&["9223372036854775808"]), ColumnType::String);
        assert_eq!(infer(&["2.5", "9223372036854775808"]), ColumnType::String);
        assert_eq!(infer(&["NaN"]), ColumnType::String);
        assert_eq!(infer(&["true", "False"]), ColumnType::Bool);
        assert_eq!(infer(&["2020-01-02", "2020-01-02T03:04:05Z"]), ColumnType::DateTime(TimeFormat::Iso));
        assert_eq!(infer(&["2020-01-02", "1"]), ColumnType::String);
        assert_eq!(infer(&["true", "1"]), ColumnType::String);
    }

    #[test]
    fn the_fields_that_make_a_column_text_are_told() {
        let mut inference = inferred(&["1", "2", "abc", "3"]);
        inference.merge(inferred(&["x", "5"]));
        let found = inference.exceptions("age").unwrap();
        assert_eq!((found.otherwise, found.count, found.fields), ("long", 2, 6));
        assert_eq!((found.line, found.sample.as_str()), (3, "abc"));
        assert_eq!(inferred(&["1", "2"]).exceptions("n"), None);
        assert_eq!(inferred(&["a", "b", "1"]).exceptions("n"), None);
        assert_eq!(inferred(&["2020-01-02", "2020-13-45"]).exceptions("d").unwrap().otherwise, "date");
    }
}
