//! Changes of constants that nothing measured feels: before a fit, in words.
//!
//! Along a free run the outputs' derivatives by the logarithms of the constants, of what each network
//! puts out and of the start are exact. A direction in which all of them together vanish, relative to
//! their own sizes, is a candidate; the null space in reduced echelon form shows exponents (all
//! multiplied by one factor) or terms (added to one, taken from another) as small whole numbers. What is
//! only weakly felt is no such thing: a candidate counts only if a finite change along it leaves the
//! outputs as they are, to rounding, at the guesses and at two other points with other networks.

use serde::{Deserialize, Serialize};

use super::prior::{PriorSmoothing, random_theta};
use crate::described;
use crate::described::{Described, Value};
use crate::model::Model;
use crate::numerics::Trajectory;
use crate::numerics::linalg::eigen::Eigen;
use crate::numerics::linalg::matrix::Matrix;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::text;

/// Samples of a record that are simulated, and records.
const MOST_SAMPLES: usize = 1000;
const MOST_RECORDS: usize = 2;
/// Eigenvalues of the normalised Gramian that may be zero: it is a sum in rounded numbers.
const ZERO_EIGENVALUE: f64 = 1e-11;
/// How near a ratio is to a whole number, and up to which.
const WHOLE_NUMBER_DISTANCE: f64 = 1e-3;
const LARGEST_WHOLE_NUMBER: f64 = 4.0;
/// By how much constants change to try a candidate.
const TRIAL_FACTOR: f64 = 1.3;
/// What is left of the change that one of them would make by itself.
const CHANGE_LEFT_PART: f64 = 1e-7;

described! {
/// A change of constants that nothing measured feels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invariance {
    /// What changes: by a factor, by a term, or by anything.
    pub change: Move,
    /// Each constant and the power of the factor, or the multiple of the term.
    pub constants: Vec<(String, f64)>,
    /// Networks whose output changes likewise.
    pub networks: Vec<(String, f64)>,
    /// States whose values change likewise.
    pub states: Vec<(String, f64)>,
}
}

/// How constants change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    /// One constant, at will.
    Any,
    /// Each is multiplied by a power of one factor.
    Factor,
    /// A multiple of one term is added to each.
    Term,
}

impl Described for Move {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Any, Self::Factor, Self::Term] })
    }
}

impl Invariance {
    fn names(&self) -> Vec<&str> {
        self.constants.iter().map(|(n, _)| n.as_str()).collect()
    }

    /// Networks and states that have to change too.
    fn with(&self) -> String {
        let named = |all: &[(String, f64)]| -> Vec<String> {
            let power = |(name, by): &(String, f64)| match (self.change, *by) {
                (_, 1.0) | (Move::Any, _) => name.clone(),
                (Move::Factor, by) => format!("{name} (to the power {by})"),
                (Move::Term, by) => format!("{name} ({by} times)"),
            };
            all.iter().map(power).collect()
        };
        let networks = named(&self.networks).into_iter();
        let networks = networks.map(|n| format!("what network {n} puts out"));
        let states = named(&self.states)
            .into_iter()
            .map(|s| format!("state {s}"));
        let all: Vec<String> = networks.chain(states).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        match all.len() {
            0 => String::new(),
            _ => {
                let them = if self.constants.len() == 1 {
                    "it"
                } else {
                    "them"
                };
                format!(", {} with {them}", text::list(&all))
            }
        }
    }

