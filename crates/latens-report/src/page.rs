//! The page: one HTML file that holds all it shows and asks nobody for more.

use std::fmt::Write;

use latens::look::RESOLUTION;
use serde_json::json;

use crate::innovations::{self, Innovations};
use crate::plot::{Plot, escape};
use crate::tables::{identifiability, provenance, scores, suspects};
use crate::verdict::{self, Verdict};
use crate::{
    beside, colours, constants, figures, foreseen, learned, panels, play, residuals, words,
};
use latens::Door;
use latens::fit::{Fit, Role};
use latens::model::Hold;
use latens::text;

const STYLE: &str = include_str!("page/page.css");
/// What every page runs, and what the page of a fit adds to it.
const FIGURES: &str = concat!(
    include_str!("page/common.js"),
    include_str!("page/figures.js")
);
const PANELS: &str = concat!(
    include_str!("page/panels.js"),
    include_str!("page/formula.js"),
    include_str!("page/play.js")
);

/// The page of a run; of several, laid over each other.
///
/// ```
/// let page = latens_report::page::html(&[latens::example_fit()]);
/// assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
/// ```
pub fn html(runs: &[Fit]) -> String {
    let title = match runs {
        [fit] => fit.model.name.clone(),
        several => format!("{} runs", several.len()),
    };
    let courses = panels::courses(runs);
    // of several runs none is played with
    let played = match runs {
        [fit] => play::json(fit),
        _ => None,
    };
    let data = json!({
        "time_unit": runs.first().map_or("", |r| r.model.time_unit.as_str()),
        "straight": runs.first().is_some_and(|r| r.model.hold.contains(&Hold::FirstOrder)),
        "runs": runs.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
        "courses": panels::json(&courses),
        "play": played,
    });
    let several = runs.len() > 1;
    let by_fit = |part: &dyn Fn(&Fit) -> String| -> String {
        let parts = runs.iter().map(|shown| (shown, part(shown)));
        let parts = parts.filter(|(_, content)| !content.is_empty());
        parts
            .map(|(shown, content)| folded(runs, shown, content))
            .collect()
    };
    let mut sections = Sections::default();
    if several {
        sections.add(
            "comparison",
            "Comparison",
            "Side by side",
            comparison_part(runs),
        );
        for (k, shown) in runs.iter().enumerate() {
            let title = format!("Verdict on {}", escape(&shown.name));
            let verdict = verdict_part(shown, &verdict::of_run(shown));
            sections.text += &section(&format!("verdict-{}", k + 1), &title, &verdict);
        }
    } else if let [fit] = runs {
        let verdict = verdict_part(fit, &verdict::of_run(fit));
        sections.text += &section("verdict", "Verdict", &verdict);
    }
    sections.add(
        "tests",
        "Tests",
        "Records that played no part",
        tests_part(runs),
    );
    if !several {
        sections.add(
            "constants",
            "Constants",
            "Constants",
            by_fit(&constants::section),
        );
    }
    sections.add(
        "equation",
        "Equation",
        "The learned equation",
        equation_part(runs),
    );
    let is_played = data["play"].is_object();
    if is_played {
        sections.add("play", "Play", "Play", play_part(runs));
    }
    sections.add("states", "States", "States over time", states_part(runs));
    let unforeseen = by_fit(&|shown| innovation_part(shown, &of_first_record(shown)));
    sections.add(
        "innovations",
        "Innovations",
        "What the model did not foresee",
        unforeseen,
    );
    let determined = by_fit(&identifiability);
    sections.add(
        "identifiability",
        "Identifiability",
        "What the data determine",
        determined,
    );
    sections.add(
        "convergence",
        "Convergence",
        "Convergence",
        convergence_part(runs),
    );
    let parts = if several {
        String::new()
    } else {
        by_fit(&scores)
    } + &by_fit(&suspects);
    sections.add("scores", "Scores", "Scores", parts);
    sections.add("repeat", "Repeat", "Repeat this run", by_fit(&provenance));
    let body = format!(
        "{}{}</main>\n",
        heading(runs, &title, &sections.links),
        sections.text
    );
    // no text of a model file can end the element
    let data = data.to_string().replace('<', "\\u003c");
    let model = match runs {
        [fit] if is_played => latens_export::script(fit),
        _ => "null".into(),
    };
    let scripts = format!(
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\nconst LEARNED_MODEL = {model};\n</script>\n"
    );
    written(&title, &body, &scripts, PANELS)
}

/// The sections of a page with the links to them; one without content is left out.
#[derive(Default)]
struct Sections {
    text: String,
    links: Vec<(&'static str, &'static str)>,
}

impl Sections {
    fn add(&mut self, id: &'static str, link: &'static str, title: &str, content: String) {
        if !content.is_empty() {
            self.links.push((id, link));
            self.text += &section(id, title, &content);
        }
    }
}

