//! Comparisons of models and profiles of constants, against closed forms.

use std::f64::consts::TAU;

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use crate::fixture::{defaults, fit};
use latens::model::small::cholesky;
use latens::{
    CompareOptions, Fit, Model, Open, Record, Settings, Silent, Strength, compare, profile,
};

const SAMPLES: usize = 150;

/// x' = p u − q with x measured: linear in everything, so that all integrals are known.
fn model(derivative: &str, unknowns: &str) -> Model {
    let text = format!(
        "[time]\nstep = 0.1\n[inputs]\nu = {{}}\nw = {{}}\n[states.x]\nderivative = \"{derivative}\"\n\
         [unknowns]\n{unknowns}\n[measurements]\ny = \"x\"\n"
    );
    Model::from_text("linear", &text).unwrap()
}

fn right() -> Model {
    model(
        "p*u - q",
        "p = { guess = 1.5, scale = 1 }\nq = { guess = 0, scale = 1 }",
    )
}

fn driven(k: usize) -> f64 {
    (0.3 * k as f64).cos() + 0.3
}

/// With p = 2, q = 0.3 and white noise of 0.05.
fn record(seed: u64) -> Record {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut x = 0.0;
    let mut outputs = vec![];
    for k in 0..SAMPLES {
        let z: f64 = StandardNormal.sample(&mut rng);
        outputs.push(x + 0.05 * z);
        x += 0.1 * (2.0 * driven(k) - 0.3);
    }
    Record {
        name: "waves".into(),
        time: (0..SAMPLES).map(|k| 0.1 * k as f64).collect(),
        inputs: (0..SAMPLES).flat_map(|k| [driven(k), 0.0]).collect(),
        outputs,
        truth: None,
        d_u: 2,
        d_y: 1,
        d_x: 1,
        later: false,
    }
}

fn fitted(model: &Model, seed: u64, name: &str) -> Fit {
    let settings = Settings {
        ..defaults("batch")
    };
    let mut fit = fit(model, &[record(seed)], &settings, &mut Silent).unwrap();
    fit.name = name.into();
    fit
}

/// ∫ of u and of 1 up to each sample, as Euler's steps have them.
fn regressors() -> [Vec<f64>; 2] {
    let (mut of_u, mut of_time) = (vec![0.0], vec![0.0]);
    for k in 1..SAMPLES {
        of_u.push(of_u[k - 1] + 0.1 * driven(k - 1));
        of_time.push(of_time[k - 1] + 0.1);
    }
    [of_u, of_time]
}

/// The terms of a normal density with a dense covariance.
struct Normal {
    /// ½ rᵀ C⁻¹ r.
    square: f64,
    /// ½ ln det C.
    volume: f64,
}

fn dense(mut covariance: Vec<f64>, residuals: &[f64]) -> Normal {
    let n = residuals.len();
    cholesky(&mut covariance, n).unwrap();
    let mut z = vec![0.0; n];
    let mut log = 0.0;
    for i in 0..n {
        let sum: f64 = (0..i).map(|j| covariance[i * n + j] * z[j]).sum();
        z[i] = (residuals[i] - sum) / covariance[i * n + i];
        log += covariance[i * n + i].ln();
    }
    Normal {
        square: 0.5 * z.iter().map(|v| v * v).sum::<f64>(),
        volume: log,
    }
}

/// A part v g gᵀ of a covariance.
struct Part<'a> {
    variance: f64,
    factor: &'a [f64],
}

/// R I + Σ vᵢ gᵢ gᵢᵀ, and what the process noise of a fit adds up to.
fn covariance(fit: &Fit, noise: f64, parts: &[Part]) -> Vec<f64> {
    let process = fit.facts.noise.process[0];
    let n = SAMPLES;
    let mut all = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            let shared = parts.iter();
            let shared: f64 = shared
                .map(|part| part.variance * part.factor[i] * part.factor[j])
                .sum();
            let walked = process * i.min(j) as f64;
            all[i * n + j] = shared + walked + if i == j { noise } else { 0.0 };
        }
    }
    all
}

/// The first state's prior and P_θ0 of a fit.
fn priors(fit: &Fit) -> (f64, Vec<f64>) {
    let prior = fit.facts.evidence.as_ref().unwrap().prior.clone();
    (fit.facts.noise.start[0], prior)
}

