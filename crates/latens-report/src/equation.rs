//! What the networks have learned: their values at the samples of the records, and along slices through
//! a sample, with bands, and what they would have to be for the equations to be the true ones.

use latens::model::Model;

use crate::evaluator::Evaluator;
use crate::truth::{Moment, Truth};
use latens::fit::{Fit, Track};

/// Points of a slice.
const POINTS: usize = 81;
/// Samples looked at along all records.
const SAMPLES: usize = 4000;
/// Bins of the density.
const BINS: usize = 40;
/// Samples of the records that are shown.
const SHOWN_SAMPLES: usize = 400;
/// Samples through which a slice may go.
const CANDIDATE_SAMPLES: usize = 30;

/// One output of a network.
pub struct Learned {
    pub network: String,
    pub output: String,
    pub arguments: Vec<Argument>,
    /// Unit of the output, where it drives one state as it is.
    pub unit: Option<String>,
    /// At samples of the records.
    pub along: Vec<Along>,
    pub slices: Vec<Slice>,
}

/// A network's output at a sample of a record.
pub struct Along {
    /// What the network was asked.
    pub arguments: Vec<f64>,
    pub value: f64,
    /// Standard deviation by the uncertainty of θ.
    pub std: f64,
    /// What it would have to be, where that is known.
    pub truth: Option<f64>,
}

/// What a network is called with.
#[derive(Clone)]
pub struct Argument {
    /// As it stands in the model file.
    pub text: String,
    /// Where it is a state or an input as it is.
    pub unit: Option<String>,
}

/// A network along one argument, the others held at a sample of the records.
pub struct Slice {
    pub argument: usize,
    /// Value of each argument at that sample.
    pub held: Vec<f64>,
    /// When that was.
    pub time: f64,
    pub points: Vec<SlicePoint>,
    /// How many samples lie in each of equal parts of the slice's range.
    pub density: Vec<usize>,
}

/// A network at one point.
pub struct SlicePoint {
    pub at: f64,
    pub value: f64,
    /// Standard deviation by the uncertainty of θ.
    pub std: f64,
    /// Whether training has visited its like.
    pub visited: bool,
    pub truth: Option<f64>,
}

/// A sample of a record at which networks are looked at.
struct Sample<'a> {
    track: &'a Track,
    k: usize,
    /// Arguments of each network's first call.
    arguments: Vec<Vec<f64>>,
}

impl Sample<'_> {
    fn state(&self) -> &[f64] {
        self.track.smoothed.row(self.k)
    }

    fn time(&self) -> f64 {
        self.track.record.time[self.k]
    }

    fn input(&self) -> &[f64] {
        self.track.record.input(self.k)
    }

    fn moment(&self) -> Moment<'_> {
        Moment {
            time: self.time(),
            state: self.state(),
            input: self.input(),
        }
    }
}

/// All outputs of all networks.
pub fn learned(shown: &Fit) -> Vec<Learned> {
    let model = &shown.model;
    let samples = samples(shown);
    let truth = Truth::new(shown);
    let networks = model.system.networks();
    let mut found = vec![];
    for (place, network) in networks.iter().enumerate() {
        let units = model.units(place);
        let arguments = model.arguments(place).into_iter().zip(units.arguments);
        let arguments = arguments.map(|(text, unit)| Argument { text, unit });
        let arguments: Vec<Argument> = arguments.collect();
        let slices = slices(shown, place, &arguments, &samples, truth.as_ref());
        let along = along(shown, place, &samples, truth.as_ref());
        for (k, (slices, along)) in slices.into_iter().zip(along).enumerate() {
            found.push(Learned {
                network: network.name.clone(),
                output: match network.outputs.len() {
                    1 => network.name.clone(),
                    _ => format!("{}.{}", network.name, network.outputs[k]),
                },
                arguments: arguments.clone(),
                unit: units.outputs[k].clone(),
                along,
                slices,
            });
        }
    }
    found
}

fn samples(shown: &Fit) -> Vec<Sample<'_>> {
    let system = &shown.model.system;
    let mut ws = system.workspace();
    let zero = vec![0.0; system.parameters()];
    let tracks = shown.trained();
    let all: usize = tracks.iter().map(|t| t.record.len()).sum();
    let every = all.div_ceil(SAMPLES).max(1);
    let mut found = vec![];
    for track in tracks {
        for k in (0..track.record.len()).step_by(every) {
            let state = track.smoothed.row(k);
            if state.iter().any(|x| !x.is_finite()) {
                continue;
            }
            let mut arguments = vec![vec![]; system.networks().len()];
            let at = track.record.point(k, state, &zero);
            system.visit_arguments(&mut ws, at, |network, values| {
                if arguments[network].is_empty() {
                    arguments[network] = values.to_vec();
                }
            });
            found.push(Sample {
                track,
                k,
                arguments,
            });
        }
    }
    found
}

