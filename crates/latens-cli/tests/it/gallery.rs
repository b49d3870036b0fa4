//! The gallery: models to start from, and `latens lab gallery`.

use crate::program::Place;
use latens_lab::gallery::PROBLEMS;
use serde_json::Value;

const CELL: &str =
    "lab gallery --problems dc-motor --variants right --noise 1 --alone -o out --jobs 1";

#[test]
fn models_are_offered_by_field() {
    let place = Place::new();
    let shown = place.succeeds("init --list").out;
    for problem in PROBLEMS {
        assert!(shown.contains(&format!("\n{}\n", problem.field)), "{shown}");
        assert!(shown.contains(&format!("\n  {} ", problem.name)), "{shown}");
    }
    place.succeeds("init crane");
    assert!(place.read("crane.toml").contains("[states.phi] # rope"));
    place.succeeds("simulate dc-motor --held-out 2 -o motor.csv");
    let said = place.fails(1, "init crain");
    assert!(said.contains("did you mean crane?"), "{said}");
}

#[test]
fn a_cell_is_fitted_scored_and_kept() {
    let place = Place::new();
    let shown = place.succeeds(CELL);
    let said = "1 of 1: dc-motor, 1 %, right: ";
    assert!(shown.err.contains(said), "{}", shown.err);
    let results: Value = serde_json::from_str(&place.read("out/results.json")).unwrap();
    let cell = &results["cells"][0];
    assert!(cell["latens"]["errors"]["measured"].as_f64().unwrap() < 0.01);
    let constants = cell["latens"]["constants"].as_object().unwrap();
    assert_eq!(constants.len(), 5);
    let near = |c: &Value| c["z"].as_f64().unwrap().abs() < 6.0;
    assert!(constants.values().all(near), "{constants:?}");
    assert!(cell["least_squares"].is_null() && cell["ratio"].is_null());
    assert_eq!(results["summary"]["all"]["cells"], 1);
    // model and records are at hand to repeat it
    let records = "out/records/dc-motor-1%-1";
    place.succeeds(&format!(
        "check out/models/dc-motor-right.toml {records}/train.csv"
    ));
    let again = place.fails(1, CELL);
    assert!(again.contains("--resume"), "{again}");
    let again = place.succeeds(&format!("{CELL} --resume"));
    let said = "1 of 1 cells are done already";
    assert!(again.err.contains(said), "{}", again.err);
    let said = place.fails(1, "lab gallery --problems cran -o other");
    assert!(said.contains("did you mean crane?"), "{said}");
}
