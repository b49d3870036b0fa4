//! The page: one HTML file that holds all it shows and asks nobody for more.

use std::fmt::Write;

use latens::look::RESOLUTION;
use serde_json::json;

use crate::innovations::{self, Innovations};
use crate::plot::{self, Plot, escape};
use crate::tables::{comparison, identifiability, provenance, scores, suspects};
use crate::verdict::{self, Verdict};
use crate::{colours, figures, foreseen, panels, residuals, words};
use latens::Door;
use latens::fit::{Fit, Role};
use latens::text;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of a run; of several, laid over each other.
///
/// ```
/// let page = latens_report::page::html(&[latens::example_fit()]);
/// assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
/// ```
pub fn html(runs: &[Fit]) -> String {
    let found: Vec<Vec<Innovations>> = runs.iter().map(of_first_record).collect();
    let title = match runs {
        [one] => one.model.name.clone(),
        several => format!("{} runs", several.len()),
    };
    let courses = panels::courses(runs);
    let data = json!({
        "time_unit": runs.first().map_or("", |r| r.model.time_unit.as_str()),
        "runs": runs.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
        "courses": panels::json(&courses),
    });
    let mut body = String::new();
    body += &heading(runs, &title);
    for shown in runs {
        let verdict = verdict::of_run(shown);
        body += &verdict_section(shown, &verdict, runs.len() > 1);
    }
    body += &tests_section(runs);
    let parts = runs
        .iter()
        .map(|shown| folded(runs, shown, identifiability(shown)));
    let parts: String = parts.collect();
    body += &section("identifiability", "What the data determine", &parts);
    body += &equation_section(runs);
    body += &states_section(runs);
    let each = || runs.iter().zip(&found);
    body += &section(
        "innovations",
        "What the model did not foresee",
        &each()
            .map(|(shown, found)| folded(runs, shown, innovation_part(shown, found)))
            .collect::<String>(),
    );
    body += &convergence_section(runs);
    let parts: String = match runs.len() {
        1 => runs.iter().map(scores).collect(),
        _ => comparison(runs),
    };
    let with = runs.iter().filter(|shown| !shown.facts.suspects.is_empty());
    let set_aside = with.map(|shown| folded(runs, shown, suspects(shown)));
    let parts = parts + &set_aside.collect::<String>();
    body += &section("scores", "Scores", &parts);
    let parts = runs
        .iter()
        .map(|shown| folded(runs, shown, provenance(shown)));
    body += &section("repeat", "Repeat this run", &parts.collect::<String>());
    body += "</main>\n";
    // no text of a model file can end the element
    let data = data.to_string().replace('<', "\\u003c");
    let scripts = format!(
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n"
    );
    document(&title, &body, &scripts)
}

/// A page that holds all it shows, in light and dark, around a body; `scripts` are elements.
pub fn document(title: &str, body: &str, scripts: &str) -> String {
    let variables = |dark: bool| -> String {
        let each = colours::COLOURS.iter();
        each.map(|(name, day, night)| format!("--{name}:{};", if dark { night } else { day }))
            .collect()
    };
    let style = colours::style(|name| format!("var(--{name})"));
    // data: is the empty icon, without which a browser asks for one
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"latens {}\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{} – Latens</title>\n<style>\n:root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{STYLE}{style}\n</style>\n</head>\n<body>\n{body}{scripts}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        escape(title),
        variables(false),
        variables(true),
    )
}

fn of_first_record(shown: &Fit) -> Vec<Innovations> {
    let track = shown.trained().into_iter().next();
    track.map_or(vec![], |track| innovations::innovations(shown, track))
}

/// A part of a page; its content is HTML.
pub fn section(id: &str, title: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n{content}</section>\n"
    )
}

/// Plain text in which backticks stand around what is typed.
pub fn prose(text: &str) -> String {
    let parts = text.split('`').map(escape).enumerate();
    let typed = |(k, part): (usize, String)| match k % 2 {
        0 => part,
        _ => format!("<code>{part}</code>"),
    };
    parts.map(typed).collect()
}

/// Of several runs each part is folded away under the run's name.
fn folded(runs: &[Fit], shown: &Fit, content: String) -> String {
    match runs.len() {
        1 => content,
        _ => format!(
            "<details><summary>{}</summary>{content}</details>\n",
            escape(&shown.name)
        ),
    }
}

