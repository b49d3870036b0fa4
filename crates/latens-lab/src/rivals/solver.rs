//! Rivals in the place of a solver: those that learn the model's own θ.

use latens::Error;
use latens::look::prior::Walking;
use latens::model::settings::Settings;
use latens::solve::checkpoint::Start;
use latens::solve::{Learned, Observer, Problem, Solver};

use super::{Rival, train, windows};

/// A rival as a solver of Latens.
pub struct RivalSolver(pub Rival);

impl Solver for RivalSolver {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Rival::Node => "the neural ODE of Chen et al.: windows simulated from learned starts",
            Rival::Spinode => "moments of a stochastic neural ODE, matched",
            Rival::Rm => "a neural ODE whose starts a recognition network finds",
            Rival::NodeLstm | Rival::PrSsm => "learns no θ of the model",
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            solver: self.name().into(),
            passes: self.0.iterations(),
            ..Settings::default()
        }
    }

    fn pass(&self) -> &'static str {
        "iteration"
    }

    fn resumes(&self) -> bool {
        false
    }

    fn walking(&self) -> Walking {
        Walking::Outputs
    }

    fn check(&self, settings: &Settings) -> Result<(), Error> {
        if settings.starts.max(settings.ensemble) > 1 {
            return Err(Error::Setting(format!(
                "{} starts from one seed; call it once for each with ⟦seed⟧",
                self.name()
            )));
        }
        Ok(())
    }

    fn learn(
        &self,
        problem: &Problem,
        _: Start,
        observer: &mut dyn Observer,
    ) -> Result<Learned, Error> {
        let settings = super::Settings {
            iterations: problem.settings.passes,
            seed: problem.settings.seed,
            ..super::Settings::new(self.0)
        };
        let channels = problem.model.measurements.len();
        let deviation = windows::deviations(problem.records, channels);
        let windowed = windows::Problem {
            model: problem.model,
            stepper: problem.stepper,
            records: problem.records,
            scales: problem.scales,
            deviation: &deviation,
        };
        let outcome = train(windowed, &settings, observer)?;
        let theta = outcome.theta().map(<[f64]>::to_vec).unwrap_or_default();
        let mut learned = Learned::of_theta(problem, theta, outcome.reports, Some(outcome.runs));
        learned.stopped = outcome.stopped;
        Ok(learned)
    }
}
