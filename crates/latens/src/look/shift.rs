//! Hidden states whose level a network makes up for.
//!
//! Where a hidden state acts on what is measured together with a network that is not known yet, as the cold layer of a
//! lake in `mix(w, T - d)*(T - d)`, a constant added to d changes nothing as long as the network is another: how
//! large d is on the whole is then what the network's prior says, however well its changes are known. With outputs
//! of networks as states of their own this is a property of the known equations: a change of the outputs undoes the
//! shift in all rows of f and h, ∂(f, h)/∂x_j = ∂(f, h)/∂w · a, and what it takes, a and ∂arguments/∂x_j, are
//! functions of what each network is asked. Rows of known terms alone pin the level. Both are looked for at points
//! about the records; only what holds at all of them counts.

use super::prior::NetworkOutputs;
use super::scales::SignalScales;
use crate::model::{Model, Point, small};
use crate::record::Record;

/// Points of a record at which the equations are looked at, and records.
const COMPARED_POINTS: usize = 8;
const MOST_RECORDS: usize = 4;
/// Its multiples, less their whole part, fill 0 to 1 evenly: the golden ratio.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
/// What rounding leaves of terms that cancel, as a part of their size.
const ROUNDING_PART: f64 = 1e-9;

/// The hidden states whose level networks make up for, one by one.
pub(super) fn shifted(
    model: &Model,
    outputs: &NetworkOutputs,
    records: &[Record],
    scales: &SignalScales,
) -> Vec<usize> {
    let look = Look {
        model,
        outputs,
        scales,
    };
    let known: Vec<usize> = model.known_starts().map(|known| known.state).collect();
    let hidden = model.hidden().into_iter();
    hidden
        .filter(|j| !known.contains(j) && look.is_shifted(*j, records))
        .collect()
}

struct Look<'a> {
    /// Its networks are asked.
    model: &'a Model,
    /// The model with their outputs as further states.
    outputs: &'a NetworkOutputs,
    scales: &'a SignalScales,
}

/// Where the equations are looked at: states, outputs of networks after them, and inputs.
#[derive(Clone)]
struct Place {
    time: f64,
    state: Vec<f64>,
    input: Vec<f64>,
}

/// What a shift takes: of each output its slope by the shift, and of each call those of its arguments.
struct Taken {
    outputs: Vec<f64>,
    arguments: Vec<Vec<f64>>,
}

