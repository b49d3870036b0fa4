//! How much of a network the data ask for: nothing, a linear function, a few units, or all that
//! the file says.
//!
//! A network that is not needed makes predictions worse: it fits what the known equations cannot
//! say of *these* records. So the known equations are fitted alone first, where they have unknown
//! constants, and with noise simpler functions are tried beside the file's network; they cost
//! little. Where some structure explains the data down to white noise, the evidence decides
//! between all that do, and those that it hardly tells apart speak together. Where none does, the
//! model is wrong somewhere, and the evidence is computed with the wrong noise: then blocks of the records
//! that were not learned from decide, and a network has to be clearly better there.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::batch::disturbance::CLEAR_EVIDENCE_GAIN;
use super::batch::regress::imitate;
use super::checkpoint::{Earlier, Resumed};
use super::starts::{self, Attempt, Kept, Seeded};
use super::{Observer, Problem, Quiet, Solver, Trial, elsewhere, halves, kept};
use crate::Error;
use crate::described;
use crate::described::{Described, Value};
use crate::filter::Smoothed;
use crate::look::{self, DETERMINED_SCALE_PART, SignalScales};
use crate::model::Model;
use crate::model::network::Structure;
use crate::model::settings::Settings;
use crate::numerics::step::Stepper;

/// Structures whose ln p is this close to the best are not told apart.
const UNDECIDED_LOG_EVIDENCE: f64 = 10.0;
/// More structure has to predict blocks that it never saw better by this factor.
const CLEARLY_BETTER_ERROR_RATIO: f64 = 0.95;
/// A structure is a model where its free run errs by less than this part of the range; the next
/// then begins at the constants that it found.
const SOUND_FREE_RUN_ERROR: f64 = 0.1;
/// Structures that follow the records learned from so many times worse than the best are not tried
/// on blocks held back.
const HOPELESS_ERROR_RATIO: f64 = 3.0;
/// Samples of the least half of a record that is held back.
const FEWEST_SAMPLES_OF_HALF: usize = 100;

/// Records without noise are followed where a free run errs by less than this part of the range.
const EXPLAINED_FREE_RUN_ERROR: f64 = 1e-3;
/// Where it errs by more, noise of this part of the range is assumed.
const ASSUMED_NOISE_PART: f64 = 0.01;
/// The states are known where they are not determined on less than this part of a record.
const OPEN_SAMPLES_PART: f64 = 0.05;
/// The most weights of a small network, and the seeds that it is learned from: at the least, at the most.
pub(super) const FEW_WEIGHTS: usize = 100;
const FEWEST_SEEDS: u64 = 3;
const MOST_SEEDS: u64 = 5;
/// Free runs whose errors differ by less than this factor follow the records equally well.
const SAME_ERROR_RATIO: f64 = 1.02;

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

/// A structure with what was learned with it.
pub struct Tried {
    pub structure: Structure,
    pub kept: Kept,
}

impl Tried {
    /// ln p.
    fn evidence(&self) -> f64 {
        let evidence = self.kept.best().evidence.as_ref();
        evidence.map_or(f64::NEG_INFINITY, |e| e.log)
    }

    /// The same under equations that hold exactly.
    fn exact_evidence(&self) -> f64 {
        self.evidence() - self.kept.best().disturbed.unwrap_or(0.0)
    }
}

/// The best constants so far, and the error of their free run.
struct BestConstants {
    constants: Vec<f64>,
    error: f64,
}

