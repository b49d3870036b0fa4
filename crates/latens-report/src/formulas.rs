//! The page of formulas that were found in place of a fit's networks.

use std::fmt::Write;

use latens::Fit;
use latens::text;
use latens_distill::{Curve, Distilled, FrontPoint, Ranked};

use crate::colours::of_run;
use crate::innovations::NORMAL_DEVIATIONS;
use crate::page;
use crate::plot::{Axis, Mark, Plot, Shape, escape, labelled};
use crate::tables::table;

/// Arguments over which curves are drawn.
const ARGUMENTS: usize = 4;
/// In place of a unit that nothing says.
const UNKNOWN_UNIT: &str = "unit not given";

/// The page of what [`latens_distill::distill`] found for a fit; `has_files` where model files lie beside it.
///
/// ```
/// use latens_distill::{Options, Unwatched, distill};
/// let fit = latens::example_fit();
/// let options = Options { candidates: 2, ..Options::default() };
/// let found = distill(&fit, &options, &Unwatched)?;
/// assert!(latens_report::formulas::html(&fit, &found, false).contains("From simple to exact"));
/// # Ok::<(), latens::Error>(())
/// ```
pub fn html(fit: &Fit, found: &Distilled, has_files: bool) -> String {
    let mut short = String::new();
    for sentence in &found.verdict {
        let _ = writeln!(short, "<p>{}</p>", page::prose(sentence));
    }
    let mut sections = vec![
        ("short", "In short", short),
        ("formulas", "Formulas", formulas(found, has_files)),
    ];
    let fronts = fronts(found);
    if !fronts.is_empty() {
        let hint = "<p class=\"hint\">How closely formulas of so many constants can follow the network where training went: what more constants no longer improve, they only imitate.</p>\n";
        let content = format!("{hint}{}", page::grid(&fronts, [390.0, 250.0]));
        sections.push(("front", "From simple to exact", content));
    }
    let over = over(found);
    if !over.is_empty() {
        let hint = "<p class=\"hint\">Each formula, with the constants of its own fit to the records, and the network with its 95 % interval, at points that training met. Beside it: what the formula leaves of the network; within the bars it is what the records allow, beyond them formula and network disagree.</p>\n";
        let content = format!("{hint}{}", page::pairs(&over, [560.0, 270.0]));
        sections.push(("curves", "Over each other", content));
    }
    let links: Vec<(&str, &str)> = sections.iter().map(|(id, name, _)| (*id, *name)).collect();
    let subtitle = format!(
        "{} · {} in place of its networks",
        escape(&fit.name),
        text::count(found.formulas.len(), "formula")
    );
    let title = format!("{}: formulas", fit.model.name);
    let mut body = page::header(&title, &subtitle, &links);
    for (id, name, content) in &sections {
        body += &page::section(id, name, content);
    }
    body += "</main>\n";
    page::document(&title, &body, "")
}

/// A row for each formula, the network that they stand for, and the constants of the first.
fn formulas(found: &Distilled, has_files: bool) -> String {
    let validated = found.network_validation.is_some();
    let error = |e: Option<f64>| e.map_or("–".to_string(), |e| format!("{e:.2e}"));
    let evidence = |e: Option<f64>| e.map_or("–".to_string(), |e| format!("{e:.0}"));
    let mut head = vec!["", "formula", "size", "constants", "ln p", "free run"];
    if validated {
        head.push("validation");
    }
    let mut rows = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
    for formula in &found.formulas {
        let rank = if has_files {
            format!("<a href=\"{0}.toml\">{0}</a>", formula.rank)
        } else {
            formula.rank.to_string()
        };
        let mut row = vec![
            rank,
            shown(formula),
            formula.size.to_string(),
            formula.constants.len().to_string(),
            evidence(formula.evidence),
            error(formula.free_run),
        ];
        row.extend(validated.then(|| error(formula.validation)));
        rows.push(row);
    }
    let mut row = vec![
        String::new(),
        "the network as it was learned".into(),
        "–".into(),
        found.network_size.to_string(),
        evidence(found.network_evidence),
        error(found.network_free_run),
    ];
    row.extend(validated.then(|| error(found.network_validation)));
    rows.push(row);
    let files = if has_files {
        " The number of each leads to its model file, ready for <code>latens fit</code>."
    } else {
        ""
    };
    let mut content = table(
        &format!(
            "Each fitted again to the records in place of the network, best first. ln p counts the constants; errors are nRMSE of the measured channels.{files}"
        ),
        &rows,
    );
    if let Some(best) = found.formulas.first().filter(|f| !f.constants.is_empty()) {
        let mut rows = vec![vec![
            "constant".to_string(),
            "value".into(),
            "±".into(),
            "unit".into(),
            String::new(),
        ]];
        for constant in &best.constants {
            let (value, std) = text::uncertain(constant.value, constant.std);
            rows.push(vec![
                escape(&constant.name),
                value,
                std,
                escape(&constant.unit),
                constant.skewed().unwrap_or_default(),
            ]);
        }
        content += &table("The unknown constants with formula 1.", &rows);
    }
    content
}

