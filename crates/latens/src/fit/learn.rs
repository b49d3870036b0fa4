//! From records to a fit.
//!
//! (1) A smoothing pass with what is unknown as a random walk finds the hidden trajectory from the
//! known physics alone, and with it the scales of everything. (2) The networks get scaled arguments
//! and a random start. (3) The solver learns. (4) The states are smoothed with what was learned,
//! and the free run is scored.

use super::ensemble::{self, Band, Weighted};
use super::facts::{self, Constant, Facts, MemberFacts, RecordFacts};
use super::other_values::OtherValues;
use super::suspects::{SetAside, refuse};
use super::{Fit, Track, between, diagnosis, group, population, proof, relevance, residuals};
use crate::Error;
use crate::filter::{Smoothed, Smoother, exact_trajectory};
use crate::look::prior::{Walking, starting_at};
use crate::look::{self, Check, PriorSmoothing, SignalScales, Suspect, region};
use crate::model::Model;
use crate::model::settings::Settings;
use crate::numerics::Trajectory;
use crate::numerics::objective::Noise;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::{Record, Source};
use crate::solve::checkpoint::{Checkpoint, Earlier, Next, Resumed};
use crate::solve::ladder::{self, Climbed, Tried};
use crate::solve::starts::Seeded;
use crate::solve::{
    self, Asking, Equipment, Learned, Observer, PassReport, Problem, Quiet, Solver, Trial, registry,
};

/// Times that a fit is made at the most, each without the readings that the one before contradicts.
const MOST_ROUNDS: usize = 3;

/// Records by what they serve for.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Learned from.
    pub train: &'a [Source],
    /// Never learned from: they choose between the stages of batch, and between starts.
    pub validate: &'a [Source],
}

/// Learns θ from records; the facts know nothing yet of the command, and of tests.
///
/// # Errors
/// Settings or records that do not fit the model, divergence, or a stop before anything was learned.
pub fn learn(
    model: &Model,
    data: Data,
    settings: &Settings,
    equipment: Equipment,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let held = learn_under(model, data, settings, equipment, observer)?;
    let Some(inputs) = between::moving_inputs(&held) else {
        return Ok(held);
    };
    let mut moving = settings.clone();
    moving.first_order.extend(inputs.inputs.clone());
    let mut quiet = Quiet::new(observer, Trial::MovingInputs);
    match learn_under(model, data, &moving, equipment, &mut quiet) {
        Ok(moving) => Ok(between::decided(held, moving, inputs)),
        Err(Error::Diverged(_) | Error::Stopped) => Ok(held),
        Err(error) => Err(error),
    }
}

/// The same, with inputs as settings and file have them.
fn learn_under(
    model: &Model,
    data: Data,
    settings: &Settings,
    equipment: Equipment,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let set_aside = if settings.keep_suspects {
        SetAside::nothing(data)
    } else {
        SetAside::gross(data)
    };
    go(
        model,
        data,
        settings,
        set_aside,
        &Earlier::default(),
        equipment,
        observer,
    )
}

/// Goes on with a fit that was stopped, or does more passes.
///
/// The records must be those of the fit; see [`Begun::belongs_to`](super::begun::Begun::belongs_to).
///
/// # Errors
/// [`Error::Setting`] where there is nothing to go on with; those of [`learn`].
pub fn resume(
    fit: &Fit,
    data: Data,
    settings: &Settings,
    equipment: Equipment,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let fail = |message: String| Err(Error::Setting(message));
    let before = &fit.facts.settings;
    solve::same_solver(before, settings)?;
    let earlier = Earlier {
        starts: kept_starts(fit)?,
        stopped: fit.facts.stopped,
    };
    let passes = |r: &Resumed| match r.checkpoint {
        Checkpoint::Stage(s) if s.next == Next::Refinement => true,
        at => at.passes() >= settings.passes,
    };
    let more = settings.ensemble > before.ensemble;
    if !earlier.stopped && !more && earlier.starts.iter().all(passes) {
        return fail("this fit is finished: there is nothing to go on with, unless with more ⟦passes⟧, where it used up all of them, or a larger ⟦ensemble⟧".into());
    }
    let set_aside = SetAside::as_before(fit, data);
    // the fit's own may be simpler
    let whole = Model::from_text(&fit.facts.model_file, &fit.model.text)?;
    let mut resumed = go(
        &whole, data, settings, set_aside, &earlier, equipment, observer,
    )?;
    if !earlier.stopped {
        for facts in resumed.all_facts() {
            facts.rungs.clone_from(&fit.facts.rungs);
        }
    }
    Ok(resumed)
}

