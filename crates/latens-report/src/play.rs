//! What the page needs to play with a learned model: where it starts, what drives it, how far its constants
//! may go, draws of its parameters for bands, and what training has seen.
//!
//! The model itself is the exported JavaScript ([`latens_export::script`]), the same as in a file of its own.

use latens::fit::{Fit, Track};
use latens::model::{Hold, Unknown};
use serde_json::{Value, json};

use crate::base64;

/// Bytes that the inputs of records may have before they become text.
const DRIVING_BYTES: usize = 160_000;
/// Bytes of the draws, likewise.
const DRAWS_BYTES: usize = 150_000;
/// Draws at the least, however many parameters there are.
const FEWEST_DRAWS: usize = 12;
/// No deviation is larger than so many ranges, as in predictions.
const MOST_RANGES: f64 = 2.0;
/// How far a slider goes beyond what was met, as a part of that.
const SLIDER_MARGIN: f64 = 0.3;

/// The data of the section; `None` where the fit has no record to begin with, its inputs are held in
/// different ways, or each group has constants of its own.
pub fn json(shown: &Fit) -> Option<Value> {
    let records = driving(shown);
    let mut pairs = shown.model.hold.windows(2);
    // what the exported code cannot say is not played
    let grouped = !shown.model.groups().is_empty();
    if grouped || records.is_empty() || pairs.any(|pair| pair[0] != pair[1]) {
        return None;
    }
    let (model, facts) = (&shown.model, &shown.facts);
    let inflation = facts.variance_inflation;
    let process = facts.noise.process.iter().map(|q| q * inflation);
    let widening = facts.proof.map_or(1.0, |p| p.widening);
    let hidden = model.hidden();
    let states = (0..model.states.len()).map(|i| {
        let met = shown.tracks.iter().flat_map(|t| t.smoothed.column(i));
        json!({
            "kind": if hidden.contains(&i) { "hidden state" } else { "measured state" },
            "reach": reach(met),
            "most": MOST_RANGES * 2.0 * facts.scales.start_deviation(i),
        })
    });
    let outputs = facts.scales.range.iter().map(|range| MOST_RANGES * range);
    let inputs = (0..model.inputs.len()).map(|k| {
        let met = shown
            .tracks
            .iter()
            .flat_map(move |t| t.record.input_column(k));
        json!({ "reach": reach(met) })
    });
    let constants = facts.unknowns.iter().zip(&model.unknowns);
    let constants = constants.map(|(constant, unknown)| {
        json!({
            "reach": slider(unknown, constant.value, constant.std),
            "std": constant.std,
        })
    });
    let indirect = model.system.direct().iter().map(Option::is_none);
    let (draws, kept) = draws(shown);
    Some(json!({
        "records": records,
        "straight": model.hold.contains(&Hold::FirstOrder),
        "states": states.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
        "indirect": indirect.collect::<Vec<_>>(),
        "inputs": inputs.collect::<Vec<_>>(),
        "constants": constants.collect::<Vec<_>>(),
        "process": process.collect::<Vec<f64>>(),
        "widening": widening,
        "draws": draws,
        "kept": kept,
        "regions": regions(shown),
    }))
}

/// The records that can drive it: those that were learned from first, then those that chose.
fn driving(shown: &Fit) -> Vec<Value> {
    let width = 8 * (1 + shown.model.inputs.len());
    let mut left = DRIVING_BYTES / width;
    let mut found = vec![];
    for track in &shown.tracks {
        let samples = track.record.len().min(left);
        let start = track.free_run.row(0);
        if samples < 2 || start.iter().any(|x| !x.is_finite()) {
            continue;
        }
        left -= samples;
        found.push(record(shown, track, samples));
    }
    found
}

fn record(shown: &Fit, track: &Track, samples: usize) -> Value {
    let facts = shown.facts_of(track);
    let inputs = (0..samples).flat_map(|k| track.record.input(k).to_vec());
    json!({
        "file": facts.file,
        "role": facts.role,
        "samples": samples,
        "whole": samples == track.record.len(),
        "start": track.free_run.row(0),
        "time": base64::double(track.record.time[..samples].iter().copied()),
        "inputs": base64::double(inputs),
    })
}

/// From where to where values went, and a little beyond.
fn reach(met: impl Iterator<Item = f64>) -> [f64; 2] {
    let ends = met.filter(|v| v.is_finite());
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    if low > high {
        return [0.0, 1.0];
    }
    let size = (high - low).max(0.1 * high.abs().max(low.abs()));
    let margin = SLIDER_MARGIN * if size > 0.0 { size } else { 1.0 };
    [low - margin, high + margin]
}

/// From where to where a constant is worth trying: what the data allow, the guess, and as much again as it
/// is large; never beyond its bounds.
fn slider(unknown: &Unknown, value: f64, std: f64) -> [f64; 2] {
    const SLIDER_DEVIATIONS: f64 = 4.0;
    const SLIDER_PART: f64 = 0.5;
    let half_width = (SLIDER_DEVIATIONS * std)
        .min(10.0 * value.abs())
        .max(SLIDER_PART * value.abs());
    let half_width = if half_width > 0.0 {
        half_width
    } else {
        unknown.scale
    };
    let (low, high) = (
        (value - half_width).min(unknown.guess),
        (value + half_width).max(unknown.guess),
    );
    let least = if unknown.positive {
        0.05 * value.min(unknown.guess).abs()
    } else {
        f64::NEG_INFINITY
    };
    [low.max(least).max(unknown.min), high.min(unknown.max)]
}

/// How each draw moves constants and weights, one draw after the other, and how many there are.
fn draws(shown: &Fit) -> (String, usize) {
    let (theta, unknowns) = (&shown.theta, &shown.model.unknowns);
    let most = (DRAWS_BYTES / (8 * theta.len().max(1))).max(FEWEST_DRAWS);
    let kept = shown.draws.len().min(most);
    let moved = shown.draws[..kept].iter().flat_map(|draw| {
        let entries = draw.iter().zip(theta).enumerate();
        entries.map(|(i, (change, at))| match unknowns.get(i) {
            // the model in the page has constants, and not what they are made of
            Some(unknown) => unknown.slope(*at) * change,
            None => *change,
        })
    });
    // what the data determine is what is left of large parts that cancel: all digits count
    (base64::double(moved), kept)
}

/// What each network was asked in training, in its own scale.
fn regions(shown: &Fit) -> Vec<Value> {
    let networks = shown.model.system.networks().iter();
    let pairs = networks.zip(&shown.facts.regions);
    pairs
        .map(|(network, region)| {
            json!({
                "center": network.scaling.center,
                "scale": network.scaling.scale,
                "reach": region.reach(),
                "points": base64::single(region.points.iter().flatten().copied()),
            })
        })
        .collect()
}