fn heading(runs: &[Fit], title: &str) -> String {
    let what = match runs {
        [one] => format!(
            "{} · {} · {}",
            escape(&one.name),
            one.facts.solver,
            text::seconds(one.facts.seconds)
        ),
        several => several
            .iter()
            .map(|r| escape(&r.name))
            .collect::<Vec<_>>()
            .join(" · "),
    };
    let tests = runs.iter().any(|run| !run.tests.is_empty());
    let tests = tests.then_some(("tests", "Tests"));
    let rest = [
        ("identifiability", "Identifiability"),
        ("equation", "Equation"),
        ("states", "States"),
        ("innovations", "Innovations"),
        ("convergence", "Convergence"),
        ("scores", "Scores"),
        ("repeat", "Repeat"),
    ];
    let links: Vec<_> = tests.into_iter().chain(rest).collect();
    header(title, &what, &links)
}

/// The top of a page, with links to its sections by id and name; `what` is HTML.
pub fn header(title: &str, what: &str, links: &[(&str, &str)]) -> String {
    let links = links.iter();
    let links = links.map(|(id, name)| format!("<a href=\"#{id}\">{}</a>", escape(name)));
    format!(
        "<header>\n<p class=\"brand\">Latens report</p>\n<h1>{}</h1>\n<p class=\"what\">{what}</p>\n<nav aria-label=\"Sections\">{}</nav>\n</header>\n<main>\n",
        escape(title),
        links.collect::<String>()
    )
}

fn verdict_section(shown: &Fit, verdict: &Verdict, several: bool) -> String {
    let id = if several {
        format!("verdict-{}", escape(&shown.name))
    } else {
        "verdict".into()
    };
    let title = if several {
        format!("Verdict on {}", escape(&shown.name))
    } else {
        "Verdict".into()
    };
    let mut content = String::new();
    for alarm in &verdict.alarms {
        let _ = writeln!(
            content,
            "<p class=\"alarm\" role=\"alert\">{}</p>",
            prose(alarm)
        );
    }
    for (name, sentence) in ["Fit", "Trust", "Next"].iter().zip(&verdict.sentences) {
        let _ = writeln!(
            content,
            "<p class=\"sentence\"><span>{name}</span><span class=\"said\">{}</span></p>",
            prose(sentence)
        );
    }
    let warnings = &shown.facts.warnings;
    if !warnings.is_empty() {
        let each = warnings
            .iter()
            .map(|w| format!("<li>{}</li>", prose(&w.at(Door::CommandLine))));
        let _ = writeln!(
            content,
            "<details class=\"warnings\" open><summary>{} of the fit</summary><ul>{}</ul></details>",
            text::count(warnings.len(), "warning"),
            each.collect::<String>()
        );
    }
    section(&id, &title, &content)
}

/// The records that played no part: they say most about a model.
fn tests_section(runs: &[Fit]) -> String {
    let tests = |run: &Fit| {
        let records = run.facts.records.iter();
        records.filter(|r| r.role == Role::Test).count()
    };
    if runs.iter().all(|run| tests(run) == 0) {
        return String::new();
    }
    let mut content = String::from(
        "<p class=\"hint\">No part of the fit has seen these records. From the state that their first samples show, the learned model runs free to the end, driven by the inputs alone.</p>\n",
    );
    for shown in runs {
        let mut own = String::new();
        for test in &shown.tests {
            let facts = &shown.facts.records[test.place];
            let _ = writeln!(
                own,
                "<h3>{}</h3>\n{}",
                escape(&facts.file),
                pairs(&foreseen::plots(shown, test), [560.0, 260.0])
            );
        }
        let unknown = tests(shown) - shown.tests.len();
        if unknown > 0 {
            let _ = writeln!(
                own,
                "<p class=\"hint\">{} not kept in the run: see the scores, or <code>latens predict</code> for the course.</p>",
                text::count(unknown, "test record")
            );
        }
        content += &folded(runs, shown, own);
    }
    section("tests", "Records that played no part", &content)
}

fn states_section(runs: &[Fit]) -> String {
    let mut content = String::from(
        "<p class=\"hint\">Drag over a panel to zoom, all panels follow; Shift and drag, or the arrow keys with Shift, to pan; double-click or 0 for the whole record. Arrow keys move the cursor, + and − zoom.</p>\n",
    );
    for missing in runs.iter().flat_map(|r| &r.missing) {
        let _ = writeln!(
            content,
            "<p class=\"alarm\" role=\"alert\">The states over time cannot be shown: {}</p>",
            escape(missing)
        );
    }
    content += "<div id=\"controls\"></div>\n<div id=\"panels\"><noscript>The states over time need JavaScript, which is part of this file.</noscript></div>\n";
    section("states", "States over time", &content)
}

