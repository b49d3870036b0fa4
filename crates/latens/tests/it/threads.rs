//! Nothing depends on the number of threads, to the last bit.

use crate::fixture::{defaults, fit};
use latens::filter::Smoother;
use latens::look::prior::initial_theta;
use latens::numerics::linalg::normal;
use latens::numerics::objective::Noise;
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::{Model, Record, Trajectory, systems};
use latens::{Settings, Silent};

fn case(name: &str, method: &str, steps: usize) -> (Model, Record) {
    let text = systems::find(name).unwrap();
    recorded(
        &text.replace("method = \"euler\"", &format!("method = \"{method}\"")),
        steps,
    )
}

fn recorded(text: &str, steps: usize) -> (Model, Record) {
    let model = Model::from_text("case", text).unwrap();
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let mut record = simulate(&model, &simulation).unwrap();
    // samples that were not taken, so that blocks differ in their rows
    record
        .outputs
        .iter_mut()
        .step_by(7)
        .for_each(|y| *y = f64::NAN);
    (model, record)
}

fn on<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

fn bits(values: impl IntoIterator<Item = f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

/// Every part of a Newton step.
fn step(model: &Model, record: &Record, thinning: usize) -> Vec<Vec<u64>> {
    let stepper = Stepper::new(model, &model.system, record.step());
    let n = model.states.len();
    // off the truth, or all innovations were zero
    let truth = record.truth.as_ref().unwrap().iter().enumerate();
    let states = truth.map(|(i, x)| x + 1e-3 * (i as f64).sin());
    let states = Trajectory::new(states.collect(), n);
    let noise = Noise {
        process: vec![1e-6; n],
        measurement: vec![1e-6; record.d_y],
        start_mean: states.row(0).to_vec(),
        start: vec![1e-2; n],
    };
    let theta = initial_theta(model, 1);
    let smoother = Smoother {
        stepper: &stepper,
        record,
        theta: &theta,
        noise: &noise,
    };
    let (equations, pass) = smoother.eliminate(&states, thinning, 0);
    let factor = equations.factor(&vec![1.0; theta.len()]).unwrap();
    let increment = normal::solve(&factor, &equations.b);
    let spectrum = equations.spectrum(&vec![1.0; theta.len()]);
    let means = smoother.shift(&states, &increment, &pass);
    let (smoothed, cost) = smoother.minimise(states.clone(), 3);
    vec![
        bits(equations.b.iter().copied()),
        bits(equations.diagonal()),
        bits(increment),
        bits(spectrum.values),
        bits(spectrum.vectors.data().iter().copied()),
        bits(smoother.backward(&pass, &means).into_vec()),
        bits([pass.half_square(&means), smoother.log_likelihood(&states)]),
        bits(smoothed.into_vec()),
        bits([
            cost.physics,
            cost.data,
            cost.start,
            smoother.cost(&states).total(),
        ]),
    ]
}

#[test]
fn a_step_is_the_same_on_any_number_of_threads() {
    for (name, method, steps, thinning) in [
        ("hodgkin-huxley", "euler", 1500, 1),
        ("hodgkin-huxley", "euler", 1500, 4),
        ("harmonic-oscillator", "rk4", 700, 1),
        ("cart-pole", "semi-implicit-euler", 300, 3),
    ] {
        let (model, record) = case(name, method, steps);
        let on_one = on(1, || step(&model, &record, thinning));
        for threads in [2, 3] {
            assert_eq!(
                on(threads, || step(&model, &record, thinning)),
                on_one,
                "{name}"
            );
        }
    }
}

/// Of every solver, and of several starts side by side.
#[test]
fn a_fit_is_the_same_on_any_number_of_threads() {
    let text = systems::find("harmonic-oscillator").unwrap();
    let (model, record) = recorded(&text.replace("20 tanh", "8 tanh"), 200);
    let records = [record.clone(), record];
    for solver in latens::solve::solvers() {
        for ensemble in [1, 3] {
            let settings = Settings {
                passes: 2,
                ensemble,
                ..defaults(solver.name())
            };
            let numbers = || {
                let fit = fit(&model, &records, &settings, &mut Silent).unwrap();
                let tracks = fit.tracks.into_iter().flat_map(|t| t.free_run.into_vec());
                bits(fit.theta.into_iter().chain(tracks))
            };
            let on_one = on(1, numbers);
            for threads in [2, 5] {
                assert_eq!(
                    on(threads, numbers),
                    on_one,
                    "{} on {threads}",
                    solver.name()
                );
            }
        }
    }
}
