//! Symbolic regression, on what structure leaves.
//!
//! A tree grows in one argument, or in two where there are no more; all others enter as they do in most equations, as
//! factors and as terms of their own: 1, T, xⱼ and xⱼ T are the columns of a least squares, of which only those
//! are kept that pay for themselves. What has to be found is then the shape of T alone, up to its size and place. Trees are
//! changed at random, the better ones stay, and now and then the constants of the best are refined.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::matrix::Matrix;

use crate::formula::{Formula, Term};
use crate::refine::{Refined, refine, score};
use crate::samples::Target;
use crate::tree::{BINARY, Tree, UNARY};

/// Populations that do not meet, for each set of arguments.
const ISLANDS: usize = 4;
/// Trees in each.
const TREES: usize = 100;
/// Changes that are tried in each, for each tree.
const GENERATIONS: usize = 300;
/// Generations after which the constants of the best of each size are refined.
const REFINEMENT_GENERATIONS: usize = 20;
/// How many an island gives at the end.
const GIVEN_TREES: usize = 3;
/// Nodes of a tree at the most.
const MOST_NODES: usize = 13;
/// Trees of which the best one has children.
const TOURNAMENT_TREES: usize = 4;

/// A tree, and the columns that it makes a formula with.
#[derive(Clone)]
struct Grown {
    tree: Tree,
    /// The lower, the better: see [`score`]; nodes are counted as constants are.
    score: f64,
    formula: Formula,
}

/// Formulas that evolve from random ones, best first.
pub fn evolve(target: &Target, seed: u64) -> Vec<Refined> {
    let arguments = target.points.first().map_or(0, Vec::len);
    let mut sets: Vec<Vec<usize>> = (0..arguments).map(|j| vec![j]).collect();
    if arguments == 2 {
        sets.push(vec![0, 1]);
    }
    let islands: Vec<(Vec<usize>, u64)> = sets
        .iter()
        .flat_map(|set| (0..ISLANDS as u64).map(|k| (set.clone(), k)))
        .enumerate()
        .map(|(k, (set, _))| (set, seed.wrapping_mul(1000).wrapping_add(k as u64)))
        .collect();
    let found: Vec<Vec<Refined>> = islands
        .par_iter()
        .map(|(set, seed)| Island::new(target, set, *seed).evolved())
        .collect();
    let mut all: Vec<Refined> = found.into_iter().flatten().collect();
    all.sort_by(|a, b| a.score.total_cmp(&b.score));
    all
}

struct Island<'t> {
    target: &'t Target,
    /// Arguments of the trees.
    within: &'t [usize],
    /// The white columns of 1 and of the arguments that trees do not have, with their texts.
    plain: Vec<(String, Vec<f64>)>,
    /// Half of the range of each argument.
    half: Vec<f64>,
    random: Pcg64,
    /// From the oldest to the youngest.
    trees: VecDeque<Grown>,
    /// The best of each number of nodes so far.
    best: Vec<Option<Grown>>,
}

impl<'t> Island<'t> {
    fn new(target: &'t Target, within: &'t [usize], seed: u64) -> Self {
        let arguments = target.points.first().map_or(0, Vec::len);
        let ones = vec![1.0; target.count()];
        let mut plain = vec![("1".to_string(), target.whiten(&ones))];
        for j in (0..arguments).filter(|j| !within.contains(j)) {
            let values: Vec<f64> = target.argument(j).collect();
            plain.push((format!("#{}", j + 1), target.whiten(&values)));
        }
        let half = |j: usize| {
            let least = target.argument(j).fold(f64::INFINITY, f64::min);
            let most = target.argument(j).fold(f64::NEG_INFINITY, f64::max);
            (0.5 * (most - least)).max(f64::MIN_POSITIVE)
        };
        Self {
            target,
            within,
            plain,
            half: (0..arguments).map(half).collect(),
            random: Pcg64::seed_from_u64(seed),
            trees: VecDeque::new(),
            best: vec![None; MOST_NODES + 1],
        }
    }

    fn evolved(mut self) -> Vec<Refined> {
        for _ in 0..20 * TREES {
            if self.trees.len() == TREES {
                break;
            }
            let depth = self.random.random_range(1..4);
            let tree = self.grow(depth);
            if let Some(grown) = self.judged(tree) {
                self.add(grown);
            }
        }
        if self.trees.len() < TREES {
            return vec![];
        }
        for generation in 1..=GENERATIONS {
            for _ in 0..TREES {
                let child = self.child();
                if let Some(child) = self.judged(child) {
                    self.add(child);
                }
            }
            if generation % REFINEMENT_GENERATIONS == 0 {
                self.refine();
            }
        }
        let best = self.best.iter().flatten();
        let refined = best.filter_map(|grown| {
            let refined = refine(self.target, &grown.formula)?;
            let nodes = self.cost(&grown.tree);
            Some(Refined {
                score: refined.score + nodes,
                ..refined
            })
        });
        let mut refined: Vec<Refined> = refined.collect();
        refined.sort_by(|a, b| a.score.total_cmp(&b.score));
        refined.truncate(GIVEN_TREES);
        refined
    }

