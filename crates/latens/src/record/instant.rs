//! Dates and times of day, as people and programs write them.
//!
//! `2026-11-16T10:33:40.5Z`, with a blank for the T, with a zone such as `+01:00` or none, without
//! seconds or without a time; `2026/11/16`, `16.11.2026`, `11/16/2026` and `16/11/2026` in the same
//! ways; a time of day alone, which goes on past midnight; all with AM or PM. Of day and month before
//! a slash the whole column decides which is which. Dates without a zone are taken as they stand: a
//! clock that is put back for winter goes back.

/// Nanoseconds of a second and of a day.
const SECOND_NANOSECONDS: i64 = 1_000_000_000;
const DAY_NANOSECONDS: i64 = 86_400 * SECOND_NANOSECONDS;
/// A cell without a value.
const NO_INSTANT: i64 = i64::MIN;

/// How the cells of one column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A date, and whether with a zone.
    Date { zoned: bool },
    /// Day and month before slashes, the year at the end.
    Slashes { zoned: bool },
    /// A time of day.
    Day,
}

/// A moment in nanoseconds since 1970, for each order of day and month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    form: Form,
    month_first: Option<i64>,
    day_first: Option<i64>,
}

/// The nanoseconds since 1970 of a date that can be read in one way only.
pub(super) fn parse(cell: &str) -> Option<i64> {
    let moment = Moment::parse(cell)?;
    match moment.form {
        Form::Day => None,
        Form::Date { .. } => moment.month_first,
        Form::Slashes { .. } => match (moment.month_first, moment.day_first) {
            (Some(only), None) | (None, Some(only)) => Some(only),
            _ => None,
        },
    }
}

/// Whether a cell holds a date or a time of day, if perhaps not one that is understood.
pub(super) fn is_date(cell: &str) -> bool {
    Moment::parse(cell).is_some()
}

/// Seconds of a unit of time, by its usual names; without a name it is the second.
pub(super) fn seconds(unit: &str) -> Option<f64> {
    Some(match unit.trim() {
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "millisecond" | "milliseconds" => 1e-3,
        "µs" | "μs" | "us" | "microsecond" | "microseconds" => 1e-6,
        "ns" | "nanosecond" | "nanoseconds" => 1e-9,
        "min" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "wk" | "week" | "weeks" => 7.0 * 86_400.0,
        "a" | "yr" | "year" | "years" => 365.25 * 86_400.0,
        _ => return None,
    })
}

/// Dates in seconds from the first, NaN where a cell is empty; `None` where one is no date or
/// written unlike those before it, or it remains open which is the day and which the month.
pub fn instants<'c>(cells: impl IntoIterator<Item = &'c str>) -> Option<Vec<f64>> {
    let mut cells = cells.into_iter();
    let mut dates = Dates::begin(0, cells.next()?)?;
    if !cells.all(|cell| dates.push(cell)) {
        return None;
    }
    dates.seconds()
}

/// A column of dates, cell by cell.
#[derive(Debug, Clone)]
pub(super) struct Dates {
    form: Form,
    month_first: Vec<i64>,
    /// Of dates with slashes.
    day_first: Vec<i64>,
    cells: usize,
}

impl Dates {
    /// A column whose first value is this cell, after so many empty ones; `None` where that is no
    /// date.
    pub(super) fn begin(empty: usize, cell: &str) -> Option<Self> {
        let mut dates = Self {
            form: Moment::parse(cell)?.form,
            month_first: vec![NO_INSTANT; empty],
            day_first: vec![],
            cells: empty,
        };
        if matches!(dates.form, Form::Slashes { .. }) {
            dates.day_first = vec![NO_INSTANT; empty];
        }
        dates.push(cell).then_some(dates)
    }

    /// Takes the next cell; whether it is written as those before.
    pub(super) fn push(&mut self, cell: &str) -> bool {
        self.cells += 1;
        if cell.is_empty() || cell == "NA" || cell.eq_ignore_ascii_case("nan") {
            self.month_first.push(NO_INSTANT);
            if matches!(self.form, Form::Slashes { .. }) {
                self.day_first.push(NO_INSTANT);
            }
            return true;
        }
        let Some(moment) = Moment::parse(cell).filter(|m| m.form == self.form) else {
            return false;
        };
        match self.form {
            Form::Date { .. } => self.month_first.extend(moment.month_first),
            Form::Day => self.past_midnight(moment.month_first),
            Form::Slashes { .. } => {
                // an order that makes no date is out for the whole column
                keep(&mut self.month_first, moment.month_first);
                keep(&mut self.day_first, moment.day_first);
            }
        }
        true
    }

    /// A time of day that is far before the last one is of the next day.
    fn past_midnight(&mut self, time: Option<i64>) {
        let last = self.month_first.iter().rev().find(|t| **t != NO_INSTANT);
        let mut time = time.unwrap_or(NO_INSTANT);
        if let Some(last) = last {
            time +=
                (last - time + DAY_NANOSECONDS / 2).div_euclid(DAY_NANOSECONDS) * DAY_NANOSECONDS;
        }
        self.month_first.push(time);
    }

