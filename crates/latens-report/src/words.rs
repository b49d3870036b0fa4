//! A fit in plain words: how far to trust it.

use latens::fit;
use latens::fit::{Facts, RecordFacts, ResidualTest, Role};
use latens::look::check::{DETERMINED_SCALE_PART, Sight};
use latens::look::{Finding, RESOLUTION};
use latens::numerics::score::named::Scores;
use latens::solve;
use latens::solve::checkpoint::Checkpoint;

use latens::{Model, Warning, text};

use crate::verdict;

/// A state counts as poorly determined where it is so over more than this part of a record.
pub const POOR_PART: f64 = 0.1;

/// What a fit came to, a line each.
pub fn summary(model: &Model, facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    lines.push(following(model, facts, Role::Train, "the measurements"));
    if facts.records.iter().any(|r| r.role == Role::Validate) {
        let data = "the validation records, never learned from,";
        lines.push(following(model, facts, Role::Validate, data));
    }
    if facts.records.iter().any(|r| r.role == Role::Test) {
        let data = "the test records, which played no part,";
        lines.push(following(model, facts, Role::Test, data));
    }
    lines.extend(determined(facts));
    lines.extend(dependence(facts));
    lines.extend(trading(facts));
    lines.extend(hidden(model, facts));
    lines.extend(not_shown(facts));
    lines.push(noise(model, facts));
    lines.extend(structures(facts));
    if facts.rungs.iter().filter(|r| r.weight > 0.0).count() < 2 {
        lines.extend(starts(facts));
        lines.extend(members(facts));
    }
    lines.extend(held_back(facts));
    lines.extend(residuals(facts));
    lines.extend(contradicted(facts));
    lines
}

/// A part of the residuals' variance that is no small one.
const LARGE_EXPLAINED_PART: f64 = 0.3;

/// What tests show of residuals that no finding is made of: it is significant, and small or of few readings.
fn residuals(facts: &Facts) -> Vec<String> {
    // what pushes the states about shows in a free run
    if facts.disturbed.is_some() {
        return vec![];
    }
    let found = |channel: &str| facts.findings.iter().any(|f| f.channel() == channel);
    let rejected = facts.residuals.iter().filter(|t| t.is_rejected());
    let rejected: Vec<&ResidualTest> = rejected.filter(|t| !found(&t.channel)).collect();
    let mut channels: Vec<&str> = rejected.iter().map(|t| t.channel.as_str()).collect();
    channels.dedup();
    let line = |channel: &str| {
        let of_channel = rejected.iter().filter(|t| t.channel == channel);
        let strongest = of_channel.min_by(|a, b| a.p_adjusted.total_cmp(&b.p_adjusted))?;
        let explained = strongest.explained.unwrap_or(0.0);
        let part = strongest.explained.map_or(String::new(), |part| {
            format!(", {} of their variance", text::percent(part.max(1e-6)))
        });
        let consequence = if explained > LARGE_EXPLAINED_PART {
            "which speaks against the model, though of so few readings it may be chance"
        } else {
            "which is too little to contradict the model"
        };
        Some(format!(
            "the residuals of {channel} are not noise alone: {} (p {}{part}), {consequence}",
            strongest.words(),
            p_value(strongest.p_adjusted)
        ))
    };
    channels.into_iter().filter_map(line).collect()
}

/// A p-value after the letter: `= 0.03`, or `< 0.0001`.
pub fn p_value(p: f64) -> String {
    if p < 1e-4 {
        "< 0.0001".into()
    } else {
        format!("= {}", text::number((p * 1e4).round() / 1e4))
    }
}

/// Which arguments the data give reason to depend on, of networks that have several.
pub fn dependence(facts: &Facts) -> Vec<String> {
    let mut networks: Vec<&str> = facts.relevance.iter().map(|r| r.network.as_str()).collect();
    networks.dedup();
    let words = networks.into_iter().filter_map(|network| {
        let relevance = || facts.relevance.iter().filter(|r| r.network == network);
        let arguments = |needed: bool| -> Vec<&str> {
            let chosen = relevance().filter(|r| r.needed == needed);
            chosen.map(|r| r.argument.as_str()).collect()
        };
        let (needed, idle) = (arguments(true), arguments(false));
        let several = relevance().count() > 1;
        several.then(|| match (needed.is_empty(), idle.is_empty()) {
            (true, _) => format!("the data give no reason for {network} to depend on any of its arguments"),
            (_, true) => format!("the data give reason for {network} to depend on {}, all its arguments", text::list(&needed)),
            _ => format!(
                "the data give reason for {network} to depend on {}; without {} they are explained as well",
                text::list(&needed),
                text::list(&idle)
            ),
        })
    });
    words.collect()
}

