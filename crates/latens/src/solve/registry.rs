//! The solvers that there are, by name.

use std::sync::RwLock;

use super::{Solver, batch, recursion};
use crate::Error;
use crate::model::Model;
use crate::model::settings::{Settings, SettingsLayer};
use crate::model::suggest;

/// The solvers of Latens, the default first.
pub const BUILT_IN_SOLVERS: [&dyn Solver; 4] = [
    &batch::Batch,
    &recursion::Joint,
    &recursion::Alternating,
    &recursion::AsPrinted,
];

static REGISTERED: RwLock<Vec<&'static dyn Solver>> = RwLock::new(Vec::new());

/// Adds a solver; one of that name that was added before is replaced.
pub fn register(solver: &'static dyn Solver) {
    let mut all = REGISTERED
        .write()
        .expect("nobody panics while it is locked");
    all.retain(|other| other.name() != solver.name());
    all.push(solver);
}

/// All solvers: those of Latens, and those that were added.
///
/// ```
/// let names: Vec<&str> = latens::solvers().iter().map(|s| s.name()).collect();
/// assert_eq!(names, ["batch", "joint", "alternating", "as-printed"]);
/// ```
pub fn solvers() -> Vec<&'static dyn Solver> {
    let added = REGISTERED.read().expect("nobody panics while it is locked");
    BUILT_IN_SOLVERS
        .into_iter()
        .chain(added.iter().copied())
        .collect()
}

/// The solver of a name.
///
/// ```
/// assert_eq!(latens::find("batch")?.pass(), "stage");
/// let Err(mistake) = latens::find("bacth") else { panic!() };
/// assert!(mistake.to_string().contains("did you mean `batch`?"));
/// # Ok::<(), latens::Error>(())
/// ```
///
/// # Errors
/// [`Error::Setting`] with what may have been meant.
pub fn find(name: &str) -> Result<&'static dyn Solver, Error> {
    let all = solvers();
    let names: Vec<&str> = all.iter().map(|s| s.name()).collect();
    let place = suggest::find(name, &names, "solver").map_err(Error::Setting)?;
    Ok(all[place])
}

/// The settings of every solver of Latens, the default first.
pub fn defaults() -> Vec<Settings> {
    BUILT_IN_SOLVERS
        .iter()
        .map(|solver| solver.settings())
        .collect()
}

/// The settings that layers make, the last one first in rank.
///
/// # Errors
/// [`Error::Setting`] for a solver that there is not, or the paper's settings for one that the
/// paper does not have.
pub fn resolve(layers: &[&SettingsLayer]) -> Result<Settings, Error> {
    let name = layers
        .iter()
        .rev()
        .find_map(|layer| layer.solver.as_deref());
    let solver = find(name.unwrap_or(BUILT_IN_SOLVERS[0].name()))?;
    let printed = layers.iter().rev().find_map(|layer| layer.printed_settings);
    let mut settings = match printed {
        Some(true) => solver.printed_settings().ok_or_else(|| {
            Error::Setting("the paper's settings are those of its recursion; choose ⟦solver⟧ alternating, joint or as-printed".into())
        })?,
        _ => solver.settings(),
    };
    layers.iter().for_each(|layer| layer.onto(&mut settings));
    Ok(settings)
}

/// Rejects to go on with a fit by another solver, or by one that cannot.
///
/// # Errors
/// [`Error::Setting`] with what to do.
pub fn same_solver(before: &Settings, now: &Settings) -> Result<(), Error> {
    if now.solver != before.solver {
        let (learner, asked) = (&before.solver, &now.solver);
        return Err(Error::Setting(format!(
            "this fit was learned by {learner}, not by {asked}: resume it with that"
        )));
    }
    if (&now.fix, &now.free) != (&before.fix, &before.free) {
        return Err(Error::Setting(
            "this fit has other constants fixed: leave ⟦fix⟧ and ⟦free⟧ as they were, or fit again"
                .into(),
        ));
    }
    let solver = find(&now.solver)?;
    if solver.resumes() {
        return Ok(());
    }
    let name = solver.name();
    Err(Error::Setting(format!(
        "{name} cannot go on with a fit: fit again, with more ⟦passes⟧"
    )))
}

/// Rejects settings that make no sense for a model or for their solver.
///
/// # Errors
/// [`Error::Setting`] with what does not.
pub fn check(settings: &Settings, model: &Model) -> Result<(), Error> {
    let model = &model.for_settings(settings)?;
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
    settings.check(&states, &channels).map_err(Error::Setting)?;
    if model.system.parameters() == 0 {
        let reason = "the model has nothing to learn; call a network in an equation, or leave a constant of [unknowns] free";
        return Err(Error::Setting(reason.into()));
    }
    let solver = find(&settings.solver)?;
    let bounded = model.unknowns.iter().find(|u| u.is_bounded());
    if let Some(unknown) = bounded.filter(|_| !solver.keeps_bounds()) {
        return Err(Error::Setting(format!(
            "{} does not keep the bounds of `{}`; choose ⟦solver⟧ batch, alternating or joint",
            solver.name(),
            unknown.name
        )));
    }
    let varying = model.unknowns.iter().find(|u| u.varies.is_some());
    let varying = varying.map(|u| format!("how `{}` varies", u.name));
    let unknown = model.system.unknown_channels().first();
    let unknown = unknown.map(|&c| format!("what is unknown of `{}`", channels[c]));
    if let Some(unlearned) = varying.or(unknown).filter(|_| !solver.learns_sensors()) {
        return Err(Error::Setting(format!(
            "{} does not learn {unlearned}; choose ⟦solver⟧ batch",
            solver.name()
        )));
    }
    solver.check(settings)
}
