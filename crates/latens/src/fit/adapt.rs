//! A few constants of a fitted model, estimated again on the first samples of a new record.
//!
//! The objective is the one of a fit, over these samples, with the states free and all of θ fixed
//! but the named constants p, which are held to the fit by
//!
//! ```text
//! p ~ N(p̂, C + D),   C the fit's covariance of them,   D the variance of their change
//! ```
//!
//! C says how well the records of the fit determined the constants *in these records*. It says
//! nothing about how far they change from one record to the next, as friction does from a cold
//! day to a warm one, and whoever names a constant here expects that it did: D is stated.
//!
//! One Gauss–Newton step with M = A + (C + D)⁻¹, where A are the normal equations of θ after the
//! elimination of the states (`sensitivity.rs`), is the closed form where everything is linear.
//! The draws of δθ follow: with e the errors before, w ~ N(0, A_pp), and r the rest of θ, which is
//! uncertain but not adapted (a Schmidt–Kalman update),
//!
//! ```text
//! e_p ← M⁻¹ ((C + D)⁻¹ e_p − A_pr e_r + w)
//! ```

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use super::predict::{Predictor, START_STEPS};
use crate::Error;
use crate::filter::smoother::Smoother;
use crate::model::Model;
use crate::model::small::{apply, cholesky, dot, identity, solve};
use crate::numerics::Trajectory;
use crate::numerics::bounded::{self, Bounds};
use crate::numerics::linalg::PackedCovariance;
use crate::numerics::linalg::normal::NormalEquations;
use crate::numerics::objective::Noise;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// Newton steps at the most.
const MOST_ITERATIONS: usize = 50;
/// Damping in units of M's diagonal: after none, this much, then ten times as much each time.
const DAMPING: (f64, f64) = (1e-3, 1e6);
/// Gauss–Newton steps of the states alone after each step of the constants.
const PROJECTION_STEPS: usize = 4;
/// A gain below this fraction of the objective ends it.
const LEAST_GAIN_PART: f64 = 1e-9;

/// What is known of some constants before they are adapted.
#[derive(Debug, Clone)]
pub struct Prior {
    /// Entries of θ.
    pub constants: Vec<usize>,
    /// C, row by row.
    fitted: Vec<f64>,
    /// Diagonal of D.
    change: Vec<f64>,
}

impl Prior {
    /// The fit's covariance of some unknown constants, and a change between records by this part of
    /// a constant's value (of its `scale` in the model file, where that is larger).
    pub fn new(
        model: &Model,
        theta: &[f64],
        covariance: &PackedCovariance,
        constants: &[usize],
        part: f64,
    ) -> Self {
        let packed = covariance.clone().to_packed();
        let entry = |i: usize, j: usize| packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
        let change = constants.iter().map(|&i| {
            let (unknown, theta) = (&model.unknowns[i], theta[i]);
            let size = unknown.value(theta).abs().max(unknown.scale);
            (part * size / unknown.slope(theta)).powi(2)
        });
        let rows = constants.iter();
        let fitted = rows.flat_map(|&i| constants.iter().map(move |&j| (i, j)));
        Self {
            fitted: fitted.map(|(i, j)| entry(i, j)).collect(),
            change: change.collect(),
            constants: constants.to_vec(),
        }
    }

    /// C + D.
    pub fn covariance(&self) -> Vec<f64> {
        let n = self.change.len();
        let mut covariance = self.fitted.clone();
        for (i, change) in self.change.iter().enumerate() {
            covariance[i * n + i] += change;
        }
        covariance
    }
}

/// θ with adapted constants.
#[derive(Debug, Clone)]
pub struct Adapted {
    pub theta: Vec<f64>,
    /// Draws of δθ, the rest of θ as uncertain as before.
    pub draws: Vec<Vec<f64>>,
    /// Covariance of the constants, the rest of θ given; row by row.
    pub covariance: Vec<f64>,
}

impl Adapted {
    /// The same predictor with the adapted constants.
    pub fn predictor<'a>(&'a self, before: Predictor<'a>) -> Predictor<'a> {
        Predictor {
            theta: &self.theta,
            draws: &self.draws,
            ..before
        }
    }
}

