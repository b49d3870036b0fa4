//! A fit: the files of its run in memory, and what they say.

use std::io::Write;
use std::path::PathBuf;

use latens::estimate::{Mode, NoiseFactor, Start};
use latens::fit::run::{self, Files, Predicted};
use latens::record::{Column, Table, write_atomic};
use latens::score::named::state_scores;
use latens::simulate::start;
use latens::suggest::find;
use latens::{Error, score};
use latens_report::evaluator::Evaluator;
use latens_report::figures::{self, What};
use latens_report::picture::Form;
use latens_report::{Shown, page, summary, warnings, words};
use numpy::{IntoPyArray, PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::arrays::{Columns, Matrix, Vector, columns, matrix};
use crate::errors::{Failure, Result, setting};
use crate::learn::NAME;
use crate::model::Model;
use crate::pool;
use crate::record::Source;
use crate::stream::Stream;

/// A fitted model.
#[pyclass(frozen, module = "latens._latens")]
pub struct Fit {
    pub shown: Shown,
    pub files: Files,
}

fn write(path: PathBuf, bytes: &[u8]) -> Result<()> {
    let written = write_atomic(&path, |out| out.write_all(bytes));
    Ok(written.map_err(|source| Error::Io {
        action: "write",
        path,
        source,
    })?)
}

/// Columns, facts as JSON, and warnings.
type Used<'py> = (Columns<'py>, String, Vec<String>);

#[pymethods]
impl Fit {
    #[staticmethod]
    fn load(py: Python, folder: PathBuf) -> Result<Self> {
        Ok(py.detach(|| -> std::result::Result<_, Error> {
            // says what is wrong with a folder that is none
            let files = match folder.join("fit.json").is_file() {
                true => run::load_files(&folder)?,
                false => return Err(run::load(&folder).err().unwrap_or(Error::Stopped)),
            };
            let shown = Shown::from_files(&files, &folder.display().to_string())?;
            Ok(Self { shown, files })
        })?)
    }

    #[staticmethod]
    fn of_files(files: Files) -> Result<Self> {
        let shown = Shown::from_files(&files, NAME)?;
        Ok(Self { shown, files })
    }

