//! What the measurements of a window say about its first state, by themselves.
//!
//! The observability Gramian [H; H F_x; …]ᵀ R⁻¹ [H; H F_x; …], less what process noise takes from
//! it on the way:
//!
//! ```text
//! back through a channel: Λ ← Λ + HᵀH/r;  back through a step: Λ ← F_xᵀ (Λ⁻¹ + Q)⁻¹ F_x
//! ```
//!
//! No prior enters: what is not seen has no information.

use super::pass::Forward;
use super::smoother::Smoother;
use crate::model::small::{sandwich, transpose};

impl Smoother<'_> {
    /// The Gramian of a window of a forward pass; `variance` stands in for R_y.
    pub(crate) fn gramian(
        &self,
        forward: &Forward,
        window: std::ops::Range<usize>,
        variance: &[f64],
    ) -> Vec<f64> {
        let (n, c) = (self.stepper.system().states(), variance.len());
        let (mut lambda, mut scratch) = (vec![0.0; n * n], vec![0.0; n * n]);
        let mut column = vec![0.0; n];
        for i in window.clone().rev() {
            for (k, r) in variance.iter().enumerate() {
                let at = i * c + k;
                if forward.variance[at] > 0.0 {
                    let h = &forward.h[at * n..(at + 1) * n];
                    rank_one(&mut lambda, h, 1.0 / r);
                }
            }
            if i > window.start {
                // (Λ⁻¹ + Q)⁻¹ without an inverse, one diagonal entry of Q after another
                let samples = self.stepper.span(self.record.gap(i - 1)).samples;
                for (j, q) in self.noise.process.iter().enumerate() {
                    let q = q * samples;
                    column.copy_from_slice(&lambda[j * n..(j + 1) * n]);
                    let factor = -q / (1.0 + q * column[j]);
                    rank_one(&mut lambda, &column, factor);
                }
                let f_t = transpose(&forward.f_x[i * n * n..(i + 1) * n * n], n, n);
                sandwich(&f_t, &mut lambda, &mut scratch, n);
            }
        }
        lambda
    }
}

/// A ← A + factor·v vᵀ.
fn rank_one(a: &mut [f64], v: &[f64], factor: f64) {
    for (row, x) in a.chunks_exact_mut(v.len()).zip(v) {
        let scaled = factor * x;
        if scaled != 0.0 {
            row.iter_mut().zip(v).for_each(|(a, y)| *a += scaled * y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::model::small::{identity, solve};
    use crate::numerics::Trajectory;
    use crate::numerics::objective::Noise;
    use crate::numerics::step::Stepper;
    use crate::simulate::{Simulation, simulate};
    use crate::systems;

    /// With a prior of the first state the Gramian of a whole record gives that state's smoothed
    /// covariance, (P_x0⁻¹ + W)⁻¹, gaps and process noise included.
    #[test]
    fn the_gramian_is_what_a_record_says_about_its_first_state() {
        let text = systems::find("yeast-glycolysis").unwrap();
        let model = Model::from_text("yeast", text).unwrap();
        let steps = Some(300);
        let simulation = Simulation {
            steps,
            ..Simulation::default()
        };
        let mut record = simulate(&model, &simulation).unwrap();
        (0..record.outputs.len())
            .filter(|k| k % 11 == 3)
            .for_each(|k| record.outputs[k] = f64::NAN);
        let states = Trajectory::new(record.truth.clone().unwrap(), record.d_x);
        let (n, c) = (model.states.len(), model.measurements.len());
        let noise = Noise {
            process: (0..n).map(|i| 1e-6 * (1 + i) as f64).collect(),
            measurement: (0..c).map(|k| 1e-4 * (1 + k) as f64).collect(),
            start_mean: states.row(0).to_vec(),
            start: vec![0.1; n],
        };
        let theta = vec![0.0; model.system.parameters()];
        let stepper = Stepper::new(&model, &model.system, record.step());
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &theta,
            noise: &noise,
        };
        let pass = smoother.forward(&states);
        let mut information = smoother.gramian(&pass, 0..record.len(), &noise.measurement);
        (0..n).for_each(|i| information[i * n + i] += 1.0 / noise.start[i]);
        let mut expected = identity(n);
        solve(&mut information, &mut expected, n).unwrap();
        let mut first = vec![];
        smoother.covariances(&pass, |i, covariance| {
            if i == 0 {
                first = covariance.to_vec();
            }
        });
        for (variance, expected) in first.iter().zip(&expected) {
            assert!((variance - expected).abs() < 1e-9, "{variance} {expected}");
        }
        // x4 is hidden and seen, so the prior does not decide
        assert!(first[3 * n + 3] < 0.5 * noise.start[3]);
    }
}
