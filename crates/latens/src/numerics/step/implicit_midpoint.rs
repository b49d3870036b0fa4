//! The implicit midpoint rule, x⁺ = x + Δ f((x + x⁺)/2): of second order and A-stable. It keeps every
//! quadratic invariant and the area of phase space, and so damps no oscillation; nor does it damp what is
//! much faster than the step, which changes its sign from step to step instead.

use super::diagonally_implicit::{Estimate, Tableau};
use super::{Integrator, Linearised, Scratch, SubStep};
use crate::model::small::set_identity;

static TABLEAU: Tableau = Tableau {
    gamma: 0.5,
    nodes: &[0.5],
    lower: &[&[]],
    weights: &[2.0],
    error: Estimate::Halves,
};

pub(super) struct ImplicitMidpoint;

impl Integrator for ImplicitMidpoint {
    fn tableau(&self) -> Option<&'static Tableau> {
        Some(&TABLEAU)
    }

    fn advance(&self, at: &SubStep, scratch: &mut Scratch, next: &mut [f64]) {
        TABLEAU.advance(at, scratch, next);
    }

    fn map(&self, at: &SubStep, scratch: &mut Scratch, with_theta: bool, out: &mut Linearised) {
        out.next.copy_from_slice(at.at.state);
        set_identity(&mut out.f_x, at.at.state.len());
        out.f_theta.fill(0.0);
        self.linearise(at, scratch, with_theta, out);
    }

    fn linearise(
        &self,
        at: &SubStep,
        scratch: &mut Scratch,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        TABLEAU.linearise(at, scratch, with_theta, out);
    }
}
