//! Records made from the truth section of a model.
//!
//! The state follows the model's own one-step map; process noise enters as in Euler–Maruyama,
//! x ← f_o(x) + σ √Δt ξ; measurement noise is added to the channels at the end.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use crate::model::limits::STEPS;
use crate::model::tape::Networks;
use crate::model::{Hold, Model, Point, Truth};
use crate::numerics::step::{Stepper, Tableau};
use crate::record::Record;
use crate::record::limits::{SUBSTEPS, VALUES};
use crate::{Divergence, Error};

/// Measurement noise of one channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoiseLevel {
    /// Standard deviation in the channel's own unit.
    Absolute(f64),
    /// Fraction of the channel's range in this record.
    OfRange(f64),
}

/// How to make a record.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    /// Steps; the record has one sample more. The model's own number where `None`.
    pub steps: Option<usize>,
    /// Start values that replace the model's: (state, value).
    pub start: Vec<(usize, f64)>,
    /// An experiment of the file's held-out list, from 0.
    pub held_out: Option<usize>,
    /// Follow the learned equations with this θ; the true ones where `None`.
    pub theta: Option<Vec<f64>>,
    /// Noise of each channel; none where empty.
    pub noise: Vec<Option<NoiseLevel>>,
    /// Process noise that replaces the model's: standard deviation per √time, each state.
    pub process_noise: Option<Vec<f64>>,
    /// Of the noise.
    pub seed: u64,
}

/// Refuses a record that would not fit the memory, or not end.
pub(crate) fn check_steps(model: &Model, steps: usize) -> Result<(), Error> {
    let width = 1 + model.inputs.len() + model.measurements.len() + model.states.len();
    let values = steps.saturating_mul(width);
    let substeps = steps as f64 * model.substeps as f64;
    if steps > STEPS || values > VALUES || substeps > SUBSTEPS {
        return Err(Error::Setting(format!(
            "a simulation of {steps} steps has {values} numbers and {substeps:.3e} sub-steps; it may have {STEPS} steps, {VALUES} numbers and {SUBSTEPS:.0e} sub-steps: take fewer steps"
        )));
    }
    Ok(())
}

