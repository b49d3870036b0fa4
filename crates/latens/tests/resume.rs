//! Fits that are stopped, and go on where they were; ensembles, which may be stopped as well.

use latens::estimate::Start;
use latens::fit::Fit;
use latens::fit::run::{self, About, Facts, Run, Source};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::checkpoint::Checkpoint;
use latens::solve::{Data, Observer, PassReport, Progress, Settings, Silent, Solver};
use latens::{Error, Model, Record, solve, systems};

/// Stops a fit in a pass, at a step of it.
struct StopAt {
    pass: usize,
    step: usize,
    /// Reports heard of.
    passes: usize,
}

impl Observer for StopAt {
    fn progress(&mut self, progress: &Progress) -> bool {
        (progress.epoch, progress.step) < (self.pass, self.step)
    }

    fn epoch(&mut self, _report: &PassReport) -> bool {
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

fn data(record: &Record) -> Data<'_> {
    Data {
        train: std::slice::from_ref(record),
        validate: &[],
    }
}

/// A fit by way of a run folder.
fn saved(fit: &Fit, record: &Record) -> Run {
    let place = tempfile::tempdir().unwrap();
    let source = Source {
        file: "record.csv".into(),
        sha256: run::sha256(b"record"),
        record,
    };
    let sources = [source];
    let facts = Facts::new(fit, &sources, About::default());
    let folder = place.path().join("run");
    run::save(fit, &sources, &facts, &folder, false).unwrap();
    let run = run::load(&folder).unwrap();
    run.belongs_to(&fit.model, &sources, 1).unwrap();
    run
}

fn error(fit: &Fit) -> f64 {
    fit.estimates[0].mean().unwrap()
}

/// Wherever it was stopped, between stages or inside one, batch ends where it would have ended.
#[test]
fn a_stopped_batch_fit_ends_where_the_whole_one_ends() {
    for noise in [None, Some(0.01)] {
        let (model, record) = oscillator(noise);
        let settings = Settings::new(Solver::Batch);
        let whole = solve::fit_validated(&model, data(&record), &settings, &mut Silent).unwrap();
        assert!(!whole.stopped && whole.reports.len() > 2);
        for mut observer in [stop_at(2, 0), stop_at(2, 1), stop_at(3, 0)] {
            let fit = solve::fit_validated(&model, data(&record), &settings, &mut observer);
            let fit = fit.unwrap();
            assert!(fit.stopped);
            assert_eq!(fit.reports.len(), observer.passes);
            // usable: a posterior, bands, a free run
            assert!(fit.draws.len() == 64 && error(&fit).is_finite());
            let deviations = &fit.estimates[0].smoothed.deviations;
            assert!(deviations.iter().all(|d| *d > 0.0));

            let run = saved(&fit, &record);
            assert!(run.facts.stopped);
            let fit = solve::resume(&run, data(&record), &settings, &mut Silent).unwrap();
            assert!(!fit.stopped);
            let (found, expected) = (error(&fit), error(&whole));
            let place = (observer.pass, observer.step);
            assert!(
                (found - expected).abs() < 0.1 * expected,
                "{found} of {expected}, stopped at {place:?}"
            );
        }
    }
}

/// A fit that was stopped while it refined its best stage does just that again.
#[test]
fn a_fit_that_was_refining_refines() {
    let (model, record) = oscillator(Some(0.01));
    let settings = Settings::new(Solver::Batch);
    let whole = solve::fit_validated(&model, data(&record), &settings, &mut Silent).unwrap();
    let mut observer = stop_at(whole.reports.len() + 1, 1);
    let fit = solve::fit_validated(&model, data(&record), &settings, &mut observer).unwrap();
    assert!(fit.stopped && fit.reports.len() == whole.reports.len());
    let mut counted = stop_at(usize::MAX, 0);
    let run = saved(&fit, &record);
    let fit = solve::resume(&run, data(&record), &settings, &mut counted).unwrap();
    assert_eq!(counted.passes, 0);
    let (found, expected) = (error(&fit), error(&whole));
    assert!(
        (found - expected).abs() < 0.1 * expected,
        "{found} of {expected}"
    );
    // and then it is done
    let run = saved(&fit, &record);
    let message = solve::resume(&run, data(&record), &settings, &mut Silent);
    assert!(message.unwrap_err().to_string().contains("is finished"));
}

#[test]
fn before_the_first_stage_there_is_nothing_to_keep() {
    let (model, record) = oscillator(Some(0.01));
    let settings = Settings::new(Solver::Batch);
    for step in [0, 1] {
        let fit = solve::fit_validated(&model, data(&record), &settings, &mut stop_at(1, step));
        assert!(matches!(fit, Err(Error::Stopped)));
    }
}

/// A recursion goes through with the epoch it is in. From θ and P_θ it goes on as if nothing had
/// been: the states from which an epoch starts are smoothed again, and found to rounding.
#[test]
fn a_stopped_recursion_goes_on() {
    let (model, record) = oscillator(None);
    for solver in [Solver::Alternating, Solver::Joint] {
        for keep_best in [true, false] {
            let settings = Settings {
                epochs: 4,
                keep_best,
                ..Settings::new(solver)
            };
            let whole = solve::fit_validated(&model, data(&record), &settings, &mut Silent);
            let whole = whole.unwrap();
            let mut observer = stop_at(2, 500);
            let fit = solve::fit_validated(&model, data(&record), &settings, &mut observer);
            let fit = fit.unwrap();
            assert!(fit.stopped && fit.reports.len() == 2);
            let run = saved(&fit, &record);
            let fit = solve::resume(&run, data(&record), &settings, &mut Silent).unwrap();
            assert_eq!(fit.reports.len(), 4);
            let pairs = fit.theta.iter().zip(&whole.theta);
            let furthest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(furthest < 1e-3, "{solver:?}: {furthest}");
            assert_eq!(fit.checkpoint, whole.checkpoint);
        }
    }
}

/// A finished run takes more epochs; another solver's is not taken for one's own.
#[test]
fn more_epochs_go_on_from_a_finished_run() {
    let (model, record) = oscillator(None);
    let settings = Settings {
        epochs: 2,
        keep_best: false,
        ..Settings::new(Solver::Alternating)
    };
    let fit = solve::fit_validated(&model, data(&record), &settings, &mut Silent).unwrap();
    let run = saved(&fit, &record);
    let more = Settings {
        epochs: 3,
        ..settings.clone()
    };
    let fit = solve::resume(&run, data(&record), &more, &mut Silent).unwrap();
    assert_eq!(fit.checkpoint, Checkpoint::Epoch(3));
    let other = Settings::new(Solver::Joint);
    let message = solve::resume(&run, data(&record), &other, &mut Silent).unwrap_err();
    assert!(message.to_string().contains("was learned by alternating"));
}

fn ensemble() -> Settings {
    Settings {
        epochs: 2,
        ensemble: 3,
        seed: 4,
        ..Settings::new(Solver::Batch)
    }
}

/// Members are what their seeds give alone; together they are their median, and no band is
/// narrower than the members' on average.
#[test]
fn an_ensemble_is_the_median_of_its_members() {
    let (model, record) = oscillator(Some(0.01));
    let fit = solve::fit_validated(&model, data(&record), &ensemble(), &mut Silent).unwrap();
    let seeds: Vec<u64> = fit.members.iter().map(|m| m.seed).collect();
    assert_eq!(seeds, [4, 5, 6]);
    assert!(fit.attempts.iter().all(|a| a.kept));
    let alone = Settings {
        ensemble: 1,
        seed: 5,
        ..ensemble()
    };
    let alone = solve::fit_validated(&model, data(&record), &alone, &mut Silent).unwrap();
    assert_eq!(alone.theta, fit.members[1].theta);
    let best = fit
        .attempts
        .iter()
        .min_by(|a, b| a.error.total_cmp(&b.error));
    assert_eq!(fit.seed, best.unwrap().seed);

    let run = saved(&fit, &record);
    assert_eq!(run.members.len(), 3);
    assert_eq!(run.members[1].theta, alone.theta);
    assert_eq!(run.facts.ensemble[2].seed, 6);

    let start = [0.5, 0.5];
    let together = fit.predict(&record, Start::At(&start));
    let each = fit.members.iter();
    let each: Vec<_> = each
        .map(|m| m.predict(&record, Start::At(&start)))
        .collect();
    for i in 0..together.states.len() {
        let mut own: Vec<f64> = each.iter().map(|p| p.states[i]).collect();
        own.sort_by(f64::total_cmp);
        assert_eq!(together.states[i], own[1]);
        let mean = each.iter().map(|p| p.deviations[i].powi(2)).sum::<f64>() / 3.0;
        assert!(together.deviations[i].powi(2) >= 0.999_999 * mean);
    }
    let free_run = &fit.estimates[0].free_run;
    let mut own: Vec<f64> = fit
        .members
        .iter()
        .map(|m| m.estimates[0].free_run[700])
        .collect();
    own.sort_by(f64::total_cmp);
    assert_eq!(free_run[700], own[1]);
}

/// A larger ensemble is made of a smaller one, whose members are there already.
#[test]
fn an_ensemble_grows() {
    let (model, record) = oscillator(Some(0.01));
    let two = Settings {
        ensemble: 2,
        ..ensemble()
    };
    let fit = solve::fit_validated(&model, data(&record), &two, &mut Silent).unwrap();
    let run = saved(&fit, &record);
    let grown = solve::resume(&run, data(&record), &ensemble(), &mut Silent).unwrap();
    let seeds: Vec<u64> = grown.members.iter().map(|m| m.seed).collect();
    assert_eq!(seeds, [4, 5, 6]);
    for (before, after) in fit.members.iter().zip(&grown.members) {
        let (before, after) = (error(before), error(after));
        assert!((before - after).abs() < 0.1 * before, "{before} {after}");
    }
}
