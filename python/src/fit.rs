//! A fit, and what it says.

use std::io::Write;
use std::path::PathBuf;

use latens::fit::{EstimateOptions, PredictOptions};
use latens::folder::Files;
use latens::record::write_atomic;
use latens::{Door, Error, Warning};
use latens_export::Target;
use latens_report::evaluator::Evaluator;
use latens_report::figures::{self, What};
use latens_report::picture::Form;
use latens_report::{comparison, page, profiles, summary, words};
use numpy::{IntoPyArray, PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::arrays::{Columns, Matrix, Vector, columns, matrix};
use crate::errors::{Failure, Result, place, places, setting};
use crate::learn::UNSAVED_NAME;
use crate::model::Model;
use crate::pool;
use crate::record::Source;
use crate::stream::Stream;
use crate::{design, watched};

/// A fitted model.
#[pyclass(frozen, module = "latens._latens")]
pub struct Fit(pub latens::Fit);

fn write(path: PathBuf, bytes: &[u8]) -> Result<()> {
    let written = write_atomic(&path, |out| out.write_all(bytes));
    Ok(written.map_err(|source| Error::Io {
        action: "write",
        path,
        source,
    })?)
}

/// Writes a text file, whole or not at all.
#[pyfunction]
pub fn write_text(path: PathBuf, text: &str) -> Result<()> {
    write(path, text.as_bytes())
}

/// Writes the folder of a fit.
pub fn save(fit: &latens::Fit, folder: PathBuf, force: bool) -> Result<()> {
    if force {
        fit.replace(folder)?;
    } else {
        fit.save(folder)?;
    }
    Ok(())
}

/// The files of a fit.
pub fn bytes(py: Python<'_>, files: Files) -> Vec<(String, Bound<'_, PyBytes>)> {
    let pairs = files.into_iter();
    pairs
        .map(|(name, bytes)| (name, PyBytes::new(py, &bytes)))
        .collect()
}

/// An array of three dimensions.
type Cube<'py> = Bound<'py, PyArray3<f64>>;

/// Columns, and facts as JSON.
type Used<'py> = (Columns<'py>, String);

/// Facts as JSON, with the warnings in the words of Python.
fn told(facts: impl serde::Serialize, warnings: &[Warning]) -> String {
    let mut object = json!(facts);
    let warnings = warnings.iter().map(|w| w.to_json(Door::Python));
    object["warnings"] = warnings.collect();
    object.to_string()
}

#[pymethods]
impl Fit {
    #[staticmethod]
    fn load(py: Python, folder: PathBuf) -> Result<Self> {
        Ok(Self(py.detach(|| latens::Fit::load(folder))?))
    }

    #[staticmethod]
    fn of_files(files: Files) -> Result<Self> {
        Ok(Self(latens::Fit::from_files(&files, UNSAVED_NAME)?))
    }

    /// The correlation of the unknown constants, row by row.
    #[getter]
    fn correlation(&self) -> Vec<Vec<f64>> {
        self.0.constant_correlation()
    }

    /// What must be known of each unknown constant beside its value.
    #[getter]
    fn remarks(&self) -> Vec<Option<String>> {
        self.0.constants().iter().map(|c| c.remark()).collect()
    }