    /// The oldest makes room, not the worst: what is good at once would soon be all there is.
    fn add(&mut self, grown: Grown) {
        let best = &mut self.best[grown.tree.size()];
        if best.as_ref().is_none_or(|known| grown.score < known.score) {
            *best = Some(grown.clone());
        }
        if self.trees.len() == TREES {
            self.trees.pop_front();
        }
        self.trees.push_back(grown);
    }

    /// What the nodes of a tree cost.
    fn cost(&self, tree: &Tree) -> f64 {
        0.5 * (tree.size() as f64 - 1.0) * (self.target.count() as f64).ln()
    }

    /// A random tree.
    fn grow(&mut self, depth: usize) -> Tree {
        if depth == 0 || self.random.random_bool(0.2) {
            return self.leaf();
        }
        if self.random.random_bool(0.3) {
            let function = UNARY[self.random.random_range(0..UNARY.len())];
            return Tree::Unary(function, Box::new(self.grow(depth - 1)));
        }
        let operator = BINARY[self.random.random_range(0..BINARY.len())];
        let (a, b) = (self.grow(depth - 1), self.grow(depth - 1));
        Tree::Binary(operator, Box::new(a), Box::new(b))
    }

    /// An argument, a constant of its size, or one of the size of one.
    fn leaf(&mut self) -> Tree {
        let j = self.within[self.random.random_range(0..self.within.len())];
        let spread = (3.0 * (self.random.random::<f64>() - 0.5)).exp();
        let sign = if self.random.random_bool(0.3) {
            -1.0
        } else {
            1.0
        };
        match self.random.random_range(0..4) {
            0 => Tree::Constant(sign * spread * self.half[j]),
            1 => Tree::Constant(sign * spread),
            _ => Tree::Argument(j),
        }
    }

    /// The best of a few.
    fn chosen(&mut self) -> Tree {
        let count = self.trees.len();
        let places = (0..TOURNAMENT_TREES).map(|_| self.random.random_range(0..count));
        let places: Vec<usize> = places.collect();
        let best = places
            .into_iter()
            .min_by(|a, b| self.trees[*a].score.total_cmp(&self.trees[*b].score));
        self.trees[best.unwrap_or(0)].tree.clone()
    }

    /// A tree with one thing changed.
    fn child(&mut self) -> Tree {
        let mut tree = self.chosen();
        let place = self.random.random_range(0..tree.size());
        match self.random.random_range(0..8) {
            0 | 1 => {
                let factor = (2.0 * (self.random.random::<f64>() - 0.5)).exp();
                let sign = if self.random.random_bool(0.1) {
                    -1.0
                } else {
                    1.0
                };
                let mut constants = tree.constants();
                let count = constants.len();
                if count > 0 {
                    let place = self.random.random_range(0..count);
                    *constants[place] *= sign * factor;
                }
            }
            2 => {
                let other = UNARY[self.random.random_range(0..UNARY.len())];
                let operator = BINARY[self.random.random_range(0..BINARY.len())];
                match tree.part(place) {
                    Tree::Unary(function, _) => *function = other,
                    Tree::Binary(here, ..) => *here = operator,
                    leaf => *leaf = self.leaf(),
                }
            }
            3 => {
                // one more part around it
                let leaf = self.leaf();
                let operator = BINARY[self.random.random_range(0..BINARY.len())];
                let function = UNARY[self.random.random_range(0..UNARY.len())];
                let kind = self.random.random_range(0..3);
                let part = tree.part(place);
                let kept = Box::new(part.clone());
                *part = match kind {
                    0 => Tree::Unary(function, kept),
                    1 => Tree::Binary(operator, kept, Box::new(leaf)),
                    _ => Tree::Binary(operator, Box::new(leaf), kept),
                };
            }
            4 => {
                // one part less
                let part = tree.part(place);
                let left = self.random.random_bool(0.5);
                let inner = match part {
                    Tree::Unary(_, a) => Some((**a).clone()),
                    Tree::Binary(_, a, b) => Some((**if left { a } else { b }).clone()),
                    _ => None,
                };
                if let Some(inner) = inner {
                    *part = inner;
                }
            }
            5 => {
                let depth = self.random.random_range(1..3);
                *tree.part(place) = self.grow(depth);
            }
            _ => {
                let mut other = self.chosen();
                let from = self.random.random_range(0..other.size());
                *tree.part(place) = other.part(from).clone();
            }
        }
        tree
    }

    /// The constants of the best of each size, by least squares; they are young again.
    fn refine(&mut self) {
        let best: Vec<Grown> = self.best.iter().flatten().cloned().collect();
        for grown in best {
            let Some(refined) = refine(self.target, &grown.formula) else {
                continue;
            };
            let of_tree = refined.formula.terms.iter().find(|t| !t.inner.is_empty());
            let mut tree = grown.tree;
            if let Some(term) = of_tree {
                for (constant, value) in tree.constants().into_iter().zip(&term.inner) {
                    *constant = *value;
                }
            }
            if let Some(better) = self.judged(tree) {
                self.add(better);
            }
        }
    }

