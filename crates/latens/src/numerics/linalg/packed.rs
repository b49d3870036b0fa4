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
//! - Updates are delayed. With the `k ≤ 24` vectors not yet applied as the columns of `G`,
//!
//!   ```text
//!   P = α (P₀ + c I − G Gᵀ),     P f = α (P₀ f + c f − G (Gᵀ f)) ,
//!   ```
//!
//!   so a step only reads the triangle `P₀`. When `G` is full, one pass applies all its columns:
//!   a rank-24 update does 24 times the arithmetic of a rank-1 update per byte moved.

pub(super) mod kernels;

use super::simd::{self, Panel, ZERO};
use kernels::{DELAY, PANEL, PendingProduct, RankUpdate, TriangleProduct, row_start};
use pulp::Arch;

/// Format in which the triangle is stored; arithmetic is in `f64` either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `f64`, 4 n² bytes.
    Double,
    /// `f32`, 2 n² bytes: about 1.6 times as fast once the triangle exceeds the cache. Every
    /// flush rounds each entry by up to 6·10⁻⁸ of itself, so a `P` with a condition number beyond about
    /// 10⁶ can lose definiteness.
    Single,
}

#[derive(Clone, Debug)]
enum Triangle {
    Double(Vec<f64>),
    Single(Vec<f32>),
}

/// What a [`PackedCovariance`] consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// `P₀`, row by row.
    pub triangle: Vec<f64>,
    /// The columns of `G` in use, one after another.
    pub pending: Vec<f64>,
    /// `α`.
    pub factor: f64,
    /// `c`.
    pub shift: f64,
}

