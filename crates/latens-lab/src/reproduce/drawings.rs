//! The figures, drawn with what draws the page of a run: for the folder as SVG, for `reproduce.html`
//! in its lines.
//!
//! A method is one line, that of its seed in the middle; it looks the same in all figures.

use std::path::Path;

use latens::record::Record;
use latens::simulate::{Simulation, simulate};
use latens::text;
use latens::{Model, Trajectory, fit::Start};
use latens_report::colours::of_run;
use latens_report::field::{Arrow, Field};
use latens_report::figures::motion;
use latens_report::plot::{self, Axis, Mark, Plot, Shape, labelled};

use super::cell::{self, Cell, GRID, Learner, Method, Status, System, ThinnedRun};
use super::figures;
use crate::files::write_file;
use latens::Error;

/// All figures of a system.
pub struct Drawn {
    pub system: String,
    /// Every state in a row: Latens' own solvers on the left, the others on the right.
    pub trajectories: Vec<Plot>,
    /// The same for each held-out experiment.
    pub held_out: Vec<Vec<Plot>>,
    /// One for each method that has learned a derivative.
    pub fields: Vec<Plot>,
    /// Cost and error of the free run.
    pub learning: Vec<Plot>,
}

/// Sizes of the figures.
pub const WIDE_SIZE: [f64; 2] = [470.0, 230.0];
pub const SQUARE_SIZE: [f64; 2] = [390.0, 350.0];
pub const CURVE_SIZE: [f64; 2] = [470.0, 320.0];
pub const SMALL_SIZE: [f64; 2] = [390.0, 290.0];

/// Dots are drawn along a curve of fewer looks, so that a single one shows.
const FEW_POINTS: usize = 30;

impl Drawn {
    pub fn new(system: &System, cells: &[Cell]) -> Result<Self, Error> {
        let of_system = cells.iter().filter(|c| c.score.system == system.name);
        let cells = typical(of_system);
        let model = &system.model;
        let runs: Vec<_> = cells.iter().map(|c| (*c, Some(&c.trajectory))).collect();
        let mut held_out = vec![];
        let count = cells.iter().map(|c| c.held_out.len()).max().unwrap_or(0);
        for number in 0..count {
            let record = match &system.test {
                Some(test) => test.slice(Start::samples(test)..test.len()),
                None => simulate(
                    model,
                    &Simulation {
                        held_out: Some(number),
                        ..Simulation::default()
                    },
                )?,
            };
            let runs: Vec<_> = cells.iter().map(|c| (*c, c.held_out.get(number))).collect();
            let title = match &system.test {
                Some(_) => "test record".into(),
                None => format!("new start {}", number + 1),
            };
            held_out.push(over_time(model, &record, &runs, &format!(", {title}")));
        }
        Ok(Self {
            system: system.name.clone(),
            trajectories: over_time(model, &system.record, &runs, ""),
            held_out,
            fields: fields(system, &cells),
            learning: learning(&system.name, &cells),
        })
    }
}

/// Of each method the seed in the middle of its errors; lost ones are the worst.
fn typical<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<&'c Cell> {
    let mut methods: Vec<Vec<&Cell>> = vec![];
    for cell in cells {
        let same = |m: &&mut Vec<&Cell>| m[0].score.method == cell.score.method;
        match methods.iter_mut().find(same) {
            Some(method) => method.push(cell),
            None => methods.push(vec![cell]),
        }
    }
    let middle = methods.into_iter().map(|mut runs| {
        let error = |c: &&Cell| c.score.nrmse_mean.unwrap_or(f64::INFINITY);
        runs.sort_by(|a, b| error(a).total_cmp(&error(b)));
        runs[(runs.len() - 1) / 2]
    });
    middle.collect()
}

/// The method of a name, and what its lines look like.
fn of_method(name: &str) -> (Option<Method>, &'static str) {
    let all = Method::all();
    let found = all.iter().position(|m| m.name() == name);
    (found.map(|k| all[k]), of_run(found.unwrap_or(all.len())))
}

