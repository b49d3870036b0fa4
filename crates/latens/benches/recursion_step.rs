//! Time of one parameter step of the alternating recursion with one unknown row,
//!
//! ```text
//! g = P f,   s = q + fᵀ g,   θ += g r / s,   P ← P − g gᵀ / s + q_θ I ,
//! ```
//!
//! against two yardsticks measured in the same run, turn by turn: the same step with full storage
//! and plain loops over all four rows of `F_θ` (as printed, three of them zero), and one read of
//! the packed triangle. Steps are timed in whole delay blocks, so each block pays its flush.
//!
//! `cargo bench --bench recursion_step`

use latens::numerics::linalg::{PackedCovariance, Precision, simd};
use pulp::{Arch, Simd, WithSimd};
use std::{hint::black_box, time::Instant};

/// Steps of a turn: whole delay blocks for any delay of 16, 24, 32 or 48.
const BLOCK_STEPS: usize = 96;
const MODEL_ROWS: usize = 4;
const Q_STATE: f64 = 1e-2;
const Q_THETA: f64 = 1e-6;

fn main() {
    println!("µs per step; medians, ratios are medians of the ratios of single turns");
    println!(
        "{:>5} {:>9} {:>9} {:>9} {:>9} {:>11} {:>9} {:>11}",
        "n", "f64", "f32", "read", "dense", "f64 / read", "f32/f64", "dense / f64"
    );
    for (n, turns, dense_steps) in [(741, 41, 16), (2000, 15, 4), (5000, 7, 1)] {
        compare(n, turns, dense_steps);
    }
}

fn compare(n: usize, turns: usize, dense_steps: usize) {
    let directions = directions(n, 7);
    let triangle = n * (n + 1) / 2;
    let values: Vec<f64> = (0..triangle).map(|i| (i % 17) as f64).collect();
    let mut double = Recursion::new(n, Precision::Double);
    let mut single = Recursion::new(n, Precision::Single);
    let mut dense = DenseRecursion::new(n);
    let arch = simd::arch();
    let mut turns_us = Vec::new();
    // The first turn warms up and is dropped.
    for turn in 0..=turns {
        let step = |i: usize| &directions[(turn + i) % directions.len()];
        let times = [
            per_step(BLOCK_STEPS, |i| double.step(step(i), 0.1)),
            per_step(BLOCK_STEPS, |i| single.step(step(i), 0.1)),
            per_step(dense_steps, |i| dense.step(step(i), 0.1)),
            read::<1, 8>(arch, &values),
            read::<4, 2>(arch, &values),
            read::<8, 1>(arch, &values),
            read::<8, 2>(arch, &values),
        ];
        if turn > 0 {
            turns_us.push(times);
        }
    }
    black_box((&double.theta, &single.theta, &dense.theta));
    let time = |k: usize| median(turns_us.iter().map(|t| t[k]).collect());
    let ratio = |a: usize, b: usize| median(turns_us.iter().map(|t| t[a] / t[b]).collect());
    // Against the fastest pattern of reading, which is the one with the largest ratio.
    let (to_read, fastest) =
        (3..7).map(|k| (ratio(0, k), k)).fold(
            (0.0, 3),
            |best, now| {
                if now.0 > best.0 { now } else { best }
            },
        );
    println!(
        "{n:>5} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {to_read:>11.2} {:>9.2} {:>11.1}",
        time(0),
        time(1),
        time(fastest),
        time(2),
        ratio(1, 0),
        ratio(2, 0),
    );
}

/// Time of one read in microseconds. Which pattern is fastest depends on the cache level.
fn read<const STREAMS: usize, const RUN: usize>(arch: Arch, values: &[f64]) -> f64 {
    per_step(BLOCK_STEPS / 3, |_| {
        black_box(arch.dispatch(Read::<STREAMS, RUN>(black_box(values))));
    })
}

