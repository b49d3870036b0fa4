//! The one trunk that every door goes through: a model, records by role and settings become a fit
//! with its facts and warnings.
//!
//! ```
//! use latens::simulate::{Simulation, simulate};
//! use latens::{Job, Model, Role, Silent, Source};
//!
//! let model = Model::builtin("harmonic-oscillator")?;
//! let record = simulate(&model, &Simulation { steps: Some(300), ..Simulation::default() })?;
//! let mut job = Job::new(model)?;
//! job.settings.passes = 2;
//! job.add(Role::Train, Source::of_record(record, &job.model)?);
//! let outcome = job.run(&mut Silent)?;
//! assert_eq!(outcome.fit.facts.records[0].role, Role::Train);
//! # Ok::<(), latens::Error>(())
//! ```

use std::time::Instant;

use crate::Error;

use crate::fit::begun::{Begun, BegunRecord};
use crate::fit::learn::{Data, learn, resume};
use crate::fit::{Fit, Foreseen, PredictOptions, RecordFacts, Role, Start, Warning};
use crate::look::{Check, Suspect};
use crate::model::Model;
use crate::model::settings::{Settings, SettingsLayer};
use crate::record::{Record, Source, sha256};
use crate::solve::{self, Equipment, Observer, PassReport, Progress, Trial, registry};

/// What to fit, to what, and how.
#[derive(Debug, Clone)]
pub struct Job {
    /// The model, as it was read.
    pub model: Model,
    /// The model as the user named it: a file or an embedded system.
    pub model_file: String,
    /// What repeats the fit: a command line, or a call.
    pub command: String,
    /// Learned from.
    pub train: Vec<Source>,
    /// Never learned from: they choose between stages and between starts.
    pub validate: Vec<Source>,
    /// They play no part, and are predicted at the end.
    pub test: Vec<Source>,
    /// First samples of a test, which show where it starts; where nobody says, [`Start::samples`].
    pub warm_up: Option<usize>,
    /// All settings.
    pub settings: Settings,
    /// A fit to go on with.
    pub resumed: Option<Fit>,
    /// What a fit that was killed was begun with, to go on from its checkpoints.
    pub begun: Option<Begun>,
}

/// What came of a job.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The fit; [`Fit::facts`] has the warnings too.
    pub fit: Fit,
    /// What to know before it is used.
    pub warnings: Vec<Warning>,
}

/// The settings of a model's `[fit]` section with layers over it.
fn resolved(model: &Model, layers: &[&SettingsLayer]) -> Result<Settings, Error> {
    // a solver that nobody overrides is shown where it stands
    if layers.iter().all(|layer| layer.solver.is_none()) {
        let known = solve::solvers();
        let known: Vec<&str> = known.iter().map(|solver| solver.name()).collect();
        model.check_solver(&known)?;
    }
    let all: Vec<&SettingsLayer> = std::iter::once(&model.fit)
        .chain(layers.iter().copied())
        .collect();
    solve::resolve(&all)
}

/// The model as a job with these settings over its own would take it: constants fixed and freed.
///
/// # Errors
/// [`Error::Setting`] for a constant that there is not, or a value outside of its bounds.
pub fn held(model: &Model, given: &SettingsLayer) -> Result<Model, Error> {
    let mut settings = Settings::default();
    model.fit.onto(&mut settings);
    given.onto(&mut settings);
    Ok(model.for_settings(&settings)?)
}

/// Watches a job: what a fit's observer sees, and warnings as they come.
pub trait Watch: Observer {
    /// Something to know.
    fn warning(&mut self, _warning: &Warning) {}
}

impl Watch for solve::Silent {}

impl Job {
    /// A job with the settings of the model's own `[fit]` section.
    ///
    /// # Errors
    /// [`Error::Model`] for a solver that there is not.
    pub fn new(model: Model) -> Result<Self, Error> {
        let settings = resolved(&model, &[])?;
        Ok(Self::with_settings(model, settings))
    }

    /// A job whose settings are still to come, with [`Job::configure`].
    pub fn new_unset(model: Model) -> Self {
        Self::with_settings(model, solve::BUILT_IN_SOLVERS[0].settings())
    }

