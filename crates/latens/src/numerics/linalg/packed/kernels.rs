//! The three passes over the triangle and over the pending columns.
//!
//! All of them run inside pulp's dispatch and are `inline(always)` throughout, so that each
//! instruction set gets its own compiled copy.

use pulp::{Simd, WithSimd};

use crate::numerics::linalg::simd::{LANES, Panel, ZERO, lanes, lanes_mut, sum};

/// Rows of a block and columns of a panel. A multiple of every SIMD width, so that the part of a
/// row block left of its diagonal block never has a remainder.
pub const PANEL: usize = LANES;

/// Number of downdates that are collected before the triangle is rewritten. A step pays `2n` for
/// each column that waits and `1/DELAY` of a rewrite; measured for `n` from 741 to 5000, the sum is
/// flat to 5 % between 16 and 48. A multiple of [`GROUP_COLUMNS`].
pub const DELAY: usize = 24;

/// Pending columns that are multiplied side by side.
const GROUP_COLUMNS: usize = 8;

/// Index of the first entry of row `i`.
#[inline(always)]
pub fn row_start(i: usize) -> usize {
    i * (i + 1) / 2
}

/// A stored number; computations are in `f64`.
pub trait Entry: Copy {
    fn widen(self) -> f64;
    fn narrow(value: f64) -> Self;
}

impl Entry for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value
    }
}

impl Entry for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value as f32
    }
}

/// `y += P₀ x`.
pub struct TriangleProduct<'a, T> {
    pub n: usize,
    pub packed: &'a [T],
    pub x: &'a [Panel],
    pub y: &'a mut [Panel],
}

impl<T: Entry> WithSimd for TriangleProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { n, packed, x, y } = self;
        for block in 0..x.len() {
            let first = block * PANEL;
            let rows = PANEL.min(n - first);
            let (y_left, y_block) = y.split_at_mut(block);
            let (x_block, y_block) = (&x[block].0, &mut y_block[0].0);
            let row = |r| &packed[row_start(first + r)..];
            if rows == PANEL && S::F64_LANES == LANES {
                let rows = [0, 1, 2, 3, 4, 5, 6, 7].map(row);
                rectangle(simd, rows, &x[..block], x_block, y_left, y_block);
            } else if rows == PANEL {
                for half in [0, 4] {
                    let rows = [half, half + 1, half + 2, half + 3].map(row);
                    let (x_half, y_half) = (x_block[half..].first_chunk(), &mut y_block[half..]);
                    let x_half = x_half.expect("half a panel");
                    rectangle(simd, rows, &x[..block], x_half, y_left, y_half);
                }
            } else {
                for r in 0..rows {
                    let (x_row, y_row) = (&[x_block[r]], &mut y_block[r..]);
                    rectangle(simd, [row(r)], &x[..block], x_row, y_left, y_row);
                }
            }
            diagonal_block(simd, packed, first, rows, x_block, y_block);
        }
    }
}

/// Contribution of the part `A` of `R` rows left of their diagonal block: `y_rows += A x` and
/// `y += Aᵀ x_rows`. The rows share each load of `x` and `y`, and eight streams at once keep the
/// memory busier than four (at n = 5000 by a fifth); but eight virtual lanes of eight rows are all
/// the registers of AVX2, which takes four rows after the others. The order of sums is the same.
#[inline(always)]
fn rectangle<S: Simd, T: Entry, const R: usize>(
    simd: S,
    rows: [&[T]; R],
    x: &[Panel],
    x_rows: &[f64; R],
    y: &mut [Panel],
    y_rows: &mut [f64],
) {
    let panels = x.len();
    let y = &mut y[..panels];
    let mut entries: [&[[T; PANEL]]; R] = [&[]; R];
    let mut splats = [simd.splat_f64s(0.0); R];
    let mut sums = [[simd.splat_f64s(0.0); LANES]; R];
    for r in 0..R {
        entries[r] = &rows[r].as_chunks().0[..panels];
        splats[r] = simd.splat_f64s(x_rows[r]);
    }
    for p in 0..panels {
        for (v, y) in lanes_mut::<S>(&mut y[p].0).iter_mut().enumerate() {
            let x_p = lanes::<S>(&x[p].0)[v];
            let mut y_p = *y;
            for r in 0..R {
                let a = lanes::<S>(&widen(&entries[r][p]))[v];
                sums[r][v] = simd.mul_add_f64s(a, x_p, sums[r][v]);
                y_p = simd.mul_add_f64s(a, splats[r], y_p);
            }
            *y = y_p;
        }
    }
    for r in 0..R {
        y_rows[r] += sum(simd, sums[r]);
    }
}

