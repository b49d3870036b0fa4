//! Sensors that are not known altogether, and constants that vary: the derivatives of the elimination are
//! those of the objective, and what a simulation was made with is found.

use crate::dense::{model, random_record};
use crate::fixture::{defaults, fit, sources};
use latens::filter::Smoother;
use latens::numerics::objective::Noise;
use latens::numerics::step::Stepper;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, PredictOptions, Record, Silent, Trajectory};

const SENSORS: &str = "[inputs]\nu = {}\n[states.x]\nderivative = \"v + g*u\"\n\
    [states.v]\nderivative = \"-x - 0.3*v\"\n\
    [networks.curve]\nlayers = [\"3 tanh\"]\n\
    [measurements]\na = \"x + p\"\nb = \"2*g*x - p*v + curve(x)\"\nc = \"v\"\n\
    [unknowns]\np = { guess = 0, scale = 1 }\ng = { guess = 0.2, scale = 1 }\n";

/// The states that minimise the objective at θ, what it is there, and −∂/∂θ of it by the elimination.
fn eliminated(model: &Model, record: &Record, theta: &[f64]) -> (f64, Vec<f64>) {
    let stepper = Stepper::over(model, &model.system, 0.1, [record]);
    let noise = Noise {
        process: vec![1e-2, 3e-2],
        measurement: vec![0.1, 0.2, 0.3],
        start_mean: vec![0.1, -0.2],
        start: vec![0.5, 0.5],
    };
    let smoother = Smoother {
        stepper: &stepper,
        record,
        theta,
        noise: &noise,
    };
    let start = Trajectory::filled(0.0, record.len(), 2);
    let mut states = smoother.minimise(start, 50).0;
    // to the last digit: an error of the states is one of the gradient
    for _ in 0..5 {
        let pass = smoother.forward(&states);
        let step = smoother.backward(&pass, &pass.means);
        states = states.moved(1.0, &step);
    }
    let (equations, _) = smoother.eliminate(&states, 1, 0);
    (smoother.cost(&states).total(), equations.b.clone())
}

/// Where the states are at their minimum, what is left of the gradient when they are eliminated is the
/// derivative of that minimum: with constants and a network in several channels of the same sample, and
/// with samples missing.
#[test]
fn elimination_counts_what_sensors_make_of_theta() {
    let model = model(SENSORS);
    let mut record = random_record(&model, 60, 3);
    for k in (0..record.outputs.len()).step_by(7) {
        record.outputs[k] = f64::NAN;
    }
    let theta: Vec<f64> = (0..model.system.parameters())
        .map(|i| 0.4 * ((3 * i + 1) as f64).sin())
        .collect();
    let (_, b) = eliminated(&model, &record, &theta);
    let step = 1e-4;
    for i in 0..theta.len() {
        let at = |by: f64| {
            let mut theta = theta.clone();
            theta[i] += by;
            eliminated(&model, &record, &theta).0
        };
        let slope = (at(step) - at(-step)) / (2.0 * step);
        let size = b.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!((slope + b[i]).abs() < 1e-5 * size, "{i}: {slope} {}", b[i]);
    }
}

fn simulated(model: &Model, start: (f64, f64), seed: u64) -> Record {
    let simulation = Simulation {
        start: vec![(0, start.0), (1, start.1)],
        noise: vec![Some(NoiseLevel::OfRange(0.01)); model.measurements.len()],
        seed,
        ..Simulation::default()
    };
    simulate(model, &simulation).unwrap()
}

/// Gain, offset, lag and delay of sensors and the delay of an input, from one record with noise.
#[test]
fn what_is_unknown_of_sensors_is_found() {
    let text = "[time]\nstep = 0.05\nmethod = \"rk4\"\n[inputs]\nu = { delay = { guess = 0.2 } }\n\
        [states.x]\nderivative = \"v\"\nstart = 0\n[states.v]\nderivative = \"u - k*x - 0.5*v\"\nstart = 0\n\
        [unknowns]\nk = { guess = 1 }\ngain = { guess = 1 }\noffset = { guess = 0, scale = 1 }\n\
        [measurements]\na = \"gain*x + offset\"\nb = { value = \"v\", lag = { guess = 0.1 } }\n\
        [truth]\nk = 2\ngain = 1.8\noffset = 0.3\nu_delay = 0.4\nb_lag = 0.25\n\
        [simulation]\nsteps = 800\n[simulation.inputs]\nu = \"sin(0.7*t) + 0.8*sign(sin(0.31*t^1.3))\"\n";
    let model = Model::from_text("sensors", text).unwrap();
    let record = simulated(&model, (0.3, 0.0), 1);
    let fit = fit(&model, &[record], &defaults("batch"), &mut Silent).unwrap();
    let truth = [2.0, 1.8, 0.3, 0.4, 0.25];
    for (constant, truth) in fit.constants().iter().zip(truth) {
        let off = (constant.value - truth).abs();
        assert!(
            off < 3.5 * constant.std && constant.std < 0.1 * truth,
            "{constant:?}"
        );
    }
}

