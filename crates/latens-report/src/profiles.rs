//! The figure of profiles of constants.

use latens::fit::profile::{ConstantProfile, Profile};

use crate::plot::{self, Axis, Mark, Plot, Shape, labelled};

/// The rise of the objective where an interval of 95 % ends.
const INTERVAL_RISE: f64 = 1.920_729;

/// The objective over each constant, with all else at its best, as an SVG file.
pub fn draw(found: &Profile) -> String {
    let plots: Vec<Plot> = found.constants.iter().map(of_constant).collect();
    plot::document(&plots, 3, [360.0, 260.0])
}

fn of_constant(found: &ConstantProfile) -> Plot {
    let points: Vec<[f64; 2]> = found.points.iter().map(|p| [p.value, p.rise]).collect();
    let (low, high) = found
        .points
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| {
            (a.min(p.value), b.max(p.value))
        });
    // the parabola whose deviations are the linear interval's
    let half = 0.5 * (found.linear.1 - found.linear.0);
    let linear = (0..=60).map(|k| {
        let value = low + (high - low) * f64::from(k) / 60.0;
        [
            value,
            INTERVAL_RISE * ((value - found.value) / half).powi(2),
        ]
    });
    let top = points
        .iter()
        .map(|p| p[1])
        .fold(1.4 * INTERVAL_RISE, f64::max);
    let linear: Vec<[f64; 2]> = linear.filter(|p| p[1] <= top).collect();
    Plot {
        title: found.name.clone(),
        x: Axis {
            label: labelled(&found.name, &found.unit),
            ..Axis::default()
        },
        y: Axis {
            label: "rise of the objective (–)".into(),
            ..Axis::default()
        },
        marks: vec![
            Mark::new("truth", "linear", Shape::Line(linear)),
            Mark::new("estimate", "profile", Shape::Line(points.clone())),
            Mark::new("estimate", "", Shape::Dots(points)),
            Mark::new("bound", "95 %", Shape::Level(INTERVAL_RISE)),
        ],
        note: found.remark().unwrap_or_default(),
    }
}
