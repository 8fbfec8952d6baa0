//! Work that brings more work: vertices that wait, and those that join them.
//!
//! A search of reachable vertices, or the peeling of a core, gets along without levels: any order finds the same. So each
//! part of a phase works on its vertices and on those that they bring, and hands on only what is above a limit. A long path, on
//! which each vertex brings one other, needs few phases.

use mangrove_graph::Result;

use crate::team::Team;

/// Items that are a part of a phase.
const PART: usize = 256;
/// Items that a part works on, before it hands on the rest.
const LIMIT: usize = 1_024;

/// Calls `work` with each item and with each one that `work` adds to the list it is given, in any order and from several
/// threads.
///
/// # Errors
///
/// If the query of the team has ended.
pub(crate) fn drain(team: &Team, items: Vec<u32>, work: impl Fn(u32, &mut Vec<u32>) + Sync) -> Result<()> {
    let mut items = items;
    while !items.is_empty() {
        let rest = team.map_parts(items.len().div_ceil(PART), |part| {
            let mut open = chunk(&items, part, PART).to_vec();
            let mut left = LIMIT;
            while left > 0
                && let Some(item) = open.pop()
            {
                work(item, &mut open);
                left -= 1;
            }
            open
        })?;
        items = rest.concat();
    }
    Ok(())
}

/// The items of a part, if each part but the last one has `size` items.
pub(crate) fn chunk<T>(items: &[T], part: usize, size: usize) -> &[T] {
    &items[part * size..items.len().min((part + 1) * size)]
}

/// The items that `keep` returns true for, in their order.
///
/// # Errors
///
/// If the query of the team has ended.
pub(crate) fn filtered(team: &Team, items: &[u32], keep: impl Fn(u32) -> bool + Sync) -> Result<Vec<u32>> {
    const SCANNED: usize = 1 << 14;
    let kept = team.map_parts(items.len().div_ceil(SCANNED), |part| {
        chunk(items, part, SCANNED).iter().copied().filter(|item| keep(*item)).collect::<Vec<u32>>()
    })?;
    Ok(kept.concat())
}

/// The least of the numbers of the items; `None` without items.
///
/// # Errors
///
/// If the query of the team has ended.
pub(crate) fn least(team: &Team, items: &[u32], number: impl Fn(u32) -> u32 + Sync) -> Result<Option<u32>> {
    const SCANNED: usize = 1 << 14;
    let least = team.map_parts(items.len().div_ceil(SCANNED), |part| {
        chunk(items, part, SCANNED).iter().map(|item| number(*item)).min()
    })?;
    Ok(least.into_iter().flatten().min())
}
