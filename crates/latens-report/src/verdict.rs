//! The verdict: what must be said first, and three sentences on how good a fit is, how far to trust
//! it, and what to do next.

use latens::error::worded;
use latens::fit::{Facts, Fit, RecordFacts, Role};
use latens::look::check::DETERMINED_SCALE_PART;
use latens::look::{Finding, RESOLUTION};
use latens::{Door, Model, text};

use crate::words;

/// Errors of a free run, as parts of a range: below the first it is close, above the second poor.
const CLOSE_ERROR: f64 = 0.02;
const POOR_ERROR: f64 = 0.10;

/// What a run comes to.
pub struct Verdict {
    /// That it failed, diverged or was stopped; before all else.
    pub alarms: Vec<String>,
    pub sentences: [String; 3],
}

/// The verdict on a run.
pub fn of_run(shown: &Fit) -> Verdict {
    verdict(&shown.model, &shown.facts, &shown.name)
}

/// The verdict on what is known of a fit; `name` is its folder's.
pub fn verdict(model: &Model, facts: &Facts, name: &str) -> Verdict {
    let alarms = alarms(facts);
    let contradicted = contradictions(facts).into_iter();
    let stopped = words::stopped(facts, name);
    let stopped = stopped.map(|ending| format!("This run is not finished: it was {ending}."));
    Verdict {
        sentences: [
            quality(model, facts),
            trust(model, facts),
            sentence(&next(facts, name)),
        ],
        alarms: alarms
            .into_iter()
            .chain(contradicted)
            .chain(stopped)
            .collect(),
    }
}

/// What contradicts a fit: its residuals, or the sensors it was learned from.
pub fn contradictions(facts: &Facts) -> Vec<String> {
    let contradicting = facts.findings.iter().filter(|f| f.contradicts());
    contradicting
        .map(|finding| {
            let subject = if finding.is_of_record() {
                "A record contradicts this fit"
            } else if finding.is_of_channel() {
                "A sensor contradicts this fit"
            } else {
                "The residuals contradict this model"
            };
            format!("{subject}: {}.", finding.words())
        })
        .collect()
}

/// What to do about what was found, where there is something.
fn remedy(facts: &Facts) -> Option<String> {
    let advice = facts.findings.iter().find_map(Finding::advice)?;
    Some(worded(&advice, Door::CommandLine))
}

fn is_contradicted(facts: &Facts) -> bool {
    facts.findings.iter().any(Finding::contradicts)
}