    /// The files of its run.
    fn to_files<'py>(&self, py: Python<'py>) -> Vec<(&str, Bound<'py, PyBytes>)> {
        let each = self.files.iter();
        each.map(|(name, bytes)| (name.as_str(), PyBytes::new(py, bytes)))
            .collect()
    }

    fn save(&self, py: Python, folder: PathBuf, force: bool) -> Result<()> {
        Ok(py.detach(|| run::save_files(&self.files, folder, force))?)
    }

    /// As it was read, its networks scaled.
    #[getter]
    fn model(&self) -> Model {
        Model(self.shown.run.model.clone())
    }

    /// fit.json.
    #[getter]
    fn facts(&self) -> std::result::Result<String, Failure> {
        let json = serde_json::to_string(&self.shown.run.facts);
        json.map_err(|e| setting(e.to_string()))
    }

    /// What the command line says of it.
    fn summary(&self) -> String {
        let run = &self.shown.run;
        let lines = words::summary(&run.model, &run.facts).into_iter();
        let lines: String = lines.map(|line| format!("  {line}\n")).collect();
        let table = summary::table(&run.model, &run.facts);
        format!("{table}\nin short\n{lines}")
    }

    /// The records whose states it has, by their place among its facts.
    #[getter]
    fn places(&self) -> Vec<usize> {
        self.shown.tracks.iter().map(|t| t.place).collect()
    }

    /// The columns of states.csv of one of those.
    fn states<'py>(&self, py: Python<'py>, track: usize) -> Result<Columns<'py>> {
        let (track, model) = (&self.shown.tracks[track], &self.shown.run.model);
        let mut all = track.record.to_table(&model.layout())?.into_columns();
        for (i, state) in model.states.iter().enumerate() {
            for (what, values) in [
                ("smoothed", &track.smoothed),
                ("std", &track.deviations),
                ("one_step", &track.one_step),
                ("free_run", &track.free_run),
            ] {
                let name = format!("{}.{what}", state.name);
                all.push(Column::new(name, track.column(values, i)));
            }
        }
        Ok(columns(py, Table::new(&track.record.name, all)?))
    }

    /// A record of its own, to go on with.
    fn source(&self, track: usize) -> Result<Source> {
        let track = &self.shown.tracks[track];
        let facts = self.shown.facts_of(track);
        let origin = (facts.file.clone(), facts.sha256.clone());
        Source::of_record(&self.shown.run.model, track.record.clone(), origin)
    }

    /// θ, and draws of δθ.
    fn theta<'py>(&self, py: Python<'py>) -> Result<(Vector<'py>, Matrix<'py>)> {
        let run = &self.shown.run;
        let draws = matrix(py, run.draws.concat(), run.theta.len())?;
        Ok((run.theta.clone().into_pyarray(py), draws))
    }

    /// Draws of the states of a record from their posterior: draws × samples × states.
    fn drawn<'py>(&self, py: Python<'py>, track: usize) -> Result<Bound<'py, PyArray3<f64>>> {
        let (run, track) = (&self.shown.run, &self.shown.tracks[track]);
        let work = || run.predictor().draws(&track.record, &track.smoothed);
        let drawn = pool::work(py, work)?;
        let form = [drawn.len(), track.record.len(), run.model.states.len()];
        Ok(drawn.concat().into_pyarray(py).reshape(form)?)
    }

    /// Values of an unknown constant at entries of θ.
    fn unknown<'py>(&self, py: Python<'py>, place: usize, theta: Vec<f64>) -> Vector<'py> {
        let unknown = &self.shown.run.model.unknowns[place];
        let values: Vec<f64> = theta.iter().map(|t| unknown.value(*t)).collect();
        values.into_pyarray(py)
    }

    /// Name and shape of the blocks of weights behind the unknowns in θ, in order.
    #[getter]
    fn weights(&self) -> Vec<(String, usize, usize)> {
        let networks = self.shown.run.model.system.networks().iter();
        let blocks = networks.flat_map(|n| {
            let each = n.blocks().into_iter();
            each.map(|(name, rows, columns)| (format!("{}.{name}", n.name), rows, columns))
        });
        blocks.collect()
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
        let run = &self.shown.run;
        let constants = run.constants(&adapt)?;
        let warm_up = warm_up.unwrap_or(Start::samples(&source.record));
        let adapts = (constants.as_slice(), adapt_prior);
        let work = || run.predicted(&source.source(), warm_up, adapts);
        let Predicted {
            prediction,
            facts,
            changes,
            doubts,
        } = pool::work(py, work)??;
        let mut said = warnings::of_run(run, &self.shown.folder, !constants.is_empty());
        said.extend(doubts);
        let changes: Vec<_> = changes
            .iter()
            .map(|c| json!({ "before": c.before, "after": c.after }))
            .collect();
        let mut object = json!(facts);
        object["warmup"] = json!(warm_up);
        object["outside"] = json!(prediction.outside);
        object["adapted"] = json!(changes);
        let table = prediction.table(&run.model, &source.record)?;
        Ok((columns(py, table), object.to_string(), said))
    }

    /// The states of a record, with all its measurements.
    fn estimate<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        smooth: bool,
        loosen: Option<f64>,
    ) -> Result<Used<'py>> {
        let (run, record) = (&self.shown.run, &source.record);
        let (model, predictor) = (&run.model, run.predictor());
        if loosen.is_some_and(|f| !(f > 0.0 && f.is_finite())) {
            return Err(setting("a factor on the process noise is above zero"));
        }
        predictor.check(record, 0)?;
        let mode = match smooth {
            true => Mode::Smoother,
            false => Mode::Filter,
        };
        let work = || {
            let loosened = loosen.map_or_else(|| predictor.loosened(record), NoiseFactor);
            let estimated = predictor.estimate(record, mode, loosened)?;
            Ok::<_, Error>((loosened, estimated))
        };
        let (loosened, estimated) = pool::work(py, work)??;
        let chosen = (loosened, loosen.is_some());
        let said = warnings::of_estimate(run, &source.file, &estimated, chosen);
        let [rmse, nrmse] = [score::rmse, score::nrmse]
            .map(|measure| state_scores(model, record, &estimated.states, measure));
        let object = json!({
            "file": source.file,
            "role": run.role(&source.sha256),
            "samples": record.len(),
            "scored": record.len(),
            "loosened": loosened.0,
            "consistency": Some(estimated.consistency).filter(|c| c.is_finite()),
            "rmse": rmse,
            "nrmse": nrmse,
        });
        let table = estimated.table(model, record, mode)?;
        Ok((columns(py, table), object.to_string(), said))
    }

    /// The learned equations from a start, driven by inputs; without any, so many samples.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        driving: Option<PyRefMut<'py, Source>>,
        samples: usize,
        start_values: Vec<(String, f64)>,
    ) -> Result<Used<'py>> {
        let run = &self.shown.run;
        let states: Vec<&str> = run.model.states.iter().map(|s| s.name.as_str()).collect();
        let given = start_values.iter();
        let given = given
            .map(|(name, value)| Ok((find(name, &states, "state")?, *value)))
            .collect::<std::result::Result<Vec<_>, Error>>()?;
        let start = start(&run.model, &given)?;
        let driving = match driving {
            Some(mut source) => source.take(),
            None => run.undriven(samples)?,
        };
        let (record, prediction) = pool::work(py, || run.simulated(driving, &start))??;
        let said = run.facts.doubts(&run.model, &record.name, &prediction);
        let object = json!({ "samples": record.len(), "outside": prediction.outside });
        let table = prediction.table(&run.model, &record)?;
        Ok((columns(py, table), object.to_string(), said))
    }

    /// A network at rows of arguments: values, standard deviations, and whether training met the like.
    fn network<'py>(
        &self,
        py: Python<'py>,
        place: usize,
        arguments: PyReadonlyArray2<'py, f64>,
    ) -> Result<(Matrix<'py>, Matrix<'py>, Bound<'py, PyArray1<bool>>)> {
        let run = &self.shown.run;
        let network = &run.model.system.networks()[place];
        let values = arguments.as_slice();
        let values = values.map_err(|_| setting("the arguments are not contiguous"))?;
        let (mut means, mut stds, mut visited) = (vec![], vec![], vec![]);
        let mut evaluator = Evaluator::new(run, place);
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
        py.detach(|| page::html(std::slice::from_ref(&self.shown)))
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
        ];
        let names = all.map(|(name, _)| name);
        let what = all[find(what, &names, "figure")?].1;
        figures::draw(std::slice::from_ref(&self.shown), what).map_err(setting)
    }

    /// An online estimator that starts from it.
    fn stream(
        &self,
        learn: Option<bool>,
        forget: Option<f64>,
        gate: Option<f64>,
    ) -> Result<Stream> {
        Stream::of_run(self.shown.run.clone(), learn, forget, gate)
    }
}
