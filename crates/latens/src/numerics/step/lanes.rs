//! Steps from several samples at once: a lane is a sample.
//!
//! Where the states are known, as in every pass over a trajectory, a step knows nothing of the others: eight of
//! them go through the equations side by side, and each has the bits that it has alone. F_x is worked out on the
//! entries that can be other than zero: which these are, and which products they are sums of, is known before.
//! Methods and ways without a form of their own here go sample by sample.

use super::{Linearised, Scratch, Span, Stage, Stepper, axpy};
use crate::model::simd::{self, LANES, Loops, Panel, ZERO};
use crate::model::{Point, System, Workspace};

/// From where a step goes, and how far.
#[derive(Clone, Copy)]
pub struct Departure<'a> {
    pub at: Point<'a>,
    pub span: Span,
}

/// Which entries of the matrices of a step can be other than zero.
#[derive(Debug, Clone)]
pub(super) struct Structure {
    /// (row, column) of F_x, in order; the diagonal is among them.
    pub entries: Vec<(usize, usize)>,
    /// Where the diagonal is among them.
    diagonal: Vec<usize>,
    /// Where each entry of ∂f/∂x is among them.
    slopes: Vec<usize>,
    /// For each stage after the first, the products with entries of I + a Δ dk of which ∂f/∂x (I + a Δ dk)
    /// is a sum.
    products: Vec<Vec<Term>>,
    /// The products with rows of F_θ.
    chain: Vec<Term>,
}

/// A product with an entry of ∂f/∂x.
#[derive(Debug, Clone, Copy)]
struct Term {
    /// The entry or row that it is added to.
    to: usize,
    /// The entry of ∂f/∂x.
    slope: usize,
    /// The entry or row that is multiplied.
    from: usize,
}

impl Structure {
    /// Of a method of so many explicit stages.
    pub fn new(system: &System, rows: &[usize], stages: usize) -> Self {
        let (n, pattern) = (system.states(), system.pattern());
        // dk of the stages, and their sum with I
        let mut slopes = vec![false; n * n];
        pattern.iter().for_each(|(i, j)| slopes[i * n + j] = true);
        let mut all: Vec<bool> = (0..n * n).map(|e| slopes[e] || e % (n + 1) == 0).collect();
        let (mut stage, mut terms) = (slopes, vec![]);
        for _ in 1..stages {
            (0..n).for_each(|i| stage[i * n + i] = true);
            let (mut next, mut products) = (vec![false; n * n], vec![]);
            for (slope, &(i, m)) in pattern.iter().enumerate() {
                for j in (0..n).filter(|j| stage[m * n + j]) {
                    next[i * n + j] = true;
                    products.push(Term {
                        to: i * n + j,
                        slope,
                        from: m * n + j,
                    });
                }
            }
            next.iter()
                .zip(&mut all)
                .for_each(|(used, all)| *all |= used);
            terms.push(products);
            stage = next;
        }
        let places: Vec<usize> = (0..n * n).filter(|&e| all[e]).collect();
        let place = |e: usize| places.binary_search(&e).expect("an entry of F_x");
        let known_row = |row| rows.iter().position(|r| r == row);
        let chain = pattern.iter().enumerate();
        let chain = chain.filter_map(|(slope, (row, column))| {
            Some(Term {
                to: known_row(row)?,
                slope,
                from: known_row(column)?,
            })
        });
        let placed = |products: Vec<Term>| {
            let products = products.into_iter();
            let placed = products.map(|product| Term {
                to: place(product.to),
                from: place(product.from),
                ..product
            });
            placed.collect()
        };
        Self {
            entries: places.iter().map(|e| (e / n, e % n)).collect(),
            diagonal: (0..n).map(|i| place(i * n + i)).collect(),
            slopes: pattern.iter().map(|(i, j)| place(i * n + j)).collect(),
            products: terms.into_iter().map(placed).collect(),
            chain: chain.collect(),
        }
    }
}

/// Scratch memory of steps side by side; one per thread.
pub struct LaneScratch {
    pub(crate) system: Workspace<Panel>,
    /// For steps that go alone.
    single: Option<Scratch>,
    room: Vec<f64>,
    input: Vec<Panel>,
    state: Vec<Panel>,
    stage: Vec<Panel>,
    slope: Vec<Panel>,
    next: Vec<Panel>,
    slopes: Vec<Panel>,
    k_x: Vec<Panel>,
    product_x: Vec<Panel>,
    f_x: Vec<Panel>,
    /// Of each lane.
    gradient: Vec<f64>,
    k_theta: [Vec<f64>; LANES],
    product_theta: Vec<f64>,
    /// h and the entries of H.
    measured: Vec<Panel>,
    sight: Vec<Panel>,
}

