//! Points in time and lengths of time, with their text in ISO 8601.
//!
//! Nanoseconds are always below a second, also of a negative time: -1.5 s is -2 seconds and 500,000,000 nanoseconds.
//! Code that makes a value keeps this, since comparisons go by the fields. Nothing here reads a clock.

use std::fmt;

use time::{OffsetDateTime, UtcOffset};

/// A point in time, with the offset from UTC in which it is shown. Under `compare::equal` two points are equal if they
/// are the same instant. Under the derived `PartialEq` their offsets must be the same, too.
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
    /// The point in UTC that is so many milliseconds after 1970-01-01T00:00:00Z.
    pub fn from_epoch_millis(millis: i64) -> Self {
        DateTime {
            seconds: millis.div_euclid(1000),
            nanos: (millis.rem_euclid(1000) * 1_000_000) as u32,
            offset_seconds: 0,
        }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down; `None` on overflow.
    pub fn epoch_millis(self) -> Option<i64> {
        self.seconds.checked_mul(1000)?.checked_add(i64::from(self.nanos / 1_000_000))
    }

    /// Reads ISO 8601 text as TinkerPop's `datetime()` does.
    ///
    /// - The full form is `2020-01-02T03:04:05.678+02:00`. Fraction, seconds, offset (then UTC) and time may be
    ///   missing.
    /// - The date may also be a day of the year (`2020-002`) or, without a time, a month (`2020-01`).
    /// - A day that its month does not have stands for the last day of the month; 24:00 stands for the next day.
    /// - A year of more than four digits has a sign.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', 't']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let days = days_of(date, time.is_some())?;
        let Some(time) = time else { return days.checked_mul(DAY_SECONDS).map(DateTime::from_utc_seconds) };
        let zone = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone);
        let (seconds, nanos) = clock_of(clock)?;
        let offset_seconds = offset_of(zone)?;
        let seconds = days.checked_mul(DAY_SECONDS)?.checked_add(seconds)?.checked_sub(i64::from(offset_seconds))?;
        Some(DateTime { seconds, nanos, offset_seconds })
    }

    fn from_utc_seconds(seconds: i64) -> Self {
        DateTime { seconds, nanos: 0, offset_seconds: 0 }
    }

    /// The point as a type of the `time` crate; `None` if that type cannot hold the year or the offset.
    pub fn to_offset(self) -> Option<OffsetDateTime> {
        let nanos = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
        let offset = UtcOffset::from_whole_seconds(self.offset_seconds).ok()?;
        OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?.checked_to_offset(offset)
    }

    /// The instant without its offset: seconds and nanoseconds, for comparing.
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

const DAY_SECONDS: i64 = 86_400;

/// The number that a text spells. `None` if the text has other characters than digits, or if `count` does not contain
/// the number of the digits.
fn digits(text: &str, count: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = count.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// The days from 1970-01-01 to the date that a text spells. A month without a day is a date only if the text has no
/// time (`has_time`).
fn days_of(text: &str, has_time: bool) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = rest.split('-');
    let year = parts.next()?;
    let lengths = match text.as_bytes().first()? {
        b'-' => 4..=9,
        b'+' => 5..=9,
        _ => 4..=4,
    };
    let year = sign * digits(year, lengths)?;
    match (parts.next()?, parts.next(), parts.next()) {
        (month, Some(day), None) => {
            let (month, day) = (digits(month, 2..=2)?, digits(day, 2..=2)?);
            let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
            valid.then(|| days_before(year, month) + day.min(month_days(year, month)) - 1)
        }
        (day, None, None) if day.len() == 3 => {
            let year_days = days_before(year + 1, 1) - days_before(year, 1);
            digits(day, 3..=3).filter(|day| (1..=year_days).contains(day)).map(|day| days_before(year, 1) + day - 1)
        }
        (month, None, None) if !has_time => {
            digits(month, 2..=2).filter(|month| (1..=12).contains(month)).map(|month| days_before(year, month))
        }
        _ => None,
    }
}

