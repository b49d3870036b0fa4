//! The recursions do not allocate per step: twice the steps, the same number of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use latens::Silent;
use latens::fit::stream::Stream;
use latens::fit::stream::{Options, Sample, Setting};
use latens::look::prior::initial_theta;
use latens::numerics::linalg::{PackedCovariance, Precision};
use latens::numerics::objective::Cost;
use latens::numerics::objective::Noise;
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::solve::recursion::alternating::{self, Form};
use latens::solve::recursion::joint;
use latens::solve::recursion::sweep::{Pass, Segment};
use latens::{Model, systems};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|c| c.set(c.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of one pass over `steps` steps.
fn allocations(name: &str, text: &str, solver: &str, steps: usize) -> usize {
    let model = Model::from_text(name, text).unwrap();
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let stepper = Stepper::new(&model, &model.system, record.step());
    let n = model.states.len();
    let noise = Noise {
        process: vec![1e-6; n],
        measurement: vec![1e-6; record.d_y],
        start_mean: vec![0.0; n],
        start: vec![1e-2; n],
    };
    let settings = latens::solve::find(solver).unwrap().settings();
    let theta = initial_theta(&model, 1);
    let segment = Segment {
        record: &record,
        samples: 0..record.len(),
        start: record.truth(0).unwrap().to_vec(),
        start_variance: noise.start.clone(),
    };
    let mut pass = Pass {
        model: &model,
        stepper: &stepper,
        settings: &settings,
        noise: &noise,
        scale: &vec![1e3; n],
        covariance: PackedCovariance::scaled_identity(theta.len(), 1e-3, Precision::Double),
        theta,
        drift: 1e-9,
        number: 1,
        cost: Cost::default(),
        consistency: (0.0, 0),
        advice: "",
        observer: &mut Silent,
        stop: false,
    };
    let before = COUNT.get();
    match solver {
        "joint" => joint::sweep(&mut pass, &[segment]).unwrap(),
        _ => alternating::sweep(&mut pass, &[segment], Form::Corrected).unwrap(),
    }
    COUNT.get() - before
}

/// Allocations of a stream over a record with gaps.
fn of_a_stream(name: &str, text: &str, learn: bool, steps: usize) -> usize {
    let model = Model::from_text(name, text).unwrap();
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let (n, theta) = (model.states.len(), initial_theta(&model, 1));
    let setting = Setting {
        model: &model,
        stepper: Stepper::new(&model, &model.system, record.step()),
        noise: Noise {
            process: vec![1e-6; n],
            measurement: vec![1e-6; record.d_y],
            start_mean: record.truth(0).unwrap().to_vec(),
            start: vec![1e-2; n],
        },
        scale: vec![1e3; n],
        prior: 1.0,
    };
    let options = Options {
        learn,
        forget: Some(1e3),
        ..Options::default()
    };
    let covariance = PackedCovariance::scaled_identity(theta.len(), 1e-3, Precision::Double);
    let mut stream = Stream::new(setting, options, theta, covariance);
    let before = COUNT.get();
    for k in 0..record.len() {
        let time = Some(record.time[k]);
        let (input, output) = (record.input(k), record.output(k));
        if k % 7 != 3 {
            stream
                .step(Sample {
                    time,
                    input,
                    output,
                })
                .unwrap();
        }
    }
    COUNT.get() - before
}

#[test]
fn a_stream_does_not_allocate() {
    for name in ["hodgkin-huxley", "cart-pole"] {
        for learn in [false, true] {
            let count = of_a_stream(name, systems::find(name).unwrap(), learn, 100);
            assert_eq!(count, 0, "{name}, learn: {learn}");
        }
    }
}

#[test]
fn steps_do_not_allocate() {
    for (name, method) in [
        ("hodgkin-huxley", "euler"),
        ("harmonic-oscillator", "rk4"),
        ("cart-pole", "semi-implicit-euler"),
        ("retinal-circulation", "euler"),
    ] {
        let method = format!("method = \"{method}\"");
        let text = systems::find(name)
            .unwrap()
            .replace("method = \"euler\"", &method);
        assert!(text.contains(&method), "{name} names its method");
        for solver in ["alternating", "joint"] {
            let (short, long) = (
                allocations(name, &text, solver, 50),
                allocations(name, &text, solver, 100),
            );
            assert!(short > 0, "the counter counts");
            assert_eq!(short, long, "{name} {solver:?}");
        }
    }
}
