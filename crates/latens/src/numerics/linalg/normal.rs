//! Normal equations A = Σ GᵀG, b = Σ Gᵀr, with the rows of G gathered and multiplied in blocks.
//!
//! A row is cut into panels of [`PANEL_WIDTH`] unknowns. The rows wait panel by panel until a block is
//! full; each pair of panels is then one matrix product into a tile of A, the kind of work that
//! runs near the machine's peak, and tiles are shared out among the threads. What a tile sums,
//! and in which order, does not depend on their number. Only tiles of the lower triangle are kept.

use rayon::prelude::*;

pub use super::cholesky::Factor;
use super::eigen::Eigen;
use super::matrix::{Matrix, View};
use super::packed::kernels::row_start;
use super::product::{self, Strips};
use super::simd;

/// Unknowns of a panel.
pub const PANEL_WIDTH: usize = 96;
/// Rows of a block: long enough for level-3 work, short enough to stay in the cache.
const BLOCK_ROWS: usize = 512;

/// A and b, with rows not yet in A.
#[derive(Debug, Clone)]
pub struct NormalEquations {
    /// Tiles (i, j ≤ i) of A, row of tiles by row of tiles.
    tiles: Vec<Matrix>,
    pub b: Vec<f64>,
    /// The waiting rows: of each panel one after another, `PANEL_WIDTH` numbers each, zero beyond n.
    panels: Vec<Vec<f64>>,
    /// Room for each panel as strips, which serve as left factor and as right.
    strips: Vec<Strips>,
    /// Every which row stands in A for all of them.
    thinning: usize,
}

impl NormalEquations {
    /// Zero, for n unknowns; of A, every `thinning`-th row only, times as much. b is always exact:
    /// thinning changes the way to a solution, not the solution.
    pub fn new(n: usize, thinning: usize) -> Self {
        let count = n.div_ceil(PANEL_WIDTH);
        Self {
            tiles: vec![Matrix::zeros(PANEL_WIDTH, PANEL_WIDTH); count * (count + 1) / 2],
            b: vec![0.0; n],
            panels: vec![Vec::new(); count],
            strips: vec![Strips::default(); count],
            thinning,
        }
    }

    /// b and the waiting rows, panel by panel, for the caller to add to: to each panel as many.
    pub fn panels(&mut self) -> impl IndexedParallelIterator<Item = (&mut [f64], &mut Vec<f64>)> {
        self.b.par_chunks_mut(PANEL_WIDTH).zip(&mut self.panels)
    }

    /// Rows one after another, the `count`-th and those that follow it, with their residuals.
    pub fn push(&mut self, mut count: usize, mut rows: &[f64], mut residuals: &[f64]) {
        let n = self.b.len();
        while !residuals.is_empty() {
            // as far as the row that fills a block
            let waiting = self.panels.first().map_or(0, |p| p.len() / PANEL_WIDTH);
            let mut kept = (0..residuals.len()).filter(|k| keeps(count + k, self.thinning));
            let last = kept.nth(BLOCK_ROWS - 1 - waiting);
            let end = last.map_or(residuals.len(), |k| k + 1);
            let (block_rows, block_residuals) = (&rows[..end * n], &residuals[..end]);
            let (thinning, first) = (self.thinning, count);
            self.panels().enumerate().for_each(|(panel, (b, waiting))| {
                let place = panel * PANEL_WIDTH..panel * PANEL_WIDTH + b.len();
                let parts = block_rows.chunks_exact(n).map(|row| &row[place.clone()]);
                for (k, (part, residual)) in parts.zip(block_residuals).enumerate() {
                    b.iter_mut().zip(part).for_each(|(b, g)| *b += g * residual);
                    if keeps(first + k, thinning) {
                        let end = waiting.len() + PANEL_WIDTH;
                        waiting.extend(part);
                        waiting.resize(end, 0.0);
                    }
                }
            });
            (rows, residuals) = (&rows[end * n..], &residuals[end..]);
            count += end;
            self.settle();
        }
    }

    /// After rows were added: multiplies when a block is full.
    pub fn settle(&mut self) {
        if self
            .panels
            .first()
            .is_some_and(|p| p.len() >= BLOCK_ROWS * PANEL_WIDTH)
        {
            self.flush();
        }
    }

