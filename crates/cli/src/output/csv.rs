//! Results as comma-separated values with a header.

use std::io::Write;

use mangrove::Value;

use super::text::{Grid, text};
use crate::Failure;

/// Prints results as CSV and returns their number. A map without a value for a column has an empty cell. Collections
/// are cells of text.
pub fn print(results: &[Value], out: &mut dyn Write) -> Result<u64, Failure> {
    let Grid { columns, rows } = Grid::new(results);
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&columns).map_err(std::io::Error::from)?;
    for row in &rows {
        let cells = row.iter().map(|cell| cell.as_ref().map_or_else(String::new, text));
        writer.write_record(cells).map_err(std::io::Error::from)?;
    }
    writer.flush()?;
    Ok(results.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut out = Vec::new();
        print(&[Value::from("a,\"b\""), Value::I32(1)], &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "result\n\"a,\"\"b\"\"\"\n1\n");
    }
}
