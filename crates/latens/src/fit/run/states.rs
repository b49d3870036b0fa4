//! `states.csv`: what a fit says about one record, sample by sample.
//!
//! | column | |
//! |---|---|
//! | `t`, inputs, measurements, `truth_<state>` | the record, under its own names: the file can be read as a record again |
//! | `<state>.smoothed` | estimate from the whole record |
//! | `<state>.std` | its standard deviation |
//! | `<state>.one_step` | prediction from the estimate one sample before |
//! | `<state>.free_run` | simulation from the estimated start, the inputs replayed; empty behind the point where it diverged |
//!
//! A name of a model has no dot, so none of these can be another's.

use crate::fit::Estimate;
use crate::model::Model;
use crate::record::{Column, Record, RecordError, Table};

pub fn table(model: &Model, record: &Record, estimate: &Estimate) -> Result<Table, RecordError> {
    let known = record.to_table(&model.layout())?;
    let mut columns = known.columns().to_vec();
    let n = model.states.len();
    for (i, state) in model.states.iter().enumerate() {
        for (what, values) in [
            ("smoothed", &estimate.smoothed.states),
            ("std", &estimate.smoothed.deviations),
            ("one_step", &estimate.one_step),
            ("free_run", &estimate.free_run),
        ] {
            let own = values.iter().skip(i).step_by(n).copied().collect();
            columns.push(Column::new(format!("{}.{what}", state.name), own));
        }
    }
    Table::new(&record.name, columns)
}
