//! The fits that are exported, and what Latens itself makes of them.

use std::fs;
use std::path::Path;

use latens::fit::stream::{Options, Sample};
use latens::model::{Model, Point};
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::{Error, Fit, Job, Record, Role, Silent, Source, systems};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::files::file_error;

/// A model file with every word of the language in it.
pub const EVERY_WORD_MODEL: &str = include_str!("every.toml");

/// A model that is stepped by an implicit method.
const STIFF_MODEL: &str = include_str!("../../models/stiff/tank-reactor.toml");

/// A built-in system without a truth is given one.
const EMPS_TRUTH: &str = r#"
[truth]
gain = 0.37
viscous = 2.2
coulomb = 0.2
asymmetry = 0.05
offset = 0.01
[simulation]
steps = 5000
inputs = { u = "2*sin(3*t) + sin(7*t)" }
"#;

/// The systems: the built-in ones, and [`EVERY_WORD_MODEL`].
pub fn names() -> Vec<&'static str> {
    let built_in = systems::SYSTEMS.iter().map(|(name, _)| *name);
    built_in.chain(["every-word"]).collect()
}

/// A fit of a system to so many samples, for any weights do, and a longer record of it.
///
/// # Errors
/// Those of simulations and fits.
pub fn learn(name: &str, samples: usize, steps: usize) -> Result<(Fit, Record), Error> {
    let model = match name {
        "every-word" => Model::from_text(name, EVERY_WORD_MODEL)?,
        "stiff" => Model::from_text(name, STIFF_MODEL)?,
        "stiff, by halves" => {
            let text = STIFF_MODEL.replace("\"sdirk4\"", "\"implicit-midpoint\"");
            // of second order: with a tolerance of 1e-6 it takes many more steps
            let text = text.replace("tolerance = 1e-6", "tolerance = 1e-3");
            Model::from_text(name, &text)?
        }
        "emps" => {
            let text = systems::find(name).unwrap_or_default();
            let text = text.replace("unit = \"m", "start = 0\nunit = \"m");
            let text = text.replace("start = 0\nunit = \"m/s²", "unit = \"m/s²");
            Model::from_text(name, &format!("{text}{EMPS_TRUTH}"))?
        }
        _ => Model::builtin(name)?,
    };
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation)?;
    let first = record.slice(0..samples.min(record.len()));
    let mut job = Job::new(model)?;
    job.settings.passes = 2;
    job.settings.simplify = false;
    job.add(Role::Train, Source::of_record(first, &job.model)?);
    let mut fit = job.run(&mut Silent)?.fit;
    fit.name = name.into();
    Ok((fit, record))
}

/// What Latens makes of a fit, for others to be compared with.
pub struct Reference {
    /// Time, state, input and the next input of each point.
    pub points: Vec<Vec<f64>>,
    /// f, the step and h there, in this order.
    pub values: Vec<Vec<f64>>,
    /// Time and input of each sample of a free run.
    pub driving: Vec<Vec<f64>>,
    /// The record whose inputs these are.
    pub record: Record,
    /// The states of the free run.
    pub run: Vec<Vec<f64>>,
    /// How far a run from a start that is off by one part in 10⁹ is from it, in parts of 10⁹: what the
    /// equations themselves make of a last digit.
    pub growth: f64,
    /// Time, input and measurements of each sample of a stream.
    pub samples: Vec<Vec<f64>>,
    /// The states that the filter finds, and their variances.
    pub estimates: Vec<Vec<f64>>,
}

impl Reference {
    /// Random points where the data are, and a free run with the record's inputs.
    ///
    /// # Errors
    /// Those of a stream.
    pub fn of(fit: &Fit, record: &Record, points: usize) -> Result<Self, Error> {
        let points = at_random(fit, points);
        let steps = record.len() - 1;
        let start = fit.start(&[]);
        let run = free_run(fit, record, &start);
        const RELATIVE_OFFSET: f64 = 1e-9;
        let off: Vec<f64> = start.iter().map(|x| x * (1.0 + RELATIVE_OFFSET)).collect();
        let other = free_run(fit, record, &off);
        let growth = deviation(&run, &other, start.len()) / RELATIVE_OFFSET;
        let mut stream = fit.stream(Options::default())?;
        let (mut samples, mut estimates) = (vec![], vec![]);
        for k in 0..=steps {
            // a sample in ten is not taken, one channel in seven is missing
            if k % 10 == 3 {
                continue;
            }
            let mut output = record.output(k).to_vec();
            let channel = k % output.len();
            if k % 7 == 5 {
                output[channel] = f64::NAN;
            }
            let (time, input) = (record.time[k], record.input(k));
            stream.step(Sample {
                time: Some(time),
                input,
                output: &output,
            })?;
            samples.push([&[time], input, output.as_slice()].concat());
            let deviations = (0..start.len()).map(|i| stream.deviation(i).powi(2));
            estimates.push(stream.states().iter().copied().chain(deviations).collect());
        }
        Ok(Self {
            values: values_at(fit, &points),
            points,
            record: record.clone(),
            driving: (0..=steps)
                .map(|k| [&[record.time[k]], record.input(k)].concat())
                .collect(),
            growth: growth.max(1.0),
            run,
            samples,
            estimates,
        })
    }

