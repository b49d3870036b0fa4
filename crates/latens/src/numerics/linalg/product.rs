//! Products of matrices.
//!
//! Both factors are copied into [`Strips`] that are read in one run, and a tile of the product is
//! summed in registers: each entry is one chain of fused multiply–adds over a block of the inner
//! index. How many entries are summed side by side depends on the instruction set, what an entry is
//! does not.

use std::cell::RefCell;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::matrix::{Target, View};
use super::simd::LANES;

/// Rows of a tile: three vectors of AVX-512, whose 32 registers hold 24 × 8 sums.
const TILE_ROWS: usize = 24;
/// Inner indices of a block: what a tile needs of the right stays in the first cache.
const BLOCK_DEPTH: usize = 256;
/// Rows of a block of the left, which stays in the second cache.
const BLOCK_ROWS: usize = 96;
/// Columns of a block of the right.
const BLOCK_COLUMNS: usize = 768;

/// Twenty-four rows at one inner index.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Slice([f64; TILE_ROWS]);

const ZERO_SLICE: Slice = Slice([0.0; TILE_ROWS]);

/// A left factor, or the transpose of a right one, in strips of [`TILE_ROWS`] rows, zero beyond the last.
#[derive(Debug, Clone, Default)]
pub struct Strips {
    slices: Vec<Slice>,
    /// Slices of a strip: the inner size of the product.
    depth: usize,
}

impl Strips {
    /// Of a factor, in the memory of what was here before.
    pub fn set(&mut self, factor: View) {
        self.fill(factor, 0..factor.rows, 0..factor.columns);
    }

    /// Of a part of a factor.
    #[inline(always)]
    fn fill(&mut self, factor: View, rows: Range<usize>, inner: Range<usize>) {
        self.depth = inner.len();
        self.slices.clear();
        if inner.is_empty() {
            return;
        }
        for row in rows.clone().step_by(TILE_ROWS) {
            let height = TILE_ROWS.min(rows.end - row);
            let start = self.slices.len();
            self.slices.resize(start + inner.len(), ZERO_SLICE);
            let strip = &mut self.slices[start..];
            if factor.row_step == 1 && height == TILE_ROWS {
                let data = &factor.data[row + inner.start * factor.column_step..];
                for (k, slice) in strip.iter_mut().enumerate() {
                    slice.0 = *data[k * factor.column_step..]
                        .first_chunk()
                        .expect("a whole strip");
                }
                continue;
            }
            for r in 0..height {
                let from = (row + r) * factor.row_step + inner.start * factor.column_step;
                let entries = factor.data[from..]
                    .iter()
                    .step_by(factor.column_step.max(1));
                for (slice, entry) in strip.iter_mut().zip(entries) {
                    slice.0[r] = *entry;
                }
            }
        }
    }

    fn strips(&self) -> impl Iterator<Item = &[Slice]> {
        self.slices.chunks_exact(self.depth.max(1))
    }
}

/// target += factor · left · right, of strips of the left and of the right's transpose.
pub fn add_strips(arch: Arch, target: Target, factor: f64, left: &Strips, right: &Strips) {
    assert_eq!(left.depth, right.depth, "inner size of the product");
    arch.dispatch(OfStrips {
        target,
        factor,
        left,
        right,
    });
}

struct OfStrips<'a> {
    target: Target<'a>,
    factor: f64,
    left: &'a Strips,
    right: &'a Strips,
}

impl WithSimd for OfStrips<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut target = self.target;
        multiply(simd, &mut target, self.factor, self.left, self.right);
    }
}

