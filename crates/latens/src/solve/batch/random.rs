//! Whether what pushes the states about is random.
//!
//! Process noise that is wide enough follows any record, that of a wrong model too. Where the pushes are random, the
//! filter's innovations are white under it, and without heavy tails. And what the equations lack comes again with the
//! same states and inputs, or goes with the time: then a few terms, added to equations that hold exactly, do as much as
//! the noise. With s_j the response of the innovations to a unit of term j in a learned equation,
//!
//! ```text
//! ν/√s = Σ c_j s_j + white,    Δ ln p = n/2 ln (|ν/√s|² / |rest|²) − Σ_j (½ ln n + ln of the terms to choose from)
//! ```

use super::asked::Question;
use super::newton::Iterate;
use super::place::Placed;
use crate::Error;
use crate::filter::Smoother;
use crate::filter::pass::Forward;
use crate::look::prior::starting_at;
use crate::numerics::Trajectory;
use crate::numerics::objective::Noise;
use crate::numerics::whiteness;
use crate::record::Record;

/// Factor on the process noise under which equations hold exactly.
const EXACT_NOISE_FACTOR: f64 = 1e-6;
/// Terms that are chosen at the most.
const MOST_TERMS: usize = 8;
/// Innovations beyond so many deviations are more than this part of them where tails are heavy.
const FAR_OUT_DEVIATIONS: f64 = 5.0;
const HEAVY_TAIL_PART: f64 = 0.01;
/// Innovations for each response to a term, responses at the most, and numbers of all of them: 160 MB.
const INNOVATIONS_PER_RESPONSE: usize = 10;
const MOST_RESPONSES: usize = 200;
const MOST_NUMBERS: usize = 20_000_000;
/// Samples before a step at which states and inputs may act on it.
const DELAYS: [usize; 3] = [4, 16, 64];
/// Signals whose ranks agree to this part are one.
const SAME_PART: f64 = 1.0 - 1e-9;
/// A term is new where more than this part of its response is no sum of others'.
const NEW_PART: f64 = 1e-6;

/// Whether the innovations under a noise are those of random pushes.
pub(super) fn is_random(problem: &Placed, iterate: &Iterate, noise: &Noise) -> Result<bool, Error> {
    let mut regular = true;
    innovations(problem, iterate, noise, |innovations| {
        regular &= !innovations.are_irregular();
    })?;
    Ok(regular)
}

/// What a few terms do, added to equations that hold exactly.
pub(super) struct Terms {
    /// Of ln p.
    pub gain: f64,
    /// The part of the misfit that they explain.
    pub explained: f64,
}

/// The few terms that explain most of what exact equations leave.
pub(super) fn missing_terms(
    problem: &Placed,
    iterate: &Iterate,
    noise: &Noise,
) -> Result<Terms, Error> {
    let open = problem.open_start(noise);
    let question = Question::Exact;
    let exact = problem.ask(&iterate.theta, &open, question, &[&iterate.states])?;
    let iterate = Iterate {
        states: exact.held(),
        ..iterate.clone()
    };
    let noise = open.tightened(problem.stepper, EXACT_NOISE_FACTOR);
    let readings = |record: &Record| record.outputs.iter().filter(|y| !y.is_nan()).count();
    let readings = problem.records.iter().map(readings).sum::<usize>().max(1);
    let most = (readings / INNOVATIONS_PER_RESPONSE).min(MOST_RESPONSES);
    let most = most.min(MOST_NUMBERS / readings);
    let (mut values, mut responses): (Vec<f64>, Vec<Vec<f64>>) = (vec![], vec![]);
    innovations(problem, &iterate, &noise, |innovations| {
        values.extend(innovations.values());
        for (j, response) in innovations.responses(most).into_iter().enumerate() {
            match responses.get_mut(j) {
                Some(before) => before.extend(response),
                None => responses.push(response),
            }
        }
    })?;
    responses.retain(|r| r.len() == values.len() && r.iter().all(|v| v.is_finite()));
    Ok(best_terms(values, responses))
}

