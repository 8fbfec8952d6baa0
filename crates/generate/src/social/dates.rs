//! The time in which the network exists, in milliseconds since 1970, and the ids that are made of dates.

/// The first moment of the network: 2010-01-01.
pub(super) const START: i64 = 1_262_304_000_000;
/// The end of the network: 2013-01-01. Every date is before it.
pub(super) const END: i64 = 1_356_998_400_000;

pub(super) const SECOND: i64 = 1_000;
pub(super) const HOUR: i64 = 3_600 * SECOND;
pub(super) const DAY: i64 = 24 * HOUR;

/// The earliest birthday: 1980-01-01.
pub(super) const BIRTHDAYS_FROM: i64 = 315_532_800_000;
/// The latest birthday: 1990-01-01.
pub(super) const BIRTHDAYS_TO: i64 = 631_152_000_000;

/// The year of a date. Around New Year it may be that of the day before or after.
pub(super) fn year(date: i64) -> i32 {
    1970 + (date as f64 / (365.2425 * DAY as f64)) as i32
}

/// The month of a date, 0 to 35: the time of the network is divided into 36 equal parts.
pub(super) fn month(date: i64) -> i64 {
    (date - START) * 36 / (END - START)
}

/// An id as LDBC's generator makes it: the month in the high bits, a number in the low 40.
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
