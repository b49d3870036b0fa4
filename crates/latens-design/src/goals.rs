//! What is to be known better, and how much of its uncertainty an experiment would leave.

use latens::fit::predict::{Predictor, Start};
use latens::look::region;
use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::matrix::Matrix;
use latens::{Error, Record};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use crate::information::{Posterior, variances};
use crate::plan::Run;
use crate::{GoalNow, Looked, Options};

/// Points at which a function is to be known: of those that the experiments meet, and of those that training met.
const AHEAD_POINTS: usize = 200;
const MET_POINTS: usize = 100;
/// Draws of δθ that make the bands of a prediction.
const DRAWS: usize = 64;

/// Quantities with their derivatives by θ, multiplied by the root of the posterior.
struct Goal {
    now: GoalNow,
    reduced: Matrix,
}

impl Goal {
    /// Root mean square of the deviations.
    fn size(&self, after: Option<&Factor>) -> f64 {
        let variances = variances(&self.reduced, after);
        (variances.iter().sum::<f64>() / variances.len().max(1) as f64).sqrt()
    }
}

/// The free run of a record, with draws that are normal of variance one.
struct Ahead<'g> {
    record: &'g Record,
    normal: Vec<Vec<f64>>,
    now: f64,
}

/// All that is to be known better.
pub struct Goals<'g> {
    posterior: &'g Posterior<'g>,
    goals: Vec<Goal>,
    ahead: Option<Ahead<'g>>,
    by_formulas: bool,
    by_constants: bool,
}

impl<'g> Goals<'g> {
    /// Functions where the experiments and the records go, the constants that are named (all where there is no
    /// network), and a prediction.
    pub fn new(
        posterior: &'g Posterior<'g>,
        options: &'g Options,
        runs: &[&Run],
    ) -> Result<Self, Error> {
        let fit = posterior.fit;
        let mut goals = functions(posterior, runs);
        let named = if options.constants.is_empty() && goals.is_empty() {
            (0..fit.model.unknowns.len()).collect()
        } else {
            fit.constant_places(&options.constants)?
        };
        goals.extend(named.iter().map(|&i| constant(posterior, i)));
        let mut all = Self {
            posterior,
            goals,
            ahead: None,
            by_formulas: !options.between.is_empty(),
            by_constants: !named.is_empty(),
        };
        if let Some(record) = &options.prediction {
            fit.predictor().check(record, Start::samples(record))?;
            let mut rng = Pcg64::seed_from_u64(1);
            let mut draw = || -> Vec<f64> {
                let normal = fit.theta.iter().map(|_| StandardNormal.sample(&mut rng));
                normal.collect()
            };
            let normal: Vec<Vec<f64>> = (0..DRAWS).map(|_| draw()).collect();
            let mut ahead = Ahead {
                record,
                normal,
                now: 1.0,
            };
            ahead.now = all.band(&ahead, None);
            all.ahead = Some(ahead);
        }
        Ok(all)
    }

