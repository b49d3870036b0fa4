//! One elimination of the states in whole-record Newton: seconds, share of the machine's peak,
//! memory, and growth with the record and with θ.
//!
//! The record is Hodgkin–Huxley's: 50,000 samples, four states, three channels, 741 parameters.
//! Work is counted as d_θ² for each row of G, the symmetric product alone; the peak is a loop of
//! fused multiply–adds in registers, in the same run on as many threads, turn by turn. Times are the
//! least of a few turns. The other parts of an iteration are timed for comparison.
//!
//! `cargo bench --bench whole_record`

use latens::filter::Smoother;
use latens::look::prior::initial_theta;
use latens::numerics::linalg::{normal, simd};
use latens::numerics::objective::Noise;
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::{Model, Record, Trajectory, systems};
use pulp::{Simd, WithSimd};
use rayon::ThreadPoolBuilder;
use std::{hint::black_box, time::Instant};

/// Rows of A for each parameter on the solver's way.
const ROWS: usize = 10;

fn main() {
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
fn on(threads: usize, work: impl FnOnce() + Send) {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a thread pool").install(work);
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
        let model = Model::from_text("hodgkin-huxley", &text).expect("the model compiles");
        let simulation = Simulation {
            steps: Some(samples - 1),
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).expect("the record simulates");
        let states = Trajectory::new(record.truth.clone().expect("simulated"), 4);
        let noise = Noise {
            process: vec![1e-4, 1e-8, 1e-8, 1e-6],
            measurement: vec![1e-4, 1e-8, 1e-8],
            start_mean: states.row(0).to_vec(),
            start: vec![1.0; 4],
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

    /// The parts of a Newton step.
    fn iteration(&self, threads: usize) {
        let (stepper, p) = (self.stepper(), self.theta.len());
        let smoother = self.smoother(&stepper);
        let (states, rows) = (&self.states, self.record.outputs.len());
        let thinning = (rows / (ROWS * p)).max(1);
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
        let part = |name: &str, seconds: f64| println!("  {name:<30} {seconds:.4} s");
        part(
            &format!("elimination, thinned by {thinning}"),
            least(5, || smoother.eliminate(states, thinning, 0)),
        );
        let (equations, pass) = smoother.eliminate(states, thinning, 0);
        part(
            "factor and solve",
            least(5, || {
                let factor = equations.factor(&vec![1.0; p]).expect("definite");
                normal::solve(&factor, &equations.b)
            }),
        );
        part(
            "eigenvalues and vectors",
            least(3, || equations.spectrum(&vec![1.0; p])),
        );
        let increment = vec![1e-3; p];
        part(
            "shift of θ",
            least(5, || smoother.shift(states, &increment, &pass)),
        );
        part(
            "backward",
            least(5, || smoother.backward(&pass, &pass.means)),
        );
        part("forward, θ fixed", least(5, || smoother.forward(states)));
        part("objective", least(5, || smoother.cost(states)));
        part(
            "two smoother steps",
            least(5, || smoother.minimise(states.clone(), 2)),
        );
    }
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
        let one = simd.splat_f64s(black_box(1e-3));
        let mut sums = [one; CHAINS];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = simd.mul_add_f64s(*sum, factor, one);
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
