//! The figures of the learned equation: first what the networks said along the records, then slices
//! through a sample.

use latens::fit::Fit;
use latens::text;

use crate::colours::of_run;
use crate::equation::{self, Learned, Slice, SlicePoint};
use crate::innovations::NORMAL_DEVIATIONS;
use crate::plot::{Axis, Mark, Plot, Shape, labelled};

/// In place of a unit that nothing says; a dash would say that there is none.
const UNKNOWN_UNIT: &str = "unit not given";

/// What one of several runs learned of an output.
struct OfRun<'a> {
    /// Its place among the runs.
    run: usize,
    learned: &'a Learned,
}

/// All figures of the networks; of several runs, of those that the first one's networks share.
pub fn equations(runs: &[Fit]) -> Vec<Plot> {
    let learned: Vec<Vec<Learned>> = runs.iter().map(equation::learned).collect();
    let Some(first) = learned.first() else {
        return vec![];
    };
    let mut plots = vec![];
    for output in first {
        let all = learned.iter().enumerate();
        let same = all.filter_map(|(run, all)| {
            let learned = all.iter().find(|l| l.output == output.output)?;
            Some(OfRun { run, learned })
        });
        let same: Vec<OfRun> = same.collect();
        let moving = || output.slices.iter().map(|slice| slice.argument);
        plots.extend(moving().map(|j| scatter(&same, j, runs)));
        if output.along.iter().any(|p| p.truth.is_some()) {
            plots.push(against_truth(output));
        }
        plots.extend(output.slices.iter().map(|slice| sliced(&same, slice, runs)));
    }
    plots
}

/// From the least to the greatest of some values, with a margin; bands do not count.
fn bounded(values: impl Iterator<Item = f64>, below: f64) -> Option<[f64; 2]> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    let size = (high - low)
        .max(1e-9 * high.abs().max(low.abs()))
        .max(f64::MIN_POSITIVE);
    (low <= high).then_some([low - below * size, high + 0.15 * size])
}

/// The range of what was learned along the records.
fn met(same: &[OfRun], below: f64) -> Option<[f64; 2]> {
    let along = same.iter().flat_map(|of_run| &of_run.learned.along);
    bounded(
        along.flat_map(|p| [p.value, p.truth.unwrap_or(p.value)]),
        below,
    )
}

fn axes(learned: &Learned, argument: usize) -> (Axis, Axis) {
    let along = &learned.arguments[argument];
    let axis = |name: &str, unit: &Option<String>| Axis {
        label: labelled(name, unit.as_deref().unwrap_or(UNKNOWN_UNIT)),
        ..Axis::default()
    };
    (
        axis(&along.text, &along.unit),
        axis(&learned.output, &learned.unit),
    )
}

