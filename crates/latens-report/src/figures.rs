//! The figures of a run, or of several laid over each other.

use latens::fit::PassFacts;

use crate::colours::of_run;
use crate::field::Field;
use crate::innovations;
use crate::panels::{self, Panel};
use crate::plot::{self, Axis, Mark, Plot, Shape, labelled};
use crate::{constants, field, foreseen, learned, residuals, thin, words};
use latens::fit::Fit;

/// Samples of a line in a figure.
const SAMPLES: usize = 3000;

/// A figure of each pass.
type OfPass = fn(&PassFacts) -> f64;

/// What a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The states over time: estimate and one-step prediction on the left, free run on the right.
    States,
    /// The learned equation: each network along the records, and slices through a sample.
    Equation,
    /// The direction of motion over the plane of two states.
    Field,
    /// The terms of the cost over the stages.
    Convergence,
    /// The innovations.
    Innovations,
    /// The records that played no part, foreseen and measured.
    Tests,
    /// The unknown constants with their intervals and guesses.
    Constants,
}

/// A figure as an SVG file; of the innovations, the field and the tests, the first run's.
///
/// ```
/// use latens_report::figures::{What, draw};
///
/// let svg = draw(&[latens::example_fit()], What::States).unwrap();
/// assert!(svg.starts_with("<svg"));
/// ```
///
/// # Errors
/// Why the runs have no such figure.
pub fn draw(runs: &[Fit], figure: What) -> Result<String, String> {
    let first = runs.first().ok_or("there is no run to draw")?;
    let (plots, columns, size) = match figure {
        What::States => (states(runs), 2, [470.0, 230.0]),
        What::Equation => (learned::equations(runs), 3, [360.0, 260.0]),
        What::Constants => (constants::plots(runs), 2, [470.0, 230.0]),
        What::Field => (field(first).into_iter().collect(), 1, [520.0, 470.0]),
        What::Convergence => (convergence(runs), 3, [360.0, 260.0]),
        What::Innovations => {
            let track = first.trained().into_iter().next();
            let found = track.map_or(vec![], |t| innovations::innovations(first, t));
            let unit = &first.model.time_unit;
            let plots = found
                .iter()
                .flat_map(|i| residuals::innovation(i, unit))
                .collect();
            (plots, 3, [360.0, 240.0])
        }
        What::Tests => {
            let plots = first.tests.iter().flat_map(|t| foreseen::plots(first, t));
            (plots.collect(), 2, [470.0, 230.0])
        }
    };
    if plots.is_empty() {
        return Err(match figure {
            What::States => "the folder has no states.csv that can be read: repeat the fit",
            What::Equation => {
                "the model calls no network, or its folder has no states.csv that can be read"
            }
            What::Field => "a field is drawn of models with two states only",
            What::Convergence => "the fit has no stage",
            What::Innovations => "the filter leaves the finite numbers on this record",
            What::Constants => "the model has no unknown constants",
            What::Tests => "the fit has no test record: fit again with --test FILE",
        }
        .into());
    }
    Ok(plot::document(&plots, columns, size))
}

fn points(time: &[f64], rows: &[usize], values: &[f64]) -> Vec<[f64; 2]> {
    rows.iter().map(|&k| [time[k], values[k]]).collect()
}

/// The first record.
fn states(runs: &[Fit]) -> Vec<Plot> {
    let Some(unit) = runs.first().map(|r| &r.model.time_unit) else {
        return vec![];
    };
    let courses = panels::courses(runs);
    let Some(course) = courses.first() else {
        return vec![];
    };
    let mut plots = vec![];
    for panel in course.panels.iter().filter(|p| p.kind != "input") {
        for (side, shown) in [
            ("estimate and one step", ["estimate", "one_step"].as_slice()),
            ("free run", &["free_run"]),
        ] {
            plots.push(Plot {
                title: format!("{}, {}: {side}", panel.name, panel.kind),
                x: Axis {
                    label: labelled("time", unit),
                    ..Axis::default()
                },
                y: Axis {
                    label: labelled(&panel.name, &panel.unit),
                    range: reach(panel),
                    ..Axis::default()
                },
                marks: over_time(panel, course.time, shown, runs),
                note: String::new(),
            });
        }
    }
    plots
}