/// A state or an input by its name: its place among both.
pub fn quantity(model: &Model, text: &str) -> Option<usize> {
    let states = model.states.iter().map(|s| &s.name);
    let inputs = model.inputs.iter().map(|u| &u.name);
    states.chain(inputs).position(|name| name == text)
}

/// The slices of each output of a network.
fn slices(
    shown: &Fit,
    place: usize,
    arguments: &[Argument],
    samples: &[Sample],
    truth: Option<&Truth>,
) -> Vec<Vec<Slice>> {
    let run = &shown;
    let network = &run.model.system.networks()[place];
    let mut found: Vec<Vec<Slice>> = network.outputs.iter().map(|_| vec![]).collect();
    let mut evaluator = Evaluator::new(run, place);
    let candidates = candidates(samples, place, &network.scaling.scale);
    for j in 0..network.arguments {
        let met = || samples.iter().map(|s| s.arguments[place][j]);
        let (low, high) = met().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        let size = high - low;
        if size <= 1e-9 * low.abs().max(high.abs()) {
            continue;
        }
        let at = |p: usize| low + size * p as f64 / (POINTS - 1) as f64;
        let Some(middle) = longest(&candidates, |sample| {
            let mut values = sample.arguments[place].clone();
            (0..POINTS)
                .step_by(4)
                .filter(|p| {
                    values[j] = at(*p);
                    evaluator.visited(&values)
                })
                .count()
        }) else {
            continue;
        };
        let held = &middle.arguments[place];
        let mut density = vec![0; BINS];
        for v in met() {
            density[(((v - low) / size * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        let mut points: Vec<Vec<SlicePoint>> = network.outputs.iter().map(|_| vec![]).collect();
        for p in 0..POINTS {
            let at = at(p);
            let mut values = held.clone();
            values[j] = at;
            let visited = evaluator.visited(&values);
            let outputs = evaluator.at(&values);
            let true_values =
                truth.and_then(|t| t.on_slice(middle.moment(), place, arguments, &values));
            for (k, points) in points.iter_mut().enumerate() {
                let (value, std) = outputs[k];
                points.push(SlicePoint {
                    at,
                    value,
                    std,
                    visited,
                    truth: true_values.as_ref().map(|t| t[k]),
                });
            }
        }
        for (found, points) in found.iter_mut().zip(points) {
            found.push(Slice {
                argument: j,
                held: held.clone(),
                time: middle.time(),
                points,
                density: density.clone(),
            });
        }
    }
    found
}

/// Samples through which slices may go, those near the median of all first.
fn candidates<'s, 'a>(
    samples: &'s [Sample<'a>],
    place: usize,
    scale: &[f64],
) -> Vec<&'s Sample<'a>> {
    let median = |j: usize| {
        let mut all: Vec<f64> = samples.iter().map(|s| s.arguments[place][j]).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let medians: Vec<f64> = (0..scale.len()).map(median).collect();
    let distance = |sample: &Sample| -> f64 {
        let values = sample.arguments[place].iter().zip(&medians).zip(scale);
        values.map(|((a, m), s)| ((a - m) / s).powi(2)).sum()
    };
    let nearest = samples
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let every = samples.len().div_ceil(CANDIDATE_SAMPLES).max(1);
    let mut found: Vec<&Sample> = samples.iter().step_by(every).chain(nearest).collect();
    found.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    found
}

/// The first of those along which most has been visited.
fn longest<'s, 'a>(
    candidates: &[&'s Sample<'a>],
    mut visited: impl FnMut(&Sample) -> usize,
) -> Option<&'s Sample<'a>> {
    let mut best: Option<(usize, &Sample)> = None;
    for sample in candidates {
        let found = visited(sample);
        if best.is_none_or(|(most, _)| found > most) {
            best = Some((found, sample));
        }
    }
    best.map(|(_, sample)| sample)
}

/// Each output of a network at samples of the records.
fn along(shown: &Fit, place: usize, samples: &[Sample], truth: Option<&Truth>) -> Vec<Vec<Along>> {
    let network = &shown.model.system.networks()[place];
    let mut evaluator = Evaluator::new(shown, place);
    let mut found: Vec<Vec<Along>> = network.outputs.iter().map(|_| vec![]).collect();
    for sample in samples
        .iter()
        .step_by(samples.len().div_ceil(SHOWN_SAMPLES).max(1))
    {
        let actual = truth.and_then(|t| t.at(sample.moment(), place));
        let outputs = evaluator.at(&sample.arguments[place]);
        for (k, (found, (value, std))) in found.iter_mut().zip(outputs).enumerate() {
            found.push(Along {
                arguments: sample.arguments[place].clone(),
                value,
                std,
                truth: actual.as_ref().map(|a| a[k]),
            });
        }
    }
    found
}