    /// A sentence.
    pub fn words(&self) -> String {
        let names = self.names();
        let with = self.with();
        let powers: Vec<f64> = self.constants.iter().map(|(_, p)| *p).collect();
        let alone = with.is_empty();
        match (self.change, &powers[..]) {
            (Move::Any, _) => format!(
                "nothing that is measured depends on {}: these records say nothing of it",
                names[0]
            ),
            (Move::Factor, [a, b]) if alone && a == &-b => {
                format!("{} act only as a product", text::list(&names))
            }
            (Move::Factor, [_]) => format!(
                "{} can be multiplied by any factor{with}, and nothing measured changes",
                names[0]
            ),
            (Move::Factor, all) if all.iter().all(|p| *p == 1.0) => format!(
                "{} can {} be multiplied by one factor{with}, and nothing measured changes: only their ratios are determined",
                text::list(&names),
                if all.len() == 2 { "both" } else { "all" },
            ),
            (Move::Factor, _) => {
                let side = |sign: f64| {
                    let constants = self.constants.iter().filter(|(_, p)| p.signum() == sign);
                    let constants = constants.map(|(name, p)| match p.abs() {
                        1.0 => name.clone(),
                        power => format!("{name} (to the power {power})"),
                    });
                    constants.collect::<Vec<_>>()
                };
                let (up, down) = (side(1.0), side(-1.0));
                let list = |all: &[String]| {
                    text::list(&all.iter().map(String::as_str).collect::<Vec<_>>())
                };
                if down.is_empty() {
                    format!(
                        "one factor can multiply {}{with}, and nothing measured changes",
                        list(&up)
                    )
                } else {
                    format!(
                        "one factor can multiply {} and divide {}{with}, and nothing measured changes",
                        list(&up),
                        list(&down)
                    )
                }
            }
            (Move::Term, [a, b]) if alone && a == &-b => {
                format!("{} act only as a sum", text::list(&names))
            }
            (Move::Term, [a, b]) if alone && a == b => {
                format!("{} act only as a difference", text::list(&names))
            }
            (Move::Term, _) => {
                let terms = self.constants.iter().map(|(n, p)| match *p {
                    1.0 => n.clone(),
                    p => format!("{n} ({p} times)"),
                });
                let terms: Vec<String> = terms.collect();
                let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
                format!(
                    "one term can be added to {}{with}, and nothing measured changes",
                    text::list(&terms)
                )
            }
        }
    }

    /// What is to be known of one of its constants, in few words; `None` of others.
    pub fn remark(&self, name: &str) -> Option<String> {
        let names = self.names();
        if !names.contains(&name) {
            return None;
        }
        let others: Vec<&str> = names.into_iter().filter(|n| *n != name).collect();
        let mut others: Vec<String> = others.into_iter().map(String::from).collect();
        let networks = self.networks.iter().map(|(n, _)| format!("network {n}"));
        others.extend(networks.chain(self.states.iter().map(|(s, _)| format!("state {s}"))));
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        Some(if self.change == Move::Any {
            "nothing measured depends on it".into()
        } else {
            format!(
                "not determined by itself, only with {}",
                text::list(&others)
            )
        })
    }
}

/// A point at which the outputs are looked at: θ, and where each record starts.
#[derive(Clone)]
struct At {
    values: Vec<f64>,
    theta: Vec<f64>,
    starts: Vec<Vec<f64>>,
}

/// What is looked at.
struct Look<'a> {
    model: &'a Model,
    stepper: Stepper<'a>,
    records: Vec<Record>,
    scale: &'a [f64],
    range: Vec<f64>,
    outputs: Vec<NetworkOutput>,
}

/// An output of a network, and the entries of θ in its last layer.
struct NetworkOutput {
    network: usize,
    entries: Vec<usize>,
}

/// A direction: how much each constant, output and start changes, in units of itself.
type Direction = Vec<f64>;

/// The changes of a model's constants that nothing in the records feels.
pub fn find(model: &Model, records: &[Record], prior: &PriorSmoothing, dt: f64) -> Vec<Invariance> {
    if model.unknowns.is_empty() {
        return vec![];
    }
    let size = |r: &f64| if *r > 0.0 { *r } else { 1.0 };
    let look = Look {
        model,
        stepper: Stepper::new(model, &model.system, dt),
        records: records
            .iter()
            .take(MOST_RECORDS)
            .map(|r| r.slice(0..r.len().min(MOST_SAMPLES)))
            .collect(),
        scale: &prior.scales.scale,
        range: prior.scales.range.iter().map(size).collect(),
        outputs: outputs(model),
    };
    let points: Vec<At> = (0..3).map(|k| look.point(k, prior)).collect();
    let Some(candidates) = look.candidates(&points[0]) else {
        return vec![];
    };
    let invariances = candidates.into_iter().filter_map(|direction| {
        [Move::Any, Move::Factor, Move::Term]
            .into_iter()
            .find_map(|change| {
                let whole = look.whole(&points[0], &direction, change)?;
                let left = |at: &At| look.left(at, &whole, change);
                // what is true at the guesses alone is their fault
                points
                    .iter()
                    .all(|at| left(at) < CHANGE_LEFT_PART)
                    .then(|| look.named(&whole, change))
            })
    });
    invariances.collect()
}

/// The outputs of all networks.
fn outputs(model: &Model) -> Vec<NetworkOutput> {
    let networks = model
        .system
        .networks()
        .iter()
        .zip(model.system.weight_ranges());
    let mut all = vec![];
    for (place, (network, range)) in networks.enumerate() {
        let mut layers = vec![vec![]; network.outputs.len()];
        let last = network.layers.len() + 1;
        let mut at = range.start;
        for (name, rows, columns) in network.blocks() {
            let linear = name.starts_with(&format!("layer{last}.")) || name.starts_with("skip");
            for (k, entries) in layers.iter_mut().enumerate().take(rows).filter(|_| linear) {
                entries.extend(at + k * columns..at + (k + 1) * columns);
            }
            at += rows * columns;
        }
        all.extend(layers.into_iter().map(|entries| NetworkOutput {
            network: place,
            entries,
        }));
    }
    all
}

