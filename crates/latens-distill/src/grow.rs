//! Formulas that the records themselves ask for.
//!
//! The posterior of a network is sure of what the network cannot say: few units round off a step, and no
//! formula with the step is within what their posterior allows. Here the records are asked. At a formula that
//! has been fitted again, the objective of whole records with the states eliminated is quadratic in the
//! factors of any further terms (A and b of [`latens::filter`], the derivatives exact), and one pass over the
//! records says of every sum of terms of the library what it would leave of the misfit:
//!
//! ```text
//! χ²(c) = χ² + 2 b_F + A_FF − 2 cᵀ (b + A_F) + cᵀ A c ,
//! ```
//!
//! F the formula itself, whose factor goes from one to zero. The best sums are corrected by Gauss and Newton's
//! method on the same objective, inner constants too, and those that may come to a higher ln p are fitted again;
//! the best of these is the next to grow from.

use latens::filter::Smoother;
use latens::model::Model;
use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::eigen::Eigen;
use latens::numerics::linalg::matrix::Matrix;
use latens::numerics::linalg::normal::NormalEquations;
use latens::numerics::step::Stepper;
use latens::{Fit, Role};

use crate::candidates::sums;
use crate::choice::{Choice, Tried};
use crate::formula::{Compiled, Formula, Term};
use crate::library::Library;
use crate::refine::scales;
use crate::samples::Target;
use crate::select::{Dictionary, Known};
use crate::verdict::TELLING_EVIDENCE;
use crate::{Front, rewrite};

/// Sums of which more is asked, of each output.
const ASKED_SUMS: usize = 12;
/// Steps of Gauss and Newton's method.
const STEPS: usize = 6;
/// A step is halved so often.
const HALVINGS: usize = 6;
/// What of a column's length is rounding.
const ROUNDING_PART: f64 = 1e-12;

/// What the search for formulas knows of an output.
pub(crate) struct Place<'a> {
    pub target: &'a Target,
    pub library: &'a Library,
}

/// A choice, and what the records' linearised objective says of it: the lower, the better.
struct Foreseen {
    choice: Choice,
    score: f64,
}

/// The choices to fit again next, from one that has been, the best first; none where the records ask for no other.
/// `looked_at` are the parts of those that have been tried.
pub(crate) fn next(
    model: &Model,
    fronts: &[Front],
    places: &[Place],
    base: &Tried,
    looked_at: &[Vec<String>],
) -> Vec<Choice> {
    let mut known = looked_at.to_vec();
    let records = Records::of(&base.fit);
    let corrected = |choice: &Choice| records.corrected(model, fronts, choice);
    let base = base.choice_as_fitted();
    let Some((_, left)) = corrected(&base) else {
        return vec![];
    };
    // nothing can gain more than all of the misfit
    if left.misfit < 2.0 * TELLING_EVIDENCE {
        return vec![];
    }
    let mut found: Vec<Foreseen> = vec![];
    for (k, place) in places.iter().enumerate() {
        let Some(dictionary) = records.dictionary(model, fronts, &base, k, place) else {
            continue;
        };
        let all = dictionary.search(None, 0..dictionary.terms.len());
        let mut asked = 0;
        for formula in sums(&dictionary, all, None) {
            let choice = base.replaced(k, formula.clone(), scales_at(place.target, &formula));
            let its_parts = choice.parts();
            if asked == ASKED_SUMS {
                break;
            }
            if known.contains(&its_parts) || fronts[k].units_of(&formula).is_none() {
                continue;
            }
            known.push(its_parts);
            asked += 1;
            if let Some((choice, foreseen)) = corrected(&choice) {
                found.push(Foreseen {
                    choice,
                    score: foreseen.score(&records),
                });
            }
        }
    }
    found.sort_by(|a, b| a.score.total_cmp(&b.score));
    let least = left.score(&records);
    let most = least + 2.0 * TELLING_EVIDENCE;
    // with all that the base has and more, it would have to gain
    let has_all = |choice: &Choice| {
        let parts = choice.parts();
        base.parts().iter().all(|part| parts.contains(part))
    };
    let asked_for = |f: &Foreseen| f.score < least || !has_all(&f.choice);
    let good = found.into_iter().filter(|f| f.score < most && asked_for(f));
    good.map(|f| f.choice).collect()
}

