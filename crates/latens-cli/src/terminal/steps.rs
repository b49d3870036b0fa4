//! Work in several steps on its way: one moving line on a terminal, a line for each step elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use latens::Observer;
use latens::solve::{Progress, Trial};

use crate::{interrupt, text};

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Shows how far it is, and stops it when asked to.
pub struct Steps {
    /// What is done, before the count of it.
    task: &'static str,
    bar: Option<ProgressBar>,
    quiet: bool,
    /// What was said last.
    said: String,
}

impl Steps {
    pub fn new(task: &'static str, quiet: bool) -> Self {
        let bar = (!quiet && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}; {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(task);
            bar.enable_steady_tick(REDRAW_INTERVAL);
            bar
        });
        Self {
            task,
            bar,
            quiet,
            said: String::new(),
        }
    }

    /// Takes the moving line away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&mut self, words: String) {
        if self.quiet || words == self.said {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(words.clone()),
            None => text::note(&words),
        }
        self.said = words;
    }
}

impl Observer for Steps {
    fn trying(&mut self, trial: Option<Trial>) {
        if let Some(trial) = trial {
            self.say(format!("{}: {trial}", self.task));
        }
    }

    fn goes_on(&mut self) -> bool {
        !interrupt::asked()
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        if progress.passes > 1 && !self.said.contains("held back") {
            let done = progress.pass - 1;
            self.say(format!("{}: {done} of {} done", self.task, progress.passes));
        }
        !interrupt::asked()
    }
}
