//! Formulas: texts of the model language in which `#1` is the first argument of the network and `$1` the first constant.

use latens::Error;
use latens::model::{Model, Point};

/// A term of a sum: a text with arguments `#1` … and inner constants `$1` ….
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Without its factor.
    pub text: String,
    /// What its inner constants are.
    pub inner: Vec<f64>,
}

/// A formula and its constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// With `#1` for the arguments and `$1` for the constants.
    pub text: String,
    /// What `$1` … are.
    pub constants: Vec<f64>,
    /// What somebody calls them; a number each where nobody does.
    pub names: Vec<String>,
    /// The terms that it is a sum of, where it is one.
    pub terms: Vec<Term>,
}

/// Replaces `#1`, or `$1`, by other texts.
pub fn fill(text: &str, mark: char, replacement: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(mark) {
        let end = after.find(|c: char| !c.is_ascii_digit());
        let (number, after) = after.split_at(end.unwrap_or(after.len()));
        out += before;
        match number.parse::<usize>() {
            Ok(number) if number > 0 => out += &replacement(number - 1),
            _ => out.push(mark),
        }
        rest = after;
    }
    out + rest
}

/// A formula with names of the model language: `a1` for `#1`, `c1` for `$1`.
pub fn named(text: &str) -> String {
    let text = fill(text, '#', |j| format!("a{}", j + 1));
    fill(&text, '$', |i| format!("c{}", i + 1))
}

impl Term {
    /// One without inner constants.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            inner: vec![],
        }
    }

    /// Its text with the values of its inner constants.
    pub fn filled(&self) -> String {
        fill(&self.text, '$', |k| format!("({:e})", self.inner[k]))
    }
}

impl Formula {
    /// Factors times terms, over 1 + a constant times `denominator` where there is one.
    pub fn sum(terms: Vec<Term>, factors: &[f64], denominator: Option<(&str, f64)>) -> Self {
        let mut constants = vec![];
        let mut parts = vec![];
        for (term, factor) in terms.iter().zip(factors) {
            constants.push(*factor);
            let factor_place = constants.len();
            let inner = fill(&term.text, '$', |k| format!("${}", factor_place + 1 + k));
            constants.extend(&term.inner);
            parts.push(if inner == "1" {
                format!("${factor_place}")
            } else {
                format!("${factor_place}*{inner}")
            });
        }
        let mut text = parts.join(" + ");
        if let Some((below, constant)) = denominator {
            constants.push(constant);
            text = format!("({text})/(1 + ${}*{below})", constants.len());
        }
        Self {
            text,
            constants,
            names: vec![],
            terms,
        }
    }

    /// The text with names of arguments and constants.
    pub fn shown(&self, arguments: &[String], constants: &[String]) -> String {
        let simple = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
        let argument = |j: usize| match arguments.get(j) {
            Some(text) if simple(text) => text.clone(),
            Some(text) => format!("({text})"),
            None => "?".into(),
        };
        let text = fill(&self.text, '#', argument);
        let text = fill(&text, '$', |k| {
            constants.get(k).cloned().unwrap_or_default()
        });
        text.replace("+ -", "- ").replace("- -", "+ ")
    }

    /// ψ of its denominator 1 + K ψ, where it has one.
    pub fn below(&self) -> Option<&str> {
        let (_, below) = self.text.rsplit_once("/(1 + $")?;
        below.split_once('*')?.1.strip_suffix(')')
    }

    /// The sum without some of its terms, with these constants, and the places of what is left of them; `None` where
    /// nothing would be left.
    pub fn without(&self, lost: &[usize], constants: &[f64]) -> Option<(Self, Vec<usize>)> {
        let (mut terms, mut factors, mut places, mut at) = (vec![], vec![], vec![], 0);
        for (k, term) in self.terms.iter().enumerate() {
            let places_here = at..at + 1 + term.inner.len();
            at = places_here.end;
            if !lost.contains(&k) {
                factors.push(constants[places_here.start]);
                terms.push(Term {
                    text: term.text.clone(),
                    inner: constants[places_here.start + 1..places_here.end].to_vec(),
                });
                places.extend(places_here);
            }
        }
        let below = self.below().map(|below| {
            places.push(at);
            (below, constants[at])
        });
        (!terms.is_empty()).then(|| (Self::sum(terms, &factors, below), places))
    }