#[inline(always)]
fn widen<T: Entry>(entries: &[T; PANEL]) -> [f64; PANEL] {
    let mut wide = [0.0; PANEL];
    for (wide, entry) in wide.iter_mut().zip(entries) {
        *wide = entry.widen();
    }
    wide
}

/// Contribution `y += D x` of the block on the diagonal whose first row is `first`.
#[inline(always)]
fn diagonal_block<S: Simd, T: Entry>(
    simd: S,
    packed: &[T],
    first: usize,
    rows: usize,
    x: &[f64; PANEL],
    y: &mut [f64; PANEL],
) {
    if rows < PANEL {
        for r in 0..rows {
            let row = &packed[row_start(first + r) + first..][..=r];
            for c in 0..r {
                y[r] += row[c].widen() * x[c];
                y[c] += row[c].widen() * x[r];
            }
            y[r] += row[r].widen() * x[r];
        }
        return;
    }
    // Whole vectors, which run into the next row and are masked: entry by entry this block would
    // take a tenth of the whole product at n = 741.
    let mut block = [[0.0; PANEL]; PANEL];
    for r in 0..PANEL {
        let row = packed[row_start(first + r) + first..].first_chunk();
        block[r] = widen(row.expect("row 7 of a block ends with it"));
    }
    let mut sums = [[simd.splat_f64s(0.0); LANES]; PANEL];
    for (v, y) in lanes_mut::<S>(y).iter_mut().enumerate() {
        let x_v = lanes::<S>(x)[v];
        let mut y_v = *y;
        for r in 0..PANEL {
            let a = lanes::<S>(&block[r])[v];
            let a = simd.mul_f64s(a, lanes::<S>(&HALF_DIAGONAL[r])[v]);
            sums[r][v] = simd.mul_f64s(a, x_v);
            y_v = simd.mul_add_f64s(a, simd.splat_f64s(x[r]), y_v);
        }
        *y = y_v;
    }
    for r in 0..PANEL {
        y[r] += sum(simd, sums[r]);
    }
}

/// Mask of the lower triangle of a block. Products with a row and with its transpose both see the
/// diagonal, so each gets half of it, which is exact.
const HALF_DIAGONAL: [[f64; PANEL]; PANEL] = {
    let mut mask = [[0.0; PANEL]; PANEL];
    let mut r = 0;
    while r < PANEL {
        let mut c = 0;
        while c < r {
            mask[r][c] = 1.0;
            c += 1;
        }
        mask[r][r] = 0.5;
        r += 1;
    }
    mask
};

/// `y += c x − L (Rᵀ x)`; of a covariance, `L` and `R` are both `G`.
pub struct PendingProduct<'a> {
    pub left: &'a [[Panel; DELAY]],
    pub right: &'a [[Panel; DELAY]],
    pub count: usize,
    pub shift: f64,
    pub x: &'a [Panel],
    pub y: &'a mut [Panel],
}

