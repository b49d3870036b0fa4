//! All systems in all clients, as a table; and the time of the filter's step.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cpu_time::ThreadTime;
use latens::stream::{Options, Sample};
use latens::{Error, Fit};
use serde_json::{Value, json};

use super::{CLIENTS, Deviation, Found, Reference, learn, names, prepare, run};
use crate::files::{file_error, unknown};
use crate::host;

/// What is run.
pub struct Request {
    /// Systems; all where there are none.
    pub systems: Vec<String>,
    /// Random points.
    pub points: usize,
    /// Steps of the free run.
    pub steps: usize,
    /// The folder for exports and what clients wrote.
    pub output: PathBuf,
}

/// What came of it.
pub struct Done {
    /// For people.
    pub table: String,
    /// For programs.
    pub json: Value,
}

/// Samples that a fit learns from.
const LEARNED_SAMPLES: usize = 600;
/// Whose filter is timed.
const TIMED_SYSTEM: &str = "hodgkin-huxley";

/// Exports each system to every target and runs all clients.
///
/// # Errors
/// Those of fits and files, and of a client that fails.
pub fn all(request: &Request) -> Result<Done, Error> {
    let known: Vec<String> = names().iter().map(|n| (*n).to_string()).collect();
    if let Some(name) = request.systems.iter().find(|s| !known.contains(s)) {
        return Err(unknown("system", name, &known));
    }
    let is_chosen = |name: &&String| request.systems.is_empty() || request.systems.contains(name);
    let (mut systems, mut found, mut growths, mut times) = (vec![], vec![], vec![], None);
    for name in known.iter().filter(is_chosen) {
        host::note(name);
        let (fit, record) = learn(name, LEARNED_SAMPLES, request.steps)?;
        let folder = request.output.join(name);
        let prepared = prepare(&fit, &record, &folder, request.points)?;
        for client in CLIENTS {
            found.push(run(client, &fit, &folder, &prepared)?);
        }
        if name == TIMED_SYSTEM {
            times = timed(&fit, &prepared.reference, &folder)?;
        }
        growths.push(prepared.reference.growth);
        systems.push(name.as_str());
    }
    let mut table = deviations(&systems, &found, &growths);
    if let Some(times) = &times {
        table += &times.table();
    }
    let times = times.map(|t| json!({ "c": t.c, "library": t.library, "program": t.program }));
    Ok(Done {
        table,
        json: json!({ "deviations": found, "growth": growths, "seconds_a_sample": times }),
    })
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => "—".into(),
        Some(0.0) => "0".into(),
        Some(value) => format!("{value:.0e}"),
    }
}

/// A row for each client, a column for each system: the largest deviation at points, and in the free run.
fn deviations(systems: &[&str], found: &[Deviation], growths: &[f64]) -> String {
    let mut text = format!("| target | client | {} |\n", systems.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(systems.len()));
    let mut row = |name: &str, client: &str, cells: &[String]| {
        let _ = writeln!(text, "| {name} | {client} | {} |", cells.join(" | "));
    };
    for client in CLIENTS {
        let by_fit = |part: &dyn Fn(&Found) -> String| -> Vec<String> {
            let deviations = found.iter().filter(|d| d.client == client.name);
            deviations.map(|d| part(&d.found)).collect()
        };
        let cells = by_fit(&|found| match found {
            Found::Missing => "not here".into(),
            Found::Refused(reason) => reason.clone(),
            Found::Deviates {
                derivative,
                step,
                output,
                run,
                ..
            } => {
                let points = [derivative, step, output].into_iter().flatten();
                let points = points.copied().reduce(f64::max);
                format!("{} / {}", shown(points), shown(*run))
            }
        });
        row(client.shown, client.name, &cells);
        let filter = by_fit(&|found| match found {
            Found::Deviates { filter, .. } => shown(*filter),
            _ => "—".into(),
        });
        if filter.iter().any(|cell| cell != "—") {
            row(&format!("{}, filter", client.shown), client.name, &filter);
        }
    }
    let growths: Vec<String> = growths.iter().map(|g| format!("{g:.0}")).collect();
    row("growth of a last digit", "latens", &growths);
    text
}

