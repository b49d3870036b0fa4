//! What a solver can be told, and what it does when told nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::fit::nominal::Nominal;
use crate::linalg::Precision;
use crate::model::Model;
use crate::objective::Noise;

/// How θ is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// States and θ in turn (the paper's Theorem 1, corrected).
    Alternating,
    /// The same with the θ equations as they stand in print.
    AsPrinted,
    /// States and θ together, with their cross-covariance.
    Joint,
    /// Whole-record Newton.
    Batch,
    /// A rival, as are those below; the crate `latens-rivals` has them.
    Node,
    NodeLstm,
    Spinode,
    Rm,
    PrSsm,
}

impl Solver {
    pub const NAMES: [(&'static str, Solver); 9] = [
        ("alternating", Solver::Alternating),
        ("as-printed", Solver::AsPrinted),
        ("joint", Solver::Joint),
        ("batch", Solver::Batch),
        ("node", Solver::Node),
        ("node-lstm", Solver::NodeLstm),
        ("spinode", Solver::Spinode),
        ("rm", Solver::Rm),
        ("pr-ssm", Solver::PrSsm),
    ];

    /// Whether it is one that Latens is compared with, not one of its own.
    pub fn is_rival(self) -> bool {
        let own = [Self::Alternating, Self::AsPrinted, Self::Joint, Self::Batch];
        !own.contains(&self)
    }

    /// Threads it works on: the recursions are sequential by nature.
    pub fn threads(self) -> usize {
        match self {
            Self::Batch => rayon::current_num_threads(),
            _ => 1,
        }
    }

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, s)| *s == self)
            .map_or("", |(n, _)| n)
    }
}

/// The size of a noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A variance in the quantity's own unit.
    Variance(f64),
    /// A standard deviation relative to what the data show; see each setting.
    Relative(f64),
}

fn one() -> usize {
    1
}

/// Settings of a fit. All of them end up in `fit.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub solver: Solver,
    /// Passes over the record; for batch the number of tightening stages at the most.
    pub epochs: usize,
    /// Of the random start of the networks.
    pub seed: u64,
    /// Starts from so many seeds, from `seed` on; the best is kept. With 1, batch tries the next
    /// seed where one fails.
    pub starts: usize,
    /// Fits from so many seeds, from `seed` on, all kept: the members of an ensemble.
    #[serde(default = "one")]
    pub ensemble: usize,
    /// Segments of the record that update one θ together.
    pub streams: usize,
    /// Q_x of known rows; relative to scale·√(Δt/τ), τ the time in which the data move by their scale.
    pub known: Level,
    /// Q_x of rows that depend on θ, likewise.
    pub hidden: Level,
    /// R_y; relative to the noise found in the channel.
    pub measurement: Level,
    /// P_x0; relative to the state's scale. Relative, it is the prior of the smoother, whose own
    /// deviations then start a pass; as a variance, a pass starts from it.
    pub start: Level,
    /// P_θ0, a variance; weights and scaled unknowns are of order one.
    pub parameter_variance: f64,
    /// Q_θ per step of all streams together, a variance.
    pub parameter_drift: f64,
    /// Factor on Q_θ after each epoch.
    pub anneal: f64,
    /// Noise of the θ step, as a multiple of the hidden row's own standard deviation.
    pub parameter_noise: f64,
    /// Whether the uncertainty of x̂ counts as noise of the θ step.
    pub count_state_uncertainty: bool,
    /// Whether network outputs are scaled to the hidden states' rates; inputs always are.
    pub scale_outputs: bool,
    /// Keep the epoch whose free run fits the measurements best; else the last.
    pub keep_best: bool,
    /// Re-estimate R_y from the misfit, and the prior variance of weights by the evidence (batch).
    pub estimate_noise: bool,
    pub estimate_prior: bool,
    /// Storage of P_θ.
    pub single_precision: bool,
    /// Variances that replace the levels: Q_x by state, R_y by channel, P_x0 by state.
    pub process_of: BTreeMap<String, f64>,
    pub measurement_of: BTreeMap<String, f64>,
    pub start_of: BTreeMap<String, f64>,
}

impl Settings {
    /// Whether a channel's noise is the user's.
    pub fn noise_given(&self, channel: &str) -> bool {
        matches!(self.measurement, Level::Variance(_)) || self.measurement_of.contains_key(channel)
    }

    /// What works without being told anything about the system.
    pub fn new(solver: Solver) -> Self {
        match solver {
            Solver::AsPrinted => Self::printed(solver),
            Solver::Alternating => Self {
                solver,
                epochs: 10,
                seed: 1,
                starts: 1,
                ensemble: 1,
                streams: 1,
                known: Level::Relative(1e-4),
                hidden: Level::Relative(0.1),
                measurement: Level::Relative(1.0),
                start: Level::Relative(1.0),
                parameter_variance: 1.0,
                parameter_drift: 1e-6,
                anneal: 0.5,
                parameter_noise: 1.0,
                count_state_uncertainty: true,
                scale_outputs: true,
                keep_best: true,
                estimate_noise: false,
                estimate_prior: false,
                single_precision: false,
                process_of: BTreeMap::new(),
                measurement_of: BTreeMap::new(),
                start_of: BTreeMap::new(),
            },
            Solver::Batch => Self {
                hidden: Level::Relative(0.1),
                epochs: 18,
                parameter_variance: 1.0,
                estimate_noise: true,
                estimate_prior: true,
                parameter_drift: 0.0,
                ..Self::new(Solver::Alternating)
            }
            .with_solver(solver),
            Solver::Node | Solver::NodeLstm | Solver::Spinode | Solver::Rm | Solver::PrSsm => {
                Self {
                    // iterations of gradient descent, or passes of a network with memory
                    epochs: match solver {
                        Solver::NodeLstm => 300,
                        Solver::PrSsm => 3000,
                        Solver::Rm => 2500,
                        _ => 2000,
                    },
                    ..Self::new(Solver::Alternating)
                }
                .with_solver(solver)
            }
            Solver::Joint => Self {
                known: Level::Relative(1e-5),
                hidden: Level::Relative(1e-2),
                parameter_drift: 0.0,
                anneal: 1.0,
                ..Self::new(Solver::Alternating)
            }
            .with_solver(solver),
        }
    }

