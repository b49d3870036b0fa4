//! Records with gaps: what is known of them from the same records without.

use crate::fixture::{defaults, fit};
use latens::filter::{Smoothed, Smoother};
use latens::fit::Start;
use latens::numerics::objective::Noise;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Record, Trajectory, systems};
use latens::{Settings, Silent};
use rand::{RngExt, SeedableRng};

fn oscillator() -> Model {
    let text = systems::find("harmonic-oscillator").unwrap();
    Model::from_text("harmonic-oscillator", text).unwrap()
}

fn simulated(model: &Model, noise: f64, steps: usize) -> Record {
    let simulation = Simulation {
        noise: vec![(noise > 0.0).then_some(NoiseLevel::OfRange(noise))],
        steps: Some(steps),
        ..Simulation::default()
    };
    simulate(model, &simulation).unwrap()
}

/// Some of a record's samples; the first and the last are always among them.
fn kept(record: &Record, part: f64) -> Vec<usize> {
    let mut rng = rand_pcg::Pcg64::seed_from_u64(5);
    let inner = 1..record.len() - 1;
    let mut kept: Vec<usize> = inner.filter(|_| rng.random::<f64>() < part).collect();
    kept.insert(0, 0);
    kept.push(record.len() - 1);
    kept
}

/// Its rows left out, or only their measurements.
fn without(record: &Record, kept: &[usize]) -> [Record; 2] {
    let mut cells = record.clone();
    for k in (0..record.len()).filter(|k| !kept.contains(k)) {
        cells.outputs[k * record.d_y..(k + 1) * record.d_y].fill(f64::NAN);
    }
    let rows_of = |values: &[f64], width: usize| -> Vec<f64> {
        let rows = kept.iter().map(|k| &values[k * width..(k + 1) * width]);
        rows.flatten().copied().collect()
    };
    let rows = Record {
        time: rows_of(&record.time, 1),
        inputs: rows_of(&record.inputs, record.d_u),
        outputs: rows_of(&record.outputs, record.d_y),
        truth: record.truth.as_ref().map(|t| rows_of(t, record.d_x)),
        ..record.clone()
    };
    [rows, cells]
}

/// The true equations' free run from a start, and the states that fit the record.
fn smoothed(model: &Model, record: &Record) -> (Trajectory, Smoothed) {
    let system = &model.truth.as_ref().unwrap().system;
    let stepper = Stepper::over(model, system, record.step(), [record]);
    let noise = Noise {
        process: vec![1e-9, 1e-6],
        measurement: vec![4e-4],
        start_mean: vec![0.0; 2],
        start: vec![1.0; 2],
    };
    let smoother = Smoother {
        stepper: &stepper,
        record,
        theta: &[],
        noise: &noise,
    };
    let run = score::free_run(&stepper, record, &[], &[1.0, 0.3]);
    (run, smoother.smooth(smoother.filtered(), 10))
}

/// A row that is not there is a row without measurements: a free run is the same to the last bit,
/// smoothed states to a small part of their standard deviation (over a gap Q_x is added at its
/// end, not on the way).
#[test]
fn a_missing_row_is_a_row_of_missing_cells() {
    let model = oscillator();
    let record = simulated(&model, 0.01, 3000);
    let kept = kept(&record, 0.7);
    let [rows, cells] = without(&record, &kept);
    assert_eq!(rows.step().to_bits(), record.step().to_bits());
    let [short, long] = [&rows, &cells].map(|record| smoothed(&model, record));
    for (at, k) in kept.iter().enumerate() {
        for i in 0..2 {
            let (a, b) = (at * 2 + i, k * 2 + i);
            assert_eq!(
                short.0.as_slice()[a].to_bits(),
                long.0.as_slice()[b].to_bits()
            );
            let deviation = long.1.deviations.as_slice()[b];
            let apart = (short.1.states.as_slice()[a] - long.1.states.as_slice()[b]).abs();
            assert!(apart < 0.02 * deviation, "sample {k}: {apart} {deviation}");
            let wider = short.1.deviations.as_slice()[a] / deviation;
            assert!((wider - 1.0).abs() < 0.01, "sample {k}: {wider}");
        }
    }
}

/// A clock that jitters by less than the tolerance makes no difference to what is estimated, to
/// the last bit.
#[test]
fn jitter_of_a_clock_changes_nothing() {
    let model = oscillator();
    let record = simulated(&model, 0.01, 600);
    let mut jittered = record.clone();
    let step = record.step();
    for k in (3..record.len() - 1).step_by(7) {
        jittered.time[k] += 0.9 * Record::STEP_TOLERANCE * step;
    }
    assert!(jittered.is_uniform() && jittered.time != record.time);
    let [plain, other] = [record, jittered].map(|record| {
        let (_, smoothed) = smoothed(&model, &record);
        let numbers = smoothed
            .states
            .as_slice()
            .iter()
            .chain(smoothed.deviations.as_slice());
        numbers.map(|v| v.to_bits()).collect::<Vec<_>>()
    });
    assert_eq!(plain, other);
}

/// Joint and batch learn from records with rows missing at random, of different sample times, with
/// a channel at a tenth of the rate; and the fit predicts a record at yet another rate. (The
/// alternating recursion, which takes its filtered states for exact, does not follow such a record.)
#[test]
fn gappy_records_are_learned_from() {
    let text = systems::find("harmonic-oscillator").unwrap();
    let text = text
        .replace("z = \"z\"", "z = \"z\"\ntwice = \"2*z\"")
        .replace("step = 1e-3", "step = 1e-2");
    let model = Model::from_text("harmonic-oscillator", &text).unwrap();
    let simulated = |steps: usize, start: Vec<(usize, f64)>| {
        let simulation = Simulation {
            steps: Some(steps),
            start,
            ..Simulation::default()
        };
        let mut record = simulate(&model, &simulation).unwrap();
        for k in (0..record.len()).filter(|k| k % 10 != 0) {
            record.outputs[2 * k] = f64::NAN;
        }
        record
    };
    let every = |record: &Record, step: usize| {
        let kept: Vec<usize> = (0..record.len()).step_by(step).collect();
        without(record, &kept)[0].clone()
    };
    let first = simulated(600, vec![]);
    let first = without(&first, &kept(&first, 0.7))[0].clone();
    let second = every(&simulated(400, vec![(0, 0.5), (1, 0.6)]), 4);
    let third = every(&simulated(300, vec![(0, 0.7), (1, 0.2)]), 3);
    for (solver, passes, bound) in [("joint", 3, 2e-2), ("batch", 6, 1e-3)] {
        let settings = Settings {
            passes,
            ..defaults(solver)
        };
        let records = [first.clone(), second.clone()];
        let fit = fit(&model, &records, &settings, &mut Silent).unwrap();
        assert!(
            (fit.facts.sample_time - 1e-2).abs() < 1e-12,
            "{}",
            fit.facts.sample_time
        );
        for record in &fit.facts.records {
            let error = record.mean_nrmse.unwrap();
            assert!(error < bound, "{solver:?}: {error}");
        }
        let truth = third.truth.as_ref().unwrap();
        let prediction = fit.predictor().predict(&third, Start::At(&truth[..2]));
        let error = score::nrmse(prediction.states.as_slice(), truth, 1, 2).unwrap();
        assert!(error < 5.0 * bound, "{solver:?}: {error}");
    }
}
