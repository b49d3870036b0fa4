//! The profile of a constant: the least value of the objective with the constant held, all else refitted.
//!
//! All else are the other constants, the weights and the states. Each point begins where its neighbour ended. The
//! objective is the one that was minimised, with the prior of the parameters in it: it is the profile of the
//! posterior, and where the prior closes an interval, not the data, that is said. With L the objective and p
//! the constant, the interval of 95 % is
//!
//! ```text
//! { p : min L(p, ·) − min L ≤ ½ · 1.96² }
//! ```
//!
//! For a model that is linear in everything it is the linear interval; elsewhere it keeps its meaning where the
//! linear one does not. Two sides of all constants are walked along in parallel, and what comes of one
//! does not depend on the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::facts::NORMAL_95_DEVIATIONS;
use super::reopened::Reopened;
use super::{BoundName, Fit};
use crate::described;
use crate::described::{Described, Value};
use crate::model::Unknown;
use crate::solve::batch::again::{Stand, Walk};
use crate::solve::{Observer, Progress};
use crate::{Error, suggest};

/// Points of a side at the most, and how far they are apart: in signed roots of the rise, which are
/// deviations where everything is linear.
const MOST_POINTS: usize = 16;
const POINT_DISTANCE: f64 = 0.7;
/// A side is flat where so many linear deviations away the objective has not risen enough.
const FARTHEST_DEVIATIONS: f64 = 30.0;
/// Points beyond the interval have risen so far at the most, and the interval's ends are interpolated no
/// farther than this.
const CLOSE_RISE_ROOT: f64 = 0.35;
/// A point this far below the minimum says that it was none.
const LOWER_RISE: f64 = 0.02;
/// Steps that lead nowhere are halved so often.
const MOST_HALVINGS: usize = 3;

/// Why an interval has no end on a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Open {
    /// The bound of the model file comes first.
    Bound,
    /// The objective does not rise enough, however far away.
    Flat,
    /// The equations leave the finite numbers.
    Lost,
    /// Somebody ended it before its time.
    Stopped,
}

impl Described for Open {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Bound, Self::Flat, Self::Lost, Self::Stopped] })
    }
}

described! {
/// The profiles of constants of a fit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Profile {
    /// The folder of the fit, or what it is called.
    pub run: String,
    /// Each constant.
    pub constants: Vec<ConstantProfile>,
    /// By how much the objective was lower on the way than at the end of the fit; the profiles stand on
    /// the lower point.
    pub lower: f64,
}

/// The profile of a constant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConstantProfile {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Where the objective is least.
    pub value: f64,
    /// It lies between these with 95 %, by the curvature there.
    pub linear: (f64, f64),
    /// The lower end of its interval of 95 % by the profile; none where that is open.
    pub from: Option<f64>,
    /// The upper end.
    pub to: Option<f64>,
    /// Why the interval has no lower end.
    pub open_below: Option<Open>,
    /// Why it has no upper end.
    pub open_above: Option<Open>,
    /// Whether the prior makes the lower end more than the data do.
    pub prior_below: bool,
    /// The same of the upper end.
    pub prior_above: bool,
    /// The points of the profile, by value.
    pub points: Vec<ProfilePoint>,
}

/// A point of a profile.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ProfilePoint {
    /// Where the constant is held.
    pub value: f64,
    /// By how much the objective is above its least value.
    pub rise: f64,
}
}

/// One side of a profile.
struct Side {
    /// From the minimum outward, without it.
    points: Vec<Stand>,
    /// The entry of θ where the interval ends.
    end: Result<f64, Open>,
    /// Whether the prior ends it.
    prior: bool,
}

/// Profiles of the constants of a fit by name; of all where none is named.
///
/// # Errors
/// [`Error::Setting`] for a name that there is not, or a fit of a solver that minimises nothing to walk along;
/// divergence, or a stop.
pub fn profile(fit: &Fit, names: &[String], observer: &mut dyn Observer) -> Result<Profile, Error> {
    let places = places(fit, names)?;
    let opened = Reopened::new(fit)?;
    opened.with(|problem| {
        let again = opened.again(problem).ok_or_else(|| {
            Error::Setting(format!(
                "{} has no objective to walk along: only batch ends at its minimum; fit with solver batch",
                fit.name
            ))
        })?;
        let mut walk = again.walk(observer)?;
        let mut sides = all_sides(&walk, &problem.model.unknowns, &places, observer)?;
        let mut below = 0.0;
        // once: what is lower still is said by the points themselves
        let stopped = |side: &Side| side.end == Err(Open::Stopped);
        if let Some(lower) = lowest(&sides).filter(|_| !sides.iter().any(stopped)) {
            below = -lower.rise;
            walk = walk.based_on(lower);
            sides = all_sides(&walk, &problem.model.unknowns, &places, observer)?;
        }
        let mut sides = sides.into_iter();
        let constants = places.iter().map(|&i| {
            let [below, above] = [sides.next(), sides.next()].map(|s| s.expect("two of each"));
            let unknown = &problem.model.unknowns[i];
            of_sides(unknown, &walk, i, &below, &above)
        });
        Ok(Profile {
            run: fit.name.clone(),
            constants: constants.collect(),
            lower: below,
        })
    })
}