/// What to say where the band is far wider than the axis, which shows what was learned.
fn unsure(range: Option<[f64; 2]>, deviations: impl Iterator<Item = f64>) -> Option<String> {
    const WIDE_BAND_RANGES: f64 = 2.0;
    let [low, high] = range?;
    let mut all: Vec<f64> = deviations.filter(|d| d.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    let times = 2.0 * NORMAL_DEVIATIONS * all.get(all.len() / 2)? / (high - low);
    let said = || {
        let times = text::digits(times, 2);
        format!("95 % is {times} times as wide as this axis")
    };
    (times > WIDE_BAND_RANGES).then(said)
}

/// The output at the samples of the records, over one argument.
fn scatter(same: &[OfRun], argument: usize, runs: &[Fit]) -> Plot {
    let first = same[0].learned;
    let several = runs.len() > 1;
    let (x, y) = axes(first, argument);
    let mut marks = vec![];
    for OfRun { run, learned } in same {
        let class = if several { of_run(*run) } else { "estimate" };
        let ends = learned.along.iter().map(|p| {
            let half_width = NORMAL_DEVIATIONS * p.std;
            [
                p.arguments[argument],
                p.value - half_width,
                p.value + half_width,
            ]
        });
        let dots = learned
            .along
            .iter()
            .map(|p| [p.arguments[argument], p.value]);
        let (bars, name) = if several {
            ("", runs[*run].name.as_str())
        } else {
            ("95 % interval", "learned")
        };
        marks.push(Mark::new("faded", bars, Shape::Whiskers(ends.collect())));
        marks.push(Mark::new(class, name, Shape::Dots(dots.collect())));
    }
    let range = met(same, 0.15);
    Plot {
        title: format!(
            "{} along the records, over {}",
            first.output, first.arguments[argument].text
        ),
        note: unsure(range, first.along.iter().map(|p| p.std)).unwrap_or_default(),
        x,
        y: Axis { range, ..y },
        marks,
    }
}

/// The output along a slice through a sample; where training has not been it is faded.
fn sliced(same: &[OfRun], slice: &Slice, runs: &[Fit]) -> Plot {
    let (first, argument) = (same[0].learned, slice.argument);
    let held = first.arguments.iter().zip(&slice.held).enumerate();
    let held = held.filter(|(j, _)| *j != argument);
    let held: Vec<String> = held
        .map(|(_, (a, v))| {
            let value = text::with_unit(*v, a.unit.as_deref().unwrap_or(""));
            format!("{} = {value}", a.text)
        })
        .collect();
    let (x, y) = axes(first, argument);
    // room for the columns below
    let range = met(same, 0.3);
    let seen = slice.points.iter().filter(|p| p.visited).map(|p| p.std);
    let mut notes = vec![];
    if !held.is_empty() {
        notes.push(format!("at {}", held.join(", ")));
    }
    notes.extend(unsure(range, seen));
    Plot {
        title: format!("{} over {}", first.output, first.arguments[argument].text),
        note: notes.join("\n"),
        x: Axis {
            range: ends(&slice.points),
            ..x
        },
        y: Axis { range, ..y },
        marks: along_slice(same, argument, runs),
    }
}

/// From where to where a slice goes.
fn ends(points: &[SlicePoint]) -> Option<[f64; 2]> {
    Some([points.first()?.at, points.last()?.at])
}

fn along_slice(same: &[OfRun], argument: usize, runs: &[Fit]) -> Vec<Mark> {
    let several = runs.len() > 1;
    let slice_of =
        |learned: &'_ Learned| learned.slices.iter().position(|s| s.argument == argument);
    let mut marks = vec![];
    for &OfRun { run, learned } in same {
        let Some(slice) = slice_of(learned).map(|place| &learned.slices[place]) else {
            continue;
        };
        let (class, name, band) = if several {
            (of_run(run), runs[run].name.as_str(), "")
        } else {
            ("estimate", "learned", "95 % band")
        };
        if marks.is_empty() {
            let parts = slice.density.iter().map(|&n| n as f64).collect();
            marks.push(Mark::new("data", "density of data", Shape::Density(parts)));
        }
        for (start, end) in stretches(&slice.points) {
            let ends = slice.points[start..end].iter().map(|p| {
                let half_width = NORMAL_DEVIATIONS * p.std;
                [p.at, p.value - half_width, p.value + half_width]
            });
            let label = if start == 0 || marks.iter().all(|m: &Mark| m.label != band) {
                band
            } else {
                ""
            };
            marks.push(Mark::new(class, label, Shape::Band(ends.collect())));
        }
        let whole = slice.points.iter().map(|p| [p.at, p.value]).collect();
        let unseen = slice.points.iter().any(|p| !p.visited);
        let faint = if unseen && !several {
            "away from data"
        } else {
            ""
        };
        marks.push(Mark::new("faded", faint, Shape::Line(whole)));
        let seen = slice.points.iter();
        let seen = seen.map(|p| [p.at, if p.visited { p.value } else { f64::NAN }]);
        marks.push(Mark::new(class, name, Shape::Line(seen.collect())));
    }
    let Some(slice) = same
        .first()
        .and_then(|OfRun { learned, .. }| Some(&learned.slices[slice_of(learned)?]))
    else {
        return marks;
    };
    let truth = slice.points.iter().map(|p| Some([p.at, p.truth?]));
    if let Some(truth) = truth.collect::<Option<Vec<_>>>() {
        marks.push(Mark::new("truth", "true", Shape::Line(truth)));
    }
    // the sample through which it goes
    let at = slice.held[argument];
    let near = |a: &&SlicePoint, b: &&SlicePoint| (a.at - at).abs().total_cmp(&(b.at - at).abs());
    if let Some(point) = slice.points.iter().min_by(near) {
        let dot = Shape::Dots(vec![[point.at, point.value]]);
        marks.push(Mark::new("here", "the sample", dot));
    }
    marks
}

/// The stretches of a slice that training has visited.
fn stretches(points: &[SlicePoint]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = vec![];
    for (k, _) in points.iter().enumerate().filter(|(_, p)| p.visited) {
        match found.last_mut() {
            Some((_, end)) if *end == k => *end = k + 1,
            _ => found.push((k, k + 1)),
        }
    }
    found
}

/// Learned against true at samples of the records.
fn against_truth(learned: &Learned) -> Plot {
    let pairs = learned.along.iter();
    let pairs: Vec<[f64; 2]> = pairs.filter_map(|p| Some([p.truth?, p.value])).collect();
    let (low, high) = pairs
        .iter()
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(*v), h.max(*v))
        });
    let unit = learned.unit.as_deref().unwrap_or(UNKNOWN_UNIT);
    let axis = |name: &str| Axis {
        label: labelled(&format!("{name} {}", learned.output), unit),
        ..Axis::default()
    };
    Plot {
        title: format!("{}: learned against true", learned.output),
        note: "on the line, learned and true are the same".into(),
        x: axis("true"),
        y: axis("learned"),
        marks: vec![
            Mark::new("bound", "", Shape::Line(vec![[low, low], [high, high]])),
            Mark::new("estimate", "samples", Shape::Dots(pairs)),
        ],
    }
}
