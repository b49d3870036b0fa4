//! A stream is the filter of the recursions, goes on bit for bit from where it was cut, and does not
//! fall over what sensors do.

use crate::dense::{DT, LINEAR, model, random_record, uneven};
use crate::fixture::defaults;
use latens::Silent;
use latens::filter::Smoother;
use latens::fit::stream::Stream;
use latens::fit::stream::{LONGEST_GAP, Options, Sample, Setting};
use latens::numerics::linalg::{PackedCovariance, Precision};
use latens::numerics::objective::{Cost, Noise};
use latens::numerics::step::Stepper;
use latens::solve::recursion::joint::Joint;
use latens::solve::recursion::sweep::{Pass, Segment};
use latens::{Error, Model, Record};

const OPEN_GATE_DEVIATIONS: f64 = 1e6;

fn noise(model: &Model) -> Noise {
    Noise {
        process: vec![0.02, 0.1],
        measurement: vec![0.05; model.measurements.len()],
        start_mean: vec![0.3, -0.2],
        start: vec![0.7, 0.9],
    }
}

fn stream(model: &Model, options: Options) -> Stream<'_> {
    let p = model.system.parameters();
    let covariance = PackedCovariance::scaled_identity(p, 3.0, Precision::Double);
    Stream::new(setting(model), options, vec![0.0; p], covariance)
}

fn setting(model: &Model) -> Setting<'_> {
    Setting {
        model,
        stepper: Stepper::new(model, &model.system, DT),
        noise: noise(model),
        scale: vec![1.0; model.states.len()],
        prior: 3.0,
    }
}

fn options(learn: bool) -> Options {
    Options {
        learn,
        gate: OPEN_GATE_DEVIATIONS,
        ..Options::default()
    }
}

fn sample(record: &Record, k: usize) -> Sample<'_> {
    Sample {
        time: Some(record.time[k]),
        input: record.input(k),
        output: record.output(k),
    }
}

fn gappy(model: &Model) -> Record {
    let mut record = uneven(&random_record(model, 40, 2));
    for k in [3, 4, 11, 24] {
        record.outputs[k] = f64::NAN;
    }
    record
}

/// Without learning, the smoother's first trajectory; with it, the joint recursion, whose closed
/// form tests/recursions.rs has.
#[test]
fn a_stream_is_the_filter_of_the_solvers() {
    is_the_filter_of_the_solvers(&model(LINEAR));
    let first_order = format!("hold = \"first-order\"\n{LINEAR}");
    is_the_filter_of_the_solvers(&model(&first_order));
}

fn is_the_filter_of_the_solvers(model: &Model) {
    let record = gappy(model);
    let mut start = noise(model);
    start.begin(&record, model.system.direct(), &[]);
    let stepper = Stepper::new(model, &model.system, DT);
    let theta = vec![0.0; model.system.parameters()];
    let smoother = Smoother {
        stepper: &stepper,
        record: &record,
        theta: &theta,
        noise: &start,
    };
    let filtered = smoother.filtered();
    let mut plain = stream(model, options(false));
    for k in 0..record.len() {
        plain.step(sample(&record, k)).unwrap();
        assert_eq!(plain.states(), filtered.row(k));
    }
    assert_eq!(plain.theta(), theta);

    let mut learning = stream(model, options(true));
    learning.step(sample(&record, 0)).unwrap();
    // a segment starts after its first sample
    let state = learning.state();
    let segment = Segment {
        record: &record,
        samples: 0..record.len(),
        start: state.mean.clone(),
        start_variance: vec![0.0; 2],
    };
    let settings = defaults("joint");
    let mut pass = Pass {
        model,
        stepper: &stepper,
        settings: &settings,
        noise: &start,
        scale: &[1.0; 2],
        // as it is after the first sample, with as many updates that wait
        covariance: state.covariance.clone(),
        theta,
        drift: 0.0,
        number: 1,
        cost: Cost::default(),
        consistency: (0.0, 0),
        advice: "",
        observer: &mut Silent,
        stop: false,
    };
    let mut joint = Joint::new(&pass, &segment);
    joint.sweep.filter.states.covariance = state.spread;
    for k in 1..record.len() {
        joint.predict(&mut pass, k).unwrap();
        joint.correct(&mut pass, k).unwrap();
        learning.step(sample(&record, k)).unwrap();
        assert_eq!(learning.states(), joint.sweep.filter.states.mean);
        assert_eq!(learning.theta(), pass.theta);
    }
    assert!(learning.theta().iter().all(|t| *t != 0.0), "it has learned");
}

