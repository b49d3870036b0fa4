//! A run as a page: what is in it, what it needs, and what it says of runs that are not well.

use std::fs;

use crate::program::{Fixture, Place};

/// A short fit of the oscillator, with its record.
fn fitted() -> Place {
    static FITTED: Fixture = Fixture::new();
    FITTED.place(|place| {
        place.succeeds("simulate harmonic-oscillator --noise 1% --steps 1200 -o record.csv");
        place.succeeds("fit harmonic-oscillator record.csv --passes 2 -o run -q");
    })
}

#[test]
fn a_fit_leaves_a_page_that_needs_nothing_else() {
    let place = fitted();
    let page = place.read("run/report.html");
    for part in [
        "verdict",
        "states",
        "equation",
        "play",
        "innovations",
        "convergence",
        "identifiability",
        "scores",
        "repeat",
    ] {
        assert!(page.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    // the name of a language is no address
    let asked = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!asked.contains("http:") && !asked.contains("https:"));
    assert!(page.contains("latens fit run/model.toml record.csv --settings run -o again"));
    // the record is in the run, and the page can be made again without its file
    fs::remove_file(place.path("record.csv")).unwrap();
    fs::remove_file(place.path("run/report.html")).unwrap();
    place.succeeds("report run");
    assert_eq!(place.read("run/report.html"), page);
    // a page is part of a run, which can be replaced with it
    place.succeeds("simulate harmonic-oscillator --steps 600 -o other.csv");
    place.succeeds("fit harmonic-oscillator other.csv --passes 1 -o run --force --no-report -q");
    assert!(!place.path("run/report.html").exists());
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let place = fitted();
    fs::remove_file(place.path("run/states.csv")).unwrap();
    let shown = place.succeeds("report run -o page.html --json").out;
    let answer: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(answer["runs"][0]["verdict"].as_array().unwrap().len(), 3);
    let page = place.read("page.html");
    assert!(
        page.contains("The states over time cannot be shown"),
        "says what it has not"
    );
    // of several runs the best is marked, and each is judged
    place.succeeds("fit harmonic-oscillator record.csv --passes 1 --seed 3 -o second -q");
    place.succeeds("report second run -o both.html");
    let page = place.read("both.html");
    assert!(page.contains("Verdict on second") && page.contains("Verdict on run"));
    assert!(page.contains("class=\"best\""));
    let refused = place.fails(1, "report second run -o both.html");
    assert!(refused.contains("--force"), "{refused}");
    assert!(
        place
            .fails(1, "report nothing")
            .contains("no such folder of a fit")
    );
}

/// Figures are what their names say: an SVG that a parser takes, a PNG, a PDF.
#[test]
fn figures_for_papers() {
    let place = fitted();
    for (figure, size) in [
        ("states", 2),
        ("equation", 3),
        ("field", 1),
        ("convergence", 3),
        ("innovations", 3),
    ] {
        place.succeeds(&format!("plot run --what {figure} -o {figure}.svg"));
        let svg = place.read(&format!("{figure}.svg"));
        assert!(svg.matches("class=\"frame\"").count() >= size, "{figure}");
        assert!(!svg.contains("var(") && !svg.contains("NaN"), "{figure}");
        for (ending, with) in [("png", b"\x89PNG"), ("pdf", b"%PDF")] {
            let name = format!("{figure}.{ending}");
            place.succeeds(&format!("plot run --what {figure} -o {name}"));
            let file = fs::read(place.path(&name)).unwrap();
            assert!(file.starts_with(with) && file.len() > 5000, "{name}");
        }
    }
    let refused = place.fails(1, "plot run --what field -o field.svg");
    assert!(refused.contains("--force"), "{refused}");
    let refused = place.fails(1, "plot run --what field -o field.gif");
    assert!(refused.contains(".svg, .pdf or .png"), "{refused}");
}
