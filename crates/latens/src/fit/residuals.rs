//! What is left of the records when the model has said all it can: noise, an error of the model, or a
//! fault of a sensor.
//!
//! The residuals of the free run over each training record are tested channel by channel. Where they
//! are correlated ([`whiteness`]) the model is wrong, and what would explain them is looked for
//! ([`explain`](super::explain)). A finding is made only of what matters: a misfit below 0.3 % of the range
//! is none, however far from white; neither is a correlated part that is small beside the noise, because
//! no solver takes a fit to its last digit.

use super::explain::{Candidate, Explained, Explanation, FreeRun};
use super::{Fit, Track, between, innovations, late};
use crate::look::finding::Push;
use crate::look::{Companion, Finding, RESOLUTION, blind, sensors};
use crate::model::Model;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::numerics::whiteness::{self, Colour};

/// A correlated misfit matters where the whole of it is this part of the range.
pub(super) const MATERIAL_RANGE_PART: f64 = 3e-3;
/// A candidate explains a misfit where it has at least this part of the correlated one; a fault of a
/// sensor is named before a signal that explains hardly more.
const EXPLAINED_MISFIT_PART: f64 = 0.5;
const PREFERRED_EXPLAINED_PART: f64 = 0.9;
/// A fit whose own equations come to less than this part of its misfit is not at its end.
const FAR_FROM_BEST_RATIO: f64 = 0.7;
/// Readings farther out than this many deviations, and how many of them are heavy tails.
const FAR_OUT_DEVIATIONS: f64 = 5.0;
const HEAVY_READINGS: usize = 3;
/// Innovations are as expected while their mean square is within this factor of the filter's.
const SURPRISE_FACTOR: f64 = 4.0;

/// What the residuals of a fit, and the sensors of its records, show to be wrong.
pub(super) fn findings(fit: &Fit) -> Vec<Finding> {
    let records = fit.tracks.iter().map(|t| &t.record);
    let stepper = &Stepper::over(
        &fit.model,
        &fit.model.system,
        fit.facts.sample_time,
        records,
    );
    let trained = fit.trained();
    let records: Vec<_> = trained.iter().map(|t| t.record.clone()).collect();
    let mut findings = sensors::findings(&fit.model, &records);
    findings.retain(|finding| !is_at_rest(fit, stepper, &trained, finding));
    let faulty = findings.clone();
    for track in trained {
        let told = of_track(fit, stepper, track, &faulty);
        // over gaps in which nobody knows the inputs a misfit says nothing of the equations
        let mut blind = blind::findings(&fit.model, std::slice::from_ref(&track.record)).pop();
        let (misfits, told): (Vec<_>, Vec<_>) =
            (told.into_iter()).partition(|f| blind.is_some() && f.contradicts());
        if let Some(Finding::UnknownInputs { contradicts, .. }) = &mut blind {
            *contradicts = fit.facts.contradicted || !misfits.is_empty();
        }
        findings.extend(blind);
        findings.extend(told);
    }
    findings.extend(between::findings(fit));
    findings.extend(fit.facts.disturbed.and_then(|gain| disturbed(fit, gain)));
    findings
}

/// Whether a channel that stands at an end of its range does so where the model does: an overflow that is dry, a valve that
/// is shut. Equations that are known but for constants do not imitate a sensor that is at its end; networks may.
fn is_at_rest(fit: &Fit, stepper: &Stepper, trained: &[&Track], finding: &Finding) -> bool {
    const MOST_READINGS_PART: f64 = 0.95;
    let Finding::Saturated { channel, value, .. } = finding else {
        return false;
    };
    let mut channels = fit.model.measurements.iter();
    let Some(c) = channels.position(|m| m.name == *channel) else {
        return false;
    };
    // within the noise is not enough: constants give way to readings that a sensor cuts off
    let resolution = RESOLUTION * fit.facts.scales.range[c];
    let (mut standing, mut there) = (0usize, 0usize);
    for track in trained {
        let (record, run) = (&track.record, &track.free_run);
        let outputs = score::outputs(stepper.system(), record, &fit.theta, run);
        for (read, output) in record.output_column(c).zip(outputs.column(c)) {
            if read == *value {
                standing += 1;
                there += usize::from((output - value).abs() <= resolution);
            }
        }
    }
    let known = fit.model.system.networks().is_empty();
    known && there as f64 >= MOST_READINGS_PART * standing as f64
}

