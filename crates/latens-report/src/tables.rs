//! The tables of the page: what the data determine, scores, and how to repeat a run.

use std::fmt::Write;

use latens::fit::{Facts, RecordFacts, Role};
use latens::look::check::DETERMINED_SCALE_PART;
use latens::solve::checkpoint::Checkpoint;
use serde_json::Value;

use crate::plot::escape;
use crate::words;
use latens::fit::Fit;
use latens::text;

/// A table; the first row is its head. Cells are HTML.
pub fn table(caption: &str, rows: &[Vec<String>]) -> String {
    grouped(caption, &[], rows)
}

/// A table with names above several columns each.
pub fn grouped(caption: &str, groups: &[(String, usize)], rows: &[Vec<String>]) -> String {
    // a table that is wider than a phone is moved by the keys too
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>{caption}</caption>\n<thead>"
    );
    if !groups.is_empty() {
        out += "<tr>";
        for (name, columns) in groups {
            let _ = match name.as_str() {
                "" => write!(out, "<td colspan=\"{columns}\"></td>"),
                name => write!(
                    out,
                    "<th scope=\"colgroup\" colspan=\"{columns}\">{name}</th>"
                ),
            };
        }
        out += "</tr>\n";
    }
    for (k, row) in rows.iter().enumerate() {
        out += "<tr>";
        for (j, cell) in row.iter().enumerate() {
            let _ = match (k, j) {
                (0, _) if cell.is_empty() => write!(out, "<td></td>"),
                (0, _) => write!(out, "<th scope=\"col\">{cell}</th>"),
                (_, 0) => write!(out, "<th scope=\"row\">{cell}</th>"),
                _ => write!(out, "<td>{cell}</td>"),
            };
        }
        out += if k == 0 {
            "</tr></thead>\n<tbody>\n"
        } else {
            "</tr>\n"
        };
    }
    out + "</tbody></table></div>\n"
}

/// Cells of text.
pub fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(escape).to_vec()
}

/// A part of one, with a bar.
pub fn meter(part: f64) -> String {
    let part = part.clamp(0.0, 1.0);
    format!(
        "<span class=\"meter\" aria-hidden=\"true\"><i style=\"width:{:.1}%\"></i></span>{}",
        100.0 * part,
        text::percent(part)
    )
}

/// Hidden states and directions of θ.
pub fn identifiability(shown: &Fit) -> String {
    let (model, facts) = (&shown.model, &shown.facts);
    let mut out = String::new();
    let unseen = words::unseen(facts);
    let mut rows = vec![row([
        "hidden state",
        "record",
        "determined over",
        "typical std / scale",
    ])];
    for &i in &model.hidden() {
        let name = &model.states[i].name;
        for record in &facts.records {
            let Some(poor) = record.poorly_determined.get(name) else {
                continue;
            };
            let track = shown
                .tracks
                .iter()
                .find(|t| shown.facts_of(t).sha256 == record.sha256);
            let typical = track.filter(|_| record.role != Role::Test).map(|track| {
                let mut all: Vec<f64> = track.deviations.column(i).collect();
                all.sort_by(f64::total_cmp);
                text::percent(all[all.len() / 2] / facts.scales.scale[i])
            });
            rows.push(vec![
                escape(name),
                format!("{} ({})", escape(&record.file), record.role),
                if unseen.contains(&name.as_str()) {
                    "not at all: the records say nothing of it".into()
                } else {
                    meter(1.0 - poor)
                },
                typical.unwrap_or_default(),
            ]);
        }
    }
    if rows.len() > 1 {
        let caption = format!(
            "A state counts as determined where its standard deviation is below {} of its scale.",
            text::percent(DETERMINED_SCALE_PART)
        );
        out += &table(&caption, &rows);
    }
    if let Some(evidence) = &facts.evidence {
        let mut rows = vec![row(["part of θ", "directions", "determined", ""])];
        let parts = evidence.parts.iter();
        let parts = parts.map(|p| (p.name.as_str(), p.determined, p.directions));
        let all = ("all", evidence.determined, evidence.directions);
        for (name, determined, directions) in parts.chain([all]) {
            rows.push(vec![
                escape(name),
                directions.to_string(),
                format!("{determined:.1}"),
                meter(determined / directions.max(1) as f64),
            ]);
        }
        out += &table(
            "Directions of the parameters that the data determine; in the others the prior decides, and they do not matter along the records.",
            &rows,
        );
    } else {
        out += "<p>This solver does not say how many directions of the parameters the data determine; <code>--solver batch</code> does.</p>\n";
    }
    out += &relevance(facts);
    out
}

