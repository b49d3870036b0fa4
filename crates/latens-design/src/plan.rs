//! The experiments that are compared: where each starts, what drives it, what is measured of it and how often.
//!
//! Starts and the numbers of input families come from an additive recurrence with the generalised golden ratio
//! (Roberts 2018), which fills a box evenly for any number of points; the seed shifts it.

use latens::model::{Hold, Model, Point};
use latens::numerics::Trajectory;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::{Error, Fit, Record, suggest};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// What an input may do.
#[derive(Debug, Clone, PartialEq)]
pub enum Family {
    /// One level, then another, both within the range.
    Step([f64; 2]),
    /// A sine around the middle of the range.
    Sine([f64; 2]),
    /// The same, ever faster.
    Sweep([f64; 2]),
}

/// Cycles of a sine and the last of a sweep, at the most, and samples of the shortest cycle.
const CYCLES: f64 = 30.0;
const CYCLE_SAMPLES: f64 = 20.0;

impl Family {
    /// `step:0..1`, `sine:-2..2`, `sweep:0..5`.
    ///
    /// # Errors
    /// [`Error::Setting`] for another family, or what is no range.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (kind, values) = text.split_once(':').unwrap_or((text, ""));
        let make = match kind.trim() {
            "step" => Self::Step,
            "sine" => Self::Sine,
            "sweep" => Self::Sweep,
            _ => {
                return Err(Error::Setting(format!(
                    "`{text}` is no family of inputs: write step:0..1, sine:0..1 or sweep:0..1, with the range that the input may have"
                )));
            }
        };
        Ok(make(range(values)?))
    }

    /// The values over a record, and what it does in words; `draw` has three numbers from 0 to 1.
    fn values(&self, time: &[f64], draw: &[f64], unit: &str) -> (Vec<f64>, String) {
        let (from, samples) = (time[0], time.len() as f64);
        let duration = time[time.len() - 1] - from;
        let number = latens::text::number;
        let most = CYCLES.min(samples / CYCLE_SAMPLES).max(1.0);
        match self {
            Self::Step([low, high]) => {
                let level = |part: f64| low + (high - low) * part;
                let (before, after) = (level(draw[0]), level(draw[1]));
                let at = from + duration * (0.1 + 0.5 * draw[2]);
                let values = time.iter().map(|t| if *t < at { before } else { after });
                let words = format!(
                    "{}, from t = {} on {}",
                    number(before),
                    number(at),
                    number(after)
                );
                (values.collect(), words)
            }
            Self::Sine([low, high]) | Self::Sweep([low, high]) => {
                let middle = 0.5 * (low + high);
                let amplitude = 0.5 * (high - low) * (0.3 + 0.7 * draw[0]);
                let cycles = most.powf(draw[1]).max(1.0);
                let phase = 2.0 * std::f64::consts::PI * draw[2];
                let is_sweep = matches!(self, Self::Sweep(_));
                let values = time.iter().map(|t| {
                    let part = (t - from) / duration;
                    // the frequency grows from one cycle in the record to so many
                    let turns = if is_sweep {
                        part + 0.5 * (cycles - 1.0) * part * part
                    } else {
                        cycles * part
                    };
                    middle + amplitude * (2.0 * std::f64::consts::PI * turns + phase).sin()
                });
                let period = number(duration / cycles);
                let (middle, amplitude) = (number(middle), number(amplitude));
                let unit = if unit.is_empty() {
                    String::new()
                } else {
                    format!(" {unit}")
                };
                let words = if is_sweep {
                    format!(
                        "sweep of {middle} ± {amplitude}, with periods from {} down to {period}{unit}",
                        number(duration)
                    )
                } else {
                    format!("sine of {middle} ± {amplitude} with a period of {period}{unit}")
                };
                (values.collect(), words)
            }
        }
    }
}

/// `0..2`: both ends.
///
/// # Errors
/// [`Error::Setting`] for anything else.
pub fn range(text: &str) -> Result<[f64; 2], Error> {
    let ends = text.split_once("..");
    let ends = ends.and_then(|(a, b)| Some([a.trim().parse().ok()?, b.trim().parse().ok()?]));
    match ends {
        Some([low, high]) if f64::is_finite(low) && f64::is_finite(high) && low <= high => {
            Ok([low, high])
        }
        _ => Err(Error::Setting(format!(
            "`{text}` is no range: write its ends, the lower one first, as 0..2"
        ))),
    }
}