/// How far the states are pushed about: those whose equations are learned, and where all are known those that are moved
/// by it at all; nothing where none is.
fn disturbed(fit: &Fit, gain: f64) -> Option<Finding> {
    let (model, facts) = (&fit.model, &fit.facts);
    let learned = model.system.unknown_rows();
    let longest = facts.records.iter().map(|r| r.samples).max();
    let is_pushed = |i: &usize| {
        let far = facts.noise.process[*i].sqrt() * (longest.unwrap_or(1) as f64).sqrt();
        let varies = model.varying().any(|(_, varying)| varying == *i);
        let asked = learned.contains(i) || learned.is_empty();
        asked && !varies && far > RESOLUTION * facts.scales.scale[*i]
    };
    let pushed = (0..model.states.len()).filter(is_pushed);
    let states = pushed.map(|i| Push {
        state: model.states[i].name.clone(),
        unit: model.states[i].unit.clone(),
        deviation: facts.noise.process[i].sqrt(),
    });
    let states: Vec<Push> = states.collect();
    (!states.is_empty()).then_some(Finding::Disturbed { states, gain })
}

/// Of a record; channels with a faulty sensor are left out.
fn of_track(fit: &Fit, stepper: &Stepper, track: &Track, faulty: &[Finding]) -> Vec<Finding> {
    let run = FreeRun {
        model: &fit.model,
        stepper,
        record: &track.record,
        theta: fit.theta.clone(),
        // of states that are pushed about a free run says nothing
        states: if fit.facts.disturbed.is_some() {
            track.smoothed.clone()
        } else {
            track.free_run.clone()
        },
    };
    let outputs = run.outputs();
    let record = &track.record;
    let file = &fit.facts_of(track).file;
    let surprises = innovations::normalised(fit, track);
    let mut findings = vec![];
    for (c, channel) in fit.model.measurements.iter().enumerate() {
        let predicted = outputs.column(c);
        let measured = record.outputs.iter().skip(c).step_by(record.d_y);
        let pairs = measured.zip(predicted).filter(|(y, _)| y.is_finite());
        let residuals: Vec<f64> = pairs.map(|(y, p)| y - p).collect();
        let residuals = Residuals {
            fit,
            file,
            place: c,
            time: record.time[record.len() - 1] - record.time[0],
            taken: residuals.len(),
            values: residuals,
        };
        // what a faulty sensor leaves says nothing of the model
        if faulty.iter().any(|f| f.channel() == channel.name) {
            continue;
        }
        match residuals.correlated() {
            Some(colour) => {
                let explained = run.explain(c, 4 * colour.samples);
                findings.extend(residuals.of_model(colour, explained.as_ref(), track));
            }
            None => findings.extend(residuals.heavy_tails()),
        }
        let innovations = surprises.as_ref().map_or(&[][..], |all| &all[c]);
        findings.extend(surprise(fit, file, c, innovations));
    }
    findings
}

/// The residuals of a channel over a record.
struct Residuals<'a> {
    fit: &'a Fit,
    file: &'a str,
    place: usize,
    /// How long the record is.
    time: f64,
    taken: usize,
    values: Vec<f64>,
}

