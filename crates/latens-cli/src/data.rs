//! Records on the command line: what is learned from, what only says how well that went, and what a
//! run is used on.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::estimate::Start;
use latens::fit::Fit;
use latens::fit::run::{self, Facts, Run, Source};
use latens::record::{self, Layout, Mapping, Record, Table};
use latens::{Error, Model, solve};
use latens_report::warnings;

use crate::assignments;
use crate::failure::Failure;

const DATA: &str = "Data";

#[derive(Args)]
pub struct Files {
    #[command(flatten)]
    tables: Tables,
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
}

/// Files, and how their columns are meant.
#[derive(Args)]
pub struct Tables {
    /// Records: .csv, .tsv, .txt with a header line, .parquet, or .mat (MATLAB, up to -v7); each file
    /// is one experiment
    #[arg(required = true)]
    pub data: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: Columns,
}

/// How a new record's start is found.
#[derive(Args)]
pub struct WarmUp {
    /// First samples of a record that is predicted: they show where it starts and are not scored
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
        Ok(self.open(path, layout)?.0)
    }

    /// A file as a record, and which of its columns serve for it.
    pub fn open(
        &self,
        path: &Path,
        layout: &Layout,
    ) -> Result<(Record, Table, record::Columns), Failure> {
        let mapping = Mapping::parse(&self.map)?;
        let table = Table::read(path)?;
        let columns = record::Columns::find(&table, layout, &mapping)?;
        let record = Record::from_table(&table, layout, &mapping, self.step)?;
        Ok((record, table, columns))
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
    record: Record,
    warm_up: usize,
}

impl Files {
    pub fn read(&self, model: &Model) -> Result<Records, Failure> {
        let layout = model.layout();
        let read = |path: &PathBuf| self.tables.columns.read(path, &layout);
        let data = &self.tables.data;
        let mut files: Vec<PathBuf> = data.iter().chain(&self.validate).cloned().collect();
        let mut all = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let trained = data.len();
        // files to validate with are the better test, and the command line's word
        let of_model = model.fit.validate_tail.filter(|_| self.validate.is_empty());
        if let Some(part) = self.validate_tail.or(of_model) {
            files.extend_from_within(..);
            let (heads, tails): (Vec<_>, Vec<_>) = all.iter().map(|r| r.cut(part)).unzip();
            all = heads;
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
            run::check_test(&file.display().to_string(), &test.record, warm_up)?;
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
            doubts.extend(facts.test(fit, &source, test.warm_up));
        }
        Ok(doubts)
    }

    /// All of them, the tests last.
    pub fn each(&self) -> Vec<&Record> {
        let tests = self.tests.iter().map(|t| &t.record);
        self.all.iter().chain(tests).collect()
    }

    /// Records whose step is not the one that the model states.
    pub fn step_warnings(&self, model: &Model) -> Vec<String> {
        let each = self.files.iter().zip(&self.all);
        let each = each.filter_map(|(path, record)| {
            warnings::step(model, &path.display().to_string(), record)
        });
        let mut warnings: Vec<String> = each.collect();
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
    #[command(flatten)]
    tables: Tables,
}

impl Use {
    /// The run, and its name as it was given.
    pub fn run(&self) -> Result<(Run, String), Failure> {
        Ok((run::load(&self.run)?, self.run.display().to_string()))
    }

    pub fn count(&self) -> usize {
        self.tables.data.len()
    }

    /// The files with their records.
    pub fn read(&self, model: &Model) -> Result<Vec<(&Path, Record)>, Failure> {
        let layout = model.layout();
        let each = self.tables.data.iter();
        each.map(|path| Ok((path.as_path(), self.tables.columns.read(path, &layout)?)))
            .collect()
    }
}
