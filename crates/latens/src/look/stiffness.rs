//! Whether the equations are too stiff for an explicit method: whether its step makes grow what the
//! equations let decay.
//!
//! Along the smoothing with the known equations, the factor by which a sample's step multiplies small
//! deviations in the long run, the spectral radius of F_x, is held against that of an L-stable step.

use serde::{Deserialize, Serialize};

use super::prior::PriorSmoothing;
use crate::described;
use crate::model::limits::SUBSTEPS;
use crate::model::small::multiply;
use crate::model::{Method, Model};
use crate::numerics::step::{Linearised, Stepper};
use crate::record::Record;
use crate::text;

/// Samples of a record that are looked at.
const LOOKED_AT: usize = 100;
/// Growth this many times that of the equations, and of nothing, is the method's.
const GROWTH: f64 = 1.5;
/// Where it is so at less than this part of the samples, a moment of the record is not worth a word.
const PART: f64 = 0.02;
/// Squarings of a matrix, after which its norm is that of its largest eigenvalue.
const SQUARINGS: i32 = 12;

described! {
/// An explicit method that cannot follow the equations in its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stiffness {
    /// The method, as in the model file.
    pub method: String,
    /// The record where it is worst.
    pub record: String,
    /// The sample, from 0.
    pub sample: usize,
    /// Its time.
    pub time: f64,
    /// By how much a sample's step of the method multiplies small deviations there.
    pub growth: f64,
    /// By how much an L-stable step does.
    pub true_growth: f64,
    /// The part of the samples looked at where the method makes grow what should not.
    pub part: f64,
    /// Sub-steps with which the method would follow, where that many are allowed.
    pub substeps: Option<usize>,
}
}

impl Stiffness {
    /// What happens, where, and what to do.
    pub fn words(&self) -> String {
        let substeps = self.substeps.map_or(String::new(), |s| {
            format!("; {} would do with substeps = {s}", self.method)
        });
        format!(
            "the equations are too stiff for {}: at sample {} of {} (t = {}) its step multiplies small deviations by {}, where the equations multiply them by {} (so at {} of the samples looked at). Take method = \"sdirk4\" with tolerance = 1e-6 in [time]{substeps}",
            self.method,
            self.sample + 1,
            self.record,
            text::number(self.time),
            text::number(self.growth),
            text::number(self.true_growth),
            text::percent(self.part),
        )
    }
}

/// Where the method of a model is too explicit for its equations, networks at zero, if it is.
pub fn find(
    model: &Model,
    records: &[Record],
    prior: &PriorSmoothing,
    dt: f64,
) -> Option<Stiffness> {
    if model.method.is_implicit() {
        return None;
    }
    let mut damped = model.clone();
    damped.method = Method::Sdirk4;
    let own = Stepper::new(model, &model.system, dt);
    let damped = Stepper::new(&damped, &model.system, dt);
    let (mut looked_at, mut found) = (0_usize, 0_usize);
    let mut worst: Option<(usize, usize, f64, f64)> = None;
    for (r, record) in records.iter().enumerate() {
        let every = record.len().div_ceil(LOOKED_AT);
        for k in (0..record.len() - 1).step_by(every) {
            let state = state_at(model, record, prior, r, k);
            let growth = radius_of(&own, record, k, &state);
            let true_growth = radius_of(&damped, record, k, &state);
            let (Some(growth), Some(true_growth)) = (growth, true_growth) else {
                continue;
            };
            looked_at += 1;
            if growth <= GROWTH * true_growth.max(1.0) {
                continue;
            }
            found += 1;
            if worst.is_none_or(|(.., before, _)| growth > before) {
                worst = Some((r, k, growth, true_growth));
            }
        }
    }
    let (r, k, growth, true_growth) = worst?;
    let part = found as f64 / looked_at as f64;
    let name = Method::NAMES.iter().find(|(_, m)| *m == model.method);
    let state = state_at(model, &records[r], prior, r, k);
    let limit = GROWTH * true_growth.max(1.0);
    (part >= PART).then(|| Stiffness {
        method: name.map_or("", |(name, _)| name).into(),
        record: records[r].name.clone(),
        sample: k,
        time: records[r].time[k],
        growth,
        true_growth,
        part,
        substeps: enough(model, dt, |stepper| {
            let growth = radius_of(stepper, &records[r], k, &state);
            growth.is_some_and(|g| g <= limit)
        }),
    })
}

/// The first power of two of sub-steps that is enough.
fn enough(model: &Model, dt: f64, is_enough: impl Fn(&Stepper) -> bool) -> Option<usize> {
    let mut finer = model.clone();
    loop {
        finer.substeps *= 2;
        if finer.substeps > SUBSTEPS {
            return None;
        }
        if is_enough(&Stepper::new(&finer, &model.system, dt)) {
            return Some(finer.substeps);
        }
    }
}

/// The smoothed state; where that is no number, as it may be with a method that does not follow, the
/// centre of the states with what is measured directly.
fn state_at(
    model: &Model,
    record: &Record,
    prior: &PriorSmoothing,
    r: usize,
    k: usize,
) -> Vec<f64> {
    let smoothed = prior.states[r].states.row(k);
    if smoothed.iter().all(|x| x.is_finite()) {
        return smoothed.to_vec();
    }
    let mut state = prior.scales.center.clone();
    for (y, direct) in record.output(k).iter().zip(model.system.direct()) {
        if let (Some(i), true) = (direct, y.is_finite()) {
            state[*i] = *y;
        }
    }
    state
}

/// The spectral radius of F_x from a sample to the next; `None` where it is no number.
fn radius_of(stepper: &Stepper, record: &Record, k: usize, state: &[f64]) -> Option<f64> {
    let theta = vec![0.0; stepper.system().parameters()];
    let (mut scratch, mut out): (_, Linearised) = (stepper.scratch(), stepper.linearised());
    let span = stepper.span(record.gap(k).min(stepper.dt()));
    let at = record.point(k, state, &theta);
    stepper.linearise(&mut scratch, at, span, false, &mut out);
    let radius = spectral_radius(out.f_x, state.len());
    radius.is_finite().then_some(radius)
}

/// lim ‖A^m‖^(1/m), by squaring.
fn spectral_radius(mut a: Vec<f64>, n: usize) -> f64 {
    let (mut logarithm, mut square) = (0.0, vec![0.0; n * n]);
    for k in 0..=SQUARINGS {
        let norm = a.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm == 0.0 {
            return 0.0;
        }
        logarithm += norm.ln() / 2.0_f64.powi(k);
        a.iter_mut().for_each(|v| *v /= norm);
        multiply(&a, &a, &mut square, n, n);
        std::mem::swap(&mut a, &mut square);
    }
    logarithm.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The eigenvalues of these are known: a rotation that shrinks, a triangle, what is nilpotent.
    #[test]
    fn the_radius_is_that_of_the_largest_eigenvalue() {
        let rotation = spectral_radius(vec![0.3, -0.4, 0.4, 0.3], 2);
        assert!((rotation - 0.5).abs() < 1e-12, "{rotation}");
        let triangle = spectral_radius(vec![-3.0, 1e3, 0.0, 2.0], 2);
        assert!((triangle - 3.0).abs() < 0.01, "{triangle}");
        assert_eq!(spectral_radius(vec![0.0, 7.0, 0.0, 0.0], 2), 0.0);
    }
}
