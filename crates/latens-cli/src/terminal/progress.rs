//! A fit on its way: one moving line on a terminal, with the course of its error as a small curve; a
//! line now and then elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use latens::look::Suspect;
use latens::solve::{self, Observer, PassReport, Progress, Solver, Trial};
use latens::{Settings, Warning, Watch};

use crate::failure::Failure;
use crate::pace::{self, Pace};
use crate::{interrupt, text};

/// Marks of the bar per pass.
const MARKS_A_PASS: u64 = 1000;
const REFINEMENT_WORDS: &str = "refining the best stage";
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Seconds between two lines where there is no terminal.
const SECONDS_BETWEEN_LINES: f64 = 10.0;
/// Passes that the small curve shows at the most.
const CURVE_PASSES: usize = 16;

enum Shown {
    Moving(ProgressBar),
    Lines,
    Nothing,
}

/// Shows a fit, with the time that is left, and stops it when asked to.
///
/// The recursions know how far they are. Stages of batch take as many iterations as they need,
/// and are as many as it takes: what is left of them is a guess from those before. Several starts
/// at once are counted as they end.
pub struct Display {
    shown: Shown,
    solver: &'static dyn Solver,
    /// Passes of a start at the most.
    passes: usize,
    starts: usize,
    /// The last pass or start that was heard of.
    last: usize,
    refining: bool,
    /// What is tried beside the fit itself.
    trial: Option<Trial>,
    started: Instant,
    pace: Pace,
    /// When the last line was written.
    line: f64,
    /// How this start does so far.
    course: Course,
}