/// Room for the strips of a block of each factor.
#[derive(Default)]
struct Room {
    left: Strips,
    right: Strips,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// target += factor · left · right.
///
/// # Panics
/// If the sizes do not belong together.
pub fn add(arch: Arch, target: Target, factor: f64, left: View, right: View) {
    assert_eq!(left.rows, target.rows, "rows of the product");
    assert_eq!(right.columns, target.columns, "columns of the product");
    assert_eq!(left.columns, right.rows, "inner size of the product");
    ROOM.with_borrow_mut(|room| {
        arch.dispatch(Product {
            target,
            factor,
            left,
            right,
            room,
        });
    });
}

/// The same for a square target of which only the lower triangle is asked for; entries near the
/// diagonal, above it, are written as well.
pub fn add_lower(arch: Arch, target: Target, factor: f64, left: View, right: View) {
    if left.columns == 0 {
        return;
    }
    let n = target.columns;
    let Target {
        data, rows, stride, ..
    } = target;
    for columns in blocks(n, BLOCK_ROWS) {
        let start = columns.start;
        let part = Target::columns(data, stride, start..rows, columns.clone());
        let left = View {
            data: &left.data[start * left.row_step..],
            rows: rows - start,
            ..left
        };
        let right = View {
            data: &right.data[start * right.column_step..],
            columns: columns.len(),
            ..right
        };
        add(arch, part, factor, left, right);
    }
}

struct Product<'a> {
    target: Target<'a>,
    factor: f64,
    left: View<'a>,
    right: View<'a>,
    room: &'a mut Room,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { target, room, .. } = self;
        for columns in blocks(target.columns, BLOCK_COLUMNS) {
            for inner in blocks(self.left.columns, BLOCK_DEPTH) {
                let right = self.right.transposed();
                room.right.fill(right, columns.clone(), inner.clone());
                for rows in blocks(target.rows, BLOCK_ROWS) {
                    room.left.fill(self.left, rows.clone(), inner.clone());
                    let mut part =
                        Target::columns(target.data, target.stride, rows, columns.clone());
                    multiply(simd, &mut part, self.factor, &room.left, &room.right);
                }
            }
        }
    }
}

/// 0..n in parts.
fn blocks(n: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n)
        .step_by(size)
        .map(move |start| start..n.min(start + size))
}

/// target += factor · left · right.
#[inline(always)]
fn multiply<S: Simd>(simd: S, target: &mut Target, factor: f64, left: &Strips, right: &Strips) {
    for inner in blocks(left.depth, BLOCK_DEPTH) {
        for (c, right) in right.strips().enumerate() {
            for first in (0..TILE_ROWS).step_by(LANES) {
                let column = c * TILE_ROWS + first;
                let width = LANES.min(target.columns.saturating_sub(column));
                if width == 0 {
                    break;
                }
                for (r, left) in left.strips().enumerate() {
                    let mut sums = [ZERO_SLICE; LANES];
                    let (left, right) = (&left[inner.clone()], &right[inner.clone()]);
                    tile(simd, left, right, first, &mut sums);
                    let height = TILE_ROWS.min(target.rows - r * TILE_ROWS);
                    let data = &mut target.data[column * target.stride + r * TILE_ROWS..];
                    for (c, sums) in sums.iter().enumerate().take(width) {
                        let out = &mut data[c * target.stride..][..height];
                        store(simd, factor, &sums.0, out);
                    }
                }
            }
        }
    }
}

/// out += factor · sums.
#[inline(always)]
fn store<S: Simd>(simd: S, factor: f64, sums: &[f64; TILE_ROWS], out: &mut [f64]) {
    if out.len() < TILE_ROWS {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = sum.mul_add(factor, *out);
        }
        return;
    }
    let factor = simd.splat_f64s(factor);
    let sums = S::as_simd_f64s(sums).0;
    for (out, sum) in S::as_mut_simd_f64s(&mut out[..TILE_ROWS])
        .0
        .iter_mut()
        .zip(sums)
    {
        *out = simd.mul_add_f64s(*sum, factor, *out);
    }
}

