//! The records that played no part: what was foreseen of each channel beside what was measured, and
//! what is left.

use latens::fit::{Fit, Foreseen};

use crate::plot::{Axis, Mark, Plot, Shape, labelled};
use crate::thin;

/// Samples of a line in a figure.
const SAMPLES: usize = 1500;
/// Deviations of a band that holds 95 %.
const BAND_DEVIATIONS: f64 = 1.96;

/// Two figures of each channel: the prediction with its band, and what it misses.
pub fn plots(shown: &Fit, test: &Foreseen) -> Vec<Plot> {
    let channels = shown.model.measurements.iter().enumerate();
    let drawn = channels.filter(|(c, _)| test.measured.column(*c).any(|y| y.is_finite()));
    let plots = drawn.flat_map(|(c, channel)| {
        let column = Column::new(shown, test, c);
        let x = || Axis {
            label: labelled("time", &shown.model.time_unit),
            ..Axis::default()
        };
        let y = |label: String, range| Axis {
            label,
            range,
            ..Axis::default()
        };
        let (name, unit) = (&channel.name, &channel.unit);
        [
            Plot {
                title: format!("{name}: foreseen and measured"),
                x: x(),
                y: y(labelled(name, unit), column.reach()),
                marks: column.course(),
                note: String::new(),
            },
            Plot {
                title: format!("{name}: measured less foreseen"),
                x: x(),
                y: y(labelled(name, unit), None),
                marks: column.rest(),
                note: String::new(),
            },
        ]
    });
    plots.collect()
}

/// One channel at the samples that are drawn.
struct Column {
    time: Vec<f64>,
    measured: Vec<f64>,
    foreseen: Vec<f64>,
    std: Vec<f64>,
    /// With the sensor's own noise.
    with_noise: Vec<f64>,
}

impl Column {
    fn new(shown: &Fit, test: &Foreseen, channel: usize) -> Self {
        let whole = [&test.measured, &test.outputs, &test.output_deviations];
        let [measured, foreseen, std] = whole.map(|t| t.column(channel).collect::<Vec<f64>>());
        let rows = thin::rows(&[&measured, &foreseen], SAMPLES);
        let at = |values: &[f64]| rows.iter().map(|&k| values[k]).collect::<Vec<f64>>();
        let noise = shown.facts.noise.measurement[channel];
        let std = at(&std);
        Self {
            time: at(&test.time),
            measured: at(&measured),
            foreseen: at(&foreseen),
            with_noise: std.iter().map(|s| (s * s + noise).sqrt()).collect(),
            std,
        }
    }

    /// As far as what was measured and foreseen goes, whatever the band does.
    fn reach(&self) -> Option<[f64; 2]> {
        let ends = |values: &[f64]| {
            let finite = values.iter().filter(|v| v.is_finite());
            finite.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| {
                [l.min(*v), h.max(*v)]
            })
        };
        let ([low, high], [least, most]) = (ends(&self.measured), ends(&self.foreseen));
        let (size, middle) = (high - low, (high + low) / 2.0);
        // a prediction that is lost leaves the picture
        let (low, high) = (
            low.min(least.max(middle - 1.5 * size)),
            high.max(most.min(middle + 1.5 * size)),
        );
        let margin = 0.05 * (high - low);
        (margin > 0.0).then_some([low - margin, high + margin])
    }

    fn course(&self) -> Vec<Mark> {
        let points = self.time.iter().zip(&self.foreseen).zip(&self.std);
        let band = points.map(|((t, y), s)| [*t, y - BAND_DEVIATIONS * s, y + BAND_DEVIATIONS * s]);
        vec![
            Mark::new(
                "estimate",
                "95 % of the prediction",
                Shape::Band(band.collect()),
            ),
            Mark::new(
                "data",
                "measured",
                Shape::Dots(pairs(&self.time, &self.measured)),
            ),
            Mark::new(
                "estimate",
                "foreseen",
                Shape::Line(pairs(&self.time, &self.foreseen)),
            ),
        ]
    }

    fn rest(&self) -> Vec<Mark> {
        let values = self.measured.iter().zip(&self.foreseen);
        let rest: Vec<f64> = values.map(|(y, f)| y - f).collect();
        let band = self.time.iter().zip(&self.with_noise);
        let band = band.map(|(t, s)| [*t, -BAND_DEVIATIONS * s, BAND_DEVIATIONS * s]);
        vec![
            Mark::new("estimate", "95 % with noise", Shape::Band(band.collect())),
            Mark::new(
                "data",
                "measured less foreseen",
                Shape::Dots(pairs(&self.time, &rest)),
            ),
            Mark::new("bound", "", Shape::Level(0.0)),
        ]
    }
}

fn pairs(time: &[f64], values: &[f64]) -> Vec<[f64; 2]> {
    let points = time.iter().zip(values);
    points
        .filter(|(_, v)| v.is_finite())
        .map(|(t, v)| [*t, *v])
        .collect()
}
