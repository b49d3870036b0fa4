//! Which formula is best, and whether the data can tell.

use std::cmp::Ordering;

use crate::coincide::{Said, coincide};
use crate::refit::Reached;
use crate::{Distilled, Ranked};

/// Formulas whose ln p is this close to the best are not told apart by it.
pub(crate) const TELLING_EVIDENCE: f64 = 10.0;
/// A formula of more constants whose ln p is not higher by as much has some that the records do not ask for. ln p counts
/// them already, but not that one term was chosen out of some twenty kinds: ln 20.
const ASKING_EVIDENCE: f64 = 3.0;
/// Validation errors that differ by less than this factor are the same, and those whose difference is within so many of
/// its deviations, as parts of the records show it.
const SAME_ERROR_RATIO: f64 = 1.05;
const SAME_ERROR_DEVIATIONS: f64 = 2.0;
/// Free runs whose errors differ by this factor are not the same. With noise they never do, where ln p does not: the
/// noise is most of each. Records without noise are followed to many more digits than ln p counts, which
/// assumes some.
const OTHER_ERROR_RATIO: f64 = 3.0;
/// A formula whose free run errs by more than this many times that of the network does not explain the data
/// as it does.
const AS_GOOD_RATIO: f64 = 2.0;

/// What to do where no formula is right.
const NOT_FOUND_WORDS: &str = "what the formula is stays open: take records from other starts or with other inputs, or propose formulas";

/// A formula that has been fitted again, and what it says where the records went.
#[derive(Debug, Clone)]
pub struct Fitted {
    pub ranked: Ranked,
    pub said: Vec<Said>,
}

impl Fitted {
    /// Whether it is a longer way to say what another says where the records went.
    fn repeats(&self, other: &Self) -> bool {
        let size = |f: &Self| (f.ranked.constants.len(), f.ranked.size);
        size(other) < size(self) && coincide(&self.said, &other.said)
    }

    /// Whether the records give no reason to take it instead of another.
    fn adds_nothing_to(&self, simpler: &Ranked) -> bool {
        let ranked = &self.ranked;
        let gain = ranked.evidence.zip(simpler.evidence).map(|(a, b)| a - b);
        let error = |f: &Ranked| f.free_run.unwrap_or(f64::INFINITY);
        gain.is_some_and(|gain| gain < ASKING_EVIDENCE)
            && error(simpler) < OTHER_ERROR_RATIO * error(ranked)
            && (same(simpler, ranked) || simpler.validation < ranked.validation)
    }
}

/// Those that have no constants that the records do not ask for, and are no longer ways to say the same where the records
/// went; each knows the longer ways.
pub fn without_needless(mut formulas: Vec<Fitted>) -> Vec<Ranked> {
    formulas.sort_by_key(|f| (f.ranked.constants.len(), f.ranked.size));
    let mut kept: Vec<Fitted> = vec![];
    for formula in formulas {
        let count = formula.ranked.constants.len();
        let adds_nothing = |other: &Fitted| formula.adds_nothing_to(&other.ranked);
        let has_fewer = |other: &Fitted| other.ranked.constants.len() < count;
        let is_needless = kept
            .iter()
            .any(|other| has_fewer(other) && adds_nothing(other));
        let mut same = kept.iter_mut().filter(|other| formula.repeats(other));
        let same = same.find(|other| adds_nothing(other));
        if formula.ranked.proposed {
            kept.push(formula);
        } else if let Some(other) = same {
            let texts = formula
                .ranked
                .expressions
                .iter()
                .map(|e| e.with_values.clone());
            let text = texts.collect::<Vec<_>>().join("; ");
            other.ranked.repeated.push(text);
        } else if !is_needless {
            kept.push(formula);
        }
    }
    kept.into_iter().map(|f| f.ranked).collect()
}

/// Ranks the formulas and says what the data tell of them.
pub fn judge(distilled: &mut Distilled, network: &Reached) {
    distilled.network_evidence = network.evidence;
    distilled.network_free_run = network.free_run;
    distilled.network_validation = network.validation;
    let formulas = &mut distilled.formulas;
    formulas.sort_by(by_error_and_evidence);
    // of those that validation does not tell apart, first the likeliest
    let least = formulas.first().cloned();
    let validated = |f: &Ranked| least.as_ref().is_some_and(|least| same(f, least));
    formulas.sort_by_key(|f| !validated(f));
    let alike = formulas.iter().take_while(|f| validated(f)).count();
    formulas[..alike].sort_by(by_evidence);
    // of those that ln p does not tell apart, first the one that follows the records most closely
    let likeliest = formulas.first().and_then(|f| f.evidence);
    let close = |f: &Ranked| match (f.evidence, likeliest) {
        (Some(evidence), Some(most)) => most - evidence < TELLING_EVIDENCE,
        _ => false,
    };
    let contenders = formulas[..alike].iter().take_while(|f| close(f));
    let contenders = contenders.count();
    let errors = formulas[..contenders].iter().filter_map(|f| f.free_run);
    let least = errors.fold(f64::INFINITY, f64::min);
    let far = |f: &Ranked| f.free_run.unwrap_or(f64::INFINITY) > OTHER_ERROR_RATIO * least;
    formulas[..contenders].sort_by_key(far);
    for (k, formula) in formulas.iter_mut().enumerate() {
        formula.rank = k + 1;
    }
    let Some(best) = formulas.first() else {
        distilled.verdict = vec![
            "none of the formulas that were looked at can stand in the place of the network: fitted again, each leaves the finite numbers".into(),
            NOT_FOUND_WORDS.into(),
        ];
        return;
    };
    let follows = explains(best, network);
    let told = |f: &&Ranked| validated(f) && is_as_likely(f, best) && !far(f);
    let equal = formulas.iter().take_while(told).count().max(1);
    distilled.equally_good = if follows { equal } else { 0 };
    distilled.verdict = words(formulas, equal, follows, network);
    distilled.verdict.extend(repeated(&formulas[..equal]));
}

