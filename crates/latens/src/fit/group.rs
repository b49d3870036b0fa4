//! Groups of records: what a fit learns from has the number of its group, what it is used on has a
//! fit of its own group.
//!
//! Where a constant varies by group, θ has its mean and the difference of each group, p = m + d. A fit
//! for one group is an ordinary one, in which m + d, with its variance, stands in place of m. For a group
//! that was not learned from, the differences of the others are left out, and a state of the population's
//! variance takes their place: what varies by record does the same. So whatever uses a fit knows nothing of
//! groups.

use super::facts::{self, Facts};
use super::learn::Data;
use super::{Fit, Population, Track, Warning};
use crate::Error;
use crate::model::{Model, Varies};
use crate::numerics::Trajectory;
use crate::numerics::linalg::PackedCovariance;
use crate::record::{Record, Source};

/// What a constant that stands still walks by in a sample, as a part of its scale: rounding.
const STILL_WALK_PART: f64 = 1e-8;

/// Labels in the order in which they come first.
pub(crate) fn distinct<'a>(labels: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut distinct: Vec<String> = vec![];
    for label in labels {
        if !distinct.contains(label) {
            distinct.push(label.clone());
        }
    }
    distinct
}

/// A model that knows the groups, and records with the numbers of theirs.
pub(super) struct Grouped {
    pub model: Model,
    train: Vec<Source>,
    validate: Vec<Source>,
}

impl Grouped {
    pub fn data(&self) -> Data<'_> {
        Data {
            train: &self.train,
            validate: &self.validate,
        }
    }
}

/// `None` where nothing varies by group.
///
/// # Errors
/// [`Error::Setting`] for a record without a group, or one to validate with of a group that is not
/// learned from.
pub(super) fn grouped(model: &Model, data: Data) -> Result<Option<Grouped>, Error> {
    let mut unknowns = model.unknowns.iter();
    let Some(unknown) = unknowns.find(|u| u.varies == Some(Varies::Group)) else {
        return Ok(None);
    };
    let fail = |message: String| Err(Error::Setting(message));
    for (role, source) in data.by_role() {
        if source.group.is_none() {
            return fail(format!(
                "{} has no group, and `{}` varies by group: say which column has its label (⟦map group=<column>⟧), or the label itself (⟦group⟧)",
                source.file, unknown.name
            ));
        }
        let known = data.train.iter().any(|s| s.group == source.group);
        if !known {
            return fail(format!(
                "{} is to {role}, and of group {}, which no record to learn from is of: what a new group does is said by a test",
                source.file,
                source.group.as_deref().unwrap_or_default()
            ));
        }
    }
    let labels = distinct(data.train.iter().filter_map(|s| s.group.as_ref()));
    let model = model.for_groups(&labels)?;
    let numbered_source = |source: &Source| Source {
        record: numbered(&model, &source.record, source.group.as_deref()),
        ..source.clone()
    };
    Ok(Some(Grouped {
        train: data.train.iter().map(numbered_source).collect(),
        validate: data.validate.iter().map(numbered_source).collect(),
        model,
    }))
}

/// A record with the number of its group, where the model has one, and the states of the model.
fn numbered(model: &Model, record: &Record, label: Option<&str>) -> Record {
    let place = model
        .groups()
        .iter()
        .position(|l| Some(l.as_str()) == label);
    let number = place.map_or(0.0, |place| (place + 1) as f64);
    let states = model.states.len();
    // it may have a number of another fit
    let bare = record.sized(model.inputs.len(), 0.0, states);
    bare.sized(model.system.inputs(), number, states)
}

/// How the entries of θ of one model follow from those of another: each is one of them, or the sum of two.
struct Entries(Vec<(usize, Option<usize>)>);

impl Entries {
    /// Of the fit for one group, or for none of them.
    fn new(model: &Model, group: Option<usize>) -> Self {
        let groups = model.group_entries();
        let is_of_group = |i: usize| groups.iter().any(|(_, range)| range.contains(&i));
        let added = |i: usize| {
            let (_, range) = groups.iter().find(|(place, _)| *place == i)?;
            Some(range.start + group?)
        };
        let kept = (0..model.system.parameters()).filter(|&i| !is_of_group(i));
        Self(kept.map(|i| (i, added(i))).collect())
    }

    fn apply(&self, from: &[f64]) -> Vec<f64> {
        let entries = self.0.iter();
        entries
            .map(|&(i, added)| from[i] + added.map_or(0.0, |j| from[j]))
            .collect()
    }

    /// J C Jᵀ.
    fn covariance(&self, from: &PackedCovariance) -> PackedCovariance {
        let packed = from.clone().to_packed();
        let entry = |i: usize, j: usize| packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
        let terms = |at: (usize, Option<usize>)| std::iter::once(at.0).chain(at.1);
        let lower = (0..self.0.len()).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let entry_of_group = |(i, j): (usize, usize)| -> f64 {
            let pairs = terms(self.0[i]).flat_map(|a| terms(self.0[j]).map(move |b| (a, b)));
            pairs.map(|(a, b)| entry(a, b)).sum()
        };
        PackedCovariance::from_packed(
            self.0.len(),
            lower.map(entry_of_group).collect(),
            from.precision(),
        )
    }
}