/// The places of constants among the unknowns.
fn places(fit: &Fit, names: &[String]) -> Result<Vec<usize>, Error> {
    let known: Vec<&str> = fit.model.unknowns.iter().map(|u| u.name.as_str()).collect();
    if known.is_empty() {
        return Err(Error::Setting(format!(
            "the model of {} has no unknown constant; a profile is of a constant",
            fit.name
        )));
    }
    if names.is_empty() {
        return Ok((0..known.len()).collect());
    }
    let place =
        |name: &String| suggest::find(name, &known, "unknown constant").map_err(Error::Setting);
    names.iter().map(place).collect()
}

/// Both sides of each constant, in parallel.
fn all_sides(
    walk: &Walk,
    unknowns: &[Unknown],
    places: &[usize],
    observer: &mut dyn Observer,
) -> Result<Vec<Side>, Error> {
    let shared = Mutex::new(observer);
    let (done, count) = (AtomicUsize::new(0), 2 * places.len());
    let tasks: Vec<(usize, f64)> = places.iter().flat_map(|&i| [(i, -1.0), (i, 1.0)]).collect();
    let side_of = |&(i, sign): &(usize, f64)| {
        let mut listening = Listening {
            shared: &shared,
            done: &done,
            count,
        };
        let side = side(walk, &unknowns[i], i, sign, &mut listening);
        done.fetch_add(1, Ordering::Relaxed);
        side
    };
    tasks.par_iter().map(side_of).collect()
}

/// An observer that several walks ask in turn; it hears how many are done.
struct Listening<'a, 'o> {
    shared: &'a Mutex<&'o mut dyn Observer>,
    done: &'a AtomicUsize,
    count: usize,
}

impl Observer for Listening<'_, '_> {
    fn progress(&mut self, progress: &Progress) -> bool {
        let mut observer = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        observer.progress(&Progress {
            pass: self.done.load(Ordering::Relaxed) + 1,
            passes: self.count,
            ..*progress
        })
    }
}

/// Walks from the minimum to one side until the objective has risen enough.
fn side(
    walk: &Walk,
    unknown: &Unknown,
    i: usize,
    sign: f64,
    observer: &mut dyn Observer,
) -> Result<Side, Error> {
    let start = walk.start(i);
    let deviation = walk.deviation(i);
    let (least, most) = unknown.bounds();
    let bound = if sign < 0.0 { least } else { most };
    let mut points = vec![start.clone()];
    let mut step = POINT_DISTANCE * deviation;
    let mut halvings = 0;
    let mut end = Err(Open::Flat);
    while points.len() < MOST_POINTS {
        let last = &points[points.len() - 1];
        let wanted = last.theta + sign * step;
        let theta = if sign < 0.0 {
            wanted.max(bound)
        } else {
            wanted.min(bound)
        };
        if theta == last.theta {
            end = Err(Open::Bound);
            break;
        }
        if (theta - start.theta).abs() > FARTHEST_DEVIATIONS * deviation {
            break;
        }
        let next = match walk.stand(i, theta, last, observer) {
            Ok(next) if next.rise.is_finite() => next,
            Ok(_) | Err(Error::Diverged(_)) if halvings < MOST_HALVINGS => {
                halvings += 1;
                step *= 0.5;
                continue;
            }
            Ok(_) | Err(Error::Diverged(_)) => {
                end = Err(Open::Lost);
                break;
            }
            Err(Error::Stopped) => {
                end = Err(Open::Stopped);
                break;
            }
            Err(error) => return Err(error),
        };
        let (before, after) = (root(last), root(&next));
        if after > NORMAL_95_DEVIATIONS
            && after - NORMAL_95_DEVIATIONS.max(before) > CLOSE_RISE_ROOT
            && after - before > 2.0 * POINT_DISTANCE
            && halvings < MOST_HALVINGS
        {
            // too far to interpolate
            halvings += 1;
            step *= 0.5;
            continue;
        }
        let moved = (theta - last.theta).abs();
        points.push(next);
        if after >= NORMAL_95_DEVIATIONS {
            end = Ok(0.0);
            break;
        }
        let slope = ((after - before) / moved).max(0.1 * POINT_DISTANCE / moved);
        step = (POINT_DISTANCE / slope)
            .clamp(0.5 * moved, 2.5 * moved)
            .min((NORMAL_95_DEVIATIONS + 0.5 * CLOSE_RISE_ROOT - after).max(0.2) / slope);
    }
    if end.is_ok() {
        let at = crossing(&points);
        // the end itself is a point, so that it is no interpolation over a long way
        let from = points[points.len() - 2].clone();
        let at_end = walk.stand(i, at, &from, observer);
        match at_end {
            Ok(at_end) if at_end.rise.is_finite() => {
                let place = points.len() - 1;
                points.insert(place, at_end);
                end = Ok(crossing(&points));
            }
            Ok(_) | Err(Error::Diverged(_) | Error::Stopped) => end = Ok(at),
            Err(error) => return Err(error),
        }
    }
    let last = &points[points.len() - 1];
    let prior = end.is_ok() && last.prior > 0.5 * last.rise;
    points.remove(0);
    Ok(Side { points, end, prior })
}

