//! Branches that only reduce the same rows become one operator: `values("k").union(mean(), max(), count())`, and
//! `union(values("k").mean(), values("k").max())`.
//!
//! Each value is read once and goes through no branch. Numbers of one type are read as an array, as they are for one
//! reduction alone. There is a row for each branch, in the order of the branches, and none for a branch that would have
//! none.
//!
//! The branches stay if one of them does more than reduce, reduces other values, or is a `fold()`, or if a reduction or
//! the values have labels.

use crate::logical::{Name, Reduction};
use crate::physical::{Op, Pipeline, Reduced, Stage};

pub(super) fn apply(stages: &mut Vec<Stage>) -> bool {
    let mut changed = false;
    for Stage { operator, .. } in &mut *stages {
        if let Op::Union(branches) = operator
            && let Some((of, reductions)) = shared(branches)
        {
            *operator = Op::ReduceMany { of, reductions };
            changed = true;
        }
    }
    if changed {
        stages.dedup_by(|reduce, values| take_values(values, reduce));
    }
    changed
}

/// The reductions of all branches, and the values that they reduce.
fn shared(branches: &[Pipeline]) -> Option<(Reduced, Vec<Reduction>)> {
    let mut reductions = branches.iter().map(reduction).collect::<Option<Vec<_>>>()?.into_iter();
    let (key, first) = reductions.next()?;
    let of_key = |(other, reduction): (Option<&Name>, Reduction)| (other == key).then_some(reduction);
    let all = std::iter::once(Some(first)).chain(reductions.map(of_key)).collect::<Option<Vec<_>>>()?;
    let of = key.map_or(Reduced::Objects, |key| Reduced::ValuesOfEach(key.clone()));
    (all.len() > 1).then_some((of, all))
}

/// The reduction that is all that a branch does, and the key of its values; without a key it reduces the objects.
fn reduction(branch: &Pipeline) -> Option<(Option<&Name>, Reduction)> {
    if branch.stages.iter().any(|stage| !stage.labels.is_empty()) {
        return None;
    }
    match &branch.stages[..] {
        [Stage { operator: Op::Reduce(reduction), .. }] if *reduction != Reduction::Fold => Some((None, *reduction)),
        [Stage { operator: Op::ReduceValues { key, reduction }, .. }] => Some((Some(key), *reduction)),
        [Stage { operator: Op::Values(keys), .. }, Stage { operator: Op::Reduce(Reduction::Count), .. }] => {
            match &keys[..] {
                [key] => Some((Some(key), Reduction::Count)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Lets the reductions read the values of one key themselves, if those are what they reduce. Returns true if they do.
fn take_values(values: &mut Stage, reduce: &mut Stage) -> bool {
    let (Op::Values(keys), Op::ReduceMany { of: of @ Reduced::Objects, .. }) = (&values.operator, &mut reduce.operator)
    else {
        return false;
    };
    let ([read], true) = (&keys[..], values.labels.is_empty()) else { return false };
    *of = Reduced::Values(read.clone());
    // The first of both stages stays.
    std::mem::swap(values, reduce);
    true
}
