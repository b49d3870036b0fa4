//! Exported fits in the hands of real clients: what each makes of them, beside what Latens does.
//!
//! For each system a short fit is exported to every target. The clients get random points and the inputs
//! of a free run as files, and write what they make of them; the deviation is the largest difference of a
//! component, relative to the largest value of that component.

mod cases;
mod chromium;
mod clients;
mod table;

use std::fs;
use std::path::Path;

use latens::{Error, Fit, Record};
use latens_export::{Fmi, Target, export};
use serde::Serialize;
use serde_json::json;

pub use cases::{EVERY_WORD_MODEL, Reference, learn, names};
pub use clients::{CLIENTS, Client};
pub use table::{Done, Request, all};

use crate::files::{file_error, write_json};

/// How far a client is from Latens.
#[derive(Debug, Clone, Serialize)]
pub struct Deviation {
    /// The target.
    pub target: &'static str,
    /// Who ran it.
    pub client: &'static str,
    /// The system.
    pub system: String,
    /// What came of it.
    pub found: Found,
}

/// What came of a client.
#[derive(Debug, Clone, Serialize)]
pub enum Found {
    /// Deviations at points and in the free run; none of what the target does not have.
    Deviates {
        /// Of f.
        derivative: Option<f64>,
        /// Of a step.
        step: Option<f64>,
        /// Of h.
        output: Option<f64>,
        /// Of the states of the free run, over [`Reference::growth`].
        run: Option<f64>,
        /// Of the filter's states and variances.
        filter: Option<f64>,
    },
    /// The target refuses the model, with its reason.
    Refused(String),
    /// The client is not on this machine.
    Missing,
}

/// A fit in a folder, for clients.
pub struct Prepared {
    /// What Latens makes of it.
    pub reference: Reference,
    /// Targets that refuse it, with their reasons.
    pub refused: Vec<(Target, String)>,
}

/// Exports a fit to every target and writes what clients need.
///
/// # Errors
/// Those of files and of a stream.
pub fn prepare(
    fit: &Fit,
    record: &Record,
    folder: &Path,
    points: usize,
) -> Result<Prepared, Error> {
    fs::create_dir_all(folder).map_err(|e| file_error("write", folder, e))?;
    let reference = Reference::of(fit, record, points)?;
    reference.write(folder)?;
    write_json(&folder.join("shape.json"), &shape(fit))?;
    let mut refused = vec![];
    for (_, target, _) in Target::NAMES {
        let stem = match target {
            Target::Fmu(Fmi::Two) => "exported2",
            Target::Fmu(Fmi::Three) => "exported3",
            _ => "exported",
        };
        match export(fit, target, stem) {
            Ok(exported) => {
                for file in exported.files {
                    let path = folder.join(&file.name);
                    fs::write(&path, &file.bytes).map_err(|e| file_error("write", &path, e))?;
                }
            }
            Err(reason) => refused.push((target, reason.to_string())),
        }
    }
    Ok(Prepared { reference, refused })
}

/// What clients need to know of a model.
fn shape(fit: &Fit) -> serde_json::Value {
    let model = &fit.model;
    let (n, m, c) = (
        model.states.len(),
        model.inputs.len(),
        model.measurements.len(),
    );
    let names: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let units: Vec<&str> = model.states.iter().map(|s| s.unit.as_str()).collect();
    json!({
        "states": n, "inputs": m, "outputs": c,
        "state_names": names, "state_units": units, "description": model.description,
        "first_order": model.hold.contains(&latens::model::Hold::FirstOrder),
        "dt": fit.facts.sample_time,
        "start": fit.start(&[]),
        "networks": networks(fit),
        // of variables in a functional mock-up unit
        "references": {
            "states": (0..n).collect::<Vec<_>>(),
            "inputs": (2 * n..2 * n + m).collect::<Vec<_>>(),
            "outputs": (2 * n + m..2 * n + m + c).collect::<Vec<_>>(),
        },
    })
}

/// A few arguments of each network, and what it makes of them.
fn networks(fit: &Fit) -> Vec<serde_json::Value> {
    let system = &fit.model.system;
    let pairs = system.networks().iter().zip(system.weight_ranges());
    pairs
        .map(|(network, range)| {
            let mut trace = network.trace();
            let (mut arguments, mut values) = (vec![], vec![]);
            for k in 0..5 {
                let scaling = network.scaling.center.iter().zip(&network.scaling.scale);
                let row = scaling.enumerate();
                let row =
                    row.map(|(j, (center, scale))| center + scale * ((3 * k + j) as f64).sin());
                let row: Vec<f64> = row.collect();
                for (j, value) in row.iter().enumerate() {
                    network.set_argument(&mut trace, j, *value);
                }
                network.evaluate(&fit.theta[range.clone()], &mut trace);
                arguments.push(row);
                values.push(trace.output.clone());
            }
            json!({ "file": network.name, "arguments": arguments, "values": values })
        })
        .collect()
}

/// One client on a fit that is [`prepare`]d in a folder.
///
/// # Errors
/// [`Error::Setting`] where the client fails.
pub fn run(
    client: &Client,
    fit: &Fit,
    folder: &Path,
    prepared: &Prepared,
) -> Result<Deviation, Error> {
    let refused = prepared.refused.iter().find(|(t, _)| *t == client.target);
    let found = match refused {
        Some((_, reason)) => Found::Refused(reason.clone()),
        None => clients::run(client, fit, folder, &prepared.reference)?,
    };
    Ok(Deviation {
        target: client.shown,
        client: client.name,
        system: fit.name.clone(),
        found,
    })
}
