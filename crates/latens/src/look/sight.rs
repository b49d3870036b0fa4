//! What records can tell about a model, in plain words.

use super::check::{Check, Coverage, Sight, StateCheck};

use crate::text;

/// Parts of a record that count as all and as none of it.
const ALL_RECORD_PART: f64 = 0.95;
const NONE_RECORD_PART: f64 = 0.005;

/// One sentence for every state that no channel shows as it is.
pub fn states(check: &Check) -> Vec<String> {
    if let Some(leaves) = check.leaves.as_ref().filter(|l| l.undefined) {
        return vec![leaves.words()];
    }
    let mut lines: Vec<String> = check.together.iter().map(|group| together(group)).collect();
    let alone = |state: &&StateCheck| !check.together.iter().flatten().any(|n| *n == state.name);
    let states = check.states.iter().filter(alone);
    lines.extend(
        states.filter_map(|s| state(s, check.mirrored.iter().flatten().any(|n| *n == s.name))),
    );
    lines.extend(check.mirrored.iter().map(|set| mirrored(set)));
    lines
}

/// States that the records do not tell apart.
pub(crate) fn together(group: &[String]) -> String {
    let names: Vec<&str> = group.iter().map(String::as_str).collect();
    format!(
        "{} are not told apart by what is measured: only a combination of them is determined, each by itself is unobservable",
        text::list(&names)
    )
}

/// States whose sign nothing that is measured feels.
pub(crate) fn mirrored(set: &[String]) -> String {
    let names: Vec<&str> = set.iter().map(String::as_str).collect();
    let negated: Vec<String> = set.iter().map(|name| format!("-{name}")).collect();
    let negated: Vec<&str> = negated.iter().map(String::as_str).collect();
    format!(
        "nothing tells {} from {}, which would make the same measurements: what is learned may be the mirror image; turn it round where you know the sign",
        text::list(&names),
        text::list(&negated)
    )
}

/// What the records say of a state, and whether its sign is open; nothing of one that a channel
/// shows as it is.
pub(crate) fn state(state: &StateCheck, sign_open: bool) -> Option<String> {
    let name = &state.name;
    let sign = if sign_open { " up to its sign" } else { "" };
    Some(match state.sight {
        Sight::Measured => return None,
        Sight::Well => format!("{name} is well determined{sign}{}", seen(state)),
        Sight::Partly => format!(
            "{name} is determined{sign} over {} of the record only{}",
            part(state.determined),
            seen(state)
        ),
        Sight::Undetermined => format!(
            "{name} is unobservable from this record: what is measured leaves {} of its scale open{}",
            text::percent(state.median.min(1.0)),
            seen(state)
        ),
        Sight::UpToShift => format!(
            "{name} is determined up to a shift only: a constant added to it can be made up for by what a network learns, so that its level is what the network's prior says; measure it, say how well its start is known with start_deviation, or let it enter a known term"
        ),
        Sight::ThroughNetwork => format!(
            "{name} is unobservable before a fit: it acts on what is measured only through a network, which can undo any change of its values; measure it, give its equation, or let it enter a known one"
        ),
        Sight::Isolated => format!(
            "{name} is unobservable: nothing that is measured depends on it; measure it, let it enter an equation, or leave it out"
        ),
    })
}

/// A part of a record.
pub fn part(part: f64) -> String {
    match part {
        0.0 => "none".into(),
        part => text::percent(part),
    }
}

/// When a state is seen, where that is not always.
fn seen(state: &StateCheck) -> String {
    if state.seen >= ALL_RECORD_PART {
        return String::new();
    }
    if state.seen < NONE_RECORD_PART {
        return "; no short stretch shows it by itself".into();
    }
    let part = part(state.seen);
    match &state.when {
        None => format!("; it is seen on {part} of the record only"),
        Some(when) => {
            let side = if when.above { "above" } else { "below" };
            let level = text::with_unit(when.level, &when.unit);
            let signal = &when.signal;
            format!("; it is seen only where {signal} is {side} {level} ({part} of the record)")
        }
    }
}

/// How much of its arguments a network meets.
pub fn coverage(coverage: &Coverage) -> String {
    let cells = 10f64.powi(coverage.arguments.len() as i32);
    format!(
        "{}({}) moves in {} of {} and visits {} of {} cells",
        coverage.network,
        coverage.arguments.join(", "),
        coverage.directions,
        text::count(coverage.arguments.len(), "direction"),
        coverage.cells,
        cells
    )
}

/// Arguments of a network that follow from each other.
pub(crate) fn follow(network: &str, arguments: &[String], follow: usize) -> String {
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    format!(
        "along the record {} of {} {} from the others: network {network} cannot learn what each of them does, and guesses where they part",
        match follow {
            1 => "one".into(),
            more => more.to_string(),
        },
        text::list(&names),
        if follow == 1 { "follows" } else { "follow" },
    )
}

/// Arguments of a network that never move.
pub(crate) fn still(network: &str, arguments: &[String]) -> String {
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    format!(
        "{} never {}: network {network} cannot learn what that does",
        text::list(&names),
        if names.len() == 1 { "moves" } else { "move" },
    )
}
