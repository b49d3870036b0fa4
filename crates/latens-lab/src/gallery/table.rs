//! The gallery's table, for people (`table.txt`), for programs (`results.json`) and in between
//! (`table.csv`), and what it comes to.

use std::path::Path;

use latens::Error;
use latens::look::RESOLUTION;
use latens::text::{self, Side};
use serde_json::{Value, json};

use super::cell::{Cell, Coverage};
use super::problems::Variant;
use crate::files::{write_file, write_json};

/// Ratios that count as no worse, and that are never to be.
const GOOD_RATIO: f64 = 1.1;
const BAD_RATIO: f64 = 2.0;
/// What a ratio counts at most in a mean.
const MOST_RATIO: f64 = 100.0;
/// Less than this in the bands needs a warning.
const POOR_COVERAGE: f64 = 0.8;

/// Error of Latens over that of least squares on the measured channels. Errors below the resolution,
/// 0.01 % of the range, count as that: nobody tells them apart. Infinite where Latens alone is lost.
fn ratio(cell: &Cell) -> Option<f64> {
    let rival = cell.least_squares.as_ref()?;
    let error = cell.latens.as_ref().and_then(|l| l.errors.measured);
    match (error, rival.errors.measured) {
        (Some(error), Some(other)) => Some(error.max(RESOLUTION) / other.max(RESOLUTION)),
        (Some(_), None) => Some(0.0),
        (None, Some(_)) => Some(f64::INFINITY),
        (None, None) => None,
    }
}

fn own_error(cell: &Cell) -> Option<f64> {
    cell.latens.as_ref()?.errors.measured
}

fn other_error(cell: &Cell) -> Option<f64> {
    cell.least_squares.as_ref()?.errors.measured
}

fn shown_ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "–".into(),
        Some(r) if r.is_infinite() => "lost".into(),
        Some(0.0) => "alone".into(),
        Some(r) if r >= 1000.0 => format!("{r:.0e}"),
        Some(r) => format!("{r:.2}"),
    }
}

fn shown_part(coverage: Coverage) -> String {
    coverage
        .part()
        .map_or("–".into(), |part| format!("{:.0} %", 100.0 * part))
}

fn shown_error(error: Option<f64>) -> String {
    error.map_or("lost".into(), |e| format!("{e:.1e}"))
}

/// A cell in a line, as progress.
pub fn line(cell: &Cell) -> String {
    let outcome = match (&cell.latens, &cell.failure) {
        (Some(result), _) => shown_error(result.errors.measured),
        (None, why) => format!("failed, {}", why.as_deref().unwrap_or("unknown why")),
    };
    let other = match &cell.least_squares {
        None => String::new(),
        Some(rival) => format!(
            ", least squares {} in {}",
            shown_error(rival.errors.measured),
            text::seconds(rival.seconds)
        ),
    };
    format!(
        "{}, {} %, {}: {outcome} in {}{other}",
        cell.problem,
        cell.noise,
        cell.variant.name(),
        text::seconds(cell.seconds)
    )
}

const HEAD_CELLS: [&str; 12] = [
    "problem",
    "noise",
    "model",
    "seed",
    "error",
    "least squares",
    "ratio",
    "states",
    "bands",
    "hidden",
    "z",
    "time",
];

fn row(cell: &Cell) -> Vec<String> {
    let result = cell.latens.as_ref();
    let compared = cell.least_squares.is_some();
    let z = cell.z().map_or("–".into(), |z| format!("{z:.1}"));
    let part = |coverage: Option<Coverage>| shown_part(coverage.unwrap_or_default());
    vec![
        cell.problem.clone(),
        format!("{} %", cell.noise),
        cell.variant.name().into(),
        cell.seed.to_string(),
        shown_error(own_error(cell)),
        if compared {
            shown_error(other_error(cell))
        } else {
            "–".into()
        },
        shown_ratio(ratio(cell)),
        shown_error(result.and_then(|o| o.errors.states)),
        part(result.map(|o| o.bands_measured)) + if cell.warned() { " !" } else { "" },
        part(result.map(|o| o.bands_hidden)),
        z,
        text::seconds(cell.seconds),
    ]
}