/// The starts that a fit kept.
fn kept_starts(fit: &Fit) -> Result<Vec<Resumed<'_>>, Error> {
    let fits = if fit.members.is_empty() {
        std::slice::from_ref(fit)
    } else {
        &fit.members
    };
    let why = |fit: &Fit| match fit.facts.stream {
        Some(_) => {
            "this is the snapshot of a stream, which `latens stream` goes on with: resume the fit that the stream came from"
        }
        None => "this fit was written by a Latens that could not resume",
    };
    fits.iter()
        .map(|fit| {
            let checkpoint = fit.facts.checkpoint.as_ref();
            let checkpoint = checkpoint.ok_or_else(|| Error::Setting(why(fit).into()))?;
            let reports = fit.facts.passes.iter().take(checkpoint.passes());
            Ok(Resumed {
                structure: fit.facts.structure,
                seed: fit.facts.seed,
                theta: &fit.theta,
                covariance: &fit.covariance,
                checkpoint,
                reports: reports.map(PassReport::from).collect(),
            })
        })
        .collect()
}

/// Looks at records before anything is learned from them: what they say about each state, and
/// where they take the networks. A fit does the same first ([`Observer::checked`]).
///
/// # Errors
/// [`Error::Setting`] where the records do not fit the model.
pub fn check(model: &Model, records: &[Record]) -> Result<Check, Error> {
    let model = &model.for_records(records.len())?;
    look::sampling::usable(model, records, &[])?;
    let (mut used, mut named) = (vec![], vec![]);
    for record in records {
        let gross = look::suspects::gross(record);
        refuse(model, record, &record.name, &gross, 1)?;
        named.extend(
            gross
                .iter()
                .map(|f| f.named(model, record, &record.name, 1)),
        );
        used.push(look::suspects::without(record, &gross));
    }
    let (model, prior, dt) = looked_at(model, &used)?;
    Ok(Check {
        suspects: named,
        ..look::check::check(&model, &used, &prior, dt)
    })
}

/// The model with its networks scaled to records, the sizes of everything as the known physics shows
/// them, and the sample time.
///
/// # Errors
/// [`Error::Setting`] where the records do not fit the model.
pub fn scaled(model: &Model, records: &[Record]) -> Result<(Model, SignalScales, f64), Error> {
    let (model, prior, dt) = looked_at(model, records)?;
    Ok((model, prior.scales, dt))
}

fn looked_at(model: &Model, records: &[Record]) -> Result<(Model, PriorSmoothing, f64), Error> {
    let dt = look::sampling::usable(model, records, &[])?;
    let mut model = model.clone();
    let settings = solve::BUILT_IN_SOLVERS[0].settings();
    let walking = Walking::Outputs;
    let never = || false;
    let prior =
        look::smooth_with_known_equations(&mut model, records, &settings, walking, dt, &never)?;
    Ok((model, prior, dt))
}

fn records(sources: &[Source]) -> Vec<Record> {
    sources.iter().map(|s| s.record.clone()).collect()
}

/// Learns without the readings that are set aside; where what was learned contradicts others, again
/// without those.
fn go(
    model: &Model,
    data: Data,
    settings: &Settings,
    mut set_aside: SetAside,
    earlier: &Earlier,
    equipment: Equipment,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let model = model.for_settings(settings)?;
    let model = &model.for_records(data.train.len())?;
    let grouped = group::grouped(model, data)?;
    let (model, data) = match &grouped {
        Some(grouped) => (&grouped.model, grouped.data()),
        None => (model, data),
    };
    let judges = !settings.keep_suspects && earlier.starts.is_empty();
    for round in 1.. {
        set_aside.check(model, data)?;
        let (train, validate) = set_aside.taken_from(data);
        let used = Data {
            train: &train,
            validate: &validate,
        };
        let before = Before {
            earlier,
            suspects: (round == 1).then(|| set_aside.named(model, data)),
            equipment,
        };
        let judge = |problem: &Problem, learned: &Learned, stopped: bool| {
            judges.then(|| {
                let judged = set_aside.judged(problem, data, learned);
                let again = round < MOST_ROUNDS && !stopped && !judged.is_like(&set_aside);
                (judged, again)
            })
        };
        match once(model, used, settings, before, observer, judge)? {
            Outcome::Again(judged) => {
                observer.again(&judged.named(model, data));
                set_aside = judged;
            }
            Outcome::Learned(mut fit, judged) => {
                if let Some(judged) = judged {
                    set_aside = set_aside.told_by(&judged);
                }
                let suspects = set_aside.named(model, data);
                for facts in fit.all_facts() {
                    facts.suspects.clone_from(&suspects);
                }
                return Ok(*fit);
            }
        }
    }
    unreachable!("the last round ends it")
}

