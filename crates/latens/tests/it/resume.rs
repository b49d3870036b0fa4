//! Fits that are stopped, and go on where they were; ensembles, which may be stopped as well.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::fixture::{defaults, fit, sources};
use latens::fit::Fit;
use latens::fit::Start;
use latens::fit::begun::Begun;
use latens::fit::learn::{Data, learn, resume};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::checkpoint::Checkpoint;
use latens::solve::kept::{Checkpoints, Keep};
use latens::solve::{Equipment, Observer, PassReport, Progress, Trial};
use latens::{Error, Model, Record, Settings, Silent, systems};

/// Stops a fit in a pass, at a step of it.
struct StopAt {
    pass: usize,
    step: usize,
    /// Reports heard of.
    passes: usize,
}

impl Observer for StopAt {
    fn progress(&mut self, progress: &Progress) -> bool {
        (progress.pass, progress.step) < (self.pass, self.step)
    }

    fn pass(&mut self, _report: &PassReport) -> bool {
        self.passes += 1;
        true
    }
}

fn stop_at(pass: usize, step: usize) -> StopAt {
    StopAt {
        pass,
        step,
        passes: 0,
    }
}

/// An oscillator with a small network, and a record of it.
fn oscillator(noise: Option<f64>) -> (Model, Record) {
    let text = systems::find("harmonic-oscillator").unwrap();
    let text = text.replace("[\"20 tanh\", \"20 tanh\"]", "[\"5 tanh\"]");
    let model = Model::from_text("harmonic-oscillator", &text).unwrap();
    let simulation = Simulation {
        steps: Some(1000),
        noise: vec![noise.map(NoiseLevel::OfRange)],
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    (model, record)
}

/// Checkpoints in memory.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Vec<u8>>>);

impl Keep for Kept {
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(name).cloned()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.0.lock().unwrap().insert(name.into(), bytes.into());
    }

    fn forget(&self, beginning: &str) {
        let mut all = self.0.lock().unwrap();
        all.retain(|name, _| !name.starts_with(beginning));
    }
}

/// Stops a fit when it has been asked so many times whether to go on.
struct StopAfter {
    questions: usize,
    asked: usize,
}

impl Observer for StopAfter {
    fn progress(&mut self, _progress: &Progress) -> bool {
        self.asked += 1;
        self.asked <= self.questions
    }
}

/// All numbers of a fit, by their bits.
pub fn numbers(fit: &Fit) -> Vec<u64> {
    let mut all: Vec<f64> = fit.theta.clone();
    all.extend(fit.covariance.parts().triangle);
    all.extend(fit.draws.iter().flatten());
    for track in &fit.tracks {
        for values in [&track.smoothed, &track.deviations, &track.free_run] {
            all.extend(values.as_slice());
        }
    }
    all.extend(fit.facts.passes.iter().map(|p| p.free_run));
    let members = fit.members.iter().flat_map(numbers);
    all.into_iter().map(f64::to_bits).chain(members).collect()
}

/// Wherever a fit was ended, with what it had kept it comes to the same bits: every solver, several
/// starts, ensembles, structures; and it does not do again what it had done.
#[test]
fn what_was_kept_leads_to_the_same_bits() {
    let (noisy, noise_free) = (oscillator(Some(0.01)), oscillator(None));
    let whole = |solver: &str| Settings {
        simplify: false,
        ..defaults(solver)
    };
    let few = |solver: &str| Settings {
        passes: 4,
        ..whole(solver)
    };
    let cases = [
        (&noisy, defaults("batch")),
        (&noise_free, defaults("batch")),
        (
            &noisy,
            Settings {
                starts: 3,
                ..few("batch")
            },
        ),
        (
            &noisy,
            Settings {
                ensemble: 3,
                ..few("batch")
            },
        ),
        (&noise_free, few("joint")),
        (&noise_free, few("alternating")),
        (&noise_free, few("as-printed")),
        (
            &noisy,
            Settings {
                ensemble: 2,
                single_precision: true,
                ..few("alternating")
            },
        ),
    ];
    for ((model, record), settings) in cases {
        let train = sources(model, std::slice::from_ref(record));
        let data = Data {
            train: &train,
            validate: &[],
        };
        let run = |kept: &Kept, questions: usize| {
            let mut observer = StopAfter {
                questions,
                asked: 0,
            };
            let fit = learn(
                model,
                data,
                &settings,
                Checkpoints::new(kept).into(),
                &mut observer,
            );
            (fit, observer.asked)
        };
        let (fit, all) = run(&Kept::default(), usize::MAX);
        let expected = numbers(&fit.unwrap());
        for part in [0.3, 0.6, 0.95] {
            let name = format!("{} of {all}, {part}", settings.solver);
            let kept = Kept::default();
            let (_, before) = run(&kept, (part * all as f64) as usize);
            assert!(
                before <= all && !kept.0.lock().unwrap().is_empty(),
                "{name}"
            );
            let (fit, after) = run(&kept, usize::MAX);
            assert_eq!(numbers(&fit.unwrap()), expected, "{name}");
            assert!(after < all, "{name}: {after} again");
        }
    }
}