/// Constants that trade off.
fn trading(facts: &Facts) -> Vec<String> {
    let groups = fit::trading(facts).into_iter();
    let words = groups.map(|fit::Trading { names, weakest }| {
        let noun = if names.len() == 2 { "a correlation" } else { "correlations" };
        format!(
            "{} trade off, with {noun} of at least {weakest:.3} in size: each by itself is known less well than they are together",
            text::list(&names)
        )
    });
    words.collect()
}

/// That the fit is not to be used as it is, and what to do; nothing where nothing was found.
fn contradicted(facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    let against = |sensor: bool| {
        let contradicting = facts.findings.iter().filter(|f| f.contradicts());
        let chosen = contradicting
            .filter(|f| f.is_of_channel() == sensor && !f.is_of_steps() && !f.is_of_record());
        let mut channels: Vec<&str> = chosen.map(Finding::channel).collect();
        channels.dedup();
        channels
    };
    let (sensors, residuals) = (against(true), against(false));
    if !sensors.is_empty() {
        lines.push(format!(
            "do not use this fit: the readings of {} are at fault (see the warnings)",
            text::list(&sensors)
        ));
    }
    if !residuals.is_empty() {
        lines.push(format!(
            "do not take this model for right: the misfit of {} contradicts it (see the warnings)",
            text::list(&residuals)
        ));
    }
    if facts.disturbed.is_some() {
        lines.push("the equations do not hold exactly: something pushes the states about at random, or a term is missing (see the warnings)".into());
    }
    if (facts.findings.iter()).any(|f| f.is_of_record() && f.contradicts()) {
        lines.push(
            "do not judge the model by this fit: over gaps of a record nobody knows the inputs (see the warnings)"
                .into(),
        );
    }
    if facts.findings.iter().any(Finding::is_of_steps) {
        lines.push(
            "do not take this model for right: its steps are too long (see the warnings)".into(),
        );
    }
    if facts.findings.iter().any(|f| f.advice().is_some()) {
        lines.push(format!("next: {}", verdict::next(facts, "RUN")));
    }
    lines
}

/// Hidden states that the records do not show, as the look before the fit found: whatever their
/// deviations are afterwards, they are not "well determined".
pub fn unseen(facts: &Facts) -> Vec<&str> {
    let hidden = |sight| {
        matches!(
            sight,
            Sight::Isolated | Sight::ThroughNetwork | Sight::Undetermined
        )
    };
    let mut names: Vec<&str> = vec![];
    for warning in &facts.warnings {
        match warning {
            Warning::PoorlySeen { state } if hidden(state.sight) => names.push(&state.name),
            Warning::NotToldApart { states } => names.extend(states.iter().map(String::as_str)),
            _ => {}
        }
    }
    names.dedup();
    names
}

/// That a fit was stopped, and how to go on with it; nothing where it was not.
pub fn stopped(facts: &Facts, folder: &str) -> Option<String> {
    let passes = facts.checkpoint.as_ref().map_or(0, Checkpoint::passes);
    let solver = solve::find(&facts.solver).ok();
    let more = if solver.is_some_and(|s| s.resumes()) {
        format!("; the same command with --resume {folder} goes on")
    } else {
        String::new()
    };
    facts.stopped.then(|| {
        let passes = text::count(passes, pass(&facts.solver));
        format!("stopped after {passes}: it can be used as it is{more}")
    })
}

/// What a solver calls one of its passes.
pub fn pass(solver: &str) -> &'static str {
    solve::find(solver).map_or("pass", |s| s.pass())
}

/// The same, of several.
pub fn passes(solver: &str) -> &'static str {
    if pass(solver) == "stage" {
        "stages"
    } else {
        "passes"
    }
}

