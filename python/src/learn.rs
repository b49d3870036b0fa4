//! A fit on its own threads. The thread that called waits for it, lets Python run meanwhile, hears of
//! Ctrl-C and passes reports on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use latens::folder::Claim;
use latens::solve::kept::Checkpoints;
use latens::solve::workers::Workers;
use latens::solve::{self, Equipment, Observer, PassReport, Progress};
use latens::{Door, Error, Role, SettingsLayer, Warning, Watch};
use latens_lab::rivals::Rival;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::errors::{Failure, Result, setting};
use crate::fit::Fit;
use crate::model::Model;
use crate::pool;
use crate::record::Source;
use crate::workers::Backend;

/// What a fit that is in no folder calls itself.
pub const UNSAVED_NAME: &str = "this fit";

/// How long a signal may wait.
const SIGNAL_WAIT: Duration = Duration::from_millis(50);
/// Between two reports of a pass on its way.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// What a fit says on its way.
enum Event {
    Warning(String),
    Progress(Progress),
    Pass(PassReport),
}

struct Reporter {
    events: Sender<Event>,
    stop: Arc<AtomicBool>,
    last: Instant,
}

impl Reporter {
    /// Nobody listens any more where the caller has left.
    fn say(&self, event: Event) -> bool {
        self.events.send(event).is_ok() && !self.stop.load(Ordering::Relaxed)
    }
}

impl Observer for Reporter {
    fn goes_on(&mut self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        if self.last.elapsed() < REPORT_INTERVAL {
            return !self.stop.load(Ordering::Relaxed);
        }
        self.last = Instant::now();
        self.say(Event::Progress(*progress))
    }

    fn pass(&mut self, report: &PassReport) -> bool {
        self.say(Event::Pass(report.clone()))
    }
}

impl Watch for Reporter {
    fn warning(&mut self, warning: &Warning) {
        self.say(Event::Warning(warning.at(Door::Python)));
    }
}

/// What to fit, to what, and how; it runs once.
#[pyclass(module = "latens._latens")]
pub struct Job {
    job: latens::Job,
    given: SettingsLayer,
}

#[pymethods]
impl Job {
    /// `settings` is the text of a `[fit]` section; `resumed` a fit to go on with.
    #[new]
    fn new(model: &Model, settings: &str, resumed: Option<&Fit>) -> Result<Self> {
        let given = model.0.settings("settings", settings)?;
        if let Some(name) = given.solver.as_ref().or(model.0.fit.solver.as_ref()) {
            refuse_rival(name)?;
        }
        let mut job = latens::Job::new_unset(model.0.clone());
        job.resumed = resumed.map(|fit| fit.0.clone());
        job.configure(&given)?;
        Ok(Self { job, given })
    }

    /// The model as the user named it, and the call that repeats the fit.
    fn sign(&mut self, model_file: String, command: String) {
        self.job.model_file = model_file;
        self.job.command = command;
    }

    /// A record that is learned from.
    fn train(&mut self, mut source: PyRefMut<Source>) {
        self.job.add(Role::Train, source.take());
    }

    /// A record that chooses between stages and starts.
    fn validate(&mut self, mut source: PyRefMut<Source>) {
        self.job.add(Role::Validate, source.take());
    }

    /// A record that plays no part.
    fn test(&mut self, mut source: PyRefMut<Source>) {
        self.job.add(Role::Test, source.take());
    }

    /// First samples of a test, which show where it starts.
    #[setter]
    fn warm_up(&mut self, samples: Option<usize>) {
        self.job.warm_up = samples;
    }

    /// The name of the solver.
    #[getter]
    fn solver(&self) -> &str {
        &self.job.settings.solver
    }

