//! Records on the command line: what is learned from, what only says how well that went, and what a
//! run is used on.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::estimate::Start;
use latens::fit::Fit;
use latens::fit::run::{self, Facts, RecordFacts, Run, Source};
use latens::record::{Layout, Mapping, Record, Table};
use latens::{Error, Model, solve};

use crate::failure::Failure;
use crate::{assignments, text};

const DATA: &str = "Data";

#[derive(Args)]
pub struct Files {
    /// Records: .csv, .tsv, .txt with a header line, .parquet, or .mat (MATLAB, up to -v7); each file
    /// is one experiment
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// A record that is never learned from: it chooses between the stages of batch and between
    /// starts, and shows how the model does on what it has not seen; may be repeated
    #[arg(long, value_name = "FILE", help_heading = DATA)]
    validate: Vec<PathBuf>,
    /// Keep the last part of every record from the solver, as --validate does with whole files:
    /// 0.2 is the last fifth; below 0.5; not together with --validate, which is the better test
    #[arg(long, value_name = "FRACTION", help_heading = DATA, value_parser = assignments::tail,
          conflicts_with = "validate")]
    validate_tail: Option<f64>,
    /// A record that plays no part in the fit: it is predicted at the end, from the state that its
    /// first samples show, and scored; may be repeated
    #[arg(long, value_name = "FILE", help_heading = DATA)]
    test: Vec<PathBuf>,
    #[command(flatten)]
    warm_up: WarmUp,
    #[command(flatten)]
    columns: Columns,
}

/// How a new record's start is found.
#[derive(Args)]
pub struct WarmUp {
    /// First samples of a test record that show the state it starts from; they are not scored
    /// [default: 100, or a tenth of a shorter record]
    #[arg(long = "warmup", value_name = "K", help_heading = DATA,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    samples: Option<u64>,
}

impl WarmUp {
    pub fn of(&self, record: &Record) -> usize {
        self.samples.map_or(Start::samples(record), |k| k as usize)
    }
}

/// What a file calls the model's names.
#[derive(Args)]
pub struct Columns {
    /// Which column stands for a name of the model: --map q=y_qm_m; `t=` alone ignores the file's
    /// times; may be repeated
    #[arg(long, value_name = "NAME=COLUMN", help_heading = DATA)]
    map: Vec<String>,
    /// Time between samples, for files without a time column [default: the model's step]
    #[arg(long, value_name = "DT", help_heading = DATA, value_parser = assignments::positive)]
    step: Option<f64>,
}

impl Columns {
    pub fn read(&self, path: &Path, layout: &Layout) -> Result<Record, Failure> {
        let mapping = Mapping::parse(&self.map)?;
        let table = Table::read(path)?;
        Ok(Record::from_table(&table, layout, &mapping, self.step)?)
    }
}

/// Records and their files: those learned from, then those that validate; and those that test.
pub struct Records {
    files: Vec<PathBuf>,
    pub all: Vec<Record>,
    trained: usize,
    pub tests: Vec<Test>,
}

/// A record that plays no part in the fit.
pub struct Test {
    file: PathBuf,
    pub record: Record,
    warm_up: usize,
}

impl Files {
    pub fn read(&self, model: &Model) -> Result<Records, Failure> {
        let layout = model.layout();
        let read = |path: &PathBuf| self.columns.read(path, &layout);
        let mut files: Vec<PathBuf> = self.data.iter().chain(&self.validate).cloned().collect();
        let mut all = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let trained = self.data.len();
        if let Some(part) = self.validate_tail {
            files.extend_from_within(..);
            let cut = |r: &Record| r.len() - (part * r.len() as f64).round() as usize;
            let tails: Vec<Record> = all.iter().map(|r| r.slice(cut(r)..r.len())).collect();
            all.iter_mut().for_each(|r| *r = r.slice(0..cut(r)));
            all.extend(tails);
        }
        let mut tests = vec![];
        for file in &self.test {
            let record = read(file)?;
            let warm_up = self.warm_up.of(&record);
            let test = Test {
                file: file.clone(),
                record,
                warm_up,
            };
            test.check()?;
            tests.push(test);
        }
        Ok(Records {
            files,
            all,
            trained,
            tests,
        })
    }
}

impl Test {
    /// What would only come out after the fit.
    fn check(&self) -> Result<(), Failure> {
        let file = self.file.display();
        if self.warm_up >= self.record.len() {
            return Err(Failure::Message(format!(
                "{file} has {} samples, and --warmup takes {}: nothing is left to predict",
                self.record.len(),
                self.warm_up
            )));
        }
        Ok(())
    }

    /// The samples that are predicted.
    pub fn predicted(&self) -> Record {
        self.record.slice(self.warm_up..self.record.len())
    }
}

impl Records {
    pub fn data(&self) -> solve::Data<'_> {
        let (train, validate) = self.all.split_at(self.trained);
        solve::Data { train, validate }
    }

    /// The records with the checksums of their files.
    pub fn sources(&self) -> Result<Vec<Source<'_>>, Error> {
        let each = self.files.iter().zip(&self.all);
        each.map(|(path, record)| source(path, record)).collect()
    }

    /// Predicts the test records and adds their scores; gives the doubts about the predictions.
    pub fn test(&self, fit: &Fit, facts: &mut Facts) -> Result<Vec<String>, Error> {
        let mut doubts = vec![];
        for test in &self.tests {
            let source = source(&test.file, &test.record)?;
            let predictor = fit.predictor();
            let prediction = predictor.predict(&test.record, Start::WarmUp(test.warm_up));
            doubts.extend(facts.doubts(&fit.model, &source.file, &prediction));
            let tested = RecordFacts::tested(&predictor, &source, &prediction);
            facts.records.push(tested);
        }
        Ok(doubts)
    }

    /// Records whose step is not the one that the model states.
    pub fn step_warnings(&self, model: &Model) -> Vec<String> {
        let Some(step) = model.step else {
            return vec![];
        };
        let mut warnings = vec![];
        for (path, record) in self.files.iter().zip(&self.all) {
            if (record.step() - step).abs() > Record::STEP_TOLERANCE * step {
                warnings.push(format!(
                    "{} has a step of {}, the model one of {}; the record's is used",
                    path.display(),
                    text::number(record.step()),
                    text::number(step)
                ));
            }
        }
        // both parts of a cut record say the same
        warnings.dedup();
        warnings
    }
}

/// A record with the checksum of its file.
pub fn source<'r>(path: &Path, record: &'r Record) -> Result<Source<'r>, Error> {
    Ok(Source {
        file: path.display().to_string(),
        sha256: run::checksum(path)?,
        record,
    })
}

/// A run, and the records that it is used on.
#[derive(Args)]
pub struct Use {
    /// The run folder that `latens fit` wrote
    run: PathBuf,
    /// Records: .csv, .tsv, .txt with a header line, or .mat (MATLAB, up to -v7); each file is one
    /// experiment
    #[arg(required = true)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    columns: Columns,
}

impl Use {
    /// The run, and its name as it was given.
    pub fn run(&self) -> Result<(Run, String), Failure> {
        Ok((run::load(&self.run)?, self.run.display().to_string()))
    }

    pub fn count(&self) -> usize {
        self.data.len()
    }

    /// The files with their records.
    pub fn read(&self, model: &Model) -> Result<Vec<(&Path, Record)>, Failure> {
        let layout = model.layout();
        let each = self.data.iter();
        each.map(|path| Ok((path.as_path(), self.columns.read(path, &layout)?)))
            .collect()
    }
}