    /// A job with settings.
    pub fn with_settings(model: Model, settings: Settings) -> Self {
        Self {
            model_file: model.name.clone(),
            model,
            command: String::new(),
            train: vec![],
            validate: vec![],
            test: vec![],
            warm_up: None,
            settings,
            resumed: None,
            begun: None,
        }
    }

    /// A job that fits another model to the records of a fit, with its settings and from one start.
    pub fn again(fit: &Fit, model: Model) -> Self {
        let mut settings = fit.facts.settings.clone();
        (settings.starts, settings.ensemble) = (1, 1);
        // those of the tracks are set aside already
        settings.keep_suspects = true;
        let mut job = Self::with_settings(model, settings);
        for track in &fit.tracks {
            job.add(fit.facts_of(track).role, fit.source(track));
        }
        job
    }

    /// Settings over the model's own, or over those of the fit that is gone on with.
    ///
    /// ```
    /// use latens::{Job, Model};
    ///
    /// let mut job = Job::new(Model::builtin("harmonic-oscillator")?)?;
    /// let given = job.model.settings("a call", "[fit]\nseed = 5\nsolver = \"joint\"")?;
    /// job.configure(&given)?;
    /// assert_eq!((job.settings.seed, job.settings.solver.as_str()), (5, "joint"));
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] where they make no sense, [`Error::Model`] where the model's own name a solver
    /// that there is not.
    pub fn configure(&mut self, given: &SettingsLayer) -> Result<(), Error> {
        let resumed = self.resumed.as_ref().map(|fit| &fit.facts.settings);
        let before = self.begun.as_ref().map(|begun| &begun.settings);
        self.settings = match before.or(resumed) {
            Some(before) => {
                let mut settings = before.clone();
                given.onto(&mut settings);
                settings
            }
            None => resolved(&self.model, &[given])?,
        };
        registry::check(&self.settings, &self.model)
    }

    /// Adds a record.
    pub fn add(&mut self, role: Role, source: Source) {
        match role {
            Role::Train => self.train.push(source),
            Role::Validate => self.validate.push(source),
            Role::Test => self.test.push(source),
        }
    }

    /// Keeps the last part of every record from the solver, to validate with: what the caller gives,
    /// or else what the model's `[fit]` says, where there are no records to validate with.
    ///
    /// ```
    /// let mut job = latens::Job::new(latens::Model::builtin("harmonic-oscillator")?)?;
    /// # let record = latens::example_fit().tracks[0].record.clone();
    /// job.add(latens::Role::Train, latens::Source::of_record(record, &job.model)?);
    /// job.validate_tail(Some(0.2))?;
    /// assert_eq!(job.validate.len(), 1);
    /// assert!(job.validate[0].record.len() < job.train[0].record.len());
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] where both are given.
    pub fn validate_tail(&mut self, given: Option<f64>) -> Result<(), Error> {
        if !self.validate.is_empty() && given.is_some() {
            return Err(Error::Setting("records to validate with and a tail of every record (⟦validate_tail⟧) do not go together; the records are the better test".into()));
        }
        let of_model = self.model.fit.validate_tail;
        let of_model = of_model.filter(|_| self.validate.is_empty());
        if let Some(part) = given.or(of_model) {
            for source in &mut self.train {
                let (head, tail) = source.record.cut(part);
                source.record = head;
                self.validate.push(Source {
                    record: tail,
                    ..source.clone()
                });
            }
        }
        Ok(())
    }

    /// Its records that play a part.
    pub fn data(&self) -> Data<'_> {
        Data {
            train: &self.train,
            validate: &self.validate,
        }
    }

    /// What can be known to be wrong before time is spent.
    ///
    /// # Errors
    /// [`Error::Setting`] with what it is.
    pub fn check(&self) -> Result<(), Error> {
        registry::check(&self.settings, &self.model)?;
        if let Some(begun) = &self.begun {
            begun.belongs_to(&self.model, self.data())?;
            solve::same_solver(&begun.settings, &self.settings)?;
        }
        if let Some(fit) = &self.resumed {
            Begun::of_facts(&fit.facts).belongs_to(&self.model, self.data())?;
        }
        for test in self.test.iter().filter(|_| !self.settings.keep_suspects) {
            crate::fit::refuse_suspects(&self.model, test)?;
        }
        for test in &self.test {
            let warm_up = self.warm_up_of(&test.record);
            if warm_up >= test.record.len() {
                return Err(Error::Setting(format!(
                    "{} has {} samples, and ⟦warmup⟧ takes {warm_up}: nothing is left to predict",
                    test.file,
                    test.record.len()
                )));
            }
        }
        Ok(())
    }

    /// The same with records of so many states: a constant that varies has one where it is learned and there are
    /// several records, after all others.
    fn of_states(&self, states: usize) -> Self {
        let narrowed = |sources: &[Source]| {
            let sources = sources.iter().map(|source| Source {
                record: source.record.sized(source.record.d_u, 0.0, states),
                ..source.clone()
            });
            sources.collect()
        };
        Self {
            train: narrowed(&self.train),
            validate: narrowed(&self.validate),
            test: narrowed(&self.test),
            ..self.clone()
        }
    }

    fn warm_up_of(&self, record: &Record) -> usize {
        self.warm_up.unwrap_or(Start::samples(record))
    }

    /// What it begins with.
    pub fn begun(&self) -> Begun {
        let records = self.data().by_role().into_iter();
        let records = records.map(|(role, source)| BegunRecord {
            file: source.file.clone(),
            role,
            samples: source.record.len(),
            sha256: source.sha256.clone(),
            group: source.group.clone(),
        });
        Begun {
            command: self.command.clone(),
            model_file: self.model_file.clone(),
            model_sha256: sha256(self.model.text.as_bytes()),
            records: records.collect(),
            settings: self.settings.clone(),
        }
    }

    /// Fits, predicts the tests, and says what to know.
    ///
    /// # Errors
    /// Those of [`Job::check`], divergence, or a stop before anything was learned.
    pub fn run(&self, watch: &mut dyn Watch) -> Result<Outcome, Error> {
        self.run_with(Equipment::default(), watch)
    }

    /// The same, with what it comes to on the way kept, so that parts that are there already are not made
    /// again, and with workers that have the records.
    ///
    /// # Errors
    /// Those of [`Job::run`].
    pub fn run_with(&self, equipment: Equipment, watch: &mut dyn Watch) -> Result<Outcome, Error> {
        self.check()?;
        let fitted = self.model.for_settings(&self.settings)?;
        let states = fitted.for_records(self.train.len())?.states.len();
        let mut sources = self.train.iter().chain(&self.validate).chain(&self.test);
        if sources.any(|source| source.record.d_x != states) {
            return self.of_states(states).run_with(equipment, watch);
        }
        let started = Instant::now();
        let sources = self.train.iter().chain(&self.validate);
        let files = sources.clone().map(|s| (s.file.as_str(), &s.record));
        let mut warnings = Warning::of_steps(&self.model, files);
        warnings.iter().for_each(|warning| watch.warning(warning));
        let mut listener = Listener {
            watch,
            warnings: vec![],
        };
        let learned = match &self.resumed {
            Some(fit) => resume(fit, self.data(), &self.settings, equipment, &mut listener),
            None => learn(
                &self.model,
                self.data(),
                &self.settings,
                equipment,
                &mut listener,
            ),
        };
        warnings.append(&mut listener.warnings);
        let mut fit = learned?;
        told_at_last(&mut warnings, &fit.facts.suspects, listener.watch);
        self.sign(&mut fit, started.elapsed().as_secs_f64());
        let (tests, doubts) = self.predict_tests(&mut fit)?;
        let records = fit.tracks.iter().map(|t| &t.record).chain(&tests);
        let said = Warning::of_fit(&fit, &records.collect::<Vec<_>>(), doubts);
        said.iter().for_each(|warning| watch.warning(warning));
        warnings.extend(said);
        warnings.retain(|warning| !fit.facts.has_answered(warning));
        fit.all_facts().for_each(|facts| facts.told(&warnings));
        fit.facts.warnings = warnings.clone();
        Ok(Outcome { fit, warnings })
    }

    /// Writes down who asked for a fit, and how long it took.
    fn sign(&self, fit: &mut Fit, seconds: f64) {
        let threads = fit.facts.threads;
        for facts in fit.all_facts() {
            facts.model_file.clone_from(&self.model_file);
            facts.command.clone_from(&self.command);
            facts.seconds = seconds;
            facts.threads = threads;
        }
    }

    /// Predicts the records that played no part and adds their scores; gives what of them was scored,
    /// and the doubts about them.
    fn predict_tests(&self, fit: &mut Fit) -> Result<(Vec<Record>, Vec<Warning>), Error> {
        let (mut records, mut doubts) = (vec![], vec![]);
        for source in &self.test {
            let options = PredictOptions {
                warm_up: Some(self.warm_up_of(&source.record)),
                ..PredictOptions::default()
            };
            let predicted = fit.predict(source, &options)?;
            let mut known = fit.facts.records.iter();
            if known.any(|r| r.sha256 == source.sha256) {
                doubts.push(Warning::TestPlayedPart {
                    file: source.file.clone(),
                });
            }
            doubts.extend(predicted.warnings);
            let mut used = source.record.clone();
            for suspect in &predicted.facts.suspects {
                let channels = fit.model.measurements.iter();
                let same = channels.map(|m| m.name == suspect.channel);
                let row = used.outputs[(suspect.row - 1) * used.d_y..].iter_mut();
                row.zip(same)
                    .filter(|(_, same)| *same)
                    .for_each(|(y, _)| *y = f64::NAN);
            }
            let place = fit.facts.records.len();
            fit.tests
                .push(Foreseen::new(place, &used, &predicted.prediction));
            records.push(used);
            fit.facts.suspects.extend(predicted.facts.suspects);
            fit.facts.records.push(RecordFacts {
                role: Role::Test,
                ..predicted.facts.record
            });
        }
        Ok((records, doubts))
    }
}

