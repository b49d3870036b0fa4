//! One cell of the grid: a method on a system with a seed, from the record to its scores.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::rivals::{self, Learned, Outcome, Rival, pr_ssm};
use cpu_time::ThreadTime;
use latens::fit::Start;
use latens::model::Point;
use latens::numerics::score;
use latens::record::Record;
use latens::simulate::{Simulation, simulate};
use latens::solve::{self, Observer, PassReport, Progress};
use latens::{Error, Fit, Job, Model, Role, Settings, Source, Trajectory, Watch};
use serde::{Deserialize, Serialize};

use crate::host;

/// Who learns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Learner {
    /// A solver of Latens, by name.
    Solver(&'static str),
    /// A method of others.
    Rival(Rival),
}

/// A method of the table: a learner, as it is or otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Method {
    pub learner: Learner,
    pub variant: Variant,
}

/// How a rival departs from its own recipe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Variant {
    Plain,
    /// It is told the hidden start.
    TrueStart,
    /// NODE-LSTM recalls the last few states only.
    Stateless,
}

/// States that the stateless NODE-LSTM recalls.
const RECALLED_STATES: usize = 5;

impl Method {
    /// The nine of the table.
    pub const TABLE: [Self; 9] = [
        Self::plain(Learner::Solver("as-printed")),
        Self::plain(Learner::Solver("alternating")),
        Self::plain(Learner::Solver("joint")),
        Self::plain(Learner::Solver("batch")),
        Self::plain(Learner::Rival(Rival::Node)),
        Self::plain(Learner::Rival(Rival::NodeLstm)),
        Self::plain(Learner::Rival(Rival::Spinode)),
        Self::plain(Learner::Rival(Rival::Rm)),
        Self::plain(Learner::Rival(Rival::PrSsm)),
    ];

    /// Rivals otherwise: those that can be told the hidden start, and one without memory.
    const VARIANTS: [Self; 4] = [
        Self::plain(Learner::Rival(Rival::Node)).with(Variant::TrueStart),
        Self::plain(Learner::Rival(Rival::NodeLstm)).with(Variant::TrueStart),
        Self::plain(Learner::Rival(Rival::Spinode)).with(Variant::TrueStart),
        Self::plain(Learner::Rival(Rival::NodeLstm)).with(Variant::Stateless),
    ];

    /// All that there are, in the order of a table.
    pub fn all() -> Vec<Self> {
        [Self::TABLE.as_slice(), &Self::VARIANTS].concat()
    }

    const fn plain(learner: Learner) -> Self {
        Self {
            learner,
            variant: Variant::Plain,
        }
    }

    const fn with(self, variant: Variant) -> Self {
        Self { variant, ..self }
    }

    pub fn name(self) -> String {
        let more = match self.variant {
            Variant::Plain => "",
            Variant::TrueStart => "-true-start",
            Variant::Stateless => "-stateless",
        };
        let name = match self.learner {
            Learner::Solver(name) => name,
            Learner::Rival(rival) => rival.name(),
        };
        format!("{name}{more}")
    }
}

/// A system with its records.
pub struct System {
    pub name: String,
    pub model: Model,
    pub record: Record,
    /// A measured record that plays no part; for a system with a truth there are simulated ones.
    pub test: Option<Record>,
}

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// The solver gave up, or its free run left the finite numbers.
    Diverged,
    Failed,
}

/// The scores of a cell: one entry of `results.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Score {
    pub system: String,
    pub method: String,
    pub seed: u64,
    pub status: Status,
    /// nRMSE of the free run by state; null where its truth is not known, or the run diverged.
    pub nrmse: BTreeMap<String, Option<f64>>,
    pub nrmse_mean: Option<f64>,
    pub nrmse_hidden: Option<f64>,
    pub heldout_mean: Option<f64>,
    pub seconds: f64,
}

/// One look at a method on its way.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Look {
    pub seconds: f64,
    pub epoch: usize,
    pub cost: Option<f64>,
    /// Mean nRMSE of the measured channels in a free run.
    pub free_run: Option<f64>,
}

/// States over time, some of the samples.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ThinnedRun {
    pub time: Vec<f64>,
    pub states: BTreeMap<String, Vec<Option<f64>>>,
}

