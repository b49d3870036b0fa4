//! What the networks have learned: their values along slices through the region that the records
//! visited, with bands, and what they would have to be for the equations to be the true ones.
//!
//! The truth of a network follows from the true equations where the network's outputs enter the
//! equations linearly and each network is called once: of x' = g(x) + C(x) o, o is what makes x' true,
//! with the learned constants in g and C.

use latens::model::{Model, Point};

use crate::evaluator::Evaluator;
use latens::fit::{Fit, Track};

/// Points of a slice.
const POINTS: usize = 81;
/// Samples looked at along all records.
const SAMPLES: usize = 4000;
/// Bins of the density.
const BINS: usize = 40;
/// Linear to rounding.
const LINEAR: f64 = 1e-6;

/// One output of a network.
pub struct Learned {
    pub network: String,
    pub output: String,
    pub arguments: Vec<Argument>,
    /// Unit of the output, where it drives one state as it is.
    pub unit: Option<String>,
    /// Learned against true, at samples of the records; empty where the truth is not known.
    pub along: Vec<[f64; 2]>,
    pub slices: Vec<Slice>,
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
}

/// All outputs of all networks.
pub fn learned(shown: &Fit) -> Vec<Learned> {
    let model = &shown.model;
    let samples = samples(shown);
    let truth = Truth::new(shown);
    let networks = model.system.networks();
    let mut found = vec![];
    for (place, network) in networks.iter().enumerate() {
        let arguments = arguments(model, place);
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
                unit: unit(shown, place, k, &samples),
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

/// A state or an input by its name: its place among both, and its unit.
fn quantity(model: &Model, text: &str) -> Option<(usize, String)> {
    let states = model.states.iter().map(|s| (&s.name, &s.unit));
    let inputs = model.inputs.iter().map(|u| (&u.name, &u.unit));
    let mut all = states.chain(inputs).enumerate();
    let (place, (_, unit)) = all.find(|(_, (name, _))| *name == text)?;
    Some((place, unit.clone()))
}

fn arguments(model: &Model, network: usize) -> Vec<Argument> {
    let texts = model.arguments(network).into_iter();
    texts
        .map(|text| Argument {
            unit: quantity(model, &text).map(|(_, unit)| unit),
            text,
        })
        .collect()
}

/// The unit of an output that is the derivative of one state, whatever the constants are.
fn unit(shown: &Fit, network: usize, k: usize, samples: &[Sample]) -> Option<String> {
    let model = &shown.model;
    let state = samples.first()?.state();
    let guesses = vec![0.0; shown.theta.len()];
    let driven = |theta: &[f64]| model.system.rows_driven(network, k, state, theta);
    let [learned, guessed] = [driven(&shown.theta), driven(&guesses)];
    let (&[(row, factor)], &[(_, at_guess)]) = (learned.as_slice(), guessed.as_slice()) else {
        return None;
    };
    let (state, time) = (&model.states[row].unit, &model.time_unit);
    // a constant that happens to be guessed as 1 has a unit of its own
    let as_it_is = factor.abs() == 1.0 && at_guess.abs() == 1.0;
    as_it_is.then(|| match (state.as_str(), time.as_str()) {
        (state, "") => state.into(),
        ("", time) => format!("1/{time}"),
        (state, time) => match state.strip_suffix(&format!("/{time}")) {
            Some(length) => format!("{length}/{time}²"),
            None => format!("{state}/{time}"),
        },
    })
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
    let Some(middle) = middle(samples, place, &network.scaling.scale) else {
        return found;
    };
    let held = &middle.arguments[place];
    let mut evaluator = Evaluator::new(run, place);
    for j in 0..network.arguments {
        let met = || samples.iter().map(|s| s.arguments[place][j]);
        let (low, high) = met().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        let size = high - low;
        if size <= 1e-9 * low.abs().max(high.abs()) {
            continue;
        }
        let mut density = vec![0; BINS];
        for v in met() {
            density[(((v - low) / size * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        let mut points: Vec<Vec<SlicePoint>> = network.outputs.iter().map(|_| vec![]).collect();
        for p in 0..POINTS {
            let at = low + size * p as f64 / (POINTS - 1) as f64;
            let mut values = held.clone();
            values[j] = at;
            let visited = evaluator.visited(&values);
            let outputs = evaluator.at(&values);
            let true_values = truth.and_then(|t| t.on_slice(middle, place, arguments, &values));
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
                points,
                density: density.clone(),
            });
        }
    }
    found
}

/// The sample whose arguments are nearest to the median of all.
fn middle<'s, 'a>(
    samples: &'s [Sample<'a>],
    place: usize,
    scale: &[f64],
) -> Option<&'s Sample<'a>> {
    let median = |j: usize| {
        let mut all: Vec<f64> = samples.iter().map(|s| s.arguments[place][j]).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let medians: Vec<f64> = (0..scale.len()).map(median).collect();
    let distance = |sample: &&Sample| -> f64 {
        let each = sample.arguments[place].iter().zip(&medians).zip(scale);
        each.map(|((a, m), s)| ((a - m) / s).powi(2)).sum()
    };
    let nearest = |a: &&Sample, b: &&Sample| distance(a).total_cmp(&distance(b));
    samples.iter().min_by(nearest)
}

/// Learned against true along the records, for each output of a network.
fn along(
    shown: &Fit,
    place: usize,
    samples: &[Sample],
    truth: Option<&Truth>,
) -> Vec<Vec<[f64; 2]>> {
    const SHOWN: usize = 400;
    let run = &shown;
    let network = &run.model.system.networks()[place];
    let weights = &run.theta[run.model.system.weight_ranges()[place].clone()];
    let mut found: Vec<Vec<[f64; 2]>> = network.outputs.iter().map(|_| vec![]).collect();
    let Some(truth) = truth else {
        return found;
    };
    let mut trace = network.trace();
    for sample in samples.iter().step_by(samples.len().div_ceil(SHOWN).max(1)) {
        let at = (sample.time(), sample.state(), sample.input());
        let Some(actual) = truth.at(at, place) else {
            continue;
        };
        for (i, v) in sample.arguments[place].iter().enumerate() {
            network.set_argument(&mut trace, i, *v);
        }
        network.evaluate(weights, &mut trace);
        for (k, found) in found.iter_mut().enumerate() {
            found.push([actual[k], trace.output[k]]);
        }
    }
    found
}

/// What the networks would have to be.
struct Truth<'a> {
    shown: &'a Fit,
    /// θ with each network's outputs at zero, and the entry of θ that moves each output alone.
    silent: Vec<f64>,
    /// Network, and that entry, and by how much it moves the output.
    outputs: Vec<(usize, usize, f64)>,
}

impl<'a> Truth<'a> {
    /// `None` where the true equations are not known or a network is called more than once.
    fn new(shown: &'a Fit) -> Option<Self> {
        let system = &shown.model.system;
        shown.model.truth.as_ref()?;
        let mut calls = vec![0; system.networks().len()];
        let (state, input) = (vec![0.0; system.states()], vec![0.0; system.inputs()]);
        let zero = vec![0.0; system.parameters()];
        let at = Point {
            time: 0.0,
            state: &state,
            input: &input,
            theta: &zero,
        };
        system.visit_arguments(&mut system.workspace(), at, |network, _| {
            calls[network] += 1;
        });
        if calls.iter().any(|c| *c != 1) {
            return None;
        }
        let mut silent = shown.theta.clone();
        let mut outputs = vec![];
        for (place, range) in system.weight_ranges().into_iter().enumerate() {
            silent[range.clone()].fill(0.0);
            let network = &system.networks()[place];
            // with all else at zero an output is its last bias
            let blocks = network.blocks();
            let bias = blocks
                .iter()
                .rposition(|(name, ..)| name.ends_with("bias"))?;
            let before: usize = blocks[..bias].iter().map(|(_, r, c)| r * c).sum();
            for (k, scale) in network.scaling.output.iter().enumerate() {
                outputs.push((place, range.start + before + k, *scale));
            }
        }
        Some(Self {
            shown,
            silent,
            outputs,
        })
    }

    /// A network's outputs at a time, state and input.
    fn at(&self, (time, state, input): (f64, &[f64], &[f64]), place: usize) -> Option<Vec<f64>> {
        let model = &self.shown.model;
        let n = model.states.len();
        let derivative = |theta: &[f64]| {
            let mut f = vec![0.0; n];
            let at = Point {
                time,
                state,
                input,
                theta,
            };
            model
                .system
                .derivative(&mut model.system.workspace(), at, &mut f);
            f
        };
        let still = derivative(&self.silent);
        let mut target = vec![0.0; n];
        let system = &model.truth.as_ref()?.system;
        let at = Point {
            time,
            state,
            input,
            theta: &[],
        };
        system.derivative(&mut system.workspace(), at, &mut target);
        target.iter_mut().zip(&still).for_each(|(t, s)| *t -= s);
        let mut columns = vec![];
        for &(_, entry, _) in &self.outputs {
            let mut theta = self.silent.clone();
            let mut moved = |by: f64| {
                theta[entry] = by;
                let each = derivative(&theta).into_iter().zip(&still);
                each.map(|(f, s)| f - s).collect::<Vec<f64>>()
            };
            let (once, twice) = (moved(1.0), moved(2.0));
            let bent = |(a, b): (&f64, &f64)| (b - 2.0 * a).abs() > LINEAR * a.abs();
            if once.iter().zip(&twice).any(bent) {
                return None;
            }
            columns.push(once);
        }
        let solved = least_squares(&columns, &target)?;
        let each = self.outputs.iter().zip(solved);
        let own = each.filter(|((network, ..), _)| *network == place);
        Some(own.map(|((_, _, scale), by)| by * scale).collect())
    }

    /// Likewise at arguments that are states and inputs as they are; the rest as at a sample.
    fn on_slice(
        &self,
        sample: &Sample,
        place: usize,
        arguments: &[Argument],
        values: &[f64],
    ) -> Option<Vec<f64>> {
        let model = &self.shown.model;
        let n = model.states.len();
        let (mut state, mut input) = (sample.state().to_vec(), sample.input().to_vec());
        for (argument, value) in arguments.iter().zip(values) {
            let (at, _) = quantity(model, &argument.text)?;
            match at.checked_sub(n) {
                None => state[at] = *value,
                Some(at) => input[at] = *value,
            }
        }
        self.at((sample.time(), &state, &input), place)
    }
}

/// The factors that make the sum of some columns come nearest to a target; `None` where columns
/// depend on each other.
fn least_squares(columns: &[Vec<f64>], target: &[f64]) -> Option<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let m = columns.len();
    let mut rows: Vec<Vec<f64>> = (0..m)
        .map(|i| {
            let mut row: Vec<f64> = columns.iter().map(|c| dot(&columns[i], c)).collect();
            row.push(dot(&columns[i], target));
            row
        })
        .collect();
    for i in 0..m {
        let best = (i..m).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs()))?;
        rows.swap(i, best);
        let pivot = rows[i].clone();
        if pivot[i].abs() <= f64::MIN_POSITIVE {
            return None;
        }
        for (k, row) in rows.iter_mut().enumerate() {
            if k != i {
                let factor = row[i] / pivot[i];
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(a, b)| *a -= factor * b);
            }
        }
    }
    Some((0..m).map(|i| rows[i][m] / rows[i][i]).collect())
}
