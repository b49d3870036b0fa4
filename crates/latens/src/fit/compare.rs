//! Which of several models of the same data is the better one.
//!
//! Models are compared on one footing: the same readings, and a noise of the sensors that none of them
//! brings along. Two models that were fitted have each found a noise of their own, and ln p(y) at one
//! noise is not comparable with ln p(y) at another that somebody chose. So the noise is integrated out: with
//! a prior flat in ln R_y and N readings, Laplace's approximation is
//!
//! ```text
//! ln ∫ p(y | R) d ln R = ln p(y | R̂) + ½ ln (4π/N)
//! ```
//!
//! at the R̂ that makes the readings likeliest under each model. The last term is the same for all models of
//! the same readings and is left out. Noise that the user states for all of them alike is held as stated.
//!
//! Where even the best model leaves misfits that are correlated over samples, readings repeat each other:
//! all of them then count for as many times less as the best model's misfits repeat themselves, or a
//! difference of a thousand readings would look like proof.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::comparable::comparable;
use super::held_out::{HeldOut, held_out};
use super::reopened::Reopened;
use super::{Constant, Fit, Role};
use crate::described;
use crate::described::{Described, Value};
use crate::error::worded;
use crate::model::network::Structure;
use crate::numerics::score::named::{self, Scores};
use crate::solve::Observer;
use crate::solve::batch::again::Weighed;
use crate::text;
use crate::{Door, Error};

/// Differences of ln p(y) from which one model is the better one: with some strength, strongly, beyond
/// doubt. Below the first two models cannot be told apart: odds are less than twenty to one.
const SOME_LOG_EVIDENCE: f64 = 3.0;
const STRONG_LOG_EVIDENCE: f64 = 5.0;
const DECISIVE_LOG_EVIDENCE: f64 = 10.0;
/// Errors on records that were not learned from differ where one is this part of the other.
const CLEARLY_LESS_ERROR_RATIO: f64 = 0.95;

/// How sure it is that one model is better than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// They cannot be told apart.
    None,
    /// There is some reason to prefer one.
    Some,
    /// One is clearly better.
    Strong,
    /// There is no doubt.
    Decisive,
}

impl Described for Strength {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::None, Self::Some, Self::Strong, Self::Decisive] })
    }
}

impl Strength {
    fn of(difference: f64) -> Self {
        match difference {
            d if d >= DECISIVE_LOG_EVIDENCE => Self::Decisive,
            d if d >= STRONG_LOG_EVIDENCE => Self::Strong,
            d if d >= SOME_LOG_EVIDENCE => Self::Some,
            _ => Self::None,
        }
    }

    /// As an adjective.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Some => "some",
            Self::Strong => "strong",
            Self::Decisive => "decisive",
        }
    }
}

described! {
/// Several models of the same data, the best first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comparison {
    /// The models.
    pub models: Vec<Compared>,
    /// The first and the second of them.
    pub verdict: Difference,
    /// What else to know, in words.
    pub remarks: Vec<String>,
    /// Readings that they are compared on.
    pub readings: usize,
    /// All readings count for so many times less, because the best model's misfits are correlated over samples.
    pub variance_inflation: f64,
}

/// A model of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Compared {
    /// The folder of its fit, or what it is called.
    pub run: String,
    /// The model's name.
    pub model: String,
    /// How much there is of its networks.
    pub structure: Structure,
    /// Entries of θ.
    pub parameters: usize,
    /// How many of them the data determine; none where the solver has no evidence.
    pub determined: Option<f64>,
    /// ln p(y), with the noise of the sensors integrated out; where misfits are correlated, of as many
    /// times fewer readings.
    pub log_evidence: Option<f64>,
    /// By how much that is below the best.
    pub below_best: Option<f64>,
    /// ln p(y) of the parameters found, the states integrated out.
    pub log_likelihood: Option<f64>,
    /// Akaike's criterion, with the parameters that the data determine and the noise of each channel counted.
    pub aic: Option<f64>,
    /// Schwarz's criterion, likewise.
    pub bic: Option<f64>,
    /// The noise of each channel at which it is compared.
    pub noise: BTreeMap<String, f64>,
    /// How many times its misfits repeat themselves; 1 where they are white.
    pub variance_inflation: Option<f64>,
    /// Its free run over each record.
    pub records: Vec<ComparedRecord>,
    /// Its error on blocks that were held back, where that was asked for.
    pub held_out: Option<HeldOut>,
    /// Its unknown constants.
    pub constants: Vec<Constant>,
    /// Whether correlated misfits say that it is not right.
    pub contradicted: bool,
    /// Whether its fit is not to be trusted.
    pub distrusted: bool,
}

