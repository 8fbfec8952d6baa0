//! Prometheus' text format 0.0.4: families of samples, and histograms.
//!
//! The format wants a family whole: its head once, then its samples. Label values are escaped here and nowhere else.
//!
//! The crate `prometheus-client` does not replace this module, because it writes OpenMetrics: the type of a counter
//! stands under a name without `_total`, which readers of format 0.0.4 take for an untyped metric; bounds are written
//! `1.0` instead of `1`, which makes new time series; and it does not escape label values.

use std::fmt::{self, Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of a [`Histogram`], in seconds. A further bucket has no bound.
const BOUNDS: [f64; 14] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The labels of a sample.
pub type SampleLabels<'a> = &'a [(&'a str, &'a str)];

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Samples only grow, and the family's name ends in `_total`.
    Counter,
    /// Samples are current values.
    Gauge,
    /// Samples count events by size.
    Histogram,
}

impl MetricKind {
    fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// The text that is being written.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// A family whose samples are being written.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// Begins a family, with its help text.
    pub fn family(&mut self, name: &'static str, kind: MetricKind, meaning: &str) -> MetricFamily<'_> {
        debug_assert_eq!(name.ends_with("_total"), kind == MetricKind::Counter, "{name}");
        let _ = writeln!(self.0, "# HELP {name} {meaning}\n# TYPE {name} {}", kind.name());
        MetricFamily { text: &mut self.0, name }
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &'static str, kind: MetricKind, meaning: &str, value: impl Display) {
        self.family(name, kind, meaning).sample(&[], value);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// A number that may be infinite, as the format writes it.
#[derive(Clone, Copy, Debug)]
pub struct SampleValue(pub f64);

impl Display for SampleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == f64::INFINITY { f.write_str("+Inf") } else { self.0.fmt(f) }
    }
}

impl MetricFamily<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: SampleLabels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds the samples of a histogram.
    pub fn histogram(&mut self, labels: SampleLabels<'_>, histogram: &Histogram) {
        let counts = histogram.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let sum = histogram.sum_nanos.load(Ordering::Relaxed) as f64 / 1e9;
        self.buckets(labels, BOUNDS.into_iter(), counts, sum);
    }

    /// Adds the samples of a histogram from its parts: the number of events in each bucket, the last of which has no
    /// bound, and the sum of their sizes.
    pub fn buckets(
        &mut self,
        labels: SampleLabels<'_>,
        bounds: impl Iterator<Item = f64>,
        counts: impl Iterator<Item = u64>,
        sum: f64,
    ) {
        let mut total = 0;
        for (bound, count) in bounds.map(Some).chain([None]).zip(counts) {
            total += count;
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
            self.line("_bucket", labels, Some(&bound), total);
        }
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, total);
    }

    fn line(&mut self, suffix: &str, labels: SampleLabels<'_>, bound: Option<&str>, value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        for (position, (label, value)) in labels.clone().enumerate() {
            let before = if position == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(value));
        }
        let end = if labels.count() > 0 { "}" } else { "" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// Escapes the backslashes, quotes and line ends in a label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A histogram of durations. Its atomics are relaxed: each stands alone, and a reader only has to see them grow.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn add(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_nanos.fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_written_as_the_format_has_them() {
        let mut exposition = Exposition::default();
        exposition.single("up", MetricKind::Gauge, "Whether it runs.", 1);
        let mut family = exposition.family("things_total", MetricKind::Counter, "Things.");
        family.sample(&[("a", "x\"y\\z\n"), ("b", "c")], 7);
        let text = exposition.into_text();
        assert_eq!(
            text,
            "# HELP up Whether it runs.\n# TYPE up gauge\nup 1\n# HELP things_total Things.\n# TYPE things_total counter\n\
             things_total{a=\"x\\\"y\\\\z\\n\",b=\"c\"} 7\n"
        );
    }

    #[test]
    fn buckets_of_a_histogram_include_the_smaller_ones() {
        let histogram = Histogram::default();
        for micros in [50, 300, 60_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let mut exposition = Exposition::default();
        exposition.family("t", MetricKind::Histogram, "Times.").histogram(&[("op", "eval")], &histogram);
        let text = exposition.into_text();
        for line in [
            "t_bucket{op=\"eval\",le=\"0.0001\"} 1",
            "t_bucket{op=\"eval\",le=\"0.0005\"} 2",
            "t_bucket{op=\"eval\",le=\"30\"} 2",
            "t_bucket{op=\"eval\",le=\"+Inf\"} 3",
            "t_sum{op=\"eval\"} 60.00035",
            "t_count{op=\"eval\"} 3",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }
}