/// √(2 rise): the distance in deviations, were everything linear.
fn root(stand: &Stand) -> f64 {
    (2.0 * stand.rise.max(0.0)).sqrt()
}

/// The entry of θ where the root of the rise is that of 95 %, between the two points around it.
fn crossing(points: &[Stand]) -> f64 {
    let outside = points.iter().position(|p| root(p) >= NORMAL_95_DEVIATIONS);
    let outside = outside.unwrap_or(points.len() - 1).max(1);
    let (a, b) = (&points[outside - 1], &points[outside]);
    let (low, high) = (root(a), root(b));
    if high > low {
        a.theta + (b.theta - a.theta) * (NORMAL_95_DEVIATIONS - low) / (high - low)
    } else {
        b.theta
    }
}

/// The lowest point, where it is below the minimum.
fn lowest(sides: &[Side]) -> Option<Stand> {
    let points = sides.iter().flat_map(|s| &s.points);
    let lowest = points.min_by(|a, b| a.rise.total_cmp(&b.rise))?;
    (lowest.rise < -LOWER_RISE).then(|| lowest.clone())
}

fn of_sides(
    unknown: &Unknown,
    walk: &Walk,
    i: usize,
    below: &Side,
    above: &Side,
) -> ConstantProfile {
    let (start, reach) = (walk.start(i), NORMAL_95_DEVIATIONS * walk.deviation(i));
    let (least, most) = unknown.bounds();
    let value = |theta: f64| unknown.value(theta.clamp(least, most));
    let points = below
        .points
        .iter()
        .rev()
        .chain([&start])
        .chain(&above.points);
    let points = points.map(|stand| ProfilePoint {
        value: unknown.value(stand.theta),
        rise: stand.rise,
    });
    ConstantProfile {
        name: unknown.name.clone(),
        unit: unknown.unit.clone(),
        value: unknown.value(start.theta),
        linear: (value(start.theta - reach), value(start.theta + reach)),
        from: below.end.ok().map(value),
        to: above.end.ok().map(value),
        open_below: below.end.err(),
        open_above: above.end.err(),
        prior_below: below.prior,
        prior_above: above.prior,
        points: points.collect(),
    }
}

impl ConstantProfile {
    /// What must be known of it beside its intervals, in words.
    pub fn remark(&self) -> Option<String> {
        let open = |side: &str, open: Option<Open>, bound: BoundName| {
            let why = match open? {
                Open::Bound => format!("its {bound} comes first"),
                Open::Flat => "the data and the prior leave it open".into(),
                Open::Stopped => "it was stopped before its time".into(),
                Open::Lost => "farther on the equations leave the finite numbers".into(),
            };
            Some(format!("open {side}: {why}"))
        };
        let closed = match (self.prior_below, self.prior_above) {
            (true, true) => Some("both ends are the prior's, not the data's"),
            (true, false) => Some("the lower end is the prior's, not the data's"),
            (false, true) => Some("the upper end is the prior's, not the data's"),
            (false, false) => None,
        };
        let remarks: Vec<String> = [
            open("below", self.open_below, BoundName::Min),
            open("above", self.open_above, BoundName::Max),
            closed.map(String::from),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}