/// Mean time of a call in microseconds.
fn per_step(steps: usize, mut step: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    for i in 0..steps {
        step(i);
    }
    start.elapsed().as_secs_f64() * 1e6 / steps as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Rows of `F_θ` of unit size, from a linear congruential generator.
fn directions(n: usize, count: usize) -> Vec<Vec<f64>> {
    let mut seed = 1_u64;
    let mut uniform = || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let scale = (12.0 / n as f64).sqrt();
    (0..count)
        .map(|_| (0..n).map(|_| scale * uniform()).collect())
        .collect()
}

struct Recursion {
    covariance: PackedCovariance,
    theta: Vec<f64>,
    gain: Vec<f64>,
}

impl Recursion {
    fn new(n: usize, precision: Precision) -> Self {
        Self {
            covariance: PackedCovariance::scaled_identity(n, 1.0, precision),
            theta: vec![0.0; n],
            gain: vec![0.0; n],
        }
    }

    fn step(&mut self, f: &[f64], residual: f64) {
        self.covariance.apply(f, &mut self.gain);
        let s = Q_STATE + f.iter().zip(&self.gain).map(|(f, g)| f * g).sum::<f64>();
        for (theta, g) in self.theta.iter_mut().zip(&self.gain) {
            *theta += g * (residual / s);
        }
        self.covariance.downdate(&self.gain, 1.0 / s);
        self.covariance.inflate(Q_THETA);
    }
}

/// The same step, plainly: `S = Q_x + F P Fᵀ`, `K = P Fᵀ S⁻¹`, `P ← P − K F P + Q_θ` with every
/// matrix full. `F P` is formed once and serves as `(P Fᵀ)ᵀ`; inner loops run along rows and
/// the compiler vectorises them for the baseline instruction set.
struct DenseRecursion {
    n: usize,
    p: Vec<f64>,
    f: Vec<f64>,
    fp: Vec<f64>,
    gain: Vec<f64>,
    theta: Vec<f64>,
}

impl DenseRecursion {
    fn new(n: usize) -> Self {
        let mut p = vec![0.0; n * n];
        p.iter_mut().step_by(n + 1).for_each(|p| *p = 1.0);
        Self {
            n,
            p,
            f: vec![0.0; MODEL_ROWS * n],
            fp: vec![0.0; MODEL_ROWS * n],
            gain: vec![0.0; n * MODEL_ROWS],
            theta: vec![0.0; n],
        }
    }

    fn step(&mut self, unknown_row: &[f64], residual: f64) {
        let n = self.n;
        self.f[(MODEL_ROWS - 1) * n..].copy_from_slice(unknown_row);
        self.fp.fill(0.0);
        for (i, p_row) in self.p.chunks_exact(n).enumerate() {
            for (f_row, fp_row) in self.f.chunks_exact(n).zip(self.fp.chunks_exact_mut(n)) {
                for (fp, p) in fp_row.iter_mut().zip(p_row) {
                    *fp += f_row[i] * p;
                }
            }
        }
        let mut s = [[0.0; MODEL_ROWS]; MODEL_ROWS];
        for (a, (s_row, fp_row)) in s.iter_mut().zip(self.fp.chunks_exact(n)).enumerate() {
            for (s, f_row) in s_row.iter_mut().zip(self.f.chunks_exact(n)) {
                *s = fp_row.iter().zip(f_row).map(|(x, y)| x * y).sum();
            }
            s_row[a] += Q_STATE;
        }
        let s_inverse = inverse(s);
        for i in 0..n {
            for (a, gain) in self.gain[i * MODEL_ROWS..][..MODEL_ROWS]
                .iter_mut()
                .enumerate()
            {
                *gain = (0..MODEL_ROWS)
                    .map(|b| self.fp[b * n + i] * s_inverse[b][a])
                    .sum();
            }
            self.theta[i] += self.gain[i * MODEL_ROWS + MODEL_ROWS - 1] * residual;
        }
        for (i, p_row) in self.p.chunks_exact_mut(n).enumerate() {
            for (gain, fp_row) in self.gain[i * MODEL_ROWS..]
                .iter()
                .zip(self.fp.chunks_exact(n))
            {
                for (p, fp) in p_row.iter_mut().zip(fp_row) {
                    *p -= gain * fp;
                }
            }
            p_row[i] += Q_THETA;
        }
    }
}

/// Gauss–Jordan elimination without pivoting; `s` is symmetric positive definite.
fn inverse(mut s: [[f64; MODEL_ROWS]; MODEL_ROWS]) -> [[f64; MODEL_ROWS]; MODEL_ROWS] {
    for k in 0..MODEL_ROWS {
        let pivot = 1.0 / s[k][k];
        s[k][k] = 1.0;
        s[k] = s[k].map(|value| value * pivot);
        let row_k = s[k];
        for (_, row) in s.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = std::mem::take(&mut row[k]);
            for (value, other) in row.iter_mut().zip(row_k) {
                *value -= factor * other;
            }
        }
    }
    s
}

/// Sum of all values, read as `STREAMS` equal parts side by side, `RUN` vectors of each in turn,
/// every one with its own partial sum.
struct Read<'a, const STREAMS: usize, const RUN: usize>(&'a [f64]);

impl<const STREAMS: usize, const RUN: usize> WithSimd for Read<'_, STREAMS, RUN> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        // Whole cache lines only; a few values at the ends are not read.
        let skip = self.0.as_ptr().align_offset(64).min(self.0.len());
        let (runs, _) = S::as_simd_f64s(&self.0[skip..]).0.as_chunks::<RUN>();
        let part = runs.len() / STREAMS;
        let mut streams = [&runs[..part]; STREAMS];
        for (s, stream) in streams.iter_mut().enumerate() {
            *stream = &runs[s * part..][..part];
        }
        let mut sums = [[simd.splat_f64s(0.0); RUN]; STREAMS];
        for i in 0..part {
            for (sums, stream) in sums.iter_mut().zip(&streams) {
                for (sum, &value) in sums.iter_mut().zip(&stream[i]) {
                    *sum = simd.add_f64s(*sum, value);
                }
            }
        }
        sums.into_iter()
            .flatten()
            .map(|sum| simd.reduce_sum_f64s(sum))
            .sum()
    }
}
