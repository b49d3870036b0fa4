//! The derivatives of a compiled model are those of the calculus: they agree with dual numbers
//! pushed through an independent reading of the same file, and they keep known invariants.

mod oracle;

use latens::Model;
use latens::model::network::Scaling;
use latens::model::{Point, System};
use latens::step::Stepper;
use num_dual::Dual64;
use oracle::{At, Oracle, Variant};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const TOLERANCE: f64 = 1e-10;
/// Parameters looked at in a network that has more.
const SAMPLED_PARAMETERS: usize = 60;

/// What the six model files do not use.
const EVERYTHING: &str = include_str!("oracle/everything.toml");

/// The largest relative deviation seen, and the check itself.
#[derive(Default)]
struct Deviation(f64);

impl Deviation {
    /// Entries far below the row's largest are measured against 1e-4 of that: they are sums in
    /// which terms of the row's size cancel.
    fn compare(&mut self, what: &str, compiled: &[f64], oracle: &[f64]) {
        assert_eq!(compiled.len(), oracle.len(), "{what}");
        let largest = oracle.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for (i, (c, o)) in compiled.iter().zip(oracle).enumerate() {
            assert!(
                c.is_finite() && o.is_finite(),
                "{what}[{i}]: {c} against {o}"
            );
            if c != o {
                let relative = (c - o).abs() / c.abs().max(o.abs()).max(1e-4 * largest);
                assert!(
                    relative < TOLERANCE,
                    "{what}[{i}]: {c} against {o} ({relative:.1e})"
                );
                self.0 = self.0.max(relative);
            }
        }
    }
}

/// A model, scaled at random, with its oracle.
struct Case {
    model: Model,
    learned: Oracle,
    truth: Option<Oracle>,
    rng: Pcg64,
}

impl Case {
    fn new(text: &str, seed: u64) -> Self {
        let mut model = Model::from_text("model.toml", text).unwrap_or_else(|e| panic!("{e}"));
        let mut rng = Pcg64::seed_from_u64(seed);
        // centres and scales near the arguments at the start keep the networks out of saturation
        let state: Vec<f64> = model
            .states
            .iter()
            .map(|s| s.start.unwrap_or(0.5))
            .collect();
        let input = vec![1.0; model.inputs.len()];
        let theta = vec![0.0; model.system.parameters()];
        let point = Point {
            time: 0.0,
            state: &state,
            input: &input,
            theta: &theta,
        };
        let mut scaling = Vec::new();
        for n in 0..model.system.networks().len() {
            let (mut center, outputs) = (vec![], model.system.networks()[n].outputs.len());
            let mut ws = model.system.workspace();
            model.system.visit_arguments(&mut ws, point, |m, values| {
                if m == n {
                    center = values.to_vec();
                }
            });
            let scale = center
                .iter()
                .map(|c| rng.random_range(0.5..2.0) * (1.0 + c.abs()));
            let scale: Vec<f64> = scale.collect();
            let shift = |(c, s): (&f64, &f64)| c + s * rng.random_range(-0.5..0.5);
            let center = center.iter().zip(&scale).map(shift).collect();
            let output = (0..outputs).map(|_| rng.random_range(0.2..3.0)).collect();
            scaling.push(Scaling {
                center,
                scale,
                output,
            });
            model.system.set_scaling(n, scaling[n].clone());
        }
        let truth = model
            .truth
            .is_some()
            .then(|| Oracle::new(text, Variant::Truth, vec![]));
        let learned = Oracle::new(text, Variant::Learned, scaling);
        Self {
            model,
            learned,
            truth,
            rng,
        }
    }

    fn random_point(&mut self) -> At<f64> {
        let (rng, model) = (&mut self.rng, &self.model);
        let near =
            |v: f64, rng: &mut Pcg64| v + (0.1 + 0.25 * v.abs()) * rng.random_range(-1.0..1.0);
        At {
            time: rng.random_range(-2.0..3.0),
            state: model
                .states
                .iter()
                .map(|s| near(s.start.unwrap_or(0.5), rng))
                .collect(),
            input: model
                .inputs
                .iter()
                .map(|_| rng.random_range(-2.0..2.0))
                .collect(),
            theta: (0..model.system.parameters())
                .map(|_| rng.random_range(-0.8..0.8))
                .collect(),
        }
    }

