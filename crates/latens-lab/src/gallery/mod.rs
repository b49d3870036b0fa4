//! `latens lab gallery`: problems of many fields, each fitted with defaults as the right model, with a
//! network in place of a term and slightly wrong, beside least squares on the free run.
//!
//! Records are simulated from the right model, one to learn from and two held out; the score is the
//! free run over the held-out ones, from the state that their first samples show, against the truth
//! without noise. Each cell is a file in `cells`, written whole when it is done.

mod cell;
mod problems;
pub(crate) mod rival;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use latens::{Error, Model, text};
use serde_json::Value;

use crate::files::{alone, file_error, unknown, write_json};
use crate::host;
use cell::{Cell, Place, Records};
pub use problems::{Half, PROBLEMS, Problem, Variant, find};
use rival::Files;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Problems; all where none is named.
    pub problems: Vec<String>,
    /// One half of them.
    pub half: Option<Half>,
    /// Standard deviations of the noise, in percent of a channel's range.
    pub noise: Vec<f64>,
    /// What is made of the right models; all where none is named.
    pub variants: Vec<Variant>,
    /// Seeds 1 to N of each.
    pub seeds: u64,
    /// Cells side by side; as many as there are cores where nobody says.
    pub jobs: Option<usize>,
    /// The folder to write.
    pub output: PathBuf,
    /// Whether to go on in a folder that has cells already.
    pub resume: bool,
    /// Whether to leave out least squares.
    pub alone: bool,
    /// Where results of least squares are kept; in the folder where nobody says.
    pub least_squares: Option<PathBuf>,
    /// Whether to say nothing on the way.
    pub quiet: bool,
}

/// What came of it.
pub struct Done {
    /// The table, for people.
    pub summary: String,
    /// The same for programs.
    pub json: Value,
    /// Whether somebody stopped it.
    pub stopped: bool,
}

const CELLS_FOLDER: &str = "cells";

/// Runs the gallery, or goes on with it.
///
/// # Errors
/// Names that there are not, a folder that holds something else, files that cannot be written.
pub fn run(options: &Options) -> Result<Done, Error> {
    let places = places(options)?;
    let folder = &options.output;
    prepare(folder, options.resume)?;
    let python = if options.alone { None } else { rival::python() };
    if python.is_none() && !options.alone {
        host::note(&format!(
            "warning: not compared: no python3 with scipy (set {} to one that has it)",
            rival::PYTHON_VARIABLE
        ));
    }
    let kept = options.least_squares.clone();
    let kept = kept.unwrap_or_else(|| folder.join("least-squares"));
    std::fs::create_dir_all(&kept).map_err(|e| file_error("write", &kept, e))?;
    let grid = Grid {
        folder,
        kept: &kept,
        python: python.as_deref(),
        quiet: options.quiet,
    };
    grid.run(&places, options.jobs)?;
    let cells = grid.cells(&places)?;
    let summary = table::write(&cells, folder)?;
    Ok(Done {
        summary,
        json: table::json(&cells),
        stopped: host::asked(),
    })
}

/// All cells that are asked for; every variant and noise of a problem before the next.
fn places(options: &Options) -> Result<Vec<Place>, Error> {
    let names: Vec<String> = PROBLEMS.iter().map(|p| p.name.into()).collect();
    if let Some(name) = options.problems.iter().find(|n| !names.contains(n)) {
        return Err(unknown("problem", name, &names));
    }
    let asked = |problem: &&Problem| {
        let named = options.problems.iter().any(|n| n == problem.name);
        let half = options.half.is_none_or(|half| half == problem.half());
        half && (named || options.problems.is_empty())
    };
    let variants = if options.variants.is_empty() {
        Variant::ALL.to_vec()
    } else {
        options.variants.clone()
    };
    let mut places = vec![];
    for seed in 1..=options.seeds {
        for problem in PROBLEMS.iter().filter(asked) {
            for &noise in &options.noise {
                places.extend(variants.iter().map(|&variant| Place {
                    problem,
                    variant,
                    noise,
                    seed,
                }));
            }
        }
    }
    Ok(places)
}