    /// The same with other constants.
    pub fn at(&self, constants: &[f64]) -> Self {
        let mut formula = self.clone();
        let mut at = 0;
        for term in &mut formula.terms {
            let inner = term.inner.len();
            term.inner
                .copy_from_slice(&constants[at + 1..at + 1 + inner]);
            at += 1 + inner;
        }
        formula.constants = constants.to_vec();
        formula
    }

    /// What kind of formula it is, whatever its constants are.
    pub fn form(&self) -> &str {
        &self.text
    }

    /// Operations, arguments and constants in it.
    pub fn size(&self) -> usize {
        let mut size = 0;
        let mut in_word = false;
        for c in self.text.chars() {
            let word = c.is_alphanumeric() || matches!(c, '_' | '#' | '$' | '.');
            if (word && !in_word) || "+-*/^".contains(c) {
                size += 1;
            }
            in_word = word;
        }
        size
    }
}

/// Formulas of the same arguments, compiled together: each is the derivative of a state that nothing
/// depends on, and the constants are its unknowns.
pub struct Compiled {
    model: Model,
    outputs: usize,
    constants: usize,
}

impl Compiled {
    /// Of texts with `#1` for arguments and `$1` for constants.
    ///
    /// # Errors
    /// Mistakes in a text.
    pub fn new(texts: &[&str], arguments: usize, constants: usize) -> Result<Self, Error> {
        let mut text = String::from("[inputs]\n");
        for j in 1..=arguments {
            text += &format!("a{j} = \"\"\n");
        }
        for (k, formula) in texts.iter().enumerate() {
            let formula = named(formula);
            text += &format!("[states.y{k}]\nderivative = \"{formula}\"\n");
        }
        text += "[measurements]\ny0 = \"y0\"\n";
        if constants > 0 {
            text += "[unknowns]\n";
            for i in 1..=constants {
                text += &format!("c{i} = {{ guess = 1 }}\n");
            }
        }
        let model = Model::from_text("formula", &text)?.plain();
        Ok(Self {
            model,
            outputs: texts.len(),
            constants,
        })
    }

    /// Their values at points, formula by formula.
    pub fn values(&self, points: &[Vec<f64>], constants: &[f64]) -> Vec<Vec<f64>> {
        let system = &self.model.system;
        let mut ws = system.workspace();
        let state = vec![0.0; self.outputs];
        let mut values = vec![vec![0.0; points.len()]; self.outputs];
        let mut row = vec![0.0; self.outputs];
        for (m, point) in points.iter().enumerate() {
            system.derivative(&mut ws, at(point, &state, constants), &mut row);
            for (column, value) in values.iter_mut().zip(&row) {
                column[m] = *value;
            }
        }
        values
    }

    /// The first one's values at points, and their derivatives by each constant.
    pub fn slopes(&self, points: &[Vec<f64>], constants: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let system = &self.model.system;
        let mut ws = system.workspace();
        let state = vec![0.0; self.outputs];
        let rows = system.unknown_rows().len();
        let (mut f, mut f_x) = (vec![0.0; self.outputs], vec![0.0; self.outputs.pow(2)]);
        let mut f_theta = vec![0.0; rows * self.constants];
        let mut values = vec![0.0; points.len()];
        let mut slopes = vec![vec![0.0; points.len()]; self.constants];
        for (m, point) in points.iter().enumerate() {
            let at = at(point, &state, constants);
            system.linearise_all(&mut ws, at, &mut f, &mut f_x, &mut f_theta);
            values[m] = f[0];
            for (column, slope) in slopes.iter_mut().zip(&f_theta) {
                column[m] = *slope;
            }
        }
        (values, slopes)
    }
}

fn at<'a>(point: &'a [f64], state: &'a [f64], constants: &'a [f64]) -> Point<'a> {
    Point {
        time: 0.0,
        state,
        input: point,
        theta: constants,
    }
}
