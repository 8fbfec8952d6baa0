//! The states of a graph that its home keeps: its manifests, from `kept_from` of the newest one on.
//!
//! - **LOG-80.** *Retention.* The oldest state that is kept never moves back along the chain of manifests. An owner moves it
//!   on with a checkpoint: to a manifest after which enough others follow, and which was written before all the time for
//!   which states are kept. So every moment of that time can be restored.

use std::collections::BTreeSet;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::checkpoint::home::patiently;
use crate::home::{Home, Name, WaitHome};
use crate::manifest::Manifest;
use crate::pin::collected;
use crate::stream::names::{MANIFESTS, manifest_name, manifest_number};

/// The fewest manifests that are kept: readers of the one before the newest are not disturbed (LOG-23).
pub const RETAINED_MIN: u64 = 2;

/// How long the states of a graph in a home are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Every moment of this time can be restored.
    pub retain_for: Duration,
    /// So many manifests are kept at least; fewer than [`RETAINED_MIN`] count as so many.
    pub retain_at_least: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { retain_for: Duration::ZERO, retain_at_least: RETAINED_MIN }
    }
}

impl Retention {
    /// The oldest manifest that is kept when manifest `next` is written at this time, in microseconds since 1970. Before
    /// that it was `oldest`. `written` says when a manifest was written.
    pub(crate) fn kept_from(
        self,
        mut oldest: u64,
        next: u64,
        now_us: u64,
        mut written: impl FnMut(u64) -> Result<u64>,
    ) -> Result<u64> {
        let since_us = now_us.saturating_sub(self.retain_for.as_micros() as u64);
        while next.saturating_sub(oldest) >= self.retain_at_least.max(RETAINED_MIN) {
            // The moments between two manifests are restored from the older one.
            if !self.retain_for.is_zero() && written(oldest + 1)? > since_us {
                break;
            }
            oldest += 1;
        }
        Ok(oldest)
    }
}

/// The numbers of the manifests in a home.
pub(crate) fn manifest_numbers(home: &dyn Home, patience: Duration) -> Result<BTreeSet<u64>> {
    let directory = Name::new(MANIFESTS)?;
    let listed = patiently(patience, || home.list(&directory))?;
    Ok(listed.iter().filter_map(|name| manifest_number(name.as_str())).collect())
}

/// Reads a manifest; `None` if there is none of that number: it may have been collected since it was listed.
pub(crate) fn read_manifest(home: &dyn Home, number: u64, patience: Duration) -> Result<Option<Manifest>> {
    let name = Name::new(&manifest_name(number))?;
    let found = patiently(patience, || home.get(&name))?;
    found.map(|bytes| Manifest::of_object(home, number, &bytes)).transpose()
}

/// Reads the newest manifest (LOG-32).
pub(crate) fn newest_manifest(home: &dyn Home, patience: Duration) -> Result<Manifest> {
    loop {
        let Some(newest) = manifest_numbers(home, patience)?.pop_last() else {
            let message = format!("there is no graph in {}; check the address", home.describe(""));
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        // If it was collected since it was listed, there are larger numbers.
        if let Some(manifest) = read_manifest(home, newest, patience)? {
            return Ok(manifest);
        }
    }
}

/// The numbers of the manifests that are kept, up to the newest one, ascending.
pub(crate) fn kept_numbers(home: &dyn Home, newest: &Manifest, patience: Duration) -> Result<Vec<u64>> {
    Ok(manifest_numbers(home, patience)?.range(newest.kept_from..=newest.version).copied().collect())
}

/// Finds the first of some manifests for which `is_past` holds; it must hold for all after it. Returns its place among the
/// numbers, or their count if there is none.
pub(crate) fn first_past(
    home: &dyn Home,
    numbers: &[u64],
    patience: Duration,
    is_past: impl Fn(&Manifest) -> bool,
) -> Result<(usize, Option<Manifest>)> {
    let (mut low, mut high, mut found) = (0, numbers.len(), None);
    while low < high {
        let middle = low.midpoint(high);
        let number = numbers[middle];
        let read = read_manifest(home, number, patience)?.ok_or_else(|| collected(home, number))?;
        if is_past(&read) {
            (high, found) = (middle, Some(read));
        } else {
            low = middle + 1;
        }
    }
    Ok((high, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_for_their_time_and_in_their_number() {
        // Manifest n was written at second n.
        let kept = |seconds: u64, at_least, oldest, next| {
            let retention = Retention { retain_for: Duration::from_secs(seconds), retain_at_least: at_least };
            retention.kept_from(oldest, next, 20_000_000, |number| Ok(number * 1_000_000)).unwrap()
        };
        assert_eq!(kept(0, 2, 1, 20), 19, "the newest two");
        assert_eq!(kept(0, 0, 1, 20), 19, "never fewer");
        assert_eq!(kept(0, 5, 1, 20), 16);
        assert_eq!(kept(0, 5, 18, 20), 18, "it never moves back");
        assert_eq!(kept(4, 2, 1, 20), 16, "second 16 is restored from manifest 16");
        assert_eq!(kept(4, 9, 1, 20), 12);
        assert_eq!(kept(30, 2, 1, 20), 1);
        assert_eq!(kept(4, 2, 17, 20), 17);
    }
}
