//! The model at its guesses, simulated over the records before anything is learned: where it leaves
//! the finite numbers, and which equation does.

use serde::Serialize;

use super::prior::PriorSmoothing;
use crate::described;
use crate::model::{Fault, Model, Point};
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::text;

described! {
/// Where a model leaves the finite numbers.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct Leaving {
    /// The record.
    pub record: String,
    /// The sample, from 0.
    pub sample: usize,
    /// Its time.
    pub time: f64,
    /// The state whose equation does.
    pub state: String,
    /// The function at fault with what it was given, as `sqrt(-0.31)`; `None` where the states grow
    /// beyond all numbers.
    pub operation: Option<String>,
    /// Whether the equation is no number there, and not only its solution.
    pub undefined: bool,
    /// States and inputs there, by name.
    pub values: Vec<(String, f64)>,
}
}

impl Leaving {
    /// What happens, where, and what to do.
    pub fn words(&self) -> String {
        let Self {
            record,
            sample,
            time,
            state,
            ..
        } = self;
        let values = self.values.iter();
        let values = values.map(|(name, v)| format!("{name} = {}", text::number(*v)));
        let values = values.collect::<Vec<_>>().join(", ");
        let place = format!(
            "at sample {} of {record} (t = {})",
            sample + 1,
            text::number(*time)
        );
        if !self.undefined {
            return format!(
                "simulated at its guesses, networks at zero, the model leaves the finite numbers in {state} {place}, after {values}: mend guesses and signs, or give a finer step"
            );
        }
        let operation = self.operation.as_ref();
        let because = operation.map_or(String::new(), |o| format!(": {o}"));
        let remedy = match operation.and_then(|o| o.split('(').next()) {
            Some("sqrt") => "keep its argument from below zero, as in sqrt(max(x, 0))",
            Some("log") => "keep its argument above zero, as in log(max(x, 1e-9))",
            Some("divide") => "keep its divisor from zero",
            Some("power") => "keep its base from below zero, or the exponent whole",
            _ => "keep its arguments where it is defined",
        };
        format!(
            "the equation of {state} is no finite number {place}{because}; there {values}. Nothing can be said of the states before that is mended: {remedy}, or mend guess and start"
        )
    }
}

/// Where the model at its guesses leaves the finite numbers, if it does: along the known-physics
/// smoothing, or in a simulation from its start.
pub fn simulate(
    model: &Model,
    records: &[Record],
    prior: &PriorSmoothing,
    dt: f64,
) -> Option<Leaving> {
    let stepper = Stepper::over(model, &model.system, dt, records);
    let theta = vec![0.0; model.system.parameters()];
    for (record, smoothed) in records.iter().zip(&prior.states) {
        let trial = Trial {
            model,
            stepper: &stepper,
            record,
            theta: &theta,
        };
        let first = smoothed.states.row(0);
        let start: Vec<f64> = if first.iter().all(|x| x.is_finite()) {
            first.to_vec()
        } else {
            trial.centre(prior)
        };
        let leaves = trial.fault_at(0, &start).or_else(|| trial.run(&start));
        if leaves.is_some() {
            return leaves;
        }
    }
    None
}

struct Trial<'a> {
    model: &'a Model,
    stepper: &'a Stepper<'a>,
    record: &'a Record,
    theta: &'a [f64],
}

impl Trial<'_> {
    /// The centre of the states, the measured ones where they start.
    fn centre(&self, prior: &PriorSmoothing) -> Vec<f64> {
        let mut state = prior.scales.center.clone();
        let first = self.record.output(0).iter().zip(self.model.system.direct());
        for (y, direct) in first {
            if let (Some(i), true) = (direct, y.is_finite()) {
                state[*i] = *y;
            }
        }
        state
    }

    fn point<'p>(&'p self, k: usize, state: &'p [f64]) -> Point<'p> {
        self.record.point(k, state, self.theta)
    }

    /// An equation that is no number at finite states.
    fn fault_at(&self, k: usize, state: &[f64]) -> Option<Leaving> {
        let mut ws = self.model.system.workspace();
        let fault = self.model.system.fault(&mut ws, self.point(k, state))?;
        Some(self.leaving(k, state, fault, true))
    }

    /// A simulation.
    fn run(&self, start: &[f64]) -> Option<Leaving> {
        let n = self.model.states.len();
        let states = score::free_run(self.stepper, self.record, self.theta, start);
        let lost = states.first_lost()?.row;
        let last = states.row(lost - 1);
        // between two samples the method looks at states that are near these
        let mut next = vec![0.0; n];
        let span = self.stepper.span(self.record.gap(lost - 1));
        let mut scratch = self.stepper.scratch();
        self.stepper
            .advance(&mut scratch, self.point(lost - 1, last), span, &mut next);
        if let Some(fault) = self.fault_at(lost - 1, last) {
            return Some(fault);
        }
        let state = next.iter().position(|x| !x.is_finite()).unwrap_or(0);
        let ahead = self.ahead(lost - 1, last);
        let Some((at, fault)) = ahead else {
            let fault = Fault {
                state,
                operation: None,
            };
            return Some(self.leaving(lost - 1, last, fault, false));
        };
        Some(self.leaving(lost - 1, &at, fault, true))
    }

    /// The first point along the slope of a step at which an equation is no number.
    fn ahead(&self, k: usize, state: &[f64]) -> Option<(Vec<f64>, Fault)> {
        let system = &self.model.system;
        let (mut ws, mut slope) = (system.workspace(), vec![0.0; state.len()]);
        system.derivative(&mut ws, self.point(k, state), &mut slope);
        let length = self.record.gap(k);
        (1..=8).find_map(|part| {
            let ahead = length * f64::from(part) / 8.0;
            let at: Vec<f64> = state
                .iter()
                .zip(&slope)
                .map(|(x, f)| x + ahead * f)
                .collect();
            // what grew beyond all numbers is another matter
            let small = at.iter().all(|x| x.abs() < 1e100);
            let fault = system
                .fault(&mut ws, self.point(k, &at))
                .filter(|_| small)?;
            Some((at, fault))
        })
    }

    fn leaving(&self, k: usize, state: &[f64], fault: Fault, undefined: bool) -> Leaving {
        let model = self.model;
        let operation = fault.operation.map(|(name, given)| {
            let given: Vec<String> = given.into_iter().map(text::number).collect();
            format!("{name}({})", given.join(", "))
        });
        let states = model
            .states
            .iter()
            .map(|s| s.name.clone())
            .zip(state.iter().copied());
        let inputs = model.inputs.iter().map(|u| u.name.clone());
        let inputs = inputs.zip(self.record.input(k).iter().copied());
        Leaving {
            record: self.record.name.clone(),
            sample: k,
            time: self.record.time[k],
            state: model.states[fault.state].name.clone(),
            operation,
            undefined,
            values: states.chain(inputs).collect(),
        }
    }
}