/// What came of learning once.
enum Outcome {
    /// The fit, and what it says of the readings that are to be set aside.
    Learned(Box<Fit>, Option<SetAside>),
    /// What was learned contradicts other readings than were set aside.
    Again(SetAside),
}

/// What there is before it is learned.
struct Before<'a> {
    earlier: &'a Earlier<'a>,
    /// Shown with the first look at the records.
    suspects: Option<Vec<Suspect>>,
    equipment: Equipment<'a>,
}

/// Learns once; `judge` says what is to be set aside by the best that was learned, and whether it is
/// learned again without that.
fn once(
    model: &Model,
    data: Data,
    settings: &Settings,
    before: Before,
    observer: &mut dyn Observer,
    judge: impl FnOnce(&Problem, &Learned, bool) -> Option<(SetAside, bool)>,
) -> Result<Outcome, Error> {
    registry::check(settings, model)?;
    let solver = solve::find(&settings.solver)?;
    if before.equipment.workers.is_some() && !solver.takes_workers() {
        return Err(Error::Setting(format!(
            "{} learns in one process: ⟦backend⟧ is for ⟦solver⟧ batch",
            solver.name()
        )));
    }
    let (train, validate) = (records(data.train), records(data.validate));
    let dt = look::sampling::usable(model, &train, &validate)?;
    let mut model = model.clone();
    let walking = solver.walking();
    let prior = {
        let asking = Asking::new(observer);
        let stop = || asking.is_stopped();
        look::smooth_with_known_equations(&mut model, &train, settings, walking, dt, &stop)?
    };
    let model = model;
    if let Some(suspects) = before.suspects {
        observer.checked(&Check {
            suspects,
            ..look::check::check(&model, &train, &prior, dt)
        });
    }
    let stepper = Stepper::over(&model, &model.system, dt, train.iter().chain(&validate));
    let noise = look::noise(settings, &model, &prior.scales, dt);
    let problem = Problem {
        model: &model,
        settings,
        records: &train,
        validate: &validate,
        stepper: &stepper,
        scales: &prior.scales,
        prior: &prior,
        noise: &noise,
        constants: &[],
        sharp: false,
        elsewhere: false,
        in_pieces: None,
        checkpoints: before.equipment.checkpoints,
        workers: before.equipment.workers,
    };
    let Climbed {
        kept,
        rungs,
        stopped,
    } = ladder::run(solver, &problem, before.earlier, observer)?;
    let judged = kept.first().and_then(|Tried { structure, kept }| {
        let learned = &kept.learned.first()?.learned;
        problem.simplified(*structure, |p| judge(p, learned, stopped))
    });
    if let Some((judged, true)) = judged {
        return Ok(Outcome::Again(judged));
    }
    let (mut fits, mut attempts) = (vec![], vec![]);
    for Tried { structure, kept } in kept {
        let weight = rungs.iter().find(|r| r.structure == structure);
        let weight = weight.map_or(1.0, |r| r.weight) / kept.learned.len() as f64;
        for Seeded { seed, learned } in kept.learned {
            let mut fit = problem.simplified(structure, |p| {
                let mut fit = fitted(p, data, seed, learned);
                if fit.facts.contradicted && !stopped {
                    fit.facts.proof = proof::held_back(solver, p, &fit, observer)?;
                }
                fit.facts.findings = residuals::findings(&fit);
                fit.facts.residuals = diagnosis::tests(&fit);
                fit.facts.relevance = relevance::relevance(&fit);
                Ok::<_, Error>(fit)
            })?;
            let own_attempts = kept.attempts.iter().filter(|a| a.seed == seed);
            fit.facts.attempts = own_attempts.cloned().collect();
            let others = kept.elsewhere.iter();
            let others = others.map(|e| OtherValues::of(&fit.model, &fit.facts.unknowns, e));
            fit.facts.other_values = others.filter(|o| !o.constants.is_empty()).collect();
            fit.facts.structure = structure;
            fits.push(Weighted { weight, value: fit });
        }
        attempts.extend(kept.attempts);
    }
    let mut fit = if fits.len() == 1 {
        fits.remove(0).value
    } else {
        together(fits, data)
    };
    for facts in fit.all_facts() {
        facts.rungs.clone_from(&rungs);
    }
    fit.facts.attempts = attempts;
    fit.facts.stopped = stopped;
    fit.facts.threads = threads(solver);
    Ok(Outcome::Learned(
        Box::new(fit),
        judged.map(|(judged, _)| judged),
    ))
}

