//! Whether the facts of a folder can be: every length, sign and range that the rest of the library takes
//! for granted. A folder may come from a stranger.

use crate::fit::facts::member_folder;
use crate::fit::{Constant, Facts, Role};
use crate::look::SignalScales;
use crate::model::Model;
use crate::numerics::objective::Noise;
use crate::solve::checkpoint::{Checkpoint, Stage};

/// Records and members that a folder may have.
const MOST_ENTRIES: usize = 10_000;

/// Passes of a solver.
const MOST_PASSES: usize = 1_000_000;

/// A list of numbers: how many there must be, and what each must be.
struct Numbers<'a> {
    name: &'a str,
    values: &'a [f64],
    count: usize,
    sign: Sign,
}

#[derive(Clone, Copy)]
enum Sign {
    Any,
    NotNegative,
    Positive,
}

impl Sign {
    fn allows(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Self::Any => true,
                Self::NotNegative => value >= 0.0,
                Self::Positive => value > 0.0,
            }
    }
}

fn check_numbers(numbers: &Numbers) -> Result<(), String> {
    let Numbers {
        name,
        values,
        count,
        sign,
    } = numbers;
    if values.len() != *count {
        let has = values.len();
        return Err(format!(
            "`{name}` has {has} value(s), the model needs {count}"
        ));
    }
    match values.iter().find(|v| !sign.allows(**v)) {
        Some(value) => Err(format!("`{name}` has the value {value}, which cannot be")),
        None => Ok(()),
    }
}

/// Checks facts against the model whose they are.
///
/// # Errors
/// In words, what cannot be.
pub(super) fn facts(facts: &Facts, model: &Model) -> Result<(), String> {
    let (n, m) = (model.states.len(), model.measurements.len());
    let Noise {
        process,
        measurement,
        start_mean,
        start,
    } = &facts.noise;
    let SignalScales {
        center,
        scale,
        spread,
        certain,
        noise,
        range,
        walk,
        time_constant,
    } = &facts.scales;
    let widening = facts.proof.map(|proof| proof.widening);
    let weights: Vec<f64> = facts.ensemble.iter().filter_map(|m| m.weight).collect();
    use Sign::{Any, NotNegative, Positive};
    for (name, values, count, sign) in [
        ("noise.process", process.as_slice(), n, NotNegative),
        ("noise.measurement", measurement, m, NotNegative),
        ("noise.start_mean", start_mean, n, Any),
        ("noise.start", start, n, NotNegative),
        ("scales.center", center, n, Any),
        ("scales.scale", scale, n, Positive),
        ("scales.noise", noise, m, NotNegative),
        ("scales.range", range, m, NotNegative),
        // none in what an earlier version wrote
        (
            "scales.spread",
            spread,
            if spread.is_empty() { 0 } else { n },
            NotNegative,
        ),
        (
            "scales.walk",
            walk,
            if walk.is_empty() { 0 } else { n },
            NotNegative,
        ),
        ("scales.time_constant", &[*time_constant], 1, NotNegative),
        ("sample_time", &[facts.sample_time], 1, Positive),
        (
            "variance_inflation",
            &[facts.variance_inflation],
            1,
            Positive,
        ),
        (
            "proof.widening",
            widening.as_slice(),
            widening.iter().len(),
            Positive,
        ),
        ("ensemble.weight", &weights, weights.len(), NotNegative),
    ] {
        check_numbers(&Numbers {
            name,
            values,
            count,
            sign,
        })?;
    }
    if certain.len() != n {
        return Err("`scales.certain` is not one for each state".into());
    }
    if facts.solver != facts.settings.solver {
        let (solver, setting) = (&facts.solver, &facts.settings.solver);
        return Err(format!(
            "`solver` is {solver} and `settings.solver` is {setting}"
        ));
    }
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
    let settings = facts.settings.check(&states, &channels);
    settings.map_err(|e| format!("`settings`: {e}"))?;
    check_unknowns(facts, model)?;
    check_regions(facts, model)?;
    check_records(facts)?;
    check_ensemble(facts)?;
    facts
        .checkpoint
        .iter()
        .try_for_each(|checkpoint| check_checkpoint(checkpoint, facts, model))
}

fn check_unknowns(facts: &Facts, model: &Model) -> Result<(), String> {
    let names = facts.unknowns.iter().map(|u| &u.name);
    if !names.eq(model.unknowns.iter().map(|u| &u.name)) {
        return Err("`unknowns` are not those of the model".into());
    }
    let values_of = |value: fn(&Constant) -> f64| {
        let values = facts.unknowns.iter().map(value);
        values.collect::<Vec<f64>>()
    };
    for (name, values, sign) in [
        ("unknowns.value", values_of(|u| u.value), Sign::Any),
        ("unknowns.std", values_of(|u| u.std), Sign::NotNegative),
    ] {
        check_numbers(&Numbers {
            name,
            values: &values,
            count: values.len(),
            sign,
        })?;
    }
    Ok(())
}

