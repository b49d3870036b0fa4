//! What a rival leaves that puts something else in the place of the model's networks: a folder has no
//! weights for it, so states and scores are all that there is.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use latens::fit::RecordFacts;
use latens::fit::table::append;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::record::{Layout, Source, Table, write_atomic, write_csv};
use latens::{Error, Role, Trajectory, text};
use latens_report::outputs::{FitOutput, FitSummary};
use latens_report::summary;
use serde_json::json;

use super::{Outcome, Rival};

/// The names of these rivals.
pub const WITHOUT_FIT: [&str; 2] = ["node-lstm", "pr-ssm"];

/// The file of a folder that holds the scores.
pub const SCORES_FILE: &str = "scores.json";

/// What stands beside the numbers.
const NO_FIT_WORDS: &str = "put something else in place of the model file's networks: the folder holds states and scores, and no fit that predict, estimate, simulate or stream could use";

/// The rival of a name, where it is one that leaves no fit.
pub fn without_fit(name: &str) -> Option<Rival> {
    let mut all = Rival::ALL.into_iter();
    all.find(|rival| rival.name() == name && !rival.learns_theta())
}

/// How a rival was trained.
pub struct Training<'a> {
    /// Which one.
    pub rival: Rival,
    /// Its seed.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
    /// What it learned from, then what it was validated with.
    pub sources: Vec<&'a Source>,
}

/// The states and scores that it leaves.
pub struct States<'a> {
    training: Training<'a>,
    outcome: Outcome,
    runs: Vec<Trajectory>,
    facts: Vec<RecordFacts>,
}

impl<'a> States<'a> {
    /// A free run over each record, with its scores.
    pub fn new(outcome: Outcome, training: Training<'a>) -> Self {
        let sources = training.sources.iter().enumerate();
        let (runs, facts) = sources
            .map(|(k, source)| {
                let (run, role) = match outcome.runs.get(k) {
                    Some(run) => (run.clone(), Role::Train),
                    None => (outcome.predict(&source.record, None), Role::Validate),
                };
                let facts = scored(&outcome, source, role, &run);
                (run, facts)
            })
            .unzip();
        Self {
            training,
            outcome,
            runs,
            facts,
        }
    }

    /// What `latens fit --json` prints of it.
    pub fn output(&self, folder: &Path) -> FitOutput {
        let name = self.training.rival.name();
        FitOutput {
            run: folder.display().to_string(),
            report: None,
            found: FitSummary {
                findings: vec![],
                residuals: vec![],
                alarms: vec![],
                verdict: vec![],
                solver: name.into(),
                seed: self.training.seed,
                seconds: self.training.seconds,
                warnings: vec![],
                suspects: vec![],
                records: self.facts.clone(),
                unknowns: vec![],
                correlation: vec![],
                fixed: BTreeMap::new(),
                evidence: None,
                determined: None,
                directions: None,
                parts: None,
                relevance: vec![],
                attempts: vec![],
                noise: BTreeMap::new(),
                stopped: self.outcome.stopped,
                ensemble: vec![],
                structure: latens::model::network::Structure::Whole,
                rungs: vec![],
                contradicted: false,
                in_pieces: false,
                proof: None,
            },
            note: Some(format!("{name} {NO_FIT_WORDS}")),
        }
    }

    /// The same for people.
    pub fn text(&self, folder: &Path) -> String {
        let (name, model) = (self.training.rival.name(), &self.outcome.model);
        let mut out = format!(
            "{}: {name}, seed {}, {}\n",
            summary::title(model),
            self.training.seed,
            text::seconds(self.training.seconds)
        );
        for record in &self.facts {
            let samples = text::count(record.samples, "sample");
            out += &format!("\n{}, {samples}\n", record.file);
            out += &summary::predicted(model, record);
        }
        format!(
            "{out}\n{name} {NO_FIT_WORDS}\nwritten to {}\n",
            folder.display()
        )
    }

    /// Writes a table of states for each record, and the scores.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let failed = |source| Error::Io {
            action: "write",
            path: folder.into(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let sources = &self.training.sources;
        for (k, (source, run)) in sources.iter().zip(&self.runs).enumerate() {
            let file = match sources.len() {
                1 => "states.csv".into(),
                _ => format!("states_{}.csv", k + 1),
            };
            write_csv(folder.join(file), &self.table(source, run)?)?;
        }
        let shown = format!("{:#}\n", json!(self.output(folder)));
        write_atomic(&folder.join(SCORES_FILE), |out| {
            out.write_all(shown.as_bytes())
        })
        .map_err(failed)
    }

    /// A record with the free run over it, under the names that a fit's states.csv has.
    fn table(&self, source: &Source, run: &Trajectory) -> Result<Table, Error> {
        let (model, record) = (&self.outcome.model, &source.record);
        let known = record.to_table(&Layout::of(model))?;
        let mut columns = known.columns().to_vec();
        let states = model.states.iter().map(|s| s.name.as_str());
        append(&mut columns, states, &[("free_run", run)]);
        Ok(Table::new(&record.name, columns)?)
    }
}

/// The scores of a free run.
fn scored(outcome: &Outcome, source: &Source, role: Role, run: &Trajectory) -> RecordFacts {
    let (model, record) = (&outcome.model, &source.record);
    let stepper = Stepper::over(model, &model.system, outcome.dt, [record]);
    let blank = vec![0.0; model.system.parameters()];
    let outputs = score::outputs(stepper.system(), record, &blank, run);
    RecordFacts::of_free_run(model, source, role, record, &outputs, run)
}