/// Points of up to [`LANES`] samples; where there are fewer, the last stands for the rest.
fn lane<'a, 'b>(from: &'b [Departure<'a>], l: usize) -> &'b Departure<'a> {
    &from[l.min(from.len() - 1)]
}

impl Stepper<'_> {
    /// Scratch memory for steps side by side.
    pub fn lane_scratch(&self) -> LaneScratch {
        let system = self.system;
        let (n, p) = (system.states(), system.parameters());
        let entries = self.structure.as_ref().map_or(0, |s| s.entries.len());
        let theta = if entries == 0 { 0 } else { self.rows.len() * p };
        let panels = |count: usize| vec![ZERO; count];
        LaneScratch {
            system: system.workspace(),
            single: None,
            room: vec![0.0; system.inputs()],
            input: panels(system.inputs()),
            state: panels(n),
            stage: panels(n),
            slope: panels(n),
            next: panels(n),
            slopes: panels(system.pattern().len()),
            k_x: panels(entries),
            product_x: panels(entries),
            f_x: panels(entries),
            gradient: vec![0.0; system.unknown_rows().len() * p],
            k_theta: std::array::from_fn(|_| vec![0.0; theta]),
            product_theta: vec![0.0; theta],
            measured: panels(system.measurements()),
            sight: panels(system.measure_pattern().len()),
        }
    }

    /// Whether these steps go side by side: each is one step of a method that can.
    fn side_by_side(&self, from: &[Departure]) -> bool {
        self.structure.is_some() && from.iter().all(|d| d.span.steps * self.substeps == 1)
    }

    /// x_i of up to [`LANES`] steps, one row after another.
    pub fn advance_lanes(&self, scratch: &mut LaneScratch, from: &[Departure], next: &mut [f64]) {
        let n = self.system.states();
        if !self.side_by_side(from) {
            let alone = scratch.single.get_or_insert_with(|| self.scratch());
            for (d, next) in from.iter().zip(next.chunks_exact_mut(n)) {
                self.advance(alone, d.at, d.span, next);
            }
            return;
        }
        scratch.depart(from);
        for &Stage { shift, weight } in self.integrator.stages() {
            let time = scratch.stage(self, from, shift);
            let at = scratch.point(time, from);
            let (system, slope) = (&mut scratch.system, &mut scratch.slope);
            self.system
                .derivative(system, at.with(&scratch.stage, &scratch.input), slope);
            add(weight, from, &scratch.slope, &mut scratch.next);
        }
        for (l, next) in next.chunks_exact_mut(n).take(from.len()).enumerate() {
            take(&scratch.next, l, next.iter_mut());
        }
    }

    /// x_i and F_x of up to [`LANES`] steps; F_θ too where `with_theta`.
    pub fn linearise_lanes(
        &self,
        scratch: &mut LaneScratch,
        from: &[Departure],
        with_theta: bool,
        out: &mut [Linearised],
    ) {
        let Some(structure) = self.structure.as_ref().filter(|_| self.side_by_side(from)) else {
            let alone = scratch.single.get_or_insert_with(|| self.scratch());
            for (d, out) in from.iter().zip(out) {
                self.linearise(alone, d.at, d.span, with_theta, out);
            }
            return;
        };
        let (system, n) = (self.system, self.system.states());
        let with_theta = with_theta && system.parameters() > 0;
        scratch.depart(from);
        scratch.f_x.fill(ZERO);
        for &i in &structure.diagonal {
            scratch.f_x[i] = Panel([1.0; LANES]);
        }
        if with_theta {
            out.iter_mut().for_each(|out| out.f_theta.fill(0.0));
        }
        for (k, &Stage { shift, weight }) in self.integrator.stages().iter().enumerate() {
            let time = scratch.stage(self, from, shift);
            let at = scratch.point(time, from);
            let at = at.with(&scratch.stage, &scratch.input);
            let (ws, slope) = (&mut scratch.system, &mut scratch.slope);
            system.linearise_entries(ws, at, with_theta, slope, &mut scratch.slopes);
            add(weight, from, &scratch.slope, &mut scratch.next);
            scratch.chain_x(structure, from, k, shift);
            add(weight, from, &scratch.k_x, &mut scratch.f_x);
            if with_theta {
                for (l, out) in out.iter_mut().take(from.len()).enumerate() {
                    let by = shift * from[l].span.length;
                    scratch.chain_theta(self, structure, l, by);
                    axpy(
                        weight * from[l].span.length,
                        &scratch.k_theta[l],
                        &mut out.f_theta,
                    );
                }
            }
        }
        for (l, out) in out.iter_mut().take(from.len()).enumerate() {
            take(&scratch.next, l, out.next.iter_mut());
            out.f_x.fill(0.0);
            for (&(i, j), value) in structure.entries.iter().zip(&scratch.f_x) {
                out.f_x[i * n + j] = value.0[l];
            }
        }
    }

    /// h and H, row by row, at up to [`LANES`] samples, one after another.
    pub fn linearise_measurement_lanes(
        &self,
        scratch: &mut LaneScratch,
        from: &[Point],
        h: &mut [f64],
        h_x: &mut [f64],
    ) {
        let (n, c) = (self.system.states(), self.system.measurements());
        let time = scratch.arrive(from);
        let at = Point {
            time,
            state: &scratch.state,
            input: &scratch.input,
            theta: from[0].theta,
        };
        let (h_lanes, sight) = (&mut scratch.measured, &mut scratch.sight);
        let system = self.system;
        system.linearise_measurement_entries(&mut scratch.system, at, h_lanes, sight);
        h_x.fill(0.0);
        let rows = h.chunks_exact_mut(c).zip(h_x.chunks_exact_mut(c * n));
        for (l, (h, h_x)) in rows.take(from.len()).enumerate() {
            take(&scratch.measured, l, h.iter_mut());
            for (&(i, j), value) in system.measure_pattern().iter().zip(&scratch.sight) {
                h_x[i * n + j] = value.0[l];
            }
        }
    }

    /// h at up to [`LANES`] samples, one row after another.
    pub fn measure_lanes(&self, scratch: &mut LaneScratch, from: &[Point], h: &mut [f64]) {
        let time = scratch.arrive(from);
        let at = Point {
            time,
            state: &scratch.state,
            input: &scratch.input,
            theta: from[0].theta,
        };
        let (ws, measured) = (&mut scratch.system, &mut scratch.measured);
        self.system.measure(ws, at, measured);
        let c = self.system.measurements();
        for (l, h) in h.chunks_exact_mut(c).take(from.len()).enumerate() {
            take(&scratch.measured, l, h.iter_mut());
        }
    }
}

