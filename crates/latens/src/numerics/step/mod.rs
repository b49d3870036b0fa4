//! One-step maps x_i = f_o(x_{i−1}, u_{i−1}, θ) with their exact derivatives.
//!
//! An integration method is a file here, an [`Integrator`], and a line of `integrators!`; its name in
//! a model file is a line of the language's `Method`.
//!
//! A gap between two samples is taken in as many steps of the sample time as fit it ([`Span`]), and
//! each of these may be cut into the model's sub-steps, and further by implicit methods. Over the gap the
//! input is held, or, with a first-order hold, goes straight to its next value. F_θ is kept for the rows that
//! θ reaches between two samples ([`Stepper::rows`]): with one Euler step the unknown rows alone, otherwise
//! all that they feed.

use crate::model::small::set_identity;
use crate::model::{Hold, KnownStart, Method, Model, Point, System, Workspace};
use crate::record::Record;

/// The integration methods: module, type, and the language's name of each.
macro_rules! integrators {
    ($($module:ident::$integrator:ident,)*) => {
        $(mod $module;)*

        fn integrator(method: Method) -> &'static dyn Integrator {
            match method {
                $(Method::$integrator => &$module::$integrator,)*
            }
        }
    };
}

mod diagonally_implicit;
mod lanes;

pub use diagonally_implicit::{Estimate, Tableau};
pub use lanes::{Departure, LaneScratch};

/// The coefficients of an implicit method; `None` for an explicit one.
pub fn tableau(method: Method) -> Option<&'static Tableau> {
    integrator(method).tableau()
}

/// What the error of a state is measured by, beside the state: its size in the model file, or one.
pub fn sizes(model: &Model) -> Vec<f64> {
    let states = model.states.iter();
    states.map(|s| s.scale.unwrap_or(1.0)).collect()
}

integrators! {
    euler::Euler,
    semi_implicit_euler::SemiImplicitEuler,
    rk4::Rk4,
    sdirk4::Sdirk4,
    implicit_midpoint::ImplicitMidpoint,
}

/// An integration method: one sub-step, and its derivatives.
/// A stage of an explicit method.
#[derive(Clone, Copy)]
struct Stage {
    /// Of the state along the slope of the stage before, in steps.
    shift: f64,
    /// In the sum.
    weight: f64,
}

trait Integrator: Sync {
    /// Whether one step of it moves what θ enters and nothing else.
    fn is_local(&self) -> bool {
        false
    }

    /// Its stages where it is explicit and each stage goes from the one before.
    fn stages(&self) -> &'static [Stage] {
        &[]
    }

    /// Its coefficients where it is implicit.
    fn tableau(&self) -> Option<&'static Tableau> {
        None
    }

    /// Moves `next` by a sub-step; to what is no number where there is no solution.
    fn advance(&self, at: &SubStep, scratch: &mut Scratch, next: &mut [f64]);

    /// The map of one sub-step, by itself; for methods that [`Integrator::linearise`] by the chain rule.
    fn map(&self, at: &SubStep, scratch: &mut Scratch, with_theta: bool, out: &mut Linearised);

    /// Moves `out`, the map so far, by a sub-step: F ← F_sub F, F_θ ← F_sub F_θ + F_sub,θ.
    fn linearise(
        &self,
        at: &SubStep,
        scratch: &mut Scratch,
        with_theta: bool,
        out: &mut Linearised,
    ) {
        let mut sub = std::mem::take(&mut scratch.sub);
        let from = SubStep {
            at: Point {
                state: &out.next,
                ..at.at
            },
            ..*at
        };
        self.map(&from, scratch, with_theta, &mut sub);
        at.stepper.compose(scratch, &sub, with_theta, out);
        scratch.sub = sub;
    }
}

/// Where a sub-step begins, and how long it is.
#[derive(Clone, Copy)]
struct SubStep<'a> {
    stepper: &'a Stepper<'a>,
    /// The sample that the gap begins at, with the state from which the sub-step goes.
    at: Point<'a>,
    /// When the sub-step begins.
    time: f64,
    /// Its length.
    dt: f64,
    /// Time from this sample to the next.
    gap: f64,
}

