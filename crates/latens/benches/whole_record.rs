//! Where a fit's time goes, and one elimination of the states in whole-record Newton: seconds, share of
//! the machine's peak, memory, and growth with the record and with θ.
//!
//! `profile` fits the built-in systems, chains of masses and a long record on one thread, counts stages and
//! iterations, and gives what the parts of an iteration cost, in µs a sample and as shares; `threads` gives what
//! two threads make of each part and of a whole fit; `chain N` prints
//! the model file of a chain of N masses. Without a word the elimination is measured:
//!
//! The record is Hodgkin–Huxley's: 50,000 samples, four states, three channels, 741 parameters.
//! Work is counted as d_θ² for each row of G, the symmetric product alone; the peak is a loop of
//! fused multiply–adds in registers, in the same run on as many threads, turn by turn. Times are the
//! least of a few turns. The other parts of an iteration are timed for comparison.
//!
//! `cargo bench -p latens --bench whole_record [-- profile | threads | chain N]`

use latens::filter::Smoother;
use latens::look::prior::initial_theta;
use latens::numerics::linalg::{normal, simd};
use latens::numerics::objective::Noise;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::{
    Job, Model, Observer, PassReport, Progress, Record, Role, Source, Trajectory, Watch, systems,
};
use pulp::{Simd, WithSimd};
use rayon::ThreadPoolBuilder;
use std::{hint::black_box, time::Instant};

/// Rows of A for each parameter on the solver's way.
const ROWS_PER_PARAMETER: usize = 10;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words
        .iter()
        .filter(|w| **w != "--bench")
        .copied()
        .collect::<Vec<_>>()[..]
    {
        ["chain", masses] => print!("{}", chain(masses.parse().expect("a number of masses"))),
        ["profile"] => on(1, profile),
        ["threads"] => threads(),
        _ => elimination(),
    }
}

/// A chain of equal masses between walls: the positions are measured, and nobody knows the friction, which is
/// the same function of every velocity. The first mass is driven.
fn chain(masses: usize) -> String {
    let force = |i: usize| {
        let neighbours = [i - 1, i + 1].into_iter();
        let neighbours = neighbours.filter(|j| (1..=masses).contains(j));
        let neighbours: Vec<String> = neighbours.map(|j| format!("q{j}")).collect();
        let pull = neighbours.join(" + ");
        let drive = if i == 1 { " + u" } else { "" };
        format!("k*({pull} - 2*q{i}){drive}")
    };
    let lines_of = |line: &dyn Fn(usize) -> String| (1..=masses).map(line).collect::<String>();
    let positions =
        lines_of(&|i| format!("[states.q{i}]\nderivative = \"v{i}\"\nstart = 0\nunit = \"m\"\n"));
    let velocities = lines_of(&|i| {
        let force = force(i);
        format!(
            "[states.v{i}]\nderivative = \"{force} - friction(v{i})\"\nstart = 0\nunit = \"m/s\"\n"
        )
    });
    let measured = lines_of(&|i| format!("q{i} = \"q{i}\"\n"));
    let truth = lines_of(&|i| {
        let force = force(i);
        format!("v{i} = \"{force} - 0.2*v{i} - 0.5*tanh(v{i}/0.5)\"\n")
    });
    format!(
        "name = \"Chain of {masses} masses\"\n[time]\nunit = \"s\"\nstep = 0.02\nmethod = \"rk4\"\n\n\
         [constants]\nk = 25\n\n[inputs]\nu = \"N\"\n\n{positions}{velocities}\n\
         [networks.friction]\nlayers = [\"10 tanh\"]\n\n[measurements]\n{measured}\n[truth]\n{truth}\n\
         [simulation]\nsteps = 1999\ninputs = {{ u = \"20*sin(1.5*t) + 15*sin(4*t) + 10*sin(7*t)\" }}\n"
    )
}

/// Counts what a fit does.
#[derive(Default)]
struct Counted {
    stages: usize,
    iterations: usize,
}

impl Observer for Counted {
    fn progress(&mut self, _: &Progress) -> bool {
        self.iterations += 1;
        true
    }

    fn pass(&mut self, _: &PassReport) -> bool {
        self.stages += 1;
        true
    }
}

impl Watch for Counted {}

/// Where the time of fits goes.
fn profile() {
    let systems = [
        "harmonic-oscillator",
        "cart-pole",
        "yeast-glycolysis",
        "retinal-circulation",
    ];
    for name in systems {
        profile_of(
            name,
            systems::find(name).expect("an embedded system"),
            None,
            true,
        );
    }
    let neuron = systems::find("hodgkin-huxley").expect("an embedded system");
    profile_of("hodgkin-huxley", neuron, Some(5_000), true);
    profile_of(
        "hodgkin-huxley, 200,000 samples",
        neuron,
        Some(200_000),
        false,
    );
    for masses in [5, 10, 20, 40] {
        profile_of(&format!("chain of {masses}"), &chain(masses), None, false);
    }
}

