//! The unknown constants: what was learned, how sure that is, what was guessed, and how far the data say so.

use latens::fit::{Constant, Facts, Fit};
use latens::text;

use crate::colours::of_run;
use crate::plot::{Axis, Mark, Plot, Shape, escape, labelled};
use crate::tables::{meter, row, table};

/// The table of a run's constants and how they trade off; nothing where it has none.
pub fn section(shown: &Fit) -> String {
    let (model, facts) = (&shown.model, &shown.facts);
    let head = [
        "unknown constant",
        "value",
        "± std",
        "unit",
        "95 % within",
        "guess",
        "determined by the data",
        "",
    ];
    let mut rows = vec![row(head)];
    for (constant, unknown) in facts.unknowns.iter().zip(&model.unknowns) {
        let (value, std) = text::uncertain(constant.value, constant.std);
        let determined = determined(facts, constant).map_or(String::new(), meter);
        let cells = [
            constant.name.clone(),
            value,
            std,
            constant.unit.clone(),
            interval(constant).unwrap_or_default(),
            text::number(unknown.guess),
        ];
        let mut cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        cells.push(determined);
        cells.push(escape(&constant.remark().unwrap_or_default()));
        rows.push(cells);
    }
    for fixed in &model.fixed {
        let value = text::number(fixed.value);
        let (name, unit) = (&fixed.name, &fixed.unit);
        rows.push(row([name, &value, "fixed", unit, "", "", "", ""]));
    }
    if rows.len() == 1 {
        return String::new();
    }
    table(
        "Unknown constants as learned; ± is a standard deviation. The last bar is the part of what was uncertain before that the data have settled.",
        &rows,
    ) + &own_values(facts)
        + &correlation(facts)
}

/// The values of constants that vary, record by record or group by group.
fn own_values(facts: &Facts) -> String {
    let mut out = String::new();
    for constant in &facts.unknowns {
        let Some(population) = &constant.population else {
            continue;
        };
        let group_label = population.of();
        let head = [
            group_label,
            "value",
            "± std",
            "unit",
            "from … to",
            "shrinkage",
        ];
        let mut rows = vec![row(head)];
        for member in &population.records {
            let (value, std) = text::uncertain(member.value, member.std);
            let (low, high) = member.range;
            let range = format!("{} … {}", text::number(low), text::number(high));
            let shrinkage = text::percent(member.shrinkage);
            let cells = [
                &member.file,
                &value,
                &std,
                &constant.unit,
                &range,
                &shrinkage,
            ];
            rows.push(row(cells.map(String::as_str)));
        }
        let caption = format!(
            "{} in each {group_label}: {}. Shrinkage is how much of a value is the population's and not the {group_label}'s.",
            constant.name,
            population.words(&constant.unit)
        );
        out += &table(&caption, &rows);
    }
    out
}

/// The part of its prior variance that the data have taken away.
fn determined(facts: &Facts, constant: &Constant) -> Option<f64> {
    let by_evidence = || {
        let parts = &facts.evidence.as_ref()?.parts;
        let part = parts.iter().find(|p| p.name == constant.name)?;
        Some(part.determined)
    };
    let by_share = constant.prior_share.map(|share| 1.0 - share);
    by_share.or_else(by_evidence)
}

/// Between which values it lies with 95 %.
pub fn interval(constant: &Constant) -> Option<String> {
    let (from, to) = constant.interval?;
    Some(format!(
        "{}\u{a0}…\u{a0}{}",
        text::number(from),
        text::number(to)
    ))
}

/// How the constants trade off; nothing of a single one.
fn correlation(facts: &Facts) -> String {
    let names = facts.unknowns.iter().map(|c| escape(&c.name));
    let names: Vec<String> = names.collect();
    if facts.correlation.len() < 2 || facts.correlation.len() != names.len() {
        return String::new();
    }
    let head = std::iter::once(String::new()).chain(names.iter().cloned());
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for (name, row) in names.iter().zip(&facts.correlation) {
        let cells = row.iter().map(|r| format!("{r:.3}"));
        rows.push(std::iter::once(name.clone()).chain(cells).collect());
    }
    table(
        "Correlation of the constants: near ±1 they trade off.",
        &rows,
    )
}

/// A figure of each constant: its value in each run with the 95 % interval, beside the guess.
pub fn plots(runs: &[Fit]) -> Vec<Plot> {
    let mut names: Vec<(&str, &str)> = vec![];
    for constant in runs.iter().flat_map(|run| &run.facts.unknowns) {
        if !names.iter().any(|(name, _)| *name == constant.name) {
            names.push((&constant.name, &constant.unit));
        }
    }
    names
        .into_iter()
        .map(|(name, unit)| of_one(runs, name, unit))
        .collect()
}

fn of_one(runs: &[Fit], name: &str, unit: &str) -> Plot {
    let mut marks = vec![];
    for (k, run) in runs.iter().enumerate() {
        let Some(constant) = run.facts.unknowns.iter().find(|c| c.name == name) else {
            continue;
        };
        let at = k as f64 + 1.0;
        let ends = constant.interval.map(|(from, to)| [at, from, to]);
        let label = if runs.len() > 1 {
            run.name.as_str()
        } else {
            "learned, with its 95 % interval"
        };
        let whisker = Shape::Whiskers(ends.into_iter().collect());
        marks.push(Mark::new("away", "", whisker));
        let dot = Shape::Dots(vec![[at, constant.value]]);
        marks.push(Mark::new(of_run(k), label, dot));
    }
    // a guess far off would hide how the intervals lie
    let mut guesses: Vec<String> = vec![];
    for run in runs {
        let unknowns = run.model.unknowns.iter().filter(|u| u.name == name);
        guesses.extend(unknowns.map(|u| text::with_unit(u.guess, unit)));
    }
    guesses.dedup();
    Plot {
        title: name.into(),
        note: format!("guess {}", guesses.join(", ")),
        x: Axis {
            label: labelled("run", "number"),
            range: Some([0.4, runs.len() as f64 + 0.6]),
            whole: true,
            ..Axis::default()
        },
        y: Axis {
            label: labelled(name, unit),
            ..Axis::default()
        },
        marks,
    }
}
