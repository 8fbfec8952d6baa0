//! The answer to `profile()` as text for people: a table with a line for each operator.
//!
//! The columns are those figures that each operator of this database has. Operators without these figures, and those of
//! other servers, have empty cells. All other figures follow the name of their operator, in a line of its own.

use std::fmt::{self, Display, Formatter};

use mangrove_graph::{OperatorMetrics, TraversalMetrics, Value};

use super::Plain;

/// Metrics as a table.
#[derive(Clone, Copy, Debug)]
pub struct ProfileTable<'a>(
    /// The metrics.
    pub &'a TraversalMetrics,
);

/// Annotations that are not written under their operator: columns, a share that the reader sees in the times, and the flow
/// type, which is for programs.
const IN_COLUMNS: [&str; 5] = [
    OperatorMetrics::MESSAGES,
    OperatorMetrics::ROWS_IN,
    OperatorMetrics::PERCENT_DURATION,
    OperatorMetrics::EXPECTED_ROWS,
    OperatorMetrics::FLOW,
];

/// An expectation that is off by more than this is marked.
const FAR_OFF: f64 = 8.0;

impl Display for ProfileTable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Without statistics nothing is expected. Then there are no columns for it.
        let has_expected = self.0.flat().iter().any(|(_, operator)| expected_rows(operator).is_some());
        let expected = if has_expected { format!(" {:>12} {:>9}", "expected", "off by") } else { String::new() };
        writeln!(
            f,
            "{:<52} {:>10} {:>12} {:>12}{expected} {:>10}",
            "operator", "messages", "rows in", "rows out", "ms"
        )?;
        for (depth, operator) in self.0.flat() {
            row(f, depth, operator, has_expected)?;
        }
        writeln!(f, "{:.3} ms in all", millis(self.0.nanos))
    }
}

/// The rows that were expected to leave an operator.
fn expected_rows(operator: &OperatorMetrics) -> Option<u64> {
    match operator.annotation(OperatorMetrics::EXPECTED_ROWS)? {
        Value::I64(rows) => u64::try_from(*rows).ok(),
        _ => None,
    }
}

/// How many times more or fewer rows left than expected, with a mark if that is far off.
fn off_by(expected: u64, sent: u64) -> String {
    let (expected, sent) = (expected.max(1) as f64, sent.max(1) as f64);
    let off = (expected / sent).max(sent / expected);
    let mark = if off > FAR_OFF { "!" } else { "" };
    format!("{off:.1}x{mark}")
}

fn row(f: &mut Formatter<'_>, depth: usize, operator: &OperatorMetrics, has_expected: bool) -> fmt::Result {
    let others: Vec<String> = operator
        .annotations
        .iter()
        .filter(|(name, _)| !IN_COLUMNS.contains(&name.as_str()))
        .map(|(name, value)| format!("{name} {}", Plain(value)))
        .collect();
    // The figures of the whole run belong to no operator and have no row.
    if operator.counts.is_empty() && operator.nanos == 0 && !others.is_empty() {
        return writeln!(f, "{}: {}", operator.name, others.join(", "));
    }
    let name = format!("{}{}", "  ".repeat(depth), operator.name);
    let annotation = |name| operator.annotation(name).map(|value: &Value| Plain(value).to_string()).unwrap_or_default();
    let sent = operator.count(OperatorMetrics::TRAVERSER_COUNT);
    let expected = match (has_expected, expected_rows(operator)) {
        (false, _) => String::new(),
        (true, None) => format!(" {:>12} {:>9}", "", ""),
        (true, Some(rows)) => format!(" {rows:>12} {:>9}", off_by(rows, sent.unwrap_or(0))),
    };
    let sent = sent.map(|count| count.to_string()).unwrap_or_default();
    let [messages, rows_in] = [OperatorMetrics::MESSAGES, OperatorMetrics::ROWS_IN].map(annotation);
    let millis = millis(operator.own_nanos());
    writeln!(f, "{name:<52} {messages:>10} {rows_in:>12} {sent:>12}{expected} {millis:>10.3}")?;
    match others.is_empty() {
        true => Ok(()),
        false => writeln!(f, "{}  {}", "  ".repeat(depth), others.join(", ")),
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(name: &str, nanos: u64, annotations: Vec<(&str, Value)>) -> OperatorMetrics {
        OperatorMetrics {
            name: name.into(),
            nanos,
            counts: vec![(OperatorMetrics::TRAVERSER_COUNT.into(), 4)],
            annotations: annotations.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            ..OperatorMetrics::default()
        }
    }

    #[test]
    fn an_operator_has_a_row_and_the_run_a_line() {
        let figures = |messages| vec![("messages", Value::I64(messages)), ("rowsIn", Value::I64(7))];
        let around = OperatorMetrics {
            nested: vec![operator("expand out", 2_000_000, figures(2))],
            ..operator("where", 3_500_000, figures(1))
        };
        let run =
            OperatorMetrics { counts: Vec::new(), ..operator("the run", 0, vec![("coresUsed", Value::F64(1.5))]) };
        let metrics = TraversalMetrics { nanos: 5_000_000, operators: vec![around, run] };
        let expected = "\
operator                                               messages      rows in     rows out         ms
where                                                         1            7            4      1.500
  expand out                                                  2            7            4      2.000
the run: coresUsed 1.5
5.000 ms in all
";
        assert_eq!(ProfileTable(&metrics).to_string(), expected);
        assert_eq!(Plain(&Value::TraversalMetrics(metrics.into())).to_string(), expected);
    }

    /// The lines of a table, with single spaces.
    fn lines(operators: Vec<OperatorMetrics>) -> Vec<String> {
        let table = ProfileTable(&TraversalMetrics { nanos: 1_000_000, operators }).to_string();
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn expectations_that_are_far_off_are_marked() {
        let expecting =
            |rows| operator("expand", 1_000_000, vec![("rowsIn", Value::I64(7)), ("expectedRows", Value::I64(rows))]);
        let all = vec![expecting(5), expecting(32), expecting(33), expecting(0), operator("filter", 0, Vec::new())];
        assert_eq!(
            lines(all),
            [
                "operator messages rows in rows out expected off by ms",
                "expand 7 4 5 1.2x 1.000",
                "expand 7 4 32 8.0x 1.000",
                "expand 7 4 33 8.2x! 1.000",
                "expand 7 4 0 4.0x 1.000",
                "filter 4 0.000",
                "1.000 ms in all",
            ]
        );
    }

    #[test]
    fn figures_of_another_server_are_shown() {
        let step =
            operator("TinkerGraphStep", 1_000_000, vec![("percentDur", Value::F64(100.0)), ("index", true.into())]);
        assert_eq!(lines(vec![step])[1..], ["TinkerGraphStep 4 1.000", "index true", "1.000 ms in all"]);
    }
}