impl<'a> SubStep<'a> {
    /// A state at a time of the sub-step as a point, with the input of that time.
    fn point<'b>(&self, time: f64, state: &'b [f64], room: &'b mut [f64]) -> Point<'b>
    where
        'a: 'b,
    {
        Point {
            time,
            state,
            input: self.stepper.input_at(&self.at, time, self.gap, room),
            theta: self.at.theta,
        }
    }
}

/// A discrete map for one system and one sample time.
#[derive(Clone)]
pub struct Stepper<'s> {
    system: &'s System,
    integrator: &'static dyn Integrator,
    substeps: usize,
    /// What an implicit method lets be wrong in a step, beside the state and its size.
    tolerance: Option<f64>,
    /// Rough size of each state: that of the model file, or one.
    sizes: Vec<f64>,
    hold: Vec<Hold>,
    dt: f64,
    rows: Vec<usize>,
    /// States that hold how constants differ from their means.
    varying: Vec<usize>,
    /// States of which is known where records start.
    known_starts: Vec<KnownStart>,
    /// Whether no gap takes more than one step of a method that is local.
    single: bool,
    /// What of F_x can be other than zero in one sub-step, for methods that go side by side.
    structure: Option<lanes::Structure>,
    /// Whether somebody wants to stop.
    stop: Option<&'s (dyn Fn() -> bool + Sync)>,
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
pub const WHOLE_STEPS_TOLERANCE: f64 = 3.0 * Record::STEP_TOLERANCE;

/// The map at one point: x_i, F_x (d_x × d_x) and F_θ (rows × d_θ).
#[derive(Debug, Clone, Default)]
pub struct Linearised {
    pub next: Vec<f64>,
    pub f_x: Vec<f64>,
    pub f_theta: Vec<f64>,
    /// H_θ at the sample that the map leads to, of [`System::unknown_channels`]; whoever measures there
    /// fills it.
    pub h_theta: Vec<f64>,
}

/// Scratch memory of a [`Stepper`]; one per thread.
#[derive(Debug, Clone)]
pub struct Scratch {
    pub(crate) system: Workspace,
    input: Vec<f64>,
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
    implicit: diagonally_implicit::Memory,
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

    /// That of another process, whose own is [`single`](Self::is_single) or not.
    pub(crate) fn alike(model: &Model, system: &'s System, dt: f64, single: bool) -> Self {
        Self::with(model, system, dt, !single)
    }

    /// Whether no gap takes more than one step of a method that is local.
    pub(crate) fn is_single(&self) -> bool {
        self.single
    }

    fn with(model: &Model, system: &'s System, dt: f64, long: bool) -> Self {
        let mut rows = system.unknown_rows().to_vec();
        let integrator = integrator(model.method);
        let single = integrator.is_local() && model.substeps == 1 && !long;
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
        let stages = integrator.stages().len();
        let structure = (stages > 0).then(|| lanes::Structure::new(system, &rows, stages));
        Self {
            structure,
            system,
            integrator,
            substeps: model.substeps,
            tolerance: model.tolerance,
            sizes: sizes(model),
            hold: model.hold.clone(),
            dt,
            rows,
            varying: model.varying().map(|(_, state)| state).collect(),
            known_starts: model.known_starts().collect(),
            single,
            stop: None,
        }
    }

    /// The same for work of which nothing is kept once `stop` says that somebody wants to stop: from then on steps that
    /// would take long have no solution, and searches end.
    pub fn stopped_by(mut self, stop: &'s (dyn Fn() -> bool + Sync)) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Whether somebody wants to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }

    /// The way over a gap.
    pub fn span(&self, gap: f64) -> Span {
        span(gap, self.dt)
    }

    /// States whose row of F_θ can be other than zero, in order.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// States of which is known where records start.
    pub fn known_starts(&self) -> &[KnownStart] {
        &self.known_starts
    }

    /// States that hold how constants differ from their means.
    pub fn varying(&self) -> &[usize] {
        &self.varying
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
            h_theta: vec![0.0; self.system.unknown_channels().len() * p],
        }
    }