/// A page that holds all it shows, in light and dark, around a body; `scripts` are elements.
pub fn document(title: &str, body: &str, scripts: &str) -> String {
    written(title, body, scripts, "")
}

fn written(title: &str, body: &str, scripts: &str, more: &str) -> String {
    let variables = |dark: bool| -> String {
        let pairs = colours::COLOURS.iter();
        pairs
            .map(|(name, day, night)| format!("--{name}:{};", if dark { night } else { day }))
            .collect()
    };
    let style = colours::style(|name| format!("var(--{name})"));
    // figures that are saved are on white
    let light = |name: &str| {
        let found = colours::COLOURS.iter().find(|(key, ..)| *key == name);
        found.map_or(String::new(), |(_, day, _)| (*day).to_string())
    };
    let saved = colours::style(light);
    let points = format!(
        ".plot .points{{fill:none;stroke:{};stroke-linecap:round;stroke-width:2.6}}",
        light("grey")
    );
    // data: is the empty icon, without which a browser asks for one
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"latens {}\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{} – Latens</title>\n<style>\n:root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{STYLE}{style}\n</style>\n</head>\n<body>\n{body}{scripts}<script type=\"text/css\" id=\"figure-style\">{saved}{points}</script>\n<script>\n(() => {{\n\"use strict\";\n{FIGURES}{more}}})();\n</script>\n</body>\n</html>\n",
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

fn heading(runs: &[Fit], title: &str, links: &[(&str, &str)]) -> String {
    let subtitle = match runs {
        [fit] => format!(
            "{} · {} · {}",
            escape(&fit.name),
            fit.facts.solver,
            text::seconds(fit.facts.seconds)
        ),
        several => several
            .iter()
            .map(|r| escape(&r.name))
            .collect::<Vec<_>>()
            .join(" · "),
    };
    header(title, &subtitle, links)
}

/// The top of a page, with links to its sections by id and name; `subtitle` is HTML.
pub fn header(title: &str, subtitle: &str, links: &[(&str, &str)]) -> String {
    let links = links.iter();
    let links = links.map(|(id, name)| format!("<a href=\"#{id}\">{}</a>", escape(name)));
    format!(
        "<header>\n<p class=\"brand\">Latens report</p>\n<h1>{}</h1>\n<p class=\"what\">{subtitle}</p>\n<nav aria-label=\"Sections\">{}</nav>\n</header>\n<main>\n",
        escape(title),
        links.collect::<String>()
    )
}

fn verdict_part(shown: &Fit, verdict: &Verdict) -> String {
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
        let items = warnings
            .iter()
            .map(|w| format!("<li>{}</li>", prose(&w.at(Door::CommandLine))));
        let _ = writeln!(
            content,
            "<details class=\"warnings\" open><summary>{} of the fit</summary><ul>{}</ul></details>",
            text::count(warnings.len(), "warning"),
            items.collect::<String>()
        );
    }
    content
}

/// Several runs: the table first, then each constant as a picture.
fn comparison_part(runs: &[Fit]) -> String {
    let plots = constants::plots(runs);
    let mut content = beside::section(runs);
    if !plots.is_empty() {
        content += "<p class=\"hint\">Each constant in the runs of the table, from left to right: the bar is its 95 % interval.</p>\n";
        content += &grid(&plots, [390.0, 230.0]);
    }
    content
}

/// The records that played no part: they say most about a model.
fn tests_part(runs: &[Fit]) -> String {
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
        let mut figures = String::new();
        for test in &shown.tests {
            let facts = &shown.facts.records[test.place];
            let _ = writeln!(
                figures,
                "<h3>{}</h3>\n{}",
                escape(&facts.file),
                pairs(&foreseen::plots(shown, test), [560.0, 260.0])
            );
        }
        let unknown = tests(shown) - shown.tests.len();
        if unknown > 0 {
            let _ = writeln!(
                figures,
                "<p class=\"hint\">{} not kept in the run: see the scores, or <code>latens predict</code> for the course.</p>",
                text::count(unknown, "test record")
            );
        }
        content += &folded(runs, shown, figures);
    }
    content
}

/// What can be done with the panels, by mouse and keys, and by fingers.
const GESTURES: &str = "<p class=\"hint by-mouse\">Drag over a panel to zoom, all panels follow; Shift and drag, or the arrow keys with Shift, to pan; double-click or 0 for the whole record. Arrow keys move the cursor, + and − zoom.</p>\n<p class=\"hint by-touch\">Pinch a panel to zoom, all panels follow; swipe sideways to pan; tap for values, tap twice for the whole record.</p>\n";

fn states_part(runs: &[Fit]) -> String {
    let mut content = String::from(GESTURES);
    for missing in runs.iter().flat_map(|r| &r.missing) {
        let _ = writeln!(
            content,
            "<p class=\"alarm\" role=\"alert\">The states over time cannot be shown: {}</p>",
            escape(missing)
        );
    }
    content += "<div id=\"controls\"></div>\n<div id=\"panels\"><noscript>The states over time need JavaScript, which is part of this file.</noscript></div>\n";
    content
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
    let figures = plots.iter().map(|p| p.figure("", size[0], size[1]));
    let figures: String = figures.collect();
    format!("<div class=\"{class}\">\n{figures}</div>\n")
}

