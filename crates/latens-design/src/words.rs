//! What to do next, in words: no more than a linearised forecast with the learned model says.

use latens::Fit;
use latens::text::{list, number, percent, with_unit};

use crate::{Designed, Experiment, Options};

/// ln p of odds of twenty to one.
const CLEAR_EVIDENCE: f64 = 3.0;
/// An experiment that leaves more of an uncertainty tells little.
const LITTLE_LEFT: f64 = 0.9;
/// Experiments that leave no more than this much more than the best are as good.
const AS_GOOD_RATIO: f64 = 1.1;
/// Part of a run outside of what training met that is worth a word.
const OUTSIDE_PART: f64 = 0.01;

/// The lines; the first is what to do.
pub fn verdict(fit: &Fit, designed: &Designed, options: &Options) -> Vec<String> {
    let Some(best) = designed.experiments.first() else {
        return vec![];
    };
    let mut lines = vec![format!("next: {}", what(fit, best, options))];
    lines.push(if designed.by == "formulas" {
        of_formulas(designed, best)
    } else {
        of_goals(designed, best)
    });
    lines.extend(ties(designed));
    if best.outside > OUTSIDE_PART {
        lines.push(format!(
            "on {} of it a network meets arguments unlike any in training: how the experiment goes there, and what it would tell, is a guess",
            percent(best.outside)
        ));
    }
    if designed.lost > 0 {
        lines.push(format!(
            "{} left out: the learned equations leave the finite numbers there",
            latens::text::count(designed.lost, "experiment")
        ));
    }
    lines.push("these are linearised forecasts with the learned model; what it has got wrong they do not know".into());
    lines
}

/// An experiment in words.
fn what(fit: &Fit, experiment: &Experiment, options: &Options) -> String {
    let mut parts = vec![];
    let stated = options.space.start.iter().map(|(name, _)| name);
    let starts: Vec<String> = stated
        .filter_map(|name| {
            let state = fit.model.states.iter().find(|s| s.name == *name)?;
            let value = experiment.start.get(name)?;
            Some(format!("{name} = {}", with_unit(*value, &state.unit)))
        })
        .collect();
    if !starts.is_empty() {
        let starts: Vec<&str> = starts.iter().map(String::as_str).collect();
        parts.push(format!("start at {}", list(&starts)));
    }
    for (name, words) in &experiment.inputs {
        parts.push(format!("{name}: {words}"));
    }
    let names: Vec<&str> = experiment.measured.iter().map(String::as_str).collect();
    let often = match experiment.every {
        1 => "each".into(),
        k => format!("1 in {k}"),
    };
    parts.push(format!(
        "measure {} at {often} of {} samples",
        list(&names),
        experiment.samples
    ));
    parts.join("; ")
}

fn of_formulas(designed: &Designed, best: &Experiment) -> String {
    let Some(apart) = best.apart else {
        return "there one of the formulas leaves the finite numbers: the record tells it from the others".into();
    };
    let pair = best.closest.iter().map(usize::to_string);
    let pair: Vec<String> = pair.collect();
    let pair = list(&pair.iter().map(String::as_str).collect::<Vec<_>>());
    let others = if designed.formulas.len() > 2 {
        format!(", of which formulas {pair} are the closest")
    } else {
        String::new()
    };
    if apart >= CLEAR_EVIDENCE {
        format!(
            "it would tell the formulas apart{others}: if one of them is right, its ln p would be higher by {} or more after their constants have adapted ({CLEAR_EVIDENCE} is odds of twenty to one)",
            number(rounded(apart))
        )
    } else {
        format!(
            "none of these experiments would tell the formulas apart{others}: ln p would differ by {} where odds of twenty to one ask for {CLEAR_EVIDENCE}",
            number(rounded(apart))
        )
    }
}

fn of_goals(designed: &Designed, best: &Experiment) -> String {
    let goals = designed.goals.iter().zip(&best.left).enumerate();
    let of_kind = goals.filter(|(_, (goal, _))| designed.by.starts_with(&goal.kind));
    let of_kind: Vec<_> = of_kind.collect();
    let parts = of_kind.iter().map(|(k, (goal, left))| {
        let again = designed.repeated.get(*k);
        let again = again.map_or(String::new(), |r| {
            format!(" (the first record once more: {})", percent(*r))
        });
        format!(
            "{} to {} of what it is now{again}",
            goal.name,
            percent(**left)
        )
    });
    let parts: Vec<String> = parts.collect();
    let parts = list(&parts.iter().map(String::as_str).collect::<Vec<_>>());
    let subject = match designed.by.as_str() {
        "functions" => "of the learned function where these experiments and the records go",
        "constants" => "of the constants",
        _ => "of the prediction",
    };
    if of_kind.iter().all(|(_, (_, left))| **left > LITTLE_LEFT) {
        return format!(
            "none of these experiments would tell much more: the best shrinks the uncertainty {subject} only a little: {parts}"
        );
    }
    format!("it would shrink the uncertainty {subject}: {parts}")
}

/// How many are as good as the best.
fn ties(designed: &Designed) -> Option<String> {
    let best = designed.experiments.first()?;
    let as_good = |e: &&Experiment| {
        if designed.by == "formulas" {
            return e.apart.is_none() || e.apart >= best.apart.map(|a| a / AS_GOOD_RATIO);
        }
        let pairs = e.left.iter().zip(&best.left).zip(&designed.goals);
        let mut of_kind = pairs.filter(|(_, goal)| designed.by.starts_with(&goal.kind));
        of_kind.all(|((left, best), _)| *left <= AS_GOOD_RATIO * best)
    };
    let count = designed.experiments.iter().take_while(as_good).count();
    (count > 1).then(|| {
        format!(
            "the first {count} of {} are as good: take what is easiest",
            designed.experiments.len()
        )
    })
}

/// Two digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10f64.powi(value.abs().log10().floor() as i32 - 1);
    (value / unit).round() * unit
}
