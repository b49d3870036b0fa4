//! Covariance of the parameters, half stored, with delayed updates.
//!
//! A recursive filter with one scalar innovation touches the `n × n` covariance `P` of its
//! parameters three times a step,
//!
//! ```text
//! g = P f,     s = q + fᵀ g,     P ← P − g gᵀ / s + q_θ I ,
//! ```
//!
//! and for `n` beyond a few hundred nothing else in the step matters: the cost is the traffic of
//! `P` through the memory. [`PackedCovariance`] keeps that traffic near its floor, one read of
//! half a matrix, in two ways that change nothing in exact arithmetic:
//!
//! - Only the lower triangle is stored. Each entry `P_ij` is loaded once and used twice, for
//!   `(P f)_i` and for `(P f)_j`.
//! - Updates are delayed. With the `k < 32` vectors not yet applied as the columns of `G`,
//!
//!   ```text
//!   P = α (P₀ + c I − G Gᵀ),     P f = α (P₀ f + c f − G (Gᵀ f)) ,
//!   ```
//!
//!   so a step only reads the triangle `P₀`. When `G` is full, one pass applies all its columns:
//!   a rank-32 update does 32 times the arithmetic of a rank-1 update per byte moved.

use pulp::{Arch, Simd, WithSimd};

/// Rows of a block and columns of a panel. A multiple of every SIMD width, so that the part of a
/// row block left of its diagonal block never has a remainder.
const PANEL: usize = 8;

/// Number of downdates that are collected before the triangle is rewritten. A step pays `2n` for
/// each column that waits and `1/DELAY` of a rewrite: flat between 16 and 48, best near 32 for
/// `n` from 700 to 5000.
const DELAY: usize = 24;

/// Pending columns that are multiplied side by side.
const GROUP: usize = 8;

/// Format in which the triangle is stored; arithmetic is in `f64` either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `f64`, 4 n² bytes.
    Double,
    /// `f32`, 2 n² bytes: about twice as fast once the triangle exceeds the cache. Every flush
    /// rounds each entry by up to 6·10⁻⁸ of itself, so a `P` with a condition number beyond about
    /// 10⁶ can lose definiteness.
    Single,
}

/// Eight consecutive components of a vector, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Panel([f64; PANEL]);

const ZERO: Panel = Panel([0.0; PANEL]);

#[derive(Clone, Debug)]
enum Triangle {
    Double(Vec<f64>),
    Single(Vec<f32>),
}

/// Symmetric positive definite matrix `P = α (P₀ + c I − G Gᵀ)` for recursive filters.
///
/// `P₀` is a packed lower triangle: row `i` has `i + 1` entries and follows row `i − 1` without a
/// gap. See the [module](self) for the idea.
///
/// # Cost
/// A step (`apply`, `downdate`, `inflate`) costs `3n²/2` multiply–adds, one read of `n²/2`
/// numbers and 1/32 of a rewrite of them; none of the three allocates. Memory: the triangle and
/// `34 n` numbers.
///
/// # When not to use it
/// - For `n` below about 50, where a full matrix sits in the first-level cache.
/// - With more than a few tens of innovations per step: then a matrix–matrix product pays.
/// - When `P` is nearly singular. A downdate subtracts, and rounding can push the smallest
///   eigenvalue below zero; a square-root filter cannot lose definiteness. Process noise
///   ([`inflate`](Self::inflate)) normally keeps it away, [`smallest_pivot`](Self::smallest_pivot)
///   checks.
#[derive(Clone, Debug)]
pub struct PackedCovariance {
    n: usize,
    triangle: Triangle,
    /// `α`; kept outside the bracket so that `scale` is O(1).
    factor: f64,
    /// `c`, relative to `factor`.
    shift: f64,
    /// `G`, relative to `factor`: for each panel of components its slice of all columns, which is
    /// the order in which the rank-k update and both products with `G` read it.
    pending: Vec<[Panel; DELAY]>,
    /// Columns of `G` in use.
    count: usize,
    x: Vec<Panel>,
    y: Vec<Panel>,
    arch: Arch,
}

impl PackedCovariance {
    /// `P = variance · I`.
    pub fn scaled_identity(n: usize, variance: f64, precision: Precision) -> Self {
        Self::from_diagonal(&vec![variance; n], precision)
    }

