//! How far the equations bend along a step of states and θ: the second-order part of a Newton step.
//!
//! A linear step of length one in a curved valley leaves it. Along the step (δX, δθ) the residuals
//! are r + J δ + ½ r″ + …; the least-squares step that answers r″ with the same J brings it back
//! (Transtrum and Sethna, *Improvements to the Levenberg–Marquardt algorithm*, 2012: geodesic
//! acceleration). r″ is a second difference of the residuals, J is that of the forward pass; what
//! is left when the states are eliminated is −Σ F_θᵀ π, with the costates π of one backward pass.

use rayon::prelude::*;

use super::extended::Innovation;
use super::pass::{Correction, Forward, Means};
use super::smoother::Smoother;
use crate::model::Point;
use crate::model::simd::LANES;
use crate::model::small::{apply, dot};
use crate::numerics::Trajectory;
use crate::numerics::step::Departure;

/// The second difference is taken over this part of the step, to either side.
const STEP_PART: f64 = 0.1;
/// Samples that a thread takes in one go, and pieces whose sums are kept at once.
const PIECE_SAMPLES: usize = 32;
const MOST_PIECES: usize = 64;

/// What the second-order part of a step needs of a record.
pub(crate) struct Curvature {
    /// Jᵀ r″ with the sign of b, the states eliminated.
    pub b: Vec<f64>,
    /// What the linear model says of the objective after the step.
    pub expected: f64,
}