fn class(cell: &Cell) -> &'static str {
    of_method(&cell.score.method).1
}

/// Where a line should go, and what that is called.
struct Reference {
    label: &'static str,
    line: Vec<[f64; 2]>,
}

/// What a state should be: its truth, or a channel that shows it.
fn reference(model: &Model, record: &Record, state: usize) -> Option<Reference> {
    let n = model.states.len();
    let name = &model.states[state].name;
    if let Some(mut thinned) = cell::thinned_truth(model, record) {
        let values = thinned.states.remove(name)?;
        return Some(Reference {
            label: "truth",
            line: line(&thinned.time, &values),
        });
    }
    let channel = (model.system.direct().iter()).position(|d| *d == Some(state))?;
    let mut run = Trajectory::filled(f64::NAN, record.len(), n);
    for k in 0..record.len() {
        run.row_mut(k)[state] = record.output(k)[channel];
    }
    let mut thinned = cell::thinned(model, record, &run);
    let values = thinned.states.remove(name)?;
    Some(Reference {
        label: "measured",
        line: line(&thinned.time, &values),
    })
}

fn line(time: &[f64], values: &[Option<f64>]) -> Vec<[f64; 2]> {
    let pairs = time.iter().zip(values);
    pairs.map(|(t, v)| [*t, v.unwrap_or(f64::NAN)]).collect()
}

/// Two plots for each state.
fn over_time(
    model: &Model,
    record: &Record,
    runs: &[(&Cell, Option<&ThinnedRun>)],
    title: &str,
) -> Vec<Plot> {
    let rival = |cell: &Cell| {
        of_method(&cell.score.method)
            .0
            .is_some_and(|m| matches!(m.learner, Learner::Rival(_)))
    };
    let hidden = model.hidden();
    let mut plots = vec![];
    for (i, state) in model.states.iter().enumerate() {
        let reference = reference(model, record, i);
        let kind = if hidden.contains(&i) {
            "hidden"
        } else {
            "measured"
        };
        let lines = runs.iter().map(|(cell, run)| {
            let values = run.and_then(|r| Some(line(&r.time, r.states.get(&state.name)?)));
            (cell.score.method.as_str(), rival(cell), values)
        });
        let lines: Vec<_> = lines.collect();
        // both sides reach equally far
        let values = lines
            .iter()
            .filter_map(|(.., line)| line.as_ref())
            .flatten();
        let range = visible(values.map(|p| p[1]), reference.as_ref());
        for (side, rivals) in [("Latens", false), ("the others", true)] {
            let mut marks = vec![];
            let mut without = vec![];
            for (name, _, line) in lines.iter().filter(|(_, rival, _)| *rival == rivals) {
                match line {
                    Some(line) => marks.push(Mark::new(
                        of_method(name).1,
                        *name,
                        Shape::Line(line.clone()),
                    )),
                    None => without.push(*name),
                }
            }
            if marks.is_empty() && without.is_empty() {
                continue;
            }
            if let Some(reference) = &reference {
                // it lies over what is compared with it
                let shape = Shape::Line(reference.line.clone());
                marks.push(Mark::new("truth", reference.label, shape));
            }
            plots.push(Plot {
                title: format!("{}, {kind}{title}: {side}", state.name),
                note: if without.is_empty() {
                    String::new()
                } else {
                    format!("lost: {}", text::list(&without))
                },
                x: Axis {
                    label: labelled("time", &model.time_unit),
                    ..Axis::default()
                },
                y: Axis {
                    label: labelled(&state.name, &state.unit),
                    range,
                    ..Axis::default()
                },
                marks,
            });
        }
    }
    plots
}

/// Least and greatest value; of those that are no number, nothing.
fn ends(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    values.filter(|v| v.is_finite()).fold(None, |ends, v| {
        let [low, high] = ends.unwrap_or([v, v]);
        Some([v.min(low), v.max(high)])
    })
}

