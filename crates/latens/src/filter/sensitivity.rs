//! The sensitivity of the filter's increments to θ, and the rows it leaves in the normal equations.
//!
//! ```text
//! W⁻ = F_x W + F_θ       G = s^(−½) H W⁻       r = s^(−½) ν       W = (I − K H) W⁻
//! ```
//!
//! With them the states are eliminated exactly: the Gauss–Newton system of states and θ together
//! reduces to (Σ GᵀG) δθ = Σ Gᵀr. The filter's matrices do not depend on W, so its channels are
//! first multiplied out, in matrices of the size of the state,
//!
//! ```text
//! M = Π (I − K H)        Φ = F_x M        T = s^(−½) H Π (I − K H) over the channels before
//! W⁻ ← Φ W⁻ + F_θ        G = T W⁻         Gᵀr = W⁻ᵀ Tᵀr ,
//! ```
//!
//! where a channel depends on θ itself, with H_θ as one more row below W⁻, which only that channel sees:
//! G = s^(−½)(H W⁻ + H_θ), W = (I − K H) W⁻ − K H_θ. And then W⁻ (d_x × d_θ) is carried through a block of
//! samples a panel of columns at a time. A column knows nothing of the others: panels of them are shared out
//! among the threads.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::extended::Innovation;
use crate::model::simd;
use crate::model::small::{multiply, subtract_outer};
use crate::numerics::linalg::normal::{self, NormalEquations, PANEL_WIDTH};
use crate::numerics::step::Linearised;

/// A panel's piece of a row.
type Piece = [f64; PANEL_WIDTH];
const ZERO_PIECE: Piece = [0.0; PANEL_WIDTH];

/// ∂(increment)/∂θ along a forward pass.
pub(crate) struct Sensitivity {
    arch: Arch,
    /// Rows of W⁻, with those of H_θ.
    height: usize,
    /// W⁻: for each panel its piece of each row, and as much room for the next.
    w: Vec<Piece>,
}

impl Sensitivity {
    /// W = 0: at the start the states do not depend on θ; so many channels do.
    pub fn new(states: usize, channels: usize, parameters: usize) -> Self {
        let height = states + channels;
        Self {
            arch: simd::arch(),
            height,
            w: vec![ZERO_PIECE; parameters.div_ceil(PANEL_WIDTH) * 2 * height],
        }
    }

    /// Carries W through the samples of a block, and their rows into the equations.
    pub fn propagate(
        &mut self,
        block: &Coefficients,
        steps: &[Linearised],
        theta_rows: &[usize],
        equations: &mut NormalEquations,
    ) {
        let arch = self.arch;
        let parameters = equations.b.len();
        let panels = equations
            .panels()
            .zip(self.w.par_chunks_mut(2 * self.height));
        panels.enumerate().for_each(|(panel, ((b, rows), w))| {
            arch.dispatch(Panel {
                parameters,
                first: panel * PANEL_WIDTH,
                block,
                steps,
                theta_rows,
                w,
                b,
                rows,
            });
        });
        equations.settle();
    }
}

/// What the filter found at the samples of a block.
pub(crate) struct Coefficients {
    states: usize,
    /// Rows of W⁻, with those of H_θ.
    height: usize,
    /// Every which row of a channel stands in A for all of them.
    thinning: usize,
    /// M of the last sample.
    shrink: Vec<f64>,
    /// Φ.
    transition: Vec<f64>,
    /// Tᵀr.
    descent: Vec<f64>,
    /// T of the channels that stand in A.
    rows: Vec<f64>,
    /// For each sample, the end of its rows.
    ends: Vec<usize>,
}

impl Coefficients {
    /// Of no sample yet; so many channels depend on θ, and so many rows of A stand for one.
    pub fn new(states: usize, channels: usize, thinning: usize) -> Self {
        let height = states + channels;
        Self {
            states,
            height,
            thinning,
            shrink: vec![0.0; states * height],
            transition: vec![],
            descent: vec![],
            rows: vec![],
            ends: vec![],
        }
    }

