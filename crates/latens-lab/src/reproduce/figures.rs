//! The data that figures are drawn from, in the folder `figures`:
//!
//! ```text
//! trajectories_<system>.json  truth, measurements and the free run of every method, seed by seed
//! held_out_<system>.json      the same for experiments from other starts and inputs
//! vector_field_<system>.json  true and learned derivatives on a grid (two states, no inputs)
//! learning_curves.csv         cost and free-run error against time and epoch
//! cost_per_step.csv           time per sample against N, d_θ and d_x (written by `cost`)
//! ```

use std::path::{Path, PathBuf};

use latens::simulate::{Simulation, simulate};
use serde_json::{Value, json};

use super::cell::{self, Cell, System};
use crate::files::{file_error, write_file, write_json};
use latens::Error;

/// The folder, made where it is missing.
pub fn folder(folder: &Path) -> Result<PathBuf, Error> {
    let figures = folder.join("figures");
    std::fs::create_dir_all(&figures).map_err(|e| file_error("write", &figures, e))?;
    Ok(figures)
}

pub fn write(systems: &[System], cells: &[Cell], output: &Path) -> Result<(), Error> {
    let figures = folder(output)?;
    let mut curves = String::from("system,method,seed,epoch,seconds,cost,free_run\n");
    let optional = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:e}"));
    for cell in cells {
        let score = &cell.score;
        for look in &cell.curve {
            curves += &format!(
                "{},{},{},{},{:.4},{},{}\n",
                score.system,
                score.method,
                score.seed,
                look.epoch,
                look.seconds,
                optional(look.cost),
                optional(look.free_run)
            );
        }
    }
    write_file(&figures.join("learning_curves.csv"), &curves)?;
    for system in systems {
        let cells: Vec<&Cell> = cells
            .iter()
            .filter(|c| c.score.system == system.name)
            .collect();
        let name = |figure: &str| figures.join(format!("{figure}_{}.json", system.name));
        let by_run = |pick: &dyn Fn(&Cell) -> Value| -> Vec<Value> {
            let entry = |c: &&Cell| json!({ "method": c.score.method, "seed": c.score.seed, "run": pick(c) });
            cells.iter().map(entry).collect()
        };
        let value = |v: &cell::ThinnedRun| serde_json::to_value(v).unwrap_or_default();
        let (model, record) = (&system.model, &system.record);
        let truth = cell::thinned_truth(model, record);
        let content = json!({
            "system": system.name,
            "time_unit": model.time_unit,
            "states": units(system),
            "hidden": model.hidden().iter().map(|&i| &model.states[i].name).collect::<Vec<_>>(),
            "truth": truth,
            "runs": by_run(&|c| value(&c.trajectory)),
        });
        write_json(&name("trajectories"), &content)?;
        let mut experiments = vec![];
        let count = model.truth.as_ref().map_or(0, |t| t.held_out.len());
        for number in 0..count.max(usize::from(system.test.is_some())) {
            let simulation = Simulation {
                held_out: Some(number),
                ..Simulation::default()
            };
            let truth = match count {
                0 => None,
                _ => {
                    let other = simulate(model, &simulation)?;
                    cell::thinned_truth(model, &other)
                }
            };
            experiments.push(json!({
                "number": number + 1,
                "truth": truth,
                "runs": by_run(&|c| c.held_out.get(number).map_or(Value::Null, value)),
            }));
        }
        let content =
            json!({ "system": system.name, "states": units(system), "experiments": experiments });
        write_json(&name("held_out"), &content)?;
        let points = cell::field_points(model, record);
        if let (Some(truth), false) = (&model.truth, points.is_empty()) {
            let learned = cells.iter().filter(|c| !c.field.is_empty()).map(|c| {
                json!({ "method": c.score.method, "seed": c.score.seed, "derivatives": c.field })
            });
            let content = json!({
                "system": system.name,
                "states": units(system),
                "grid": cell::GRID,
                "points": points,
                "truth": cell::field(&truth.system, &[], &points),
                "learned": learned.collect::<Vec<_>>(),
            });
            write_json(&name("vector_field"), &content)?;
        }
    }
    Ok(())
}

/// Names and units of the states.
fn units(system: &System) -> Vec<Value> {
    let states = system.model.states.iter();
    states
        .map(|s| json!({ "name": s.name, "unit": s.unit }))
        .collect()
}
