//! Terms that equations may lack, made of what is known at each sample.
//!
//! A signal counts by its rank among all its values: whatever its distribution, a line and two curves of it, Legendre's
//! polynomials, are terms of one size. Ranks are those over all records, so that a term is the same function in each.

use crate::model::System;
use crate::model::small::dot_long;
use crate::numerics::Trajectory;
use crate::numerics::whiteness;
use crate::record::Record;

/// Samples before a step at which states and inputs may act on it.
const DELAYS: [usize; 3] = [4, 16, 64];
/// Signals whose ranks agree to this part are one.
const SAME_PART: f64 = 1.0 - 1e-9;

/// Signals along all records, one record after the other.
#[derive(Default)]
pub(super) struct Signals {
    /// Terms at the most: of long records there is no room for many.
    most: usize,
    /// States, inputs and the time.
    plain: Vec<Vec<f64>>,
    /// States and inputs some samples before.
    delayed: Vec<Vec<f64>>,
    /// What the equations make of them on their way, as the difference that drives a flow.
    made: Vec<Vec<f64>>,
}

impl Signals {
    /// For so many terms at the most.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Adds those of a record along some states.
    pub fn extend(&mut self, system: &System, record: &Record, theta: &[f64], states: &Trajectory) {
        let of_states = (0..states.width()).map(|i| states.column(i).collect());
        let inputs = (0..record.d_u).map(|j| record.input_column(j).collect());
        let mut plain: Vec<Vec<f64>> = of_states.chain(inputs).collect();
        let delayed = DELAYS.iter().flat_map(|delay| {
            let before = move |signal: &Vec<f64>| {
                let places = 0..signal.len();
                places.map(|k| signal[k.saturating_sub(*delay)]).collect()
            };
            plain.iter().map(before)
        });
        append(&mut self.delayed, delayed.collect());
        plain.push((0..record.len()).map(|k| k as f64).collect());
        append(&mut self.plain, plain);
        let mut ws = system.workspace();
        let mut made: Vec<Vec<f64>> = vec![];
        for (k, state) in states.rows().enumerate() {
            let values = system.intermediates(&mut ws, record.point(k, state, theta));
            let kept = values.len().min(self.most);
            made.resize_with(kept, || Vec::with_capacity(record.len()));
            for (signal, value) in made.iter_mut().zip(values) {
                signal.push(*value);
            }
        }
        append(&mut self.made, made);
    }

    /// Lines and curves of signals, lines of what they were, and products of two.
    pub fn terms(&self) -> Vec<Vec<f64>> {
        let ranked = |signal: &Vec<f64>| {
            let is_number = signal.iter().all(|value| value.is_finite());
            is_number.then(|| whiteness::curves(signal)).flatten()
        };
        let now: Vec<[Vec<f64>; 3]> = self.plain.iter().filter_map(ranked).collect();
        let mut made: Vec<[Vec<f64>; 3]> = vec![];
        for ranked in self.made.iter().filter_map(ranked) {
            if 3 * (now.len() + made.len()) >= self.most {
                break;
            }
            // what goes up and down with another signal has its curves
            let size = dot_long(&ranked[0], &ranked[0]);
            let follows =
                |other: &[Vec<f64>; 3]| dot_long(&other[0], &ranked[0]).abs() > SAME_PART * size;
            if !now.iter().chain(&made).any(follows) {
                made.push(ranked);
            }
        }
        let pairs = (0..now.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let pairs = pairs.map(|(i, j)| {
            let both = now[i][0].iter().zip(&now[j][0]);
            both.map(|(a, b)| a * b).collect::<Vec<f64>>()
        });
        let lines = now.iter().map(|[line, ..]| line);
        let curves = now.iter().flat_map(|[_, curves @ ..]| curves);
        let known = lines.chain(curves).chain(made.iter().flatten()).cloned();
        let delayed = self.delayed.iter().filter_map(ranked);
        let delayed = delayed.map(|[line, ..]| line);
        known.chain(delayed).chain(pairs).take(self.most).collect()
    }
}

/// Adds to vectors, one by one, what they have in a further record.
pub(super) fn append(all: &mut Vec<Vec<f64>>, of_record: Vec<Vec<f64>>) {
    all.resize_with(of_record.len(), Vec::new);
    for (vector, more) in all.iter_mut().zip(of_record) {
        vector.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    /// The difference that the loss of a room goes with is among the signals; of two records a term is one function.
    #[test]
    fn terms_are_functions_of_signals_over_all_records() {
        let text = "[time]\nstep = 1\n[inputs]\nu = {}\n[unknowns]\nk = { guess = 2 }\n[states.x]\nderivative = \"k*(u - x)\"\n[measurements]\ny = \"x\"\n";
        let model = Model::from_text("m", text).unwrap();
        let mut signals = Signals::new(100);
        let mut differences = vec![];
        for record in 0..2 {
            let time: Vec<f64> = (0..50).map(f64::from).collect();
            let input = |t: &f64| (0.3 * t).sin() + f64::from(record);
            let state = |t: &f64| (0.17 * t).cos();
            differences.extend(time.iter().map(|t| input(t) - state(t)));
            let states = Trajectory::new(time.iter().map(state).collect(), 1);
            let record = Record {
                name: "r".into(),
                inputs: time.iter().map(input).collect(),
                outputs: vec![0.0; time.len()],
                time,
                truth: None,
                d_u: 1,
                d_y: 1,
                d_x: 1,
                later: false,
            };
            signals.extend(&model.system, &record, &[0.0], &states);
        }
        let terms = signals.terms();
        assert!(terms.iter().all(|term| term.len() == 100));
        let [_, curve, _] = whiteness::curves(&differences).unwrap();
        let found = |term: &&Vec<f64>| {
            let along = dot_long(term, &curve);
            along * along > 0.999_999 * dot_long(term, term) * dot_long(&curve, &curve)
        };
        assert_eq!(terms.iter().filter(found).count(), 1);
        // x, u and t: lines, curves, products; u − x: one line, two curves; x and u before, but for the longest delay,
        // at which every x is the first one
        assert_eq!(terms.len(), 3 + 6 + 3 + 3 + 5);
        assert_eq!(Signals { most: 5, ..signals }.terms(), terms[..5]);
    }
}