impl Residuals<'_> {
    fn range(&self) -> f64 {
        self.fit.facts.scales.range[self.place]
    }

    fn rms(&self) -> f64 {
        let square: f64 = self.values.iter().map(|r| r * r).sum();
        (square / self.values.len() as f64).sqrt()
    }

    /// How they are correlated, where that is more than chance and matters.
    fn correlated(&self) -> Option<Colour> {
        let colour = whiteness::colour(&self.values)?;
        let material = self.rms() > MATERIAL_RANGE_PART * self.range();
        (colour.is_clear() && material).then_some(colour)
    }

    /// What correlated residuals say; nothing where a small change of θ makes them white, because then
    /// the equations are right and the fit is only not at its last digit.
    fn of_model(
        &self,
        colour: Colour,
        explained: Option<&Explained>,
        track: &Track,
    ) -> Option<Finding> {
        let model = &self.fit.model;
        let channel = &model.measurements[self.place];
        let (rms, noise) = (self.rms(), whiteness::rough_deviation(&self.values));
        let reachable = explained.map(|e| e.reachable);
        let reachable = reachable.filter(|least| *least < FAR_FROM_BEST_RATIO * rms);
        // beyond a bound that holds a constant the equations may well come to less
        let held = self.fit.facts.unknowns.iter().any(|c| c.bound.is_some());
        let reachable = reachable.filter(|_| !held);
        if let Some(explained) = explained {
            let after = Self {
                values: explained.left.clone(),
                ..*self
            };
            if after.correlated().is_none() && reachable.is_none() {
                return None;
            }
        }
        // constants of pieces are not meant to follow the whole record best
        let reachable = reachable.filter(|_| !self.fit.facts.in_pieces);
        let (file, name) = (self.file.to_string(), channel.name.clone());
        if let Some(late) = late::input(model, track) {
            return Some(Finding::Lags {
                file,
                channel: name,
                input: Some(late.input),
                lag: late.lag,
                unit: model.time_unit.clone(),
                explained: late.explained,
            });
        }
        let best = explained.map_or(&[][..], |e| &e.best[..]);
        let most = best.first().map_or(0.0, |e| e.explained);
        let explains = |e: &&Explanation| e.explained >= EXPLAINED_MISFIT_PART * colour.shared;
        let preferred = |e: &&Explanation| match e.candidate {
            Candidate::Lag => e.factor > 0.0 && e.explained >= PREFERRED_EXPLAINED_PART * most,
            Candidate::Time => e.explained >= PREFERRED_EXPLAINED_PART * most,
            Candidate::Signal(..) => false,
        };
        if let Some(sensor) = best.iter().filter(explains).find(preferred) {
            return Some(if sensor.candidate == Candidate::Lag {
                Finding::Lags {
                    file,
                    channel: name,
                    input: None,
                    lag: sensor.factor,
                    unit: model.time_unit.clone(),
                    explained: sensor.explained,
                }
            } else {
                Finding::Drifts {
                    file,
                    channel: name,
                    unit: channel.unit.clone(),
                    drift: sensor.factor,
                    of_noise: sensor.factor.abs() / noise.max(RESOLUTION * self.range()),
                    explained: sensor.explained,
                }
            });
        }
        let with = best
            .iter()
            .filter(explains)
            .find_map(|e| match &e.candidate {
                Candidate::Signal(signal, samples) => Some(Companion {
                    signal: signal.clone(),
                    samples: *samples,
                    explained: (e.explained / colour.shared).min(1.0),
                }),
                _ => None,
            });
        Some(Finding::Correlated {
            file,
            channel: name,
            unit: channel.unit.clone(),
            samples: colour.samples,
            time: self.time * colour.samples as f64 / self.taken as f64,
            time_unit: model.time_unit.clone(),
            misfit: rms,
            of_range: rms / self.range(),
            model_error: (colour.shared.sqrt() * rms)
                .max((rms * rms - noise * noise).max(0.0).sqrt()),
            noise,
            with,
            reachable,
            widening: self.fit.facts.widening(),
        })
    }

    /// White residuals of which some are far out.
    fn heavy_tails(&self) -> Option<Finding> {
        let sizes: Vec<f64> = self.values.iter().map(|r| r.abs()).collect();
        let typical = whiteness::median(sizes)? / whiteness::NORMAL_MEDIAN;
        let far = self
            .values
            .iter()
            .filter(|r| r.abs() > FAR_OUT_DEVIATIONS * typical);
        let readings = far.count();
        let matters = self.rms() > MATERIAL_RANGE_PART * self.range();
        (matters && readings >= HEAVY_READINGS).then(|| Finding::HeavyTails {
            file: self.file.into(),
            channel: self.fit.model.measurements[self.place].name.clone(),
            readings,
            all: self.values.len(),
        })
    }
}

/// Innovations that are not as large as the filter expects, where the noise is known.
fn surprise(fit: &Fit, file: &str, c: usize, innovations: &[(usize, f64)]) -> Option<Finding> {
    if innovations.len() < 3 {
        return None;
    }
    let consistency =
        innovations.iter().map(|(_, z)| z * z).sum::<f64>() / innovations.len() as f64;
    let noise = fit.facts.noise.measurement[c].sqrt();
    // below the resolution nobody knows the noise, and smaller surprises are none
    let noisy = noise > 1.001 * RESOLUTION * fit.facts.scales.range[c];
    let far = consistency > SURPRISE_FACTOR || (consistency < 1.0 / SURPRISE_FACTOR && noisy);
    far.then(|| Finding::BandsWrong {
        file: file.into(),
        channel: channel_name(&fit.model, c),
        factor: consistency.sqrt(),
    })
}

fn channel_name(model: &Model, c: usize) -> String {
    model.measurements[c].name.clone()
}