/// A cell as it is kept: its scores, and what figures are drawn from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    pub score: Score,
    /// Why it has no better status.
    pub why: Option<String>,
    /// PR-SSM: nRMSE where the best affine image of the latent states stands for each state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aligned: BTreeMap<String, Option<f64>>,
    pub curve: Vec<Look>,
    pub trajectory: ThinnedRun,
    /// The free run of each held-out experiment.
    pub held_out: Vec<ThinnedRun>,
    /// Learned derivatives on [`field_points`], for a system of two states without inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field: Vec<[f64; 2]>,
}

/// Samples of a trajectory that are kept.
const POINTS: usize = 500;

/// Some samples of a run.
pub fn thinned(model: &Model, record: &Record, run: &Trajectory) -> ThinnedRun {
    let every = record.len().div_ceil(POINTS).max(1);
    let kept = || (0..record.len()).step_by(every);
    let finite = |x: f64| x.is_finite().then_some(x);
    let column = |i: usize| kept().map(|k| finite(run.row(k)[i])).collect();
    let names = model.states.iter().enumerate();
    ThinnedRun {
        time: kept().map(|k| record.time[k]).collect(),
        states: names.map(|(i, s)| (s.name.clone(), column(i))).collect(),
    }
}

/// Some samples of a record's truth, where that is known.
pub fn thinned_truth(model: &Model, record: &Record) -> Option<ThinnedRun> {
    let truth = Trajectory::new(record.truth.clone()?, record.d_x);
    Some(thinned(model, record, &truth))
}

/// Rows and columns of a vector field.
pub const GRID: usize = 15;

/// Where a vector field is looked at: a grid over what the truth visits, and a little beyond.
pub fn field_points(model: &Model, record: &Record) -> Vec<[f64; 2]> {
    let (Some(truth), 2, 0) = (&record.truth, model.states.len(), model.inputs.len()) else {
        return vec![];
    };
    let range = |i: usize| {
        let values = || truth.iter().skip(i).step_by(2).copied();
        let (low, high) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        );
        (low - 0.1 * (high - low), high + 0.1 * (high - low))
    };
    let (x, y) = (range(0), range(1));
    let at = |(low, high): (f64, f64), k: usize| low + (high - low) * k as f64 / (GRID - 1) as f64;
    (0..GRID * GRID)
        .map(|k| [at(x, k % GRID), at(y, k / GRID)])
        .collect()
}

/// Derivatives of a system at points.
pub fn field(system: &latens::model::System, theta: &[f64], points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let mut workspace = system.workspace();
    let mut derivative = |state: &[f64; 2]| {
        let mut f = [0.0; 2];
        let at = Point {
            time: 0.0,
            state,
            input: &[],
            theta,
        };
        system.derivative(&mut workspace, at, &mut f);
        f
    };
    points.iter().map(&mut derivative).collect()
}

/// Writes down how a method does, and ends it when its time is up. Time is that of the processor, spent
/// by the cell's one thread: what else runs on the machine takes nothing from a cell.
struct Recorder {
    started: Duration,
    budget: f64,
    curve: Vec<Look>,
}

impl Recorder {
    fn seconds(&self) -> f64 {
        let now = ThreadTime::now().as_duration();
        now.saturating_sub(self.started).as_secs_f64()
    }

    fn go_on(&self) -> bool {
        !host::asked() && self.seconds() < self.budget
    }
}

impl Observer for Recorder {
    fn progress(&mut self, _: &Progress) -> bool {
        self.go_on()
    }

    fn pass(&mut self, report: &PassReport) -> bool {
        let finite = |x: f64| x.is_finite().then_some(x);
        self.curve.push(Look {
            seconds: self.seconds(),
            epoch: report.pass,
            cost: finite(report.cost.total()),
            free_run: finite(report.free_run),
        });
        self.go_on()
    }
}

impl Watch for Recorder {}

/// What a method came to, whatever it is.
enum Trained {
    Latens(Box<Fit>),
    Rival(Box<Outcome>),
}

impl Trained {
    fn run(&self) -> &Trajectory {
        match self {
            Self::Latens(fit) => &fit.tracks[0].free_run,
            Self::Rival(outcome) => &outcome.runs[0],
        }
    }

