//! What records can tell about a model, before anything is learned from them: as tables and as one
//! object.

use latens::fit::learn;
use latens::look::check::{Check, Sight};
use latens::look::{RESOLUTION, sight, suspects};
use latens::record::{Columns, Record};
use latens::{Door, Error, Model, Warning};

use crate::outputs::{CheckOutput, CheckedRecord, ColumnUse, FoundNoise, Told};
use latens::text::{self, Side};

/// A record and where it came from.
pub struct Source {
    file: String,
    record: Record,
    /// All columns of the file.
    names: Vec<String>,
    /// Those that serve the model.
    columns: Columns,
}

impl Source {
    /// A record from `columns` of a table, of which `names` are all.
    pub fn new(file: String, record: Record, names: Vec<String>, columns: Columns) -> Self {
        Self {
            file,
            record,
            names,
            columns,
        }
    }
}

/// What records tell.
pub struct Checked {
    sources: Vec<Source>,
    check: Check,
    warnings: Vec<Warning>,
}

impl Checked {
    /// Looks at the records.
    ///
    /// # Errors
    /// Those of [`learn::check`].
    pub fn new(model: &Model, sources: Vec<Source>) -> Result<Self, Error> {
        let records: Vec<Record> = sources.iter().map(|s| s.record.clone()).collect();
        let mut check = learn::check(model, &records)?;
        check.suspects =
            suspects::named(model, sources.iter().map(|s| (s.file.as_str(), &s.record)));
        let files = sources.iter().map(|s| (s.file.as_str(), &s.record));
        let mut warnings = Warning::of_steps(model, files);
        warnings.extend(Warning::of_check(&check));
        Ok(Self {
            sources,
            check,
            warnings,
        })
    }

    /// For people.
    pub fn text(&self, model: &Model, door: Door) -> String {
        let mut out = String::new();
        for source in &self.sources {
            out += &described(model, source, &self.check);
            out += "\n";
        }
        out += &states(model, &self.check);
        out += &networks(&self.check);
        out += "\nin short\n";
        let lines = sight::states(&self.check);
        for line in &lines {
            out += &format!("  {line}\n");
        }
        for warning in &self.warnings {
            let warning = warning.at(door);
            // what is said of a state before a fit is the same sentence here
            if !lines.iter().any(|line| warning.ends_with(line)) {
                out += &format!("  {warning}\n");
            }
        }
        out
    }

    /// For programs.
    pub fn output(&self, model: &Model, door: Door) -> CheckOutput {
        let warnings = Told::all(&self.warnings, door);
        object(model, &self.sources, &self.check, warnings)
    }
}

/// What a column is to the model.
struct Use {
    column: String,
    role: &'static str,
    name: String,
    unit: String,
    range: Option<(f64, f64)>,
    missing: usize,
    channel: Option<usize>,
}

fn uses(model: &Model, source: &Source) -> Vec<Use> {
    let record = &source.record;
    let column_use =
        |k: usize, role, name: &str, unit: &str, values: &mut dyn Iterator<Item = f64>| {
            let (mut range, mut missing) = (None, 0);
            for v in values {
                let (low, high) = range.unwrap_or((v, v));
                if v.is_nan() {
                    missing += 1;
                } else {
                    range = Some((f64::min(low, v), f64::max(high, v)));
                }
            }
            Use {
                column: source.names[k].clone(),
                role,
                name: name.into(),
                unit: unit.into(),
                range,
                missing,
                channel: None,
            }
        };
    let mut uses = vec![];
    let columns = &source.columns;
    if let Some(k) = columns.time {
        let time = &mut record.time.iter().copied();
        uses.push(column_use(k, "time", "t", &model.time_unit, time));
    }
    for (i, (&k, q)) in columns.inputs.iter().zip(&model.inputs).enumerate() {
        let values = &mut record.input_column(i);
        uses.push(column_use(k, "input", &q.name, &q.unit, values));
    }
    for (i, (&k, q)) in columns
        .measurements
        .iter()
        .zip(&model.measurements)
        .enumerate()
    {
        let values = &mut record.output_column(i);
        uses.push(Use {
            channel: Some(i),
            ..column_use(k, "measurement", &q.name, &q.unit, values)
        });
    }
    for (i, (k, state)) in columns.truth.iter().zip(&model.states).enumerate() {
        if let (Some(k), Some(mut truth)) = (k, record.truth_column(i)) {
            let values = &mut truth;
            let name = format!("truth_{}", state.name);
            uses.push(column_use(
                *k,
                "truth, for scoring",
                &name,
                &state.unit,
                values,
            ));
        }
    }
    uses
}

/// The columns of the file that serve nothing.
fn unused<'a>(source: &'a Source, uses: &[Use]) -> Vec<&'a str> {
    let names = source.names.iter().map(String::as_str);
    names
        .filter(|n| !uses.iter().any(|u| u.column == *n))
        .collect()
}

/// How a record is sampled: median, least and largest gap, and how many are not the median.
struct Sampling {
    median: f64,
    least: f64,
    largest: f64,
    irregular: usize,
}

fn sampling(record: &Record) -> Sampling {
    let mut gaps: Vec<f64> = record.time.windows(2).map(|t| t[1] - t[0]).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let median = gaps[gaps.len() / 2];
    let off = |gap: &&f64| (*gap - median).abs() > Record::STEP_TOLERANCE * median;
    Sampling {
        median,
        least: gaps[0],
        largest: gaps[gaps.len() - 1],
        irregular: gaps.iter().filter(off).count(),
    }
}

