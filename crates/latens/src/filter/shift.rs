//! A forward pass where θ has changed: F_θ and H_θ move its means, gains and covariances stay.
//!
//! F_θ and H_θ at the samples are what an elimination has worked out already. Where they are small beside what a
//! pass keeps of a sample anyway, the pass keeps them too, and steps of few parameters need not work them out again;
//! with hundreds of weights they would take more room than all else, and are worked out some samples at a time.

use std::ops::Range;

use rayon::prelude::*;

use super::pass::{Forward, Means, PIECE_SAMPLES};
use super::smoother::Smoother;
use crate::model::Workspace;
use crate::model::simd::LANES;
use crate::model::small::{apply, dot, dot_long};
use crate::numerics::Trajectory;
use crate::numerics::step::{LaneScratch, Linearised};

/// F_θ and H_θ are kept where they are no more than this many times as large as the rest of a pass.
const MOST_KEPT_RATIO: usize = 4;

/// What a thread needs to work out F_θ and H_θ of some samples.
pub(super) struct ThetaRoom {
    scratch: LaneScratch,
    steps: Vec<Linearised>,
    /// For H_θ, where a channel depends on θ.
    alone: Option<Workspace<f64>>,
    rows: Vec<f64>,
}

impl Smoother<'_> {
    /// Numbers of F_θ, of its unknown rows, and of H_θ, of its unknown channels, at a sample.
    fn theta_width(&self) -> usize {
        let channels = self.stepper.system().unknown_channels().len();
        (self.stepper.rows().len() + channels) * self.theta.len()
    }

    /// The same as far as a pass keeps them: all or nothing.
    pub(super) fn kept_width(&self) -> usize {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let width = self.theta_width();
        let rest = 2 * n * n + 2 * c * n;
        if width <= MOST_KEPT_RATIO * rest {
            width
        } else {
            0
        }
    }

    pub(super) fn theta_room(&self) -> ThetaRoom {
        let system = self.stepper.system();
        ThetaRoom {
            scratch: self.stepper.lane_scratch(),
            steps: vec![self.stepper.linearised(); LANES],
            alone: (!system.unknown_channels().is_empty()).then(|| system.workspace()),
            rows: vec![],
        }
    }

    /// F_θ and H_θ of up to [`LANES`] samples, row by row: those that a pass at the same states and θ has `kept`, or
    /// worked out.
    pub(super) fn rows_by_theta<'r>(
        &self,
        room: &'r mut ThetaRoom,
        states: &Trajectory,
        samples: Range<usize>,
        kept: &'r [f64],
    ) -> &'r [f64] {
        if !kept.is_empty() {
            let width = self.theta_width();
            return &kept[samples.start * width..samples.end * width];
        }
        let ThetaRoom {
            scratch,
            steps,
            alone,
            rows,
        } = room;
        let system = self.stepper.system();
        // nothing leads to the first sample of a record
        let without = usize::from(samples.start == 0);
        steps[0].f_theta.fill(0.0);
        let from = self.departures(states, samples.start + without..samples.end);
        if !from.is_empty() {
            let steps = &mut steps[without..];
            self.stepper.linearise_lanes(scratch, &from, true, steps);
        }
        if let Some(ws) = alone {
            let (n, c) = (system.states(), system.measurements());
            let (mut h, mut h_x) = (vec![0.0; c], vec![0.0; c * n]);
            for (i, step) in samples.clone().zip(steps.iter_mut()) {
                let (at, h_theta) = (self.point(i, states.row(i)), &mut step.h_theta);
                system.linearise_measurement_all(ws, at, &mut h, &mut h_x, h_theta);
            }
        }
        rows.clear();
        for step in &steps[..samples.len()] {
            rows.extend_from_slice(&step.f_theta);
            rows.extend_from_slice(&step.h_theta);
        }
        rows
    }

    /// The means of a forward pass where θ has changed by `increment`: the defects grow by F_θ δθ,
    /// gains and covariances stay.
    #[doc(hidden)]
    pub fn shift(&self, states: &Trajectory, increment: &[f64], pass: &Forward) -> Means {
        let driven = self.driven(states, &[increment], &pass.by_theta);
        self.carried(pass, driven.iter().copied())
    }

    /// F_θ δθ of each sample, of its unknown rows, and H_θ δθ, of its unknown channels; of each increment.
    /// `kept` is what a pass has of F_θ and H_θ.
    pub(crate) fn driven<T: AsRef<[f64]> + Sync>(
        &self,
        states: &Trajectory,
        increments: &[T],
        kept: &[f64],
    ) -> Vec<f64> {
        let channels = self.stepper.system().unknown_channels().len();
        let width = (self.stepper.rows().len() + channels) * increments.len();
        let mut driven = vec![0.0; self.record.len() * width];
        let pieces = driven.par_chunks_mut((PIECE_SAMPLES * width).max(1));
        pieces.enumerate().for_each_init(
            || self.theta_room(),
            |room, (piece, driven)| {
                for (k, driven) in driven.chunks_mut((LANES * width).max(1)).enumerate() {
                    let first = piece * PIECE_SAMPLES + k * LANES;
                    let samples = first..first + driven.len() / width;
                    let rows = self.rows_by_theta(room, states, samples, kept);
                    let rows = rows.chunks_exact(self.theta.len());
                    for (driven, row) in driven.chunks_exact_mut(increments.len()).zip(rows) {
                        for (d, increment) in driven.iter_mut().zip(increments) {
                            *d = dot_long(row, increment.as_ref());
                        }
                    }
                }
            },
        );
        driven
    }

    /// The means of a forward pass whose defects grow in the unknown rows, and whose outputs in the unknown
    /// channels.
    pub(crate) fn carried(&self, pass: &Forward, mut driven: impl Iterator<Item = f64>) -> Means {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let mut means = Means {
            mean: pass.means.mean.clone(),
            innovation: pass.means.innovation.clone(),
        };
        let (mut change, mut moved) = (vec![0.0; n], vec![0.0; n]);
        let (channels, mut seen_by_theta) = (system.unknown_channels(), vec![0.0; c]);
        for i in 0..self.record.len() {
            apply(&pass.f_x[i * n * n..(i + 1) * n * n], &change, &mut moved);
            for (&row, d) in self.stepper.rows().iter().zip(&mut driven) {
                moved[row] += d;
            }
            change.copy_from_slice(&moved);
            for (&channel, d) in channels.iter().zip(&mut driven) {
                seen_by_theta[channel] = d;
            }
            for at in (i * c..(i + 1) * c).filter(|&at| pass.variance[at] > 0.0) {
                let seen = dot(&pass.h[at * n..(at + 1) * n], &change) + seen_by_theta[at % c];
                means.innovation[at] -= seen;
                for (x, k) in change.iter_mut().zip(&pass.gain[at * n..(at + 1) * n]) {
                    *x -= k * seen;
                }
            }
            for (m, x) in means.mean[i * n..(i + 1) * n].iter_mut().zip(&change) {
                *m += x;
            }
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::prior::initial_theta;
    use crate::model::Model;
    use crate::numerics::objective::Noise;
    use crate::numerics::step::Stepper;
    use crate::simulate::{Simulation, simulate};

    /// A velocity that nobody measured, friction that a network has to learn, a sensor with an unknown gain.
    const MODEL: &str = "[time]\nstep = 0.05\nmethod = \"rk4\"\n[unknowns.g]\nguess = 1\n\
        [states.q]\nderivative = \"v\"\nstart = 1\n[states.v]\nderivative = \"-4*q - f(v)\"\nstart = 0\n\
        [networks.f]\nlayers = [\"3 tanh\"]\n[measurements]\ny = \"g*q\"\n\
        [truth]\ng = 1.2\nv = \"-4*q - tanh(v)\"\n[simulation]\nsteps = 300\n";

    /// What an elimination has kept of F_θ and H_θ shifts its means as what is worked out again does, to the last bit.
    #[test]
    fn kept_derivatives_are_those_that_are_worked_out() {
        let model = Model::from_text("friction", MODEL).unwrap();
        let record = simulate(&model, &Simulation::default()).unwrap();
        let states = Trajectory::new(record.truth.clone().unwrap(), 2);
        let stepper = Stepper::over(&model, &model.system, record.step(), [&record]);
        let theta = initial_theta(&model, 1);
        let noise = Noise {
            process: vec![1e-6, 1e-4],
            measurement: vec![1e-4],
            start_mean: states.row(0).to_vec(),
            start: vec![1e-2; 2],
        };
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &theta,
            noise: &noise,
        };
        let (_, mut pass) = smoother.eliminate(&states, 1, 0);
        assert_eq!(pass.by_theta.len(), record.len() * smoother.theta_width());
        let increment: Vec<f64> = (1..=theta.len()).map(|i| 0.1 / i as f64).collect();
        let kept = smoother.shift(&states, &increment, &pass);
        pass.by_theta.clear();
        let again = smoother.shift(&states, &increment, &pass);
        assert_eq!(kept.mean, again.mean);
        assert_eq!(kept.innovation, again.innovation);
    }
}
