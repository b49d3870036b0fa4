//! From a fit to formulas that are fitted again.

use latens::fit::Constant;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Error, Job, Model, Role, Silent, Source};
use latens_distill::coincide::Said;
use latens_distill::formula::Formula;
use latens_distill::refit::Reached;
use latens_distill::rewrite::{Replacement, rewrite};
use latens_distill::verdict::{Fitted, judge, without_needless};
use latens_distill::{Distilled, Expression, Options, Ranked, Unwatched, Watch, distill};

const SPRING: &str = "# a spring\n[states.z]\nderivative = \"v\"\nstart = 1\n[states.v]\n\
    derivative = \"push(z, v) - c*v\" # unknown\nstart = 0\n\n[networks.push]\nlayers = [\"6 tanh\"]\nskip = true\n\n\
    [unknowns]\nc = { guess = 0.2 }\n\n[measurements]\nz = \"z\"\n[truth]\nv = \"-4*z - 0.3*v\"\nc = 0.3\n\
    [time]\nstep = 0.02\n[simulation]\nsteps = 300\n";

/// A linear spring is found, and its model, whose network is gone, reads; the same call gives the same bits, and one that
/// is stopped says so.
#[test]
fn a_spring_becomes_its_formula() {
    let text = SPRING
        .replace(" - c*v", "")
        .replace("c = { guess = 0.2 }", "")
        .replace("[unknowns]", "")
        .replace("c = 0.3\n", "");
    let model = Model::from_text("spring", &text).unwrap();
    let record = simulate(&model, &Simulation::default()).unwrap();
    let mut job = Job::new(model).unwrap();
    job.add(Role::Train, Source::of_record(record, &job.model).unwrap());
    let fit = job.run(&mut Silent).unwrap().fit;
    let options = Options {
        candidates: 3,
        proposed: vec!["stiffness*z + damping*v".into()],
    };
    let found = distill(&fit, &options, &Unwatched).unwrap();
    let best = &found.formulas[0];
    assert!(found.equally_good >= 1, "{:?}", found.verdict);
    for (name, expected) in [("stiffness", -4.0), ("damping", -0.3)] {
        let proposed = found.formulas.iter().find(|f| f.proposed).unwrap();
        let constant = proposed.constants.iter().find(|c| c.name == name).unwrap();
        assert!((constant.value - expected).abs() < 1e-3, "{constant:?}");
    }
    assert!(best.free_run.unwrap() < found.network_free_run.unwrap());
    let again = Model::from_text("again", &best.model).unwrap();
    assert!(again.system.networks().is_empty() && best.model.starts_with("# a spring\n"));
    let twice = distill(&fit, &options, &Unwatched).unwrap();
    assert_eq!(twice.formulas[0].evidence, best.evidence);

    struct Stops;
    impl Watch for Stops {
        fn stops(&self) -> bool {
            true
        }
    }
    assert!(matches!(
        distill(&fit, &options, &Stops),
        Err(Error::Stopped)
    ));
    let wrong = Options {
        proposed: vec!["a*z +".into()],
        ..options
    };
    let message = distill(&fit, &wrong, &Unwatched).unwrap_err().to_string();
    assert!(
        message.contains("has a mistake") && message.contains("z, v"),
        "{message}"
    );
}

/// Three units round off a step, and their posterior does not know it: the step is found all the same, because the records
/// ask for it.
#[test]
fn records_ask_for_what_a_network_cannot_say() {
    let text = "[inputs]\nu = \"\"\n[states.x]\nderivative = \"u - drag(x)\"\nstart = 0.2\n\n\
        [networks.drag]\nlayers = [\"3 tanh\"]\nskip = true\n\n[measurements]\nx = \"x\"\n\
        [truth]\nx = \"u - 0.3*x - tanh(x/0.1)\"\n[time]\nstep = 0.02\nmethod = \"rk4\"\n\
        [simulation]\nsteps = 600\ninputs = { u = \"2*sin(1.7*t) + 1.5*sin(4.1*t)\" }\n";
    let model = Model::from_text("slide", text).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.01))],
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let mut job = Job::new(model).unwrap();
    job.add(Role::Train, Source::of_record(record, &job.model).unwrap());
    let fit = job.run(&mut Silent).unwrap().fit;
    let options = Options {
        candidates: 4,
        ..Options::default()
    };
    let found = distill(&fit, &options, &Unwatched).unwrap();
    let best = &found.formulas[0];
    let forms: Vec<&str> = found
        .formulas
        .iter()
        .map(|f| f.expressions[0].text.as_str())
        .collect();
    assert_eq!(forms[0], "drag_1*x + drag_2*tanh(x/drag_3)", "{forms:?}");
    for (name, expected) in [("drag_1", 0.3), ("drag_2", 1.0), ("drag_3", 0.1)] {
        let constant = best.constants.iter().find(|c| c.name == name).unwrap();
        let off = (constant.value - expected).abs() / constant.std;
        assert!(off < 3.0, "{constant:?}");
    }
}