    /// What the experiments are put in order by.
    pub fn by(&self) -> &'static str {
        if self.by_formulas {
            "formulas"
        } else if self.ahead.is_some() {
            "prediction"
        } else if self.by_constants {
            "constants"
        } else {
            "functions"
        }
    }

    /// Each with what is known of it now.
    pub fn now(&self) -> Vec<GoalNow> {
        let mut current: Vec<GoalNow> = self.goals.iter().map(|g| g.now.clone()).collect();
        current.extend(self.ahead.as_ref().map(|ahead| GoalNow {
            name: ahead.record.name.clone(),
            kind: "prediction".into(),
            std: ahead.now,
        }));
        current
    }

    /// What is left of each after a record, as a part of what it is now.
    pub fn left(&self, after: &Factor) -> Vec<f64> {
        let parts = self
            .goals
            .iter()
            .map(|g| g.size(Some(after)) / g.size(None));
        let mut left: Vec<f64> = parts.collect();
        left.extend(
            self.ahead
                .as_ref()
                .map(|a| self.band(a, Some(after)) / a.now),
        );
        left
    }

    /// What the first record once more would leave.
    pub fn repeated(&self, posterior: &Posterior) -> Vec<f64> {
        let track = posterior.fit.trained().into_iter().next();
        let after = track.and_then(|t| posterior.with(&t.record, &t.smoothed));
        after.map_or(vec![], |after| self.left(&after))
    }

    /// More is better.
    pub fn worth(&self, looked: &Looked) -> f64 {
        let kinds = self.goals.iter().map(|g| g.now.kind.as_str());
        let kinds = kinds.chain(self.ahead.as_ref().map(|_| "prediction"));
        let basis = self.by();
        if basis == "formulas" {
            // one that leads where a formula cannot go tells it apart
            return looked.apart.map_or(f64::INFINITY, |(value, _)| value);
        }
        let parts_left = kinds
            .zip(&looked.left)
            .filter(|(kind, _)| basis.starts_with(kind));
        -parts_left
            .map(|(_, left)| left.max(f64::MIN_POSITIVE).ln())
            .sum::<f64>()
    }

    /// Root mean square over the ranges of the channels of the deviations of a free run.
    fn band(&self, ahead: &Ahead, after: Option<&Factor>) -> f64 {
        let fit = self.posterior.fit;
        let draws = ahead.normal.iter().map(|z| {
            let z = after.map_or_else(|| z.clone(), |r| r.draw(z));
            self.posterior.moved(&z)
        });
        let draws: Vec<Vec<f64>> = draws.collect();
        let predictor = Predictor {
            draws: &draws,
            ..fit.predictor()
        };
        let start = Start::WarmUp(Start::samples(ahead.record));
        let foreseen = predictor.predict(ahead.record, start);
        let (mut sum, mut count) = (0.0, 0usize);
        for row in foreseen.output_deviations.rows() {
            for (deviation, range) in row.iter().zip(predictor.range) {
                sum += (deviation / range).powi(2);
                count += 1;
            }
        }
        (sum / count.max(1) as f64).sqrt()
    }
}

/// Each output of each network, at points that the runs and the records meet.
fn functions(posterior: &Posterior, runs: &[&Run]) -> Vec<Goal> {
    let fit = posterior.fit;
    let system = &fit.model.system;
    let mut met: Vec<Vec<Vec<f64>>> = vec![vec![]; system.networks().len()];
    for run in runs {
        region::met(
            system,
            &run.record,
            &run.states,
            &mut |_, network, scaled| {
                met[network].push(scaled.to_vec());
            },
        );
    }
    let mut goals = vec![];
    for (place, network) in system.networks().iter().enumerate() {
        if network.absent {
            continue;
        }
        let every = met[place].len().div_ceil(AHEAD_POINTS).max(1);
        let ahead = met[place].iter().step_by(every).cloned();
        let before = fit
            .facts
            .regions
            .get(place)
            .map_or([].as_slice(), |r| &r.points);
        let points: Vec<Vec<f64>> = ahead
            .chain(before.iter().take(MET_POINTS).cloned())
            .collect();
        for (k, output) in network.outputs.iter().enumerate() {
            let at = fit.network_slopes(place, k, &points);
            let count = at.values.len().max(1) as f64;
            let size = (at.values.iter().map(|v| v * v).sum::<f64>() / count).sqrt();
            let from = system.weight_ranges()[place].start;
            let slopes = Matrix::from_fn(fit.theta.len(), points.len(), |i, j| {
                let weight = i.checked_sub(from).filter(|i| *i < at.slopes.rows());
                weight.map_or(0.0, |i| at.slopes[(i, j)])
            });
            let name = if network.outputs.len() > 1 {
                format!("{}.{output}", network.name)
            } else {
                network.name.clone()
            };
            let mut goal = Goal {
                now: GoalNow {
                    name,
                    kind: "function".into(),
                    std: 0.0,
                },
                reduced: posterior.reduced(&slopes),
            };
            goal.now.std = goal.size(None) / size.max(f64::MIN_POSITIVE);
            goals.push(goal);
        }
    }
    goals
}

/// A constant, which is an entry of θ.
fn constant(posterior: &Posterior, i: usize) -> Goal {
    let known = &posterior.fit.facts.unknowns[i];
    let slope = Matrix::from_fn(posterior.fit.theta.len(), 1, |k, _| {
        f64::from(u8::from(k == i))
    });
    Goal {
        now: GoalNow {
            name: known.name.clone(),
            kind: "constant".into(),
            std: known.std,
        },
        reduced: posterior.reduced(&slope),
    }
}