    fn model(&self) -> &Model {
        match self {
            Self::Latens(fit) => &fit.model,
            Self::Rival(outcome) => &outcome.model,
        }
    }

    fn theta(&self) -> Option<&[f64]> {
        match self {
            Self::Latens(fit) => Some(&fit.theta),
            Self::Rival(outcome) => outcome.theta(),
        }
    }

    /// A held-out experiment from its true start: the equations with their own controller, others
    /// with the input replayed.
    fn held_out(&self, number: usize, record: &Record) -> Trajectory {
        let lost = || Trajectory::filled(f64::NAN, record.len(), record.d_x);
        match (self, self.theta()) {
            (Self::Rival(outcome), None) => outcome.predict(record, record.truth(0)),
            (_, theta) => {
                let simulation = Simulation {
                    held_out: Some(number),
                    theta: theta.map(<[f64]>::to_vec),
                    ..Simulation::default()
                };
                let run = simulate(self.model(), &simulation);
                let truth = run
                    .ok()
                    .and_then(|r| Some(Trajectory::new(r.truth?, r.d_x)));
                truth.unwrap_or_else(lost)
            }
        }
    }

    /// A measured record, from what its first samples show: where the run begins, and the run.
    fn tested(&self, record: &Record) -> (usize, Trajectory) {
        match self {
            Self::Latens(fit) => {
                let warm_up = Start::WarmUp(Start::samples(record));
                let prediction = fit.free_run(record, warm_up);
                (prediction.from, prediction.states)
            }
            Self::Rival(outcome) => {
                // scored over the same samples as the others
                let from = Start::samples(record);
                let run = outcome.predict(record, None);
                (from, run.starting_at(from))
            }
        }
    }
}

/// nRMSE of a run by state: against the truth, or against a channel that shows the state.
fn errors(model: &Model, record: &Record, run: &Trajectory) -> BTreeMap<String, Option<f64>> {
    let n = model.states.len();
    let error = |i: usize| -> Option<f64> {
        if let Some(error) = record
            .truth
            .as_ref()
            .and_then(|t| score::nrmse(run.as_slice(), t, i, n))
        {
            return Some(error);
        }
        let channel = model.system.direct().iter().position(|d| *d == Some(i))?;
        let run: Vec<f64> = run.column(i).collect();
        let shown: Vec<f64> = record.output_column(channel).collect();
        score::nrmse(&run, &shown, 0, 1)
    };
    let states = model.states.iter().enumerate();
    states.map(|(i, s)| (s.name.clone(), error(i))).collect()
}

/// The error of a constant, the mean of each state: what a method must beat to have learned anything.
pub fn constant(system: &System) -> Option<f64> {
    let (model, record) = (&system.model, &system.record);
    let (n, direct) = (model.states.len(), model.system.direct());
    let mean_of = |values: &[f64], column: usize, columns: usize| {
        let values_of_column = values.iter().skip(column).step_by(columns);
        let known: Vec<f64> = values_of_column.copied().filter(|v| !v.is_nan()).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    let means: Vec<f64> = (0..n)
        .map(
            |i| match (&record.truth, direct.iter().position(|d| *d == Some(i))) {
                (Some(truth), _) => mean_of(truth, i, n),
                (None, Some(channel)) => mean_of(&record.outputs, channel, record.d_y),
                (None, None) => f64::NAN,
            },
        )
        .collect();
    let run = Trajectory::new(means.repeat(record.len()), n);
    mean(errors(model, record, &run).values())
}

/// Mean of those that are known; infinite where one is lost, none where none is known.
fn mean<'a>(errors: impl Iterator<Item = &'a Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = errors.flatten().copied().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Runs a cell on this thread; `None` where somebody stopped it.
pub fn run(system: &System, method: Method, seed: u64, budget: f64) -> Option<Cell> {
    let mut recorder = Recorder {
        started: ThreadTime::now().as_duration(),
        budget,
        curve: vec![],
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        learn(system, method, seed, &mut recorder)
    }));
    let seconds = recorder.seconds();
    if host::asked() {
        return None;
    }
    let mut cell = Cell {
        score: Score {
            system: system.name.clone(),
            method: method.name(),
            seed,
            status: Status::Failed,
            nrmse: system
                .model
                .states
                .iter()
                .map(|s| (s.name.clone(), None))
                .collect(),
            nrmse_mean: None,
            nrmse_hidden: None,
            heldout_mean: None,
            seconds,
        },
        why: None,
        aligned: BTreeMap::new(),
        curve: recorder.curve,
        trajectory: ThinnedRun::default(),
        held_out: vec![],
        field: vec![],
    };
    match outcome {
        Err(_) => cell.why = Some("it panicked".into()),
        Ok(Err(error)) => {
            if matches!(error, Error::Diverged(_)) {
                cell.score.status = Status::Diverged;
            }
            cell.why = Some(error.to_string());
        }
        Ok(Ok(came)) => scored(system, &came, &mut cell),
    }
    Some(cell)
}

