//! Eigenvalues of tridiagonal matrices by divide and conquer (Cuppen 1981).
//!
//! Cut in two halves that are solved by themselves, the matrix is
//!
//! ```text
//! T = [Q₁, Q₂] (diag(d) + ρ z zᵀ) [Q₁, Q₂]ᵀ ,
//! ```
//!
//! with z of the last row of Q₁ and the first of Q₂. Where an entry of z is as good as zero, or two
//! of d are as good as equal, a vector is one of T as it stands ([`Merge::deflate`]). For the others
//! the roots of the [secular equation](super::secular) are found, and z again, such that these are
//! its exact roots (Gu and Eisenstat 1994): the vectors (d_i − λ)⁻¹ z_i are then orthogonal to
//! rounding, however close the roots.

use std::ops::Range;

use pulp::Arch;

use super::secular::Secular;
use super::{Tridiagonal, rotations};
use crate::numerics::linalg::matrix::{Matrix, Target};
use crate::numerics::linalg::product;

/// Rows that are solved by rotations.
const ROTATED_ROWS: usize = 32;

/// Eigenvalues in place of the diagonal, from the least; the vectors, in a matrix of zeros.
pub fn solve(arch: Arch, t: &mut Tridiagonal, vectors: &mut Matrix) {
    let n = t.diagonal.len();
    part(arch, t, 0..n, vectors);
}

/// Solves these rows, and fills in their part of the vectors.
fn part(arch: Arch, t: &mut Tridiagonal, rows: Range<usize>, vectors: &mut Matrix) {
    let Range { start, end } = rows;
    if rows.len() <= ROTATED_ROWS {
        let mut block = Tridiagonal {
            diagonal: t.diagonal[rows.clone()].to_vec(),
            beside: t.beside[start..end.max(start + 1) - 1].to_vec(),
        };
        let z = rotations::solve(&mut block);
        t.diagonal[rows.clone()].copy_from_slice(&block.diagonal);
        for k in 0..rows.len() {
            vectors.column_mut(start + k)[rows.clone()].copy_from_slice(z.column(k));
        }
        return;
    }
    let middle = start + rows.len() / 2;
    let beside = t.beside[middle - 1];
    t.diagonal[middle - 1] -= beside.abs();
    t.diagonal[middle] -= beside.abs();
    part(arch, t, start..middle, vectors);
    part(arch, t, middle..end, vectors);
    let mut merge = Merge::new(&t.diagonal[rows.clone()], start, middle, beside, vectors);
    merge.deflate(vectors);
    let values = merge.finish(arch, vectors);
    t.diagonal[rows].copy_from_slice(&values);
}

/// Where a vector is not zero.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    First,
    Second,
    Both,
}

/// Two halves on their way to one.
struct Merge {
    start: usize,
    /// Rows of the first half.
    first: usize,
    d: Vec<f64>,
    z: Vec<f64>,
    rho: f64,
    halves: Vec<Half>,
    /// The vectors that go into the secular equation, by d, and those that are done.
    open: Vec<usize>,
    done: Vec<usize>,
}

impl Merge {
    fn new(d: &[f64], start: usize, middle: usize, beside: f64, vectors: &Matrix) -> Self {
        let (n, first) = (d.len(), middle - start);
        let z = |k: usize| {
            let half = std::f64::consts::FRAC_1_SQRT_2;
            if k < first {
                half * vectors[(middle - 1, start + k)]
            } else {
                half.copysign(beside) * vectors[(middle, start + k)]
            }
        };
        let half = |k: usize| if k < first { Half::First } else { Half::Second };
        Self {
            start,
            first,
            d: d.to_vec(),
            z: (0..n).map(z).collect(),
            rho: 2.0 * beside.abs(),
            halves: (0..n).map(half).collect(),
            open: vec![],
            done: vec![],
        }
    }

