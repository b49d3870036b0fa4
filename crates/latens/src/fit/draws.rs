//! Draws of whole trajectories from their posterior, to first order around one that fits.
//!
//! ```text
//! x̂ + (dx̂/dθ) δθ + (x⁺ − x̂⁺)
//! ```
//!
//! δθ is a draw of the parameters, carried through the smoother as for the bands. x⁺ is a path of the
//! linearised equations with noise of its own, and x̂⁺ what the smoother finds from measurements of
//! it: their difference has the covariance that the data leave (Durbin and Koopman 2002), between
//! samples and between states. The mean square of all is that of [`crate::filter::bands`].

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::predict::Predictor;
use crate::filter::Innovation;
use crate::filter::bands::DRAWS;
use crate::filter::pass::{Correction, Forward, Means};
use crate::filter::smoother::Smoother;
use crate::model::small::{apply, dot};
use crate::numerics::Trajectory;
use crate::numerics::step::Stepper;
use crate::record::Record;

impl Smoother<'_> {
    /// Trajectories, one for each draw of δθ; the same for the same draws. An empty draw is θ itself.
    pub fn draws(&self, states: &Trajectory, draws: &[Vec<f64>]) -> Vec<Trajectory> {
        let pass = self.forward(states);
        let still = self.backward(&pass, &pass.means);
        let trajectory = |(k, draw): (usize, &Vec<f64>)| {
            let mut drawn = self.scatter(&pass, k as u64 + 1);
            if !draw.is_empty() {
                let moved = self.backward(&pass, &self.shift(states, draw, &pass));
                let pairs = moved.as_slice().iter().zip(still.as_slice());
                for (d, (moved, still)) in drawn.iter_mut().zip(pairs) {
                    *d += moved - still;
                }
            }
            let pairs = drawn.iter_mut().zip(states.as_slice());
            pairs.for_each(|(d, x)| *d += x);
            Trajectory::new(drawn, states.width())
        };
        draws.par_iter().enumerate().map(trajectory).collect()
    }

    /// x⁺ − x̂⁺.
    fn scatter(&self, pass: &Forward, seed: u64) -> Vec<f64> {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut normal = |variance: f64| {
            let z: f64 = StandardNormal.sample(&mut rng);
            z * variance.sqrt()
        };
        let samples = self.record.len();
        let mut paths = Vec::with_capacity(samples * n);
        let mut means = Means::zero(samples, n, c);
        let (mut path, mut filtered, mut moved) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for i in 0..samples {
            if i == 0 {
                let start = self.noise.start.iter();
                path.iter_mut()
                    .zip(start)
                    .for_each(|(x, p)| *x = normal(*p));
            } else {
                let f_x = pass.step(i, n);
                let span = self.stepper.span(self.record.gap(i - 1));
                apply(f_x, &path, &mut moved);
                for (x, (f, q)) in path.iter_mut().zip(moved.iter().zip(&self.noise.process)) {
                    *x = f + normal(q * span.samples);
                }
                apply(f_x, &filtered, &mut moved);
                filtered.copy_from_slice(&moved);
            }
            for k in 0..c {
                let Correction {
                    h,
                    gain,
                    innovation: Innovation { variance, .. },
                } = pass.correction(i * c + k, n);
                if variance > 0.0 {
                    let measured = dot(h, &path) + normal(self.noise.measurement[k]);
                    let innovation = measured - dot(h, &filtered);
                    filtered
                        .iter_mut()
                        .zip(gain)
                        .for_each(|(x, g)| *x += g * innovation);
                    means.innovation[i * c + k] = innovation;
                }
            }
            means.mean[i * n..(i + 1) * n].copy_from_slice(&filtered);
            paths.extend_from_slice(&path);
        }
        let means = self.backward(pass, &means);
        paths
            .iter()
            .zip(means.as_slice())
            .map(|(x, mean)| x - mean)
            .collect()
    }
}

impl Predictor<'_> {
    /// Trajectories of a record that was learned from, around its smoothed states; where the solver drew
    /// no δθ, with θ as it is.
    pub fn draws(&self, record: &Record, states: &Trajectory) -> Vec<Trajectory> {
        let stepper = Stepper::over(self.model, &self.model.system, self.dt, [record]);
        let noise = self.noise.inflated(&stepper, self.variance_inflation);
        let noise = self.open_start(record, &noise);
        let smoother = self.smoother(&stepper, record, &noise);
        if self.draws.is_empty() {
            smoother.draws(states, &vec![vec![]; DRAWS])
        } else {
            smoother.draws(states, self.draws)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::Smoother;
    use crate::model::Model;
    use crate::model::small;
    use crate::numerics::Trajectory;
    use crate::numerics::linalg::matrix::Matrix;
    use crate::numerics::objective::Noise;
    use crate::numerics::step::Stepper;
    use crate::record::Record;

    /// A random walk seen with gaps: the covariance of the draws, between samples too, is the inverse of
    /// the Hessian of the objective.
    #[test]
    fn draws_have_the_covariance_that_the_data_leave() {
        let text =
            "[time]\nstep = 1\n[states.x]\nderivative = \"-0.2*x\"\n[measurements]\ny = \"x\"\n";
        let model = Model::from_text("walk", text).unwrap();
        let (start, q, r) = (2.0, 0.5, 0.3);
        let outputs = vec![1.0, f64::NAN, 0.4, f64::NAN, -0.3];
        let count = outputs.len();
        let record = Record {
            name: "walk".into(),
            time: (0..count).map(|k| k as f64).collect(),
            inputs: vec![],
            outputs: outputs.clone(),
            truth: None,
            d_u: 0,
            d_y: 1,
            d_x: 1,
            later: false,
        };
        let noise = Noise {
            process: vec![q],
            measurement: vec![r],
            start: vec![start],
            start_mean: vec![0.0],
        };
        let mut hessian = Matrix::zeros(count, count);
        hessian[(0, 0)] = 1.0 / start;
        for i in 0..count {
            if !outputs[i].is_nan() {
                hessian[(i, i)] += 1.0 / r;
            }
            if i > 0 {
                hessian[(i, i)] += 1.0 / q;
                hessian[(i - 1, i - 1)] += 0.8 * 0.8 / q;
                hessian[(i, i - 1)] -= 0.8 / q;
                hessian[(i - 1, i)] -= 0.8 / q;
            }
        }
        let mut inverse = small::identity(count);
        small::solve(hessian.data_mut(), &mut inverse, count).unwrap();
        let covariance = Matrix::from_fn(count, count, |i, j| inverse[i * count + j]);

        let stepper = Stepper::new(&model, &model.system, 1.0);
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &[],
            noise: &noise,
        };
        let states = smoother.minimise(Trajectory::filled(0.0, count, 1), 5).0;
        let draws = smoother.draws(&states, &vec![vec![]; 20_000]);
        for i in 0..count {
            let mean = draws.iter().map(|d| d.row(i)[0]).sum::<f64>() / draws.len() as f64;
            assert!((mean - states.row(i)[0]).abs() < 0.02);
            for j in 0..count {
                let apart = |d: &Trajectory, k: usize| d.row(k)[0] - states.row(k)[0];
                let product = |d: &Trajectory| apart(d, i) * apart(d, j);
                let product_mean = draws.iter().map(product).sum::<f64>() / draws.len() as f64;
                let size = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
                assert!(
                    (product_mean - covariance[(i, j)]).abs() < 0.04 * size,
                    "{i} {j} {product_mean}"
                );
            }
        }
    }
}
