//! One cell of the gallery: a variant of a problem at a level of noise, from its records to its scores.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cpu_time::ThreadTime;
use latens::fit::{Prediction, Start};
use latens::record::{Layout, Mapping, Record};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::{Observer, PassReport, Progress};
use latens::{Door, Error, Fit, Job, Model, Role, Source, Watch};
use latens_report::verdict;
use serde::{Deserialize, Serialize};

use super::problems::{Half, Problem, Variant};
use crate::host;

/// Held-out records of each problem.
pub const TESTS: usize = 2;
/// Standard deviations on each side of a band that holds 95 %.
const BAND_DEVIATIONS: f64 = 1.96;

/// Which cell.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub problem: &'static Problem,
    pub variant: Variant,
    /// Standard deviation of the noise, in percent of a channel's range.
    pub noise: f64,
    pub seed: u64,
}

impl Place {
    /// What its files are called.
    pub fn name(&self) -> String {
        format!("{}-{}", self.records_name(), self.variant.name())
    }

    /// What the files of its records are called, which all variants share.
    pub fn records_name(&self) -> String {
        format!("{}-{}%-{}", self.problem.name, self.noise, self.seed)
    }
}

/// The records of a problem: one to learn from, the others held out.
pub struct Records {
    pub right: Model,
    pub train: Record,
    pub tests: Vec<Record>,
    /// The held-out records as they were before the noise.
    pub clean: Vec<Record>,
}

impl Records {
    pub fn make(place: &Place) -> Result<Self, Error> {
        let right = place.problem.right()?;
        let simulated = |held_out: Option<usize>, noise: f64| {
            let level = (noise > 0.0).then_some(NoiseLevel::OfRange(noise / 100.0));
            let name = held_out.map_or("train".into(), |k| format!("test{}", k + 1));
            let record = simulate(
                &right,
                &Simulation {
                    held_out,
                    noise: vec![level; right.measurements.len()],
                    seed: 10 * place.seed + held_out.map_or(0, |k| k as u64 + 1),
                    ..Simulation::default()
                },
            )?;
            Ok::<Record, Error>(Record { name, ..record })
        };
        let all = |noise: f64| -> Result<Vec<Record>, Error> {
            (0..TESTS).map(|k| simulated(Some(k), noise)).collect()
        };
        Ok(Self {
            train: simulated(None, place.noise)?,
            tests: all(place.noise)?,
            clean: all(0.0)?,
            right,
        })
    }

    /// A record on the terms of a variant, which may lack some of the states.
    fn source(&self, record: &Record, model: &Model) -> Result<Source, Error> {
        let table = record.to_table(&Layout::of(&self.right))?;
        let layout = Layout::of(model);
        Ok(Source::of_table(
            &table,
            &layout,
            &Mapping::default(),
            None,
        )?)
    }
}

/// Errors of a free run over the held-out records, against the truth without noise: root mean square
/// over range, the mean over channels or states and over the records.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Errors {
    /// Of the measured channels; none where a run left the finite numbers.
    pub measured: Option<f64>,
    /// Of all states that the model shares with the truth.
    pub states: Option<f64>,
}

/// How many true values lie in their 95 % bands, of how many.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Coverage {
    pub inside: usize,
    #[serde(rename = "of")]
    pub count: usize,
}

impl Coverage {
    pub fn part(self) -> Option<f64> {
        (self.count > 0).then(|| self.inside as f64 / self.count as f64)
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            inside: self.inside + other.inside,
            count: self.count + other.count,
        }
    }
}

/// A constant of the right model.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Constant {
    pub truth: f64,
    pub value: f64,
    pub std: f64,
    /// (value − truth)/std.
    pub z: Option<f64>,
}

/// What Latens came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LatensResult {
    pub errors: Errors,
    /// Of the measured channels, without the sensors' noise.
    pub bands_measured: Coverage,
    /// Of states that no channel shows as they are.
    pub bands_hidden: Coverage,
    /// Of the right model.
    pub constants: BTreeMap<String, Constant>,
    pub warnings: Vec<String>,
    pub verdict: Vec<String>,
    /// Error of the free run over the training record, the mean over the measured channels.
    pub train: Option<f64>,
    pub passes: usize,
}

