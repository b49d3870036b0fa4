//! How much of a network the data ask for: nothing, a linear function, a few units, or all that
//! the file says.
//!
//! A network that is not needed makes predictions worse: it fits what the known equations cannot
//! say of *these* records. So the known equations are fitted alone first, where they have unknown
//! constants, and with noise simpler functions are tried beside the file's network; they cost
//! little. Where some structure explains the data down to white noise, the evidence decides
//! between all that do, and those that it hardly tells apart speak together. Where none does, the
//! model is wrong somewhere and evidence believes in the wrong noise: then blocks of the records
//! that were not learned from decide, and a network has to be clearly better there.

use serde::{Deserialize, Serialize};

use super::checkpoint::{Earlier, Resumed};
use super::starts::{self, Attempt, Kept};
use super::{Observer, Problem, Quiet, Solver, Trial, halves};
use crate::Error;
use crate::described;
use crate::described::{Described, Value};
use crate::look::{self, SignalScales};
use crate::model::network::Structure;
use crate::model::settings::Settings;

/// Structures whose ln p is this close to the best are not told apart.
const TOLD_APART: f64 = 10.0;
/// More structure has to predict blocks that it never saw better by this factor.
const CLEARLY_BETTER: f64 = 0.95;
/// The known equations alone are a model where their free run errs by less than this part of the
/// range; the networks are then added to the constants that they found.
const SOUND: f64 = 0.1;
/// Samples of a record below which no block of it is held back.
const FEWEST: usize = 100;

/// Records without noise are followed where a free run errs by less than this part of the range;
/// where it errs by more, noise of such a size is assumed.
const EXPLAINED: f64 = 1e-3;
const AS_IF: f64 = 0.01;
/// A network of few weights, and the seeds that it is learned from: at the least, at the most.
const FEW_WEIGHTS: usize = 100;
const FEWEST_SEEDS: u64 = 3;
const SEEDS: u64 = 5;

described! {
/// A structure and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// How much there is of the networks.
    pub structure: Structure,
    /// ln p, where the solver computes it.
    pub evidence: Option<f64>,
    /// Mean nRMSE of the measured channels in free runs over the records learned from; none where
    /// the solver diverged.
    pub error: Option<f64>,
    /// The same over blocks that were held back, where these decided.
    pub held_back: Option<f64>,
    /// Its part in what is predicted; 0 where it has none.
    pub weight: f64,
}
}

/// What the ladder came to.
pub struct Climbed {
    /// What is kept, the best first.
    pub kept: Vec<(Structure, Kept)>,
    /// All that was tried; empty where only the file's structure was.
    pub rungs: Vec<Rung>,
    /// Whether the observer ended it before its time.
    pub stopped: bool,
}

/// Learns with each structure that there is reason to try.
pub fn run(
    solver: &dyn Solver,
    problem: &Problem,
    earlier: &Earlier,
    observer: &mut dyn Observer,
) -> Result<Climbed, Error> {
    let whole = |kept: Kept| Climbed {
        stopped: kept.stopped,
        kept: vec![(Structure::Whole, kept)],
        rungs: vec![],
    };
    let mut structures = structures(problem);
    if !earlier.starts.is_empty() && !earlier.stopped {
        structures.retain(|s| earlier.starts.iter().any(|e| e.structure == *s));
    }
    if !problem.settings.simplify || structures.is_empty() {
        let begun: Vec<&Resumed> = earlier.starts.iter().collect();
        return Ok(whole(starts::run(solver, problem, &begun, observer)?));
    }
    if structures == [Structure::Whole] && earlier.starts.is_empty() {
        return Ok(whole(seeded(solver, problem, None, observer)?));
    }
    let mut constants = None;
    let mut tried: Vec<(Structure, Kept)> = vec![];
    let mut rungs = vec![];
    let mut stopped = false;
    for structure in structures {
        let begun = earlier.starts.iter().filter(|e| e.structure == structure);
        let begun: Vec<&Resumed> = begun.collect();
        let learned = problem.simplified(structure, |simpler| {
            let own = Problem {
                constants: constants.as_deref().unwrap_or_default(),
                ..*simpler
            };
            if !begun.is_empty() {
                starts::run(solver, &own, &begun, observer)
            } else if structure == Structure::Whole {
                let simpler = tried.iter().map(|(_, kept)| rank(kept));
                let simpler = simpler.max_by(|a, b| a.partial_cmp(b).expect("ranks are numbers"));
                seeded(solver, &own, simpler, observer)
            } else {
                let trial = Trial::Structure(structure);
                starts::run(solver, &own, &[], &mut Quiet::new(observer, trial))
            }
        });
        let kept = match learned {
            Ok(kept) => Some(kept),
            Err(Error::Diverged(_)) if structure != Structure::Whole || !tried.is_empty() => None,
            Err(Error::Stopped) if !tried.is_empty() => {
                stopped = true;
                break;
            }
            Err(error) => return Err(error),
        };
        let best = kept.as_ref().map(|kept| &kept.learned[0].1);
        rungs.push(Rung {
            structure,
            evidence: best.and_then(|l| Some(l.evidence.as_ref()?.log)),
            error: best.map(|l| l.free_run).filter(|e| e.is_finite()),
            held_back: None,
            weight: 0.0,
        });
        let Some(kept) = kept else { continue };
        let learned = &kept.learned[0].1;
        stopped = kept.stopped;
        if structure == Structure::Absent && learned.free_run < SOUND {
            constants = Some(learned.theta.clone());
        }
        tried.push((structure, kept));
        if stopped {
            break;
        }
    }
    choose(solver, problem, tried, rungs, stopped, observer)
}