/// Makes a record from the true equations, with the truth in it.
///
/// ```
/// use latens::Model;
/// use latens::simulate::{NoiseLevel, Simulation, simulate};
///
/// let model = Model::builtin("harmonic-oscillator")?;
/// let noisy = Simulation {
///     steps: Some(100),
///     noise: vec![Some(NoiseLevel::OfRange(0.01))],
///     ..Simulation::default()
/// };
/// let record = simulate(&model, &noisy)?;
/// assert_eq!((record.len(), record.d_y, record.d_x), (101, 1, 2));
/// # Ok::<(), latens::Error>(())
/// ```
pub fn simulate(model: &Model, simulation: &Simulation) -> Result<Record, Error> {
    let truth = model.truth.as_ref().ok_or_else(|| {
        Error::Setting(format!(
            "{} has no [truth] section to simulate; bring a record, or add the equations",
            model.name
        ))
    })?;
    let dt = model
        .step
        .ok_or_else(|| Error::Setting("the model has no step; add step = … to [time]".into()))?;
    if let Some(input) = truth.undriven.first() {
        return Err(Error::Setting(format!(
            "nothing drives the input `{input}`; add {input} = \"…\" to [simulation.inputs]"
        )));
    }
    let lengths = [
        (simulation.noise.len(), model.measurements.len()),
        (
            simulation.process_noise.as_ref().map_or(0, Vec::len),
            model.states.len(),
        ),
    ];
    if lengths
        .iter()
        .any(|&(given, length)| given != 0 && given != length)
        || simulation
            .start
            .iter()
            .any(|&(i, _)| i >= model.states.len())
    {
        return Err(Error::Setting(
            "noise is given for each channel, process noise for each state, a start by the \
             number of a state"
                .into(),
        ));
    }
    let steps = simulation.steps.or(truth.steps).unwrap_or(1000);
    check_steps(model, steps)?;
    let held_out = match simulation.held_out {
        None => None,
        Some(i) => Some(truth.held_out.get(i).ok_or_else(|| {
            Error::Setting(format!(
                "the model has {} held-out experiment(s), not {}",
                truth.held_out.len(),
                i + 1
            ))
        })?),
    };
    let held_start = held_out.map_or([].as_slice(), |h| &h.start);
    let mut state = start(model, held_start.iter().chain(&simulation.start))?;
    let controls = held_out.map_or(&truth.controls, |h| &h.controls);

    let (system, theta) = match &simulation.theta {
        Some(theta) => (&model.system, theta.as_slice()),
        None => (&truth.system, [].as_slice()),
    };
    let (n, m) = (system.states(), system.inputs());
    let stepper = Stepper::new(model, system, dt);
    let mut scratch = stepper.scratch();
    let mut slots = controls.slots();
    let env = Networks {
        networks: &[],
        calls: &[],
        curves: truth.system.curves(),
    };
    let mut rng = Pcg64::seed_from_u64(simulation.seed);
    let process = simulation
        .process_noise
        .as_ref()
        .unwrap_or(&truth.process_noise);
    let mut record = Record {
        name: model.name.clone(),
        time: Vec::with_capacity(steps + 1),
        inputs: Vec::with_capacity((steps + 1) * m),
        outputs: Vec::with_capacity((steps + 1) * system.measurements()),
        truth: Some(Vec::with_capacity((steps + 1) * n)),
        d_u: m,
        d_y: system.measurements(),
        d_x: n,
        later: false,
    };
    let (mut next, mut h) = (vec![0.0; n], vec![0.0; record.d_y]);
    // of this sample and, for a first-order hold, of the next
    let mut input = vec![
        0.0;
        if model.hold.contains(&Hold::FirstOrder) {
            2 * m
        } else {
            m
        }
    ];
    for k in 0..=steps {
        let time = k as f64 * dt;
        let announced = input.get(m..).map(<[f64]>::to_vec).filter(|_| k > 0);
        for (ahead, input) in input.chunks_exact_mut(m.max(1)).enumerate() {
            let at = Point {
                time: (k + ahead) as f64 * dt,
                state: &state,
                input: &[],
                theta: &[],
            };
            controls.run(&mut slots, &mut [], env, at);
            for (j, u) in input.iter_mut().enumerate() {
                *u = controls.root(&slots, j) - feedback(truth, j, &state);
            }
        }
        if announced.is_some_and(|a| !a.is_empty() && a != input[..m]) {
            return Err(Error::Setting(
                "an input that depends on the states is not known ahead; take hold = \"zero-order\" in [time]".into(),
            ));
        }
        let at = Point {
            time,
            state: &state,
            input: &input,
            theta,
        };
        system.measure(&mut scratch.system, at, &mut h);
        record.time.push(time);
        record.inputs.extend_from_slice(&input[..m]);
        record.outputs.extend_from_slice(&h);
        record
            .truth
            .get_or_insert_default()
            .extend_from_slice(&state);
        if k == steps {
            break;
        }
        stepper.advance(&mut scratch, at, stepper.span(dt), &mut next);
        for (x, sigma) in next.iter_mut().zip(process) {
            if *sigma > 0.0 {
                let xi: f64 = StandardNormal.sample(&mut rng);
                *x += sigma * dt.sqrt() * xi;
            }
        }
        if h.iter().chain(&input).any(|v| !v.is_finite()) {
            return Err(Error::Setting(format!(
                "a measurement or an input is not a finite number at step {k} (t = {time})"
            )));
        }
        if let Some(i) = next.iter().position(|x| !x.is_finite()) {
            return Err(Error::Diverged(Divergence {
                during: "the simulation".into(),
                pass: None,
                step: k + 1,
                time: time + dt,
                quantity: model.states[i].name.clone(),
                value: next[i],
                advice: divergence_advice(model),
            }));
        }
        std::mem::swap(&mut state, &mut next);
    }
    add_noise(&mut record, &simulation.noise, &mut rng);
    Ok(record)
}

/// What to try where a simulation leaves the finite numbers.
fn divergence_advice(model: &Model) -> String {
    if model.method.is_implicit() {
        format!(
            "the equations grow beyond all numbers, or the implicit step has no solution, however short, or it takes more than {} pieces to keep its tolerance: check signs and what the equations divide by or take roots of, or take a smaller step or a larger tolerance in [time]",
            Tableau::MOST_ATTEMPTS
        )
    } else {
        "take a smaller step or more substeps in [time]; where rates lie far apart, method = \"sdirk4\" with tolerance = 1e-6".into()
    }
}

/// The model's start values, some replaced: (state, value).
///
/// # Errors
/// [`Error::Setting`] for a state that has none.
pub fn start<'a>(
    model: &Model,
    replaced: impl IntoIterator<Item = &'a (usize, f64)>,
) -> Result<Vec<f64>, Error> {
    let mut values: Vec<Option<f64>> = model.states.iter().map(|s| s.start).collect();
    for &(i, value) in replaced {
        values[i] = Some(value);
    }
    values
        .iter()
        .zip(&model.states)
        .map(|(value, state)| {
            value.ok_or_else(|| {
                Error::Setting(format!(
                    "state `{0}` has no start; add start = … to [states.{0}] or give it one with ⟦start⟧",
                    state.name
                ))
            })
        })
        .collect()
}

/// Row j of K x.
fn feedback(truth: &Truth, j: usize, state: &[f64]) -> f64 {
    let gain = truth
        .gain
        .get(j * state.len()..(j + 1) * state.len())
        .unwrap_or(&[]);
    gain.iter().zip(state).map(|(k, x)| k * x).sum()
}