/// A cell as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    pub problem: String,
    pub field: String,
    pub half: Half,
    pub variant: Variant,
    pub noise: f64,
    pub seed: u64,
    /// What Latens came to, or why it came to nothing.
    pub latens: Option<LatensResult>,
    pub failure: Option<String>,
    /// Of the processor, one thread.
    pub seconds: f64,
    /// Least squares on the free run.
    pub least_squares: Option<super::rival::Rival>,
}

impl Cell {
    /// In bands, of measured channels and of hidden states.
    pub fn coverage(&self) -> Coverage {
        let result = self.latens.as_ref();
        result.map_or(Coverage::default(), |result| {
            result.bands_measured.and(result.bands_hidden)
        })
    }

    /// Whether somebody is told not to trust it.
    pub fn warned(&self) -> bool {
        self.latens.as_ref().is_none_or(|l| !l.warnings.is_empty())
    }

    /// Root mean square of the constants' z.
    pub fn z(&self) -> Option<f64> {
        let constants = self.latens.iter().flat_map(|l| l.constants.values());
        let squares: Vec<f64> = constants.filter_map(|c| Some(c.z? * c.z?)).collect();
        (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
    }
}

/// A run over the held-out records, from a sample on.
pub struct Run {
    pub from: usize,
    /// Row by row, the model's states.
    pub states: Vec<f64>,
    /// Row by row, the measured channels.
    pub outputs: Vec<f64>,
}

impl From<&Prediction> for Run {
    fn from(prediction: &Prediction) -> Self {
        Self {
            from: prediction.from,
            states: prediction.states.as_slice().to_vec(),
            outputs: prediction.outputs.as_slice().to_vec(),
        }
    }
}

/// The states that a model shares with the right one: their places in both.
fn shared(model: &Model, right: &Model) -> Vec<(usize, usize)> {
    let states = model.states.iter().enumerate();
    states
        .filter_map(|(i, state)| Some((i, right.state_index(&state.name)?)))
        .collect()
}

/// One column, from a row on.
fn column(
    matrix: &[f64],
    k: usize,
    width: usize,
    from: usize,
) -> impl Iterator<Item = f64> + Clone {
    matrix.iter().skip(from * width + k).step_by(width).copied()
}

/// Root mean square error over range; infinite where a run is lost.
fn nrmse(run: impl Iterator<Item = f64>, truth: impl Iterator<Item = f64> + Clone) -> f64 {
    let low = truth.clone().fold(f64::INFINITY, f64::min);
    let high = truth.clone().fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut count) = (0.0, 0.0);
    for (x, t) in run.zip(truth) {
        sum += (x - t) * (x - t);
        count += 1.0;
    }
    let error = (sum / count).sqrt() / (high - low);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The errors of runs over all held-out records.
pub fn errors(model: &Model, records: &Records, runs: &[Run]) -> Errors {
    let (mut measured, mut states) = (vec![], vec![]);
    for (run, clean) in runs.iter().zip(&records.clean) {
        let c = clean.d_y;
        measured.extend((0..c).map(|k| {
            let truth = column(&clean.outputs, k, c, run.from);
            nrmse(column(&run.outputs, k, c, 0), truth)
        }));
        let truth = clean.truth.as_deref().unwrap_or(&[]);
        let n = model.states.len();
        states.extend(shared(model, &records.right).into_iter().map(|(i, j)| {
            let truth = column(truth, j, clean.d_x, run.from);
            nrmse(column(&run.states, i, n, 0), truth)
        }));
    }
    Errors {
        measured: mean(&measured),
        states: mean(&states),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

/// How many of some true values lie in their bands; what is no number does not.
fn inside(
    run: impl Iterator<Item = f64>,
    deviations: impl Iterator<Item = f64>,
    truth: impl Iterator<Item = f64>,
) -> Coverage {
    let samples = run.zip(deviations).zip(truth);
    let hits = samples.map(|((x, std), t)| usize::from((x - t).abs() <= BAND_DEVIATIONS * std));
    hits.fold(Coverage::default(), |sum, inside| {
        sum.and(Coverage { inside, count: 1 })
    })
}

/// Counts what lies in the bands of a prediction: of measured channels, of hidden states.
fn bands(
    model: &Model,
    records: &Records,
    clean: &Record,
    prediction: &Prediction,
) -> [Coverage; 2] {
    let (c, n, from) = (clean.d_y, model.states.len(), prediction.from);
    let mut counted = [Coverage::default(); 2];
    for k in 0..c {
        let run = column(prediction.outputs.as_slice(), k, c, 0);
        let deviations = column(prediction.output_deviations.as_slice(), k, c, 0);
        let truth = column(&clean.outputs, k, c, from);
        counted[0] = counted[0].and(inside(run, deviations, truth));
    }
    let shown = model.system.direct();
    let truth = clean.truth.as_deref().unwrap_or(&[]);
    for (i, j) in shared(model, &records.right) {
        if !shown.contains(&Some(i)) {
            let run = column(prediction.states.as_slice(), i, n, 0);
            let deviations = column(prediction.deviations.as_slice(), i, n, 0);
            let truth = column(truth, j, clean.d_x, from);
            counted[1] = counted[1].and(inside(run, deviations, truth));
        }
    }
    counted
}

/// Nobody to tell; it stops where the program is asked to.
struct Quiet;

impl Observer for Quiet {
    fn progress(&mut self, _: &Progress) -> bool {
        !host::asked()
    }

    fn pass(&mut self, _: &PassReport) -> bool {
        !host::asked()
    }
}

impl Watch for Quiet {}

/// Fits a variant to the training record with defaults, and looks at the held-out ones.
pub fn fitted(place: &Place, model: &Model, records: &Records) -> Result<LatensResult, Error> {
    let mut job = Job::new(model.clone())?;
    job.settings.seed = place.seed;
    job.add(Role::Train, records.source(&records.train, model)?);
    for test in &records.tests {
        job.add(Role::Test, records.source(test, model)?);
    }
    let outcome = job.run(&mut Quiet)?;
    let fit = &outcome.fit;
    let predictions: Vec<Prediction> = job
        .test
        .iter()
        .map(|test| fit.free_run(&test.record, Start::WarmUp(Start::samples(&test.record))))
        .collect();
    let runs: Vec<Run> = predictions.iter().map(Run::from).collect();
    let mut counted = [Coverage::default(); 2];
    for (prediction, clean) in predictions.iter().zip(&records.clean) {
        let more = bands(&fit.model, records, clean, prediction);
        counted = [counted[0].and(more[0]), counted[1].and(more[1])];
    }
    let verdict = verdict::of_run(fit);
    let names = model.measurements.iter().map(|m| &m.name);
    let train: Vec<f64> = names
        .map(|name| fit.facts.records[0].nrmse.get(name).copied().flatten())
        .map(|error| error.unwrap_or(f64::INFINITY))
        .collect();
    Ok(LatensResult {
        errors: errors(&fit.model, records, &runs),
        bands_measured: counted[0],
        bands_hidden: counted[1],
        constants: constants(place, fit)?,
        warnings: outcome
            .warnings
            .iter()
            .map(|w| w.at(Door::CommandLine))
            .collect(),
        verdict: verdict
            .alarms
            .into_iter()
            .chain(verdict.sentences)
            .collect(),
        train: mean(&train),
        passes: fit.facts.passes.len(),
    })
}

/// The constants of the right model beside the truth.
fn constants(place: &Place, fit: &Fit) -> Result<BTreeMap<String, Constant>, Error> {
    if place.variant != Variant::Right {
        return Ok(BTreeMap::new());
    }
    let truth = place.problem.true_constants()?;
    let constants = fit.constants().iter().filter_map(|found| {
        let truth = *truth.get(&found.name)?;
        let z = (found.value - truth) / found.std;
        let constant = Constant {
            truth,
            value: found.value,
            std: found.std,
            z: z.is_finite().then_some(z),
        };
        Some((found.name.clone(), constant))
    });
    Ok(constants.collect())
}

/// Runs a cell's fit on this thread; `None` where somebody stopped it.
pub fn run(place: &Place, model: &Model, records: &Records) -> Option<Cell> {
    let started = ThreadTime::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| fitted(place, model, records)));
    let seconds = started.elapsed().as_secs_f64();
    if host::asked() {
        return None;
    }
    let (latens, failure) = match outcome {
        Ok(Ok(result)) => (Some(result), None),
        Ok(Err(error)) => (None, Some(error.to_string())),
        Err(_) => (None, Some("it panicked".into())),
    };
    Some(Cell {
        problem: place.problem.name.into(),
        field: place.problem.field.into(),
        half: place.problem.half(),
        variant: place.variant,
        noise: place.noise,
        seed: place.seed,
        latens,
        failure,
        seconds,
        least_squares: None,
    })
}
