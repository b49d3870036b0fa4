//! From a network to a formula.
//!
//! A network knows its equation where training took it; a formula, if it is the right one, holds
//! everywhere. [`distill`] looks for formulas that the posterior of a network allows
//! ([`samples`], [`library`], [`select`], [`refine`], and symbolic regression where these do not do), puts the best ones in the place of the network
//! ([`rewrite`]) and fits each of these models again to the records of the fit ([`refit`]): what the records say of a
//! formula is its evidence there, not how well it follows the network. What they cannot tell apart
//! is said in words ([`verdict`]).

#![forbid(unsafe_code)]

pub mod candidates;
mod choice;
pub mod coincide;
mod evolve;
pub mod formula;
mod grow;
pub mod library;
pub mod refine;
pub mod refit;
pub mod rewrite;
pub mod samples;
pub mod select;
mod tree;
pub mod verdict;

use latens::described;
use latens::fit::Constant;
use latens::model::syntax::read;
use latens::model::{FormulaUnits, Model};
use latens::{Error, Fit};
use serde::Serialize;

use choice::{Search, combinations, simplest};
use coincide::Said;
use formula::{Formula, Term};
use grow::Place;
use library::Library;
use refine::Refined;
use refit::Reached;
use samples::Target;
use verdict::Fitted;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Candidates that are fitted again.
    pub candidates: usize,
    /// Formulas of the user, in the names of the arguments; other names are constants.
    pub proposed: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            candidates: 16,
            proposed: vec![],
        }
    }
}

/// How far it is.
#[derive(Debug, Clone)]
pub enum Step {
    /// Formulas are sought for an output of a network.
    Searching {
        /// `gate`, or `acceleration.cart`.
        name: String,
    },
    /// The records are asked which other formulas would explain them better.
    Growing,
    /// So many candidates have been fitted again, of all.
    Fitted {
        /// Done.
        done: usize,
        /// In all.
        total: usize,
    },
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Searching { name } => write!(f, "formulas for {name} …"),
            Self::Growing => write!(f, "what the records ask for …"),
            Self::Fitted { done, total } => write!(f, "fitted again: {done} of {total}"),
        }
    }
}

/// Watches, and stops.
pub trait Watch: Sync {
    /// Something is done.
    fn step(&self, _step: Step) {}
    /// Whether to end it: what was fitted by then is kept.
    fn stops(&self) -> bool {
        false
    }
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {}

described! {
/// What formulas came to in place of a fit's networks.
#[derive(Debug, Clone, Serialize)]
pub struct Distilled {
    /// ln p(y) of the fit with its networks.
    pub network_evidence: Option<f64>,
    /// Mean nRMSE of its measured channels in free runs over the records learned from.
    pub network_free_run: Option<f64>,
    /// The same over the records that validated.
    pub network_validation: Option<f64>,
    /// Directions of θ that it has.
    pub network_size: usize,
    /// How closely formulas of each number of constants can follow the networks, from simple to exact.
    pub front: Vec<FrontPoint>,
    /// The formulas that were fitted again, best first.
    pub formulas: Vec<Ranked>,
    /// What the networks and the best formulas say where training went, output by output.
    pub curves: Vec<Curve>,
    /// How many of them, from the first, the data do not tell apart; 0 where none follows them as the
    /// network does.
    pub equally_good: usize,
    /// What that means, in words.
    pub verdict: Vec<String>,
    /// Whether it was stopped before all were fitted again.
    pub stopped: bool,
}

/// A set of formulas for all networks, fitted again in their place.
#[derive(Debug, Clone, Serialize)]
pub struct Ranked {
    /// From 1.
    pub rank: usize,
    /// One for each output of each network.
    pub expressions: Vec<Expression>,
    /// Operations, names and constants in them.
    pub size: usize,
    /// The unknown constants of the model, those of the formulas among them.
    pub constants: Vec<Constant>,
    /// ln p(y), constants counted.
    pub evidence: Option<f64>,
    /// Mean nRMSE of the measured channels in free runs over the records learned from.
    pub free_run: Option<f64>,
    /// The same over the records that validated.
    pub validation: Option<f64>,
    /// Its square over parts of these, one after another.
    #[serde(skip)]
    pub validation_parts: Vec<f64>,
    /// Whether the user proposed it.
    pub proposed: bool,
    /// Longer formulas that say the same where the records went.
    pub repeated: Vec<String>,
    /// The model file in which the networks are gone.
    pub model: String,
}

/// The formula that follows an output of a network best, of those with so many constants.
#[derive(Debug, Clone, Serialize)]
pub struct FrontPoint {
    /// The network.
    pub network: String,
    /// Which of its outputs.
    pub output: String,
    /// Constants in it.
    pub constants: usize,
    /// Operations, names and constants in it.
    pub size: usize,
    /// Root mean square of its difference to the network where training took it, over that of the network.
    pub error: f64,
    /// Mean square of the same in standard deviations of the network's posterior.
    pub misfit: f64,
    /// With the values of its constants.
    pub text: String,
}

/// A formula for an output of a network.
#[derive(Debug, Clone, Serialize)]
pub struct Expression {
    /// The network.
    pub network: String,
    /// Which of its outputs.
    pub output: String,
    /// The names of its constants.
    pub constants: Vec<String>,
    /// With `#1` for its first argument and `$1` for its first constant.
    #[serde(skip)]
    pub form: String,
    /// With the names of its constants.
    pub text: String,
    /// With their values.
    pub with_values: String,
}

/// An output of a network at points that training met, and what formulas say there.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// The network.
    pub network: String,
    /// Which of its outputs.
    pub output: String,
    /// Its unit, where something says so.
    pub unit: Option<String>,
    /// The arguments, as they stand in the model file.
    pub arguments: Vec<String>,
    /// The unit of each, where something says so.
    pub argument_units: Vec<Option<String>>,
    /// The arguments at each point.
    pub points: Vec<Vec<f64>>,
    /// What the network says there.
    pub values: Vec<f64>,
    /// Its standard deviation there.
    pub std: Vec<f64>,
    /// What the best formulas say there, with the constants of their fits: the first one's values first.
    pub formulas: Vec<Vec<f64>>,
}
}