/// Both sides go as far as what is measured, true or estimated; a free run far off may leave them.
fn reach(panel: &Panel) -> Option<[f64; 2]> {
    let ends = |free: bool| {
        let signals = panel.signals.iter().filter(|s| s.what != "std");
        let signals = signals.filter(|s| (s.what == "free_run") == free);
        let values = signals.flat_map(|s| &s.values).filter(|v| v.is_finite());
        values.fold(None, |ends: Option<[f64; 2]>, &v| {
            let [low, high] = ends.unwrap_or([v, v]);
            Some([low.min(v), high.max(v)])
        })
    };
    let [mut low, mut high] = ends(false)?;
    let size = high - low;
    if let Some([least, greatest]) = ends(true) {
        (low, high) = (
            low.min(least.max(low - size)),
            high.max(greatest.min(high + size)),
        );
    }
    let margin = 0.06 * (high - low);
    (margin > 0.0).then_some([low - margin, high + margin])
}

fn over_time(panel: &Panel, time: &[f64], shown: &[&str], runs: &[Fit]) -> Vec<Mark> {
    let drawn = |kind: &str| ["data", "truth"].contains(&kind) || shown.contains(&kind);
    let signals = || panel.signals.iter().filter(|s| drawn(s.what));
    let rows = thin::rows(
        &signals().map(|s| s.values.as_slice()).collect::<Vec<_>>(),
        SAMPLES,
    );
    let mut marks = vec![];
    // the truth lies over what is compared with it
    let (over, under): (Vec<_>, Vec<_>) = signals().partition(|s| s.what == "truth");
    for signal in under.into_iter().chain(over) {
        let several = runs.len() > 1 && !["data", "truth"].contains(&signal.what);
        let class = if several {
            of_run(signal.run)
        } else {
            signal.what
        };
        let name = match signal.what {
            "data" => "measured".into(),
            kind => kind.replace('_', " "),
        };
        let label = if several {
            format!("{} {name}", runs[signal.run].name)
        } else {
            name
        };
        let std = (panel.signals.iter())
            .find(|s| s.what == "std" && s.run == signal.run)
            .filter(|_| signal.what == "estimate");
        if let Some(std) = std {
            let band = rows.iter().map(|&k| {
                let (value, half_width) = (
                    signal.values[k],
                    innovations::NORMAL_DEVIATIONS * std.values[k],
                );
                [time[k], value - half_width, value + half_width]
            });
            let label = if several { "" } else { "95 % band" };
            marks.push(Mark::new(class, label, Shape::Band(band.collect())));
        }
        let points = points(time, &rows, &signal.values);
        let shape = match signal.what {
            "data" => Shape::Dots(points),
            _ => Shape::Line(points),
        };
        marks.push(Mark::new(class, label, shape));
    }
    marks
}

/// Of a model of two states.
pub fn field(shown: &Fit) -> Option<Plot> {
    field::field(shown).map(motion)
}

/// Learned and true arrows over the plane of two states.
pub fn motion(field: Field) -> Plot {
    let size = [0, 1].map(|i| field.high[i] - field.low[i]);
    // the longest arrow spans a cell of the grid
    let cells = (field.arrows.len() as f64).sqrt();
    let longest = (field.arrows.iter())
        .flat_map(|a| [Some(a.learned), a.truth])
        .flatten()
        .map(|v| (v[0] / size[0]).hypot(v[1] / size[1]))
        .fold(0.0, f64::max);
    let arrow = |foot: [f64; 2], v: [f64; 2]| {
        let unit = 1.0 / (cells * longest);
        (foot, [v[0] * unit, v[1] * unit])
    };
    let learned = field.arrows.iter().map(|a| arrow(a.at, a.learned));
    let truth = field.arrows.iter();
    let truth: Vec<_> = truth.filter_map(|a| Some(arrow(a.at, a.truth?))).collect();
    let mut marks = vec![Mark::new(
        "data",
        "the record",
        Shape::Line(field.trajectory),
    )];
    if !truth.is_empty() {
        marks.push(Mark::new("truth", "true", Shape::Arrows(truth)));
    }
    marks.push(Mark::new(
        "estimate",
        "learned",
        Shape::Arrows(learned.collect()),
    ));
    let axis = |i: usize| Axis {
        label: labelled(&field.axes[i].0, &field.axes[i].1),
        range: Some([field.low[i], field.high[i]]),
        ..Axis::default()
    };
    Plot {
        title: "Direction of motion".into(),
        note: match field.inputs.as_str() {
            "" => "away from the record the learned arrows are guesses".into(),
            inputs => format!("at {inputs}; away from the record arrows are guesses"),
        },
        x: axis(0),
        y: axis(1),
        marks,
    }
}