/// Symmetric positive definite matrix `P = α (P₀ + c I − G Gᵀ)` for recursive filters.
///
/// `P₀` is a packed lower triangle: row `i` has `i + 1` entries and follows row `i − 1` without a
/// gap. See the [module](self) for the idea.
///
/// # Cost
/// A step (`apply`, `downdate`, `inflate`) costs `3n²/2` multiply–adds, one read of `n²/2`
/// numbers and 1/24 of a rewrite of them; none of the three allocates. Memory: the triangle and
/// `26 n` numbers.
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
            arch: simd::arch(),
        }
    }

    /// All of `P`, delayed updates as they wait: [`from_parts`](Self::from_parts) makes a matrix of
    /// them that goes on bit for bit.
    pub fn parts(&self) -> Parts {
        let column = |k: usize| {
            let panels = self.pending.iter().flat_map(move |panel| panel[k].0);
            panels.take(self.n)
        };
        Parts {
            triangle: match &self.triangle {
                Triangle::Double(packed) => packed.clone(),
                Triangle::Single(packed) => packed.iter().map(|&p| p.into()).collect(),
            },
            pending: (0..self.count).flat_map(column).collect(),
            factor: self.factor,
            shift: self.shift,
        }
    }

    /// `P` from its parts; `None` where they do not belong together.
    pub fn from_parts(n: usize, parts: Parts, precision: Precision) -> Option<Self> {
        let count = parts.pending.len() / n.max(1);
        let fits = parts.triangle.len() == row_start(n) && parts.pending.len() == count * n;
        if !fits || count > DELAY {
            return None;
        }
        let mut new = Self::from_packed(n, parts.triangle, precision);
        for (k, column) in parts.pending.chunks_exact(n.max(1)).enumerate() {
            for (panel, values) in new.pending.iter_mut().zip(column.chunks(PANEL)) {
                panel[k].0[..values.len()].copy_from_slice(values);
            }
        }
        (new.count, new.factor, new.shift) = (count, parts.factor, parts.shift);
        Some(new)
    }

    /// Format in which the triangle is stored.
    pub fn precision(&self) -> Precision {
        match self.triangle {
            Triangle::Double(_) => Precision::Double,
            Triangle::Single(_) => Precision::Single,
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
            left: &self.pending,
            right: &self.pending,
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

    /// `P ← P + variance · I`, the process noise of the parameters' random walk; O(1).
    ///
    /// # Panics
    /// If `variance` is negative or not finite.
    pub fn inflate(&mut self, variance: f64) {
        assert!(
            variance >= 0.0 && variance.is_finite(),
            "variance {variance}"
        );
        self.shift += variance / self.factor;
    }

    /// `P ← factor · P`, for forgetting or annealing; O(1), but where the factors of many calls
    /// without a downdate have gone out of bounds together.
    ///
    /// # Panics
    /// If `factor` is not positive and finite.
    pub fn scale(&mut self, factor: f64) {
        assert!(factor > 0.0 && factor.is_finite(), "factor {factor}");
        self.factor *= factor;
        if !(1e-100..1e100).contains(&self.factor) {
            self.flush();
        }
    }

    /// The variance `P_ii` alone, exact also while updates are pending.
    pub fn variance(&self, i: usize) -> f64 {
        let entry = match &self.triangle {
            Triangle::Double(packed) => packed[row_start(i) + i],
            Triangle::Single(packed) => packed[row_start(i) + i].into(),
        };
        let columns = &self.pending[i / PANEL][..self.count];
        let pending: f64 = columns.iter().map(|g| g.0[i % PANEL].powi(2)).sum();
        self.factor * (entry + self.shift - pending)
    }

    /// Applies everything that is pending in one pass: `P₀ ← α (P₀ + c I − G Gᵀ)`. Never needed
    /// for correctness; results differ by rounding only.
    pub fn flush(&mut self) {
        if self.count == 0 && self.shift == 0.0 && self.factor == 1.0 {
            return;
        }
        let (n, count, shift, factor) = (self.n, self.count, self.shift, self.factor);
        let (left, right) = (&self.pending, &self.pending);
        match &mut self.triangle {
            Triangle::Double(packed) => self.arch.dispatch(RankUpdate {
                n,
                packed,
                left,
                right,
                count,
                shift,
                factor,
            }),
            Triangle::Single(packed) => self.arch.dispatch(RankUpdate {
                n,
                packed,
                left,
                right,
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
            if pivot.is_nan() || pivot <= 0.0 {
                return Err(i);
            }
            row[i] = pivot.sqrt();
            smallest = smallest.min(pivot);
        }
        Ok(smallest)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform on (−1, 1), from a linear congruential generator.
    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            let Self(state) = self;
            *state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (*state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        }

        fn vector(&mut self, n: usize) -> Vec<f64> {
            (0..n).map(|_| self.next()).collect()
        }
    }

    /// Full storage, every operation at once.
    struct Dense(Vec<Vec<f64>>);

    impl Dense {
        fn from_packed(n: usize, packed: &[f64]) -> Self {
            let entry = |i: usize, j: usize| packed[row_start(i.max(j)) + i.min(j)];
            Self(
                (0..n)
                    .map(|i| (0..n).map(|j| entry(i, j)).collect())
                    .collect(),
            )
        }

        fn apply(&self, f: &[f64]) -> Vec<f64> {
            self.0
                .iter()
                .map(|row| row.iter().zip(f).map(|(p, f)| p * f).sum())
                .collect()
        }

        fn map(&mut self, new: impl Fn(usize, usize, f64) -> f64) {
            for (i, row) in self.0.iter_mut().enumerate() {
                for (j, p) in row.iter_mut().enumerate() {
                    *p = new(i, j, *p);
                }
            }
        }

        fn to_packed(&self) -> Vec<f64> {
            self.0
                .iter()
                .enumerate()
                .flat_map(|(i, row)| row[..=i].to_vec())
                .collect()
        }
    }

    /// A well-conditioned start: `I` plus small off-diagonal entries.
    fn start(n: usize, random: &mut Uniform) -> Vec<f64> {
        let mut packed = random.vector(row_start(n));
        packed.iter_mut().for_each(|p| *p *= 0.3 / n as f64);
        (0..n).for_each(|i| packed[row_start(i) + i] += 1.0);
        packed
    }

    fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len());
        let largest = b.iter().fold(0.0_f64, |max, b| max.max(b.abs()));
        let difference = a
            .iter()
            .zip(b)
            .fold(0.0_f64, |max, (a, b)| max.max((a - b).abs()));
        difference / largest
    }

    /// One measurement update; returns the gain vector `P f`.
    fn update(p: &mut PackedCovariance, f: &[f64], noise: f64) -> (Vec<f64>, f64) {
        let mut g = vec![0.0; f.len()];
        p.apply(f, &mut g);
        let weight = 1.0 / (noise + dot(f, &g));
        p.downdate(&g, weight);
        (g, weight)
    }

    #[test]
    fn equals_dense_storage_for_any_order_of_operations() {
        for n in [1, 2, 3, 7, 16, 33, 64, 131] {
            let mut random = Uniform(n as u64);
            let packed = start(n, &mut random);
            let mut dense = Dense::from_packed(n, &packed);
            let mut p = PackedCovariance::from_packed(n, packed, Precision::Double);
            for _ in 0..5 * DELAY {
                let f = random.vector(n);
                let expected = dense.apply(&f);
                match (4.0 * random.next().abs()) as usize {
                    0 => {
                        let mut out = vec![f64::NAN; n];
                        p.apply(&f, &mut out);
                        assert!(relative_difference(&out, &expected) < 1e-12, "n = {n}");
                    }
                    1 => {
                        p.inflate(0.01);
                        dense.map(|i, j, p| if i == j { p + 0.01 } else { p });
                    }
                    2 => {
                        p.scale(1.02);
                        dense.map(|_, _, p| 1.02 * p);
                    }
                    _ => {
                        let (g, weight) = update(&mut p, &f, 0.5);
                        assert!(relative_difference(&g, &expected) < 1e-12, "n = {n}");
                        dense.map(|i, j, p| p - weight * g[i] * g[j]);
                    }
                }
            }
            assert!(
                relative_difference(&p.to_packed(), &dense.to_packed()) < 1e-12,
                "n = {n}"
            );
        }
    }

    #[test]
    fn time_of_flush_does_not_matter() {
        let n = 45;
        let run = |period: usize| {
            let mut random = Uniform(5);
            let mut p = PackedCovariance::from_diagonal(&vec![2.0; n], Precision::Double);
            for step in 0..100 {
                update(&mut p, &random.vector(n), 0.1);
                p.inflate(1e-3);
                p.scale(1.001);
                if step % period == period - 1 {
                    p.flush();
                }
            }
            p.to_packed()
        };
        let late = run(1000);
        for period in [1, 2, 5, DELAY - 1, DELAY, DELAY + 1] {
            assert!(
                relative_difference(&run(period), &late) < 1e-12,
                "period {period}"
            );
        }
    }

    /// Cut anywhere, taken apart and put together, the recursion goes on bit for bit.
    #[test]
    fn parts_go_on_bit_for_bit() {
        let n = 45;
        for (precision, rounding) in [(Precision::Double, 1e-13), (Precision::Single, 1e-6)] {
            let run = |cut: usize| {
                let mut random = Uniform(9);
                let mut p = PackedCovariance::from_diagonal(&vec![2.0; n], precision);
                for step in 0..70 {
                    update(&mut p, &random.vector(n), 0.1);
                    p.scale(0.999);
                    p.inflate(1e-3);
                    if step == cut {
                        p = PackedCovariance::from_parts(n, p.parts(), precision).unwrap();
                    }
                }
                let variances: Vec<f64> = (0..n).map(|i| p.variance(i)).collect();
                assert!(relative_difference(&variances, &p.clone().diagonal()) < rounding);
                p.to_packed()
            };
            let whole = run(1000);
            for cut in [0, 10, 23, 24, 25, 69] {
                assert!(run(cut) == whole, "{precision:?}, cut at {cut}");
            }
        }
        let mut parts = PackedCovariance::scaled_identity(3, 1.0, Precision::Double).parts();
        parts.pending.push(1.0);
        assert!(PackedCovariance::from_parts(3, parts, Precision::Double).is_none());
    }

    #[test]
    fn stays_positive_definite() {
        let n = 60;
        let mut random = Uniform(11);
        let mut p = PackedCovariance::scaled_identity(n, 100.0, Precision::Double);
        for _ in 0..5000 {
            update(&mut p, &random.vector(n), 1e-3);
            p.inflate(1e-6);
        }
        assert!(p.smallest_pivot().unwrap() > 1e-6);
        assert!(
            p.diagonal()
                .iter()
                .all(|&variance| variance > 0.0 && variance < 1.0)
        );
    }

    /// Each of the 13 flushes rounds an entry by at most 2⁻²⁴ = 6·10⁻⁸ of itself, and the recursion
    /// is a contraction that damps earlier errors, so they add up to at most 13·6·10⁻⁸ < 10⁻⁶ of
    /// the largest entry.
    #[test]
    fn single_precision_is_close_to_double() {
        let n = 70;
        let run = |precision| {
            let mut random = Uniform(3);
            let mut p = PackedCovariance::scaled_identity(n, 1.0, precision);
            for _ in 0..13 * DELAY {
                update(&mut p, &random.vector(n), 1.0);
                p.inflate(1e-2);
            }
            p.to_packed()
        };
        let difference = relative_difference(&run(Precision::Single), &run(Precision::Double));
        assert!(difference > 0.0 && difference < 1e-6, "{difference:e}");
    }

    /// Products, delayed updates and flushes, whole blocks and remainders: sums are taken in eight
    /// lanes and in one order, however many of them a register holds.
    #[test]
    fn all_instruction_sets_give_the_same_bits() {
        for precision in [Precision::Double, Precision::Single] {
            for n in [1, 5, 8, 30, 77] {
                simd::forced::assert_equal_bits(|| {
                    let mut random = Uniform(n as u64);
                    let packed = start(n, &mut random);
                    let mut p = PackedCovariance::from_packed(n, packed, precision);
                    let mut all = vec![];
                    for _ in 0..3 * DELAY / 2 {
                        let (gain, weight) = update(&mut p, &random.vector(n), 0.3);
                        p.inflate(1e-3);
                        all.extend(gain);
                        all.push(weight);
                    }
                    [all, p.to_packed()].concat()
                });
            }
        }
    }

    #[test]
    fn finds_a_planted_negative_pivot() {
        let mut diagonal = vec![1.0; 20];
        diagonal[4] = 0.25;
        let mut p = PackedCovariance::from_diagonal(&diagonal, Precision::Double);
        assert_eq!(p.smallest_pivot(), Ok(0.25));
        let mut unit = vec![0.0; 20];
        unit[13] = 1.0;
        p.downdate(&unit, 1.5);
        assert_eq!(p.smallest_pivot(), Err(13));
        p.inflate(1.0);
        assert!((p.smallest_pivot().unwrap() - 0.5).abs() < 1e-12);
    }
}
