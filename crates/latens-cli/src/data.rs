//! The records of a fit: what is learned from, and what only says how well that went.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::fit::run::{self, Source};
use latens::record::{Columns, Layout, Mapping, Record, Table};
use latens::{Error, Model, solve};

use crate::failure::Failure;
use crate::{assignments, text};

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
}

/// The files to learn from, and how their columns are meant.
#[derive(Args)]
pub struct Tables {
    /// Records: .csv, .tsv, .txt with a header line, or .mat (MATLAB, up to -v7); each file is one
    /// experiment
    #[arg(required = true)]
    pub data: Vec<PathBuf>,
    /// Which column stands for a name of the model: --map q=y_qm_m; `t=` alone ignores the file's
    /// times; may be repeated
    #[arg(long, value_name = "NAME=COLUMN", help_heading = DATA)]
    map: Vec<String>,
    /// Time between samples, for files without a time column [default: the model's step]
    #[arg(long, value_name = "DT", help_heading = DATA, value_parser = assignments::positive)]
    step: Option<f64>,
}

impl Tables {
    /// A file as a record, and its columns.
    pub fn read(&self, path: &Path, layout: &Layout) -> Result<(Record, Table, Columns), Failure> {
        let mapping = Mapping::parse(&self.map)?;
        let table = Table::read(path)?;
        let columns = Columns::find(&table, layout, &mapping)?;
        let record = Record::from_table(&table, layout, &mapping, self.step)?;
        Ok((record, table, columns))
    }
}

/// Records and their files: those learned from, then those that validate.
pub struct Records {
    files: Vec<PathBuf>,
    pub all: Vec<Record>,
    trained: usize,
}

impl Files {
    pub fn read(&self, model: &Model) -> Result<Records, Failure> {
        let layout = model.layout();
        let read = |path: &PathBuf| Ok::<_, Failure>(self.tables.read(path, &layout)?.0);
        let data = &self.tables.data;
        let mut files: Vec<PathBuf> = data.iter().chain(&self.validate).cloned().collect();
        let mut all = files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let trained = data.len();
        if let Some(part) = self.validate_tail {
            files.extend_from_within(..);
            let cut = |r: &Record| r.len() - (part * r.len() as f64).round() as usize;
            let tails: Vec<Record> = all.iter().map(|r| r.slice(cut(r)..r.len())).collect();
            all.iter_mut().for_each(|r| *r = r.slice(0..cut(r)));
            all.extend(tails);
        }
        Ok(Records {
            files,
            all,
            trained,
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
        let each = self.files.iter().zip(&self.all).map(|(path, record)| {
            Ok(Source {
                file: path.display().to_string(),
                sha256: run::checksum(path)?,
                record,
            })
        });
        each.collect()
    }

    /// Records whose step is not the one that the model states.
    pub fn step_warnings(&self, model: &Model) -> Vec<String> {
        let each = self.files.iter().zip(&self.all);
        let mut warnings: Vec<String> = each
            .filter_map(|(path, record)| step_warning(model, path, record))
            .collect();
        // both parts of a cut record say the same
        warnings.dedup();
        warnings
    }
}

/// A record whose step is not the one that the model states.
pub fn step_warning(model: &Model, path: &Path, record: &Record) -> Option<String> {
    let step = model.step?;
    ((record.step() - step).abs() > Record::STEP_TOLERANCE * step).then(|| {
        format!(
            "{} has a step of {}, the model one of {}; the record's is used",
            path.display(),
            text::number(record.step()),
            text::number(step)
        )
    })
}
