//! What an export refuses, and what it leaves on a disk; that it is right, the clients of `latens-lab` show.

use std::fs;

use latens::{Fit, Model};
use latens_export::{Target, default_stem, export, write};

/// A decay with a network of so many units, in so many sub-steps, as if it were learned.
fn decay(units: usize, substeps: usize) -> Fit {
    let text = format!(
        "[time]\nstep = 0.1\nsubsteps = {substeps}\n[states.x]\nderivative = \"-x + net(x)\"\nstart = 1\n\
         [networks.net]\nlayers = [\"{units} tanh\"]\n[measurements]\nx = \"x\"\n[truth]\nx = \"-1.2*x\"\n"
    );
    let model = Model::from_text("decay.toml", &text).unwrap();
    let mut fit = latens::example_fit();
    fit.theta = vec![0.1; model.system.parameters()];
    fit.tracks.clear();
    fit.facts.scales.center = vec![0.0];
    fit.facts.scales.scale = vec![1.0];
    fit.model = model;
    fit
}

#[test]
fn what_a_target_cannot_say_is_refused_with_the_reason() {
    let fit = decay(3, 9_000);
    let reason = export(&fit, Target::Onnx, "x").err().unwrap().to_string();
    assert!(reason.contains("no loop over sub-steps"), "{reason}");
    assert!(
        export(&fit, Target::Python, "x").is_ok(),
        "Python has loops"
    );
    let fit = decay(1_700, 1);
    let reason = export(&fit, Target::Toml, "x").err().unwrap().to_string();
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
        let [first, second] = [(); 2].map(|()| export(&fit, target, "model").unwrap().files);
        for (a, b) in first.iter().zip(&second) {
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
