//! A model with its oracle at random points, and how far the two are apart.

use latens_model::network::Scaling;
use latens_model::{Model, Point};
use num_dual::Dual64;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{At, Oracle, Variant};

const TOLERANCE: f64 = 1e-10;
/// Parameters looked at in a network that has more.
pub const SAMPLED_PARAMETERS: usize = 60;

/// What the six model files do not use.
pub const EVERYTHING: &str = include_str!("everything.toml");

/// The texts of the model files that come with Latens.
pub fn model_files() -> Vec<String> {
    let systems = latens_model::systems::SYSTEMS.iter();
    systems.map(|(_, text)| (*text).into()).collect()
}

/// The largest relative deviation seen, and the check itself.
#[derive(Default)]
pub struct Deviation(pub f64);

impl Deviation {
    /// Entries far below the row's largest are measured against 1e-4 of that: they are sums in
    /// which terms of the row's size cancel.
    pub fn compare(&mut self, label: &str, compiled: &[f64], oracle: &[f64]) {
        assert_eq!(compiled.len(), oracle.len(), "{label}");
        let largest = oracle.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for (i, (c, o)) in compiled.iter().zip(oracle).enumerate() {
            assert!(
                c.is_finite() && o.is_finite(),
                "{label}[{i}]: {c} against {o}"
            );
            if c != o {
                let relative = (c - o).abs() / c.abs().max(o.abs()).max(1e-4 * largest);
                assert!(
                    relative < TOLERANCE,
                    "{label}[{i}]: {c} against {o} ({relative:.1e})"
                );
                self.0 = self.0.max(relative);
            }
        }
    }
}

/// A model, scaled at random, with its oracle.
pub struct Case {
    pub model: Model,
    pub learned: Oracle,
    pub truth: Option<Oracle>,
    rng: Pcg64,
}

impl Case {
    pub fn new(text: &str, seed: u64) -> Self {
        let mut model = Model::from_text("model.toml", text).unwrap_or_else(|e| panic!("{e}"));
        let mut rng = Pcg64::seed_from_u64(seed);
        // centres and scales near the arguments at the start keep the networks out of saturation
        let state: Vec<f64> = model
            .states
            .iter()
            .map(|s| s.start.unwrap_or(0.5))
            .collect();
        let input = vec![1.0; model.inputs.len()];
        let theta = vec![0.0; model.system.parameters()];
        let point = Point {
            time: 0.0,
            state: &state,
            input: &input,
            theta: &theta,
        };
        let mut scaling = Vec::new();
        for n in 0..model.system.networks().len() {
            let (mut center, outputs) = (vec![], model.system.networks()[n].outputs.len());
            let mut ws = model.system.workspace();
            model.system.visit_arguments(&mut ws, point, |m, values| {
                if m == n {
                    center = values.to_vec();
                }
            });
            let scale = center
                .iter()
                .map(|c| rng.random_range(0.5..2.0) * (1.0 + c.abs()));
            let scale: Vec<f64> = scale.collect();
            let shift = |(c, s): (&f64, &f64)| c + s * rng.random_range(-0.5..0.5);
            let center = center.iter().zip(&scale).map(shift).collect();
            let output = (0..outputs).map(|_| rng.random_range(0.2..3.0)).collect();
            scaling.push(Scaling {
                center,
                scale,
                output,
            });
            model.system.set_scaling(n, scaling[n].clone());
        }
        let truth = model
            .truth
            .is_some()
            .then(|| Oracle::new(text, Variant::Truth, vec![]));
        let learned = Oracle::new(text, Variant::Learned, scaling);
        Self {
            model,
            learned,
            truth,
            rng,
        }
    }

    pub fn random_point(&mut self) -> At<f64> {
        let (rng, model) = (&mut self.rng, &self.model);
        let near =
            |v: f64, rng: &mut Pcg64| v + (0.1 + 0.25 * v.abs()) * rng.random_range(-1.0..1.0);
        At {
            time: rng.random_range(-2.0..3.0),
            state: model
                .states
                .iter()
                .map(|s| near(s.start.unwrap_or(0.5), rng))
                .collect(),
            input: model
                .inputs
                .iter()
                .map(|_| rng.random_range(-2.0..2.0))
                .collect(),
            theta: (0..model.system.parameters())
                .map(|_| rng.random_range(-0.8..0.8))
                .collect(),
        }
    }

    pub fn random_parameters(&mut self) -> Vec<usize> {
        let p = self.model.system.parameters();
        if p <= SAMPLED_PARAMETERS {
            return (0..p).collect();
        }
        // unknown constants always, and weights of every kind
        let unknowns = self.model.unknowns.len();
        let mut chosen: Vec<usize> = (0..unknowns).collect();
        chosen.extend((unknowns..SAMPLED_PARAMETERS).map(|_| self.rng.random_range(unknowns..p)));
        chosen
    }
}

/// Rows of ∂(rows)/∂(variable) from columns of dual numbers.
pub fn transposed(columns: &[Vec<Dual64>]) -> Vec<Vec<f64>> {
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows)
        .map(|i| columns.iter().map(|c| c[i].eps).collect())
        .collect()
}
