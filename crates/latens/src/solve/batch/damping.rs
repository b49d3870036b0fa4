//! Levenberg–Marquardt damping: how far a Newton step of θ may go.
//!
//! The damped system is A + P⁻¹ + λ(ā I + P⁻¹), with ā the mean of A's diagonal: a trust region
//! in the units of the weights, which are of order one. (Damping by A's own diagonal holds back
//! the very directions that the data know best; on yeast it ends at nine times the cost.) λ
//! follows the gain ratio as in Nielsen, *Damping parameter in Marquardt's method* (1999).

use serde::{Deserialize, Serialize};

use crate::numerics::linalg::normal::{Factor, NormalEquations};
use crate::solve::bytes::kept;

/// λ is given up on above this.
const LARGEST_DAMPING: f64 = 1e10;
const SMALLEST_DAMPING: f64 = 1e-14;
/// λ stays so many times above one that was refused lately.
const REFUSED_DAMPING_FACTOR: f64 = 2.0;

/// λ and how it grows while steps fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Damping {
    pub(super) value: f64,
    growth: f64,
    /// The λ at which a step was refused last, and less with every step since.
    #[serde(default)]
    refused: f64,
}

kept!(Damping {
    value,
    growth,
    refused
});

impl Default for Damping {
    fn default() -> Self {
        Self {
            value: 1.0,
            growth: 2.0,
            refused: 0.0,
        }
    }
}

impl Damping {
    /// λ, the factor by which it grows next, and the λ that was refused.
    pub(crate) fn numbers(&self) -> [f64; 3] {
        [self.value, self.growth, self.refused]
    }

    /// ā I + P⁻¹.
    fn scale(equations: &NormalEquations, prior: &[f64]) -> Vec<f64> {
        let diagonal = equations.diagonal();
        let mean = diagonal.iter().sum::<f64>() / diagonal.len() as f64;
        prior.iter().map(|p| mean + 1.0 / p).collect()
    }

    /// Factors of the damped system, λ raised until it has any; `None` where λ is at its end.
    pub fn factor(&mut self, equations: &NormalEquations, prior: &[f64]) -> Option<Factor> {
        let scale = Self::scale(equations, prior);
        while self.value < LARGEST_DAMPING {
            let shift: Vec<f64> = prior
                .iter()
                .zip(&scale)
                .map(|(p, s)| 1.0 / p + self.value * s)
                .collect();
            if let Some(factor) = equations.factor(&shift) {
                return Some(factor);
            }
            self.raise();
        }
        None
    }

    /// The length of a step in the units of the trust region.
    pub fn length(equations: &NormalEquations, prior: &[f64], step: &[f64]) -> f64 {
        let scale = Self::scale(equations, prior);
        let squares = step.iter().zip(&scale).map(|(d, s)| s * d * d);
        squares.sum::<f64>().sqrt()
    }

    /// By how much the quadratic model falls along a damped step: ½ δᵀ(g + λ D δ).
    pub fn predicted(
        &self,
        equations: &NormalEquations,
        prior: &[f64],
        step: &[f64],
        gradient: &[f64],
    ) -> f64 {
        let scale = Self::scale(equations, prior);
        let entries = step.iter().zip(gradient).zip(&scale);
        0.5 * entries
            .map(|((d, g), s)| d * (g + self.value * s * d))
            .sum::<f64>()
    }

    /// Whether a step is taken that lowered the objective by `decrease` where the model said
    /// `predicted`; λ follows.
    pub fn accept(&mut self, decrease: f64, predicted: f64) -> bool {
        if decrease.is_nan() || decrease <= 0.0 {
            self.raise();
            return false;
        }
        // a fall where the model said rise says as little for the model as a ratio of 0
        let ratio = (decrease / predicted).clamp(0.0, 1.0);
        let least = if ratio > 0.75 { 0.1 } else { 1.0 / 3.0 };
        self.value =
            (self.value * (1.0 - (2.0 * ratio - 1.0).powi(3)).max(least)).max(SMALLEST_DAMPING);
        self.growth = 2.0;
        self.refused *= 0.5;
        true
    }

