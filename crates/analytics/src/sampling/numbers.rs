//! Numbers of the vertices of a type: 0, 1, 2, … in the order of their positions, without holes.
//!
//! The rows of a graph name positions, which keep their meaning when the graph is refreshed. Tensors of features have a row for
//! each vertex and none for holes, so callers use numbers. A number is the count of vertices at lower positions: the count before
//! its word of 64 positions, and the bits before it in the word.
//!
//! Between two moments, vertices that exist at both keep their order, because pages keep their positions. A number moves by
//! the vertices that were added and removed at lower positions.

use mangrove_graph::{Error, Result};

use crate::numbering::Numbering;

/// The numbers of the vertices of a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct DenseNumbers {
    /// By word of 64 positions: which of them have vertices, and how many vertices there are before.
    words: Vec<(u64, u32)>,
    /// By number, the position.
    positions: Vec<u32>,
}

impl DenseNumbers {
    pub(crate) fn of(numbering: &Numbering) -> Self {
        let mut words = Vec::with_capacity(numbering.positions() as usize / 64);
        let mut positions = Vec::with_capacity(numbering.vertex_count() as usize);
        for first in (0..numbering.positions()).step_by(64) {
            let mut word = numbering.word(first);
            words.push((word, positions.len() as u32));
            while word != 0 {
                positions.push(first + word.trailing_zeros());
                word &= word - 1;
            }
        }
        DenseNumbers { words, positions }
    }

    /// The bytes that the numbers of so many positions and vertices take.
    pub(crate) fn bytes_of(numbering: &Numbering) -> u64 {
        u64::from(numbering.positions()) / 64 * size_of::<(u64, u32)>() as u64 + numbering.vertex_count() * 4
    }

    /// The number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// The number of the vertex at a position.
    #[inline]
    pub(crate) fn number(&self, position: u32) -> u32 {
        let (word, before) = self.words[position as usize / 64];
        before + (word & ((1 << (position % 64)) - 1)).count_ones()
    }

    /// The position of a vertex; fails if there is none of the number.
    #[inline]
    pub(crate) fn position(&self, number: i64, type_name: &str) -> Result<u32> {
        let found = usize::try_from(number).ok().and_then(|number| self.positions.get(number));
        found.copied().ok_or_else(|| {
            Error::invalid(format!(
                "there is no vertex {number} of type '{type_name}': at this moment it has {} vertices, numbered from 0",
                self.positions.len()
            ))
        })
    }
}
