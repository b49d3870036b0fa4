//! When the samples were taken.

use super::error::RecordError;
use super::instant;
use super::layout::finite;
use super::{Record, Table};

/// `t` or `time`, in any case only where the model has no use for the column: a temperature `T`
/// is no clock. Else the only column of dates.
pub(super) fn time_column<V: AsRef<[f64]>>(
    table: &Table<V>,
    used: impl Fn(usize) -> bool,
) -> Option<usize> {
    let any_case = |wanted: &str| {
        let mut names = table.names().enumerate();
        names.find_map(|(k, n)| (n.eq_ignore_ascii_case(wanted) && !used(k)).then_some(k))
    };
    let exact = ["t", "time"]
        .iter()
        .find_map(|n| table.find(n))
        .filter(|&k| !used(k));
    let mut dates = (0..table.columns().len()).filter(|&k| table.instants(k).is_some() && !used(k));
    let only = || dates.next().filter(|_| dates.next().is_none());
    exact
        .or_else(|| any_case("time"))
        .or_else(|| any_case("t"))
        .or_else(only)
}

/// Words in the name of a clock, and whole names.
const CLOCK_WORDS: [&str; 9] = [
    "time", "clock", "elapsed", "hour", "minute", "second", "date", "stamp", "zeit",
];
const CLOCK_NAMES: [&str; 13] = [
    "s", "sec", "secs", "ms", "us", "ns", "min", "mins", "h", "hr", "hrs", "d", "days",
];

/// A column that nobody uses, with the name of a clock and rising from row to row, unless its rows are `step`
/// apart anyway.
pub(super) fn clock_left<V: AsRef<[f64]>>(
    table: &Table<V>,
    step: f64,
    used: impl Fn(usize) -> bool,
) -> Option<&str> {
    let named = |name: &str| {
        let name = name.to_lowercase();
        CLOCK_WORDS.iter().any(|word| name.contains(word)) || CLOCK_NAMES.contains(&&*name)
    };
    let rises = |k: usize| {
        let Ok(values) = table.values(k) else {
            return false;
        };
        let mut gaps = values.windows(2).map(|w| w[1] - w[0]);
        let even = |gap: f64| (gap - step).abs() <= Record::STEP_TOLERANCE * step;
        gaps.clone().all(|gap| gap > 0.0) && !gaps.all(even)
    };
    let names = table.names().enumerate();
    let mut clocks = names.filter(|(k, name)| !used(*k) && named(name) && rises(*k));
    clocks.next().map(|(_, name)| name)
}

/// The times of the samples, which must be there and increase; dates are counted in `unit` from the
/// first.
pub(super) fn times<V: AsRef<[f64]>>(
    table: &Table<V>,
    column: usize,
    unit: &str,
) -> Result<Vec<f64>, RecordError> {
    let time = match table.instants(column) {
        Some(seconds) => {
            let Some(unit) = instant::seconds(unit) else {
                return Err(RecordError::DatesInUnit {
                    file: table.source.clone(),
                    column: table.columns()[column].name.clone(),
                    unit: unit.to_owned(),
                });
            };
            seconds.iter().map(|t| t / unit).collect()
        }
        None => match finite(table, column) {
            Err(RecordError::NotANumber { at, text }) if instant::is_date(&text) => {
                return Err(RecordError::DateUnclear { at, text });
            }
            time => time?.to_vec(),
        },
    };
    if let Some(row) = time.iter().position(|t| t.is_nan()) {
        return Err(RecordError::TimeMissing {
            at: table.cell(column, row),
        });
    }
    match time.windows(2).position(|t| t[1] <= t[0]) {
        Some(row) => Err(RecordError::TimeOrder {
            at: table.cell(column, row + 1),
            previous: time[row],
            value: time[row + 1],
        }),
        None => Ok(time),
    }
}

