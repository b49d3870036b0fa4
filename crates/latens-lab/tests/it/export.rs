//! Exported fits in the hands of their clients: what each makes of them is what Latens makes of them.
//!
//! The compiler and Latens itself are always there. Node, numpy, jax, CasADi, FMPy and onnxruntime need not
//! be: `scripts/test` installs them, and asks for all with `LATENS_CLIENTS=all`.

use std::env;

use latens::{Fit, Record};
use latens_lab::export::{CLIENTS, Client, Found, Prepared, learn, prepare, run};

/// What an exported model may be off, relative to the largest value.
const CLOSE: f64 = 1e-12;

struct Case {
    fit: Fit,
    folder: tempfile::TempDir,
    prepared: Prepared,
}

fn case(system: &str) -> Case {
    let (fit, record): (Fit, Record) = learn(system, 150, 300).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepare(&fit, &record, folder.path(), 300).unwrap();
    Case {
        fit,
        folder,
        prepared,
    }
}

/// Runs clients by name; those that are not there are told, or fail where all are asked for.
fn agree(case: &Case, names: &[&str]) {
    let needed = env::var("LATENS_CLIENTS").is_ok_and(|c| c == "all");
    let chosen = |client: &&Client| names.contains(&client.name);
    for client in CLIENTS.iter().filter(chosen) {
        let (name, system) = (client.name, &case.fit.name);
        let deviation = run(client, &case.fit, case.folder.path(), &case.prepared).unwrap();
        match deviation.found {
            Found::Missing if needed => panic!("{name} is not on this machine"),
            Found::Missing => println!("skipped: {name} is not on this machine"),
            Found::Refused(reason) => panic!("{name}, {system}: {reason}"),
            Found::Deviates {
                derivative,
                step,
                output,
                run,
                filter,
            } => {
                let all = [derivative, step, output, run, filter].into_iter();
                let most = all.flatten().fold(0.0, f64::max);
                assert!(derivative.is_some() && output.is_some(), "{name}, {system}");
                assert!(most < CLOSE, "{name}, {system}: {most:e}");
                let has_filter = name == "cc";
                assert_eq!(filter.is_some(), has_filter, "{name}, {system}");
            }
        }
    }
}

/// C with all warnings as errors, and the model file: Euler, semi-implicit Euler, and every word of the
/// language with texts that try to leave their place.
#[test]
fn c_and_model_files_are_the_fit() {
    for system in ["harmonic-oscillator", "emps", "every-word"] {
        agree(&case(system), &["cc", "latens"]);
    }
}

/// Implicit steps are solved again in C and in JavaScript, to the same digits; the others say why not.
#[test]
fn implicit_steps_are_solved_by_those_who_have_them() {
    for system in ["stiff", "stiff, by halves"] {
        agree(&case(system), &["cc", "latens", "node"]);
    }
    let (fit, _) = learn("stiff", 50, 60).unwrap();
    let python = latens_export::export(&fit, latens_export::Target::Python, "tank").unwrap();
    let text = String::from_utf8(python.files[0].bytes.clone()).unwrap();
    assert!(text.contains("def f(") && text.contains("raise NotImplementedError"));
    let refused = latens_export::export(&fit, latens_export::Target::Onnx, "tank").unwrap_err();
    assert!(
        refused.to_string().contains("export to c, fmu or js"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs clients that scripts/test installs"]
fn clients_agree_on_a_neuron() {
    let all: Vec<&str> = CLIENTS.iter().map(|c| c.name).collect();
    agree(&case("hodgkin-huxley"), &all);
}

/// Without jax, whose compiler takes half a minute for it.
#[test]
#[ignore = "needs clients that scripts/test installs"]
fn clients_agree_on_every_word_of_the_language() {
    let all: Vec<&str> = CLIENTS.iter().map(|c| c.name).collect();
    let most: Vec<&str> = all.into_iter().filter(|name| *name != "jax").collect();
    agree(&case("every-word"), &most);
}
