//! Hidden states whose sign nothing that is measured feels.
//!
//! Where a hidden state y acts only as y², and its own equation is odd in y or a network, −y makes
//! the same measurements as y: no record tells one from the other, however small the deviations
//! are. With outputs of networks as states of their own this is a property of the known equations:
//! a set S of states whose joint negation, D = diag(±1), leaves f and h as they are, f(D x) = D f(x)
//! and h(D x) = h(x). It is looked for by trying all small sets at points about the records.

use super::scales::SignalScales;
use crate::model::{Model, Point};
use crate::record::Record;

/// Points of a record at which the equations are compared.
const POINTS: usize = 16;
/// Its multiples, less their whole part, fill 0 to 1 evenly: the golden ratio.
const EVENLY: f64 = 0.618_033_988_749_894_9;
/// Records that are looked at.
const RECORDS: usize = 4;
/// All sets of so many states are tried; of more states, only singles and pairs.
const ALL_SETS: usize = 10;
/// Rounding of f and h, as a part of their size.
const ROUNDING: f64 = 1e-10;

/// States that can be negated together, with outputs of networks where need be, and nothing known
/// feels it; of sets that contain each other, the smallest.
///
/// `model` has the outputs of networks as states after its `own` ones; only those are named.
pub fn mirrors(
    model: &Model,
    own: usize,
    records: &[Record],
    scales: &SignalScales,
) -> Vec<Vec<usize>> {
    let candidates = model.hidden();
    let mut found: Vec<Vec<usize>> = vec![];
    for set in sets(&candidates) {
        let known = |smaller: &Vec<usize>| smaller.iter().all(|i| set.contains(i));
        let felt = set.iter().any(|&i| i < own);
        if felt && !found.iter().any(known) && is_mirror(model, &set, records, scales) {
            found.push(set);
        }
    }
    let own = |set: &Vec<usize>| set.iter().copied().filter(|&i| i < own).collect();
    found.iter().map(own).collect()
}

/// Small sets of some states, the smallest first.
fn sets(of: &[usize]) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = if of.len() <= ALL_SETS {
        let member = |set: usize| move |k: &usize| set >> k & 1 == 1;
        let one = |set| (0..of.len()).filter(member(set)).map(|k| of[k]).collect();
        (1..1 << of.len()).map(one).collect()
    } else {
        let pairs = |k: usize| of[k..].iter().map(move |&j| (of[k], j));
        let all = (0..of.len()).flat_map(pairs);
        all.map(|(i, j)| if i == j { vec![i] } else { vec![i, j] })
            .collect()
    };
    sets.sort_by_key(Vec::len);
    sets
}

/// Whether f(D x) = D f(x) and h(D x) = h(x) at all points; states are anywhere within their scales.
fn is_mirror(model: &Model, set: &[usize], records: &[Record], scales: &SignalScales) -> bool {
    let system = &model.system;
    let (n, c) = (system.states(), system.measurements());
    let theta = vec![0.0; system.parameters()];
    let mut ws = system.workspace();
    let mut evaluate = |at: Point| {
        let (mut f, mut h) = (vec![0.0; n], vec![0.0; c]);
        system.derivative(&mut ws, at, &mut f);
        system.measure(&mut ws, at, &mut h);
        (f, h)
    };
    let same = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
    let mut place = 0.0;
    for record in records.iter().take(RECORDS) {
        for k in (0..record.len()).step_by(record.len().div_ceil(POINTS).max(1)) {
            let anywhere = scales
                .center
                .iter()
                .zip(&scales.scale)
                .map(|(center, scale)| {
                    place = (place + EVENLY).fract();
                    center + (2.0 * place - 1.0) * scale
                });
            let state: Vec<f64> = anywhere.collect();
            let (f, h) = evaluate(record.point(k, &state, &theta));
            let mut mirrored = state.clone();
            set.iter().for_each(|&i| mirrored[i] = -mirrored[i]);
            let (mut g, l) = evaluate(record.point(k, &mirrored, &theta));
            set.iter().for_each(|&i| g[i] = -g[i]);
            let mut all = f.iter().chain(&h).zip(g.iter().chain(&l));
            if !all.all(|(a, b)| same(*a, *b)) {
                return false;
            }
        }
    }
    true
}