    /// Of no sample yet, after those of another block.
    pub fn follow(&mut self, before: &Self) {
        self.shrink.copy_from_slice(&before.shrink);
        self.transition.clear();
        self.descent.clear();
        self.rows.clear();
        self.ends.clear();
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// A step of the filter.
    pub fn advance(&mut self, f_x: &[f64]) {
        let (n, height) = (self.states, self.height);
        let at = self.transition.len();
        self.transition.resize(at + n * height, 0.0);
        multiply(f_x, &self.shrink, &mut self.transition[at..], n, height);
        self.shrink.fill(0.0);
        for i in 0..n {
            self.shrink[i * height + i] = 1.0;
        }
        self.descent.resize(self.descent.len() + height, 0.0);
        self.ends.push(self.rows.len());
    }

    /// The `count`-th measurement of a channel; `place` is that of its H_θ, where it has one.
    pub fn correct(
        &mut self,
        h: &[f64],
        place: Option<usize>,
        gain: &[f64],
        innovation: Innovation,
        count: usize,
    ) {
        let Innovation {
            value: innovation,
            variance: s,
        } = innovation;
        let (n, height) = (self.states, self.height);
        let root = s.sqrt();
        let from = self.descent.len() - height;
        let start = self.rows.len();
        self.rows.resize(start + height, 0.0);
        let seen = &mut self.rows[start..];
        for (h, row) in h.iter().zip(self.shrink.chunks_exact(height)) {
            if *h != 0.0 {
                seen.iter_mut().zip(row).for_each(|(s, m)| *s += h * m);
            }
        }
        if let Some(place) = place {
            seen[n + place] += 1.0;
        }
        for (d, seen) in self.descent[from..].iter_mut().zip(&*seen) {
            *d += seen * innovation / s;
        }
        subtract_outer(&mut self.shrink, gain, seen);
        if normal::keeps(count, self.thinning) {
            self.rows[start..].iter_mut().for_each(|t| *t /= root);
            if let Some(end) = self.ends.last_mut() {
                *end = self.rows.len();
            }
        } else {
            self.rows.truncate(start);
        }
    }
}

/// The part of the work on the columns of one panel.
struct Panel<'a> {
    parameters: usize,
    first: usize,
    block: &'a Coefficients,
    steps: &'a [Linearised],
    theta_rows: &'a [usize],
    w: &'a mut [Piece],
    b: &'a mut [f64],
    rows: &'a mut Vec<f64>,
}

impl WithSimd for Panel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { block, b, rows, .. } = self;
        let (n, height) = (block.states, block.height);
        let (mut w, mut next) = self.w.split_at_mut(height);
        let start = rows.len();
        rows.resize(start + block.rows.len() / height * PANEL_WIDTH, 0.0);
        let mut out = rows[start..].as_chunks_mut().0.iter_mut();
        let (mut sum, columns) = (ZERO_PIECE, b.len());
        sum[..b.len()].copy_from_slice(b);
        let mut done = 0;
        let samples = (block.transition.chunks_exact(n * height))
            .zip(block.descent.chunks_exact(height))
            .zip(&block.ends)
            .zip(self.steps);
        for (((transition, descent), &end), step) in samples {
            let mut f_theta = step.f_theta.chunks_exact(self.parameters);
            let mut theta_rows = self.theta_rows.iter().peekable();
            for (i, factors) in transition.chunks_exact(height).enumerate() {
                if theta_rows.next_if_eq(&&i).is_none() {
                    combine(simd, columns, factors, w, &ZERO_PIECE, &mut next[i]);
                    continue;
                }
                let f = f_theta.next().expect("a row of F_θ for each of the rows");
                match f[self.first..].first_chunk() {
                    Some(f) => combine(simd, columns, factors, w, f, &mut next[i]),
                    None => combine(
                        simd,
                        columns,
                        factors,
                        w,
                        &padded(&f[self.first..]),
                        &mut next[i],
                    ),
                }
            }
            if height > n {
                let h_theta = step.h_theta.chunks_exact(self.parameters);
                for (next, h) in next[n..].iter_mut().zip(h_theta) {
                    let h = &h[self.first..];
                    *next = h.first_chunk().copied().unwrap_or_else(|| padded(h));
                }
            }
            std::mem::swap(&mut w, &mut next);
            let before = sum;
            combine(simd, columns, descent, w, &before, &mut sum);
            for factors in block.rows[done..end].chunks_exact(height) {
                let out = out.next().expect("room for each of the block's rows");
                combine(simd, columns, factors, w, &ZERO_PIECE, out);
            }
            done = end;
        }
        b.copy_from_slice(&sum[..b.len()]);
        if self.steps.len() % 2 == 1 {
            next.copy_from_slice(w);
        }
    }
}

/// The last piece of a row, which is shorter than a panel.
fn padded(rest: &[f64]) -> Piece {
    let mut piece = ZERO_PIECE;
    piece[..rest.len()].copy_from_slice(rest);
    piece
}

