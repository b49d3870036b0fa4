//! `table.md`, `table.csv` and `results.json`.

use std::collections::BTreeMap;
use std::path::Path;

use super::cell::{Cell, Method, Score, Status};
use super::paper;
use super::statistics::{quantile, wilcoxon};
use crate::files::{write_file, write_json};
use latens::Error;

/// Errors of the measured channels to which the time is told.
pub const ERROR_LEVELS: [f64; 3] = [1e-1, 1e-2, 1e-3];
/// The one of them that the tables for people show.
const SHOWN_LEVEL: usize = 1;
/// What others are tested against.
pub const REFERENCE_METHOD: &str = "batch";

/// The error of a constant, by system.
pub type Constants = BTreeMap<String, f64>;
/// What its row is called.
pub const CONSTANT_ROW: &str = "a constant";

/// What the test is.
pub const TEST_WORDS: &str = "Wilcoxon's signed-rank test on ln(nRMSE of the method / nRMSE of batch), paired by system and seed; a lost run counts as the worst. Two-sided; exact up to 30 pairs. Seeds of one system are not independent: read p as a measure, not as a proof.";
/// What the columns of a system's table are.
pub const NOTES: [&str; 5] = [
    "Quartiles and worst over the seeds; lost runs (diverged, failed) count as infinitely bad and are never dropped.",
    "*Hidden*: mean over the hidden states.",
    "*Held out*: experiments from other starts and inputs, from their true start (a controller closes its loop around learned equations; NODE-LSTM and PR-SSM get the input replayed), or a test record from the state that its first samples show.",
    "*Time to*: until a free run over the record erred by 1e-2 on the measured channels, one thread; `as-printed` looks at its free run at the end alone.",
    "PR-SSM's hidden states are its latent ones in their order; *aligned* is the mean nRMSE of their best affine image.",
];

/// All seeds of a method on a system.
pub struct Row<'c> {
    pub system: &'c str,
    pub method: &'c str,
    pub cells: Vec<&'c Cell>,
}

impl Row<'_> {
    /// Runs that came to this.
    pub fn count(&self, status: Status) -> usize {
        self.cells
            .iter()
            .filter(|c| c.score.status == status)
            .count()
    }

    /// A score of every seed; a run without one counts as infinitely bad.
    fn scores(&self, score: fn(&Score) -> Option<f64>) -> Vec<f64> {
        self.cells
            .iter()
            .map(|c| score(&c.score).unwrap_or(f64::INFINITY))
            .collect()
    }

    /// Of the mean error over the seeds.
    pub fn quantile(&self, part: f64) -> f64 {
        quantile(&self.scores(|s| s.nrmse_mean), part)
    }

    /// Runs that diverged or failed.
    pub fn lost(&self) -> usize {
        self.cells.len() - self.count(Status::Ok)
    }

    /// PR-SSM: median over seeds of the mean error of the best affine image of its latent states.
    pub fn aligned(&self) -> Option<f64> {
        let errors = self.cells.iter().filter_map(|c| {
            let known: Vec<f64> = c.aligned.values().flatten().copied().collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        });
        let errors: Vec<f64> = errors.collect();
        (!errors.is_empty()).then(|| quantile(&errors, 0.5))
    }

    /// Median over seeds, where any seed has the score at all.
    pub fn median(&self, score: fn(&Score) -> Option<f64>) -> Option<f64> {
        let known = self.cells.iter().any(|c| score(&c.score).is_some());
        known.then(|| quantile(&self.scores(score), 0.5))
    }

    /// Median time to an error of the measured channels; infinite where half never reach it.
    pub fn time_to(&self, level: f64) -> f64 {
        let time = |cell: &&Cell| {
            let mut looks = cell.curve.iter();
            let reached = looks.find(|l| l.free_run.is_some_and(|e| e <= level));
            reached.map_or(f64::INFINITY, |l| l.seconds)
        };
        quantile(&self.cells.iter().map(time).collect::<Vec<_>>(), 0.5)
    }

    /// Median time of training.
    pub fn seconds(&self) -> f64 {
        let times: Vec<f64> = self.cells.iter().map(|c| c.score.seconds).collect();
        quantile(&times, 0.5)
    }
}

