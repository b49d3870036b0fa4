//! Which formulas are fitted again, together for all outputs, and what comes of each.

use std::sync::atomic::{AtomicUsize, Ordering};

use latens::model::Model;
use latens::{Error, Fit};
use rayon::prelude::*;

use crate::formula::Formula;
use crate::rewrite::Replacement;
use crate::{Expression, Front, Ranked, Step, Watch, candidates, refit, rewrite};

impl Ranked {
    /// Value and deviation of each constant of its formulas, in their order.
    fn formula_constants(&self, names: &[String]) -> Option<Vec<(f64, f64)>> {
        let one = |name: &String| {
            let known = self.constants.iter().find(|c| c.name == *name)?;
            Some((known.value, known.std))
        };
        names.iter().map(one).collect()
    }
}

/// Formulas whose score is this much worse than the best one's are not fitted again.
const RULED_OUT: f64 = 100.0;

/// Which formula of each front goes into each model.
pub(crate) fn combinations(fronts: &[Front], count: usize) -> Vec<Choice> {
    const OF_EACH: usize = 12;
    let mut all: Vec<(f64, Vec<usize>)> = vec![(0.0, vec![])];
    for front in fronts {
        let best = front.best.iter().enumerate();
        let of_each = if fronts.len() == 1 {
            usize::MAX
        } else {
            OF_EACH
        };
        let best: Vec<(f64, usize)> = best
            .filter(|(k, (_, own))| *k < of_each || *own)
            .map(|(k, (refined, _))| (refined.score, k))
            .collect();
        let mut next = vec![];
        for (score, places) in &all {
            for (own, place) in &best {
                next.push((score + own, [places.as_slice(), &[*place]].concat()));
            }
        }
        next.sort_by(|a, b| a.0.total_cmp(&b.0));
        next.truncate(500);
        all = next;
    }
    let own = |places: &[usize]| {
        let mut each = places.iter().zip(fronts);
        each.any(|(place, front)| front.best[*place].1)
    };
    // those of the user, and the best; those that the posterior rules out would take longest to fit
    let mut chosen: Vec<Vec<usize>> = all
        .iter()
        .map(|(_, p)| p)
        .filter(|p| own(p))
        .cloned()
        .collect();
    chosen.truncate(count);
    let best = all.first().map_or(0.0, |(score, _)| *score);
    let close = all.iter().filter(|(score, _)| *score < best + RULED_OUT);
    for (_, places) in close {
        if chosen.len() < count && !chosen.contains(places) {
            chosen.push(places.clone());
        }
    }
    chosen
        .iter()
        .map(|places| Choice::of(fronts, places))
        .collect()
}

/// A formula for each output.
#[derive(Clone)]
pub(crate) struct Choice {
    /// With the scales of its constants.
    formulas: Vec<(Formula, Vec<f64>)>,
    proposed: bool,
}

impl Choice {
    fn of(fronts: &[Front], places: &[usize]) -> Self {
        let each = fronts.iter().zip(places);
        let best = each.map(|(front, place)| &front.best[*place]);
        Self {
            proposed: best.clone().any(|(_, own)| *own),
            formulas: best
                .map(|(refined, _)| (refined.formula.clone(), refined.scales.clone()))
                .collect(),
        }
    }

    /// What it is made of.
    pub fn parts(&self) -> Vec<String> {
        let each = self.formulas.iter().enumerate();
        let each = each.flat_map(|(k, (formula, _))| {
            let own = candidates::parts(formula).into_iter();
            own.map(move |part| format!("{k} {part}"))
        });
        each.collect()
    }
}

pub(crate) type Fitted = Result<(Ranked, Choice), Error>;

/// Choices, each fitted again.
pub(crate) fn fitted_all(
    fit: &Fit,
    model: &Model,
    fronts: &[Front],
    chosen: &[Choice],
    watch: &dyn Watch,
) -> Vec<Fitted> {
    let done = AtomicUsize::new(0);
    let stops = || watch.stops();
    let each = chosen.par_iter().map(|choice| {
        let ranked = fitted(fit, model, fronts, choice, &stops);
        let done = 1 + done.fetch_add(1, Ordering::Relaxed);
        let of = chosen.len();
        watch.step(Step::Fitted { done, of });
        ranked.map(|ranked| (ranked, choice.clone()))
    });
    each.collect()
}