/// What experiments may be.
#[derive(Debug, Clone, Default)]
pub struct Space {
    /// Ranges of starts; other states start as in the first record.
    pub start: Vec<(String, [f64; 2])>,
    /// Families of inputs; several of one input are alternatives.
    pub inputs: Vec<(String, Family)>,
    /// Records whose inputs are alternatives to those of the families.
    pub replayed: Vec<Record>,
    /// What a regulator adds to an input: a formula of the states.
    pub feedback: Vec<(String, String)>,
    /// Sets of channels that may be measured; all where there is none.
    pub measured: Vec<Vec<String>>,
    /// Every which sample may be measured; each where there is none.
    pub every: Vec<usize>,
    /// Samples of a record; as many as the first record has where nobody says.
    pub samples: Option<usize>,
    /// Starts and inputs to look at.
    pub count: usize,
    /// Shifts them.
    pub seed: u64,
}

/// Where an experiment starts and what drives it.
pub struct Setup {
    /// A value for each state.
    pub start: Vec<f64>,
    /// What each input does, in words.
    pub words: Vec<String>,
    /// Times and inputs; what a regulator adds is not in it yet.
    record: Record,
}

/// A run of a model from a setup.
pub struct Run {
    /// Times, inputs and what would be measured.
    pub record: Record,
    /// The states.
    pub states: Trajectory,
}

/// A regulator: what it adds to each input.
pub struct Feedback {
    model: Option<Model>,
    /// The place of each input.
    inputs: Vec<usize>,
}

impl Feedback {
    /// Formulas of the states, compiled by the model language: each is the derivative of a state that nothing
    /// depends on.
    ///
    /// # Errors
    /// [`Error::Setting`] for a mistake in a formula, or an input that there is not.
    pub fn new(model: &Model, given: &[(String, String)]) -> Result<Self, Error> {
        if given.is_empty() {
            return Ok(Self {
                model: None,
                inputs: vec![],
            });
        }
        if model.hold.contains(&Hold::FirstOrder) {
            return Err(Error::Setting(
                "a regulator's input is not known ahead; take hold = \"zero-order\" in [time]"
                    .into(),
            ));
        }
        let inputs: Result<Vec<usize>, Error> = given
            .iter()
            .map(|(name, _)| place_of_input(model, name))
            .collect();
        let mut text = String::from("[inputs]\n");
        for state in &model.states {
            text += &format!("{} = \"\"\n", state.name);
        }
        for (k, (_, formula)) in given.iter().enumerate() {
            text += &format!("[states.regulator_{k}]\nderivative = {formula:?}\n");
        }
        text += "[measurements]\nregulator = \"regulator_0\"\n";
        let compiled = Model::from_text("the regulator", &text).map_err(|error| {
            Error::Setting(format!(
                "a regulator is a formula of the states, as u=-3*x - v\n{error}"
            ))
        })?;
        Ok(Self {
            model: Some(compiled.plain()),
            inputs: inputs?,
        })
    }

    fn add(&self, time: f64, state: &[f64], input: &mut [f64]) {
        let Some(model) = &self.model else { return };
        let zero = vec![0.0; self.inputs.len()];
        let mut added = zero.clone();
        let at = Point {
            time,
            state: &zero,
            input: state,
            theta: &[],
        };
        let mut ws = model.system.workspace();
        model.system.derivative(&mut ws, at, &mut added);
        for (place, added) in self.inputs.iter().zip(added) {
            input[*place] += added;
        }
    }
}

fn place_of_input(model: &Model, name: &str) -> Result<usize, Error> {
    let known: Vec<&str> = model.inputs.iter().map(|u| u.name.as_str()).collect();
    suggest::find(name, &known, "input").map_err(Error::Setting)
}

impl Space {
    /// The places of states with their ranges.
    fn ranges(&self, model: &Model) -> Result<Vec<(usize, [f64; 2])>, Error> {
        let known: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
        let ranges = self.start.iter().map(|(name, range)| {
            let place = suggest::find(name, &known, "state").map_err(Error::Setting)?;
            Ok((place, *range))
        });
        ranges.collect()
    }

    /// The families of each input.
    fn families(&self, model: &Model) -> Result<Vec<Vec<&Family>>, Error> {
        let mut found = vec![vec![]; model.inputs.len()];
        for (name, family) in &self.inputs {
            found[place_of_input(model, name)?].push(family);
        }
        Ok(found)
    }