/// Learns from the seed of the settings. A network of few weights has several minima and costs
/// little: with noise it is learned from some more seeds, and from yet more while it explains the
/// data less well than a simpler one.
fn seeded(
    solver: &dyn Solver,
    problem: &Problem,
    simpler: Option<Rank>,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let (settings, system) = (problem.settings, &problem.model.system);
    let small = system.parameters() - system.unknowns() <= FEW_WEIGHTS;
    let alone = settings.starts.max(settings.ensemble) == 1;
    let first = starts::run(solver, problem, &[], observer);
    if !problem.noisy() && !system.networks().is_empty() && !is_explained(&first) {
        return as_if_noisy(solver, problem, first, observer);
    }
    let mut best = first?;
    for more in 1..SEEDS {
        let enough = simpler.is_none_or(|simpler| rank(&best) >= simpler);
        let enough = enough && (more >= FEWEST_SEEDS || !problem.noisy());
        if best.stopped || enough || !small || !alone {
            break;
        }
        let settings = Settings {
            seed: settings.seed.wrapping_add(more),
            ..settings.clone()
        };
        let problem = Problem {
            settings: &settings,
            ..*problem
        };
        let trial = Trial::Seed(settings.seed);
        match starts::run(solver, &problem, &[], &mut Quiet::new(observer, trial)) {
            Ok(next) => {
                if rank(&next) > rank(&best) {
                    best = next;
                }
            }
            Err(Error::Diverged(_)) => {}
            Err(Error::Stopped) => best.stopped = true,
            Err(error) => return Err(error),
        }
    }
    Ok(best)
}

/// Whether a free run follows records without noise.
fn is_explained(kept: &Result<Kept, Error>) -> bool {
    match kept {
        Ok(kept) => kept.stopped || kept.learned[0].1.free_run < EXPLAINED,
        Err(error) => !matches!(error, Error::Diverged(_)),
    }
}

/// Learns from records without noise as if they had some, and goes on from there: the objective of
/// exact data is all narrow valleys, in which a start far from the truth is caught.
fn as_if_noisy(
    solver: &dyn Solver,
    problem: &Problem,
    first: Result<Kept, Error>,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let scales = SignalScales {
        noise: problem.scales.range.iter().map(|r| AS_IF * r).collect(),
        ..problem.scales.clone()
    };
    let noise = look::noise(
        problem.settings,
        problem.model,
        &scales,
        problem.stepper.dt(),
    );
    let noisy = Problem {
        scales: &scales,
        noise: &noise,
        ..*problem
    };
    let mut quiet = Quiet::new(observer, Trial::AsIfNoisy);
    let found = seeded(solver, &noisy, None, &mut quiet);
    drop(quiet);
    let found = match found {
        Ok(found) if !found.stopped => found,
        Ok(_) | Err(Error::Diverged(_) | Error::Stopped) => return first,
        Err(error) => return Err(error),
    };
    let (seed, learned) = &found.learned[0];
    let second = starts::near(solver, problem, *seed, learned.theta.clone(), observer);
    let error = |kept: &Result<Kept, Error>| {
        let kept = kept.as_ref().ok();
        let error = kept.map_or(f64::INFINITY, |kept| kept.learned[0].1.free_run);
        if error.is_nan() { f64::INFINITY } else { error }
    };
    if error(&second) < error(&first) {
        // what was tried before is told too
        second.map(|mut kept| {
            let before = first.map_or(vec![], |first| first.attempts);
            let before = before.into_iter().map(|attempt| Attempt {
                kept: false,
                ..attempt
            });
            kept.attempts = before.chain(kept.attempts).collect();
            kept
        })
    } else {
        first
    }
}

/// What starts are compared by: whether they are sound, whether they explain the data, the evidence.
type Rank = (bool, bool, f64);

fn rank(kept: &Kept) -> Rank {
    let sound = kept.attempts.iter().any(|a| a.kept && a.failure.is_none());
    let learned = &kept.learned[0].1;
    let evidence = learned
        .evidence
        .as_ref()
        .map_or(f64::NEG_INFINITY, |e| e.log);
    (sound, !learned.contradicted, evidence)
}

