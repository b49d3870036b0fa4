//! Which experiment next.
//!
//! [`design`] compares experiments that somebody could do ([`plan`]): where they start, what drives them, what is measured of
//! them and how often. Each is simulated with what a fit has learned, and what its record would add to the posterior of
//! θ is computed to first order ([`information`]): by how much it shrinks what is not known of the learned functions, of
//! constants, or of a prediction; and, given formulas, whether it tells them apart ([`between`]). It never looks at the true
//! equations, and is as good as the fit is where the experiment goes: where that is outside of what training has seen, it
//! says so.

#![forbid(unsafe_code)]

pub mod between;
mod goals;
pub mod information;
pub mod plan;
mod words;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use latens::described;
use latens::look::region;
use latens::model::Model;
use latens::{Error, Fit, Record};
use rayon::prelude::*;
use serde::Serialize;

use between::Rivals;
use goals::Goals;
use information::Posterior;
use plan::{Feedback, Run, Setup, Space};

/// Formulas that are told apart, at the most: each pair is compared for each experiment.
const MOST_FORMULAS: usize = 6;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What experiments may be.
    pub space: Space,
    /// Constants that are to be known better.
    pub constants: Vec<String>,
    /// A record whose free run is to be foreseen better.
    pub prediction: Option<Record>,
    /// Formulas to tell apart: models of the same states, inputs and measurements.
    pub between: Vec<Model>,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Formulas are fitted to the records of the fit.
    Formulas,
    /// So many experiments have been looked at, of all.
    Looked {
        /// Done.
        done: usize,
        /// In all.
        total: usize,
    },
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Formulas => write!(f, "formulas are fitted to the records …"),
            Self::Looked { done, total } => write!(f, "experiments looked at: {done} of {total}"),
        }
    }
}

/// Watches, and stops.
pub trait Watch: Sync {
    /// Something is done.
    fn step(&self, _step: Step) {}
    /// Whether to end it: what was looked at by then is kept.
    fn stops(&self) -> bool {
        false
    }
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}

described! {
/// Experiments, best first, and what they would tell.
#[derive(Debug, Clone, Serialize)]
pub struct Designed {
    /// What the experiments are put in order by: formulas, prediction, constants or functions.
    pub by: String,
    /// What is to be known better, and how well it is known now.
    pub goals: Vec<GoalNow>,
    /// The experiments, best first.
    pub experiments: Vec<Experiment>,
    /// What the first record once more would leave of each uncertainty.
    pub repeated: Vec<f64>,
    /// The formulas that are to be told apart.
    pub formulas: Vec<String>,
    /// Experiments in which the learned equations leave the finite numbers.
    pub lost: usize,
    /// What to do next, in words.
    pub verdict: Vec<String>,
    /// Whether it was stopped before all were looked at.
    pub stopped: bool,
}

/// Something that is to be known better.
#[derive(Debug, Clone, Serialize)]
pub struct GoalNow {
    /// A function, a constant or the record of a prediction.
    pub name: String,
    /// function, constant or prediction.
    pub kind: String,
    /// Its standard deviation now: of a function over the size of its values, of a prediction over the ranges of the
    /// channels, both as root mean squares; of a constant in its unit.
    pub std: f64,
}

/// An experiment and what it would tell.
#[derive(Debug, Clone, Serialize)]
pub struct Experiment {
    /// From 1.
    pub rank: usize,
    /// Where each state starts.
    pub start: BTreeMap<String, f64>,
    /// What each input does, in words.
    pub inputs: BTreeMap<String, String>,
    /// The channels that are measured.
    pub measured: Vec<String>,
    /// Every which sample is measured.
    pub every: usize,
    /// Samples of the record.
    pub samples: usize,
    /// The part of it on which a network meets arguments unlike any in training.
    pub outside: f64,
    /// What is left of the standard deviation of each goal, as a part of what it is now.
    pub left: Vec<f64>,
    /// By how much ln p would differ between the two formulas that are hardest to tell apart.
    pub apart: Option<f64>,
    /// Which two these are, from 1.
    pub closest: Vec<usize>,
}
}

/// What was found, and the runs that the fit foresees.
pub struct Outcome {
    /// What to do next.
    pub designed: Designed,
    /// The run of each experiment: all of its samples and channels, as the fit foresees them.
    pub runs: Vec<Run>,
}

/// An experiment on its way to its place.
struct Looked {
    setup: usize,
    channels: usize,
    every: usize,
    outside: f64,
    left: Vec<f64>,
    apart: Option<(f64, [usize; 2])>,
}

