//! Records: what was measured, brought to the terms of a model.
//!
//! A file is read into a [`Table`] of named columns, whatever its kind. A model states in a
//! [`Layout`] which names it needs, a [`Mapping`] says which columns they have in this file, and
//! [`Record::from_table`] puts the two together and checks what a solver takes for granted:
//! times that increase, inputs that are always known, measurements that exist.

mod atomic;
mod csv;
mod error;
mod instant;
mod layout;
pub mod limits;
pub mod lines;
mod mapping;
mod mat;
mod parquet;
mod sampling;
mod source;
mod table;

use crate::model::Point;

pub use atomic::write_atomic;
pub(crate) use atomic::{Others, locked, sync_folder_of, write_unsynced};
pub use csv::{write as write_csv_to, write_csv, write_number};
pub use error::{Cell, Missing, Place, RecordError};
pub use instant::instants;
pub use layout::{Columns, Layout};
pub use mapping::Mapping;
pub use source::{Source, sha256, table_sha256};
pub use table::{Column, STANDARD_INPUT, Table};

/// One experiment on the model's terms.
///
/// The matrices are row-major with one row per sample, so that a step of a filter reads
/// neighbouring memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What to call it: the name of the file without folder and extension.
    pub name: String,
    /// Time of each sample, strictly increasing.
    pub time: Vec<f64>,
    /// Inputs, N × d_u, always known.
    pub inputs: Vec<f64>,
    /// Measurements, N × d_y, NaN where none was taken.
    pub outputs: Vec<f64>,
    /// True states, N × d_x, NaN where unknown; for scoring, never for learning.
    pub truth: Option<Vec<f64>>,
    /// Number of inputs.
    pub d_u: usize,
    /// Number of measurements.
    pub d_y: usize,
    /// Number of states.
    pub d_x: usize,
    /// Whether it is a later part of a record: it does not begin where records begin.
    pub later: bool,
}