/// The days from 1970-01-01 to the first day of a month, in the proleptic Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // A year that begins in March has its leap day at its end; 719,468 days lie between 0000-03-01 and 1970-01-01.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 - 719_468
}

/// The number of days of a month.
fn month_days(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_before(next_year, next) - days_before(year, month)
}

/// Reads `HH:MM[:SS[.fraction]]` as seconds and nanoseconds.
fn clock_of(text: &str) -> Option<(i64, u32)> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let hours = digits(parts.next()?, 2..=2)?;
    let minutes = digits(parts.next()?, 2..=2).filter(|n| *n < 60)?;
    let seconds = match parts.next() {
        Some(seconds) => digits(seconds, 2..=2).filter(|n| *n < 60)?,
        None if fraction.is_some() => return None,
        None => 0,
    };
    let nanos = match fraction {
        Some(fraction) => digits(fraction, 1..=9)? * 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?),
        None => 0,
    };
    let midnight = hours == 24 && minutes == 0 && seconds == 0 && nanos == 0;
    let valid = parts.next().is_none() && (hours < 24 || midnight);
    valid.then_some((hours * 3_600 + minutes * 60 + seconds, u32::try_from(nanos).ok()?))
}

/// Reads `Z`, `±HH:MM[:SS]` or `±HHMM` as seconds, at most 18 hours. Empty text is UTC.
fn offset_of(text: &str) -> Option<i32> {
    const OFFSET_SECONDS_MAX: i64 = 18 * 3_600;
    let (sign, rest) = match text.as_bytes().first() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (text.len() == 1).then_some(0),
        Some(b'-') => (-1, &text[1..]),
        Some(_) => (1, &text[1..]),
    };
    let seconds = match rest.split_once(':') {
        None => {
            let both = digits(rest, 4..=4)?;
            (both % 100 < 60).then_some(both / 100 * 3_600 + both % 100 * 60)?
        }
        Some(_) => clock_of(rest).filter(|(_, nanos)| *nanos == 0)?.0,
    };
    (seconds <= OFFSET_SECONDS_MAX).then(|| i32::try_from(sign * seconds).ok())?
}

/// A length of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Duration {
    /// Whole seconds, rounded down; negative for a length back in time.
    pub seconds: i64,
    /// Nanoseconds added to the seconds, 0 to 999,999,999.
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
            ("2020-01-02t03:04-0330", "2020-01-02T03:04:00-03:30"),
            ("2020-02", "2020-02-01T00:00:00Z"),
            ("2020-060", "2020-02-29T00:00:00Z"),
            ("2020-02-30", "2020-02-29T00:00:00Z"),
            ("1900-12-31T24:00", "1901-01-01T00:00:00Z"),
            ("-0001-03-01", "-62193657600s since the epoch"),
            ("+10000-01-01", "253402300800s since the epoch"),
        ] {
            assert_eq!(DateTime::parse(text).unwrap().to_string(), printed, "{text}");
        }
        for text in [
            "not a date",
            "",
            "T",
            "2020",
            "20200102",
            "2020-13-01",
            "2020-00-01",
            "2020-01-32",
            "2021-366",
            "2020-W01-1",
            "2020-01-02T03",
            "2020-01-02T03:04:60",
            "2020-01-02T24:01",
            "2020-01-02T03:04:05+02",
            "2020-01-02T03:04+19:00",
            "2020-01-02Z",
            "2020-01T03:04",
            " 2020-01-02",
            "2020-01-02 03:04",
            "10000-01-01",
            "+2020-01-01",
            "2020-01-02T03:04:05Zé",
            "2020-01-02T03:04:05.",
            "2020-01-02T03:04:05.1234567890",
            "99999999999999-01-01",
        ] {
            assert_eq!(DateTime::parse(text), None, "{text}");
        }
        assert_eq!(DateTime::from_epoch_millis(-1).epoch_millis(), Some(-1));
        assert_eq!(Duration { seconds: -2, nanos: 500_000_000 }.to_string(), "PT-1.5S");
    }
}
