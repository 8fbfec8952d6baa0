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

/// Annotations that are not written under their operator: columns, and a share that the reader sees in the times.
const IN_COLUMNS: [&str; 3] = [OperatorMetrics::MESSAGES, OperatorMetrics::ROWS_IN, OperatorMetrics::PERCENT_DURATION];

impl Display for ProfileTable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<52} {:>10} {:>12} {:>12} {:>10}", "operator", "messages", "rows in", "rows out", "ms")?;
        for (depth, operator) in self.0.flat() {
            row(f, depth, operator)?;
        }
        writeln!(f, "{:.3} ms in all", millis(self.0.nanos))
    }
}

fn row(f: &mut Formatter<'_>, depth: usize, operator: &OperatorMetrics) -> fmt::Result {
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
    let sent = operator.count(OperatorMetrics::TRAVERSER_COUNT).map(|count| count.to_string()).unwrap_or_default();
    let [messages, rows_in] = [OperatorMetrics::MESSAGES, OperatorMetrics::ROWS_IN].map(annotation);
    writeln!(f, "{name:<52} {messages:>10} {rows_in:>12} {sent:>12} {:>10.3}", millis(operator.own_nanos()))?;
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

    #[test]
    fn figures_of_another_server_are_shown() {
        let step =
            operator("TinkerGraphStep", 1_000_000, vec![("percentDur", Value::F64(100.0)), ("index", true.into())]);
        let table = ProfileTable(&TraversalMetrics { nanos: 1_000_000, operators: vec![step] }).to_string();
        let lines: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[1..], ["TinkerGraphStep 4 1.000", "index true", "1.000 ms in all"]);
    }
}
