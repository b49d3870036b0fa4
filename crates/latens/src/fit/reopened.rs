//! The problem that a fit was learned from, as it was at the end: from its model, its facts and its
//! records, without the data files.

use super::{Fit, Track};
use crate::Error;
use crate::filter::Smoothed;
use crate::look::PriorSmoothing;
use crate::numerics::Trajectory;
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::solve::Problem;
use crate::solve::batch::again::{Again, Ended};
use crate::solve::checkpoint::Checkpoint;
use crate::solve::kept::Checkpoints;

/// A fit's problem.
pub(super) struct Reopened<'a> {
    /// The fit itself; of several that speak together the best.
    pub fit: &'a Fit,
    records: Vec<Record>,
    prior: PriorSmoothing,
    /// The free run over each record.
    runs: Vec<Trajectory>,
}

impl<'a> Reopened<'a> {
    /// # Errors
    /// [`Error::Setting`] where the folder has not all of its records.
    pub fn new(fit: &'a Fit) -> Result<Self, Error> {
        let mut members = fit.members.iter();
        let best = members.find(|m| m.theta == fit.theta).unwrap_or(fit);
        let tracks: Vec<&Track> = best.trained();
        if tracks.is_empty() || !best.missing.is_empty() {
            return Err(Error::Setting(format!(
                "{} does not have the states of all its records: restore its folder, or repeat the fit",
                fit.name
            )));
        }
        let states = tracks.iter().map(|track| Smoothed {
            states: track.smoothed.clone(),
            deviations: track.deviations.clone(),
            cost: Default::default(),
        });
        let runs = tracks.iter().map(|track| {
            let simulated = track.free_run.is_finite();
            let run = if simulated {
                &track.free_run
            } else {
                &track.smoothed
            };
            run.clone()
        });
        Ok(Self {
            records: tracks.iter().map(|t| t.record.clone()).collect(),
            runs: runs.collect(),
            prior: PriorSmoothing {
                scales: best.facts.scales.clone(),
                states: states.collect(),
                outputs: None,
                all_scales: best.facts.scales.clone(),
                noise: best.facts.noise.clone(),
            },
            fit: best,
        })
    }

    /// Its records.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Does something with the problem.
    pub fn with<T>(&self, then: impl FnOnce(&Problem) -> T) -> T {
        let (model, facts) = (&self.fit.model, &self.fit.facts);
        let stepper = Stepper::over(model, &model.system, facts.sample_time, &self.records);
        then(&Problem {
            model,
            settings: &facts.settings,
            records: &self.records,
            validate: &[],
            stepper: &stepper,
            scales: &facts.scales,
            prior: &self.prior,
            noise: &facts.noise,
            constants: &[],
            sharp: false,
            elsewhere: false,
            in_pieces: Some(facts.in_pieces),
            checkpoints: Checkpoints::default(),
            workers: None,
        })
    }

    /// The fit at its end; `None` of a solver that has no evidence, or where it has left the finite numbers.
    pub fn again<'p>(&self, problem: &'p Problem<'p>) -> Option<Again<'p>> {
        let facts = &self.fit.facts;
        let Some(Checkpoint::Stage(stage)) = &facts.checkpoint else {
            return None;
        };
        let evidence = facts.evidence.as_ref()?;
        Again::new(
            problem,
            Ended {
                theta: &self.fit.theta,
                states: self.runs.clone(),
                noise: &facts.noise,
                stage,
                prior: &evidence.prior,
                contradicted: facts.contradicted,
            },
        )
    }
}