/// Fits a model to records with the settings of the model's own `[fit]` section.
///
/// # Errors
/// Those of [`Job::run`].
pub fn fit(model: &Model, records: &[Record]) -> Result<Fit, Error> {
    let mut job = Job::new(model.clone())?;
    for record in records {
        job.add(Role::Train, Source::of_record(record.clone(), model)?);
    }
    Ok(job.run(&mut solve::Silent)?.fit)
}

/// What was said of suspect readings before the fit, as it is after it; said again where others were
/// set aside.
fn told_at_last(warnings: &mut Vec<Warning>, suspects: &[Suspect], watch: &mut dyn Watch) {
    let places = |warnings: &[Warning]| -> Vec<(String, usize, String)> {
        let readings = warnings.iter().flat_map(|w| match w {
            Warning::SuspectReadings { readings, .. } => readings.as_slice(),
            _ => &[],
        });
        readings
            .map(|s| (s.file.clone(), s.row, s.channel.clone()))
            .collect()
    };
    let last = Warning::of_suspects(suspects);
    if places(&last) != places(warnings) {
        last.iter().for_each(|warning| watch.warning(warning));
    }
    warnings.retain(|w| !matches!(w, Warning::SuspectReadings { .. }));
    warnings.extend(last);
}

/// Passes on what a fit says, and makes warnings of its first look.
struct Listener<'w> {
    watch: &'w mut dyn Watch,
    warnings: Vec<Warning>,
}

impl Observer for Listener<'_> {
    fn checked(&mut self, check: &Check) {
        self.warnings = Warning::of_check(check);
        for warning in &self.warnings {
            self.watch.warning(warning);
        }
        self.watch.checked(check);
    }

    fn again(&mut self, suspects: &[Suspect]) {
        self.watch.again(suspects);
    }

    fn trying(&mut self, trial: Option<Trial>) {
        self.watch.trying(trial);
    }

    fn goes_on(&mut self) -> bool {
        self.watch.goes_on()
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        self.watch.progress(progress)
    }

    fn pass(&mut self, report: &PassReport) -> bool {
        self.watch.pass(report)
    }
}
