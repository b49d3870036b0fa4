//! The states over time, as the page draws them: thinned, and packed as text.

use latens::numerics::score;
use serde_json::{Value, json};

use crate::{base64, thin};
use latens::fit::{Fit, Role, Track};
use latens::text;

/// Bytes that all signals of a page may have before they become text, which takes a third more.
const SIGNALS_BYTES: usize = 1_000_000;
/// Samples of a signal at the least, however many there are.
const LEAST_SAMPLES: usize = 200;

/// One quantity over time.
pub struct Panel {
    pub name: String,
    pub unit: String,
    /// `hidden state`, `measured state`, `measurement` or `input`.
    pub kind: &'static str,
    pub signals: Vec<Signal>,
    /// What is said of it beside its name: the error of the one-step prediction and of the free run.
    pub errors: [Option<String>; 2],
}

/// One line of a panel.
pub struct Signal {
    /// `data`, `truth`, `estimate`, `std`, `one_step` or `free_run`.
    pub what: &'static str,
    /// Which of several runs it belongs to.
    pub run: usize,
    pub values: Vec<f64>,
}

/// A record and what each run says about it.
pub struct Course<'a> {
    pub file: &'a str,
    pub role: Role,
    pub time: &'a [f64],
    /// From where to where it has no samples.
    pub gaps: Vec<[f64; 2]>,
    pub panels: Vec<Panel>,
}

/// Stretches of a record that are far longer than the time between its samples usually is.
pub fn gaps(time: &[f64]) -> Vec<[f64; 2]> {
    const GAP_STEPS: f64 = 5.0;
    let mut steps: Vec<f64> = time.windows(2).map(|t| t[1] - t[0]).collect();
    steps.sort_by(f64::total_cmp);
    let Some(median) = steps.get(steps.len() / 2) else {
        return vec![];
    };
    let pairs = time.windows(2).filter(|t| t[1] - t[0] > GAP_STEPS * median);
    pairs.map(|t| [t[0], t[1]]).collect()
}

/// A track of one of several runs.
struct TrackOfRun<'a> {
    /// The run's place among them.
    run: usize,
    fit: &'a Fit,
    track: &'a Track,
}

/// The records of the first run, each with the tracks of all runs that were fitted to it.
pub fn courses(runs: &[Fit]) -> Vec<Course<'_>> {
    let Some(first) = runs.first() else {
        return vec![];
    };
    let course = |track| {
        let facts = first.facts_of(track);
        let same = |run: &'_ Fit, other: &Track| {
            let theirs = run.facts_of(other);
            theirs.sha256 == facts.sha256 && other.record.time == track.record.time
        };
        let mut tracks = vec![TrackOfRun {
            run: 0,
            fit: first,
            track,
        }];
        for (run, fit) in runs.iter().enumerate().skip(1) {
            let found = fit.tracks.iter().find(|other| same(fit, other));
            tracks.extend(found.map(|track| TrackOfRun { run, fit, track }));
        }
        Course {
            file: &facts.file,
            role: facts.role,
            time: &track.record.time,
            gaps: gaps(&track.record.time),
            panels: panels(&tracks),
        }
    };
    first.tracks.iter().map(course).collect()
}

/// The panels of one record; the first track says what was measured.
fn panels(tracks: &[TrackOfRun]) -> Vec<Panel> {
    let &TrackOfRun {
        fit: first, track, ..
    } = &tracks[0];
    let (model, record) = (&first.model, &track.record);
    let (hidden, direct) = (model.hidden(), model.system.direct());
    let mut panels = vec![];
    for (i, state) in model.states.iter().enumerate() {
        let mut signals = vec![];
        let measured = direct.iter().enumerate().filter(|(_, d)| **d == Some(i));
        for (channel, _) in measured {
            let data = record.output_column(channel).collect();
            signals.push(Signal::new("data", 0, data));
        }
        if let Some(truth) = record.truth_column(i) {
            let truth: Vec<f64> = truth.collect();
            if truth.iter().any(|v| v.is_finite()) {
                signals.push(Signal::new("truth", 0, truth));
            }
        }
        for &TrackOfRun { run, fit, track } in tracks {
            let Some(i) = fit.model.state_index(&state.name) else {
                continue;
            };
            for (kind, values) in [
                ("estimate", &track.smoothed),
                ("std", &track.deviations),
                ("one_step", &track.one_step),
                ("free_run", &track.free_run),
            ] {
                signals.push(Signal::new(kind, run, values.column(i).collect()));
            }
        }
        let kind = if hidden.contains(&i) {
            "hidden state"
        } else {
            "measured state"
        };
        let channel = direct.iter().position(|d| *d == Some(i));
        let channel = channel.map(|c| model.measurements[c].name.as_str());
        let columns = [
            Some(format!("truth_{}", state.name)),
            channel.map(String::from),
        ];
        panels.push(Panel {
            errors: errors(first, track, &columns),
            name: state.name.clone(),
            unit: state.unit.clone(),
            kind,
            signals,
        });
    }
    for (c, channel) in model.measurements.iter().enumerate() {
        if direct[c].is_none() {
            panels.push(measurement(tracks, c, &channel.name, &channel.unit));
        }
    }
    for (k, input) in model.inputs.iter().enumerate() {
        panels.push(Panel {
            name: input.name.clone(),
            unit: input.unit.clone(),
            kind: "input",
            signals: vec![Signal::new("data", 0, record.input_column(k).collect())],
            errors: [None, None],
        });
    }
    panels
}