    /// Brings A up to date.
    pub fn flush(&mut self) {
        let Self {
            tiles,
            panels,
            strips,
            thinning,
            ..
        } = self;
        let rows = panels.first().map_or(0, |p| p.len() / PANEL_WIDTH);
        let places: Vec<(usize, usize)> = places(panels.len()).collect();
        let (arch, factor) = (simd::arch(), *thinning as f64);
        let pairs = strips.par_iter_mut().zip(panels.par_iter());
        pairs.with_max_len(1).for_each(|(strips, panel)| {
            strips.set(View::columns(panel, PANEL_WIDTH, 0..PANEL_WIDTH, 0..rows));
        });
        let work = tiles.par_iter_mut().zip(places).with_max_len(1);
        work.for_each(|(tile, (i, j))| {
            let target = tile.part_mut(0..PANEL_WIDTH, 0..PANEL_WIDTH);
            product::add_strips(arch, target, factor, &strips[i], &strips[j]);
        });
        panels.iter_mut().for_each(Vec::clear);
    }

    /// A ← A + other's, b likewise; both flushed.
    pub fn add(&mut self, other: &Self) {
        for (tile, other) in self.tiles.iter_mut().zip(&other.tiles) {
            let entries = tile.data_mut().iter_mut().zip(other.data());
            entries.for_each(|(entry, other)| *entry += other);
        }
        for (b, other) in self.b.iter_mut().zip(&other.b) {
            *b += other;
        }
    }

    /// Zero, of the same size.
    pub(crate) fn zero(&self) -> Self {
        Self::new(self.b.len(), self.thinning)
    }

    /// A and b as numbers, for another process; flushed.
    pub(crate) fn to_numbers(&self) -> Vec<f64> {
        let mut numbers = self.b.clone();
        for (tile, (i, j)) in self.tiles.iter().zip(places(self.panels.len())) {
            let (rows, columns) = self.inside(i, j);
            (0..columns).for_each(|k| numbers.extend(&tile.column(k)[..rows]));
        }
        numbers
    }

    /// Back from them; `None` where there are not as many.
    pub(crate) fn from_numbers(n: usize, numbers: &[f64]) -> Option<Self> {
        let mut new = Self::new(n, 1);
        let (b, mut rest) = numbers.split_at_checked(n)?;
        new.b.copy_from_slice(b);
        for (place, (i, j)) in places(new.panels.len()).enumerate() {
            let (rows, columns) = new.inside(i, j);
            for k in 0..columns {
                let entries;
                (entries, rest) = rest.split_at_checked(rows)?;
                new.tiles[place].column_mut(k)[..rows].copy_from_slice(entries);
            }
        }
        rest.is_empty().then_some(new)
    }

    /// Rows and columns of a tile that are unknowns.
    fn inside(&self, i: usize, j: usize) -> (usize, usize) {
        let n = self.b.len();
        (
            PANEL_WIDTH.min(n - i * PANEL_WIDTH),
            PANEL_WIDTH.min(n - j * PANEL_WIDTH),
        )
    }

    /// An entry of A.
    pub fn entry(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.max(j), i.min(j));
        let (row, column) = (i / PANEL_WIDTH, j / PANEL_WIDTH);
        self.tiles[row * (row + 1) / 2 + column][(i % PANEL_WIDTH, j % PANEL_WIDTH)]
    }

    /// Whether A and b are made of numbers, as far as the diagonal tells.
    pub fn is_finite(&self) -> bool {
        let diagonal = self.diagonal();
        diagonal.iter().chain(&self.b).all(|v| v.is_finite())
    }

    /// The diagonal of A.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.b.len()).map(|i| self.entry(i, i)).collect()
    }

    /// Cholesky factor of A + diag(shift); `None` where that is not positive definite.
    pub fn factor(&self, shift: &[f64]) -> Option<Factor> {
        let mut l = self.lower();
        for (i, s) in shift.iter().enumerate() {
            l[(i, i)] += s;
        }
        Factor::new(l)
    }

    /// Eigenvalues λ, from the least, and eigenvectors of D A D, D diagonal.
    ///
    /// A is a sum of squares in rounded numbers: eigenvalues below rounding are zero.
    pub fn spectrum(&self, d: &[f64]) -> Eigen {
        let n = d.len();
        let mut packed = vec![0.0; row_start(n)];
        for (i, di) in d.iter().enumerate() {
            let row = &mut packed[row_start(i)..][..=i];
            for (j, (entry, dj)) in row.iter_mut().zip(d).enumerate() {
                *entry = self.entry(i, j) * (di * dj);
            }
        }
        let mut spectrum = Eigen::from_packed(n, packed);
        let values = &mut spectrum.values;
        let rounding = n as f64 * f64::EPSILON * values.last().copied().unwrap_or(0.0);
        values
            .iter_mut()
            .for_each(|v| *v = if *v > rounding { *v } else { 0.0 });
        spectrum
    }

    /// The lower triangle of A as one matrix.
    fn lower(&self) -> Matrix {
        let n = self.b.len();
        let mut l = Matrix::zeros(n, n);
        for (tile, (i, j)) in self.tiles.iter().zip(places(self.panels.len())) {
            let (row, column) = (i * PANEL_WIDTH, j * PANEL_WIDTH);
            let (rows, columns) = (PANEL_WIDTH.min(n - row), PANEL_WIDTH.min(n - column));
            for k in 0..columns {
                let part = &mut l.column_mut(column + k)[row..row + rows];
                part.copy_from_slice(&tile.column(k)[..rows]);
            }
        }
        l
    }
}

