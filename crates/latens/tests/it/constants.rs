//! What is known of constants before a fit: bounds, priors, values.

use crate::fixture::{defaults, fit};
use latens::fit::{BoundName, Constant};
use latens::numerics::bounded::moments;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Fit, Model, Record, Settings, Silent};

/// x' = p u with x measured: linear in x and p, so that the posterior of p is normal.
fn model(entry: &str) -> Model {
    let text = format!(
        "[time]\nstep = 0.1\n[inputs]\nu = {{}}\n[states.x]\nderivative = \"p*u - q\"\n\
         [unknowns]\np = {{ {entry} }}\nq = {{ value = 0.1, fixed = true }}\n[measurements]\ny = \"x\"\n"
    );
    Model::from_text("linear", &text).unwrap()
}

/// With p = 2 and q = 0.1, and noise of 0.05.
fn record() -> Record {
    let noise = |k: usize| 0.05 * 1.414 * ((k * k) as f64 * 1.7 + 0.3).sin();
    let u = |k: usize| (0.3 * k as f64).cos();
    let mut x = 0.0;
    let mut outputs = vec![];
    for k in 0..150 {
        outputs.push(x + noise(k));
        x += 0.1 * (2.0 * u(k) - 0.1);
    }
    Record {
        name: "waves".into(),
        time: (0..150).map(|k| 0.1 * k as f64).collect(),
        inputs: (0..150).map(u).collect(),
        outputs,
        truth: None,
        d_u: 1,
        d_y: 1,
        d_x: 1,
        later: false,
    }
}

/// Noise that is stated, so that two fits have the same.
fn settings() -> Settings {
    Settings {
        measurement_variance: [("y".to_string(), 0.05_f64.powi(2))].into(),
        process_variance: [("x".to_string(), 1e-6)].into(),
        ..defaults("batch")
    }
}

fn fitted(entry: &str, settings: &Settings) -> Fit {
    fit(&model(entry), &[record()], settings, &mut Silent).unwrap()
}

fn log_evidence(fit: &Fit) -> f64 {
    fit.facts.evidence.as_ref().unwrap().log
}

/// The posterior with a bound is the one without, cut at it: deviation, interval and evidence are those
/// of the truncated normal distribution, the estimate is at the bound, and no draw is beyond.
#[test]
fn a_bound_cuts_the_posterior() {
    let free = fitted("guess = 1.5, scale = 1", &settings());
    let p = &free.constants()[0];
    assert!((p.value - 2.0).abs() < 3.0 * p.std, "{p:?}");
    for (side, max) in [(-1.5, true), (-0.4, true), (0.8, false), (1.0, true)] {
        let bound = p.value + side * p.std;
        let (entry, bounds) = if max {
            (
                format!("guess = 1.5, scale = 1, max = {bound}"),
                (f64::NEG_INFINITY, bound),
            )
        } else {
            (
                format!("guess = 2.5, scale = 1, min = {bound}"),
                (bound, f64::INFINITY),
            )
        };
        let cut = fitted(&entry, &settings());
        let constant = &cut.constants()[0];
        // with another guess the prior has another mean
        let reference = if max {
            free.clone()
        } else {
            fitted("guess = 2.5, scale = 1", &settings())
        };
        let (p, guess) = (&reference.constants()[0], if max { 1.5 } else { 2.5 });
        let expected = moments(p.value, p.std, bounds);
        assert!(
            (constant.std / expected.variance.sqrt() - 1.0).abs() < 0.04,
            "{constant:?} {expected:?}"
        );
        let outside = p.value < bounds.0 || p.value > bounds.1;
        let at = if max { BoundName::Max } else { BoundName::Min };
        assert_eq!(constant.bound, outside.then_some(at));
        if outside {
            assert_eq!(constant.value, bound);
            assert!(constant.remark().unwrap().contains("the data ask for"));
        } else {
            assert!((constant.value - p.value).abs() < 0.02 * p.std);
        }
        let prior = moments(guess, 1.0, bounds).log_mass;
        let gain = expected.log_mass - prior;
        let gained = log_evidence(&cut) - log_evidence(&reference);
        assert!((gained - gain).abs() < 0.02, "{gained} {gain}");
        let (from, to) = constant.interval.unwrap();
        let mass = moments(p.value, p.std, (from, to)).log_mass - expected.log_mass;
        assert!((mass.exp() - 0.95).abs() < 0.01, "{}", mass.exp());
        let unknown = &cut.model.unknowns[0];
        assert_eq!(cut.draws.len(), 64);
        for draw in &cut.draws {
            let theta = cut.theta[0] + draw[0];
            let exact = unknown.guess + unknown.scale * theta;
            assert!(exact >= bounds.0 && exact <= bounds.1, "{exact} {bounds:?}");
        }
    }
}

