//! `reproduce.html`: table, tests and all figures as one page that asks nobody for more.

use latens::text;
use latens_report::page::{document, grid, header, pairs, prose, section};
use latens_report::plot::{Plot, escape};
use latens_report::tables::{grouped, table};

use super::cell::{Cell, Status};
use super::drawings::{CURVE_SIZE, Drawn, SMALL_SIZE, SQUARE_SIZE, WIDE_SIZE};
use super::statistics::wilcoxon;
use super::tables::{
    CONSTANT_ROW, Constants, ERROR_LEVELS, NOTES, REFERENCE_METHOD, Row, TEST_WORDS, distinct,
    methods, ratios, rows, shown, time,
};
use super::{Terms, paper};

/// The figures of the page.
#[derive(Clone, Copy)]
pub struct Figures<'f> {
    /// Of each system.
    pub drawn: &'f [Drawn],
    /// The time of a step over the size of a problem.
    pub cost: &'f [Plot],
}

/// The page.
pub fn html(
    cells: &[Cell],
    constants: &Constants,
    figures: Figures,
    terms: &Terms,
    done: bool,
) -> String {
    let Figures { drawn, cost } = figures;
    let rows = rows(cells);
    let systems = distinct(rows.iter().map(|r| r.system));
    let title = "All methods on all systems";
    let seeds = cells.iter().map(|c| c.score.seed);
    let subtitle = format!(
        "latens reproduce · {} · {} · {}",
        text::count(systems.len(), "system"),
        text::count(methods(&rows).len(), "method"),
        text::count(seeds.max().unwrap_or(0) as usize, "seed"),
    );
    let mut links = vec![("table", "Table")];
    let mut body = section("result", "Result", &result(cells, &rows, terms, done));
    body += &section(
        "table",
        "Error of the free run",
        &summary(&rows, &systems, constants),
    );
    let tests = tests(cells, &rows);
    if !tests.is_empty() {
        links.push(("tests", "Tests"));
        body += &section("tests", "Is the difference chance?", &tests);
    }
    for system in &systems {
        links.push((system, system));
        let rows: Vec<&Row> = rows.iter().filter(|r| r.system == *system).collect();
        let figures = drawn.iter().find(|d| d.system == *system);
        let content = details(&rows) + &figures.map_or(String::new(), of_system);
        body += &section(system, system, &content);
    }
    if !cost.is_empty() {
        links.push(("cost", "Cost"));
        body += &section(
            "cost",
            "What a step costs",
            &format!(
                "<p class=\"hint\">Time of one pass over a record, divided by its samples, on a chain of oscillators; around a middle size one of the three varies alone. A pass is an epoch of a recursion, a Newton iteration of batch, an iteration of the others. PR-SSM is not in it: its processes know nothing of the model's steps and parameters.</p>\n{}",
                grid(cost, SMALL_SIZE)
            ),
        );
    }
    links.push(("notes", "Notes"));
    body += &section("notes", "Notes", &notes(cells, &rows, terms));
    let body = format!("{}{body}</main>\n", header(title, &subtitle, &links));
    document(title, &body, "")
}

