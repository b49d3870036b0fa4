//! Semi-implicit (symplectic) Euler: one state after another from the last to the first, each with the
//! states already advanced; with positions declared before velocities it is the usual
//! v ← v + Δ a(q, v), q ← q + Δ v.

use super::{Integrator, Linearised, Scratch, SubStep, axpy};
use crate::model::small::set_identity;

pub(super) struct SemiImplicitEuler;

impl Integrator for SemiImplicitEuler {
    fn advance(&self, at: &SubStep, scratch: &mut Scratch, next: &mut [f64]) {
        let system = at.stepper.system;
        for r in (0..next.len()).rev() {
            let point = at.point(at.time, next, &mut scratch.input);
            system.derivative(&mut scratch.system, point, &mut scratch.slope);
            next[r] += at.dt * scratch.slope[r];
        }
    }

    fn map(&self, at: &SubStep, scratch: &mut Scratch, with_theta: bool, out: &mut Linearised) {
        out.next.copy_from_slice(at.at.state);
        set_identity(&mut out.f_x, at.at.state.len());
        out.f_theta.fill(0.0);
        self.linearise(at, scratch, with_theta, out);
    }

    /// In place: row r of F ← row r + Δ Σ_j f_x[r, j] row j, from the derivative of the mixed state.
    fn linearise(
        &self,
        at: &SubStep,
        scratch: &mut Scratch,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let (stepper, dt) = (at.stepper, at.dt);
        let (n, p) = (out.next.len(), stepper.system.parameters());
        for r in (0..n).rev() {
            stepper.slopes(scratch, at, at.time, &out.next, with_theta);
            out.next[r] += dt * scratch.slope[r];
            scratch.product_x[..n].copy_from_slice(&out.f_x[r * n..(r + 1) * n]);
            for j in 0..n {
                let factor = dt * scratch.jacobian[r * n + j];
                if factor != 0.0 {
                    let row = &out.f_x[j * n..(j + 1) * n];
                    axpy(factor, row, &mut scratch.product_x[..n]);
                }
            }
            out.f_x[r * n..(r + 1) * n].copy_from_slice(&scratch.product_x[..n]);
            let row = stepper.rows.iter().position(|&s| s == r);
            let Some(row) = row.filter(|_| with_theta) else {
                continue;
            };
            let gradient = &mut scratch.k_theta[..p];
            gradient.copy_from_slice(&out.f_theta[row * p..(row + 1) * p]);
            axpy(dt, &scratch.product_theta[row * p..(row + 1) * p], gradient);
            for (s, &column) in stepper.rows.iter().enumerate() {
                let factor = dt * scratch.jacobian[r * n + column];
                if factor != 0.0 {
                    axpy(factor, &out.f_theta[s * p..(s + 1) * p], gradient);
                }
            }
            out.f_theta[row * p..(row + 1) * p].copy_from_slice(gradient);
        }
    }
}
