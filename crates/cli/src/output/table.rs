//! Results as a table for people. On a terminal the table is as wide as the terminal at most.

use std::io::{IsTerminal, Write};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use mangrove::Value;

use super::text::{Grid, entry_names, text};
use crate::Failure;

/// A column of a table.
pub struct TableColumn {
    name: String,
    /// True for numbers, which are aligned to the right.
    right: bool,
}

impl TableColumn {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Self {
        TableColumn { name: name.into(), right: false }
    }

    /// A column of numbers, aligned to the right.
    pub fn number(name: impl Into<String>) -> Self {
        TableColumn { name: name.into(), right: true }
    }
}

/// A table as text.
pub fn render(columns: &[TableColumn], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.set_header(columns.iter().map(|column| column.name.as_str()));
    for row in rows {
        table.add_row(row);
    }
    for (at, _) in columns.iter().enumerate().filter(|(_, column)| column.right) {
        if let Some(shown) = table.column_mut(at) {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// The width of the terminal in characters; `None` if standard output is no terminal.
fn terminal_width() -> Option<u16> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&out).ok().map(|size| size.ws_col).filter(|width| *width > 0)
}

/// Prints results as a table. A single text of several lines (a plan, a profile) is printed as it is.
pub fn print(results: &[Value], out: &mut dyn Write) -> Result<u64, Failure> {
    match results {
        [] => {}
        [Value::String(text)] if text.contains('\n') => writeln!(out, "{}", text.trim_end())?,
        [profile @ Value::TraversalMetrics(_)] => writeln!(out, "{}", text(profile).trim_end())?,
        results => writeln!(out, "{}", of_results(results))?,
    }
    Ok(results.len() as u64)
}

fn of_results(results: &[Value]) -> String {
    let Grid { columns, rows } = match results {
        [Value::Map(entries)] if is_table(entries) => entries_as_rows(entries),
        _ => Grid::new(results),
    };
    // Columns of numbers are aligned to the right.
    let is_numeric = |at: usize| rows.iter().all(|row| row[at].as_ref().is_none_or(Value::is_number));
    let columns: Vec<TableColumn> =
        columns.into_iter().enumerate().map(|(at, name)| TableColumn { right: is_numeric(at), name }).collect();
    let cell = |cell: &Option<Value>| cell.as_ref().map_or_else(String::new, text);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    render(&columns, &rows)
}

/// Returns true if a single map is printed with a row for each entry, as the counts of a group are: its values have one
/// type. A map with values of several types is one record, and its entries are columns.
fn is_table(entries: &[(Value, Value)]) -> bool {
    !entries.is_empty() && entries.iter().all(|(_, value)| value.type_name() == entries[0].1.type_name())
}

fn entries_as_rows(entries: &[(Value, Value)]) -> Grid {
    let keys: Vec<Value> = match entry_names(entries) {
        Some(names) => names.into_iter().map(Value::from).collect(),
        None => entries.iter().map(|(key, _)| key.clone()).collect(),
    };
    let rows = keys.into_iter().zip(entries).map(|(key, (_, value))| vec![Some(key), Some(value.clone())]).collect();
    Grid { columns: vec!["key".to_owned(), "value".to_owned()], rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(results: &[Value]) -> String {
        let mut out = Vec::new();
        print(results, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_stand_on_the_right() {
        let map = |name: &str, n: i32| {
            Value::map(vec![(Value::from("name"), Value::from(name)), (Value::from("n"), Value::I32(n))])
        };
        let expected = "\
┌──────┬─────┐
│ name ┆   n │
╞══════╪═════╡
│ ada  ┆   7 │
│ bob  ┆ 100 │
└──────┴─────┘
";
        assert_eq!(printed(&[map("ada", 7), map("bob", 100)]), expected);
    }

    #[test]
    fn one_map_has_an_entry_a_row() {
        let counts = Value::map(vec![(Value::from("a"), Value::I64(1)), (Value::I32(5), Value::I64(20))]);
        let expected = "\
┌─────┬───────┐
│ key ┆ value │
╞═════╪═══════╡
│ a   ┆     1 │
│ 5   ┆    20 │
└─────┴───────┘
";
        assert_eq!(printed(&[counts]), expected);
    }

    #[test]
    fn one_record_is_a_row() {
        let record =
            Value::map(vec![(Value::from("label"), Value::from("knows")), (Value::from("edges"), Value::I64(2))]);
        let expected = "\
┌───────┬───────┐
│ label ┆ edges │
╞═══════╪═══════╡
│ knows ┆     2 │
└───────┴───────┘
";
        assert_eq!(printed(&[record]), expected);
    }

    #[test]
    fn a_plan_is_printed_as_it_is_and_nothing_as_nothing() {
        assert_eq!(printed(&[Value::from("scan\n  expand\n")]), "scan\n  expand\n");
        assert_eq!(printed(&[]), "");
    }
}