    fn random_parameters(&mut self) -> Vec<usize> {
        let p = self.model.system.parameters();
        if p <= SAMPLED_PARAMETERS {
            return (0..p).collect();
        }
        // unknown constants always, and weights of every kind
        let unknowns = self.model.unknowns.len();
        let mut chosen: Vec<usize> = (0..unknowns).collect();
        chosen.extend((unknowns..SAMPLED_PARAMETERS).map(|_| self.rng.random_range(unknowns..p)));
        chosen
    }
}

/// Rows of ∂(rows)/∂(variable) from columns of dual numbers.
fn transposed(columns: &[Vec<Dual64>]) -> Vec<Vec<f64>> {
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows)
        .map(|i| columns.iter().map(|c| c[i].eps).collect())
        .collect()
}

fn check_continuous(
    system: &System,
    oracle: &Oracle,
    at: &At<f64>,
    js: &[usize],
    worst: &mut Deviation,
) {
    let (n, p, m) = (system.states(), system.parameters(), system.measurements());
    let point = Point {
        time: at.time,
        state: &at.state,
        input: &at.input,
        theta: &at.theta,
    };
    let mut ws = system.workspace();
    let rows = system.unknown_rows();
    let (mut f, mut f_x, mut f_theta) = (vec![0.0; n], vec![0.0; n * n], vec![0.0; rows.len() * p]);
    system.linearise_all(&mut ws, point, &mut f, &mut f_x, &mut f_theta);
    worst.compare("f", &f, &oracle.derivative(at));
    let columns: Vec<_> = (0..n).map(|j| oracle.derivative(&at.by_state(j))).collect();
    for (i, row) in transposed(&columns).iter().enumerate() {
        worst.compare(&format!("f_x[{i}]"), &f_x[i * n..(i + 1) * n], row);
    }
    // the other entry points give the very same numbers
    let (mut f_alone, mut f_again, mut f_x_again) = (vec![0.0; n], vec![0.0; n], vec![0.0; n * n]);
    system.derivative(&mut ws, point, &mut f_alone);
    system.linearise(&mut ws, point, &mut f_again, &mut f_x_again);
    assert_eq!((&f_alone, &f_again, &f_x_again), (&f, &f, &f_x));

    let columns: Vec<_> = js
        .iter()
        .map(|&j| oracle.derivative(&at.by_theta(j)))
        .collect();
    for (i, row) in transposed(&columns).iter().enumerate() {
        match rows.iter().position(|&r| r == i) {
            Some(r) => {
                let own: Vec<f64> = js.iter().map(|j| f_theta[r * p + j]).collect();
                worst.compare(&format!("f_theta[{i}]"), &own, row);
            }
            None => assert!(row.iter().all(|v| *v == 0.0), "row {i} depends on θ"),
        }
    }

    let (mut h, mut h_x, mut h_alone) = (vec![0.0; m], vec![0.0; m * n], vec![0.0; m]);
    system.linearise_measurement(&mut ws, point, &mut h, &mut h_x);
    system.measure(&mut ws, point, &mut h_alone);
    assert_eq!(h, h_alone);
    worst.compare("h", &h, &oracle.measure(at));
    let columns: Vec<_> = (0..n).map(|j| oracle.measure(&at.by_state(j))).collect();
    for (i, row) in transposed(&columns).iter().enumerate() {
        worst.compare(&format!("h_x[{i}]"), &h_x[i * n..(i + 1) * n], row);
    }
}

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
                let own: Vec<f64> = js.iter().map(|j| out.f_theta[r * p + j]).collect();
                worst.compare(&format!("F_theta[{i}]"), &own, row);
            }
            None => assert!(
                row.iter().all(|v| *v == 0.0),
                "row {i} of the step depends on θ"
            ),
        }
    }
}

/// Everything of one model text, at random points; gives the largest relative deviation.
fn check_model(text: &str) -> f64 {
    let mut worst = Deviation::default();
    let mut case = Case::new(text, 1);
    for _ in 0..4 {
        let (at, js) = (case.random_point(), case.random_parameters());
        check_continuous(&case.model.system, &case.learned, &at, &js, &mut worst);
        if let (Some(truth), Some(oracle)) = (&case.model.truth, &case.truth) {
            let at = At {
                theta: vec![],
                ..at
            };
            check_continuous(&truth.system, oracle, &at, &[], &mut worst);
        }
    }
    let own = text.lines().find(|line| line.starts_with("method = "));
    let own = own.expect("the variants below replace it");
    for method in ["euler", "rk4", "semi-implicit-euler"] {
        for substeps in [1, 3] {
            let setting = format!("method = \"{method}\"\nsubsteps = {substeps}");
            let mut case = Case::new(&text.replace(own, &setting), 2);
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            println!("{}", path.display());
            let worst = check_model(&std::fs::read_to_string(&path).unwrap());
            println!("largest relative deviation {worst:.1e}");
            files += 1;
        }
    }
    assert!(files >= 6);
}

