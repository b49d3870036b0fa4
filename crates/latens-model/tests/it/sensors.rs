//! Sensors and constants that are more than one number: the states that they add, and what contradicts
//! itself.

use crate::mistakes::{expect, expect_in};
use latens_model::small::solve;
use latens_model::{Model, Point};

/// ∂f/∂x, ∂f/∂u, ∂h/∂x and ∂h/∂u of a linear model with one input and one measurement, at zero.
fn matrices(model: &Model) -> (Vec<f64>, Vec<f64>, Vec<f64>, f64) {
    let (system, n) = (&model.system, model.states.len());
    let theta = vec![0.0; system.parameters()];
    let zero = vec![0.0; n];
    let at = |input: &'static [f64]| Point {
        time: 0.0,
        state: &zero,
        input,
        theta: &theta,
    };
    let (mut f, mut f_x) = (vec![0.0; n], vec![0.0; n * n]);
    let (mut h, mut h_x) = (vec![0.0], vec![0.0; n]);
    let mut ws = system.workspace();
    system.linearise(&mut ws, at(&[1.0]), &mut f, &mut f_x);
    system.linearise_measurement(&mut ws, at(&[1.0]), &mut h, &mut h_x);
    (f_x, f, h_x, h[0])
}

/// H(iω) = C (iω − A)⁻¹ B + D, by real arithmetic: (real part, imaginary part).
fn response(model: &Model, omega: f64) -> (f64, f64) {
    let (a, b, c, d) = matrices(model);
    let n = b.len();
    let mut matrix = vec![0.0; 4 * n * n];
    for i in 0..n {
        for j in 0..n {
            matrix[i * 2 * n + j] = -a[i * n + j];
            matrix[(n + i) * 2 * n + n + j] = -a[i * n + j];
        }
        matrix[i * 2 * n + n + i] = -omega;
        matrix[(n + i) * 2 * n + i] = omega;
    }
    let mut x = [b.as_slice(), &vec![0.0; n]].concat();
    solve(&mut matrix, &mut x, 2 * n).unwrap();
    let along = |x: &[f64]| -> f64 { c.iter().zip(x).map(|(c, x)| c * x).sum() };
    (along(&x[..n]) + d, along(&x[n..]))
}

fn plant(inputs: &str, measurement: &str) -> Model {
    let text = format!(
        "[inputs]\nu = {{ {inputs} }}\n[states.x]\nderivative = \"-2*x + 3*u\"\n[measurements]\ny = {measurement}\n"
    );
    Model::from_text("plant", &text).unwrap()
}

/// A lag divides the response by 1 + iωτ. A delay turns it by ωd, to (ωd)⁵/720, and leaves its size; of an
/// input or of a sensor, and after a lag.
#[test]
fn lags_and_delays_are_those_of_linear_systems() {
    for omega in [0.1, 0.7, 2.0] {
        let (re, im) = response(&plant("", "\"x\""), omega);
        let turned = |by: f64| {
            let (s, c) = by.sin_cos();
            (re * c + im * s, im * c - re * s)
        };
        let near = |found: (f64, f64), expected: (f64, f64), tolerance: f64| {
            let off = (found.0 - expected.0).hypot(found.1 - expected.1);
            assert!(off < tolerance * re.hypot(im), "{omega}: {off}");
        };
        let lagged = response(&plant("", "{ value = \"x\", lag = 0.3 }"), omega);
        let (wt, square) = (0.3 * omega, 1.0 + (0.3 * omega).powi(2));
        let by_lag = |(re, im): (f64, f64)| ((re + wt * im) / square, (im - wt * re) / square);
        near(lagged, by_lag((re, im)), 1e-12);
        let phase = 0.4 * omega;
        let tolerance = 1.1 * phase.powi(5) / 720.0 + 1e-12;
        let expected = turned(phase);
        let sensor = response(&plant("", "{ value = \"x\", delay = 0.4 }"), omega);
        near(sensor, expected, tolerance);
        near(
            response(&plant("delay = 0.4", "\"x\""), omega),
            expected,
            tolerance,
        );
        assert!((sensor.0.hypot(sensor.1) / re.hypot(im) - 1.0).abs() < 1e-12);
        let both = plant("", "{ value = \"x\", lag = 0.3, delay = 0.4 }");
        near(response(&both, omega), by_lag(expected), tolerance);
    }
}

/// What is unknown of a sensor is a constant like others, bounded by what an explicit method can follow.
#[test]
fn an_unknown_lag_is_a_constant() {
    let text = "[time]\nstep = 0.1\nunit = \"s\"\nmethod = \"euler\"\n[inputs]\nu = { delay = { guess = 0.5 } }\n\
                [states.x]\nderivative = \"u - x\"\n\
                [measurements]\ny = { value = \"x\", lag = { guess = 0.2 } }\n";
    let model = Model::from_text("model", text).unwrap();
    let names: Vec<&str> = model.unknowns.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["u_delay", "y_lag"]);
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(states, ["x", "u_delayed", "u_delayed_rate", "y_lagged"]);
    let unknowns = &model.unknowns;
    assert!(unknowns.iter().all(|u| u.positive && u.unit == "s"));
    assert!((unknowns[0].min - 0.25).abs() < 1e-12 && (unknowns[1].min - 0.07).abs() < 1e-12);
}

