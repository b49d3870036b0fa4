//! What a model asks of a table, and the record that answers it.

use std::path::Path;

use super::error::{Missing, RecordError};
use super::mapping::Mapping;
use super::sampling::{check_step, clock_left, time_column, times};
use super::{Record, Table};
use crate::model::Model;
use crate::model::suggest::suggest;

/// What a model asks of a table.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Names of the measurements.
    pub measurements: Vec<String>,
    /// Names of the states, whose truth a column `truth_<state>` may hold.
    pub states: Vec<String>,
    /// The model's step, used where the file has no time column.
    pub time_step: Option<f64>,
    /// What the model counts time in: dates become that.
    pub time_unit: String,
    /// Whether a constant varies by group: then a record has the label of its own.
    pub groups: bool,
}

/// What a mapping calls the column with the labels of groups, and that column where nothing is mapped.
pub(super) const GROUP_COLUMN: &str = "group";

impl Layout {
    /// What a model asks for.
    pub fn of(model: &Model) -> Self {
        Self {
            inputs: model.inputs.iter().map(|q| q.name.clone()).collect(),
            measurements: model.measurements.iter().map(|q| q.name.clone()).collect(),
            states: model.states.iter().map(|s| s.name.clone()).collect(),
            time_step: model.step,
            time_unit: model.time_unit.clone(),
            groups: model.asks_for_groups(),
        }
    }

    /// Whether a column of a file may have the label: a signal of that name is itself.
    fn has_group_column(&self) -> bool {
        let mut signals = self.inputs.iter().chain(&self.measurements);
        self.groups && signals.all(|name| name != GROUP_COLUMN)
    }

    /// The label of the group that a table's record belongs to, where the model asks for one and the
    /// table has it.
    pub(super) fn group_of<V: AsRef<[f64]>>(
        &self,
        table: &Table<V>,
        mapping: &Mapping,
    ) -> Result<Option<String>, RecordError> {
        let column = table.find(mapping.get(GROUP_COLUMN).unwrap_or(GROUP_COLUMN));
        let column = column.filter(|_| self.has_group_column());
        column.map(|column| table.label(column)).transpose()
    }

    fn truth_names(&self) -> impl Iterator<Item = String> {
        self.states.iter().map(|state| format!("truth_{state}"))
    }
}

/// The columns of a table that serve a model, by their index in the table.
#[derive(Debug, Clone)]
pub struct Columns {
    /// The times; without them steps are counted.
    pub time: Option<usize>,
    /// In the order of the layout, as the others.
    pub inputs: Vec<usize>,
    /// Of each measurement.
    pub measurements: Vec<usize>,
    /// The truth of each state, where the table has it.
    pub truth: Vec<Option<usize>>,
}

impl Columns {
    /// Finds them by name.
    ///
    /// # Errors
    /// The mapping names what is not there, or an input or measurement has no column.
    pub fn find<V: AsRef<[f64]>>(
        table: &Table<V>,
        layout: &Layout,
        mapping: &Mapping,
    ) -> Result<Self, RecordError> {
        check_mapping(table, layout, mapping)?;
        let Required {
            inputs,
            measurements,
        } = required(table, layout, mapping)?;
        let find = |name: String| table.find(mapping.get(&name).unwrap_or(&name));
        let mut columns = Self {
            time: None,
            inputs,
            measurements,
            truth: layout.truth_names().map(find).collect(),
        };
        columns.time = match mapping.get("t") {
            Some("") => None,
            Some(column) => table.find(column),
            None => time_column(table, |k| columns.used().any(|&u| u == k)),
        };
        Ok(columns)
    }

    /// All of them but the time.
    fn used(&self) -> impl Iterator<Item = &usize> {
        let truth = self.truth.iter().flatten();
        self.inputs.iter().chain(&self.measurements).chain(truth)
    }
}

