//! Which terms: the best sums of few terms of a library, by a beam search on the normal equations.
//!
//! Sums of k terms are made of the best ones of k − 1, those of k + 1 lose a term again, and so on until
//! nothing changes: a term that was good at first and is not needed later is lost on the way. Sums whose
//! terms differ in inner constants alone count as one kind, of which a few are kept.

use latens::numerics::linalg::matrix::Matrix;

use crate::formula::{Compiled, Term};
use crate::refine::score;
use crate::samples::Target;

/// Sums of each size that are kept: more of a small library, and those of one kind.
const BEAM_SUMS: std::ops::RangeInclusive<usize> = 24..=300;
const BEAM_TERMS: usize = 12_000;
const SUMS_OF_A_KIND: usize = 3;
/// Terms of a sum at the most.
pub const MOST_TERMS: usize = 7;
/// Rounds of adding and losing terms.
const ROUNDS: usize = 3;
/// Terms compiled together.
const BLOCK_TERMS: usize = 100;
/// What is left of a term after others are taken out of it, below which it says nothing of its own.
const LEAST_NOVELTY: f64 = 1e-9;

/// A library where something is known of a function: normal equations of all its terms.
pub struct Dictionary {
    /// The terms that are finite at all points.
    pub terms: Vec<Term>,
    columns: Matrix,
    /// What sums are to follow, independent and of variance one as the columns are.
    white: Vec<f64>,
    /// What a constant costs is the logarithm of this.
    count: usize,
    norms: Vec<f64>,
    gram: Matrix,
    pull: Vec<f64>,
    total: f64,
    /// A number for each text.
    kinds: Vec<usize>,
    divided: usize,
}

/// What sums of terms are to follow.
pub struct Known {
    /// Independent and of variance one.
    pub white: Vec<f64>,
    /// What a constant costs is the logarithm of this.
    pub count: usize,
}

/// A sum of terms.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Places in the dictionary, in order.
    pub terms: Vec<usize>,
    /// Their factors.
    pub factors: Vec<f64>,
    /// See [`crate::refine::Refined`].
    pub score: f64,
}

/// A sum of terms, by their places, and its score.
#[derive(Clone)]
struct Scored {
    score: f64,
    terms: Vec<usize>,
}

impl Dictionary {
    /// Of terms at the points of a target; those of `divided` are multiplied by the value of the network
    /// itself: terms of a denominator.
    pub fn new(target: &Target, terms: &[Term], divided: &[String]) -> Self {
        let arguments = target.points.first().map_or(0, Vec::len);
        let (mut kept, mut columns, mut norms) = (vec![], Vec::<Vec<f64>>::new(), vec![]);
        let white = |values: &[f64]| -> Option<(Vec<f64>, f64)> {
            let white = target.whiten(values);
            let norm = dot(&white, &white).sqrt();
            let usable = norm.is_finite() && norm > 0.0;
            usable.then(|| (white.iter().map(|v| v / norm).collect(), norm))
        };
        for block in terms.chunks(BLOCK_TERMS) {
            let texts: Vec<String> = block.iter().map(Term::filled).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let compiled = Compiled::new(&texts, arguments, 0);
            let Ok(compiled) = compiled else { continue };
            let values = compiled.values(&target.points, &[]);
            for (term, values) in block.iter().zip(values) {
                if let Some((column, norm)) = white(&values) {
                    kept.push(term.clone());
                    columns.push(column);
                    norms.push(norm);
                }
            }
        }
        let plain = kept.len();
        for text in divided {
            let Ok(compiled) = Compiled::new(&[text], arguments, 0) else {
                continue;
            };
            let mut values = compiled.values(&target.points, &[]).remove(0);
            values
                .iter_mut()
                .zip(&target.values)
                .for_each(|(v, y)| *v *= -y);
            if let Some((column, norm)) = white(&values) {
                kept.push(Term::plain(text.clone()));
                columns.push(column);
                norms.push(norm);
            }
        }
        let known = Known {
            white: target.white.clone(),
            count: target.count(),
        };
        Self::of_columns(kept, &columns, norms, known, plain)
    }

