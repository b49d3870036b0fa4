//! What an experiment would tell, against closed forms and against fits of its record.

use latens::model::Model;
use latens::numerics::linalg::matrix::Matrix;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Error, Fit, Job, Record, Role, Silent, Source};
use latens_design::information::{Posterior, variances};
use latens_design::plan::{Family, Space, range};
use latens_design::{Options, Outcome, Unwatched, Watch, design};

/// A scale factor of a sensor, which no state has a part in.
const SENSOR: &str = "[time]\nstep = 0.1\n[inputs]\nu = \"\"\n[states.x]\nderivative = \"-x\"\nstart = 1\n\
    [measurements]\nx = \"x\"\ny = \"c*u + 1e-9*x\"\n[unknowns]\nc = { guess = 1 }\n[truth]\nc = 2\n\
    [simulation]\nsteps = 100\n[simulation.inputs]\nu = \"1\"\n";

/// A body that slides; its friction grows with its speed.
const SLIDE: &str = "[time]\nstep = 0.02\n[inputs]\nu = \"\"\n[states.v]\nderivative = \"u - drag*v - air*v*abs(v)\"\nstart = 0\n\
    [measurements]\nv = \"v\"\n[unknowns]\ndrag = { guess = 1 }\nair = { guess = 0.1 }\n[truth]\ndrag = 1.4\nair = 0.3\n\
    [simulation]\nsteps = 300\n[simulation.inputs]\nu = \"4*sin(2*t)\"\n";

fn learned(text: &str, noise: f64) -> (Model, Fit) {
    let model = Model::from_text("a test", text).unwrap();
    let record = taken(&model, noise, 1);
    let fit = fitted(&model, &[record]);
    (model, fit)
}

fn taken(model: &Model, noise: f64, seed: u64) -> Record {
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::Absolute(noise)); model.measurements.len()],
        seed,
        ..Simulation::default()
    };
    simulate(model, &simulation).unwrap()
}

fn fitted(model: &Model, records: &[Record]) -> Fit {
    let mut job = Job::new(model.clone()).unwrap();
    for record in records {
        job.add(
            Role::Train,
            Source::of_record(record.clone(), model).unwrap(),
        );
    }
    job.run(&mut Silent).unwrap().fit
}

fn asked(space: Space) -> Options {
    Options {
        space,
        ..Options::default()
    }
}

fn outcome(fit: &Fit, space: Space) -> Outcome {
    design(fit, &asked(space), &Unwatched).unwrap()
}

/// y = c u with noise of variance r: M readings at u = a add M a²/r to 1/P, whatever else is unknown; every tenth
/// reading adds a tenth of that.
#[test]
fn a_factor_is_known_as_well_as_its_input_is_large() {
    let (_, fit) = learned(SENSOR, 0.1);
    let space = Space {
        inputs: vec![("u".into(), Family::Step([0.5, 4.0]))],
        every: vec![1, 10],
        count: 6,
        seed: 3,
        ..Space::default()
    };
    let found = outcome(&fit, space);
    let (p, r) = (
        fit.covariance.variance(0),
        fit.facts.noise.measurement[1] * fit.facts.variance_inflation,
    );
    assert_eq!(found.designed.experiments.len(), 12);
    for (experiment, run) in found.designed.experiments.iter().zip(&found.runs) {
        let used = run.record.input_column(0).step_by(experiment.every);
        let squares: f64 = used.map(|u| u * u).sum();
        let expected = (1.0 / (1.0 + p * squares / r)).sqrt();
        let left = experiment.left[0];
        assert!((left / expected - 1.0).abs() < 1e-6, "{left} {expected}");
    }
    let left: Vec<f64> = found
        .designed
        .experiments
        .iter()
        .map(|e| e.left[0])
        .collect();
    assert!(left.is_sorted() && left[0] < left[11], "{left:?}");
    assert!(
        found.designed.verdict[0].starts_with("next: u: "),
        "{:?}",
        found.designed.verdict
    );
}

/// What the first record once more is said to leave is what a fit of two such records, of other noise, comes
/// to; and it is less than 1/√2 away from it for a constant that the data determine.
#[test]
fn the_forecast_is_what_a_fit_then_finds() {
    let (model, fit) = learned(SLIDE, 0.01);
    let space = Space {
        inputs: vec![("u".into(), Family::Sine([-2.0, 2.0]))],
        count: 2,
        ..Space::default()
    };
    let options = Options {
        constants: vec!["drag".into(), "air".into()],
        ..asked(space)
    };
    let found = design(&fit, &options, &Unwatched).unwrap();
    assert_eq!(found.designed.by, "constants");
    let both = fitted(&model, &[taken(&model, 0.01, 1), taken(&model, 0.01, 2)]);
    for (k, left) in found.designed.repeated.iter().enumerate() {
        let reached = both.facts.unknowns[k].std / fit.facts.unknowns[k].std;
        assert!((left / reached - 1.0).abs() < 0.15, "{left} {reached}");
        assert!((left - 0.5f64.sqrt()).abs() < 0.02, "{left}");
    }
}

