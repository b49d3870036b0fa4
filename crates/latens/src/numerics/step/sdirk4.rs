//! SDIRK4: the diagonally implicit method of fourth order of Hairer and Wanner (Solving Ordinary
//! Differential Equations II, table 6.5). It is L-stable and ends in its last stage, so that what decays
//! faster than the step is gone after it; every stage is damped as well, which matters for a filter: its
//! states are never quite where fast equations would have them.

use super::diagonally_implicit::{Estimate, Tableau};
use super::{Integrator, Linearised, Scratch, SubStep};
use crate::model::small::set_identity;

static TABLEAU: Tableau = Tableau {
    gamma: 0.25,
    nodes: &[0.25, 0.75, 0.55, 0.5, 1.0],
    lower: &[
        &[],
        &[2.0],
        &[34.0 / 25.0, -4.0 / 25.0],
        &[371.0 / 340.0, -137.0 / 680.0, 15.0 / 136.0],
        &[25.0 / 6.0, -49.0 / 12.0, 125.0 / 4.0, -85.0 / 3.0],
    ],
    weights: &[25.0 / 6.0, -49.0 / 12.0, 125.0 / 4.0, -85.0 / 3.0, 1.0],
    error: Estimate::Embedded(&[-3.0 / 4.0, -27.0 / 8.0, 25.0 / 8.0, 0.0, 1.0]),
};

pub(super) struct Sdirk4;

impl Integrator for Sdirk4 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions of order four for the step, and of order three for the method inside of it.
    #[test]
    fn the_coefficients_are_of_fourth_order() {
        let g = TABLEAU.gamma;
        let s = TABLEAU.nodes.len();
        let a = |i: usize, j: usize| match (j == i, TABLEAU.lower[i].get(j)) {
            (true, _) => g,
            (false, Some(entry)) => g * entry,
            _ => 0.0,
        };
        let Estimate::Embedded(error) = TABLEAU.error else {
            panic!("it has an embedded method");
        };
        let c = TABLEAU.nodes;
        for (i, c) in c.iter().enumerate() {
            let sum: f64 = (0..s).map(|j| a(i, j)).sum();
            assert!((sum - c).abs() < 1e-14, "row {i}: {sum} against {c}");
        }
        let apply = |v: &[f64]| -> Vec<f64> {
            (0..s).map(|i| (0..s).map(|j| a(i, j) * v[j]).sum()).collect()
        };
        let times = |u: &[f64], v: &[f64]| -> Vec<f64> {
            u.iter().zip(v).map(|(u, v)| u * v).collect()
        };
        let ones = vec![1.0; s];
        let c2 = times(c, c);
        let ac = apply(c);
        let third = [(ones, 1.0), (c.to_vec(), 0.5), (c2.clone(), 1.0 / 3.0), (ac.clone(), 1.0 / 6.0)];
        let fourth = [
            (times(&c2, c), 0.25),
            (times(c, &ac), 0.125),
            (apply(&c2), 1.0 / 12.0),
            (apply(&ac), 1.0 / 24.0),
        ];
        let sum = |b: &[f64], v: &[f64]| -> f64 { b.iter().zip(v).map(|(b, v)| g * b * v).sum() };
        for (v, expected) in third.iter().chain(&fourth) {
            assert!((sum(TABLEAU.weights, v) - expected).abs() < 1e-14);
        }
        for (v, _) in &third {
            assert!(sum(error, v).abs() < 1e-14);
        }
        assert!(fourth.iter().any(|(v, _)| sum(error, v).abs() > 1e-3));
    }
}