/// What came of it, in three sentences.
fn result(cells: &[Cell], rows: &[Row], terms: &Terms, done: bool) -> String {
    let mut best: Vec<(&str, Vec<&str>)> = vec![];
    for system in distinct(rows.iter().map(|r| r.system)) {
        let rows = rows.iter().filter(|r| r.system == system);
        let least = rows.min_by(|a, b| a.quantile(0.5).total_cmp(&b.quantile(0.5)));
        let Some(least) = least.filter(|r| r.quantile(0.5).is_finite()) else {
            continue;
        };
        match best.iter_mut().find(|(method, _)| *method == least.method) {
            Some((_, systems)) => systems.push(system),
            None => best.push((least.method, vec![system])),
        }
    }
    best.sort_by_key(|(_, systems)| std::cmp::Reverse(systems.len()));
    let methods = best.iter();
    let sentences =
        methods.map(|(method, systems)| format!("`{method}` on {}", text::list(systems)));
    let sentences: Vec<String> = sentences.collect();
    let least = if sentences.is_empty() {
        "No method has a finite error.".into()
    } else {
        format!("Least median error: {}.", sentences.join("; "))
    };
    let count = |status| cells.iter().filter(|c| c.score.status == status).count();
    let lost = match (count(Status::Diverged), count(Status::Failed)) {
        (0, 0) => format!("None of the {} was lost.", text::count(cells.len(), "run")),
        (diverged, failed) => format!(
            "Of {} {diverged} diverged and {failed} failed. They count as infinitely bad and are never dropped.",
            text::count(cells.len(), "run")
        ),
    };
    let footing = format!(
        "Every run has one thread and at most {} of the processor's time to train, and does not know the hidden start unless its name says so.",
        text::seconds(60.0 * terms.budget)
    );
    let mut out = String::new();
    if !done {
        out += "<p class=\"alarm\" role=\"alert\">The grid was stopped before all of it was run: <code>--resume</code> goes on.</p>\n";
    }
    for (name, sentence) in [("Best", least), ("Lost", lost), ("Terms", footing)] {
        out += &format!(
            "<p class=\"sentence\"><span>{name}</span><span class=\"said\">{}</span></p>\n",
            prose(&sentence)
        );
    }
    out
}

/// The texts of a column, the least of the values that are compared marked.
fn marked(column: &[(String, Option<f64>)]) -> Vec<String> {
    let known: Vec<f64> = column.iter().filter_map(|(_, v)| *v).collect();
    let least = known.iter().copied().fold(f64::INFINITY, f64::min);
    let several = known.len() > 1;
    let cell = |(text, value): &(String, Option<f64>)| match value {
        Some(v) if several && v.is_finite() && *v <= least => {
            format!("<b class=\"best\">{text}</b>")
        }
        _ => text.clone(),
    };
    column.iter().map(cell).collect()
}

/// Columns of one length as rows, below their names and beside those of the rows.
fn across(names: Vec<String>, head: Vec<String>, columns: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut rows = vec![head];
    for (k, name) in names.into_iter().enumerate() {
        let cells = columns.iter().map(|column| column[k].clone());
        rows.push(std::iter::once(name).chain(cells).collect());
    }
    rows
}

fn optional(value: Option<f64>) -> String {
    value.map_or("—".into(), shown)
}

/// Methods down, systems across, each beside what the paper has.
fn summary(rows: &[Row], systems: &[&str], constants: &Constants) -> String {
    let methods = methods(rows);
    let mut head = vec!["method".to_string()];
    let mut groups = vec![(String::new(), 1)];
    let mut columns = vec![];
    let soft = |f: &f64| format!("<span class=\"soft\">{}</span>", shown(*f));
    for system in systems {
        let row_of = |method: &str| {
            rows.iter()
                .find(|r| (r.system, r.method) == (*system, method))
        };
        let cells = methods.iter().map(|method| {
            let Some(row) = row_of(method) else {
                return (String::new(), None);
            };
            let median = row.quantile(0.5);
            let lost = match row.lost() {
                0 => String::new(),
                lost => format!(
                    " <span class=\"bad\">{lost} of {} lost</span>",
                    row.cells.len()
                ),
            };
            (format!("{}{lost}", shown(median)), Some(median))
        });
        let printed = methods.iter().map(|method| {
            let figure = paper::figure(system, method);
            (figure.as_ref().map_or(String::new(), soft), figure)
        });
        let constant = constants.get(*system);
        let mut column = marked(&cells.collect::<Vec<_>>());
        column.push(constant.map_or(String::new(), soft));
        columns.push(column);
        head.push("here".into());
        let printed: Vec<_> = printed.collect();
        let in_paper = printed.iter().any(|(_, figure)| figure.is_some());
        if in_paper {
            let mut column = marked(&printed);
            column.push(String::new());
            columns.push(column);
            head.push("the paper".into());
        }
        groups.push((escape(system), 1 + usize::from(in_paper)));
    }
    let names = methods.iter().map(|m| escape(m));
    let names = names.chain([CONSTANT_ROW.into()]).collect();
    let table = grouped(
        "nRMSE; the best of each column is bold",
        &groups,
        &across(names, head, &columns),
    );
    format!(
        "<p class=\"soft\">Mean nRMSE over states of the free run over the training record, median of the seeds. The paper's own method stands beside <code>as-printed</code>. A constant is the mean of each state: what errs as much has learned nothing.</p>\n{table}"
    )
}

