//! Where `values(key)` makes columns of numbers: before operators that read them as arrays (STEPS-12).

use mangrove_plan::logical::Reduction;
use mangrove_plan::physical::{Op, Reduced, Stage};

use super::Builder;
use crate::computed::keys::KeyPart;

impl Builder {
    /// Returns true if the first of these stages reads a column of numbers as an array.
    pub(super) fn reads_numbers(&self, stages: &[Stage]) -> bool {
        let Some((first, rest)) = stages.split_first() else { return false };
        match &first.operator {
            Op::Is(_) | Op::Dedup { computed: 0 } => true,
            Op::Reduce(reduction) => *reduction != Reduction::Fold,
            Op::ReduceMany { of: Reduced::Objects, .. } => true,
            Op::Union(branches) => {
                !branches.is_empty() && branches.iter().all(|branch| self.reads_numbers(&branch.stages))
            }
            // If the next operator reads the objects as its keys, the by() has no operator.
            by => rest.first().map(|stage| &stage.operator).is_some_and(|reader| {
                matches!(reader, Op::GroupCount { .. } | Op::Order { .. })
                    && self.own_keys(by, reader).is_some_and(|keys| keys == [KeyPart::Object])
            }),
        }
    }
}