/// The best formulas of a target, with what they are called.
struct Front {
    network: String,
    output: String,
    unit: Option<String>,
    arguments: Vec<String>,
    argument_units: Vec<Option<String>>,
    best: Vec<Candidate>,
}

/// A formula of a front.
struct Candidate {
    refined: Refined,
    /// Whether it is the user's.
    proposed: bool,
}

impl Front {
    /// What the names of its constants begin with.
    fn base(&self, fronts: usize) -> String {
        if fronts > 1 && self.output != self.network {
            format!("{}_{}", self.network, self.output)
        } else {
            self.network.clone()
        }
    }

    /// The unit of each constant of a formula, where it follows; `None` where the formula cannot have one
    /// dimension.
    fn units_of(&self, formula: &Formula) -> Option<Vec<Option<String>>> {
        let constants: Vec<String> = (1..=formula.constants.len())
            .map(|k| format!("c{k}"))
            .collect();
        let arguments = self.argument_units.iter().enumerate();
        let arguments: Vec<(String, Option<String>)> = arguments
            .map(|(j, unit)| (format!("a{}", j + 1), unit.clone()))
            .collect();
        let units = FormulaUnits {
            text: &formula::named(&formula.text),
            arguments: &arguments,
            constants: &constants,
            whole: self.unit.as_deref(),
        };
        units.of_constants()
    }
}

