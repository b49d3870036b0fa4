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
const COMPARED_POINTS: usize = 16;
/// Its multiples, less their whole part, fill 0 to 1 evenly: the golden ratio.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
/// Records that are looked at.
const MOST_RECORDS: usize = 4;
/// All sets of so many states are tried; of more states, only singles and pairs.
const ALL_SETS_STATES: usize = 10;
/// Rounding of f and h, as a part of their size.
const ROUNDING_PART: f64 = 1e-10;

/// States that can be negated together, with outputs of networks where need be, and nothing known
/// feels it; of sets that contain each other, the smallest.
///
/// `model` has the outputs of networks as states after its first `states`; only these are named.
pub fn mirrors(
    model: &Model,
    states: usize,
    records: &[Record],
    scales: &SignalScales,
) -> Vec<Vec<usize>> {
    let candidates = model.hidden();
    let mut mirrors: Vec<Vec<usize>> = vec![];
    for set in sets(&candidates) {
        let known = |smaller: &Vec<usize>| smaller.iter().all(|i| set.contains(i));
        let felt = set.iter().any(|&i| i < states);
        if felt && !mirrors.iter().any(known) && is_mirror(model, &set, records, scales) {
            mirrors.push(set);
        }
    }
    let named = |set: &Vec<usize>| set.iter().copied().filter(|&i| i < states).collect();
    mirrors.iter().map(named).collect()
}

/// Small sets of some states, the smallest first.
fn sets(candidates: &[usize]) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = if candidates.len() <= ALL_SETS_STATES {
        let member = |set: usize| move |k: &usize| set >> k & 1 == 1;
        let members = |set| {
            (0..candidates.len())
                .filter(member(set))
                .map(|k| candidates[k])
                .collect()
        };
        (1..1 << candidates.len()).map(members).collect()
    } else {
        let pairs = |k: usize| candidates[k..].iter().map(move |&j| (candidates[k], j));
        let all = (0..candidates.len()).flat_map(pairs);
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
    let same = |a: f64, b: f64| (a - b).abs() <= ROUNDING_PART * a.abs().max(b.abs());
    let mut place = 0.0;
    for record in records.iter().take(MOST_RECORDS) {
        for k in (0..record.len()).step_by(record.len().div_ceil(COMPARED_POINTS).max(1)) {
            let anywhere = scales
                .center
                .iter()
                .zip(&scales.scale)
                .map(|(center, scale)| {
                    place = (place + GOLDEN_RATIO).fract();
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
