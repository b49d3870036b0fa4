//! The rival: least squares on the free run by SciPy, in a child process.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use latens::fit::Start;
use latens::record::{Layout, sha256, write_csv};
use latens::{Error, Model};
use serde::{Deserialize, Serialize};

use super::cell::{Errors, Place, Records, Run, errors};
use crate::files::{file_error, write_file, write_json};

const SCRIPT: &str = include_str!("least_squares.py");

/// The variable that names another Python than the one on the path.
pub const PYTHON_VARIABLE: &str = "LATENS_PYTHON";

/// What it came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rival {
    pub errors: Errors,
    pub constants: BTreeMap<String, f64>,
    /// Root mean square misfit of the training record over range.
    pub train: f64,
    /// Of the processor.
    pub seconds: f64,
    /// Why it came to nothing.
    pub failure: Option<String>,
    /// Of the script, the model and the records: with the same a result is not computed again.
    pub sha256: String,
}

/// What the script prints.
#[derive(Deserialize)]
struct Printed {
    states: Vec<String>,
    constants: BTreeMap<String, f64>,
    train: f64,
    seconds: f64,
    tests: Vec<PrintedRun>,
}

#[derive(Deserialize)]
struct PrintedRun {
    from: usize,
    states: Vec<Option<f64>>,
    outputs: Vec<Option<f64>>,
}

/// A Python with SciPy, where there is one.
pub fn python() -> Option<PathBuf> {
    let program = std::env::var_os(PYTHON_VARIABLE).map_or_else(|| "python3".into(), PathBuf::from);
    let tried = Command::new(&program)
        .args(["-c", "import numpy, scipy.optimize, tomllib"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried
        .is_ok_and(|status| status.success())
        .then_some(program)
}

/// The files of a cell, from which anyone can repeat it.
pub struct Files {
    pub model: PathBuf,
    pub train: PathBuf,
    pub tests: Vec<PathBuf>,
    sha256: String,
}

impl Files {
    /// Writes them.
    pub fn write(
        folder: &Path,
        place: &Place,
        text: &str,
        records: &Records,
    ) -> Result<Self, Error> {
        let models = folder.join("models");
        let record_folder = folder.join("records").join(place.records_name());
        for folder in [&models, &record_folder] {
            std::fs::create_dir_all(folder).map_err(|e| file_error("write", folder, e))?;
        }
        let (problem, variant) = (place.problem.name, place.variant.name());
        let model = models.join(format!("{problem}-{variant}.toml"));
        write_file(&model, text)?;
        let (layout, mut all) = (Layout::of(&records.right), format!("{SCRIPT}{text}"));
        let mut write = |record: &latens::Record| {
            let path = record_folder.join(format!("{}.csv", record.name));
            let table = record.to_table(&layout)?;
            all += &latens::record::table_sha256(&table)?;
            write_csv(&path, &table)?;
            Ok::<PathBuf, Error>(path)
        };
        let train = write(&records.train)?;
        let tests = records.tests.iter().map(write).collect::<Result<_, _>>()?;
        Ok(Self {
            model,
            train,
            tests,
            sha256: sha256(all.as_bytes()),
        })
    }
}

/// Runs it, or takes what an earlier call has left at `kept`.
pub fn run(
    python: &Path,
    kept: &Path,
    files: &Files,
    place: &Place,
    model: &Model,
    records: &Records,
) -> Result<Rival, Error> {
    let before = std::fs::read(kept).ok();
    let before = before.and_then(|bytes| serde_json::from_slice::<Rival>(&bytes).ok());
    if let Some(before) = before.filter(|b| b.sha256 == files.sha256) {
        return Ok(before);
    }
    let mut rival = Rival {
        errors: Errors::default(),
        constants: BTreeMap::new(),
        train: f64::MAX,
        seconds: 0.0,
        failure: None,
        sha256: files.sha256.clone(),
    };
    match print(python, files, place, records) {
        Err(why) => rival.failure = Some(why),
        Ok(printed) => {
            let runs: Vec<Run> = printed
                .tests
                .iter()
                .map(|run| reordered(run, &printed.states, model))
                .collect();
            rival.errors = errors(model, records, &runs);
            rival.constants = printed.constants;
            (rival.train, rival.seconds) = (printed.train, printed.seconds);
        }
    }
    write_json(kept, &rival)?;
    Ok(rival)
}

/// A run with the states in the model's order.
fn reordered(run: &PrintedRun, names: &[String], model: &Model) -> Run {
    let number = |x: &Option<f64>| x.unwrap_or(f64::NAN);
    let places: Vec<usize> = model
        .states
        .iter()
        .map(|s| names.iter().position(|n| *n == s.name).unwrap_or(0))
        .collect();
    let rows = run.states.chunks_exact(names.len().max(1));
    Run {
        from: run.from,
        states: rows
            .flat_map(|row| places.iter().map(|&i| number(&row[i])))
            .collect(),
        outputs: run.outputs.iter().map(number).collect(),
    }
}

/// What the script prints, or why it does not.
fn print(
    python: &Path,
    files: &Files,
    place: &Place,
    records: &Records,
) -> Result<Printed, String> {
    let mut command = Command::new(python);
    command.arg("-").arg(&files.model).arg(&files.train);
    command.arg(place.seed.to_string());
    for (path, record) in files.tests.iter().zip(&records.tests) {
        command.arg(format!("{}:{}", path.display(), Start::samples(record)));
    }
    // one thread for a cell, as Latens has
    for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(name, "1");
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(SCRIPT.as_bytes())
            .map_err(|e| e.to_string())?;
    }
    let done = child.wait_with_output().map_err(|e| e.to_string())?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(said.lines().last().unwrap_or("it said nothing").into());
    }
    serde_json::from_slice(&done.stdout).map_err(|e| e.to_string())
}