impl Record {
    /// Takes from a table what the model asks for.
    ///
    /// The time is the column mapped to `t`, else `t` or `time` in any case, else the only one of
    /// dates, which become the model's unit of time; without one, samples are at multiples of `step`, else of
    /// the model's step, unless a column that looks like the times says otherwise. A `step` given beside a
    /// time column must agree with it. Whether the record's step is the model's is not checked here.
    ///
    /// # Errors
    /// The mapping or the table does not have what is asked for, or its values do not make a
    /// record: see [`RecordError`]. Text or infinity in a column that is not used is no fault.
    pub fn from_table<V: AsRef<[f64]>>(
        table: &Table<V>,
        layout: &Layout,
        mapping: &Mapping,
        step: Option<f64>,
    ) -> Result<Self, RecordError> {
        let columns = Columns::find(table, layout, mapping)?;
        let clock = columns.time;
        if let (None, None, None, Some(counted)) = (clock, mapping.get("t"), step, layout.time_step)
            && let Some(column) = clock_left(table, counted, |k| columns.used().any(|&u| u == k))
        {
            return Err(RecordError::ClockLeft {
                file: table.source.clone(),
                column: column.into(),
                step: counted,
            });
        }
        let n = common_length(table, clock.iter().chain(columns.used()))?;
        let Columns {
            inputs,
            measurements,
            truth: states,
            ..
        } = columns;

        let time = match (clock, step.or(layout.time_step)) {
            (Some(column), _) => times(table, column, &layout.time_unit)?,
            (None, Some(step)) if step > 0.0 && step.is_finite() => {
                (0..n).map(|k| k as f64 * step).collect()
            }
            (None, Some(step)) => return Err(RecordError::BadStep { step }),
            (None, None) => {
                return Err(RecordError::NoTime {
                    file: table.source.clone(),
                });
            }
        };
        for &column in &inputs {
            if let Some(row) = finite(table, column)?.iter().position(|v| v.is_nan()) {
                return Err(RecordError::InputMissing {
                    at: table.cell(column, row),
                });
            }
        }
        for (&column, name) in measurements.iter().zip(&layout.measurements) {
            if finite(table, column)?.iter().all(|v| v.is_nan()) {
                return Err(RecordError::MeasurementEmpty {
                    file: table.source.clone(),
                    name: name.clone(),
                    column: table.columns()[column].name.clone(),
                });
            }
        }
        for &column in states.iter().flatten() {
            finite(table, column)?;
        }

        let some = |columns: &[usize]| columns.iter().copied().map(Some).collect::<Vec<_>>();
        let known = states.iter().any(Option::is_some);
        let record = Self {
            name: Path::new(&table.source)
                .file_stem()
                .map_or(table.source.clone(), |s| s.to_string_lossy().into_owned()),
            time,
            inputs: rows(table, n, &some(&inputs))?,
            outputs: rows(table, n, &some(&measurements))?,
            truth: known.then(|| rows(table, n, &states)).transpose()?,
            d_u: inputs.len(),
            d_y: measurements.len(),
            d_x: states.len(),
            later: false,
        };
        check_step(&record, table, clock, step)?;
        Ok(record)
    }
}

pub(super) fn check_mapping<V: AsRef<[f64]>>(
    table: &Table<V>,
    layout: &Layout,
    mapping: &Mapping,
) -> Result<(), RecordError> {
    let mut known = vec!["t".to_owned()];
    known.extend(layout.inputs.iter().chain(&layout.measurements).cloned());
    known.extend(layout.truth_names());
    known.extend(layout.has_group_column().then(|| GROUP_COLUMN.to_owned()));
    for (name, column) in mapping.pairs() {
        if !known.contains(name) {
            // A state that is not measured is only ever given as truth.
            let truth = format!("truth_{name}");
            let suggestion = if known.contains(&truth) {
                Some(truth)
            } else {
                suggest(name, known.iter().map(String::as_str))
            };
            return Err(RecordError::MappingUnknownName {
                name: name.clone(),
                column: column.clone(),
                suggestion,
                known,
            });
        }
        if table.find(column).is_none() && !column.is_empty() {
            return Err(RecordError::MappingUnknownColumn {
                file: table.source.clone(),
                name: name.clone(),
                column: column.clone(),
                suggestion: suggest(column, table.names()),
                columns: table.names().map(str::to_owned).collect(),
            });
        }
    }
    Ok(())
}

/// The columns that a record must have.
pub(super) struct Required {
    pub inputs: Vec<usize>,
    pub measurements: Vec<usize>,
}

/// The columns of the inputs and of the measurements, or all that are missing at once.
pub(super) fn required<V: AsRef<[f64]>>(
    table: &Table<V>,
    layout: &Layout,
    mapping: &Mapping,
) -> Result<Required, RecordError> {
    let mut missing = Vec::new();
    let mut find = |names: &[String], role| -> Vec<usize> {
        let mut places = Vec::new();
        for name in names {
            match table.find(mapping.get(name).unwrap_or(name)) {
                Some(column) => places.push(column),
                None => missing.push(Missing {
                    name: name.clone(),
                    role,
                    // a truth column is for scoring: learning from it would be cheating
                    suggestion: suggest(name, table.names().filter(|n| !n.starts_with("truth_"))),
                }),
            }
        }
        places
    };
    let columns = Required {
        inputs: find(&layout.inputs, "input"),
        measurements: find(&layout.measurements, "measurement"),
    };
    if missing.is_empty() {
        return Ok(columns);
    }
    Err(RecordError::MissingColumns {
        file: table.source.clone(),
        missing,
        columns: table.names().map(str::to_owned).collect(),
    })
}