/// How large each constant of a formula may be.
fn scales_at(target: &Target, formula: &Formula) -> Vec<f64> {
    let arguments = target.points.first().map_or(0, Vec::len);
    let compiled = Compiled::new(&[&formula.text], arguments, formula.constants.len());
    let compiled = compiled.expect("its terms have been compiled before");
    let (_, slopes) = compiled.slopes(&target.points, &formula.constants);
    scales(target, formula, &slopes)
}

/// What a choice leaves of the records.
struct Left {
    misfit: f64,
    constants: usize,
}

impl Left {
    /// Schwarz's criterion.
    fn score(&self, records: &Records) -> f64 {
        self.misfit + self.constants as f64 * records.count.ln()
    }
}

/// The records of a fit, at its states and with its noise.
struct Records<'f> {
    fit: &'f Fit,
    /// Readings that say something of their own.
    count: f64,
}

/// Normal equations of θ, states eliminated, and what is left of the misfit at this θ.
struct Asked {
    a: Matrix,
    b: Vec<f64>,
    misfit: f64,
}

impl<'f> Records<'f> {
    fn of(fit: &'f Fit) -> Self {
        let readings =
            |record: &latens::Record| record.outputs.iter().filter(|y| !y.is_nan()).count();
        let train = fit.tracks.iter();
        let train = train.filter(|t| fit.facts_of(t).role == Role::Train);
        let readings: usize = train.map(|t| readings(&t.record)).sum();
        Self {
            fit,
            count: (readings as f64 / fit.facts.variance_inflation.max(1.0)).max(2.0),
        }
    }

    /// The model of a text for these records; `None` where it has other states.
    fn model(&self, text: &str) -> Option<Model> {
        let settings = &self.fit.facts.settings;
        let model = Model::from_text("formula", text).ok()?;
        let model = model.for_settings(settings).ok()?;
        let same = model.states.len() == self.fit.model.states.len();
        (same && model.varying().next().is_none()).then_some(model)
    }

    /// θ of a model: what the fit says of its constants, `stated` of those it does not know, else their guesses.
    fn theta(&self, model: &Model, stated: &[(String, f64)]) -> Vec<f64> {
        let known = self.fit.model.unknowns.iter().zip(&self.fit.theta);
        let known: Vec<(&str, f64)> = known.map(|(u, t)| (u.name.as_str(), u.value(*t))).collect();
        let entry = |unknown: &latens::model::Unknown| {
            let stated = stated.iter().find(|(name, _)| *name == unknown.name);
            let known = known.iter().find(|(name, _)| *name == unknown.name);
            let value = stated.map(|o| o.1).or(known.map(|k| k.1));
            value.map_or(0.0, |value| unknown.entry(value))
        };
        model.unknowns.iter().map(entry).collect()
    }

    /// What the records ask of a model; `None` where that is no number.
    fn ask(&self, model: &Model, theta: &[f64]) -> Option<Asked> {
        let fit = self.fit;
        let tracks = fit.tracks.iter();
        let train = tracks.filter(|t| fit.facts_of(t).role == Role::Train);
        let records = train.clone().map(|t| &t.record);
        let stepper = Stepper::over(model, &model.system, fit.facts.sample_time, records);
        let inflation = fit.facts.variance_inflation;
        let noise = fit.facts.noise.inflated(&stepper, inflation);
        let mut all = NormalEquations::new(theta.len(), 1);
        let mut misfit = 0.0;
        for track in train {
            let smoother = Smoother {
                stepper: &stepper,
                record: &track.record,
                theta,
                noise: &fit.predictor().open_start(&track.record, &noise),
            };
            let (equations, pass) = smoother.eliminate(&track.smoothed, 1, 0);
            misfit += 2.0 * pass.half_square(&pass.means);
            all.add(&equations);
        }
        let n = theta.len();
        let a = Matrix::from_fn(n, n, |i, j| all.entry(i, j));
        let finite = misfit.is_finite() && all.b.iter().chain(a.data()).all(|v| v.is_finite());
        finite.then_some(Asked {
            a,
            b: all.b,
            misfit,
        })
    }