/// The number of a record's group chooses the difference: p = guess + scale·(θ₀ + θ_g), of none of them the
/// mean; with one group p is an ordinary constant, and of no group in particular Δ is a state.
#[test]
fn the_number_of_a_group_chooses_its_difference() {
    let text = "[inputs]\nu = {}\n[states.x]\nderivative = \"p*x + q*u\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
                q = { guess = 3 }\np = { guess = 2, scale = 0.5, POSITIVE varies = \"group\" }\n\
                [networks.net]\nlayers = [\"2 tanh\"]\n[states.y]\nderivative = \"net(x)\"\n";
    let labels = ["a", "b", "c"].map(String::from);
    for positive in ["", "positive = true,"] {
        let model = Model::from_text("model", &text.replace("POSITIVE", positive)).unwrap();
        assert_eq!(model.states.len(), 3);
        let single = model.for_groups(&labels[..1]).unwrap();
        assert_eq!((single.states.len(), single.system.unknowns()), (2, 2));
        assert!(single.varying().next().is_none() && single.group_entries().is_empty());
        let three = model.for_groups(&labels).unwrap();
        assert_eq!(three.groups(), labels);
        assert_eq!(three.group_entries(), [(1, 2..5)]);
        let (system, inputs) = (&three.system, three.inputs.len());
        assert_eq!((system.inputs(), inputs, three.states.len()), (2, 1, 2));
        assert_eq!(system.weight_ranges()[0].start, 5);
        let mut theta = vec![0.0; system.parameters()];
        theta[..5].copy_from_slice(&[0.0, 0.3, 0.4, -0.7, 1.1]);
        for group in 0..=3 {
            let entry = if group == 0 {
                0.3
            } else {
                0.3 + theta[1 + group]
            };
            let input = [0.0, group as f64];
            let at = Point {
                time: 0.0,
                state: &[5.0, 0.0],
                input: &input,
                theta: &theta,
            };
            let mut f = [f64::NAN; 2];
            system.derivative(&mut system.workspace(), at, &mut f);
            let expected = 5.0 * three.unknowns[1].value(entry);
            assert!((f[0] - expected).abs() < 1e-13, "{f:?} {expected}");
        }
        // and back
        let any = three.for_groups(&[]).unwrap();
        assert_eq!((any.states.len(), any.system.inputs()), (3, 1));
    }
}

/// p = mean + Δ, or mean·exp(Δ), in every form of the equations; Δ stands still.
#[test]
fn what_varies_is_its_mean_and_a_difference() {
    let model = |entry: &str| {
        let text = format!(
            "[states.x]\nderivative = \"p*x\"\n[unknowns]\np = {{ guess = 2, scale = 0.5, {entry} }}\n[measurements]\nx = \"x\"\n"
        );
        Model::from_text("model", &text).unwrap()
    };
    for (entry, positive) in [("", false), ("positive = true, ", true)] {
        let model = model(&format!("{entry}varies = \"record\""));
        assert_eq!(model.varying().collect::<Vec<_>>(), [(0, 1)]);
        let plain = model.plain();
        for (theta, difference) in [(0.0, 0.0), (0.7, -0.2), (-1.1, 0.4)] {
            let value = model.unknowns[0].value_at(theta, difference);
            let mean = model.unknowns[0].value(theta);
            let expected = if positive {
                mean * difference.exp()
            } else {
                mean + difference
            };
            assert!((value - expected).abs() < 1e-14);
            for (model, theta) in [(&model, theta), (&plain, mean)] {
                let mut f = [f64::NAN; 2];
                let at = Point {
                    time: 0.0,
                    state: &[3.0, difference],
                    input: &[],
                    theta: &[theta],
                };
                model
                    .system
                    .derivative(&mut model.system.workspace(), at, &mut f);
                assert!((f[0] - 3.0 * value).abs() < 1e-14 && f[1] == 0.0, "{f:?}");
            }
        }
    }
}

#[test]
fn what_contradicts_itself_is_a_mistake() {
    let p = |entry: &str| {
        format!("[states.z]\nderivative = \"p\"\n[unknowns]\np = {{ guess = 1, {entry} }}")
    };
    expect_in(
        &p("fixed = true, varies = §\"record\""),
        "fixed and varies",
        "leave one",
    );
    expect_in(
        &p("max = 3, varies = §\"slowly\""),
        "varies and has bounds",
        "positive = true",
    );
    expect_in(&p("varies = §\"often\""), "`often`", "record");
    let sensor = |entry: &str| {
        format!(
            "[states.x]\nderivative = \"-x\"\n[measurements]\ny = {{ value = \"x\", {entry} }}\n"
        )
    };
    expect(&sensor("lag = §-1"), &[("must be positive", "")]);
    expect(
        &sensor("delay = §{ guess = -0.1 }"),
        &[("not above zero", "above zero")],
    );
}