/// The terms of the cost, the error of the free run and the damping, over passes.
pub fn convergence(runs: &[Fit]) -> Vec<Plot> {
    let Some(first) = runs.first().filter(|r| !r.facts.passes.is_empty()) else {
        return vec![];
    };
    let axis = || Axis {
        label: labelled(words::pass(&first.facts.solver), "number"),
        whole: true,
        ..Axis::default()
    };
    let log = |label: &str| Axis {
        label: label.into(),
        log: true,
        ..Axis::default()
    };
    let line = |shown: &Fit, loss: OfPass| -> Vec<[f64; 2]> {
        let passes = shown.facts.passes.iter();
        passes
            .map(|e| {
                [
                    e.pass as f64,
                    Some(loss(e)).filter(|v| *v > 0.0).unwrap_or(f64::NAN),
                ]
            })
            .collect()
    };
    let terms: [(&str, OfPass); 5] = [
        ("physics", |e| e.physics),
        ("data", |e| e.data),
        ("drift of θ", |e| e.drift),
        ("start", |e| e.start),
        ("prior of θ", |e| e.prior),
    ];
    let known = |points: &Vec<[f64; 2]>| points.iter().any(|p| p[1].is_finite());
    let mut plots = vec![];
    let several = runs.len() > 1;
    let mut marks = vec![];
    if several {
        for (k, run) in runs.iter().enumerate() {
            let total = |e: &PassFacts| e.physics + e.data + e.drift + e.start + e.prior;
            let points = line(run, total);
            let name = run.name.clone();
            marks.push(Mark::new(of_run(k), name, Shape::Line(points.clone())));
            marks.push(Mark::new(of_run(k), "", Shape::Dots(points)));
        }
    } else {
        for (k, (name, loss)) in terms.into_iter().enumerate() {
            let points = line(first, loss);
            if known(&points) {
                marks.push(Mark::new(of_run(k), name, Shape::Line(points)));
            }
        }
    }
    plots.push(Plot {
        title: if several { "Cost" } else { "Terms of the cost" }.into(),
        note: if words::pass(&first.facts.solver) == "stage" {
            "each stage weighs the physics more: compare terms, not stages".into()
        } else {
            String::new()
        },
        x: axis(),
        y: log("cost (–)"),
        marks,
    });
    let figures: [(&str, &str, OfPass); 3] = [
        ("Error of the free run", "mean nRMSE (–)", |e| e.free_run),
        ("Consistency of the filter", "mean ν²/s (–)", |e| {
            e.consistency
        }),
        ("Damping of Newton's steps", "damping (–)", |e| {
            e.damping.unwrap_or(f64::NAN)
        }),
    ];
    for (title, label, quantity) in figures {
        let mut marks = vec![];
        for (k, run) in runs.iter().enumerate() {
            let points = line(run, quantity);
            if known(&points) {
                let name = if several { run.name.as_str() } else { "" };
                marks.push(Mark::new(of_run(k), name, Shape::Line(points.clone())));
                marks.push(Mark::new(of_run(k), "", Shape::Dots(points)));
            }
        }
        if !marks.is_empty() {
            plots.push(Plot {
                title: title.into(),
                x: axis(),
                y: log(label),
                marks,
                note: String::new(),
            });
        }
    }
    plots
}