/// Files of strangers: whatever is kept there, a fit comes to what it comes to without, or to another
/// fit, and does not panic.
#[test]
fn no_change_of_what_was_kept_is_a_panic() {
    let (model, record) = oscillator(None);
    for solver in ["batch", "alternating"] {
        let settings = Settings {
            passes: 2,
            simplify: false,
            ..defaults(solver)
        };
        let train = sources(&model, std::slice::from_ref(&record));
        let data = Data {
            train: &train,
            validate: &[],
        };
        let kept = Kept::default();
        let run = |kept: &Kept, observer: &mut dyn Observer| {
            learn(
                &model,
                data,
                &settings,
                Checkpoints::new(kept).into(),
                observer,
            )
        };
        run(&kept, &mut stop_at(2, 0)).unwrap();
        let written = kept.0.lock().unwrap().clone();
        let longest = written.values().map(Vec::len).max().unwrap();
        for place in (0..longest).step_by(longest / 20 + 1) {
            let mut changed = written.clone();
            for bytes in changed.values_mut().filter(|bytes| bytes.len() > place) {
                if place % 2 == 0 {
                    bytes.truncate(place);
                } else {
                    bytes[place] ^= 0xff;
                }
            }
            let _ = run(&Kept(Mutex::new(changed)), &mut Silent);
        }
    }
}

/// A fit by way of a folder.
fn saved(fit: &Fit, record: &Record) -> Fit {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    fit.save(&folder).unwrap();
    let loaded = Fit::load(&folder).unwrap();
    let train = sources(&fit.model, std::slice::from_ref(record));
    let data = Data {
        train: &train,
        validate: &[],
    };
    let begun = Begun::of_facts(&loaded.facts);
    begun.belongs_to(&fit.model, data).unwrap();
    loaded
}

/// Goes on with a fit of one record.
fn go_on(
    fit: &Fit,
    record: &Record,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let train = sources(&fit.model, std::slice::from_ref(record));
    let data = Data {
        train: &train,
        validate: &[],
    };
    resume(fit, data, settings, Equipment::default(), observer)
}

/// A fit to one record.
fn fit_one(
    model: &Model,
    record: &Record,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    fit(model, std::slice::from_ref(record), settings, observer)
}

fn error(fit: &Fit) -> f64 {
    fit.facts.records[0].mean_nrmse.unwrap()
}

/// Wherever it was stopped, between stages or inside one, batch ends where it would have ended.
#[test]
fn a_stopped_batch_fit_ends_where_the_whole_one_ends() {
    for noise in [None, Some(0.01)] {
        let (model, record) = oscillator(noise);
        // one structure: the passes of simpler ones are not reported, and a stop keeps what there is
        let settings = Settings {
            simplify: false,
            ..defaults("batch")
        };
        let whole = fit_one(&model, &record, &settings, &mut Silent).unwrap();
        assert!(!whole.facts.stopped && whole.facts.passes.len() > 2);
        for mut observer in [stop_at(2, 0), stop_at(2, 1), stop_at(3, 0)] {
            let fit = fit_one(&model, &record, &settings, &mut observer);
            let fit = fit.unwrap();
            assert!(fit.facts.stopped);
            assert_eq!(fit.facts.passes.len(), observer.passes);
            // usable: a posterior, bands, a free run
            assert!(fit.draws.len() == 64 && error(&fit).is_finite());
            let deviations = &fit.tracks[0].deviations;
            assert!(deviations.as_slice().iter().all(|d| *d > 0.0));

            let run = saved(&fit, &record);
            assert!(run.facts.stopped);
            let fit = go_on(&run, &record, &settings, &mut Silent).unwrap();
            assert!(!fit.facts.stopped);
            let (resumed, expected) = (error(&fit), error(&whole));
            let place = (observer.pass, observer.step);
            assert!(
                (resumed - expected).abs() < 0.1 * expected,
                "{resumed} of {expected}, stopped at {place:?}"
            );
        }
    }
}