/// That no start worked, or that a free run left the finite numbers.
fn alarms(facts: &Facts) -> Vec<String> {
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
    let errors = channels.map(|(name, error)| (error.unwrap_or(f64::INFINITY), name.clone()));
    errors.max_by(|a, b| a.0.total_cmp(&b.0))
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

fn quality(model: &Model, facts: &Facts) -> String {
    let (role, data) = telling(facts);
    let mut sentence = match worst(facts, role) {
        None => format!("On {data} a free run cannot be scored, because no channel moves"),
        Some((error, channel)) if error.is_infinite() => {
            format!("On {data} a free run leaves the finite numbers in {channel}")
        }
        Some((error, channel)) => {
            let noise = words::noise_levels(model, facts);
            let noise = noise
                .filter(|(name, ..)| *name == channel)
                .map(|(.., part)| part);
            let floor = noise.fold(RESOLUTION, f64::max);
            let contradicted = is_contradicted(facts);
            let closeness = match error {
                e if e < RESOLUTION => "to within what the data resolve",
                e if e < 1.3 * floor && !contradicted => "as closely as the noise allows",
                e if e < CLOSE_ERROR => "closely",
                e if e < POOR_ERROR => "roughly",
                _ => "poorly",
            };
            format!(
                "Simulated freely, without looking at the data again, the model follows {data} {closeness}: it errs by {} of the range of {channel}, the worst channel{}",
                text::percent(error),
                if contradicted {
                    ", and not by noise alone"
                } else {
                    ""
                }
            )
        }
    };
    let hidden = model.hidden();
    let of_truth = |r: &RecordFacts, i: usize| {
        let name = format!("truth_{}", model.states[i].name);
        r.nrmse_smoothed.get(&name).copied().flatten()
    };
    let trained = facts.records.iter().find(|r| r.role == Role::Train);
    let found = trained.map_or(vec![], |r| {
        let names = hidden.iter().filter_map(|&i| {
            let name = &model.states[i].name;
            Some(format!("{name} to {}", text::percent(of_truth(r, i)?)))
        });
        names.collect::<Vec<String>>()
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
fn poor(facts: &Facts) -> Vec<String> {
    let records = facts.records.iter().filter(|r| r.role == Role::Train);
    let parts = records.flat_map(|r| &r.poorly_determined);
    let mut names: Vec<String> = parts
        .filter(|(_, part)| **part > words::POOR_PART)
        .map(|(name, _)| name.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Whether bands are too narrow or too wide, and of which channel.
fn bands_wrong(facts: &Facts) -> Option<(&str, f64)> {
    facts.findings.iter().find_map(|finding| match finding {
        Finding::BandsWrong {
            channel, factor, ..
        } => Some((channel.as_str(), *factor)),
        _ => None,
    })
}

fn trust(model: &Model, facts: &Facts) -> String {
    let unseen = words::unseen(facts);
    let hidden: Vec<&str> = (model.hidden().iter())
        .map(|i| model.states[*i].name.as_str())
        .filter(|name| !unseen.contains(name))
        .collect();
    let poor = poor(facts);
    let poor: Vec<&str> = poor.iter().map(String::as_str).collect();
    let mut parts = vec![];
    if is_contradicted(facts) {
        parts.push("do not trust its constants and deviations, nor what no sensor saw: they are right only if the model is".into());
    } else if !poor.is_empty() {
        parts.push(format!(
            "do not trust {} everywhere, whose standard deviation exceeds {} of its scale over part of the record",
            text::list(&poor),
            text::percent(DETERMINED_SCALE_PART)
        ));
    } else if !hidden.is_empty() {
        let said = words::small_deviations(facts, hidden.len() > 1, " by the data");
        parts.push(format!("{} {said}", text::list(&hidden)));
    }
    if !unseen.is_empty() {
        parts.push(format!(
            "of {} the records say nothing by themselves, and its deviations are those of the equations as learned",
            text::list(&unseen)
        ));
    }
    if let Some(others) = facts.other_values.first() {
        let names: Vec<&str> = others.constants.iter().map(|c| c.name.as_str()).collect();
        parts.push(format!(
            "do not take {} for known, of which other values explain the records nearly as well",
            text::list(&names)
        ));
    }
    if let Some((channel, factor)) = bands_wrong(facts) {
        let change = if factor > 1.0 {
            "far larger than a filter expects, so that bands of estimates are too narrow"
        } else {
            "far smaller than a filter expects, so that bands of estimates are too wide"
        };
        parts.push(format!("the surprises in {channel} are {change}"));
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

/// What to do next, as a clause.
pub fn next(facts: &Facts, name: &str) -> String {
    let failed = !alarms(facts).is_empty();
    let (role, _) = telling(facts);
    let error = worst(facts, role).map_or(0.0, |w| w.0);
    let trained = worst(facts, Role::Train).map_or(0.0, |w| w.0);
    let poor = poor(facts);
    let poor: Vec<&str> = poor.iter().map(String::as_str).collect();
    // what a faulty sensor or a gap spoiled no other start mends
    let of_data = |f: &Finding| f.is_of_channel() || f.is_of_record() && f.contradicts();
    let sensor = facts.findings.iter().any(of_data);
    if facts.stopped && !failed {
        format!("go on with --resume {name}")
    } else if let Some(remedy) = remedy(facts).filter(|_| sensor || !failed && trained < POOR_ERROR)
    {
        remedy
    } else if failed || trained >= POOR_ERROR {
        "check units, signs and columns with `latens check`, and try --starts 8; a larger network helps only if the known equations are right".into()
    } else if !poor.is_empty() {
        format!(
            "bring records in which {} shows more, from other starts or under other inputs, or measure something closer to it",
            text::list(&poor)
        )
    } else if role == Role::Train {
        "bring a record from another start or under other inputs with --test, because only that shows whether the equation holds elsewhere".into()
    } else if error > 3.0 * trained && error >= CLOSE_ERROR {
        "learn from more records, from other starts and under other inputs, because on what it has not seen the model errs far more than on what it has".into()
    } else if bands_wrong(facts).is_some() {
        "do not rely on the bands; look at the innovations below for what the model leaves unexplained".into()
    } else if facts.ensemble.is_empty() {
        "use it where the records went; --ensemble 5 shows how far another fit might be from this one".into()
    } else {
        "use it where the records went, and let `latens predict` say when a record leaves that region".into()
    }
}
