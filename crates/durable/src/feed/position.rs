//! The position of an event in the feed.

use std::fmt;
use std::str::FromStr;

use mangrove_graph::Error;

/// The position of an event: the timestamp of its commit, and its number among the events of the commit, from 1.
/// Written `1002311.3`. A timestamp alone, `1002311`, is the position after the whole commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FeedPosition {
    /// The timestamp of the commit.
    pub ts: u64,
    /// The number of the event; the largest number: after all of them.
    pub n: u64,
}

impl FeedPosition {
    /// The position after a whole commit.
    pub fn after_commit(ts: u64) -> Self {
        FeedPosition { ts, n: u64::MAX }
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n {
            u64::MAX => write!(f, "{}", self.ts),
            n => write!(f, "{}.{n}", self.ts),
        }
    }
}

impl FromStr for FeedPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = |digits: &str| {
            let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            are_digits.then(|| digits.parse().ok()).flatten()
        };
        let read = match text.split_once('.') {
            Some((ts, n)) => number(ts).zip(number(n)).map(|(ts, n)| FeedPosition { ts, n }),
            None => number(text).map(FeedPosition::after_commit),
        };
        read.ok_or_else(|| {
            Error::invalid(format!(
                "`{text}` is no position of the change feed: it is a commit and the number of an event, as in 1002311.3, or a \
                 commit alone, as in 1002311"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ordered_and_come_back_from_text() {
        let positions = ["0", "7.0", "7.1", "7.20", "7", "8.1"].map(|text| text.parse::<FeedPosition>().unwrap());
        assert!(positions.is_sorted(), "{positions:?}");
        assert_eq!(positions.map(|position| position.to_string()), ["0", "7.0", "7.1", "7.20", "7", "8.1"]);
        for wrong in ["", ".", "7.", ".7", "7.1.1", "-1", "+7", "7.x", "99999999999999999999"] {
            assert!(wrong.parse::<FeedPosition>().is_err(), "{wrong}");
        }
    }
}