impl Look<'_> {
    /// The `k`-th point: the first has the guesses.
    fn point(&self, k: usize, prior: &PriorSmoothing) -> At {
        let mut theta = random_theta(self.model, 1 + k as u64, true);
        let shifted = |i: usize| 0.25 * ((3 * k + 5 * i) as f64).sin() * k.min(1) as f64;
        let values = self.model.unknowns.iter().enumerate().map(|(i, u)| {
            let guess = if u.guess == 0.0 {
                0.37 * u.scale
            } else {
                u.guess
            };
            u.value(u.entry(guess * (1.0 + shifted(i))))
        });
        let values: Vec<f64> = values.collect();
        for (i, (unknown, value)) in self.model.unknowns.iter().zip(&values).enumerate() {
            theta[i] = unknown.entry(*value);
        }
        let starts = self.records.iter().enumerate().map(|(r, _)| {
            let first = prior.states[r]
                .states
                .row(0)
                .iter()
                .zip(self.scale)
                .enumerate();
            let start = first.map(|(j, (x, scale))| {
                let x = if x.is_finite() {
                    *x
                } else {
                    prior.scales.center[j]
                };
                // none at rest, none at zero
                let x = if x.abs() < 0.05 * scale {
                    x + 0.3 * scale
                } else {
                    x
                };
                x * (1.0 + shifted(j + 7))
            });
            start.collect()
        });
        At {
            values,
            starts: starts.collect(),
            theta,
        }
    }

    fn width(&self) -> usize {
        let starts = self.records.len() * self.model.states.len();
        self.values() + self.outputs.len() + starts
    }

    fn values(&self) -> usize {
        self.model.unknowns.len()
    }

    /// Directions in which no output moves; `None` where there is no run to speak of.
    fn candidates(&self, at: &At) -> Option<Vec<Direction>> {
        let (p, m) = (self.width(), self.values());
        let mut gram = vec![0.0; p * p];
        let mut rows = 0;
        for r in 0..self.records.len() {
            rows += self.sensitivities(at, r, &mut gram);
        }
        if rows < 2 * p {
            return None;
        }
        let norms: Vec<f64> = (0..p).map(|i| gram[i * p + i].sqrt()).collect();
        let felt: Vec<usize> = (0..p).filter(|&i| norms[i] > 1e-13).collect();
        let unit =
            |k: usize| -> Direction { (0..p).map(|i| f64::from(u8::from(i == k))).collect() };
        let mut directions: Vec<Direction> =
            (0..m).filter(|i| !felt.contains(i)).map(unit).collect();
        let normalised = Matrix::from_fn(felt.len(), felt.len(), |i, j| {
            gram[felt[i] * p + felt[j]] / (norms[felt[i]] * norms[felt[j]])
        });
        let eigen = Eigen::new(&normalised);
        let blind = eigen
            .values
            .iter()
            .take_while(|v| **v < ZERO_EIGENVALUE)
            .count();
        let mut null: Vec<Direction> = (0..blind)
            .map(|k| {
                let mut direction = vec![0.0; p];
                for (place, &i) in felt.iter().enumerate() {
                    direction[i] = eigen.vectors[(place, k)] / norms[i];
                }
                direction
            })
            .collect();
        echelon(&mut null);
        // those of networks and starts alone are no matter of constants
        directions.extend(
            null.into_iter()
                .filter(|d| d[..m].iter().any(|v| v.abs() > WHOLE_NUMBER_DISTANCE)),
        );
        Some(directions)
    }

    /// Adds SᵀS of a record, S the derivatives of its outputs by all that may change, each in units of
    /// itself; gives the number of rows.
    fn sensitivities(&self, at: &At, r: usize, gram: &mut [f64]) -> usize {
        let (record, system) = (&self.records[r], &self.model.system);
        let (n, c, p, m) = (
            system.states(),
            system.measurements(),
            self.width(),
            self.values(),
        );
        let mut scratch = self.stepper.scratch();
        let mut step = self.stepper.linearised();
        let mut state = at.starts[r].clone();
        let mut w = vec![0.0; n * p];
        // how a record's constant differs from the mean is held by all other records
        // nor does a start that is known
        let known = |j: &usize| self.stepper.known_starts().iter().any(|k| k.state == *j);
        let free = |j: &usize| !self.stepper.varying().contains(j) && !known(j);
        for j in (0..n).filter(free) {
            w[j * p + m + self.outputs.len() + r * n + j] = state[j];
        }
        let (mut h, mut h_x) = (vec![0.0; c], vec![0.0; c * n]);
        let mut ws = system.workspace();
        let mut rows = 0;
        for k in 0..record.len() {
            let here = record.point(k, &state, &at.theta);
            system.linearise_measurement_all(&mut ws, here, &mut h, &mut h_x, &mut step.h_theta);
            for channel in 0..c {
                let mut channels = system.unknown_channels().iter();
                let place = channels.position(|unknown| *unknown == channel);
                let gradient = place.map(|place| self.by_values(at, &step.h_theta, place));
                let row: Vec<f64> = (0..p)
                    .map(|q| {
                        let through_states = (0..n).map(|j| h_x[channel * n + j] * w[j * p + q]);
                        let direct = gradient.as_ref().and_then(|g| g.get(q)).unwrap_or(&0.0);
                        (through_states.sum::<f64>() + direct) / self.range[channel]
                    })
                    .collect();
                if row.iter().any(|v| !v.is_finite() || v.abs() > 1e100) {
                    return rows;
                }
                for i in 0..p {
                    for j in 0..p {
                        gram[i * p + j] += row[i] * row[j];
                    }
                }
                rows += 1;
            }
            if k + 1 == record.len() {
                break;
            }
            let span = self.stepper.span(record.gap(k));
            self.stepper
                .linearise(&mut scratch, here, span, true, &mut step);
            let mut next = vec![0.0; n * p];
            for i in 0..n {
                for j in (0..n).filter(|j| step.f_x[i * n + j] != 0.0) {
                    for q in 0..p {
                        next[i * p + q] += step.f_x[i * n + j] * w[j * p + q];
                    }
                }
            }
            for (place, &i) in self.stepper.rows().iter().enumerate() {
                let by_row = self.by_values(at, &step.f_theta, place);
                for (next, by) in next[i * p..].iter_mut().zip(by_row) {
                    *next += by;
                }
            }
            (w, state) = (next, step.next.clone());
        }
        rows
    }

    /// A row of derivatives by θ as one by the constants and the outputs of networks, in units of
    /// themselves.
    fn by_values(&self, at: &At, rows: &[f64], place: usize) -> Vec<f64> {
        let width = at.theta.len();
        let gradient = &rows[place * width..(place + 1) * width];
        let unknowns = self.model.unknowns.iter().enumerate();
        let constants = unknowns.map(|(q, u)| gradient[q] * (at.values[q] / u.slope(at.theta[q])));
        let outputs = self.outputs.iter().map(|output| {
            let terms = output.entries.iter().map(|&e| gradient[e] * at.theta[e]);
            terms.sum::<f64>()
        });
        constants.chain(outputs).collect()
    }

    /// A direction as small whole numbers: powers of a factor, or multiples of a term.
    fn whole(&self, at: &At, direction: &Direction, change: Move) -> Option<Direction> {
        let m = self.values();
        let small = |v: &f64| v.abs() < WHOLE_NUMBER_DISTANCE;
        let first = direction[..m].iter().position(|v| !small(v))?;
        let single = direction.iter().filter(|v| !small(v)).count() == 1;
        if (change == Move::Any) != single {
            return None;
        }
        let size = self.sizes(at);
        let ratio = |i: usize| match change {
            Move::Term => direction[i] * size[i] / (direction[first] * size[first]),
            _ => direction[i] / direction[first],
        };
        let networks = m..m + self.outputs.len();
        if change == Move::Term && direction[networks].iter().any(|v| !small(v)) {
            return None;
        }
        let near = |v: f64| {
            (v - v.round()).abs() < WHOLE_NUMBER_DISTANCE && v.abs() < LARGEST_WHOLE_NUMBER + 0.5
        };
        let times = (1..=4)
            .map(f64::from)
            .find(|t| (0..direction.len()).all(|i| near(t * ratio(i))))?;
        Some(
            (0..direction.len())
                .map(|i| (times * ratio(i)).round())
                .collect(),
        )
    }

    /// The constants, one for each output, and the starts.
    fn sizes(&self, at: &At) -> Vec<f64> {
        let outputs = vec![1.0; self.outputs.len()];
        [at.values.clone(), outputs, at.starts.concat()].concat()
    }

    /// The point after a finite change.
    fn changed(&self, at: &At, by: &Direction, change: Move) -> At {
        let (m, n) = (self.values(), self.model.states.len());
        let mut at = at.clone();
        let sizes = self.sizes(&at);
        let first = (0..m).find(|&i| by[i] != 0.0).unwrap_or(0);
        let term = (TRIAL_FACTOR - 1.0) * sizes[first] / by[first];
        let value = |size: f64, by: f64| match change {
            Move::Term => size + by * term,
            _ => size * TRIAL_FACTOR.powf(by),
        };
        for (i, unknown) in self
            .model
            .unknowns
            .iter()
            .enumerate()
            .filter(|(i, _)| by[*i] != 0.0)
        {
            at.values[i] = value(at.values[i], by[i]);
            at.theta[i] = unknown.entry(at.values[i]);
        }
        for (q, output) in self.outputs.iter().enumerate() {
            for &e in &output.entries {
                at.theta[e] *= TRIAL_FACTOR.powf(by[m + q]);
            }
        }
        let starts = m + self.outputs.len();
        for (r, start) in at.starts.iter_mut().enumerate() {
            for (j, x) in start.iter_mut().enumerate() {
                *x = value(*x, by[starts + r * n + j]);
            }
        }
        at
    }

    fn runs(&self, at: &At) -> Vec<Trajectory> {
        let records = self.records.iter().zip(&at.starts);
        records
            .map(|(record, start)| {
                let run = score::free_run(&self.stepper, record, &at.theta, start);
                score::outputs(self.stepper.system(), record, &at.theta, &run)
            })
            .collect()
    }

    /// How far the outputs move by a change, relative to what its largest part would do by itself.
    fn left(&self, at: &At, by: &Direction, change: Move) -> f64 {
        let before = self.runs(at);
        let moved = |by: &Direction| {
            let after = self.runs(&self.changed(at, by, change));
            let c = self.range.len();
            let pairs = before.iter().zip(&after);
            let pairs = pairs.flat_map(|(a, b)| a.as_slice().iter().zip(b.as_slice()).enumerate());
            let finite = pairs.filter(|(_, (a, b))| a.is_finite() || b.is_finite());
            finite.fold(0.0_f64, |most, (k, (a, b))| {
                let by = (a - b).abs() / self.range[k % c];
                if by.is_nan() {
                    f64::INFINITY
                } else {
                    most.max(by)
                }
            })
        };
        if change == Move::Any {
            return if moved(by) == 0.0 { 0.0 } else { f64::INFINITY };
        }
        let alone = (0..self.values()).filter(|&i| by[i] != 0.0).map(|i| {
            let single = (0..by.len()).map(|j| if j == i { by[j] } else { 0.0 });
            moved(&single.collect())
        });
        let alone = alone.fold(0.0, f64::max);
        moved(by) / alone
    }

    fn named(&self, whole: &Direction, change: Move) -> Invariance {
        let m = self.values();
        let starts = m + self.outputs.len();
        let unknowns = self.model.unknowns.iter().zip(whole);
        let constants = unknowns.filter(|(_, v)| **v != 0.0);
        let mut networks: Vec<(String, f64)> = vec![];
        for (output, by) in self
            .outputs
            .iter()
            .zip(&whole[m..])
            .filter(|(_, v)| **v != 0.0)
        {
            let name = &self.model.system.networks()[output.network].name;
            if !networks.iter().any(|(known, _)| known == name) {
                networks.push((name.clone(), *by));
            }
        }
        let hidden = self.model.hidden();
        let states = hidden.into_iter().filter(|j| whole[starts + j] != 0.0);
        Invariance {
            change,
            constants: constants.map(|(u, v)| (u.name.clone(), *v)).collect(),
            networks,
            states: states
                .map(|j| (self.model.states[j].name.clone(), whole[starts + j]))
                .collect(),
        }
    }
}

/// Reduced row echelon form: each row has a leading 1 where all others have 0.
fn echelon(rows: &mut [Direction]) {
    let width = rows.first().map_or(0, Vec::len);
    let mut done = 0;
    for column in 0..width {
        let largest = (done..rows.len())
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()));
        let Some(pivot) = largest else {
            return;
        };
        let size = rows[pivot].iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        if rows[pivot][column].abs() <= 1e-5 * size {
            continue;
        }
        rows.swap(done, pivot);
        let leading = rows[done][column];
        rows[done].iter_mut().for_each(|v| *v /= leading);
        let pivot_row = rows[done].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(k, _)| *k != done) {
            let factor = row[column];
            row.iter_mut()
                .zip(&pivot_row)
                .for_each(|(v, o)| *v -= factor * o);
        }
        done += 1;
    }
}
