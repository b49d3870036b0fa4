//! The values that sections are made of: tables, lists, numbers, text and equations.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::expression::{self, Expr, Kind};
use super::reader::Reader;
use super::{At, EARLIER_KEYS, Named, Span, keys};
use crate::suggest::suggest;

pub(crate) type Value<'a, 'i> = &'a Spanned<DeValue<'i>>;

/// The keys of a table. One that is missing, or is not a table, has none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields<'a, 'i> {
    table: Option<&'a DeTable<'i>>,
    /// Whether it is a table with known keys only. Elsewhere, what is missing may be what has the
    /// mistake.
    pub sound: bool,
}

impl<'a, 'i> Fields<'a, 'i> {
    pub fn of(table: &'a DeTable<'i>) -> Self {
        Self {
            table: Some(table),
            sound: true,
        }
    }

    pub fn get(self, key: &str) -> Option<Value<'a, 'i>> {
        self.table?.get(key)
    }

    /// The key of a setting here: its own, or an earlier one.
    pub fn key_of(self, setting: &'static str) -> &'static str {
        let earlier = EARLIER_KEYS.iter().find(|(_, now)| *now == setting);
        match earlier {
            Some((old, _)) if self.get(setting).is_none() && self.get(old).is_some() => old,
            _ => setting,
        }
    }
}

impl Reader<'_> {
    /// Reports the keys that `section` does not have; whether there were none.
    pub fn check_keys(&mut self, table: &DeTable<'_>, section: &str, place: &str) -> bool {
        let (before, known) = (self.diagnostics.len(), keys(section));
        for key in table.keys() {
            let name: &str = key.get_ref();
            let earlier = EARLIER_KEYS.iter().find(|(old, _)| *old == name);
            let earlier = earlier.filter(|_| section == "fit");
            let understood = earlier.is_some() && self.earlier_keys;
            if !known.contains(&name) && !understood {
                let help = match (earlier, suggest(name, known.iter().copied())) {
                    (Some((_, now)), _) => format!("it is called `{now}` now"),
                    (_, Some(close)) => format!("did you mean `{close}`?"),
                    _ => format!("known here: {}", known.join(", ")),
                };
                self.fail(key.span(), format!("{place} has no key `{name}`"), help);
            }
        }
        self.diagnostics.len() == before
    }

    /// A table with the keys of `section`; messages call it `place`.
    pub fn fields<'a, 'i>(
        &mut self,
        value: Value<'a, 'i>,
        section: &str,
        place: &str,
        help: &str,
    ) -> Fields<'a, 'i> {
        let table = self.table(value, help);
        Fields {
            table,
            sound: table.is_some_and(|t| self.check_keys(t, section, place)),
        }
    }

    /// A section with keys of its own.
    pub fn section<'a, 'i>(
        &mut self,
        root: Fields<'a, 'i>,
        section: &str,
        place: &str,
    ) -> Fields<'a, 'i> {
        let Some(value) = root.get(section) else {
            return Fields::default();
        };
        let fields = self.fields(value, section, place, &format!("write [{section}]"));
        self.complete &= fields.table.is_some();
        fields
    }

    /// A section whose keys the user names. Where it cannot be read, names are missing.
    fn names<'a, 'i>(&mut self, parent: Fields<'a, 'i>, key: &str) -> Option<&'a DeTable<'i>> {
        let table = self.table(parent.get(key)?, &format!("write [{key}]"));
        self.complete &= table.is_some();
        table
    }