/// Springs whose stiffness differs from record to record.
fn springs(k: f64) -> Model {
    let text = format!(
        "[time]\nstep = 0.05\nmethod = \"rk4\"\n[states.x]\nderivative = \"v\"\n[states.v]\nderivative = \"-k*x - c*v\"\n\
         [unknowns]\nk = {{ guess = 3, scale = 1, varies = \"record\" }}\nc = {{ guess = 0.5 }}\n\
         [measurements]\nx = \"x\"\n[truth]\nk = {k}\nc = 0.3\n[simulation]\nsteps = 200\n"
    );
    Model::from_text("springs", &text).unwrap()
}

/// A population: its mean and its spread, the value of each record, and a new record, which is foreseen
/// better from the population than from one common value.
#[test]
fn records_have_constants_of_their_own() {
    let differences = [-0.9, 0.5, 1.4, -0.2, 0.1, -1.3, 0.8, -0.4, 1.0, -1.0];
    let stiffness = |d: f64| 4.0 + 0.5 * d;
    let record = |(seed, d): (usize, f64)| {
        let start = (1.0 - 0.1 * seed as f64, 0.3 * seed as f64 - 1.0);
        Record {
            name: format!("spring {seed}"),
            ..simulated(&springs(stiffness(d)), start, seed as u64)
        }
    };
    let records: Vec<Record> = differences.into_iter().enumerate().map(record).collect();
    let model = springs(4.0);
    let fitted = fit(&model, &records, &defaults("batch"), &mut Silent).unwrap();
    let [k, c] = fitted.constants() else {
        panic!("two constants")
    };
    let mean = differences.iter().map(|d| stiffness(*d)).sum::<f64>() / 10.0;
    assert!((k.value - mean).abs() < 0.3 * k.std, "{k:?}");
    assert!((c.value - 0.3).abs() < 3.5 * c.std);
    let population = k.population.as_ref().unwrap();
    let square: f64 = differences
        .iter()
        .map(|d| (stiffness(*d) - mean).powi(2))
        .sum();
    let spread = (square / 9.0).sqrt();
    // the deviation of a mean over records is the spread by the root of their number
    assert!(
        (population.spread / spread - 1.0).abs() < 0.05,
        "{population:?}"
    );
    assert!(
        (k.std / (spread / 10f64.sqrt()) - 1.0).abs() < 0.15,
        "{k:?}"
    );
    let (low, high) = population.spread_interval.unwrap();
    assert!(low < 0.8 * spread && high > 1.3 * spread);
    for (value, d) in population.records.iter().zip(differences) {
        let off = (value.value - stiffness(d)).abs();
        assert!(
            off < 4.0 * value.std && value.std < 0.1 && value.shrinkage < 0.1,
            "{value:?}"
        );
    }
    // without the truth, which has the difference too
    let bare = |record: &Record, d_x: usize| Record {
        truth: None,
        d_x,
        ..record.clone()
    };
    let next = record((10, 1.6));
    let foreseen = |fit: &latens::Fit| {
        let next = bare(&next, fit.model.states.len());
        let source = sources(&fit.model, &[next]).remove(0);
        let options = PredictOptions {
            warm_up: Some(40),
            ..PredictOptions::default()
        };
        fit.predict(&source, &options).unwrap()
    };
    let common =
        Model::from_text("common", &model.text.replace(", varies = \"record\"", "")).unwrap();
    let records: Vec<Record> = records.iter().map(|r| bare(r, 2)).collect();
    let common = fit(&common, &records, &defaults("batch"), &mut Silent).unwrap();
    let error = |fit: &latens::Fit| foreseen(fit).facts.record.nrmse["x"].unwrap();
    assert!(error(&fitted) < 0.3 * error(&common));
}

/// A network in a measurement of which the records hardly tell whether they need it: several structures speak together,
/// and what they say together is measured with the equations of the simplest.
#[test]
fn structures_of_a_sensor_speak_together() {
    let text = r#"
[time]
step = 10
[inputs]
I = {}
[states.s]
derivative = "-I/9000"
start = 0.95
start_deviation = 0.01
[networks.ocv]
layers = ["4 tanh"]
[unknowns]
R0 = { guess = 0.06, scale = 0.04, positive = true }
[measurements]
V = "3.2 + 0.9*s + ocv(s) - R0*I"
[truth]
R0 = 0.05
V = "3.3 + 0.9*s + 0.002*sin(9*s) - R0*I"
[simulation]
steps = 100
inputs = { I = "4 + 2*sin(0.02*t)" }
"#;
    let model = Model::from_text("cell", text).unwrap();
    let mut simpler = 0;
    for seed in 1..=3 {
        let simulation = Simulation {
            noise: vec![Some(NoiseLevel::OfRange(0.005))],
            seed,
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).unwrap();
        let fit = latens::fit(&model, &[record]).unwrap();
        let together = fit.members.len() > 1;
        simpler += usize::from(together && fit.theta.len() < model.system.parameters());
        let error = fit.facts.records[0].nrmse["V"].unwrap();
        assert!(error < 0.01, "{error}");
        let resistance = &fit.constants()[0];
        assert!((resistance.value - 0.05).abs() < 4.0 * resistance.std);
    }
    assert!(simpler > 0);
}