/// Each channel with the standard deviation of its noise, in its unit and as a part of its range.
pub fn noise_levels<'f>(
    model: &'f Model,
    facts: &'f Facts,
) -> impl Iterator<Item = (&'f str, f64, f64)> + 'f {
    let sizes = facts.noise.measurement.iter().zip(&facts.scales.range);
    let channels = model.measurements.iter().zip(sizes);
    channels.map(|(channel, (variance, range))| {
        let std = variance.sqrt();
        (channel.name.as_str(), std, std / range)
    })
}

/// How far a free run is from what was measured, by its worst channel.
fn following(model: &Model, facts: &Facts, role: Role, data: &str) -> String {
    let mut worst: Option<(f64, &str)> = None;
    let records = facts.records.iter().filter(|r| r.role == role);
    for record in records {
        for channel in &model.measurements {
            let Some(error) = record.nrmse.get(&channel.name) else {
                continue;
            };
            let error = error.unwrap_or(f64::INFINITY);
            if worst.is_none_or(|(before, _)| error > before) {
                worst = Some((error, &channel.name));
            }
        }
    }
    match worst {
        None => format!("on {data} a free run cannot be scored: no channel moves"),
        Some((error, channel)) if error.is_infinite() => {
            format!("on {data} a free run leaves the finite numbers in {channel}")
        }
        Some((error, channel)) => {
            let several = model.measurements.len() > 1;
            format!(
                "on {data} a free run errs by {} of the range of {channel}{}",
                text::percent(error),
                if several { ", the worst channel" } else { "" }
            )
        }
    }
}

/// How much of θ the data speak of.
fn determined(facts: &Facts) -> Option<String> {
    let evidence = facts.evidence.as_ref()?;
    let (known, all) = (evidence.determined.round() as usize, evidence.directions);
    Some(if known >= all {
        format!("the data determine all {all} directions of θ")
    } else {
        format!(
            "the data determine {known} of {all} directions of θ; the rest is left to the prior: away from the data the model guesses"
        )
    })
}

/// The states whose deviations are those of the equations alone.
fn not_shown(facts: &Facts) -> Option<String> {
    let unseen = unseen(facts);
    (!unseen.is_empty()).then(|| {
        format!(
            "of {} the records say nothing by themselves: {} deviations are those of the equations as learned",
            text::list(&unseen),
            if unseen.len() == 1 { "its" } else { "their" }
        )
    })
}

/// The hidden states that the smoother is not sure of.
fn hidden(model: &Model, facts: &Facts) -> Option<String> {
    let unseen = unseen(facts);
    let hidden: Vec<&str> = (model.hidden().iter())
        .map(|i| model.states[*i].name.as_str())
        .filter(|name| !unseen.contains(name))
        .collect();
    let records = facts.records.iter().filter(|r| r.role == Role::Train);
    let worst = |name: &str| {
        let part = |r: &RecordFacts| r.poorly_determined.get(name).copied();
        records.clone().filter_map(part).fold(0.0, f64::max)
    };
    let poor: Vec<String> = (hidden.iter().map(|name| (name, worst(name))))
        .filter(|(_, part)| *part > POOR_PART)
        .map(|(name, part)| format!("{name} ({})", text::percent(part)))
        .collect();
    let poor: Vec<&str> = poor.iter().map(String::as_str).collect();
    match (hidden.is_empty(), poor.is_empty()) {
        (true, _) => None,
        (false, true) => Some(format!(
            "{}{}, which no sensor saw, {}",
            if warned(facts, &hidden) {
                "with what was learned, "
            } else {
                ""
            },
            text::list(&hidden),
            small_deviations(facts, hidden.len() > 1, "")
        )),
        (false, false) => Some(format!(
            "poorly determined, with a standard deviation above {} of the scale over part of the record: {}",
            text::percent(DETERMINED_SCALE_PART),
            text::list(&poor)
        )),
    }
}

/// What is said of hidden states whose deviations are small along the records: that they are well determined, or on what
/// that rests which something else in the fit denies. `by` is put in after "well determined".
pub fn small_deviations(facts: &Facts, several: bool, by: &str) -> String {
    let (is, has) = if several {
        ("are", "have")
    } else {
        ("is", "has")
    };
    let rests_on = if facts.is_distrusted() {
        "a fit that is not to be used"
    } else if facts.findings.iter().any(Finding::contradicts) {
        "equations that the misfit contradicts"
    } else if is_not_noise(facts) {
        "equations whose residuals are not noise alone"
    } else if !facts.other_values.is_empty() {
        "these values of the constants, beside which others explain the records nearly as well"
    } else if facts.disturbed.is_some() {
        "disturbances that are random, as noise is"
    } else {
        return format!(
            "{is} well determined{by} along the record{}",
            up_to_sign(facts)
        );
    };
    format!("{has} small deviations along the record, which rest on {rests_on}")
}

/// Whether residuals are not noise alone and the fit knows it, or most of them is something else, however few readings
/// there are to prove that it contradicts the model.
fn is_not_noise(facts: &Facts) -> bool {
    const MOST_OF_VARIANCE: f64 = 0.5;
    let mut rejected = facts.residuals.iter().filter(|t| t.is_rejected());
    rejected.any(|t| facts.contradicted || t.explained.is_some_and(|part| part > MOST_OF_VARIANCE))
}

/// What a state is not determined by that nothing tells from its mirror image.
fn up_to_sign(facts: &Facts) -> String {
    let open = facts.warnings.iter().filter_map(|warning| match warning {
        Warning::SignOpen { states } => Some(states.iter().map(String::as_str)),
        _ => None,
    });
    let open: Vec<&str> = open.flatten().collect();
    match open.as_slice() {
        [] => String::new(),
        names => format!(", up to the sign of {}", text::list(names)),
    }
}

/// Whether the look before the fit had doubts about one of these states.
fn warned(facts: &Facts, names: &[&str]) -> bool {
    facts.warnings.iter().any(|warning| match warning {
        Warning::PoorlySeen { state } => names.contains(&state.name.as_str()),
        _ => false,
    })
}

/// The white part of a channel's misfit, where that is told from an error of the model.
fn white_part(facts: &Facts, name: &str) -> Option<f64> {
    facts.findings.iter().find_map(|finding| match finding {
        Finding::Correlated {
            channel,
            misfit,
            of_range,
            noise,
            ..
        } if channel == name => Some(noise * of_range / misfit),
        _ => None,
    })
}

/// The noise of each channel.
fn noise(model: &Model, facts: &Facts) -> String {
    let settings = &facts.settings;
    let levels = noise_levels(model, facts).map(|(name, _, part)| {
        let given = settings.noise_given(name);
        let part = white_part(facts, name).filter(|_| !given).unwrap_or(part);
        let floor = settings.estimate_noise && part < 1.001 * RESOLUTION;
        match (given, floor) {
            (true, _) => format!("{name} {}, as given", text::percent(part)),
            (false, true) => format!("{name} at most {}", text::percent(RESOLUTION)),
            (false, false) => format!("{name} {}", text::percent(part)),
        }
    });
    let levels: Vec<String> = levels.collect();
    format!(
        "noise (standard deviation over range): {}",
        levels.join("; ")
    )
}

/// How much of the networks the data ask for, where several structures were tried.
fn structures(facts: &Facts) -> Vec<String> {
    /// Weights below this are not told.
    const TOLD_WEIGHT: f64 = 1e-3;
    let kept = facts.rungs.iter().filter(|r| r.weight >= TOLD_WEIGHT);
    let several = kept.clone().count() > 1;
    let reasons = kept.map(|rung| {
        let structure = rung.structure;
        let why = match (rung.held_back, rung.evidence) {
            (Some(error), _) => format!(
                "on halves held back they err least, by {} of the range",
                text::percent(error)
            ),
            (None, Some(evidence)) => format!("ln p {evidence:.1}"),
            (None, None) => "kept".into(),
        };
        if several {
            format!(
                "{structure}: {why}, {} of what is said",
                text::percent(rung.weight)
            )
        } else {
            format!("{structure} are what the data ask for: {why}").replace(
                "without networks are what the data ask for",
                "without networks",
            )
        }
    });
    reasons.collect()
}

/// What blocks that were held back have shown.
fn held_back(facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    if facts.in_pieces {
        lines.push("constants from pieces of the records, each from a start of its own: so they predicted halves held back better than from the whole records".into());
    }
    if let Some(proof) = &facts.proof {
        let widened = if proof.widening > 1.05 {
            format!("bands are widened {:.1}-fold for it", proof.widening)
        } else {
            "as the bands say".into()
        };
        lines.push(format!(
            "on halves of the records that were held back, predictions err by {} of the range: {widened}",
            text::percent(proof.error)
        ));
    }
    lines
}

/// What the members of an ensemble come to, each and together.
fn members(facts: &Facts) -> Vec<String> {
    let mean = |scores: &[&Scores]| {
        let all = scores.iter().flat_map(|s| s.values());
        let all: Vec<f64> = all.map(|e| e.unwrap_or(f64::INFINITY)).collect();
        format!("{:.1e}", all.iter().sum::<f64>() / all.len() as f64)
    };
    let lines = facts.ensemble.iter().map(|m| {
        let scores: Vec<&Scores> = m.nrmse.iter().collect();
        format!(
            "member with seed {}: mean nRMSE of its free runs {}",
            m.seed,
            mean(&scores)
        )
    });
    let records = facts.records.iter().filter(|r| r.role != Role::Test);
    let together: Vec<&Scores> = records.map(|r| &r.nrmse).collect();
    let together = format!("their median together: {}", mean(&together));
    let several = !facts.ensemble.is_empty();
    lines.chain(several.then_some(together)).collect()
}

/// Which seed was kept, and what became of the others; nothing where the first did.
fn starts(facts: &Facts) -> Vec<String> {
    if facts.attempts.len() == 1 && facts.attempts[0].failure.is_none() {
        return vec![];
    }
    let lines = facts.attempts.iter().map(|attempt| {
        let error = if attempt.error.is_finite() {
            format!("free run {:.1e}", attempt.error)
        } else {
            "no free run".into()
        };
        let kept = if attempt.kept { ", kept" } else { "" };
        let failure = attempt.failure.as_ref();
        let failure = failure.map_or(String::new(), |why| format!("; failed: {why}"));
        format!("start with seed {}: {error}{kept}{failure}", attempt.seed)
    });
    lines.collect()
}
