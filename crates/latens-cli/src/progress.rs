//! A fit on its way: one moving line on a terminal, one line per pass elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use latens::check::Check;
use latens::solve::{EpochReport, Observer, Progress, Settings, Solver};

use crate::{interrupt, text, verdict};

/// Marks of the bar per epoch.
const MARKS: u64 = 1000;
const REFINEMENT: &str = "refining the best stage";
const REDRAW: Duration = Duration::from_millis(200);

enum Shown {
    Moving(ProgressBar),
    Lines,
    Nothing,
}

/// Shows a fit and stops it when asked to.
///
/// The recursions know how far they are. Stages of batch take as many iterations as they need,
/// so it shows where it is and for how long, and promises nothing. Several starts at once are
/// counted as they end.
pub struct Display {
    shown: Shown,
    solver: Solver,
    /// Passes of a start at the most.
    passes: usize,
    starts: usize,
    /// The last pass or start that was heard of.
    last: usize,
    refining: bool,
    started: Instant,
    /// What the data do not determine, said before anything is learned.
    pub warnings: Vec<String>,
}

impl Display {
    pub fn new(settings: &Settings, quiet: bool) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if stderr().is_terminal() {
            Shown::Moving(moving(settings))
        } else {
            Shown::Lines
        };
        Self {
            shown,
            solver: settings.solver,
            passes: settings.epochs,
            starts: settings.starts,
            last: 0,
            refining: false,
            started: Instant::now(),
            warnings: vec![],
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Takes the moving line away.
    pub fn finish(&self) {
        if let Shown::Moving(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    /// A line that stays.
    fn line(&self, line: &str) {
        match &self.shown {
            Shown::Moving(bar) => bar.suspend(|| text::note(line)),
            Shown::Lines => text::note(line),
            Shown::Nothing => {}
        }
    }

    fn pass(&self, number: usize) -> String {
        match self.solver {
            Solver::Batch => format!("stage {number}"),
            _ => format!("epoch {number} of {}", self.passes),
        }
    }

    /// Whether batch is behind its last stage, at the best one again.
    fn refines(&self, progress: &Progress) -> bool {
        let alone = self.solver == Solver::Batch && self.starts == 1;
        alone && (progress.epoch > self.passes || progress.epochs != self.passes)
    }

    /// Where a fit is; `progress` counts starts where there are several.
    fn place(&self, progress: &Progress) -> String {
        if self.starts > 1 {
            return format!("{} of {} starts done", progress.epoch - 1, self.starts);
        }
        if self.solver != Solver::Batch {
            return self.pass(progress.epoch);
        }
        let place = match self.refines(progress) {
            true => REFINEMENT.into(),
            false => self.pass(progress.epoch),
        };
        format!("{place}, iteration {}", progress.step + 1)
    }
}

/// A bar where the end is known, else a turning wheel.
fn moving(settings: &Settings) -> ProgressBar {
    let known = settings.starts > 1 || settings.solver != Solver::Batch;
    let template = match known {
        true => "{prefix} {bar:30} {msg}{elapsed} gone, {eta} left",
        false => "{spinner} {prefix}; {msg}{elapsed}",
    };
    let passes = match settings.starts {
        1 => settings.epochs,
        starts => starts,
    };
    let bar = match known {
        true => ProgressBar::new(passes as u64 * MARKS),
        false => ProgressBar::new_spinner(),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.set_prefix("looking at the data");
    bar.enable_steady_tick(REDRAW);
    bar
}

fn figures(solver: Solver, report: &EpochReport) -> String {
    // each stage of batch weighs the physics anew: costs of two stages do not compare
    let mut text = match solver {
        Solver::Batch => String::new(),
        _ => format!("cost {:.2e}, ", report.cost.total()),
    };
    if report.free_run.is_finite() {
        text += &format!("free-run error {:.1e}, ", report.free_run);
    }
    text
}

impl Observer for Display {
    fn checked(&mut self, check: &Check) {
        self.warnings = verdict::warnings(check);
        for warning in &self.warnings {
            let warning = format!("warning: {warning}");
            match &self.shown {
                Shown::Moving(bar) => bar.suspend(|| text::note(&warning)),
                _ => text::note(&warning),
            }
        }
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        if self.starts > 1 && progress.epoch - 1 > self.last {
            self.last = progress.epoch - 1;
            let time = text::seconds(self.seconds());
            if let Shown::Lines = self.shown {
                self.line(&format!("{}, {time}", self.place(progress)));
            }
        }
        if self.refines(progress) && !self.refining {
            self.refining = true;
            let time = text::seconds(self.seconds());
            if let Shown::Lines = self.shown {
                self.line(&format!("{REFINEMENT}, {time}"));
            }
        }
        if let Shown::Moving(bar) = &self.shown {
            bar.set_prefix(self.place(progress));
            let done = (progress.epoch as u64 - 1) * MARKS;
            if self.starts > 1 {
                bar.set_position(done);
            } else if self.solver != Solver::Batch {
                let part = MARKS * progress.step as u64 / progress.steps.max(1) as u64;
                bar.set_position(done + part);
            }
        }
        !interrupt::asked()
    }

    fn epoch(&mut self, report: &EpochReport) -> bool {
        if report.epoch <= self.last {
            self.line("that start failed; the next seed is tried");
        }
        self.last = report.epoch;
        self.refining = false;
        let time = text::seconds(self.seconds());
        let figures = figures(self.solver, report);
        match &self.shown {
            // a stage may be long, and what came before it says how the fit is doing
            Shown::Moving(bar) if self.solver == Solver::Batch => {
                bar.suspend(|| {
                    text::note(&format!("{}: {figures}{time}", self.pass(report.epoch)))
                });
            }
            Shown::Moving(bar) => {
                bar.set_prefix(self.pass(report.epoch));
                bar.set_message(figures);
                bar.set_position(report.epoch as u64 * MARKS);
            }
            _ => self.line(&format!("{}: {figures}{time}", self.pass(report.epoch))),
        }
        !interrupt::asked()
    }
}
