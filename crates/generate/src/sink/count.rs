//! A sink that counts elements and takes a digest of them, and passes them on.

use std::collections::BTreeMap;

use mangrove::{Result, Value};
use smol_str::SmolStr;

use super::{
    GenerateProgress, GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink,
};
use crate::random::mix;

/// The counts and the digest of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// Vertices.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// Property values of vertices (VP). An id counts only if it is a property.
    pub vertex_properties: u64,
    /// Property values of edges (EP).
    pub edge_properties: u64,
    /// Bytes of all property values without their keys: 1, 4 or 8 a number, the length of a text.
    pub property_bytes: u64,
    /// Vertices by label set.
    pub vertices_by_label: BTreeMap<SmolStr, u64>,
    /// Edges by label.
    pub edges_by_label: BTreeMap<SmolStr, u64>,
    /// A digest of all elements in order. Equal graphs have equal digests; different graphs have different ones with
    /// high probability.
    pub digest: u64,
}

/// A sink that counts, reports progress to a listener, and hands its batches to another sink.
pub struct CountingSink<'a> {
    /// The counts of the batches so far.
    pub counts: GraphCounts,
    inner: &'a mut dyn GraphSink,
    listener: &'a mut dyn FnMut(GenerateProgress, &GraphCounts),
}

impl<'a> CountingSink<'a> {
    /// Counts batches and hands them to `inner`; calls `listener` with the progress and the counts so far.
    pub fn new(inner: &'a mut dyn GraphSink, listener: &'a mut dyn FnMut(GenerateProgress, &GraphCounts)) -> Self {
        CountingSink { counts: GraphCounts::default(), inner, listener }
    }
}

impl std::fmt::Debug for CountingSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counted({:?})", self.counts)
    }
}

impl GraphSink for CountingSink<'_> {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        let counts = &mut self.counts;
        let len = batch.len as u64;
        counts.vertices += len;
        *counts.vertices_by_label.entry(batch.label.clone()).or_default() += len;
        let mut digest = GraphDigest(counts.digest);
        digest.text(&batch.table);
        digest.text(&batch.label);
        digest.word(batch.first);
        let mut size = PropertySizes::default();
        match &batch.ids {
            GeneratedIds::Numbers => digest.word(len),
            GeneratedIds::Local(ids) => {
                ids.iter().for_each(|id| digest.word(*id as u64));
                size.add(len, 8 * len);
            }
            GeneratedIds::Texts(ids) => ids.iter().for_each(|id| digest.text(id)),
        }
        batch.columns.iter().for_each(|column| measure(column, &mut size, &mut digest));
        counts.vertex_properties += size.values;
        counts.property_bytes += size.bytes;
        counts.digest = digest.0;
        self.inner.vertices(batch)
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        let counts = &mut self.counts;
        counts.edges += batch.ends.len() as u64;
        *counts.edges_by_label.entry(batch.label.clone()).or_default() += batch.ends.len() as u64;
        let mut digest = GraphDigest(counts.digest);
        digest.text(&batch.label);
        for (source, target) in &batch.ends {
            digest.word(source << 32 ^ source >> 32 ^ target);
        }
        let mut size = PropertySizes::default();
        batch.columns.iter().for_each(|column| measure(column, &mut size, &mut digest));
        counts.edge_properties += size.values;
        counts.property_bytes += size.bytes;
        counts.digest = digest.0;
        self.inner.edges(batch)
    }

    fn progress(&mut self, progress: GenerateProgress) {
        (self.listener)(progress, &self.counts);
        self.inner.progress(progress);
    }
}

#[derive(Default)]
struct PropertySizes {
    values: u64,
    bytes: u64,
}

impl PropertySizes {
    fn add(&mut self, values: u64, bytes: u64) {
        self.values += values;
        self.bytes += bytes;
    }
}

struct GraphDigest(u64);

impl GraphDigest {
    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = mix(self.0.rotate_left(7) ^ word);
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        for bytes in text.as_bytes().chunks(8) {
            self.word(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }
}

fn measure(column: &GeneratedColumn, size: &mut PropertySizes, digest: &mut GraphDigest) {
    digest.text(&column.key);
    match &column.values {
        GeneratedValues::Bool(v) => {
            v.iter().for_each(|value| digest.word(u64::from(*value)));
            size.add(v.len() as u64, v.len() as u64);
        }
        GeneratedValues::I32(v) => {
            v.iter().for_each(|value| digest.word(*value as u64));
            size.add(v.len() as u64, 4 * v.len() as u64);
        }
        GeneratedValues::I64(v) => {
            v.iter().for_each(|value| digest.word(*value as u64));
            size.add(v.len() as u64, 8 * v.len() as u64);
        }
        GeneratedValues::F64(v) => {
            v.iter().for_each(|value| digest.word(value.to_bits()));
            size.add(v.len() as u64, 8 * v.len() as u64);
        }
        GeneratedValues::Text(v) => v.iter().for_each(|text| measure_text(text, size, digest)),
        GeneratedValues::OptionalText(v) => v.iter().for_each(|text| match text {
            Some(text) => measure_text(text, size, digest),
            None => digest.word(u64::MAX),
        }),
        GeneratedValues::Several(rows) => {
            for (row, values) in rows {
                digest.word(u64::from(*row));
                values.iter().for_each(|value| measure_value(value, size, digest));
            }
        }
    }
}

fn measure_text(text: &str, size: &mut PropertySizes, digest: &mut GraphDigest) {
    digest.text(text);
    size.add(1, text.len() as u64);
}

fn measure_value(value: &Value, size: &mut PropertySizes, digest: &mut GraphDigest) {
    let (word, bytes) = match value {
        Value::String(text) => return measure_text(text, size, digest),
        Value::Bool(truth) => (u64::from(*truth), 1),
        Value::I32(number) => (*number as u64, 4),
        Value::I64(number) => (*number as u64, 8),
        Value::F64(number) => (number.to_bits(), 8),
        // No generator makes such values; the digest takes their text.
        other => {
            let text = format!("{other:?}");
            return measure_text(&text, size, digest);
        }
    };
    digest.word(word);
    size.add(1, bytes);
}