    fn table<'a, 'i>(&mut self, value: Value<'a, 'i>, help: &str) -> Option<&'a DeTable<'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.fail(value.span(), "expected a table", help);
                None
            }
        }
    }

    pub fn array<'a, 'i>(
        &mut self,
        value: Value<'a, 'i>,
        help: &str,
    ) -> &'a [Spanned<DeValue<'i>>] {
        match value.get_ref() {
            DeValue::Array(array) => array,
            _ => {
                self.fail(value.span(), "expected a list", help);
                &[]
            }
        }
    }

    /// Every `name = …` of a section, in the order of the file.
    pub fn entries<'a, 'i, T>(
        &mut self,
        parent: Fields<'a, 'i>,
        section: &str,
        mut read: impl FnMut(&mut Self, At<String>, Value<'a, 'i>) -> T,
    ) -> Vec<T> {
        let mut entries = Vec::new();
        for (key, value) in self.names(parent, section).into_iter().flatten() {
            let name = At {
                value: key.get_ref().to_string(),
                span: key.span(),
            };
            entries.push(read(self, name, value));
        }
        entries
    }

    pub fn named_expressions(&mut self, parent: Fields, section: &str) -> Vec<Named<Expr>> {
        self.entries(parent, section, |r, name, v| (name, r.expression(v)))
    }

    pub fn named_numbers(&mut self, parent: Fields, section: &str) -> Vec<Named<f64>> {
        let read = |r: &mut Self, name, v: Value| Some((name, r.finite(v)?));
        let numbers = self.entries(parent, section, read);
        numbers.into_iter().flatten().collect()
    }

    pub fn string(&mut self, value: Value) -> Option<At<String>> {
        let span = value.span();
        if let DeValue::String(text) = value.get_ref() {
            let value = text.to_string();
            return Some(At { value, span });
        }
        self.fail(span, "expected text in quotes", "put it between \"…\"");
        None
    }

    /// Text that may be missing: then it is empty.
    pub fn text(&mut self, fields: Fields, key: &str) -> String {
        let text = fields.get(key).and_then(|v| self.string(v));
        text.map_or(String::new(), |t| t.value)
    }

    pub fn choice<T: Copy>(&mut self, fields: Fields, key: &str, names: &[(&str, T)]) -> Option<T> {
        let text = self.string(fields.get(key)?)?;
        if let Some(&(_, chosen)) = names.iter().find(|(n, _)| *n == text.value) {
            return Some(chosen);
        }
        let names: Vec<_> = names.iter().map(|(n, _)| *n).collect();
        let message = format!("`{}` is not a {key}", text.value);
        self.fail(text.span, message, format!("one of {}", names.join(", ")));
        None
    }

    pub fn finite(&mut self, value: Value) -> Option<f64> {
        let number: Option<f64> = match value.get_ref() {
            DeValue::Float(f) => f.as_str().parse().ok(),
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
                .ok()
                .map(|i| i as f64),
            _ => None,
        };
        let number = number.filter(|n| n.is_finite());
        if number.is_none() {
            let help = match value.get_ref() {
                DeValue::String(_) => "write it without quotes",
                _ => "for example 0.5",
            };
            self.fail(value.span(), "expected a finite number", help);
        }
        number
    }

    pub fn number(&mut self, fields: Fields, key: &str) -> Option<f64> {
        self.finite(fields.get(key)?)
    }

    pub fn positive(&mut self, fields: Fields, key: &str) -> Option<f64> {
        self.above_zero(key, fields.get(key)?)
    }

    pub fn above_zero(&mut self, key: &str, value: Value) -> Option<f64> {
        let number = self.finite(value)?;
        if number > 0.0 {
            return Some(number);
        }
        let message = format!("{key} must be positive");
        self.fail(value.span(), message, "give a value above zero");
        None
    }

    /// A number with a range of its own; `range` says which.
    pub fn between(
        &mut self,
        fields: Fields,
        key: &str,
        range: &str,
        inside: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        let value = fields.get(key)?;
        let number = self.finite(value)?;
        if inside(number) {
            return Some(number);
        }
        let help = format!("give a value {range}");
        self.fail(value.span(), format!("{key} must be {range}"), help);
        None
    }

    pub fn count(&mut self, fields: Fields, key: &str, most: usize) -> Option<usize> {
        let number = self.whole(fields, key, 1..=most as u64);
        number.map(|n| n as usize)
    }

    pub fn whole(&mut self, fields: Fields, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = fields.get(key)?;
        let number = match value.get_ref() {
            // not by way of a float, which a large seed would not survive
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).ok(),
            _ => {
                let number = self.finite(value)?;
                (number == number.round()).then_some(number as i64)
            }
        };
        let number = number.and_then(|n| u64::try_from(n).ok());
        if let Some(number) = number.filter(|n| range.contains(n)) {
            return Some(number);
        }
        let (first, last) = (range.start(), range.end());
        let most = if *last < i64::MAX as u64 {
            format!(" to {last}")
        } else {
            String::new()
        };
        let message = format!("{key} must be a whole number from {first}{most}");
        self.fail(value.span(), message, "for example 1");
        None
    }

    /// A list that may be missing: then it is empty.
    pub fn numbers(&mut self, fields: Fields, key: &str) -> Vec<f64> {
        let Some(value) = fields.get(key) else {
            return vec![];
        };
        let list = self.array(value, "a list of numbers: [0.0, 0.5, 1.0]");
        list.iter().filter_map(|v| self.finite(v)).collect()
    }

    /// `false` where it is missing.
    pub fn boolean(&mut self, fields: Fields, key: &str) -> bool {
        self.flag(fields, key).unwrap_or(false)
    }

    pub fn flag(&mut self, fields: Fields, key: &str) -> Option<bool> {
        let value = fields.get(key)?;
        if let DeValue::Boolean(b) = value.get_ref() {
            return Some(*b);
        }
        let message = format!("{key} is true or false");
        self.fail(value.span(), message, "write it without quotes");
        None
    }

    /// An equation in quotes, or a plain number.
    pub fn expression(&mut self, value: Value) -> Expr {
        let span = value.span();
        match value.get_ref() {
            DeValue::String(text) => self.equation(text, span),
            DeValue::Float(_) | DeValue::Integer(_) => {
                let kind = self.finite(value).map_or(Kind::Invalid, Kind::Number);
                Expr { kind, span }
            }
            _ => {
                let help = "write it in quotes: \"-k*x\"";
                self.fail(span.clone(), "expected an equation", help);
                Expr::invalid(span)
            }
        }
    }

    fn equation(&mut self, text: &str, span: Span) -> Expr {
        // The text's own place: after the quotes. A string with escapes is pointed at as a whole.
        let raw = &self.text[span.clone()];
        let inside = raw.find(text).filter(|_| !text.is_empty());
        let parsed = expression::parse(text, inside.map_or(span.start, |i| span.start + i));
        parsed.unwrap_or_else(|mut diagnostic| {
            if inside.is_none() {
                diagnostic.span = span.clone();
            }
            self.diagnostics.push(diagnostic);
            Expr::invalid(span)
        })
    }
}
