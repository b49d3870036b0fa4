//! Readings that a fitted model contradicts, and those of its records that a fit does without.
//!
//! Of a reading that was learned from, the residual e = y − h(x̂) is smaller than the error that it
//! has, because the states lean towards it: e/√(R − HPHᵀ) has variance one, and is as many standard
//! deviations as the others contradict the reading by. Of one that was set aside it is
//! e/√(R + HPHᵀ). Both are divided by their own median over the channel, so that a model that
//! follows nothing closely does not make everything suspect; and a residual that its neighbours
//! share is the model's, not the sensor's, as is one of a reading that its neighbours support.

use super::learn::Data;
use super::predict::{Predictor, START_STEPS, Start};
use super::{Fit, Prediction};
use crate::Error;
use crate::filter::{Mode, Smoother};
use crate::look::RESOLUTION;
use crate::look::prior::starting_at;
use crate::look::suspects::{
    self, Finding, REFUSED_PART, Residuals, Suspect, TooMany, isolated, without,
};
use crate::model::Model;
use crate::numerics::Trajectory;
use crate::numerics::objective::Noise;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::{Record, Source};
use crate::solve::{Learned, Problem};

/// A reading is set aside beyond so many standard deviations. Of 100,000 readings with Gaussian
/// noise one in 250 records has one.
const CONTRADICTED_DEVIATIONS: f64 = 5.5;
/// One that was set aside is taken back below so many, so that nothing goes to and fro.
const TAKEN_BACK_DEVIATIONS: f64 = 4.5;
/// Of a free run, whose own error is not known, a residual must stand out by so many.
const FREE_RUN_DEVIATIONS: f64 = 6.0;
/// Times that θ as it is judges the readings, each without those that were set aside before.
const MOST_JUDGEMENTS: usize = 5;
/// A reading has at least this part of its variance left after the states leaned towards it.
const LEFT_VARIANCE_PART: f64 = 0.05;

/// What is set aside of each record of a fit: those learned from, then those that validate.
#[derive(Debug, Clone, Default)]
pub(super) struct SetAside(Vec<Vec<Finding>>);

impl SetAside {
    /// What the records contradict by themselves.
    pub fn gross(data: Data) -> Self {
        Self(all(data).map(|s| suspects::gross(&s.record)).collect())
    }

    /// Nothing of these records.
    pub fn nothing(data: Data) -> Self {
        Self(all(data).map(|_| vec![]).collect())
    }

    /// What an earlier fit of the same records did without.
    pub fn as_before(fit: &Fit, data: Data) -> Self {
        let rows = first_rows(data);
        let findings = all(data).zip(rows).map(|(source, first_row)| {
            let names = || fit.model.measurements.iter();
            let suspects = fit.facts.suspects.iter().filter(|s| s.file == source.file);
            suspects
                .filter_map(|s| {
                    let sample = s.row.checked_sub(first_row)?;
                    (sample < source.record.len()).then_some(())?;
                    Some(Finding {
                        sample,
                        channel: names().position(|m| m.name == s.channel)?,
                        expected: s.expected,
                        deviations: s.deviations,
                    })
                })
                .collect()
        });
        Self(findings.collect())
    }

    /// The records without it: to learn from, and to validate with.
    pub fn taken_from(&self, data: Data) -> (Vec<Source>, Vec<Source>) {
        let mut used: Vec<Source> = all(data)
            .zip(&self.0)
            .map(|(source, findings)| Source {
                record: without(&source.record, findings),
                ..source.clone()
            })
            .collect();
        let validate = used.split_off(data.train.len());
        (used, validate)
    }

    /// Refuses records of which too little is left.
    ///
    /// # Errors
    /// [`Error::Setting`] with what to do.
    pub fn check(&self, model: &Model, data: Data) -> Result<(), Error> {
        for ((source, findings), first_row) in all(data).zip(&self.0).zip(first_rows(data)) {
            refuse(model, &source.record, &source.file, findings, first_row)?;
        }
        Ok(())
    }

    /// With their names.
    pub fn named(&self, model: &Model, data: Data) -> Vec<Suspect> {
        let records = all(data).zip(&self.0).zip(first_rows(data));
        records
            .flat_map(|((source, findings), first_row)| {
                let named =
                    move |f: &Finding| f.named(model, &source.record, &source.file, first_row);
                findings.iter().map(named)
            })
            .collect()
    }