    /// Finds the vectors that are done: where z is nothing, and where two of d are so close that a
    /// rotation makes one of their entries of z zero and errs by rounding.
    fn deflate(&mut self, vectors: &mut Matrix) {
        let n = self.d.len();
        let largest = |v: &[f64]| v.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let rounding = 8.0 * f64::EPSILON * largest(&self.d).max(largest(&self.z));
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| self.d[i].total_cmp(&self.d[j]));
        let mut waiting: Option<usize> = None;
        for j in order {
            if self.rho * self.z[j].abs() <= rounding {
                self.done.push(j);
                continue;
            }
            let Some(i) = waiting.replace(j) else {
                continue;
            };
            let size = self.z[j].hypot(self.z[i]);
            let (cos, sin) = (self.z[j] / size, -self.z[i] / size);
            if ((self.d[j] - self.d[i]) * cos * sin).abs() > rounding {
                self.open.push(i);
                continue;
            }
            (self.z[i], self.z[j]) = (0.0, size);
            if self.halves[i] != self.halves[j] {
                self.halves[j] = Half::Both;
            }
            self.rotate(i, j, cos, sin, vectors);
            let (before, after) = (self.d[i], self.d[j]);
            self.d[i] = before * cos * cos + after * sin * sin;
            self.d[j] = before * sin * sin + after * cos * cos;
            self.done.push(i);
        }
        self.open.extend(waiting);
    }

    fn rotate(&self, i: usize, j: usize, cos: f64, sin: f64, vectors: &mut Matrix) {
        let rows = self.start..self.start + self.d.len();
        for row in rows {
            let (x, y) = (
                vectors[(row, self.start + i)],
                vectors[(row, self.start + j)],
            );
            vectors[(row, self.start + i)] = cos * x + sin * y;
            vectors[(row, self.start + j)] = cos * y - sin * x;
        }
    }

    /// The eigenvalues, from the least, and their vectors in place of those of the halves.
    fn finish(&self, arch: Arch, vectors: &mut Matrix) -> Vec<f64> {
        let (n, start, count) = (self.d.len(), self.start, self.open.len());
        let (mut values, turn) = self.roots();
        let mut new = Matrix::zeros(n, n);
        let halves = [(0..self.first, Half::First), (self.first..n, Half::Second)];
        for (rows, half) in halves {
            let takes_part = |&k: &usize| [half, Half::Both].contains(&self.halves[self.open[k]]);
            let taking: Vec<usize> = (0..count).filter(takes_part).collect();
            let old = Matrix::from_fn(rows.len(), taking.len(), |i, k| {
                vectors[(start + rows.start + i, start + self.open[taking[k]])]
            });
            let turn = Matrix::from_fn(taking.len(), count, |i, k| turn[(taking[i], k)]);
            let target = Target::columns(new.data_mut(), n, rows, 0..count);
            product::add(arch, target, 1.0, old.view(), turn.view());
        }
        let rows = start..start + n;
        for (k, &j) in self.done.iter().enumerate() {
            values.push(self.d[j]);
            let old = &vectors.column(start + j)[rows.clone()];
            new.column_mut(count + k).copy_from_slice(old);
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
        for (k, &j) in order.iter().enumerate() {
            vectors.column_mut(start + k)[rows.clone()].copy_from_slice(new.column(j));
        }
        order.iter().map(|&j| values[j]).collect()
    }

    /// The roots of the secular equation and the vectors of diag(d) + ρ z zᵀ.
    fn roots(&self) -> (Vec<f64>, Matrix) {
        let count = self.open.len();
        let d: Vec<f64> = self.open.iter().map(|&j| self.d[j]).collect();
        let z: Vec<f64> = self.open.iter().map(|&j| self.z[j]).collect();
        let secular = Secular {
            poles: &d,
            z: &z,
            rho: self.rho,
        };
        let mut turn = Matrix::zeros(count, count);
        let values = (0..count)
            .map(|k| secular.root(k, turn.column_mut(k)))
            .collect();
        // z of which these are the exact roots: Löwner's formula
        let mut exact = vec![1.0; count];
        for k in 0..count {
            for (i, (exact, distance)) in exact.iter_mut().zip(turn.column(k)).enumerate() {
                *exact *= if i == k {
                    -distance
                } else {
                    distance / (d[i] - d[k])
                };
            }
        }
        for (exact, z) in exact.iter_mut().zip(&z) {
            *exact = exact.max(0.0).sqrt().copysign(*z);
        }
        for k in 0..count {
            let column = turn.column_mut(k);
            for (distance, z) in column.iter_mut().zip(&exact) {
                *distance = z / *distance;
            }
            let size = column.iter().map(|v| v * v).sum::<f64>().sqrt();
            column.iter_mut().for_each(|v| *v /= size);
        }
        (values, turn)
    }
}
