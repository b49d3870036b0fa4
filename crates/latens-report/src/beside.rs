//! Several runs beside each other, in one table: how well each foresees, what it costs, what it found.

use std::collections::BTreeSet;

use latens::fit::{Fit, RecordFacts, Role};
use latens::text;

use crate::constants;
use crate::plot::escape;
use crate::tables::{error, table};
use crate::verdict;

/// Where a run has no such thing.
const ABSENT: &str = "<span class=\"soft\">not in it</span>";

/// A row of the table: what it is, and a cell for each run.
struct Row {
    what: String,
    cells: Vec<String>,
}

/// The table: a column for each run.
pub fn section(runs: &[Fit]) -> String {
    let mut rows = vec![];
    let mut head = vec![String::new()];
    head.extend(runs.iter().map(|run| escape(&run.name)));
    rows.push(head);
    let mut add = |title: &str, group_rows: Vec<Row>| {
        if !group_rows.is_empty() {
            let mut group = vec![format!("<span class=\"group\">{title}</span>")];
            group.extend(runs.iter().map(|_| String::new()));
            rows.push(group);
        }
        for row in group_rows {
            rows.push([vec![row.what], row.cells].concat());
        }
    };
    for (role, title) in [
        (Role::Test, "Free run over test records"),
        (Role::Validate, "Free run over validation records"),
        (Role::Train, "Free run over what was learned from"),
    ] {
        add(title, errors(runs, role));
    }
    add("Constants, with 95 % interval", of_constants(runs));
    add("The fit", of_fit(runs));
    table(
        "Errors are nRMSE: root mean square over the range; the least of a row is bold where it differs in the digits that are shown.",
        &rows,
    )
}

/// The free-run errors over records of one role, in the order of the files.
fn errors(runs: &[Fit], role: Role) -> Vec<Row> {
    let mut columns: Vec<(String, String, String)> = vec![];
    for record in records(runs, role) {
        for name in record.nrmse.keys() {
            let column = (record.sha256.clone(), record.file.clone(), name.clone());
            let known = |(sha, _, channel): &(String, String, String)| {
                *sha == record.sha256 && channel == name
            };
            if !columns.iter().any(known) {
                columns.push(column);
            }
        }
    }
    let rows = columns.iter().map(|(sha, file, name)| {
        let found = runs.iter().map(|run| {
            let mut records = run.facts.records.iter();
            let record = records.find(|r| r.sha256 == *sha && r.role == role)?;
            record.nrmse.get(name).copied()
        });
        let found: Vec<Option<Option<f64>>> = found.collect();
        let known = || found.iter().filter_map(|e| e.flatten());
        let best = known().fold(f64::INFINITY, f64::min);
        let least = error(Some(&Some(best)));
        let told = known().any(|e| error(Some(&Some(e))) != least);
        let cells = found.iter().map(|found| {
            // what looks the same is equally good
            let shown = error(found.as_ref());
            match found {
                Some(Some(_)) if told && shown == least => {
                    format!("<b class=\"best\">{shown}</b>")
                }
                Some(_) => shown,
                None => ABSENT.into(),
            }
        });
        let title = match name.strip_prefix("truth_") {
            Some(state) => format!("{state}, against its truth"),
            None => name.clone(),
        };
        Row {
            what: format!(
                "{} <span class=\"soft\">{}</span>",
                escape(&title),
                escape(file)
            ),
            cells: cells.collect(),
        }
    });
    rows.collect()
}

fn records(runs: &[Fit], role: Role) -> impl Iterator<Item = &RecordFacts> {
    let all = runs.iter().flat_map(|run| &run.facts.records);
    all.filter(move |record| record.role == role)
}

/// Each constant that some run has.
fn of_constants(runs: &[Fit]) -> Vec<Row> {
    let mut names: Vec<(&str, &str)> = vec![];
    for constant in runs.iter().flat_map(|run| &run.facts.unknowns) {
        if !names.iter().any(|(name, _)| *name == constant.name) {
            names.push((&constant.name, &constant.unit));
        }
    }
    let rows = names.into_iter().map(|(name, unit)| {
        let cells = runs.iter().map(|run| {
            let mut constants = run.facts.unknowns.iter();
            let Some(constant) = constants.find(|c| c.name == name) else {
                return ABSENT.into();
            };
            let (value, _) = text::uncertain(constant.value, constant.std);
            let interval = constants::interval(constant).unwrap_or_default();
            let unit = if constant.unit == unit {
                String::new()
            } else {
                format!(" {}", constant.unit)
            };
            format!(
                "{}{}<br><span class=\"soft\">{}</span>",
                escape(&value),
                escape(&unit),
                escape(&interval)
            )
        });
        let cells = cells.collect();
        let unit = match unit {
            "" => String::new(),
            unit => format!(" <span class=\"soft\">{}</span>", escape(unit)),
        };
        Row {
            what: escape(name) + &unit,
            cells,
        }
    });
    rows.collect()
}

/// What is known of each fit: evidence, size, cost.
fn of_fit(runs: &[Fit]) -> Vec<Row> {
    let row = |what: &str, cell: &dyn Fn(&Fit) -> String| Row {
        what: what.into(),
        cells: runs.iter().map(cell).collect(),
    };
    let mut rows = vec![];
    let alike = comparable(runs);
    let has_evidence = runs.iter().any(|run| run.facts.evidence.is_some());
    if has_evidence && alike {
        rows.push(row("ln p(y), the evidence", &|run| {
            let evidence = run.facts.evidence.as_ref();
            evidence.map_or(String::new(), |e| format!("{:.1}", e.log))
        }));
    } else if has_evidence {
        rows.push(row("ln p(y), the evidence", &|_| {
            "<span class=\"soft\">not comparable: learned from other data</span>".into()
        }));
    }
    rows.push(row("parameters", &|run| run.theta.len().to_string()));
    rows.push(row("of these determined by the data", &|run| {
        let evidence = run.facts.evidence.as_ref();
        evidence.map_or(String::new(), |e| format!("{:.1}", e.determined))
    }));
    rows.push(row("states", &|run| run.model.states.len().to_string()));
    rows.push(row("solver, seed", &|run| {
        format!("{}, {}", escape(&run.facts.solver), run.facts.seed)
    }));
    rows.push(row("time", &|run| text::seconds(run.facts.seconds)));
    rows.push(row("warnings", &|run| match run.facts.warnings.len() {
        0 => "none".into(),
        n => n.to_string(),
    }));
    if runs
        .iter()
        .any(|run| !verdict::of_run(run).alarms.is_empty())
    {
        rows.push(row(
            "alarm",
            &|run| match verdict::of_run(run).alarms.len() {
                0 => "none".into(),
                _ => "<b class=\"bad\">do not trust it: see its verdict</b>".into(),
            },
        ));
    }
    rows
}

/// Whether evidence is of the same measurements: the same records and channels to learn from.
fn comparable(runs: &[Fit]) -> bool {
    let learned_from = |run: &Fit| {
        let records = run.facts.records.iter();
        let trained = records.filter(|record| record.role == Role::Train);
        let records: BTreeSet<String> = trained.map(|record| record.sha256.clone()).collect();
        let channels = run.model.measurements.iter();
        let channels: BTreeSet<String> = channels.map(|m| m.name.clone()).collect();
        (records, channels, run.facts.suspects.len())
    };
    let sources: Vec<_> = runs.iter().map(learned_from).collect();
    sources.windows(2).all(|pair| pair[0] == pair[1])
}