/// Makes the folder, or finds out whether it can be gone on with.
fn prepare(folder: &Path, resume: bool) -> Result<(), Error> {
    let (cells, shown) = (folder.join(CELLS_FOLDER), folder.display());
    if cells.is_dir() && !resume {
        return Err(Error::Setting(format!(
            "{shown} holds a gallery already; go on with it by --resume, or choose another folder with -o"
        )));
    }
    let filled = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if filled && !cells.is_dir() {
        return Err(Error::Setting(format!(
            "{shown} exists and holds something else; choose another folder with -o"
        )));
    }
    std::fs::create_dir_all(&cells).map_err(|e| file_error("write", &cells, e))
}

/// Where cells are run and kept.
struct Grid<'a> {
    folder: &'a Path,
    kept: &'a Path,
    python: Option<&'a Path>,
    quiet: bool,
}

impl Grid<'_> {
    fn file(&self, place: &Place) -> PathBuf {
        let name = format!("{}.json", place.name());
        self.folder.join(CELLS_FOLDER).join(name)
    }

    /// Runs the cells that are not done yet, side by side.
    fn run(&self, places: &[Place], jobs: Option<usize>) -> Result<(), Error> {
        let open: Vec<&Place> = places.iter().filter(|p| !self.file(p).is_file()).collect();
        if open.len() < places.len() && !self.quiet {
            let done = places.len() - open.len();
            host::note(&format!(
                "{done} of {} cells are done already",
                places.len()
            ));
        }
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = jobs.unwrap_or_else(cores).min(open.len());
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (failure, started) = (Mutex::new(None), Instant::now());
        let work = || {
            while let Some(place) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                let cell = match self.cell(place) {
                    Ok(Some(cell)) => cell,
                    Ok(None) => break,
                    Err(error) => {
                        *failure.lock().expect("nobody panics with it") = Some(error);
                        break;
                    }
                };
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if !self.quiet {
                    let gone = started.elapsed().as_secs_f64();
                    let left = gone / done as f64 * (open.len() - done) as f64;
                    let left = if done == open.len() {
                        String::new()
                    } else {
                        format!("; about {} left", text::rough_seconds(left))
                    };
                    let line = table::line(&cell);
                    host::note(&format!("{done} of {}: {line}{left}", open.len()));
                }
            }
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        match failure.into_inner().expect("nobody panics with it") {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Runs a cell and keeps it; `None` where somebody stopped it.
    fn cell(&self, place: &Place) -> Result<Option<Cell>, Error> {
        if host::asked() {
            return Ok(None);
        }
        let text = place.problem.variant_text(place.variant)?;
        let model = Model::from_text(&place.name(), &text)?;
        let records = Records::make(place)?;
        let files = Files::write(self.folder, place, &text, &records)?;
        let Some(mut cell) = alone(|| cell::run(place, &model, &records)) else {
            return Ok(None);
        };
        if let Some(python) = self.python {
            let kept = self.kept.join(format!("{}.json", place.name()));
            let rival = rival::run(python, &kept, &files, place, &model, &records)?;
            if host::asked() {
                return Ok(None);
            }
            cell.least_squares = Some(rival);
        }
        write_json(&self.file(place), &cell)?;
        Ok(Some(cell))
    }

    /// The cells that are done, in the order in which they were asked for.
    fn cells(&self, places: &[Place]) -> Result<Vec<Cell>, Error> {
        let mut cells = vec![];
        for path in places.iter().map(|place| self.file(place)) {
            if !path.is_file() {
                continue;
            }
            let bytes = std::fs::read(&path).map_err(|e| file_error("read", &path, e))?;
            let cell = serde_json::from_slice(&bytes).map_err(|e| {
                let path = path.display();
                Error::Setting(format!("{path} is damaged: {e}; delete it and --resume"))
            })?;
            cells.push(cell);
        }
        Ok(cells)
    }
}
