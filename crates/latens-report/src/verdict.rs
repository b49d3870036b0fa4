//! The verdict: what must be said first, and three sentences on how good a fit is, how far to trust
//! it, and what to do next.

use latens::fit::{Facts, RecordFacts, Role};
use latens::look::RESOLUTION;
use latens::look::check::DETERMINED;

use crate::innovations::{self, Innovations};
use crate::words;
use latens::fit::Fit;
use latens::text;

/// Errors of a free run, as parts of a range: below the first it is close, above the second poor.
const CLOSE: f64 = 0.02;
const POOR: f64 = 0.10;
/// Beyond this factor from one, ν²/s says that the bands are wrong.
const FAR: f64 = 4.0;

/// What a run comes to.
pub struct Verdict {
    /// That it failed, diverged or was stopped; before all else.
    pub alarms: Vec<String>,
    pub sentences: [String; 3],
}

/// The verdict on a run.
pub fn of_run(shown: &Fit) -> Verdict {
    let first = shown.trained().into_iter().next();
    let found = first.map_or(vec![], |track| innovations::innovations(shown, track));
    verdict(shown, &found)
}

/// `innovations` are those of the first record that was learned from.
pub fn verdict(shown: &Fit, innovations: &[Innovations]) -> Verdict {
    let alarms = alarms(shown);
    Verdict {
        sentences: [
            quality(shown),
            trust(shown, innovations),
            next(shown, innovations, !alarms.is_empty()),
        ],
        alarms: alarms.into_iter().chain(stopped(shown)).collect(),
    }
}

fn stopped(shown: &Fit) -> Option<String> {
    let how = words::stopped(&shown.facts, &shown.name)?;
    Some(format!("This run is not finished: it was {how}."))
}

/// That no start worked, or that a free run left the finite numbers.
fn alarms(shown: &Fit) -> Vec<String> {
    let facts = &shown.facts;
    let mut alarms = vec![];
    let kept = facts.attempts.iter().find(|a| a.kept);
    if let Some(why) = kept.and_then(|a| a.failure.as_ref()) {
        alarms.push(format!(
            "This fit failed: {} tried, none worked ({why}). What follows is the least bad of them.",
            text::count(facts.attempts.len(), "start")
        ));
    }
    for record in &facts.records {
        let lost = record.nrmse.iter().filter(|(_, error)| error.is_none());
        let lost = lost.map(|(name, _)| name.strip_prefix("truth_").unwrap_or(name));
        let mut lost: Vec<&str> = lost.collect();
        lost.sort_unstable();
        lost.dedup();
        if !lost.is_empty() {
            alarms.push(format!(
                "The model diverged: simulated freely over {}, it leaves the finite numbers ({}). Do not use it to simulate.",
                record.file,
                text::list(&lost)
            ));
        }
    }
    alarms
}