/// So far that all lines are seen, but none that runs away flattens the others: at the most half
/// the range of the reference beyond it; without one, 1.5 times that of the middle half of all values.
fn visible(values: impl Iterator<Item = f64>, reference: Option<&Reference>) -> Option<[f64; 2]> {
    let mut all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    let range = reference.and_then(|r| ends(r.line.iter().map(|p| p[1])));
    let (inner, beyond) = match range {
        Some(range) => (range, 0.5),
        None => {
            let at = |part: usize| all.get(all.len() * part / 4).copied();
            ([at(1)?, at(3)?], 1.5)
        }
    };
    let [low, high] = inner;
    let margin = beyond * (high - low);
    let [least, most] = ends(all.iter().copied()).unwrap_or(inner);
    let (low, high) = (
        low.min(least.max(low - margin)),
        high.max(most.min(high + margin)),
    );
    let margin = 0.06 * (high - low).max(1e-9 * high.abs()).max(f64::MIN_POSITIVE);
    Some([low - margin, high + margin])
}

/// Learned and true derivatives, method by method, at every other point of the grid.
fn fields(system: &System, cells: &[&Cell]) -> Vec<Plot> {
    let (model, record) = (&system.model, &system.record);
    let points = cell::field_points(model, record);
    let (Some(truth), Some(from), Some(to)) = (&model.truth, points.first(), points.last()) else {
        return vec![];
    };
    let truth = cell::field(&truth.system, &[], &points);
    let axis = |i: usize| (model.states[i].name.clone(), model.states[i].unit.clone());
    // the distance of two arrows, so that none is cut
    let margin = [0, 1].map(|i| 2.0 * (to[i] - from[i]) / (GRID - 1) as f64);
    let shown = |k: &usize| [k % GRID, k / GRID].iter().all(|at| at.is_multiple_of(2));
    let path: Vec<[f64; 2]> = match &record.truth {
        Some(truth) => truth.chunks_exact(2).map(|x| [x[0], x[1]]).collect(),
        None => vec![],
    };
    let every = path.len().div_ceil(500).max(1);
    let learned = cells.iter().filter(|c| c.field.len() == points.len());
    let plot = |cell: &&Cell| {
        let arrows = (0..points.len()).filter(shown).map(|k| Arrow {
            at: points[k],
            learned: cell.field[k],
            truth: Some(truth[k]),
        });
        let plot = motion(Field {
            axes: [axis(0), axis(1)],
            low: [0, 1].map(|i| from[i] - margin[i]),
            high: [0, 1].map(|i| to[i] + margin[i]),
            arrows: arrows.collect(),
            trajectory: path.iter().step_by(every).copied().collect(),
            inputs: String::new(),
        });
        Plot {
            title: format!("Direction of motion: {}", cell.score.method),
            note: String::new(),
            ..plot
        }
    };
    learned.map(plot).collect()
}

/// Cost and error of the free run over the time of training.
fn learning(system: &str, cells: &[&Cell]) -> Vec<Plot> {
    type Of = fn(&cell::Look) -> Option<f64>;
    let quantities: [(&str, &str, Of); 2] = [
        ("cost, each method's own", "cost (–)", |l| l.cost),
        (
            "error of the free run",
            "mean nRMSE of channels (–)",
            |l| l.free_run,
        ),
    ];
    let mut plots = vec![];
    for (title, label, quantity) in quantities {
        let mut marks = vec![];
        for cell in cells {
            let points = cell.curve.iter().filter_map(|look| {
                let value = quantity(look).filter(|v| *v > 0.0)?;
                (look.seconds > 0.0).then_some([look.seconds, value])
            });
            let points: Vec<[f64; 2]> = points.collect();
            if points.is_empty() {
                continue;
            }
            let few = points.len() < FEW_POINTS;
            marks.push(Mark::new(
                class(cell),
                cell.score.method.as_str(),
                Shape::Line(points.clone()),
            ));
            if few {
                marks.push(Mark::new(class(cell), "", Shape::Dots(points)));
            }
        }
        let lost = cells.iter().filter(|c| c.score.status != Status::Ok);
        let lost: Vec<&str> = lost.map(|c| c.score.method.as_str()).collect();
        if !marks.is_empty() {
            plots.push(Plot {
                title: format!("{system}: {title}"),
                note: if lost.is_empty() {
                    String::new()
                } else {
                    format!("lost in the end: {}", text::list(&lost))
                },
                x: Axis {
                    label: labelled("time of training", "s"),
                    log: true,
                    ..Axis::default()
                },
                y: Axis {
                    label: label.into(),
                    log: true,
                    ..Axis::default()
                },
                marks,
            });
        }
    }
    plots
}

