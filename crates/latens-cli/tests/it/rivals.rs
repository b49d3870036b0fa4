//! `latens fit --solver` with the methods of others: an ordinary run, or states and scores and a word
//! on why it is none.

use crate::program::Place;
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    place.succeeds("simulate harmonic-oscillator --steps 200 -o record.csv");
    place
}

#[test]
fn rivals_that_learn_the_models_networks_leave_a_run() {
    let place = place();
    for solver in ["node", "spinode", "rm"] {
        let line = format!(
            "fit harmonic-oscillator record.csv --solver {solver} --passes 3 --json -o {solver}"
        );
        // three iterations take rm nowhere, and it says so
        let shown = if solver == "rm" {
            place.distrusts(&line)
        } else {
            place.succeeds(&line)
        };
        let shown: Value = serde_json::from_str(&shown.out).unwrap();
        assert_eq!(shown["solver"], solver);
        assert!(shown["records"][0]["nrmse"]["truth_v"].is_f64(), "{shown}");
        let facts: Value =
            serde_json::from_str(&place.read(&format!("{solver}/fit.json"))).unwrap();
        assert_eq!(facts["passes"].as_array().unwrap().len(), 3);
        let said = place.succeeds(&format!(
            "predict {solver} record.csv --json -o out.csv --force"
        ));
        let said: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(said["solver"], solver);
        let refused = place.fails(
            1,
            &format!("fit harmonic-oscillator record.csv --resume {solver}"),
        );
        assert!(refused.contains("cannot go on"), "{refused}");
    }
}

#[test]
fn rivals_with_something_else_leave_states_and_scores() {
    let place = place();
    for solver in ["node-lstm", "pr-ssm"] {
        let line =
            format!("fit harmonic-oscillator record.csv --solver {solver} --passes 2 -o other");
        let shown = place.succeeds(&format!("{line} --force")).out;
        assert!(shown.contains("no fit that predict"), "{shown}");
        let scores: Value = serde_json::from_str(&place.read("other/scores.json")).unwrap();
        assert_eq!(scores["solver"], solver);
        assert!(scores["records"][0]["nrmse"]["truth_v"].is_f64());
        let states = place.read("other/states.csv");
        assert!(
            states.starts_with("t,z,truth_z,truth_v,z.free_run,v.free_run"),
            "{states}"
        );
        assert_eq!(states.lines().count(), 202);
        assert!(place.fails(1, &line).contains("--force"));
        assert!(
            place
                .fails(1, "predict other record.csv")
                .contains("holds no fit")
        );
    }
    let said = place.fails(
        1,
        "fit harmonic-oscillator record.csv --solver rm --starts 2",
    );
    assert!(said.contains("--seed"), "{said}");
    let line = "fit harmonic-oscillator record.csv --solver pr-ssm --test record.csv -o new";
    assert!(place.fails(1, line).contains("--validate"));
    // a run is not mixed with what is none
    place.succeeds("fit harmonic-oscillator record.csv --solver node --passes 2");
    let line = "fit harmonic-oscillator record.csv --solver pr-ssm --passes 2 --force";
    assert!(place.fails(1, line).contains("holds a fit already"));
}