/// Start, constants and inputs to be changed, and what the learned model makes of them.
fn play_part(runs: &[Fit]) -> String {
    let ensemble = runs.iter().any(|run| !run.facts.ensemble.is_empty());
    let member = if ensemble {
        " Of an ensemble, its best member is played with."
    } else {
        ""
    };
    let group = |id: &str, title: &str, is_present: bool| {
        if is_present {
            format!("<fieldset id=\"{id}\"><legend>{title}</legend></fieldset>\n")
        } else {
            format!("<div id=\"{id}\"></div>\n")
        }
    };
    let any = |count: &dyn Fn(&Fit) -> usize| runs.iter().any(|run| count(run) > 0);
    format!(
        "<p class=\"hint\">The learned model, simulated here and now. Change where it starts, its constants or what drives it. The dashed line is the run as it was learned; a shaded stretch is beyond what training has seen.{member}</p>\n<div class=\"play\">\n<div id=\"play-settings\" role=\"group\" aria-label=\"What is simulated\">\n<p><label for=\"play-record\">Time and inputs of </label><select id=\"play-record\"></select></p>\n{}{}{}<p class=\"buttons\"><button type=\"button\" id=\"play-reset\">As learned</button> <button type=\"button\" id=\"play-save\">Save as CSV</button></p>\n</div>\n<div>\n<p id=\"play-status\" role=\"status\"></p>\n<div id=\"play-panels\"></div>\n</div>\n</div>\n",
        group(
            "play-constants",
            "Constants",
            any(&|run| run.model.unknowns.len())
        ),
        group("play-starts", "Start", true),
        group("play-inputs", "Inputs", any(&|run| run.model.inputs.len())),
    )
}

fn equation_part(runs: &[Fit]) -> String {
    let plots = learned::equations(runs);
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
        let true_values = plots
            .iter()
            .any(|p| p.marks.iter().any(|m| m.class == "truth"));
        content += "<p class=\"hint\">First each network at the samples of the records: what it said there, over each of its arguments, with the 95 % interval that the uncertainty of the parameters allows, to first order. Then slices: one argument moves, the others stay as at the sample that is marked. The axis shows what was learned where the records went; elsewhere the network only continues, pale and without a band. Grey columns show how many samples lie where.</p>\n";
        if true_values {
            content += "<p class=\"hint\">True is what the network would have to be for the equations to be the true ones, given the learned constants.</p>\n";
        }
        content += &grid(&plots, [390.0, 270.0]);
    }
    if let [fit] = runs
        && let Some(field) = figures::field(fit)
    {
        content += &field.figure(" class=\"field\"", 560.0, 480.0);
    }
    content
}

fn innovation_part(shown: &Fit, found: &[Innovations]) -> String {
    if found.is_empty() {
        return "<p>The filter leaves the finite numbers on this record, or there are no states to start it from: there is nothing to compare.</p>\n".into();
    }
    let mut content = format!(
        "<p class=\"hint\">Each measurement of {} against what a filter with the learned equations foresees from those before it, in units of its own standard deviation. Right equations and right noise leave white, normal innovations whose mean square is 1.</p>\n",
        escape(&shown.facts_of(shown.trained()[0]).file)
    );
    for innovations in found {
        let mut levels = words::noise_levels(&shown.model, &shown.facts);
        let bare =
            levels.any(|(name, _, part)| name == innovations.channel && part < 1.001 * RESOLUTION);
        let white = match innovations.coloured() {
            part if part <= 0.1 => "white".into(),
            _ if bare && innovations.consistency < 1.0 => "not white, as is no wonder: the data have hardly any noise, and what is left is the small error of the model itself".into(),
            part => format!(
                "not white, {} of the lags are beyond chance: something is left that the model could explain",
                text::percent(part)
            ),
        };
        let _ = writeln!(
            content,
            "<p><b>{}</b>: mean ν²/s {}, {white}.{}</p>",
            escape(&innovations.channel),
            text::number(innovations.consistency),
            if innovations.inputs.is_empty() && !shown.model.inputs.is_empty() {
                " No input moves, so nothing is drawn against one."
            } else {
                ""
            }
        );
        let plots = residuals::innovation(innovations, &shown.model.time_unit);
        content += &grid(&plots, [390.0, 240.0]);
    }
    content + &residuals::tests(shown)
}

fn convergence_part(runs: &[Fit]) -> String {
    let plots = figures::convergence(runs);
    if plots.is_empty() {
        return "<p>This fit has no stage.</p>\n".into();
    }
    grid(&plots, [390.0, 260.0])
}