const LEGEND: &str = "\
error: free run over the held-out records against the truth without noise, measured channels (root mean square over range)
ratio: that of Latens over that of least squares on the free run, errors below 1e-4 counted as that;
  lost: Latens has no finite run, alone: least squares has none
states: the same error over all states
bands, hidden: true values inside of the 95 % bands, measured channels and hidden states; ! has a warning
z: root mean square of (estimate − truth)/deviation over the constants of the right model
time: of the processor, one thread
";

/// What the table comes to, over some of its cells.
struct Sum {
    cells: usize,
    compared: usize,
    good: usize,
    bad: usize,
    worst: Option<(f64, String)>,
    /// Geometric mean of the ratios, each counted between 1/100 and 100.
    middle: Option<f64>,
    measured: Coverage,
    hidden: Coverage,
    z: Option<f64>,
    /// Cells whose bands hold less than [`POOR_COVERAGE`] without a warning.
    silent: Vec<String>,
    lost: usize,
    seconds: f64,
    other_seconds: f64,
}

fn sum<'c>(cells: impl Iterator<Item = &'c Cell> + Clone) -> Sum {
    let named = |c: &Cell| format!("{} {} % {}", c.problem, c.noise, c.variant.name());
    let ratios: Vec<(f64, String)> = cells
        .clone()
        .filter_map(|c| Some((ratio(c)?, named(c))))
        .collect();
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let logs: Vec<f64> = ratios
        .iter()
        .map(|r| r.0.clamp(1.0 / MOST_RATIO, MOST_RATIO).ln())
        .collect();
    // without noise a deviation is that of the resolution, not of the constants
    let noisy = cells.clone().filter(|c| c.noise > 0.0);
    let squares: Vec<f64> = noisy.filter_map(|c| Some(c.z()?.powi(2))).collect();
    let pooled = |coverage: fn(&super::cell::LatensResult) -> Coverage| {
        let results = cells.clone().filter_map(|c| c.latens.as_ref());
        results.fold(Coverage::default(), |sum, o| sum.and(coverage(o)))
    };
    let silent = |c: &&Cell| c.coverage().part().is_some_and(|p| p < POOR_COVERAGE) && !c.warned();
    Sum {
        cells: cells.clone().count(),
        compared: ratios.len(),
        good: ratios.iter().filter(|r| r.0 <= GOOD_RATIO).count(),
        bad: ratios.iter().filter(|r| r.0 > BAD_RATIO).count(),
        worst: ratios.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)),
        middle: mean(&logs).map(f64::exp),
        measured: pooled(|o| o.bands_measured),
        hidden: pooled(|o| o.bands_hidden),
        z: mean(&squares).map(f64::sqrt),
        silent: cells.clone().filter(silent).map(named).collect(),
        lost: cells.clone().filter(|c| own_error(c).is_none()).count(),
        seconds: cells.clone().map(|c| c.seconds).sum(),
        other_seconds: cells
            .filter_map(|c| c.least_squares.as_ref())
            .map(|r| r.seconds)
            .sum(),
    }
}

impl Sum {
    fn sentences(&self) -> String {
        let mut out = String::new();
        if self.compared > 0 {
            let part = 100.0 * self.good as f64 / self.compared as f64;
            out += &format!(
                "  at most {GOOD_RATIO} times least squares on {} of {} cells ({part:.0} %), more than {BAD_RATIO} times on {}; geometric mean {:.2} (each between 0.01 and 100)\n",
                self.good,
                self.compared,
                self.bad,
                self.middle.unwrap_or(f64::NAN)
            );
            if let Some((ratio, cell)) = &self.worst {
                out += &format!("  worst: {} on {cell}\n", shown_ratio(Some(*ratio)));
            }
        }
        out += &format!(
            "  inside of the 95 % bands: {} together, measured channels {}, hidden states {}\n",
            shown_part(self.measured.and(self.hidden)),
            shown_part(self.measured),
            shown_part(self.hidden)
        );
        if let Some(z) = self.z {
            out += &format!("  constants of right models with noise: rms of z {z:.2}\n");
        }
        let none = "none".to_string();
        let silent = if self.silent.is_empty() {
            none
        } else {
            format!("{}: {}", self.silent.len(), self.silent.join(", "))
        };
        out += &format!("  less than 80 % in the bands without a warning: {silent}\n");
        if self.lost > 0 {
            out += &format!("  lost: {}\n", text::count(self.lost, "cell"));
        }
        out += &format!(
            "  time of the processor: {}, least squares {}\n",
            text::seconds(self.seconds),
            text::seconds(self.other_seconds)
        );
        out
    }

