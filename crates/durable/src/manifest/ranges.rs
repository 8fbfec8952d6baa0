//! Sets of tablets, and of kinds of blocks with their tablets, as text: `1-5,9` and `0:1-64,1:1-64,2:0`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::KIND_CATALOG;

/// A set of numbers of tablets: ranges in ascending order, with a gap between any two. Number 0 stands for the graph.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TabletRanges(Vec<RangeInclusive<u16>>);

impl TabletRanges {
    /// All tablets of a graph.
    pub fn all(count: u16) -> Self {
        TabletRanges(vec![1..=count])
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[RangeInclusive<u16>] {
        &self.0
    }

    /// The largest number.
    pub fn max(&self) -> Option<u16> {
        self.0.last().map(|range| *range.end())
    }

    /// Adds a number that is at or above all others.
    fn push(&mut self, tablet: u16) {
        match self.0.last_mut() {
            Some(last) if tablet <= last.end().saturating_add(1) => *last = *last.start()..=tablet.max(*last.end()),
            _ => self.0.push(tablet..=tablet),
        }
    }
}

impl fmt::Display for TabletRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match range.start() == range.end() {
                true => write!(f, "{comma}{}", range.start())?,
                false => write!(f, "{comma}{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

impl FromStr for TabletRanges {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no ascending list of ranges of tablets");
        let mut ranges = Vec::<RangeInclusive<u16>>::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (start, end) = part.split_once('-').unwrap_or((part, part));
            let (start, end) = start.parse().ok().zip(end.parse().ok()).ok_or_else(wrong)?;
            let is_after_a_gap = ranges.last().is_none_or(|last| last.end().checked_add(1).is_some_and(|n| n < start));
            if start > end || !is_after_a_gap {
                return Err(wrong());
            }
            ranges.push(start..=end);
        }
        Ok(TabletRanges(ranges))
    }
}

impl TryFrom<String> for TabletRanges {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TabletRanges> for String {
    fn from(ranges: TabletRanges) -> String {
        ranges.to_string()
    }
}

/// The kinds of blocks of a pack, and the tablets of each kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Covers(BTreeMap<u8, TabletRanges>);

impl Covers {
    /// The set of these kinds and tablets.
    pub fn of(blocks: impl Iterator<Item = (u8, u16)>) -> Self {
        let mut sorted: Vec<(u8, u16)> = blocks.collect();
        sorted.sort_unstable();
        let mut covers = Covers::default();
        sorted.into_iter().for_each(|(kind, tablet)| covers.0.entry(kind).or_default().push(tablet));
        covers
    }

    /// The kinds and their tablets, ascending.
    pub fn kinds(&self) -> impl Iterator<Item = (u8, &TabletRanges)> {
        self.0.iter().map(|(kind, tablets)| (*kind, tablets))
    }

    /// Returns true if the pack has a catalog.
    pub fn has_catalog(&self) -> bool {
        self.0.contains_key(&KIND_CATALOG)
    }
}

impl fmt::Display for Covers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, tablets)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{kind}:{tablets}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Covers {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no ascending list of kinds of blocks with their tablets");
        // A part with a colon begins a kind; those after it, without one, belong to it.
        let mut kinds = Vec::<(u8, String)>::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            match part.split_once(':') {
                Some((kind, range)) => kinds.push((kind.parse().map_err(|_| wrong())?, range.to_owned())),
                None => {
                    let (_, ranges) = kinds.last_mut().ok_or_else(wrong)?;
                    ranges.push(',');
                    ranges.push_str(part);
                }
            }
        }
        if !kinds.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(wrong());
        }
        kinds.into_iter().map(|(kind, ranges)| Ok((kind, ranges.parse()?))).collect::<Result<_, _>>().map(Covers)
    }
}

impl From<Covers> for String {
    fn from(covers: Covers) -> String {
        covers.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_come_back_and_others_are_refused() {
        for text in ["", "0", "1-64", "1-3,5,9-10", "65535"] {
            assert_eq!(text.parse::<TabletRanges>().unwrap().to_string(), text);
        }
        for text in ["a", "3-1", "1-3,4", "1-3,2", "5,1", "1-", "65536", ",", "65535,65535"] {
            assert!(text.parse::<TabletRanges>().is_err(), "{text}");
        }
        let covers = Covers::of([(1, 9), (0, 1), (0, 2), (1, 3), (2, 0), (1, 10), (0, 2)].into_iter());
        assert_eq!(covers.to_string(), "0:1-2,1:3,9-10,2:0");
        assert_eq!(Covers::try_from(covers.to_string()), Ok(covers));
        assert_eq!(Covers::try_from(String::new()), Ok(Covers::default()));
        for text in ["1", "1:2,0:2", "1:2,1:3", "256:1", "x:1"] {
            assert!(Covers::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
