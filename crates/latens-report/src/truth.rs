//! What the networks would have to be for the equations to be the true ones.
//!
//! It follows from the true equations where the network's outputs enter the equations linearly and each
//! network is called once: of x' = g(x) + C(x) o, o is what makes x' true, with the learned constants in g
//! and C.

use latens::fit::Fit;
use latens::model::Point;

use crate::equation::{Argument, quantity};

/// Linear to rounding.
const LINEARITY_TOLERANCE: f64 = 1e-6;

/// A time, and the state and input then.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    pub time: f64,
    pub state: &'a [f64],
    pub input: &'a [f64],
}

/// What the networks would have to be.
pub struct Truth<'a> {
    shown: &'a Fit,
    /// θ with each network's outputs at zero, and the entry of θ that moves each output alone.
    silent: Vec<f64>,
    /// Network, and that entry, and by how much it moves the output.
    outputs: Vec<(usize, usize, f64)>,
}

impl<'a> Truth<'a> {
    /// `None` where the true equations are not known or a network is called more than once.
    pub fn new(shown: &'a Fit) -> Option<Self> {
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

    /// A network's outputs at a moment.
    pub fn at(&self, moment: Moment, place: usize) -> Option<Vec<f64>> {
        let Moment { time, state, input } = moment;
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
                let rates = derivative(&theta).into_iter().zip(&still);
                rates.map(|(f, s)| f - s).collect::<Vec<f64>>()
            };
            let (once, twice) = (moved(1.0), moved(2.0));
            let bent = |(a, b): (&f64, &f64)| (b - 2.0 * a).abs() > LINEARITY_TOLERANCE * a.abs();
            if once.iter().zip(&twice).any(bent) {
                return None;
            }
            columns.push(once);
        }
        let solved = least_squares(&columns, &target)?;
        let pairs = self.outputs.iter().zip(solved);
        let of_network = pairs.filter(|((network, ..), _)| *network == place);
        Some(of_network.map(|((_, _, scale), by)| by * scale).collect())
    }

    /// Likewise at arguments that are states and inputs as they are; the rest as given.
    pub fn on_slice(
        &self,
        moment: Moment,
        place: usize,
        arguments: &[Argument],
        values: &[f64],
    ) -> Option<Vec<f64>> {
        let model = &self.shown.model;
        let n = model.states.len();
        let (mut state, mut input) = (moment.state.to_vec(), moment.input.to_vec());
        for (argument, value) in arguments.iter().zip(values) {
            let at = quantity(model, &argument.text)?;
            match at.checked_sub(n) {
                None => state[at] = *value,
                Some(at) => input[at] = *value,
            }
        }
        let moved = Moment {
            time: moment.time,
            state: &state,
            input: &input,
        };
        self.at(moved, place)
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
