//! Records on the command line: what is learned from, what only says how well that went, and what a
//! fit is used on.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::fit::Start;
use latens::model::suggest::suggest;
use latens::record::{self, Layout, Mapping, Record, STANDARD_INPUT, Source, Table};
use latens::{Error, Fit, Job, Model, Role};

use super::assignments;
use crate::failure::Failure;
use crate::text;

const DATA_HEADING: &str = "Data";

#[derive(Args)]
pub struct Files {
    #[command(flatten)]
    tables: Tables,
    /// Records that are never learned from: they choose between the stages of batch and between
    /// starts, and show how the model does on what it has not seen; after the records to learn from
    #[arg(long, value_name = "FILE", help_heading = DATA_HEADING, num_args = 1..)]
    validate: Vec<PathBuf>,
    /// Records that play no part in the fit: they are predicted at the end, from the state that their
    /// first samples show, and scored; after the records to learn from
    #[arg(long, value_name = "FILE", help_heading = DATA_HEADING, num_args = 1..)]
    test: Vec<PathBuf>,
    #[command(flatten)]
    warm_up: WarmUp,
}

/// Files, and how their columns are meant.
#[derive(Args)]
pub struct Tables {
    /// Records: .csv, .tsv, .txt with a header line, .parquet, or .mat (MATLAB, up to -v7), or - for
    /// the standard input; each file is one experiment
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
    #[arg(long = "warmup", value_name = "K", help_heading = DATA_HEADING, hide_short_help = true,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    samples: Option<u64>,
}

impl WarmUp {
    /// As it was given.
    pub fn given(&self) -> Option<usize> {
        self.samples.map(|k| k as usize)
    }

    /// Of a record.
    pub fn of(&self, record: &Record) -> usize {
        self.given().unwrap_or(Start::samples(record))
    }
}

/// What a file calls the model's names.
#[derive(Args)]
pub struct Columns {
    /// Which column stands for a name of the model: --map q=y_qm_m, or of one file:
    /// week2.csv:q=pos,u=volt; `t=` alone ignores the file's times; may be repeated
    #[arg(long, value_name = "NAME=COLUMN", help_heading = DATA_HEADING)]
    map: Vec<String>,
    /// Time between samples, for files without a time column [default: the model's step]
    #[arg(long, value_name = "DT", help_heading = DATA_HEADING, hide_short_help = true, value_parser = assignments::positive)]
    step: Option<f64>,
    /// The group that records belong to, where a constant varies by group: --group A, or of one file:
    /// --group week2.csv=A; may be repeated [default: what the column `group` says]
    #[arg(long, value_name = "[FILE=]LABEL", help_heading = DATA_HEADING)]
    group: Vec<String>,
}

impl Columns {
    /// A file as a record, with the checksum of what was read.
    pub fn read(&self, path: &Path, layout: &Layout) -> Result<Source, Failure> {
        let (table, mapping) = self.table(path)?;
        let source = Source::of_table(&table, layout, &mapping, self.step)?;
        let given = self.group_of(own_mapping(path).0, layout)?;
        Ok(Source {
            group: given.or(source.group),
            ..source
        })
    }

    /// The label that is given for a file, else for all.
    fn group_of(&self, path: &Path, layout: &Layout) -> Result<Option<String>, Failure> {
        if !layout.groups && !self.group.is_empty() {
            return Err(Failure::Message(
                "--group names a group, and no constant of the model varies by group: write varies = \"group\" at one of [unknowns], or leave it out".into(),
            ));
        }
        let mut last_first = self.group.iter().rev();
        let by_file = last_first.clone().find_map(|given| {
            let (file, label) = given.split_once('=')?;
            is_file(path, file).then_some(label)
        });
        let all = last_first.find(|given| !given.contains('='));
        Ok(by_file.or(all.map(String::as_str)).map(String::from))
    }

