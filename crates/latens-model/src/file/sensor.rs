//! Lags and delays of sensors and inputs, as further states.
//!
//! A sensor with a lag shows s, where s' = (w − s)/lag and w is what it would show without. A delay is
//! that of Padé's second order,
//!
//! ```text
//! r₁' = 2/d · r₂,   r₂' = 6/d · (w − r₁ − r₂),   w(t − d) ≈ w − 2 r₂
//! ```
//!
//! which turns no amplitude and errs in the phase by (ωd)⁵/720: 10⁻⁵ of a radian at ωd = 0.4, 0.05 at
//! 2. Both are equations like any others, so that what is unknown of them is learned as all else is.

use toml::de::DeValue;

use super::reader::Reader;
use super::values::{Fields, Value};
use super::{At, Duration, Method, ModelFile, Span, StateDef, UnknownDef};
use crate::expression::{Expr, Kind, Operator};

/// What an input is called where its delay begins: no name that a file can have.
pub fn undelayed(input: &str) -> String {
    format!("{input}'")
}

/// The state that a delayed input is corrected by.
pub fn correction(input: &str) -> String {
    format!("{input}_delayed_rate")
}

impl Reader<'_> {
    /// `lag = 0.1` or `lag = { guess = 0.1 }`.
    pub(super) fn duration(
        &mut self,
        owner: &At<String>,
        fields: Fields,
        key: &str,
    ) -> Option<Box<Duration>> {
        let value: Value = fields.get(key)?;
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            let span = value.span();
            let value = self.positive(fields, key)?;
            return Some(Box::new(Duration::Known(At { value, span })));
        }
        let name = At {
            value: format!("{}_{key}", owner.value),
            span: value.span(),
        };
        let mut unknown = self.unknown(name, value);
        if unknown.guess <= 0.0 {
            let message = format!("the {key} of `{}` is not above zero", owner.value);
            self.fail(value.span(), message, format!("guess a {key} above zero"));
        }
        unknown.positive = true;
        Some(Box::new(Duration::Unknown(unknown)))
    }
}

impl Duration {
    fn expression(&self) -> Expr {
        match self {
            Self::Known(at) => Expr {
                kind: Kind::Number(at.value),
                span: at.span.clone(),
            },
            Self::Unknown(unknown) => named(&unknown.name.value, &unknown.name.span),
        }
    }

    fn unknown(&self) -> Option<&UnknownDef> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(unknown) => Some(unknown),
        }
    }
}

impl ModelFile {
    /// Adds the states of sensors with a lag or a delay and of delayed inputs, and the constants that
    /// are unknown of them.
    pub(crate) fn add_sensors(&mut self) {
        let (mut states, mut unknowns) = (vec![], vec![]);
        // what a method can follow, in its own steps: lags, delays; an implicit one follows all
        let least = match self.method {
            Method::Rk4 => (0.5, 1.5),
            Method::Euler | Method::SemiImplicitEuler => (0.7, 2.5),
            Method::Sdirk4 | Method::ImplicitMidpoint => (0.01, 0.01),
        };
        let step = self.step.map(|step| step / self.substeps as f64);
        let mut learn = |duration: &Duration, least: f64| {
            if let Some(unknown) = duration.unknown() {
                let mut unknown = unknown.clone();
                if let Some(step) = step {
                    unknown.min = unknown.min.max(least * step).min(unknown.guess);
                }
                if unknown.unit.is_empty() {
                    unknown.unit.clone_from(&self.time_unit);
                }
                unknowns.push(unknown);
            }
        };
        for input in &self.inputs {
            let Some(delay) = &input.delay else {
                continue;
            };
            learn(delay, least.1);
            let At { value: name, span } = &input.name;
            let undelayed = named(&undelayed(name), span);
            states.extend(delayed(name, &input.unit, None, &undelayed, delay));
        }
        for measurement in &mut self.measurements {
            let At { value: name, span } = measurement.name.clone();
            let shown = match &measurement.value.kind {
                Kind::Name(shown) => self.states.iter().find(|s| s.name.value == *shown),
                _ => None,
            };
            let (start, center) = shown.map_or((None, None), |s| (s.start, s.center));
            let unit = match (measurement.unit.as_str(), shown) {
                ("", Some(shown)) => shown.unit.clone(),
                (unit, _) => unit.to_string(),
            };
            measurement.unit.clone_from(&unit);
            if let Some(lag) = &measurement.lag {
                learn(lag, least.0);
                let lagged = format!("{name}_lagged");
                let difference = subtract(measurement.value.clone(), named(&lagged, &span));
                states.push(StateDef {
                    derivative: Some(divide(difference, lag.expression())),
                    start,
                    start_deviation: None,
                    unit: unit.clone(),
                    scale: None,
                    center,
                    name: At {
                        value: lagged.clone(),
                        span: span.clone(),
                    },
                });
                measurement.value = named(&lagged, &span);
            }
            if let Some(delay) = &measurement.delay {
                learn(delay, least.1);
                let undelayed = measurement.value.clone();
                states.extend(delayed(&name, &unit, start, &undelayed, delay));
                let shift = named(&correction(&name), &span);
                measurement.value = subtract(undelayed, multiply(2.0, shift));
            }
        }
        self.states.extend(states);
        self.unknowns.extend(unknowns);
    }
}

/// The states of a delay of what `now` says.
fn delayed(
    name: &str,
    unit: &str,
    start: Option<f64>,
    now: &Expr,
    delay: &Duration,
) -> [StateDef; 2] {
    let span = &now.span;
    let (first, second) = (format!("{name}_delayed"), correction(name));
    let rate = |factor: f64, term: Expr| divide(multiply(factor, term), delay.expression());
    let left = subtract(
        subtract(now.clone(), named(&first, span)),
        named(&second, span),
    );
    let state = |name: &str, derivative, start| StateDef {
        name: At {
            value: name.into(),
            span: span.clone(),
        },
        derivative: Some(derivative),
        start,
        start_deviation: None,
        unit: unit.into(),
        scale: None,
        center: None,
    };
    [
        state(&first, rate(2.0, named(&second, span)), start.or(Some(0.0))),
        state(&second, rate(6.0, left), Some(0.0)),
    ]
}

fn named(name: &str, span: &Span) -> Expr {
    Expr {
        kind: Kind::Name(name.into()),
        span: span.clone(),
    }
}

fn binary(operator: Operator, left: Expr, right: Expr) -> Expr {
    let span = left.span.clone();
    Expr {
        kind: Kind::Binary(operator, Box::new(left), Box::new(right)),
        span,
    }
}

fn subtract(left: Expr, right: Expr) -> Expr {
    binary(Operator::Subtract, left, right)
}

fn divide(left: Expr, right: Expr) -> Expr {
    binary(Operator::Divide, left, right)
}

fn multiply(factor: f64, term: Expr) -> Expr {
    let factor = Expr {
        kind: Kind::Number(factor),
        span: term.span.clone(),
    };
    binary(Operator::Multiply, factor, term)
}