/// Seconds a sample of the filter's step.
struct Times {
    /// In C.
    c: f64,
    /// In the library.
    library: f64,
    /// Of `latens stream`, with text in and out; none where this is not the program.
    program: Option<f64>,
}

impl Times {
    fn table(&self) -> String {
        let mut text = format!(
            "\n| filter of {TIMED_SYSTEM} | processor time a sample | beside C |\n|---|---|---|\n"
        );
        let program = self
            .program
            .map(|p| ("`latens stream`, text in and out", p));
        for (name, time) in [
            ("C, `cc -O2`", self.c),
            ("the library's stream", self.library),
        ]
        .into_iter()
        .chain(program)
        {
            let (micro, ratio) = (1e6 * time, time / self.c);
            let _ = writeln!(text, "| {name} | {micro:.2} µs | {ratio:.1} |");
        }
        text
    }
}

fn timed(fit: &Fit, reference: &Reference, folder: &Path) -> Result<Option<Times>, Error> {
    const PASSES: usize = 5;
    // the compiled check prints its own
    let output = Command::new(folder.join("check")).arg(folder).output();
    let said = output.ok().and_then(|o| String::from_utf8(o.stdout).ok());
    let Some(c) = said.and_then(|s| s.trim().parse().ok()) else {
        return Ok(None);
    };
    let m = fit.model.inputs.len();
    let mut library = f64::INFINITY;
    for _ in 0..PASSES {
        let mut stream = fit.stream(Options::default())?;
        let clock = ThreadTime::now();
        for row in &reference.samples {
            let (input, output) = row[1..].split_at(m);
            let time = Some(row[0]);
            stream.step(Sample {
                time,
                input,
                output,
            })?;
        }
        let count = reference.samples.len() as f64;
        library = library.min(clock.elapsed().as_secs_f64() / count);
    }
    Ok(Some(Times {
        c,
        library,
        program: program(fit, reference, folder)?,
    }))
}

/// `latens stream` on all samples less on one: what a sample takes, without the start of the program.
fn program(fit: &Fit, reference: &Reference, folder: &Path) -> Result<Option<f64>, Error> {
    const PASSES: usize = 20;
    let latens = std::env::current_exe().ok();
    let latens = latens.filter(|p| p.file_stem().is_some_and(|s| s == "latens"));
    let (Some(latens), Some(_)) = (latens, children()) else {
        return Ok(None);
    };
    let run = folder.join("run");
    fit.replace(&run)?;
    let inputs = fit.model.inputs.iter().chain(&fit.model.measurements);
    let names: Vec<&str> = inputs.map(|q| q.name.as_str()).collect();
    let path = folder.join("samples.csv");
    let seconds = |count: usize| -> Result<f64, Error> {
        let mut text = format!("t,{}\n", names.join(","));
        for row in &reference.samples[..count] {
            let cells = row.iter().map(|v| match v {
                v if v.is_nan() => String::new(),
                v => v.to_string(),
            });
            text += &(cells.collect::<Vec<_>>().join(",") + "\n");
        }
        fs::write(&path, text).map_err(|e| file_error("write", &path, e))?;
        let before = children();
        for _ in 0..PASSES {
            let stdin = File::open(&path).map_err(|e| file_error("read", &path, e))?;
            let mut command = Command::new(&latens);
            command.arg("stream").arg(&run).stdin(stdin);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let status = command.status();
            status.map_err(|e| file_error("run", &latens, e))?;
        }
        let seconds = children().zip(before).map(|(after, before)| after - before);
        Ok(seconds.unwrap_or(f64::NAN) / PASSES as f64)
    };
    let all = reference.samples.len();
    let time = (seconds(all)? - seconds(1)?) / (all - 1) as f64;
    Ok((time > 0.0).then_some(time))
}

/// Processor time of processes that this one has started and awaited; none where there is no /proc.
fn children() -> Option<f64> {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // after the name, which may hold anything
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |k: usize| fields.get(k)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / TICKS_A_SECOND)
}
