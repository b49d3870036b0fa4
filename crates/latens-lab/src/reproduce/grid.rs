//! The grid: cells side by side, one thread each, every one kept as soon as it is done.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::CELLS_FOLDER;
use super::cell::{self, Cell, Method, Status, System};
use crate::files::{alone, write_json};
use crate::host;
use latens::Error;
use latens::text;

/// A cell that is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub system: usize,
    pub method: Method,
    pub seed: u64,
}

/// All cells; every seed of all methods before the next, so that what is done early is a whole table.
pub fn jobs(systems: &[System], methods: &[Method], seeds: u64) -> Vec<Job> {
    let mut jobs = vec![];
    for seed in 1..=seeds {
        for system in 0..systems.len() {
            let jobs_of_system = methods.iter().map(|&method| Job {
                system,
                method,
                seed,
            });
            jobs.extend(jobs_of_system);
        }
    }
    jobs
}

/// The file of a cell.
fn file(folder: &Path, system: &str, method: Method, seed: u64) -> PathBuf {
    let name = format!("{system}--{}--{seed}.json", method.name());
    folder.join(CELLS_FOLDER).join(name)
}

/// Runs those that are not done yet.
pub fn run(
    systems: &[System],
    jobs: Vec<Job>,
    folder: &Path,
    budget: f64,
    quiet: bool,
) -> Result<(), Error> {
    let all = jobs.len();
    let path = |job: &Job| file(folder, &systems[job.system].name, job.method, job.seed);
    let open: Vec<Job> = jobs.into_iter().filter(|j| !path(j).is_file()).collect();
    if open.len() < all && !quiet {
        host::note(&format!(
            "{} of {all} cells are done already",
            all - open.len()
        ));
    }
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (failure, started) = (Mutex::new(None), Instant::now());
    let work = || {
        while let Some(job) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            if host::asked() {
                break;
            }
            let system = &systems[job.system];
            let Some(cell) = alone(|| cell::run(system, job.method, job.seed, budget)) else {
                break;
            };
            if let Err(error) = write_json(&path(job), &cell) {
                *failure.lock().expect("nobody panics with it") = Some(error);
                break;
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if !quiet {
                let gone = started.elapsed().as_secs_f64();
                let left = gone / done as f64 * (open.len() - done) as f64;
                let left = if done == open.len() {
                    String::new()
                } else {
                    format!("; about {} left", text::rough_seconds(left))
                };
                host::note(&format!("{done} of {}: {}{left}", open.len(), said(&cell)));
            }
        }
    };
    std::thread::scope(|scope| {
        (0..threads.min(open.len())).for_each(|_| drop(scope.spawn(work)));
    });
    match failure.into_inner().expect("nobody panics with it") {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// A cell in a line.
fn said(cell: &Cell) -> String {
    let score = &cell.score;
    let outcome = match (score.status, score.nrmse_mean) {
        (Status::Ok, Some(mean)) => format!("{mean:.1e}"),
        (Status::Diverged, _) => "diverged".into(),
        _ => format!("failed, {}", cell.why.as_deref().unwrap_or("unknown why")),
    };
    format!(
        "{}, {}, seed {}: {outcome} in {}",
        score.system,
        score.method,
        score.seed,
        text::seconds(score.seconds)
    )
}