/// Looks for formulas in place of a fit's networks.
///
/// # Errors
/// [`Error::Setting`] where there is no network, or a formula of the user has a mistake; [`Error::Stopped`]
/// where it is ended before anything was fitted.
pub fn distill(fit: &Fit, options: &Options, watch: &dyn Watch) -> Result<Distilled, Error> {
    if let Some(missing) = fit.missing.first() {
        return Err(Error::Setting(format!(
            "the records of the fit are needed: {missing}"
        )));
    }
    let model = Model::from_text(&fit.facts.model_file, &fit.model.text)?;
    let targets = Target::all(fit)?;
    let (mut fronts, mut libraries) = (vec![], vec![]);
    for target in &targets {
        let (front, library) = front(fit, target, options, watch)?;
        fronts.push(front);
        libraries.push(library);
        if watch.stops() {
            return Err(Error::Stopped);
        }
    }
    let mut search = Search::new(fit, &model, &fronts, watch);
    search.try_all(&combinations(&fronts, options.candidates));
    if search.tried.is_empty() {
        search.try_all(&simplest(&fronts));
    }
    search.try_lighter();
    let places = targets.iter().zip(&libraries);
    let places: Vec<Place> = places
        .map(|(target, library)| Place { target, library })
        .collect();
    search.grow(&places);
    let Search {
        tried,
        failed,
        stopped,
        ..
    } = search;
    match failed {
        // that is a verdict on the formulas
        Some(error) if tried.is_empty() && !matches!(error, Error::Diverged(_)) => {
            return Err(error);
        }
        _ => {}
    }
    let formulas = tried.into_iter().map(|tried| Fitted {
        said: Said::of(&tried, &targets),
        ranked: tried.ranked,
    });
    let formulas = formulas.collect();
    let mut distilled = Distilled {
        network_evidence: None,
        network_free_run: None,
        network_validation: None,
        network_size: fit.theta.len(),
        formulas: verdict::without_needless(formulas),
        curves: vec![],
        front: fronts
            .iter()
            .zip(&targets)
            .flat_map(|(f, t)| points(f, t))
            .collect(),
        equally_good: 0,
        verdict: vec![],
        stopped,
    };
    verdict::judge(&mut distilled, &Reached::of(fit));
    let pairs = fronts.iter().zip(&targets).enumerate();
    distilled.curves = pairs
        .map(|(k, (front, target))| curve(front, target, k, &distilled))
        .collect();
    Ok(distilled)
}

/// The formulas for one output, and the library that they are of.
fn front(
    fit: &Fit,
    target: &Target,
    options: &Options,
    watch: &dyn Watch,
) -> Result<(Front, Library), Error> {
    let network = &fit.model.system.networks()[target.network];
    let arguments = fit.model.arguments(target.network);
    let output = network.outputs[target.output].clone();
    let name = if network.outputs.len() > 1 {
        format!("{}.{output}", network.name)
    } else {
        network.name.clone()
    };
    watch.step(Step::Searching { name });
    let units = fit.model.units(target.network);
    let mut front = Front {
        network: network.name.clone(),
        unit: units.outputs[target.output].clone(),
        output,
        arguments,
        argument_units: units.arguments,
        best: vec![],
    };
    let (file, _) = read(&fit.model.text);
    let definitions = file
        .networks
        .iter()
        .filter(|n| n.name.value == network.name);
    let library_terms = definitions.flat_map(|n| &n.library).map(|text| {
        let formula = proposal(text, &front, true)?;
        Ok(Term {
            text: format!("({})", formula.text),
            inner: formula.constants,
        })
    });
    let proposed_terms: Result<Vec<Term>, Error> = library_terms.collect();
    let library = Library::new(target, &front.argument_units, &proposed_terms?);
    let proposed = options.proposed.iter();
    let proposed: Result<Vec<Formula>, Error> =
        proposed.map(|text| proposal(text, &front, false)).collect();
    let proposed = proposed?;
    let found = candidates::candidates(target, &library, &proposed);
    let with_units = found
        .into_iter()
        .filter(|r| front.units_of(&r.formula).is_some());
    let candidates = with_units.map(|refined| Candidate {
        proposed: proposed.iter().any(|p| p.text == refined.formula.text),
        refined,
    });
    front.best = candidates.collect();
    Ok((front, library))
}

/// Formulas of which a curve is kept.
const SHOWN_CURVES: usize = 6;

/// What a network and the best formulas for it say where training went.
fn curve(front: &Front, target: &Target, place: usize, found: &Distilled) -> Curve {
    let values = |ranked: &Ranked| {
        let expression = &ranked.expressions[place];
        let value = |name: &String| {
            let known = ranked.constants.iter().find(|c| c.name == *name);
            known.map_or(f64::NAN, |c| c.value)
        };
        let constants: Vec<f64> = expression.constants.iter().map(value).collect();
        let compiled =
            formula::Compiled::new(&[&expression.form], front.arguments.len(), constants.len());
        let compiled = compiled.expect("it has been compiled before");
        compiled.values(&target.points, &constants).remove(0)
    };
    let count = SHOWN_CURVES.min(found.equally_good.max(1));
    Curve {
        network: front.network.clone(),
        output: front.output.clone(),
        unit: front.unit.clone(),
        arguments: front.arguments.clone(),
        argument_units: front.argument_units.clone(),
        points: target.points.clone(),
        values: target.values.clone(),
        std: target.std.clone(),
        formulas: found.formulas.iter().take(count).map(values).collect(),
    }
}

