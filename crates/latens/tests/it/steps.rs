//! The derivatives of a step are those of the calculus: they agree with dual numbers pushed through
//! an independent reading of the same file, and the methods keep known invariants.

use crate::oracle::case::{
    Case, Deviation, EVERYTHING, SAMPLED_PARAMETERS, model_files, transposed,
};
use crate::oracle::{At, Oracle};
use latens::Model;
use latens::model::{Method, Point};
use latens::numerics::step::{Stepper, sizes};
use latens::simulate::{Simulation, simulate};
use num_dual::Dual64;

fn check_step(
    model: &Model,
    oracle: &Oracle,
    (dt, gap, steps): (f64, f64, usize),
    at: &At<f64>,
    js: &[usize],
    worst: &mut Deviation,
) {
    let (n, p) = (model.system.states(), model.system.parameters());
    let point = Point {
        time: at.time,
        state: &at.state,
        input: &at.input,
        theta: &at.theta,
    };
    let stepper = Stepper::new(model, &model.system, dt);
    let (mut scratch, mut out) = (stepper.scratch(), stepper.linearised());
    let span = stepper.span(gap);
    let substeps = steps * model.substeps;
    let step = |at: &At<Dual64>| oracle.step(at, model.method, substeps, gap);
    let mut next = vec![0.0; n];
    stepper.advance(&mut scratch, point, span, &mut next);
    let expected = oracle.step(at, model.method, substeps, gap);
    worst.compare("step", &next, &expected);
    // without θ first: nothing of it may be left in the scratch memory
    stepper.linearise(&mut scratch, point, span, false, &mut out);
    let f_x = out.f_x.clone();
    stepper.linearise(&mut scratch, point, span, true, &mut out);
    assert_eq!(f_x, out.f_x);
    worst.compare("linearised step", &out.next, &next);
    let columns: Vec<_> = (0..n).map(|j| step(&at.by_state(j))).collect();
    for (i, row) in transposed(&columns).iter().enumerate() {
        worst.compare(&format!("F_x[{i}]"), &out.f_x[i * n..(i + 1) * n], row);
    }
    let columns: Vec<_> = js.iter().map(|&j| step(&at.by_theta(j))).collect();
    for (i, row) in transposed(&columns).iter().enumerate() {
        match stepper.rows().iter().position(|&r| r == i) {
            Some(r) => {
                let gradient: Vec<f64> = js.iter().map(|j| out.f_theta[r * p + j]).collect();
                worst.compare(&format!("F_theta[{i}]"), &gradient, row);
            }
            None => assert!(
                row.iter().all(|v| *v == 0.0),
                "row {i} of the step depends on θ"
            ),
        }
    }
}

/// Every method on one model text, at random points; gives the largest relative deviation.
fn check_model(text: &str) -> f64 {
    let mut worst = Deviation::default();
    let method_line = text.lines().find(|line| line.starts_with("method = "));
    let method_line = method_line.expect("the variants below replace it");
    for (method, _) in Method::NAMES {
        for substeps in [1, 3] {
            let setting = format!("method = \"{method}\"\nsubsteps = {substeps}");
            let mut case = Case::new(&text.replace(method_line, &setting), 2);
            // steps long enough for the higher terms to count
            let dt = 4.0 * case.model.step.unwrap_or(0.01);
            let (at, mut js) = (case.random_point(), case.random_parameters());
            js.truncate(SAMPLED_PARAMETERS / 2);
            for (dt, gap, steps) in [
                (dt, 1.0, 1),
                (dt, 0.6, 1),
                (0.3 * dt, 2.0, 2),
                (0.3 * dt, 2.7, 3),
            ] {
                let gap = (dt, gap * dt, steps);
                check_step(&case.model, &case.learned, gap, &at, &js, &mut worst);
            }
        }
    }
    worst.0
}

#[test]
fn model_files_agree_with_dual_numbers() {
    let texts = model_files();
    assert!(texts.len() >= 6);
    for text in texts {
        let worst = check_model(&text);
        println!("largest relative deviation {worst:.1e}");
    }
}

#[test]
fn everything_in_the_language_agrees_with_dual_numbers() {
    let worst = check_model(EVERYTHING);
    println!("largest relative deviation {worst:.1e}");
}

// ---- facts of the mathematics ----

/// x' = A x, as a model text.
fn linear(a: &[[f64; 3]; 3], method: &str) -> Model {
    let mut text =
        format!("[time]\nstep = 0.1\nmethod = \"{method}\"\n[measurements]\ny = \"x0\"\n");
    for (i, r) in a.iter().enumerate() {
        let sum = format!("{}*x0 + {}*x1 + {}*x2", r[0], r[1], r[2]).replace("+ -", "- ");
        text += &format!("[states.x{i}]\nderivative = \"{sum}\"\n");
    }
    Model::from_text("linear.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn rk4_of_a_linear_system_is_the_exponential_to_fourth_order() {
    let a = [[-0.4, 1.3, 0.2], [-1.1, -0.3, 0.7], [0.5, -0.6, -0.9]];
    let (h, model) = (0.3, linear(&a, "rk4"));
    // Σ_{k ≤ 4} (hA)^k/k!
    let mut term = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut sum = term;
    for k in 1..=4 {
        let mut next = [[0.0; 3]; 3];
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|l| term[i][l] * a[l][j]).sum();
                next[i][j] = product * h / f64::from(k);
                sum[i][j] += next[i][j];
            }
        }
        term = next;
    }
    let stepper = Stepper::new(&model, &model.system, h);
    let mut out = stepper.linearised();
    let x = [0.7, -1.2, 0.4];
    let point = Point {
        time: 0.0,
        state: &x,
        input: &[],
        theta: &[],
    };
    let span = stepper.span(h);
    stepper.linearise(&mut stepper.scratch(), point, span, true, &mut out);
    for (i, row) in sum.iter().enumerate() {
        let value: f64 = row.iter().zip(&x).map(|(s, x)| s * x).sum();
        assert!((out.next[i] - value).abs() < 1e-14);
        for (j, entry) in row.iter().enumerate() {
            assert!((out.f_x[i * 3 + j] - entry).abs() < 1e-14);
        }
    }
}