    fn with_solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// The settings of the paper, absolute as they stand in print.
    pub fn printed(solver: Solver) -> Self {
        Self {
            epochs: 20,
            known: Level::Variance(1e-5),
            hidden: Level::Variance(1e-5),
            measurement: Level::Variance(1e-10),
            start: Level::Variance(1e-2),
            parameter_variance: 1e2,
            parameter_drift: 1e-2,
            anneal: 1.0,
            parameter_noise: 1.0,
            count_state_uncertainty: false,
            scale_outputs: false,
            keep_best: false,
            ..Self::new(Solver::Alternating)
        }
        .with_solver(solver)
    }

    /// The storage of P_θ.
    pub fn precision(&self) -> Precision {
        if self.single_precision {
            Precision::Single
        } else {
            Precision::Double
        }
    }

    /// Rejects what makes no sense for a model.
    pub fn check(&self, model: &Model) -> Result<(), Error> {
        let fail = |message: String| Err(Error::Setting(message));
        if [self.epochs, self.streams, self.starts, self.ensemble].contains(&0) {
            return fail("epochs, starts, ensemble and streams must be at least 1".into());
        }
        if self.solver.is_rival() && self.starts.max(self.ensemble) > 1 {
            let name = self.solver.name();
            return fail(format!(
                "{name} starts from one seed; call it once for each with --seed"
            ));
        }
        if self.starts > 1 && self.ensemble > 1 {
            return fail(
                "an ensemble keeps all its starts; give --starts or --ensemble, not both".into(),
            );
        }
        if matches!(self.solver, Solver::Joint | Solver::Batch) && self.streams > 1 {
            return fail(format!(
                "{} takes one stream; use --streams with alternating",
                self.solver.name()
            ));
        }
        if model.system.parameters() == 0 {
            return fail(format!(
                "{} has nothing to learn; call a network in an equation or add [unknowns]",
                model.name
            ));
        }
        let levels = [self.known, self.hidden, self.measurement, self.start];
        let values = levels.map(|l| match l {
            Level::Variance(v) | Level::Relative(v) => v,
        });
        let others = [self.parameter_variance, self.parameter_noise, self.anneal];
        let overrides = self.process_of.values().chain(self.measurement_of.values());
        let mut all = values
            .iter()
            .chain(&others)
            .chain(overrides)
            .chain(self.start_of.values());
        if !all.all(|v| *v > 0.0 && v.is_finite())
            || !(0.0..f64::MAX).contains(&self.parameter_drift)
            || self.anneal > 1.0
        {
            return fail("variances and noise levels must be positive and finite, the anneal factor at most 1".into());
        }
        let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
        let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
        for (names, known, what) in [
            (&self.process_of, &states, "state"),
            (&self.start_of, &states, "state"),
            (&self.measurement_of, &channels, "measurement"),
        ] {
            if let Some(name) = names.keys().find(|n| !known.contains(&n.as_str())) {
                return fail(format!(
                    "there is no {what} `{name}`; there are: {}",
                    known.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Q_x, R_y and P_x0 for a model whose quantities have these sizes; `dt` is the sample time.
    pub fn noise(&self, model: &Model, nominal: &Nominal, dt: f64) -> Noise {
        self.noise_with(model, nominal, dt, model.system.unknown_rows())
    }

    /// The same with the `hidden` level on rows of the caller's choice.
    pub(super) fn noise_with(
        &self,
        model: &Model,
        nominal: &Nominal,
        dt: f64,
        rows: &[usize],
    ) -> Noise {
        let system = &model.system;
        let per_sample = (dt / nominal.time_constant).sqrt();
        let variance = |level: Level, unit: f64| match level {
            Level::Variance(v) => v,
            Level::Relative(r) => (r * unit) * (r * unit),
        };
        let state = |i: usize| model.states[i].name.as_str();
        Noise {
            process: (0..system.states())
                .map(|i| {
                    let level = if rows.contains(&i) {
                        self.hidden
                    } else {
                        self.known
                    };
                    let own = self.process_of.get(state(i)).copied();
                    own.unwrap_or(variance(level, nominal.scale[i] * per_sample))
                })
                .collect(),
            measurement: (0..system.measurements())
                .map(|c| {
                    let own = self
                        .measurement_of
                        .get(&model.measurements[c].name)
                        .copied();
                    own.unwrap_or(variance(self.measurement, nominal.noise[c]))
                })
                .collect(),
            start_mean: nominal.center.clone(),
            start: (0..system.states())
                .map(|i| {
                    let own = self.start_of.get(state(i)).copied();
                    own.unwrap_or(variance(self.start, nominal.scale[i]))
                })
                .collect(),
        }
    }
}