    /// Refuses the group of a file that is none of these.
    fn check_groups<'p>(
        &self,
        paths: impl Iterator<Item = &'p PathBuf> + Clone,
    ) -> Result<(), Failure> {
        for given in &self.group {
            let Some((file, _)) = given.split_once('=') else {
                continue;
            };
            if !paths.clone().any(|p| is_file(own_mapping(p).0, file)) {
                return Err(Failure::Message(format!(
                    "--group {given} names a file that is none of the records"
                )));
            }
        }
        Ok(())
    }

    /// The fit for the group that is named.
    pub fn fit_of_group(&self, fit: Fit) -> Result<Fit, Failure> {
        of_group(fit, self.group.last().map(String::as_str))
    }

    /// The same, and which of its columns serve for it.
    pub fn open(
        &self,
        path: &Path,
        layout: &Layout,
    ) -> Result<(Record, Table, record::Columns), Failure> {
        let (table, mapping) = self.table(path)?;
        let columns = record::Columns::find(&table, layout, &mapping)?;
        let record = Record::from_table(&table, layout, &mapping, self.step)?;
        Ok((record, table, columns))
    }

    /// A file, and what its columns are called: for this file, else for all.
    fn table(&self, given: &Path) -> Result<(Table, Mapping), Failure> {
        let mapping = Mapping::parse(&self.map)?;
        let (path, pairs) = own_mapping(given);
        let for_file = Mapping::parse(pairs.split(',').filter(|pair| !pair.is_empty()))?;
        Ok((table(path)?, mapping.with(for_file)))
    }
}

/// Whether a path is meant by a name: the path itself, or its last part.
fn is_file(path: &Path, name: &str) -> bool {
    path == Path::new(name) || path.file_name() == Some(name.as_ref())
}

/// The fit for records of one group; of none that was learned from, that of the population.
pub fn of_group(fit: Fit, label: Option<&str>) -> Result<Fit, Failure> {
    let known = fit.model.groups();
    if known.is_empty() {
        if label.is_some() && !fit.model.asks_for_groups() {
            return Err(Failure::Message(format!(
                "--group names a group, and no constant of {} varies by group: leave it out",
                fit.name
            )));
        }
        return Ok(fit);
    }
    if !label.is_some_and(|label| known.iter().any(|l| l == label)) {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        text::note(&format!(
            "note: a new group, with the mean over those that were learned from and their spread; known with --group: {}",
            text::list(&names)
        ));
    }
    Ok(fit.for_group(label)?)
}

/// `week2.csv:q=pos,u=volt` as the file and its own mapping; a file of that name is itself.
fn own_mapping(given: &Path) -> (&Path, &str) {
    if let Some(text) = given.to_str().filter(|_| !given.exists()) {
        for (at, _) in text.match_indices(':') {
            let (path, mapping) = (Path::new(&text[..at]), &text[at + 1..]);
            if (path.exists() || path == Path::new(STANDARD_INPUT)) && mapping.contains('=') {
                return (path, mapping);
            }
        }
    }
    (given, "")
}

/// A file, or what may have been meant by it.
fn table(path: &Path) -> Result<Table, Failure> {
    if path.exists() || path == Path::new(STANDARD_INPUT) {
        return Ok(Table::read(path)?);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(""));
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.collect();
    let hint = match suggest(&name, names.iter().map(String::as_str)) {
        Some(close) => format!("; did you mean {}?", folder.join(close).display()),
        None => String::new(),
    };
    let shown = path.display();
    Err(Failure::Message(format!("there is no file {shown}{hint}")))
}

impl Files {
    /// Reads all files into a job; each is read once.
    pub fn read_into(&self, job: &mut Job) -> Result<(), Failure> {
        let layout = Layout::of(&job.model);
        let roles = [
            (Role::Train, &self.tables.data),
            (Role::Validate, &self.validate),
            (Role::Test, &self.test),
        ];
        let all = roles.iter().flat_map(|(_, files)| files.iter());
        self.tables.columns.check_groups(all)?;
        for (role, files) in roles {
            for path in files {
                job.add(role, self.tables.columns.read(path, &layout)?);
            }
        }
        job.warm_up = self.warm_up.given();
        Ok(())
    }

    /// Whether there are tests.
    pub fn has_tests(&self) -> bool {
        !self.test.is_empty()
    }
}

/// A fit, and the records that it is used on.
#[derive(Args)]
pub struct Use {
    /// The folder that `latens fit` wrote
    run: PathBuf,
    #[command(flatten)]
    tables: Tables,
}

impl Use {
    /// The fit; its name is the folder as it was given.
    pub fn fit(&self) -> Result<Fit, Error> {
        Fit::load(&self.run)
    }

    pub fn count(&self) -> usize {
        self.tables.data.len()
    }

    /// The records.
    pub fn read(&self, model: &Model) -> Result<Vec<Source>, Failure> {
        let layout = Layout::of(model);
        let files = self.tables.data.iter();
        self.tables.columns.check_groups(files.clone())?;
        files
            .map(|path| self.tables.columns.read(path, &layout))
            .collect()
    }
}
