//! A fit that goes on: the stream that starts from it, and the fit that a stream leaves.

use super::Fit;
use super::facts::{StreamFacts, constants, correlation};
use super::stream::{Options, Setting, State, Stream};
use crate::Error;
use crate::look;
use crate::numerics::objective::Noise;
use crate::numerics::step::Stepper;
use crate::solve::Solver;
use crate::solve::recursion::Joint;

impl Fit {
    /// The options with which a snapshot goes on, the defaults for any other fit.
    pub fn stream_options(&self) -> Options {
        let state = self.stream.as_ref();
        state.map_or_else(Options::default, |s| s.options)
    }

    /// An online estimator that starts from this fit, or goes on from this snapshot.
    ///
    /// R_y is the fit's. So is Q_x, but not below what the joint recursion has by default: batch
    /// ends with physics that is next to exact, and a filter under such no longer listens to the
    /// data. The start is as wide as training went.
    ///
    /// ```
    /// use latens::stream::{Options, Sample};
    ///
    /// let fit = latens::example_fit();
    /// let record = &fit.tracks[0].record;
    /// let mut stream = fit.stream(Options::default())?;
    /// for k in 0..50 {
    ///     stream.step(Sample { time: Some(record.time[k]), input: record.input(k), output: record.output(k) })?;
    /// }
    /// assert!(stream.deviation(0) < 1e-2);
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] where there is nothing to learn, or an option makes no sense.
    pub fn stream(&self, options: Options) -> Result<Stream<'_>, Error> {
        self.refuse_groups("stream")?;
        let fail = |message: String| Err(Error::Setting(message));
        if options.learn && self.theta.is_empty() {
            return fail(format!("{} has nothing to learn", self.model.name));
        }
        if options.learn && !self.model.system.unknown_channels().is_empty() {
            return fail(format!(
                "a stream does not learn what is unknown of the sensors of {}; leave ⟦learn⟧ out",
                self.model.name
            ));
        }
        let sizes = [Some(options.gate), options.forget];
        let mut sizes = sizes.iter().flatten();
        if sizes.any(|v| !(*v >= 1.0 && v.is_finite())) {
            return fail("the gate and the memory of a stream must be at least 1".into());
        }
        let setting = self.stream_setting();
        Ok(match &self.stream {
            Some(state) => Stream::resume(setting, options, state.clone()),
            None => {
                let (theta, covariance) = (self.theta.clone(), self.covariance.clone());
                Stream::new(setting, options, theta, covariance)
            }
        })
    }

    /// What stays as it is while samples come: the equations, noise, scales.
    pub fn stream_setting(&self) -> Setting<'_> {
        let (facts, dt) = (&self.facts, self.facts.sample_time);
        let least = look::noise(&Joint.settings(), &self.model, &facts.scales, dt);
        let process = facts.noise.process.iter().zip(&least.process);
        Setting {
            model: &self.model,
            stepper: Stepper::new(&self.model, &self.model.system, dt),
            noise: Noise {
                process: process
                    .map(|(process, least)| process.max(*least))
                    .collect(),
                start: facts.scales.start_variances(),
                ..facts.noise.clone()
            },
            scale: facts.scales.scale.clone(),
            prior: facts.settings.parameter_variance,
        }
    }

    /// This fit as a stream has left it.
    pub fn adapted(&self, state: State) -> Self {
        let (theta, covariance) = (state.theta.clone(), state.covariance.clone());
        let mut facts = self.facts.clone();
        facts.unknowns = constants(&self.model, &facts.settings, &theta, &covariance);
        facts.correlation = correlation(facts.unknowns.len(), &covariance);
        // the other members have not seen the stream, and there is no fit to resume
        facts.ensemble.clear();
        facts.checkpoint = None;
        facts.stream = Some(StreamFacts {
            options: state.options,
            progress: state.progress,
        });
        Self {
            name: self.name.clone(),
            model: self.model.clone(),
            // of another θ, draws would be of another posterior
            draws: if theta == self.theta {
                self.draws.clone()
            } else {
                vec![]
            },
            theta,
            covariance,
            facts,
            tracks: vec![],
            missing: vec![],
            tests: vec![],
            members: vec![],
            stream: Some(state),
        }
    }
}