    /// Seconds from the first value, NaN where there is none; `None` where it remains open which is
    /// the day and which the month.
    pub(super) fn seconds(self) -> Option<Vec<f64>> {
        let length = self.cells;
        let seconds_of = |nanoseconds: Vec<i64>| {
            let first = nanoseconds.iter().copied().find(|t| *t != NO_INSTANT);
            let first = first.unwrap_or(0);
            let second = |t: i64| match t {
                NO_INSTANT => f64::NAN,
                t => t.wrapping_sub(first) as f64 / SECOND_NANOSECONDS as f64,
            };
            nanoseconds.into_iter().map(second).collect::<Vec<f64>>()
        };
        if !matches!(self.form, Form::Slashes { .. }) {
            return Some(seconds_of(self.month_first));
        }
        let mut both = [self.month_first, self.day_first].map(seconds_of);
        let forward = |t: &[f64]| {
            let there = t.iter().filter(|t| !t.is_nan());
            t.len() == length && there.is_sorted_by(|a, b| a < b)
        };
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a == b || a.is_nan());
        match both.each_ref().map(|t| forward(t)) {
            [true, true] if !same(&both[0], &both[1]) => None,
            [_, true] => Some(std::mem::take(&mut both[1])),
            [true, false] => Some(std::mem::take(&mut both[0])),
            // neither: whichever makes dates, and the reader of times says where they go back
            [false, false] => both.into_iter().find(|t| t.len() == length),
        }
    }
}

/// Adds a value to a column of `NO_INSTANT` or whole numbers, which ends where there is none.
fn keep(column: &mut Vec<i64>, value: Option<i64>) {
    match value {
        Some(value) => column.push(value),
        None => column.clear(),
    }
}

