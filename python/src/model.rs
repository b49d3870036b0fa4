//! Models: read, looked at, checked against records, simulated.

use std::path::PathBuf;

use latens::record::Layout;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Door, Error};
use latens_report::check::Checked;
use pyo3::prelude::*;
use serde_json::json;

use crate::arrays::{Columns, columns};
use crate::errors::{Result, place, places, setting};
use crate::pool;
use crate::record::Source;

/// A checked model.
#[pyclass(frozen, module = "latens._latens")]
pub struct Model(pub latens::Model);

/// Names and texts of the built-in model files.
#[pyfunction]
pub fn systems() -> Vec<(&'static str, &'static str)> {
    latens::systems::SYSTEMS.to_vec()
}

/// Name and unit.
type Named<'a> = Vec<(&'a str, &'a str)>;

#[pymethods]
impl Model {
    #[staticmethod]
    fn read(path: PathBuf) -> Result<Self> {
        Ok(Self(latens::Model::from_file(path)?))
    }

    /// `file` is the name that errors show.
    #[staticmethod]
    fn parse(file: &str, text: &str) -> Result<Self> {
        Ok(Self(latens::Model::from_text(file, text)?))
    }

    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.0.description
    }

    #[getter]
    fn time_unit(&self) -> &str {
        &self.0.time_unit
    }

    #[getter]
    fn states(&self) -> Named<'_> {
        let states = self.0.states.iter();
        states.map(|s| (s.name.as_str(), s.unit.as_str())).collect()
    }

    #[getter]
    fn hidden(&self) -> Vec<&str> {
        let hidden = self.0.hidden().into_iter();
        hidden.map(|i| self.0.states[i].name.as_str()).collect()
    }

    #[getter]
    fn measured(&self) -> Named<'_> {
        let channels = self.0.measurements.iter();
        channels
            .map(|q| (q.name.as_str(), q.unit.as_str()))
            .collect()
    }

    #[getter]
    fn inputs(&self) -> Named<'_> {
        let inputs = self.0.inputs.iter();
        inputs.map(|q| (q.name.as_str(), q.unit.as_str())).collect()
    }

    #[getter]
    fn unknowns(&self) -> Named<'_> {
        let unknowns = self.0.unknowns.iter();
        unknowns
            .map(|u| (u.name.as_str(), u.unit.as_str()))
            .collect()
    }

    /// Whether a constant varies by group.
    #[getter]
    fn asks_for_groups(&self) -> bool {
        self.0.asks_for_groups()
    }

    /// Those of [unknowns] that are not learned: name, value, unit.
    #[getter]
    fn fixed(&self) -> Vec<(&str, f64, &str)> {
        let constants = self.0.fixed.iter();
        constants
            .map(|f| (f.name.as_str(), f.value, f.unit.as_str()))
            .collect()
    }

    /// Name, arguments as they stand in the file, outputs.
    #[getter]
    fn networks(&self) -> Vec<(String, Vec<String>, Vec<String>)> {
        let networks = self.0.system.networks().iter().enumerate();
        networks
            .map(|(i, n)| (n.name.clone(), self.0.arguments(i), n.outputs.clone()))
            .collect()
    }

    /// What records can tell, with constants fixed and freed by a text of settings: as JSON and as text.
    fn check(
        &self,
        py: Python,
        sources: Vec<PyRef<Source>>,
        settings: &str,
    ) -> Result<(String, String)> {
        let sources = sources.iter().map(|s| s.checked()).collect();
        let given = self.0.settings("the call", settings).map_err(Error::from)?;
        let model = &latens::job::held(&self.0, &given)?;
        let check = || -> std::result::Result<_, Error> {
            let found = Checked::new(model, sources)?;
            let door = Door::Python;
            let object = json!(found.output(model, door));
            Ok((object.to_string(), found.text(model, door)))
        };
        Ok(pool::work(py, check)??)
    }

    /// A record from the truth; names of channels and states where only some are given.
    #[allow(clippy::too_many_arguments)]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        steps: Option<usize>,
        start: Vec<(String, f64)>,
        noise: Vec<(Option<String>, f64, bool)>,
        process_noise: Vec<(Option<String>, f64)>,
        held_out: Option<usize>,
        seed: u64,
    ) -> Result<Columns<'py>> {
        let model = &self.0;
        let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
        let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
        let mut levels = vec![None; channels.len()];
        for (name, size, of_range) in noise {
            if !(size >= 0.0 && size.is_finite()) {
                return Err(setting(format!("a noise of {size} makes no sense")));
            }
            let level = if of_range {
                NoiseLevel::OfRange(size)
            } else {
                NoiseLevel::Absolute(size)
            };
            match name {
                None => levels.fill(Some(level)),
                Some(name) => levels[place(&name, &channels, "measurement")?] = Some(level),
            }
        }
        let mut process = model.truth.as_ref().map(|t| t.process_noise.clone());
        for (name, size) in &process_noise {
            let process = process.get_or_insert_default();
            match name {
                None => process.fill(*size),
                Some(name) => process[place(name, &states, "state")?] = *size,
            }
        }
        let simulation = Simulation {
            steps,
            start: places(&start, &states, "state")?,
            noise: levels,
            process_noise: process.filter(|_| !process_noise.is_empty()),
            held_out: match held_out {
                Some(0) => return Err(setting("held-out experiments are counted from 1")),
                place => place.map(|k| k - 1),
            },
            seed,
            theta: None,
        };
        let table = py.detach(|| -> std::result::Result<_, Error> {
            let record = simulate(model, &simulation)?;
            Ok(record.to_table(&Layout::of(model))?)
        })?;
        Ok(columns(py, table))
    }
}
