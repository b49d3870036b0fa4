//! What was learned: [`Fit`], and all that it can be used for.
//!
//! θ with its covariance, the states of its records, and the facts about how it came about. It
//! predicts, estimates and simulates ([`using`]), follows a stream ([`stream`]), and is made by
//! [`learn`]. A folder is how it lies on a disk ([`crate::folder`]), a page is how it is shown.

pub mod adapt;
pub mod begun;
mod between;
mod comparable;
pub mod compare;
pub mod diagnosis;
pub mod draws;
pub mod ensemble;
mod explain;
pub mod facts;
mod group;
pub mod held_out;
pub mod innovations;
pub mod known;
mod late;
pub mod learn;
pub mod online;
mod other_values;
mod pointwise;
mod population;
pub mod predict;
pub mod profile;
pub mod proof;
pub mod relevance;
mod reopened;
mod residuals;
pub mod stream;
mod suspects;
pub mod table;
pub mod using;
pub mod warning;

pub use adapt::Adapted;
pub use compare::{CompareOptions, Comparison, compare};
pub use diagnosis::ResidualTest;
pub use facts::{
    BoundName, Constant, Facts, MemberFacts, OwnValue, PassFacts, Population, RecordFacts, Role,
    Trading, trading,
};
pub(crate) use group::distinct;
pub use other_values::{OtherValue, OtherValues};
pub use predict::{Estimated, NoiseFactor, Prediction, Predictor, Start};
pub use profile::{Profile, profile};
pub use proof::Proof;
pub use relevance::Relevance;
pub(crate) use suspects::refuse_suspects;
pub use using::{
    Change, EstimateFacts, EstimateOptions, Estimation, PredictOptions, Predicted, PredictionFacts,
    Simulated, SimulationFacts,
};
pub use warning::Warning;

use crate::model::Model;
use crate::numerics::Trajectory;
use crate::numerics::linalg::PackedCovariance;
use crate::record::Record;

/// A fitted model.
#[derive(Debug, Clone)]
pub struct Fit {
    /// What it is called: the folder that it lies in, where it lies in one.
    pub name: String,
    /// The model, its networks scaled.
    pub model: Model,
    /// θ̂: unknown constants, then the weights of each network.
    pub theta: Vec<f64>,
    /// P_θ.
    pub covariance: PackedCovariance,
    /// Draws of δθ from its posterior, see [`crate::filter::bands`]; none of the recursions'.
    pub draws: Vec<Vec<f64>>,
    /// How it came about and how good it is: noise, scales, scores, settings, seeds.
    pub facts: Facts,
    /// What it says about each record: those learned from, then those that validated.
    pub tracks: Vec<Track>,
    /// What it foresaw of the tests.
    pub tests: Vec<Foreseen>,
    /// Tracks that could not be read from the folder, and why.
    pub missing: Vec<String>,
    /// Of an ensemble, all of them by seed. The fit itself then has θ and all that belongs to it of
    /// the best, and the tracks of all together.
    pub members: Vec<Fit>,
    /// Where a stream goes on, for a snapshot of one.
    pub stream: Option<stream::State>,
}

/// What a fit says about one record, sample by sample.
#[derive(Debug, Clone)]
pub struct Track {
    /// The record's place in [`Facts::records`].
    pub place: usize,
    /// What was measured.
    pub record: Record,
    /// The states, from the whole record.
    pub smoothed: Trajectory,
    /// Their standard deviations.
    pub deviations: Trajectory,
    /// Predictions from the estimate one sample before.
    pub one_step: Trajectory,
    /// A simulation from the estimated start, the inputs replayed.
    pub free_run: Trajectory,
}

/// What a fit foresaw of a record that played no part, from the first sample that it predicted on.
#[derive(Debug, Clone)]
pub struct Foreseen {
    /// The record's place in [`Facts::records`].
    pub place: usize,
    /// Time of each sample.
    pub time: Vec<f64>,
    /// What was measured, NaN where nothing was or a reading was set aside.
    pub measured: Trajectory,
    /// The states.
    pub states: Trajectory,
    /// Their standard deviations.
    pub deviations: Trajectory,
    /// The channels.
    pub outputs: Trajectory,
    /// Their standard deviations, without the sensors' own noise.
    pub output_deviations: Trajectory,
}

impl Foreseen {
    /// Of a record whose suspect readings are taken out.
    pub(crate) fn new(place: usize, record: &Record, prediction: &Prediction) -> Self {
        let rest = record.slice(prediction.from..record.len());
        Self {
            place,
            measured: Trajectory::new(rest.outputs, rest.d_y),
            time: rest.time,
            states: prediction.states.clone(),
            deviations: prediction.deviations.clone(),
            outputs: prediction.outputs.clone(),
            output_deviations: prediction.output_deviations.clone(),
        }
    }
}