/// A free run of a model of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ComparedRecord {
    /// The file.
    pub file: String,
    /// What it served for.
    pub role: Role,
    /// Root mean square error over range, of each channel; null where it diverged.
    pub nrmse: Scores,
}

/// Which of two models is the better one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Difference {
    /// The better one, or the first of two that cannot be told apart.
    pub first: String,
    /// The other one.
    pub second: String,
    /// How sure that is.
    pub strength: Strength,
    /// The difference of ln p(y); none where it did not decide.
    pub log_evidence: Option<f64>,
    /// What decided: `evidence`, `held out`, `validation`, `test` or `training`.
    pub by: String,
    /// All of it in a sentence.
    pub sentence: String,
}
}

impl Comparison {
    /// The same in the words of a door.
    pub fn at(mut self, door: Door) -> Self {
        let remarks = self.remarks.iter_mut();
        remarks.for_each(|remark| *remark = worded(remark, door));
        self
    }
}

/// How models are compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompareOptions {
    /// Blocks, or groups of records, that are held back in turn; none where 0.
    pub folds: usize,
}

/// Compares fits of the same records.
///
/// # Errors
/// [`Error::Setting`] with what is not comparable, or where there are fewer than two.
pub fn compare(
    fits: &[&Fit],
    options: CompareOptions,
    observer: &mut dyn Observer,
) -> Result<Comparison, Error> {
    if fits.len() < 2 {
        return Err(Error::Setting(
            "a comparison takes two fits or more; name another one".into(),
        ));
    }
    for other in &fits[1..] {
        comparable(fits[0], other)?;
    }
    let reopened: Vec<Reopened> = fits
        .iter()
        .map(|f| Reopened::new(f))
        .collect::<Result<_, _>>()?;
    let names = names(fits);
    let held = held_noise(fits);
    let mut all = vec![];
    for (opened, held) in reopened.iter().zip(&held) {
        all.push(opened.with(|problem| opened.again(problem)?.weigh(held)));
    }
    // one footing, or none
    let weighed: Option<Vec<Weighed>> = all.into_iter().collect();
    let evidence = |inflation: f64| -> Option<Vec<f64>> {
        let pairs = reopened.iter().zip(weighed.as_ref()?);
        let evidences = pairs.map(|(o, w)| o.with(|problem| w.evidence(problem, inflation)));
        Some(evidences.collect())
    };
    let full = evidence(1.0);
    let inflation = full
        .as_ref()
        .zip(weighed.as_ref())
        .map_or(1.0, |(full, weighed)| {
            let best = (0..full.len()).max_by(|&a, &b| full[a].total_cmp(&full[b]));
            best.map_or(1.0, |best| weighed[best].variance_inflation)
        });
    let logs = if inflation > 1.0 {
        evidence(inflation)
    } else {
        full
    };
    let mut blocks: Vec<Option<HeldOut>> = vec![None; fits.len()];
    if options.folds > 0 {
        let errors = reopened
            .iter()
            .map(|opened| held_out(opened, options.folds, observer));
        // of some models alone they would say nothing
        match errors.collect::<Result<Vec<_>, _>>() {
            Ok(all) => blocks = all.into_iter().map(Some).collect(),
            Err(Error::Stopped) => {}
            Err(error) => return Err(error),
        }
    }
    let mut models: Vec<Compared> = vec![];
    for (k, (fit, held_out)) in fits.iter().zip(blocks).enumerate() {
        models.push(Compared {
            run: names[k].clone(),
            log_evidence: logs.as_ref().map(|logs| logs[k]),
            held_out,
            ..compared(fit, &reopened[k], weighed.as_ref().map(|w| &w[k]))
        });
    }
    let best = models.iter().filter_map(|m| m.log_evidence);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    for model in &mut models {
        model.below_best = model.log_evidence.map(|log| best - log);
    }
    models.sort_by(|a, b| b.merit().total_cmp(&a.merit()));
    let verdict = difference(&models[0], &models[1]);
    Ok(Comparison {
        remarks: remarks(&models, &verdict, inflation),
        verdict,
        readings: readings(&reopened[0]),
        variance_inflation: inflation,
        models,
    })
}

fn readings(opened: &Reopened) -> usize {
    let outputs = opened.records().iter().flat_map(|r| &r.outputs);
    outputs.filter(|y| !y.is_nan()).count()
}