fn profile_of(name: &str, text: &str, steps: Option<usize>, fits: bool) {
    let case = Case::of(text, steps);
    let (samples, p) = (case.record.len(), case.theta.len());
    let parts = case.parts();
    let sum: f64 = parts.iter().map(|part| part.seconds * part.times).sum();
    println!(
        "{name}: {samples} samples, {} states, d_θ {p}",
        case.model.system.states()
    );
    for Part {
        name,
        seconds,
        times,
    } in parts
    {
        let microseconds = 1e6 * seconds / samples as f64;
        println!(
            "  {name:<26} {microseconds:>9.3} µs a sample, {:>3.0} % of an iteration",
            100.0 * times * seconds / sum
        );
    }
    if fits {
        let start = Instant::now();
        let (counted, error) = case.fit();
        let (stages, iterations) = (counted.stages, counted.iterations);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "  fit: {stages} stages, {iterations} iterations, {seconds:.1} s, hidden error {error:.1e}"
        );
    }
}

/// What two threads make of the parts of an iteration, and of a fit, on one record.
fn threads() {
    let text = systems::find("hodgkin-huxley").expect("an embedded system");
    let case = Case::of(text, Some(5_000));
    let [on_one, on_two] = [1, 2].map(|threads| on(threads, || case.parts()));
    println!("hodgkin-huxley, {} samples", case.record.len());
    println!("{:<28} {:>9} {:>9} {:>6}", "ms", "1 thread", "2", "ratio");
    let line = |name: &str, [on_one, on_two]: [f64; 2]| {
        let (first, second) = (1e3 * on_one, 1e3 * on_two);
        println!(
            "{name:<28} {first:>9.2} {second:>9.2} {:>6.2}",
            on_one / on_two
        );
    };
    for (on_one, on_two) in on_one.iter().zip(&on_two) {
        line(on_one.name, [on_one.seconds, on_two.seconds]);
    }
    line(
        "fit",
        [1, 2].map(|threads| on(threads, || least(2, || case.fit()))),
    );
}

fn elimination() {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let case = Case::new("\"20 elu\", \"20 tanh\", \"10 sigmoid\"", 50_000);
    let mut counts = vec![1, cores];
    counts.dedup();
    on(cores, || {
        let (stepper, before) = (case.stepper(), peak_memory());
        black_box(case.smoother(&stepper).eliminate(&case.states, 1, 0));
        let after = peak_memory();
        println!("peak memory {after:.0} MB, {before:.0} MB of it before the elimination\n");
    });
    for threads in counts {
        on(threads, || case.iteration(threads));
    }
    println!();
    println!("growth, thinning 1, {cores} threads");
    println!(
        "{:>8} {:>5} {:>9} {:>6}",
        "samples", "d_θ", "seconds", "ratio"
    );
    on(cores, || {
        growth(
            [6_250, 12_500, 25_000, 50_000].map(|n| ("\"20 elu\", \"20 tanh\", \"10 sigmoid\"", n)),
        );
        growth(
            [
                "\"50 tanh\"",
                "\"100 tanh\"",
                "\"200 tanh\"",
                "\"400 tanh\"",
            ]
            .map(|l| (l, 6_250)),
        );
    });
}

/// Runs on a pool of its own.
fn on<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a thread pool").install(work)
}

fn growth(cases: [(&str, usize); 4]) {
    let mut before = f64::NAN;
    for (layers, samples) in cases {
        let case = Case::new(layers, samples);
        let stepper = case.stepper();
        let smoother = case.smoother(&stepper);
        let seconds = least(3, || smoother.eliminate(&case.states, 1, 0));
        println!(
            "{samples:>8} {:>5} {seconds:>9.3} {:>6.2}",
            case.theta.len(),
            seconds / before
        );
        before = seconds;
    }
    println!();
}

struct Case {
    model: Model,
    record: Record,
    states: Trajectory,
    theta: Vec<f64>,
    noise: Noise,
}

impl Case {
    fn new(layers: &str, samples: usize) -> Self {
        let text = systems::find("hodgkin-huxley").expect("an embedded system");
        let text = text.replace("\"20 elu\", \"20 tanh\", \"10 sigmoid\"", layers);
        Self::of(&text, Some(samples - 1))
    }

    /// The record of a model, without noise.
    fn of(text: &str, steps: Option<usize>) -> Self {
        let model = Model::from_text("a model", text).expect("the model compiles");
        let simulation = Simulation {
            steps,
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).expect("the record simulates");
        let (n, c) = (model.system.states(), model.system.measurements());
        let states = Trajectory::new(record.truth.clone().expect("simulated"), n);
        // equations all but exact, measurements to a hundredth of their range
        let noise = Noise {
            process: vec![1e-8; n],
            measurement: vec![1e-4; c],
            start_mean: states.row(0).to_vec(),
            start: vec![1.0; n],
        };
        let theta = initial_theta(&model, 1);
        Self {
            model,
            record,
            states,
            theta,
            noise,
        }
    }