impl WithSimd for PendingProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Whole groups of columns, so that their sums stay in registers. A column beyond `count`
        // holds zeros or an update that was applied before; its coefficient is zero.
        let groups = self.count.div_ceil(GROUP_COLUMNS);
        let mut minus = [[simd.splat_f64s(0.0); GROUP_COLUMNS]; DELAY / GROUP_COLUMNS];
        for (group, minus) in minus.iter_mut().enumerate().take(groups) {
            let mut sums = [0.0; GROUP_COLUMNS];
            if S::F64_LANES == LANES {
                inner_products::<S, GROUP_COLUMNS>(
                    simd,
                    self.right,
                    self.x,
                    group * GROUP_COLUMNS,
                    &mut sums,
                );
            } else {
                for (half, sums) in sums.chunks_exact_mut(GROUP_COLUMNS / 2).enumerate() {
                    let first = group * GROUP_COLUMNS + half * GROUP_COLUMNS / 2;
                    inner_products::<S, { GROUP_COLUMNS / 2 }>(
                        simd, self.right, self.x, first, sums,
                    );
                }
            }
            for k in 0..GROUP_COLUMNS.min(self.count - group * GROUP_COLUMNS) {
                minus[k] = simd.splat_f64s(-sums[k]);
            }
        }
        let shift = simd.splat_f64s(self.shift);
        for ((columns, x), y) in self.left.iter().zip(self.x).zip(self.y) {
            for (v, y) in lanes_mut::<S>(&mut y.0).iter_mut().enumerate() {
                let mut sum = simd.mul_add_f64s(shift, lanes::<S>(&x.0)[v], *y);
                let columns = columns.as_chunks::<GROUP_COLUMNS>().0;
                for (columns, minus) in columns.iter().zip(&minus[..groups]) {
                    for (column, &minus) in columns.iter().zip(minus) {
                        sum = simd.mul_add_f64s(minus, lanes::<S>(&column.0)[v], sum);
                    }
                }
                *y = sum;
            }
        }
    }
}

/// Inner products of `x` with `C` columns side by side.
#[inline(always)]
fn inner_products<S: Simd, const C: usize>(
    simd: S,
    columns: &[[Panel; DELAY]],
    x: &[Panel],
    first: usize,
    products: &mut [f64],
) {
    let mut sums = [[simd.splat_f64s(0.0); LANES]; C];
    for (columns, x) in columns.iter().zip(x) {
        let columns = &columns[first..first + C];
        for (v, &x) in lanes::<S>(&x.0).iter().enumerate() {
            for k in 0..C {
                sums[k][v] = simd.mul_add_f64s(lanes::<S>(&columns[k].0)[v], x, sums[k][v]);
            }
        }
    }
    for (product, sums) in products.iter_mut().zip(sums) {
        *product = sum(simd, sums);
    }
}

/// `P₀ ← α (P₀ + c I − L Rᵀ)`, tile by tile, where `L Rᵀ` is symmetric.
pub struct RankUpdate<'a, T> {
    pub n: usize,
    pub packed: &'a mut [T],
    pub left: &'a [[Panel; DELAY]],
    pub right: &'a [[Panel; DELAY]],
    pub count: usize,
    pub shift: f64,
    pub factor: f64,
}

impl<T: Entry> WithSimd for RankUpdate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (block, g_rows) in self.left.iter().enumerate() {
            let first = block * PANEL;
            let rows = PANEL.min(self.n - first);
            for (p, g_columns) in self.right[..=block].iter().enumerate() {
                let (a, b) = (&g_rows[..self.count], &g_columns[..self.count]);
                let mut tile = outer_products(simd, a, b);
                for r in 0..rows {
                    let row = &mut self.packed[row_start(first + r) + p * PANEL..];
                    if p < block {
                        subtract(&mut row[..PANEL], &tile[r], self.factor);
                    } else {
                        tile[r].0[r] -= self.shift;
                        subtract(&mut row[..=r], &tile[r], self.factor);
                    }
                }
            }
        }
    }
}

/// `row ← factor (row − products)`.
#[inline(always)]
fn subtract<T: Entry>(row: &mut [T], products: &Panel, factor: f64) {
    for (entry, product) in row.iter_mut().zip(&products.0) {
        *entry = T::narrow(factor * (entry.widen() - product));
    }
}

/// The 8 × 8 tile `Σ_k a_k b_kᵀ`, kept in registers while it is summed.
#[inline(always)]
fn outer_products<S: Simd>(simd: S, a: &[Panel], b: &[Panel]) -> [Panel; PANEL] {
    let mut tile = [ZERO; PANEL];
    for v in 0..PANEL / S::F64_LANES {
        let mut sums = [simd.splat_f64s(0.0); PANEL];
        for (a, b) in a.iter().zip(b) {
            let b = lanes::<S>(&b.0)[v];
            for (sum, &a) in sums.iter_mut().zip(&a.0) {
                *sum = simd.mul_add_f64s(simd.splat_f64s(a), b, *sum);
            }
        }
        for (row, sum) in tile.iter_mut().zip(sums) {
            lanes_mut::<S>(&mut row.0)[v] = sum;
        }
    }
    tile
}