/// What the ladder came to.
pub struct Climbed {
    /// What is kept, the best first.
    pub kept: Vec<Tried>,
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
        kept: vec![Tried {
            structure: Structure::Whole,
            kept,
        }],
        rungs: vec![],
    };
    let mut structures = structures(problem);
    if !earlier.starts.is_empty() && !earlier.stopped {
        structures.retain(|s| earlier.starts.iter().any(|e| e.structure == *s));
    }
    if !problem.settings.simplify || structures.is_empty() {
        // θ of a simpler structure is none of this one
        let begun = earlier.starts.iter();
        let begun: Vec<&Resumed> = begun.filter(|e| e.structure == Structure::Whole).collect();
        let mut kept = starts::run(solver, problem, &begun, observer)?;
        if problem.settings.simplify && begun.is_empty() {
            kept = elsewhere::best(solver, problem, kept, &mut None, observer)?;
        }
        return Ok(whole(kept));
    }
    if structures == [Structure::Whole] && earlier.starts.is_empty() {
        let kept = seeded(solver, problem, None, observer)?;
        return Ok(whole(elsewhere::best(
            solver, problem, kept, &mut None, observer,
        )?));
    }
    let mut constants: Option<BestConstants> = None;
    let mut tried: Vec<Tried> = vec![];
    let mut rungs = vec![];
    let (mut stopped, mut rests) = (false, None);
    for structure in structures {
        let begun = earlier.starts.iter().filter(|e| e.structure == structure);
        let begun: Vec<&Resumed> = begun.collect();
        let learned = problem.simplified(structure, |simpler| {
            let from = |constants| Problem {
                constants,
                ..*simpler
            };
            let found = constants.as_ref().map_or(&[][..], |best| &best.constants);
            if !begun.is_empty() {
                return starts::run(solver, &from(found), &begun, observer);
            }
            let mut learn = |constants| {
                climb(
                    solver,
                    problem.model,
                    &from(constants),
                    structure,
                    &tried,
                    &mut rests,
                    observer,
                )
            };
            match learn(found) {
                // what makes up for all that a simpler structure lacks may lie where nothing leads back
                Ok(kept) if !found.is_empty() && !kept.stopped && !explains_data(&kept) => {
                    better_way(Ok(kept), learn(&[]))
                }
                Err(error @ Error::Diverged(_)) if !found.is_empty() => {
                    better_way(Err(error), learn(&[]))
                }
                learned => learned,
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
        let best = kept.as_ref().map(Kept::best);
        rungs.push(Rung {
            structure,
            evidence: best.and_then(|l| Some(l.evidence.as_ref()?.log)),
            error: best.map(|l| l.free_run).filter(|e| e.is_finite()),
            held_back: None,
            weight: 0.0,
        });
        let Some(kept) = kept else { continue };
        let learned = kept.best();
        stopped = kept.stopped;
        let error = constants
            .as_ref()
            .map_or(SOUND_FREE_RUN_ERROR, |best| best.error);
        if learned.free_run < error {
            let unknowns = problem.model.system.unknowns();
            constants = Some(BestConstants {
                constants: learned.theta[..unknowns].to_vec(),
                error: learned.free_run,
            });
        }
        tried.push(Tried { structure, kept });
        if stopped {
            break;
        }
    }
    choose(solver, problem, tried, rungs, stopped, observer)
}

/// Learns with one structure, from the seed of the settings, others, and other values of the constants. `rests` is
/// what [`elsewhere::best`] has found with the structures before.
fn climb(
    solver: &dyn Solver,
    model: &Model,
    problem: &Problem,
    structure: Structure,
    tried: &[Tried],
    rests: &mut Option<f64>,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    if structure != Structure::Whole {
        let mut quiet = Quiet::new(observer, Trial::Structure(structure));
        let kept = starts::run(solver, problem, &[], &mut quiet)?;
        drop(quiet);
        return elsewhere::best(solver, problem, kept, rests, observer);
    }
    if let Some(kept) = refined_from_few(solver, model, problem, tried, observer)? {
        return Ok(kept);
    }
    let simpler = tried.iter().map(|t| &t.kept).max_by(|a, b| {
        let ranks = rank(a).partial_cmp(&rank(b));
        ranks.expect("ranks are numbers")
    });
    let kept = seeded(solver, problem, simpler, observer)?;
    elsewhere::best(solver, problem, kept, rests, observer)
}

/// Of two ways to learn with one structure, of which the first does not explain the data: the other where that does,
/// or where it follows the records better.
fn better_way(first: Result<Kept, Error>, other: Result<Kept, Error>) -> Result<Kept, Error> {
    match (first, other) {
        (Ok(mut first), Err(Error::Stopped)) => {
            first.stopped = true;
            Ok(first)
        }
        (Ok(first), Err(Error::Diverged(_))) => Ok(first),
        (Ok(first), Ok(other)) => {
            let better = SAME_ERROR_RATIO * other.best().free_run < first.best().free_run;
            Ok(if better || explains_data(&other) {
                other
            } else {
                first
            })
        }
        (_, other) => other,
    }
}

/// Learns from what networks of a few units have learned, where that leaves nothing open: the states are known
/// then, and networks of few weights that do the same along them need only be refined. (A linear function says
/// nothing of bends, and a network that does the same as it stays linear.) `None` where the simpler fit is not
/// certain, or the refined one is not.
fn refined_from_few(
    solver: &dyn Solver,
    model: &Model,
    problem: &Problem,
    tried: &[Tried],
    observer: &mut dyn Observer,
) -> Result<Option<Kept>, Error> {
    let (settings, system) = (problem.settings, &problem.model.system);
    let weights = system.parameters() - system.unknowns();
    let few = tried.iter().find(|t| t.structure == Structure::Few);
    let alone = settings.starts.max(settings.ensemble) == 1;
    let certain = |kept: &Kept| alone && weights <= FEW_WEIGHTS && is_certain(problem, kept);
    let Some(Tried { structure, kept }) = few.filter(|t| certain(&t.kept)) else {
        return Ok(None);
    };
    let theta = problem.initial_theta(settings.seed);
    let model = model.simplified(*structure);
    let theta = imitate(problem, &model, kept.best(), theta);
    match starts::near(solver, problem, settings.seed, theta, observer) {
        Ok(refined) => {
            let done = is_certain(problem, &refined) && follows_as_well(&refined, kept);
            Ok((refined.stopped || done).then_some(refined))
        }
        Err(Error::Diverged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a start leaves nothing open: it is sound, what is left over is white noise, and the data
/// determine the states that nobody measured.
fn is_certain(problem: &Problem, kept: &Kept) -> bool {
    let Rank { sound, white, .. } = rank(kept);
    let determined = |smoothed: &Smoothed| {
        let scale = problem.scales.scale.iter().enumerate();
        scale.into_iter().all(|(i, scale)| {
            let column = smoothed.deviations.column(i);
            let open = column.filter(|std| *std > DETERMINED_SCALE_PART * scale);
            (open.count() as f64) < OPEN_SAMPLES_PART * smoothed.deviations.len() as f64
        })
    };
    problem.noisy() && sound && white && kept.best().smoothed.iter().all(determined)
}

/// Learns from the seed of the settings. A network of few weights has several minima and costs little. With noise
/// it is learned from some more seeds, every other of them with states that start elsewhere, unless the first
/// leaves nothing open; and from yet more while it follows the data less well than a simpler one, which it need
/// not. Without noise it is learned from more seeds only while it does not explain the data, and these start with
/// sharp bends.
fn seeded(
    solver: &dyn Solver,
    problem: &Problem,
    simpler: Option<&Kept>,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let (settings, system) = (problem.settings, &problem.model.system);
    let weights = system.parameters() - system.unknowns();
    let alone = settings.starts.max(settings.ensemble) == 1;
    let mut best = starts::run(solver, problem, &[], observer);
    for more in 1..MOST_SEEDS {
        let enough = match &best {
            Ok(best) if problem.noisy() => {
                let least = simpler.is_none_or(|simpler| follows_as_well(best, simpler));
                least && (more >= FEWEST_SEEDS || is_certain(problem, best))
            }
            outcome => is_explained(outcome),
        };
        let stopped = best.as_ref().is_ok_and(|best| best.stopped);
        if stopped || enough || weights == 0 || weights > FEW_WEIGHTS || !alone {
            break;
        }
        let settings = Settings {
            seed: settings.seed.wrapping_add(more),
            ..settings.clone()
        };
        let other = Problem {
            settings: &settings,
            sharp: !problem.noisy(),
            elsewhere: more % 2 == 1,
            ..*problem
        };
        let trial = Trial::Seed(settings.seed);
        match starts::run(solver, &other, &[], &mut Quiet::new(observer, trial)) {
            Ok(next) => {
                best = match best {
                    Ok(best) if !is_better(problem, &next, &best) => Ok(best),
                    _ => Ok(named(next, problem.settings.seed)),
                }
            }
            Err(Error::Diverged(_)) => {}
            Err(Error::Stopped) => {
                let best = best.as_mut().map_err(|_| Error::Stopped)?;
                best.stopped = true;
            }
            Err(error) => return Err(error),
        }
    }
    if !problem.noisy() && weights > 0 && !is_explained(&best) {
        return as_if_noisy(solver, problem, best, observer);
    }
    best
}

/// What came of a seed that was tried for another: all of it repeats with that other.
fn named(mut kept: Kept, seed: u64) -> Kept {
    kept.learned.iter_mut().for_each(|s| s.seed = seed);
    kept.attempts.iter_mut().for_each(|a| a.seed = seed);
    kept
}

/// Whether a start came to more than another: by the evidence, or without noise by the free run.
fn is_better(problem: &Problem, a: &Kept, b: &Kept) -> bool {
    if problem.noisy() {
        rank(a) > rank(b)
    } else {
        let [a, b] = [a, b].map(|kept| kept.best().free_run);
        a < b || b.is_nan()
    }
}

/// Whether a start follows the records no worse than that of a simpler structure.
fn follows_as_well(kept: &Kept, simpler: &Kept) -> bool {
    let [error, least] = [kept, simpler].map(|kept| kept.best().free_run);
    let [kept, simpler] = [kept, simpler].map(rank);
    match (kept.sound, kept.white).cmp(&(simpler.sound, simpler.white)) {
        Ordering::Less => false,
        Ordering::Equal => error < SAME_ERROR_RATIO * least,
        Ordering::Greater => true,
    }
}

/// Whether a free run follows records without noise.
fn is_explained(kept: &Result<Kept, Error>) -> bool {
    match kept {
        Ok(kept) => kept.stopped || kept.best().free_run < EXPLAINED_FREE_RUN_ERROR,
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
        noise: problem
            .scales
            .range
            .iter()
            .map(|r| ASSUMED_NOISE_PART * r)
            .collect(),
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
    let outcome = seeded(solver, &noisy, None, &mut quiet);
    drop(quiet);
    let outcome = match outcome {
        Ok(outcome) if !outcome.stopped => outcome,
        Ok(_) | Err(Error::Diverged(_) | Error::Stopped) => return first,
        Err(error) => return Err(error),
    };
    let Seeded { seed, learned } = &outcome.learned[0];
    let second = starts::near(solver, problem, *seed, learned.theta.clone(), observer);
    let error = |kept: &Result<Kept, Error>| {
        let kept = kept.as_ref().ok();
        let error = kept.map_or(f64::INFINITY, |kept| kept.best().free_run);
        if error.is_nan() { f64::INFINITY } else { error }
    };
    if error(&second) < error(&first) {
        // the attempts before are reported too
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

/// What starts are compared by, the first that differs deciding.
#[derive(PartialEq, PartialOrd)]
pub(super) struct Rank {
    /// Whether nothing says that it cannot be right.
    pub sound: bool,
    /// Whether it explains the data down to white noise.
    pub white: bool,
    /// ln p.
    pub log: f64,
}

pub(super) fn rank(kept: &Kept) -> Rank {
    let sound = kept.attempts.iter().any(|a| a.kept && a.failure.is_none());
    let learned = kept.best();
    let evidence = learned
        .evidence
        .as_ref()
        .map_or(f64::NEG_INFINITY, |e| e.log);
    Rank {
        sound,
        white: !learned.contradicted,
        log: evidence,
    }
}

/// Whether nothing says that it is wrong.
pub(super) fn explains_data(kept: &Kept) -> bool {
    let Rank { sound, white, .. } = rank(kept);
    sound && white
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
    mut tried: Vec<Tried>,
    mut rungs: Vec<Rung>,
    mut stopped: bool,
    observer: &mut dyn Observer,
) -> Result<Climbed, Error> {
    // a simpler function is not to be had for random disturbances: they have to do better than all that
    // holds exactly
    let white = tried.iter().filter(|t| explains_data(&t.kept));
    let exact = white.map(Tried::exact_evidence);
    let exact = exact.fold(f64::NEG_INFINITY, f64::max);
    tried.retain(|t| {
        let disturbed = explains_data(&t.kept) && t.kept.best().disturbed.is_some();
        !disturbed || t.evidence() > exact + CLEAR_EVIDENCE_GAIN
    });
    let white = tried.iter().filter(|t| explains_data(&t.kept));
    let best = white.map(Tried::evidence);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    let mut kept: Vec<Tried>;
    if best.is_finite() {
        let close =
            |t: &Tried| explains_data(&t.kept) && t.evidence() > best - UNDECIDED_LOG_EVIDENCE;
        kept = tried.into_iter().filter(close).collect();
        kept.sort_by(|a, b| b.evidence().total_cmp(&a.evidence()));
        let weight = |t: &Tried| (t.evidence() - best).exp();
        let sum: f64 = kept.iter().map(weight).sum();
        for tried in &kept {
            let rung = rungs.iter_mut().find(|r| r.structure == tried.structure);
            rung.expect("all that was tried").weight = weight(tried) / sum;
        }
    } else {
        let beyond = beyond_noise(problem);
        let error = |t: &Tried| beyond(t.kept.best().free_run);
        let least = tried.iter().map(error);
        let least = least.fold(f64::INFINITY, f64::min);
        tried.retain(|t| error(t) <= HOPELESS_ERROR_RATIO * least || least.is_infinite());
        let structures: Vec<Structure> = tried.iter().map(|t| t.structure).collect();
        let errors = if stopped || structures.len() < 2 {
            None
        } else {
            match held_back(solver, problem, &tried, observer) {
                Err(Error::Stopped) => {
                    stopped = true;
                    None
                }
                errors => errors?,
            }
        };
        // without blocks to hold back, the file's structure: it is what the user asked for
        let mut structure = structures[structures.len() - 1];
        if let Some(errors) = errors {
            let mut least = f64::NAN;
            for (error, next) in errors.into_iter().zip(structures) {
                let rung = rungs.iter_mut().find(|r| r.structure == next);
                rung.expect("all that was tried").held_back = error.is_finite().then_some(error);
                let error = beyond(error);
                if error < CLEARLY_BETTER_ERROR_RATIO * least || least.is_nan() {
                    (least, structure) = (error, next);
                }
            }
        }
        let rung = rungs.iter_mut().find(|r| r.structure == structure);
        rung.expect("all that was tried").weight = 1.0;
        tried.retain(|t| t.structure == structure);
        kept = tried;
    }
    Ok(Climbed {
        kept,
        rungs,
        stopped,
    })
}

/// What of a free run's error is not noise; below some part of the noise, that part.
fn beyond_noise(problem: &Problem) -> impl Fn(f64) -> f64 {
    const LEAST_NOISE_PART: f64 = 0.2;
    let scales = problem.scales;
    let channels = scales.noise.iter().zip(&scales.range);
    let noise = channels.map(|(noise, range)| noise / range).sum::<f64>();
    let noise = noise / scales.noise.len() as f64;
    move |error: f64| match error * error - noise * noise {
        lost if lost.is_nan() => f64::INFINITY,
        square => square.max((LEAST_NOISE_PART * noise).powi(2)).sqrt(),
    }
}

/// The error of each structure on blocks that it was not learned from: the records are halved, and
/// each half predicted by what is learned from the other. `None` where they are too short.
fn held_back(
    solver: &dyn Solver,
    problem: &Problem,
    tried: &[Tried],
    observer: &mut dyn Observer,
) -> Result<Option<Vec<f64>>, Error> {
    if problem
        .records
        .iter()
        .any(|r| r.len() < 2 * FEWEST_SAMPLES_OF_HALF)
    {
        return Ok(None);
    }
    let halves = halves(problem);
    let mut errors = vec![];
    for Tried { structure, kept } in tried {
        let mut squares = 0.0;
        for half in 0..2 {
            let fold = Problem {
                in_pieces: Some(false),
                ..halves[half].of(problem)
            };
            let error = fold.simplified(*structure, |fold| {
                let Seeded { seed, learned } = &kept.learned[0];
                let begin = fold.start_of_half(&learned.theta, *seed);
                let mut quiet = Quiet::new(observer, Trial::Halves);
                let learned = kept::learn(solver, fold, begin, &mut quiet)?;
                if learned.stopped {
                    return Err(Error::Stopped);
                }
                // a gap may be in the half that is predicted alone
                let (model, both) = (fold.model, [half, 1 - half]);
                let records = both.iter().flat_map(|h| &halves[*h].records);
                let dt = fold.stepper.dt();
                let other = Problem {
                    stepper: &Stepper::over(model, &model.system, dt, records),
                    validate: &halves[1 - half].records,
                    ..*fold
                };
                let error = other.validation_error(&learned.theta, &learned.noise);
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
