//! One-step maps x_i = f_o(x_{i−1}, u_{i−1}, θ) with their exact derivatives.
//!
//! - Euler: x + Δ f(x)
//! - semi-implicit (symplectic) Euler: one state after another from the last to the first, each
//!   with the states already advanced; with positions declared before velocities it is the
//!   usual v ← v + Δ a(q, v), q ← q + Δ v
//! - RK4: the classical Runge–Kutta scheme
//!
//! A gap between two samples is taken in as many steps of the sample time as fit it ([`Span`]), and
//! each of these may be cut into the model's sub-steps. Over the gap the input is held, or, with a
//! first-order hold, goes straight to its next value. F_θ is kept for the rows that θ reaches
//! between two samples ([`Stepper::rows`]): with one Euler step the unknown rows alone, otherwise
//! all that they feed.

use crate::model::small::set_identity;
use crate::model::{Hold, Method, Model, Point, System, Workspace};
use crate::record::Record;

/// A discrete map for one system and one sample time.
#[derive(Debug, Clone)]
pub struct Stepper<'s> {
    system: &'s System,
    method: Method,
    substeps: usize,
    hold: Hold,
    dt: f64,
    rows: Vec<usize>,
    /// Whether no gap takes more than one Euler step.
    single: bool,
}

/// The way from one sample to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Steps of the model's method, each with its sub-steps.
    pub steps: usize,
    /// Length of each of them.
    pub length: f64,
    /// The whole way in units of the sample time: Q_x grows with it.
    pub samples: f64,
}

/// A gap this close to a whole number of sample times, in sample times, is that number. The stamps
/// of a record that counts as uniform may be off by [`Record::STEP_TOLERANCE`] from its median
/// step, that from its mean, and the mean from the step of the fit.
pub(crate) const WHOLE: f64 = 3.0 * Record::STEP_TOLERANCE;

/// The map at one point: x_i, F_x (d_x × d_x) and F_θ (rows × d_θ).
#[derive(Debug, Clone)]
pub struct Linearised {
    pub next: Vec<f64>,
    pub f_x: Vec<f64>,
    pub f_theta: Vec<f64>,
}

/// Scratch memory of a [`Stepper`]; one per thread.
#[derive(Debug, Clone)]
pub struct Scratch {
    pub(crate) system: Workspace,
    input: Vec<f64>,
    /// Time between the samples.
    gap: f64,
    stage: Vec<f64>,
    slope: Vec<f64>,
    sum: Vec<f64>,
    jacobian: Vec<f64>,
    gradient: Vec<f64>,
    sub: Linearised,
    k_x: Vec<f64>,
    k_theta: Vec<f64>,
    product_x: Vec<f64>,
    product_theta: Vec<f64>,
}

impl<'s> Stepper<'s> {
    /// The map of `model`'s method and sub-steps for `system`, with sample time `dt`, for records
    /// with gaps of any length.
    pub fn new(model: &Model, system: &'s System, dt: f64) -> Self {
        Self::with(model, system, dt, true)
    }