impl Moment {
    fn parse(cell: &str) -> Option<Self> {
        let cell = cell.trim();
        if !cell.is_ascii() || cell.len() > 40 || !cell.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if cell.split(':').next().is_some_and(|h| h.len() <= 2) && cell.contains(':') {
            let TimeOfDay { nanoseconds, zone } = time_of_day(cell)?;
            let both = zone.is_none().then_some(nanoseconds);
            return both.map(|time| Self {
                form: Form::Day,
                month_first: Some(time),
                day_first: None,
            });
        }
        let (date, time) = match cell.find(['T', 't', ' ']) {
            Some(at) => (&cell[..at], Some(cell[at + 1..].trim_start())),
            None => (cell, None),
        };
        let TimeOfDay { nanoseconds, zone } = match time {
            Some(time) => time_of_day(time)?,
            None => TimeOfDay {
                nanoseconds: 0,
                zone: None,
            },
        };
        let zoned = zone.is_some();
        let at =
            |days: Option<i64>| Some(days? * DAY_NANOSECONDS + nanoseconds - zone.unwrap_or(0));
        for separator in ['-', '/', '.'] {
            let mut parts = date.split(separator);
            let (Some(a), Some(b), Some(c), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let moment = if a.len() == 4 {
                let days = at(days(whole(a)?, whole(b)?, whole(c)?));
                (Form::Date { zoned }, days, None)
            } else if c.len() != 4 {
                return None;
            } else if separator == '/' {
                let (a, b, year) = (whole(a)?, whole(b)?, whole(c)?);
                let form = Form::Slashes { zoned };
                (form, at(days(year, a, b)), at(days(year, b, a)))
            } else {
                let days = at(days(whole(c)?, whole(b)?, whole(a)?));
                (Form::Date { zoned }, days, None)
            };
            let (form, month_first, day_first) = moment;
            month_first.or(day_first)?;
            return Some(Self {
                form,
                month_first,
                day_first,
            });
        }
        None
    }
}

fn whole(digits: &str) -> Option<i64> {
    let all = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if all { digits.parse().ok() } else { None }
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) || !(1700..=2250).contains(&year) {
        return None;
    }
    // years that begin in March have the odd day at their end
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year / 4 - year / 100 + year / 400;
    Some(365 * year + leaps + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// A time of day.
struct TimeOfDay {
    /// Since midnight.
    nanoseconds: i64,
    /// Nanoseconds that its zone is ahead, where it has one.
    zone: Option<i64>,
}

/// Of `10:33[:40[.5]] [AM]`.
fn time_of_day(text: &str) -> Option<TimeOfDay> {
    let (text, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(text) => (text.trim_end(), Some(0)),
        None => match text.rfind(['+', '-']) {
            Some(at) => {
                let ahead = offset(&text[at + 1..])?;
                let sign = if text[at..].starts_with('-') { -1 } else { 1 };
                (text[..at].trim_end(), Some(sign * ahead))
            }
            None => (text.strip_suffix(" UTC").unwrap_or(text), None),
        },
    };
    let upper = text.to_ascii_uppercase();
    let (text, afternoon) = match (upper.strip_suffix("AM"), upper.strip_suffix("PM")) {
        (Some(rest), _) => (rest.trim_end(), Some(false)),
        (_, Some(rest)) => (rest.trim_end(), Some(true)),
        _ => (upper.as_str(), None),
    };
    let mut parts = text.split(':');
    let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
    let nanoseconds = match parts.next() {
        Some(seconds) => nanoseconds(seconds)?,
        None => 0,
    };
    let hour = match afternoon {
        None => hour,
        Some(pm) if (1..=12).contains(&hour) => hour % 12 + if pm { 12 } else { 0 },
        Some(_) => return None,
    };
    let valid = parts.next().is_none() && hour < 24 && minute < 60;
    valid.then_some(TimeOfDay {
        nanoseconds: (hour * 60 + minute) * 60 * SECOND_NANOSECONDS + nanoseconds,
        zone,
    })
}

/// Of `01:00`, `0100` or `01`.
fn offset(text: &str) -> Option<i64> {
    let (hours, minutes) = match text.split_once(':') {
        Some(parts) => parts,
        None if text.len() == 4 => text.split_at(2),
        None => (text, "0"),
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60 * SECOND_NANOSECONDS)
}

/// Of seconds with or without a fraction; a leap second is the next one.
fn nanoseconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let mut digits = 0;
    for (place, digit) in fraction.bytes().enumerate() {
        if !digit.is_ascii_digit() {
            return None;
        }
        if place < 9 {
            digits = 10 * digits + i64::from(digit - b'0');
        }
    }
    let scale = 10_i64.pow(9 - fraction.len().min(9) as u32);
    let seconds = whole(seconds)?;
    (seconds <= 60).then_some(seconds * SECOND_NANOSECONDS + digits * scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(cells: &[&str]) -> Option<Vec<f64>> {
        instants(cells.iter().copied())
    }

    #[test]
    fn one_moment_has_many_names() {
        let expected = 1_794_825_220_500_000_000;
        for cell in [
            "2026-11-16T10:33:40.5Z",
            "2026-11-16 10:33:40.500",
            "2026-11-16 10:33:40,5",
            "2026-11-16T11:33:40.5+01:00",
            "2026-11-16T05:33:40.5-0500",
            "2026/11/16 10:33:40.5",
            "16.11.2026 10:33:40.5",
            "11/16/2026 10:33:40.5 AM",
            "16/11/2026 10:33:40.5",
            "2026-11-16 10:33:40.5 UTC",
        ] {
            assert_eq!(parse(cell), Some(expected), "{cell}");
        }
        assert_eq!(parse("1970-01-01"), Some(0));
        assert_eq!(
            parse("2000-02-29 12:00"),
            Some(951_825_600 * SECOND_NANOSECONDS)
        );
    }

    #[test]
    fn what_is_no_date_is_none() {
        for cell in [
            "",
            "1.5",
            "1e5",
            "start",
            "2026-13-01",
            "2026-02-29",
            "2026-11-16T25:00",
            "1-2",
            "1.2.3",
            "2026-11-16 10:33:40.x",
            "99:00:00",
            "10:61",
            "2026",
            "12/2026",
            "0001-01-01",
        ] {
            assert!(!is_date(cell), "{cell}");
        }
    }

    #[test]
    fn columns_count_seconds_from_the_first() {
        assert_eq!(
            column(&["2026-03-01T00:00:00Z", "", "2026-03-01T01:00:00+00:30"]).unwrap()[2],
            1800.0
        );
        assert_eq!(column(&["23:59:50", "0:00:00.25"]).unwrap(), [0.0, 10.25]);
        assert_eq!(column(&["11:59 PM", "12:01 AM"]).unwrap(), [0.0, 120.0]);
        // a column is written in one way
        assert!(column(&["2026-03-01 00:00", "2026-03-01T00:01Z"]).is_none());
    }

    /// Where both readings of day and month are dates that increase and differ, nobody can tell.
    #[test]
    fn day_and_month_are_told_by_the_column() {
        let day = 86_400.0;
        assert_eq!(column(&["12/30/2025", "12/31/2025"]).unwrap(), [0.0, day]);
        assert_eq!(
            column(&["30/01/2026", "01/02/2026"]).unwrap(),
            [0.0, 2.0 * day]
        );
        assert_eq!(
            column(&["05/06/2026 10:00", "05/06/2026 10:01"]).unwrap(),
            [0.0, 60.0]
        );
        assert!(column(&["05/06/2026", "06/07/2026"]).is_none());
    }

    proptest! {
        /// Counting back from the calendar: days follow each other without a gap.
        #[test]
        fn days_follow_each_other(year in 1700i64..2250, month in 1i64..=12, day in 1i64..=31) {
            if let Some(today) = days(year, month, day) {
                let tomorrow = days(year, month, day + 1)
                    .or_else(|| days(year, month + 1, 1))
                    .or_else(|| days(year + 1, 1, 1));
                prop_assert_eq!(tomorrow.unwrap_or(today + 1), today + 1);
            }
        }
    }
}