/// ln p(y) of a comparison is that of the normal distribution that a linear model is, at the noise where that is
/// highest; so is ln p(y | θ̂), and with it both criteria.
#[test]
fn the_evidence_is_that_of_a_dense_matrix_at_the_likeliest_noise() {
    let (first, second) = (fitted(&right(), 1, "one"), fitted(&right(), 1, "two"));
    let comparison = compare(&[&first, &second], CompareOptions::default(), &mut Silent).unwrap();
    let model = &comparison.models[0];
    let ones = vec![1.0; SAMPLES];
    let [of_u, of_time] = regressors();
    let (start, prior) = priors(&first);
    let measured = record(1).outputs;
    // the start's mean is the first reading
    let residuals = |p: f64, q: f64| -> Vec<f64> {
        (0..SAMPLES)
            .map(|k| measured[k] - measured[0] - p * of_u[k] + q * of_time[k])
            .collect()
    };
    let log = |noise: f64| {
        let parts = [(start, &ones), (prior[0], &of_u), (prior[1], &of_time)];
        let parts = parts.map(|(variance, factor)| Part { variance, factor });
        let Normal { square, volume } =
            dense(covariance(&first, noise, &parts), &residuals(1.5, 0.0));
        -square - volume - 0.5 * SAMPLES as f64 * TAU.ln()
    };
    let noise = model.noise["y"].powi(2);
    let evidence = model.log_evidence.unwrap();
    assert!(
        (evidence - log(noise)).abs() < 0.05,
        "{evidence} {}",
        log(noise)
    );
    for factor in [0.9, 1.1] {
        assert!(log(factor * noise) < log(noise), "{factor}");
    }
    let (p, q) = (1.5 + first.theta[0], first.theta[1]);
    let part = Part {
        variance: start,
        factor: &ones,
    };
    let Normal { square, volume } = dense(covariance(&first, noise, &[part]), &residuals(p, q));
    let likelihood = -square - volume - 0.5 * SAMPLES as f64 * TAU.ln();
    let off = model.log_likelihood.unwrap() - likelihood;
    assert!(off.abs() < 0.05, "{off}");
    let counted = model.determined.unwrap() + 1.0;
    assert!((model.aic.unwrap() - 2.0 * (counted - model.log_likelihood.unwrap())).abs() < 1e-9);
    assert!(model.bic > model.aic);
}

/// The same model twice is equal, whatever it is called; one that lacks a term is worse, and blocks that
/// are held back agree.
#[test]
fn equal_models_are_equal_and_a_missing_term_is_not() {
    let lacking = model("p*u", "p = { guess = 1.5, scale = 1 }");
    let renamed = model(
        "gain*u - drain",
        "gain = { guess = 1.5, scale = 1 }\ndrain = { guess = 0, scale = 1 }",
    );
    for seed in 1..4 {
        let fits = [
            fitted(&lacking, seed, "lacking"),
            fitted(&right(), seed, "right"),
            fitted(&renamed, seed, "renamed"),
        ];
        let [lacking, right, renamed] = &fits;
        let all = compare(&[lacking, right], CompareOptions { folds: 3 }, &mut Silent).unwrap();
        assert_eq!(all.models[0].run, "right", "{}", all.verdict.sentence);
        assert_eq!(all.verdict.strength, Strength::Decisive);
        let held = all
            .models
            .iter()
            .map(|m| m.held_out.as_ref().unwrap().nrmse);
        let held: Vec<f64> = held.map(Option::unwrap).collect();
        assert!(held[0] < held[1], "{held:?}");
        let same = compare(&[right, renamed], CompareOptions::default(), &mut Silent).unwrap();
        assert_eq!(same.verdict.strength, Strength::None);
        assert!(same.verdict.sentence.contains("cannot be told apart"));
    }
}

/// What no comparison is fair to is refused, with the reason.
#[test]
fn what_is_not_comparable_is_refused() {
    let first = fitted(&right(), 1, "one");
    let refused = |other: &Fit| {
        let said = compare(&[&first, other], CompareOptions::default(), &mut Silent);
        said.unwrap_err().to_string()
    };
    assert!(refused(&fitted(&right(), 2, "two")).contains("other readings"));
    let text = right()
        .text
        .replace("y = \"x\"", "y = { value = \"x\", unit = \"mm\" }");
    let in_millimetres = Model::from_text("linear", &text).unwrap();
    assert!(refused(&fitted(&in_millimetres, 1, "two")).contains("no unit and in [mm]"));
    let mut stopped = first.clone();
    stopped.facts.stopped = true;
    assert!(refused(&stopped).contains("stopped"));
    let alone = compare(&[&first], CompareOptions::default(), &mut Silent);
    assert!(alone.unwrap_err().to_string().contains("two fits"));
}

