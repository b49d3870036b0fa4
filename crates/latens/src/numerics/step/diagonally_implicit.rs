//! What the diagonally implicit Runge–Kutta methods have in common.
//!
//! A stage is Y_i = r_i + z_i with r_i = x + Σ_{j<i} (a_ij/γ) z_j, and z_i = Δγ f(Y_i), which Newton's
//! method solves to rounding. The step is x⁺ = x + Σ (b_i/γ) z_i. In z no difference of nearly equal
//! numbers is multiplied by a fast rate, as it would be in f(Y_i).
//!
//! The derivatives are those of the solution, by the implicit function theorem, with f_x at the solution
//! and not at an iterate before it:
//!
//! ```text
//! (I − Δγ f_x) dY_i = dr_i + Δγ f_θ,   dz_i = dY_i − dr_i
//! ```
//!
//! A step is halved where Newton's method finds no solution, and, with a tolerance, where the estimated
//! error is above it; it is doubled again where the error allows. Lengths are the sub-step's divided by
//! powers of two, so that the sequence of lengths stays the same over small changes of x and θ: in the
//! derivatives they are constants, and the map is smooth but where the sequence changes.

use super::{Linearised, Scratch, Stepper, SubStep, axpy};
use crate::model::small::solve;

/// A diagonally implicit Runge–Kutta method: its stages have the same γ on the diagonal.
#[derive(Debug)]
pub struct Tableau {
    /// γ.
    pub gamma: f64,
    /// c_i: when a stage is, as a part of the step.
    pub nodes: &'static [f64],
    /// a_ij/γ for j < i.
    pub lower: &'static [&'static [f64]],
    /// b_i/γ.
    pub weights: &'static [f64],
    /// How the error is estimated.
    pub error: Estimate,
}

/// How the error of a step is estimated.
#[derive(Debug)]
pub enum Estimate {
    /// (b_i − b̂_i)/γ of a method of third order in the same stages, freed of what decays at once as
    /// Hairer and Wanner do, by (I − Δγ f_x)⁻¹.
    Embedded(&'static [f64]),
    /// Against two steps of half the length, which are the ones that count; for second order.
    Halves,
}

impl Estimate {
    /// How many times larger it is expected to be for a step of twice the length.
    pub fn doubled(&self) -> f64 {
        match self {
            Self::Embedded(_) => 16.0,
            Self::Halves => 8.0,
        }
    }
}

/// Scratch memory of these methods.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// z_i, stage after stage.
    z: Vec<f64>,
    base: Vec<f64>,
    point: Vec<f64>,
    change: Vec<f64>,
    matrix: Vec<f64>,
    state: Vec<f64>,
    next: Vec<f64>,
    coarse: Vec<f64>,
    d_z: Vec<f64>,
    d_base: Vec<f64>,
    d_z_theta: Vec<f64>,
    d_base_theta: Vec<f64>,
    solved: Vec<f64>,
}

impl Memory {
    /// For a method and a stepper; none for an explicit method.
    pub fn new(method: Option<&Tableau>, stepper: &Stepper) -> Self {
        let Some(stages) = method.map(Tableau::stages) else {
            return Self::default();
        };
        let n = stepper.system.states();
        let theta = stepper.rows.len() * stepper.system.parameters();
        let states = || vec![0.0; n];
        Self {
            z: vec![0.0; stages * n],
            base: states(),
            point: states(),
            change: states(),
            matrix: vec![0.0; n * n],
            state: states(),
            next: states(),
            coarse: states(),
            d_z: vec![0.0; stages * n * n],
            d_base: vec![0.0; n * n],
            d_z_theta: vec![0.0; stages * theta],
            d_base_theta: vec![0.0; theta],
            solved: vec![0.0; theta.max(n * n)],
        }
    }
}

impl Tableau {
    /// Newton's method ends with a step this small beside the states: the next one would be rounding.
    pub const CONVERGED_STEP_RATIO: f64 = 1e-10;
    /// Steps of Newton's method; more are a failure.
    pub const MOST_ITERATIONS: usize = 12;
    /// A sub-step is cut into at most 2 to this power …
    pub const MOST_HALVED_LEVELS: u32 = 60;
    /// … and takes at most so many attempts.
    pub const MOST_ATTEMPTS: usize = 20_000;
    /// A step is doubled where the error that is expected then is below this part of the tolerance.
    pub const DOUBLING_ERROR_PART: f64 = 0.5;
    /// A step is halved at most so often at once.
    pub const MOST_HALVINGS: u32 = 6;