    /// What the solver calls one of its passes.
    #[getter]
    fn pass_name(&self) -> Result<&'static str> {
        Ok(solve::find(self.solver())?.pass())
    }

    /// Whether the solver ends by itself, so that the number of passes is a bound.
    #[getter]
    fn converges(&self) -> Result<bool> {
        Ok(solve::find(self.solver())?.converges())
    }

    /// Passes in all, or at the most.
    #[getter]
    fn passes(&self) -> usize {
        self.job.settings.passes
    }

    /// The number of starts that the settings come to.
    #[getter]
    fn starts(&self) -> usize {
        let settings = &self.job.settings;
        settings.starts.max(settings.ensemble)
    }

    /// Fits. `hear` is called with `("warning", text)`, `("progress", number, passes, step, steps)` and
    /// `("pass", number, cost, free_run)`; where it gives `False`, the fit stops. What it comes to is kept
    /// on its way to the folder `checkpoint`, and its records are with the workers of a `backend`. Gives the
    /// fit and whether Ctrl-C ended it.
    fn run(
        &mut self,
        py: Python,
        threads: Option<usize>,
        hear: Option<Py<PyAny>>,
        checkpoint: Option<PathBuf>,
        backend: Option<Backend>,
    ) -> PyResult<(Fit, bool)> {
        let empty = latens::Job::new_unset(self.job.model.clone());
        let mut job = std::mem::replace(&mut self.job, empty);
        let cut = job.validate_tail(self.given.validate_tail);
        cut.map_err(Failure::from)?;
        let claim = checkpoint.map(Claim::new).transpose();
        let claim = claim.map_err(Failure::from)?;
        let (events, heard) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut reporter = Reporter {
            events,
            stop: Arc::clone(&stop),
            last: Instant::now(),
        };
        let pool = pool::with_threads(threads).map_err(Failure::from)?;
        let thread = std::thread::spawn(move || {
            let workers = backend.map(Backend::workers);
            let work = || match &claim {
                Some(claim) => run_kept(&job, claim, workers.as_ref(), &mut reporter),
                None => {
                    let equipment = Equipment {
                        workers: workers.as_ref(),
                        ..Equipment::default()
                    };
                    job.run_with(equipment, &mut reporter)
                }
            };
            let work = AssertUnwindSafe(|| pool.install(work));
            let done = catch_unwind(work);
            drop(workers);
            drop(reporter); // nobody is listened to any more
            done
        });
        let interrupted = wait(py, heard, &stop, hear.as_ref())?;
        let panicked = || PyRuntimeError::new_err("the fit failed unexpectedly; please report it");
        let done = py.detach(|| thread.join()).map_err(|_| panicked())?;
        match done.map_err(|_| panicked())? {
            Ok(outcome) => {
                let mut fit = outcome.fit;
                fit.name = UNSAVED_NAME.into();
                Ok((Fit(fit), interrupted))
            }
            Err(Error::Stopped) if interrupted => Err(PyKeyboardInterrupt::new_err(
                "the fit was stopped before anything was learned",
            )),
            Err(error) => Err(Failure::from(error).into()),
        }
    }
}

/// Fits with what it comes to kept on the way, as long as it is not finished.
fn run_kept(
    job: &latens::Job,
    claim: &Claim,
    workers: Option<&Workers>,
    reporter: &mut Reporter,
) -> std::result::Result<latens::Outcome, Error> {
    let events = reporter.events.clone();
    let unfinished = claim.checkpoints(&job.begun(), move |error| {
        let _ = events.send(Event::Warning(error.at(Door::Python)));
    })?;
    let equipment = Equipment {
        checkpoints: Checkpoints::new(&unfinished),
        workers,
    };
    let outcome = job.run_with(equipment, reporter);
    let finished = match &outcome {
        Ok(outcome) => !outcome.fit.facts.stopped,
        // it would diverge again
        Err(error) => matches!(error, Error::Diverged(_)),
    };
    if finished {
        claim.forget_checkpoints();
    }
    outcome
}

/// Some methods of others put something else in place of the model's networks.
fn refuse_rival(name: &str) -> Result<()> {
    let mut rivals = Rival::ALL.into_iter();
    if rivals.any(|rival| rival.name() == name && !rival.learns_theta()) {
        return Err(setting(format!(
            "{name} puts something else in place of the model's networks and leaves no fit; `latens fit --solver {name}` writes its states and scores"
        )));
    }
    Ok(())
}

/// Until the fit has ended; whether Ctrl-C ended it. A second one does not wait for that.
fn wait(
    py: Python,
    mut heard: Receiver<Event>,
    stop: &AtomicBool,
    hear: Option<&Py<PyAny>>,
) -> PyResult<bool> {
    let (mut interrupted, mut failed) = (false, None);
    loop {
        let event;
        (heard, event) = py.detach(move || {
            let event = heard.recv_timeout(SIGNAL_WAIT);
            (heard, event)
        });
        let mut called = Ok(true);
        match (event, hear) {
            (Err(RecvTimeoutError::Disconnected), _) => break,
            (Ok(event), Some(hear)) if failed.is_none() => called = pass_on(py, hear, event),
            _ => {}
        }
        for result in [
            called
                .map(|go_on| stop.fetch_or(!go_on, Ordering::Relaxed))
                .map(drop),
            py.check_signals(),
        ] {
            let Err(error) = result else { continue };
            let pressed = error.is_instance_of::<PyKeyboardInterrupt>(py);
            if interrupted && pressed {
                return Err(error);
            }
            stop.store(true, Ordering::Relaxed);
            if pressed {
                interrupted = true;
            } else {
                failed = failed.or(Some(error));
            }
        }
    }
    failed.map_or(Ok(interrupted), Err)
}

/// Whether the listener wants more.
fn pass_on(py: Python, hear: &Py<PyAny>, event: Event) -> PyResult<bool> {
    let answer = match event {
        Event::Warning(text) => hear.call1(py, ("warning", text)),
        Event::Progress(p) => hear.call1(py, ("progress", p.pass, p.passes, p.step, p.steps)),
        Event::Pass(r) => hear.call1(py, ("pass", r.pass, r.cost.total(), r.free_run)),
    }?;
    let answer = answer.bind(py);
    Ok(answer.is_none() || answer.is_truthy()?)
}