/// Which arguments of networks the data give reason to depend on.
fn relevance(facts: &Facts) -> String {
    if facts.relevance.is_empty() {
        return String::new();
    }
    let mut rows = vec![row([
        "network",
        "argument",
        "ln p with it, less without",
        "reason to depend on it",
    ])];
    for found in &facts.relevance {
        rows.push(vec![
            escape(&found.network),
            escape(&found.argument),
            format!("{:.0}", found.evidence),
            if found.needed {
                "yes"
            } else {
                "no: can be left out"
            }
            .into(),
        ]);
    }
    table(
        "Whether what was learned along the records is less likely as a function of the other arguments alone.",
        &rows,
    )
}

/// An error of a free run, or that there is none.
pub fn error(found: Option<&Option<f64>>) -> String {
    found.map_or(String::new(), |e| match e {
        Some(e) => text::percent(*e),
        None => "<b class=\"bad\">diverged</b>".into(),
    })
}

/// The errors over each record.
pub fn scores(shown: &Fit) -> String {
    let model = &shown.model;
    let mut out = String::new();
    for record in &shown.facts.records {
        let mut rows = vec![row(["", "unit", "", "smoothed", "one step", "free run"])];
        let hidden = model.hidden();
        let states = model.states.iter().enumerate().map(|(i, s)| {
            let kind = if hidden.contains(&i) {
                "hidden"
            } else {
                "measured"
            };
            (
                s.name.as_str(),
                s.unit.as_str(),
                format!("{kind} state"),
                format!("truth_{}", s.name),
            )
        });
        let channels = model.measurements.iter().map(|m| {
            let (name, unit) = (m.name.as_str(), m.unit.as_str());
            (name, unit, "measurement".to_string(), m.name.clone())
        });
        for (name, unit, kind, column) in states.chain(channels) {
            if !record.nrmse.contains_key(&column) {
                continue;
            }
            rows.push(vec![
                escape(name),
                escape(unit),
                kind,
                error(record.nrmse_smoothed.get(&column)),
                error(record.nrmse_one_step.get(&column)),
                error(record.nrmse.get(&column)),
            ]);
        }
        out += &table(&caption(record), &rows);
    }
    out + "<p class=\"hint\">nRMSE: root mean square error over the range; a state’s against its truth, where the record has it. Smoothed and one step lean on the data all the time; the free run does not look at them again.</p>\n"
}

/// Readings that were set aside; nothing where there are none.
pub fn suspects(shown: &Fit) -> String {
    let facts = &shown.facts;
    if facts.suspects.is_empty() {
        return String::new();
    }
    let head = [
        "record",
        "row",
        "time",
        "channel",
        "read",
        "expected",
        "deviations",
    ];
    let mut rows = vec![row(head)];
    for suspect in &facts.suspects {
        rows.push(row([
            &suspect.file,
            &suspect.row.to_string(),
            &text::with_unit(suspect.time, &shown.model.time_unit),
            &suspect.channel,
            &text::with_unit(suspect.value, &suspect.unit),
            &text::with_unit(suspect.expected, &suspect.unit),
            &text::number(suspect.deviations),
        ]));
    }
    table(
        "Readings that contradict the others: set aside, neither learned from nor scored.",
        &rows,
    )
}

fn caption(record: &RecordFacts) -> String {
    let role = match record.role {
        Role::Train => "learned from".into(),
        Role::Validate => "validation, never learned from".into(),
        Role::Test => format!(
            "test, {} predicted after {} that show the start",
            text::count(record.scored, "sample"),
            record.samples - record.scored
        ),
    };
    format!(
        "<b>{}</b>, {}: {role}",
        escape(&record.file),
        text::count(record.samples, "sample")
    )
}

