//! `latens reproduce`: a small grid, killed and gone on with.

use std::fs;

use crate::program::Place;
use serde_json::Value;

const GRID: &str =
    "reproduce --systems harmonic-oscillator --methods node,pr-ssm --budget 0.001 -o out";

#[test]
fn a_grid_is_run_scored_and_resumed() {
    let place = Place::new();
    let shown = place.succeeds(&format!("{GRID} --seeds 2"));
    assert!(
        shown.err.contains("4 of 4: harmonic-oscillator, "),
        "{}",
        shown.err
    );
    assert!(shown.out.contains("| node | "), "{}", shown.out);
    let results =
        || -> Vec<Value> { serde_json::from_str(&place.read("out/results.json")).unwrap() };
    let first = results();
    assert_eq!(first.len(), 4);
    for (entry, (method, seed)) in
        first
            .iter()
            .zip([("node", 1), ("node", 2), ("pr-ssm", 1), ("pr-ssm", 2)])
    {
        let keys: Vec<&String> = entry.as_object().unwrap().keys().collect();
        let expected = [
            "heldout_mean",
            "method",
            "nrmse",
            "nrmse_hidden",
            "nrmse_mean",
            "seconds",
            "seed",
            "status",
            "system",
        ];
        assert_eq!(keys, expected);
        assert_eq!(
            (&entry["method"], &entry["seed"]),
            (&method.into(), &seed.into())
        );
        assert_eq!(
            (&entry["system"], &entry["status"]),
            (&"harmonic-oscillator".into(), &"ok".into())
        );
        let error = |name: &str| entry["nrmse"][name].as_f64().unwrap();
        let mean = entry["nrmse_mean"].as_f64().unwrap();
        assert!((mean - (error("z") + error("v")) / 2.0).abs() < 1e-12 * mean);
        assert_eq!(entry["nrmse_hidden"].as_f64().unwrap(), error("v"));
        assert!(entry["heldout_mean"].is_f64() && entry["seconds"].is_f64());
    }
    let csv = place.read("out/table.csv");
    assert!(
        csv.contains("\nharmonic-oscillator,node,4.65e-1,2,2,0,0,"),
        "{csv}"
    );
    assert!(
        place
            .read("out/table.md")
            .contains("### harmonic-oscillator")
    );
    for figure in [
        "trajectories_harmonic-oscillator.json",
        "held_out_harmonic-oscillator.json",
        "vector_field_harmonic-oscillator.json",
        "learning_curves.csv",
        "cost_per_step.csv",
        "trajectories_harmonic-oscillator.svg",
        "held_out_harmonic-oscillator.svg",
        "vector_field_harmonic-oscillator.svg",
        "learning_curves.svg",
        "cost_per_step.svg",
    ] {
        assert!(place.path("out/figures").join(figure).is_file(), "{figure}");
    }

    the_page_shows_it(&place.read("out/reproduce.html"), &first);

    // without --resume nothing is touched; with it, what is missing is run, the rest kept
    assert!(place.fails(1, GRID).contains("--resume"));
    let kept = place.path("out/cells/harmonic-oscillator--pr-ssm--2.json");
    let before = fs::read(&kept).unwrap();
    fs::remove_file(place.path("out/cells/harmonic-oscillator--node--1.json")).unwrap();
    let said = place.succeeds(&format!("{GRID} --seeds 2 --resume --json"));
    assert!(
        said.err.contains("3 of 4 cells are done already"),
        "{}",
        said.err
    );
    assert_eq!(fs::read(&kept).unwrap(), before);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(object["page"], "out/reproduce.html");
    assert_eq!(object["results"].as_array().unwrap().len(), 4);
    assert_eq!(object["stopped"], false);
    assert_eq!(results().len(), 4);
    let said = place.fails(1, &format!("{GRID} --resume").replace("0.001", "0.002"));
    assert!(said.contains("--budget 0.001"), "{said}");
}

/// Table with the better of two marked beside the paper's, statistics, figures of every state; and
/// nothing that a browser would have to fetch.
fn the_page_shows_it(page: &str, results: &[Value]) {
    let median = |method: &str| {
        let results = results.iter().filter(|r| r["method"] == method);
        results
            .map(|r| r["nrmse_mean"].as_f64().unwrap())
            .sum::<f64>()
            / 2.0
    };
    let order = ["node", "pr-ssm"].map(|m| (m, median(m)));
    let best = if order[0].1 < order[1].1 {
        "node"
    } else {
        "pr-ssm"
    };
    assert!(
        page.contains(&format!(
            "Least median error: <code>{best}</code> on harmonic-oscillator."
        )),
        "{page}"
    );
    let row = |method: &str| {
        let from = page
            .find(&format!("<th scope=\"row\">{method}</th>"))
            .unwrap();
        page[from..].split("</tr>").next().unwrap().to_string()
    };
    for (method, paper) in [("node", "4.7e-1"), ("pr-ssm", "1.2")] {
        let row = row(method);
        assert_eq!(
            row.starts_with(&format!(
                "<th scope=\"row\">{method}</th><td><b class=\"best\">"
            )),
            method == best,
            "{row}"
        );
        assert!(row.contains(paper), "{row}");
    }
    for said in [
        ">quartiles<",
        ">worst<",
        ">diverged<",
        ">to 1e-2<",
        "aria-label=\"z, measured: the others: z (m) over time (s), showing node, pr-ssm and truth\"",
        "aria-label=\"v, hidden, new start 1: the others",
        "aria-label=\"Direction of motion: node",
        "aria-label=\"Cost of a sample over the number of parameters",
    ] {
        assert!(page.contains(said), "{said}");
    }
    for fetched in ["src=", "url(http", "@import", "href=\"http"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    let place = Place::new();
    let said = place.fails(1, "reproduce --methods nod");
    assert!(said.contains("did you mean node?"), "{said}");
    let said = place.fails(1, "reproduce --systems yeast");
    assert!(said.contains("yeast-glycolysis"), "{said}");
    place.write("mine.txt", "mine");
    let said = place.fails(1, "reproduce --systems harmonic-oscillator -o .");
    assert!(said.contains("holds something else"), "{said}");
    assert_eq!(place.names(), ["mine.txt"]);
}