/// Whether the `count`-th row is among those of A, of which so many stand for one. The first is not, where
/// any are left out: at the start of a record nothing depends on θ yet.
pub(crate) fn keeps(count: usize, thinning: usize) -> bool {
    count % thinning == thinning / 2
}

/// (i, j) of the tiles in their order.
fn places(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(|i| (0..=i).map(move |j| (i, j)))
}

/// x with L Lᵀ x = right.
pub fn solve(factor: &Factor, right: &[f64]) -> Vec<f64> {
    factor.solve(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::small;

    /// Blocks, a partial block and two parts added give the same normal equations as plain sums.
    #[test]
    fn blocks_sum_to_the_plain_normal_equations() {
        let n = PANEL_WIDTH + 7;
        let row = |k: usize| -> Vec<f64> {
            let entry = |i: usize| ((k * n + i) as f64).powi(2).sin();
            (0..n).map(entry).collect()
        };
        let residual = |k: usize| (k as f64).cos();
        let (mut first, mut second) = (NormalEquations::new(n, 1), NormalEquations::new(n, 1));
        let (mut a, mut b) = (vec![0.0; n * n], vec![0.0; n]);
        for k in 0..2 * BLOCK_ROWS + 9 {
            let row = row(k);
            for i in 0..n {
                b[i] += row[i] * residual(k);
                for j in 0..n {
                    a[i * n + j] += row[i] * row[j];
                }
            }
        }
        // one by one, and many at once
        for k in 0..700 {
            first.push(k, &row(k), &[residual(k)]);
        }
        let rest = 700..2 * BLOCK_ROWS + 9;
        let rows: Vec<f64> = rest.clone().flat_map(row).collect();
        second.push(700, &rows, &rest.map(residual).collect::<Vec<_>>());
        first.flush();
        second.flush();
        first.add(&second);
        for i in 0..n {
            assert!((first.diagonal()[i] - a[i * n + i]).abs() < 1e-10);
            a[i * n + i] += 0.5;
        }
        let factor = first.factor(&vec![0.5; n]).unwrap();
        let x = solve(&factor, &first.b);
        // with D = √2 I, D A D/2 + I/2 is A + I/2
        let spectrum = first.spectrum(&vec![2f64.sqrt(); n]);
        let (values, v) = (spectrum.values, spectrum.vectors);
        let inverse = |i: usize, j: usize| -> f64 {
            let terms = values.iter().enumerate();
            terms
                .map(|(k, l)| v[(i, k)] * v[(j, k)] / (0.5 * l + 0.5))
                .sum()
        };
        let mut expected = small::identity(n);
        small::solve(&mut a.clone(), &mut b, n).unwrap();
        small::solve(&mut a, &mut expected, n).unwrap();
        for i in 0..n {
            assert!((x[i] - b[i]).abs() < 1e-12);
            for j in 0..=i {
                assert!((inverse(i, j) - expected[i * n + j]).abs() < 1e-12);
            }
        }
        assert!(first.factor(&vec![-1e6; n]).is_none());
    }
}