fn common_length<'a, V: AsRef<[f64]>>(
    table: &Table<V>,
    mut columns: impl Iterator<Item = &'a usize>,
) -> Result<usize, RecordError> {
    let file = table.source.clone();
    let Some(first) = columns.next().map(|&k| &table.columns()[k]) else {
        return Err(RecordError::TooShort { file, samples: 0 });
    };
    let samples = first.len();
    let other = columns
        .map(|&k| &table.columns()[k])
        .find(|c| c.len() != samples);
    match other {
        Some(second) => Err(RecordError::Lengths {
            file,
            first: first.name.clone(),
            first_len: samples,
            second: second.name.clone(),
            second_len: second.len(),
        }),
        None if samples < 2 => Err(RecordError::TooShort { file, samples }),
        None => Ok(samples),
    }
}

/// The values of a column, none of them infinite.
pub(super) fn finite<V: AsRef<[f64]>>(
    table: &Table<V>,
    column: usize,
) -> Result<&[f64], RecordError> {
    let values = table.values(column)?;
    match values.iter().position(|v| v.is_infinite()) {
        Some(row) => Err(RecordError::Infinite {
            at: table.cell(column, row),
        }),
        None => Ok(values),
    }
}

/// Columns side by side, row by row; NaN for a column that is not there.
fn rows<V: AsRef<[f64]>>(
    table: &Table<V>,
    n: usize,
    columns: &[Option<usize>],
) -> Result<Vec<f64>, RecordError> {
    let width = columns.len();
    let mut matrix = vec![f64::NAN; n * width];
    for (k, column) in columns.iter().enumerate() {
        let Some(column) = *column else { continue };
        for (row, value) in table.values(column)?.iter().enumerate() {
            matrix[row * width + k] = *value;
        }
    }
    Ok(matrix)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::error::{Door, worded};
    use crate::record::Column;
    use crate::record::csv::parse;
    use crate::record::testing::names;
    use proptest::prelude::*;

    /// A model with input `I`, measurement `V` and states `V` and `h`.
    pub fn read(text: &str, map: &[&str], step: Option<f64>) -> Result<Record, RecordError> {
        from(&parse("runs/a.csv", text.as_bytes())?, map, step)
    }

    fn from(table: &Table, map: &[&str], step: Option<f64>) -> Result<Record, RecordError> {
        let (inputs, measurements, states) = (names("I"), names("V"), names("V h"));
        let layout = Layout {
            inputs,
            measurements,
            states,
            ..Layout::default()
        };
        Record::from_table(table, &layout, &Mapping::parse(map)?, step)
    }

    pub fn error(text: &str, map: &[&str], step: Option<f64>) -> String {
        let error = read(text, map, step).unwrap_err().to_string();
        worded(&error, Door::CommandLine)
    }

    #[test]
    fn takes_what_the_model_asks_for() {
        let text = "Time,note,V,I,truth_h\n0,a,-65,10,0.5\n0.1,b,,11,\n0.2,c,-64,12,0.7\n";
        let record = read(text, &[], None).unwrap();
        assert_eq!(record.name, "a");
        assert_eq!(record.time, [0.0, 0.1, 0.2]);
        assert_eq!(record.inputs, [10.0, 11.0, 12.0]);
        assert_eq!(record.output(0), [-65.0]);
        assert!(record.output(1)[0].is_nan());
        assert!(record.truth(0).unwrap()[0].is_nan());
        assert_eq!(record.truth(2).unwrap()[1], 0.7);
        assert_eq!((record.d_u, record.d_y, record.d_x), (1, 1, 2));
        assert!(
            read("t,V,I\n0,1,1\n1,1,1\n", &[], None)
                .unwrap()
                .truth
                .is_none()
        );
    }

    #[test]
    fn a_table_may_borrow_its_numbers() {
        let (t, v, i) = ([0.0, 1.0, 2.0], [1.0, f64::NAN, 3.0], [5.0, 6.0, 7.0]);
        let named = [("t", &t), ("V", &v), ("I", &i)];
        let borrowed = named.map(|(name, values)| Column::new(name, values.as_slice()));
        let owned = named.map(|(name, values)| Column::new(name, values.to_vec()));
        let (borrowed, owned) = (
            Table::new("a", borrowed.to_vec()).unwrap(),
            Table::new("a", owned.to_vec()).unwrap(),
        );
        let layout = Layout {
            inputs: names("I"),
            measurements: names("V"),
            states: names("V h"),
            ..Layout::default()
        };
        let read = Record::from_table(&borrowed, &layout, &Mapping::default(), None).unwrap();
        let expected = from(&owned, &[], None).unwrap();
        assert_eq!(read.time, expected.time);
        assert_eq!(read.inputs, expected.inputs);
        assert_eq!(read.output(2), expected.output(2));
        assert!(read.output(1)[0].is_nan());
    }

    #[test]
    fn faults_of_values_name_line_and_column() {
        let top = "# log\nt,I,V\n0,1,2\n\n";
        let message = error(&format!("{top}1,,2\n"), &[], None);
        assert!(message.starts_with("runs/a.csv: line 5, column 2 (I): the input is missing"));
        let message = error(&format!("{top}1,NaN,2\n"), &[], None);
        assert!(message.starts_with("runs/a.csv: line 5, column 2 (I): the input is missing"));
        let message = error(&format!("{top}1,1,-inf\n"), &[], None);
        assert!(message.starts_with("runs/a.csv: line 5, column 3 (V): the value is infinite"));
        let message = error(&format!("{top}1,1,high\n"), &[], None);
        assert!(message.starts_with("runs/a.csv: line 5, column 3 (V): 'high' is not a number"));
        let message = error("t,I,V\n0,1,\n1,1,NA\n", &[], None);
        assert!(message.starts_with("runs/a.csv: measurement V has no value in the whole file"));
    }

    #[test]
    fn a_table_without_lines_counts_samples() {
        let column = |name, values: &[f64]| Column::new(name, values.to_vec());
        let v = column("V", &[1.0, 2.0, 3.0]);
        let table = Table::new("a.mat", vec![column("I", &[1.0, f64::NAN, 2.0]), v.clone()]);
        let message = from(&table.unwrap(), &[], Some(1.0))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("a.mat: sample 2 of I: the input is missing"),
            "{message}"
        );
        let table = Table::new(
            "a.mat",
            vec![column("I", &[1.0, 2.0]), v, column("x", &[0.0])],
        );
        assert_eq!(
            from(&table.unwrap(), &[], Some(1.0))
                .unwrap_err()
                .to_string(),
            "a.mat: I has 2 values and V has 3; the signals of one record must have the same length"
        );
    }

    #[test]
    fn all_missing_columns_are_listed_with_what_may_be_meant() {
        assert_eq!(
            error("t,I_inj,voltage\n0,1,2\n", &[], None),
            "runs/a.csv has no column for input I (did you mean I_inj?), measurement V; it has: t, I_inj, voltage. Say which column is meant: --map I=I_inj --map V=<column>"
        );
    }

    #[test]
    fn a_mapping_must_fit_the_model_and_the_file() {
        let text = "t,I,V,gate\n0,1,2,3\n1,1,2,3\n";
        assert_eq!(
            error(text, &["h=gate"], None),
            "the mapping h=gate names nothing in the model (did you mean truth_h?); the model's names are: t, I, V, truth_V, truth_h"
        );
        assert_eq!(
            error(text, &["truth_h=gaet"], None),
            "the mapping truth_h=gaet names a column that runs/a.csv does not have (did you mean gate?); it has: t, I, V, gate"
        );
        assert_eq!(
            read(text, &["truth_h=gate"], None)
                .unwrap()
                .truth(0)
                .unwrap()[1],
            3.0
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_order_of_columns_does_not_matter(
            rows in prop::collection::vec((-1e3..1e3, -1e3..1e3, -1.0..1.0), 2..20),
            order in Just([0, 1, 2, 3, 4]).prop_shuffle(),
        ) {
            let values_of = |f: fn(&(f64, f64, f64)) -> f64| rows.iter().map(f).collect::<Vec<_>>();
            let columns = [
                Column::new("t", (0..rows.len()).map(|k| k as f64).collect()),
                Column::new("I", values_of(|r| r.0)),
                Column::new("V", values_of(|r| r.1)),
                Column::new("truth_V", values_of(|r| r.1)),
                Column::new("truth_h", values_of(|r| r.2)),
            ];
            let shuffled = order.map(|k| columns[k].clone()).to_vec();
            let [plain, shuffled] = [columns.to_vec(), shuffled]
                .map(|columns| from(&Table::new("a", columns).unwrap(), &[], None).unwrap());
            prop_assert_eq!(plain, shuffled);
        }
    }
}
