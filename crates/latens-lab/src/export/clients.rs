//! The clients: how each is started, and what it left.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use latens::model::Model;
use latens::{Error, Fit};
use latens_export::{Fmi, Target};

use super::cases::{deviation, deviation_of, free_run, values_at};
use super::chromium;
use super::{Found, Reference};
use crate::files::file_error;
use crate::gallery::rival::PYTHON_VARIABLE;

/// Somebody who runs what was exported.
#[derive(Debug)]
pub struct Client {
    /// Its name.
    pub name: &'static str,
    /// What it runs.
    pub target: Target,
    /// What that is called in the table.
    pub shown: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Python,
    C,
    Node,
    Chromium,
    Latens,
}

const fn client(name: &'static str, target: Target, shown: &'static str, kind: Kind) -> Client {
    Client {
        name,
        target,
        shown,
        kind,
    }
}

/// All of them.
pub const CLIENTS: &[Client] = &[
    client("numpy", Target::Python, "python", Kind::Python),
    client("jax", Target::Python, "python", Kind::Python),
    client("casadi", Target::Python, "python", Kind::Python),
    client("cc", Target::C, "c", Kind::C),
    client("node", Target::Js, "js", Kind::Node),
    client("chromium", Target::Js, "js", Kind::Chromium),
    client("latens", Target::Toml, "toml", Kind::Latens),
    client("onnxruntime", Target::Onnx, "onnx", Kind::Python),
    client("fmpy2", Target::Fmu(Fmi::Two), "fmu, FMI 2.0", Kind::Python),
    client(
        "fmpy3",
        Target::Fmu(Fmi::Three),
        "fmu, FMI 3.0",
        Kind::Python,
    ),
];

/// What says that a client is not there.
const MISSING_EXIT_CODE: i32 = 77;

/// The C compiler, where there is one.
fn compiler() -> Option<&'static str> {
    let found = Command::new("cc").arg("--version").output();
    found.is_ok_and(|o| o.status.success()).then_some("cc")
}

pub(super) fn run(
    client: &Client,
    fit: &Fit,
    folder: &Path,
    reference: &Reference,
) -> Result<Found, Error> {
    if matches!(client.kind, Kind::Latens) {
        return read_back(fit, folder, reference);
    }
    let available = match client.kind {
        Kind::Latens => true,
        Kind::Python => python(client.name, folder)?,
        Kind::C => compiled(folder)?,
        Kind::Node => node(folder)?,
        Kind::Chromium => chromium::run(folder)?,
    };
    if !available {
        return Ok(Found::Missing);
    }
    let (n, c) = (fit.model.states.len(), fit.model.measurements.len());
    let values = read(folder, client.name, "values", 2 * n + c)?;
    let run = read(folder, client.name, "run", n)?;
    let estimates = read(folder, client.name, "filter", 2 * n)?;
    let (values, run) = (values.unwrap_or_default(), run.unwrap_or_default());
    let part = |columns: std::ops::Range<usize>| {
        // what a target does not have is NaN at every point
        let is_there = values.iter().any(|row| !row[columns.start].is_nan());
        is_there.then(|| deviation_of(&reference.values, &values, columns))
    };
    Ok(Found::Deviates {
        derivative: part(0..n),
        step: part(n..2 * n),
        output: part(2 * n..2 * n + c),
        run: (!run.is_empty()).then(|| deviation(&reference.run, &run, n) / reference.growth),
        filter: estimates.map(|found| deviation(&reference.estimates, &found, 2 * n)),
    })
}

/// Latens on the model file: nothing is to be learned, and the same comes out.
fn read_back(fit: &Fit, folder: &Path, reference: &Reference) -> Result<Found, Error> {
    let model = Model::from_file(folder.join("exported.toml"))?;
    assert_eq!(model.system.parameters(), 0, "nothing is to be learned");
    let again = Fit {
        model,
        theta: vec![],
        ..fit.clone()
    };
    let (n, c) = (fit.model.states.len(), fit.model.measurements.len());
    let values = values_at(&again, &reference.points);
    let start: Vec<f64> = again.model.states.iter().filter_map(|s| s.start).collect();
    let run = free_run(&again, &reference.record, &start);
    let part = |columns| Some(deviation_of(&reference.values, &values, columns));
    Ok(Found::Deviates {
        derivative: part(0..n),
        step: part(n..2 * n),
        output: part(2 * n..2 * n + c),
        run: Some(deviation(&reference.run, &run, n) / reference.growth),
        filter: None,
    })
}

/// Runs the check of a Python library; `false` where it is not there.
fn python(name: &str, folder: &Path) -> Result<bool, Error> {
    const SCRIPT: &str = include_str!("check.py");
    let interpreter = env::var(PYTHON_VARIABLE).unwrap_or_else(|_| "python3".into());
    let script = folder.join("check.py");
    fs::write(&script, SCRIPT).map_err(|e| file_error("write", &script, e))?;
    start(Command::new(interpreter).arg(script).arg(name).arg(folder))
}

/// Compiles the C file with all warnings as errors, and runs it.
fn compiled(folder: &Path) -> Result<bool, Error> {
    const SOURCE: &str = include_str!("check.c");
    let Some(compiler) = compiler() else {
        return Ok(false);
    };
    let header = fs::read_to_string(folder.join("exported.h")).unwrap_or_default();
    let place = header.split("const double ").nth(1).unwrap_or_default();
    let prefix = place.split("sample_time").next().unwrap_or_default();
    let (source, program) = (folder.join("check.c"), folder.join("check"));
    fs::write(&source, SOURCE.replace("PRE_", prefix))
        .map_err(|e| file_error("write", &source, e))?;
    let mut command = Command::new(compiler);
    command.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-O2",
    ]);
    command.arg(&source).arg(folder.join("exported.c"));
    start(command.arg("-o").arg(&program).arg("-lm"))?;
    start(Command::new(&program).arg(folder))
}

/// Runs the module; it is one by the package file beside it.
fn node(folder: &Path) -> Result<bool, Error> {
    const SCRIPT: &str = include_str!("check.mjs");
    let script = folder.join("check.mjs");
    for (path, text) in [
        (&script, SCRIPT),
        (&folder.join("package.json"), "{ \"type\": \"module\" }"),
    ] {
        fs::write(path, text).map_err(|e| file_error("write", path, e))?;
    }
    start(Command::new("node").arg(script).arg(folder))
}

/// Runs a client to its end; `false` where it is not on this machine.
fn start(command: &mut Command) -> Result<bool, Error> {
    Ok(output_of(command)?.is_some())
}

/// The same with what it printed.
pub(super) fn output_of(command: &mut Command) -> Result<Option<Vec<u8>>, Error> {
    let Ok(output) = command.output() else {
        return Ok(None);
    };
    if output.status.code() == Some(MISSING_EXIT_CODE) {
        return Ok(None);
    }
    if output.status.success() {
        return Ok(Some(output.stdout));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Setting(format!("{command:?} failed:\n{said}")))
}

/// The rows that a client wrote; none where it wrote none.
fn read(
    folder: &Path,
    client: &str,
    part: &str,
    width: usize,
) -> Result<Option<Vec<Vec<f64>>>, Error> {
    let path = folder.join(format!("{client}-{part}.bin"));
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(&path).map_err(|e| file_error("read", &path, e))?;
    let (numbers, _) = bytes.as_chunks::<8>();
    let numbers: Vec<f64> = numbers.iter().map(|b| f64::from_le_bytes(*b)).collect();
    Ok(Some(
        numbers.chunks_exact(width).map(<[f64]>::to_vec).collect(),
    ))
}
