//! Implicit methods: their order and stability against closed forms, published values of Robertson's
//! kinetics, derivatives where a tolerance chooses the steps, and what is said where they fail.

use latens::fit::Warning;
use latens::model::Point;
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::{Error, Job, Model, Record, Role, Silent, Source};

const ROBERTSON: &str = include_str!("../../../latens-lab/models/stiff/robertson.toml");
const OREGONATOR: &str = include_str!("../../../latens-lab/models/stiff/oregonator.toml");
const TANK: &str = include_str!("../../../latens-lab/models/stiff/tank-reactor.toml");

fn model(text: &str) -> Model {
    Model::from_text("stiff.toml", text).unwrap_or_else(|e| panic!("{e}"))
}

fn at<'a>(state: &'a [f64], theta: &'a [f64]) -> Point<'a> {
    Point {
        time: 0.0,
        state,
        input: &[],
        theta,
    }
}

/// Where one sample of this length leads.
fn end_of(model: &Model, state: &[f64], length: f64) -> Vec<f64> {
    let stepper = Stepper::new(model, &model.system, length);
    let mut next = vec![0.0; state.len()];
    let span = stepper.span(length);
    let theta = vec![0.0; model.system.parameters()];
    stepper.advance(&mut stepper.scratch(), at(state, &theta), span, &mut next);
    next
}

fn decay(method: &str, rate: f64) -> Model {
    model(&format!(
        "[time]\nmethod = \"{method}\"\n[states.x]\nderivative = \"-{rate}*x\"\n[measurements]\nx = \"x\"\n"
    ))
}

/// x' = −λ x is multiplied by R(−λΔ): for the midpoint rule (1 − z)/(1 + z) with z = λΔ/2, which keeps its
/// size; for the L-stable method by what falls as 1/(λΔ).
#[test]
fn what_is_fast_is_damped_by_one_and_kept_by_the_other() {
    for rate in [3.0, 1e3, 1e8] {
        let midpoint = end_of(&decay("implicit-midpoint", rate), &[1.0], 1.0)[0];
        let z = rate / 2.0;
        assert!((midpoint - (1.0 - z) / (1.0 + z)).abs() < 1e-13);
    }
    for rate in [1e4, 1e6, 1e8] {
        let damped = end_of(&decay("sdirk4", rate), &[1.0], 1.0)[0];
        assert!(damped.abs() < 50.0 / rate, "{rate}: {damped}");
    }
}

/// x' = −x³ + cos t has no closed form, and a step of half the length has 1/2^p of the error.
#[test]
fn the_orders_are_four_and_two() {
    let end_with = |method: &str, substeps: usize| {
        let text = format!(
            "[time]\nmethod = \"{method}\"\nsubsteps = {substeps}\n[states.x]\nderivative = \"-x^3 + cos(t)\"\n\
             [measurements]\nx = \"x\"\n"
        );
        end_of(&model(&text), &[0.3], 1.0)[0]
    };
    for (method, power) in [("sdirk4", 16.0), ("implicit-midpoint", 4.0)] {
        let finest = end_with(method, 2048);
        let error = |substeps| (end_with(method, substeps) - finest).abs();
        let ratio = error(16) / error(32);
        assert!((ratio / power - 1.0).abs() < 0.15, "{method}: {ratio}");
    }
}

/// The midpoint rule keeps the energy of an oscillator and the area of the pendulum's phase space.
#[test]
fn the_midpoint_rule_keeps_energy_and_area() {
    let oscillator = |force: &str| {
        model(&format!(
            "[time]\nmethod = \"implicit-midpoint\"\nsubsteps = 3\n[states.q]\nderivative = \"v\"\n\
             [states.v]\nderivative = \"{force}\"\n[measurements]\nq = \"q\"\n"
        ))
    };
    let energy = |x: &[f64]| 400.0 * x[0] * x[0] + x[1] * x[1];
    let start = [0.8, -0.5];
    let end = end_of(&oscillator("-400*q"), &start, 1.0);
    assert!((energy(&end) / energy(&start) - 1.0).abs() < 1e-13);
    let pendulum = oscillator("-sin(3*q)");
    let stepper = Stepper::new(&pendulum, &pendulum.system, 0.7);
    let mut out = stepper.linearised();
    let span = stepper.span(0.7);
    stepper.linearise(
        &mut stepper.scratch(),
        at(&start, &[]),
        span,
        true,
        &mut out,
    );
    let area = out.f_x[0] * out.f_x[3] - out.f_x[1] * out.f_x[2];
    assert!((area - 1.0).abs() < 1e-13, "{area}");
}