    /// `P = diag(diagonal)`.
    pub fn from_diagonal(diagonal: &[f64], precision: Precision) -> Self {
        let n = diagonal.len();
        let mut packed = vec![0.0; row_start(n)];
        for (i, &variance) in diagonal.iter().enumerate() {
            packed[row_start(i) + i] = variance;
        }
        Self::from_packed(n, packed, precision)
    }

    /// `P` from its lower triangle, row by row.
    ///
    /// # Panics
    /// If `packed` does not hold `n (n + 1) / 2` numbers.
    pub fn from_packed(n: usize, packed: Vec<f64>, precision: Precision) -> Self {
        assert_eq!(packed.len(), row_start(n), "length of the packed triangle");
        let panels = n.div_ceil(PANEL);
        Self {
            n,
            triangle: match precision {
                Precision::Double => Triangle::Double(packed),
                Precision::Single => Triangle::Single(packed.iter().map(|&p| p as f32).collect()),
            },
            factor: 1.0,
            shift: 0.0,
            pending: vec![[ZERO; DELAY]; panels],
            count: 0,
            x: vec![ZERO; panels],
            y: vec![ZERO; panels],
            arch: Arch::new(),
        }
    }

    /// Number of parameters `n`.
    pub fn dim(&self) -> usize {
        self.n
    }

    /// `out = P f`, exact also while updates are pending. The only reader of the triangle in a
    /// step; `self` is mutable for its work space alone.
    ///
    /// # Panics
    /// If `f` or `out` is not of length `n`.
    pub fn apply(&mut self, f: &[f64], out: &mut [f64]) {
        assert_eq!(f.len(), self.n, "length of f");
        assert_eq!(out.len(), self.n, "length of out");
        for (x, f) in self.x.iter_mut().zip(f.chunks(PANEL)) {
            x.0[..f.len()].copy_from_slice(f);
        }
        self.y.fill(ZERO);
        let (n, x, y) = (self.n, &self.x, &mut self.y);
        match &self.triangle {
            Triangle::Double(packed) => self.arch.dispatch(TriangleProduct { n, packed, x, y }),
            Triangle::Single(packed) => self.arch.dispatch(TriangleProduct { n, packed, x, y }),
        }
        self.arch.dispatch(PendingProduct {
            pending: &self.pending,
            count: self.count,
            shift: self.shift,
            x: &self.x,
            y: &mut self.y,
        });
        for (out, y) in out.chunks_mut(PANEL).zip(&self.y) {
            for (out, y) in out.iter_mut().zip(y.0) {
                *out = self.factor * y;
            }
        }
    }

    /// `P ← P − weight · g gᵀ`, delayed. A measurement update passes `g = P f` and
    /// `weight = 1 / (q + fᵀ P f)`, which keeps `P` positive definite for every `q > 0`.
    ///
    /// # Panics
    /// If `g` is not of length `n`, or `weight` is not positive and finite.
    pub fn downdate(&mut self, g: &[f64], weight: f64) {
        assert_eq!(g.len(), self.n, "length of g");
        assert!(weight > 0.0 && weight.is_finite(), "weight {weight}");
        if self.count == DELAY {
            self.flush();
        }
        let root = (weight / self.factor).sqrt();
        for (column, g) in self.pending.iter_mut().zip(g.chunks(PANEL)) {
            for (column, g) in column[self.count].0.iter_mut().zip(g) {
                *column = root * g;
            }
        }
        self.count += 1;
    }

    /// `P ← P + variance · I`, the process noise of a parameter's random walk; O(1).
    pub fn inflate(&mut self, variance: f64) {
        self.shift += variance / self.factor;
    }

    /// `P ← factor · P`, for exponential forgetting (`factor = 1/λ`) or annealing; O(1).
    ///
    /// # Panics
    /// If `factor` is not positive and finite.
    pub fn scale(&mut self, factor: f64) {
        assert!(factor > 0.0 && factor.is_finite(), "factor {factor}");
        self.factor *= factor;
    }

    /// Applies everything that is pending in one pass: `P₀ ← α (P₀ + c I − G Gᵀ)`. Never needed
    /// for correctness; results differ by rounding only.
    pub fn flush(&mut self) {
        if self.count == 0 && self.shift == 0.0 && self.factor == 1.0 {
            return;
        }
        let (n, count, shift, factor) = (self.n, self.count, self.shift, self.factor);
        let pending = &self.pending;
        match &mut self.triangle {
            Triangle::Double(packed) => self.arch.dispatch(RankUpdate {
                n,
                packed,
                pending,
                count,
                shift,
                factor,
            }),
            Triangle::Single(packed) => self.arch.dispatch(RankUpdate {
                n,
                packed,
                pending,
                count,
                shift,
                factor,
            }),
        }
        (self.count, self.shift, self.factor) = (0, 0.0, 1.0);
    }