    /// The sets of channels, each as whether a channel is measured.
    ///
    /// # Errors
    /// [`Error::Setting`] for a channel that there is not.
    pub fn channels(&self, model: &Model) -> Result<Vec<Vec<bool>>, Error> {
        let known: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
        if self.measured.is_empty() {
            return Ok(vec![vec![true; known.len()]]);
        }
        let sets = self.measured.iter().map(|names| {
            let mut set = vec![false; known.len()];
            for name in names {
                set[suggest::find(name, &known, "measurement").map_err(Error::Setting)?] = true;
            }
            Ok(set)
        });
        sets.collect()
    }

    /// The setups, the same for the same seed.
    ///
    /// # Errors
    /// [`Error::Setting`] for names that there are not.
    pub fn setups(&self, fit: &Fit) -> Result<Vec<Setup>, Error> {
        let model = &fit.model;
        let (ranges, families) = (self.ranges(model)?, self.families(model)?);
        let first = fit.trained().first().map(|t| Record {
            name: fit.facts_of(t).file.clone(),
            ..t.record.clone()
        });
        let first = first.ok_or_else(|| {
            Error::Setting("the records of the fit are needed, and its folder has none".into())
        })?;
        let samples = self.samples.unwrap_or(first.len());
        if samples < 10 {
            return Err(Error::Setting("a record has ten samples or more".into()));
        }
        let dt = fit.facts.sample_time;
        let time: Vec<f64> = (0..samples).map(|k| k as f64 * dt).collect();
        let combined: usize = families.iter().map(|f| f.len().max(1)).product();
        let has_families = families.iter().any(|f| !f.is_empty());
        // where somebody names files alone, nothing else drives it
        let combined = if has_families || self.replayed.is_empty() {
            combined
        } else {
            0
        };
        let dimensions = ranges.len() + 3 * families.len();
        let still = ranges.is_empty() && !has_families;
        let count = if still {
            combined + self.replayed.len()
        } else {
            self.count
        };
        let mut found = vec![];
        for k in 0..count {
            let draw = evenly(k, dimensions, self.seed);
            let (of_start, of_inputs) = draw.split_at(ranges.len());
            let given = ranges.iter().zip(of_start);
            let given = given.map(|((i, [low, high]), part)| (*i, low + (high - low) * part));
            let mut alternative = k % (combined + self.replayed.len());
            let (mut record, mut words) = (blank(model, &time), vec![]);
            if let Some(place) = alternative.checked_sub(combined) {
                let name = replay(&mut record, &self.replayed[place]);
                words = vec![format!("that of {name}"); model.inputs.len()];
            } else {
                for (i, families) in families.iter().enumerate() {
                    let draw = &of_inputs[3 * i..3 * i + 3];
                    let (values, said) = match families.get(alternative % families.len().max(1)) {
                        Some(family) => family.values(&time, draw, &model.time_unit),
                        None if self.feedback.is_empty() => {
                            let last = first.input_column(i).last().unwrap_or(0.0);
                            let values = first.input_column(i).chain(std::iter::repeat(last));
                            (
                                values.take(samples).collect(),
                                format!("that of {}", first.name),
                            )
                        }
                        None => (vec![0.0; samples], "the regulator's".into()),
                    };
                    alternative /= families.len().max(1);
                    let slots = record.inputs.iter_mut().skip(i).step_by(model.inputs.len());
                    slots.zip(values).for_each(|(slot, value)| *slot = value);
                    words.push(said);
                }
            }
            found.push(Setup {
                start: fit.start(&given.collect::<Vec<_>>()),
                words,
                record,
            });
        }
        Ok(found)
    }
}

/// A record of which nothing is measured yet.
fn blank(model: &Model, time: &[f64]) -> Record {
    let (d_u, d_y) = (model.inputs.len(), model.measurements.len());
    Record {
        name: "the experiment".into(),
        time: time.to_vec(),
        inputs: vec![0.0; time.len() * d_u],
        outputs: vec![f64::NAN; time.len() * d_y],
        truth: None,
        d_u,
        d_y,
        d_x: model.states.len(),
        later: false,
    }
}

/// Takes over times and inputs of another record; gives its name.
fn replay(record: &mut Record, other: &Record) -> String {
    record.time.clone_from(&other.time);
    record.inputs.clone_from(&other.inputs);
    record.outputs = vec![f64::NAN; other.len() * record.d_y];
    other.name.clone()
}