    /// A choice with its constants as Gauss and Newton's method has them on these records, and what it then leaves.
    fn corrected(
        &self,
        model: &Model,
        fronts: &[Front],
        choice: &Choice,
    ) -> Option<(Choice, Left)> {
        let replaced = choice.replacements(model, fronts);
        let text = rewrite::rewrite(model, &replaced).ok()?;
        let names: Vec<String> = replaced.iter().flat_map(|r| r.names.clone()).collect();
        let model = self.model(&text)?;
        let stated: Vec<(String, f64)> = names.iter().cloned().zip(choice.constants()).collect();
        let mut theta = self.theta(&model, &stated);
        let mut at = self.ask(&model, &theta)?;
        for _ in 0..STEPS {
            let n = theta.len();
            let damped = Matrix::from_fn(n, n, |i, j| at.a[(i, j)] + f64::from(u8::from(i == j)));
            let step = Factor::new(damped)?.solve(&at.b);
            let better = (0..HALVINGS).find_map(|halved| {
                let length = 0.5f64.powi(halved as i32);
                let moved = theta.iter().zip(&step).map(|(t, s)| t + length * s);
                let moved: Vec<f64> = moved.collect();
                let ahead = self.ask(&model, &moved)?;
                (ahead.misfit < at.misfit).then_some((moved, ahead))
            });
            let Some((moved, ahead)) = better else { break };
            let gain = at.misfit - ahead.misfit;
            (theta, at) = (moved, ahead);
            if gain < 0.1 {
                break;
            }
        }
        let value = |name: &String| {
            let place = model.unknowns.iter().position(|u| u.name == *name)?;
            Some(model.unknowns[place].value(theta[place]))
        };
        let constants: Option<Vec<f64>> = names.iter().map(value).collect();
        let left = Left {
            misfit: at.misfit,
            constants: theta.len(),
        };
        Some((choice.at(&constants?), left))
    }

    /// All terms of an output's library, as the records see them from a choice.
    fn dictionary(
        &self,
        model: &Model,
        fronts: &[Front],
        base: &Choice,
        place: usize,
        output: &Place,
    ) -> Option<Dictionary> {
        let formula = base.formula(place);
        let library = output.library;
        let all = [&library.powers, &library.bent, &library.curved];
        let all = all.into_iter().flatten().chain(&formula.terms);
        let (terms, sizes) = finite(output.target, all.cloned().collect());
        // the formula itself has the factor 1 + e
        let count = formula.constants.len();
        let mut text = format!("(1 + ${})*({})", count + 1, formula.text);
        for (k, term) in terms.iter().enumerate() {
            text += &format!(" + ${}*{}", count + 2 + k, term.filled());
        }
        let mut constants = formula.constants.clone();
        constants.resize(count + 1 + terms.len(), 0.0);
        let mut large = base.scales(place).to_vec();
        large.push(1.0);
        large.extend(sizes);
        let whole = Formula {
            text,
            constants,
            names: vec![],
            terms: vec![],
        };
        let extended = base.replaced(place, whole, large);
        let replaced = extended.replacements(model, fronts);
        let text = rewrite::rewrite(model, &replaced).ok()?;
        let names = replaced[place].names.clone();
        let known: Vec<(String, f64)> = replaced
            .iter()
            .flat_map(|r| r.names.clone())
            .zip(extended.constants())
            .collect();
        let extended = self.model(&text)?;
        let asked = self.ask(&extended, &self.theta(&extended, &known))?;
        let at = |name: &String| extended.unknowns.iter().position(|u| u.name == *name);
        let columns: Option<Vec<usize>> = names[count..].iter().map(at).collect();
        let columns = columns?;
        let scales: Vec<f64> = columns[1..]
            .iter()
            .map(|k| extended.unknowns[*k].scale)
            .collect();
        // the formula's own constants go with it, all others adapt
        let formula_columns: Vec<usize> = names[..count].iter().filter_map(at).collect();
        let others: Vec<usize> = (0..asked.b.len())
            .filter(|k| !columns.contains(k) && !formula_columns.contains(k))
            .collect();
        let asked = asked.without(&columns, &others)?;
        Some(asked.as_columns(terms, &scales, self.count))
    }
}