/// Choices of which most is left without the terms whose factors the records do not tell from zero: of the
/// likeliest that have such terms.
pub(crate) fn lighter(fitted: &[Fitted]) -> Vec<Choice> {
    const MOST: usize = 4;
    const DEVIATIONS: f64 = 3.0;
    let mut best: Vec<&(Ranked, Choice)> = fitted.iter().filter_map(|f| f.as_ref().ok()).collect();
    best.sort_by(|a, b| {
        let evidence = |f: &(Ranked, Choice)| f.0.evidence.unwrap_or(f64::NEG_INFINITY);
        evidence(b).total_cmp(&evidence(a))
    });
    let mut known: Vec<Vec<String>> = best.iter().map(|(_, choice)| choice.parts()).collect();
    let mut found = vec![];
    for (ranked, choice) in best {
        let mut lighter = choice.clone();
        let names: Vec<String> = ranked
            .expressions
            .iter()
            .flat_map(|e| e.constants.clone())
            .collect();
        let Some(constants) = ranked.formula_constants(&names) else {
            continue;
        };
        let mut constants = constants.into_iter();
        for (formula, scales) in &mut lighter.formulas {
            let own: Vec<(f64, f64)> = constants.by_ref().take(formula.constants.len()).collect();
            let values: Vec<f64> = own.iter().map(|c| c.0).collect();
            let mut at = 0;
            let mut lost = vec![];
            for (k, term) in formula.terms.iter().enumerate() {
                if own[at].0.abs() < DEVIATIONS * own[at].1 {
                    lost.push(k);
                }
                at += 1 + term.inner.len();
            }
            if let Some((shorter, places)) =
                formula.without(&lost, &values).filter(|_| !lost.is_empty())
            {
                *scales = places.iter().map(|&k| scales[k]).collect();
                *formula = shorter;
            }
        }
        let mut parts = lighter.parts();
        parts.sort();
        let is_known = known.iter_mut().any(|k| {
            k.sort();
            *k == parts
        });
        if !is_known && found.len() < MOST {
            known.push(parts);
            found.push(lighter);
        }
    }
    found
}

/// One set of formulas, fitted again.
fn fitted(
    fit: &Fit,
    model: &Model,
    fronts: &[Front],
    choice: &Choice,
    stops: &(dyn Fn() -> bool + Sync),
) -> Result<Ranked, Error> {
    if stops() {
        return Err(Error::Stopped);
    }
    let mut replacements = vec![];
    for (front, (formula, scales)) in fronts.iter().zip(&choice.formulas) {
        replacements.push(Replacement {
            network: &front.network,
            output: &front.output,
            names: names(&front.base(fronts.len()), formula, model),
            formula,
            scales,
            units: front.units_of(formula).unwrap_or_default(),
        });
    }
    let text = rewrite::rewrite(model, &replacements)?;
    let reached = refit::refit(fit, Model::from_text("formula", &text)?, stops)?;
    let value = |name: &str| {
        let known = reached.constants.iter().find(|c| c.name == name);
        known.map_or(String::new(), |c| latens::text::number(c.value))
    };
    let expressions = replacements.iter().zip(fronts).map(|(r, front)| {
        let values: Vec<String> = r.names.iter().map(|n| value(n)).collect();
        Expression {
            network: r.network.into(),
            output: r.output.into(),
            constants: r.names.clone(),
            form: r.formula.text.clone(),
            text: r.formula.shown(&front.arguments, &r.names),
            with_values: r.formula.shown(&front.arguments, &values),
        }
    });
    Ok(Ranked {
        rank: 0,
        expressions: expressions.collect(),
        size: replacements.iter().map(|r| r.formula.size()).sum(),
        constants: reached.constants.clone(),
        evidence: reached.evidence,
        free_run: reached.free_run,
        validation: reached.validation,
        proposed: choice.proposed,
        model: text,
    })
}

/// Names of a formula's constants that the model has not: those of the user, or the network's with a number.
fn names(base: &str, formula: &Formula, model: &Model) -> Vec<String> {
    let taken = |name: &str| {
        let mut words = model.text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    (0..formula.constants.len())
        .map(|k| {
            let mut name = match formula.names.get(k) {
                Some(own) => own.clone(),
                None => format!("{base}_{}", k + 1),
            };
            while taken(&name) {
                name.push('_');
            }
            name
        })
        .collect()
}
