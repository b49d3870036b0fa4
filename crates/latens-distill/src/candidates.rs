//! The formulas that may stand for an output of a network: found from its values, from simple to exact.

use rayon::prelude::*;

use crate::evolve::evolve;
use crate::formula::{Formula, Term};
use crate::library::{FEW_ARGUMENTS, Library};
use crate::refine::{Refined, refine};
use crate::samples::Target;
use crate::select::{Chosen, Dictionary, MOST_TERMS};

/// Sums of each number of terms whose constants are refined, of each search.
const REFINED_SUMS: usize = 8;
/// Sums of functions with inner constants that lose terms again.
const PRUNED_SUMS: usize = 6;
/// Mean square of white misfits up to which a formula is within what the posterior allows.
const WITHIN_MISFIT: f64 = 2.0;
/// Arguments up to which all kinds of terms are looked at.
const FEW_ARGUMENTS_OF_TERMS: usize = 2;
/// Constants up to which a formula from the library is simple enough for nothing else to be looked for.
const SIMPLE_CONSTANTS: usize = 5;
/// The seed of what is tried at random: the same fit has the same formulas.
const SEED: u64 = 1;
/// Rounds of refining inner constants and choosing terms again.
const ROUNDS: usize = 2;

/// Formulas for a target, best first; one of each form. `proposed` are kept, whatever they come to.
///
/// Structure comes first: where a sum of powers and products is all that the posterior asks for, nothing
/// richer is looked at, but for one or two arguments, where little can be taken for something else.
pub fn candidates(target: &Target, library: &Library, proposed: &[Formula]) -> Vec<Refined> {
    let mut pool: Vec<Refined> = vec![];
    let all = [library.powers.clone(), library.bent.clone()].concat();
    let few = target
        .points
        .first()
        .is_some_and(|point| point.len() <= FEW_ARGUMENTS_OF_TERMS);
    let powers = Dictionary::new(target, &library.powers, &[]);
    let found = powers.search(None, 0..powers.terms.len());
    add(target, &mut pool, sums(&powers, found, None));
    if few || !within(target, &pool) {
        let plain = Dictionary::new(target, &all, &library.below);
        let terms = plain.terms.len() - plain.divided();
        add(
            target,
            &mut pool,
            sums(&plain, plain.search(None, 0..terms), None),
        );
        let quotients: Vec<Formula> = (terms..plain.terms.len())
            .into_par_iter()
            .flat_map_iter(|below| {
                let found = plain.search(Some(below), 0..terms);
                sums(&plain, found, Some(below))
                    .into_iter()
                    .take(REFINED_SUMS / 4)
            })
            .collect();
        add(target, &mut pool, quotients);
    }
    if !within(target, &pool) {
        curved(target, library, all, &mut pool);
    }
    let arguments = target.points.first().map_or(0, Vec::len);
    // a sum of many terms follows anything
    let simple = |r: &Refined| r.formula.constants.len() <= SIMPLE_CONSTANTS;
    let simple: Vec<Refined> = pool.iter().filter(|r| simple(r)).cloned().collect();
    if arguments <= FEW_ARGUMENTS && !within(target, &simple) {
        pool.extend(evolve(target, SEED));
    }
    for given in proposed {
        let mut found = pool.iter_mut().map(|r| &mut r.formula);
        match found.find(|formula| formula.text == given.text) {
            Some(formula) => formula.names.clone_from(&given.names),
            None => pool.extend(refine(target, given)),
        }
    }
    sort(&mut pool);
    needless(&mut pool, proposed);
    pool
}

/// Whether some formula is within what the posterior allows.
fn within(target: &Target, pool: &[Refined]) -> bool {
    let most = WITHIN_MISFIT * target.count() as f64;
    pool.iter().any(|refined| refined.misfit < most)
}