    /// The variances `P_ii`.
    pub fn diagonal(&mut self) -> Vec<f64> {
        self.flush();
        let entry = |i| match &self.triangle {
            Triangle::Double(packed) => packed[row_start(i) + i],
            Triangle::Single(packed) => packed[row_start(i) + i].into(),
        };
        (0..self.n).map(entry).collect()
    }

    /// The lower triangle, row by row.
    pub fn to_packed(&mut self) -> Vec<f64> {
        self.flush();
        match &self.triangle {
            Triangle::Double(packed) => packed.clone(),
            Triangle::Single(packed) => packed.iter().map(|&p| p.into()).collect(),
        }
    }

    /// Smallest pivot `l_ii²` of the Cholesky factorisation `P = L Lᵀ`: an upper bound of the
    /// smallest eigenvalue, and positive exactly when `P` is positive definite. O(n³), on a copy;
    /// a diagnosis, not part of a step.
    ///
    /// # Errors
    /// The index of the first pivot that is not positive.
    pub fn smallest_pivot(&mut self) -> Result<f64, usize> {
        let mut packed = self.to_packed();
        let mut smallest = f64::INFINITY;
        for i in 0..self.n {
            let (above, row) = packed.split_at_mut(row_start(i));
            for j in 0..i {
                let row_j = &above[row_start(j)..][..=j];
                row[j] = (row[j] - dot(&row[..j], &row_j[..j])) / row_j[j];
            }
            let pivot = row[i] - dot(&row[..i], &row[..i]);
            // Written so that NaN fails as well.
            if !(pivot > 0.0) {
                return Err(i);
            }
            row[i] = pivot.sqrt();
            smallest = smallest.min(pivot);
        }
        Ok(smallest)
    }
}

/// Index of the first entry of row `i`.
#[inline(always)]
fn row_start(i: usize) -> usize {
    i * (i + 1) / 2
}

/// Eight partial sums, so that the loop is not one chain of dependent additions.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<PANEL>(), b.as_chunks::<PANEL>());
    let mut sums = [0.0; PANEL];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let tail: f64 = a_tail.iter().zip(b_tail).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + tail
}

/// A stored number; computations are in `f64`.
trait Entry: Copy {
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

// The kernels below run inside pulp's dispatch and are `inline(always)` throughout, so that each
// instruction set gets its own compiled copy.

/// A panel as SIMD vectors: one of eight lanes, two of four, …
#[inline(always)]
fn lanes<S: Simd>(panel: &[f64; PANEL]) -> &[S::f64s] {
    S::as_simd_f64s(panel).0
}

#[inline(always)]
fn lanes_mut<S: Simd>(panel: &mut [f64; PANEL]) -> &mut [S::f64s] {
    S::as_mut_simd_f64s(panel).0
}

/// `y += P₀ x`.
struct TriangleProduct<'a, T> {
    n: usize,
    packed: &'a [T],
    x: &'a [Panel],
    y: &'a mut [Panel],
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
            if rows == PANEL {
                let rows = [0, 1, 2, 3, 4, 5, 6, 7].map(row);
                rectangle(simd, rows, (&x[..block], x_block), (y_left, y_block));
            } else {
                for r in 0..rows {
                    let (x_row, y_row) = (&[x_block[r]], &mut y_block[r..]);
                    rectangle(simd, [row(r)], (&x[..block], x_row), (y_left, y_row));
                }
            }
            diagonal_block(simd, packed, first, rows, x_block, y_block);
        }
    }
}

