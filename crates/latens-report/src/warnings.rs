//! What to know before a result is believed, a line each: of a fit, of the records that it learns from, of an
//! estimate. [`Facts::doubts`] has those of a prediction.

use latens::estimate::{Estimated, Loosened};
use latens::fit::Fit;
use latens::fit::run::{Facts, Run};
use latens::solve::RESOLUTION;
use latens::{Model, Record};

use crate::text;

/// Innovations are as expected while their mean square is within this factor of the filter's.
const FAR: f64 = 4.0;

/// Of a finished fit; `records` are those of `facts`, `doubts` are those about the tests.
pub fn of_fit(fit: &Fit, facts: &Facts, records: &[&Record], doubts: Vec<String>) -> Vec<String> {
    let mut warnings = scores(&fit.model, facts, records);
    warnings.extend(doubts);
    warnings.extend(starts(facts));
    warnings.extend(members(fit));
    warnings
}

/// Of a run that predicts; `adapts` says whether some of its constants are estimated again before.
pub fn of_run(run: &Run, folder: &str, adapts: bool) -> Vec<String> {
    let mut warnings = vec![];
    if run.draws.is_empty() {
        warnings.push(format!(
            "{folder} holds no draws of θ (its solver makes none, a stream has gone on learning, or its Latens was older): bands count the start alone"
        ));
    }
    if !run.members.is_empty() && adapts {
        warnings.push(format!(
            "{folder} is an ensemble; its best member (seed {}) alone is adapted and predicts",
            run.facts.seed
        ));
    }
    warnings
}

/// Of the states estimated on a file; `asked` says whether somebody chose how much looser the process
/// noise is.
pub fn of_estimate(
    run: &Run,
    file: &str,
    estimated: &Estimated,
    (loosened, asked): (Loosened, bool),
) -> Vec<String> {
    let looser = (!asked && loosened.0 > 1.0).then(|| {
        format!(
            "{file} follows the learned equations less closely than they claim: process noise taken {} times as large as the fit left it",
            loosened.0
        )
    });
    let surprise = surprise(run, file, estimated.consistency);
    looser.into_iter().chain(surprise).collect()
}

/// A record whose step is not the one that the model states.
pub fn step(model: &Model, file: &str, record: &Record) -> Option<String> {
    let step = model.step?;
    ((record.step() - step).abs() > Record::STEP_TOLERANCE * step).then(|| {
        format!(
            "{file} has a step of {}, the model one of {}; the record's is used",
            text::number(record.step()),
            text::number(step)
        )
    })
}

/// Members that an ensemble was asked for and does not have.
fn members(fit: &Fit) -> Option<String> {
    let (asked, members) = (fit.settings.ensemble, fit.members.len().max(1));
    let why = match fit.stopped {
        true => "it was stopped before the others came to anything",
        false => "the other starts failed",
    };
    (members < asked).then(|| format!("the ensemble has {members} of {asked} members: {why}"))
}

/// Records that the fitted model cannot follow: worse than the mean of what was measured.
fn scores(model: &Model, facts: &Facts, records: &[&Record]) -> Vec<String> {
    let mut warnings = vec![];
    for (facts, record) in facts.records.iter().zip(records) {
        let lost: Vec<&str> = model
            .measurements
            .iter()
            .enumerate()
            .filter(|(j, channel)| match facts.rmse.get(&channel.name) {
                Some(Some(error)) => *error >= deviation(record, facts.scored, *j),
                diverged => diverged.is_some(),
            })
            .map(|(_, channel)| channel.name.as_str())
            .collect();
        if !lost.is_empty() {
            warnings.push(format!(
                "the free run over {}{} predicts {} no better than a constant would: do not trust this model, however good its smoothed states look",
                facts.file,
                match facts.role.as_str() {
                    "validate" => " (validation)",
                    "test" => " (test)",
                    _ => "",
                },
                text::list(&lost)
            ));
        }
    }
    warnings
}

/// No start worked, and the least bad is what there is.
fn starts(facts: &Facts) -> Option<String> {
    let kept = facts.attempts.iter().find(|a| a.kept)?;
    let why = kept.failure.as_ref()?;
    let tried = text::count(facts.attempts.len(), "start");
    Some(format!(
        "{tried} tried, none worked ({why}): the model or the data may be wrong; check units, signs and columns, or try --starts 8"
    ))
}

/// Standard deviation of a channel over the last samples.
fn deviation(record: &Record, samples: usize, channel: usize) -> f64 {
    let last = &record.outputs[(record.len() - samples) * record.d_y..];
    let values = || {
        let own = last.iter().skip(channel).step_by(record.d_y);
        own.filter(|v| !v.is_nan())
    };
    let count = values().count() as f64;
    let mean = values().sum::<f64>() / count;
    (values().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// Innovations that are not as large as the filter expects.
fn surprise(run: &Run, file: &str, consistency: f64) -> Option<String> {
    let sizes = run.facts.noise.measurement.iter();
    let resolved = sizes.zip(&run.facts.nominal.range);
    // below the resolution nobody knows the noise, and smaller surprises are none
    let noisy = resolved
        .into_iter()
        .any(|(r, range)| r.sqrt() > 1.001 * RESOLUTION * range);
    if consistency > FAR {
        Some(format!(
            "on {file} the measurements surprise the filter {} times as much as it expects: states and bands are not to be trusted",
            text::number(consistency.sqrt())
        ))
    } else if consistency < 1.0 / FAR && noisy {
        Some(format!(
            "on {file} the measurements surprise the filter only {} times as much as it expects: the bands are too wide",
            text::number(consistency.sqrt())
        ))
    } else {
        None
    }
}
