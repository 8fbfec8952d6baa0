//! The moment that a restore is asked for.

use std::str::FromStr;

use mangrove_graph::{DateTime, Error, ErrorKind, Result};

/// A moment in the history of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The last commit.
    Newest,
    /// The state after the last commit with a timestamp at or below this one.
    Commit(u64),
    /// The state of the log at a time, in microseconds since 1970: it has what was written to the log up to then.
    Time(u64),
}

impl FromStr for Moment {
    type Err = Error;

    /// `newest`, the timestamp of a commit, or a time such as `2026-11-28T18:00:00Z`.
    fn from_str(text: &str) -> Result<Self> {
        if text == "newest" {
            return Ok(Moment::Newest);
        }
        if let Ok(commit) = text.parse() {
            return Ok(Moment::Commit(commit));
        }
        let time = DateTime::parse(text).filter(|_| text.contains(['T', 't']));
        let unix_us = time.and_then(|time| {
            u64::try_from(time.seconds).ok()?.checked_mul(1_000_000)?.checked_add(u64::from(time.nanos / 1_000))
        });
        unix_us.map(Moment::Time).ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is no moment: write `newest`, the number of a commit, or a time as in 2026-11-28T18:00:00Z"
            ))
        })
    }
}

/// A time in microseconds since 1970, for people.
pub(crate) fn shown(unix_us: u64) -> String {
    let time = DateTime {
        seconds: (unix_us / 1_000_000) as i64,
        nanos: (unix_us % 1_000_000) as u32 * 1_000,
        offset_seconds: 0,
    };
    time.to_string()
}

/// The error for a moment before everything that is kept.
pub(super) fn too_early(place: &str, oldest_ts: u64, oldest_us: u64) -> Error {
    let message = format!(
        "{place} has no states before commit {oldest_ts} ({}): name a later moment, or restore an older backup",
        shown(oldest_us)
    );
    Error::new(ErrorKind::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_times_shown() {
        assert_eq!("newest".parse::<Moment>().unwrap(), Moment::Newest);
        assert_eq!("17".parse::<Moment>().unwrap(), Moment::Commit(17));
        let us = 1_795_888_800_250_000;
        assert_eq!(shown(us), "2026-11-28T18:00:00.25Z");
        for text in ["2026-11-28T18:00:00.25Z", "2026-11-28T19:00:00.25+01:00"] {
            assert_eq!(text.parse::<Moment>().unwrap(), Moment::Time(us), "{text}");
        }
        for wrong in ["", "yesterday", "-1", "2026-11", "1969-12-31T23:00:00Z"] {
            let error = wrong.parse::<Moment>().unwrap_err();
            assert!(error.message().contains("is no moment"), "{wrong}: {error}");
        }
    }
}