/// What fits are called: their folders, numbered where these are the same.
fn names(fits: &[&Fit]) -> Vec<String> {
    let distinct: BTreeSet<&str> = fits.iter().map(|f| f.name.as_str()).collect();
    let named = fits.iter().enumerate().map(|(k, fit)| {
        if distinct.len() == fits.len() {
            fit.name.clone()
        } else {
            format!("{} {}", fit.name, k + 1)
        }
    });
    named.collect()
}

/// Of each fit, which channels keep their noise: those for which all state the same.
fn held_noise(fits: &[&Fit]) -> Vec<Vec<bool>> {
    let stated = |fit: &Fit, channel: &str| {
        let place = fit
            .model
            .measurements
            .iter()
            .position(|m| m.name == channel)?;
        let given = fit.facts.settings.noise_given(channel);
        given.then(|| fit.facts.noise.measurement[place])
    };
    let same = |channel: &str| {
        let all: Option<Vec<f64>> = fits.iter().map(|f| stated(f, channel)).collect();
        all.is_some_and(|all| all.windows(2).all(|w| w[0] == w[1]))
    };
    let stated_alike = |fit: &&Fit| {
        fit.model
            .measurements
            .iter()
            .map(|m| same(&m.name))
            .collect()
    };
    fits.iter().map(stated_alike).collect()
}

fn compared(fit: &Fit, opened: &Reopened, weighed: Option<&Weighed>) -> Compared {
    let channels = || fit.model.measurements.iter();
    let variances = weighed.map_or(&opened.fit.facts.noise.measurement, |w| &w.noise);
    let noise = channels().zip(variances);
    let records = fit.facts.records.iter().map(|record| {
        let errors = channels().filter_map(|m| record.nrmse.get_key_value(&m.name));
        ComparedRecord {
            file: record.file.clone(),
            role: record.role,
            nrmse: errors.map(|(name, error)| (name.clone(), *error)).collect(),
        }
    });
    let settings = &fit.facts.settings;
    let free = channels()
        .filter(|m| !settings.noise_given(&m.name))
        .count();
    let counted = weighed.map(|w| w.determined + free as f64);
    let minus_twice = weighed.map(|w| -2.0 * w.log_likelihood);
    Compared {
        run: String::new(),
        model: fit.facts.model.clone(),
        structure: opened.fit.facts.structure,
        parameters: opened.fit.theta.len(),
        determined: weighed.map(|w| w.determined),
        log_evidence: None,
        below_best: None,
        log_likelihood: weighed.map(|w| w.log_likelihood),
        aic: counted.zip(minus_twice).map(|(k, l)| l + 2.0 * k),
        bic: counted
            .zip(minus_twice)
            .zip(weighed)
            .map(|((k, l), w)| l + k * (w.readings as f64).ln()),
        noise: noise.map(|(m, v)| (m.name.clone(), v.sqrt())).collect(),
        variance_inflation: weighed.map(|w| w.variance_inflation),
        records: records.collect(),
        held_out: None,
        constants: fit.facts.unknowns.clone(),
        contradicted: fit.facts.contradicted,
        distrusted: fit.facts.is_distrusted(),
    }
}

impl Compared {
    /// The mean error over records of a role; infinite where a run diverged, `None` without any.
    pub fn error(&self, role: Role) -> Option<f64> {
        let records = self.records.iter().filter(|r| r.role == role);
        named::mean(records.map(|r| &r.nrmse))
    }

    /// What models are put in order by: the evidence, or else the least error on what was not learned from.
    fn merit(&self) -> f64 {
        let held = self
            .held_out
            .as_ref()
            .map(|h| h.nrmse.unwrap_or(f64::INFINITY));
        let error = held
            .or_else(|| self.error(Role::Test))
            .or_else(|| self.error(Role::Validate))
            .or_else(|| self.error(Role::Train));
        self.log_evidence.unwrap_or(-error.unwrap_or(f64::INFINITY))
    }

