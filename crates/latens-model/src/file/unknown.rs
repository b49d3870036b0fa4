//! An entry of `[unknowns]`: a constant that is learned, and what is known of it before.

use toml::de::DeValue;

use super::reader::Reader;
use super::values::{Fields, Value};
use super::{At, Span, StateDef, UnknownDef};
use crate::constant::{Prior, Varies};
use crate::expression::{Expr, Kind};

/// As written in `prior`.
const SHAPES: [(&str, Shape); 3] = [
    ("normal", Shape::Normal),
    ("lognormal", Shape::Lognormal),
    ("uniform", Shape::Uniform),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Normal,
    Lognormal,
    Uniform,
}

/// `value = "2.1 ± 0.3"`, or a number.
#[derive(Debug, Clone)]
struct Stated {
    value: f64,
    deviation: Option<f64>,
    span: Span,
}

impl Reader<'_> {
    pub(super) fn unknown(&mut self, name: At<String>, value: Value) -> UnknownDef {
        let help = "an unknown is { guess = 90, scale = 10 }";
        let fields = self.fields(value, "unknowns", "an unknown", help);
        let before = self.diagnostics.len();
        let stated = fields.get("value").and_then(|v| self.stated(v));
        let deviation = stated.as_ref().and_then(|s| s.deviation);
        let shape = self.choice(fields, "prior", &SHAPES);
        let bounds = (self.number(fields, "min"), self.number(fields, "max"));
        let guess = self.number(fields, "guess");
        let middle = match (shape, bounds) {
            (Some(Shape::Uniform), (Some(min), Some(max))) => Some(0.5 * (min + max)),
            _ => None,
        };
        let known = guess.or(stated.as_ref().map(|s| s.value)).or(middle);
        let guess = known.unwrap_or(1.0);
        let size = if guess == 0.0 { 1.0 } else { guess.abs() };
        let half_width = middle.map(|middle| bounds.1.unwrap_or(middle) - middle);
        let scale = self.positive(fields, "scale");
        let def = UnknownDef {
            guess,
            scale: half_width.or(deviation).or(scale).unwrap_or(size),
            positive: self.boolean(fields, "positive") || shape == Some(Shape::Lognormal),
            min: bounds.0.unwrap_or(f64::NEG_INFINITY),
            max: bounds.1.unwrap_or(f64::INFINITY),
            prior: match shape {
                Some(Shape::Uniform) => Prior::Uniform,
                Some(_) => Prior::Stated,
                None if deviation.is_some() => Prior::Stated,
                None => Prior::Rough,
            },
            fixed: self.boolean(fields, "fixed").then_some(guess),
            varies: self.choice(fields, "varies", &Varies::NAMES),
            unit: self.text(fields, "unit"),
            name,
        };
        // else what seems to be missing may be what has the mistake
        if fields.sound && self.diagnostics.len() == before {
            self.check_unknown(&def, fields, stated.as_ref(), shape, known.is_some());
        }
        def
    }

    /// `"2.1 ± 0.3"`, `"2.1 +- 0.3"`, `"2.1 +/- 0.3"` or a plain number.
    fn stated(&mut self, value: Value) -> Option<Stated> {
        let span = value.span();
        let DeValue::String(text) = value.get_ref() else {
            let value = self.finite(value)?;
            return Some(Stated {
                value,
                deviation: None,
                span,
            });
        };
        let parts = ["±", "+/-", "+-"]
            .iter()
            .find_map(|sign| text.split_once(sign));
        let number = |text: &str| text.trim().parse().ok().filter(|v: &f64| v.is_finite());
        let read = parts.and_then(|(value, deviation)| Some((number(value)?, number(deviation)?)));
        match read {
            Some((value, deviation)) if deviation > 0.0 => Some(Stated {
                value,
                deviation: Some(deviation),
                span,
            }),
            Some(_) => {
                let help = "what is known exactly is value = 2.1, fixed = true";
                self.fail(span, "a deviation must be above zero", help);
                None
            }
            None => {
                let message = format!("`{text}` is not a value with its deviation");
                self.fail(span, message, "write \"2.1 ± 0.3\"");
                None
            }
        }
    }

    /// What contradicts itself.
    fn check_unknown(
        &mut self,
        def: &UnknownDef,
        fields: Fields,
        stated: Option<&Stated>,
        shape: Option<Shape>,
        known: bool,
    ) {
        let (name, name_span) = (&def.name.value, def.name.span.clone());
        let place = |key: &str| fields.get(key).map(|v| v.span());
        let guessed = place("guess")
            .or(place("value"))
            .unwrap_or(name_span.clone());
        let deviation = stated.and_then(|s| s.deviation);
        let mistake = if let Some(stated) = stated.filter(|_| place("guess").is_some()) {
            let message = format!("unknown `{name}` has a value and a guess");
            Some((stated.span.clone(), message, "give one of them".into()))
        } else if let Some(at) = place("scale").filter(|_| deviation.is_some() || def.is_uniform())
        {
            let message = format!("the scale of unknown `{name}` is said twice");
            let help = "it is the deviation of `value`, or half the way from `min` to `max`: leave `scale` out";
            Some((at, message, help.into()))
        } else if def.fixed.is_some() && (deviation.is_some() || shape.is_some()) {
            let message = format!("unknown `{name}` is fixed and has a prior");
            let help = "what is fixed has a plain value: value = 2.1, fixed = true";
            Some((guessed, message, help.into()))
        } else if def.is_uniform() && !(def.min.is_finite() && def.max.is_finite()) {
            let message = format!("the uniform prior of unknown `{name}` has no end");
            Some((name_span, message, "give `min` and `max`".into()))
        } else if let Some(at) = place("varies").filter(|_| def.fixed.is_some()) {
            let message = format!("unknown `{name}` is fixed and varies");
            Some((at, message, "leave one of the two out".into()))
        } else if let Some(at) = place("varies").filter(|_| def.is_bounded()) {
            let message = format!("unknown `{name}` varies and has bounds");
            let help = "what varies cannot be cut at a bound; positive = true keeps it above zero";
            Some((at, message, help.into()))
        } else if !known {
            let message = format!("unknown `{name}` has no guess");
            Some((name_span, message, "give a rough value: guess = 90".into()))
        } else if let Some(stated) = stated.filter(|s| s.deviation.is_none() && def.fixed.is_none())
        {
            let message = format!("how well is the value of unknown `{name}` known?");
            let help = format!(
                "write value = \"{0} ± …\", or guess = {0} where it is rough, or fixed = true",
                stated.value
            );
            Some((stated.span.clone(), message, help))
        } else if place("positive").is_some()
            && def.positive
            && matches!(shape, Some(Shape::Normal | Shape::Uniform))
        {
            let message =
                format!("the prior of unknown `{name}` is not that of a positive constant");
            let help = "a positive constant has a lognormal prior; or write min = 0 in place of positive = true";
            Some((name_span, message, help.into()))
        } else if def.positive && def.guess <= 0.0 {
            let message = format!(
                "unknown `{name}` is positive but its guess is {}",
                def.guess
            );
            Some((guessed, message, "guess a positive value".into()))
        } else if def.min >= def.max {
            let message = format!("min of unknown `{name}` is not below max");
            let at = place("min").unwrap_or(name_span);
            Some((
                at,
                message,
                "a constant that is known is fixed = true".into(),
            ))
        } else {
            def.outside(def.guess).map(|bound| {
                let message = format!("the guess of unknown `{name}` is {bound}");
                (guessed, message, "guess a value between its bounds".into())
            })
        };
        if let Some((at, message, help)) = mistake {
            self.fail(at, message, help);
        }
    }
}

