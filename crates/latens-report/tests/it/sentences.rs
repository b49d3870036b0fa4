//! Two sentences of one output never contradict each other.

use latens::fit::diagnosis::Test;
use latens::fit::{OtherValue, OtherValues, ResidualTest};
use latens::look::Finding;
use latens::{Fit, Role, Warning};
use latens_report::{summary, verdict, words};

/// All that is said of a fit in words.
fn said(fit: &Fit) -> String {
    let mut said = words::summary(&fit.model, &fit.facts);
    let verdict = verdict::of_run(fit);
    said.extend(verdict.alarms);
    said.extend(verdict.sentences);
    said.join("\n")
}

/// What no sensor saw is well determined only where nothing else in the fit denies on what that rests.
#[test]
fn a_hidden_state_is_well_determined_only_where_nothing_denies_it() {
    let sound = latens::example_fit();
    assert!(
        said(&sound).matches("well determined").count() == 2,
        "{}",
        said(&sound)
    );
    let spoiled = |spoil: &dyn Fn(&mut Fit)| {
        let mut fit = sound.clone();
        spoil(&mut fit);
        said(&fit)
    };
    let other = OtherValues {
        evidence: -0.5,
        constants: vec![OtherValue {
            name: "k".into(),
            unit: String::new(),
            value: 3.0,
            kept: 1.0,
        }],
    };
    let steps = Finding::CoarseSteps {
        file: "record".into(),
        channel: "z".into(),
        method: "euler".into(),
        of_noise: 3.0,
        of_range: 0.1,
        substeps: 4,
    };
    let coloured = ResidualTest {
        file: "record".into(),
        channel: "z".into(),
        test: Test::Whiteness,
        signal: None,
        delay: None,
        p: 1e-6,
        p_adjusted: 1e-5,
        explained: Some(0.92),
        effective: 40.0,
    };
    let lost = Warning::FreeRunLost {
        file: "record".into(),
        role: Role::Train,
        channels: vec!["z".into()],
    };
    for (spoil, instead) in [
        (
            &(|fit: &mut Fit| fit.facts.other_values = vec![other.clone()]) as &dyn Fn(&mut Fit),
            "beside which others explain the records nearly as well",
        ),
        (
            &|fit| fit.facts.findings = vec![steps.clone()],
            "that the misfit contradicts",
        ),
        (
            &|fit| fit.facts.residuals = vec![coloured.clone()],
            "residuals are not noise alone",
        ),
        (
            &|fit| fit.facts.disturbed = Some(8.0),
            "disturbances that are random",
        ),
        (
            &|fit| fit.facts.warnings = vec![lost.clone()],
            "a fit that is not to be used",
        ),
    ] {
        let said = spoiled(spoil);
        assert!(!said.contains("well determined"), "{said}");
        assert!(said.contains(instead), "{said}");
    }
}

/// A constant whose interval reaches much farther to one side is listed with it.
#[test]
fn a_skewed_interval_stands_beside_its_constant() {
    let text = "[time]\nstep = 0.1\n[states]\nx = { derivative = \"-k*x\", start = 1 }\n[measurements]\nx = \"x\"\n\
                [unknowns]\nk = { guess = 1, scale = 1, positive = true }\n[truth]\nk = 1\n[simulation]\nsteps = 40\n";
    let model = latens::Model::from_text("decay", text).unwrap();
    let record = latens::simulate::simulate(&model, &latens::simulate::Simulation::default());
    let mut fit = latens::fit(&model, &[record.unwrap()]).unwrap();
    assert!(!summary::table(&fit.model, &fit.facts).contains("95 %"));
    let constant = &mut fit.facts.unknowns[0];
    (constant.value, constant.std, constant.interval) = (21.0, 15.0, Some((5.3, 82.1)));
    let table = summary::table(&fit.model, &fit.facts);
    assert!(
        table.contains("k  21  ± 15    95 % within 5 to 82"),
        "{table}"
    );
}