impl Display {
    pub fn new(settings: &Settings, quiet: bool) -> Result<Self, Failure> {
        let solver = solve::find(&settings.solver)?;
        let shown = if quiet {
            Shown::Nothing
        } else if stderr().is_terminal() {
            Shown::Moving(moving(settings, solver))
        } else {
            Shown::Lines
        };
        Ok(Self {
            shown,
            solver,
            passes: settings.passes,
            starts: settings.starts.max(settings.ensemble),
            last: 0,
            refining: false,
            trial: None,
            started: Instant::now(),
            pace: Pace::default(),
            line: 0.0,
            course: Course::default(),
        })
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
    fn line(&mut self, line: &str) {
        self.line = self.seconds();
        match &self.shown {
            Shown::Moving(bar) => bar.suspend(|| text::note(line)),
            Shown::Lines => text::note(line),
            Shown::Nothing => {}
        }
    }

    fn place_of(&self, number: usize) -> String {
        let pass = self.solver.pass();
        if self.solver.converges() {
            format!("{pass} {number}")
        } else {
            format!("{pass} {number} of {}", self.passes)
        }
    }

    /// Whether batch is past its last stage, at the best one again.
    fn refines(&self, progress: &Progress) -> bool {
        let alone = self.solver.converges() && self.starts == 1 && self.trial.is_none();
        alone && (progress.pass > self.passes || progress.passes != self.passes)
    }

    /// Where a fit is; `progress` counts starts where there are several.
    fn place(&self, progress: &Progress) -> String {
        if self.starts > 1 {
            return format!("{} of {} starts done", progress.pass - 1, self.starts);
        }
        if !self.solver.converges() {
            return self.place_of(progress.pass);
        }
        let place = if let Some(trial) = self.trial {
            format!("trying {trial}")
        } else if self.refines(progress) {
            REFINEMENT_WORDS.into()
        } else {
            self.place_of(progress.pass)
        };
        let pace = self.pace.iteration(self.seconds());
        let pace = pace.map_or(String::new(), |s| {
            format!(", {} an iteration", text::seconds(s))
        });
        format!("{place}, iteration {}{pace}", progress.step + 1)
    }

    /// The time that is left, after a comma, where it can be told.
    fn left(&self, progress: &Progress) -> String {
        if self.trial.is_some() {
            return String::new();
        }
        let (now, done) = (self.seconds(), (progress.pass - 1) as f64);
        let left = if self.starts > 1 {
            self.pace.of_part(now, done / self.starts as f64)
        } else if self.solver.converges() {
            self.pace.of_stages(now)
        } else {
            let part = progress.step as f64 / progress.steps.max(1) as f64;
            self.pace.of_part(now, (done + part) / self.passes as f64)
        };
        match left {
            Some(left) => format!(", about {} left", text::rough_seconds(left)),
            None => String::new(),
        }
    }
}

/// A bar where the end is known, else a turning wheel.
fn moving(settings: &Settings, solver: &dyn Solver) -> ProgressBar {
    let starts = settings.starts.max(settings.ensemble);
    let known = starts > 1 || !solver.converges();
    let template = if known {
        "{prefix} {bar:30} {elapsed}{msg}"
    } else {
        "{spinner} {prefix}; {elapsed}{msg}"
    };
    let passes = match starts {
        1 => settings.passes,
        starts => starts,
    };
    let bar = if known {
        ProgressBar::new(passes as u64 * MARKS_A_PASS)
    } else {
        ProgressBar::new_spinner()
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.set_prefix("looking at the data");
    bar.enable_steady_tick(REDRAW_INTERVAL);
    bar
}

/// The cost and the error of the passes so far.
#[derive(Default)]
struct Course {
    cost: Option<f64>,
    /// Of batch the error of the free run, whose cost does not compare between stages; else the cost.
    values: Vec<f64>,
}

impl Course {
    fn push(&mut self, solver: &dyn Solver, report: &PassReport) {
        let cost = report.cost.total();
        self.cost = Some(cost);
        self.values.push(if solver.converges() {
            report.free_run
        } else {
            cost
        });
    }

    /// After two spaces; nothing before the first pass is over.
    fn shown(&self) -> String {
        let (Some(cost), Some(last)) = (self.cost, self.values.last()) else {
            return String::new();
        };
        let curve = curve(&self.values);
        if last.to_bits() == cost.to_bits() {
            format!("  cost {curve} {cost:.1e}")
        } else {
            format!("  cost {cost:.1e}, free-run error {curve} {last:.1e}")
        }
    }
}

/// Positive values as a curve of blocks, the logarithm from the least to the greatest.
fn curve(values: &[f64]) -> String {
    const BLOCK_LETTERS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = values.iter().filter(|v| v.is_finite() && **v > 0.0);
    let logs: Vec<f64> = known.map(|v| v.ln()).collect();
    let recent = &logs[logs.len().saturating_sub(CURVE_PASSES)..];
    let low = recent.iter().copied().fold(f64::INFINITY, f64::min);
    let size = recent.iter().copied().fold(low, f64::max) - low;
    let block = |v: &f64| {
        if size > 0.0 {
            BLOCK_LETTERS[((v - low) / size * 7.0).round() as usize]
        } else {
            BLOCK_LETTERS[3]
        }
    };
    recent.iter().map(block).collect()
}

fn figures(solver: &dyn Solver, report: &PassReport) -> String {
    // each stage of batch weighs the physics differently: costs of two stages do not compare
    let mut text = if solver.converges() {
        String::new()
    } else {
        format!("cost {:.2e}, ", report.cost.total())
    };
    if report.free_run.is_finite() {
        text += &format!("free-run error {:.1e}, ", report.free_run);
    }
    text
}

impl Watch for Display {
    fn warning(&mut self, warning: &Warning) {
        match &self.shown {
            Shown::Moving(bar) => bar.suspend(|| text::warning(warning)),
            _ => text::warning(warning),
        }
    }
}

impl Observer for Display {
    fn again(&mut self, _suspects: &[Suspect]) {
        self.line("the fit contradicts some readings: it is made again without them");
        self.last = 0;
        self.course = Course::default();
    }

    fn trying(&mut self, trial: Option<Trial>) {
        if let Some(trial) = trial
            && self.trial != Some(trial)
        {
            let time = text::seconds(self.seconds());
            self.line(&format!("trying {trial}, {time}"));
        }
        self.trial = trial;
    }

    fn goes_on(&mut self) -> bool {
        !interrupt::asked()
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        let now = self.seconds();
        self.pace.step(now, progress);
        let time = text::seconds(now);
        let ended = self.starts > 1 && progress.pass - 1 > self.last;
        let refines = self.refines(progress) && !self.refining;
        if ended {
            self.last = progress.pass - 1;
        }
        self.refining |= refines;
        let (place, left) = (self.place(progress), self.left(progress));
        match &self.shown {
            Shown::Lines if refines => self.line(&format!("{REFINEMENT_WORDS}, {time}{left}")),
            Shown::Lines if ended || now > self.line + SECONDS_BETWEEN_LINES => {
                self.line(&format!("{place}, {time}{left}"));
            }
            Shown::Moving(bar) => {
                bar.set_prefix(place);
                bar.set_message(format!("{left}{}", self.course.shown()));
                let done = (progress.pass as u64 - 1) * MARKS_A_PASS;
                if self.starts > 1 {
                    bar.set_position(done);
                } else if !self.solver.converges() {
                    let part = MARKS_A_PASS * progress.step as u64 / progress.steps.max(1) as u64;
                    bar.set_position(done + part);
                }
            }
            _ => {}
        }
        !interrupt::asked()
    }

    fn pass(&mut self, report: &PassReport) -> bool {
        if report.pass <= self.last {
            self.line("that start failed; the next seed is tried");
            self.course = Course::default();
        }
        self.course.push(self.solver, report);
        self.last = report.pass;
        self.refining = false;
        let now = self.seconds();
        let time = text::seconds(now);
        let line = format!(
            "{}: {}{time}",
            self.place_of(report.pass),
            figures(self.solver, report)
        );
        if self.solver.converges() {
            let left = pace::stages_left(report.pass, self.passes, &report.cost);
            self.pace.stage(now, left);
            // a stage may be long, and what came before it says how the fit is doing
            self.line(&line);
        } else if let Shown::Moving(bar) = &self.shown {
            bar.set_position(report.pass as u64 * MARKS_A_PASS);
        } else if [1, self.passes].contains(&report.pass) || now > self.line + SECONDS_BETWEEN_LINES
        {
            let part = report.pass as f64 / self.passes as f64;
            let left = self.pace.of_part(now, part).filter(|_| part < 1.0);
            let left = left.map_or(String::new(), |s| {
                format!(", about {} left", text::rough_seconds(s))
            });
            self.line(&format!("{line}{left}"));
        }
        !interrupt::asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_falls_by_decades_and_leaves_out_what_is_no_number() {
        assert_eq!(curve(&[1e4, f64::NAN, 1e2, 0.0, 1.0]), "█▅▁");
        assert_eq!(curve(&[2.0, 2.0]), "▄▄");
        assert_eq!(curve(&[]), "");
        assert_eq!(curve(&[1.0; 40]).chars().count(), CURVE_PASSES);
    }
}