/// Robertson's kinetics in one sample of 10¹¹ s: the values of the Test Set for IVP Solvers (Mazzia and
/// Magherini, problem ROBER).
#[test]
fn robertson_ends_where_it_is_published_to_end() {
    let text = ROBERTSON
        .replace("tolerance = 1e-6", "tolerance = 1e-8")
        .replace("scale = 1e-5", "scale = 1e-13")
        .replace("start = 1", "start = 1\nscale = 1e-8");
    let model = model(&text);
    let truth = &model.truth.as_ref().unwrap().system;
    let stepper = Stepper::new(&model, truth, 1e11);
    let mut next = [0.0; 3];
    let span = stepper.span(1e11);
    stepper.advance(
        &mut stepper.scratch(),
        at(&[1.0, 0.0, 0.0], &[]),
        span,
        &mut next,
    );
    let published = [
        0.2083340149701255e-7,
        0.8333360770334713e-13,
        0.999_999_979_166_505,
    ];
    for (value, published) in next.iter().zip(published) {
        assert!(
            (value / published - 1.0).abs() < 1e-5,
            "{next:?}: {:.1e}",
            value / published - 1.0
        );
    }
}

/// Where a tolerance chooses the steps their lengths are constants: the derivatives are those of the map
/// wherever the lengths stay the same, as they do over a central difference. Of both methods, by states and
/// constants.
#[test]
fn derivatives_hold_where_a_tolerance_chooses_the_steps() {
    let state = [1.5, 0.2, 3.0];
    for method in ["sdirk4", "implicit-midpoint"] {
        let model = model(&OREGONATOR.replace("\"sdirk4\"", &format!("\"{method}\"")));
        let stepper = Stepper::new(&model, &model.system, 0.5);
        let (mut scratch, mut out) = (stepper.scratch(), stepper.linearised());
        let theta = vec![0.1, -0.2];
        let span = stepper.span(0.5);
        stepper.linearise(&mut scratch, at(&state, &theta), span, true, &mut out);
        let mut end = |state: &[f64], theta: &[f64]| {
            let mut next = vec![0.0; 3];
            stepper.advance(&mut scratch, at(state, theta), span, &mut next);
            next
        };
        assert_eq!(end(&state, &theta), out.next);
        let step = 1e-6;
        for j in 0..5 {
            let moved = |sign: f64| {
                let (mut state, mut theta) = (state.to_vec(), theta.clone());
                *state.iter_mut().chain(&mut theta).nth(j).unwrap() += sign * step;
                (state, theta)
            };
            let ((up, t_up), (down, t_down)) = (moved(1.0), moved(-1.0));
            let (up, down) = (end(&up, &t_up), end(&down, &t_down));
            for i in 0..3 {
                let difference = (up[i] - down[i]) / (2.0 * step);
                let derivative = if j < 3 {
                    out.f_x[i * 3 + j]
                } else {
                    let row = stepper.rows().iter().position(|&r| r == i).unwrap();
                    out.f_theta[row * 2 + j - 3]
                };
                assert!(
                    (derivative - difference).abs() < 1e-7 * (1.0 + derivative.abs()),
                    "{method}: {derivative} against {difference} of {i} by {j}"
                );
            }
        }
    }
}

/// x' = −1/(2x) ends at x = √(1 − t) = 0: past t = 1 no step has a solution, and the error says where.
#[test]
fn a_step_without_a_solution_is_a_clear_error() {
    let text = "[time]\nstep = 0.3\nmethod = \"sdirk4\"\ntolerance = 1e-6\n[states.x]\nderivative = \"-0.5/x\"\nstart = 1\n\
                [measurements]\nx = \"x\"\n[truth]\nx = \"-0.5/x\"\n[simulation]\nsteps = 10\n";
    let error = simulate(&model(text), &Simulation::default()).unwrap_err();
    let Error::Diverged(divergence) = &error else {
        panic!("{error}");
    };
    assert_eq!((divergence.step, divergence.quantity.as_str()), (4, "x"));
    assert!(error.to_string().contains("no solution"), "{error}");
}