impl Predictor<'_> {
    /// Estimates constants again on the first samples of a record.
    ///
    /// # Errors
    /// [`Error::Setting`] where the prior leaves a constant no freedom, or the model cannot follow
    /// the samples at all.
    pub fn adapt(&self, record: &Record, samples: usize, prior: &Prior) -> Result<Adapted, Error> {
        let first = record.slice(0..samples.min(record.len()));
        let n = prior.constants.len();
        let fail = |message: &str| Error::Setting(format!("{}: {message}", record.name));
        let rigid = || fail("the prior leaves a constant no freedom to adapt; widen it");
        let precision = inverse(&prior.covariance(), n).ok_or_else(rigid)?;
        let stepper = Stepper::over(self.model, &self.model.system, self.dt, [record]);
        let noise = self.noise.inflated(&stepper, self.variance_inflation);
        let problem = Problem {
            model: self.model,
            stepper: &stepper,
            // correlated misfits are no independent news, see Facts::variance_inflation
            noise: &self.open_start(&first, &noise),
            record: &first,
            constants: &prior.constants,
            fitted: self.theta,
            precision: &precision,
        };
        let begin = problem.smoother(self.theta);
        let (states, cost) = begin.minimise(begin.filtered(), START_STEPS);
        if !cost.total().is_finite() {
            let advice = "the model cannot follow these samples; check units and columns";
            return Err(fail(advice));
        }
        let mut at = Iterate {
            theta: self.theta.to_vec(),
            states,
            cost: cost.total(),
        };
        for _ in 0..MOST_ITERATIONS {
            let before = at.cost;
            if !problem.step(&mut at) || before - at.cost <= LEAST_GAIN_PART * before {
                break;
            }
        }
        let (normal, _) = problem.smoother(&at.theta).eliminate(&at.states, 1, 0);
        let information = block(&normal, &prior.constants, &precision);
        let covariance = inverse(&information, n).ok_or_else(rigid)?;
        let mut draws = self.redrawn(&normal, prior, &precision, &covariance);
        let unknowns = prior
            .constants
            .iter()
            .map(|&i| (i, &self.model.unknowns[i]));
        for (i, unknown) in unknowns.filter(|(_, u)| u.is_bounded()) {
            for draw in &mut draws {
                let to = at.theta[i] + draw[i];
                draw[i] = bounded::increment(at.theta[i], to, unknown.bounds());
            }
        }
        Ok(Adapted {
            draws,
            theta: at.theta,
            covariance,
        })
    }

    /// The draws after the update; the same for the same samples.
    fn redrawn(
        &self,
        normal: &NormalEquations,
        prior: &Prior,
        precision: &[f64],
        covariance: &[f64],
    ) -> Vec<Vec<f64>> {
        let constants = &prior.constants;
        let n = constants.len();
        let mut root = block(normal, constants, &vec![0.0; n * n]);
        // a sum of squares in rounded numbers: a direction about which the samples are silent needs
        // something for a root to exist
        let largest = (0..n).map(|i| root[i * n + i]).fold(0.0, f64::max);
        let rounding = f64::MIN_POSITIVE + 8.0 * n as f64 * f64::EPSILON * largest;
        (0..n).for_each(|i| root[i * n + i] += rounding);
        let root = match cholesky(&mut root, n) {
            Ok(()) => root,
            Err(_) => vec![0.0; n * n],
        };
        let mut rng = Pcg64::seed_from_u64(1);
        let mut normal_draw = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut adapted = |draw: &Vec<f64>| {
            let changed = constants.iter().zip(&prior.change);
            let before: Vec<f64> = changed
                .map(|(&i, d)| draw[i] + d.sqrt() * normal_draw())
                .collect();
            let z: Vec<f64> = (0..n).map(|_| normal_draw()).collect();
            let (mut right, mut after) = (vec![0.0; n], vec![0.0; n]);
            apply(precision, &before, &mut right);
            for (a, &i) in constants.iter().enumerate() {
                let rest = draw
                    .iter()
                    .enumerate()
                    .filter(|(j, _)| !constants.contains(j));
                right[a] -= rest.map(|(j, e)| normal.entry(i, j) * e).sum::<f64>();
                right[a] += dot(&root[a * n..=a * n + a], &z[..=a]);
            }
            apply(covariance, &right, &mut after);
            let mut draw = draw.clone();
            constants
                .iter()
                .zip(&after)
                .for_each(|(&i, e)| draw[i] = *e);
            draw
        };
        self.draws.iter().map(&mut adapted).collect()
    }
}

/// The objective of the first samples.
struct Problem<'a> {
    model: &'a Model,
    stepper: &'a Stepper<'a>,
    noise: &'a Noise,
    record: &'a Record,
    constants: &'a [usize],
    /// θ̂.
    fitted: &'a [f64],
    /// (C + D)⁻¹.
    precision: &'a [f64],
}