fn add_noise(record: &mut Record, noise: &[Option<NoiseLevel>], rng: &mut Pcg64) {
    let channels = record.d_y;
    for (c, level) in noise.iter().enumerate() {
        let values = || record.outputs.iter().skip(c).step_by(channels);
        let sigma = match level {
            None => continue,
            Some(NoiseLevel::Absolute(sigma)) => *sigma,
            Some(NoiseLevel::OfRange(fraction)) => {
                let low = values().copied().fold(f64::INFINITY, f64::min);
                let high = values().copied().fold(f64::NEG_INFINITY, f64::max);
                fraction * (high - low)
            }
        };
        for value in record.outputs.iter_mut().skip(c).step_by(channels) {
            let xi: f64 = StandardNormal.sample(rng);
            *value += sigma * xi;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems;

    fn range(record: &Record, state: usize) -> (f64, f64) {
        let truth = record.truth.as_ref().unwrap();
        let values = || truth.iter().skip(state).step_by(record.d_x).copied();
        (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        )
    }

    /// A state's name, lowest and highest value.
    type Range = (&'static str, &'static str, &'static str);

    /// The ranges of systems.md, to the digits given there.
    #[test]
    fn the_systems_move_as_published() {
        let expected: [(&str, &[Range]); 3] = [
            (
                "cart-pole",
                &[
                    ("z", "-1.448", "0.000"),
                    ("z_dot", "-2.41", "0.68"),
                    ("phi", "-0.138", "0.300"),
                    ("phi_dot", "-0.856", "0.149"),
                ],
            ),
            (
                "yeast-glycolysis",
                &[
                    ("x1", "0.155", "1.602"),
                    ("x2", "0.190", "2.163"),
                    ("x3", "0.041", "0.185"),
                    ("x4", "0.096", "0.351"),
                    ("x5", "0.053", "0.098"),
                    ("x6", "0.138", "2.670"),
                    ("x7", "0.077", "0.201"),
                ],
            ),
            (
                "hodgkin-huxley",
                &[
                    ("V", "-75.1", "40.5"),
                    ("n", "0.318", "0.771"),
                    ("m", "0.016", "0.995"),
                    ("h", "0.068", "0.596"),
                ],
            ),
        ];
        for (name, states) in expected {
            let model = Model::from_text(name, systems::find(name).unwrap()).unwrap();
            let record = simulate(&model, &Simulation::default()).unwrap();
            for (state, low, high) in states {
                let (l, h) = range(&record, model.state_index(state).unwrap());
                let shown = |v: f64, like: &str| {
                    let digits = like.split('.').nth(1).map_or(0, str::len);
                    format!("{:.digits$}", if v == 0.0 { 0.0 } else { v })
                };
                assert_eq!(shown(l, low), *low, "{name} {state}");
                assert_eq!(shown(h, high), *high, "{name} {state}");
            }
        }
    }

    /// Euler inflates the oscillator's amplitude by (1 + ω²Δt²)^(N/2), exactly.
    #[test]
    fn the_oscillator_grows_as_euler_says() {
        let model = Model::from_text("ho", systems::find("harmonic-oscillator").unwrap()).unwrap();
        let record = simulate(&model, &Simulation::default()).unwrap();
        let last = record.truth(record.len() - 1).unwrap();
        let energy = last[0] * last[0] + last[1] * last[1];
        assert!((energy - (1.0 + 1e-6_f64).powi(5000)).abs() < 1e-11);
    }

    /// The gain that the weights give, to the digits of systems.md.
    #[test]
    fn the_cart_pole_has_its_regulator() {
        let model = Model::from_text("cp", systems::find("cart-pole").unwrap()).unwrap();
        let gain = &model.truth.as_ref().unwrap().gain;
        for (k, expected) in gain.iter().zip([-3.16228, -7.05139, 74.2901, 32.0433]) {
            assert!((k - expected).abs() < 1e-5 * expected.abs(), "{gain:?}");
        }
    }

    /// Euler–Maruyama: the variance of a random walk after time T is σ²T; measurement noise has
    /// its size; the same seed gives the same record.
    #[test]
    fn noise_has_the_size_asked_for() {
        let text = "[time]\nstep = 0.01\n[states.x]\nderivative = \"0\"\nstart = 0\n\
                    [measurements]\ny = \"x\"\n[simulation]\nsteps = 400\n\
                    process_noise = { x = 0.5 }\n";
        let model = Model::from_text("walk", text).unwrap();
        let (mut walk, mut noise) = (0.0, 0.0);
        for seed in 0..500 {
            let simulation = Simulation {
                noise: vec![Some(NoiseLevel::Absolute(0.1))],
                seed,
                ..Simulation::default()
            };
            let record = simulate(&model, &simulation).unwrap();
            let end = record.truth(400).unwrap()[0];
            walk += end * end / 500.0;
            noise += (record.output(400)[0] - end).powi(2) / 500.0;
            assert_eq!(
                record.outputs,
                simulate(&model, &simulation).unwrap().outputs
            );
        }
        // a mean of 500 squares scatters by √(2/500) = 6 %
        assert!((walk / (0.25 * 4.0) - 1.0).abs() < 0.2, "{walk}");
        assert!((noise / 0.01 - 1.0).abs() < 0.2, "{noise}");
    }
}
