//! RK4: the classical Runge–Kutta scheme,
//!
//! ```text
//! k_j = f(x + a_j Δ k_{j−1}):  dk_j = f_x (I + a_j Δ dk_{j−1}),  dk_j/dθ = f_θ + f_x a_j Δ dk_{j−1}/dθ
//! ```

use super::{Integrator, Linearised, Scratch, Stage, SubStep, axpy};
use crate::model::small::{multiply, set_identity};

const STAGES: [Stage; 4] = [
    Stage {
        shift: 0.0,
        weight: 1.0 / 6.0,
    },
    Stage {
        shift: 0.5,
        weight: 1.0 / 3.0,
    },
    Stage {
        shift: 0.5,
        weight: 1.0 / 3.0,
    },
    Stage {
        shift: 1.0,
        weight: 1.0 / 6.0,
    },
];

pub(super) struct Rk4;

/// The stage's state: x + a Δ k.
fn set_stage(stage: &mut [f64], state: &[f64], slope: &[f64], length: f64) {
    for (s, (x, k)) in stage.iter_mut().zip(state.iter().zip(slope)) {
        *s = x + length * k;
    }
}

impl Integrator for Rk4 {
    fn stages(&self) -> &'static [Stage] {
        &STAGES
    }

    fn advance(&self, at: &SubStep, scratch: &mut Scratch, next: &mut [f64]) {
        let (system, dt) = (at.stepper.system, at.dt);
        scratch.stage.copy_from_slice(next);
        scratch.sum.copy_from_slice(next);
        for Stage { shift, weight } in STAGES {
            if shift > 0.0 {
                set_stage(&mut scratch.stage, next, &scratch.slope, shift * dt);
            }
            let time = at.time + shift * dt;
            let point = at.point(time, &scratch.stage, &mut scratch.input);
            system.derivative(&mut scratch.system, point, &mut scratch.slope);
            axpy(weight * dt, &scratch.slope, &mut scratch.sum);
        }
        next.copy_from_slice(&scratch.sum);
    }

    fn map(&self, at: &SubStep, scratch: &mut Scratch, with_theta: bool, out: &mut Linearised) {
        let (stepper, state, dt) = (at.stepper, at.at.state, at.dt);
        let n = state.len();
        out.next.copy_from_slice(state);
        set_identity(&mut out.f_x, n);
        out.f_theta.fill(0.0);
        scratch.stage.copy_from_slice(state);
        for Stage { shift, weight } in STAGES {
            if shift > 0.0 {
                set_stage(&mut scratch.stage, state, &scratch.slope, shift * dt);
            }
            let stage = std::mem::take(&mut scratch.stage);
            stepper.slopes(scratch, at, at.time + shift * dt, &stage, with_theta);
            scratch.stage = stage;
            // product ← f_x dx with dx = I + a Δ dk
            if shift > 0.0 {
                scratch.k_x.iter_mut().for_each(|v| *v *= shift * dt);
                if with_theta {
                    scratch.k_theta.iter_mut().for_each(|v| *v *= shift * dt);
                }
                for i in 0..n {
                    scratch.k_x[i * n + i] += 1.0;
                }
                let (jacobian, product) = (&scratch.jacobian, &mut scratch.product_x);
                multiply(jacobian, &scratch.k_x, product, n, n);
                if with_theta {
                    let (k, product) = (&scratch.k_theta, &mut scratch.product_theta);
                    stepper.chain(jacobian, k, product);
                }
                std::mem::swap(&mut scratch.k_x, &mut scratch.product_x);
            } else {
                scratch.k_x.copy_from_slice(&scratch.jacobian);
            }
            std::mem::swap(&mut scratch.k_theta, &mut scratch.product_theta);
            axpy(weight * dt, &scratch.slope, &mut out.next);
            axpy(weight * dt, &scratch.k_x, &mut out.f_x);
            if with_theta {
                axpy(weight * dt, &scratch.k_theta, &mut out.f_theta);
            }
        }
    }
}