/// The name of the state that holds how a constant differs from its mean.
pub fn difference_name(constant: &str) -> String {
    format!("Δ{constant}")
}

impl UnknownDef {
    fn is_uniform(&self) -> bool {
        self.prior == Prior::Uniform
    }

    fn is_bounded(&self) -> bool {
        self.min.is_finite() || self.max.is_finite()
    }

    /// Whether it is learned, and more than one number.
    pub fn is_varying(&self) -> bool {
        self.varies.is_some() && self.fixed.is_none()
    }

    /// The state that holds how it differs from its mean: in its unit, or as a logarithm where it is
    /// positive.
    pub fn difference(&self) -> StateDef {
        let span = self.name.span.clone();
        StateDef {
            name: At {
                value: difference_name(&self.name.value),
                span: span.clone(),
            },
            derivative: Some(Expr {
                kind: Kind::Number(0.0),
                span,
            }),
            start: Some(0.0),
            start_deviation: None,
            unit: if self.positive {
                String::new()
            } else {
                self.unit.clone()
            },
            scale: Some(self.difference_scale()),
            center: Some(0.0),
        }
    }

    /// What a unit of θ is in the unit of that state.
    pub fn difference_scale(&self) -> f64 {
        if self.positive {
            self.scale / self.guess
        } else {
            self.scale
        }
    }

    /// In words, how a value is outside of the bounds.
    pub fn outside(&self, value: f64) -> Option<String> {
        if value < self.min {
            Some(format!("{value}, below its min of {}", self.min))
        } else if value > self.max {
            Some(format!("{value}, above its max of {}", self.max))
        } else if self.positive && value <= 0.0 {
            Some(format!("{value}, and it must be positive"))
        } else {
            None
        }
    }
}
