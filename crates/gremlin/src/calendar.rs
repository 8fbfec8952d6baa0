//! Conversion between seconds since 1970 and a civil date and time: the wire spells dates out, [`DateTime`] counts
//! seconds.
//!
//! The calendar is the proleptic Gregorian one, for all years of 32 bits. Years are shifted to begin in March, so that
//! the leap day is the last day of its year.

use mangrove_graph::DateTime;

const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// The days of 400 years, after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_SHIFT: i64 = 719_468;

/// A date and time as the wire spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i32,
    pub(crate) month: i8,
    pub(crate) day: i8,
    pub(crate) nanos_of_day: i64,
    pub(crate) offset_seconds: i32,
}

impl Civil {
    /// A point in time, as its offset shows it; `None` if its year needs more than 32 bits.
    pub(crate) fn from_moment(moment: DateTime) -> Option<Self> {
        let local = moment.seconds.checked_add(i64::from(moment.offset_seconds))?;
        let shifted = local.div_euclid(SECONDS_PER_DAY).checked_add(EPOCH_SHIFT)?;
        let (era, day_of_era) = (shifted.div_euclid(DAYS_PER_ERA), shifted.rem_euclid(DAYS_PER_ERA));
        // Without the leap days, every year has 365 days.
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // From March on, months have 31, 30, 31, 30, 31 days, and again: 153 days in five months.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Some(Civil {
            year: i32::try_from(year).ok()?,
            month: month as i8,
            day: day as i8,
            nanos_of_day: local.rem_euclid(SECONDS_PER_DAY) * NANOS_PER_SECOND + i64::from(moment.nanos),
            offset_seconds: moment.offset_seconds,
        })
    }

    /// The point in time; `None` if the date or time does not exist.
    pub(crate) fn to_moment(self) -> Option<DateTime> {
        const OFFSET_SECONDS_MAX: i32 = 18 * 3_600;
        if !(1..=12).contains(&self.month)
            || !(1..=days_in_month(self.year, self.month)).contains(&self.day)
            || !(0..SECONDS_PER_DAY * NANOS_PER_SECOND).contains(&self.nanos_of_day)
            || self.offset_seconds.checked_abs().is_none_or(|offset| offset > OFFSET_SECONDS_MAX)
        {
            return None;
        }
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * DAYS_PER_ERA + day_of_era - EPOCH_SHIFT;
        let local = days * SECONDS_PER_DAY + self.nanos_of_day / NANOS_PER_SECOND;
        Some(DateTime {
            seconds: local - i64::from(self.offset_seconds),
            nanos: (self.nanos_of_day % NANOS_PER_SECOND) as u32,
            offset_seconds: self.offset_seconds,
        })
    }
}

fn days_in_month(year: i32, month: i8) -> i8 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_the_calendar_and_come_back() {
        for (text, year, month, day) in [
            ("1970-01-01T00:00:00Z", 1970, 1, 1),
            ("2000-02-29T23:59:59.25Z", 2000, 2, 29),
            ("1900-03-01T00:00:00+05:30", 1900, 3, 1),
            ("1969-12-31T23:59:59-08:00", 1969, 12, 31),
            ("0001-01-01T00:00:00Z", 1, 1, 1),
            ("9999-12-31T23:59:59Z", 9999, 12, 31),
        ] {
            let moment = DateTime::parse(text).unwrap();
            let civil = Civil::from_moment(moment).unwrap();
            assert_eq!((civil.year, civil.month, civil.day), (year, month, day), "{text}");
            assert_eq!(civil.to_moment(), Some(moment), "{text}");
        }
        // A step of 12.5 days meets every month and many leap years.
        for step in -40_000..40_000_i64 {
            let moment = DateTime { seconds: step * 1_080_000, nanos: 7, offset_seconds: 3_600 };
            assert_eq!(Civil::from_moment(moment).unwrap().to_moment(), Some(moment));
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_none() {
        let good = Civil { year: 2024, month: 2, day: 29, nanos_of_day: 0, offset_seconds: 0 };
        assert!(good.to_moment().is_some());
        for bad in [
            Civil { year: 2023, ..good },
            Civil { month: 13, ..good },
            Civil { day: 0, ..good },
            Civil { nanos_of_day: -1, ..good },
            Civil { nanos_of_day: i64::MAX, ..good },
            Civil { offset_seconds: i32::MIN, ..good },
        ] {
            assert_eq!(bad.to_moment(), None, "{bad:?}");
        }
        assert_eq!(Civil::from_moment(DateTime { seconds: i64::MAX, nanos: 0, offset_seconds: 1 }), None);
        assert_eq!(Civil::from_moment(DateTime { seconds: i64::MIN, nanos: 0, offset_seconds: 0 }), None);
    }
}