fn tests(cells: &[Cell], rows: &[Row]) -> String {
    let methods = methods(rows);
    if !methods.contains(&REFERENCE_METHOD) || methods.len() == 1 {
        return String::new();
    }
    let mut lines = vec![vec![
        "method".to_string(),
        "pairs".into(),
        format!("{REFERENCE_METHOD} is better in"),
        "p".into(),
    ]];
    for method in methods.into_iter().filter(|m| *m != REFERENCE_METHOD) {
        let ratios = ratios(cells, method);
        let test = wilcoxon(&ratios);
        let better = ratios.iter().filter(|r| **r > 0.0).count();
        lines.push(vec![
            escape(method),
            test.pairs.to_string(),
            better.to_string(),
            text::number(test.p),
        ]);
    }
    let table = table(&format!("{REFERENCE_METHOD} against each method"), &lines);
    format!("<p class=\"soft\">{}</p>\n{table}", prose(TEST_WORDS))
}

/// All that is known of each method on a system.
fn details(rows: &[&Row]) -> String {
    type Column<'r> = (String, Box<dyn Fn(&Row) -> (String, Option<f64>) + 'r>);
    let counted = |status: Status| {
        move |r: &Row| match r.count(status) {
            0 => ("0".to_string(), None),
            n if status == Status::Ok => (n.to_string(), None),
            n => (format!("<span class=\"bad\">{n}</span>"), None),
        }
    };
    let compared = |v: Option<f64>| (optional(v), v);
    let mut columns: Vec<Column> = vec![
        (
            "the paper".into(),
            Box::new(|r| (optional(paper::figure(r.system, r.method)), None)),
        ),
        (
            "median".into(),
            Box::new(move |r| compared(Some(r.quantile(0.5)))),
        ),
        (
            "quartiles".into(),
            Box::new(|r| {
                let [low, high] = [0.25, 0.75].map(|p| shown(r.quantile(p)));
                (format!("{low} – {high}"), None)
            }),
        ),
        (
            "worst".into(),
            Box::new(move |r| compared(Some(r.quantile(1.0)))),
        ),
        (
            "hidden".into(),
            Box::new(move |r| compared(r.median(|s| s.nrmse_hidden))),
        ),
        (
            "held out".into(),
            Box::new(move |r| compared(r.median(|s| s.heldout_mean))),
        ),
    ];
    if rows.iter().any(|r| r.aligned().is_some()) {
        let aligned = |r: &Row| (r.aligned().map_or(String::new(), shown), None);
        columns.push(("aligned".into(), Box::new(aligned)));
    }
    let errors = columns.len();
    columns.extend::<[Column; 4]>([
        ("ok".into(), Box::new(counted(Status::Ok))),
        ("diverged".into(), Box::new(counted(Status::Diverged))),
        ("failed".into(), Box::new(counted(Status::Failed))),
        ("in all".into(), Box::new(|r| (time(r.seconds()), None))),
    ]);
    for level in ERROR_LEVELS {
        let to = move |r: &Row| {
            let seconds = r.time_to(level);
            (time(seconds), Some(seconds))
        };
        columns.push((format!("to {level:.0e}"), Box::new(to)));
    }
    let mut head = vec!["method".to_string()];
    head.extend(columns.iter().map(|(name, _)| name.clone()));
    let marked_columns = columns.iter().map(|(_, value)| {
        let column: Vec<_> = rows.iter().map(|r| value(r)).collect();
        marked(&column)
    });
    let names = rows.iter().map(|r| escape(r.method)).collect();
    let groups = [
        ("", 1),
        ("nRMSE of the free run", errors),
        ("runs", 3),
        ("time of training", 1 + ERROR_LEVELS.len()),
    ];
    grouped(
        "Errors over the seeds, lost runs, and the time to an error of the measured channels; the best of each column is bold. What the columns are: see the <a href=\"#notes\">notes</a>.",
        &groups.map(|(name, columns)| (name.to_string(), columns)),
        &across(names, head, &marked_columns.collect::<Vec<_>>()),
    )
}