impl Fit {
    /// The fit for records of one group: an ordinary one, whose constants are that group's. Of a group that
    /// was not learned from, or where nobody says which, that of the population: what varies by group
    /// starts at the mean with the population's spread, and follows the first samples. A fit without
    /// groups is itself.
    ///
    /// # Errors
    /// None of what [`Fit::load`] has read.
    pub fn for_group(&self, label: Option<&str>) -> Result<Self, Error> {
        let labels = self.model.groups();
        if labels.is_empty() {
            return Ok(self.clone());
        }
        let group = labels.iter().position(|l| Some(l.as_str()) == label);
        let entries = Entries::new(&self.model, group);
        let known_label = group.map(|g| labels[g].clone());
        let model = self.model.for_groups(known_label.as_slice())?;
        let theta = entries.apply(&self.theta);
        let covariance = entries.covariance(&self.covariance);
        let facts = self.facts_for(
            &model,
            &entries,
            known_label.as_deref(),
            &theta,
            &covariance,
        );
        let tracks = self.tracks.iter().filter(|track| {
            let track_group = &self.facts_of(track).group;
            known_label.is_none() || *track_group == known_label
        });
        let tracks = tracks.map(|track| self.track_for(&model, &facts, track));
        let members = self.members.iter().map(|member| member.for_group(label));
        Ok(Self {
            name: self.name.clone(),
            draws: self.draws.iter().map(|d| entries.apply(d)).collect(),
            tracks: tracks.collect(),
            tests: vec![],
            missing: vec![],
            members: members.collect::<Result<_, _>>()?,
            stream: None,
            theta,
            covariance,
            facts,
            model,
        })
    }

    fn facts_for(
        &self,
        model: &Model,
        entries: &Entries,
        group: Option<&str>,
        theta: &[f64],
        covariance: &PackedCovariance,
    ) -> Facts {
        let mut facts = self.facts.clone();
        let before = std::mem::take(&mut facts.unknowns);
        facts.unknowns = facts::constants(model, &facts.settings, theta, covariance);
        facts.correlation = facts::correlation(facts.unknowns.len(), covariance);
        // there is no fit to resume
        facts.checkpoint = None;
        if let Some(evidence) = facts.evidence.as_mut().filter(|e| !e.prior.is_empty()) {
            evidence.prior = entries.apply(&evidence.prior);
        }
        facts.group = group.map(String::from);
        if group.is_some() {
            return facts;
        }
        facts.records.iter_mut().for_each(|r| r.group = None);
        for (constant, before) in facts.unknowns.iter_mut().zip(before) {
            constant.population = before.population;
        }
        // the states of groups come after all others, in the order of their constants
        for (place, _) in self.model.group_entries() {
            let population = facts.unknowns[place].population.as_ref();
            let spread = population.map_or(0.0, |p: &Population| p.spread);
            let scale = model.unknowns[place].difference_scale();
            let spread = spread.max(STILL_WALK_PART * scale);
            let walk = (STILL_WALK_PART * scale).powi(2);
            facts.noise.process.push(walk);
            facts.noise.start.push(spread * spread);
            facts.noise.start_mean.push(0.0);
            facts.scales.center.push(0.0);
            facts.scales.scale.push(spread);
            if !facts.scales.spread.is_empty() {
                facts.scales.spread.push(0.0);
            }
            facts.scales.certain.push(true);
            facts.scales.walk.push(walk);
        }
        facts
    }

    /// A track with the states of another model: differences of which nothing is known are zero.
    fn track_for(&self, model: &Model, facts: &Facts, track: &Track) -> Track {
        let n = model.states.len();
        let wide = |values: &Trajectory, new: &dyn Fn(usize) -> f64| {
            let rows = values.rows().flat_map(|row| {
                let more = (row.len()..n).map(new);
                row.iter().copied().chain(more).collect::<Vec<f64>>()
            });
            Trajectory::new(rows.collect(), n)
        };
        let zero = |_| 0.0;
        Track {
            place: track.place,
            record: track.record.sized(model.system.inputs(), 0.0, n),
            smoothed: wide(&track.smoothed, &zero),
            deviations: wide(&track.deviations, &|i| facts.scales.scale[i]),
            one_step: wide(&track.one_step, &zero),
            free_run: wide(&track.free_run, &zero),
        }
    }

    /// A record as it was learned from, with the number of its group.
    pub(crate) fn numbered(&self, record: &Record, label: Option<&str>) -> Record {
        if self.model.groups().is_empty() {
            return record.clone();
        }
        numbered(&self.model, record, label)
    }

    /// The record of a track, as its file has it.
    pub fn source(&self, track: &Track) -> Source {
        let (facts, model) = (self.facts_of(track), &self.model);
        let record = &track.record;
        Source {
            file: facts.file.clone(),
            sha256: facts.sha256.clone(),
            record: if model.groups().is_empty() {
                record.clone()
            } else {
                record.sized(model.inputs.len(), 0.0, record.d_x)
            },
            group: facts.group.clone(),
        }
    }

    /// A record that it is used on, with as many states as it has.
    pub(super) fn sized(&self, source: &Source) -> Source {
        let record = &source.record;
        Source {
            record: record.sized(record.d_u, 0.0, self.model.states.len()),
            ..source.clone()
        }
    }

    /// Without the states that a fit for a new group has more.
    pub(super) fn own_states(&self, states: &Trajectory) -> Trajectory {
        states.narrowed(self.model.states.len())
    }

    /// What to know of a record whose group was not learned from.
    pub(super) fn new_group(&self, source: &Source) -> Option<Warning> {
        let known = self.model.groups();
        let label = source.group.as_ref();
        let new = label.is_none_or(|label| !known.contains(label));
        new.then(|| Warning::NewGroup {
            file: source.file.clone(),
            group: label.cloned(),
            known: known.to_vec(),
        })
    }

    /// Refuses what must be asked of the fit for one group.
    pub(super) fn refuse_groups(&self, action: &str) -> Result<(), Error> {
        match self.model.groups() {
            [] => Ok(()),
            known => Err(Error::Setting(format!(
                "this fit has values for {} groups: {action} with the fit for one of them, or for a new one (`for_group`)",
                known.len()
            ))),
        }
    }
}