impl Smoother<'_> {
    /// How far the equations bend along a step of θ, and of the states with it.
    pub(crate) fn curvature(
        &self,
        states: &Trajectory,
        increment: &[f64],
        pass: &Forward,
    ) -> Curvature {
        let means = self.shift(states, increment, pass);
        let by = self.backward(pass, &means);
        let moved = |length: f64| -> Vec<f64> {
            let entries = self.theta.iter().zip(increment);
            entries.map(|(t, d)| t + length * d).collect()
        };
        let thetas = [moved(-STEP_PART), moved(STEP_PART)];
        let along = [states.moved(-STEP_PART, &by), states.moved(STEP_PART, &by)];
        let (defects, residuals) = self.second_difference(states, &thetas, &along);
        let means_bent = self.answered(pass, &defects, residuals);
        Curvature {
            b: self.gradient(states, pass, &means_bent),
            expected: pass.half_square(&means),
        }
    }

    /// r″ of the defects f_o(x_{i−1}) − x_i and of the misfits y − h(x).
    fn second_difference(
        &self,
        states: &Trajectory,
        thetas: &[Vec<f64>; 2],
        along: &[Trajectory; 2],
    ) -> (Vec<f64>, Vec<f64>) {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let mut defects = vec![0.0; states.len() * n];
        let mut residuals = vec![0.0; states.len() * c];
        let room = || {
            let next = vec![0.0; LANES * n];
            (self.stepper.lane_scratch(), next, vec![0.0; LANES * c])
        };
        let sides = [
            (-2.0, self.theta, states),
            (1.0, thetas[0].as_slice(), &along[0]),
            (1.0, thetas[1].as_slice(), &along[1]),
        ];
        (defects.par_chunks_mut(PIECE_SAMPLES * n))
            .zip(residuals.par_chunks_mut(PIECE_SAMPLES * c))
            .enumerate()
            .for_each_init(room, |(scratch, next, h), (piece, (defects, residuals))| {
                let groups = defects.chunks_mut(LANES * n);
                let groups = groups.zip(residuals.chunks_mut(LANES * c));
                for (k, (defects, residuals)) in groups.enumerate() {
                    let first = piece * PIECE_SAMPLES + k * LANES;
                    let samples = first..first + defects.len() / n;
                    let without = usize::from(first == 0);
                    for (factor, theta, states) in sides {
                        let factor = factor / (STEP_PART * STEP_PART);
                        let points = samples.clone();
                        let points = points.map(|i| self.record.point(i, states.row(i), theta));
                        let points: Vec<Point> = points.collect();
                        self.stepper.measure_lanes(scratch, &points, h);
                        residuals
                            .iter_mut()
                            .zip(&*h)
                            .for_each(|(r, h)| *r -= factor * h);
                        let from = |i: usize| Departure {
                            at: self.record.point(i - 1, states.row(i - 1), theta),
                            span: self.stepper.span(self.record.gap(i - 1)),
                        };
                        let from: Vec<Departure> =
                            samples.clone().skip(without).map(from).collect();
                        if from.is_empty() {
                            continue;
                        }
                        self.stepper.advance_lanes(scratch, &from, next);
                        let arrived = defects[without * n..].iter_mut();
                        arrived.zip(&*next).for_each(|(d, f)| *d += factor * f);
                    }
                }
            });
        (defects, residuals)
    }

    /// The means of a forward pass with the gains of another, over defects and misfits alone.
    fn answered(&self, pass: &Forward, defects: &[f64], mut misfits: Vec<f64>) -> Means {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let mut means = vec![0.0; defects.len()];
        let (mut mean, mut moved) = (vec![0.0; n], vec![0.0; n]);
        for i in 0..self.record.len() {
            apply(pass.step(i, n), &mean, &mut moved);
            let defect = &defects[i * n..(i + 1) * n];
            for (m, (x, d)) in mean.iter_mut().zip(moved.iter().zip(defect)) {
                *m = x + d;
            }
            for (at, misfit) in misfits.iter_mut().enumerate().skip(i * c).take(c) {
                let Correction {
                    h,
                    gain,
                    innovation: Innovation { variance, .. },
                } = pass.correction(at, n);
                if variance > 0.0 {
                    *misfit -= dot(h, &mean);
                    let gains = mean.iter_mut().zip(gain);
                    gains.for_each(|(m, k)| *m += k * *misfit);
                }
            }
            means[i * n..(i + 1) * n].copy_from_slice(&mean);
        }
        Means {
            mean: means,
            innovation: misfits,
        }
    }

    /// −Σ (F_θᵀ π − H_θᵀ κ), with the costates of means: b of the normal equations.
    fn gradient(&self, states: &Trajectory, pass: &Forward, means: &Means) -> Vec<f64> {
        let costates = self.costates(pass, means);
        let system = self.stepper.system();
        let (n, c, p) = (system.states(), system.measurements(), self.theta.len());
        let (rows, channels) = (self.stepper.rows(), system.unknown_channels());
        let height = rows.len() + channels.len();
        let samples = self.record.len();
        let mut b = vec![0.0; p];
        for first in (0..samples).step_by(PIECE_SAMPLES * MOST_PIECES) {
            let pieces = (first..samples.min(first + PIECE_SAMPLES * MOST_PIECES)).into_par_iter();
            let pieces = pieces.step_by(PIECE_SAMPLES);
            let sums = pieces.map_init(
                || self.theta_room(),
                |room, first| {
                    let mut b = vec![0.0; p];
                    let end = samples.min(first + PIECE_SAMPLES);
                    for first in (first..end).step_by(LANES) {
                        let samples = first..end.min(first + LANES);
                        let by_theta =
                            self.rows_by_theta(room, states, samples.clone(), &pass.by_theta);
                        for (i, by_theta) in samples.zip(by_theta.chunks_exact(height * p)) {
                            let costate = &costates.arrival[i * n..(i + 1) * n];
                            let pull = &costates.channel[i * c..(i + 1) * c];
                            let arrived = rows.iter().map(|&row| -costate[row]);
                            let seen = channels.iter().map(|&channel| pull[channel]);
                            let factors = arrived.chain(seen).zip(by_theta.chunks_exact(p));
                            for (factor, row) in factors {
                                b.iter_mut().zip(row).for_each(|(b, f)| *b += factor * f);
                            }
                        }
                    }
                    b
                },
            );
            for sum in sums.collect::<Vec<_>>() {
                b.iter_mut().zip(&sum).for_each(|(b, s)| *b += s);
            }
        }
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::prior::initial_theta;
    use crate::model::Model;
    use crate::numerics::linalg::normal;
    use crate::numerics::objective::Noise;
    use crate::numerics::step::Stepper;
    use crate::simulate::{Simulation, simulate};

    /// Friction that a network has to learn, the velocity hidden, a sensor with an unknown gain.
    const MODEL: &str = "[time]\nstep = 0.05\nmethod = \"rk4\"\n[unknowns.g]\nguess = 1\n\
        [states.q]\nderivative = \"v\"\nstart = 1\n[states.v]\nderivative = \"-4*q - f(v)\"\nstart = 0\n\
        [networks.f]\nlayers = [\"3 tanh\"]\n[measurements]\ny = \"g*q\"\n\
        [truth]\ng = 1.2\nv = \"-4*q - tanh(v)\"\n[simulation]\nsteps = 150\n";

    /// By the costates of one backward pass comes b of the elimination; along a step with its
    /// second-order part the objective is what the linear model says, to third order.
    #[test]
    fn a_step_with_its_second_order_part_follows_the_valley() {
        let model = Model::from_text("friction", MODEL).unwrap();
        let mut record = simulate(&model, &Simulation::default()).unwrap();
        let states = Trajectory::new(record.truth.clone().unwrap(), 2);
        let missing = record.outputs.iter_mut().step_by(7);
        missing.for_each(|y| *y = f64::NAN);
        let stepper = Stepper::over(&model, &model.system, record.step(), [&record]);
        let theta = initial_theta(&model, 1);
        let noise = Noise {
            process: vec![1e-10, 1e-8],
            measurement: vec![1e-6],
            start_mean: states.row(0).to_vec(),
            start: vec![1e-2; 2],
        };
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &theta,
            noise: &noise,
        };
        let (states, _) = smoother.minimise(states, 20);
        let (equations, pass) = smoother.eliminate(&states, 1, 0);
        let b = smoother.gradient(&states, &pass, &pass.means);
        let size = equations.b.iter().fold(0.0f64, |m, b| m.max(b.abs()));
        for (b, expected) in b.iter().zip(&equations.b) {
            assert!((b - expected).abs() < 1e-8 * size, "{b} {expected}");
        }
        let factor = equations.factor(&vec![1.0; theta.len()]).unwrap();
        let step = normal::solve(&factor, &equations.b);
        let off = |length: f64, bends: bool| {
            let step: Vec<f64> = step.iter().map(|d| length * d).collect();
            let Curvature { b, expected } = smoother.curvature(&states, &step, &pass);
            let bend = normal::solve(&factor, &b);
            let bend = bend.iter().map(|a| if bends { 0.5 * a } else { 0.0 });
            let moved = theta.iter().zip(&step).zip(bend);
            let moved: Vec<f64> = moved.map(|((t, d), a)| t + d + a).collect();
            let moved = Smoother {
                theta: &moved,
                ..smoother
            };
            let (_, cost) = moved.minimise(states.clone(), 30);
            (cost.total() - expected).abs()
        };
        for length in [0.02, 0.01] {
            let (straight, bent) = (off(length, false), off(length, true));
            assert!(bent < 0.2 * straight, "{length}: {bent} {straight}");
        }
    }
}
