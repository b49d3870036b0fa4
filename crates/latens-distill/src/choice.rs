//! Which formulas are fitted again, together for all outputs, and what comes of each.

use std::sync::atomic::{AtomicUsize, Ordering};

use latens::model::Model;
use latens::{Error, Fit};
use rayon::prelude::*;

use crate::formula::Formula;
use crate::grow::{self, Place};
use crate::refit::Reached;
use crate::rewrite::Replacement;
use crate::{Expression, Front, Ranked, Step, Watch, candidates, refit, rewrite};

impl Ranked {
    /// Value and deviation of each constant of its formulas, in their order.
    fn formula_constants(&self, names: &[String]) -> Option<Vec<(f64, f64)>> {
        let value_and_deviation = |name: &String| {
            let known = self.constants.iter().find(|c| c.name == *name)?;
            Some((known.value, known.std))
        };
        names.iter().map(value_and_deviation).collect()
    }
}

/// Formulas whose score is this much worse than the best one's are not fitted again.
const RULED_OUT_SCORE: f64 = 100.0;

/// Rounds in which formulas grow at the most, and by how much ln p must have risen for a further one.
const ROUNDS: usize = 6;
const EVIDENCE_RISE: f64 = 1.0;
/// Formulas that are fitted again in each; others of those that cannot be.
const GROWN_FORMULAS: usize = 6;

/// Which formula of each front goes into each model.
pub(crate) fn combinations(fronts: &[Front], count: usize) -> Vec<Choice> {
    const FORMULAS_OF_EACH: usize = 12;
    let mut all: Vec<(f64, Vec<usize>)> = vec![(0.0, vec![])];
    for front in fronts {
        let best = front.best.iter().enumerate();
        let of_each = if fronts.len() == 1 {
            usize::MAX
        } else {
            FORMULAS_OF_EACH
        };
        let best: Vec<(f64, usize)> = best
            .filter(|(k, candidate)| *k < of_each || candidate.proposed)
            .map(|(k, candidate)| (candidate.refined.score, k))
            .collect();
        let mut next = vec![];
        for (score, places) in &all {
            for (added, place) in &best {
                next.push((score + added, [places.as_slice(), &[*place]].concat()));
            }
        }
        next.sort_by(|a, b| a.0.total_cmp(&b.0));
        next.truncate(500);
        all = next;
    }
    let has_proposed = |places: &[usize]| {
        let mut choices = places.iter().zip(fronts);
        choices.any(|(place, front)| front.best[*place].proposed)
    };
    // those of the user, and the best; those that the posterior rules out would take longest to fit
    let mut chosen: Vec<Vec<usize>> = all
        .iter()
        .map(|(_, p)| p)
        .filter(|p| has_proposed(p))
        .cloned()
        .collect();
    chosen.truncate(count);
    let best = all.first().map_or(0.0, |(score, _)| *score);
    let close = all
        .iter()
        .filter(|(score, _)| *score < best + RULED_OUT_SCORE);
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

/// The formulas of fewest constants, to begin with where no other can be fitted: of each front the best of those.
pub(crate) fn simplest(fronts: &[Front]) -> Vec<Choice> {
    const MOST_CHOICES: usize = 4;
    let by_size = |front: &Front| {
        let mut places: Vec<usize> = (0..front.best.len()).collect();
        places.sort_by_key(|k| front.best[*k].refined.formula.constants.len());
        places
    };
    let all: Vec<Vec<usize>> = fronts.iter().map(by_size).collect();
    let count = all
        .iter()
        .map(Vec::len)
        .min()
        .unwrap_or(0)
        .min(MOST_CHOICES);
    let nth = |k: usize| all.iter().map(|places| places[k]).collect::<Vec<_>>();
    (0..count).map(|k| Choice::of(fronts, &nth(k))).collect()
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
        let choices = fronts.iter().zip(places);
        let best = choices.map(|(front, place)| &front.best[*place]);
        Self {
            proposed: best.clone().any(|candidate| candidate.proposed),
            formulas: best
                .map(|c| (c.refined.formula.clone(), c.refined.scales.clone()))
                .collect(),
        }
    }

    /// The formula of an output.
    pub fn formula(&self, place: usize) -> &Formula {
        &self.formulas[place].0
    }

    /// The scales of its constants.
    pub fn scales(&self, place: usize) -> &[f64] {
        &self.formulas[place].1
    }

    /// The values of all constants.
    pub fn constants(&self) -> Vec<f64> {
        let formulas = self.formulas.iter();
        formulas
            .flat_map(|(formula, _)| formula.constants.clone())
            .collect()
    }

    /// With other values of all constants.
    pub fn at(&self, constants: &[f64]) -> Self {
        let mut choice = self.clone();
        let mut rest = constants;
        for (formula, _) in &mut choice.formulas {
            let (constants_here, after) = rest.split_at(formula.constants.len());
            *formula = formula.at(constants_here);
            rest = after;
        }
        choice
    }

    /// With another formula for an output, that nobody proposed.
    pub fn replaced(&self, place: usize, formula: Formula, scales: Vec<f64>) -> Self {
        let mut choice = self.clone();
        choice.proposed = false;
        choice.formulas[place] = (formula, scales);
        choice
    }

    /// What stands for each output, without units.
    pub fn replacements<'a>(&'a self, model: &Model, fronts: &'a [Front]) -> Vec<Replacement<'a>> {
        let outputs = fronts.iter().zip(&self.formulas);
        outputs
            .map(|(front, (formula, scales))| Replacement {
                network: &front.network,
                output: &front.output,
                names: names(&front.base(fronts.len()), formula, model),
                formula,
                scales,
                units: vec![None; formula.constants.len()],
            })
            .collect()
    }

    /// What it is made of, in an order.
    pub fn parts(&self) -> Vec<String> {
        let formulas = self.formulas.iter().enumerate();
        let parts_of_all = formulas.flat_map(|(k, (formula, _))| {
            let parts_here = candidates::parts(formula).into_iter();
            parts_here.map(move |part| format!("{k} {part}"))
        });
        let mut parts: Vec<String> = parts_of_all.collect();
        parts.sort();
        parts
    }
}

