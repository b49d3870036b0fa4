//! Whether what pushes the states about is random.
//!
//! Process noise that is wide enough follows any record, that of a wrong model too. Where the pushes are random, the
//! filter's innovations are white under it, and without heavy tails. And what the equations lack comes again with the
//! same states and inputs, or goes with the time: then a few terms of these, beside fewer pushes, make the record likelier
//! than pushes alone. With ν/√s the innovations under a part of the process noise, s_j their response to a unit of term j
//! in a learned equation, and J that to θ, whose prior counts as readings,
//!
//! ```text
//! ln p = −½ min |ν/√s − J δθ − Σ c_j s_j|² − ½ Σ ln s − ½ ln |JᵀJ| − Σ_j (½ ln n + ln of the terms to choose from)
//! ```

use rayon::prelude::*;

use super::disturbance::CLEAR_EVIDENCE_GAIN;
use super::newton::{Iterate, Newton};
use super::place::Placed;
use super::terms::{Signals, append};
use crate::Error;
use crate::filter::Smoother;
use crate::filter::pass::{Forward, Means};
use crate::look::prior::starting_at;
use crate::model::small::dot_long;
use crate::numerics::Trajectory;
use crate::numerics::objective::Noise;
use crate::numerics::whiteness;
use crate::record::Record;

/// Parts of the process noise beside which terms are tried: what terms do is left to fewer pushes.
const NOISE_PARTS: [f64; 6] = [1.0, 0.3, 0.1, 0.03, 0.01, 1e-3];
/// Terms that are chosen at the most.
const MOST_TERMS: usize = 8;
/// Innovations beyond so many deviations are more than this part of them where tails are heavy.
const FAR_OUT_DEVIATIONS: f64 = 5.0;
const HEAVY_TAIL_PART: f64 = 0.01;
/// Innovations for each response to a term, responses at the most, and numbers of all of them: 160 MB.
const INNOVATIONS_PER_RESPONSE: usize = 10;
const MOST_RESPONSES: usize = 200;
const MOST_NUMBERS: usize = 20_000_000;
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

