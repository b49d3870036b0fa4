//! A fit on its own threads. The thread that called waits for it, lets Python run meanwhile, hears of
//! Ctrl-C and passes reports on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use latens::check::Check;
use latens::estimate::Start;
use latens::fit::run::{self, About, Facts, Files, Run};
use latens::solve::{self, Data, Given, Observer, PassReport, Progress, Settings};
use latens::{Error, Record};
use latens_report::{Shown, sight, warnings};
use latens_rivals::{LEAVES_NO_RUN, Trained, refuse};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::errors::{Failure, Result, setting};
use crate::fit::Fit;
use crate::model::Model;
use crate::pool;
use crate::record::Source;

/// What a fit that is in no folder calls itself.
pub const NAME: &str = "this fit";

/// How long a signal may wait.
const SIGNALS: Duration = Duration::from_millis(50);
/// Between two reports of a pass on its way.
const REPORTS: Duration = Duration::from_millis(100);

/// What a fit says on its way.
enum Event {
    Warning(String),
    Progress(Progress),
    Epoch(PassReport),
}

struct Reporter {
    events: Sender<Event>,
    stop: Arc<AtomicBool>,
    last: Instant,
    warnings: Vec<String>,
}

impl Reporter {
    /// Nobody listens any more where the caller has left.
    fn say(&self, event: Event) -> bool {
        self.events.send(event).is_ok() && !self.stop.load(Ordering::Relaxed)
    }
}

impl Observer for Reporter {
    fn checked(&mut self, check: &Check) {
        self.warnings = sight::warnings(check);
        for warning in &self.warnings {
            self.say(Event::Warning(warning.clone()));
        }
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        if self.last.elapsed() < REPORTS {
            return !self.stop.load(Ordering::Relaxed);
        }
        self.last = Instant::now();
        self.say(Event::Progress(*progress))
    }

    fn epoch(&mut self, report: &PassReport) -> bool {
        self.say(Event::Epoch(report.clone()))
    }
}

/// Where a record came from: its file and the checksum of that.
type Origin = (String, String);

fn source<'r>((file, sha256): &Origin, record: &'r Record) -> run::Source<'r> {
    run::Source {
        file: file.clone(),
        sha256: sha256.clone(),
        record,
    }
}

/// All that a fit needs.
struct Job {
    model: latens::Model,
    about: About,
    origins: Vec<Origin>,
    records: Vec<Record>,
    trained: usize,
    /// With the samples of their warm-up.
    tests: Vec<(Origin, Record, usize)>,
    settings: Settings,
    resumed: Option<Run>,
}

impl Job {
    /// The run as files and as it is shown.
    fn work(self, reporter: &mut Reporter) -> std::result::Result<(Files, Shown), Error> {
        let (settings, started) = (&self.settings, Instant::now());
        let pairs = || self.origins.iter().zip(&self.records);
        let sources: Vec<run::Source> = pairs().map(|(o, r)| source(o, r)).collect();
        if let Some(run) = &self.resumed {
            run.belongs_to(&self.model, &sources, self.trained)?;
        }
        if settings.solver.is_rival() {
            refuse(settings.solver, self.resumed.is_some(), false)?;
            if LEAVES_NO_RUN.contains(&settings.solver) {
                return Err(Error::Setting(format!(
                    "{} puts something else in place of the model's networks and leaves no run; `latens fit --solver {0}` writes its states and scores",
                    settings.solver.name()
                )));
            }
        }
        for (origin, test, warm_up) in &self.tests {
            run::check_test(&origin.0, test, *warm_up)?;
        }
        let steps = pairs().filter_map(|(o, r)| warnings::step(&self.model, &o.0, r));
        let mut said: Vec<String> = steps.collect();
        // both parts of a cut record say the same
        said.dedup();
        for warning in &said {
            reporter.say(Event::Warning(warning.clone()));
        }
        let (train, validate) = self.records.split_at(self.trained);
        let data = Data { train, validate };
        let trained = match &self.resumed {
            _ if settings.solver.is_rival() => {
                latens_rivals::train(&self.model, data, settings, reporter)?
            }
            Some(run) => solve::resume(run, data, settings, reporter)?.into(),
            None => solve::fit_validated(&self.model, data, settings, reporter)?.into(),
        };
        let Trained::Fit(fit) = trained else {
            return Err(Error::Setting("this solver leaves no run".into()));
        };
        let about = About {
            seconds: started.elapsed().as_secs_f64(),
            threads: settings.solver.threads(),
            ..self.about
        };
        let mut facts = Facts::new(&fit, &sources, about);
        let mut doubts = vec![];
        for (origin, test, warm_up) in &self.tests {
            doubts.extend(facts.test(&fit, &source(origin, test), *warm_up));
        }
        let tests = self.tests.iter().map(|(_, test, _)| test);
        let records: Vec<&Record> = self.records.iter().chain(tests).collect();
        said.append(&mut reporter.warnings);
        for warning in warnings::of_fit(&fit, &facts, &records, doubts) {
            reporter.say(Event::Warning(warning.clone()));
            said.push(warning);
        }
        facts.warnings = said;
        let files = run::files(&fit, &sources, &facts)?;
        let shown = Shown::from_files(&files, NAME)?;
        Ok((files, shown))
    }
}