/// (P⁻¹ + A)⁻¹ by the root of P is that by inverses: for one direction of θ both can be written down, and what is not
/// measured adds nothing.
#[test]
fn nothing_measured_adds_nothing() {
    let (_, fit) = learned(SLIDE, 0.01);
    let posterior = Posterior::new(&fit);
    let mut record = fit.tracks[0].record.clone();
    let slopes = Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
    let reduced = posterior.reduced(&slopes);
    let before = variances(&reduced, None);
    for (i, variance) in before.iter().enumerate() {
        assert!((variance / fit.covariance.variance(i) - 1.0).abs() < 1e-10);
    }
    let after = posterior.with(&record, &fit.tracks[0].smoothed).unwrap();
    assert!(
        variances(&reduced, Some(&after))
            .iter()
            .zip(&before)
            .all(|(a, b)| a < b)
    );
    record.outputs.fill(f64::NAN);
    let after = posterior.with(&record, &fit.tracks[0].smoothed).unwrap();
    assert_eq!(variances(&reduced, Some(&after)), before);
}

/// Linear and quadratic friction cannot be told apart by slow motion and can by fast motion; a formula cannot be told from
/// itself.
#[test]
fn fast_motion_tells_frictions_apart() {
    let slide = SLIDE.replace("4*sin", "0.2*sin");
    let (model, fit) = learned(&slide, 0.002);
    let other = slide
        .replace(" - air*v*abs(v)", "")
        .replace("air = { guess = 0.1 }\n", "")
        .replace("air = 0.3\n", "");
    let other = Model::from_text("linear", &other).unwrap();
    let designed = |reach: f64, between: Vec<Model>| {
        let space = Space {
            inputs: vec![("u".into(), Family::Sine([-reach, reach]))],
            count: 3,
            ..Space::default()
        };
        let options = Options {
            between,
            ..asked(space)
        };
        design(&fit, &options, &Unwatched).unwrap().designed
    };
    let fast = designed(8.0, vec![model.clone(), other.clone()]);
    let slow = designed(0.02, vec![model.clone(), other]);
    let apart = |d: &latens_design::Designed| d.experiments[0].apart.unwrap();
    assert!(
        apart(&fast) > 3.0 && apart(&slow) < 1.0,
        "{} {}",
        apart(&fast),
        apart(&slow)
    );
    assert!(
        slow.verdict[1].starts_with("none of these experiments would tell the formulas apart"),
        "{:?}",
        slow.verdict
    );
    assert!(
        fast.verdict[1].starts_with("it would tell the formulas apart"),
        "{:?}",
        fast.verdict
    );
    let same = designed(8.0, vec![model.clone(), model]);
    assert!(apart(&same) < 1e-6, "{}", apart(&same));
}

/// A prediction of fast motion is foreseen better after a record of fast motion than after one of slow motion; the same seed
/// gives the same; a regulator is followed.
#[test]
fn a_prediction_asks_for_what_it_goes_through() {
    let (model, fit) = learned(SLIDE, 0.01);
    let fast = SLIDE.replace("4*sin", "6*sin");
    let ahead = taken(&Model::from_text("fast", &fast).unwrap(), 0.01, 5);
    let space = Space {
        inputs: vec![
            ("u".into(), Family::Sine([-8.0, 8.0])),
            ("u".into(), Family::Sine([-0.1, 0.1])),
        ],
        count: 4,
        ..Space::default()
    };
    let options = Options {
        prediction: Some(ahead),
        ..asked(space.clone())
    };
    let found = design(&fit, &options, &Unwatched).unwrap();
    assert_eq!(found.designed.by, "prediction");
    let reach = |k: usize| {
        found.runs[k]
            .record
            .input_column(0)
            .fold(0.0f64, |m, u| m.max(u.abs()))
    };
    assert!(reach(0) > 1.0 && reach(1) > 1.0 && reach(2) < 0.2 && reach(3) < 0.2);
    let again = design(&fit, &options, &Unwatched).unwrap();
    assert_eq!(found.designed.verdict, again.designed.verdict);
    let regulated = Space {
        feedback: vec![("u".into(), "-2*v".into())],
        ..space
    };
    let runs = outcome(&fit, regulated).runs;
    let free = outcome(
        &fit,
        Space {
            inputs: vec![("u".into(), Family::Step([1.0, 2.0]))],
            count: 2,
            ..Space::default()
        },
    )
    .runs;
    let v = runs[0].states.row(100)[0];
    assert_eq!(runs[0].record.d_u, model.inputs.len());
    assert!(v.is_finite() && free[0].states.row(100)[0] > 0.0);
}

/// Mistakes are told, with what to write; a stop before anything was looked at is a stop.
#[test]
fn mistakes_are_told() {
    let (model, fit) = learned(SLIDE, 0.01);
    let message = |options: Options| match design(&fit, &options, &Unwatched) {
        Err(Error::Setting(message)) => message,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    };
    assert!(message(asked(Space::default())).contains("nothing to choose from"));
    let start = |name: &str| Space {
        start: vec![(name.into(), range("0..1").unwrap())],
        count: 4,
        ..Space::default()
    };
    assert!(message(asked(start("w"))).contains("`w`"));
    let unknown = Options {
        constants: vec!["darg".into()],
        ..asked(start("v"))
    };
    assert!(message(unknown).contains("did you mean `drag`"));
    let wrong = Space {
        feedback: vec![("u".into(), "-2*w".into())],
        ..start("v")
    };
    assert!(message(asked(wrong)).contains("formula of the states"));
    let alone = Options {
        between: vec![model],
        ..asked(start("v"))
    };
    assert!(message(alone).contains("two or more"));
    struct Stops;
    impl Watch for Stops {
        fn stops(&self) -> bool {
            true
        }
    }
    assert!(matches!(
        design(&fit, &asked(start("v")), &Stops),
        Err(Error::Stopped)
    ));
}