    /// Of terms, each with a column of length one and the norm that was taken out of it; those from `plain` on are
    /// of denominators.
    pub fn of_columns(
        terms: Vec<Term>,
        columns: &[Vec<f64>],
        norms: Vec<f64>,
        known: Known,
        plain: usize,
    ) -> Self {
        let (m, p) = (known.white.len(), columns.len());
        let columns = Matrix::from_fn(m, p, |i, j: usize| -> f64 { columns[j][i] });
        let mut gram = Matrix::zeros(p, p);
        gram.add_product(1.0, columns.view().transposed(), columns.view());
        let pull = (0..p)
            .map(|j| dot(columns.column(j), &known.white))
            .collect();
        let mut texts: Vec<&str> = terms.iter().map(|t| t.text.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        let kinds = terms
            .iter()
            .map(|t| texts.binary_search(&t.text.as_str()).unwrap_or(0))
            .collect();
        Self {
            divided: terms.len() - plain,
            terms,
            columns,
            norms,
            gram,
            pull,
            total: dot(&known.white, &known.white),
            kinds,
            white: known.white,
            count: known.count,
        }
    }

    /// Its last terms are so many of denominators.
    pub fn divided(&self) -> usize {
        self.divided
    }

    /// The best sums of every size, best first; `forced` is a term that each of them has.
    pub fn search(&self, forced: Option<usize>, allowed: std::ops::Range<usize>) -> Vec<Chosen> {
        let first: Vec<usize> = forced.into_iter().collect();
        let mut beams: Vec<Vec<Scored>> = vec![vec![]; MOST_TERMS + 1];
        beams[0] = vec![Scored {
            score: 0.0,
            terms: first,
        }];
        for _ in 0..ROUNDS {
            for k in 0..MOST_TERMS {
                let mut next = beams[k + 1].clone();
                for sum in &beams[k] {
                    self.extend(&sum.terms, allowed.clone(), &mut next);
                }
                beams[k + 1] = self.best(next);
            }
            for k in (1..MOST_TERMS).rev() {
                let mut next = beams[k].clone();
                for Scored { terms, .. } in &beams[k + 1] {
                    for lost in terms.iter().filter(|t| Some(**t) != forced) {
                        let rest: Vec<usize> =
                            terms.iter().copied().filter(|t| t != lost).collect();
                        if let Some(misfit) = self.misfit(&rest) {
                            next.push(Scored {
                                score: self.score(misfit, &rest),
                                terms: rest,
                            });
                        }
                    }
                }
                beams[k] = self.best(next);
            }
        }
        let mut all: Vec<Chosen> = beams
            .into_iter()
            .skip(1)
            .flatten()
            .filter_map(|sum| self.chosen(sum.terms))
            .collect();
        all.sort_by(|a, b| a.score.total_cmp(&b.score));
        all
    }

    fn constants(&self, terms: &[usize]) -> usize {
        terms.iter().map(|t| 1 + self.terms[*t].inner.len()).sum()
    }

    fn score(&self, misfit: f64, terms: &[usize]) -> f64 {
        score(misfit.max(0.0), self.count, self.constants(terms))
    }

    /// Adds each term to a sum.
    fn extend(&self, terms: &[usize], allowed: std::ops::Range<usize>, out: &mut Vec<Scored>) {
        let Some(lower) = self.factor(terms) else {
            return;
        };
        let pull: Vec<f64> = terms.iter().map(|t| self.pull[*t]).collect();
        let white = forward(&lower, &pull);
        let misfit = self.total - dot(&white, &white);
        for j in allowed {
            if terms.contains(&j) {
                continue;
            }
            let cross: Vec<f64> = terms.iter().map(|t| self.gram[(*t, j)]).collect();
            let z = forward(&lower, &cross);
            let left = 1.0 - dot(&z, &z);
            if left < LEAST_NOVELTY {
                continue;
            }
            let gain = (self.pull[j] - dot(&z, &white)).powi(2) / left;
            let mut all = terms.to_vec();
            all.push(j);
            out.push(Scored {
                score: self.score(misfit - gain, &all),
                terms: all,
            });
        }
    }

    fn best(&self, mut sums: Vec<Scored>) -> Vec<Scored> {
        sums.iter_mut().for_each(|sum| sum.terms.sort_unstable());
        let by_score = |a: &Scored, b: &Scored| a.score.total_cmp(&b.score);
        sums.sort_by(|a, b| by_score(a, b).then_with(|| a.terms.cmp(&b.terms)));
        sums.dedup_by(|a, b| a.terms == b.terms);
        let mut kinds: Vec<Vec<usize>> = vec![];
        let mut kept = vec![];
        for sum in sums {
            let mut kind: Vec<usize> = sum.terms.iter().map(|t| self.kinds[*t]).collect();
            kind.sort_unstable();
            if kinds.iter().filter(|k| **k == kind).count() < SUMS_OF_A_KIND {
                kinds.push(kind);
                kept.push(sum);
            }
            if kept.len()
                == (BEAM_TERMS / self.terms.len().max(1))
                    .clamp(*BEAM_SUMS.start(), *BEAM_SUMS.end())
            {
                break;
            }
        }
        kept
    }

    fn misfit(&self, terms: &[usize]) -> Option<f64> {
        let lower = self.factor(terms)?;
        let pull: Vec<f64> = terms.iter().map(|t| self.pull[*t]).collect();
        let white = forward(&lower, &pull);
        Some(self.total - dot(&white, &white))
    }

    /// The factors of a sum's terms, and what it leaves, taken from the columns themselves.
    fn chosen(&self, terms: Vec<usize>) -> Option<Chosen> {
        let lower = self.factor(&terms)?;
        let pull: Vec<f64> = terms.iter().map(|t| self.pull[*t]).collect();
        let factors = backward(&lower, forward(&lower, &pull));
        let mut left = self.white.clone();
        for (t, factor) in terms.iter().zip(&factors) {
            let column = self.columns.column(*t).iter();
            left.iter_mut()
                .zip(column)
                .for_each(|(r, c)| *r -= factor * c);
        }
        let misfit = dot(&left, &left);
        Some(Chosen {
            score: self.score(misfit, &terms),
            factors: terms
                .iter()
                .zip(factors)
                .map(|(t, f)| f / self.norms[*t])
                .collect(),
            terms,
        })
    }

    /// The lower Cholesky factor of some terms' normal equations, row by row.
    fn factor(&self, terms: &[usize]) -> Option<Vec<Vec<f64>>> {
        let mut rows: Vec<Vec<f64>> = vec![];
        for t in terms {
            let cross: Vec<f64> = terms[..rows.len()]
                .iter()
                .map(|s| self.gram[(*s, *t)])
                .collect();
            let mut row = forward(&rows, &cross);
            let left = self.gram[(*t, *t)] - dot(&row, &row);
            if left < LEAST_NOVELTY {
                return None;
            }
            row.push(left.sqrt());
            rows.push(row);
        }
        Some(rows)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// z with L z = right.
fn forward(lower: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut z: Vec<f64> = Vec::with_capacity(right.len());
    for (row, r) in lower.iter().zip(right) {
        let value = (r - dot(&row[..z.len()], &z)) / row[z.len()];
        z.push(value);
    }
    z
}

/// x with Lᵀ x = right.
fn backward(lower: &[Vec<f64>], mut x: Vec<f64>) -> Vec<f64> {
    for i in (0..x.len()).rev() {
        x[i] /= lower[i][i];
        let value = x[i];
        for j in 0..i {
            x[j] -= lower[i][j] * value;
        }
    }
    x
}