fn described(model: &Model, source: &Source, check: &Check) -> String {
    let record = &source.record;
    let unit = &model.time_unit;
    let s = sampling(record);
    let mut out = format!(
        "{}: {} over {}, ",
        source.file,
        text::count(record.len(), "sample"),
        text::with_unit(record.time[record.len() - 1] - record.time[0], unit)
    );
    out += &match s.irregular {
        0 => format!("one every {}\n", text::with_unit(record.step(), unit)),
        n => format!(
            "mostly {} apart; {} from {} to {}\n",
            text::with_unit(s.median, unit),
            text::count(n, "other gap"),
            text::number(s.least),
            text::with_unit(s.largest, unit)
        ),
    };
    let uses = uses(model, source);
    let header = [
        "column",
        "serves as",
        "unit",
        "from",
        "to",
        "missing",
        "noise",
        "of range",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    for column in &uses {
        let (low, high) = column.range.unwrap_or((f64::NAN, f64::NAN));
        let role = match column.role {
            "time" => "time".into(),
            "truth, for scoring" => column.role.into(),
            role if column.name == column.column => role.into(),
            role => format!("{role} {}", column.name),
        };
        let missing = match (column.missing, column.role) {
            (0, "measurement") => "none".into(),
            (0, _) => String::new(),
            (n, _) => text::percent(n as f64 / record.len() as f64),
        };
        let noise = column
            .channel
            .map(|c| (check.noise[c], check.noise[c] / check.range[c]));
        let [noise, of_range] = match noise {
            None => [String::new(), String::new()],
            // so little cannot be told from rounding, nor does the solver care
            Some((_, part)) if part < RESOLUTION => [
                "hardly any".into(),
                format!("< {}", text::percent(RESOLUTION)),
            ],
            Some((std, part)) => {
                let bound = column.channel.is_some_and(|c| check.noise_at_most[c]);
                let most = if bound { "at most " } else { "" };
                [format!("{most}{}", text::number(std)), text::percent(part)]
            }
        };
        rows.push(vec![
            column.column.clone(),
            role,
            column.unit.clone(),
            text::number(low),
            text::number(high),
            missing,
            noise,
            of_range,
        ]);
    }
    let mut sides = vec![Side::Left; 3];
    sides.extend([Side::Right; 5]);
    out += &text::table(2, &sides, &rows);
    let unused = unused(source, &uses);
    if !unused.is_empty() {
        out += &format!("  not used: {}\n", unused.join(", "));
    }
    out
}

fn states(model: &Model, check: &Check) -> String {
    let header = [
        "",
        "",
        "",
        "centre",
        "scale",
        "std/scale",
        "at worst",
        "determined",
        "seen",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    let hidden = model.hidden();
    for (i, state) in check.states.iter().enumerate() {
        let role = match (state.sight, hidden.contains(&i)) {
            (Sight::Measured, _) => "measured",
            (_, true) => "hidden",
            (_, false) => "seen through an expression",
        };
        let mut row = vec![state.name.clone(), state.unit.clone(), role.into()];
        // where nothing says how large a state is, its scale means nothing
        if state.sight != Sight::Isolated {
            row.extend([text::number(state.center), text::number(state.scale)]);
        }
        if !matches!(state.sight, Sight::Isolated | Sight::Measured) {
            row.extend([
                text::percent(state.median),
                text::percent(state.worst),
                sight::part(state.determined),
                sight::part(state.seen),
            ]);
        }
        rows.push(row);
    }
    let mut sides = vec![Side::Left; 3];
    sides.extend([Side::Right; 6]);
    format!(
        "states, by the known equations alone\n{}  (determined: the part of the record where all measurements leave less than 30 % of the scale; seen: where those of {} do)\n",
        text::table(2, &sides, &rows),
        text::with_unit(check.window, &model.time_unit)
    )
}

fn networks(check: &Check) -> String {
    if check.networks.is_empty() {
        return String::new();
    }
    let lines = check.networks.iter().map(sight::coverage);
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    format!("\nnetworks\n{lines}")
}

fn object(model: &Model, sources: &[Source], check: &Check, warnings: Vec<Told>) -> CheckOutput {
    let records = sources.iter().map(|source| {
        let (uses, s) = (uses(model, source), sampling(&source.record));
        let unused = unused(source, &uses).into_iter().map(String::from);
        let unused = unused.collect();
        let columns = uses.into_iter().map(|u| ColumnUse {
            column: u.column,
            role: u.role.split(',').next().unwrap_or_default().into(),
            name: u.name,
            unit: u.unit,
            lowest: u.range.map(|r| r.0),
            highest: u.range.map(|r| r.1),
            missing: u.missing,
        });
        CheckedRecord {
            file: source.file.clone(),
            samples: source.record.len(),
            start: source.record.time[0],
            end: source.record.time[source.record.len() - 1],
            step: s.median,
            least_gap: s.least,
            largest_gap: s.largest,
            irregular: s.irregular,
            columns: columns.collect(),
            unused,
        }
    });
    let sizes = check
        .noise
        .iter()
        .zip(&check.range)
        .zip(&check.noise_at_most);
    let noise = model
        .measurements
        .iter()
        .zip(sizes)
        .map(|(q, ((&std, range), &at_most))| {
            let of_range = std / range;
            let noise = FoundNoise {
                std,
                of_range,
                at_most,
            };
            (q.name.clone(), noise)
        });
    CheckOutput {
        model: model.name.clone(),
        records: records.collect(),
        noise: noise.collect(),
        window: check.window,
        window_samples: check.window_samples,
        sensors: Told::findings(&check.sensors),
        leaves: check.leaves.clone(),
        stiffness: check.stiffness.clone(),
        states: check.states.clone(),
        together: check.together.clone(),
        mirrored: check.mirrored.clone(),
        invariances: check.invariances.clone(),
        networks: check.networks.clone(),
        moments: check.moments.clone(),
        suspects: check.suspects.clone(),
        verdict: sight::states(check),
        warnings,
    }
}
