//! What a step costs: the time of a pass over a record, by its length, by the number of parameters
//! and by the number of states.
//!
//! A chain of oscillators, each measured, each with a hidden velocity; one network, of the last one's
//! acceleration. A pass is one of a recursion, a Newton iteration of batch, an iteration of
//! NODE, SPINODE or RM, a pass of NODE-LSTM; with all that belongs to it, but for what a fit does once.

use std::path::Path;
use std::time::Duration;

use cpu_time::ThreadTime;
use latens::simulate::{Simulation, simulate};
use latens::solve::{self, Observer, PassReport, Progress};
use latens::{Error, Job, Model, Role, Settings, Source, Watch};

use super::cell::{Learner, Method, Variant};
use super::figures;
use crate::files::{alone, write_file};
use crate::host;
use crate::rivals::{self, Rival};

/// Steps, units of each of two layers, oscillators: around the middle one varies alone.
const STEPS: [usize; 4] = [500, 1000, 2000, 4000];
const UNITS: [usize; 4] = [5, 10, 20, 40];
const OSCILLATORS: [usize; 4] = [1, 2, 4, 8];

fn model(oscillators: usize, units: usize) -> Result<Model, Error> {
    let mut text = String::from("[time]\nstep = 0.01\n");
    let mut measured = String::from("[measurements]\n");
    for k in 1..=oscillators {
        let pull = match k {
            1 => format!("-z{k}"),
            _ => format!("-z{k} + 0.1*z{}", k - 1),
        };
        let last = k == oscillators;
        let force = if last {
            format!("force(z{k}, v{k})")
        } else {
            pull.clone()
        };
        text += &format!("[states.z{k}]\nderivative = \"v{k}\"\nstart = 1\n");
        text += &format!("[states.v{k}]\nderivative = \"{force}\"\nstart = 0\n");
        measured += &format!("z{k} = \"z{k}\"\n");
        if last {
            measured += &format!("[truth]\nv{k} = \"{pull}\"\n");
        }
    }
    text += &format!("[networks.force]\nlayers = [\"{units} tanh\", \"{units} tanh\"]\n{measured}");
    Ok(Model::from_text("chain", &text)?)
}

/// Counts passes, and when the first began.
struct Counter {
    started: Option<Duration>,
    passes: usize,
    /// Whether a call of `progress` is a pass, not a part of one.
    call_is_pass: bool,
    most: usize,
    seconds: f64,
}

impl Counter {
    fn pass(&mut self) -> bool {
        let now = ThreadTime::now().as_duration();
        let started = *self.started.get_or_insert(now);
        if self.passes < self.most {
            self.seconds = (now - started).as_secs_f64();
            self.passes += 1;
        }
        self.passes < self.most && !host::asked()
    }
}

impl Observer for Counter {
    fn progress(&mut self, _: &Progress) -> bool {
        if self.call_is_pass { self.pass() } else { true }
    }

    fn pass(&mut self, _: &PassReport) -> bool {
        if self.call_is_pass { true } else { self.pass() }
    }
}

impl Watch for Counter {}

/// Seconds of a pass over a sample.
fn per_step(method: Method, model: &Model, steps: usize) -> Result<f64, Error> {
    let simulation = Simulation {
        steps: Some(steps),
        ..Simulation::default()
    };
    let record = simulate(model, &simulation)?;
    let is_solver = matches!(method.learner, Learner::Solver(_));
    let mut counter = Counter {
        started: None,
        passes: 0,
        call_is_pass: method.learner == Learner::Solver("batch") || !is_solver,
        most: if is_solver { 3 } else { 6 },
        seconds: 0.0,
    };
    let done = match method.learner {
        Learner::Solver(name) => {
            let settings = Settings {
                passes: 3,
                ..solve::find(name)?.settings()
            };
            let mut job = Job::with_settings(model.clone(), settings);
            job.add(Role::Train, Source::of_record(record, model)?);
            job.run(&mut counter).map(drop)
        }
        Learner::Rival(rival) => {
            let settings = rivals::Settings {
                // looks at the free run are far apart then
                iterations: 10_000,
                ..rivals::Settings::new(rival)
            };
            rivals::fit(model, &[record], &settings, &mut counter).map(drop)
        }
    };
    match done {
        // broken off before a stage was over: what was timed was timed
        Err(Error::Stopped) => {}
        other => other?,
    }
    let passes = counter.passes.saturating_sub(1).max(1);
    // NODE-LSTM reports every stretch of its pass
    let parts = match method.learner {
        Learner::Rival(Rival::NodeLstm) => steps.div_ceil(rivals::node_lstm::SEGMENT_STEPS),
        _ => 1,
    };
    Ok(counter.seconds / passes as f64 * parts as f64 / steps as f64)
}

/// Measures what is not measured yet, and writes `figures/cost_per_step.csv`.
pub fn write(methods: &[Method], folder: &Path, quiet: bool) -> Result<(), Error> {
    let path = figures::folder(folder)?.join("cost_per_step.csv");
    if path.is_file() {
        return Ok(());
    }
    if !quiet {
        host::note("measuring what a step costs");
    }
    let (n, units, oscillators) = (STEPS[1], UNITS[1], OSCILLATORS[0]);
    let mut sizes = vec![];
    sizes.extend(STEPS.map(|n| ("N", n, units, oscillators)));
    sizes.extend(UNITS.map(|units| ("d_theta", n, units, oscillators)));
    sizes.extend(OSCILLATORS.map(|oscillators| ("d_x", n, units, oscillators)));
    let mut out = String::from("method,varied,N,d_theta,d_x,microseconds_per_sample\n");
    // processes of PR-SSM know nothing of steps and parameters of the model
    for method in methods
        .iter()
        .filter(|m| m.learner != Learner::Rival(Rival::PrSsm) && m.variant == Variant::Plain)
    {
        for &(varied, n, units, oscillators) in &sizes {
            if host::asked() {
                return Ok(());
            }
            let model = model(oscillators, units)?;
            let seconds = alone(|| per_step(*method, &model, n));
            // a method that diverges here has no pass to time
            let cost = seconds.map_or(String::new(), |s| format!("{:.3}", 1e6 * s));
            out += &format!(
                "{},{varied},{n},{},{},{cost}\n",
                method.name(),
                model.system.parameters(),
                model.states.len()
            );
        }
    }
    write_file(&path, &out)
}