/// Fits a model, or goes on with a fit.
///
/// `settings` is the text of a `[fit]` section. `hear` is called with `("warning", text)`,
/// `("progress", epoch, epochs, step, steps)` and `("epoch", number, cost, free_run)`; where it gives
/// `False`, the fit stops. Gives the fit and whether Ctrl-C ended it.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn fit(
    py: Python,
    model: &Model,
    records: Vec<PyRefMut<Source>>,
    validate: Vec<PyRefMut<Source>>,
    tests: Vec<PyRefMut<Source>>,
    warm_up: Option<usize>,
    settings: &str,
    threads: Option<usize>,
    model_file: String,
    command: String,
    resumed: Option<&Fit>,
    hear: Option<Py<PyAny>>,
) -> PyResult<(Fit, bool)> {
    let job = job(
        &model.0,
        (records, validate, tests),
        warm_up,
        settings,
        About {
            model_file,
            command,
            ..About::default()
        },
        resumed,
    )?;
    let (events, heard) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let mut reporter = Reporter {
        events,
        stop: Arc::clone(&stop),
        last: Instant::now(),
        warnings: vec![],
    };
    let pool = pool::of(threads).map_err(Failure::from)?;
    let thread = std::thread::spawn(move || {
        let work = AssertUnwindSafe(|| pool.install(|| job.work(&mut reporter)));
        catch_unwind(work)
    });
    let interrupted = wait(py, heard, &stop, hear.as_ref())?;
    let panicked = || PyRuntimeError::new_err("the fit failed unexpectedly; please report it");
    let done = py.detach(|| thread.join()).map_err(|_| panicked())?;
    match done.map_err(|_| panicked())? {
        Ok((files, shown)) => Ok((Fit { shown, files }, interrupted)),
        Err(Error::Stopped) if interrupted => Err(PyKeyboardInterrupt::new_err(
            "the fit was stopped before anything was learned",
        )),
        Err(error) => Err(Failure::from(error).into()),
    }
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
            let event = heard.recv_timeout(SIGNALS);
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
            match pressed {
                true => interrupted = true,
                false => failed = failed.or(Some(error)),
            }
        }
    }
    failed.map_or(Ok(interrupted), Err)
}

/// Whether the listener wants more.
fn pass_on(py: Python, hear: &Py<PyAny>, event: Event) -> PyResult<bool> {
    let answer = match event {
        Event::Warning(text) => hear.call1(py, ("warning", text)),
        Event::Progress(p) => hear.call1(py, ("progress", p.epoch, p.epochs, p.step, p.steps)),
        Event::Epoch(r) => hear.call1(py, ("epoch", r.epoch, r.cost.total(), r.free_run)),
    }?;
    let answer = answer.bind(py);
    Ok(answer.is_none() || answer.is_truthy()?)
}

/// The name of the solver and the number of starts that settings come to.
#[pyfunction]
pub fn plan(model: &Model, settings: &str, resumed: Option<&Fit>) -> Result<(&'static str, usize)> {
    let (_, settings) = resolved(&model.0, settings, resumed)?;
    let starts = settings.starts.max(settings.ensemble);
    Ok((settings.solver.name(), starts))
}

/// What a text of settings gives, and all settings that it comes to: over the model's own, or over those
/// of a fit that goes on.
fn resolved(model: &latens::Model, text: &str, resumed: Option<&Fit>) -> Result<(Given, Settings)> {
    let given = model.settings("settings", text)?;
    let settings = match resumed {
        Some(fit) => {
            let mut settings = fit.shown.run.facts.settings.clone();
            settings.solver = given.solver.unwrap_or(settings.solver);
            given.onto(&mut settings);
            settings
        }
        None => Given::settings(&[&model.fit, &given])?,
    };
    settings.check(model)?;
    Ok((given, settings))
}

/// Those learned from, those that validate, and those that test.
type Sources<'py> = (
    Vec<PyRefMut<'py, Source>>,
    Vec<PyRefMut<'py, Source>>,
    Vec<PyRefMut<'py, Source>>,
);

fn job(
    model: &latens::Model,
    (train, validate, tests): Sources,
    warm_up: Option<usize>,
    text: &str,
    about: About,
    resumed: Option<&Fit>,
) -> Result<Job> {
    let (given, settings) = resolved(model, text, resumed)?;
    let taken = |mut source: PyRefMut<Source>| {
        let origin = (source.file.clone(), source.sha256.clone());
        (origin, source.take())
    };
    let (trained, validated) = (train.len(), !validate.is_empty());
    let pairs = train.into_iter().chain(validate).map(taken);
    let (mut origins, mut records): (Vec<Origin>, Vec<Record>) = pairs.unzip();
    if validated && given.validate_tail.is_some() {
        return Err(setting(
            "records to validate with and a tail of every record (validate_tail) do not go together; the records are the better test",
        ));
    }
    // and the caller's word over the model's
    let of_model = model.fit.validate_tail.filter(|_| !validated);
    let tail = given.validate_tail.or(of_model);
    if let Some(part) = tail.filter(|_| resumed.is_none()) {
        let (heads, tails): (Vec<_>, Vec<_>) = records.iter().map(|r| r.cut(part)).unzip();
        records = heads;
        records.extend(tails);
        origins.extend_from_within(..);
    }
    let tests = tests.into_iter().map(taken).map(|(origin, test)| {
        let warm_up = warm_up.unwrap_or(Start::samples(&test));
        (origin, test, warm_up)
    });
    Ok(Job {
        model: model.clone(),
        about,
        trained,
        tests: tests.collect(),
        origins,
        records,
        settings,
        resumed: resumed.map(|fit| fit.shown.run.clone()),
    })
}