/// What a sample costs against each of the three sizes, from what `cost` has written.
pub fn cost(folder: &Path) -> Result<Vec<Plot>, Error> {
    let path = figures::folder(folder)?.join("cost_per_step.csv");
    let Ok(table) = std::fs::read_to_string(&path) else {
        return Ok(vec![]);
    };
    let rows: Vec<Vec<&str>> = table.lines().map(|l| l.split(',').collect()).collect();
    let marks_of = |varied: &str, column: usize| {
        let mut marks: Vec<Mark> = vec![];
        for row in rows.iter().filter(|r| r.len() == 6 && r[1] == varied) {
            let (Ok(size), Ok(cost)) = (row[column].parse(), row[5].parse::<f64>()) else {
                continue;
            };
            let last = marks.iter_mut().rfind(|m| m.label == row[0]);
            match last.map(|m| &mut m.shape) {
                Some(Shape::Line(points)) => points.push([size, cost]),
                _ => {
                    let shape = Shape::Line(vec![[size, cost]]);
                    marks.push(Mark::new(of_method(row[0]).1, row[0], shape));
                }
            }
        }
        let dots: Vec<Mark> = (marks.iter())
            .filter_map(|m| match &m.shape {
                Shape::Line(points) => Some(Mark::new(m.class, "", Shape::Dots(points.clone()))),
                _ => None,
            })
            .collect();
        marks.extend(dots);
        marks
    };
    let sizes = [
        ("length of the record", "N (samples)", "N", 2),
        ("number of parameters", "d_θ (number)", "d_theta", 3),
        ("number of states", "d_x (number)", "d_x", 4),
    ];
    let plots = sizes.map(|(title, label, varied, column)| Plot {
        title: format!("Cost of a sample over the {title}"),
        note: String::new(),
        x: Axis {
            label: label.into(),
            log: true,
            ..Axis::default()
        },
        y: Axis {
            label: "time of a sample in a pass (µs)".into(),
            log: true,
            ..Axis::default()
        },
        marks: marks_of(varied, column),
    });
    Ok(plots.into_iter().filter(|p| !p.marks.is_empty()).collect())
}

/// Writes every figure as an SVG file.
pub fn write(drawn: &[Drawn], cost: &[Plot], output: &Path) -> Result<(), Error> {
    let folder = figures::folder(output)?;
    let save = |name: String, plots: &mut dyn Iterator<Item = &Plot>, columns, size| {
        let plots: Vec<&Plot> = plots.collect();
        if plots.is_empty() {
            Ok(())
        } else {
            write_file(&folder.join(name), &plot::document(plots, columns, size))
        }
    };
    for drawn in drawn {
        let name = |figure: &str| format!("{figure}_{}.svg", drawn.system);
        save(
            name("trajectories"),
            &mut drawn.trajectories.iter(),
            2,
            WIDE_SIZE,
        )?;
        save(
            name("held_out"),
            &mut drawn.held_out.iter().flatten(),
            2,
            WIDE_SIZE,
        )?;
        save(
            name("vector_field"),
            &mut drawn.fields.iter(),
            3,
            SQUARE_SIZE,
        )?;
    }
    let curves = &mut drawn.iter().flat_map(|d| &d.learning);
    save("learning_curves.svg".into(), curves, 2, CURVE_SIZE)?;
    save("cost_per_step.svg".into(), &mut cost.iter(), 3, SMALL_SIZE)
}
