//! `foreseen.csv`: what a fit foresaw of a record that played no part, from the first sample that it
//! predicted on. Its columns are those of a prediction, see [`crate::fit::table`].

use std::path::Path;

use crate::Error;
use crate::fit::table::append;
use crate::fit::{Fit, Foreseen};
use crate::model::Model;
use crate::numerics::Trajectory;
use crate::record::{Column, RecordError, Table};

pub(super) fn table(model: &Model, test: &Foreseen) -> Result<Table, RecordError> {
    let mut columns = vec![Column::new("t", test.time.clone())];
    for (c, channel) in model.measurements.iter().enumerate() {
        columns.push(Column::new(
            &channel.name,
            test.measured.column(c).collect(),
        ));
    }
    let states = model.states.iter().map(|s| s.name.as_str());
    let kinds = [("predicted", &test.states), ("std", &test.deviations)];
    append(&mut columns, states, &kinds);
    let channels = model.measurements.iter().map(|m| m.name.as_str());
    let kinds = [
        ("output", &test.outputs),
        ("output_std", &test.output_deviations),
    ];
    append(&mut columns, channels, &kinds);
    Table::new("foreseen", columns)
}

pub(super) fn decode(
    fit: &Fit,
    place: usize,
    path: &Path,
    table: &Table,
) -> Result<Foreseen, Error> {
    let fail = |message: String| Error::Folder {
        path: path.into(),
        message: format!("{message}; repeat the fit"),
    };
    let column = |name: &str| {
        let column = table.find(name);
        let column = column.ok_or_else(|| fail(format!("this file has no column `{name}`")))?;
        Ok::<_, Error>(table.values(column)?)
    };
    let time = column("t")?.to_vec();
    let samples = fit.facts.records[place].samples;
    if time.is_empty() || time.len() > samples {
        return Err(fail(format!(
            "this file has {} samples, fit.json says at most {samples}",
            time.len()
        )));
    }
    if !time.is_sorted_by(|a, b| a < b && b.is_finite()) || !time[0].is_finite() {
        return Err(fail("the times of this file do not increase".into()));
    }
    let values = |names: &[&str], kind: &str| -> Result<Trajectory, Error> {
        let mut values = Trajectory::filled(f64::NAN, time.len(), names.len());
        for (i, name) in names.iter().enumerate() {
            for (k, value) in column(&format!("{name}{kind}"))?.iter().enumerate() {
                values.row_mut(k)[i] = *value;
            }
        }
        Ok(values)
    };
    let states: Vec<&str> = fit.model.states.iter().map(|s| s.name.as_str()).collect();
    let channels = fit.model.measurements.iter().map(|m| m.name.as_str());
    let channels: Vec<&str> = channels.collect();
    Ok(Foreseen {
        place,
        measured: values(&channels, "")?,
        states: values(&states, ".predicted")?,
        deviations: values(&states, ".std")?,
        outputs: values(&channels, ".output")?,
        output_deviations: values(&channels, ".output_std")?,
        time,
    })
}