    /// Errors on what was not learned from, with the names of [`Unseen::by`].
    fn unseen(&self) -> [(&'static str, Option<f64>); 3] {
        let held = self.held_out.as_ref();
        [
            ("held out", held.map(|h| h.nrmse.unwrap_or(f64::INFINITY))),
            ("test", self.error(Role::Test)),
            ("validation", self.error(Role::Validate)),
        ]
    }
}

/// The errors of two models on the same records.
struct Unseen {
    /// What the records were to the fits.
    by: &'static str,
    first: f64,
    second: f64,
}

/// Which of two models is better: by the evidence, unless what neither of them learned from says otherwise.
fn difference(first: &Compared, second: &Compared) -> Difference {
    let seen = first.unseen().into_iter().zip(second.unseen());
    let unseen = seen.filter_map(|((by, a), (_, b))| {
        Some(Unseen {
            by,
            first: a?,
            second: b?,
        })
    });
    let unseen: Vec<Unseen> = unseen.collect();
    let against = unseen
        .iter()
        .find(|u| u.second < CLEARLY_LESS_ERROR_RATIO * u.first);
    let (a, b) = (&first.run, &second.run);
    let make = |strength, log_evidence, by: &str, sentence: String| Difference {
        first: a.clone(),
        second: b.clone(),
        strength,
        log_evidence,
        by: by.into(),
        sentence,
    };
    let Some((high, low)) = first.log_evidence.zip(second.log_evidence) else {
        let training = Unseen {
            by: "training",
            first: first.error(Role::Train).unwrap_or(f64::NAN),
            second: second.error(Role::Train).unwrap_or(f64::NAN),
        };
        let Unseen { by, first, second } = unseen.first().unwrap_or(&training);
        let (first_words, second_words) = (error(*first), error(*second));
        return if *first < CLEARLY_LESS_ERROR_RATIO * second && *by != "training" {
            let sentence = format!(
                "{a} is better than {b}, with some strength: it errs by {first_words} where {b} errs by {second_words} ({by}); there is no evidence to compare, which batch computes"
            );
            make(Strength::Some, None, by, sentence)
        } else {
            let sentence = format!(
                "{a} and {b} cannot be told apart: they err by {first_words} and {second_words} ({by}), and there is no evidence to compare, which batch computes"
            );
            make(Strength::None, None, by, sentence)
        };
    };
    let gain = high - low;
    let strength = Strength::of(gain);
    if strength == Strength::None {
        let sentence = format!(
            "{a} and {b} cannot be told apart: ln p(y) differs by {gain:.1}, less than odds of twenty to one"
        );
        return make(strength, Some(gain), "evidence", sentence);
    }
    if let Some(Unseen { by, first, second }) = against {
        let sentence = format!(
            "{a} and {b} contradict each other: {a} explains the readings that both learned from better (ln p(y) is {gain:.1} higher), but errs by {} where {b} errs by {} ({by}); what was not learned from is the better judge",
            error(*first),
            error(*second)
        );
        return make(Strength::None, Some(gain), by, sentence);
    }
    let also = unseen.first().map_or(String::new(), |unseen| {
        format!(
            "; {}: it errs by {}, {b} by {}",
            unseen.by,
            error(unseen.first),
            error(unseen.second)
        )
    });
    let word = match strength {
        Strength::Some => "with some strength",
        Strength::Strong => "with strong evidence",
        _ => "beyond doubt",
    };
    let odds = if gain < 13.0 {
        format!(", odds of {:.0} to 1", gain.exp())
    } else {
        String::new()
    };
    let sentence =
        format!("{a} is better than {b}, {word}: ln p(y) is {gain:.1} higher{odds}{also}");
    make(strength, Some(gain), "evidence", sentence)
}

fn error(value: f64) -> String {
    if value.is_finite() {
        text::percent(value)
    } else {
        "more than any number (its run diverged)".into()
    }
}

/// What else to know of a comparison.
fn remarks(models: &[Compared], verdict: &Difference, inflation: f64) -> Vec<String> {
    let mut said = vec![];
    let best = &models[0];
    if best.contradicted || inflation > 1.0 {
        let less = if inflation > 1.0 {
            format!(
                "; readings count for {inflation:.0} times less, as often as its misfits repeat themselves"
            )
        } else {
            String::new()
        };
        said.push(format!(
            "{} comes first, but the data contradict it too: its misfits are correlated over samples, so none of these models is right{less}",
            best.run
        ));
    }
    for model in models.iter().filter(|m| m.distrusted) {
        said.push(format!(
            "the fit of {} is not to be trusted: see its page",
            model.run
        ));
    }
    if verdict.strength == Strength::None
        && best.held_out.is_none()
        && verdict.log_evidence.is_none_or(|gain| gain > 0.1)
    {
        said.push(
            "blocks that are held back may tell more: ⟦folds⟧ 5 fits each model five times again"
                .into(),
        );
    }
    said
}