impl Record {
    /// How far a gap may be from the step, as a part of the step: clocks jitter and files round.
    pub const STEP_TOLERANCE: f64 = 1e-3;

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Sample `k` as a point at which a model is evaluated.
    pub fn point<'a>(&'a self, k: usize, state: &'a [f64], theta: &'a [f64]) -> Point<'a> {
        Point {
            time: self.time[k],
            state,
            // to the end: a first-order hold looks at the next sample
            input: &self.inputs[k * self.d_u..],
            theta,
        }
    }

    /// Inputs at sample `k`.
    pub fn input(&self, k: usize) -> &[f64] {
        &self.inputs[k * self.d_u..(k + 1) * self.d_u]
    }

    /// Measurements at sample `k`, NaN where none was taken.
    pub fn output(&self, k: usize) -> &[f64] {
        &self.outputs[k * self.d_y..(k + 1) * self.d_y]
    }

    /// True states at sample `k`, NaN where unknown.
    pub fn truth(&self, k: usize) -> Option<&[f64]> {
        let truth = self.truth.as_ref()?;
        Some(&truth[k * self.d_x..(k + 1) * self.d_x])
    }

    /// Input `k`, sample by sample.
    pub fn input_column(&self, k: usize) -> impl Iterator<Item = f64> + '_ {
        self.inputs.iter().skip(k).step_by(self.d_u.max(1)).copied()
    }

    /// Channel `k`, sample by sample.
    pub fn output_column(&self, k: usize) -> impl Iterator<Item = f64> + '_ {
        self.outputs
            .iter()
            .skip(k)
            .step_by(self.d_y.max(1))
            .copied()
    }

    /// The truth of state `k`, sample by sample.
    pub fn truth_column(&self, k: usize) -> Option<impl Iterator<Item = f64> + '_> {
        let truth = self.truth.as_ref()?;
        Some(truth.iter().skip(k).step_by(self.d_x.max(1)).copied())
    }

    /// Some of its samples, as a record.
    pub fn slice(&self, samples: std::ops::Range<usize>) -> Self {
        let cut = |values: &[f64], width: usize| {
            values[samples.start * width..samples.end * width].to_vec()
        };
        Self {
            name: self.name.clone(),
            time: cut(&self.time, 1),
            inputs: cut(&self.inputs, self.d_u),
            outputs: cut(&self.outputs, self.d_y),
            truth: self.truth.as_ref().map(|truth| cut(truth, self.d_x)),
            later: self.later || samples.start > 0,
            ..*self
        }
    }

    /// The record without its last part, and that part by itself.
    pub fn cut(&self, part: f64) -> (Self, Self) {
        let at = self.len() - (part * self.len() as f64).round() as usize;
        (self.slice(0..at), self.slice(at..self.len()))
    }

    /// The record with so many inputs and states: the first ones, and of further inputs that value, of
    /// further states no truth.
    pub(crate) fn sized(&self, d_u: usize, value: f64, d_x: usize) -> Self {
        let resized = |values: &[f64], from: usize, to: usize, new: f64| -> Vec<f64> {
            let rows = (0..self.len()).map(|k| &values[k * from..(k + 1) * from]);
            let rows = rows.map(|row| row.iter().copied().chain(std::iter::repeat(new)).take(to));
            rows.flatten().collect()
        };
        let truth = self.truth.as_ref();
        Self {
            name: self.name.clone(),
            time: self.time.clone(),
            inputs: resized(&self.inputs, self.d_u, d_u, value),
            outputs: self.outputs.clone(),
            truth: truth.map(|truth| resized(truth, self.d_x, d_x, f64::NAN)),
            d_u,
            d_x,
            ..*self
        }
    }

    /// Time from sample `k` to the next.
    pub fn gap(&self, k: usize) -> f64 {
        self.time[k + 1] - self.time[k]
    }

    /// Times between neighbouring samples.
    pub fn gaps(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.time.windows(2).map(|t| t[1] - t[0])
    }

    /// The time between samples, as far as there is one; NaN for fewer than two samples.
    ///
    /// Where every gap is a whole number of steps (samples may be lost), the duration over their
    /// number, in which the jitter of single stamps cancels; else the median gap. A step is what
    /// a tenth of the gaps do not exceed: with many samples lost the median is two steps, and a
    /// single gap, the shortest of all, may be an accident of the clock.
    pub fn step(&self) -> f64 {
        let (Some(short), Some(median)) = (self.quantile(0.1), self.quantile(0.5)) else {
            return f64::NAN;
        };
        let duration = self.time[self.len() - 1] - self.time[0];
        let steps = self.steps(median).or_else(|| self.steps(short));
        steps.map_or(median, |steps| duration / steps)
    }

    /// Whether every gap is the step, within [`Self::STEP_TOLERANCE`].
    pub fn is_uniform(&self) -> bool {
        let gaps = self.len().saturating_sub(1) as f64;
        let regular = |median| self.steps(median) == Some(gaps);
        self.quantile(0.5).is_none_or(regular)
    }

    /// The gap that a part of all gaps do not exceed.
    fn quantile(&self, part: f64) -> Option<f64> {
        let mut gaps: Vec<f64> = self.gaps().collect();
        let at = (part * gaps.len() as f64) as usize;
        (at < gaps.len()).then(|| *gaps.select_nth_unstable_by(at, f64::total_cmp).1)
    }

    /// The number of steps of this length in the record, where every gap is a whole number.
    fn steps(&self, step: f64) -> Option<f64> {
        let mut sum = 0.0;
        for gap in self.gaps() {
            let steps = (gap / step).round();
            if steps < 1.0 || (gap - steps * step).abs() > Self::STEP_TOLERANCE * step {
                return None;
            }
            sum += steps;
        }
        Some(sum)
    }

    /// The record as a table that [`Record::from_table`] reads back without a mapping: `t`, the
    /// inputs, the measurements, and `truth_<state>` for every state where the truth is known.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`] where a name serves as both input and measurement.
    ///
    /// # Panics
    /// If the layout has other dimensions than the record.
    pub fn to_table(&self, layout: &Layout) -> Result<Table, RecordError> {
        assert_eq!(
            [self.d_y, self.d_x],
            [&layout.measurements, &layout.states].map(Vec::len)
        );
        // one to learn from may have the number of its group after them
        assert!(self.d_u == layout.inputs.len() || self.d_u == layout.inputs.len() + 1);
        let mut columns = vec![Column::new("t", self.time.clone())];
        for (k, name) in layout.inputs.iter().enumerate() {
            columns.push(Column::new(name, self.input_column(k).collect()));
        }
        for (k, name) in layout.measurements.iter().enumerate() {
            columns.push(Column::new(name, self.output_column(k).collect()));
        }
        for (k, name) in layout.states.iter().enumerate() {
            let values: Vec<f64> = self.truth_column(k).into_iter().flatten().collect();
            if values.iter().any(|v| !v.is_nan()) {
                columns.push(Column::new(format!("truth_{name}"), values));
            }
        }
        Table::new(&self.name, columns)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::path::{Path, PathBuf};

    /// A file of `shared/datasets` beside the project, or of `LATENS_DATASETS`.
    pub fn dataset(name: &str) -> PathBuf {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = here.ancestors().map(|a| a.join("shared/datasets"));
        let folder = std::env::var_os("LATENS_DATASETS").map(PathBuf::from);
        let path = folder.into_iter().chain(folders).map(|f| f.join(name));
        let mut files = path.into_iter().filter(|p| p.is_file());
        let missing = || panic!("no data set {name}; set LATENS_DATASETS to its folder");
        files.next().unwrap_or_else(missing)
    }

    pub fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{dataset, names};
    use super::*;

    fn times(time: &[f64]) -> Record {
        Record {
            name: "r".into(),
            time: time.to_vec(),
            inputs: vec![],
            outputs: vec![],
            truth: None,
            d_u: 0,
            d_y: 0,
            d_x: 0,
            later: false,
        }
    }

    #[test]
    fn lost_samples_leave_the_step_as_it_was() {
        let whole: Vec<f64> = (0..100).map(|k| 0.01 * f64::from(k)).collect();
        let step = times(&whole).step();
        assert!(times(&whole).is_uniform());
        assert!((step - 0.01).abs() < 1e-15);
        // of 7 samples 6, 3 and 2 are left: half of the last one's gaps are longer than two steps
        for left in [&[0, 1, 2, 3, 4, 5][..], &[0, 1, 4], &[0, 1]] {
            let kept = (0..100).filter(|k| left.contains(&(k % 7)));
            let record = times(&kept.map(|k| whole[k]).collect::<Vec<_>>());
            assert!(!record.is_uniform());
            assert!((record.step() - step).abs() < 1e-15, "{left:?}");
        }
        // one gap that has nothing to do with the others; a clock that never was regular
        let mut odd = whole.clone();
        odd[50..].iter_mut().for_each(|t| *t += 0.0037);
        assert!((times(&odd).step() - 0.01).abs() < 1e-12);
        let rough = [0.0, 0.9, 2.0, 3.05, 3.95, 5.0, 6.1];
        assert!((times(&rough).step() - 1.05).abs() < 1e-12);
        assert_eq!(times(&rough).gap(1), 1.1);
    }

    #[test]
    fn jitter_within_the_tolerance_is_uniform() {
        let jitter = |part: f64| {
            let t = (0..100).map(|k| f64::from(k) + if k % 7 == 3 { part } else { 0.0 });
            times(&t.collect::<Vec<_>>())
        };
        assert!(jitter(0.9e-3).is_uniform());
        assert!(!jitter(1.1e-3).is_uniform());
        assert!(times(&[1.0]).is_uniform() && times(&[1.0]).step().is_nan());
    }

    /// The size of the Hodgkin–Huxley record, with a measurement at every tenth sample.
    #[test]
    fn a_record_survives_the_way_through_a_file() {
        let n = 20_000;
        let time: Vec<f64> = (0..n).map(|k| f64::from(k) * 0.01).collect();
        let voltage = |t: &f64| -65.0 + 40.0 * (0.3 * t).sin();
        let outputs = time.iter().enumerate().map(|(k, t)| match k % 10 {
            0 => voltage(t),
            _ => f64::NAN,
        });
        let record = Record {
            name: "neuron".into(),
            inputs: time.iter().map(|t| 10.0 * t.cos()).collect(),
            outputs: outputs.collect(),
            // n, m and h are known, V is not.
            truth: Some(
                time.iter()
                    .flat_map(|t| [f64::NAN, t.sin(), t.cos(), t.tanh()])
                    .collect(),
            ),
            time,
            d_u: 1,
            d_y: 1,
            d_x: 4,
            later: false,
        };
        let (inputs, measurements, states) = (names("I"), names("V"), names("V n m h"));
        let layout = Layout {
            inputs,
            measurements,
            states,
            time_step: Some(0.01),
            ..Layout::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("neuron.csv");
        let table = record.to_table(&layout).unwrap();
        assert_eq!(
            table.names().collect::<Vec<_>>().join(" "),
            "t I V truth_n truth_m truth_h"
        );
        write_csv(&path, &table).unwrap();
        let table = Table::read(&path).unwrap();
        let back = Record::from_table(&table, &layout, &Mapping::default(), None).unwrap();
        let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(back.name, "neuron");
        assert_eq!(bits(&back.time), bits(&record.time));
        assert_eq!(bits(&back.inputs), bits(&record.inputs));
        assert_eq!(bits(&back.outputs), bits(&record.outputs));
        assert_eq!(bits(&back.truth.unwrap()), bits(&record.truth.unwrap()));
    }

    #[test]
    #[ignore = "needs the data sets"]
    fn the_positioning_system_is_read_with_a_mapping() {
        let path = dataset("emps/emps_train.csv");
        let (inputs, measurements, states) = (names("u"), names("q"), names("q v"));
        let layout = Layout {
            inputs,
            measurements,
            states,
            ..Layout::default()
        };
        let mapping = Mapping::parse(["u=u_vir_V", "q=y_qm_m", "truth_v=v_bw100_mps"]).unwrap();
        let table = Table::read(path).unwrap();
        let record = Record::from_table(&table, &layout, &mapping, None).unwrap();
        assert_eq!((record.name.as_str(), record.len()), ("emps_train", 24_841));
        assert!((record.step() - 1e-3).abs() < 1e-12);
        assert_eq!(record.input(1), [2.62483504388]);
        assert_eq!(record.output(1), [1.43e-05]);
        let truth = record.truth(1).unwrap();
        assert!(truth[0].is_nan());
        assert_eq!(truth[1], 0.0075422855337);
    }
}