/// A choice that has been fitted again.
pub(crate) struct Tried {
    pub ranked: Ranked,
    pub choice: Choice,
    pub fit: Fit,
}

pub(crate) type Fitted = Result<Tried, Error>;

impl Tried {
    /// ln p, the lowest where there is none.
    pub fn evidence(&self) -> f64 {
        self.ranked.evidence.unwrap_or(f64::NEG_INFINITY)
    }

    /// The choice with the constants that it was fitted to.
    pub fn choice_as_fitted(&self) -> Choice {
        let expressions = self.ranked.expressions.iter();
        let names: Vec<String> = expressions.flat_map(|e| e.constants.clone()).collect();
        let known = self.ranked.formula_constants(&names);
        known.map_or_else(
            || self.choice.clone(),
            |known| {
                let values: Vec<f64> = known.iter().map(|c| c.0).collect();
                self.choice.at(&values)
            },
        )
    }
}

/// Formulas that are fitted again, one batch after another.
pub(crate) struct Search<'a> {
    fit: &'a Fit,
    model: &'a Model,
    fronts: &'a [Front],
    watch: &'a dyn Watch,
    pub tried: Vec<Tried>,
    /// The parts of all choices that were tried, whatever came of them.
    looked_at: Vec<Vec<String>>,
    /// Why the last of those that could not be fitted could not.
    pub failed: Option<Error>,
    pub stopped: bool,
}

impl<'a> Search<'a> {
    /// Nothing is tried yet.
    pub fn new(fit: &'a Fit, model: &'a Model, fronts: &'a [Front], watch: &'a dyn Watch) -> Self {
        Self {
            fit,
            model,
            fronts,
            watch,
            tried: vec![],
            looked_at: vec![],
            failed: None,
            stopped: false,
        }
    }