    /// The files of its folder.
    fn to_files<'py>(&self, py: Python<'py>) -> Result<Vec<(String, Bound<'py, PyBytes>)>> {
        Ok(bytes(py, py.detach(|| self.0.to_files())?))
    }

    fn save(&self, py: Python, folder: PathBuf, force: bool) -> Result<()> {
        py.detach(|| save(&self.0, folder, force))
    }

    /// As it was read, its networks scaled.
    #[getter]
    fn model(&self) -> Model {
        Model(self.0.model.clone())
    }

    /// fit.json.
    #[getter]
    fn facts(&self) -> Result<String> {
        let json = serde_json::to_string(&self.0.facts);
        json.map_err(|e| setting(e.to_string()))
    }

    /// What to know before it is relied on.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.0.facts.warnings.iter();
        warnings.map(|w| w.at(Door::Python)).collect()
    }

    /// What `latens fit --json` prints.
    fn to_json(&self) -> String {
        json!(summary::found(&self.0.model, &self.0.facts, Door::Python)).to_string()
    }

    /// What the command line says of it.
    fn summary(&self) -> String {
        let (model, facts) = (&self.0.model, &self.0.facts);
        let lines = words::summary(model, facts).into_iter();
        let lines: String = lines.map(|line| format!("  {line}\n")).collect();
        format!("{}\nin short\n{lines}", summary::table(model, facts))
    }

    /// The records whose states it has, by their place among its facts.
    #[getter]
    fn places(&self) -> Vec<usize> {
        self.0.tracks.iter().map(|t| t.place).collect()
    }

    /// The columns of states.csv of one of those.
    fn states<'py>(&self, py: Python<'py>, track: usize) -> Result<Columns<'py>> {
        Ok(columns(py, self.0.states_table(&self.0.tracks[track])?))
    }

    /// A record of its own, to go on with.
    fn source(&self, track: usize) -> Result<Source> {
        Source::kept(&self.0, track)
    }

    /// θ, and draws of δθ.
    fn theta<'py>(&self, py: Python<'py>) -> Result<(Vector<'py>, Matrix<'py>)> {
        let draws = matrix(py, self.0.draws.concat(), self.0.theta.len())?;
        Ok((self.0.theta.clone().into_pyarray(py), draws))
    }

    /// Draws of the states of a record from their posterior: draws × samples × states.
    fn drawn<'py>(&self, py: Python<'py>, track: usize) -> Result<Bound<'py, PyArray3<f64>>> {
        let (fit, track) = (&self.0, &self.0.tracks[track]);
        let work = || fit.predictor().draws(&track.record, &track.smoothed);
        let drawn = pool::work(py, work)?;
        let form = [drawn.len(), track.record.len(), fit.model.states.len()];
        let values: Vec<f64> = drawn.iter().flat_map(|d| d.as_slice()).copied().collect();
        Ok(values.into_pyarray(py).reshape(form)?)
    }

    /// Draws of δθ, as many as are asked for where the posterior is normal, and of θ before the data.
    fn draws<'py>(&self, py: Python<'py>, count: usize) -> Result<(Matrix<'py>, Matrix<'py>)> {
        let n = self.0.theta.len();
        let draws = self.0.parameter_draws(count);
        let prior = self.0.prior_draws(draws.len());
        Ok((
            matrix(py, draws.concat(), n)?,
            matrix(py, prior.concat(), n)?,
        ))
    }

    /// Of so many draws: trajectories of a record, and ln p of its readings; draws × samples × states, or channels.
    fn pointwise<'py>(
        &self,
        py: Python<'py>,
        track: usize,
        count: usize,
    ) -> Result<(Cube<'py>, Cube<'py>)> {
        let (fit, track) = (&self.0, &self.0.tracks[track]);
        let work = || {
            let draws = fit.parameter_draws(count);
            let densities = fit.log_likelihood(track, &draws);
            (fit.drawn_states(track, &draws), densities)
        };
        let (drawn, densities) = pool::work(py, work)?;
        let samples = track.record.len();
        let states: Vec<f64> = drawn.iter().flat_map(|d| d.as_slice()).copied().collect();
        let form = [drawn.len(), samples, fit.model.states.len()];
        let states = states.into_pyarray(py).reshape(form)?;
        let form = [densities.len(), samples, fit.model.measurements.len()];
        let densities = densities.concat().into_pyarray(py).reshape(form)?;
        Ok((states, densities))
    }

    /// Which of several fits is the better one: facts as JSON, and a table. It comes first itself.
    fn compare(
        &self,
        py: Python,
        others: Vec<PyRef<Self>>,
        names: Vec<String>,
        folds: usize,
    ) -> PyResult<(String, String)> {
        let mut fits: Vec<latens::Fit> = vec![self.0.clone()];
        fits.extend(others.iter().map(|other| other.0.clone()));
        for (fit, name) in fits.iter_mut().zip(names) {
            fit.name = name;
        }
        let options = latens::CompareOptions { folds };
        let found = pool::watched(py, |observer| {
            let fits: Vec<&latens::Fit> = fits.iter().collect();
            latens::compare(&fits, options, observer)
        })?;
        let found = found.map_err(Failure::from)?.at(Door::Python);
        Ok((json!(found).to_string(), comparison::table(&found)))
    }

    /// Profiles of constants: facts as JSON, a table and a figure.
    fn profile(&self, py: Python, names: Vec<String>) -> PyResult<(String, String, String)> {
        let fit = &self.0;
        let found = pool::watched(py, |observer| latens::profile(fit, &names, observer))?;
        let found = found.map_err(Failure::from)?;
        let table = comparison::profiles(&found);
        Ok((json!(found).to_string(), table, profiles::draw(&found)))
    }

    /// Values of an unknown constant at entries of θ.
    fn unknown<'py>(&self, py: Python<'py>, place: usize, theta: Vec<f64>) -> Vector<'py> {
        let unknown = &self.0.model.unknowns[place];
        let values: Vec<f64> = theta.iter().map(|t| unknown.value(*t)).collect();
        values.into_pyarray(py)
    }

    /// Name and shape of the blocks of weights after the unknowns in θ, in order.
    #[getter]
    fn weights(&self) -> Vec<(String, usize, usize)> {
        let model = &self.0.model;
        let groups = model.group_entries().into_iter();
        let groups = groups.map(|(place, entries)| {
            let name = &model.unknowns[place].name;
            (format!("{name}.groups"), entries.len(), 1)
        });
        let networks = model.system.networks().iter();
        let blocks = networks.flat_map(|n| {
            let blocks = n.blocks().into_iter();
            blocks.map(|(name, rows, columns)| (format!("{}.{name}", n.name), rows, columns))
        });
        groups.chain(blocks).collect()
    }

    /// Labels of the groups that were learned from.
    #[getter]
    fn groups(&self) -> Vec<String> {
        self.0.model.groups().to_vec()
    }

    /// The fit for records of one group, or of a new one.
    fn for_group(&self, label: Option<String>) -> Result<Self> {
        Ok(Self(self.0.for_group(label.as_deref())?))
    }

    /// A free run over a record from the state that its first samples show.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        warm_up: Option<usize>,
        adapt: Vec<String>,
        adapt_prior: f64,
    ) -> Result<Used<'py>> {
        let options = PredictOptions {
            warm_up,
            adapt,
            adapt_prior,
        };
        let (fit, source) = (&self.0, &source.source);
        let made = pool::work(py, || fit.predict(source, &options))??;
        let mut warnings = fit.warnings_of_use(!made.facts.adapted.is_empty());
        warnings.extend(made.warnings);
        let table = made.prediction.table(&fit.model, &source.record)?;
        Ok((columns(py, table), told(made.facts, &warnings)))
    }

    /// The states of a record, with all its measurements.
    fn estimate<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        smooth: bool,
        loosen: Option<f64>,
    ) -> Result<Used<'py>> {
        let options = EstimateOptions { smooth, loosen };
        let (fit, source) = (&self.0, &source.source);
        let made = pool::work(py, || fit.estimate(source, &options))??;
        let table = made.table(fit, &source.record)?;
        Ok((columns(py, table), told(made.facts, &made.warnings)))
    }

    /// The learned equations from a start, driven by inputs; without any, so many samples.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        driving: Option<PyRefMut<'py, Source>>,
        samples: usize,
        start: Vec<(String, f64)>,
        constants: Vec<(String, f64)>,
    ) -> Result<Used<'py>> {
        let unknowns = self.0.model.unknowns.iter();
        let names: Vec<&str> = unknowns.map(|u| u.name.as_str()).collect();
        let constants = places(&constants, &names, "unknown constant")?;
        let fit = &self.0.with_constants(&constants)?;
        let states: Vec<&str> = fit.model.states.iter().map(|s| s.name.as_str()).collect();
        let start = fit.start(&places(&start, &states, "state")?);
        let driving = match driving {
            Some(mut source) => source.take().record,
            None => fit.undriven(samples)?,
        };
        let made = pool::work(py, || fit.simulate(driving, &start))??;
        let table = made.prediction.table(&fit.model, &made.record)?;
        Ok((columns(py, table), told(made.facts, &made.warnings)))
    }

    /// A network at rows of arguments: values, standard deviations, and whether training met the like.
    fn network<'py>(
        &self,
        py: Python<'py>,
        place: usize,
        arguments: PyReadonlyArray2<'py, f64>,
    ) -> Result<(Matrix<'py>, Matrix<'py>, Bound<'py, PyArray1<bool>>)> {
        let network = &self.0.model.system.networks()[place];
        let values = arguments.as_slice();
        let values = values.map_err(|_| setting("the arguments are not contiguous"))?;
        let (mut means, mut stds, mut visited) = (vec![], vec![], vec![]);
        let mut evaluator = Evaluator::new(&self.0, place);
        for row in values.chunks_exact(network.arguments) {
            for (value, std) in evaluator.at(row) {
                means.push(value);
                stds.push(std);
            }
            visited.push(evaluator.visited(row));
        }
        let outputs = network.outputs.len();
        Ok((
            matrix(py, means, outputs)?,
            matrix(py, stds, outputs)?,
            visited.into_pyarray(py),
        ))
    }

    /// The page of `latens report`.
    fn report(&self, py: Python) -> String {
        py.detach(|| page::html(std::slice::from_ref(&self.0)))
    }

    /// Writes it whole or not at all.
    fn write_report(&self, py: Python, path: PathBuf) -> Result<()> {
        write(path, self.report(py).as_bytes())
    }

    /// Writes a figure; the ending says its form.
    fn write_figure(&self, py: Python, what: &str, path: PathBuf) -> Result<()> {
        let form = Form::of(&path).ok_or_else(|| {
            setting(format!(
                "{} is no figure: give a file that ends in .svg, .pdf or .png",
                path.display()
            ))
        })?;
        let svg = self.figure(what)?;
        let bytes = py.detach(|| form.encode(&svg)).map_err(setting)?;
        write(path, &bytes)
    }

    /// A figure of `latens plot` as SVG.
    fn figure(&self, what: &str) -> Result<String> {
        let all = [
            ("states", What::States),
            ("equation", What::Equation),
            ("field", What::Field),
            ("convergence", What::Convergence),
            ("innovations", What::Innovations),
            ("tests", What::Tests),
            ("constants", What::Constants),
        ];
        let names = all.map(|(name, _)| name);
        let figure = all[place(what, &names, "figure")?].1;
        figures::draw(std::slice::from_ref(&self.0), figure).map_err(setting)
    }

    /// Writes it as code for another tool: the files, and what to know of them.
    fn export(
        &self,
        py: Python,
        path: PathBuf,
        to: Option<&str>,
        force: bool,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let target = match to {
            Some(name) => Target::of_name(name)?,
            None => Target::of_path(&path)?,
        };
        let written = py.detach(|| latens_export::write(&self.0, target, &path, force))?;
        let files = written.files.iter().map(|p| p.display().to_string());
        Ok((files.collect(), written.notes))
    }

    /// Formulas for its networks as JSON, their page, and whether Ctrl-C ended the search.
    fn distill(
        &self,
        py: Python,
        candidates: usize,
        proposed: Vec<String>,
        hear: Option<Py<PyAny>>,
    ) -> PyResult<(String, String, bool)> {
        let options = latens_distill::Options {
            candidates: candidates.max(1),
            proposed,
        };
        let fit = self.0.clone();
        let found = watched::run(py, hear.as_ref(), move |watch| {
            let found = latens_distill::distill(&fit, &options, watch)?;
            let page = latens_report::formulas::html(&fit, &found, false);
            Ok((serde_json::json!(found).to_string(), page))
        });
        let ((text, page), interrupted) = found?;
        Ok((text, page, interrupted))
    }

    /// Experiments, best first, as JSON with the runs of the best, the picture as SVG, and whether Ctrl-C ended
    /// it. `asked` is JSON, see [`design`].
    fn design(
        &self,
        py: Python,
        asked: &str,
        prediction: Option<PyRef<Source>>,
        between: Vec<PyRef<Model>>,
        hear: Option<Py<PyAny>>,
    ) -> PyResult<(String, String, bool)> {
        let prediction = prediction.map(|p| p.source.record.clone());
        let between = between.iter().map(|m| m.0.clone()).collect();
        let options = design::options(asked, prediction, between)?;
        let fit = self.0.clone();
        let found = watched::run(py, hear.as_ref(), move |watch| {
            let outcome = latens_design::design(&fit, &options, watch)?;
            Ok(design::shown(&fit, &outcome))
        });
        let ((text, svg), interrupted) = found?;
        Ok((text, svg, interrupted))
    }

    /// An online estimator that starts from it.
    fn stream(
        &self,
        learn: Option<bool>,
        forget: Option<f64>,
        gate: Option<f64>,
    ) -> Result<Stream> {
        Stream::of_fit(self.0.clone(), learn, forget, gate)
    }
}