/// Threads that a solver works on.
pub fn threads(solver: &dyn Solver) -> usize {
    if solver.is_parallel() {
        rayon::current_num_threads()
    } else {
        1
    }
}

/// What was learned, with what it says about each record.
fn fitted(problem: &Problem, data: Data, seed: u64, learned: Learned) -> Fit {
    let (model, stepper) = (problem.model, problem.stepper);
    let regions = region::visited(&model.system, problem.records, &learned.smoothed);
    let open = problem.open_start(&learned.noise);
    let validated = problem.validate.iter().map(|record| {
        let smoothed = problem.smoothed_with(&learned.theta, &learned.noise, record);
        let noise = starting_at(
            stepper,
            record,
            &open.inflated(stepper, learned.variance_inflation),
        );
        let smoother = Smoother {
            stepper,
            record,
            theta: &learned.theta,
            noise: &noise,
        };
        smoothed.with_bands(&smoother, &learned.draws)
    });
    let validated: Vec<Smoothed> = validated.collect();
    let all = problem.records.iter().chain(problem.validate);
    let smoothed = learned.smoothed.iter().chain(&validated);
    let tracks: Vec<Track> = all
        .zip(smoothed)
        .enumerate()
        .map(|(place, (record, smoothed))| {
            let noise = starting_at(stepper, record, &open);
            let runs = learned.free_runs.as_ref();
            let run = runs.and_then(|runs| runs.get(place)).cloned();
            let free_run = run.unwrap_or_else(|| {
                let theta = &learned.theta;
                let run = |record: &Record, noise: &Noise, smoothed: &Smoothed| {
                    let exact = exact_trajectory(stepper, record, theta, noise, smoothed);
                    score::free_run_along(stepper, record, theta, &exact)
                };
                let stretches = look::blind::stretches(model, record);
                if stretches.len() == 1 {
                    return run(record, &noise, smoothed);
                }
                // where nobody knows what drives the states, what follows starts anew
                let mut whole = Trajectory::with_capacity(record.len(), model.states.len());
                for samples in stretches {
                    let part = record.slice(samples.clone());
                    let noise = starting_at(stepper, &part, &open);
                    let states = run(&part, &noise, &smoothed.slice(samples));
                    states.rows().for_each(|state| whole.push(state));
                }
                whole
            });
            Track {
                place,
                one_step: score::one_step(stepper, record, &learned.theta, &smoothed.states),
                free_run,
                smoothed: smoothed.states.clone(),
                deviations: smoothed.deviations.clone(),
                record: record.clone(),
            }
        })
        .collect();
    let mut scales = problem.scales.clone();
    look::scales::refine(
        model,
        &mut scales,
        learned.smoothed.iter().map(|s| &s.states),
    );
    let populations = population::of(problem, data, &learned);
    for &i in stepper.varying() {
        scales.scale[i] = learned.noise.start[i].sqrt();
        scales.walk[i] = learned.noise.process[i];
    }
    let mut fit = Fit {
        name: String::new(),
        facts: Facts {
            scales,
            ..Facts::learned(problem, &learned, seed, regions)
        },
        model: model.clone(),
        theta: learned.theta,
        covariance: learned.covariance,
        draws: learned.draws,
        tracks: vec![],
        missing: vec![],
        tests: vec![],
        members: vec![],
        stream: None,
    };
    for (place, population) in populations {
        fit.facts.unknowns[place].population = Some(population);
    }
    fit.facts.records = record_facts(&fit, data, &tracks);
    fit.tracks = tracks;
    fit
}