/// The best formula of each number of constants, as long as more of them follow the network better.
fn points(front: &Front, target: &Target) -> Vec<FrontPoint> {
    let mut best: Vec<&Refined> = front.best.iter().map(|c| &c.refined).collect();
    best.sort_by(|a, b| {
        let size = |r: &Refined| r.formula.constants.len();
        size(a).cmp(&size(b)).then(a.misfit.total_cmp(&b.misfit))
    });
    let mut points: Vec<FrontPoint> = vec![];
    for refined in best {
        let misfit = refined.misfit / target.count() as f64;
        let last = points.last();
        if last.is_some_and(|p| misfit > 0.5 * p.misfit) {
            continue;
        }
        let values = refined
            .formula
            .constants
            .iter()
            .map(|c| latens::text::number(*c));
        points.push(FrontPoint {
            network: front.network.clone(),
            output: front.output.clone(),
            constants: refined.formula.constants.len(),
            size: refined.formula.size(),
            error: refined.error,
            misfit,
            text: refined
                .formula
                .shown(&front.arguments, &values.collect::<Vec<_>>()),
        });
    }
    points
}

/// A formula of the user, or a term that a factor stands before: names that are no arguments and no functions are
/// constants.
fn proposal(text: &str, front: &Front, is_term: bool) -> Result<Formula, Error> {
    let arguments = &front.arguments;
    let mut names: Vec<String> = vec![];
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            let argument = arguments.iter().position(|a| a == word);
            let numbered = word
                .strip_prefix("arg")
                .and_then(|n| n.parse::<usize>().ok());
            let numbered = numbered.filter(|n| (1..=arguments.len()).contains(n));
            if let Some(j) = argument.or(numbered.map(|n| n - 1)) {
                out += &format!("#{}", j + 1);
            } else if after.trim_start().starts_with('(') {
                out += word;
            } else {
                let known = names.iter().position(|n| n == word);
                let place = known.unwrap_or_else(|| {
                    names.push(word.into());
                    names.len() - 1
                });
                out += &format!("${}", place + 1);
            }
        } else if c.is_ascii_digit() || c == '.' {
            let end = rest.find(|c: char| !is_name(c) && c != '.');
            let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
            out += number;
            rest = after;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    let formula = Formula {
        text: out,
        constants: vec![1.0; names.len()],
        names,
        terms: vec![],
    };
    if let Err(reason) =
        formula::Compiled::new(&[&formula.text], arguments.len(), formula.names.len())
    {
        let arguments = arguments.join(", ");
        return Err(Error::Setting(format!(
            "the formula `{text}` has a mistake: write it in the arguments of the network ({arguments}; the k-th is also `argk`), functions of the model language and names for constants\n{reason}"
        )));
    }
    let whole = if is_term {
        // the factor makes up for any unit
        Formula::sum(
            vec![Term {
                text: format!("({})", formula.text),
                inner: formula.constants.clone(),
            }],
            &[1.0],
            None,
        )
    } else {
        formula.clone()
    };
    if front.units_of(&whole).is_none() {
        let units = front.argument_units.iter().zip(arguments);
        let units = units.filter_map(|(unit, name)| Some(format!("{name} in {}", unit.as_ref()?)));
        let unit = front.unit.as_ref().filter(|_| !is_term);
        let output_unit = unit.map(|unit| format!("{} in {unit}", front.output));
        let units: Vec<String> = units.chain(output_unit).collect();
        return Err(Error::Setting(format!(
            "the formula `{text}` has no unit: with {}, parts of different dimensions are added or compared, or a function is taken of something with a dimension; give each term a constant of its own, and write exp(x/c)",
            units.join(", ")
        )));
    }
    Ok(formula)
}
