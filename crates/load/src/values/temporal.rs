//! Dates, times and durations as files write them, read and written.
//!
//! A point in time has nanoseconds and an offset from UTC. No clock and no time zone database are used: text that names
//! a zone other than by its offset is not a date here.

use mangrove_graph::{DateTime, Duration};

/// The format in which a column has points in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TimeFormat {
    /// ISO 8601, or digits alone: 8 digits are `yyyyMMdd`, 14 `yyyyMMddHHmmss`, 17 `yyyyMMddHHmmssSSS`; any other
    /// number of digits is milliseconds since 1970-01-01 UTC.
    #[default]
    Auto,
    /// ISO 8601: `2020-01-02` or `2020-01-02T03:04:05.678+02:00`. A space may stand for the `T`, and months and days
    /// may have one digit. A time without an offset is UTC.
    Iso,
    /// `yyyyMMdd`, then optionally `HHmmss`, then optionally `SSS`, in UTC.
    Compact,
    /// Milliseconds since the epoch.
    EpochMillis,
    /// Seconds since the epoch.
    EpochSeconds,
}

impl TimeFormat {
    /// The format of this name in a mapping.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => TimeFormat::Auto,
            "iso" => TimeFormat::Iso,
            "yyyyMMdd" | "yyyyMMddHHmmss" | "yyyyMMddHHmmssSSS" => TimeFormat::Compact,
            "epoch_millis" => TimeFormat::EpochMillis,
            "epoch_seconds" => TimeFormat::EpochSeconds,
            _ => return None,
        })
    }

    /// Reads a point in time.
    pub(crate) fn parse(self, text: &str) -> Option<DateTime> {
        match self {
            TimeFormat::Auto => match text.len() {
                _ if !is_number(text) => iso(text),
                8 | 14 | 17 => compact(text),
                _ => TimeFormat::EpochMillis.parse(text),
            },
            TimeFormat::Iso => iso(text),
            TimeFormat::Compact => compact(text),
            TimeFormat::EpochMillis => Some(DateTime::from_epoch_millis(text.parse().ok()?)),
            TimeFormat::EpochSeconds => Some(DateTime { seconds: text.parse().ok()?, nanos: 0, offset_seconds: 0 }),
        }
    }
}

/// The most digits of a year with a sign: more than any 64-bit number of seconds needs.
const YEAR_DIGITS_MAX: usize = 12;

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Reads an ISO 8601 date, or date and time. A year of more than four digits needs a sign.
pub(crate) fn iso(text: &str) -> Option<DateTime> {
    let mut rest = text;
    let year = match text.bytes().next()? {
        b'+' => number(strip(&mut rest, '+')?, 4, YEAR_DIGITS_MAX)?,
        b'-' => -number(strip(&mut rest, '-')?, 4, YEAR_DIGITS_MAX)?,
        _ => number(&mut rest, 4, 4)?,
    };
    let month = number(strip(&mut rest, '-')?, 1, 2)?;
    let day = number(strip(&mut rest, '-')?, 1, 2)?;
    let midnight = i128::from(days_since_epoch(year, month, day)?) * 86_400;
    if rest.is_empty() {
        return Some(DateTime { seconds: i64::try_from(midnight).ok()?, nanos: 0, offset_seconds: 0 });
    }
    rest = rest.strip_prefix(['T', 't', ' '])?;
    let hour = number(&mut rest, 1, 2)?;
    let minute = number(strip(&mut rest, ':')?, 2, 2)?;
    let second = match strip(&mut rest, ':') {
        Some(rest) => number(rest, 2, 2)?,
        None => 0,
    };
    let nanos = match strip(&mut rest, '.') {
        Some(rest) => fraction(rest)?,
        None => 0,
    };
    let offset_seconds = offset(rest)?;
    let seconds = midnight + i128::from(seconds_of_day(hour, minute, second)?) - i128::from(offset_seconds);
    Some(DateTime { seconds: i64::try_from(seconds).ok()?, nanos, offset_seconds })
}