/// A channel that shows no state as it is: what it would be along each track.
fn measurement(tracks: &[TrackOfRun], channel: usize, name: &str, unit: &str) -> Panel {
    let &TrackOfRun {
        fit: first, track, ..
    } = &tracks[0];
    let data = track.record.output_column(channel).collect();
    let mut signals = vec![Signal::new("data", 0, data)];
    for &TrackOfRun { run, fit, track } in tracks {
        let (model, theta) = (&fit.model, &fit.theta);
        let Some(channel) = model.measurements.iter().position(|m| m.name == name) else {
            continue;
        };
        for (kind, states) in [
            ("estimate", &track.smoothed),
            ("one_step", &track.one_step),
            ("free_run", &track.free_run),
        ] {
            let outputs = score::outputs(&model.system, &track.record, theta, states);
            let values = outputs.column(channel).collect();
            signals.push(Signal::new(kind, run, values));
        }
    }
    Panel {
        name: name.into(),
        unit: unit.into(),
        kind: "measurement",
        errors: errors(first, track, &[None, Some(name.into())]),
        signals,
    }
}

/// The errors of the one-step prediction and of the free run, against the truth where it is known.
fn errors(shown: &Fit, track: &Track, columns: &[Option<String>; 2]) -> [Option<String>; 2] {
    let facts = shown.facts_of(track);
    [&facts.nrmse_one_step, &facts.nrmse].map(|scores| {
        let mut found = columns.iter().zip(["truth", "data"]);
        found.find_map(|(column, kind)| {
            let error = scores.get(column.as_ref()?)?;
            Some(match error {
                Some(error) => format!("{} of range from {kind}", text::percent(*error)),
                None => "diverged".into(),
            })
        })
    })
}

impl Signal {
    fn new(what: &'static str, run: usize, values: Vec<f64>) -> Self {
        Self { what, run, values }
    }
}

/// The courses for the page's script.
pub fn json(courses: &[Course]) -> Value {
    let width = |p: &Panel| 8 + 4 * p.signals.len();
    let all: usize = courses.iter().flat_map(|c| &c.panels).map(width).sum();
    let budget = (SIGNALS_BYTES / all.max(1)).max(LEAST_SAMPLES);
    let panel = |course: &Course, panel: &Panel| {
        let seen = panel.signals.iter().filter(|s| s.what != "std");
        let seen: Vec<&[f64]> = seen.map(|s| s.values.as_slice()).collect();
        let rows = thin::rows(&seen, budget);
        let signal = |signal: &Signal| {
            let values = base64::single(rows.iter().map(|&k| signal.values[k]));
            json!({ "what": signal.what, "run": signal.run, "values": values })
        };
        json!({
            "name": panel.name,
            "unit": panel.unit,
            "kind": panel.kind,
            "errors": panel.errors,
            "kept": rows.len(),
            "time": base64::double(rows.iter().map(|&k| course.time[k])),
            "signals": panel.signals.iter().map(signal).collect::<Vec<_>>(),
        })
    };
    let course = |course: &Course| {
        let panels = course.panels.iter().map(|p| panel(course, p));
        json!({
            "file": course.file,
            "role": course.role,
            "samples": course.time.len(),
            "gaps": course.gaps,
            "panels": panels.collect::<Vec<_>>(),
        })
    };
    courses.iter().map(course).collect()
}