    /// The same readings, whatever is expected of them.
    pub fn is_like(&self, other: &Self) -> bool {
        let places = |findings: &[Finding]| findings.iter().map(Finding::place).collect::<Vec<_>>();
        let mut pairs = self.0.iter().zip(&other.0);
        pairs.all(|(a, b)| places(a) == places(b))
    }

    /// What is to be set aside of the records by what was learned without these.
    pub fn judged(&self, problem: &Problem, data: Data, learned: &Learned) -> Self {
        let known = learned.smoothed.iter().map(|s| Some(&s.states));
        let known = known.chain(std::iter::repeat(None));
        let judge = Judge {
            stepper: problem.stepper,
            theta: &learned.theta,
            noise: &problem.open_start(&learned.noise),
            least: &least_deviations(&problem.scales.range, &problem.scales.noise),
        };
        let records = all(data).zip(&self.0).zip(known);
        Self(
            records
                .map(|((source, findings), states)| judge.judged(&source.record, findings, states))
                .collect(),
        )
    }

    /// The same readings, with what another set says of them.
    pub fn told_by(mut self, other: &Self) -> Self {
        for (findings, told) in self.0.iter_mut().zip(&other.0) {
            for finding in findings {
                if let Some(same) = told.iter().find(|f| f.place() == finding.place()) {
                    *finding = *same;
                }
            }
        }
        self
    }
}

fn all(data: Data<'_>) -> impl Iterator<Item = &Source> {
    data.train.iter().chain(data.validate)
}

/// The row of each record's first sample: a tail that validates goes on where its head ends.
fn first_rows(data: Data) -> Vec<usize> {
    let head = |tail: &Source| data.train.iter().find(|h| h.sha256 == tail.sha256);
    let tails = data.validate.iter();
    let tails = tails.map(|tail| head(tail).map_or(1, |h| 1 + h.record.len()));
    data.train.iter().map(|_| 1).chain(tails).collect()
}

/// Refuses a record of which too little is left.
///
/// # Errors
/// [`Error::Setting`] with what to do.
pub(crate) fn refuse(
    model: &Model,
    record: &Record,
    file: &str,
    findings: &[Finding],
    first_row: usize,
) -> Result<(), Error> {
    let Some(TooMany { channel, count }) = suspects::too_many(record, findings) else {
        return Ok(());
    };
    let of_channel = findings.iter().filter(|f| f.channel == channel);
    let rows: Vec<String> = of_channel
        .take(5)
        .map(|f| (first_row + f.sample).to_string())
        .collect();
    Err(Error::Setting(format!(
        "{count} readings of {} in {file} contradict the others (rows {}, …), more than a fifth: nobody can tell which of them are right; look at the sensor or at the column, leave these cells empty, or fit with ⟦keep_suspects⟧",
        model.measurements[channel].name,
        rows.join(", ")
    )))
}

/// Refuses a record that contradicts itself in too many readings.
///
/// # Errors
/// [`Error::Setting`] with what to do.
pub(crate) fn refuse_suspects(model: &Model, source: &Source) -> Result<(), Error> {
    let gross = suspects::gross(&source.record);
    refuse(model, &source.record, &source.file, &gross, 1)
}

/// No channel is known better than this: what the solver resolves, and half of the noise that
/// neighbouring readings show.
fn least_deviations(range: &[f64], noise: &[f64]) -> Vec<f64> {
    let channels = range.iter().zip(noise);
    channels
        .map(|(range, noise)| f64::max(RESOLUTION * range, 0.5 * noise))
        .collect()
}

/// A model that judges readings.
struct Judge<'a> {
    stepper: &'a Stepper<'a>,
    theta: &'a [f64],
    /// Under which a record is smoothed, its start open.
    noise: &'a Noise,
    /// The least standard deviation of each channel.
    least: &'a [f64],
}

/// A reading as a model sees it.
struct Seen {
    sample: usize,
    read: f64,
    expected: f64,
    /// Standard deviations from what is expected, as the filter counts them.
    deviations: f64,
    used: bool,
}