/// What is stated of a constant is combined with the data by their precisions, whatever the variance
/// of rough guesses; a uniform prior adds nothing but its bounds.
#[test]
fn priors_are_those_that_are_stated() {
    let flat = fitted("prior = \"uniform\", min = 0, max = 4", &settings());
    let data = &flat.constants()[0];
    let stated = Settings {
        parameter_variance: 7.0,
        ..settings()
    };
    let both = fitted("value = \"1.9 ± 0.02\"", &stated);
    let both = &both.constants()[0];
    let (a, b) = (data.std.powi(-2), 0.02_f64.powi(-2));
    assert!(
        (both.std - (a + b).powf(-0.5)).abs() < 1e-4 * both.std,
        "{both:?} {data:?}"
    );
    let mean = (a * data.value + b * 1.9) / (a + b);
    assert!(
        (both.value - mean).abs() < 1e-3 * both.std,
        "{} {mean}",
        both.value
    );
    let share = both.prior_share.unwrap();
    assert!((share - b / (a + b)).abs() < 1e-3, "{share}");
    // of the variance of a flat density between 0 and 4
    let expected = data.std.powi(2) / (16.0 / 12.0);
    assert!((data.prior_share.unwrap() / expected - 1.0).abs() < 1e-3);
}

/// A constant that is fixed is a number: the same bits as with the number in the equation; freed, it is
/// learned. The folder knows.
#[test]
fn fixed_and_freed() {
    let fixed = fitted("guess = 1.5, scale = 1", &settings());
    let text = fixed.model.text.replace("p*u - q", "p*u - 0.1");
    let text = text.replace("q = { value = 0.1, fixed = true }\n", "");
    let plain = Model::from_text("plain", &text).unwrap();
    let plain = fit(&plain, &[record()], &settings(), &mut Silent).unwrap();
    assert_eq!(fixed.theta, plain.theta);
    let other = Settings {
        fix: [("p".to_string(), 2.0)].into(),
        free: vec!["q".into()],
        ..settings()
    };
    let other = fitted("guess = 1.5, scale = 1", &other);
    let q = &other.constants()[0];
    assert_eq!(q.name, "q");
    assert!((q.value - 0.1).abs() < 3.0 * q.std, "{q:?}");
    let again = Fit::from_files(&other.to_files().unwrap(), "memory").unwrap();
    assert_eq!(again.theta, other.theta);
    assert_eq!(again.model.fixed[0].value, 2.0);
    let wrong = Settings {
        fix: [("p".to_string(), 2.0)].into(),
        ..settings()
    };
    let model = model("guess = 1, max = 1.5");
    let error = fit(&model, &[record()], &wrong, &mut Silent).unwrap_err();
    assert!(
        error.to_string().contains("above its max of 1.5"),
        "{error}"
    );
}

/// The recursions keep bounds on their way: with √(1.8 − p) in the equations, one step over the bound
/// would be lost.
#[test]
fn recursions_keep_bounds() {
    let text = model("guess = 1.5, scale = 1, max = 1.8").text;
    let text = text.replace("p*u - q", "p*u - q + 0*sqrt(1.8 - p)");
    let model = Model::from_text("linear", &text).unwrap();
    for solver in ["joint", "alternating", "batch"] {
        let learned = fit(&model, &[record()], &defaults(solver), &mut Silent).unwrap();
        let p = &learned.constants()[0];
        assert!(p.value <= 1.8 && p.value > 1.7, "{solver}: {p:?}");
        assert!(p.interval.unwrap().1 <= 1.8);
    }
}

/// What the check before a fit says of the constants of some equations, driven by two waves.
fn felt(states: &str, unknowns: &str, more: &str) -> Vec<String> {
    let text = format!(
        "[time]\nstep = 0.1\nmethod = \"rk4\"\n[inputs]\nu = {{}}\n{states}\n[unknowns]\n{unknowns}\n\
         [measurements]\ny = \"x\"\n{more}"
    );
    let model = Model::from_text("check", &text).unwrap();
    let wave = |k: usize| (0.21 * k as f64).sin() + 0.5 * (0.053 * k as f64).cos();
    let record = Record {
        name: "waves".into(),
        time: (0..400).map(|k| 0.1 * k as f64).collect(),
        inputs: (0..400).map(wave).collect(),
        outputs: (0..400).map(|k| 1.0 + wave(k + 7)).collect(),
        truth: None,
        d_u: 1,
        d_y: 1,
        d_x: model.states.len(),
        later: false,
    };
    let check = latens::fit::learn::check(&model, &[record]).unwrap();
    check.invariances.iter().map(|i| i.words()).collect()
}

fn state(name: &str, derivative: &str) -> String {
    format!("[states.{name}]\nderivative = \"{derivative}\"\n")
}

