//! Models side by side, and the profiles of constants, as tables for a terminal.

use latens::fit::compare::{Compared, Comparison};
use latens::fit::profile::Profile;
use latens::fit::{Constant, Role};
use latens::text::{self, Side};

/// A comparison: what each model comes to, its constants beside each other, and the verdict.
///
/// ```
/// let fit = latens::example_fit();
/// let mut other = fit.clone();
/// other.name = "other".into();
/// let options = latens::CompareOptions::default();
/// let found = latens::compare(&[&fit, &other], options, &mut latens::Silent)?;
/// assert!(latens_report::comparison::table(&found).contains("cannot be told apart"));
/// # Ok::<(), latens::Error>(())
/// ```
pub fn table(found: &Comparison) -> String {
    let inflation = if found.variance_inflation > 1.0 {
        format!(
            ", each counted for {:.1} times less",
            found.variance_inflation
        )
    } else {
        String::new()
    };
    let mut out = format!(
        "{} of the same {}{inflation}; the best first\n\n",
        text::count(found.models.len(), "model"),
        text::count(found.readings, "reading"),
    );
    out += &measures(found);
    out += &constants(found);
    out += &format!("\n{}\n", found.verdict.sentence);
    for remark in &found.remarks {
        out += &format!("{remark}\n");
    }
    out
}

/// Each model in a row.
fn measures(found: &Comparison) -> String {
    let models = &found.models;
    let any = |role| models.iter().any(|m| m.error(role).is_some());
    let roles: Vec<(Role, &str)> = [
        (Role::Train, "free run"),
        (Role::Validate, "validation"),
        (Role::Test, "test"),
    ]
    .into_iter()
    .filter(|(role, _)| any(*role))
    .collect();
    let held = models.iter().any(|m| m.held_out.is_some());
    let mut header = ["", "ln p(y)", "below", "AIC", "BIC", "determined"]
        .map(String::from)
        .to_vec();
    header.extend(roles.iter().map(|(_, name)| (*name).to_string()));
    header.extend(held.then(|| "held back".to_string()));
    let mut rows = vec![header];
    let decimal = |value: Option<f64>| value.map_or("–".into(), |v| format!("{v:.1}"));
    for model in models {
        let mut row = vec![
            model.run.clone(),
            decimal(model.log_evidence),
            decimal(model.below_best),
            decimal(model.aic),
            decimal(model.bic),
            determined(model),
        ];
        row.extend(roles.iter().map(|(role, _)| error(model.error(*role))));
        if held {
            row.push(error(
                model
                    .held_out
                    .as_ref()
                    .map(|h| h.nrmse.unwrap_or(f64::INFINITY)),
            ));
        }
        rows.push(row);
    }
    let mut sides = vec![Side::Left];
    sides.extend(vec![Side::Right; rows[0].len() - 1]);
    text::table(2, &sides, &rows)
}

fn determined(model: &Compared) -> String {
    let parameters = model.parameters;
    model.determined.map_or(format!("– of {parameters}"), |d| {
        format!("{d:.1} of {parameters}")
    })
}

fn error(value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(v) if v.is_finite() => text::percent(v),
        Some(_) => "diverged".into(),
    }
}

const DOUBT_MARK: &str = " *";
const MEAN_MARK: &str = " †";

/// What stands beside a constant that is not simply what the data say.
fn mark(constant: &Constant) -> &'static str {
    match (&constant.population, constant.remark()) {
        (Some(_), _) => MEAN_MARK,
        (None, Some(_)) => DOUBT_MARK,
        (None, None) => "",
    }
}

/// The constants, a column for each model.
fn constants(found: &Comparison) -> String {
    let mut names: Vec<(&str, &str)> = vec![];
    for constant in found.models.iter().flat_map(|m| &m.constants) {
        if names.iter().all(|(name, _)| *name != constant.name) {
            names.push((&constant.name, &constant.unit));
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut header = vec![String::new(), String::new()];
    header.extend(found.models.iter().map(|m| m.run.clone()));
    let mut rows = vec![header];
    let shown = |constant: &Constant| {
        let (value, std) = text::uncertain(constant.value, constant.std);
        let skewed = constant.skewed().map(|s| format!(" ({s})"));
        let skewed = skewed.unwrap_or_default();
        format!("{value} ± {std}{}{skewed}", mark(constant))
    };
    for (name, unit) in names {
        let mut row = vec![name.to_string(), unit.to_string()];
        row.extend(found.models.iter().map(|m| {
            let constant = m.constants.iter().find(|c| c.name == name);
            constant.map_or("–".into(), shown)
        }));
        rows.push(row);
    }
    let sides = vec![Side::Left; rows[0].len()];
    let marked = found.models.iter().flat_map(|m| &m.constants).map(mark);
    let marked: Vec<&str> = marked.collect();
    let notes = [
        (
            DOUBT_MARK,
            "  (*: at a bound, or more of its prior than of the data)\n",
        ),
        (MEAN_MARK, "  (†: the mean of what varies)\n"),
    ];
    let notes = notes.iter().filter(|(mark, _)| marked.contains(mark));
    let notes: String = notes.map(|(_, note)| *note).collect();
    format!("\nconstants\n{}{notes}", text::table(2, &sides, &rows))
}

/// The intervals of profiles beside the linear ones.
pub fn profiles(found: &Profile) -> String {
    let mut rows = vec![
        ["", "value", "", "95 % by profile", "95 % linear", ""]
            .map(String::from)
            .to_vec(),
    ];
    for c in &found.constants {
        // as precise as they are certain
        let std = (c.linear.1 - c.linear.0) / 3.92;
        let number = |value: f64| text::uncertain(value, std).0;
        let end = |end: Option<f64>| end.map_or("open".into(), number);
        rows.push(vec![
            c.name.clone(),
            number(c.value),
            c.unit.clone(),
            format!("{} to {}", end(c.from), end(c.to)),
            format!("{} to {}", number(c.linear.0), number(c.linear.1)),
            c.remark().unwrap_or_default(),
        ]);
    }
    let mut sides = vec![Side::Left; 6];
    sides[1] = Side::Right;
    let mut out = text::table(2, &sides, &rows);
    if found.lower > 0.5 {
        out += &format!(
            "  the fit was not at its minimum: on the way the objective was {} lower, and the profiles stand there\n",
            text::number(found.lower)
        );
    }
    out
}