fn learn(
    system: &System,
    method: Method,
    seed: u64,
    recorder: &mut Recorder,
) -> Result<Trained, Error> {
    if let Learner::Rival(rival) = method.learner {
        let settings = rivals::Settings {
            seed,
            known_start: method.variant == Variant::TrueStart,
            recall: (method.variant == Variant::Stateless).then_some(RECALLED_STATES),
            ..rivals::Settings::new(rival)
        };
        let records = std::slice::from_ref(&system.record);
        let outcome = rivals::fit(&system.model, records, &settings, recorder)?;
        return Ok(Trained::Rival(Box::new(outcome)));
    }
    let settings = Settings {
        seed,
        ..solve::find(&method.name())?.settings()
    };
    let mut job = Job::with_settings(system.model.clone(), settings);
    let source = Source::of_record(system.record.clone(), &system.model)?;
    job.add(Role::Train, source);
    Ok(Trained::Latens(Box::new(job.run(recorder)?.fit)))
}

/// Fills in the scores, and what figures need.
fn scored(system: &System, trained: &Trained, cell: &mut Cell) {
    let (model, record) = (&system.model, &system.record);
    let nrmse = errors(model, record, trained.run());
    let hidden = model.hidden();
    let names = hidden.iter().map(|&i| &nrmse[&model.states[i].name]);
    let (all, of_hidden) = (mean(nrmse.values()), mean(names));
    let finite = |e: Option<f64>| e.filter(|e| e.is_finite());
    cell.score.status = if all.is_some_and(f64::is_finite) {
        Status::Ok
    } else {
        Status::Diverged
    };
    if cell.score.status == Status::Diverged {
        cell.why = Some("its free run leaves the finite numbers".into());
    }
    (cell.score.nrmse_mean, cell.score.nrmse_hidden) = (finite(all), finite(of_hidden));
    cell.score.nrmse = nrmse
        .into_iter()
        .map(|(name, e)| (name, finite(e)))
        .collect();
    cell.trajectory = thinned(model, record, trained.run());
    if let Trained::Rival(outcome) = trained
        && matches!(outcome.learned, Learned::Latent(_))
    {
        let aligned = pr_ssm::align(trained.run(), record);
        let names = model.states.iter().map(|s| s.name.clone());
        cell.aligned = names.zip(aligned.into_iter().map(finite)).collect();
    }
    let mut tests = vec![];
    let count = model.truth.as_ref().map_or(0, |t| t.held_out.len());
    for number in 0..count {
        let simulation = Simulation {
            held_out: Some(number),
            ..Simulation::default()
        };
        let Ok(other) = simulate(model, &simulation) else {
            continue;
        };
        let run = trained.held_out(number, &other);
        cell.held_out.push(thinned(model, &other, &run));
        tests.push(mean(errors(model, &other, &run).values()));
    }
    if let Some(test) = &system.test {
        let (from, run) = trained.tested(test);
        let rest = test.slice(from..test.len());
        cell.held_out.push(thinned(model, &rest, &run));
        tests.push(mean(errors(model, &rest, &run).values()));
    }
    cell.score.heldout_mean = finite(mean(tests.iter()));
    if let Some(theta) = trained.theta() {
        let points = field_points(model, record);
        cell.field = field(&trained.model().system, theta, &points);
    }
}