/// A call inside of a call, comments and the user's own constants stay what they were.
#[test]
fn a_model_file_keeps_its_text() {
    let text = SPRING.replace("push(z, v)", "push(z, push(2*v, z))");
    let model = Model::from_text("spring", &text).unwrap();
    let formula = Formula {
        text: "$1*#1 + $2*#2^2".into(),
        constants: vec![-4.0, 1.0 / 3.0],
        names: vec![],
        terms: vec![],
    };
    let replacement = Replacement {
        network: "push",
        output: "output",
        formula: &formula,
        names: vec!["a".into(), "b".into()],
        scales: &[4.0, 0.5],
        units: vec![Some("1/s²".into()), None],
    };
    let new = rewrite(&model, &[replacement]).unwrap();
    let expected = "derivative = \"(a*z + b*((a*(2*v) + b*z^2))^2) - c*v\" # unknown";
    assert!(new.contains(expected), "{new}");
    assert!(new.contains("[unknowns]\na = { guess = -4.0, scale = 4.0, unit = \"1/s²\" }\nb = { guess = 0.333333, scale = 0.5 }\nc = "), "{new}");
    assert!(!new.contains("networks"), "{new}");
}

fn ranked(evidence: f64, free_run: f64, validation: Option<f64>) -> Ranked {
    Ranked {
        rank: 0,
        expressions: vec![],
        size: 3,
        constants: vec![],
        evidence: Some(evidence),
        free_run: Some(free_run),
        validation,
        validation_parts: vec![],
        proposed: false,
        repeated: vec![],
        model: String::new(),
    }
}

fn judged(formulas: Vec<Ranked>, validation: Option<f64>) -> Distilled {
    let mut distilled = Distilled {
        network_evidence: None,
        network_free_run: None,
        network_validation: None,
        network_size: 100,
        front: vec![],
        formulas,
        curves: vec![],
        equally_good: 0,
        verdict: vec![],
        stopped: false,
    };
    let network = Reached {
        evidence: Some(1000.0),
        free_run: Some(1e-2),
        validation,
        validation_parts: vec![],
        constants: vec![],
    };
    judge(&mut distilled, &network);
    distilled
}

/// A formula of so many constants that says some values give or take a deviation where the records went.
fn fitted(ranked: Ranked, constants: usize, values: &[f64]) -> Fitted {
    let constant = Constant {
        name: "c".into(),
        unit: String::new(),
        value: 1.0,
        std: 0.1,
        interval: None,
        bound: None,
        prior_share: None,
        undetermined: None,
        population: None,
    };
    let said = Said {
        values: values.to_vec(),
        std: vec![1.0; values.len()],
    };
    Fitted {
        ranked: Ranked {
            constants: vec![constant; constants],
            ..ranked
        },
        said: vec![said],
    }
}

/// A formula whose constants the records do not ask for is no rival of one with fewer; one that they ask for is, and so is
/// one with as many.
#[test]
fn needless_constants_make_no_rival() {
    let formulas = vec![
        fitted(ranked(1000.0, 1e-2, None), 1, &[1.0, 2.0]),
        fitted(ranked(1002.0, 1e-2, None), 2, &[1.5, 2.0]),
        fitted(ranked(1005.0, 1e-2, None), 2, &[1.0, 2.8]),
        fitted(ranked(995.0, 1e-2, None), 1, &[0.3, 1.5]),
    ];
    let mut kept: Vec<f64> = without_needless(formulas)
        .iter()
        .filter_map(|f| f.evidence)
        .collect();
    kept.sort_by(f64::total_cmp);
    assert_eq!(kept, [995.0, 1000.0, 1005.0]);
    // without noise, one that follows the records far more closely is no needless one
    let formulas = vec![
        fitted(ranked(1000.0, 1e-3, None), 1, &[1.0, 2.0]),
        fitted(ranked(1000.0, 1e-9, None), 2, &[1.5, 2.0]),
    ];
    assert_eq!(without_needless(formulas).len(), 2);
}