/// The facts about each record of a fit.
fn record_facts(fit: &Fit, data: Data, tracks: &[Track]) -> Vec<RecordFacts> {
    let pairs = data.by_role().into_iter().zip(tracks);
    pairs
        .map(|((role, source), track)| facts::of_track(fit, source, role, track))
        .collect()
}

/// Several fits as one; the first is the best.
fn together(mut members: Vec<Weighted<Fit>>, data: Data) -> Fit {
    let mut fit = members[0].value.clone();
    members.sort_by_key(|m| m.value.facts.seed);
    let tracks: Vec<Track> = (0..fit.tracks.len())
        .map(|place| {
            let tracks = members.iter().map(|m| Weighted {
                weight: m.weight,
                value: &m.value.tracks[place],
            });
            common_track(&tracks.collect::<Vec<_>>())
        })
        .collect();
    fit.facts.records = record_facts(&fit, data, &tracks);
    fit.tracks = tracks;
    fit.facts.findings = residuals::findings(&fit);
    fit.facts.residuals = diagnosis::tests(&fit);
    let facts = members.iter().enumerate().map(|(k, member)| {
        let records = &member.value.facts.records;
        MemberFacts {
            seed: member.value.facts.seed,
            weight: Some(member.weight),
            run: facts::member_folder(k),
            nrmse: records.iter().map(|r| r.nrmse.clone()).collect(),
            mean_nrmse: records.iter().map(|r| r.mean_nrmse).collect(),
        }
    });
    fit.facts.ensemble = facts.collect();
    fit.facts.unknowns = common_constants(&members);
    fit.members = members.into_iter().map(|member| member.value).collect();
    fit
}

/// The unknown constants of members that differ in structure, each with its weight: what the data
/// do not decide between is part of the deviation. Those of equal weight are other starts of one
/// structure, and the best speaks.
fn common_constants(members: &[Weighted<Fit>]) -> Vec<Constant> {
    let sum: f64 = members.iter().map(|m| m.weight).sum();
    let best = members.iter().max_by(|a, b| a.weight.total_cmp(&b.weight));
    let best = &best.expect("members").value.facts.unknowns;
    let structure = members[0].value.facts.structure;
    let mut structures = members.iter().map(|m| m.value.facts.structure);
    if structures.all(|s| s == structure) {
        return best.clone();
    }
    let weights: Vec<f64> = members.iter().map(|m| m.weight / sum).collect();
    let soft = ensemble::softened(&weights);
    let mixed = |(i, constant): (usize, &Constant)| {
        let constants = || members.iter().map(|m| &m.value.facts.unknowns[i]);
        let value: f64 = constants().zip(&weights).map(|(c, w)| w * c.value).sum();
        let variance: f64 = constants()
            .zip(&soft)
            .map(|(c, w)| w * (c.std.powi(2) + (c.value - value).powi(2)))
            .sum();
        let unknown = &members[0].value.model.unknowns[i];
        let reach = facts::NORMAL_95_DEVIATIONS * variance.sqrt();
        let share: Option<Vec<f64>> = constants().map(|c| c.prior_share).collect();
        Constant {
            value,
            std: variance.sqrt(),
            interval: Some((
                (value - reach).clamp(unknown.min, unknown.max),
                (value + reach).clamp(unknown.min, unknown.max),
            )),
            bound: constant
                .bound
                .filter(|b| constants().all(|c| c.bound == Some(*b))),
            prior_share: share.map(|s| s.iter().zip(&weights).map(|(s, w)| s * w).sum()),
            ..constant.clone()
        }
    };
    best.iter().enumerate().map(mixed).collect()
}

/// What the members of an ensemble say together.
fn common_track(members: &[Weighted<&Track>]) -> Track {
    let bands = members.iter().map(|m| Band {
        weight: m.weight,
        values: &m.value.smoothed,
        deviations: &m.value.deviations,
    });
    let (smoothed, deviations) = ensemble::together(&bands.collect::<Vec<_>>());
    let common = |run: fn(&Track) -> &Trajectory| {
        let runs = members.iter().map(|m| Weighted {
            weight: m.weight,
            value: run(m.value),
        });
        ensemble::common_run(&runs.collect::<Vec<_>>())
    };
    let first = members[0].value;
    Track {
        place: first.place,
        record: first.record.clone(),
        smoothed,
        deviations,
        one_step: common(|m| &m.one_step),
        free_run: common(|m| &m.free_run),
    }
}
