//! A fit at its end, taken up again: how the data speak for it whatever their noise is, and the least
//! value of its objective with a constant held.
//!
//! The physics is that of the stage that was kept, all but exact; the prior is the one that the fit
//! settled with.

use super::cut::cut;
use super::damping::Damping;
use super::evidence::{Laplace, Posterior};
use super::newton::{Counter, End, Iterate, Limits, Newton};
use super::place::Placed;
use super::settle::open_start;
use super::stages::{STAGE_LIMITS, first_prior, sharing, stage_noise};
use crate::Error;
use crate::numerics::Trajectory;
use crate::numerics::linalg::Precision;
use crate::numerics::objective::Noise;
use crate::solve::checkpoint::Stage;
use crate::solve::{Observer, Problem};

/// Rounds in which the noise of a comparison is found, and its relative change that ends them.
const NOISE_ROUNDS: usize = 12;
const NOISE_SETTLED_CHANGE: f64 = 1e-3;
/// Rounds in which a prior that a folder does not have is found, and the gain of ln p that ends them.
const PRIOR_ROUNDS: usize = 20;
const PRIOR_SETTLED_GAIN: f64 = 0.05;
/// A thousandth of a unit of the objective is a thirtieth of a deviation.
const POINT_LIMITS: Limits = Limits {
    tolerance: 1e-5,
    patience: 2,
    iterations: 40,
    ..STAGE_LIMITS
};

/// Where a fit ended.
pub struct Ended<'a> {
    /// θ̂.
    pub theta: &'a [f64],
    /// A trajectory of each record to begin with: a simulation where there is one.
    pub states: Vec<Trajectory>,
    /// The noise of the states.
    pub noise: &'a Noise,
    /// The stage that was kept.
    pub stage: &'a Stage,
    /// P_θ0; empty where nobody knows it.
    pub prior: &'a [f64],
    /// Whether correlated misfits contradict the model: its states then have a noise of their own.
    pub contradicted: bool,
}

/// A fit taken up again.
pub struct Again<'a> {
    problem: Placed<'a>,
    iterate: Iterate,
    /// All but exact physics, R_y as it was found.
    noise: Noise,
    prior: Vec<f64>,
    /// By how much its variances are inflated.
    variance_inflation: f64,
}

/// What the data say of a model, at the noise that makes them likeliest.
pub struct Weighed {
    posterior: Posterior,
    theta: Vec<f64>,
    /// ½ θᵀ P_θ0⁻¹ θ.
    prior: f64,
    /// ln p(y | θ̂), the states integrated out.
    pub log_likelihood: f64,
    /// γ: directions of θ that the data determine.
    pub determined: f64,
    /// Measurements that count.
    pub readings: usize,
    /// R_y.
    pub noise: Vec<f64>,
    /// How many times the misfits repeat themselves; 1 where they are white.
    pub variance_inflation: f64,
}

impl Weighed {
    /// ln p(y) where the data count for so many times less.
    pub fn evidence(&self, problem: &Problem, inflation: f64) -> f64 {
        let posterior = self.posterior.clone().inflated(inflation);
        let evidence =
            posterior.evidence(problem.model, self.log_likelihood / inflation - self.prior);
        let theta = &self.theta;
        evidence.log + cut(&posterior, problem.model, theta, vec![], Precision::Double).log
    }
}

impl<'a> Again<'a> {
    /// `None` where the simulation or the prior leaves the finite numbers.
    pub fn new(problem: &'a Problem<'a>, ended: Ended) -> Option<Self> {
        let problem = Placed::here(problem);
        let mut noise = ended.noise.clone();
        let mut iterate = Iterate {
            theta: ended.theta.to_vec(),
            states: problem.put(ended.states).ok()?,
            cost: Default::default(),
        };
        if ended.contradicted {
            noise.process = stage_noise(&problem, problem.settings, ended.stage.tightness).process;
            if problem.noisy() && problem.settings.estimate_noise {
                open_start(&problem, &iterate, &mut noise).ok()?;
            }
        }
        let parameters = iterate.theta.len();
        let known = ended.prior.len() == parameters;
        let prior = if known {
            ended.prior.to_vec()
        } else if ended.stage.prior.len() == parameters {
            ended.stage.prior.clone()
        } else {
            first_prior(&problem, problem.settings)
        };
        let newton = Newton::new(&problem, &prior, &noise);
        iterate.states = newton.smoothed(&iterate.theta, &iterate.states).ok()?;
        iterate.cost = newton.cost(&iterate.theta, &iterate.states).ok()?;
        let finds_prior = !known && problem.settings.estimate_prior;
        let mut again = Self {
            problem,
            noise,
            prior,
            variance_inflation: ended.stage.variance_inflation,
            iterate,
        };
        if !again.iterate.cost.total().is_finite() {
            return None;
        }
        if finds_prior {
            again.find_prior().ok()?;
        }
        Some(again)
    }

    /// The prior of the weights at which the evidence is stationary.
    fn find_prior(&mut self) -> Result<(), Error> {
        let mut before = f64::NEG_INFINITY;
        for _ in 0..PRIOR_ROUNDS {
            let newton = Newton::new(&self.problem, &self.prior, &self.noise);
            let Laplace {
                posterior,
                evidence,
                ..
            } = newton.evidence(&self.iterate, newton.thinning())?;
            if evidence.log - before < PRIOR_SETTLED_GAIN {
                break;
            }
            before = evidence.log;
            let (model, theta) = (self.problem.model, &self.iterate.theta);
            self.prior = posterior.next_prior(model, theta, sharing(&self.problem));
        }
        Ok(())
    }