/// The worst error of a free run over the channels of the records of a role.
fn worst(facts: &Facts, role: Role) -> Option<(f64, String)> {
    let records = facts.records.iter().filter(|r| r.role == role);
    let scores = records.flat_map(|r| &r.nrmse);
    let channels = scores.filter(|(name, _)| !name.starts_with("truth_"));
    let each = channels.map(|(name, error)| (error.unwrap_or(f64::INFINITY), name.clone()));
    each.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The records that say most about a model, and what to call them.
fn telling(facts: &Facts) -> (Role, &'static str) {
    let roles = [
        (Role::Test, "records that played no part in the fit"),
        (Role::Validate, "records that were not learned from"),
        (Role::Train, "the records it was learned from"),
    ];
    let has = |role: Role| facts.records.iter().any(|r| r.role == role);
    let found = roles.into_iter().find(|(role, _)| has(*role));
    found.unwrap_or((Role::Train, "the records it was learned from"))
}

fn quality(shown: &Fit) -> String {
    let facts = &shown.facts;
    let (role, what) = telling(facts);
    let mut sentence = match worst(facts, role) {
        None => format!("On {what} a free run cannot be scored, because no channel moves"),
        Some((error, channel)) if error.is_infinite() => {
            format!("On {what} a free run leaves the finite numbers in {channel}")
        }
        Some((error, channel)) => {
            let noise = words::noise_levels(&shown.model, facts);
            let noise = noise
                .filter(|(name, ..)| *name == channel)
                .map(|(.., part)| part);
            let floor = noise.fold(RESOLUTION, f64::max);
            let how = match error {
                e if e < RESOLUTION => "to within what the data resolve",
                e if e < 1.3 * floor => "as closely as the noise allows",
                e if e < CLOSE => "closely",
                e if e < POOR => "roughly",
                _ => "poorly",
            };
            format!(
                "Simulated freely, without looking at the data again, the model follows {what} {how}: it errs by {} of the range of {channel}, the worst channel",
                text::percent(error)
            )
        }
    };
    let hidden = shown.model.hidden();
    let of_truth = |r: &RecordFacts, i: usize| {
        let name = format!("truth_{}", shown.model.states[i].name);
        r.nrmse_smoothed.get(&name).copied().flatten()
    };
    let trained = facts.records.iter().find(|r| r.role == Role::Train);
    let found = trained.map_or(vec![], |r| {
        let each = hidden.iter().filter_map(|&i| {
            let name = &shown.model.states[i].name;
            Some(format!("{name} to {}", text::percent(of_truth(r, i)?)))
        });
        each.collect::<Vec<String>>()
    });
    if !found.is_empty() {
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        sentence += &format!(
            "; of what no sensor saw, it found {} of its range",
            text::list(&found)
        );
    }
    sentence + "."
}

/// Hidden states that are poorly determined over much of a record.
fn poor(shown: &Fit) -> Vec<String> {
    let records = shown.facts.records.iter().filter(|r| r.role == Role::Train);
    let each = records.flat_map(|r| &r.poorly_determined);
    let mut names: Vec<String> = each
        .filter(|(_, part)| **part > words::PART)
        .map(|(name, _)| name.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The channel whose innovations are the least as large as the filter says, where the noise is known.
fn surprising<'i>(shown: &Fit, innovations: &'i [Innovations]) -> Option<&'i Innovations> {
    let noisy = |i: &&Innovations| {
        let mut levels = words::noise_levels(&shown.model, &shown.facts);
        levels.any(|(name, _, part)| name == i.channel && part > 1.001 * RESOLUTION)
    };
    // too small a surprise at noise below the resolution is none
    let far = |i: &&Innovations| i.consistency > FAR || (i.consistency < 1.0 / FAR && noisy(i));
    let found = innovations.iter().filter(far);
    found.max_by(|a, b| {
        a.consistency
            .ln()
            .abs()
            .total_cmp(&b.consistency.ln().abs())
    })
}

fn trust(shown: &Fit, innovations: &[Innovations]) -> String {
    let facts = &shown.facts;
    let model = &shown.model;
    let hidden: Vec<&str> = (model.hidden().iter())
        .map(|i| model.states[*i].name.as_str())
        .collect();
    let poor = poor(shown);
    let poor: Vec<&str> = poor.iter().map(String::as_str).collect();
    let mut parts = vec![];
    if !poor.is_empty() {
        parts.push(format!(
            "do not trust {} everywhere, whose standard deviation exceeds {} of its scale over part of the record",
            text::list(&poor),
            text::percent(DETERMINED)
        ));
    } else if !hidden.is_empty() {
        let is = if hidden.len() == 1 { "is" } else { "are" };
        parts.push(format!(
            "{} {is} well determined by the data along the record",
            text::list(&hidden)
        ));
    }
    if let Some(found) = surprising(shown, innovations) {
        let how = if found.consistency > 1.0 {
            "far larger than its bands allow, so that they are too narrow"
        } else {
            "far smaller than its bands allow, so that they are too wide"
        };
        parts.push(format!("the surprises in {} are {how}", found.channel));
    }
    if let Some(evidence) = &facts.evidence {
        let (known, all) = (evidence.determined.round() as usize, evidence.directions);
        parts.push(if known >= all {
format!("the data determine all {all} directions of the parameters")
} else {
format!(
                "the data determine {known} of {all} directions of the parameters, and where the records did not go the model guesses"
            )
});
    }
    if facts.records.iter().all(|r| r.role == Role::Train) {
        parts.push("no record was kept back to prove it".into());
    }
    let said = if parts.is_empty() {
        "the bands of this solver count the record once for every pass and are too narrow".into()
    } else {
        parts.join("; ")
    };
    // a name keeps its case
    if model
        .states
        .iter()
        .any(|s| said.starts_with(&format!("{} ", s.name)))
    {
        format!("What no sensor saw: {said}.")
    } else {
        sentence(&said)
    }
}

/// Begins with a capital and ends with a point.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

fn next(shown: &Fit, innovations: &[Innovations], failed: bool) -> String {
    let facts = &shown.facts;
    let (role, _) = telling(facts);
    let error = worst(facts, role).map_or(0.0, |w| w.0);
    let trained = worst(facts, Role::Train).map_or(0.0, |w| w.0);
    let poor = poor(shown);
    let poor: Vec<&str> = poor.iter().map(String::as_str).collect();
    let advice = if facts.stopped && !failed {
        format!("go on with --resume {}", shown.name)
    } else if failed || trained >= POOR {
        "check units, signs and columns with `latens check`, and try --starts 8; a larger network helps only if the known equations are right".into()
    } else if !poor.is_empty() {
        format!(
            "bring records in which {} shows more, from other starts or under other inputs, or measure something closer to it",
            text::list(&poor)
        )
    } else if role == Role::Train {
        "bring a record from another start or under other inputs with --test, because only that shows whether the equation holds elsewhere".into()
    } else if error > 3.0 * trained && error >= CLOSE {
        "learn from more records, from other starts and under other inputs, because on what it has not seen the model errs far more than on what it has".into()
    } else if surprising(shown, innovations).is_some() {
        "do not rely on the bands; look at the innovations below for what the model leaves unexplained".into()
    } else if facts.ensemble.is_empty() {
        "use it where the records went; --ensemble 5 shows how far another fit might be from this one".into()
    } else {
        "use it where the records went, and let `latens predict` say when a record leaves that region".into()
    };
    sentence(&advice)
}