/// Settings, seeds, versions, checksums, and the command.
pub fn provenance(shown: &Fit) -> String {
    let facts = &shown.facts;
    let mut out = String::new();
    if let Some(again) = again(facts, &shown.name) {
        let _ = writeln!(
            out,
            "<p>The same fit again, bit for bit on the same machine:</p>\n<p class=\"command\"><code id=\"again-{0}\">{1}</code><button type=\"button\" data-copy=\"again-{0}\">Copy</button></p>",
            escape(&shown.name),
            escape(&again)
        );
    }
    let passes = facts.checkpoint.as_ref().map_or(0, Checkpoint::passes);
    let mut rows = vec![row(["what", "value"])];
    for (label, value) in [
        ("given command", facts.command.clone()),
        ("Latens", facts.version.clone()),
        ("model", format!("{} ({})", facts.model, facts.model_file)),
        ("model, SHA-256", facts.model_sha256.clone()),
        ("solver", facts.solver.clone()),
        ("seed", facts.seed.to_string()),
        (
            words::passes(&facts.solver),
            format!("{} done, kept as of {passes}", facts.passes.len()),
        ),
        ("threads", facts.threads.to_string()),
        ("time", text::seconds(facts.seconds)),
        (
            "sample time",
            text::with_unit(facts.sample_time, &shown.model.time_unit),
        ),
    ] {
        rows.push(row([label, &value]));
    }
    for record in &facts.records {
        let label = format!("{} ({}), SHA-256", record.file, record.role);
        rows.push(row([&label, &record.sha256]));
    }
    out += &table("What was run.", &rows);
    let mut rows = vec![row([
        "seed",
        "error of the free run",
        "kept",
        "why it failed",
    ])];
    for attempt in &facts.attempts {
        let error = if attempt.error.is_finite() {
            text::percent(attempt.error)
        } else {
            "none".into()
        };
        let kept = if attempt.kept { "yes" } else { "" };
        let why = attempt.failure.as_deref().unwrap_or("");
        rows.push(row([&attempt.seed.to_string(), &error, kept, why]));
    }
    if rows.len() > 2 {
        out += &table("Starts.", &rows);
    }
    let settings = serde_json::to_value(&facts.settings).unwrap_or(Value::Null);
    let mut rows = vec![row(["setting", "value"])];
    for (name, value) in settings.as_object().into_iter().flatten() {
        rows.push(row([name, &value.to_string()]));
    }
    let _ = write!(
        out,
        "<details><summary>All settings</summary>{}</details>\n<details><summary>What the fit said</summary><ul>{}</ul></details>\n<details><summary>Model file</summary><pre>{}</pre></details>\n",
        table("Every setting; fit.json has them with all digits.", &rows),
        words::summary(&shown.model, facts)
            .iter()
            .map(|line| format!("<li>{}</li>", escape(line)))
            .collect::<String>(),
        escape(&shown.model.text)
    );
    out
}

/// The command that repeats a run from its folder, quoted for a shell; a demo repeats itself. `None` where
/// the fit was not made by a command: nobody should copy what a stranger wrote there.
fn again(facts: &Facts, folder: &str) -> Option<String> {
    let given = text::shell::words(&facts.command)?;
    let line = |words: &[String]| {
        let quoted: Vec<String> = words.iter().map(|word| text::shell::quoted(word)).collect();
        quoted.join(" ")
    };
    match given.get(..2)? {
        [program, verb] if program == "latens" && verb == "demo" => return Some(line(&given)),
        [program, verb] if program == "latens" && verb == "fit" => {}
        _ => return None,
    }
    let mut command = ["latens", "fit"].map(String::from).to_vec();
    command.push(format!("{folder}/model.toml"));
    let tail = facts.command.contains("--validate-tail");
    for (role, option) in [
        (Role::Train, None),
        (Role::Validate, Some("--validate")),
        (Role::Test, Some("--test")),
    ] {
        let records = facts.records.iter().filter(|r| r.role == role);
        for record in records.filter(|_| role != Role::Validate || !tail) {
            command.extend(option.map(String::from));
            // no file is taken for an option
            let dash = if record.file.starts_with('-') {
                "./"
            } else {
                ""
            };
            command.push(format!("{dash}{}", record.file));
        }
    }
    command.extend(["--settings", folder, "-o", "again"].map(String::from));
    // what columns and cuts were asked for is not a setting of the solver
    for (k, word) in given.iter().enumerate() {
        let taken = ["--map", "--step", "--validate-tail", "--warmup"];
        if taken.contains(&word.as_str()) {
            command.push(word.clone());
            command.extend(given.get(k + 1).cloned());
        } else if taken.iter().any(|t| word.starts_with(&format!("{t}="))) {
            command.push(word.clone());
        }
    }
    Some(line(&command))
}