/// Plots in a grid, as many beside each other as there is room for.
pub fn grid(plots: &[Plot], size: [f64; 2]) -> String {
    arranged("grid", plots, size)
}

/// Plots of which two belong beside each other.
pub fn pairs(plots: &[Plot], size: [f64; 2]) -> String {
    arranged("grid pairs", plots, size)
}

fn arranged(class: &str, plots: &[Plot], size: [f64; 2]) -> String {
    let each = plots.iter().map(|p| {
        let spoken = plot::spoken(p);
        format!("<figure>{}</figure>\n", p.inline(size[0], size[1], &spoken))
    });
    let each: String = each.collect();
    format!("<div class=\"{class}\">\n{each}</div>\n")
}

fn equation_section(runs: &[Fit]) -> String {
    let plots = figures::equations(runs);
    let mut content = String::new();
    let networks = |run: &Fit| !run.model.system.networks().is_empty();
    if runs.iter().any(|run| !run.facts.ensemble.is_empty()) {
        content += "<p class=\"hint\">Of an ensemble, its best member is shown.</p>\n";
    }
    if plots.is_empty() && runs.iter().any(networks) {
        content +=
            "<p>Without the states over time nobody knows where the networks were asked.</p>\n";
    } else if plots.is_empty() {
        content += "<p>The model calls no network: what was learned is its constants, above.</p>\n";
    } else {
        content += "<p class=\"hint\">Each network along one argument, the others held at the middle of the records. The coloured line is where the records went, the thin grey one where the network only continues; the band is what the uncertainty of the parameters allows, to first order. Grey columns show how many samples lie where.</p>\n";
        if plots
            .iter()
            .any(|p| p.marks.iter().any(|m| m.class == "truth"))
        {
            content += "<p class=\"hint\">The dashed line is the true equation: what the network would have to be, given the learned constants.</p>\n";
        }
        content += &grid(&plots, [390.0, 270.0]);
    }
    if let [one] = runs
        && let Some(field) = figures::field(one)
    {
        let spoken = plot::spoken(&field);
        let _ = writeln!(
            content,
            "<figure class=\"field\">{}</figure>",
            field.inline(560.0, 480.0, &spoken)
        );
    }
    section("equation", "The learned equation", &content)
}

fn innovation_part(shown: &Fit, found: &[Innovations]) -> String {
    if found.is_empty() {
        return "<p>The filter leaves the finite numbers on this record, or there are no states to start it from: there is nothing to compare.</p>\n".into();
    }
    let mut content = format!(
        "<p class=\"hint\">Each measurement of {} against what a filter with the learned equations foresees from those before it, in units of its own standard deviation. Right equations and right noise leave white, normal innovations whose mean square is 1.</p>\n",
        escape(&shown.facts_of(shown.trained()[0]).file)
    );
    for one in found {
        let mut levels = words::noise_levels(&shown.model, &shown.facts);
        let bare = levels.any(|(name, _, part)| name == one.channel && part < 1.001 * RESOLUTION);
        let white = match one.coloured() {
            part if part <= 0.1 => "white".into(),
            _ if bare && one.consistency < 1.0 => "not white, as is no wonder: the data have hardly any noise, and what is left is the small error of the model itself".into(),
            part => format!(
                "not white, {} of the lags are beyond chance: something is left that the model could explain",
                text::percent(part)
            ),
        };
        let _ = writeln!(
            content,
            "<p><b>{}</b>: mean ν²/s {}, {white}.{}</p>",
            escape(&one.channel),
            text::number(one.consistency),
            if one.inputs.is_empty() && !shown.model.inputs.is_empty() {
                " No input moves, so nothing is drawn against one."
            } else {
                ""
            }
        );
        let plots = residuals::innovation(one, &shown.model.time_unit);
        content += &grid(&plots, [390.0, 240.0]);
    }
    content + &residuals::tests(shown)
}

fn convergence_section(runs: &[Fit]) -> String {
    let plots = figures::convergence(runs);
    let content = if plots.is_empty() {
        "<p>This fit has no stage.</p>\n".into()
    } else {
        grid(&plots, [390.0, 260.0])
    };
    section("convergence", "Convergence", &content)
}