/// Time and θ of points whose states and inputs lie in a scratch.
struct Moment<'a> {
    time: Panel,
    theta: &'a [f64],
}

impl<'a> Moment<'a> {
    fn with(&self, state: &'a [Panel], input: &'a [Panel]) -> Point<'a, Panel> {
        Point {
            time: self.time,
            state,
            input,
            theta: self.theta,
        }
    }
}

impl LaneScratch {
    /// Takes over the states from which the steps go.
    fn depart(&mut self, from: &[Departure]) {
        for (i, (state, next)) in self.state.iter_mut().zip(&mut self.next).enumerate() {
            *state = Panel(std::array::from_fn(|l| lane(from, l).at.state[i]));
            *next = *state;
        }
        self.stage.copy_from_slice(&self.state);
    }

    /// Takes over states and inputs where something is measured; when that is.
    fn arrive(&mut self, from: &[Point]) -> Panel {
        let at = |l: usize| &from[l.min(from.len() - 1)];
        for (i, state) in self.state.iter_mut().enumerate() {
            *state = Panel(std::array::from_fn(|l| at(l).state[i]));
        }
        for (i, input) in self.input.iter_mut().enumerate() {
            *input = Panel(std::array::from_fn(|l| at(l).input[i]));
        }
        Panel(std::array::from_fn(|l| at(l).time))
    }

    /// The states and inputs of a stage; when that is.
    fn stage(&mut self, stepper: &Stepper, from: &[Departure], shift: f64) -> Panel {
        let mut time = ZERO;
        for (l, time) in time.0.iter_mut().enumerate() {
            let Departure { at, span } = lane(from, l);
            let by = shift * span.length;
            *time = at.time + by;
            let input = stepper.input_at(at, *time, span.length, &mut self.room);
            for (to, u) in self.input.iter_mut().zip(input) {
                to.0[l] = *u;
            }
            if shift > 0.0 {
                let moved = self.state.iter().zip(&self.slope);
                for (s, (x, k)) in self.stage.iter_mut().zip(moved) {
                    s.0[l] = x.0[l] + by * k.0[l];
                }
            }
        }
        time
    }

