//! `latens fit --solver node-lstm|pr-ssm`: methods of others that leave states and scores, and no fit.

use std::path::Path;

use latens::folder::Claim;
use latens::record::{Record, Source};
use latens::solve::Solver;
use latens::{Job, Model};
use latens_lab::rivals::without_fit::{SCORES_FILE, States, Training};
use latens_lab::rivals::{self, Rival, RivalSolver};

use crate::failure::Failure;
use crate::progress::Display;
use crate::records::Files;
use crate::settings::Options;
use crate::{interrupt, text};

/// What the command line asks of one.
pub struct Asked<'a> {
    pub rival: Rival,
    pub resumes: bool,
    pub tests: bool,
    pub output: &'a Path,
    pub force: bool,
    pub quiet: bool,
    pub json: bool,
}

/// Trains one and writes what it leaves.
pub fn run(model: Model, files: &Files, options: &Options, asked: &Asked) -> Result<(), Failure> {
    let _claim = claim(asked)?;
    let mut job = Job::new_unset(model);
    let layer = options.layer(&job.model)?;
    // it is no solver, but reads a solver's settings
    job.settings = RivalSolver(asked.rival).settings();
    layer.onto(&mut job.settings);
    let held = job.model.for_settings(&job.settings);
    job.model = held.map_err(latens::Error::from)?;
    if let Some(unknown) = job.model.unknowns.iter().find(|u| u.is_bounded()) {
        return Err(Failure::Message(format!(
            "{} does not keep the bounds of `{}`",
            asked.rival.name(),
            unknown.name
        )));
    }
    files.read_into(&mut job)?;
    job.validate_tail(layer.validate_tail)?;
    let settings = rivals::Settings {
        iterations: job.settings.passes,
        seed: job.settings.seed,
        ..rivals::Settings::new(asked.rival)
    };
    interrupt::install("stopping soon; what was learned so far will be written");
    // shown as a solver of its kind is
    let shown = latens::Settings {
        solver: "node".into(),
        ..job.settings.clone()
    };
    let mut display = Display::new(&shown, asked.quiet)?;
    let records: Vec<Record> = job.train.iter().map(|s| s.record.clone()).collect();
    let outcome = rivals::fit(&job.model, &records, &settings, &mut display);
    let seconds = display.seconds();
    display.finish();
    interrupt::writing();
    let sources: Vec<&Source> = job.train.iter().chain(&job.validate).collect();
    let training = Training {
        rival: asked.rival,
        seed: job.settings.seed,
        seconds,
        sources,
    };
    let states = States::new(outcome?, training);
    states.write(asked.output)?;
    if asked.json {
        text::print_json(&states.output(asked.output))?;
    } else {
        text::print(&states.text(asked.output))?;
    }
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

/// Refuses what none of them can do, and a folder that must not be written to; other processes are then
/// refused that folder.
fn claim(asked: &Asked) -> Result<Claim, Failure> {
    let (name, folder) = (asked.rival.name(), asked.output);
    if asked.resumes {
        return Err(Failure::Message(format!(
            "{name} cannot go on with a fit: fit again, with more --passes"
        )));
    }
    if asked.tests {
        return Err(Failure::Message(format!(
            "{name} leaves no fit that a test could be predicted with; give the record to --validate, which is scored"
        )));
    }
    let claim = Claim::new(folder)?;
    // its folder is replaced, a fit never: the two would lie in one
    match (folder.join(SCORES_FILE).is_file(), asked.force) {
        (true, true) => Ok(claim),
        (true, false) => Err(Failure::Message(format!(
            "{} holds scores already; choose another folder with -o, or replace them with --force",
            folder.display()
        ))),
        (false, _) => {
            claim.check(false)?;
            Ok(claim)
        }
    }
}