impl Asked {
    /// The normal equations of some entries, others adapting.
    fn without(&self, kept: &[usize], others: &[usize]) -> Option<Self> {
        let o = others.len();
        let inner = Matrix::from_fn(o, o, |i, j| {
            self.a[(others[i], others[j])] + f64::from(u8::from(i == j))
        });
        let factor = Factor::new(inner)?;
        let white = |column: &[f64]| factor.whiten(column);
        let b_white = white(&others.iter().map(|i| self.b[*i]).collect::<Vec<_>>());
        let crossed: Vec<Vec<f64>> = kept
            .iter()
            .map(|k| white(&others.iter().map(|i| self.a[(*i, *k)]).collect::<Vec<_>>()))
            .collect();
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let p = kept.len();
        Some(Self {
            a: Matrix::from_fn(p, p, |i, j| {
                self.a[(kept[i], kept[j])] - dot(&crossed[i], &crossed[j])
            }),
            b: (0..p)
                .map(|i| self.b[kept[i]] - dot(&crossed[i], &b_white))
                .collect(),
            misfit: self.misfit,
        })
    }

    /// The first entry is the formula's own factor, which goes from one to zero; the others are those of terms. As columns
    /// whose products are A, and what their sum is to be.
    fn as_columns(&self, terms: Vec<Term>, scales: &[f64], count: f64) -> Dictionary {
        let p = terms.len();
        let norms: Vec<f64> = (1..=p).map(|j| self.a[(j, j)].max(0.0).sqrt()).collect();
        let usable: Vec<usize> = (0..p).filter(|j| norms[*j] > 0.0).collect();
        let q = usable.len();
        let scaled = Matrix::from_fn(q, q, |i, j| {
            let (i, j) = (usable[i], usable[j]);
            self.a[(i + 1, j + 1)] / (norms[i] * norms[j])
        });
        let found = Eigen::new(&scaled);
        let least = ROUNDING_PART * found.values.last().copied().unwrap_or(0.0);
        let directions: Vec<usize> = (0..q).filter(|k| found.values[*k] > least).collect();
        let column = |j: usize| -> Vec<f64> {
            let entries = directions.iter();
            entries
                .map(|k| found.values[*k].sqrt() * found.vectors[(j, *k)])
                .collect()
        };
        let pull: Vec<f64> = usable
            .iter()
            .map(|j| (self.b[j + 1] + self.a[(0, j + 1)]) / norms[*j])
            .collect();
        let white = directions.iter().map(|k| {
            let along: f64 = (0..q).map(|j| found.vectors[(j, *k)] * pull[j]).sum();
            along / found.values[*k].sqrt()
        });
        let known = Known {
            white: white.collect(),
            count: count as usize,
        };
        let columns: Vec<Vec<f64>> = (0..q).map(column).collect();
        // a factor of one is one of its scale
        let norms = usable.iter().map(|j| norms[*j] / scales[*j]).collect();
        let terms: Vec<Term> = usable.iter().map(|j| terms[*j].clone()).collect();
        let plain = terms.len();
        Dictionary::of_columns(terms, &columns, norms, known, plain)
    }
}

/// Terms that are finite at the points of a target, one of each, and how large the factor of each may be.
fn finite(target: &Target, terms: Vec<Term>) -> (Vec<Term>, Vec<f64>) {
    let arguments = target.points.first().map_or(0, Vec::len);
    let square = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
    let network = square(&target.values);
    let (mut kept, mut sizes): (Vec<Term>, Vec<f64>) = (vec![], vec![]);
    for term in terms {
        let Ok(compiled) = Compiled::new(&[&term.filled()], arguments, 0) else {
            continue;
        };
        let size = (network / square(&compiled.values(&target.points, &[])[0])).sqrt();
        if size.is_finite() && size > 0.0 && !kept.contains(&term) {
            kept.push(term);
            sizes.push(size);
        }
    }
    (kept, sizes)
}
