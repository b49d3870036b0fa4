//! The trajectory that minimises the objective for a fixed θ: Gauss–Newton over all states.
//!
//! At the current trajectory X, with defects d_i = f_o(x_{i−1}) − x_i and residuals
//! e_i = y_i − h(x_i), the increments obey δx_i = F_x δx_{i−1} + d_i + w, e_i = H δx_i + v.
//! A Kalman filter on the increments and the backward pass of Bryson and Frazier solve this
//! linear problem exactly, without an inverse of P⁻, so that Q_x may be nearly singular:
//!
//! ```text
//! π_N = 0;  δx_i = m_i − P_i π_i
//! back through a channel: π ← (I − K H)ᵀ π − Hᵀν/s;  back through a step: π ← F_xᵀ π
//! ```
//!
//! The covariance of a smoothed state is P − P Λ P, with Λ carried along with π.
//! The step is shortened until the true objective decreases.

use std::cell::LazyCell;
use std::ops::Range;

use super::extended::ExtendedFilter;
use super::pass::Increments;
use crate::model::Point;
use crate::numerics::Trajectory;
use crate::numerics::objective::{Cost, Noise, trajectory_cost};
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// Smoothed states of one record.
#[derive(Debug, Clone)]
pub struct Smoothed {
    /// One state per sample.
    pub states: Trajectory,
    /// Standard deviations, likewise.
    pub deviations: Trajectory,
    pub cost: Cost,
}

impl Smoothed {
    /// Some of the samples; the cost is left as it is.
    pub fn slice(&self, samples: Range<usize>) -> Self {
        Self {
            states: self.states.slice(samples.clone()),
            deviations: self.deviations.slice(samples),
            cost: self.cost,
        }
    }
}

/// A step of the states.
struct Improved {
    next: (Trajectory, Cost),
    /// What the linear model said of the objective after it.
    expected: f64,
}

/// Smooths one record with θ fixed.
pub struct Smoother<'a> {
    pub stepper: &'a Stepper<'a>,
    pub record: &'a Record,
    pub theta: &'a [f64],
    pub noise: &'a Noise,
}