/// The structures that there is reason to try, the simplest first.
fn structures(problem: &Problem) -> Vec<Structure> {
    let networks = problem.model.system.networks();
    let mut structures = vec![];
    if networks.is_empty() {
        return structures;
    }
    if !problem.model.unknowns.is_empty() {
        structures.push(Structure::Absent);
    }
    if problem.noisy() {
        let weights = |structure| problem.model.simplified(structure).system.parameters();
        let whole = weights(Structure::Whole);
        let simpler = [Structure::Linear, Structure::Few];
        structures.extend(simpler.into_iter().filter(|s| weights(*s) < whole));
    }
    structures.push(Structure::Whole);
    structures
}

/// Decides between structures.
fn choose(
    solver: &dyn Solver,
    problem: &Problem,
    tried: Vec<(Structure, Kept)>,
    mut rungs: Vec<Rung>,
    mut stopped: bool,
    observer: &mut dyn Observer,
) -> Result<Climbed, Error> {
    let explains = |kept: &Kept| {
        let learned = &kept.learned[0].1;
        !learned.contradicted && kept.attempts.iter().any(|a| a.kept && a.failure.is_none())
    };
    let evidence = |kept: &Kept| {
        let found = kept.learned[0].1.evidence.as_ref();
        found.map_or(f64::NEG_INFINITY, |e| e.log)
    };
    let white = tried.iter().filter(|(_, kept)| explains(kept));
    let best = white
        .map(|(_, kept)| evidence(kept))
        .fold(f64::NEG_INFINITY, f64::max);
    let mut kept: Vec<(Structure, Kept)>;
    if best.is_finite() {
        let close = |kept: &Kept| explains(kept) && evidence(kept) > best - TOLD_APART;
        kept = tried.into_iter().filter(|(_, kept)| close(kept)).collect();
        kept.sort_by(|(_, a), (_, b)| evidence(b).total_cmp(&evidence(a)));
        let weight = |kept: &Kept| (evidence(kept) - best).exp();
        let sum: f64 = kept.iter().map(|(_, kept)| weight(kept)).sum();
        for (structure, kept) in &kept {
            let rung = rungs.iter_mut().find(|r| r.structure == *structure);
            rung.expect("all that was tried").weight = weight(kept) / sum;
        }
    } else {
        let structures: Vec<Structure> = tried.iter().map(|(s, _)| *s).collect();
        let errors = if stopped || structures.len() < 2 {
            None
        } else {
            match held_back(solver, problem, &structures, observer) {
                Err(Error::Stopped) => {
                    stopped = true;
                    None
                }
                errors => errors?,
            }
        };
        // without blocks to hold back, the file's structure: it is what the user asked for
        let mut chosen = tried.len() - 1;
        if let Some(errors) = errors {
            chosen = 0;
            for (k, error) in errors.iter().enumerate() {
                let rung = rungs.iter_mut().find(|r| r.structure == structures[k]);
                rung.expect("all that was tried").held_back = error.is_finite().then_some(*error);
                if *error < CLEARLY_BETTER * errors[chosen] || errors[chosen].is_nan() {
                    chosen = k;
                }
            }
        }
        let structure = structures[chosen];
        let rung = rungs.iter_mut().find(|r| r.structure == structure);
        rung.expect("all that was tried").weight = 1.0;
        kept = tried.into_iter().filter(|(s, _)| *s == structure).collect();
    }
    Ok(Climbed {
        kept,
        rungs,
        stopped,
    })
}

/// The error of each structure on blocks that it was not learned from: the records are halved, and
/// each half predicted by what was learned from the other. `None` where they are too short.
fn held_back(
    solver: &dyn Solver,
    problem: &Problem,
    structures: &[Structure],
    observer: &mut dyn Observer,
) -> Result<Option<Vec<f64>>, Error> {
    if problem.records.iter().any(|r| r.len() < 2 * FEWEST) {
        return Ok(None);
    }
    let halves = halves(problem);
    let mut errors = vec![];
    for &structure in structures {
        let mut squares = 0.0;
        for half in 0..2 {
            let fold = Problem {
                validate: &halves[1 - half].records,
                in_pieces: Some(false),
                ..halves[half].of(problem)
            };
            let error = fold.simplified(structure, |fold| {
                let kept =
                    starts::run(solver, fold, &[], &mut Quiet::new(observer, Trial::Halves))?;
                if kept.stopped {
                    return Err(Error::Stopped);
                }
                let learned = &kept.learned[0].1;
                let error = fold.validation_error(&learned.theta, &learned.noise);
                Ok(error.unwrap_or(f64::NAN))
            });
            squares += match error {
                Ok(error) if error.is_finite() => error * error / 2.0,
                Ok(_) | Err(Error::Diverged(_)) => f64::INFINITY,
                Err(error) => return Err(error),
            };
        }
        errors.push(f64::sqrt(squares));
    }
    Ok(Some(errors))
}

impl Described for Structure {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Absent, Self::Linear, Self::Few, Self::Whole] })
    }
}