    /// Scratch memory for this map.
    pub fn scratch(&self) -> Scratch {
        let (n, p) = (self.system.states(), self.system.parameters());
        let theta = if self.single { 0 } else { self.rows.len() * p };
        Scratch {
            system: self.system.workspace(),
            input: vec![0.0; self.system.inputs()],
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
            implicit: diagonally_implicit::Memory::new(self.integrator.tableau(), self),
        }
    }

    /// The input at a later time, `gap` being the time to the next sample.
    fn input_at<'a>(&self, at: &Point<'a>, time: f64, gap: f64, room: &'a mut [f64]) -> &'a [f64] {
        let next = at.input.get(room.len()..2 * room.len());
        let next = next.filter(|_| self.hold.contains(&Hold::FirstOrder));
        let Some(next) = next else {
            return at.input;
        };
        let part = (time - at.time) / gap;
        let ends = at.input.iter().zip(next);
        for ((u, hold), (from, to)) in room.iter_mut().zip(&self.hold).zip(ends) {
            *u = match hold {
                Hold::FirstOrder => from + part * (to - from),
                Hold::ZeroOrder => *from,
            };
        }
        room
    }

    /// x_i alone.
    pub fn advance(&self, scratch: &mut Scratch, at: Point, span: Span, next: &mut [f64]) {
        next.copy_from_slice(at.state);
        for step in self.sub_steps(at, span) {
            self.integrator.advance(&step, scratch, next);
        }
    }

    /// The sub-steps over a gap.
    fn sub_steps<'a>(&'a self, at: Point<'a>, span: Span) -> impl Iterator<Item = SubStep<'a>> {
        let dt = span.length / self.substeps as f64;
        let gap = span.length * span.steps as f64;
        (0..span.steps * self.substeps).map(move |s| SubStep {
            stepper: self,
            at,
            time: at.time + s as f64 * dt,
            dt,
            gap,
        })
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
        let count = span.steps * self.substeps;
        let mut steps = self.sub_steps(at, span);
        if self.single {
            assert_eq!(count, 1, "this stepper is for records without gaps");
        }
        // one step of an explicit method is the map itself
        if self.structure.is_some() && count == 1 {
            let step = steps.next().expect("there is one step");
            return self.integrator.map(&step, scratch, with_theta, out);
        }
        out.next.copy_from_slice(at.state);
        set_identity(&mut out.f_x, at.state.len());
        if with_theta {
            out.f_theta.fill(0.0);
        }
        for step in steps {
            self.integrator.linearise(&step, scratch, with_theta, out);
        }
    }

    /// f, ∂f/∂x and ∂f/∂θ at a time of the sample, the latter spread over [`Stepper::rows`] in `k_theta`.
    fn slopes(
        &self,
        scratch: &mut Scratch,
        step: &SubStep,
        time: f64,
        state: &[f64],
        with_theta: bool,
    ) {
        let p = self.system.parameters();
        let ws = &mut scratch.system;
        let at = step.point(time, state, &mut scratch.input);
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
    let whole = (samples - steps).abs() <= WHOLE_STEPS_TOLERANCE;
    Span {
        steps: steps as usize,
        length: if whole { dt } else { gap / steps },
        samples: if whole { steps } else { samples },
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
            later: false,
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
                    let after = if first_order && k < 3 {
                        (u[k] + u[k + 1]) / 2.0
                    } else {
                        u[k]
                    };
                    assert!((next[0] - 1.0 - 0.5 * after).abs() < 1e-15, "{hold} {k}");
                    assert!((out.next[0] - next[0]).abs() < 1e-15, "{hold} {k}");
                }
            }
        }
    }
}