/// Contribution of the part `A` of `R` rows left of their diagonal block: `y_rows += A x` and
/// `y += Aᵀ x_rows`. The rows share each load of `x` and `y`, and eight streams at once keep the
/// memory busier than four (at n = 5000 by a fifth), though AVX2 is short of registers for them.
#[inline(always)]
fn rectangle<S: Simd, T: Entry, const R: usize>(
    simd: S,
    rows: [&[T]; R],
    (x, x_rows): (&[Panel], &[f64; R]),
    (y, y_rows): (&mut [Panel], &mut [f64]),
) {
    let panels = x.len();
    let y = &mut y[..panels];
    let mut entries: [&[[T; PANEL]]; R] = [&[]; R];
    let mut splats = [simd.splat_f64s(0.0); R];
    let mut sums = splats;
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
                sums[r] = simd.mul_add_e_f64s(a, x_p, sums[r]);
                y_p = simd.mul_add_e_f64s(a, splats[r], y_p);
            }
            *y = y_p;
        }
    }
    for r in 0..R {
        y_rows[r] += simd.reduce_sum_f64s(sums[r]);
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
    // Whole vectors, which run into the next row and are masked: the last block on a scalar path
    // apart, scalar work here would cost a tenth of the product at n = 700.
    let mut block = [[0.0; PANEL]; PANEL];
    for r in 0..PANEL {
        let row = packed[row_start(first + r) + first..].first_chunk();
        block[r] = widen(row.expect("row 7 of a block ends with it"));
    }
    let mut sums = [simd.splat_f64s(0.0); PANEL];
    for (v, y) in lanes_mut::<S>(y).iter_mut().enumerate() {
        let x_v = lanes::<S>(x)[v];
        let mut y_v = *y;
        for r in 0..PANEL {
            let a = lanes::<S>(&block[r])[v];
            let a = simd.mul_f64s(a, lanes::<S>(&HALF_DIAGONAL[r])[v]);
            sums[r] = simd.mul_add_e_f64s(a, x_v, sums[r]);
            y_v = simd.mul_add_e_f64s(a, simd.splat_f64s(x[r]), y_v);
        }
        *y = y_v;
    }
    for r in 0..PANEL {
        y[r] += simd.reduce_sum_f64s(sums[r]);
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

/// `y += c x − G (Gᵀ x)`.
struct PendingProduct<'a> {
    pending: &'a [[Panel; DELAY]],
    count: usize,
    shift: f64,
    x: &'a [Panel],
    y: &'a mut [Panel],
}

impl WithSimd for PendingProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Whole groups of columns, so that their sums stay in registers. What a column beyond
        // `count` holds is of no account: its coefficient is zero.
        let groups = self.count.div_ceil(GROUP);
        let mut minus = [[simd.splat_f64s(0.0); GROUP]; DELAY / GROUP];
        for (group, minus) in minus.iter_mut().enumerate().take(groups) {
            let mut sums = [simd.splat_f64s(0.0); GROUP];
            for (columns, x) in self.pending.iter().zip(self.x) {
                let columns = &columns.as_chunks::<GROUP>().0[group];
                for (v, &x) in lanes::<S>(&x.0).iter().enumerate() {
                    for (sum, column) in sums.iter_mut().zip(columns) {
                        *sum = simd.mul_add_e_f64s(lanes::<S>(&column.0)[v], x, *sum);
                    }
                }
            }
            for (k, sum) in sums.into_iter().enumerate().take(self.count - group * GROUP) {
                minus[k] = simd.splat_f64s(-simd.reduce_sum_f64s(sum));
            }
        }
        let shift = simd.splat_f64s(self.shift);
        for ((columns, x), y) in self.pending.iter().zip(self.x).zip(self.y) {
            for (v, y) in lanes_mut::<S>(&mut y.0).iter_mut().enumerate() {
                let mut sum = simd.mul_add_e_f64s(shift, lanes::<S>(&x.0)[v], *y);
                for (columns, minus) in columns.as_chunks::<GROUP>().0.iter().zip(&minus[..groups]) {
                    for (column, &minus) in columns.iter().zip(minus) {
                        sum = simd.mul_add_e_f64s(minus, lanes::<S>(&column.0)[v], sum);
                    }
                }
                *y = sum;
            }
        }
    }
}

/// `P₀ ← α (P₀ + c I − G Gᵀ)`, tile by tile.
struct RankUpdate<'a, T> {
    n: usize,
    packed: &'a mut [T],
    pending: &'a [[Panel; DELAY]],
    count: usize,
    shift: f64,
    factor: f64,
}

impl<T: Entry> WithSimd for RankUpdate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (block, g_rows) in self.pending.iter().enumerate() {
            let first = block * PANEL;
            let rows = PANEL.min(self.n - first);
            for (p, g_columns) in self.pending[..=block].iter().enumerate() {
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
                *sum = simd.mul_add_e_f64s(simd.splat_f64s(a), b, *sum);
            }
        }
        for (row, sum) in tile.iter_mut().zip(sums) {
            lanes_mut::<S>(&mut row.0)[v] = sum;
        }
    }
    tile
}