/// Compares experiments.
///
/// # Errors
/// [`Error::Setting`] for names that there are not, or nothing to choose from; [`Error::Diverged`] where the learned
/// equations leave the finite numbers in all of them; [`Error::Stopped`] where it is ended before one was looked at.
pub fn design(fit: &Fit, options: &Options, watch: &dyn Watch) -> Result<Outcome, Error> {
    check(fit, options)?;
    let space = &options.space;
    let channels = space.channels(&fit.model)?;
    let every = if space.every.is_empty() {
        vec![1]
    } else {
        space.every.clone()
    };
    let feedback = Feedback::new(&fit.model, &space.feedback)?;
    let setups = space.setups(fit)?;
    if setups.len() * channels.len() * every.len() < 2 && options.between.is_empty() {
        return Err(Error::Setting(
            "there is nothing to choose from: give ranges of starts with ⟦start⟧, families of inputs with ⟦input⟧, or several channels or rates with ⟦measure⟧ and ⟦every⟧".into(),
        ));
    }
    if !options.between.is_empty() {
        watch.step(Step::Formulas);
    }
    let formulas = between::fitted(fit, &options.between, &|| watch.stops())?;
    let rivals = Rivals::new(&formulas);
    let runs: Vec<Option<Run>> = setups.par_iter().map(|s| s.run(fit, &feedback)).collect();
    let going: Vec<&Run> = runs.iter().flatten().collect();
    if going.is_empty() {
        return Err(Error::Setting(
            "the learned equations leave the finite numbers in each of these experiments: choose starts and inputs nearer to the records, a shorter record with ⟦samples⟧, or a regulator with ⟦feedback⟧".into(),
        ));
    }
    let posterior = Posterior::new(fit);
    let goals = Goals::new(&posterior, options, &going)?;
    let (done, total) = (AtomicUsize::new(0), setups.len());
    let look = |(place, setup): (usize, &Setup)| -> Vec<Looked> {
        let Some(run) = runs[place].as_ref().filter(|_| !watch.stops()) else {
            return vec![];
        };
        let outside = region::outside(
            &fit.model.system,
            &run.record,
            &run.states,
            &fit.facts.regions,
        );
        let foreseen = rivals.runs(setup, &feedback);
        let mut found = vec![];
        for (k, set) in channels.iter().enumerate() {
            for &every in &every {
                let after = posterior.with(&run.measured(set, every), &run.states);
                let Some(after) = after else { continue };
                found.push(Looked {
                    setup: place,
                    channels: k,
                    every,
                    outside,
                    left: goals.left(&after),
                    apart: rivals.apart(&foreseen, |run| run.measured(set, every)),
                });
            }
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        watch.step(Step::Looked { done, total });
        found
    };
    let found = setups.par_iter().enumerate().map(look);
    let mut looked: Vec<Looked> = found.collect::<Vec<_>>().into_iter().flatten().collect();
    if looked.is_empty() {
        return Err(Error::Stopped);
    }
    looked.sort_by(|a, b| goals.worth(b).total_cmp(&goals.worth(a)));
    let stopped = watch.stops();
    let experiment = |(k, looked): (usize, &Looked)| {
        let (setup, model) = (&setups[looked.setup], &fit.model);
        let states = model.states.iter().map(|s| s.name.clone());
        let inputs = model.inputs.iter().map(|u| u.name.clone());
        let names = model.measurements.iter().zip(&channels[looked.channels]);
        Experiment {
            rank: k + 1,
            start: states.zip(setup.start.iter().copied()).collect(),
            inputs: inputs.zip(setup.words.iter().cloned()).collect(),
            measured: names
                .filter(|(_, is_measured)| **is_measured)
                .map(|(m, _)| m.name.clone())
                .collect(),
            every: looked.every,
            samples: runs[looked.setup].as_ref().map_or(0, |r| r.record.len()),
            outside: looked.outside,
            left: looked.left.clone(),
            apart: looked.apart.map(|(value, _)| value),
            closest: looked
                .apart
                .map_or(vec![], |(_, pair)| pair.map(|p| p + 1).to_vec()),
        }
    };
    let experiments: Vec<Experiment> = looked.iter().enumerate().map(experiment).collect();
    let mut designed = Designed {
        by: goals.by().into(),
        repeated: goals.repeated(&posterior),
        goals: goals.now(),
        experiments,
        formulas: options.between.iter().map(|m| m.name.clone()).collect(),
        lost: runs.iter().filter(|r| r.is_none()).count(),
        verdict: vec![],
        stopped,
    };
    designed.verdict = words::verdict(fit, &designed, options);
    let of_rank = |looked: &Looked| {
        let run = runs[looked.setup].as_ref()?;
        Some(Run {
            record: run.record.clone(),
            states: run.states.clone(),
        })
    };
    Ok(Outcome {
        runs: looked.iter().filter_map(of_rank).collect(),
        designed,
    })
}

/// Whether a fit and what is asked of it go together.
fn check(fit: &Fit, options: &Options) -> Result<(), Error> {
    if let Some(missing) = fit.missing.first() {
        return Err(Error::Setting(format!(
            "the records of the fit are needed: {missing}"
        )));
    }
    let fail = |message: &str| Err(Error::Setting(message.into()));
    if options.between.len() == 1 {
        return fail("one formula cannot be told from itself: name two or more");
    }
    if options.between.len() > MOST_FORMULAS {
        return fail(
            "no more than six formulas are told apart at once: name those that the data do not decide between",
        );
    }
    if options.space.every.contains(&0) {
        return fail("every 0th sample is no rate: write 1 for each, 10 for every tenth");
    }
    if fit.theta.is_empty() {
        return fail("this fit has learned nothing: there is nothing to know better");
    }
    Ok(())
}