    /// Moves `next` by a sub-step; to no number where there is no solution.
    pub(super) fn advance(&self, at: &SubStep, scratch: &mut Scratch, next: &mut [f64]) {
        let mut memory = std::mem::take(&mut scratch.implicit);
        memory.state.copy_from_slice(next);
        let mut walk = Walk {
            method: self,
            scratch,
            memory: &mut memory,
        };
        let solved = walk.over(at, None);
        if solved {
            next.copy_from_slice(&memory.state);
        } else {
            next.fill(f64::NAN);
        }
        scratch.implicit = memory;
    }

    /// The same with the derivatives: F ← F_sub F, F_θ ← F_sub F_θ + F_sub,θ.
    pub(super) fn linearise(
        &self,
        at: &SubStep,
        scratch: &mut Scratch,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let mut memory = std::mem::take(&mut scratch.implicit);
        memory.state.copy_from_slice(&out.next);
        let mut walk = Walk {
            method: self,
            scratch,
            memory: &mut memory,
        };
        let derivatives = Derivatives {
            out: &mut *out,
            with_theta,
        };
        if walk.over(at, Some(derivatives)) {
            out.next.copy_from_slice(&memory.state);
        } else {
            out.next.fill(f64::NAN);
            out.f_x.fill(f64::NAN);
            out.f_theta.fill(f64::NAN);
        }
        scratch.implicit = memory;
    }

    fn stages(&self) -> usize {
        self.nodes.len()
    }
}

/// A sub-step on its way, `memory.state` being where it is.
struct Walk<'a> {
    method: &'a Tableau,
    scratch: &'a mut Scratch,
    memory: &'a mut Memory,
}

/// Where derivatives go, and whether those by θ are among them.
struct Derivatives<'a> {
    out: &'a mut Linearised,
    with_theta: bool,
}

