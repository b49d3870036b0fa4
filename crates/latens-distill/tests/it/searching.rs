//! The search alone, on functions whose formula is known.

use latens::fit::known::KnownOutput;
use latens::numerics::linalg::matrix::Matrix;
use latens_distill::candidates::candidates;
use latens_distill::formula::{Compiled, Formula, Term};
use latens_distill::library::Library;
use latens_distill::refine::{Refined, refine};
use latens_distill::samples::Target;

/// Points that fill boxes, the k-th argument between two bounds.
fn points(count: usize, bounds: &[(f64, f64)]) -> Vec<Vec<f64>> {
    let golden = |k: usize, j: usize| (0.5 + k as f64 * [0.7549, 0.5698, 0.3141][j]).fract();
    let point = |k: usize| {
        let ranges = bounds.iter().enumerate();
        ranges
            .map(|(j, (a, b))| a + (b - a) * golden(k, j))
            .collect()
    };
    (0..count).map(point).collect()
}

/// A function that is known to a deviation, apart from an error common to all points.
fn target(points: Vec<Vec<f64>>, std: f64, common: f64, f: impl Fn(&[f64]) -> f64) -> Target {
    let m = points.len();
    let covariance = Matrix::from_fn(m, m, |i, j| {
        common * common + if i == j { std * std } else { 0.0 }
    });
    let known = KnownOutput {
        values: points.iter().map(|p| f(p) + common).collect(),
        scaled: points.clone(),
        points,
        covariance,
    };
    Target::of(0, 0, known).unwrap()
}

fn found(target: &Target, units: &[&str]) -> Vec<Refined> {
    let units: Vec<Option<String>> = units.iter().map(|u| Some(u.to_string())).collect();
    candidates(target, &Library::new(target, &units, &[]), &[])
}

/// The least formula that is right comes first, with its constants, though an error that all points share
/// is a hundred times that of each: the whole covariance counts, not its diagonal.
#[test]
fn the_right_sum_is_first() {
    let f = |x: &[f64]| 0.04 * x[0] + 0.006 * x[0] * x[0].abs().sqrt();
    let target = target(points(60, &[(-9.0, 12.0)]), 1e-5, 1e-3, f);
    let best = found(&target, &["K"]).remove(0);
    let mut terms: Vec<&str> = best.formula.terms.iter().map(|t| t.text.as_str()).collect();
    terms.sort_unstable();
    assert_eq!(
        terms[..2],
        ["#1", "#1*sqrt(abs(#1))"],
        "{}",
        best.formula.text
    );
    assert!(terms.len() == 2 || terms.contains(&"1"));
    for (term, factor) in best.formula.terms.iter().zip(&best.formula.constants) {
        match term.text.as_str() {
            "#1" => assert!((factor - 0.04).abs() < 1e-4),
            "#1*sqrt(abs(#1))" => assert!((factor - 0.006).abs() < 1e-4),
            _ => {}
        }
    }
}

/// A quotient is found from values alone: (a u + b sin x)/(1 + K sin² x).
#[test]
fn a_denominator_is_found() {
    let f = |x: &[f64]| (0.5 * x[1] + 6.0 * x[0].sin()) / (1.0 + 0.3 * x[0].sin().powi(2));
    let target = target(points(80, &[(-0.9, 0.9), (-3.0, 3.0)]), 1e-6, 0.0, f);
    let best = found(&target, &["rad", "N"]).remove(0);
    assert_eq!(best.formula.text, "($1*#2 + $2*sin(#1))/(1 + $3*sin(#1)^2)");
    for (found, expected) in best.formula.constants.iter().zip([0.5, 6.0, 0.3]) {
        assert!(
            (found - expected).abs() < 1e-3,
            "{:?}",
            best.formula.constants
        );
    }
}

/// Inner constants are found from far away.
#[test]
fn inner_constants_are_refined() {
    let f = |x: &[f64]| 0.07 * (-(x[0] + 65.0) / 20.0).exp();
    let target = target(points(50, &[(-75.0, 40.0)]), 1e-6, 0.0, f);
    let term = Term {
        text: "exp(#1/$1)".into(),
        inner: vec![-40.0],
    };
    let start = Formula::sum(vec![term], &[0.01], None);
    let refined = refine(&target, &start).unwrap();
    assert!(
        (refined.formula.constants[1] + 20.0).abs() < 1e-2,
        "{:?}",
        refined.formula
    );
    assert_eq!(
        refined.formula.terms[0].inner[0],
        refined.formula.constants[1]
    );
}

/// What no library has grows from nothing: a rate that its substrate inhibits, x/(K + x + x²/L), times another
/// argument; and the same search finds the same.
#[test]
fn a_shape_that_no_library_has_evolves() {
    let f = |x: &[f64]| 2.0 * x[1] * x[0] / (0.5 + x[0] + x[0] * x[0] / 3.0);
    let target = target(points(120, &[(0.05, 9.0), (0.5, 2.0)]), 1e-4, 0.0, f);
    let best = found(&target, &["mM", "g"]);
    let within = 2.0 * target.count() as f64;
    assert!(best[0].misfit < within, "{:?}", best[0]);
    let point = [20.0, 1.0];
    let compiled = Compiled::new(&[&best[0].formula.text], 2, best[0].formula.constants.len());
    let far = compiled
        .unwrap()
        .values(&[point.to_vec()], &best[0].formula.constants)[0][0];
    assert!((far / f(&point) - 1.0).abs() < 0.05, "{far} {:?}", best[0]);
    assert_eq!(found(&target, &["mM", "g"])[0].formula, best[0].formula);
}