impl Fit {
    /// What predictions of other records are made with.
    pub fn predictor(&self) -> Predictor<'_> {
        Predictor {
            model: &self.model,
            theta: &self.theta,
            draws: &self.draws,
            noise: &self.facts.noise,
            variance_inflation: self.facts.variance_inflation,
            center: &self.facts.scales.center,
            scale: &self.facts.scales.scale,
            spread: &self.facts.scales.spread,
            regions: &self.facts.regions,
            dt: self.facts.sample_time,
            range: &self.facts.scales.range,
            exact_start: self.facts.proof.is_some_and(|p| p.exact_start),
            widening: self.facts.proof.map_or(1.0, |p| p.widening),
        }
    }

    /// A free run over a record: an ensemble's is that of all its members.
    pub fn free_run(&self, record: &Record, start: Start) -> Prediction {
        if self.members.is_empty() {
            return self.predictor().predict(record, start);
        }
        let weights = self.facts.ensemble.iter().map(|m| m.weight.unwrap_or(1.0));
        let members = weights
            .zip(&self.members)
            .map(|(weight, member)| ensemble::Weighted {
                weight,
                value: member.predictor(),
            });
        ensemble::predict(&members.collect::<Vec<_>>(), record, start)
    }

    /// What a file with this checksum served for in the fit; a test where it played no part.
    pub fn role(&self, sha256: &str) -> Role {
        let known = self.facts.records.iter().find(|r| r.sha256 == sha256);
        known.map_or(Role::Test, |r| r.role)
    }

    /// The tracks of the records that were learned from; all where there are none.
    pub fn trained(&self) -> Vec<&Track> {
        let trained = |t: &&Track| self.facts_of(t).role == Role::Train;
        let training: Vec<&Track> = self.tracks.iter().filter(trained).collect();
        if training.is_empty() {
            self.tracks.iter().collect()
        } else {
            training
        }
    }

    /// What is known about a track's record.
    pub fn facts_of(&self, track: &Track) -> &RecordFacts {
        &self.facts.records[track.place]
    }

    /// The facts of all members, and its own.
    pub(crate) fn all_facts(&mut self) -> impl Iterator<Item = &mut Facts> {
        let members = self.members.iter_mut().map(|m| &mut m.facts);
        members.chain([&mut self.facts])
    }

    /// The solver that learned it, where this program has it.
    pub fn solver(&self) -> Option<&'static dyn crate::solve::Solver> {
        crate::solve::find(&self.facts.solver).ok()
    }

    /// The unknown constants, with their standard deviations.
    ///
    /// ```
    /// let fit = latens::example_fit();
    /// // the oscillator has a network and no unknown constant
    /// assert!(fit.constants().is_empty());
    /// ```
    pub fn constants(&self) -> &[Constant] {
        &self.facts.unknowns
    }

    /// The covariance of the unknown constants, row by row: that of θ, scaled so that the diagonal is the
    /// square of their standard deviations.
    pub fn constant_covariance(&self) -> Vec<Vec<f64>> {
        let stds: Vec<f64> = self.facts.unknowns.iter().map(|c| c.std).collect();
        let correlation = self.constant_correlation().into_iter().enumerate();
        let scaled = correlation.map(|(i, row)| {
            let row = row.into_iter().zip(&stds);
            row.map(|(r, std)| r * stds[i] * std).collect()
        });
        scaled.collect()
    }

    /// The correlation of the unknown constants, row by row.
    ///
    /// ```
    /// let text = "[states.x]\nderivative = \"a - b*x\"\nstart = 0\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1 }\nb = { guess = 1 }\n[truth]\na = 2\nb = 1\n[time]\nstep = 0.1\n[simulation]\nsteps = 100";
    /// let model = latens::Model::from_text("tank", text)?;
    /// let record = latens::simulate::simulate(&model, &latens::simulate::Simulation::default())?;
    /// let fit = latens::fit(&model, &[record])?;
    /// let r = fit.constant_correlation();
    /// assert!(r[0][0] == 1.0 && r[0][1] == r[1][0] && r[0][1] > 0.5);
    /// # Ok::<(), latens::Error>(())
    /// ```
    pub fn constant_correlation(&self) -> Vec<Vec<f64>> {
        if self.facts.correlation.is_empty() {
            // a folder of an earlier version
            facts::correlation(self.facts.unknowns.len(), &self.covariance)
        } else {
            self.facts.correlation.clone()
        }
    }
}