/// Rows in the order of the cells.
pub fn rows(cells: &[Cell]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = vec![];
    for cell in cells {
        let (system, method) = (cell.score.system.as_str(), cell.score.method.as_str());
        match rows
            .iter_mut()
            .find(|r| (r.system, r.method) == (system, method))
        {
            Some(row) => row.cells.push(cell),
            None => rows.push(Row {
                system,
                method,
                cells: vec![cell],
            }),
        }
    }
    rows
}

/// In the order of the table; a system may lack the first ones.
pub fn methods<'c>(rows: &[Row<'c>]) -> Vec<&'c str> {
    let all = Method::all();
    let found = |method: Method| {
        let name = method.name();
        rows.iter().map(|r| r.method).find(|m| *m == name)
    };
    all.into_iter().filter_map(found).collect()
}

/// In the order in which they first appear.
pub fn distinct<'c>(names: impl Iterator<Item = &'c str>) -> Vec<&'c str> {
    let mut all = vec![];
    names.for_each(|n| {
        if !all.contains(&n) {
            all.push(n);
        }
    });
    all
}

/// A number for people.
pub fn shown(value: f64) -> String {
    match value {
        v if !v.is_finite() => "∞".into(),
        v if (1.0..100.0).contains(&v) => format!("{v:.1}"),
        v => format!("{v:.1e}"),
    }
}

/// A time for people; a dash where it is never.
pub fn time(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.1} s")
    } else {
        "—".into()
    }
}

/// Writes the tables; gives the first of them, for people.
pub fn write(cells: &[Cell], constants: &Constants, folder: &Path) -> Result<String, Error> {
    let scores: Vec<&Score> = cells.iter().map(|c| &c.score).collect();
    write_json(&folder.join("results.json"), &scores)?;
    let rows = rows(cells);
    write_file(&folder.join("table.csv"), &csv(&rows))?;
    let summary = summary(&rows, constants);
    let whole = format!(
        "# All methods on all systems\n\nMean nRMSE over states of the free run over the training record, median of the seeds{}.\n\n{summary}\n{}\n{}\n{}",
        ", in brackets what the paper has; its own method stands beside `as-printed`. A constant is the mean of each state: what errs as much has learned nothing",
        tests(cells, &rows),
        details(&rows),
        failures(cells)
    );
    write_file(&folder.join("table.md"), &whole)?;
    Ok(summary)
}

/// Methods down, systems across.
fn summary(rows: &[Row], constants: &Constants) -> String {
    let systems = distinct(rows.iter().map(|r| r.system));
    let methods = methods(rows);
    let mut out = format!(
        "| method | {} |\n|---|{}\n",
        systems.join(" | "),
        "---|".repeat(systems.len())
    );
    for method in methods {
        let cells = systems.iter().map(|system| {
            let Some(row) = rows
                .iter()
                .find(|r| (r.system, r.method) == (*system, method))
            else {
                return String::new();
            };
            let paper = paper::figure(system, method);
            let paper = paper.map_or(String::new(), |p| format!(" ({})", shown(p)));
            let lost = match row.lost() {
                0 => String::new(),
                lost => format!(", {lost} of {} lost", row.cells.len()),
            };
            format!("{}{paper}{lost}", shown(row.quantile(0.5)))
        });
        let cells: Vec<String> = cells.collect();
        out += &format!("| {method} | {} |\n", cells.join(" | "));
    }
    let cells = systems.iter().map(|s| constants.get(*s));
    let cells = cells.map(|c| c.map_or(String::new(), |c| shown(*c)));
    let cells: Vec<String> = cells.collect();
    out += &format!("| *{CONSTANT_ROW}* | {} |\n", cells.join(" | "));
    out
}

/// ln of the method's error over that of batch, for every system and seed that both have.
pub fn ratios(cells: &[Cell], method: &str) -> Vec<f64> {
    let error = |c: &Cell| c.score.nrmse_mean.unwrap_or(f64::INFINITY).ln();
    let of_method = cells.iter().filter(|c| c.score.method == method);
    let pairs = of_method.filter_map(|cell| {
        let (system, seed) = (&cell.score.system, cell.score.seed);
        let best = cells.iter().find(|c| {
            (&c.score.system, c.score.seed) == (system, seed) && c.score.method == REFERENCE_METHOD
        })?;
        let (error, best) = (error(cell), error(best));
        // both lost: neither is better
        Some(if error == best { 0.0 } else { error - best })
    });
    pairs.collect()
}