/// The k-th of evenly spread points of a box.
fn evenly(k: usize, dimensions: usize, seed: u64) -> Vec<f64> {
    let mut rng = Pcg64::seed_from_u64(seed);
    // the root of φ^(d+1) = φ + 1
    let root = (0..50).fold(2.0f64, |phi, _| {
        (1.0 + phi).powf(1.0 / (dimensions as f64 + 1.0))
    });
    let coordinates = (1..=dimensions).map(|j| {
        let shift: f64 = rng.random();
        (shift + (k + 1) as f64 * root.powi(-(j as i32))).fract()
    });
    coordinates.collect()
}

impl Setup {
    /// The run of a fit's equations, with everything measured at every sample; `None` where it leaves the
    /// finite numbers.
    pub fn run(&self, fit: &Fit, feedback: &Feedback) -> Option<Run> {
        let (system, dt) = (&fit.model.system, fit.facts.sample_time);
        let stepper = Stepper::over(&fit.model, system, dt, [&self.record]);
        self.run_with(&stepper, &fit.theta, feedback)
    }

    /// The same of any equations.
    pub fn run_with(&self, stepper: &Stepper, theta: &[f64], feedback: &Feedback) -> Option<Run> {
        let mut record = self.record.clone();
        let states = if feedback.inputs.is_empty() {
            score::free_run(stepper, &record, theta, &self.start)
        } else {
            regulated(stepper, &mut record, theta, &self.start, feedback)
        };
        let outputs = score::outputs(stepper.system(), &record, theta, &states);
        if !states.is_finite() || !outputs.is_finite() {
            return None;
        }
        record.outputs = outputs.into_vec();
        Some(Run { record, states })
    }
}

/// A run in which a regulator sees the states and adds to the inputs.
fn regulated(
    stepper: &Stepper,
    record: &mut Record,
    theta: &[f64],
    start: &[f64],
    feedback: &Feedback,
) -> Trajectory {
    let mut states = Trajectory::with_capacity(record.len(), start.len());
    let mut scratch = stepper.scratch();
    let (mut state, mut next) = (start.to_vec(), start.to_vec());
    for k in 0..record.len() {
        let d_u = record.d_u;
        let time = record.time[k];
        feedback.add(time, &state, &mut record.inputs[k * d_u..(k + 1) * d_u]);
        states.push(&state);
        if k + 1 < record.len() {
            let span = stepper.span(record.gap(k));
            stepper.advance(
                &mut scratch,
                record.point(k, &state, theta),
                span,
                &mut next,
            );
            std::mem::swap(&mut state, &mut next);
        }
    }
    states
}

impl Run {
    /// The record of which these channels are measured, at every `every`-th sample.
    pub fn measured(&self, channels: &[bool], every: usize) -> Record {
        let mut record = self.record.clone();
        let d_y = record.d_y.max(1);
        for (k, row) in record.outputs.chunks_exact_mut(d_y).enumerate() {
            for (y, is_measured) in row.iter_mut().zip(channels) {
                if !is_measured || k % every != 0 {
                    *y = f64::NAN;
                }
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each eighth of each dimension gets its share of 64 points, give or take three; the same seed
    /// gives the same points, another one others.
    #[test]
    fn points_fill_the_box_evenly() {
        let points: Vec<Vec<f64>> = (0..64).map(|k| evenly(k, 3, 1)).collect();
        for j in 0..3 {
            let mut counts = [0; 8];
            points
                .iter()
                .for_each(|p| counts[(8.0 * p[j]) as usize] += 1);
            assert!(counts.iter().all(|c| (5..=11).contains(c)), "{counts:?}");
        }
        assert_eq!(points[5], evenly(5, 3, 1));
        assert_ne!(points[5], evenly(5, 3, 2));
    }

    #[test]
    fn families_stay_within_their_range() {
        let time: Vec<f64> = (0..400).map(|k| 2.0 + 0.1 * f64::from(k)).collect();
        for text in ["step:-1..3", "sine:-1..3", "sweep: -1 .. 3"] {
            let family = Family::parse(text).unwrap();
            for k in 0..20 {
                let (values, words) = family.values(&time, &evenly(k, 3, 4), "s");
                assert!(values.iter().all(|v| (-1.0..=3.0).contains(v)), "{words}");
                let first = values[0];
                assert!(values.iter().any(|v| *v != first), "{words}");
            }
        }
        for wrong in ["step", "ramp:0..1", "sine:1..0", "sine:0..inf", "sweep:0,1"] {
            assert!(Family::parse(wrong).is_err(), "{wrong}");
        }
    }
}