/// Hands over the innovations of each record.
fn innovations(
    problem: &Placed,
    iterate: &Iterate,
    noise: &Noise,
    mut take: impl FnMut(&Innovations),
) -> Result<(), Error> {
    let states = problem.states(&iterate.states)?;
    for (record, states) in problem.records.iter().zip(&states) {
        let noise = starting_at(problem.stepper, record, noise);
        let smoother = Smoother {
            stepper: problem.stepper,
            record,
            theta: &iterate.theta,
            noise: &noise,
        };
        take(&Innovations::of(smoother, states));
    }
    Ok(())
}

/// The innovations of a record.
struct Innovations<'a> {
    smoother: Smoother<'a>,
    pass: Forward,
    /// The filter's states.
    filtered: Trajectory,
}

impl<'a> Innovations<'a> {
    fn of(smoother: Smoother<'a>, states: &Trajectory) -> Self {
        let pass = smoother.forward(states);
        let n = states.width();
        let mut filtered = Trajectory::with_capacity(states.len(), n);
        for (k, row) in states.rows().enumerate() {
            let row = row.iter().zip(pass.mean(k, n)).map(|(x, m)| x + m);
            filtered.push(&row.collect::<Vec<f64>>());
        }
        Self {
            smoother,
            pass,
            filtered,
        }
    }

    /// Values of innovations over √s, from the second sample on; those that were measured.
    fn normalised<'b>(&'b self, values: &'b [f64]) -> impl Iterator<Item = f64> + 'b {
        let channels = self.smoother.noise.measurement.len();
        let all = values.iter().zip(self.pass.innovation_variances());
        let measured = all.skip(channels).filter(|(_, s)| **s > 0.0);
        measured.map(|(v, s)| v / s.sqrt())
    }

    fn values(&self) -> Vec<f64> {
        self.normalised(&self.pass.means.innovation).collect()
    }

    /// Whether those of a channel are coloured or have heavy tails.
    fn are_irregular(&self) -> bool {
        let channels = self.smoother.noise.measurement.len();
        let innovations = self.pass.means.innovation.iter();
        let all: Vec<(&f64, &f64)> = innovations.zip(self.pass.innovation_variances()).collect();
        (0..channels).any(|c| {
            let channel = all.iter().skip(channels + c).step_by(channels);
            let measured = channel.filter(|(_, s)| **s > 0.0);
            let values: Vec<f64> = measured.map(|(v, s)| **v / s.sqrt()).collect();
            let far = values
                .iter()
                .filter(|v| v.abs() > FAR_OUT_DEVIATIONS)
                .count();
            let heavy = far as f64 > HEAVY_TAIL_PART * values.len() as f64;
            // of few nobody can tell
            heavy || whiteness::colour(&values).is_none_or(|colour| colour.is_clear())
        })
    }

    /// What the equations work out on their way, each with its value at every sample.
    fn on_the_way(&self) -> Vec<Vec<f64>> {
        let system = self.smoother.stepper.system();
        let (record, theta) = (self.smoother.record, self.smoother.theta);
        let mut ws = system.workspace();
        let mut signals: Vec<Vec<f64>> = vec![];
        for (k, state) in self.filtered.rows().enumerate() {
            let values = system.intermediates(&mut ws, record.point(k, state, theta));
            signals.resize_with(values.len(), || Vec::with_capacity(record.len()));
            for (signal, value) in signals.iter_mut().zip(values) {
                signal.push(*value);
            }
        }
        signals.retain(|signal| signal.iter().all(|value| value.is_finite()));
        signals
    }

    /// How the innovations respond to each of so many terms, added to one learned equation after the other.
    fn responses(&self, most: usize) -> Vec<Vec<f64>> {
        let (stepper, record) = (self.smoother.stepper, self.smoother.record);
        let system = stepper.system();
        let rows = stepper.rows();
        let learned = rows
            .iter()
            .filter(|row| system.unknown_rows().contains(row));
        let learned: Vec<usize> = learned.copied().collect();
        let channels = system.unknown_channels().len();
        let terms = terms(&self.filtered, &self.on_the_way(), record);
        let pairs = terms
            .iter()
            .flat_map(|term| learned.iter().map(move |row| (term, *row)));
        let response = |(term, row): (&Vec<f64>, usize)| {
            let at = |i: usize| {
                let driven = rows.iter().map(move |r| match i {
                    i if i > 0 && *r == row => term[i - 1],
                    _ => 0.0,
                });
                driven.chain(std::iter::repeat_n(0.0, channels))
            };
            let moved = self
                .smoother
                .carried(&self.pass, (0..record.len()).flat_map(at));
            self.normalised(&moved.innovation)
                .zip(self.values())
                .map(|(moved, value)| value - moved)
                .collect()
        };
        pairs.take(most).map(response).collect()
    }
}