/// A fit that was stopped while it refined its best stage does just that again.
#[test]
fn a_fit_that_was_refining_refines() {
    let (model, record) = oscillator(Some(0.01));
    let settings = Settings {
        simplify: false,
        ..defaults("batch")
    };
    let whole = fit_one(&model, &record, &settings, &mut Silent).unwrap();
    let mut observer = stop_at(whole.facts.passes.len() + 1, 1);
    let fit = fit_one(&model, &record, &settings, &mut observer).unwrap();
    assert!(fit.facts.stopped && fit.facts.passes.len() == whole.facts.passes.len());
    let mut counted = stop_at(usize::MAX, 0);
    let run = saved(&fit, &record);
    let fit = go_on(&run, &record, &settings, &mut counted).unwrap();
    assert_eq!(counted.passes, 0);
    let (resumed, expected) = (error(&fit), error(&whole));
    assert!(
        (resumed - expected).abs() < 0.1 * expected,
        "{resumed} of {expected}"
    );
    // and then it is done
    let run = saved(&fit, &record);
    let message = go_on(&run, &record, &settings, &mut Silent);
    assert!(message.unwrap_err().to_string().contains("is finished"));
}

/// Stops as soon as the file's own structure is begun.
#[derive(Default)]
struct StopAfterTrials {
    tried: bool,
    trying: bool,
}

impl Observer for StopAfterTrials {
    fn trying(&mut self, trial: Option<Trial>) {
        self.trying = trial.is_some();
        self.tried |= self.trying;
    }

    fn progress(&mut self, _progress: &Progress) -> bool {
        self.trying || !self.tried
    }
}

/// A fit that was stopped between two structures keeps the best of those that it had, and says that
/// it was stopped; resumed, it comes to what it would have come to.
#[test]
fn structures_that_were_not_come_to_are_tried_then() {
    let (model, record) = oscillator(Some(0.01));
    let settings = defaults("batch");
    let structures = |fit: &Fit| {
        let structures = fit.facts.rungs.iter().map(|r| r.structure);
        structures.collect::<Vec<_>>()
    };
    let whole = fit_one(&model, &record, &settings, &mut Silent).unwrap();
    let fit = fit_one(&model, &record, &settings, &mut StopAfterTrials::default()).unwrap();
    assert!(fit.facts.stopped && structures(&fit).len() < structures(&whole).len());
    let run = saved(&fit, &record);
    let fit = go_on(&run, &record, &settings, &mut Silent).unwrap();
    assert!(!fit.facts.stopped);
    assert_eq!(structures(&fit), structures(&whole));
    let (resumed, expected) = (error(&fit), error(&whole));
    assert!(
        (resumed - expected).abs() < 0.1 * expected,
        "{resumed} of {expected}"
    );
}

#[test]
fn before_the_first_stage_there_is_nothing_to_keep() {
    let (model, record) = oscillator(Some(0.01));
    let settings = defaults("batch");
    for step in [0, 1] {
        let fit = fit_one(&model, &record, &settings, &mut stop_at(1, step));
        assert!(matches!(fit, Err(Error::Stopped)));
    }
}

/// A recursion goes through with the pass it is in. From θ and P_θ it goes on as if nothing had
/// been: the states from which an pass starts are smoothed again, and found to rounding.
#[test]
fn a_stopped_recursion_goes_on() {
    let (model, record) = oscillator(None);
    for solver in ["alternating", "joint"] {
        for keep_best in [true, false] {
            let settings = Settings {
                passes: 4,
                keep_best,
                ..defaults(solver)
            };
            let whole = fit_one(&model, &record, &settings, &mut Silent);
            let whole = whole.unwrap();
            let mut observer = stop_at(2, 500);
            let fit = fit_one(&model, &record, &settings, &mut observer);
            let fit = fit.unwrap();
            assert!(fit.facts.stopped && fit.facts.passes.len() == 2);
            let run = saved(&fit, &record);
            let fit = go_on(&run, &record, &settings, &mut Silent).unwrap();
            assert_eq!(fit.facts.passes.len(), 4);
            let pairs = fit.theta.iter().zip(&whole.theta);
            let furthest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(furthest < 1e-3, "{solver:?}: {furthest}");
            assert_eq!(fit.facts.checkpoint, whole.facts.checkpoint);
        }
    }
}