    fn json(&self) -> Value {
        let worst = self.worst.as_ref();
        json!({
            "cells": self.cells,
            "compared": self.compared,
            "within_1.1": self.good,
            "above_2": self.bad,
            "geometric_mean_ratio": self.middle,
            "worst_ratio": worst.map(|w| w.0).filter(|r| r.is_finite()),
            "worst_cell": worst.map(|w| &w.1),
            "coverage": self.measured.and(self.hidden).part(),
            "coverage_measured": self.measured.part(),
            "coverage_hidden": self.hidden.part(),
            "z_rms": self.z,
            "poor_bands_without_warning": self.silent,
            "lost": self.lost,
            "seconds": self.seconds,
            "least_squares_seconds": self.other_seconds,
        })
    }
}

/// All cells, and each variant by itself.
fn sums(cells: &[Cell]) -> Vec<(&'static str, Sum)> {
    let mut sums = vec![("all", sum(cells.iter()))];
    for variant in Variant::ALL {
        let of_variant = cells.iter().filter(|c| c.variant == variant);
        if of_variant.clone().next().is_some() {
            sums.push((variant.name(), sum(of_variant)));
        }
    }
    sums
}

/// All of it, for programs.
pub fn json(cells: &[Cell]) -> Value {
    let sums = sums(cells)
        .into_iter()
        .map(|(name, sum)| (name.to_string(), sum.json()));
    let cells = cells.iter().map(|cell| {
        let mut value = json!(cell);
        value["ratio"] = json!(ratio(cell).filter(|r| r.is_finite()));
        value
    });
    json!({ "summary": sums.collect::<serde_json::Map<_, _>>(), "cells": cells.collect::<Vec<_>>() })
}

/// Writes `table.txt`, `table.csv` and `results.json`; gives the first.
pub fn write(cells: &[Cell], folder: &Path) -> Result<String, Error> {
    let mut rows = vec![HEAD_CELLS.map(String::from).to_vec()];
    rows.extend(cells.iter().map(row));
    let mut sides = vec![Side::Left; 3];
    sides.resize(HEAD_CELLS.len(), Side::Right);
    let mut out = text::table(0, &sides, &rows);
    out += &format!("\n{LEGEND}");
    for (name, sum) in sums(cells) {
        out += &format!(
            "\n{name}, {}\n{}",
            text::count(sum.cells, "cell"),
            sum.sentences()
        );
    }
    write_file(&folder.join("table.txt"), &out)?;
    write_file(&folder.join("table.csv"), &csv(cells))?;
    write_json(&folder.join("results.json"), &json(cells))?;
    Ok(out)
}

fn csv(cells: &[Cell]) -> String {
    let mut out = String::from(
        "problem,half,variant,noise_percent,seed,error,least_squares,ratio,states,least_squares_states,coverage_measured,coverage_hidden,z_rms,warnings,seconds,least_squares_seconds\n",
    );
    let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.4e}"));
    for cell in cells {
        let (result, rival) = (cell.latens.as_ref(), cell.least_squares.as_ref());
        let half = json!(cell.half);
        let columns = [
            cell.problem.clone(),
            half.as_str().unwrap_or_default().into(),
            cell.variant.name().into(),
            cell.noise.to_string(),
            cell.seed.to_string(),
            number(own_error(cell)),
            number(other_error(cell)),
            number(ratio(cell)),
            number(result.and_then(|o| o.errors.states)),
            number(rival.and_then(|r| r.errors.states)),
            number(result.and_then(|o| o.bands_measured.part())),
            number(result.and_then(|o| o.bands_hidden.part())),
            number(cell.z()),
            result.map_or(0, |o| o.warnings.len()).to_string(),
            format!("{:.2}", cell.seconds),
            rival.map_or(String::new(), |r| format!("{:.2}", r.seconds)),
        ];
        out += &(columns.join(",") + "\n");
    }
    out
}
