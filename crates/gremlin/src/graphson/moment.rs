//! Dates and lengths of time in ISO 8601, as Java writes and reads them.
//!
//! Every date that the wire can hold has a text: years beyond 9999 have a sign, and offsets may have seconds. A
//! fraction has three, six or nine digits, which every client reads.

use std::fmt::Write as _;

use mangrove_graph::{DateTime, Duration};

use crate::calendar::Civil;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A date and time with its offset; `None` if its year needs more than 32 bits.
pub(super) fn write(moment: DateTime) -> Option<String> {
    let civil = Civil::from_moment(moment)?;
    let (seconds, nanos) = (civil.nanos_of_day / NANOS_PER_SECOND, civil.nanos_of_day % NANOS_PER_SECOND);
    let sign = match civil.year {
        ..0 => "-",
        0..=9_999 => "",
        10_000.. => "+",
    };
    let mut text = format!(
        "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}",
        civil.year.unsigned_abs(),
        civil.month,
        civil.day,
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        fraction(nanos)
    );
    match civil.offset_seconds {
        0 => text.push('Z'),
        offset => {
            let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
            write!(text, "{sign}{:02}:{:02}", offset / 3_600, offset / 60 % 60).ok()?;
            if offset % 60 != 0 {
                write!(text, ":{:02}", offset % 60).ok()?;
            }
        }
    }
    Some(text)
}

fn fraction(nanos: i64) -> String {
    match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    }
}

/// The point in time of a text. Seconds, fraction and offset (then UTC) may be missing. The name of a zone in brackets
/// may follow; it adds nothing to the offset.
pub(super) fn read(text: &str) -> Option<DateTime> {
    let text = text.split_once('[').map_or(text, |(moment, _)| moment);
    let (date, time) = text.split_once(['T', 't'])?;
    let (negative, date) = match date.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, date.strip_prefix('+').unwrap_or(date)),
    };
    let mut parts = date.splitn(3, '-');
    let year: i32 = number(parts.next()?, 4..=10)?.try_into().ok()?;
    let (month, day) = (number(parts.next()?, 2..=2)?, number(parts.next()?, 2..=2)?);
    let zone = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at(zone);
    let civil = Civil {
        year: if negative { -year } else { year },
        month: i8::try_from(month).ok()?,
        day: i8::try_from(day).ok()?,
        nanos_of_day: nanos_of_day(clock)?,
        offset_seconds: offset_seconds(offset)?,
    };
    civil.to_moment()
}

fn nanos_of_day(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let nanos = if fraction.is_empty() { 0 } else { fraction_nanos(fraction)? };
    let seconds = sexagesimal(clock)?;
    // Otherwise a minute would have more than sixty seconds.
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)
}

fn fraction_nanos(digits: &str) -> Option<i64> {
    if digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{digits:0<9}").parse().ok()
}

fn offset_seconds(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first() {
        None | Some(b'Z' | b'z') => return (text.len() <= 1).then_some(0),
        Some(b'-') => -1,
        _ => 1,
    };
    Some(sign * i32::try_from(sexagesimal(&text[1..])?).ok()?)
}

/// `HH`, `HH:MM` or `HH:MM:SS` in seconds.
fn sexagesimal(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hours = number(parts.next()?, 2..=2)?;
    let mut sixty = || match parts.next() {
        None => Some(0),
        Some(part) => number(part, 2..=2).filter(|n| *n < 60),
    };
    let (minutes, seconds) = (sixty()?, sixty()?);
    parts.next().is_none().then_some(hours * 3_600 + minutes * 60 + seconds)
}