/// Adds sums with functions that have inner constants. These are chosen from a grid, refined, and chosen from again.
fn curved(target: &Target, library: &Library, mut terms: Vec<Term>, pool: &mut Vec<Refined>) {
    terms.extend(library.curved.iter().cloned());
    for _ in 0..ROUNDS {
        let all = Dictionary::new(target, &terms, &[]);
        let found = all.search(None, 0..all.terms.len());
        let mut next = vec![];
        add(target, &mut next, sums(&all, found, None));
        sort(&mut next);
        let best: Vec<&Refined> = next.iter().take(PRUNED_SUMS).collect();
        let pruned: Vec<Refined> = best.par_iter().map(|r| pruned(target, r)).collect();
        next.extend(pruned);
        sort(&mut next);
        let good = next.iter().take(REFINED_SUMS);
        let good = good.flat_map(|r| r.formula.terms.iter().filter(|t| !t.inner.is_empty()));
        for term in good {
            // in all products with other arguments
            for other in &library.curved {
                let again = Term {
                    text: other.text.clone(),
                    inner: term.inner.clone(),
                };
                if shape(&other.text) == shape(&term.text) && !terms.contains(&again) {
                    terms.push(again);
                }
            }
        }
        pool.append(&mut next);
    }
}

/// The terms of a formula, and what it is divided by.
pub fn parts(formula: &Formula) -> Vec<String> {
    let terms = formula.terms.iter().map(|t| t.text.clone());
    terms
        .chain(formula.below().map(|below| format!("/{below}")))
        .collect()
}

/// Takes out formulas that have all that a better one has, and more.
fn needless(pool: &mut Vec<Refined>, proposed: &[Formula]) {
    let mut kept: Vec<Vec<String>> = vec![];
    pool.retain(|refined| {
        let own_parts = parts(&refined.formula);
        let has_all =
            |other: &Vec<String>| !other.is_empty() && other.iter().all(|p| own_parts.contains(p));
        let needless = kept.iter().any(has_all);
        if !needless {
            kept.push(own_parts);
        }
        !needless || proposed.iter().any(|p| p.text == refined.formula.text)
    });
}

/// A term without the factors that are other arguments.
fn shape(text: &str) -> &str {
    let marks = ["exp(", "sigmoid(", "linoid(", "tanh("];
    let at = marks.iter().filter_map(|m| text.find(m)).min();
    at.map_or(text, |at| &text[at..])
}

/// The formulas of sums, in their order; `below` is a term of the denominator.
pub(crate) fn sums(
    dictionary: &Dictionary,
    found: Vec<Chosen>,
    below: Option<usize>,
) -> Vec<Formula> {
    let formula = |chosen: Chosen| {
        let (mut terms, mut factors, mut divided) = (vec![], vec![], None);
        for (t, factor) in chosen.terms.iter().zip(&chosen.factors) {
            let term = &dictionary.terms[*t];
            if Some(*t) == below {
                divided = Some((term.text.as_str(), *factor));
            } else {
                terms.push(term.clone());
                factors.push(*factor);
            }
        }
        (!terms.is_empty()).then(|| Formula::sum(terms, &factors, divided))
    };
    found.into_iter().filter_map(formula).collect()
}

/// Refines the best formulas of each number of terms and adds them.
fn add(target: &Target, pool: &mut Vec<Refined>, formulas: Vec<Formula>) {
    let mut of_size = [0; MOST_TERMS + 1];
    let best: Vec<Formula> = formulas
        .into_iter()
        .filter(|formula| {
            let count = &mut of_size[formula.terms.len().min(MOST_TERMS)];
            *count += 1;
            *count <= REFINED_SUMS
        })
        .collect();
    let refined: Vec<Option<Refined>> = best.par_iter().map(|f| refine(target, f)).collect();
    pool.extend(refined.into_iter().flatten());
}

/// A sum that loses terms as long as it is the better for it, its constants refined each time: several functions
/// of a grid often stand for one between them.
fn pruned(target: &Target, refined: &Refined) -> Refined {
    let mut best = refined.clone();
    loop {
        let terms = &best.formula.terms;
        if terms.len() < 2 {
            return best;
        }
        let without = |lost: usize| {
            let (shorter, _) = best.formula.without(&[lost], &best.formula.constants)?;
            refine(target, &shorter)
        };
        let shorter = (0..terms.len()).filter_map(without);
        match shorter.min_by(|a, b| a.score.total_cmp(&b.score)) {
            Some(next) if next.score < best.score => best = next,
            _ => return best,
        }
    }
}

/// Best first, one of each form.
fn sort(pool: &mut Vec<Refined>) {
    pool.sort_by(|a, b| a.score.total_cmp(&b.score));
    let mut forms: Vec<String> = vec![];
    pool.retain(|refined| {
        let form = refined.formula.form().to_string();
        let is_new = !forms.contains(&form);
        if is_new {
            forms.push(form);
        }
        is_new
    });
}
