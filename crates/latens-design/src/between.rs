//! Which experiment tells formulas apart.
//!
//! For each pair of models, both fitted to the records of the fit, the record that one of them foresees is given to the other,
//! which may adapt its start, its states and its constants, these within what the records leave open. What is left of the
//! misfit, and what the second pays for constants that it has to adapt more than the first (Occam's factor), is by how much ln p
//! would differ if the first of the two were right.

use latens::filter::Smoother;
use latens::model::Model;
use latens::numerics::objective::{Cost, Noise};
use latens::numerics::step::Stepper;
use latens::{Error, Fit, Job, Record, Silent};

use crate::information::{Posterior, factor};
use crate::plan::{Feedback, Run, Setup};

/// Steps in which constants adapt, and those of the states between them.
const CONSTANT_STEPS: usize = 5;
const STATE_STEPS: usize = 20;
/// A step is halved so often.
const HALVINGS: usize = 4;
/// A step that gains no more ends it.
const LEAST_GAIN: f64 = 1e-2;

/// Models fitted to the records of a fit.
///
/// # Errors
/// Those of a job, and [`Error::Setting`] for a model of other inputs, states or measurements.
pub fn fitted(fit: &Fit, models: &[Model], stops: &dyn Fn() -> bool) -> Result<Vec<Fit>, Error> {
    let names = |model: &Model| {
        let states = model.states.iter().map(|s| &s.name);
        let inputs = model.inputs.iter().map(|q| &q.name);
        let measured = model.measurements.iter().map(|q| &q.name);
        let all = [
            states.collect::<Vec<_>>(),
            inputs.collect(),
            measured.collect(),
        ];
        all.map(|names| names.into_iter().cloned().collect::<Vec<_>>())
    };
    let mut found = vec![];
    for model in models {
        if names(model) != names(&fit.model) {
            return Err(Error::Setting(format!(
                "{} has other states, inputs or measurements than the fit",
                model.name
            )));
        }
        if stops() {
            return Err(Error::Stopped);
        }
        found.push(Job::again(fit, model.clone()).run(&mut Silent)?.fit);
    }
    Ok(found)
}

/// Formulas with what is known of their constants.
pub struct Rivals<'f>(Vec<Posterior<'f>>);

impl<'f> Rivals<'f> {
    /// Of fits of the formulas.
    pub fn new(fits: &'f [Fit]) -> Self {
        Self(fits.iter().map(Posterior::new).collect())
    }

    /// The runs of each from a setup; `None` of one that leaves the finite numbers.
    pub fn runs(&self, setup: &Setup, feedback: &Feedback) -> Vec<Option<Run>> {
        self.0.iter().map(|p| setup.run(p.fit, feedback)).collect()
    }

    /// By how much ln p of the two formulas that are hardest to tell apart would differ, and which they are.
    pub fn apart(
        &self,
        runs: &[Option<Run>],
        measured: impl Fn(&Run) -> Record,
    ) -> Option<(f64, [usize; 2])> {
        let mut least: Option<(f64, [usize; 2])> = None;
        for (i, run) in runs.iter().enumerate() {
            // one that cannot go there at all is told apart by that
            let Some(run) = run else { continue };
            let record = measured(run);
            let right = cost(&self.0[i], &record)?;
            for (j, other) in self.0.iter().enumerate() {
                if j == i || runs[j].is_none() {
                    continue;
                }
                let apart = (cost(other, &record)? - right).max(0.0);
                if least.is_none_or(|(value, _)| apart < value) {
                    least = Some((apart, [i.min(j), i.max(j)]));
                }
            }
        }
        least
    }
}

/// What a model pays on a record that has no noise: its least objective, and ½ ln det (I + Bᵀ A B) for what the record says
/// of its constants. `None` where it is no number.
fn cost(posterior: &Posterior, record: &Record) -> Option<f64> {
    let fit = posterior.fit;
    let stepper = Stepper::over(
        &fit.model,
        &fit.model.system,
        fit.facts.sample_time,
        [record],
    );
    let noise = posterior.noise(&stepper, record);
    let problem = Problem {
        stepper: &stepper,
        record,
        noise: &noise,
    };
    let square = |w: &[f64]| 0.5 * w.iter().map(|w| w * w).sum::<f64>();
    // θ = θ̂ + B w
    let theta_at = |w: &[f64]| -> Vec<f64> {
        let moved = posterior.moved(w);
        fit.theta.iter().zip(moved).map(|(t, d)| t + d).collect()
    };
    // the prior of the start is that of nobody: it is not held against a formula
    let total = |cost: &Cost, w: &[f64]| cost.physics + cost.data + square(w);
    let mut w = vec![0.0; fit.theta.len()];
    let mut theta = fit.theta.clone();
    let first = problem.smoother(&theta).filtered();
    let (mut states, cost) = problem.smoother(&theta).minimise(first, STATE_STEPS);
    let mut value = total(&cost, &w);
    let mut occam = 0.0;
    for _ in 0..CONSTANT_STEPS {
        let (equations, _) = problem.smoother(&theta).eliminate(&states, 1, 0);
        let descent = posterior.seen(&equations.b);
        let r = factor(posterior.information(&equations))?;
        occam = 0.5 * r.log_determinant();
        let right: Vec<f64> = descent.iter().zip(&w).map(|(b, w)| b - w).collect();
        let step = r.solve(&right);
        let better = (0..=HALVINGS).find_map(|halved| {
            let length = 0.5f64.powi(halved as i32);
            let next: Vec<f64> = w.iter().zip(&step).map(|(w, s)| w + length * s).collect();
            let theta = theta_at(&next);
            let (states, cost) = problem
                .smoother(&theta)
                .minimise(states.clone(), STATE_STEPS);
            let value_there = total(&cost, &next);
            (value_there < value).then_some((next, theta, states, value_there))
        });
        let Some((next, next_theta, next_states, next_value)) = better else {
            break;
        };
        let gain = value - next_value;
        (w, theta, states, value) = (next, next_theta, next_states, next_value);
        if gain < LEAST_GAIN {
            break;
        }
    }
    let paid = value + occam;
    paid.is_finite().then_some(paid)
}

/// A record under a model, θ apart.
#[derive(Clone, Copy)]
struct Problem<'a> {
    stepper: &'a Stepper<'a>,
    record: &'a Record,
    noise: &'a Noise,
}

impl<'a> Problem<'a> {
    /// The smoother with θ fixed.
    fn smoother(self, theta: &'a [f64]) -> Smoother<'a> {
        Smoother {
            stepper: self.stepper,
            record: self.record,
            theta,
            noise: self.noise,
        }
    }
}
