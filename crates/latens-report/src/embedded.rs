//! The numbers of a figure, in the page beside it: for values under the pointer, and to be saved.

use serde_json::{Value, json};

use crate::base64;
use crate::plot::{Axis, Mark, Plot, Shape};
use crate::scale::Scale;

/// What the page's script reads; it cannot end the element that it stands in.
pub fn json(plot: &Plot, scales: [&Scale; 2]) -> String {
    let axis = |axis: &Axis, scale: &Scale| {
        json!({
            "label": axis.label,
            "log": axis.log,
            "ends": scale.ends(),
            "places": [scale.from, scale.to],
        })
    };
    let marks: Vec<Value> = plot.marks.iter().map(|m| mark(m, scales[0])).collect();
    let value = json!({
        "title": plot.title,
        "x": axis(&plot.x, scales[0]),
        "y": axis(&plot.y, scales[1]),
        "marks": marks,
    });
    value.to_string().replace('<', "\\u003c")
}

/// x with all digits, since it may be a date; the rest with seven.
fn mark(mark: &Mark, along: &Scale) -> Value {
    let (kind, width, x, y): (&str, usize, Vec<f64>, Vec<f64>) = match &mark.shape {
        Shape::Line(p) | Shape::Steps(p) => ("line", 1, firsts(p), seconds(p)),
        Shape::Dots(p) => ("dots", 1, firsts(p), seconds(p)),
        Shape::Bars(p, _) => ("bars", 1, firsts(p), seconds(p)),
        Shape::Band(p) => ("band", 2, firsts(p), ends(p)),
        Shape::Whiskers(p) => ("whiskers", 2, firsts(p), ends(p)),
        Shape::Arrows(all) => {
            let y = all.iter().flat_map(|(foot, by)| [foot[1], by[0], by[1]]);
            let x = all.iter().map(|(foot, _)| foot[0]);
            ("arrows", 3, x.collect(), y.collect())
        }
        Shape::Level(at) => ("level", 1, vec![], vec![*at]),
        Shape::Density(parts) => {
            let [low, high] = along.ends();
            let width = (high - low) / parts.len() as f64;
            let x = (0..parts.len()).map(|k| low + (k as f64 + 0.5) * width);
            ("density", 1, x.collect(), parts.clone())
        }
    };
    json!({
        "label": mark.label,
        "kind": kind,
        "width": width,
        "x": base64::double(x),
        "y": base64::single(y),
    })
}

fn firsts<const N: usize>(points: &[[f64; N]]) -> Vec<f64> {
    points.iter().map(|p| p[0]).collect()
}

fn seconds(points: &[[f64; 2]]) -> Vec<f64> {
    points.iter().map(|p| p[1]).collect()
}

fn ends(points: &[[f64; 3]]) -> Vec<f64> {
    points.iter().flat_map(|p| [p[1], p[2]]).collect()
}