fn shown(formula: &Ranked) -> String {
    let expressions = formula.expressions.iter().map(|e| {
        let name = if formula.expressions.len() > 1 {
            format!("{}.{} = ", escape(&e.network), escape(&e.output))
        } else {
            String::new()
        };
        format!("{name}<code>{}</code>", escape(&e.with_values))
    });
    let proposed = if formula.proposed {
        " <span class=\"soft\">(yours)</span>"
    } else {
        ""
    };
    expressions.collect::<Vec<_>>().join("<br>") + proposed
}

/// `gate`, or `acceleration.cart`.
fn name(network: &str, output: &str, found: &Distilled) -> String {
    let mut curves = found.curves.iter().filter(|c| c.network == network);
    match curves.nth(1) {
        Some(_) => format!("{network}.{output}"),
        None => network.into(),
    }
}

/// Error over the number of constants, output by output.
fn fronts(found: &Distilled) -> Vec<Plot> {
    let front = |curve: &Curve| {
        let of_curve = |p: &&FrontPoint| p.network == curve.network && p.output == curve.output;
        let points = found.front.iter().filter(of_curve);
        let points: Vec<[f64; 2]> = points.map(|p| [p.constants as f64, p.error]).collect();
        let has_points = !points.is_empty();
        has_points.then(|| Plot {
            title: name(&curve.network, &curve.output, found),
            x: Axis {
                label: "constants".into(),
                whole: true,
                ..Axis::default()
            },
            y: Axis {
                label: "difference to the network / its size".into(),
                log: true,
                ..Axis::default()
            },
            marks: vec![
                Mark::new("faded", "", Shape::Line(points.clone())),
                Mark::new("estimate", "", Shape::Dots(points)),
            ],
            note: String::new(),
        })
    };
    found.curves.iter().filter_map(front).collect()
}

/// Networks and formulas over each argument, each with what the formulas leave beside it.
fn over(found: &Distilled) -> Vec<Plot> {
    let curves = found.curves.iter().filter(|c| !c.formulas.is_empty());
    curves
        .flat_map(|curve| {
            let count = curve.arguments.len().min(ARGUMENTS);
            (0..count).flat_map(|j| [values(curve, j, found), left(curve, j, found)])
        })
        .collect()
}

fn axes(curve: &Curve, argument: usize, found: &Distilled) -> (Axis, Axis) {
    let label = |name: &str, unit: &Option<String>| Axis {
        label: labelled(name, unit.as_deref().unwrap_or(UNKNOWN_UNIT)),
        ..Axis::default()
    };
    (
        label(&curve.arguments[argument], &curve.argument_units[argument]),
        label(&name(&curve.network, &curve.output, found), &curve.unit),
    )
}

/// A line where the values are a function of this argument alone, else dots.
fn drawn(curve: &Curve, argument: usize, values: impl Iterator<Item = f64>) -> Shape {
    let at = curve.points.iter().map(|p| p[argument]);
    let mut points: Vec<[f64; 2]> = at.zip(values).map(|(x, y)| [x, y]).collect();
    if curve.arguments.len() > 1 {
        return Shape::Dots(points);
    }
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    Shape::Line(points)
}

/// The intervals of the network about some values.
fn intervals(curve: &Curve, argument: usize, about: impl Fn(usize) -> f64) -> Shape {
    let points = curve.points.iter().zip(&curve.std).enumerate();
    let whiskers = points.map(|(k, (p, std))| {
        [
            p[argument],
            about(k) - NORMAL_DEVIATIONS * std,
            about(k) + NORMAL_DEVIATIONS * std,
        ]
    });
    Shape::Whiskers(whiskers.collect())
}

fn values(curve: &Curve, argument: usize, found: &Distilled) -> Plot {
    let (x, y) = axes(curve, argument, found);
    let network = curve.points.iter().zip(&curve.values);
    let network = network.map(|(p, v)| [p[argument], *v]).collect();
    let mut marks = vec![
        Mark::new(
            "faded",
            "95 % of the network",
            intervals(curve, argument, |k| curve.values[k]),
        ),
        Mark::new("data", "network", Shape::Dots(network)),
    ];
    for (k, values) in curve.formulas.iter().enumerate() {
        let shape = drawn(curve, argument, values.iter().copied());
        marks.push(Mark::new(of_run(k), format!("formula {}", k + 1), shape));
    }
    Plot {
        title: format!(
            "{} over {}",
            name(&curve.network, &curve.output, found),
            curve.arguments[argument]
        ),
        x,
        y,
        marks,
        note: String::new(),
    }
}

/// What the formulas leave of the network.
fn left(curve: &Curve, argument: usize, found: &Distilled) -> Plot {
    let (x, mut y) = axes(curve, argument, found);
    y.label = format!("formula − network, {}", y.label);
    let mut marks = vec![Mark::new(
        "faded",
        "95 % of the network",
        intervals(curve, argument, |_| 0.0),
    )];
    for (k, values) in curve.formulas.iter().enumerate() {
        let left = values.iter().zip(&curve.values).map(|(f, v)| f - v);
        let shape = drawn(curve, argument, left);
        marks.push(Mark::new(of_run(k), format!("formula {}", k + 1), shape));
    }
    Plot {
        title: format!("what is left, over {}", curve.arguments[argument]),
        x,
        y,
        marks,
        note: String::new(),
    }
}