/// out = start + Σ factor_j · row_j, in the first columns; the rest stays as it is.
#[inline(always)]
fn combine<S: Simd>(
    simd: S,
    columns: usize,
    factors: &[f64],
    rows: &[Piece],
    start: &Piece,
    out: &mut Piece,
) {
    let start = S::as_simd_f64s(start).0;
    let vectors = columns.div_ceil(S::F64_LANES);
    let out = &mut S::as_mut_simd_f64s(out).0[..vectors];
    for (v, out) in out.iter_mut().enumerate() {
        let mut sum = start[v];
        for (&factor, row) in factors.iter().zip(rows) {
            let row = S::as_simd_f64s(row).0[v];
            sum = simd.mul_add_f64s(simd.splat_f64s(factor), row, sum);
        }
        *out = sum;
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::Smoother;
    use crate::filter::pass::Correction;
    use crate::look::prior::initial_theta;
    use crate::model::Model;
    use crate::model::simd::forced;
    use crate::model::small::{dot, multiply};
    use crate::numerics::Trajectory;
    use crate::numerics::objective::Noise;
    use crate::numerics::step::Stepper;
    use crate::simulate::{Simulation, simulate};
    use crate::systems;

    /// Blocks, panels and multiplied-out channels give what the recursion gives as it is written,
    /// W whole and channel by channel: across blocks, with missing samples, thinned.
    #[test]
    fn panels_equal_the_plain_recursion() {
        let text = systems::find("hodgkin-huxley").unwrap();
        let model = Model::from_text("hodgkin-huxley", text).unwrap();
        let simulation = Simulation {
            steps: Some(700),
            ..Simulation::default()
        };
        let mut record = simulate(&model, &simulation).unwrap();
        let states = Trajectory::new(record.truth.clone().unwrap(), 4);
        record
            .outputs
            .iter_mut()
            .step_by(5)
            .for_each(|y| *y = f64::NAN);
        // a slow channel: its few rows are thinned among themselves
        let slow = record.outputs.iter_mut().skip(1).step_by(3).enumerate();
        slow.filter(|(i, _)| i % 6 != 0)
            .for_each(|(_, y)| *y = f64::NAN);
        let stepper = Stepper::over(&model, &model.system, record.step(), [&record]);
        let theta = initial_theta(&model, 1);
        let noise = Noise {
            process: vec![1e-4, 1e-8, 1e-8, 1e-6],
            measurement: vec![1e-4, 1e-8, 1e-8],
            start_mean: states.row(0).to_vec(),
            start: vec![1.0; 4],
        };
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &theta,
            noise: &noise,
        };
        let thinning = 3;
        let phase = 1;
        let (equations, pass) = smoother.eliminate(&states, thinning, phase);
        let mut counts = [phase; 3];

        let (n, c, p) = (4, 3, theta.len());
        let (mut w, mut next) = (vec![0.0; n * p], vec![0.0; n * p]);
        let (mut b, mut diagonal) = (vec![0.0; p], vec![0.0; p]);
        let (mut scratch, mut step) = (stepper.scratch(), stepper.linearised());
        for i in 0..record.len() {
            if i > 0 {
                let before = states.row(i - 1);
                let at = record.point(i - 1, before, &theta);
                let span = stepper.span(record.gap(i - 1));
                stepper.linearise(&mut scratch, at, span, true, &mut step);
                multiply(&step.f_x, &w, &mut next, n, p);
                for (t, f) in next[3 * p..].iter_mut().zip(&step.f_theta) {
                    *t += f;
                }
                std::mem::swap(&mut w, &mut next);
            }
            for k in (0..c).filter(|k| !record.output(i)[*k].is_nan()) {
                let Correction {
                    h,
                    gain,
                    innovation,
                } = pass.correction(i * c + k, n);
                let (innovation, s) = (innovation.value, innovation.variance);
                for j in 0..p {
                    let column: Vec<f64> = (0..n).map(|r| w[r * p + j]).collect();
                    let seen = dot(h, &column);
                    b[j] += seen * innovation / s;
                    if counts[k] % thinning == thinning / 2 {
                        diagonal[j] += thinning as f64 * seen * seen / s;
                    }
                    for r in 0..n {
                        w[r * p + j] -= gain[r] * seen;
                    }
                }
                counts[k] += 1;
            }
        }
        let size = |v: &[f64]| v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let (b_size, size) = (size(&b), size(&diagonal));
        assert!(b_size > 0.0 && size > 0.0);
        for j in 0..p {
            assert!((equations.b[j] - b[j]).abs() < 1e-10 * b_size);
            assert!((equations.diagonal()[j] - diagonal[j]).abs() < 1e-10 * size);
        }
    }

    /// The normal equations and everything that leads to them: the columns of W do not know how
    /// many of them a register holds.
    #[test]
    fn all_instruction_sets_give_the_same_bits() {
        let text = systems::find("hodgkin-huxley").unwrap();
        let model = Model::from_text("hodgkin-huxley", text).unwrap();
        let simulation = Simulation {
            steps: Some(200),
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).unwrap();
        let states = Trajectory::new(record.truth.clone().unwrap(), 4);
        let theta = initial_theta(&model, 1);
        let noise = Noise {
            process: vec![1e-4, 1e-8, 1e-8, 1e-6],
            measurement: vec![1e-4, 1e-8, 1e-8],
            start_mean: states.row(0).to_vec(),
            start: vec![1.0; 4],
        };
        forced::assert_equal_bits(|| {
            let stepper = Stepper::over(&model, &model.system, record.step(), [&record]);
            let smoother = Smoother {
                stepper: &stepper,
                record: &record,
                theta: &theta,
                noise: &noise,
            };
            let (equations, _) = smoother.eliminate(&states, 1, 0);
            let row = |i: usize| (0..=i).map(move |j| (i, j));
            let entries = (0..theta.len()).flat_map(row);
            let a = entries.map(|(i, j)| equations.entry(i, j)).collect();
            [a, equations.b.clone()].concat()
        });
    }
}
