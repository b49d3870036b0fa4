//! What a fit found, for people and for programs.

use latens::fit::{Facts, RecordFacts, Role};
use latens::numerics::score::named::Scores;
use latens::{Door, Model};

use crate::outputs::{ChannelNoise, FitSummary, Told};
use crate::verdict;
use crate::words::{noise_levels, pass};
use latens::text::{self, Side};

/// A short table of each record's errors, and the unknown constants.
///
/// ```
/// let fit = latens::example_fit();
/// let table = latens_report::summary::table(&fit.model, &fit.facts);
/// assert!(table.contains("hidden state"));
/// ```
pub fn table(model: &Model, facts: &Facts) -> String {
    let mut out = format!(
        "{}: {}, {}, seed {}, {}\n",
        title(model),
        facts.solver,
        text::count(facts.passes.len(), pass(&facts.solver)),
        facts.seed,
        text::seconds(facts.seconds)
    );
    for record in &facts.records {
        out += &format!(
            "\n{}, {}{}\n",
            record.file,
            text::count(record.samples, "sample"),
            match record.role {
                Role::Validate => ", validation: never learned from".into(),
                Role::Test => format!(", test: {}", predicted_part(record)),
                Role::Train => String::new(),
            }
        );
        out += &if record.role == Role::Test {
            predicted(model, record)
        } else {
            errors(model, record)
        };
    }
    out += "  (nRMSE: root mean square error over range; a state's against its truth, where the record has it)\n";
    out + &constants(model, facts) + &own_values(facts)
}

/// Records or groups whose own values are shown in a terminal.
const SHOWN_RECORDS: usize = 12;