    /// Writes what clients read, as rows of f64, and what the filter should find.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        for (name, rows) in [
            ("points", &self.points),
            ("driving", &self.driving),
            ("samples", &self.samples),
            ("estimates", &self.estimates),
        ] {
            let path = folder.join(format!("{name}.bin"));
            let bytes: Vec<u8> = rows
                .iter()
                .flatten()
                .flat_map(|v| v.to_le_bytes())
                .collect();
            fs::write(&path, bytes).map_err(|e| file_error("write", &path, e))?;
        }
        Ok(())
    }
}

/// Points where the data are.
fn at_random(fit: &Fit, count: usize) -> Vec<Vec<f64>> {
    let (model, track) = (&fit.model, &fit.tracks[0]);
    let record = &track.record;
    let (n, m) = (model.states.len(), model.inputs.len());
    let states = (0..n).map(|i| range(track.smoothed.column(i)));
    let inputs: Vec<(f64, f64)> = (0..m).map(|i| range(record.input_column(i))).collect();
    let time = [(record.time[0], record.time[record.len() - 1])];
    let twice = inputs.iter().chain(&inputs).copied();
    let ranges: Vec<(f64, f64)> = time.into_iter().chain(states).chain(twice).collect();
    let mut random = Pcg64::seed_from_u64(19);
    let mut point = || {
        let ranges = ranges.iter();
        ranges
            .map(|(low, high)| low + (high - low) * random.random::<f64>())
            .collect()
    };
    (0..count).map(|_| point()).collect()
}

/// f, a step and h at points.
pub fn values_at(fit: &Fit, points: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (model, n) = (&fit.model, fit.model.states.len());
    let stepper = Stepper::new(model, &model.system, fit.facts.sample_time);
    let span = stepper.span(stepper.dt());
    let (mut scratch, mut ws) = (stepper.scratch(), model.system.workspace());
    let mut value = vec![0.0; 2 * n + model.measurements.len()];
    let values = points.iter().map(|point| {
        let at = Point {
            time: point[0],
            state: &point[1..=n],
            input: &point[1 + n..],
            theta: &fit.theta,
        };
        let (derivative, rest) = value.split_at_mut(n);
        let (next, output) = rest.split_at_mut(n);
        model.system.derivative(&mut ws, at, derivative);
        stepper.advance(&mut scratch, at, span, next);
        model.system.measure(&mut ws, at, output);
        value.clone()
    });
    values.collect()
}

/// A little more than where some values are.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    const RANGE_MARGIN: f64 = 0.1;
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(start, |(low, high), v| (low.min(v), high.max(v)));
    (
        low - RANGE_MARGIN * (high - low),
        high + RANGE_MARGIN * (high - low),
    )
}

/// A free run with the inputs of a record.
pub fn free_run(fit: &Fit, record: &Record, start: &[f64]) -> Vec<Vec<f64>> {
    let stepper = Stepper::new(&fit.model, &fit.model.system, fit.facts.sample_time);
    let (span, mut scratch) = (stepper.span(stepper.dt()), stepper.scratch());
    let mut run = vec![start.to_vec()];
    for k in 0..record.len() - 1 {
        let mut next = vec![0.0; start.len()];
        let at = record.point(k, &run[k], &fit.theta);
        stepper.advance(&mut scratch, at, span, &mut next);
        run.push(next);
    }
    run
}

/// The largest difference in the first columns, each relative to the largest value in that column.
pub fn deviation(expected: &[Vec<f64>], found: &[Vec<f64>], columns: usize) -> f64 {
    deviation_of(expected, found, 0..columns)
}

/// The same of some columns.
pub fn deviation_of(
    expected: &[Vec<f64>],
    found: &[Vec<f64>],
    columns: std::ops::Range<usize>,
) -> f64 {
    let mut most: f64 = 0.0;
    for i in columns {
        let size = expected.iter().fold(0.0, |m: f64, row| m.max(row[i].abs()));
        for (a, b) in expected.iter().zip(found) {
            let difference = (a[i] - b[i]).abs();
            // NaN is no agreement
            let relative = match difference {
                d if d.is_nan() => f64::INFINITY,
                d if size > 0.0 => d / size,
                d => d,
            };
            most = most.max(relative);
        }
    }
    if expected.len() == found.len() {
        most
    } else {
        f64::INFINITY
    }
}
