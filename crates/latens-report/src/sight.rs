//! What records can tell about a model, in plain words.

use latens::check::{Check, Coverage, Sight, StateCheck};

use crate::text;

/// Parts of a record that count as all and as none of it.
const ALL: f64 = 0.95;
const NONE: f64 = 0.005;

/// One sentence for every state that no channel shows as it is.
pub fn states(check: &Check) -> Vec<String> {
    let mut lines: Vec<String> = check.together.iter().map(|group| together(group)).collect();
    let alone = |state: &&StateCheck| !check.together.iter().flatten().any(|n| *n == state.name);
    lines.extend(check.states.iter().filter(alone).filter_map(state));
    lines
}

/// What to know before time is spent on a fit.
pub fn warnings(check: &Check) -> Vec<String> {
    let mut warnings: Vec<String> = check.together.iter().map(|group| together(group)).collect();
    for found in &check.states {
        let member = check.together.iter().flatten().any(|n| *n == found.name);
        let fine = matches!(found.sight, Sight::Measured | Sight::Well);
        if !member && !fine {
            warnings.extend(state(found));
        }
    }
    warnings.extend(check.networks.iter().filter_map(dependent));
    let still = |coverage| still(check, coverage);
    warnings.extend(check.networks.iter().filter_map(still));
    warnings
}

fn together(group: &[String]) -> String {
    let names: Vec<&str> = group.iter().map(String::as_str).collect();
    format!(
        "{} are not told apart by what is measured: only a combination of them is determined, each by itself is unobservable",
        text::list(&names)
    )
}

fn state(state: &StateCheck) -> Option<String> {
    let name = &state.name;
    Some(match state.sight {
        Sight::Measured => return None,
        Sight::Well => format!("{name} is well determined{}", seen(state)),
        Sight::Partly => format!(
            "{name} is determined over {} of the record only{}",
            part(state.determined),
            seen(state)
        ),
        Sight::Undetermined => format!(
            "{name} is unobservable from this record: what is measured leaves {} of its scale open{}",
            text::percent(state.median.min(1.0)),
            seen(state)
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
    if state.seen >= ALL {
        return String::new();
    }
    if state.seen < NONE {
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

fn dependent(coverage: &Coverage) -> Option<String> {
    let names: Vec<&str> = coverage.dependent.iter().map(String::as_str).collect();
    let moving = coverage.arguments.len() - coverage.still.len();
    let follow = moving - coverage.directions;
    (follow > 0).then(|| {
        format!(
            "along the record {} of {} {} from the others: network {} cannot learn what each of them does, and guesses where they part",
            match follow {
                1 => "one".into(),
                more => more.to_string(),
            },
            text::list(&names),
            if follow == 1 { "follows" } else { "follow" },
            coverage.network
        )
    })
}

/// Arguments that never move; of a state that nothing shows that is no wonder, and said already.
fn still(check: &Check, coverage: &Coverage) -> Option<String> {
    let unseen = |name: &&str| {
        let state = check.states.iter().find(|s| s.name == *name);
        state.is_some_and(|s| !matches!(s.sight, Sight::Measured | Sight::Well))
    };
    let names = coverage.still.iter().map(String::as_str);
    let names: Vec<&str> = names.filter(|name| !unseen(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} never {}: network {} cannot learn what that does",
            text::list(&names),
            if names.len() == 1 { "moves" } else { "move" },
            coverage.network
        )
    })
}
