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
        let kinds = [("predicted", &self.states), ("std", &self.deviations)];
        append(&mut columns, states, &kinds);
        let channels = model.measurements.iter().map(|m| m.name.as_str());
        let (outputs, deviations) = (&self.outputs, &self.output_deviations);
        let kinds = [("output", outputs), ("output_std", deviations)];
        append(&mut columns, channels, &kinds);
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
        let kind = match mode {
            Mode::Filter => "filtered",
            Mode::Smoother => "smoothed",
        };
        let kinds = [(kind, &self.states), ("std", &self.deviations)];
        append(&mut columns, states, &kinds);
        Table::new(&record.name, columns)
    }
}

/// The record itself.
fn known(model: &Model, record: &Record) -> Result<Vec<Column>, RecordError> {
    let layout = Layout::of(model);
    let never = |name: &String| {
        let channel = layout.measurements.iter().position(|m| m == name);
        channel.is_some_and(|k| record.output_column(k).all(f64::is_nan))
    };
    let table = record.to_table(&layout)?;
    let columns = table.columns().iter().filter(|c| !never(&c.name));
    Ok(columns.cloned().collect())
}

/// Adds for each name, which is that of a column of the trajectories, a column of each kind:
/// `<name>.<kind>`.
pub fn append<'a>(
    columns: &mut Vec<Column>,
    names: impl Iterator<Item = &'a str>,
    kinds: &[(&str, &Trajectory)],
) {
    for (i, name) in names.enumerate() {
        for (kind, values) in kinds {
            let name = format!("{name}.{kind}");
            columns.push(Column::new(name, values.column(i).collect()));
        }
    }
}