/// Of a linear model the profile's interval is the linear one; of a constant that enters by its logarithm,
/// it is where the objective, minimised over the start by hand, has risen by ½ · 1.96².
#[test]
fn the_profile_ends_where_the_objective_has_risen() {
    let linear = fitted(&right(), 3, "linear");
    let profiled = profile(&linear, &[], &mut Silent).unwrap();
    for constant in &profiled.constants {
        let width = constant.linear.1 - constant.linear.0;
        let ends = [
            constant.from.unwrap() - constant.linear.0,
            constant.to.unwrap() - constant.linear.1,
        ];
        assert!(ends.iter().all(|e| e.abs() < 0.01 * width), "{constant:?}");
        assert!(!constant.prior_below && !constant.prior_above);
    }
    // so weak an input that p is known within a factor of two only
    let weak = model(
        "0.02*p*u - 0.3 + 1.96*u",
        "p = { guess = 1, scale = 1, positive = true }",
    );
    let fit = fitted(&weak, 3, "weak");
    let profiled = profile(&fit, &["p".into()], &mut Silent).unwrap();
    let constant = &profiled.constants[0];
    let [of_u, of_time] = regressors();
    let (start, prior) = priors(&fit);
    let measured = record(3).outputs;
    let ones = vec![1.0; SAMPLES];
    let part = Part {
        variance: start,
        factor: &ones,
    };
    let whole = covariance(&fit, fit.facts.noise.measurement[0], &[part]);
    let objective = |p: f64| {
        let residuals: Vec<f64> = (0..SAMPLES)
            .map(|k| measured[k] - measured[0] - (0.02 * p + 1.96) * of_u[k] + 0.3 * of_time[k])
            .collect();
        dense(whole.clone(), &residuals).square + 0.5 * p.ln().powi(2) / prior[0]
    };
    let least = objective(constant.value);
    assert!(least <= objective(1.02 * constant.value) && least <= objective(0.98 * constant.value));
    let width = constant.to.unwrap() - constant.from.unwrap();
    assert!(
        width > 0.15 * constant.value,
        "an interval that is not all but linear: {constant:?}"
    );
    for end in [constant.from.unwrap(), constant.to.unwrap()] {
        let slope =
            (objective(end + 0.01 * width) - objective(end - 0.01 * width)) / (0.02 * width);
        let off = (objective(end) - least - 1.920_729) / slope;
        assert!(off.abs() < 0.02 * width, "{off} of {width}");
    }
}

/// A bound that comes first leaves an interval open, and one that only the prior closes is said to be so.
#[test]
fn an_open_interval_is_called_open() {
    let text = "p = { guess = 1.99, scale = 1, max = 2 }\nq = { guess = 0.3, scale = 1 }\nr = { guess = 0, scale = 1 }";
    let bounded = fitted(&model("p*u - q + r*w", text), 4, "bounded");
    let profiled = profile(&bounded, &[], &mut Silent).unwrap();
    let [p, _, r] = &profiled.constants[..] else {
        panic!("three constants")
    };
    assert!(p.open_above == Some(Open::Bound) && p.to.is_none(), "{p:?}");
    assert!(p.from.is_some() && p.points.iter().all(|point| point.value <= 2.0));
    // w is zero throughout: nothing is said of r but by its prior
    assert!(r.prior_below && r.prior_above, "{r:?}");
    let unknown = profile(&bounded, &["s".into()], &mut Silent);
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .contains("no unknown constant `s`")
    );
}

/// What each draw says of each reading adds up to ln p(y | θ), which a dense matrix knows.
#[test]
fn pointwise_densities_add_up_to_the_likelihood() {
    let fit = fitted(&right(), 5, "one");
    let track = &fit.tracks[0];
    let draws = fit.parameter_draws(200);
    assert_eq!(draws.len(), 200);
    let likelihoods = fit.log_likelihood(track, &draws);
    let scale = fit.facts.scales.scale[0];
    let ones = vec![1.0; SAMPLES];
    let [of_u, of_time] = regressors();
    let measured = record(5).outputs;
    let part = Part {
        variance: scale * scale,
        factor: &ones,
    };
    let whole = covariance(&fit, fit.facts.noise.measurement[0], &[part]);
    for k in [0, 7, 199] {
        let (p, q) = (1.5 + fit.theta[0] + draws[k][0], fit.theta[1] + draws[k][1]);
        let residuals: Vec<f64> = (0..SAMPLES)
            .map(|i| measured[i] - measured[0] - p * of_u[i] + q * of_time[i])
            .collect();
        let Normal { square, volume } = dense(whole.clone(), &residuals);
        let expected = -square - volume - 0.5 * SAMPLES as f64 * TAU.ln();
        let sum: f64 = likelihoods[k].iter().sum();
        assert!((sum - expected).abs() < 0.05, "{sum} {expected}");
    }
    // the draws have the covariance of the fit
    let n = draws.len() as f64;
    for i in 0..2 {
        let square: f64 = draws.iter().map(|d| d[i] * d[i]).sum::<f64>() / n;
        let ratio = square / fit.covariance.variance(i);
        assert!((0.7..1.4).contains(&ratio), "{ratio}");
    }
}