impl Judge<'_> {
    /// What is to be set aside of a record, `suspects` being what was until now; `states` are those
    /// that were smoothed without it.
    fn judged(
        &self,
        record: &Record,
        suspects: &[Finding],
        states: Option<&Trajectory>,
    ) -> Vec<Finding> {
        let mut suspects = suspects.to_vec();
        let mut states = states.cloned();
        for _ in 0..MOST_JUDGEMENTS {
            let used = without(record, &suspects);
            let Some(next) = self.once(record, &used, &mut states) else {
                break;
            };
            let places =
                |suspects: &[Finding]| suspects.iter().map(Finding::place).collect::<Vec<_>>();
            let same = places(&next) == places(&suspects);
            suspects = next;
            if same {
                break;
            }
        }
        suspects
    }

    /// The same by one smoothing of what is used; none where that leaves the finite numbers.
    fn once(
        &self,
        record: &Record,
        used: &Record,
        states: &mut Option<Trajectory>,
    ) -> Option<Vec<Finding>> {
        let noise = starting_at(self.stepper, used, self.noise);
        let smoother = Smoother {
            stepper: self.stepper,
            record: used,
            theta: self.theta,
            noise: &noise,
        };
        let start = states.take().unwrap_or_else(|| smoother.filtered());
        let (smoothed, _) = smoother.minimise(start, START_STEPS);
        let expected = score::outputs(self.stepper.system(), used, self.theta, &smoothed);
        let seen = smoother.bands(&smoothed, &[], Mode::Smoother).outputs;
        if !(expected.is_finite() && seen.is_finite()) {
            return None;
        }
        let (expected, seen) = (expected.as_slice(), seen.as_slice());
        let mut findings = vec![];
        for channel in 0..record.d_y {
            let measured = (0..record.len()).map(|sample| sample * record.d_y + channel);
            let measured = measured.filter(|&at| record.outputs[at].is_finite());
            let readings = measured.map(|at| {
                let (used, variance) = (used.outputs[at].is_finite(), noise.measurement[channel]);
                let variance = if used {
                    (variance - seen[at] * seen[at]).max(LEFT_VARIANCE_PART * variance)
                } else {
                    variance + seen[at] * seen[at]
                };
                Seen {
                    sample: at / record.d_y,
                    read: record.outputs[at],
                    expected: expected[at],
                    deviations: (record.outputs[at] - expected[at]) / variance.sqrt(),
                    used,
                }
            });
            let least = self.least[channel] / noise.measurement[channel].sqrt();
            let readings: Vec<Seen> = readings.collect();
            for Contradiction {
                reading,
                deviations,
            } in contradicted(record, &readings, least)
            {
                findings.push(Finding {
                    sample: reading.sample,
                    channel,
                    expected: reading.expected,
                    deviations,
                });
            }
        }
        findings.sort_by_key(Finding::place);
        *states = Some(smoothed);
        Some(findings)
    }
}

/// A reading so many standard deviations off, between two that are off by no more than so many, is
/// wrong by itself.
const LONE_DEVIATIONS: f64 = 12.0;
const BESIDE_DEVIATIONS: f64 = 4.0;

/// A reading that the model contradicts.
struct Contradiction<'r> {
    reading: &'r Seen,
    /// From what is expected.
    deviations: f64,
}

/// The readings of a channel that the model contradicts; a standard deviation is at least `least`.
fn contradicted<'r>(record: &Record, readings: &'r [Seen], least: f64) -> Vec<Contradiction<'r>> {
    let used: Vec<&Seen> = readings.iter().filter(|r| r.used).collect();
    let mut sizes: Vec<f64> = used.iter().map(|r| r.deviations.abs()).collect();
    if sizes.is_empty() {
        return vec![];
    }
    let middle = sizes.len() / 2;
    let median = *sizes.select_nth_unstable_by(middle, f64::total_cmp).1;
    // the median of |N(0, 1)| is 0.6745
    let unit = (median / 0.6745).max(least);
    let mut wrong: Vec<Contradiction> = readings
        .iter()
        .filter(|r| !r.used && r.deviations.abs() > TAKEN_BACK_DEVIATIONS * unit)
        .map(|r| Contradiction {
            reading: r,
            deviations: r.deviations.abs() / unit,
        })
        .collect();
    if used
        .iter()
        .any(|r| r.deviations.abs() > CONTRADICTED_DEVIATIONS * unit)
    {
        let residuals = Residuals {
            time: used.iter().map(|r| record.time[r.sample]).collect(),
            read: used.iter().map(|r| r.read).collect(),
            expected: used.iter().map(|r| r.expected).collect(),
            deviations: used.iter().map(|r| r.deviations / unit).collect(),
        };
        for k in isolated(&residuals, TAKEN_BACK_DEVIATIONS) {
            let size = residuals.deviations[k].abs();
            if size > CONTRADICTED_DEVIATIONS {
                wrong.push(Contradiction {
                    reading: used[k],
                    deviations: size,
                });
            }
        }
    }
    // where every few readings are wrong, these are usual, none stands out from the others, and the
    // noise that the record seems to have is theirs
    let unit = (median / 0.6745).max(1e-3 * least);
    let size = |k: usize| used[k].deviations.abs() / unit;
    let lone: Vec<usize> = (1..used.len().max(2) - 1)
        .filter(|&k| size(k) > LONE_DEVIATIONS && size(k - 1).max(size(k + 1)) < BESIDE_DEVIATIONS)
        .collect();
    if lone.len() as f64 > REFUSED_PART * used.len() as f64 {
        let contradictions = lone.into_iter().map(|k| Contradiction {
            reading: used[k],
            deviations: size(k),
        });
        wrong = contradictions.collect();
    }
    wrong
}