/// A step given beside a time column must be the record's.
pub(super) fn check_step<V: AsRef<[f64]>>(
    record: &Record,
    table: &Table<V>,
    clock: Option<usize>,
    step: Option<f64>,
) -> Result<(), RecordError> {
    match (clock, step) {
        (Some(column), Some(given))
            if (given - record.step()).abs() > Record::STEP_TOLERANCE * record.step() =>
        {
            Err(RecordError::StepConflict {
                file: table.source.clone(),
                given,
                column: table.columns()[column].name.clone(),
                measured: record.step(),
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::{Door, worded};
    use crate::record::csv::parse;
    use crate::record::layout::tests::{error, read};
    use crate::record::testing::names;
    use crate::record::{Layout, Mapping, Record};

    /// A clock under another name is asked about where it makes a difference, and only there.
    #[test]
    fn a_clock_is_not_left_aside_in_silence() {
        let uneven = "hours,I,V\n0,1,2\n0.4,1,3\n1.1,1,4\n";
        assert_eq!(
            error_of_step(uneven, &[]),
            "runs/a.csv has no time column (t or time), and 'hours' looks like one whose rows are not 0.5 apart: take it with --map t=hours, or count steps of 0.5 with --map t="
        );
        let layout = counting(0.5);
        let times = |text: &str, map: &[&str]| {
            let table = parse("a.csv", text.as_bytes()).unwrap();
            let mapping = Mapping::parse(map).unwrap();
            Record::from_table(&table, &layout, &mapping, None)
                .unwrap()
                .time
        };
        assert_eq!(times(uneven, &["t=hours"]), [0.0, 0.4, 1.1]);
        assert_eq!(times(uneven, &["t="]), [0.0, 0.5, 1.0]);
        for harmless in [
            "hours,I,V\n0,1,2\n0.5,1,3\n1,1,4\n",
            "hours,I,V\n0,1,2\n2,1,3\n1,1,4\n",
            "row,I,V\n0,1,2\n1,1,3\n2,1,4\n",
        ] {
            assert_eq!(times(harmless, &[]), [0.0, 0.5, 1.0], "{harmless}");
        }
    }

    fn counting(step: f64) -> Layout {
        Layout {
            inputs: names("I"),
            measurements: names("V"),
            time_step: Some(step),
            ..Layout::default()
        }
    }

    fn error_of_step(text: &str, map: &[&str]) -> String {
        let table = parse("runs/a.csv", text.as_bytes()).unwrap();
        let mapping = Mapping::parse(map).unwrap();
        let error = Record::from_table(&table, &counting(0.5), &mapping, None).unwrap_err();
        worded(&error.to_string(), Door::CommandLine)
    }

    #[test]
    fn without_times_the_steps_are_counted() {
        let text = "I,V\n1,2\n1,3\n1,4\n";
        assert_eq!(read(text, &[], Some(0.5)).unwrap().time, [0.0, 0.5, 1.0]);
        assert_eq!(
            error(text, &[], None),
            "runs/a.csv has no time column (t or time) and no step is known; name the column with --map t=<column> or give the step with --step"
        );
        assert!(error(text, &[], Some(0.0)).starts_with("a step of 0 makes no sense"));
        let (i, v) = (names("I"), names("V"));
        let time_step = Some(0.25);
        let layout = Layout {
            inputs: i,
            measurements: v,
            states: vec![],
            time_step,
            ..Layout::default()
        };
        let table = parse("a.csv", text.as_bytes()).unwrap();
        let read = |step| Record::from_table(&table, &layout, &Mapping::default(), step).unwrap();
        assert_eq!(read(None).time, [0.0, 0.25, 0.5]);
        assert_eq!(read(Some(1.0)).time, [0.0, 1.0, 2.0]);
    }

    #[test]
    fn the_time_column_is_found_mapped_or_ignored() {
        let clock = |text, map: &[&str]| read(text, map, None).unwrap().time;
        assert_eq!(clock("TIME,I,V\n1,0,0\n2,0,0\n", &[]), [1.0, 2.0]);
        assert_eq!(clock("Time,t,I,V\n1,3,0,0\n2,4,0,0\n", &[]), [3.0, 4.0]);
        assert_eq!(clock("t,s,I,V\n1,3,0,0\n2,4,0,0\n", &["t=s"]), [3.0, 4.0]);
        // A column that the model uses is no clock, whatever its name.
        let text = "T,I\n20,0\n19,0\n";
        assert_eq!(read(text, &["V=T"], Some(1.0)).unwrap().time, [0.0, 1.0]);
        let text = "t,I,V\n0,1,2\n0.1,1,2\n";
        assert_eq!(read(text, &["t="], Some(2.0)).unwrap().time, [0.0, 2.0]);
        assert!(read(text, &[], Some(0.1)).is_ok());
        assert_eq!(
            error(text, &[], Some(2.0)),
            "runs/a.csv: the step given is 2, but the time column 't' has a step of 0.1; drop --step, or ignore the column with --map t="
        );
    }

    /// Dates become the model's unit of time, counted from the first.
    #[test]
    fn dates_are_times() {
        let read = |text: &str, unit: &str| {
            let layout = Layout {
                inputs: names("I"),
                measurements: names("V"),
                time_unit: unit.into(),
                ..Layout::default()
            };
            let table = parse("a.csv", text.as_bytes())?;
            Record::from_table(&table, &layout, &Mapping::default(), None)
        };
        for (first, second) in [
            ("2026-11-16T10:00:00Z", "2026-11-16T10:30:00Z"),
            ("2026-11-16 10:00", "2026-11-16 10:30"),
            ("16.11.2026 10:00", "16.11.2026 10:30"),
            ("11/16/2026 10:00 AM", "11/16/2026 10:30 AM"),
            ("23:45", "00:15"),
        ] {
            for header in ["t", "Time", "logged at"] {
                let text = format!("{header},I,V,note\n{first},1,2,a\n{second},1,3,b\n");
                for (unit, expected) in [("s", 1800.0), ("min", 30.0), ("h", 0.5), ("", 1800.0)] {
                    assert_eq!(read(&text, unit).unwrap().time, [0.0, expected], "{text}");
                }
            }
        }
        let error = |text: &str, unit| read(text, unit).unwrap_err().to_string();
        let dated = "t,I,V\n2026-11-16,1,2\n2026-11-17,1,3\n";
        assert!(
            error(dated, "strokes").contains("holds dates, and the model counts time in 'strokes'")
        );
        let unclear = "t,I,V\n05/06/2026,1,2\n06/07/2026,1,3\n";
        assert!(
            error(unclear, "s")
                .contains("line 2, column 1 (t): the date '05/06/2026' can be read in two")
        );
        let back = "t,I,V\n2026-10-25 02:59,1,2\n2026-10-25 02:00,1,3\n";
        assert!(error(back, "s").contains("times must increase"));
        // a date is no measurement
        let wrong = "t,I,V\n0,1,2026-11-16\n1,1,2026-11-17\n";
        assert!(error(wrong, "s").contains("'2026-11-16' is not a number"));
    }

    #[test]
    fn faults_of_time_name_the_line() {
        assert_eq!(
            error("I,V,t\n1,2,0\n\n1,2,0.2\n1,2,0.1\n", &[], None),
            "runs/a.csv: line 5, column 3 (t): time 0.1 follows 0.2; times must increase from sample to sample"
        );
        let message = error("t,I,V\n0,1,2\n,1,2\n", &[], None);
        assert!(message.starts_with("runs/a.csv: line 3, column 1 (t): the time is missing"));
        let message = error("t,I,V\n0,1,2\ninf,1,2\n", &[], None);
        assert!(message.starts_with("runs/a.csv: line 3, column 1 (t): the value is infinite"));
        assert!(error("t,I,V\n0,1,2\n", &[], None).contains("has 1 sample(s)"));
    }
}