    /// The same for these records alone: where one Euler step leads from sample to sample, F_θ has
    /// fewer rows.
    pub fn over<'r>(
        model: &Model,
        system: &'s System,
        dt: f64,
        records: impl IntoIterator<Item = &'r Record>,
    ) -> Self {
        let mut records = records.into_iter();
        let long = records.any(|r| r.gaps().any(|gap| span(gap, dt).steps > 1));
        Self::with(model, system, dt, long)
    }

    fn with(model: &Model, system: &'s System, dt: f64, long: bool) -> Self {
        let mut rows = system.unknown_rows().to_vec();
        let single = model.method == Method::Euler && model.substeps == 1 && !long;
        if !single {
            // what θ reaches through ∂f/∂x, however many stages it takes
            loop {
                let before = rows.len();
                for &(row, column) in system.pattern() {
                    if rows.contains(&column) && !rows.contains(&row) {
                        rows.push(row);
                    }
                }
                if rows.len() == before {
                    break;
                }
            }
            rows.sort_unstable();
        }
        Self {
            system,
            method: model.method,
            substeps: model.substeps,
            hold: model.hold,
            dt,
            rows,
            single,
        }
    }

    /// The way over a gap.
    pub fn span(&self, gap: f64) -> Span {
        span(gap, self.dt)
    }

    /// States whose row of F_θ can be other than zero, in order.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The sample time.
    pub fn dt(&self) -> f64 {
        self.dt
    }

    /// The system that is stepped.
    pub fn system(&self) -> &'s System {
        self.system
    }

    /// Room for the map and its derivatives.
    pub fn linearised(&self) -> Linearised {
        let (n, p) = (self.system.states(), self.system.parameters());
        Linearised {
            next: vec![0.0; n],
            f_x: vec![0.0; n * n],
            f_theta: vec![0.0; self.rows.len() * p],
        }
    }

    /// Scratch memory for this map.
    pub fn scratch(&self) -> Scratch {
        let (n, p) = (self.system.states(), self.system.parameters());
        let theta = if self.single { 0 } else { self.rows.len() * p };
        Scratch {
            system: self.system.workspace(),
            input: vec![0.0; self.system.inputs()],
            gap: self.dt,
            stage: vec![0.0; n],
            slope: vec![0.0; n],
            sum: vec![0.0; n],
            jacobian: vec![0.0; n * n],
            gradient: vec![
                0.0;
                if self.single {
                    0
                } else {
                    self.system.unknown_rows().len() * p
                }
            ],
            sub: self.linearised(),
            k_x: vec![0.0; n * n],
            k_theta: vec![0.0; theta],
            product_x: vec![0.0; n * n],
            product_theta: vec![0.0; theta],
        }
    }

    /// The input at a later time, `gap` being the time to the next sample.
    fn input_at<'a>(
        &self,
        at: &Point<'a>,
        (time, gap): (f64, f64),
        room: &'a mut [f64],
    ) -> &'a [f64] {
        let next = at.input.get(room.len()..2 * room.len());
        let (Hold::FirstOrder, Some(next)) = (self.hold, next) else {
            return at.input;
        };
        let part = (time - at.time) / gap;
        for (u, (from, to)) in room.iter_mut().zip(at.input.iter().zip(next)) {
            *u = from + part * (to - from);
        }
        room
    }

    /// x_i alone.
    pub fn advance(&self, scratch: &mut Scratch, at: Point, span: Span, next: &mut [f64]) {
        let gap = span.length * span.steps as f64;
        next.copy_from_slice(at.state);
        let dt = span.length / self.substeps as f64;
        for s in 0..span.steps * self.substeps {
            let time = at.time + s as f64 * dt;
            match self.method {
                Method::Euler => {
                    let point = Point {
                        time,
                        state: next,
                        input: self.input_at(&at, (time, gap), &mut scratch.input),
                        ..at
                    };
                    self.system
                        .derivative(&mut scratch.system, point, &mut scratch.slope);
                    axpy(dt, &scratch.slope, next);
                }
                Method::SemiImplicitEuler => {
                    for r in (0..next.len()).rev() {
                        let point = Point {
                            time,
                            state: next,
                            input: self.input_at(&at, (time, gap), &mut scratch.input),
                            ..at
                        };
                        self.system
                            .derivative(&mut scratch.system, point, &mut scratch.slope);
                        next[r] += dt * scratch.slope[r];
                    }
                }
                Method::Rk4 => {
                    scratch.stage.copy_from_slice(next);
                    scratch.sum.copy_from_slice(next);
                    for (shift, weight) in RK4 {
                        if shift > 0.0 {
                            for (s, (x, k)) in scratch
                                .stage
                                .iter_mut()
                                .zip(next.iter().zip(&scratch.slope))
                            {
                                *s = x + shift * dt * k;
                            }
                        }
                        let stage = time + shift * dt;
                        let point = Point {
                            time: stage,
                            state: &scratch.stage,
                            input: self.input_at(&at, (stage, gap), &mut scratch.input),
                            ..at
                        };
                        self.system
                            .derivative(&mut scratch.system, point, &mut scratch.slope);
                        axpy(weight * dt, &scratch.slope, &mut scratch.sum);
                    }
                    next.copy_from_slice(&scratch.sum);
                }
            }
        }
    }

    /// x_i and F_x; F_θ too where `with_theta`.
    ///
    /// # Panics
    /// If the gap takes more than one step and the stepper is for records without such gaps.
    pub fn linearise(
        &self,
        scratch: &mut Scratch,
        at: Point,
        span: Span,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let dt = span.length / self.substeps as f64;
        let count = span.steps * self.substeps;
        scratch.gap = span.length * span.steps as f64;
        if self.single {
            assert_eq!(count, 1, "this stepper is for records without gaps");
            return self.euler(scratch, at, dt, with_theta, out);
        }
        if self.method == Method::Euler && count == 1 {
            return self.euler_on_rows(scratch, at, at.time, dt, with_theta, out);
        }
        let n = at.state.len();
        out.next.copy_from_slice(at.state);
        set_identity(&mut out.f_x, n);
        if with_theta {
            out.f_theta.fill(0.0);
        }
        for s in 0..count {
            let time = at.time + s as f64 * dt;
            match self.method {
                Method::SemiImplicitEuler => {
                    self.semi_implicit(scratch, at, time, dt, with_theta, out);
                }
                Method::Euler | Method::Rk4 => {
                    // the sub-step's own map, then the chain rule F ← F_sub F, F_θ ← F_sub F_θ + F_sub,θ
                    let mut sub = std::mem::replace(&mut scratch.sub, empty());
                    let from = Point {
                        state: &out.next,
                        ..at
                    };
                    if self.method == Method::Rk4 {
                        self.rk4(scratch, from, time, dt, with_theta, &mut sub);
                    } else {
                        self.euler_on_rows(scratch, from, time, dt, with_theta, &mut sub);
                    }
                    self.compose(scratch, &sub, with_theta, out);
                    scratch.sub = sub;
                }
            }
        }
    }

    fn euler(
        &self,
        scratch: &mut Scratch,
        at: Point,
        dt: f64,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let (system, n) = (self.system, at.state.len());
        let ws = &mut scratch.system;
        if with_theta {
            system.linearise_all(ws, at, &mut out.next, &mut out.f_x, &mut out.f_theta);
            out.f_theta.iter_mut().for_each(|v| *v *= dt);
        } else {
            system.linearise(ws, at, &mut out.next, &mut out.f_x);
        }
        for i in 0..n {
            out.next[i] = at.state[i] + dt * out.next[i];
        }
        out.f_x.iter_mut().for_each(|v| *v *= dt);
        for i in 0..n {
            out.f_x[i * n + i] += 1.0;
        }
    }

    /// f, ∂f/∂x and ∂f/∂θ at a time of the sample, the latter spread over [`Stepper::rows`] in `k_theta`.
    fn slopes(&self, scratch: &mut Scratch, at: Point, time: f64, with_theta: bool) {
        let p = self.system.parameters();
        let ws = &mut scratch.system;
        let input = self.input_at(&at, (time, scratch.gap), &mut scratch.input);
        let at = Point { time, input, ..at };
        if !with_theta || p == 0 {
            return self
                .system
                .linearise(ws, at, &mut scratch.slope, &mut scratch.jacobian);
        }
        self.system.linearise_all(
            ws,
            at,
            &mut scratch.slope,
            &mut scratch.jacobian,
            &mut scratch.gradient,
        );
        scratch.product_theta.fill(0.0);
        for (source, state) in scratch
            .gradient
            .chunks_exact(p)
            .zip(self.system.unknown_rows())
        {
            let row = self.rows.iter().position(|r| r == state);
            let row = row.expect("unknown rows are among the rows that θ reaches");
            scratch.product_theta[row * p..(row + 1) * p].copy_from_slice(source);
        }
    }

    fn euler_on_rows(
        &self,
        scratch: &mut Scratch,
        at: Point,
        time: f64,
        dt: f64,
        with_theta: bool,
        sub: &mut Linearised,
    ) {
        let n = at.state.len();
        self.slopes(scratch, at, time, with_theta);
        sub.next.copy_from_slice(at.state);
        axpy(dt, &scratch.slope, &mut sub.next);
        set_identity(&mut sub.f_x, n);
        axpy(dt, &scratch.jacobian, &mut sub.f_x);
        if with_theta {
            for (s, g) in sub.f_theta.iter_mut().zip(&scratch.product_theta) {
                *s = dt * g;
            }
        }
    }

    /// k_j = f(x + a_j Δ k_{j−1}): dk_j = f_x (I + a_j Δ dk_{j−1}), dk_j/dθ = f_θ + f_x a_j Δ dk_{j−1}/dθ.
    fn rk4(
        &self,
        scratch: &mut Scratch,
        at: Point,
        time: f64,
        dt: f64,
        with_theta: bool,
        sub: &mut Linearised,
    ) {
        let n = at.state.len();
        sub.next.copy_from_slice(at.state);
        set_identity(&mut sub.f_x, n);
        sub.f_theta.fill(0.0);
        scratch.stage.copy_from_slice(at.state);
        for (shift, weight) in RK4 {
            if shift > 0.0 {
                for (s, (x, k)) in scratch
                    .stage
                    .iter_mut()
                    .zip(at.state.iter().zip(&scratch.slope))
                {
                    *s = x + shift * dt * k;
                }
            }
            let stage = std::mem::take(&mut scratch.stage);
            let point = Point {
                state: &stage,
                ..at
            };
            self.slopes(scratch, point, time + shift * dt, with_theta);
            scratch.stage = stage;
            // product ← f_x dx with dx = I + a Δ dk
            if shift > 0.0 {
                scratch.k_x.iter_mut().for_each(|v| *v *= shift * dt);
                if with_theta {
                    scratch.k_theta.iter_mut().for_each(|v| *v *= shift * dt);
                }
                for i in 0..n {
                    scratch.k_x[i * n + i] += 1.0;
                }
                crate::model::small::multiply(
                    &scratch.jacobian,
                    &scratch.k_x,
                    &mut scratch.product_x,
                    n,
                    n,
                );
                if with_theta {
                    self.chain(
                        &scratch.jacobian,
                        &scratch.k_theta,
                        &mut scratch.product_theta,
                    );
                }
                std::mem::swap(&mut scratch.k_x, &mut scratch.product_x);
            } else {
                scratch.k_x.copy_from_slice(&scratch.jacobian);
            }
            std::mem::swap(&mut scratch.k_theta, &mut scratch.product_theta);
            axpy(weight * dt, &scratch.slope, &mut sub.next);
            axpy(weight * dt, &scratch.k_x, &mut sub.f_x);
            if with_theta {
                axpy(weight * dt, &scratch.k_theta, &mut sub.f_theta);
            }
        }
    }

    fn semi_implicit(
        &self,
        scratch: &mut Scratch,
        at: Point,
        time: f64,
        dt: f64,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let (n, p) = (out.next.len(), self.system.parameters());
        for r in (0..n).rev() {
            let point = Point {
                state: &out.next,
                ..at
            };
            self.slopes(scratch, point, time, with_theta);
            out.next[r] += dt * scratch.slope[r];
            // row r of F ← row r + Δ Σ_j f_x[r, j] row j, from the derivative of the mixed state
            scratch.product_x[..n].copy_from_slice(&out.f_x[r * n..(r + 1) * n]);
            for j in 0..n {
                let factor = dt * scratch.jacobian[r * n + j];
                if factor != 0.0 {
                    axpy(
                        factor,
                        &out.f_x[j * n..(j + 1) * n],
                        &mut scratch.product_x[..n],
                    );
                }
            }
            out.f_x[r * n..(r + 1) * n].copy_from_slice(&scratch.product_x[..n]);
            let Some(row) = self
                .rows
                .iter()
                .position(|&s| s == r)
                .filter(|_| with_theta)
            else {
                continue;
            };
            let own = &mut scratch.k_theta[..p];
            own.copy_from_slice(&out.f_theta[row * p..(row + 1) * p]);
            axpy(dt, &scratch.product_theta[row * p..(row + 1) * p], own);
            for (s, &column) in self.rows.iter().enumerate() {
                let factor = dt * scratch.jacobian[r * n + column];
                if factor != 0.0 {
                    axpy(factor, &out.f_theta[s * p..(s + 1) * p], own);
                }
            }
            out.f_theta[row * p..(row + 1) * p].copy_from_slice(own);
        }
    }

    /// target ← target + M source, with M the part of a d_x × d_x matrix on the rows of F_θ.
    fn chain(&self, matrix: &[f64], source: &[f64], target: &mut [f64]) {
        // a system without parameters has no chunks, whatever their size
        let (n, p) = (self.system.states(), self.system.parameters().max(1));
        for (target, &row) in target.chunks_exact_mut(p).zip(&self.rows) {
            for (source, &column) in source.chunks_exact(p).zip(&self.rows) {
                let factor = matrix[row * n + column];
                if factor != 0.0 {
                    axpy(factor, source, target);
                }
            }
        }
    }

    fn compose(
        &self,
        scratch: &mut Scratch,
        sub: &Linearised,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let n = out.next.len();
        out.next.copy_from_slice(&sub.next);
        crate::model::small::multiply(&sub.f_x, &out.f_x, &mut scratch.product_x, n, n);
        out.f_x.copy_from_slice(&scratch.product_x);
        if with_theta {
            scratch.product_theta.copy_from_slice(&sub.f_theta);
            self.chain(&sub.f_x, &out.f_theta, &mut scratch.product_theta);
            out.f_theta.copy_from_slice(&scratch.product_theta);
        }
    }
}

