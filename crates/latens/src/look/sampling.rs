//! Whether records can be learned from, and the step of a fit.

use crate::Error;
use crate::model::Model;
use crate::record::Record;
use crate::record::limits::{GAP, SPARSITY, SUBSTEPS};
use crate::text::number;

/// The sample time of records that a fit can use.
///
/// # Errors
/// [`Error::Setting`] where they do not fit the model, or are too short.
pub fn usable(model: &Model, train: &[Record], validate: &[Record]) -> Result<f64, Error> {
    let all: Vec<&Record> = train.iter().chain(validate).collect();
    check_records(model, &all)?;
    if train.is_empty() {
        return Err(Error::Setting("at least one record is needed".into()));
    }
    let dt = sample_time(&all)?;
    all.iter()
        .try_for_each(|record| check_duration(model, record, dt))?;
    Ok(dt)
}

/// Refuses a record whose equations would take forever to follow: a stray time stamp makes a gap of
/// any number of steps.
///
/// # Errors
/// [`Error::Setting`] with what to do.
pub fn check_duration(model: &Model, record: &Record, dt: f64) -> Result<(), Error> {
    let name = &record.name;
    let far = record.gaps().position(|gap| gap > GAP * dt);
    if let Some(k) = far {
        let [after, before, times, dt] =
            [record.time[k + 1], record.time[k], record.gap(k) / dt, dt].map(number);
        return Err(Error::Setting(format!(
            "{name}: time {after} follows {before}, {times} sample times of {dt}, and the longest gap is {GAP}; correct the time, or cut the record there into two"
        )));
    }
    let duration: f64 = record.gaps().map(|gap| gap / dt).sum();
    let longest = GAP.max(SPARSITY * record.len() as f64);
    let substeps = duration * model.substeps as f64;
    if duration > longest || substeps > SUBSTEPS {
        let [duration, dt, substeps] = [duration, dt, substeps].map(number);
        return Err(Error::Setting(format!(
            "{name} lasts {duration} sample times of {dt} and {substeps} sub-steps, of at most {longest} and {SUBSTEPS:e}; cut it into several records"
        )));
    }
    Ok(())
}

/// Records that do not fit the model.
fn check_records(model: &Model, records: &[&Record]) -> Result<(), Error> {
    let (d_u, d_y) = (model.system.inputs(), model.measurements.len());
    for record in records {
        let sizes = record.inputs.len() == record.len() * d_u
            && record.outputs.len() == record.len() * d_y
            && (record.d_u, record.d_y) == (d_u, d_y);
        if !sizes || record.inputs.iter().any(|u| !u.is_finite()) {
            return Err(Error::Setting(format!(
                "{} does not hold {d_u} input(s) and {d_y} measurement(s) for each of its {} samples",
                record.name,
                record.len()
            )));
        }
    }
    Ok(())
}

/// The sample time of a fit: the shortest of the records' own. The gaps of the others take several
/// steps of it.
fn sample_time(records: &[&Record]) -> Result<f64, Error> {
    let mut dt = f64::INFINITY;
    for record in records {
        if record.len() < 3 {
            return Err(Error::Setting(format!(
                "{} has {} sample(s); a fit needs more",
                record.name,
                record.len()
            )));
        }
        // of those that are the same but for rounding, the first
        let step = record.step();
        if dt.is_infinite() || step < dt * (1.0 - Record::STEP_TOLERANCE) {
            dt = step;
        }
    }
    Ok(dt)
}