/// A finished run takes more passes; another solver's is not taken for one's own.
#[test]
fn more_epochs_go_on_from_a_finished_run() {
    let (model, record) = oscillator(None);
    let settings = Settings {
        passes: 2,
        keep_best: false,
        ..defaults("alternating")
    };
    let fit = fit_one(&model, &record, &settings, &mut Silent).unwrap();
    let run = saved(&fit, &record);
    let more = Settings {
        passes: 3,
        ..settings.clone()
    };
    let fit = go_on(&run, &record, &more, &mut Silent).unwrap();
    assert_eq!(fit.facts.checkpoint, Some(Checkpoint::Pass(3)));
    let other = defaults("joint");
    let message = go_on(&run, &record, &other, &mut Silent).unwrap_err();
    assert!(message.to_string().contains("was learned by alternating"));
}

fn ensemble() -> Settings {
    Settings {
        passes: 2,
        ensemble: 3,
        seed: 4,
        // one structure: simpler ones would be members beside each seed
        simplify: false,
        ..defaults("batch")
    }
}

/// Members are what their seeds give alone; together they are their median, and no band is
/// narrower than the members' on average.
#[test]
fn an_ensemble_is_the_median_of_its_members() {
    let (model, record) = oscillator(Some(0.01));
    let fit = fit_one(&model, &record, &ensemble(), &mut Silent).unwrap();
    let seeds: Vec<u64> = fit.members.iter().map(|m| m.facts.seed).collect();
    assert_eq!(seeds, [4, 5, 6]);
    assert!(fit.facts.attempts.iter().all(|a| a.kept));
    let alone = Settings {
        ensemble: 1,
        seed: 5,
        ..ensemble()
    };
    let alone = fit_one(&model, &record, &alone, &mut Silent).unwrap();
    assert_eq!(alone.theta, fit.members[1].theta);
    let best = fit
        .facts
        .attempts
        .iter()
        .min_by(|a, b| a.error.total_cmp(&b.error));
    assert_eq!(fit.facts.seed, best.unwrap().seed);

    let run = saved(&fit, &record);
    assert_eq!(run.members.len(), 3);
    assert_eq!(run.members[1].theta, alone.theta);
    assert_eq!(run.facts.ensemble[2].seed, 6);

    let start = [0.5, 0.5];
    let together = fit.free_run(&record, Start::At(&start));
    let predictions = fit.members.iter();
    let predictions: Vec<_> = predictions
        .map(|m| m.free_run(&record, Start::At(&start)))
        .collect();
    for i in 0..together.states.as_slice().len() {
        let mut values: Vec<f64> = predictions.iter().map(|p| p.states.as_slice()[i]).collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(together.states.as_slice()[i], values[1]);
        let mean = predictions
            .iter()
            .map(|p| p.deviations.as_slice()[i].powi(2))
            .sum::<f64>()
            / 3.0;
        assert!(together.deviations.as_slice()[i].powi(2) >= 0.999_999 * mean);
    }
    let free_run = &fit.tracks[0].free_run;
    let mut values: Vec<f64> = fit
        .members
        .iter()
        .map(|m| m.tracks[0].free_run.as_slice()[700])
        .collect();
    values.sort_by(f64::total_cmp);
    assert_eq!(free_run.as_slice()[700], values[1]);
}

/// A larger ensemble is made of a smaller one, whose members are there already.
#[test]
fn an_ensemble_grows() {
    let (model, record) = oscillator(Some(0.01));
    let two = Settings {
        ensemble: 2,
        ..ensemble()
    };
    let fit = fit_one(&model, &record, &two, &mut Silent).unwrap();
    let run = saved(&fit, &record);
    let grown = go_on(&run, &record, &ensemble(), &mut Silent).unwrap();
    let seeds: Vec<u64> = grown.members.iter().map(|m| m.facts.seed).collect();
    assert_eq!(seeds, [4, 5, 6]);
    for (before, after) in fit.members.iter().zip(&grown.members) {
        let (before, after) = (error(before), error(after));
        assert!((before - after).abs() < 0.1 * before, "{before} {after}");
    }
}