fn of_system(drawn: &Drawn) -> String {
    let mut out = String::new();
    let mut part = |title: &str, hint: &str, plots: String| {
        out += &format!("<h3>{title}</h3>\n");
        if !hint.is_empty() {
            out += &format!("<p class=\"hint\">{hint}</p>\n");
        }
        out += &plots;
    };
    if !drawn.trajectories.is_empty() {
        part(
            "Free run over the training record",
            "Of each method the seed with the median error. A line that leaves the frame has run away.",
            pairs(&drawn.trajectories, WIDE_SIZE),
        );
    }
    if !drawn.fields.is_empty() {
        part(
            "Vector field",
            "Away from the record the learned arrows are guesses. Methods without equations of motion of their own are not here.",
            grid(&drawn.fields, SQUARE_SIZE),
        );
    }
    if !drawn.learning.is_empty() {
        part(
            "Learning curves",
            "Costs are each method's own and tell how it converges; errors can be compared. A method that looks at its free run at the end alone is a dot.",
            pairs(&drawn.learning, CURVE_SIZE),
        );
    }
    if let [first, more @ ..] = drawn.held_out.as_slice() {
        let more = match more.len() {
            0 => String::new(),
            n => format!(
                "The first of {}; the others are in <code>figures/held_out_{}.svg</code>.",
                n + 1,
                escape(&drawn.system)
            ),
        };
        part(
            "Free run of what was not learned from",
            &more,
            pairs(first, WIDE_SIZE),
        );
    }
    out
}

/// What columns mean, why runs were lost, and how to make it again.
fn notes(cells: &[Cell], rows: &[Row], terms: &Terms) -> String {
    let mut out = String::new();
    for note in NOTES {
        let parts = prose(note);
        let parts = parts.split('*').enumerate().map(|(k, part)| match k % 2 {
            0 => part.to_string(),
            _ => format!("<b>{part}</b>"),
        });
        out += &format!("<p>{}</p>\n", parts.collect::<String>());
    }
    let lost = cells.iter().filter(|c| c.score.status != Status::Ok);
    let lost = lost.map(|c| {
        let why = c.why.as_deref().unwrap_or("unknown why");
        let s = &c.score;
        let text = format!("{}, {}, seed {}: {why}", s.system, s.method, s.seed);
        format!("<li>{}</li>\n", escape(&text))
    });
    let lost: String = lost.collect();
    if !lost.is_empty() {
        out += &format!("<h3>Lost runs</h3>\n<ul>\n{lost}</ul>\n");
    }
    let seeds = cells.iter().map(|c| c.score.seed).max().unwrap_or(1);
    let command = format!(
        "latens reproduce --systems {} --methods {} --seeds {seeds} --budget {}",
        distinct(rows.iter().map(|r| r.system)).join(","),
        methods(rows).join(","),
        terms.budget
    );
    out += &format!(
        "<h3>Make it again</h3>\n<p class=\"command\"><code>{}</code></p>\n<p>latens {}. Figures with their data are in <code>figures</code>, all scores in <code>results.json</code>, each run in <code>cells</code>.</p>\n",
        escape(&command),
        escape(&terms.version)
    );
    out
}
