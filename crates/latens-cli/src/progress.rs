//! A fit on its way: a bar on a terminal, one line per epoch elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use latens::solve::{EpochReport, Observer, Progress};

use crate::{interrupt, text};

/// Marks of the bar per epoch.
const MARKS: u64 = 1000;
const REDRAW: Duration = Duration::from_millis(200);

enum Shown {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

/// Shows a fit and stops it when asked to.
pub struct Display {
    shown: Shown,
    epochs: usize,
    started: Instant,
}

impl Display {
    pub fn new(epochs: usize, quiet: bool) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if stderr().is_terminal() {
            Shown::Bar(bar(epochs))
        } else {
            Shown::Lines
        };
        Self {
            shown,
            epochs,
            started: Instant::now(),
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn bar(epochs: usize) -> ProgressBar {
    let bar = ProgressBar::new(epochs as u64 * MARKS);
    let template = "{prefix} {bar:30} {msg}{elapsed} gone, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.set_prefix("looking at the data");
    bar.enable_steady_tick(REDRAW);
    bar
}

fn figures(report: &EpochReport) -> String {
    let mut text = format!("cost {:.2e}, ", report.cost.total());
    if report.free_run.is_finite() {
        text += &format!("free-run error {:.1e}, ", report.free_run);
    }
    text
}

impl Observer for Display {
    fn progress(&mut self, progress: &Progress) -> bool {
        if let Shown::Bar(bar) = &self.shown {
            let part = MARKS * progress.step as u64 / progress.steps.max(1) as u64;
            bar.set_prefix(format!("epoch {} of {}", progress.epoch, progress.epochs));
            bar.set_position((progress.epoch as u64 - 1) * MARKS + part);
        }
        !interrupt::asked()
    }

    fn epoch(&mut self, report: &EpochReport) -> bool {
        let place = format!("epoch {} of {}", report.epoch, self.epochs);
        match &self.shown {
            Shown::Bar(bar) => {
                bar.set_prefix(place);
                bar.set_message(figures(report));
                bar.set_position(report.epoch as u64 * MARKS);
            }
            Shown::Lines => {
                let time = text::seconds(self.seconds());
                text::note(&format!("{place}: {}{time}", figures(report)));
            }
            Shown::Nothing => {}
        }
        !interrupt::asked()
    }
}
