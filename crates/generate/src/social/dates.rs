//! The time of the network: milliseconds since the epoch, and calendar dates where people know only the year.

/// When it begins: 2010-01-01.
pub(super) const START: i64 = 1_262_304_000_000;
/// When it ends: 2013-01-01. Everything is before.
pub(super) const END: i64 = 1_356_998_400_000;

pub(super) const SECOND: i64 = 1_000;
pub(super) const HOUR: i64 = 3_600 * SECOND;
pub(super) const DAY: i64 = 24 * HOUR;

/// 1980-01-01.
pub(super) const BIRTHDAYS_FROM: i64 = 315_532_800_000;
/// 1990-01-01.
pub(super) const BIRTHDAYS_TO: i64 = 631_152_000_000;

/// The year of a date, right to a day around New Year.
pub(super) fn year(date: i64) -> i32 {
    1970 + (date as f64 / (365.2425 * DAY as f64)) as i32
}

/// Which 36th of the time a date is in, about a month.
pub(super) fn month(date: i64) -> i64 {
    (date - START) * 36 / (END - START)
}

/// An id as LDBC's generator makes them: the time above, a number below.
pub(super) fn dated_id(date: i64, number: u64) -> i64 {
    assert!(number < 1 << 40, "there are at most 2^40 of a kind");
    month(date) << 40 | number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_and_years() {
        assert_eq!((month(START), month(END - 1)), (0, 35));
        assert_eq!((year(START + DAY), year(END - DAY), year(BIRTHDAYS_FROM + DAY)), (2010, 2012, 1980));
        assert_eq!(dated_id(START, 933), 933);
        assert!(dated_id(END - 1, 0) > dated_id(START, 1 << 30));
    }
}
