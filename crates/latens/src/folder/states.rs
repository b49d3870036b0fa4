//! `states.csv`: what a fit says about one record, sample by sample.
//!
//! | column | |
//! |---|---|
//! | `t`, inputs, measurements, `truth_<state>` | the record, under its own names: the file can be read as a record again |
//! | `<state>.smoothed` | estimate from the whole record |
//! | `<state>.std` | its standard deviation |
//! | `<state>.one_step` | prediction from the estimate one sample before |
//! | `<state>.free_run` | simulation from the estimated start, the inputs replayed; empty after the point where it diverged |
//!
//! A name of a model has no dot, so none of these can be another's.

use std::path::Path;

use crate::Error;
use crate::fit::table::append;
use crate::fit::{Fit, Track};
use crate::look::sampling::check_duration;
use crate::model::Model;
use crate::numerics::Trajectory;
use crate::record::{Layout, Mapping, Record, RecordError, Table};

/// The columns of each state.
fn kinds(track: &Track) -> [(&'static str, &Trajectory); 4] {
    [
        ("smoothed", &track.smoothed),
        ("std", &track.deviations),
        ("one_step", &track.one_step),
        ("free_run", &track.free_run),
    ]
}

pub(crate) fn table(model: &Model, track: &Track) -> Result<Table, RecordError> {
    let known = track.record.to_table(&Layout::of(model))?;
    let mut columns = known.columns().to_vec();
    let states = model.states.iter().map(|s| s.name.as_str());
    append(&mut columns, states, &kinds(track));
    Table::new(&track.record.name, columns)
}

/// What the file of the record at a place says.
pub(super) fn track(fit: &Fit, place: usize, path: &Path, table: &Table) -> Result<Track, Error> {
    let layout = Layout {
        time_step: Some(fit.facts.sample_time),
        ..Layout::of(&fit.model)
    };
    let record = Record::from_table(table, &layout, &Mapping::default(), None)?;
    let samples = fit.facts.records[place].samples;
    if record.len() != samples {
        return Err(Error::Folder {
            path: path.into(),
            message: format!(
                "this file has {} samples, fit.json says {samples}; repeat the fit",
                record.len()
            ),
        });
    }
    let record = fit.numbered(&record, fit.facts.records[place].group.as_deref());
    check_duration(&fit.model, &record, fit.facts.sample_time)?;
    let n = fit.model.states.len();
    let values = |kind: &str| -> Result<Trajectory, Error> {
        let mut values = Trajectory::filled(f64::NAN, record.len(), n);
        for (i, state) in fit.model.states.iter().enumerate() {
            let name = format!("{}.{kind}", state.name);
            let column = table.find(&name).ok_or_else(|| Error::Folder {
                path: path.into(),
                message: format!("this file has no column `{name}`; repeat the fit"),
            })?;
            for (k, value) in table.values(column)?.iter().enumerate() {
                values.row_mut(k)[i] = *value;
            }
        }
        Ok(values)
    };
    Ok(Track {
        place,
        smoothed: values("smoothed")?,
        deviations: values("std")?,
        one_step: values("one_step")?,
        free_run: values("free_run")?,
        record,
    })
}

impl Fit {
    /// A record of the fit and beside it the states, as `states.csv` has them.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`] where a name of the model serves twice.
    pub fn states_table(&self, track: &Track) -> Result<Table, RecordError> {
        table(&self.model, track)
    }
}
