//! Values on the command line, for everything or by name: `0.1`, `V=0.5,n=1%`.

use latens::Error;
use latens::simulate::NoiseLevel;
use latens::suggest::find;

use crate::failure::Failure;

/// `VALUE` for everything, or `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment<T> {
    pub name: Option<String>,
    pub value: T,
}

fn parse<T>(text: &str, value: fn(&str) -> Result<T, String>) -> Result<Assignment<T>, String> {
    let (name, rest) = match text.split_once('=') {
        Some((name, _)) if name.trim().is_empty() => {
            return Err(format!("there is no name before the = of '{text}'"));
        }
        Some((name, rest)) => (Some(name.trim().to_owned()), rest),
        None => (None, text),
    };
    let value = value(rest.trim())?;
    Ok(Assignment { name, value })
}

/// A finite number.
pub fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("'{text}' is not a finite number")),
    }
}

/// A number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    match number(text)? {
        value if value > 0.0 => Ok(value),
        _ => Err(format!("{text} is not above zero")),
    }
}

/// Zero or a number above it.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match number(text)? {
        value if value >= 0.0 => Ok(value),
        _ => Err(format!("{text} is below zero")),
    }
}

/// Above 0, at most 1.
pub fn factor(text: &str) -> Result<f64, String> {
    match number(text)? {
        value if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err(format!("{text} is not above 0 and at most 1")),
    }
}

/// A part that leaves the larger one: above 0, below 0.5.
pub fn tail(text: &str) -> Result<f64, String> {
    match number(text)? {
        value if value > 0.0 && value < 0.5 => Ok(value),
        _ => Err(format!("{text} is not between 0 and 0.5")),
    }
}

fn level(text: &str) -> Result<NoiseLevel, String> {
    match text.strip_suffix('%') {
        Some(percent) => Ok(NoiseLevel::OfRange(not_negative(percent.trim())? / 100.0)),
        None => Ok(NoiseLevel::Absolute(not_negative(text)?)),
    }
}

/// `[NAME=]NOISE`, absolute or with `%` of the range.
pub fn noise(text: &str) -> Result<Assignment<NoiseLevel>, String> {
    parse(text, level)
}

/// `[NAME=]VARIANCE`, above zero.
pub fn variance(text: &str) -> Result<Assignment<f64>, String> {
    parse(text, positive)
}

/// `[NAME=]SIZE`, zero or above.
pub fn size(text: &str) -> Result<Assignment<f64>, String> {
    parse(text, not_negative)
}

/// `NAME=VALUE`.
pub fn named(text: &str) -> Result<Assignment<f64>, String> {
    match parse(text, number)? {
        Assignment { name: None, .. } => Err("write NAME=VALUE, for example x=1".into()),
        assignment => Ok(assignment),
    }
}

/// The value of each name; later assignments replace earlier ones.
pub fn resolve<T: Copy>(
    assignments: &[Assignment<T>],
    names: &[&str],
    noun: &str,
) -> Result<Vec<Option<T>>, Failure> {
    let mut values = vec![None; names.len()];
    for Assignment { name, value } in assignments {
        match name {
            None => values.fill(Some(*value)),
            Some(name) => {
                let place = find(name, names, noun).map_err(Error::Setting)?;
                values[place] = Some(*value);
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_absolute_or_of_the_range() {
        let parsed = |text: &str| noise(text).unwrap();
        assert_eq!(parsed("0.1").value, NoiseLevel::Absolute(0.1));
        assert_eq!(parsed("1%").value, NoiseLevel::OfRange(0.01));
        let named = parsed(" V = 2 % ");
        assert_eq!(named.name.as_deref(), Some("V"));
        assert_eq!(named.value, NoiseLevel::OfRange(0.02));
        for text in ["", "V=", "=1", "-1", "V=-1%", "1e999", "x%"] {
            assert!(noise(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_override_what_is_said_of_all() {
        let given = [size("1").unwrap(), size("b=2").unwrap()];
        let values = resolve(&given, &["a", "b"], "state");
        assert!(matches!(values, Ok(v) if v == [Some(1.0), Some(2.0)]));
        let wrong = resolve(&[size("bb=2").unwrap()], &["a", "ba"], "state");
        assert!(
            matches!(wrong, Err(Failure::Library(m)) if m.to_string().contains("did you mean `ba`"))
        );
    }
}
