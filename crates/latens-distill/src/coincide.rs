//! What a formula says where the records went, and whether another says the same.

use crate::choice::Tried;
use crate::formula::Compiled;
use crate::samples::Target;

/// Formulas that differ by no more than this part of a deviation are the same where the records went.
const DEVIATION_PART: f64 = 0.1;

/// An output at the points of its target.
#[derive(Debug, Clone)]
pub struct Said {
    /// With the constants of the fit.
    pub values: Vec<f64>,
    /// What they may be off by, as the constants are.
    pub std: Vec<f64>,
}

impl Said {
    /// Of a choice that has been fitted again, output by output.
    pub(crate) fn of(tried: &Tried, targets: &[Target]) -> Vec<Self> {
        let unknowns = &tried.fit.model.unknowns;
        let packed = tried.fit.covariance.clone().to_packed();
        let covariance = |i: usize, j: usize| packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
        let pairs = tried.ranked.expressions.iter().zip(targets);
        let said = pairs.map(|(expression, target)| {
            let place = |name: &String| unknowns.iter().position(|u| u.name == *name);
            let places: Option<Vec<usize>> = expression.constants.iter().map(place).collect();
            let places = places.unwrap_or_default();
            let value = |k: &usize| unknowns[*k].value(tried.fit.theta[*k]);
            let constants: Vec<f64> = places.iter().map(value).collect();
            let arguments = target.points.first().map_or(0, Vec::len);
            let compiled = Compiled::new(&[&expression.form], arguments, constants.len());
            let compiled = compiled.expect("it has been compiled before");
            let (values, slopes) = compiled.slopes(&target.points, &constants);
            let by_theta = |k: usize| unknowns[places[k]].slope(tried.fit.theta[places[k]]);
            let variance = |m: usize| {
                let along = |k: usize| slopes[k][m] * by_theta(k);
                let all = 0..places.len();
                let pairs = all.clone().flat_map(|i| all.clone().map(move |j| (i, j)));
                let terms =
                    pairs.map(|(i, j)| along(i) * covariance(places[i], places[j]) * along(j));
                terms.sum::<f64>()
            };
            let std = (0..values.len()).map(|m| variance(m).max(0.0).sqrt());
            Self {
                std: std.collect(),
                values,
            }
        });
        said.collect()
    }
}

/// Whether a formula says what another does, whose deviations count.
pub fn coincide(said: &[Said], other: &[Said]) -> bool {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let same = |(said, other): (&Said, &Said)| {
        let apart = said.values.iter().zip(&other.values).map(|(a, b)| a - b);
        let std = square(&mut other.std.iter().copied());
        square(&mut apart.into_iter()) < DEVIATION_PART * DEVIATION_PART * std
    };
    !said.is_empty() && said.len() == other.len() && said.iter().zip(other).all(same)
}