#[test]
fn semi_implicit_euler_keeps_the_area_of_phase_space() {
    // a pendulum and the harmonic oscillator: positions first, then velocities
    for force in ["-4*q", "-sin(3*q) + 0.2*cos(t)"] {
        for substeps in [1, 3] {
            let text = format!(
                "[time]\nstep = 0.1\nmethod = \"semi-implicit-euler\"\nsubsteps = {substeps}\n\
                 [states.q]\nderivative = \"v\"\n[states.v]\nderivative = \"{force}\"\n[measurements]\nq = \"q\"\n"
            );
            let model = Model::from_text("oscillator.toml", &text).unwrap();
            let stepper = Stepper::new(&model, &model.system, 0.1);
            let mut out = stepper.linearised();
            let point = Point {
                time: 0.4,
                state: &[0.8, -0.5],
                input: &[],
                theta: &[],
            };
            let span = stepper.span(0.23);
            stepper.linearise(&mut stepper.scratch(), point, span, true, &mut out);
            let determinant = out.f_x[0] * out.f_x[3] - out.f_x[1] * out.f_x[2];
            assert!((determinant - 1.0).abs() < 1e-14, "{force}: {determinant}");
        }
    }
}

/// F_x and F_θ of one step against dual numbers, in units of the states: the largest deviation beside the largest
/// entry of each matrix. Between rates that lie decades apart terms of that size cancel in whole rows.
fn deviation_in_units(case: &Case, dt: f64, at: &At<f64>) -> f64 {
    let model = &case.model;
    let (n, p) = (model.system.states(), model.system.parameters());
    let sizes = sizes(model);
    let point = Point {
        time: at.time,
        state: &at.state,
        input: &at.input,
        theta: &at.theta,
    };
    let stepper = Stepper::new(model, &model.system, dt);
    let mut out = stepper.linearised();
    let span = stepper.span(dt);
    stepper.linearise(&mut stepper.scratch(), point, span, true, &mut out);
    let step = |at: &At<Dual64>| case.learned.step(at, model.method, 1, dt);
    let (mut derivatives, mut dual) = (vec![], vec![]);
    for j in 0..n {
        for (i, end) in step(&at.by_state(j)).iter().enumerate() {
            derivatives.push(out.f_x[i * n + j] * sizes[j] / sizes[i]);
            dual.push(end.eps * sizes[j] / sizes[i]);
        }
    }
    let by_states = beside_largest(&derivatives, &dual);
    let (mut derivatives, mut dual) = (vec![], vec![]);
    for j in 0..p {
        for (i, end) in step(&at.by_theta(j)).iter().enumerate() {
            let row = stepper.rows().iter().position(|&r| r == i);
            derivatives.push(row.map_or(0.0, |r| out.f_theta[r * p + j] / sizes[i]));
            dual.push(end.eps / sizes[i]);
        }
    }
    by_states.max(beside_largest(&derivatives, &dual))
}

fn beside_largest(derivatives: &[f64], dual: &[f64]) -> f64 {
    let largest = dual.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let off = derivatives
        .iter()
        .zip(dual)
        .map(|(a, b)| (a - b).abs() / largest);
    off.fold(0.0, |most, v| if v <= most { most } else { v })
}

/// Rates up to nine decades apart, at samples of simulations and with constants off their guesses: the derivatives
/// of implicit steps over a tenth of a sample are those of the dual numbers.
#[test]
fn stiff_models_agree_with_dual_numbers() {
    let texts = [
        include_str!("../../../latens-lab/models/stiff/robertson.toml"),
        include_str!("../../../latens-lab/models/stiff/van-der-pol.toml"),
        include_str!("../../../latens-lab/models/stiff/oregonator.toml"),
        include_str!("../../../latens-lab/models/stiff/tank-reactor.toml"),
    ];
    let mut worst = 0.0_f64;
    for text in texts {
        let model = Model::from_text("stiff.toml", text).unwrap();
        let record = simulate(&model, &Simulation::default()).unwrap();
        let truth = record.truth.as_ref().unwrap();
        for method in ["sdirk4", "implicit-midpoint"] {
            let text = text
                .replace("tolerance = 1e-6\n", "")
                .replace("\"sdirk4\"", &format!("\"{method}\""));
            let case = Case::new(&text, 2);
            let dt = case.model.step.unwrap() / 10.0;
            for k in [1, 50, 100, 350] {
                let at = At {
                    time: record.time[k],
                    state: truth[k * record.d_x..(k + 1) * record.d_x].to_vec(),
                    input: record.input(k).to_vec(),
                    theta: vec![0.1; case.model.system.parameters()],
                };
                let off = deviation_in_units(&case, dt, &at);
                assert!(off < 1e-11, "{method}, sample {k}: {off:.1e}");
                worst = worst.max(off);
            }
        }
    }
    println!("largest deviation {worst:.1e}");
}