/// Which formulas others are longer ways to write.
fn repeated(formulas: &[Ranked]) -> Vec<String> {
    let repeated = formulas.iter().filter(|f| !f.repeated.is_empty());
    let sentences = repeated.map(|f| {
        let others = f.repeated.join(", ");
        format!("where the records went, formula {} says the same as {others}: the shortest stands for all", f.rank)
    });
    sentences.collect()
}

/// Whether the validation errors of two formulas are the same: by as much as they differ from part to part of the records, they
/// could as well differ the other way.
fn same(a: &Ranked, b: &Ranked) -> bool {
    let (Some(error_a), Some(error_b)) = (a.validation, b.validation) else {
        return a.validation.is_none() && b.validation.is_none();
    };
    if error_a < SAME_ERROR_RATIO * error_b && error_b < SAME_ERROR_RATIO * error_a {
        return true;
    }
    let pairs = a.validation_parts.iter().zip(&b.validation_parts);
    let apart: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
    let count = apart.len() as f64;
    let mean = apart.iter().sum::<f64>() / count;
    let variance = apart.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (count - 1.0);
    mean.abs() < SAME_ERROR_DEVIATIONS * (variance / count).sqrt()
}

/// Better first: by validation where there is any, else by evidence.
fn by_error_and_evidence(a: &Ranked, b: &Ranked) -> Ordering {
    let least = |f: &Ranked| f.validation.unwrap_or(f64::INFINITY);
    least(a).total_cmp(&least(b)).then(by_evidence(a, b))
}

fn by_evidence(a: &Ranked, b: &Ranked) -> Ordering {
    let least = |f: &Ranked| f.free_run.unwrap_or(f64::INFINITY);
    let most = |f: &Ranked| f.evidence.unwrap_or(f64::NEG_INFINITY);
    most(b)
        .total_cmp(&most(a))
        .then(least(a).total_cmp(&least(b)))
        .then(a.size.cmp(&b.size))
}

fn is_as_likely(formula: &Ranked, best: &Ranked) -> bool {
    match (formula.evidence, best.evidence) {
        (Some(evidence), Some(best)) => best - evidence < TELLING_EVIDENCE,
        (evidence, best) => evidence == best,
    }
}

/// Whether a formula follows the data as the network does.
fn explains(formula: &Ranked, network: &Reached) -> bool {
    let as_good = |error: Option<f64>, other: Option<f64>| match (error, other) {
        (Some(error), Some(other)) => error < AS_GOOD_RATIO * other,
        (error, other) => error.is_some() || other.is_none(),
    };
    let more_likely = match (formula.evidence, network.evidence) {
        (Some(evidence), Some(other)) => evidence > other - TELLING_EVIDENCE,
        _ => false,
    };
    let runs = as_good(formula.free_run, network.free_run);
    as_good(formula.validation, network.validation) && (runs || more_likely)
}

fn words(formulas: &[Ranked], equal: usize, follows: bool, network: &Reached) -> Vec<String> {
    let error = |e: Option<f64>| e.map_or("no finite one".into(), |e| format!("{e:.1e}"));
    let (formula_error, network_error) = (error(formulas[0].free_run), error(network.free_run));
    let runs = format!(
        "its free run errs by {formula_error} of the range, that of the network by {network_error}"
    );
    if !follows {
        return vec![
            format!(
                "none of these formulas follows the data as the network does: of the best, {runs}"
            ),
            NOT_FOUND_WORDS.into(),
        ];
    }
    let tried = formulas.len();
    let next = formulas.get(equal);
    let margin = next.and_then(|n| Some(formulas[0].evidence? - n.evidence?));
    let margin = margin.filter(|m| *m >= TELLING_EVIDENCE);
    let margin = match (margin, next) {
        (Some(m), _) => format!(" (ln p higher by {m:.0} than that of the next)"),
        (None, Some(_)) => " (it follows the records more closely than the next)".into(),
        (None, None) => String::new(),
    };
    if tried == 1 {
        return vec![
            format!(
                "formula 1 explains the data; all else that was looked at is worse, or no better with more constants; {runs}"
            ),
            "what was not looked at may do as well".into(),
        ];
    }
    if equal == 1 {
        return vec![
            format!(
                "formula 1 explains the data best of the {tried} that were fitted again{margin}; {runs}"
            ),
            "what was not looked at may do as well".into(),
        ];
    }
    let many = if equal == tried { "all" } else { "the first" };
    vec![
        format!("the data cannot decide: {many} {equal} formulas are equally good{margin}; of the first, {runs}"),
        "they differ where no record has been: another start, or another input, can tell them apart".into(),
    ]
}
