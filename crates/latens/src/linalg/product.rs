//! Products of matrices.
//!
//! Both factors are copied into strips that are read in one run, [`ROWS`] rows of the left and
//! eight columns of the right, and a tile of the product is summed in registers: each entry is one
//! chain of fused multiply–adds over a block of the inner index. How many entries are summed side
//! by side depends on the instruction set, what an entry is does not.

use std::cell::RefCell;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::matrix::{Target, View};
use super::simd::{LANES, Panel, ZERO};

/// Rows of a tile: three vectors of AVX-512, whose 32 registers hold 24 × 8 sums.
const ROWS: usize = 24;
/// Inner indices of a block: a strip of the right stays in the first cache.
const DEPTH: usize = 256;
/// Rows of a block of the left, which stays in the second cache.
const HEIGHT: usize = 96;
/// Columns of a block of the right.
const BREADTH: usize = 768;

/// One inner index of a strip of the left.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Slice([f64; ROWS]);

/// The factors' blocks in strips.
struct Room {
    left: Vec<Slice>,
    right: Vec<Panel>,
}

thread_local! {
    static ROOM: RefCell<Room> = const { RefCell::new(Room { left: vec![], right: vec![] }) };
}

/// target += factor · left · right.
///
/// # Panics
/// If the sizes do not belong together.
pub fn add(arch: Arch, target: Target, factor: f64, left: View, right: View) {
    assert_eq!(left.rows, target.rows, "rows of the product");
    assert_eq!(right.columns, target.columns, "columns of the product");
    assert_eq!(left.columns, right.rows, "inner size of the product");
    if target.rows == 0 || target.columns == 0 {
        return;
    }
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
    for start in (0..n).step_by(HEIGHT) {
        let columns = start..n.min(start + HEIGHT);
        let part = Target::columns(data, stride, (start..rows, columns.clone()));
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
        let Self {
            target,
            factor,
            left,
            right,
            room,
        } = self;
        for columns in blocks(target.columns, BREADTH) {
            for inner in blocks(left.columns, DEPTH) {
                pack_right(right, &inner, &columns, &mut room.right);
                for rows in blocks(target.rows, HEIGHT) {
                    pack_left(left, &rows, &inner, &mut room.left);
                    let strips = room.right.chunks_exact(inner.len());
                    for (c, right) in strips.enumerate() {
                        for (r, left) in room.left.chunks_exact(inner.len()).enumerate() {
                            let (row, column) = (rows.start + r * ROWS, columns.start + c * LANES);
                            let mut sums = [Slice([0.0; ROWS]); LANES];
                            tile(simd, left, right, &mut sums);
                            let height = ROWS.min(rows.end - row);
                            let width = LANES.min(columns.end - column);
                            let at = column * target.stride + row;
                            let data = &mut target.data[at..];
                            for (c, sums) in sums.iter().enumerate().take(width) {
                                let out = &mut data[c * target.stride..][..height];
                                store(simd, factor, &sums.0, out);
                            }
                        }
                    }
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

/// out += factor · sums.
#[inline(always)]
fn store<S: Simd>(simd: S, factor: f64, sums: &[f64; ROWS], out: &mut [f64]) {
    if out.len() < ROWS {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = sum.mul_add(factor, *out);
        }
        return;
    }
    let factor = simd.splat_f64s(factor);
    let sums = S::as_simd_f64s(sums).0;
    for (out, sum) in S::as_mut_simd_f64s(&mut out[..ROWS]).0.iter_mut().zip(sums) {
        *out = simd.mul_add_f64s(*sum, factor, *out);
    }
}

/// A tile of the product, in as many parts as the registers ask for.
#[inline(always)]
fn tile<S: Simd>(simd: S, left: &[Slice], right: &[Panel], sums: &mut [Slice; LANES]) {
    if S::F64_LANES == LANES {
        part::<S, LANES>(simd, left, right, (0, 0), sums);
        return;
    }
    for column in (0..LANES).step_by(4) {
        for vector in (0..ROWS / S::F64_LANES).step_by(3) {
            part::<S, 4>(simd, left, right, (vector, column), sums);
        }
    }
}

/// Three vectors of rows and `C` columns of a tile, from here on.
#[inline(always)]
fn part<S: Simd, const C: usize>(
    simd: S,
    left: &[Slice],
    right: &[Panel],
    (vector, column): (usize, usize),
    sums: &mut [Slice; LANES],
) {
    let mut own = [[simd.splat_f64s(0.0); 3]; C];
    for (left, right) in left.iter().zip(right) {
        let left = &S::as_simd_f64s(&left.0).0[vector..vector + 3];
        for c in 0..C {
            let factor = simd.splat_f64s(right.0[column + c]);
            for r in 0..3 {
                own[c][r] = simd.mul_add_f64s(left[r], factor, own[c][r]);
            }
        }
    }
    for c in 0..C {
        let out = S::as_mut_simd_f64s(&mut sums[column + c].0).0;
        out[vector..vector + 3].copy_from_slice(&own[c]);
    }
}

/// Rows of the left in strips, zero beyond the last.
#[inline(always)]
fn pack_left(left: View, rows: &Range<usize>, inner: &Range<usize>, strips: &mut Vec<Slice>) {
    strips.clear();
    for row in rows.clone().step_by(ROWS) {
        let height = ROWS.min(rows.end - row);
        for k in inner.clone() {
            let data = &left.data[row * left.row_step + k * left.column_step..];
            let mut slice = Slice([0.0; ROWS]);
            if left.row_step == 1 && height == ROWS {
                slice.0.copy_from_slice(&data[..ROWS]);
            } else {
                let entries = data.iter().step_by(left.row_step.max(1));
                slice.0[..height]
                    .iter_mut()
                    .zip(entries)
                    .for_each(|(s, e)| *s = *e);
            }
            strips.push(slice);
        }
    }
}

/// Columns of the right in strips, zero beyond the last.
#[inline(always)]
fn pack_right(right: View, inner: &Range<usize>, columns: &Range<usize>, strips: &mut Vec<Panel>) {
    strips.clear();
    for column in columns.clone().step_by(LANES) {
        let width = LANES.min(columns.end - column);
        let start = strips.len();
        if right.column_step == 1 && width == LANES {
            strips.extend(inner.clone().map(|k| {
                let mut panel = ZERO;
                let data = &right.data[k * right.row_step + column..];
                panel.0.copy_from_slice(&data[..LANES]);
                panel
            }));
            continue;
        }
        strips.resize(start + inner.len(), ZERO);
        for c in 0..width {
            let from = inner.start * right.row_step + (column + c) * right.column_step;
            let entries = right.data[from..].iter().step_by(right.row_step.max(1));
            for (panel, entry) in strips[start..].iter_mut().zip(entries) {
                panel.0[c] = *entry;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::matrix::Matrix;
    use crate::linalg::simd::{arch, forced};
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
                match turned {
                    true => c.add_product(-0.5, at.view().transposed(), bt.view().transposed()),
                    false => c.add_product(-0.5, a.view(), b.view()),
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