fn record_of(text: &str, steps: usize) -> Record {
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    simulate(&model(text), &simulation).unwrap()
}

/// The same equations by an explicit method are told to be too stiff, with what to do; a slow model is not.
#[test]
fn a_check_tells_equations_that_are_too_stiff() {
    let explicit = TANK.replace("method = \"sdirk4\"\ntolerance = 1e-6", "method = \"rk4\"");
    let record = record_of(TANK, 60);
    let check = latens::check(&model(&explicit), std::slice::from_ref(&record)).unwrap();
    let warnings = Warning::of_check(&check);
    let stiff = warnings.iter().find_map(|w| match w {
        Warning::TooStiff { stiffness } => Some(stiffness),
        _ => None,
    });
    let stiff = stiff.unwrap_or_else(|| panic!("{warnings:?}"));
    assert!(stiff.growth > 1e3 && stiff.true_growth <= 1.0, "{stiff:?}");
    assert!(stiff.words().contains("method = \"sdirk4\""));
    let check = latens::check(&model(TANK), &[record]).unwrap();
    assert_eq!(check.stiffness, None, "an implicit method follows");
    let oscillator = Model::builtin("harmonic-oscillator").unwrap();
    let record = simulate(&oscillator, &Simulation::default()).unwrap();
    let check = latens::check(&oscillator, &[record]).unwrap();
    assert_eq!(check.stiffness, None);
}

/// Rates six decades apart, one state of three measured, without noise: the constant and the hidden states.
#[test]
fn a_stiff_reactor_is_learned() {
    let model = model(TANK);
    let record = record_of(TANK, 100);
    let truth = record.truth.clone().unwrap();
    let mut job = Job::new(model).unwrap();
    let source = Source::of_record(record, &job.model).unwrap();
    job.add(Role::Train, source);
    let fit = job.run(&mut Silent).unwrap().fit;
    let kp = fit.model.unknowns[0].value(fit.theta[0]);
    assert!((kp / 2000.0 - 1.0).abs() < 1e-3, "{kp}");
    let start = fit.start(&[]);
    let next = {
        let stepper = Stepper::new(&fit.model, &fit.model.system, 20.0);
        let mut next = vec![0.0; 3];
        let point = Point {
            time: 0.0,
            state: &start,
            input: &[1.0, 0.05],
            theta: &fit.theta,
        };
        let span = stepper.span(20.0);
        stepper.advance(&mut stepper.scratch(), point, span, &mut next);
        next
    };
    // the radicals of the start are gone within a millisecond and cannot be known; those after it are
    for i in 0..3 {
        assert!((next[i] / truth[3 + i] - 1.0).abs() < 1e-2, "state {i}");
    }
}

/// Asked to stop before anything is learned, a fit ends at once, however long its steps take.
#[test]
fn a_fit_that_has_learned_nothing_yet_can_be_stopped() {
    struct Stop;
    impl latens::solve::Observer for Stop {
        fn goes_on(&mut self) -> bool {
            false
        }
        fn progress(&mut self, _: &latens::solve::Progress) -> bool {
            unreachable!("it was stopped before")
        }
    }
    impl latens::job::Watch for Stop {}
    let text = "[time]\nstep = 0.05\nmethod = \"sdirk4\"\ntolerance = 1e-6\n[inputs]\ncf = \"\"\n\
        [states]\nc = { derivative = \"cf - c - k(T)*c\", start = 0.5 }\n\
        T = { derivative = \"310 - T + 90*k(T)*c - 3*(T - 300)\", start = 310 }\n\
        [measurements]\nT = \"T\"\n[networks.k]\nlayers = [\"4 tanh\"]\n\
        [truth]\nc = \"cf - c - exp(0.05*(T - 310))*c\"\n\
        T = \"310 - T + 90*exp(0.05*(T - 310))*c - 3*(T - 300)\"\n[simulation]\nsteps = 300\ninputs = { cf = \"1 + 0.5*sin(t)\" }\n";
    let mut job = Job::new(model(text)).unwrap();
    let source = Source::of_record(record_of(text, 300), &job.model).unwrap();
    job.add(Role::Train, source);
    assert!(matches!(job.run(&mut Stop), Err(Error::Stopped)));
}