impl Walk<'_> {
    /// Goes over a sub-step, in pieces where need be; `false` where there is no solution.
    fn over(&mut self, at: &SubStep, mut derivatives: Option<Derivatives>) -> bool {
        // the next piece is number `position` of 2^level
        let (mut level, mut position) = (0, 0_u64);
        let doubled = self.method.error.doubled();
        for _ in 0..Tableau::MOST_ATTEMPTS {
            if at.stepper.is_stopped() {
                return false;
            }
            let dt = at.dt / (1_u64 << level) as f64;
            let piece = SubStep {
                time: at.time + position as f64 * dt,
                dt,
                ..*at
            };
            let error = self.attempt(&piece);
            if !error.is_some_and(|e| e <= 1.0) {
                let mut halvings = 1;
                // what is no number is not expected to be mended by how much
                let mut left = error.unwrap_or(0.0) / doubled;
                while left > 1.0 && halvings < Tableau::MOST_HALVINGS {
                    (left, halvings) = (left / doubled, halvings + 1);
                }
                level += halvings;
                position <<= halvings;
                if level > Tableau::MOST_HALVED_LEVELS {
                    return false;
                }
                continue;
            }
            if let Some(Derivatives { out, with_theta }) = &mut derivatives
                && !self.differentiate_piece(&piece, *with_theta, out)
            {
                return false;
            }
            self.memory.state.copy_from_slice(&self.memory.next);
            position += 1;
            if position == 1 << level {
                return true;
            }
            let room = error.unwrap_or(0.0) * doubled < Tableau::DOUBLING_ERROR_PART;
            if room && position.is_multiple_of(2) {
                level -= 1;
                position /= 2;
            }
        }
        false
    }

    /// Tries a piece: `memory.next` is where it leads, and the error over the tolerance is given back,
    /// zero where there is none; `None` where Newton's method finds no solution.
    fn attempt(&mut self, at: &SubStep) -> Option<f64> {
        let tolerance = at.stepper.tolerance;
        if let (Estimate::Halves, Some(tolerance)) = (&self.method.error, tolerance) {
            self.solve(at)?;
            self.memory.coarse.copy_from_slice(&self.memory.next);
            let start = self.memory.state.clone();
            for half in halves(at) {
                let solved = self.solve(&half);
                if solved.is_none() {
                    self.memory.state.copy_from_slice(&start);
                    return None;
                }
                self.memory.state.copy_from_slice(&self.memory.next);
            }
            self.memory.state.copy_from_slice(&start);
            let ends = self.memory.coarse.iter().zip(&self.memory.next);
            let change = self.memory.change.iter_mut();
            change
                .zip(ends)
                .for_each(|(e, (coarse, fine))| *e = (fine - coarse) / 3.0);
            return Some(self.error(at, tolerance));
        }
        self.solve(at)?;
        let (Estimate::Embedded(weights), Some(tolerance)) = (&self.method.error, tolerance) else {
            return Some(0.0);
        };
        let n = self.memory.state.len();
        self.memory.change.fill(0.0);
        for (weight, z) in weights.iter().zip(self.memory.z.chunks_exact(n)) {
            axpy(*weight, z, &mut self.memory.change);
        }
        // the last stage's f_x is near the one at the end of the step
        self.set_matrix(at);
        solve(&mut self.memory.matrix, &mut self.memory.change, n).ok()?;
        Some(self.error(at, tolerance))
    }

    /// `memory.change` in units of what is tolerated.
    fn error(&self, at: &SubStep, tolerance: f64) -> f64 {
        let Memory {
            state,
            next,
            change,
            ..
        } = &*self.memory;
        let ends = state.iter().zip(next).zip(&at.stepper.sizes);
        let errors = change.iter().zip(ends).map(|(e, ((from, to), size))| {
            e.abs() / (tolerance * (from.abs().max(to.abs()) + size))
        });
        // of what is no number nothing is tolerated
        errors.fold(0.0, |worst, e| {
            if e <= worst {
                worst
            } else if e.is_nan() {
                f64::INFINITY
            } else {
                e
            }
        })
    }

    /// I − Δγ f_x, with the Jacobian that was evaluated last.
    fn set_matrix(&mut self, at: &SubStep) {
        let n = self.memory.state.len();
        let length = at.dt * self.method.gamma;
        let entries = self.memory.matrix.iter_mut().zip(&self.scratch.jacobian);
        entries.for_each(|(m, j)| *m = -length * j);
        for i in 0..n {
            self.memory.matrix[i * n + i] += 1.0;
        }
    }

    /// r_i from the stages before.
    fn set_base(&mut self, stage: usize) {
        let n = self.memory.state.len();
        self.memory.base.copy_from_slice(&self.memory.state);
        let before = self.memory.z.chunks_exact(n);
        for (a, z) in self.method.lower[stage].iter().zip(before) {
            axpy(*a, z, &mut self.memory.base);
        }
    }

    /// All stages of a piece; `memory.next` is where it leads.
    fn solve(&mut self, at: &SubStep) -> Option<()> {
        let n = self.memory.state.len();
        for stage in 0..self.method.stages() {
            self.set_base(stage);
            // as in the stage before; the first from where the step begins
            if stage == 0 {
                self.memory.z[..n].fill(0.0);
            } else {
                self.memory
                    .z
                    .copy_within((stage - 1) * n..stage * n, stage * n);
            }
            self.solve_stage(at, stage)?;
        }
        self.memory.next.copy_from_slice(&self.memory.state);
        for (b, z) in self
            .method
            .weights
            .iter()
            .zip(self.memory.z.chunks_exact(n))
        {
            axpy(*b, z, &mut self.memory.next);
        }
        Some(())
    }

    /// Newton's method for z of a stage.
    fn solve_stage(&mut self, at: &SubStep, stage: usize) -> Option<()> {
        let n = self.memory.state.len();
        let length = at.dt * self.method.gamma;
        let time = at.time + self.method.nodes[stage] * at.dt;
        for _ in 0..Tableau::MOST_ITERATIONS {
            self.set_point(stage);
            let Memory { point, .. } = &*self.memory;
            let scratch = &mut *self.scratch;
            let place = at.point(time, point, &mut scratch.input);
            at.stepper.system.linearise(
                &mut scratch.system,
                place,
                &mut scratch.slope,
                &mut scratch.jacobian,
            );
            self.set_matrix(at);
            let Memory {
                z,
                point,
                change,
                matrix,
                ..
            } = &mut *self.memory;
            let z = &mut z[stage * n..(stage + 1) * n];
            for ((c, f), z) in change.iter_mut().zip(&self.scratch.slope).zip(&*z) {
                *c = length * f - z;
            }
            solve(matrix, change, n).ok()?;
            let mut largest = 0.0_f64;
            for (i, (z, c)) in z.iter_mut().zip(&*change).enumerate() {
                *z += c;
                let size = c.abs() / (point[i].abs() + at.stepper.sizes[i]);
                if !size.is_finite() {
                    return None;
                }
                largest = largest.max(size);
            }
            if largest <= Tableau::CONVERGED_STEP_RATIO {
                return Some(());
            }
        }
        None
    }

    /// Y_i from r_i and z_i.
    fn set_point(&mut self, stage: usize) {
        let n = self.memory.state.len();
        let z = &self.memory.z[stage * n..(stage + 1) * n];
        let sums = self.memory.base.iter().zip(z);
        for (y, (r, z)) in self.memory.point.iter_mut().zip(sums) {
            *y = r + z;
        }
    }

    /// Moves F and F_θ over a piece that was accepted; `false` where a matrix has no inverse.
    fn differentiate_piece(
        &mut self,
        at: &SubStep,
        with_theta: bool,
        out: &mut Linearised,
    ) -> bool {
        let in_halves = matches!(self.method.error, Estimate::Halves);
        if !in_halves || at.stepper.tolerance.is_none() {
            return self.differentiate(at, with_theta, out).is_some();
        }
        // the stages of one half are no longer there
        let start = self.memory.state.clone();
        let mut done = true;
        for half in halves(at) {
            done &= self.solve(&half).is_some();
            done = done && self.differentiate(&half, with_theta, out).is_some();
            self.memory.state.copy_from_slice(&self.memory.next);
        }
        self.memory.state.copy_from_slice(&start);
        done
    }

    fn differentiate(
        &mut self,
        at: &SubStep,
        with_theta: bool,
        out: &mut Linearised,
    ) -> Option<()> {
        let (n, p) = (self.memory.state.len(), at.stepper.system.parameters());
        let with_theta = with_theta && p > 0;
        for stage in 0..self.method.stages() {
            self.set_base(stage);
            self.set_point(stage);
            let time = at.time + self.method.nodes[stage] * at.dt;
            let point = std::mem::take(&mut self.memory.point);
            at.stepper
                .slopes(self.scratch, at, time, &point, with_theta);
            self.memory.point = point;
            let lower = self.method.lower[stage];
            if with_theta {
                self.differentiate_by_theta(at, stage, &out.f_theta)?;
            }
            let Memory { d_base, d_z, .. } = &mut *self.memory;
            sum_of(d_base, &out.f_x, lower, d_z);
            self.set_matrix(at);
            let Memory {
                d_base,
                d_z,
                matrix,
                solved,
                ..
            } = &mut *self.memory;
            let solved = &mut solved[..n * n];
            solved.copy_from_slice(d_base);
            solve(matrix, solved, n).ok()?;
            difference(&mut d_z[stage * n * n..], solved, d_base);
        }
        let weights = self.method.weights;
        for (b, d_z) in weights.iter().zip(self.memory.d_z.chunks_exact(n * n)) {
            axpy(*b, d_z, &mut out.f_x);
        }
        let size = out.f_theta.len();
        if with_theta && size > 0 {
            let derivatives = self.memory.d_z_theta.chunks_exact(size);
            for (b, d_z) in weights.iter().zip(derivatives) {
                axpy(*b, d_z, &mut out.f_theta);
            }
        }
        Some(())
    }

    /// dz_i by θ, of the rows that θ reaches: f_x leads from them to no others.
    fn differentiate_by_theta(
        &mut self,
        at: &SubStep,
        stage: usize,
        f_theta: &[f64],
    ) -> Option<()> {
        let (n, rows) = (self.memory.state.len(), &at.stepper.rows);
        let length = at.dt * self.method.gamma;
        let Memory {
            d_base_theta,
            d_z_theta,
            matrix,
            solved,
            ..
        } = &mut *self.memory;
        if rows.is_empty() {
            return Some(());
        }
        sum_of(d_base_theta, f_theta, self.method.lower[stage], d_z_theta);
        let matrix = &mut matrix[..rows.len() * rows.len()];
        for (entries, &row) in matrix.chunks_exact_mut(rows.len()).zip(rows) {
            for (entry, &column) in entries.iter_mut().zip(rows) {
                let unit = f64::from(row == column);
                *entry = unit - length * self.scratch.jacobian[row * n + column];
            }
        }
        let solved = &mut solved[..f_theta.len()];
        solved.copy_from_slice(d_base_theta);
        axpy(length, &self.scratch.product_theta, solved);
        solve(matrix, solved, rows.len()).ok()?;
        difference(
            &mut d_z_theta[stage * f_theta.len()..],
            solved,
            d_base_theta,
        );
        Some(())
    }
}

/// The two halves of a step.
fn halves<'a>(at: &SubStep<'a>) -> [SubStep<'a>; 2] {
    let dt = at.dt / 2.0;
    [0.0, dt].map(|after| SubStep {
        time: at.time + after,
        dt,
        ..*at
    })
}

/// target ← first + Σ factor · part, with the parts one after another.
fn sum_of(target: &mut [f64], first: &[f64], factors: &[f64], parts: &[f64]) {
    target.copy_from_slice(first);
    for (factor, part) in factors.iter().zip(parts.chunks_exact(first.len())) {
        axpy(*factor, part, target);
    }
}

/// target ← a − b.
fn difference(target: &mut [f64], a: &[f64], b: &[f64]) {
    for (t, (a, b)) in target.iter_mut().zip(a.iter().zip(b)) {
        *t = a - b;
    }
}
