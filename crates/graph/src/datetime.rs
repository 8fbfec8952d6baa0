//! Points in time and lengths of time.

use std::fmt;

use time::format_description::well_known::Iso8601;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

/// A point in time with the offset it is shown in. Two points with different offsets are equal when they
/// are the same instant only under [`crate::compare`]; structurally they differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DateTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, 0 to 999,999,999.
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset_seconds: i32,
}

impl DateTime {
    /// UTC, from milliseconds since the epoch.
    pub fn from_epoch_millis(millis: i64) -> Self {
        DateTime {
            seconds: millis.div_euclid(1000),
            nanos: (millis.rem_euclid(1000) * 1_000_000) as u32,
            offset_seconds: 0,
        }
    }

    /// Milliseconds since the epoch, rounded down; `None` on overflow.
    pub fn epoch_millis(self) -> Option<i64> {
        self.seconds.checked_mul(1000)?.checked_add(i64::from(self.nanos / 1_000_000))
    }

    /// From ISO 8601 text: `2020-01-02`, `2020-01-02T03:04:05`, with or without `Z` or an offset; UTC where
    /// none is given.
    pub fn parse(text: &str) -> Option<Self> {
        let full = match text.len() {
            10 => format!("{text}T00:00:00"),
            _ => text.to_owned(),
        };
        let moment = OffsetDateTime::parse(&full, &Iso8601::DEFAULT)
            .or_else(|_| PrimitiveDateTime::parse(&full, &Iso8601::DEFAULT).map(PrimitiveDateTime::assume_utc))
            .ok()?;
        Some(DateTime {
            seconds: moment.unix_timestamp(),
            nanos: moment.nanosecond(),
            offset_seconds: moment.offset().whole_seconds(),
        })
    }

    /// The `time` crate's form; `None` where it cannot hold the year.
    pub fn to_offset(self) -> Option<OffsetDateTime> {
        let nanos = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
        let offset = UtcOffset::from_whole_seconds(self.offset_seconds).ok()?;
        OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?.checked_to_offset(offset)
    }

    /// The instant, for comparing.
    pub fn instant(self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_offset().and_then(|t| t.format(&time::format_description::well_known::Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}s since the epoch", self.seconds),
        }
    }
}

/// A length of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Duration {
    /// Whole seconds, negative for backwards.
    pub seconds: i64,
    /// Nanoseconds added to them, 0 to 999,999,999.
    pub nanos: u32,
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            write!(f, "PT{}S", self.seconds)
        } else {
            let total = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
            let sign = if total < 0 { "-" } else { "" };
            let total = total.unsigned_abs();
            let fraction = format!("{:09}", total % 1_000_000_000);
            write!(f, "PT{sign}{}.{}S", total / 1_000_000_000, fraction.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_forms_parse_and_print() {
        for (text, printed) in [
            ("2020-01-02", "2020-01-02T00:00:00Z"),
            ("2020-01-02T03:04:05", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
            ("2020-01-02T03:04:05.250+02:00", "2020-01-02T03:04:05.25+02:00"),
        ] {
            assert_eq!(DateTime::parse(text).unwrap().to_string(), printed, "{text}");
        }
        assert_eq!(DateTime::parse("not a date"), None);
        assert_eq!(DateTime::from_epoch_millis(-1).epoch_millis(), Some(-1));
        assert_eq!(Duration { seconds: -2, nanos: 500_000_000 }.to_string(), "PT-1.5S");
    }
}