/// Of formulas that coincide where the records went the shortest stands for all, and the answer says so; a difference
/// of half a deviation is one.
#[test]
fn formulas_that_coincide_are_one() {
    let longer = Ranked {
        size: 9,
        expressions: vec![Expression {
            network: "f".into(),
            output: "f".into(),
            constants: vec![],
            form: String::new(),
            text: String::new(),
            with_values: "2*z*sigmoid((z + 90)/3)".into(),
        }],
        ..ranked(1001.0, 1e-2, None)
    };
    let formulas = vec![
        fitted(longer, 3, &[1.01, 2.02]),
        fitted(ranked(1000.0, 1e-2, None), 1, &[1.0, 2.0]),
        fitted(ranked(1000.5, 1e-2, None), 1, &[1.5, 1.6]),
    ];
    let found = judged(without_needless(formulas), None);
    let kept: Vec<f64> = found.formulas.iter().filter_map(|f| f.evidence).collect();
    assert_eq!(kept, [1000.5, 1000.0]);
    assert_eq!(found.formulas[1].repeated, ["2*z*sigmoid((z + 90)/3)"]);
    let said = found.verdict.last().unwrap();
    assert!(
        said.contains("formula 2 says the same as 2*z*sigmoid"),
        "{said}"
    );
}

/// What the data do not tell apart is said to be equally good, and what no formula explains is not explained.
#[test]
fn the_verdict_says_no_more_than_the_data() {
    let equal = judged(
        vec![
            ranked(1001.0, 1e-2, None),
            ranked(1004.0, 1.01e-2, None),
            ranked(980.0, 1.1e-2, None),
        ],
        None,
    );
    assert_eq!(
        (equal.equally_good, equal.formulas[0].evidence),
        (2, Some(1004.0))
    );
    assert!(
        equal.verdict[0].contains("cannot decide"),
        "{:?}",
        equal.verdict
    );
    // followed far more closely: records without noise
    let exact = judged(
        vec![ranked(1004.0, 1e-3, None), ranked(1003.0, 1e-9, None)],
        None,
    );
    assert_eq!(
        (exact.equally_good, exact.formulas[0].free_run),
        (1, Some(1e-9))
    );
    let none = judged(
        vec![ranked(300.0, 0.2, None), ranked(290.0, 0.2, None)],
        None,
    );
    assert_eq!(none.equally_good, 0);
    assert!(
        none.verdict[0].contains("none of these"),
        "{:?}",
        none.verdict
    );
    assert!(judged(vec![], None).verdict[0].contains("none of the formulas"));
    // records that were never learned from come before evidence
    let validated = judged(
        vec![
            ranked(1100.0, 1e-2, Some(0.05)),
            ranked(1005.0, 1e-2, Some(0.01)),
        ],
        Some(0.01),
    );
    assert_eq!(
        (validated.equally_good, validated.formulas[0].validation),
        (1, Some(0.01))
    );
}

/// Validation errors that differ by less than they do from part to part of a record decide nothing, and ln p does.
#[test]
fn validation_decides_where_it_can() {
    let part = |validation: f64, evidence: f64, parts: [f64; 4]| Ranked {
        validation_parts: parts.to_vec(),
        ..ranked(evidence, 1e-2, Some(validation))
    };
    let formulas = || {
        vec![
            part(0.010, 1000.0, [0.8e-4, 1.2e-4, 0.9e-4, 1.1e-4]),
            part(0.011, 1030.0, [1.8e-4, 0.6e-4, 1.6e-4, 0.8e-4]),
            part(0.012, 1060.0, [1.2e-4, 1.7e-4, 1.3e-4, 1.6e-4]),
        ]
    };
    let found = judged(formulas(), Some(0.01));
    let order: Vec<f64> = found.formulas.iter().filter_map(|f| f.validation).collect();
    // the third is worse in every part
    assert_eq!(order, [0.011, 0.010, 0.012]);
    assert_eq!(found.equally_good, 1);
}
