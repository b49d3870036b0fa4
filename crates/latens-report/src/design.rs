//! The picture of experiments that were compared: what each would leave of an uncertainty, and the best one's course.

use latens::Fit;
use latens_design::Outcome;

use crate::plot::{self, Axis, Mark, Plot, Shape, labelled};
use crate::thin;

/// Samples of a line.
const SAMPLES: usize = 1500;

/// As an SVG file.
pub fn figure(fit: &Fit, outcome: &Outcome) -> String {
    let mut plots = ranking(outcome);
    plots.extend(course(fit, outcome));
    plot::document(&plots, 2, [470.0, 230.0])
}

/// A plot for each goal, and one of formulas: the experiments by rank.
fn ranking(outcome: &Outcome) -> Vec<Plot> {
    let designed = &outcome.designed;
    let over_rank = |title: String, label: &str, marks: Vec<Mark>| Plot {
        title,
        x: Axis {
            label: "experiment, best first".into(),
            whole: true,
            ..Axis::default()
        },
        y: Axis {
            label: label.into(),
            ..Axis::default()
        },
        marks,
        note: String::new(),
    };
    let bars = |value: &dyn Fn(usize) -> Option<f64>| {
        let bars =
            (0..designed.experiments.len()).filter_map(|k| Some([(k + 1) as f64, value(k)?]));
        Mark::new("estimate", "", Shape::Bars(bars.collect(), 0.7))
    };
    let mut plots = vec![];
    if designed.by == "formulas" {
        let apart = bars(&|k| designed.experiments[k].apart);
        plots.push(over_rank(
            "formulas told apart".into(),
            "ln p of the closest two",
            vec![apart],
        ));
    }
    for (g, goal) in designed.goals.iter().enumerate() {
        let mut marks = vec![bars(&|k| designed.experiments[k].left.get(g).copied())];
        if let Some(again) = designed.repeated.get(g) {
            marks.push(Mark::new(
                "bound",
                "the first record once more",
                Shape::Level(*again),
            ));
        }
        plots.push(over_rank(
            format!("{} {}: what is left", goal.kind, goal.name),
            "deviation / now",
            marks,
        ));
    }
    plots
}

/// Inputs and channels of the best experiment, as the fit foresees them.
fn course(fit: &Fit, outcome: &Outcome) -> Vec<Plot> {
    let (Some(run), Some(best)) = (outcome.runs.first(), outcome.designed.experiments.first())
    else {
        return vec![];
    };
    let time = &run.record.time;
    let plot = |title: String, label: String, values: Vec<f64>| {
        let rows = thin::rows(&[values.as_slice()], SAMPLES);
        let points = rows.iter().map(|&k| [time[k], values[k]]).collect();
        Plot {
            title,
            x: Axis {
                label: labelled("time", &fit.model.time_unit),
                ..Axis::default()
            },
            y: Axis {
                label,
                ..Axis::default()
            },
            marks: vec![Mark::new("estimate", "", Shape::Line(points))],
            note: String::new(),
        }
    };
    let inputs = fit.model.inputs.iter().enumerate().map(|(i, input)| {
        plot(
            format!("experiment 1: input {}", input.name),
            labelled(&input.name, &input.unit),
            run.record.input_column(i).collect(),
        )
    });
    let channels = fit.model.measurements.iter().enumerate();
    let channels = channels.filter(|(_, m)| best.measured.contains(&m.name));
    let channels = channels.map(|(k, channel)| {
        plot(
            format!("experiment 1: {}, foreseen", channel.name),
            labelled(&channel.name, &channel.unit),
            run.record.output_column(k).collect(),
        )
    });
    inputs.chain(channels).collect()
}