/// Symmetries that can be read off the equations are named; what is felt, however weakly, is not.
#[test]
fn constants_that_nothing_feels_are_named() {
    let guesses = |names: &[&str]| -> String {
        let guessed = names.iter().zip([0.7, 1.3, 0.4, 2.1, 0.9]);
        guessed
            .map(|(n, g)| format!("{n} = {{ guess = {g} }}\n"))
            .collect()
    };
    let alone = |f: &str, names: &[&str]| felt(&state("x", f), &guesses(names), "");
    assert_eq!(
        alone("u - a*b*x", &["a", "b"]),
        ["a and b act only as a product"]
    );
    assert_eq!(
        alone("u - (a + b)*x", &["a", "b"]),
        ["a and b act only as a sum"]
    );
    assert_eq!(
        alone("(a*u - b*x)/c", &["a", "b", "c"]),
        [
            "a, b and c can all be multiplied by one factor, and nothing measured changes: only their ratios are determined"
        ]
    );
    assert_eq!(
        alone("u - a*x + 0*b", &["a", "b"]),
        ["nothing that is measured depends on b: these records say nothing of it"]
    );
    // two at once
    assert_eq!(
        alone("a*b*u - (c + d)*x", &["a", "b", "c", "d"]),
        ["a and b act only as a product", "c and d act only as a sum"]
    );
    // the scale of a hidden state is free
    let hidden = state("x", "-a*x + b*z") + &state("z", "c*u - d*z");
    assert_eq!(
        felt(&hidden, &guesses(&["a", "b", "c", "d"]), ""),
        [
            "one factor can multiply b and divide c, state z (to the power -1) with them, and nothing measured changes"
        ]
    );
    // a network can make up for a factor
    let network = "[networks.f]\nlayers = [\"4 tanh\"]\n";
    let scaled = felt(
        &state("x", "(a*u - f(x))/b"),
        &guesses(&["a", "b"]),
        network,
    );
    assert_eq!(
        scaled,
        [
            "a and b can both be multiplied by one factor, what network f puts out with them, and nothing measured changes: only their ratios are determined"
        ]
    );
    for weak in [
        "u - a*b*x - 1e-4*b*u",
        "u - a*x + 1e-6*b*u",
        "u - (a + b)*x + 1e-4*b^2",
        "a*u - b*x",
    ] {
        assert_eq!(alone(weak, &["a", "b"]), [""; 0], "{weak}");
    }
    assert_eq!(
        felt(&state("x", "(u - f(x))/b"), &guesses(&["b"]), network),
        [""; 0]
    );
}

/// What enters the blood tells a volume only where the dose is known: a start that the file knows decides it, in
/// the fit and in predictions, and a part of a record that begins later knows nothing of it.
#[test]
fn a_known_start_determines_what_a_record_alone_does_not() {
    let text = r#"
[time]
step = 0.5
method = "rk4"
[states]
gut = { derivative = "-0.9*gut", start = 100, KNOWN }
blood = { derivative = "0.9*gut/V - ke*blood", start = 0 }
[unknowns]
ke = { guess = 0.3, positive = true }
V = { guess = 40, scale = 30, positive = true }
[measurements]
blood = "blood"
[truth]
ke = 0.2
V = 25
[simulation]
steps = 60
"#;
    let read = |known: &str| {
        let text = text.replace(", KNOWN", known);
        Model::from_text("dose", &text).unwrap()
    };
    let (open, known) = (read(""), read(", start_deviation = 0"));
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.01))],
        seed: 1,
        ..Simulation::default()
    };
    let record = simulate(&known, &simulation).unwrap();
    let volume = |model: &Model| {
        let fit = latens::fit(model, std::slice::from_ref(&record)).unwrap();
        let constant = &fit.facts.unknowns[1];
        (constant.value, constant.std, fit)
    };
    let (_, open_deviation, _) = volume(&open);
    assert!(open_deviation > 5.0, "{open_deviation}");
    let (value, deviation, fit) = volume(&known);
    assert!(
        deviation < 0.5 && (value - 25.0).abs() < 4.0 * deviation,
        "{value} ± {deviation}"
    );
    let gut = fit.tracks[0].smoothed.row(0)[0];
    assert!((gut - 100.0).abs() < 0.01, "{gut}");
    assert!(record.slice(5..20).later && !record.slice(0..5).later);
}

/// An interval that reaches much farther to one side is said in words, and one that does not is not.
#[test]
fn a_skewed_interval_is_told() {
    let text = "[time]\nstep = 0.1\n[states]\nx = { derivative = \"-k*x\", start = 1 }\n[measurements]\nx = \"x\"\n\
                [unknowns]\nk = { guess = 1, scale = 1, positive = true }\n[truth]\nk = 1\n[simulation]\nsteps = 40\n";
    let model = Model::from_text("decay", text).unwrap();
    let record = simulate(&model, &Simulation::default()).unwrap();
    let fit = latens::fit(&model, &[record]).unwrap();
    let known = fit.constants()[0].clone();
    assert_eq!(known.skewed(), None);
    let skewed = Constant {
        value: 21.0,
        std: 15.0,
        interval: Some((5.3, 82.1)),
        ..known.clone()
    };
    assert_eq!(skewed.skewed().as_deref(), Some("95 % within 5 to 82"));
    let bounded = Constant {
        bound: Some(BoundName::Min),
        ..skewed
    };
    assert_eq!(bounded.skewed(), None);
}