    /// A tree with the columns that pay for themselves; `None` where it is too large, constant, or no number.
    fn judged(&self, tree: Tree) -> Option<Grown> {
        let tree = tree.folded();
        let usable = tree.size() <= MOST_NODES && self.within.iter().any(|j| tree.has(*j));
        if !usable {
            return None;
        }
        let values: Vec<f64> = self.target.points.iter().map(|p| tree.value(p)).collect();
        let column = |values: &[f64]| {
            let white = self.target.whiten(values);
            white.iter().all(|v| v.is_finite()).then_some(white)
        };
        let term = tree.term();
        let whole = format!("({})", term.text);
        let mut texts = vec![whole.clone()];
        let mut columns = vec![column(&values)?];
        for (text, white) in &self.plain {
            texts.push(text.clone());
            columns.push(white.clone());
        }
        for j in (0..self.half.len()).filter(|j| !self.within.contains(j)) {
            let pairs = self.target.argument(j).zip(&values);
            let products: Vec<f64> = pairs.map(|(x, v)| x * v).collect();
            columns.push(column(&products)?);
            texts.push(format!("#{}*{whole}", j + 1));
        }
        let normal = Normal::new(&columns, &self.target.white)?;
        let inner = term.inner.len();
        let count = self.target.count();
        let of_tree = |k: usize| k == 0 || k > self.plain.len();
        let judge = |chosen: &[usize]| {
            let (factors, misfit) = normal.solve(chosen)?;
            let trees = chosen.iter().filter(|k| of_tree(**k)).count();
            let constants = factors.len() + inner * trees;
            Some((score(misfit, count, constants), factors))
        };
        let mut best: Option<(f64, Vec<usize>, Vec<f64>)> = None;
        let start: Vec<usize> = (0..columns.len()).filter(|k| of_tree(*k)).collect();
        for first in start {
            let mut chosen = vec![first];
            let Some((mut reached, mut factors)) = judge(&chosen) else {
                continue;
            };
            loop {
                let others = (0..columns.len()).filter(|k| !chosen.contains(k));
                let more = others.filter_map(|k| {
                    let extended = [chosen.as_slice(), &[k]].concat();
                    let (reached, factors) = judge(&extended)?;
                    Some((reached, extended, factors))
                });
                match more.min_by(|a, b| a.0.total_cmp(&b.0)) {
                    Some((better, extended, with_factors)) if better < reached => {
                        (reached, chosen, factors) = (better, extended, with_factors);
                    }
                    _ => break,
                }
            }
            if best.as_ref().is_none_or(|(known, ..)| reached < *known) {
                best = Some((reached, chosen, factors));
            }
        }
        let (reached, chosen, factors) = best?;
        let terms = chosen.iter().map(|&k| Term {
            text: texts[k].clone(),
            inner: if of_tree(k) {
                term.inner.clone()
            } else {
                vec![]
            },
        });
        Some(Grown {
            score: reached + self.cost(&tree),
            formula: Formula::sum(terms.collect(), &factors, None),
            tree,
        })
    }
}

/// Normal equations of a few columns of length one.
struct Normal {
    gram: Matrix,
    pull: Vec<f64>,
    norms: Vec<f64>,
    total: f64,
}

impl Normal {
    fn new(columns: &[Vec<f64>], values: &[f64]) -> Option<Self> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let norms: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
        if norms.iter().any(|n| !n.is_finite() || *n <= 0.0) {
            return None;
        }
        let n = columns.len();
        Some(Self {
            gram: Matrix::from_fn(n, n, |i, j| {
                dot(&columns[i], &columns[j]) / (norms[i] * norms[j])
            }),
            pull: columns
                .iter()
                .zip(&norms)
                .map(|(c, n)| dot(c, values) / n)
                .collect(),
            norms,
            total: dot(values, values),
        })
    }

    /// Factors of some columns, and what they leave; `None` where the columns are one another's.
    fn solve(&self, chosen: &[usize]) -> Option<(Vec<f64>, f64)> {
        const DIAGONAL_JITTER: f64 = 1e-10;
        let n = chosen.len();
        let gram = Matrix::from_fn(n, n, |i, j| {
            self.gram[(chosen[i], chosen[j])] + if i == j { DIAGONAL_JITTER } else { 0.0 }
        });
        let right: Vec<f64> = chosen.iter().map(|&k| self.pull[k]).collect();
        let factors = Factor::new(gram)?.solve(&right);
        let gain: f64 = factors.iter().zip(&right).map(|(f, r)| f * r).sum();
        let misfit = (self.total - gain).max(0.0);
        let factors = factors.iter().zip(chosen).map(|(f, &k)| f / self.norms[k]);
        Some((factors.collect(), misfit))
    }
}
