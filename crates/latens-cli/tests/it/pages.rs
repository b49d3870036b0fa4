//! The page that a fit makes from memory is the one that its folder makes; checksums are of bytes.

use std::fs;

use crate::program::Place;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A place with two short records of one system and a model of a small network.
fn with_records() -> Place {
    let place = Place::new();
    place.succeeds("init harmonic-oscillator");
    let model = place.read("harmonic-oscillator.toml");
    let small = model.replace("[\"20 tanh\", \"20 tanh\"]", "[\"5 tanh\"]");
    place.write("model.toml", &small);
    place.succeeds("simulate model.toml --noise 1% --steps 600 -o record.csv");
    place.succeeds("simulate model.toml --noise 1% --steps 600 --held-out 1 -o other.csv");
    place
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_page_of_a_fit_is_that_of_its_folder() {
    let place = with_records();
    for (name, options) in [
        ("plain", ""),
        ("ensemble", "--ensemble 2"),
        ("validated", "--validate other.csv"),
        ("tail", "--validate-tail 0.2"),
        ("tested", "--test other.csv"),
        ("recursion", "--solver alternating"),
    ] {
        place.succeeds(&format!(
            "fit model.toml record.csv --passes 2 -q {options} -o {name}"
        ));
        place.succeeds(&format!("report {name} -o {name}.html"));
        let (first, again) = (
            place.read(&format!("{name}/report.html")),
            place.read(&format!("{name}.html")),
        );
        let differing = first.lines().zip(again.lines()).find(|(a, b)| a != b);
        assert!(first == again, "{name}: {differing:?}");
    }
}

#[test]
fn checksums_are_of_the_bytes_that_were_read() {
    let place = with_records();
    // bytes that a table does not keep
    let record = format!("# a remark\n{}\n\n", place.read("record.csv"));
    place.write("record.csv", &record);
    place.succeeds("fit model.toml record.csv --test other.csv --passes 1 -q");
    let facts: Value = serde_json::from_str(&place.read("run/fit.json")).unwrap();
    for (k, name) in ["record.csv", "other.csv"].into_iter().enumerate() {
        let bytes = fs::read(place.path(name)).unwrap();
        assert_eq!(facts["records"][k]["sha256"], sha256(&bytes), "{name}");
    }
    let model = fs::read(place.path("model.toml")).unwrap();
    assert_eq!(facts["model_sha256"], sha256(&model));
    assert_eq!(fs::read(place.path("run/model.toml")).unwrap(), model);
}
