//! Euler: x + Δ f(x).

use super::{Integrator, Linearised, Scratch, Stage, SubStep, axpy};
use crate::model::small::set_identity;

pub(super) struct Euler;

impl Integrator for Euler {
    fn is_local(&self) -> bool {
        true
    }

    fn stages(&self) -> &'static [Stage] {
        &[Stage {
            shift: 0.0,
            weight: 1.0,
        }]
    }

    fn advance(&self, at: &SubStep, scratch: &mut Scratch, next: &mut [f64]) {
        let point = at.point(at.time, next, &mut scratch.input);
        let system = at.stepper.system;
        system.derivative(&mut scratch.system, point, &mut scratch.slope);
        axpy(at.dt, &scratch.slope, next);
    }

    fn map(&self, at: &SubStep, scratch: &mut Scratch, with_theta: bool, out: &mut Linearised) {
        if at.stepper.single {
            return in_place(at, scratch, with_theta, out);
        }
        let state = at.at.state;
        at.stepper.slopes(scratch, at, at.time, state, with_theta);
        out.next.copy_from_slice(state);
        axpy(at.dt, &scratch.slope, &mut out.next);
        set_identity(&mut out.f_x, state.len());
        axpy(at.dt, &scratch.jacobian, &mut out.f_x);
        if with_theta {
            for (s, g) in out.f_theta.iter_mut().zip(&scratch.product_theta) {
                *s = at.dt * g;
            }
        }
    }
}

/// Where F_θ has the unknown rows alone, nothing needs to be spread.
fn in_place(at: &SubStep, scratch: &mut Scratch, with_theta: bool, out: &mut Linearised) {
    let (system, dt, n) = (at.stepper.system, at.dt, at.at.state.len());
    let ws = &mut scratch.system;
    if with_theta {
        system.linearise_all(ws, at.at, &mut out.next, &mut out.f_x, &mut out.f_theta);
        out.f_theta.iter_mut().for_each(|v| *v *= dt);
    } else {
        system.linearise(ws, at.at, &mut out.next, &mut out.f_x);
    }
    for i in 0..n {
        out.next[i] = at.at.state[i] + dt * out.next[i];
    }
    out.f_x.iter_mut().for_each(|v| *v *= dt);
    for i in 0..n {
        out.f_x[i * n + i] += 1.0;
    }
}