/// Terms of what is known at each sample: states, inputs and the time, by their ranks; their curves, and those of what
/// the equations make of them on their way, as the difference that drives a flow; what states and inputs were some
/// samples ago; products of two.
fn terms(states: &Trajectory, on_the_way: &[Vec<f64>], record: &Record) -> Vec<Vec<f64>> {
    let samples = record.len();
    let states = (0..states.width()).map(|i| states.column(i).collect::<Vec<f64>>());
    let inputs = (0..record.d_u).map(|j| record.input_column(j).collect::<Vec<f64>>());
    let signals: Vec<Vec<f64>> = states.chain(inputs).collect();
    let time = (0..samples).map(|k| k as f64).collect();
    let ranked = |signal: &Vec<f64>| whiteness::curves(signal);
    let now: Vec<[Vec<f64>; 3]> = signals.iter().chain([&time]).filter_map(ranked).collect();
    let lines = now.iter().map(|[line, ..]| line.clone());
    let curves = now
        .iter()
        .flat_map(|[_, second, third]| [second.clone(), third.clone()]);
    let mut made: Vec<[Vec<f64>; 3]> = vec![];
    for ranked in on_the_way.iter().filter_map(ranked) {
        // what goes up and down with another signal has its curves
        let size = dot(&ranked[0], &ranked[0]);
        let follows = |other: &[Vec<f64>; 3]| dot(&other[0], &ranked[0]).abs() > SAME_PART * size;
        if !now.iter().chain(&made).any(follows) {
            made.push(ranked);
        }
    }
    let delayed = DELAYS.iter().flat_map(|delay| {
        let before = move |signal: &Vec<f64>| -> Vec<f64> {
            (0..samples)
                .map(|k| signal[k.saturating_sub(*delay)])
                .collect()
        };
        signals.iter().map(before)
    });
    let delayed = delayed.filter_map(|signal| whiteness::curves(&signal));
    let delayed = delayed.map(|[line, ..]| line);
    let pairs = (0..now.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let pairs = pairs.map(|(i, j)| {
        let both = now[i][0].iter().zip(&now[j][0]);
        both.map(|(a, b)| a * b).collect::<Vec<f64>>()
    });
    let made = made.iter().flatten().cloned();
    let all = lines.chain(curves).chain(made);
    all.chain(delayed).chain(pairs).collect()
}

/// The best few of some terms by their responses, chosen one after the other.
fn best_terms(mut values: Vec<f64>, mut responses: Vec<Vec<f64>>) -> Terms {
    let n = values.len() as f64;
    let misfit = dot(&values, &values);
    let price = 0.5 * n.ln() + (responses.len().max(1) as f64).ln();
    let mut whole: Vec<f64> = responses.iter().map(|r| dot(r, r)).collect();
    let mut gained = 0.0;
    for _ in 0..MOST_TERMS {
        let square = dot(&values, &values);
        let explained = responses.iter().zip(&whole).map(|(response, whole)| {
            let length = dot(response, response);
            let new = length > NEW_PART * whole;
            let part = dot(response, &values).powi(2) / length;
            if new { part } else { 0.0 }
        });
        let best = explained.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, explained)) = best else {
            break;
        };
        let gain = 0.5 * n * (square / (square - explained)).ln() - price;
        if gain <= 0.0 || gain.is_nan() {
            break;
        }
        gained += gain;
        let chosen = responses.swap_remove(best);
        whole.swap_remove(best);
        let length = dot(&chosen, &chosen);
        let without = |vector: &mut Vec<f64>| {
            let part = dot(vector, &chosen) / length;
            vector
                .iter_mut()
                .zip(&chosen)
                .for_each(|(v, c)| *v -= part * c);
        };
        without(&mut values);
        responses.iter_mut().for_each(without);
    }
    Terms {
        gain: gained,
        explained: 1.0 - dot(&values, &values) / misfit,
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
