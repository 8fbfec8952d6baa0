//! Measurements: rows for people, figures for programs.
//!
//! The figures are an array of `{suite, case, variant, metric, value, unit}`, one number each. A row has several
//! figures: the metric itself, `…_min` and `…_max` if there were repetitions, `limit` (the time of the machine or of a
//! hand-written loop for the same case) and `target` (from the design). The first figures, of the suite `run`, describe
//! the machine and the build.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use mangrove::{Error, Result};
use serde::Serialize;

use crate::harness::Timing;

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The suite.
    pub suite: &'static str,
    /// The case.
    pub case: String,
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: String,
    /// The value.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
}

/// The metric of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A time; less is better.
    Time,
    /// A rate; more is better.
    Rate,
    /// A size; less is better.
    Size,
    /// A multiple of another row's value; less is better.
    Ratio,
    /// A percentage; less is better.
    Share,
    /// A number of things; less is better.
    Count,
    /// A multiple of another row's throughput; more is better.
    Speedup,
}

impl Metric {
    fn name(self) -> &'static str {
        match self {
            Metric::Time => "time",
            Metric::Rate => "rate",
            Metric::Size => "size",
            Metric::Ratio => "ratio",
            Metric::Share => "share",
            Metric::Count => "count",
            Metric::Speedup => "speedup",
        }
    }

    fn more_is_better(self) -> bool {
        matches!(self, Metric::Rate | Metric::Speedup)
    }
}

/// One measurement, with the values beside which it is shown.
#[derive(Clone, Debug)]
pub struct Row {
    /// The suite.
    pub suite: &'static str,
    /// The case.
    pub case: String,
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: Metric,
    /// The median.
    pub value: f64,
    /// The smallest and the largest value of the repetitions.
    pub spread: Option<(f64, f64)>,
    /// The unit.
    pub unit: &'static str,
    /// The value of a hand-written loop or of the machine for the same case.
    pub limit: Option<f64>,
    /// The target of the design.
    pub target: Option<f64>,
    /// Where the target is from, such as `1.1 × gap`: tables have it beside the target.
    pub rule: Option<String>,
    /// Further figures, for programs only: metric, value, unit.
    pub details: Vec<(String, f64, &'static str)>,
}

impl Row {
    /// A time in nanoseconds.
    pub fn time(suite: &'static str, case: &str, variant: &str, timing: Timing) -> Self {
        let spread = Some((timing.min, timing.max));
        Row { spread, ..Row::single(suite, case, variant, Metric::Time, timing.median, "ns") }
    }

    /// A rate, from the nanoseconds of `count` operations.
    pub fn rate(
        suite: &'static str,
        case: &str,
        variant: &str,
        timing: Timing,
        count: f64,
        unit: &'static str,
    ) -> Self {
        let rate = |nanos: f64| count * 1e9 / nanos;
        let spread = Some((rate(timing.max), rate(timing.min)));
        Row { spread, ..Row::single(suite, case, variant, Metric::Rate, rate(timing.median), unit) }
    }

    /// A value without repetitions.
    pub fn single(
        suite: &'static str,
        case: &str,
        variant: &str,
        metric: Metric,
        value: f64,
        unit: &'static str,
    ) -> Self {
        let (case, variant) = (case.to_owned(), variant.to_owned());
        Row {
            suite,
            case,
            variant,
            metric,
            value,
            spread: None,
            unit,
            limit: None,
            target: None,
            rule: None,
            details: Vec::new(),
        }
    }