/// As many steps as fit a gap: of the sample time exactly where the gap is a whole number of them,
/// else equal ones of about that length.
fn span(gap: f64, dt: f64) -> Span {
    let samples = gap / dt;
    let steps = samples.round().max(1.0);
    let whole = (samples - steps).abs() <= WHOLE;
    Span {
        steps: steps as usize,
        length: if whole { dt } else { gap / steps },
        samples: if whole { steps } else { samples },
    }
}

/// (shift of the stage, weight in the sum).
const RK4: [(f64, f64); 4] = [
    (0.0, 1.0 / 6.0),
    (0.5, 1.0 / 3.0),
    (0.5, 1.0 / 3.0),
    (1.0, 1.0 / 6.0),
];

fn empty() -> Linearised {
    Linearised {
        next: vec![],
        f_x: vec![],
        f_theta: vec![],
    }
}

/// y ← y + a x.
fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    /// With a first-order hold ∫u is the trapezoid's, exactly, for any input and any number of
    /// sub-steps; with a zero-order hold the rectangle's. The last sample has no next, and holds.
    #[test]
    fn holds_are_rectangles_and_trapezoids() {
        let u = [0.3, -1.0, 2.5, 0.7];
        let record = Record {
            name: "steps".into(),
            time: (0..4).map(|k| 0.5 * f64::from(k)).collect(),
            inputs: u.to_vec(),
            outputs: vec![0.0; 4],
            truth: None,
            d_u: 1,
            d_y: 1,
            d_x: 1,
        };
        for substeps in [1, 3] {
            for (hold, first_order) in [("zero-order", false), ("first-order", true)] {
                let text = format!(
                    "[time]\nstep = 0.5\nmethod = \"rk4\"\nsubsteps = {substeps}\nhold = \"{hold}\"\n\
                     [inputs]\nu = {{}}\n[states.x]\nderivative = \"u\"\n[measurements]\ny = \"x\"\n"
                );
                let model = Model::from_text("integral", &text).unwrap();
                let stepper = Stepper::new(&model, &model.system, 0.5);
                let span = stepper.span(0.5);
                let (mut scratch, mut out) = (stepper.scratch(), stepper.linearised());
                let mut next = [0.0];
                for k in 0..4 {
                    let at = record.point(k, &[1.0], &[]);
                    stepper.advance(&mut scratch, at, span, &mut next);
                    stepper.linearise(&mut scratch, at, span, false, &mut out);
                    let after = match first_order && k < 3 {
                        true => (u[k] + u[k + 1]) / 2.0,
                        false => u[k],
                    };
                    assert!((next[0] - 1.0 - 0.5 * after).abs() < 1e-15, "{hold} {k}");
                    assert!((out.next[0] - next[0]).abs() < 1e-15, "{hold} {k}");
                }
            }
        }
    }
}
