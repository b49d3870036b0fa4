//! What an export refuses, and what it leaves on a disk; that it is right, the clients of `latens-lab` show.

use std::fs;

use latens::simulate::{Simulation, simulate};
use latens::{Fit, Job, Model, Role, Silent, Source};
use latens_export::{Target, default_stem, export, write};

/// A fit of a model to a record of it.
fn fitted(text: &str, steps: usize) -> Fit {
    let model = Model::from_text("model.toml", text).unwrap();
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let mut job = Job::new(model).unwrap();
    job.settings.passes = 1;
    job.settings.simplify = false;
    let source = Source::of_record(record, &job.model).unwrap();
    job.add(Role::Train, source);
    job.run(&mut Silent).unwrap().fit
}

/// A decay with a network of so many units, in so many sub-steps.
fn decay(units: usize, substeps: usize) -> String {
    format!(
        "[time]\nstep = 0.1\nsubsteps = {substeps}\n[states.x]\nderivative = \"-x + net(x)\"\nstart = 1\n\
         [networks.net]\nlayers = [\"{units} tanh\"]\n[measurements]\nx = \"x\"\n[truth]\nx = \"-1.2*x\"\n"
    )
}

#[test]
fn what_a_target_cannot_say_is_refused_with_the_reason() {
    let fit = fitted(&decay(3, 9_000), 20);
    let reason = export(&fit, Target::Onnx, "x").unwrap_err().to_string();
    assert!(reason.contains("no loop over sub-steps"), "{reason}");
    assert!(export(&fit, Target::C, "x").is_ok(), "C has loops");
    let fit = fitted(&decay(1_700, 1), 20);
    let reason = export(&fit, Target::Toml, "x").unwrap_err().to_string();
    assert!(reason.contains("at most 5000 names"), "{reason}");
    for stem in ["", "a\"b", "a\nb", "a\\b"] {
        assert!(export(&fit, Target::C, stem).is_err(), "{stem:?}");
    }
}

#[test]
fn names_of_targets_and_endings() {
    for (name, target, ending) in Target::NAMES {
        assert_eq!(Target::of_name(name).unwrap(), target);
        assert_eq!(target.ending(), ending);
    }
    assert_eq!(Target::of_path("a/b.py".as_ref()).unwrap(), Target::Python);
    assert!(Target::of_name("fortran").is_err());
    assert!(Target::of_path("a/b".as_ref()).is_err());
    assert_eq!(default_stem(&latens::example_fit()), "harmonic_oscillator");
}

/// Nothing is replaced unasked: where the header exists, the C file is not written either.
#[test]
fn files_that_exist_stay() {
    let (fit, place) = (latens::example_fit(), tempfile::tempdir().unwrap());
    let path = place.path().join("model.c");
    let header = place.path().join("model.h");
    fs::write(&header, "mine").unwrap();
    let refused = write(&fit, Target::C, &path, false)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("model.h exists"), "{refused}");
    assert!(!path.exists());
    let written = write(&fit, Target::C, &path, true).unwrap();
    assert_eq!(written.files, [path, header.clone()]);
    assert!(
        fs::read_to_string(header)
            .unwrap()
            .contains("harmonic_oscillator_step")
    );
}

/// The same fit makes the same bytes, packed ones too.
#[test]
fn an_export_repeats() {
    let fit = latens::example_fit();
    for (name, target, _) in Target::NAMES {
        let [one, two] = [(); 2].map(|()| export(&fit, target, "model").unwrap().files);
        for (a, b) in one.iter().zip(&two) {
            // a compiler may write what it likes into a library
            let is_unit = matches!(target, Target::Fmu(_));
            assert!(is_unit || a.bytes == b.bytes, "{name}");
        }
    }
}

/// Everything that a network can be cut down to is exported.
#[test]
fn networks_that_are_not_there_are_zero() {
    let mut fit = latens::example_fit();
    fit.model = fit
        .model
        .simplified(latens::model::network::Structure::Absent);
    fit.theta.clear();
    for (_, target, _) in Target::NAMES {
        export(&fit, target, "model").unwrap();
    }
}
