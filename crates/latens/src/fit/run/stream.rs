//! A run that goes on: the stream that starts from it, and the snapshot of one.
//!
//! A snapshot is a run folder as any other, with θ, P_θ and the unknown constants as they are now,
//! and the filter beside them. The scores in its `fit.json` are still those of the fit. What is
//! in `stream.safetensors`:
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `mean`, `input` | states, inputs | x̂ and u of the last sample |
//! | `spread` | states × states | P_x |
//! | `cross` | states × d_θ | P_xθ; no rows without learning |
//! | `triangle`, `pending`, `factor` | d_θ (d_θ + 1)/2, k × d_θ, 2 | P_θ with the updates that wait, see [`crate::linalg::packed`] |

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::facts::constants;
use super::weights::{Tensor, pack, unpack};
use super::{Files, Run, STREAM, Sink, folder};
use crate::Error;
use crate::estimate::stream::{Options, Progress, Setting, State, Stream};
use crate::linalg::PackedCovariance;
use crate::linalg::packed::Parts;
use crate::model::Model;
use crate::objective::Noise;
use crate::solve::{Settings, Solver};
use crate::step::Stepper;

/// The content of `stream` in `fit.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamFacts {
    pub options: Options,
    pub progress: Progress,
}

impl Run {
    /// The options with which a snapshot goes on, the defaults for any other run.
    pub fn stream_options(&self) -> Options {
        self.stream
            .as_ref()
            .map_or_else(Options::default, |s| s.options)
    }

    /// An online estimator that starts from this run, or goes on from this snapshot.
    ///
    /// R_y is the run's. So is Q_x, but not below what the joint recursion has by default: batch
    /// ends with physics that is next to exact, and a filter that believes in it no longer listens
    /// to the data. The start is as wide as the states' scales.
    ///
    /// # Errors
    /// [`Error::Setting`] where there is nothing to learn, or an option makes no sense.
    pub fn stream(&self, options: Options) -> Result<Stream<'_>, Error> {
        let fail = |message: String| Err(Error::Setting(message));
        if options.learn && self.theta.is_empty() {
            return fail(format!("{} has nothing to learn", self.model.name));
        }
        let sizes = [Some(options.gate), options.forget];
        if sizes
            .iter()
            .flatten()
            .any(|v| !(*v >= 1.0 && v.is_finite()))
        {
            return fail("the gate and the memory of a stream must be at least 1".into());
        }
        let (facts, dt) = (&self.facts, self.facts.sample_time);
        let least = Settings::new(Solver::Joint).noise(&self.model, &facts.nominal, dt);
        let process = facts.noise.process.iter().zip(&least.process);
        let setting = Setting {
            stepper: Stepper::new(&self.model, &self.model.system, dt),
            noise: Noise {
                process: process.map(|(own, least)| own.max(*least)).collect(),
                start: facts.nominal.scale.iter().map(|s| s * s).collect(),
                ..facts.noise.clone()
            },
            scale: facts.nominal.scale.clone(),
            prior: facts.settings.parameter_variance,
        };
        Ok(match &self.stream {
            Some(state) => Stream::resume(setting, options, state.clone()),
            None => {
                let (theta, covariance) = (self.theta.clone(), self.covariance.clone());
                Stream::new(setting, options, theta, covariance)
            }
        })
    }

    /// This run as a stream has left it.
    pub fn adapted(&self, state: State) -> Self {
        let (theta, covariance) = (state.theta.clone(), state.covariance.clone());
        let mut facts = self.facts.clone();
        facts.unknowns = constants(&self.model, &theta, &covariance);
        // the other members have not seen the stream, and there is no fit to resume
        facts.ensemble.clear();
        facts.checkpoint = None;
        facts.stream = Some(StreamFacts {
            options: state.options,
            progress: state.progress,
        });
        Self {
            model: self.model.clone(),
            // of another θ, draws would be of another posterior
            draws: match theta == self.theta {
                true => self.draws.clone(),
                false => vec![],
            },
            theta,
            covariance,
            facts,
            members: vec![],
            stream: Some(state),
        }
    }

    /// Writes the folder of an adapted run; `replace` as in [`super::save`].
    ///
    /// # Errors
    /// Those of [`super::save`].
    pub fn save(&self, folder: impl AsRef<Path>, replace: bool) -> Result<(), Error> {
        folder::write(folder.as_ref(), replace, |put| self.each_file(put))
    }

    /// The files that [`Run::save`] writes.
    ///
    /// # Errors
    /// [`Error::Io`] where a file cannot be encoded.
    pub fn files(&self) -> Result<Files, Error> {
        super::collected(|put| self.each_file(put))
    }

    fn each_file(&self, put: &mut Sink) -> Result<(), Error> {
        let learned = (
            self.theta.as_slice(),
            &self.covariance,
            self.draws.as_slice(),
        );
        super::of_any(&self.model, &self.facts, learned, put)?;
        match &self.stream {
            Some(state) => put(STREAM.into(), encode(state, Path::new(STREAM))?),
            None => Ok(()),
        }
    }
}

fn encode(state: &State, path: &Path) -> Result<Vec<u8>, Error> {
    let (n, p) = (state.mean.len(), state.theta.len());
    let parts = state.covariance.parts();
    let rows = |values: &[f64], width: usize| vec![values.len() / width.max(1), width];
    let of = |name: &str, shape, values| Tensor {
        name: name.into(),
        shape,
        values,
    };
    let tensors = vec![
        of("mean", vec![n], state.mean.clone()),
        of("spread", vec![n, n], state.spread.clone()),
        of("cross", rows(&state.cross, p), state.cross.clone()),
        of("input", vec![state.input.len()], state.input.clone()),
        of("triangle", vec![parts.triangle.len()], parts.triangle),
        of("pending", rows(&parts.pending, p), parts.pending),
        of("factor", vec![2], vec![parts.factor, parts.shift]),
    ];
    pack(tensors, path)
}

/// The state in a snapshot; θ is in `weights.safetensors`.
pub fn decode(
    bytes: &[u8],
    model: &Model,
    theta: &[f64],
    facts: &StreamFacts,
    precision: crate::linalg::Precision,
) -> Result<State, String> {
    let file = unpack(bytes)?;
    let damaged = "this file does not belong to the run; restore it, or go on from the run alone by removing it and `stream` in fit.json";
    let read = |name: &str| file.any(name);
    let (n, p) = (model.states.len(), theta.len());
    let (mean, spread, cross) = (read("mean")?, read("spread")?, read("cross")?);
    let (input, factor) = (read("input")?, read("factor")?);
    let fits = mean.len() == n
        && spread.len() == n * n
        && [0, n * p].contains(&cross.len())
        && input.len() == model.inputs.len()
        && factor.len() == 2;
    if !fits {
        return Err(damaged.into());
    }
    let parts = Parts {
        triangle: read("triangle")?,
        pending: read("pending")?,
        factor: factor[0],
        shift: factor[1],
    };
    let covariance = PackedCovariance::from_parts(p, parts, precision).ok_or(damaged)?;
    Ok(State {
        options: facts.options,
        progress: facts.progress,
        theta: theta.to_vec(),
        covariance,
        mean,
        spread,
        cross,
        input,
    })
}