fn check_regions(facts: &Facts, model: &Model) -> Result<(), String> {
    let networks = model.system.networks();
    // the first versions wrote none
    if !facts.regions.is_empty() && facts.regions.len() != networks.len() {
        return Err("`regions` are not one for each network".into());
    }
    for (region, network) in facts.regions.iter().zip(networks) {
        for point in &region.points {
            check_numbers(&Numbers {
                name: "regions.points",
                values: point,
                count: network.arguments,
                sign: Sign::Any,
            })?;
        }
        if !Sign::NotNegative.allows(region.radius) {
            return Err(format!("`regions.radius` is {}", region.radius));
        }
    }
    Ok(())
}

fn check_records(facts: &Facts) -> Result<(), String> {
    let records = &facts.records;
    if records.len() > MOST_ENTRIES {
        let count = records.len();
        return Err(format!(
            "it has {count} `records`, of at most {MOST_ENTRIES}"
        ));
    }
    // the states of a record are found by its place among those that are no tests
    if !records.is_sorted_by_key(|record| record.role == Role::Test) {
        return Err("a record of `records` that was learned from follows a test".into());
    }
    if let Some(record) = records.iter().find(|r| r.scored > r.samples) {
        let (scored, samples) = (record.scored, record.samples);
        return Err(format!(
            "a record of {samples} samples is scored over {scored}"
        ));
    }
    Ok(())
}

/// Members are folders of the fit's own, whose names are known.
fn check_ensemble(facts: &Facts) -> Result<(), String> {
    let members = &facts.ensemble;
    if members.len() > MOST_ENTRIES {
        let count = members.len();
        return Err(format!("it has {count} members, of at most {MOST_ENTRIES}"));
    }
    for (place, member) in members.iter().enumerate() {
        if member.run != member_folder(place) {
            return Err(format!(
                "member {} of `ensemble` is in {}, and not in the folder {}",
                place + 1,
                member.run,
                member_folder(place)
            ));
        }
    }
    let weights = members.iter().filter_map(|m| m.weight);
    if !members.is_empty() && members.iter().all(|m| m.weight == Some(0.0)) {
        return Err(format!(
            "`ensemble.weight` adds up to {}",
            weights.sum::<f64>()
        ));
    }
    Ok(())
}

fn check_checkpoint(checkpoint: &Checkpoint, facts: &Facts, model: &Model) -> Result<(), String> {
    // a solver that is not known here is one of the lab's, which resumes nothing
    let batch = crate::solve::BUILT_IN_SOLVERS[0].name();
    let fits = match checkpoint {
        Checkpoint::Stage(_) => facts.solver == batch,
        Checkpoint::Pass(_) => facts.solver != batch,
    };
    if !fits {
        return Err(format!(
            "`checkpoint` is not one of the solver {}: it was changed after the fit",
            facts.solver
        ));
    }
    let passes = checkpoint.passes();
    if passes > MOST_PASSES {
        return Err(format!(
            "`checkpoint` is after pass {passes}, of at most {MOST_PASSES}"
        ));
    }
    match checkpoint {
        Checkpoint::Stage(stage) => check_stage(stage, model.system.parameters()),
        Checkpoint::Pass(_) => Ok(()),
    }
}

fn check_stage(stage: &Stage, parameters: usize) -> Result<(), String> {
    let pairs = [stage.likely, stage.informative];
    let pairs: Vec<f64> = pairs.iter().flatten().flat_map(|p| [p.0, p.1]).collect();
    let [value, growth, refused] = stage.damping.numbers();
    use Sign::{Any, NotNegative, Positive};
    for (name, values, count, sign) in [
        ("prior", stage.prior.as_slice(), parameters, Positive),
        ("tightness", &[stage.tightness], 1, Any),
        ("determined", &[stage.determined], 1, NotNegative),
        (
            "variance_inflation",
            &[stage.variance_inflation],
            1,
            Positive,
        ),
        ("likely and informative", &pairs, pairs.len(), Any),
        ("damping", &[value, growth], 2, Positive),
        ("damping.refused", &[refused], 1, NotNegative),
    ] {
        let name = &format!("checkpoint.{name}");
        check_numbers(&Numbers {
            name,
            values,
            count,
            sign,
        })?;
    }
    Ok(())
}

/// Whether the facts of a member belong to those of the fit.
///
/// # Errors
/// In words, what it is instead.
pub(super) fn member(member: &Facts, facts: &Facts, place: usize) -> Result<(), String> {
    if member.model_sha256 != facts.model_sha256 {
        return Err("this member of an ensemble is a fit of another model".into());
    }
    // records are checked against one sample time, and each member follows them in its own
    if member.sample_time.to_bits() != facts.sample_time.to_bits() {
        return Err("this member of an ensemble has another sample time than the fit".into());
    }
    if !member.ensemble.is_empty() {
        return Err("this member of an ensemble is an ensemble itself".into());
    }
    if member.seed != facts.ensemble[place].seed {
        return Err("this member of an ensemble has another seed than the fit says".into());
    }
    Ok(())
}
