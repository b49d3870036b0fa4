//! Estimates and predictions as tables, for files.
//!
//! | column | |
//! |---|---|
//! | `t`, inputs, measurements, `truth_<state>` | the record, under its own names; a channel that was never measured has no column |
//! | `<state>.filtered`, `.smoothed` or `.predicted` | the state |
//! | `<state>.std` | its standard deviation |
//! | `<channel>.output`, `<channel>.output_std` | of a prediction: the channel, without the sensor's noise |

use super::predict::{Estimated, Prediction};
use crate::filter::bands::Mode;
use crate::model::Model;
use crate::numerics::Trajectory;
use crate::record::{Column, Layout, Record, RecordError, Table};

impl Prediction {
    /// The samples that are predicted.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`] where a name serves as both input and measurement.
    pub fn table(&self, model: &Model, record: &Record) -> Result<Table, RecordError> {
        let rest = record.slice(self.from..record.len());
        let mut columns = known(model, &rest)?;
        let states = model.states.iter().map(|s| s.name.as_str());
        append(
            &mut columns,
            states,
            "predicted",
            &self.states,
            "std",
            &self.deviations,
        );
        let channels = model.measurements.iter().map(|m| m.name.as_str());
        let deviations = &self.output_deviations;
        append(
            &mut columns,
            channels,
            "output",
            &self.outputs,
            "output_std",
            deviations,
        );
        Table::new(&record.name, columns)
    }
}

impl Estimated {
    /// All samples.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`] where a name serves as both input and measurement.
    pub fn table(&self, model: &Model, record: &Record, mode: Mode) -> Result<Table, RecordError> {
        let mut columns = known(model, record)?;
        let states = model.states.iter().map(|s| s.name.as_str());
        let what = match mode {
            Mode::Filter => "filtered",
            Mode::Smoother => "smoothed",
        };
        append(
            &mut columns,
            states,
            what,
            &self.states,
            "std",
            &self.deviations,
        );
        Table::new(&record.name, columns)
    }
}

/// The record itself.
fn known(model: &Model, record: &Record) -> Result<Vec<Column>, RecordError> {
    let layout = Layout::of(model);
    let never = |name: &String| {
        let channel = layout.measurements.iter().position(|m| m == name);
        channel.is_some_and(|k| {
            record.output_column(k).all(f64::is_nan)
        })
    };
    let table = record.to_table(&layout)?;
    let columns = table.columns().iter().filter(|c| !never(&c.name));
    Ok(columns.cloned().collect())
}

/// Two columns for each name.
fn append<'a>(
    columns: &mut Vec<Column>,
    names: impl Iterator<Item = &'a str>,
    value: &str,
    values: &Trajectory,
    deviation: &str,
    deviations: &Trajectory,
) {
    for (i, name) in names.enumerate() {
        for (what, all) in [(value, values), (deviation, deviations)] {
            let column = all.column(i).collect();
            columns.push(Column::new(format!("{name}.{what}"), column));
        }
    }
}