    fn point<'a>(&self, time: Panel, from: &[Departure<'a>]) -> Moment<'a> {
        let theta = from[0].at.theta;
        Moment { time, theta }
    }

    /// dk of a stage: ∂f/∂x (I + a Δ dk), with dk that of the stage before.
    fn chain_x(&mut self, structure: &Structure, from: &[Departure], k: usize, shift: f64) {
        let Self {
            slopes,
            k_x,
            product_x,
            ..
        } = self;
        product_x.fill(ZERO);
        if k == 0 {
            for (&to, slope) in structure.slopes.iter().zip(&*slopes) {
                product_x[to] = *slope;
            }
        } else {
            let by: [f64; LANES] = std::array::from_fn(|l| shift * lane(from, l).span.length);
            simd::dispatch(Product {
                structure,
                terms: &structure.products[k - 1],
                by,
                slopes,
                k_x,
                out: product_x,
            });
        }
        std::mem::swap(k_x, product_x);
    }

    /// dk/dθ of a stage in a lane: ∂f/∂θ + ∂f/∂x a Δ dk/dθ, with that of the stage before.
    fn chain_theta(&mut self, stepper: &Stepper, structure: &Structure, l: usize, by: f64) {
        let p = stepper.system.parameters();
        let (k_theta, product) = (&mut self.k_theta[l], &mut self.product_theta);
        let unknown = stepper.system.unknown_rows();
        if unknown == stepper.rows() {
            stepper.system.gradients_of(&mut self.system, l, product);
        } else {
            let gradient = &mut self.gradient;
            stepper.system.gradients_of(&mut self.system, l, gradient);
            product.fill(0.0);
            for (source, state) in gradient.chunks_exact(p).zip(unknown) {
                let row = stepper.rows.binary_search(state);
                let row = row.expect("unknown rows are among the rows that θ reaches");
                product[row * p..(row + 1) * p].copy_from_slice(source);
            }
        }
        if by > 0.0 {
            simd::dispatch(Chain {
                terms: &structure.chain,
                slopes: &self.slopes,
                lane: l,
                by,
                p,
                k_theta,
                out: product,
            });
        }
        std::mem::swap(k_theta, product);
    }
}

/// sum += weight Δ value, in each lane.
fn add(weight: f64, from: &[Departure], values: &[Panel], sums: &mut [Panel]) {
    let by: [f64; LANES] = std::array::from_fn(|l| weight * lane(from, l).span.length);
    simd::dispatch(Sum { by, values, sums });
}

/// Of [`add`].
struct Sum<'a> {
    by: [f64; LANES],
    values: &'a [Panel],
    sums: &'a mut [Panel],
}

impl Loops for Sum<'_> {
    #[inline(always)]
    fn run(self) {
        for (sum, value) in self.sums.iter_mut().zip(self.values) {
            for ((sum, value), by) in sum.0.iter_mut().zip(&value.0).zip(&self.by) {
                *sum += by * value;
            }
        }
    }
}

/// out += ∂f/∂x (I + a Δ dk), term by term.
struct Product<'a> {
    structure: &'a Structure,
    terms: &'a [Term],
    by: [f64; LANES],
    slopes: &'a [Panel],
    k_x: &'a mut [Panel],
    out: &'a mut [Panel],
}

impl Loops for Product<'_> {
    #[inline(always)]
    fn run(self) {
        for value in self.k_x.iter_mut() {
            let scaled = value.0.iter_mut().zip(&self.by);
            scaled.for_each(|(v, by)| *v *= by);
        }
        for &i in &self.structure.diagonal {
            self.k_x[i].0.iter_mut().for_each(|v| *v += 1.0);
        }
        for &Term { to, slope, from } in self.terms {
            let (slope, from) = (&self.slopes[slope].0, &self.k_x[from].0);
            for (sum, (a, b)) in self.out[to].0.iter_mut().zip(slope.iter().zip(from)) {
                *sum += a * b;
            }
        }
    }
}

/// out += ∂f/∂x a Δ dk/dθ of a lane, row by row.
struct Chain<'a> {
    terms: &'a [Term],
    slopes: &'a [Panel],
    lane: usize,
    by: f64,
    p: usize,
    k_theta: &'a mut [f64],
    out: &'a mut [f64],
}