impl Smoother<'_> {
    /// A first trajectory: the extended Kalman filter's, or, where that leaves the finite numbers,
    /// the measured values with `start_mean` elsewhere, moved to where the equations are defined.
    pub fn filtered(&self) -> Trajectory {
        self.kalman().unwrap_or_else(|_| {
            let measured = self.measured();
            if self.cost(&measured).total().is_finite() {
                measured
            } else {
                self.within_domain(measured)
            }
        })
    }

    /// A trajectory of which the states where equations or measurements are no numbers are those of the nearest sample
    /// where they are; the same where there is none.
    fn within_domain(&self, mut states: Trajectory) -> Trajectory {
        let next = score::one_step(self.stepper, self.record, self.theta, &states);
        let seen = score::outputs(self.stepper.system(), self.record, self.theta, &states);
        let finite = |values: &[f64]| values.iter().all(|v| v.is_finite());
        let defined =
            |k: &usize| finite(seen.row(*k)) && (*k + 1 == next.len() || finite(next.row(*k + 1)));
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..states.len()).partition(defined);
        for k in outside {
            let after = inside.partition_point(|j| *j < k);
            let around = inside[after.saturating_sub(1)..].iter().take(2);
            if let Some(&nearest) = around.min_by_key(|j| j.abs_diff(k)) {
                let state = states.row(nearest).to_vec();
                states.row_mut(k).copy_from_slice(&state);
            }
        }
        states
    }

    /// The extended Kalman filter's estimates; `Err` with the sample and the state that is not
    /// finite any more.
    pub fn kalman(&self) -> Result<Trajectory, (usize, usize)> {
        let (record, noise) = (self.record, self.noise);
        let mut filter = ExtendedFilter::new(self.stepper, &noise.start_mean, &noise.start);
        let mut states = Trajectory::with_capacity(record.len(), noise.start.len());
        for i in 0..record.len() {
            if i > 0 {
                let (at, gap) = (self.point(i - 1, &[]), record.gap(i - 1));
                filter.advance(self.stepper, at, gap, &noise.process, false);
            }
            filter.measure(self.stepper, self.point(i, &[]));
            for (k, (y, r)) in record.output(i).iter().zip(&noise.measurement).enumerate() {
                filter.correct(k, *y, *r);
            }
            if let Some(state) = filter.states.mean.iter().position(|x| !x.is_finite()) {
                return Err((i, state));
            }
            states.push(&filter.states.mean);
        }
        Ok(states)
    }

    /// The measured values, held where missing, with `start_mean` for what no channel shows.
    fn measured(&self) -> Trajectory {
        let n = self.stepper.system().states();
        let mut current = self.noise.start_mean.clone();
        let mut states = Trajectory::with_capacity(self.record.len(), n);
        for i in 0..self.record.len() {
            for (y, direct) in self
                .record
                .output(i)
                .iter()
                .zip(self.stepper.system().direct())
            {
                if let (Some(state), false) = (direct, y.is_nan()) {
                    current[*state] = *y;
                }
            }
            states.push(&current);
        }
        states
    }

    /// Minimises the objective from a trajectory and adds the standard deviations.
    ///
    /// Never fails: the best trajectory found is returned, with its cost, which is not finite
    /// only if the start's was not.
    pub fn smooth(&self, start: Trajectory, iterations: usize) -> Smoothed {
        let (states, cost) = self.minimise(start, iterations);
        let deviations = self.deviations(&self.forward(&states));
        Smoothed {
            states,
            deviations,
            cost,
        }
    }

    /// The same without the deviations.
    pub fn minimise(&self, start: Trajectory, iterations: usize) -> (Trajectory, Cost) {
        let cost = self.cost(&start);
        self.improve(start, cost, iterations)
    }

    /// The same from a trajectory whose cost is known.
    pub(crate) fn improve(
        &self,
        mut states: Trajectory,
        mut cost: Cost,
        iterations: usize,
    ) -> (Trajectory, Cost) {
        const LEAST_GAIN_PART: f64 = 1e-6;
        for _ in 0..iterations {
            if self.stepper.is_stopped() {
                break;
            }
            let Some(Improved { next, .. }) = self.improved(&states, &cost) else {
                break;
            };
            let decrease = cost.total() - next.1.total();
            (states, cost) = next;
            if decrease < LEAST_GAIN_PART * cost.total() {
                break;
            }
        }
        (states, cost)
    }

    /// The same for what is only to come near its minimum: a step that gained what the linear model said leaves
    /// next to nothing to another.
    pub(crate) fn projected(
        &self,
        mut states: Trajectory,
        mut cost: Cost,
        iterations: usize,
    ) -> (Trajectory, Cost) {
        /// Of what the linear model said.
        const GAINED_PART: f64 = 0.9;
        for _ in 0..iterations {
            let Some(Improved { next, expected }) = self.improved(&states, &cost) else {
                break;
            };
            let (decrease, said) = (cost.total() - next.1.total(), cost.total() - expected);
            (states, cost) = next;
            if decrease > GAINED_PART * said {
                break;
            }
        }
        (states, cost)
    }

    /// One step of the states; `None` where it does not lower the objective.
    fn improved(&self, states: &Trajectory, cost: &Cost) -> Option<Improved> {
        let pass = self.forward(states);
        let increments = self.increments(&pass, &pass.means);
        let expected = pass.half_square(&pass.means);
        let next = self.search(states, &increments, cost, expected)?;
        Some(Improved { next, expected })
    }

    /// Log likelihood of the data, linearised at a trajectory: −½ Σ (ln s + ν²/s).
    pub fn log_likelihood(&self, states: &Trajectory) -> f64 {
        let pass = self.forward(states);
        -0.5 * pass.log_variance() - pass.half_square(&pass.means)
    }

    /// The first of the step lengths 1 … 0.01 that lowers the true objective; the
    /// short ones get past a kink of the equations, such as an `if` of the model file. `least` is
    /// what the linearised objective says of the whole step.
    fn search(
        &self,
        states: &Trajectory,
        increments: &Increments,
        cost: &Cost,
        least: f64,
    ) -> Option<(Trajectory, Cost)> {
        let defects = LazyCell::new(|| {
            let next = score::one_step(self.stepper, self.record, self.theta, states);
            states.moved(-1.0, &next)
        });
        [1.0, 0.5, 0.25, 0.1, 0.03, 0.01]
            .into_iter()
            .take_while(|_| !self.stepper.is_stopped())
            .find_map(|length| {
                // what is left of the defects here, on the way to those of the whole step
                let driving = || match length {
                    1.0 => increments.driving.clone(),
                    _ => defects.moved(length, &increments.driving.moved(-1.0, &defects)),
                };
                let expected = cost.total() - length * (cost.total() - least);
                let linear = states.moved(length, &increments.states);
                let next = self.followed(linear, driving, cost.total(), expected);
                let better = next.1.total() < cost.total()
                    || (next.1.total().is_finite() && !cost.total().is_finite());
                better.then_some(next)
            })
    }

    /// A trajectory after a linear step, or, where the true objective is not nearly as low there as
    /// `expected` of it, the run of the equations with the same start and the same defects, if that is lower.
    ///
    /// With physics that is all but exact the valley of the objective is as narrow as its curvature
    /// is strong: a linear step of any length leaves it, while such a run lies in it.
    pub(crate) fn followed(
        &self,
        linear: Trajectory,
        driving: impl FnOnce() -> Trajectory,
        before: f64,
        expected: f64,
    ) -> (Trajectory, Cost) {
        /// Of what was to be gained.
        const ENOUGH_GAIN_PART: f64 = 0.75;
        let cost = self.cost(&linear);
        if before - cost.total() > ENOUGH_GAIN_PART * (before - expected) {
            return (linear, cost);
        }
        let start = linear.row(0);
        let run = score::driven_run(self.stepper, self.record, self.theta, start, &driving());
        let driven_cost = self.cost(&run);
        if driven_cost.total() < cost.total() || cost.total().is_nan() {
            (run, driven_cost)
        } else {
            (linear, cost)
        }
    }

    #[doc(hidden)]
    pub fn cost(&self, states: &Trajectory) -> Cost {
        trajectory_cost(self.stepper, self.record, self.theta, states, self.noise)
    }

    pub(crate) fn point<'b>(&'b self, i: usize, state: &'b [f64]) -> Point<'b> {
        self.record.point(i, state, self.theta)
    }
}