/// The values of constants that vary, record by record or group by group.
fn own_values(facts: &Facts) -> String {
    let mut out = String::new();
    for constant in &facts.unknowns {
        let Some(population) = &constant.population else {
            continue;
        };
        let rows = population.records.iter().take(SHOWN_RECORDS).map(|member| {
            let (value, std) = text::uncertain(member.value, member.std);
            let share = text::percent(member.shrinkage);
            vec![
                member.file.clone(),
                value,
                format!("± {std}"),
                constant.unit.clone(),
                format!("{share} the population's"),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let mut sides = vec![Side::Left; 5];
        sides[1] = Side::Right;
        out += &format!(
            "\n{} in each {}\n{}",
            constant.name,
            population.of(),
            text::table(2, &sides, &rows)
        );
        if population.records.len() > SHOWN_RECORDS {
            let more = population.records.len() - SHOWN_RECORDS;
            out += &format!("  … and {more} more in fit.json and on the page\n");
        }
    }
    out
}

/// The unknown constants: what was learned, and what was given.
fn constants(model: &Model, facts: &Facts) -> String {
    let learned = facts.unknowns.iter().map(|c| {
        let (value, std) = text::uncertain(c.value, c.std);
        let remarks: Vec<String> = c.skewed().into_iter().chain(c.remark()).collect();
        vec![
            c.name.clone(),
            value,
            format!("± {std}"),
            c.unit.clone(),
            remarks.join("; "),
        ]
    });
    let fixed = model.fixed.iter().map(|f| {
        let value = text::number(f.value);
        vec![
            f.name.clone(),
            value,
            "fixed".into(),
            f.unit.clone(),
            String::new(),
        ]
    });
    let rows: Vec<Vec<String>> = learned.chain(fixed).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut sides = vec![Side::Left; 5];
    sides[1] = Side::Right;
    format!("\nunknown constants\n{}", text::table(2, &sides, &rows))
}

pub fn title(model: &Model) -> &str {
    match model.name.as_str() {
        "" => "model",
        name => name,
    }
}

fn errors(model: &Model, record: &RecordFacts) -> String {
    let error = |scores: &Scores, name: &str| {
        let found = scores.get(name);
        found.map_or(String::new(), |error| text::error(*error))
    };
    let header = ["", "", "", "smoothed", "one step", "free run"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for (i, state) in model.states.iter().enumerate() {
        let column = format!("truth_{}", state.name);
        rows.push(vec![
            state.name.clone(),
            state.unit.clone(),
            kind(model, i).into(),
            error(&record.nrmse_smoothed, &column),
            error(&record.nrmse_one_step, &column),
            error(&record.nrmse, &column),
        ]);
    }
    for channel in &model.measurements {
        rows.push(vec![
            channel.name.clone(),
            channel.unit.clone(),
            "measurement".into(),
            String::new(),
            error(&record.nrmse_one_step, &channel.name),
            error(&record.nrmse, &channel.name),
        ]);
    }
    let mut sides = vec![Side::Left; 3];
    sides.extend([Side::Right; 3]);
    let mut out = text::table(2, &sides, &rows);
    if let Some(mean) = record.mean_nrmse {
        out += &format!("  free run, mean over states {mean:.1e}");
        if let Some(hidden) = record.mean_nrmse_hidden {
            out += &format!(", over hidden states {hidden:.1e}");
        }
        out += "\n";
    }
    out
}

/// What a table calls a state.
pub fn kind(model: &Model, state: usize) -> &'static str {
    if model.hidden().contains(&state) {
        "hidden state"
    } else {
        "measured state"
    }
}

/// How much of a record is predicted, and from what.
pub fn predicted_part(record: &RecordFacts) -> String {
    let warm_up = record.samples - record.scored;
    format!(
        "{} predicted from the state that the first {warm_up} show",
        text::count(record.scored, "sample")
    )
}

/// The errors of a prediction.
pub fn predicted(model: &Model, record: &RecordFacts) -> String {
    let header = ["", "", "", "RMSE", "nRMSE"];
    let mut rows = vec![header.map(String::from).to_vec()];
    for (i, state) in model.states.iter().enumerate() {
        let Some(error) = record.nrmse.get(&format!("truth_{}", state.name)) else {
            continue;
        };
        rows.push(vec![
            state.name.clone(),
            state.unit.clone(),
            kind(model, i).into(),
            String::new(),
            text::error(*error),
        ]);
    }
    for channel in &model.measurements {
        let Some(error) = record.rmse.get(&channel.name) else {
            continue;
        };
        rows.push(vec![
            channel.name.clone(),
            channel.unit.clone(),
            "measurement".into(),
            error.map_or("diverged".into(), text::number),
            text::error(record.nrmse.get(&channel.name).copied().flatten()),
        ]);
    }
    let mut sides = vec![Side::Left; 3];
    sides.extend([Side::Right; 2]);
    text::table(2, &sides, &rows)
}

/// The same for programs.
pub fn found(model: &Model, facts: &Facts, door: Door) -> FitSummary {
    let noise = noise_levels(model, facts)
        .map(|(name, std, of_range)| (name.to_string(), ChannelNoise { std, of_range }));
    let evidence = facts.evidence.as_ref();
    let verdict = verdict::verdict(model, facts, "RUN");
    FitSummary {
        findings: Told::findings(&facts.findings),
        residuals: facts.residuals.clone(),
        alarms: verdict.alarms,
        verdict: verdict.sentences.to_vec(),
        solver: facts.solver.clone(),
        seed: facts.seed,
        seconds: facts.seconds,
        warnings: Told::all(&facts.warnings, door),
        suspects: facts.suspects.clone(),
        records: facts.records.clone(),
        unknowns: facts.unknowns.clone(),
        correlation: facts.correlation.clone(),
        fixed: model
            .fixed
            .iter()
            .map(|f| (f.name.clone(), f.value))
            .collect(),
        evidence: evidence.map(|e| e.log),
        determined: evidence.map(|e| e.determined),
        directions: evidence.map(|e| e.directions),
        parts: evidence.map(|e| e.parts.clone()),
        relevance: facts.relevance.clone(),
        attempts: facts.attempts.clone(),
        noise: noise.collect(),
        stopped: facts.stopped,
        ensemble: facts.ensemble.clone(),
        structure: facts.structure,
        rungs: facts.rungs.clone(),
        contradicted: facts.contradicted,
        in_pieces: facts.in_pieces,
        proof: facts.proof,
    }
}