/// Wherever a stream is cut, both parts together are the whole.
#[test]
fn a_stream_goes_on_bit_for_bit() {
    let model = model(LINEAR);
    let record = gappy(&model);
    let options = Options {
        forget: Some(30.0),
        gate: 2.0,
        ..options(true)
    };
    let run = |cut: usize| {
        let mut stream = stream(&model, options);
        for k in 0..record.len() {
            if k == cut {
                stream = Stream::resume(setting(&model), options, stream.state());
            }
            stream.step(sample(&record, k)).unwrap();
        }
        let mut state = stream.state();
        (
            state.mean,
            state.spread,
            state.theta,
            state.cross,
            state.covariance.to_packed(),
        )
    };
    let whole = run(usize::MAX);
    for cut in [0, 1, 4, 20, 39] {
        assert!(run(cut) == whole, "cut at {cut}");
    }
}

/// A sample that was lost is a gap, whether its time tells or a count.
#[test]
fn lost_samples_are_gaps() {
    let model = model(LINEAR);
    let record = random_record(&model, 12, 5);
    let ends = |timed: bool, tell: bool| {
        let mut stream = stream(&model, options(true));
        for k in 0..12 {
            if !(6..9).contains(&k) {
                let time = timed.then_some(record.time[k]);
                let sample = sample(&record, k);
                stream.step(Sample { time, ..sample }).unwrap();
            } else if tell {
                stream.lose();
            }
        }
        (stream.states().to_vec(), stream.theta().to_vec())
    };
    let (by_time, by_count) = (ends(true, false), ends(false, true));
    for (a, b) in by_time.0.iter().zip(&by_count.0) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    assert_eq!(ends(true, true), by_time, "a time says it all");
    assert_ne!(ends(false, false), by_count, "nobody told");
}

#[test]
fn times_that_cannot_be_are_refused_and_change_nothing() {
    let model = model(LINEAR);
    let record = random_record(&model, 5, 5);
    let mut stream = stream(&model, options(true));
    for k in 0..3 {
        stream.step(sample(&record, k)).unwrap();
    }
    let before = stream.state();
    for time in [record.time[2], record.time[1]].map(Some) {
        let refused = stream.step(Sample {
            time,
            ..sample(&record, 3)
        });
        let Err(Error::Sample(message)) = refused else {
            panic!("{refused:?}");
        };
        assert!(message.contains("times must increase"), "{message}");
    }
    assert_eq!(stream.state().mean, before.mean);
    assert_eq!(stream.progress(), &before.progress);
    assert_eq!(stream.theta(), before.theta);
}

