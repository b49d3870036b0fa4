//! What all rivals learn with: Adam, learning rates that fall on a plateau, clipped gradients, and
//! the loop around them that reports, keeps the best and stops in time.

use latens::Error;
use latens::numerics::objective::Cost;
use latens::solve::{Observer, PassReport, Progress};

/// Adam (Kingma and Ba 2015) with the usual decay rates.
#[derive(Debug, Clone)]
pub struct Adam {
    pub rate: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    steps: i32,
}

impl Adam {
    const MEAN_DECAY: f64 = 0.9;
    const SQUARE_DECAY: f64 = 0.999;
    const SMALL_DIVISOR: f64 = 1e-8;

    /// For so many parameters.
    pub fn new(parameters: usize, rate: f64) -> Self {
        Self {
            rate,
            mean: vec![0.0; parameters],
            square: vec![0.0; parameters],
            steps: 0,
        }
    }

    /// One step against the gradient.
    pub fn step(&mut self, parameters: &mut [f64], gradient: &[f64]) {
        self.steps = self.steps.saturating_add(1);
        let mean_bias = 1.0 - Self::MEAN_DECAY.powi(self.steps);
        let square_bias = 1.0 - Self::SQUARE_DECAY.powi(self.steps);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((p, g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *m = Self::MEAN_DECAY * *m + (1.0 - Self::MEAN_DECAY) * g;
            *v = Self::SQUARE_DECAY * *v + (1.0 - Self::SQUARE_DECAY) * g * g;
            *p -= self.rate * (*m / mean_bias) / ((*v / square_bias).sqrt() + Self::SMALL_DIVISOR);
        }
    }
}

/// Lowers the learning rate where the loss has not fallen for a while.
#[derive(Debug, Clone)]
pub struct Plateau {
    /// Factor on the rate; 1 leaves it as it is.
    pub factor: f64,
    /// Looks without a lower loss.
    pub patience: usize,
    best: f64,
    since: usize,
}

impl Plateau {
    pub fn new(factor: f64, patience: usize) -> Self {
        Self {
            factor,
            patience,
            best: f64::INFINITY,
            since: 0,
        }
    }

