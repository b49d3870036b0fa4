//! How long a fit still takes, as far as one can tell.

use latens::numerics::objective::Cost;
use latens::solve::Progress;
use latens::solve::batch::EXACT_DEFECT_RATIO;

/// Decades by which a stage of batch brings the defects nearer to exactness. On the oscillator, the
/// cart-pole and yeast, with noise and without, 1.5 says the number of stages left to within three
/// after the first, and to within one from the third on.
const DECADES_A_STAGE: f64 = 1.5;
/// Stages that batch does at the least.
const LEAST_STAGES: usize = 3;
/// What comes after the stages (last iterations, posterior, bands), in stages: 1.2 to 4 there.
const CLOSING_STAGES: f64 = 3.0;
/// Stages whose mean length is that of those to come.
const RECENT_STAGES: usize = 3;

/// Stages of batch that are probably left after one with this cost.
pub fn stages_left(done: usize, most: usize, cost: &Cost) -> usize {
    let missing = (cost.physics / cost.data / EXACT_DEFECT_RATIO).log10();
    // what is no number says nothing: then the fewest
    let typical = (missing / DECADES_A_STAGE).round().max(0.0) as usize;
    let exact = missing <= 0.0 && done >= LEAST_STAGES;
    let left = if exact {
        0
    } else {
        typical.max(LEAST_STAGES.saturating_sub(done)).max(1)
    };
    left.min(most.saturating_sub(done))
}

/// The time that passes took, in seconds since the fit began.
#[derive(Default)]
pub struct Pace {
    /// When the first step began: before it, scales were looked for.
    began: Option<f64>,
    /// When this pass began, and how many iterations of it are over.
    pass: f64,
    iterations: usize,
    /// Length of each pass of batch, and how many are left.
    stages: Vec<f64>,
    left: usize,
}

impl Pace {
    /// A step begins.
    pub fn step(&mut self, now: f64, progress: &Progress) {
        if self.began.is_none() {
            (self.began, self.pass) = (Some(now), now);
        }
        self.iterations = progress.step;
    }

    /// A stage of batch is over.
    pub fn stage(&mut self, now: f64, left: usize) {
        self.stages.push(now - self.pass);
        (self.pass, self.left, self.iterations) = (now, left, 0);
    }

    /// Seconds of an iteration in this stage, or in all before it.
    pub fn iteration(&self, now: f64) -> Option<f64> {
        (self.iterations > 0).then(|| (now - self.pass) / self.iterations as f64)
    }

    /// Seconds that batch probably still takes; nobody knows before the first stage is over.
    pub fn of_stages(&self, now: f64) -> Option<f64> {
        let recent = &self.stages[self.stages.len().saturating_sub(RECENT_STAGES)..];
        let mean = recent.iter().sum::<f64>() / recent.len() as f64;
        let gone = now - self.pass;
        // a stage may turn out longer than those before it, but is not over
        let left = match self.left {
            0 => CLOSING_STAGES * mean - gone,
            left => (left as f64 * mean - gone).max(0.5 * mean) + CLOSING_STAGES * mean,
        };
        (!recent.is_empty() && left > 0.0).then_some(left)
    }

    /// Seconds that are left of something that is done to this part.
    pub fn of_part(&self, now: f64, part: f64) -> Option<f64> {
        let gone = now - self.began?;
        (part > 0.0).then(|| gone * (1.0 - part) / part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(physics: f64, data: f64) -> Cost {
        Cost {
            physics,
            data,
            ..Cost::default()
        }
    }

    #[test]
    fn stages_left_follow_the_defects() {
        // the oscillator without noise, as it was measured: six stages
        let ratios = [290.0, 79.0, 130.0, 3.2, 0.029, 4.9e-4];
        let left = |(k, r): (usize, &f64)| stages_left(k + 1, 18, &cost(*r, 1.0));
        let said: Vec<usize> = ratios.iter().enumerate().map(left).collect();
        assert_eq!(said, [4, 3, 3, 2, 1, 0]);
        // with noise, three
        let ratios = [1.4e-3, 6e-4, 4.9e-5];
        let said: Vec<usize> = ratios.iter().enumerate().map(left).collect();
        assert_eq!(said, [2, 1, 0]);
        // never more than there are, and something where nothing can be said
        assert_eq!(stages_left(1, 3, &cost(1e9, 1.0)), 2);
        assert_eq!(stages_left(4, 18, &cost(f64::NAN, 1.0)), 1);
    }

    #[test]
    fn time_left_is_that_of_stages_like_the_last() {
        let at = |step| Progress {
            pass: 1,
            passes: 18,
            step,
            steps: 40,
        };
        let mut pace = Pace::default();
        pace.step(10.0, &at(0));
        assert_eq!((pace.iteration(12.0), pace.of_stages(12.0)), (None, None));
        pace.step(12.0, &at(1));
        assert_eq!(pace.iteration(12.0), Some(2.0));
        pace.stage(14.0, 2);
        // two stages of 4 s, and three stages' worth after them
        assert_eq!(pace.of_stages(14.0), Some(20.0));
        assert_eq!(pace.of_stages(17.0), Some(17.0));
        // one that takes longer than any before is not over
        assert_eq!(pace.of_stages(30.0), Some(14.0));
        assert_eq!(pace.of_part(15.0, 0.25), Some(15.0));
    }
}