/// One time far in the future costs the sample that has it; two that agree are a gap.
#[test]
fn a_wrong_time_costs_a_sample_and_a_gap_is_told_by_two() {
    let model = model(LINEAR);
    let record = random_record(&model, 8, 5);
    let last = record.time[2];
    let at = |steps: f64, k| Sample {
        time: Some(last + steps * DT),
        ..sample(&record, k)
    };
    let begun = || {
        let mut stream = stream(&model, options(true));
        for k in 0..3 {
            stream.step(sample(&record, k)).unwrap();
        }
        stream
    };
    let far = LONGEST_GAP + 1.0;
    let refused = |outcome: Result<_, Error>| match outcome {
        Err(Error::Sample(message)) => message,
        other => panic!("{other:?}"),
    };
    // as if it had not come
    let (mut with, mut without) = (begun(), begun());
    let message = refused(with.step(at(5e6, 3)));
    assert!(
        message.contains("unless the next sample follows it"),
        "{message}"
    );
    for stream in [&mut with, &mut without] {
        assert!(!stream.step(at(1.0, 3)).unwrap().restarted);
    }
    assert_eq!(with.states(), without.states());
    // the sensor was off
    let mut stream = begun();
    refused(stream.step(at(far, 3)));
    let theta = stream.theta().to_vec();
    assert!(stream.step(at(far + 1.0, 4)).unwrap().restarted);
    assert_eq!(stream.progress().time, last + (far + 1.0) * DT);
    assert_eq!(stream.theta(), theta, "θ is kept");
    // a wrong time within the longest gap: two samples show it
    let mut stream = begun();
    assert!(!stream.step(at(500.0, 3)).unwrap().restarted);
    refused(stream.step(at(1.0, 4)));
    assert!(stream.step(at(2.0, 5)).unwrap().restarted);
    assert!(!stream.step(at(3.0, 6)).unwrap().restarted);
    // and of the very first sample
    let mut stream = crate::stream::stream(&model, options(false));
    stream.step(at(1e9, 0)).unwrap();
    refused(stream.step(at(0.0, 1)));
    assert!(stream.step(at(1.0, 2)).unwrap().restarted);
    // late samples are no such thing
    let mut stream = begun();
    refused(stream.step(at(-1.5, 3)));
    refused(stream.step(at(-0.5, 4)));
}

/// One sample at a million standard deviations moves θ no further than one at the gate.
#[test]
fn a_glitch_has_bounded_influence() {
    let model = model(LINEAR);
    let record = random_record(&model, 30, 3);
    let moved = |glitch: f64, gate: f64| {
        let mut stream = stream(
            &model,
            Options {
                gate,
                ..options(true)
            },
        );
        let mut output = vec![];
        for k in 0..20 {
            output = record.output(k).to_vec();
            stream.step(sample(&record, k)).unwrap();
        }
        let before = stream.theta().to_vec();
        output.fill(glitch);
        let bad = Sample {
            output: &output,
            ..sample(&record, 20)
        };
        let outcome = stream.step(bad).unwrap();
        let way = stream
            .theta()
            .iter()
            .zip(&before)
            .map(|(a, b)| (a - b).abs());
        (way.fold(0.0, f64::max), outcome)
    };
    let (far, outcome) = moved(1e6, 5.0);
    assert!(outcome.limited == record.d_y && outcome.consistency > 1e8);
    let (further, _) = moved(1e9, 5.0);
    assert!((further / far - 1.0).abs() < 1e-3, "{far} {further}");
    let (open, outcome) = moved(1e6, OPEN_GATE_DEVIATIONS * OPEN_GATE_DEVIATIONS);
    assert!(open > 1e3 * far && outcome.limited == 0, "{open} {far}");
}

/// What the data say nothing about becomes as uncertain as the prior, and not more.
#[test]
fn forgetting_ends_at_the_prior() {
    let model = model(LINEAR);
    let record = random_record(&model, 300, 3);
    let options = Options {
        forget: Some(20.0),
        ..options(true)
    };
    let mut stream = stream(&model, options);
    for k in 0..100 {
        stream.step(sample(&record, k)).unwrap();
    }
    let variance = |stream: &Stream| stream.covariance().variance(0);
    let known = variance(&stream);
    assert!(known < 2.0, "{known}");
    let nothing = vec![f64::NAN; record.d_y];
    for k in 100..300 {
        let sample = sample(&record, k);
        stream
            .step(Sample {
                output: &nothing,
                ..sample
            })
            .unwrap();
    }
    let unknown = variance(&stream);
    assert!((unknown - 3.0).abs() < 1e-3, "{unknown}");
}