fn tests(cells: &[Cell], rows: &[Row]) -> String {
    let methods = methods(rows);
    if !methods.contains(&REFERENCE_METHOD) {
        return String::new();
    }
    let mut out = format!(
        "## {REFERENCE_METHOD} against each\n\n{TEST_WORDS}\n\n| method | pairs | {REFERENCE_METHOD} is better in | p |\n|---|---|---|---|\n"
    );
    for method in methods.into_iter().filter(|m| *m != REFERENCE_METHOD) {
        let ratios = ratios(cells, method);
        let test = wilcoxon(&ratios);
        let better = ratios.iter().filter(|r| **r > 0.0).count();
        out += &format!(
            "| {method} | {} | {better} | {:.2e} |\n",
            test.pairs, test.p
        );
    }
    out
}

fn details(rows: &[Row]) -> String {
    let mut out = format!("## System by system\n\n{}\n", NOTES.join(" "));
    for system in distinct(rows.iter().map(|r| r.system)) {
        out += &format!(
            "\n### {system}\n\n| method | the paper | median | quartiles | worst | ok | diverged | failed | hidden | held out | time | time to 1e-2 | aligned |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        );
        for row in rows.iter().filter(|r| r.system == system) {
            let paper = paper::figure(system, row.method);
            let optional = |v: Option<f64>| v.map_or("—".into(), shown);
            out += &format!(
                "| {} | {} | {} | {}–{} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                row.method,
                optional(paper),
                shown(row.quantile(0.5)),
                shown(row.quantile(0.25)),
                shown(row.quantile(0.75)),
                shown(row.quantile(1.0)),
                row.count(Status::Ok),
                row.count(Status::Diverged),
                row.count(Status::Failed),
                optional(row.median(|s| s.nrmse_hidden)),
                optional(row.median(|s| s.heldout_mean)),
                time(row.seconds()),
                time(row.time_to(ERROR_LEVELS[SHOWN_LEVEL])),
                optional(row.aligned()),
            );
        }
    }
    out
}

/// Why cells were lost.
fn failures(cells: &[Cell]) -> String {
    let lost = cells.iter().filter(|c| c.score.status != Status::Ok);
    let lines = lost.map(|c| {
        let why = c.why.as_deref().unwrap_or("unknown why");
        format!(
            "- {}, {}, seed {}: {why}\n",
            c.score.system, c.score.method, c.score.seed
        )
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("## Lost runs\n\n{lines}")
    }
}

fn csv(rows: &[Row]) -> String {
    let mut out = String::from(
        "system,method,paper,seeds,ok,diverged,failed,median,quartile_1,quartile_3,worst,hidden_median,heldout_median,seconds_median",
    );
    ERROR_LEVELS
        .iter()
        .for_each(|l| out += &format!(",seconds_to_{l:.0e}"));
    out += "\n";
    let number = |v: f64| {
        if v.is_finite() {
            format!("{v:e}")
        } else {
            String::new()
        }
    };
    for row in rows {
        let optional = |v: Option<f64>| v.map_or(String::new(), number);
        let counts =
            [Status::Ok, Status::Diverged, Status::Failed].map(|s| row.count(s).to_string());
        let mut fields = vec![
            row.system.to_string(),
            row.method.to_string(),
            optional(paper::figure(row.system, row.method)),
            row.cells.len().to_string(),
        ];
        fields.extend(counts);
        fields.extend([0.5, 0.25, 0.75, 1.0].map(|p| number(row.quantile(p))));
        fields.push(optional(row.median(|s| s.nrmse_hidden)));
        fields.push(optional(row.median(|s| s.heldout_mean)));
        fields.push(number(row.seconds()));
        fields.extend(ERROR_LEVELS.map(|l| number(row.time_to(l))));
        out += &format!("{}\n", fields.join(","));
    }
    out
}
