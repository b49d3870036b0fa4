//! Whether the equations are too stiff for an explicit method: whether its step makes grow what the
//! equations let decay.
//!
//! Along the smoothing with the known equations, the factor by which a sample's step multiplies small
//! deviations in the long run, the spectral radius of F_x, is held against that of an L-stable step.

use serde::{Deserialize, Serialize};

use super::prior::PriorSmoothing;
use crate::described;
use crate::model::small::multiply;
use crate::model::{Method, Model};
use crate::numerics::step::{Linearised, Stepper};
use crate::record::Record;
use crate::text;

/// Samples of a record that are looked at.
const SAMPLES_LOOKED_AT: usize = 100;
/// Growth this many times that of the equations, and of nothing, is the method's.
const STIFF_GROWTH_FACTOR: f64 = 1.5;
/// Where it is so at less than this part of the samples, a moment of the record is not worth a word.
const STIFF_SAMPLES_PART: f64 = 0.02;
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
}
}

impl Stiffness {
    /// What happens, where, and what to do.
    pub fn words(&self) -> String {
        format!(
            "the equations are too stiff for {}: at sample {} of {} (t = {}) its step multiplies small deviations by {}, where the equations multiply them by {} (so at {} of the samples looked at). Take method = \"sdirk4\" with tolerance = 1e-6 in [time]",
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
    let explicit = Stepper::new(model, &model.system, dt);
    let damped = Stepper::new(&damped, &model.system, dt);
    let (mut looked_at, mut stiff) = (0_usize, 0_usize);
    let mut worst: Option<Stiffness> = None;
    let name = Method::NAMES.iter().find(|(_, m)| *m == model.method);
    for (record, smoothed) in records.iter().zip(&prior.states) {
        let every = record.len().div_ceil(SAMPLES_LOOKED_AT);
        for k in (1..record.len() - 1).step_by(every) {
            let before = smoothed.states.row(k - 1);
            let center = &prior.scales.center;
            let state = state_at(model, &damped, record, before, center, k);
            let radius = |stepper| radius_of(stepper, record, k, state.as_ref()?);
            let (Some(growth), Some(true_growth)) = (radius(&explicit), radius(&damped)) else {
                continue;
            };
            looked_at += 1;
            if growth <= STIFF_GROWTH_FACTOR * true_growth.max(1.0) {
                continue;
            }
            stiff += 1;
            if worst.as_ref().is_none_or(|w| growth > w.growth) {
                worst = Some(Stiffness {
                    method: name.map_or("", |(name, _)| name).into(),
                    record: record.name.clone(),
                    sample: k,
                    time: record.time[k],
                    growth,
                    true_growth,
                    part: 0.0,
                });
            }
        }
    }
    let part = stiff as f64 / looked_at.max(1) as f64;
    worst
        .filter(|_| part >= STIFF_SAMPLES_PART)
        .map(|worst| Stiffness { part, ..worst })
}

/// A state of the model at a sample, to look at: one L-stable step from where the sample before is smoothed to be,
/// which takes fast states to where the equations have them, with what is measured directly as measured. Where
/// the smoothing is of no use, as it may be with a method that does not follow, from the centre of the states.
fn state_at(
    model: &Model,
    damped: &Stepper,
    record: &Record,
    smoothed: &[f64],
    center: &[f64],
    k: usize,
) -> Option<Vec<f64>> {
    let theta = vec![0.0; model.system.parameters()];
    let (mut scratch, mut state) = (damped.scratch(), vec![0.0; center.len()]);
    let span = damped.span(record.gap(k - 1).min(damped.dt()));
    for from in [smoothed, center] {
        let at = record.point(k - 1, from, &theta);
        damped.advance(&mut scratch, at, span, &mut state);
        if state.iter().all(|x| x.is_finite()) {
            for (y, direct) in record.output(k).iter().zip(model.system.direct()) {
                if let (Some(i), true) = (direct, y.is_finite()) {
                    state[*i] = *y;
                }
            }
            return Some(state);
        }
    }
    None
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
        // the norm of A^m is not its radius to the m, but within a factor that does not grow with m
        assert!((rotation - 0.5).abs() < 1e-3, "{rotation}");
        let triangle = spectral_radius(vec![-3.0, 1e3, 0.0, 2.0], 2);
        assert!((triangle - 3.0).abs() < 0.01, "{triangle}");
        assert_eq!(spectral_radius(vec![0.0, 7.0, 0.0, 0.0], 2), 0.0);
    }
}