/// The current point.
struct Iterate {
    theta: Vec<f64>,
    states: Trajectory,
    /// The objective, with the prior of the constants.
    cost: f64,
}

impl Problem<'_> {
    fn smoother<'b>(&'b self, theta: &'b [f64]) -> Smoother<'b> {
        Smoother {
            stepper: self.stepper,
            record: self.record,
            theta,
            noise: self.noise,
        }
    }

    /// How far the constants are from the fit, and how that pulls at them.
    fn away(&self, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let constants = self.constants.iter();
        let away: Vec<f64> = constants.map(|&i| theta[i] - self.fitted[i]).collect();
        let mut pull = vec![0.0; away.len()];
        apply(self.precision, &away, &mut pull);
        (away, pull)
    }

    /// A step that leaves the bounds becomes the best one within them.
    fn keep_bounds(&self, theta: &[f64], step: &mut [f64], information: &[f64]) {
        let n = step.len();
        let unknowns = self.constants.iter().map(|&i| &self.model.unknowns[i]);
        let bounds: Vec<Bounds> = unknowns.map(|u| u.bounds()).collect();
        let moved = self.constants.iter().zip(&*step);
        let center: Vec<f64> = moved.map(|(&i, d)| theta[i] + d).collect();
        let outside = |(x, b): (&f64, &Bounds)| *x < b.0 || *x > b.1;
        if !center.iter().zip(&bounds).any(outside) {
            return;
        }
        let covariance = inverse(information, n);
        let pull = covariance.and_then(|c| Some((bounded::pull(&c, &center, &bounds)?, c)));
        if let Some((weights, covariance)) = pull {
            let mut more = vec![0.0; n];
            apply(&covariance, &weights, &mut more);
            step.iter_mut().zip(more).for_each(|(s, m)| *s += m);
        }
    }

    /// One Newton step of the constants, the states smoothed again after it; `false` where none
    /// lowers the objective.
    fn step(&self, at: &mut Iterate) -> bool {
        let n = self.constants.len();
        let here = self.smoother(&at.theta);
        let (normal, pass) = here.eliminate(&at.states, 1, 0);
        let information = block(&normal, self.constants, self.precision);
        let (_, mut gradient) = self.away(&at.theta);
        for (g, &i) in gradient.iter_mut().zip(self.constants) {
            *g = normal.b[i] - *g;
        }
        let mut damping = 0.0;
        while damping <= DAMPING.1 {
            let (mut damped, mut step) = (information.clone(), gradient.clone());
            (0..n).for_each(|i| damped[i * n + i] *= 1.0 + damping);
            damping = f64::max(10.0 * damping, DAMPING.0);
            if solve(&mut damped, &mut step, n).is_err() {
                continue;
            }
            self.keep_bounds(&at.theta, &mut step, &information);
            let mut increment = vec![0.0; at.theta.len()];
            for (d, &i) in step.iter().zip(self.constants) {
                increment[i] = *d;
            }
            let by = here.backward(&pass, &here.shift(&at.states, &increment, &pass));
            let pairs = at.theta.iter().zip(&increment);
            let mut theta: Vec<f64> = pairs.map(|(t, d)| t + d).collect();
            self.model.keep_bounds(&mut theta);
            let along = at.states.moved(1.0, &by);
            let there = self.smoother(&theta);
            // where the equations bend sharply, the states had better stay for now
            let starts = [along, at.states.clone()];
            let [moved, still] = starts.map(|states| there.minimise(states, PROJECTION_STEPS));
            let lower = moved.1.total() < still.1.total();
            let (states, cost) = if lower { moved } else { still };
            let (away, pull) = self.away(&theta);
            let cost = cost.total() + 0.5 * dot(&away, &pull);
            if cost <= at.cost {
                *at = Iterate {
                    theta,
                    states,
                    cost,
                };
                return true;
            }
        }
        false
    }
}

/// A_pp + a matrix.
fn block(normal: &NormalEquations, constants: &[usize], added: &[f64]) -> Vec<f64> {
    let pairs = constants
        .iter()
        .flat_map(|&i| constants.iter().map(move |&j| (i, j)));
    let entries = pairs.zip(added);
    entries.map(|((i, j), p)| normal.entry(i, j) + p).collect()
}

fn inverse(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut inverse = identity(n);
    solve(&mut matrix.to_vec(), &mut inverse, n).ok()?;
    inverse.iter().all(|x| x.is_finite()).then_some(inverse)
}
