//! A run with what its fit says about each record, read from the folder.

use std::path::Path;

use latens::fit::run::{self, Files, RecordFacts, Run};
use latens::record::{Layout, Mapping, RecordError, Table};
use latens::{Error, Record};

/// A run to show.
pub struct Shown {
    /// The folder as the user named it.
    pub folder: String,
    pub run: Run,
    /// Of each record of the fit whose states are in the folder; tests have none.
    pub tracks: Vec<Track>,
    /// What could not be read, and why.
    pub missing: Vec<String>,
}

/// What a fit says about one record, sample by sample; matrices as in [`Record`].
pub struct Track {
    /// The record's place in the facts of the run.
    pub place: usize,
    pub record: Record,
    pub smoothed: Vec<f64>,
    pub deviations: Vec<f64>,
    pub one_step: Vec<f64>,
    pub free_run: Vec<f64>,
}

impl Shown {
    /// Reads a run folder.
    ///
    /// # Errors
    /// Those of [`run::load`]. States that cannot be read are no error: the rest is shown.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let run = run::load(folder)?;
        Ok(Self::new(folder, run, |path| Table::read(path)))
    }

    /// A run from its files; `name` is what it is called instead of a folder.
    ///
    /// # Errors
    /// Those of [`run::from_files`].
    pub fn from_files(files: &Files, name: &str) -> Result<Self, Error> {
        let folder = Path::new(name);
        let run = run::from_files(files, folder)?;
        Ok(Self::new(folder, run, |path| {
            let bytes = path.file_name().and_then(|n| files.get(n.to_str()?));
            let bytes = bytes.map_or([].as_slice(), Vec::as_slice);
            Table::from_csv(&path.display().to_string(), bytes)
        }))
    }

    fn new(folder: &Path, run: Run, states: impl Fn(&Path) -> Result<Table, RecordError>) -> Self {
        let own = run.facts.records.iter().filter(|r| r.role != "test");
        let count = own.count();
        let (mut tracks, mut missing) = (vec![], vec![]);
        for place in 0..count {
            let path = folder.join(run::states_file(place, count));
            let read = states(&path).map_err(Error::from);
            match read.and_then(|table| Track::new(&run, place, &path, &table)) {
                Ok(track) => tracks.push(track),
                Err(e) => missing.push(e.to_string()),
            }
        }
        Self {
            folder: folder.display().to_string(),
            run,
            tracks,
            missing,
        }
    }

    /// The tracks of the records that were learned from; all where there are none.
    pub fn trained(&self) -> Vec<&Track> {
        let trained = |t: &&Track| self.facts_of(t).role == "train";
        let found: Vec<&Track> = self.tracks.iter().filter(trained).collect();
        match found.is_empty() {
            true => self.tracks.iter().collect(),
            false => found,
        }
    }

    /// What the run says of a track's record.
    pub fn facts_of(&self, track: &Track) -> &RecordFacts {
        &self.run.facts.records[track.place]
    }
}

impl Track {
    fn new(run: &Run, place: usize, path: &Path, table: &Table) -> Result<Self, Error> {
        let layout = Layout {
            time_step: Some(run.facts.sample_time),
            ..run.model.layout()
        };
        let record = Record::from_table(table, &layout, &Mapping::default(), None)?;
        let n = run.model.states.len();
        let matrix = |what: &str| -> Result<Vec<f64>, Error> {
            let mut values = vec![f64::NAN; record.len() * n];
            for (i, state) in run.model.states.iter().enumerate() {
                let name = format!("{}.{what}", state.name);
                let column = table.find(&name).ok_or_else(|| Error::Run {
                    path: path.into(),
                    message: format!("this file has no column `{name}`; repeat the fit"),
                })?;
                for (k, value) in table.values(column)?.iter().enumerate() {
                    values[k * n + i] = *value;
                }
            }
            Ok(values)
        };
        Ok(Self {
            place,
            smoothed: matrix("smoothed")?,
            deviations: matrix("std")?,
            one_step: matrix("one_step")?,
            free_run: matrix("free_run")?,
            record,
        })
    }

    /// One column of a matrix that has a row for each sample.
    pub fn column(&self, matrix: &[f64], k: usize) -> Vec<f64> {
        let width = matrix.len() / self.record.len();
        matrix.iter().skip(k).step_by(width).copied().collect()
    }
}