    /// The rate for what comes after a loss.
    pub fn after(&mut self, loss: f64, rate: f64) -> f64 {
        // less than a per mille of progress is none
        if loss < 0.999 * self.best {
            (self.best, self.since) = (loss, 0);
            return rate;
        }
        self.since += 1;
        if self.since <= self.patience {
            return rate;
        }
        self.since = 0;
        rate * self.factor
    }
}

/// Shortens a gradient to a length at the most; one that is no number becomes zero.
pub fn clip(gradient: &mut [f64], most: f64) {
    let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    if !length.is_finite() {
        gradient.fill(0.0);
    } else if length > most {
        gradient.iter_mut().for_each(|g| *g *= most / length);
    }
}

/// How a rival goes down its loss.
#[derive(Debug, Clone)]
pub struct Descent {
    /// Passes, as they are counted to the observer, and steps of Adam in each.
    pub passes: usize,
    pub steps: usize,
    pub rate: f64,
    pub plateau: Plateau,
    /// Longest gradient.
    pub clip: f64,
}

/// Looks at the free run in a whole descent.
const LOOKS_A_DESCENT: usize = 100;

/// What a rival is to minimise, and what it is judged by.
pub trait Loss {
    /// The loss of some of the data, and its gradient; both are overwritten, never read.
    fn gradient(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64;
    /// Mean nRMSE of the measured channels in a free run; what the best parameters are kept by.
    fn free_run(&mut self, parameters: &[f64]) -> f64;
    /// Called with the parameters after every step, for what must stay within bounds.
    fn bound(&self, _parameters: &mut [f64]) {}
}

/// What a descent leaves.
#[derive(Debug, Clone)]
pub struct Descended {
    pub parameters: Vec<f64>,
    pub reports: Vec<PassReport>,
    /// Whether the observer ended it.
    pub stopped: bool,
}

impl Descent {
    /// Goes down from `parameters`, and keeps those whose free run is best.
    pub fn run(
        &self,
        loss: &mut dyn Loss,
        mut parameters: Vec<f64>,
        observer: &mut dyn Observer,
    ) -> Result<Descended, Error> {
        let mut adam = Adam::new(parameters.len(), self.rate);
        let mut plateau = self.plateau.clone();
        let mut gradient = vec![0.0; parameters.len()];
        let mut best: Option<(f64, Vec<f64>)> = None;
        let (mut reports, mut stopped) = (Vec::new(), false);
        let iterations = self.passes * self.steps;
        let every = (iterations / LOOKS_A_DESCENT).max(1);
        let (mut sum, mut count) = (0.0, 0.0);
        for iteration in 1..=iterations {
            let value = loss.gradient(&parameters, &mut gradient);
            (sum, count) = (sum + value, count + 1.0);
            clip(&mut gradient, self.clip);
            adam.step(&mut parameters, &gradient);
            loss.bound(&mut parameters);
            let pass = (iteration - 1) / self.steps + 1;
            stopped = !observer.progress(&Progress {
                pass,
                passes: self.passes,
                step: (iteration - 1) % self.steps,
                steps: self.steps,
            });
            let last = stopped || iteration == iterations;
            if iteration % every == 0 || last {
                let free_run = loss.free_run(&parameters);
                let mean = sum / count;
                adam.rate = plateau.after(mean, adam.rate);
                (sum, count) = (0.0, 0.0);
                let report = PassReport {
                    validation: None,
                    pass,
                    cost: Cost {
                        data: mean,
                        ..Cost::default()
                    },
                    consistency: f64::NAN,
                    evidence: None,
                    damping: None,
                    free_run,
                };
                // what is no number is never the better one
                if best.as_ref().is_none_or(|b| free_run < b.0 || b.0.is_nan()) {
                    best = Some((free_run, parameters.clone()));
                }
                stopped |= !observer.pass(&report);
                reports.push(report);
            }
            if stopped {
                break;
            }
        }
        match best {
            Some((_, parameters)) => Ok(Descended {
                parameters,
                reports,
                stopped,
            }),
            None => Err(Error::Setting("at least one iteration is needed".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first step has the length of the rate, whatever the gradient's size; a bowl's bottom is
    /// found.
    #[test]
    fn adam_steps_as_published() {
        for size in [1e-3, 1.0, 1e3] {
            let mut x = [3.0, -2.0];
            let gradient = [size, -2.0 * size];
            Adam::new(2, 0.1).step(&mut x, &gradient);
            assert!(
                (x[0] - 2.9).abs() < 1e-5 && (x[1] + 1.9).abs() < 1e-5,
                "{x:?}"
            );
        }
        let (mut x, mut adam) = ([3.0], Adam::new(1, 0.05));
        for _ in 0..2000 {
            let gradient = [2.0 * (x[0] - 1.0)];
            adam.step(&mut x, &gradient);
        }
        assert!((x[0] - 1.0).abs() < 1e-3, "{x:?}");
    }

    #[test]
    fn rates_fall_on_a_plateau_and_gradients_are_clipped() {
        let mut plateau = Plateau::new(0.5, 2);
        let rates: Vec<f64> = [1.0, 0.5, 0.5, 0.5, 0.5, 0.4]
            .iter()
            .map(|loss| plateau.after(*loss, 1.0))
            .collect();
        assert_eq!(rates, [1.0, 1.0, 1.0, 1.0, 0.5, 1.0]);
        let mut gradient = [3.0, 4.0];
        clip(&mut gradient, 1.0);
        assert!((gradient[0] - 0.6).abs() < 1e-15 && (gradient[1] - 0.8).abs() < 1e-15);
        let mut gradient = [f64::NAN, 1.0];
        clip(&mut gradient, 1.0);
        assert_eq!(gradient, [0.0, 0.0]);
    }
}