    /// What the data say of it at the noise that makes them likeliest; but the noise of channels that are
    /// `held` stays. `None` where that leaves the finite numbers.
    pub fn weigh(mut self, held: &[bool]) -> Option<Weighed> {
        for _ in 0..NOISE_ROUNDS {
            let newton = Newton::new(&self.problem, &self.prior, &self.noise);
            let at_minimum = newton.evidence(&self.iterate, newton.thinning()).ok()?;
            let evidence = at_minimum.evidence;
            let next = newton
                .noise_found(&self.iterate, evidence.determined)
                .ok()?;
            let mut change: f64 = 0.0;
            for c in (0..next.len()).filter(|&c| !held[c]) {
                let next = next[c].max(self.problem.resolution(c));
                change = change.max((next / self.noise.measurement[c]).ln().abs());
                self.noise.measurement[c] = next;
            }
            if !change.is_finite() {
                return None;
            }
            let newton = Newton::new(&self.problem, &self.prior, &self.noise);
            let smoothed = newton.smoothed(&self.iterate.theta, &self.iterate.states);
            self.iterate.states = smoothed.ok()?;
            if change < NOISE_SETTLED_CHANGE {
                break;
            }
        }
        let newton = Newton::new(&self.problem, &self.prior, &self.noise);
        let cost = newton.cost(&self.iterate.theta, &self.iterate.states);
        self.iterate.cost = cost.ok()?;
        let Laplace {
            posterior,
            evidence,
            ..
        } = newton.evidence(&self.iterate, 1).ok()?;
        let measured = |y: &&f64| !y.is_nan();
        let records = self.problem.records.iter();
        let readings = records.map(|r| r.outputs.iter().filter(measured).count());
        let prior = self.iterate.cost.prior;
        let weighed = Weighed {
            log_likelihood: evidence.log + posterior.volume() + prior,
            prior,
            determined: evidence.determined,
            readings: readings.sum(),
            variance_inflation: newton.variance_inflation(&self.iterate).ok()?,
            noise: self.noise.measurement.clone(),
            theta: self.iterate.theta.clone(),
            posterior,
        };
        weighed.log_likelihood.is_finite().then_some(weighed)
    }

    /// Its objective, to walk along.
    ///
    /// # Errors
    /// Divergence, or a stop.
    pub fn walk(mut self, observer: &mut dyn Observer) -> Result<Walk<'a>, Error> {
        self.noise = self
            .noise
            .inflated(self.problem.stepper, self.variance_inflation);
        let newton = Newton::new(&self.problem, &self.prior, &self.noise);
        minimise(&newton, &mut self.iterate, observer)?;
        let posterior = newton.evidence(&self.iterate, 1)?.posterior;
        Ok(Walk {
            posterior,
            problem: self.problem,
            base: self.iterate,
            noise: self.noise,
            prior: self.prior,
        })
    }
}

fn minimise(
    newton: &Newton,
    iterate: &mut Iterate,
    observer: &mut dyn Observer,
) -> Result<(), Error> {
    let mut counter = Counter {
        stage: 0,
        stages: 1,
        observer,
    };
    match newton.minimise(
        iterate,
        &mut Damping::default(),
        &POINT_LIMITS,
        &mut counter,
    )? {
        End::Stopped(_) => Err(Error::Stopped),
        End::Done | End::Hopeless => Ok(()),
    }
}

/// The objective of a fit at its minimum, to be walked along with a constant held.
pub struct Walk<'a> {
    problem: Placed<'a>,
    posterior: Posterior,
    base: Iterate,
    noise: Noise,
    prior: Vec<f64>,
}

/// A point of a walk: all that is not held is at its best.
#[derive(Clone)]
pub struct Stand {
    iterate: Iterate,
    /// The entry of θ that is held.
    pub theta: f64,
    /// By how much the objective is above its minimum.
    pub rise: f64,
    /// The same of its prior of the constant that is held.
    pub prior: f64,
}

impl Walk<'_> {
    /// Where a walk with an entry of θ held begins.
    pub fn start(&self, i: usize) -> Stand {
        Stand {
            iterate: self.base.clone(),
            theta: self.base.theta[i],
            rise: 0.0,
            prior: 0.0,
        }
    }

    /// The linear standard deviation of an entry of θ.
    pub fn deviation(&self, i: usize) -> f64 {
        self.posterior.column(i)[i].sqrt()
    }

    /// The point where entry i of θ is `theta`; everything else begins where the linear posterior says
    /// that it follows from `from`, and is brought to its best.
    ///
    /// # Errors
    /// Divergence, or a stop.
    pub fn stand(
        &self,
        i: usize,
        theta: f64,
        from: &Stand,
        observer: &mut dyn Observer,
    ) -> Result<Stand, Error> {
        let column = self.posterior.column(i);
        let mut iterate = from.iterate.clone();
        let by = (theta - iterate.theta[i]) / column[i];
        let entries = iterate.theta.iter_mut().zip(&column);
        entries.for_each(|(t, c)| *t += by * c);
        self.problem.model.keep_bounds(&mut iterate.theta);
        iterate.theta[i] = theta;
        let newton = Newton::new(&self.problem, &self.prior, &self.noise).holding(i);
        iterate.states = newton.smoothed(&iterate.theta, &iterate.states)?;
        minimise(&newton, &mut iterate, observer)?;
        let square = |theta: f64| 0.5 * theta * theta / self.prior[i];
        Ok(Stand {
            theta,
            rise: iterate.cost.total() - self.base.cost.total(),
            prior: square(theta) - square(self.base.theta[i]),
            iterate,
        })
    }

    /// The same walk from a lower point that was found on the way.
    pub fn based_on(self, lower: Stand) -> Self {
        Self {
            base: lower.iterate,
            ..self
        }
    }
}