    /// Fits choices again; how many could be.
    pub fn try_all(&mut self, chosen: &[Choice]) -> usize {
        let before = self.tried.len();
        self.looked_at.extend(chosen.iter().map(Choice::parts));
        let done = AtomicUsize::new(0);
        let stops = || self.watch.stops();
        let fits = chosen.par_iter().map(|choice| {
            let tried = fitted(self.fit, self.model, self.fronts, choice, &stops);
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            let total = chosen.len();
            self.watch.step(Step::Fitted { done, total });
            tried
        });
        for tried in fits.collect::<Vec<_>>() {
            match tried {
                Ok(tried) => self.tried.push(tried),
                Err(error) => {
                    self.stopped |= matches!(error, Error::Stopped);
                    self.failed = Some(error);
                }
            }
        }
        self.tried.len() - before
    }

    /// Fits again what is left of the likeliest without terms that they do not need.
    pub fn try_lighter(&mut self) {
        let lighter = lighter(&self.tried, &self.looked_at);
        self.try_all(&lighter);
    }

    /// Fits again what the records ask for, from the likeliest formula, as long as that gains.
    pub fn grow(&mut self, places: &[Place]) {
        for _ in 0..ROUNDS {
            let best = |a: &&Tried, b: &&Tried| a.evidence().total_cmp(&b.evidence());
            let Some(base) = self.tried.iter().max_by(best) else {
                return;
            };
            if self.stopped {
                return;
            }
            self.watch.step(Step::Growing);
            let next = grow::next(self.model, self.fronts, places, base, &self.looked_at);
            let before = base.evidence();
            let (first, others) = next.split_at(GROWN_FORMULAS.min(next.len()));
            let fitted = self.try_all(first);
            self.try_all(&others[..(first.len() - fitted).min(others.len())]);
            self.try_lighter();
            if !self
                .tried
                .iter()
                .any(|t| t.evidence() > before + EVIDENCE_RISE)
            {
                return;
            }
        }
    }
}

/// Choices of which most is left without the terms whose factors the records do not tell from zero: of the
/// likeliest that have such terms.
fn lighter(tried: &[Tried], looked_at: &[Vec<String>]) -> Vec<Choice> {
    const MOST_CHOICES: usize = 4;
    const NOTICED_DEVIATIONS: f64 = 3.0;
    let mut best: Vec<&Tried> = tried.iter().collect();
    best.sort_by(|a, b| b.evidence().total_cmp(&a.evidence()));
    let mut known = looked_at.to_vec();
    let mut found = vec![];
    for Tried { ranked, choice, .. } in best {
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
            let uncertain: Vec<(f64, f64)> =
                constants.by_ref().take(formula.constants.len()).collect();
            let values: Vec<f64> = uncertain.iter().map(|c| c.0).collect();
            let mut at = 0;
            let mut lost = vec![];
            for (k, term) in formula.terms.iter().enumerate() {
                if uncertain[at].0.abs() < NOTICED_DEVIATIONS * uncertain[at].1 {
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
        let parts = lighter.parts();
        if !known.contains(&parts) && found.len() < MOST_CHOICES {
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
) -> Fitted {
    if stops() {
        return Err(Error::Stopped);
    }
    let mut replacements = choice.replacements(model, fronts);
    for (replacement, front) in replacements.iter_mut().zip(fronts) {
        if let Some(units) = front.units_of(replacement.formula) {
            replacement.units = units;
        }
    }
    let text = rewrite::rewrite(model, &replacements)?;
    let fit = refit::refit(fit, Model::from_text("formula", &text)?, stops)?;
    let reached = Reached::of(&fit);
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
    let ranked = Ranked {
        rank: 0,
        expressions: expressions.collect(),
        size: replacements.iter().map(|r| r.formula.size()).sum(),
        constants: reached.constants.clone(),
        evidence: reached.evidence,
        free_run: reached.free_run,
        validation: reached.validation,
        validation_parts: reached.validation_parts,
        proposed: choice.proposed,
        repeated: vec![],
        model: text,
    };
    Ok(Tried {
        ranked,
        choice: choice.clone(),
        fit,
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
                Some(given) => given.clone(),
                None => format!("{base}_{}", k + 1),
            };
            while taken(&name) {
                name.push('_');
            }
            name
        })
        .collect()
}