/// Whether a few terms of what is known make the records clearly likelier than random pushes alone. (Beyond their price too:
/// what pushes have moved goes with them by chance more often than white noise would, as Dickey and Fuller found.)
pub(super) fn is_systematic(
    problem: &Placed,
    iterate: &Iterate,
    prior: &[f64],
    noise: &Noise,
) -> Result<bool, Error> {
    let mut at = iterate.clone();
    let mut alone = f64::NEG_INFINITY;
    let mut with_terms = f64::NEG_INFINITY;
    for part in NOISE_PARTS {
        let fewer = noise.tightened(problem.stepper, part);
        at.states = Newton::new(problem, prior, &fewer).smoothed(&at.theta, &at.states)?;
        let terms = best_terms(problem, &at, prior, &fewer)?;
        alone = alone.max(terms.alone);
        with_terms = with_terms.max(terms.alone + terms.gain);
        // pushes alone are likeliest with all of them
        if with_terms > alone + CLEAR_EVIDENCE_GAIN {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How likely records are, as ln p but for what does not depend on the pushes.
struct Terms {
    alone: f64,
    /// What the best few terms add.
    gain: f64,
}

/// The few terms that explain most of what pushes and θ leave.
fn best_terms(
    problem: &Placed,
    iterate: &Iterate,
    prior: &[f64],
    noise: &Noise,
) -> Result<Terms, Error> {
    let readings = |record: &Record| record.outputs.iter().filter(|y| !y.is_nan()).count();
    let readings = problem.records.iter().map(readings).sum::<usize>().max(1);
    let most = (readings / INNOVATIONS_PER_RESPONSE).min(MOST_RESPONSES);
    let most = most.min(MOST_NUMBERS / readings);
    let parameters = iterate.theta.len();
    let with_theta = parameters <= most;
    let mut signals = Signals::new(most);
    innovations(problem, iterate, noise, |of_record| {
        let (system, record) = (problem.stepper.system(), of_record.smoother.record);
        signals.extend(system, record, &iterate.theta, &of_record.filtered);
    })?;
    let terms = signals.terms();
    let (mut values, mut log_variance, mut first) = (vec![], 0.0, 0);
    let (mut by_theta, mut by_terms) = (vec![], vec![]);
    innovations(problem, iterate, noise, |of_record| {
        values.extend(of_record.values());
        log_variance += of_record.pass.log_variance();
        append(&mut by_terms, of_record.by_terms(&terms, first, most));
        if with_theta {
            append(&mut by_theta, of_record.by_theta());
        }
        first += of_record.filtered.len();
    })?;
    if with_theta {
        let deviations: Vec<f64> = prior.iter().map(|variance| variance.sqrt()).collect();
        let known = iterate.theta.iter().zip(&deviations);
        values.extend(known.map(|(theta, deviation)| -theta / deviation));
        let responses = by_terms.iter_mut();
        responses.for_each(|r| r.resize(r.len() + parameters, 0.0));
        for (j, response) in by_theta.iter_mut().enumerate() {
            let read = (0..parameters).map(|i| if i == j { 1.0 / deviations[j] } else { 0.0 });
            response.extend(read);
        }
    }
    for responses in [&mut by_theta, &mut by_terms] {
        responses.retain(|r| r.iter().all(|v| v.is_finite()));
    }
    Ok(chosen_terms(values, log_variance, by_theta, by_terms))
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
    /// What the pass is linearised about.
    states: &'a Trajectory,
    pass: Forward,
    /// The filter's states.
    filtered: Trajectory,
}

impl<'a> Innovations<'a> {
    fn of(smoother: Smoother<'a>, states: &'a Trajectory) -> Self {
        let pass = smoother.forward(states);
        let n = states.width();
        let mut filtered = Trajectory::with_capacity(states.len(), n);
        for (k, row) in states.rows().enumerate() {
            let row = row.iter().zip(pass.mean(k, n)).map(|(x, m)| x + m);
            filtered.push(&row.collect::<Vec<f64>>());
        }
        Self {
            smoother,
            states,
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

    /// How the innovations respond to each of so many terms, added to one learned equation after the other; terms stand
    /// over all records, and those of this one begin at a sample of them.
    fn by_terms(&self, terms: &[Vec<f64>], first: usize, most: usize) -> Vec<Vec<f64>> {
        let (stepper, record) = (self.smoother.stepper, self.smoother.record);
        let system = stepper.system();
        let rows = stepper.rows();
        let learned = rows
            .iter()
            .filter(|row| system.unknown_rows().contains(row));
        let learned: Vec<usize> = learned.copied().collect();
        let channels = system.unknown_channels().len();
        let pairs = terms
            .iter()
            .flat_map(|term| learned.iter().map(move |row| (&term[first..], *row)));
        let response = |(term, row): (&[f64], usize)| {
            let at = |i: usize| {
                let driven = rows.iter().map(move |r| match i {
                    i if i > 0 && *r == row => term[i - 1],
                    _ => 0.0,
                });
                driven.chain(std::iter::repeat_n(0.0, channels))
            };
            let driven = (0..record.len()).flat_map(at);
            self.response(&self.smoother.carried(&self.pass, driven))
        };
        let pairs: Vec<(&[f64], usize)> = pairs.take(most).collect();
        pairs.into_par_iter().map(response).collect()
    }

    /// How the innovations respond to each entry of θ.
    fn by_theta(&self) -> Vec<Vec<f64>> {
        let parameters = self.smoother.theta.len();
        let response = |j: usize| {
            let mut increment = vec![0.0; parameters];
            increment[j] = 1.0;
            self.response(&self.smoother.shift(self.states, &increment, &self.pass))
        };
        (0..parameters).map(response).collect()
    }

    /// What is taken from the innovations where the means are others.
    fn response(&self, moved: &Means) -> Vec<f64> {
        let moved = self.normalised(&moved.innovation);
        let pairs = moved.zip(self.normalised(&self.pass.means.innovation));
        pairs.map(|(moved, value)| value - moved).collect()
    }
}

/// The best few of some terms by their responses, chosen one after the other; what θ does as well is no term's.
fn chosen_terms(
    mut values: Vec<f64>,
    mut log_variance: f64,
    mut by_theta: Vec<Vec<f64>>,
    mut responses: Vec<Vec<f64>>,
) -> Terms {
    let n = values.len() as f64;
    let price = 0.5 * n.ln() + (responses.len().max(1) as f64).ln();
    let mut whole: Vec<f64> = responses.iter().map(|r| dot_long(r, r)).collect();
    while let Some(response) = by_theta.pop() {
        log_variance += dot_long(&response, &response).ln();
        let others = by_theta.iter_mut().chain(&mut responses);
        let others = others.chain([&mut values]);
        others.for_each(|v| subtract(v, &response));
    }
    let alone = -0.5 * (dot_long(&values, &values) + log_variance);
    let mut gain = 0.0;
    for _ in 0..MOST_TERMS {
        let explained = responses.iter().zip(&whole).map(|(response, whole)| {
            let length = dot_long(response, response);
            let new = length > NEW_PART * whole;
            let part = dot_long(response, &values).powi(2) / length;
            if new { part } else { 0.0 }
        });
        let best = explained.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, explained)) = best else {
            break;
        };
        if 0.5 * explained <= price || explained.is_nan() {
            break;
        }
        gain += 0.5 * explained - price;
        let chosen = responses.swap_remove(best);
        whole.swap_remove(best);
        let others = responses.iter_mut().chain([&mut values]);
        others.for_each(|v| subtract(v, &chosen));
    }
    Terms { alone, gain }
}

/// Takes from a vector what is along another.
fn subtract(vector: &mut [f64], other: &[f64]) {
    let length = dot_long(other, other);
    if length > 0.0 {
        let part = dot_long(vector, other) / length;
        let pairs = vector.iter_mut().zip(other);
        pairs.for_each(|(v, o)| *v -= part * o);
    }
}
