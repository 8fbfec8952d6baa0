//! The values of the vertices of one label set under one key: how many there are, how many different ones, and a sample.
//!
//! The number of different values is estimated with HyperLogLog (Flajolet and others, 2007), with a standard error of
//! 1.6 %. The sample is a reservoir (Vitter's algorithm R): every value is in it with the same probability. Both are
//! the same in each pass over the same pages.

use datasketches::hll::{HllSketch, HllType};
use mangrove_graph::compare::{hash_equal, order};
use mangrove_graph::statistics::{ValueStatistics, bytes_of, sampled_value};
use mangrove_graph::{KeyId, LabelSetId, PAGE_SLOTS, Value, ValueRows, VertexId};
use mangrove_reclaim::epoch::Pin;

use crate::page::Tablet;
use crate::read::properties;
use crate::read::view::StoreView;

/// The most values of a sample.
const SAMPLE_MAX: usize = 4_096;

/// The sketch has 2 to the power of this many registers.
const LOG_REGISTERS: u8 = 12;

/// What a pass has met of the values of one label set under one key.
#[derive(Debug)]
pub(super) struct ValueTally {
    values: u64,
    /// How many values might have been sampled.
    sampled_from: u64,
    sample: Vec<Value>,
    /// The different values; absent if the sketch cannot be made, which only a wrong constant causes.
    distinct: Option<HllSketch>,
    /// The state of the random numbers by which values of the sample are replaced.
    random: u64,
}

impl Default for ValueTally {
    fn default() -> Self {
        ValueTally {
            values: 0,
            sampled_from: 0,
            sample: Vec::new(),
            distinct: HllSketch::new(LOG_REGISTERS, HllType::Hll8).ok(),
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }
}

/// Hashes a value so that values that compare as equal count once.
struct ByEquality<'a>(&'a Value);

impl std::hash::Hash for ByEquality<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        hash_equal(self.0, state);
    }
}

impl ValueTally {
    /// Reads the values of a page, which is given by its number. Returns how many vertices were looked at.
    pub(super) fn add_page(
        &mut self,
        view: &StoreView<'_>,
        (tablet, number): (&Tablet, usize),
        key: KeyId,
        pin: &Pin,
    ) -> usize {
        let Some(core) = tablet.vertices.get(number).map(|page| &page.core) else { return 0 };
        if core.column(key).is_none() {
            return 0;
        }
        let base = number as u64 * PAGE_SLOTS;
        let is_clean = core.clean_count().is_some();
        let is_seen = |at: &usize| is_clean || core.visible_under(pin, *at, &view.snapshot);
        let used = core.clean_count().unwrap_or_else(|| core.used());
        let vertices: Vec<VertexId> =
            (0..used).filter(is_seen).map(|at| VertexId::new(tablet.id, core.slot_number(base, at))).collect();
        let mut rows = ValueRows::default();
        properties::values(view, pin, &vertices, key, &mut rows);
        rows.value.iter().for_each(|value| self.add(value));
        vertices.len()
    }

    fn add(&mut self, value: &Value) {
        self.values += 1;
        if let Some(distinct) = &mut self.distinct {
            distinct.update(ByEquality(value));
        }
        let Some(value) = sampled_value(value) else { return };
        self.sampled_from += 1;
        if self.sample.len() < SAMPLE_MAX {
            self.sample.push(value);
            return;
        }
        let at = self.random_below(self.sampled_from);
        if let Some(old) = self.sample.get_mut(at as usize) {
            *old = value;
        }
    }

    /// A number below this one (Marsaglia's xorshift).
    fn random_below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + (1 << LOG_REGISTERS) + self.sample.iter().map(bytes_of).sum::<usize>()
    }

    /// The statistics of the values that were met.
    pub(super) fn finish(self, pair: (LabelSetId, KeyId)) -> ValueStatistics {
        let ValueTally { values, mut sample, distinct, .. } = self;
        let is_whole = sample.len() as u64 == values;
        sample.sort_by(order);
        let sampled = sample.chunk_by(|a, b| order(a, b).is_eq()).count() as u64;
        let estimate = distinct.map_or(sampled, |sketch| sketch.estimate().round() as u64);
        // Values that are not sampled, such as lists, are no part of the distribution.
        let distinct = if is_whole { sampled } else { estimate.clamp(sampled.min(values), values) };
        ValueStatistics::new(pair, values, distinct, sample)
    }
}