    /// After a step that was taken at `before`: how far equations bend along a step goes with 1/λ, so
    /// that λ falls by no more than `factor`, nor soon to where a step was refused.
    pub fn hold(&mut self, before: f64, factor: f64) {
        let least = (factor.min(1.0) * before).max(REFUSED_DAMPING_FACTOR * self.refused);
        self.value = self.value.max(least);
    }

    /// λ is so large that a step comes to nothing; `false` where that is not the reason.
    pub fn lower(&mut self) -> bool {
        let lowers = self.value > SMALLEST_DAMPING;
        self.value = (0.1 * self.value).max(SMALLEST_DAMPING);
        lowers
    }

    /// λ is too small by a factor.
    pub fn enlarge(&mut self, factor: f64) {
        self.refused = self.value;
        self.value *= factor;
    }

    /// For a new objective: that steps failed on the last one says nothing about it.
    pub fn restart(&mut self) {
        self.value = self.value.min(Self::default().value);
        self.growth = Self::default().growth;
        self.refused = 0.0;
    }

    fn raise(&mut self) {
        self.refused = self.value;
        self.value *= self.growth;
        self.growth *= 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::small::{apply, dot};
    use crate::numerics::linalg::normal;

    /// Where the model is right, λ falls tenfold; half right leaves it; barely right doubles it; a
    /// fall where the model said rise is luck, and doubles it too.
    #[test]
    fn damping_follows_the_gain_ratio() {
        for (decrease, predicted, factor) in [
            (1.0, 1.0, 0.1),
            (5.0, 1.0, 0.1),
            (0.5, 1.0, 1.0),
            (1e-9, 1.0, 2.0),
            (1.0, -1e-6, 2.0),
        ] {
            let mut damping = Damping::default();
            assert!(damping.accept(decrease, predicted));
            assert!((damping.value / factor - 1.0).abs() < 1e-6, "{damping:?}");
        }
        let mut damping = Damping::default();
        for _ in 0..100 {
            damping.accept(1.0, 1.0);
        }
        assert_eq!(damping.value, SMALLEST_DAMPING, "it can always grow again");
    }

    /// Refused steps raise λ by 2, 4, 8, …, until one is taken; what is not a number is refused.
    #[test]
    fn refused_steps_raise_it_faster_and_faster() {
        let mut damping = Damping::default();
        for (decrease, expected) in [(-1.0, 2.0), (0.0, 8.0), (f64::NAN, 64.0)] {
            assert!(!damping.accept(decrease, 1.0));
            assert_eq!(damping.value, expected);
        }
        assert!(damping.accept(0.5, 1.0));
        assert!(!damping.accept(f64::NEG_INFINITY, 1.0));
        assert_eq!(damping.value, 128.0, "growth starts again at 2");
    }

    /// The predicted decrease is that of gᵀδ − ½ δᵀ(A + P⁻¹)δ along the damped step, with A summed
    /// plainly.
    #[test]
    fn prediction_is_the_quadratic_model() {
        let (n, prior) = (3, [0.5, 1.0, 2.0]);
        let mut equations = NormalEquations::new(n, 1);
        let mut a = vec![0.0; n * n];
        for k in 0..7 {
            let row: Vec<f64> = (0..n).map(|i| ((k * n + i) as f64).powi(2).sin()).collect();
            equations.push(k, &row, &[f64::from(k as u32).cos()]);
            for i in 0..n {
                for j in 0..n {
                    a[i * n + j] += row[i] * row[j];
                }
            }
        }
        equations.flush();
        for (i, p) in prior.iter().enumerate() {
            a[i * n + i] += 1.0 / p;
        }
        for value in [1e-6, 0.3, 10.0] {
            let mut damping = Damping {
                value,
                ..Damping::default()
            };
            let factor = damping.factor(&equations, &prior).unwrap();
            let step = normal::solve(&factor, &equations.b);
            let mut curved = vec![0.0; n];
            apply(&a, &step, &mut curved);
            let expected = dot(&equations.b, &step) - 0.5 * dot(&step, &curved);
            let predicted = damping.predicted(&equations, &prior, &step, &equations.b);
            assert!(expected > 0.0 && (predicted / expected - 1.0).abs() < 1e-12);
        }
    }
}
