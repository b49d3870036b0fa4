//! The derivatives of a compiled model are those of the calculus: they agree with dual numbers
//! pushed through an independent reading of the same file, and they keep known invariants. Those of
//! whole steps are tested where the steps are, in `latens`.

use crate::oracle::case::{Case, Deviation, EVERYTHING, model_files, transposed};
use crate::oracle::{self, At, Oracle};
use latens_model::{Model, Point, System};
use num_dual::Dual64;

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
                let compiled: Vec<f64> = js.iter().map(|j| f_theta[r * p + j]).collect();
                worst.compare(&format!("f_theta[{i}]"), &compiled, row);
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
    let channels = system.unknown_channels();
    let mut h_theta = vec![0.0; channels.len() * p];
    let (mut h_again, mut h_x_again) = (h.clone(), h_x.clone());
    system.linearise_measurement_all(&mut ws, point, &mut h_again, &mut h_x_again, &mut h_theta);
    assert_eq!((&h_again, &h_x_again), (&h, &h_x));
    let columns: Vec<_> = js
        .iter()
        .map(|&j| oracle.measure(&at.by_theta(j)))
        .collect();
    for (i, row) in transposed(&columns).iter().enumerate() {
        match channels.iter().position(|&c| c == i) {
            Some(c) => {
                let compiled: Vec<f64> = js.iter().map(|j| h_theta[c * p + j]).collect();
                worst.compare(&format!("h_theta[{i}]"), &compiled, row);
            }
            None => assert!(row.iter().all(|v| *v == 0.0), "channel {i} depends on θ"),
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
    assert_eq!(calls, [2, 1, 2, 1]);
    assert_eq!(model.system.unknown_rows(), [0, 1, 2, 3, 4]);
    assert_eq!(model.system.network_rows(), [0, 1, 2, 4]);
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
