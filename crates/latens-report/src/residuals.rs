//! What is left of the records: figures of the innovations of a channel, and the tests of residuals.

use latens::fit::Fit;
use latens::fit::diagnosis::{SIGNIFICANCE_LEVEL, Test};
use latens::text;

use crate::innovations::{Against, BINS, Innovations};
use crate::plot::{Axis, Mark, Plot, Shape, escape, labelled};
use crate::tables::table;
use crate::words;

/// Whiteness, histogram, consistency, and what is left against each input that moves.
pub fn innovation(found: &Innovations, time_unit: &str) -> Vec<Plot> {
    let name = &found.channel;
    let axis = |label: &str| Axis {
        label: label.into(),
        ..Axis::default()
    };
    let lags = found.correlation.iter().enumerate();
    let lags: Vec<[f64; 2]> = lags.map(|(k, c)| [k as f64 + 1.0, *c]).collect();
    let most = lags
        .iter()
        .map(|l| l[1].abs())
        .fold(3.0 * found.bound, f64::max);
    let bound = |at: f64, label: &str| Mark::new("bound", label, Shape::Level(at));
    let white = Plot {
        title: format!("{name}: whiteness"),
        x: Axis {
            whole: true,
            ..axis("lag (samples)")
        },
        y: Axis {
            range: Some([-1.1 * most, 1.1 * most]),
            ..axis("correlation (–)")
        },
        marks: vec![
            Mark::new("estimate", "innovations", Shape::Bars(lags, 0.7)),
            bound(found.bound, "95 % if white"),
            bound(-found.bound, ""),
        ],
        note: String::new(),
    };
    let width = 8.0 / BINS as f64;
    let middle = |k: usize| -4.0 + (k as f64 + 0.5) * width;
    let bars = found.histogram.iter().enumerate();
    let bars: Vec<[f64; 2]> = bars.map(|(k, part)| [middle(k), part / width]).collect();
    let normal = (0..=100).map(|k| {
        let z = -4.0 + 0.08 * f64::from(k);
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        [z, density]
    });
    let histogram = Plot {
        title: format!("{name}: histogram"),
        x: axis("innovation ν/√s (–)"),
        y: axis("density (–)"),
        marks: vec![
            Mark::new("estimate", "innovations", Shape::Bars(bars, width)),
            Mark::new("truth", "normal", Shape::Line(normal.collect())),
        ],
        note: String::new(),
    };
    let means = found.parts.iter().map(|(t, mean, _)| [*t, mean.max(1e-12)]);
    let band = found.parts.iter().map(|(t, _, samples)| {
        let [low, high] = Innovations::band(*samples);
        [*t, low.max(1e-12), high]
    });
    let consistency = Plot {
        title: format!("{name}: consistency (NIS)"),
        x: axis(&labelled("time", time_unit)),
        y: Axis {
            log: true,
            ..axis("mean ν²/s (–)")
        },
        marks: vec![
            Mark::new("data", "95 % if consistent", Shape::Band(band.collect())),
            Mark::new("estimate", "innovations", Shape::Line(means.collect())),
            bound(1.0, ""),
        ],
        note: String::new(),
    };
    let mut plots = vec![white, histogram, consistency];
    for Against { input, unit, bins } in &found.inputs {
        let band = bins
            .iter()
            .map(|[u, mean, std]| [*u, mean - std, mean + std]);
        let means = bins.iter().map(|[u, mean, _]| [*u, *mean]);
        plots.push(Plot {
            title: format!("{name}: what is left, against {input}"),
            x: axis(&labelled(input, unit)),
            y: axis("innovation ν/√s (–)"),
            marks: vec![
                Mark::new("estimate", "± std", Shape::Band(band.collect())),
                Mark::new("estimate", "mean", Shape::Line(means.collect())),
                bound(0.0, ""),
            ],
            note: String::new(),
        });
    }
    plots
}

/// Tests of what is left of the records.
pub fn tests(shown: &Fit) -> String {
    let facts = &shown.facts;
    if facts.residuals.is_empty() {
        return String::new();
    }
    let several = facts
        .residuals
        .iter()
        .any(|t| t.file != facts.residuals[0].file);
    let mut rows = vec![cells([
        "channel",
        "test",
        "p",
        "p, of all tests",
        "of the variance",
        "",
    ])];
    for test in &facts.residuals {
        let file = if several {
            format!(" ({})", test.file)
        } else {
            String::new()
        };
        let signal = test.signal.as_deref().unwrap_or_default();
        let title = match test.test {
            Test::Whiteness => "whiteness".into(),
            Test::Normality => "normality".into(),
            Test::Input => format!("correlation with {signal}"),
            Test::State => format!("dependence on {signal}"),
        };
        let shown = |p: f64| words::p_value(p).trim_start_matches("= ").to_string();
        rows.push(cells([
            &format!("{}{file}", test.channel),
            &title,
            &shown(test.p),
            &shown(test.p_adjusted),
            &test
                .explained
                .map_or(String::new(), |e| text::percent(e.max(1e-6))),
            &if test.is_rejected() {
                test.words()
            } else {
                String::new()
            },
        ]));
    }
    let caption = format!(
        "Tests of what the free run leaves of the records: p is how often noise alone looks like that, counted for correlated samples; p of all tests counts their number (Holm). Below {SIGNIFICANCE_LEVEL} it is not noise alone; the part of the variance says whether that matters."
    );
    table(&caption, &rows)
}

fn cells<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(escape).to_vec()
}
