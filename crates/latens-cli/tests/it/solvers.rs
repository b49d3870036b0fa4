//! What a user can tell the default solver, and what it tells.

use crate::program::Place;
use serde_json::Value;

/// A place with two short records of one system.
fn with_records() -> Place {
    let place = Place::new();
    place.succeeds("simulate harmonic-oscillator --steps 300 -o record.csv");
    place.succeeds("simulate harmonic-oscillator --steps 300 --held-out 1 -o other.csv");
    place
}

/// Fits the first record and gives the object that was printed.
fn fit(place: &Place, options: &str) -> Value {
    let shown = place.succeeds(&format!(
        "fit harmonic-oscillator record.csv -q --json --force {options}"
    ));
    serde_json::from_str(&shown.out).unwrap()
}

fn settings(place: &Place) -> Value {
    let facts: Value = serde_json::from_str(&place.read("run/fit.json")).unwrap();
    facts["settings"].clone()
}

/// Role, file and number of samples of each record.
fn records(object: &Value) -> Vec<(&str, &str, u64)> {
    let records = object["records"].as_array().unwrap().iter();
    let rows = records.map(|r| {
        let [role, file] = ["role", "file"].map(|key| r[key].as_str().unwrap());
        (role, file, r["scored"].as_u64().unwrap())
    });
    rows.collect()
}

#[test]
fn batch_is_the_default_and_says_how_it_went() {
    let place = with_records();
    let shown = place.succeeds("fit harmonic-oscillator record.csv -q").out;
    for part in [
        "batch, ",
        "on the measurements a free run errs by ",
        "the data determine ",
        "v, which no sensor saw, is well determined",
        "noise (standard deviation over range): z at most 0.010 %",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("start with seed"), "{shown}");
    let help = place.succeeds("fit --help").out;
    // the terminal's width may break the line
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("[default: batch]"), "{help}");
}

#[test]
fn validation_records_are_scored_and_not_learned_from() {
    let place = with_records();
    let weights = || std::fs::read(place.path("run/weights.safetensors")).unwrap();
    // with one stage there is nothing to choose: the weights are those of the record alone
    fit(&place, "--passes 1");
    let alone = weights();
    let object = fit(&place, "--passes 1 --validate other.csv");
    assert!(weights() == alone);
    assert_eq!(
        records(&object),
        [("train", "record.csv", 301), ("validate", "other.csv", 301)]
    );
    assert!(object["records"][1]["nrmse"]["z"].is_f64());
    // as a shell writes `--test new-*.csv`: none of them is learned from
    std::fs::copy(place.path("other.csv"), place.path("third.csv")).unwrap();
    let object = fit(&place, "--passes 1 --test other.csv third.csv");
    assert!(weights() == alone);
    assert_eq!(
        records(&object)[1..]
            .iter()
            .map(|r| r.0)
            .collect::<Vec<_>>(),
        ["test"; 2]
    );
    fit(&place, "--passes 1 other.csv");
    assert!(weights() != alone);
    let shown = place.succeeds("fit harmonic-oscillator record.csv --validate other.csv --force");
    for part in [
        "other.csv, 301 samples, validation",
        "on the validation records, never learned from, a free run",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
}

#[test]
fn the_tail_of_a_record_validates() {
    let place = with_records();
    let object = fit(&place, "other.csv --validate-tail 0.2");
    assert_eq!(
        records(&object),
        [
            ("train", "record.csv", 241),
            ("train", "other.csv", 241),
            ("validate", "record.csv", 60),
            ("validate", "other.csv", 60)
        ]
    );
    let states = place.read("run/states_3.csv");
    assert!(states.lines().nth(1).unwrap().starts_with("0.241,"));
    for wrong in ["0", "0.5", "-0.1", "nan"] {
        let line = format!("fit harmonic-oscillator record.csv --validate-tail={wrong}");
        place.fails(2, &line);
    }
    let line = "fit harmonic-oscillator record.csv --validate other.csv --validate-tail 0.2";
    assert!(place.fails(2, line).contains("cannot be used with"));
}

#[test]
fn the_best_of_several_starts_is_kept() {
    let place = with_records();
    let object = fit(&place, "--starts 2 --seed 5");
    let attempts = object["attempts"].as_array().unwrap();
    let seeds: Vec<_> = attempts
        .iter()
        .map(|a| a["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds, [5, 6]);
    let kept: Vec<_> = attempts.iter().filter(|a| a["kept"] == true).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["seed"], object["seed"]);
    let error = |a: &Value| a["error"].as_f64().unwrap();
    assert!(attempts.iter().all(|a| error(kept[0]) <= error(a)));
    let shown = place
        .succeeds("fit harmonic-oscillator record.csv --starts 2 --force")
        .out;
    assert!(shown.contains("start with seed 2: free run "), "{shown}");
    place.fails(2, "fit harmonic-oscillator record.csv --starts 0");
}

#[test]
fn what_is_given_is_not_estimated() {
    let place = with_records();
    let estimated = |options: &str| {
        fit(&place, &format!("--passes 2 {options}"));
        let s = settings(&place);
        ["estimate_noise", "estimate_prior"].map(|k| s[k].as_bool().unwrap())
    };
    assert_eq!(estimated(""), [true, true]);
    assert_eq!(estimated("--parameter-variance 0.5"), [true, false]);
    fit(&place, "--passes 2 --measurement-variance z=1e-6");
    let facts: Value = serde_json::from_str(&place.read("run/fit.json")).unwrap();
    assert_eq!(facts["noise"]["measurement"][0], 1e-6);
    assert_eq!(
        estimated("--parameter-variance 0.5 --estimate-prior"),
        [true, true]
    );
    assert_eq!(estimated("--estimate-noise=false"), [false, true]);
    // all process noise given: nothing is left to tighten
    let stages = |options: &str| {
        fit(&place, options);
        let facts: Value = serde_json::from_str(&place.read("run/fit.json")).unwrap();
        facts["passes"].as_array().unwrap().len()
    };
    assert_eq!(stages("--process-variance 1e-8"), 1);
    assert!(stages("--process-variance v=1e-8") > 1);
    let line = "fit harmonic-oscillator record.csv --printed-settings --force";
    assert!(place.fails(1, line).contains("--solver alternating"));
    place.succeeds(&format!("{line} --solver as-printed --passes 1 -q"));
}