impl Predictor<'_> {
    fn judge<'b>(
        &'b self,
        stepper: &'b Stepper<'b>,
        noise: &'b Noise,
        least: &'b [f64],
    ) -> Judge<'b> {
        Judge {
            stepper,
            theta: self.theta,
            noise,
            least,
        }
    }

    /// What the model contradicts of a record, besides what was found.
    fn contradicts(&self, fit: &Fit, record: &Record, known: &[Finding]) -> Vec<Finding> {
        let stepper = Stepper::over(self.model, &self.model.system, self.dt, [record]);
        let used = without(record, known);
        let noise = self.loosened(&used).noise(&stepper, self.noise);
        let noise = self.open_start(&used, &noise);
        let scales = &fit.facts.scales;
        let least = least_deviations(&scales.range, &scales.noise);
        self.judge(&stepper, &noise, &least)
            .judged(record, known, None)
    }
}

impl Fit {
    /// What is set aside of a record whose states are estimated.
    pub(super) fn suspects_to_estimate(&self, record: &Record) -> Vec<Finding> {
        if self.facts.settings.keep_suspects {
            return vec![];
        }
        self.predictor()
            .contradicts(self, record, &suspects::gross(record))
    }

    /// What is set aside of a record before it is predicted: of the samples that show its start, what
    /// the model contradicts too.
    pub(crate) fn suspects_to_predict(&self, record: &Record, start: Start) -> Vec<Finding> {
        if self.facts.settings.keep_suspects {
            return vec![];
        }
        let findings = suspects::gross(record);
        let Start::WarmUp(samples) = start else {
            return findings;
        };
        let (warm_up, rest): (Vec<Finding>, Vec<Finding>) =
            findings.into_iter().partition(|f| f.sample < samples);
        let first = record.slice(0..samples.min(record.len()));
        let mut findings = self.predictor().contradicts(self, &first, &warm_up);
        findings.extend(rest);
        findings
    }

    /// What is not scored of a predicted record: besides what was found before, readings whose
    /// distance from the free run has nothing to do with that of their neighbours.
    pub(crate) fn suspects_of_prediction(
        &self,
        record: &Record,
        mut findings: Vec<Finding>,
        made: &Prediction,
    ) -> Vec<Finding> {
        if self.facts.settings.keep_suspects || !made.outputs.is_finite() {
            return findings;
        }
        let scales = &self.facts.scales;
        let least = least_deviations(&scales.range, &scales.noise);
        let expected = |k: usize, channel: usize| made.outputs.row(k - made.from)[channel];
        for finding in findings.iter_mut().filter(|f| f.sample >= made.from) {
            finding.expected = expected(finding.sample, finding.channel);
        }
        let used = without(record, &findings);
        for (channel, least) in least.into_iter().enumerate() {
            let taken = (made.from..record.len()).filter(|&k| used.output(k)[channel].is_finite());
            let taken: Vec<usize> = taken.collect();
            let unit = self.facts.noise.measurement[channel].sqrt().max(least);
            let apart = |&k: &usize| (used.output(k)[channel] - expected(k, channel)) / unit;
            let residuals = Residuals {
                time: taken.iter().map(|&k| record.time[k]).collect(),
                read: taken.iter().map(|&k| used.output(k)[channel]).collect(),
                expected: taken.iter().map(|&k| expected(k, channel)).collect(),
                deviations: taken.iter().map(apart).collect(),
            };
            for k in isolated(&residuals, FREE_RUN_DEVIATIONS) {
                findings.push(Finding {
                    sample: taken[k],
                    channel,
                    expected: residuals.expected[k],
                    deviations: residuals.deviations[k].abs(),
                });
            }
        }
        findings.sort_by_key(Finding::place);
        findings
    }
}