impl Look<'_> {
    fn is_shifted(&self, j: usize, records: &[Record]) -> bool {
        let mut fraction = 0.0;
        let mut anywhere = move || {
            fraction = f64::fract(fraction + GOLDEN_RATIO);
            2.0 * fraction - 1.0
        };
        let mut looked = false;
        for record in records.iter().take(MOST_RECORDS) {
            let size = |i: usize| {
                let values = record.input_column(i).filter(|u| u.is_finite());
                values.fold(0.0, |most, u| f64::max(most, u.abs()))
            };
            let sizes: Vec<f64> = (0..record.d_u).map(size).collect();
            for k in (0..record.len()).step_by(record.len().div_ceil(COMPARED_POINTS).max(1)) {
                let sized = self.scales.center.iter().zip(&self.scales.scale);
                let place = Place {
                    time: record.time[k],
                    state: sized.map(|(c, s)| c + anywhere() * s).collect(),
                    input: sizes.iter().map(|size| anywhere() * size).collect(),
                };
                if !place.state.iter().all(|x| x.is_finite()) {
                    continue;
                }
                looked = true;
                let Some(taken) = self.taken(j, &place) else {
                    return false;
                };
                if !self.is_of_arguments(j, &place, &taken, &mut anywhere) {
                    return false;
                }
            }
        }
        looked
    }

    /// What undoes a shift of x_j; `None` where nothing does.
    fn taken(&self, j: usize, place: &Place) -> Option<Taken> {
        let slopes = self.slopes(place);
        if !slopes.iter().all(|slope| slope.is_finite()) {
            return None;
        }
        let (n, k) = (self.model.states.len(), self.outputs.outputs.len());
        let all = n + k;
        // the rows of the states alone: outputs stand still
        let rows = slopes.chunks(all).enumerate();
        let rows = rows.filter(|(i, _)| !(n..all).contains(i));
        let rows: Vec<&[f64]> = rows.map(|(_, row)| row).collect();
        let target: Vec<f64> = rows.iter().map(|row| row[j]).collect();
        let column = |l: usize| rows.iter().map(move |row| row[n + l]);
        // the calls of a network answer for each other
        let called: Vec<usize> = self.model.system.called().collect();
        let once = |l: &usize| {
            let network = called[self.outputs.outputs[*l].0];
            called.iter().filter(|other| **other == network).count() == 1
        };
        let free = (0..k).filter(|l| once(l) && column(*l).any(|slope| slope != 0.0));
        let (mut left, mut outputs) = (target.clone(), vec![0.0; k]);
        // the columns made orthogonal one after another, each with what it is made of
        let mut directions: Vec<(Vec<f64>, Vec<f64>)> = vec![];
        for l in free {
            let (mut direction, mut made_of) = (column(l).collect::<Vec<f64>>(), vec![0.0; k]);
            made_of[l] = 1.0;
            let whole = small::dot(&direction, &direction);
            for _ in 0..2 {
                for (known, parts) in &directions {
                    let along = small::dot(known, &direction);
                    subtract(&mut direction, along, known);
                    subtract(&mut made_of, along, parts);
                }
            }
            let square = small::dot(&direction, &direction);
            // what other outputs do as well is no further one
            if square > ROUNDING_PART * whole {
                let size = square.sqrt();
                direction.iter_mut().for_each(|d| *d /= size);
                made_of.iter_mut().for_each(|d| *d /= size);
                directions.push((direction, made_of));
            }
        }
        for (direction, made_of) in &directions {
            let along = small::dot(direction, &left);
            subtract(&mut left, along, direction);
            subtract(&mut outputs, -along, made_of);
        }
        let size = |values: &[f64]| values.iter().fold(0.0, |most, v| f64::max(most, v.abs()));
        let undone = size(&left) <= ROUNDING_PART * size(&target);
        undone.then(|| Taken {
            outputs,
            arguments: self.moved_arguments(place, j),
        })
    }

    /// Whether what a shift takes of an output is the same wherever its network is asked the same.
    fn is_of_arguments(
        &self,
        j: usize,
        place: &Place,
        taken: &Taken,
        anywhere: &mut impl FnMut() -> f64,
    ) -> bool {
        let n = self.model.states.len();
        let same = |a: f64, b: f64| (a - b).abs() <= ROUNDING_PART.sqrt() * a.abs().max(b.abs());
        let asked = self.arguments(place);
        (0..asked.len()).all(|call| {
            let outputs = self.outputs.outputs.iter().enumerate();
            let outputs: Vec<usize> = outputs
                .filter(|(_, (of, _))| *of == call)
                .map(|(l, _)| l)
                .collect();
            let takes = outputs.iter().any(|l| taken.outputs[*l] != 0.0);
            if !takes && taken.arguments[call].iter().all(|slope| *slope == 0.0) {
                return true;
            }
            let Some(mut other) = self.asked_the_same(place, call, anywhere) else {
                return false;
            };
            for l in (0..self.outputs.outputs.len()).filter(|l| !outputs.contains(l)) {
                other.state[n + l] += anywhere() * self.scales.scale[n + l];
            }
            let Some(again) = self.taken(j, &other) else {
                return false;
            };
            let arguments = taken.arguments[call].iter().zip(&again.arguments[call]);
            let (a, b) = (&taken.outputs, &again.outputs);
            outputs.iter().all(|&l| same(a[l], b[l]))
                && arguments.into_iter().all(|(a, b)| same(*a, *b))
        })
    }

    /// Another place at which a call has the same arguments; `None` where none is found.
    fn asked_the_same(
        &self,
        place: &Place,
        call: usize,
        anywhere: &mut impl FnMut() -> f64,
    ) -> Option<Place> {
        let n = self.model.states.len();
        let inputs = place.input.len();
        let size = |c: usize| {
            if c < n {
                self.scales.scale[c]
            } else {
                place.input[c - n].abs().max(1.0)
            }
        };
        // of arguments that are linear these are their slopes; of others what is found is refused below
        let slopes = (0..n + inputs).map(|c| {
            let mut moved = place.clone();
            *moved.coordinate(c, n) += size(c);
            let (before, after) = (self.arguments(place), self.arguments(&moved));
            let pairs = after[call].iter().zip(&before[call]);
            pairs.map(|(after, before)| after - before).collect()
        });
        let slopes: Vec<Vec<f64>> = slopes.collect();
        let mut step: Vec<f64> = (0..n + inputs).map(|_| anywhere()).collect();
        // the part of the step along which no argument moves, row by row
        let mut rows: Vec<Vec<f64>> = vec![];
        for a in 0..slopes.first().map_or(0, Vec::len) {
            let mut row: Vec<f64> = slopes.iter().map(|s| s[a]).collect();
            let whole = small::dot(&row, &row);
            for _ in 0..2 {
                for known in &rows {
                    let along = small::dot(known, &row);
                    subtract(&mut row, along, known);
                }
            }
            let square = small::dot(&row, &row);
            if square > ROUNDING_PART * whole && square > 0.0 {
                row.iter_mut().for_each(|r| *r /= square.sqrt());
                rows.push(row);
            }
        }
        for row in &rows {
            let along = small::dot(row, &step);
            subtract(&mut step, along, row);
        }
        let mut other = place.clone();
        for (c, step) in step.iter().enumerate() {
            *other.coordinate(c, n) += step * size(c);
        }
        let (before, after) = (self.arguments(place), self.arguments(&other));
        let mut pairs = before[call].iter().zip(&after[call]);
        let sizes =
            (0..n + inputs).map(|c| slopes[c].iter().fold(0.0, |m, s| f64::max(m, s.abs())));
        let size = sizes.fold(0.0, f64::max);
        let same = pairs.all(|(a, b)| (a - b).abs() <= ROUNDING_PART * (size + a.abs()));
        same.then_some(other)
    }

    /// By how much the arguments of each call move with x_j.
    fn moved_arguments(&self, place: &Place, j: usize) -> Vec<Vec<f64>> {
        let mut moved = place.clone();
        moved.state[j] += self.scales.scale[j];
        let calls = self
            .arguments(place)
            .into_iter()
            .zip(self.arguments(&moved));
        let moves = calls.map(|(before, after)| {
            let pairs = before.iter().zip(&after);
            let moves = pairs.map(|(before, after)| {
                let move_by = after - before;
                // rounding is no move
                let size = before.abs().max(after.abs());
                if move_by.abs() <= ROUNDING_PART * size {
                    0.0
                } else {
                    move_by
                }
            });
            moves.collect()
        });
        moves.collect()
    }

    /// What each network is asked.
    fn arguments(&self, place: &Place) -> Vec<Vec<f64>> {
        let system = &self.model.system;
        let theta = vec![0.0; system.parameters()];
        let mut asked = vec![];
        let at = place.point(&place.state[..self.model.states.len()], &theta);
        system.visit_arguments(&mut system.workspace(), at, |_, values| {
            asked.push(values.to_vec());
        });
        asked
    }

    /// ∂f/∂(x, w) and ∂h/∂(x, w), row by row.
    fn slopes(&self, place: &Place) -> Vec<f64> {
        let system = &self.outputs.model.system;
        let (all, channels) = (system.states(), system.measurements());
        let theta = vec![0.0; system.parameters()];
        let mut ws = system.workspace();
        let (mut f, mut f_x) = (vec![0.0; all], vec![0.0; all * all]);
        let (mut h, mut h_x) = (vec![0.0; channels], vec![0.0; channels * all]);
        let at = place.point(&place.state, &theta);
        system.linearise(&mut ws, at, &mut f, &mut f_x);
        system.linearise_measurement(&mut ws, at, &mut h, &mut h_x);
        f_x.extend(h_x);
        f_x
    }
}

fn subtract(values: &mut [f64], factor: f64, other: &[f64]) {
    for (value, other) in values.iter_mut().zip(other) {
        *value -= factor * other;
    }
}

impl Place {
    /// A state, or an input after `n` of them.
    fn coordinate(&mut self, c: usize, n: usize) -> &mut f64 {
        if c < n {
            &mut self.state[c]
        } else {
            &mut self.input[c - n]
        }
    }

    fn point<'a>(&'a self, state: &'a [f64], theta: &'a [f64]) -> Point<'a> {
        Point {
            time: self.time,
            state,
            input: &self.input,
            theta,
        }
    }
}