    /// Adds a limit.
    #[must_use]
    pub fn beside(mut self, limit: impl Into<Option<f64>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Adds a target.
    #[must_use]
    pub fn aiming_at(mut self, target: impl Into<Option<f64>>) -> Self {
        self.target = target.into();
        self
    }

    /// Says where the target is from.
    #[must_use]
    pub fn by_rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Adds the ends of an interval around the value.
    #[must_use]
    pub fn between(mut self, low: f64, high: f64) -> Self {
        self.spread = Some((low, high));
        self
    }

    /// Adds a figure for programs.
    #[must_use]
    pub fn with(mut self, metric: impl Into<String>, value: f64, unit: &'static str) -> Self {
        self.details.push((metric.into(), value, unit));
        self
    }

    /// The ratio of the value to the limit; above 1 is worse.
    pub fn distance(&self) -> Option<f64> {
        let limit = self.limit?;
        Some(if self.metric.more_is_better() { limit / self.value } else { self.value / limit })
    }

    /// Whether the value meets the target, if there is one.
    pub fn is_on_target(&self) -> Option<bool> {
        let target = self.target?;
        Some(if self.metric.more_is_better() { self.value >= target } else { self.value <= target })
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |metric: String, value| Figure {
            suite: self.suite,
            case: self.case.clone(),
            variant: self.variant.clone(),
            metric,
            value,
            unit: self.unit,
        };
        let name = self.metric.name();
        let mut figures = vec![figure(name.to_owned(), self.value)];
        if let Some((min, max)) = self.spread {
            figures.push(figure(format!("{name}_min"), min));
            figures.push(figure(format!("{name}_max"), max));
        }
        figures.extend(self.limit.map(|limit| figure("limit".to_owned(), limit)));
        figures.extend(self.target.map(|target| figure("target".to_owned(), target)));
        let detail =
            |(metric, value, unit): &(String, f64, &'static str)| Figure { unit, ..figure(metric.clone(), *value) };
        figures.extend(self.details.iter().map(detail));
        figures
    }

    fn cells(&self) -> [String; 7] {
        let spread = match self.spread {
            // A time needs its unit here to be told from a count; other units are in the column before.
            Some((min, max)) if self.unit == "ns" => format!("{}–{}", quantity(min, "ns"), quantity(max, "ns")),
            Some((min, max)) => format!("{}–{}", quantity(min, ""), quantity(max, "")),
            None => String::new(),
        };
        let target = match (self.target, self.is_on_target()) {
            (Some(target), Some(true)) => format!("{} ✓", quantity(target, self.unit)),
            (Some(target), _) => quantity(target, self.unit),
            (None, _) => String::new(),
        };
        let rule = self.rule.as_ref().map(|rule| format!("({rule})"));
        let target = [Some(target), rule].into_iter().flatten().filter(|part| !part.is_empty());
        [
            self.case.clone(),
            self.variant.clone(),
            quantity(self.value, self.unit),
            spread,
            self.limit.map(|limit| quantity(limit, self.unit)).unwrap_or_default(),
            self.distance().map(|times| format!("{times:.2}×")).unwrap_or_default(),
            target.collect::<Vec<_>>().join(" "),
        ]
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:15} {:40} {:30} {:>12}", self.suite, self.case, self.variant, quantity(self.value, self.unit))?;
        if let Some(times) = self.distance() {
            write!(f, "  {times:.2}× its limit")?;
        }
        match (self.target, self.is_on_target()) {
            (Some(target), Some(met)) => {
                write!(f, "  (target {}{})", quantity(target, self.unit), if met { ", met" } else { "" })
            }
            _ => Ok(()),
        }
    }
}

/// A number for people: three or four digits, with a unit prefix.
fn quantity(value: f64, unit: &str) -> String {
    let (value, prefix) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let (value, unit) = match (prefix, unit) {
        ("k", "ns") => (value, "µs"),
        ("M", "ns") => (value, "ms"),
        ("G", "ns") => (value, "s"),
        (prefix, unit) => return format!("{} {prefix}{unit}", digits(value)).trim_end().to_owned(),
    };
    format!("{} {unit}", digits(value))
}

fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// All measurements of a run.
#[derive(Debug)]
pub struct Report {
    /// The machine and the build.
    pub environment: Vec<Figure>,
    /// The rows, in the order of measurement.
    pub rows: Vec<Row>,
    /// Sentences about a suite, such as what it left out, with the name of the suite.
    pub notes: Vec<(&'static str, String)>,
}

/// A report to which rows are added.
pub(crate) struct Growing<'a> {
    report: Report,
    each: &'a mut dyn FnMut(&Row),
}

impl Growing<'_> {
    /// Adds a row, and passes it to the observer.
    pub fn push(&mut self, row: Row) {
        (self.each)(&row);
        self.report.rows.push(row);
    }

    /// Adds a sentence about a suite, which stands after its rows.
    pub fn note(&mut self, suite: &'static str, text: String) {
        self.report.notes.push((suite, text));
    }

    /// The complete report.
    pub fn finish(self) -> Report {
        self.report
    }
}

impl Report {
    /// An empty report.
    pub(crate) fn growing(environment: Vec<Figure>, each: &mut dyn FnMut(&Row)) -> Growing<'_> {
        Growing { report: Report { environment, rows: Vec::new(), notes: Vec::new() }, each }
    }

    /// All figures, those of the environment first.
    pub fn figures(&self) -> Vec<Figure> {
        self.environment.iter().cloned().chain(self.rows.iter().flat_map(Row::figures)).collect()
    }

    /// The figures as a JSON array.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(&self.figures());
        text.map_err(|e| Error::bug(format!("figures that JSON cannot hold: {e}")))
    }

    /// The rows as text, one table a suite.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for figure in &self.environment {
            text.push_str(&format!("{}: {} ({} {})\n", figure.case, figure.variant, figure.value, figure.unit));
        }
        for (_, table) in self.tables() {
            text.push_str(&format!("\n{table}\n"));
        }
        text
    }

    /// The table of each suite, and its notes.
    pub(crate) fn tables(&self) -> Vec<(&'static str, String)> {
        let table = |rows: &[Row]| {
            let mut table = Table::new();
            table.load_preset(presets::ASCII_MARKDOWN);
            table.set_header([rows[0].suite, "variant", "median", "min–max", "limit", "times", "target"]);
            table.add_rows(rows.iter().map(Row::cells));
            table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
            let mut text = table.to_string();
            let notes = self.notes.iter().filter(|(suite, _)| *suite == rows[0].suite);
            notes.for_each(|(_, note)| text.push_str(&format!("\n\n{note}")));
            (rows[0].suite, text)
        };
        self.rows.chunk_by(|a, b| a.suite == b.suite).map(table).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_a_prefix() {
        let cases = [
            (2.716, "ns", "2.72 ns"),
            (9_876.0, "ns", "9876 ns"),
            (12_345.0, "ns", "12.3 µs"),
            (2.5e6, "ns", "2.50 ms"),
            (5.4e6, "edges/s", "5.40 Medges/s"),
            (64.0, "", "64.0"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(quantity(value, unit), expected);
        }
    }

    #[test]
    fn a_rate_is_worse_when_it_is_lower() {
        let timing = Timing { median: 1e9, min: 5e8, max: 2e9 };
        let row = Row::rate("load", "edges", "typed", timing, 4e6, "edges/s").beside(8e6).aiming_at(5e6);
        assert_eq!((row.value, row.spread), (4e6, Some((2e6, 8e6))));
        assert_eq!((row.distance(), row.is_on_target()), (Some(2.0), Some(false)));
        let metrics: Vec<_> = row.figures().into_iter().map(|f| f.metric).collect();
        assert_eq!(metrics, ["rate", "rate_min", "rate_max", "limit", "target"]);
        assert_eq!(row.by_rule("0.6 × bare").cells()[6], "5.00 Medges/s (0.6 × bare)");
    }
}
