//! Writing the answer to `profile()`. The reader refuses it: only clients get it.
//!
//! Metrics are a map, in GraphSON 3 a typed one. Durations are milliseconds here, and nanoseconds in GraphBinary.

use mangrove_graph::{OperatorMetrics, Result, TraversalMetrics, Value};

use super::Writer;

/// The value of an entry in the map of some metrics.
enum Part<'m> {
    Value(Value),
    Operators(&'m [OperatorMetrics]),
}

impl Writer<'_> {
    pub(super) fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> Result<()> {
        let parts = [("dur", millis(metrics.nanos)), ("metrics", Part::Operators(&metrics.operators))];
        self.typed("g:TraversalMetrics", |writer| writer.parts(&parts))
    }

    /// Empty parts of an operator are left out.
    fn operator(&mut self, metrics: &OperatorMetrics) -> Result<()> {
        let mut parts = vec![
            ("id", Part::Value(Value::String(metrics.id.clone()))),
            ("name", Part::Value(Value::String(metrics.name.clone()))),
            ("dur", millis(metrics.nanos)),
        ];
        if !metrics.counts.is_empty() {
            // The type has 63 bits for a count, more than a run reaches.
            let count = |count: u64| Value::I64(i64::try_from(count).unwrap_or(i64::MAX));
            let counts = metrics.counts.iter().map(|(name, number)| (Value::String(name.clone()), count(*number)));
            parts.push(("counts", Part::Value(Value::map(counts.collect()))));
        }
        if !metrics.annotations.is_empty() {
            let annotations = metrics.annotations.iter();
            let annotations = annotations.map(|(name, value)| (Value::String(name.clone()), value.clone()));
            parts.push(("annotations", Part::Value(Value::map(annotations.collect()))));
        }
        if !metrics.nested.is_empty() {
            parts.push(("metrics", Part::Operators(&metrics.nested)));
        }
        self.typed("g:Metrics", |writer| writer.parts(&parts))
    }

    fn parts(&mut self, parts: &[(&str, Part<'_>)]) -> Result<()> {
        if self.has_text_keys() {
            return self.members(parts, |writer, (name, part)| {
                writer.key(name);
                writer.part(part)
            });
        }
        self.typed("g:Map", |writer| {
            writer.items(parts, |writer, (name, part)| {
                writer.string(name);
                writer.raw(b",");
                writer.part(part)
            })
        })
    }

    fn part(&mut self, part: &Part<'_>) -> Result<()> {
        match part {
            Part::Value(value) => self.value(value),
            Part::Operators(operators) => self.collection("g:List", |writer| writer.items(operators, Self::operator)),
        }
    }
}

fn millis(nanos: u64) -> Part<'static> {
    Part::Value(Value::F64(nanos as f64 / 1e6))
}