/// Eight columns of a tile, from this one of the right on, in as many parts as the registers ask for.
#[inline(always)]
fn tile<S: Simd>(
    simd: S,
    left: &[Slice],
    right: &[Slice],
    first: usize,
    sums: &mut [Slice; LANES],
) {
    if S::F64_LANES == LANES {
        part::<S, LANES>(simd, left, right, 0, first, sums);
        return;
    }
    let (low, high) = sums.split_at_mut(LANES / 2);
    for (half, sums) in [low, high].into_iter().enumerate() {
        for vector in (0..TILE_ROWS / S::F64_LANES).step_by(3) {
            let column = first + half * LANES / 2;
            part::<S, { LANES / 2 }>(simd, left, right, vector, column, sums);
        }
    }
}

/// Three vectors of rows and `C` columns of a tile, from here on.
#[inline(always)]
fn part<S: Simd, const C: usize>(
    simd: S,
    left: &[Slice],
    right: &[Slice],
    vector: usize,
    column: usize,
    sums: &mut [Slice],
) {
    let mut products = [[simd.splat_f64s(0.0); 3]; C];
    for (left, right) in left.iter().zip(right) {
        let left = &S::as_simd_f64s(&left.0).0[vector..vector + 3];
        let right = &right.0[column..column + C];
        for c in 0..C {
            let factor = simd.splat_f64s(right[c]);
            for r in 0..3 {
                products[c][r] = simd.mul_add_f64s(left[r], factor, products[c][r]);
            }
        }
    }
    for c in 0..C {
        let out = S::as_mut_simd_f64s(&mut sums[c].0).0;
        out[vector..vector + 3].copy_from_slice(&products[c]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::linalg::matrix::Matrix;
    use crate::numerics::linalg::simd::{arch, forced};
    use proptest::prelude::*;

    fn waves(rows: usize, columns: usize, speed: f64) -> Matrix {
        Matrix::from_fn(rows, columns, |i, j| {
            (speed * ((i * 31 + j * 17) as f64).powf(1.1)).sin()
        })
    }

    proptest! {
            #![proptest_config(ProptestConfig::with_cases(40))]

            /// Any sizes, transposed or not, whole or the lower triangle: against plain sums, from
            /// which each of the k terms may be ε away; and the same bits on all instruction sets.
            #[test]
            fn products_are_sums(
                rows in 0usize..130, inner in 0usize..300, columns in 0usize..70, turned: bool,
            ) {
                let turn = |m: &Matrix| Matrix::from_fn(m.columns(), m.rows(), |i, j| m[(j, i)]);
                let (a, b) = (waves(rows, inner, 0.7), waves(inner, columns, 0.3));
                let (at, bt) = (turn(&a), turn(&b));
                let run = || {
                    let mut c = waves(rows, columns, 1.9);
                    if turned {
    c.add_product(-0.5, at.view().transposed(), bt.view().transposed());
    } else {
    c.add_product(-0.5, a.view(), b.view());
    }
                    c
                };
                let (before, after) = (waves(rows, columns, 1.9), run());
                let bound = 2.0 * (inner + 2) as f64 * f64::EPSILON * (inner + 2) as f64;
                for j in 0..columns {
                    for i in 0..rows {
                        let sum: f64 = (0..inner).map(|k| a[(i, k)] * b[(k, j)]).sum();
                        prop_assert!((after[(i, j)] - (before[(i, j)] - 0.5 * sum)).abs() <= bound);
                    }
                }
                forced::assert_equal_bits(|| run().data().to_vec());
            }
        }

    /// The lower triangle has the same bits by itself as in the whole product.
    #[test]
    fn lower_triangle_is_that_of_the_whole() {
        let (n, inner) = (211, 40);
        let (a, b) = (waves(n, inner, 0.7), waves(n, inner, 0.3));
        let (mut whole, mut lower) = (Matrix::zeros(n, n), Matrix::zeros(n, n));
        whole.add_product(1.0, a.view(), b.view().transposed());
        let target = lower.part_mut(0..n, 0..n);
        add_lower(arch(), target, 1.0, a.view(), b.view().transposed());
        for j in 0..n {
            for i in j..n {
                assert_eq!(whole[(i, j)].to_bits(), lower[(i, j)].to_bits());
            }
        }
    }
}