    fn stepper(&self) -> Stepper<'_> {
        let (model, record) = (&self.model, &self.record);
        Stepper::over(model, &model.system, record.step(), [record])
    }

    fn smoother<'a>(&'a self, stepper: &'a Stepper<'a>) -> Smoother<'a> {
        Smoother {
            stepper,
            record: &self.record,
            theta: &self.theta,
            noise: &self.noise,
        }
    }

    /// The parts of a Newton step on the solver's way, with a step that is taken at once: the states are
    /// smoothed twice at the new θ.
    fn parts(&self) -> Vec<Part> {
        let (stepper, p) = (self.stepper(), self.theta.len());
        let (smoother, states) = (self.smoother(&stepper), &self.states);
        let thinning = (self.record.outputs.len() / (ROWS_PER_PARAMETER * p.max(100))).max(1);
        let (equations, pass) = smoother.eliminate(states, thinning, 0);
        let increment = vec![1e-3; p];
        let part = |name, times, seconds| Part {
            name,
            seconds,
            times,
        };
        vec![
            part(
                "elimination",
                1.0,
                least(5, || smoother.eliminate(states, thinning, 0)),
            ),
            part(
                "factor and solve",
                1.0,
                least(5, || {
                    let factor = equations.factor(&vec![1.0; p]).expect("definite");
                    normal::solve(&factor, &equations.b)
                }),
            ),
            part(
                "shift of θ",
                1.0,
                least(5, || smoother.shift(states, &increment, &pass)),
            ),
            part(
                "backward",
                3.0,
                least(5, || smoother.backward(&pass, &pass.means)),
            ),
            part("forward", 2.0, least(5, || smoother.forward(states))),
            part("objective", 3.0, least(5, || smoother.cost(states))),
            part(
                "free run",
                1.0,
                least(5, || {
                    score::free_run(&stepper, &self.record, &self.theta, states.row(0))
                }),
            ),
            part(
                "eigenvalues and vectors",
                0.0,
                least(2, || equations.spectrum(&vec![1.0; p])),
            ),
        ]
    }

    /// A whole fit: its stages and iterations, and the error of the hidden states.
    fn fit(&self) -> (Counted, f64) {
        let mut counted = Counted::default();
        let mut job = Job::new(self.model.clone()).expect("settings");
        let source = Source::of_record(self.record.clone(), &job.model).expect("a record");
        job.add(Role::Train, source);
        let outcome = job.run(&mut counted).ok();
        let error = outcome.and_then(|o| o.fit.facts.records[0].mean_nrmse_hidden);
        (counted, error.unwrap_or(f64::NAN))
    }

    /// One elimination with all rows, beside the machine's peak, and the parts of a Newton step.
    fn iteration(&self, threads: usize) {
        let (stepper, p) = (self.stepper(), self.theta.len());
        let smoother = self.smoother(&stepper);
        let (states, rows) = (&self.states, self.record.outputs.len());
        let (mut full, mut peak) = (f64::INFINITY, 0.0);
        for _ in 0..3 {
            full = least(1, || smoother.eliminate(states, 1, 0)).min(full);
            peak = peak_rate(threads).max(peak);
        }
        let rate = (rows * p * p) as f64 / full;
        println!("{} samples, d_θ {p}, {threads} threads", self.record.len());
        println!("  elimination, all rows          {full:.3} s");
        println!(
            "    {:.1} GFlop/s, {:.0} % of the peak of {:.1}",
            rate / 1e9,
            100.0 * rate / peak,
            peak / 1e9
        );
        for Part { name, seconds, .. } in self.parts() {
            println!("  {name:<30} {seconds:.4} s");
        }
    }
}

/// A part of an iteration: its seconds, and how often it is done.
struct Part {
    name: &'static str,
    seconds: f64,
    times: f64,
}

/// The least time of a few calls in seconds.
fn least<T>(turns: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut seconds = f64::INFINITY;
    for _ in 0..turns {
        let start = Instant::now();
        black_box(work());
        seconds = start.elapsed().as_secs_f64().min(seconds);
    }
    seconds
}

/// Flops a second of fused multiply–adds that need no memory, on as many threads.
fn peak_rate(threads: usize) -> f64 {
    const TURNS: usize = 4_000_000;
    let seconds = least(3, || {
        rayon::broadcast(|_| simd::arch().dispatch(MultiplyAdds(TURNS)));
    });
    let lanes = simd::arch().dispatch(MultiplyAdds(0)).1;
    (2 * threads * TURNS * CHAINS * lanes) as f64 / seconds
}

/// Chains of multiply–adds side by side: more than latency times units of any processor.
const CHAINS: usize = 12;

/// So many turns, each with one multiply–add in every chain; a sum of them, and the lanes.
struct MultiplyAdds(usize);

impl WithSimd for MultiplyAdds {
    type Output = (f64, usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (f64, usize) {
        let factor = simd.splat_f64s(black_box(0.999));
        let increment = simd.splat_f64s(black_box(1e-3));
        let mut sums = [increment; CHAINS];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = simd.mul_add_f64s(*sum, factor, increment);
            }
        }
        let sum = |s| simd.reduce_sum_f64s(s);
        (black_box(sums.map(sum).iter().sum()), S::F64_LANES)
    }
}

/// Of this process, in megabytes.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    kilobytes.unwrap_or(f64::NAN) / 1e3
}
