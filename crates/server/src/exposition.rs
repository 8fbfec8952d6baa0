//! Prometheus' text format: families of samples, and histograms.
//!
//! A family is written whole before the next begins, as the format asks: its head once, then its samples. What may stand
//! in a label's value is escaped here and nowhere else.

use std::fmt::{self, Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of a [`Histogram`], in seconds. The last bucket has no bound.
const BOUNDS: [f64; 14] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The labels of a sample.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// What a family's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They only grow; the family's name ends in `_total`.
    Counter,
    /// They are what they are now.
    Gauge,
    /// They count events by size.
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// Text in the making.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// A family whose samples are being written.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// Begins a family.
    pub fn family(&mut self, name: &'static str, kind: Kind, meaning: &str) -> Family<'_> {
        debug_assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        let _ = writeln!(self.0, "# HELP {name} {meaning}\n# TYPE {name} {}", kind.name());
        Family { text: &mut self.0, name }
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &'static str, kind: Kind, meaning: &str, value: impl Display) {
        self.family(name, kind, meaning).sample(&[], value);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// A number that may be infinite.
#[derive(Clone, Copy, Debug)]
pub struct Figure(pub f64);

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == f64::INFINITY { f.write_str("+Inf") } else { self.0.fmt(f) }
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds the samples of a histogram.
    pub fn histogram(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        let counts = histogram.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let sum = histogram.sum_nanos.load(Ordering::Relaxed) as f64 / 1e9;
        self.buckets(labels, BOUNDS.into_iter(), counts, sum);
    }

    /// Adds the samples of a histogram kept elsewhere: how many events lie in each bucket, the last of which has no bound,
    /// and the sum of their sizes.
    pub fn buckets(
        &mut self,
        labels: Labels<'_>,
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

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: impl Display) {
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

/// A label's value may hold anything; a backslash, a quote and a line's end are written as such.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Counts lengths of time by size. Relaxed atomics: each stands for itself, and a reader wants only to see them grow.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// Counts one.
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
        exposition.single("up", Kind::Gauge, "Whether it runs.", 1);
        let mut family = exposition.family("things_total", Kind::Counter, "Things.");
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
        exposition.family("t", Kind::Histogram, "Times.").histogram(&[("op", "eval")], &histogram);
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