/// The text of a point in time with its offset, in the form that [`iso`] reads.
pub(crate) fn iso_text(time: DateTime) -> String {
    let local = i128::from(time.seconds) + i128::from(time.offset_seconds);
    let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    let sign = match year {
        0..=9999 => "",
        _ if year < 0 => "-",
        _ => "+",
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{sign}{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}", year.unsigned_abs());
    if time.nanos > 0 {
        text.push_str(format!(".{:09}", time.nanos).trim_end_matches('0'));
    }
    if time.offset_seconds == 0 {
        text.push('Z');
        return text;
    }
    let offset = time.offset_seconds.unsigned_abs();
    let sign = if time.offset_seconds < 0 { '-' } else { '+' };
    text.push_str(&format!("{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60));
    if !offset.is_multiple_of(60) {
        text.push_str(&format!(":{:02}", offset % 60));
    }
    text
}

/// Year, month and day of a day that is counted from 1970-01-01: the inverse of [`days_since_epoch`].
fn date_of(days: i128) -> (i128, i128, i128) {
    // Years are counted from March, so that a leap day is the last day of its year. Every 400 years have the same
    // number of days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i128::from(month <= 2), month, day)
}

/// The text of a duration, in the form that [`duration`] reads.
pub(crate) fn duration_text(length: Duration) -> String {
    let nanos = i128::from(length.seconds) * 1_000_000_000 + i128::from(length.nanos);
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, fraction) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    match fraction {
        0 => format!("{sign}PT{seconds}S"),
        _ => format!("{sign}PT{seconds}.{}S", format!("{fraction:09}").trim_end_matches('0')),
    }
}

/// Reads `yyyyMMdd[HHmmss[SSS]]`.
fn compact(text: &str) -> Option<DateTime> {
    if !matches!(text.len(), 8 | 14 | 17) || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| text.get(from..to).map_or(Some(0), |digits| digits.parse::<i64>().ok());
    let midnight = days_since_epoch(part(0, 4)?, part(4, 6)?, part(6, 8)?)? * 86_400;
    let seconds = midnight + seconds_of_day(part(8, 10)?, part(10, 12)?, part(12, 14)?)?;
    Some(DateTime { seconds, nanos: part(14, 17)? as u32 * 1_000_000, offset_seconds: 0 })
}

/// Drops a character from the front; `None`, and nothing is dropped, if it is not there.
fn strip<'a, 'b>(rest: &'a mut &'b str, character: char) -> Option<&'a mut &'b str> {
    *rest = rest.strip_prefix(character)?;
    Some(rest)
}

/// Takes a number with a number of digits in this range from the front.
fn number(rest: &mut &str, digits_min: usize, digits_max: usize) -> Option<i64> {
    let digits = rest.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
    if digits < digits_min {
        return None;
    }
    let (front, after) = rest.split_at(digits);
    *rest = after;
    front.parse().ok()
}

/// Takes the digits after a decimal point as nanoseconds. Digits after the ninth are dropped.
fn fraction(rest: &mut &str) -> Option<u32> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let (front, after) = rest.split_at(digits);
    *rest = after;
    let nanos = front.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(nanos.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
}

/// Reads an offset from UTC, in seconds: nothing, `Z`, `+hh`, `+hh:mm`, `+hhmm`, `+hh:mm:ss`, or one of these after a
/// `Z`.
fn offset(text: &str) -> Option<i32> {
    let mut rest = text.strip_prefix(['Z', 'z']).unwrap_or(text);
    let sign = match rest.bytes().next() {
        None => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    rest = &rest[1..];
    let hours = number(&mut rest, 2, 2)?;
    rest = rest.strip_prefix(':').unwrap_or(rest);
    let minutes = if rest.is_empty() { 0 } else { number(&mut rest, 2, 2)? };
    let seconds = match strip(&mut rest, ':') {
        Some(rest) => number(rest, 2, 2)?,
        None => 0,
    };
    let fits = rest.is_empty() && hours < 26 && minutes < 60 && seconds < 60;
    fits.then_some(sign * (hours as i32 * 3600 + minutes as i32 * 60 + seconds as i32))
}

fn seconds_of_day(hour: i64, minute: i64, second: i64) -> Option<i64> {
    (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar; `None` if there is no such day.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    const DAYS_BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let index = usize::try_from(month - 1).ok().filter(|index| *index < 12)?;
    let length = DAYS_BEFORE[index + 1] - DAYS_BEFORE[index] + i64::from(leap && month == 2);
    if !(1..=length).contains(&day) {
        return None;
    }
    // Leap days of the years from year 0 to the year before. 719,528 days lie between year 0 and 1970.
    let before = year - 1;
    let leaps = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) + 1;
    Some(year * 365 + leaps + DAYS_BEFORE[index] + i64::from(leap && month > 2) + day - 1 - 719_528)
}

/// Reads an ISO 8601 duration of weeks, days, hours, minutes and seconds (`P1DT2H3.5S`, `-PT1M`). Years and
/// months have no fixed length and are refused.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let text = text.strip_prefix(['P', 'p'])?;
    let (days, clock) = text.split_once(['T', 't']).map_or((text, None), |(days, clock)| (days, Some(clock)));
    if clock.map_or(days, |clock| clock).is_empty() {
        return None;
    }
    let parts = [
        units(days, &[('W', 604_800), ('D', 86_400)])?,
        units(clock.unwrap_or(""), &[('H', 3600), ('M', 60), ('S', 1)])?,
    ];
    let nanos = parts[0].checked_add(parts[1])? * if negative { -1 } else { 1 };
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    Some(Duration { seconds, nanos: nanos.rem_euclid(1_000_000_000) as u32 })
}

/// The sum, in nanoseconds, of numbers that are each followed by one of these unit letters, in this order.
fn units(text: &str, mut allowed: &[(char, i128)]) -> Option<i128> {
    let mut sum: i128 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        // Java puts the sign of a negative length here: `PT-1.5S`.
        let sign = if strip(&mut rest, '-').is_some() { -1 } else { 1 };
        let whole = number(&mut rest, 1, 19)?;
        let nanos = match strip(&mut rest, '.') {
            Some(rest) => fraction(rest)?,
            None => 0,
        };
        let letter = rest.chars().next()?.to_ascii_uppercase();
        let at = allowed.iter().position(|(unit, _)| *unit == letter)?;
        sum += sign * (i128::from(whole) * 1_000_000_000 + i128::from(nanos)) * allowed[at].1;
        allowed = &allowed[at + 1..];
        rest = &rest[1..];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_reads_its_form() {
        let printed = |format: TimeFormat, text: &str| format.parse(text).map(|t| t.to_string());
        for (text, expected) in [
            ("2011-08-17", Some("2011-08-17T00:00:00Z")),
            ("1950-7-23", Some("1950-07-23T00:00:00Z")),
            ("2011-08-17T14:26:59", Some("2011-08-17T14:26:59Z")),
            ("2011-08-20 11:25:30Z+00:00", Some("2011-08-20T11:25:30Z")),
            ("2008-11-03 13:25:30.000526-02:00", Some("2008-11-03T13:25:30.000526-02:00")),
            ("1976-12-23 11:21:42Z+06:40", Some("1976-12-23T11:21:42+06:40")),
            ("20110817142659961", Some("2011-08-17T14:26:59.961Z")),
            ("19891203", Some("1989-12-03T00:00:00Z")),
            ("1266161530447", Some("2010-02-14T15:32:10.447Z")),
            ("-1", Some("1969-12-31T23:59:59.999Z")),
            ("2011-13-01", None),
            ("2011-02-29", None),
            ("2012-02-29", Some("2012-02-29T00:00:00Z")),
            ("20110229", None),
            ("2011-08-17T25:00", None),
            ("2011-08-17x", None),
            ("", None),
        ] {
            assert_eq!(printed(TimeFormat::Auto, text).as_deref(), expected, "{text}");
        }
        assert_eq!(printed(TimeFormat::EpochSeconds, "86400").as_deref(), Some("1970-01-02T00:00:00Z"));
        assert_eq!(printed(TimeFormat::Compact, "1"), None);
        assert_eq!(printed(TimeFormat::Compact, "2011é171"), None);
    }

    #[test]
    fn days_agree_with_the_calendar() {
        for text in ["0000-01-01", "0004-02-29", "1600-12-31", "1900-03-01", "1970-01-01", "2000-02-29", "2100-12-31"] {
            assert_eq!(iso(text).unwrap(), DateTime::parse(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("P1DT2H3.5S"), Some(Duration { seconds: 93_603, nanos: 500_000_000 }));
        assert_eq!(duration("-PT1M"), Some(Duration { seconds: -60, nanos: 0 }));
        for text in ["P1Y", "P", "PT", "1D", "PT1S1M", "P1"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