fn number(digits: &str, length: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let plain = length.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

/// A length of time as `PT90.005S`, which every client reads. A negative one begins with its sign.
pub(super) fn write_duration(duration: Duration) -> String {
    let total = i128::from(duration.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(duration.nanos);
    let (sign, total) = (if total < 0 { "-" } else { "" }, total.unsigned_abs());
    let nanos = (total % NANOS_PER_SECOND.unsigned_abs() as u128) as i64;
    format!("{sign}PT{}{}S", total / NANOS_PER_SECOND.unsigned_abs() as u128, fraction(nanos))
}

/// A length of time in days, hours, minutes and seconds, each with a sign of its own if need be.
pub(super) fn read_duration(text: &str) -> Option<Duration> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (date, time) = text.strip_prefix('P')?.split_once('T').unwrap_or((text.strip_prefix('P')?, ""));
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    let mut rest = date;
    for (unit, seconds) in [('W', 604_800), ('D', 86_400)] {
        total += amount(&mut rest, unit, seconds)?;
    }
    if !rest.is_empty() {
        return None;
    }
    rest = time;
    for (unit, seconds) in [('H', 3_600), ('M', 60), ('S', 1)] {
        total += amount(&mut rest, unit, seconds)?;
    }
    let total = if negative { -total } else { total };
    let nanos_per_second = i128::from(NANOS_PER_SECOND);
    let whole = Duration {
        seconds: i64::try_from(total.div_euclid(nanos_per_second)).ok()?,
        nanos: total.rem_euclid(nanos_per_second) as u32,
    };
    rest.is_empty().then_some(whole)
}

/// Takes the amount before `unit` off the text and returns it in nanoseconds; zero if the unit is missing.
fn amount(rest: &mut &str, unit: char, unit_seconds: i128) -> Option<i128> {
    let Some((amount, after)) = rest.split_once(unit) else { return Some(0) };
    *rest = after;
    let (negative, amount) = match amount.strip_prefix('-') {
        Some(amount) => (true, amount),
        None => (false, amount.strip_prefix('+').unwrap_or(amount)),
    };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    if fraction != "0" && unit != 'S' {
        return None;
    }
    let whole = whole.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.parse::<u64>().ok())??;
    let nanos = i128::from(whole) * unit_seconds * i128::from(NANOS_PER_SECOND) + i128::from(fraction_nanos(fraction)?);
    Some(if negative { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spelled_as_java_does_and_come_back() {
        for (seconds, nanos, offset_seconds, text) in [
            (0, 0, 0, "1970-01-01T00:00:00Z"),
            (1_577_927_045, 250_000_000, 7_200, "2020-01-02T03:04:05.250+02:00"),
            (0, 1_000, -5_400, "1969-12-31T22:30:00.000001-01:30"),
            (0, 1, 1, "1970-01-01T00:00:01.000000001+00:00:01"),
            (253_402_300_800, 0, 0, "+10000-01-01T00:00:00Z"),
            (-62_167_219_201, 0, 0, "-0001-12-31T23:59:59Z"),
        ] {
            let moment = DateTime { seconds, nanos, offset_seconds };
            assert_eq!(write(moment).as_deref(), Some(text));
            assert_eq!(read(text), Some(moment), "{text}");
        }
        let zoned = read("2020-01-02T03:04+01:00[Europe/Berlin]").unwrap();
        assert_eq!(write(zoned).as_deref(), Some("2020-01-02T03:04:00+01:00"));
        assert_eq!(write(DateTime { seconds: i64::MAX, nanos: 0, offset_seconds: 0 }), None);
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "T",
            "2020-01-02",
            "2020-13-01T00:00Z",
            "2020-02-30T00:00Z",
            "2020-01-02T24:00Z",
            "2020-01-02T00:60Z",
            "2020-01-02T00:00:00.1234567890Z",
            "2020-01-02T00:00:00.é",
            "2020-01-02T00:00Zé",
            "2020-01-02T00:00+99:00",
            "99999999999-01-01T00:00Z",
            "2020-01-02T00:00:00:00Z",
            "2020-1-2T00:00Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_read_in_every_spelling() {
        let of = |seconds, nanos| Some(Duration { seconds, nanos });
        for (text, duration) in [
            ("PT1M30.005S", of(90, 5_000_000)),
            ("P1DT1H", of(90_000, 0)),
            ("P2W", of(1_209_600, 0)),
            ("PT-1.5S", of(-2, 500_000_000)),
            ("-PT1.5S", of(-2, 500_000_000)),
            ("PT1H-1M", of(3_540, 0)),
            ("PT0S", of(0, 0)),
            ("P", None),
            ("PT", None),
            ("1S", None),
            ("PT1", None),
            ("PT1.5M", None),
            ("PTS", None),
            ("P1Y", None),
            ("PT99999999999999999999S", None),
        ] {
            assert_eq!(read_duration(text), duration, "{text}");
        }
        for duration in [
            Duration { seconds: i64::MIN, nanos: 0 },
            Duration { seconds: i64::MAX, nanos: 999_999_999 },
            Duration { seconds: -1, nanos: 1 },
        ] {
            assert_eq!(read_duration(&write_duration(duration)), Some(duration));
        }
    }
}