impl Loops for Chain<'_> {
    #[inline(always)]
    fn run(self) {
        let p = self.p;
        self.k_theta.iter_mut().for_each(|v| *v *= self.by);
        for &Term { to, slope, from } in self.terms {
            let factor = self.slopes[slope].0[self.lane];
            if factor != 0.0 {
                let source = &self.k_theta[from * p..(from + 1) * p];
                let out = &mut self.out[to * p..(to + 1) * p];
                out.iter_mut()
                    .zip(source)
                    .for_each(|(o, s)| *o += factor * s);
            }
        }
    }
}

/// The numbers of a lane.
fn take<'a>(from: &[Panel], l: usize, to: impl Iterator<Item = &'a mut f64>) {
    to.zip(from).for_each(|(to, from)| *to = from.0[l]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::prior::initial_theta;
    use crate::model::Model;
    use crate::simulate::{Simulation, simulate};

    /// Steps side by side have the bits of steps alone: states, F_x and F_θ, of methods with a form of their own
    /// here and of those without, with sub-steps and a first-order hold, for numbers of samples that do not fill
    /// the lanes.
    #[test]
    fn a_lane_has_the_bits_of_its_sample_alone() {
        for method in ["euler", "rk4", "semi-implicit-euler", "sdirk4"] {
            for (substeps, hold) in [(1, "zero-order"), (1, "first-order"), (2, "zero-order")] {
                let text = format!(
                    "[time]\nstep = 0.05\nmethod = \"{method}\"\nsubsteps = {substeps}\nhold = \"{hold}\"\n\
                     [inputs]\nu = {{}}\n[unknowns]\nk = {{ guess = 3, scale = 1 }}\n\
                     [states.a]\nderivative = \"b\"\nstart = 1\n\
                     [states.b]\nderivative = \"u - k*sin(a) + c - net(b)\"\nstart = 0\n\
                     [states.c]\nderivative = \"net(c) - 0.2*c*t\"\nstart = 0.3\n\
                     [networks.net]\nlayers = [\"5 tanh\"]\n[measurements]\ny = \"a*c\"\n\
                     [truth]\nk = 3\nb = \"u - k*sin(a) + c - b\"\nc = \"-c\"\n\
                     [simulation]\nsteps = 12\ninputs = {{ u = \"sin(3*t)\" }}\n"
                );
                let model = Model::from_text("lanes", &text).unwrap();
                let record = simulate(&model, &Simulation::default()).unwrap();
                let states = record.truth.as_ref().unwrap();
                let theta = initial_theta(&model, 1);
                let stepper = Stepper::over(&model, &model.system, record.step(), [&record]);
                let from: Vec<Departure> = (0..11)
                    .map(|i| Departure {
                        at: record.point(i, &states[i * 3..(i + 1) * 3], &theta),
                        span: stepper.span(record.gap(i)),
                    })
                    .collect();
                let mut lanes = stepper.lane_scratch();
                let mut scratch = stepper.scratch();
                let mut next = vec![0.0; 11 * 3];
                let mut out = vec![stepper.linearised(); 11];
                for (k, from) in from.chunks(LANES).enumerate() {
                    let at = k * LANES;
                    stepper.advance_lanes(&mut lanes, from, &mut next[at * 3..]);
                    stepper.linearise_lanes(&mut lanes, from, true, &mut out[at..]);
                }
                for (i, from) in from.iter().enumerate() {
                    let (mut alone, mut single) = ([0.0; 3], stepper.linearised());
                    stepper.advance(&mut scratch, from.at, from.span, &mut alone);
                    stepper.linearise(&mut scratch, from.at, from.span, true, &mut single);
                    assert_eq!(next[i * 3..(i + 1) * 3], alone, "{method}");
                    assert_eq!(out[i].next, single.next, "{method}");
                    assert_eq!(out[i].f_x, single.f_x, "{method}");
                    assert_eq!(out[i].f_theta, single.f_theta, "{method}");
                    let mut h = [0.0; 2];
                    let (mut h_x, mut seen) = ([0.0; 6], [0.0; 3]);
                    let at = from.at;
                    let points = [at, at];
                    stepper.linearise_measurement_lanes(&mut lanes, &points, &mut h, &mut h_x);
                    model.system.linearise_measurement(
                        &mut scratch.system,
                        at,
                        &mut h[1..],
                        &mut seen,
                    );
                    assert_eq!((h[0], &h_x[..3]), (h[1], &seen[..]));
                    stepper.measure_lanes(&mut lanes, &points, &mut h);
                    assert_eq!(h[0], h[1]);
                }
            }
        }
    }
}