#[test]
fn everything_in_the_language_agrees_with_dual_numbers() {
    let worst = check_model(EVERYTHING);
    println!("largest relative deviation {worst:.1e}");
}

#[test]
fn the_hidden_networks_of_a_call_share_their_weights() {
    let model = Model::from_text("model.toml", EVERYTHING).unwrap();
    // shape is called with (a, b) and with (b·c, u): one set of weights, two calls
    let mut calls = vec![0; 4];
    let zeros = vec![0.0; model.system.parameters()];
    let point = Point {
        time: 0.0,
        state: &[0.0; 6],
        input: &[0.0; 2],
        theta: &zeros,
    };
    let mut ws = model.system.workspace();
    model
        .system
        .visit_arguments(&mut ws, point, |n, _| calls[n] += 1);
    assert_eq!(calls, [2, 1, 1, 1]);
    assert_eq!(model.system.unknown_rows(), [0, 1, 2, 3, 4]);
    assert_eq!(model.system.network_rows(), [0, 1, 2, 4]);
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

/// Value and slope of a function at a point of state x.
fn compiled(expression: &str, x: f64) -> (f64, f64) {
    let text = format!("[states.x]\nderivative = \"{expression}\"\n[measurements]\nx = \"x\"\n");
    let system = Model::from_text("function.toml", &text)
        .unwrap_or_else(|e| panic!("{e}"))
        .system;
    let (mut f, mut f_x) = ([0.0], [0.0]);
    let point = Point {
        time: 0.0,
        state: &[x],
        input: &[],
        theta: &[],
    };
    system.linearise(&mut system.workspace(), point, &mut f, &mut f_x);
    (f[0], f_x[0])
}

#[test]
fn functions_are_finite_where_their_formulas_are_not() {
    for (expression, x, value, slope) in [
        ("linoid(x)", 0.0, 1.0, 0.5),
        ("linoid(x)", 1e-9, 1.0 + 0.5e-9, 0.5 + 1e-9 / 6.0),
        ("linoid(x)", 800.0, 800.0, 1.0),
        ("linoid(x)", -800.0, 0.0, 0.0),
        ("sinc(x)", 0.0, 1.0, 0.0),
        ("sigmoid(x)", -800.0, 0.0, 0.0),
        ("sigmoid(x)", 800.0, 1.0, 0.0),
        ("softplus(x)", 800.0, 800.0, 1.0),
        ("softplus(x)", -800.0, 0.0, 0.0),
        ("tanh(x)", 400.0, 1.0, 0.0),
        ("x^2", 0.0, 0.0, 0.0),
        ("x^1", 0.0, 0.0, 1.0),
        ("x^0", 0.0, 1.0, 0.0),
        ("x^3", -2.0, -8.0, 12.0),
        ("x^-1", -2.0, -0.5, -0.25),
        ("if(x > 0, sqrt(x), 0)", -1.0, 0.0, 0.0),
        ("if(x > 0, x^1.5, 3*x)", -1.0, -3.0, 3.0),
        ("smooth_abs(x, 1e-3)", 0.0, 1e-3, 0.0),
        ("mod(x, 3)", -1.0, 2.0, 1.0),
    ] {
        let (v, s) = compiled(expression, x);
        assert!(
            (v - value).abs() <= 1e-15 * value.abs(),
            "{expression} at {x}: {v}"
        );
        assert!(
            (s - slope).abs() <= 1e-15 * slope.abs().max(1e-285),
            "{expression} at {x}: slope {s}"
        );
    }
}

/// Where a series takes over from a formula, near zero, the two must meet.
#[test]
fn series_near_zero_agree_with_dual_numbers() {
    for name in ["linoid", "sinc"] {
        for k in -60..=60 {
            let x = f64::from(k) * 1.01e-3;
            let expected = oracle::function(name, &[Dual64::new(x, 1.0)]);
            let (value, slope) = compiled(&format!("{name}(x)"), x);
            assert!((value - expected.re).abs() < 1e-15, "{name}({x}) = {value}");
            assert!(
                (slope - expected.eps).abs() < 1e-12,
                "{name}'({x}) = {slope}"
            );
        }
    }
}
