//! What to know before a result is used, as data; a door words it.

use serde::{Deserialize, Serialize};

use super::facts::NORMAL_95_DEVIATIONS;
use super::other_values::OtherValues;
use super::{Facts, Fit, Prediction, Role};
use crate::error::{Door, worded};
use crate::look::check::{Check, Sight, StateCheck};
use crate::look::{
    DETERMINED_SCALE_PART, Finding, Invariance, Leaving, RESOLUTION, Stiffness, Suspect, sight,
};
use crate::model::Model;
use crate::numerics::Entry;
use crate::record::{Record, Source};
use crate::text;

/// Innovations are as expected while their mean square is within this factor of the filter's.
const SURPRISE_FACTOR: f64 = 4.0;

/// A step that differs from the model's by less than this part of it is not worth a word.
const NOTABLE_STEP: f64 = 0.1;

/// Units of time are so many times each other, within this part.
const TIME_UNIT_FACTORS: [f64; 7] = [24.0, 60.0, 1e3, 1440.0, 3600.0, 86_400.0, 1e6];
const NEARLY_RATIO_PART: f64 = 0.02;
/// Of the readings that were foreseen fewer than this part in their bands are told of, where it is no chance of few.
const FEWEST_INSIDE_PART: f64 = 0.8;
const CHANCE_DEVIATIONS: f64 = 3.0;

/// What to know before a result is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The records do not tell these states apart.
    NotToldApart {
        /// By name.
        states: Vec<String>,
    },
    /// These states can be negated together, and nothing that is measured feels it.
    SignOpen {
        /// By name.
        states: Vec<String>,
    },
    /// Constants can be changed together, and nothing measured feels it.
    NothingFeels {
        /// Which, and how.
        change: Invariance,
    },
    /// The records do not show a state, or not always.
    PoorlySeen {
        /// What the records say of it.
        state: Box<StateCheck>,
    },
    /// Some arguments of a network follow from the others.
    ArgumentsFollow {
        /// Its name.
        network: String,
        /// By name.
        arguments: Vec<String>,
        /// How many of them do.
        follow: usize,
    },
    /// Some arguments of a network never move.
    ArgumentsStill {
        /// Its name.
        network: String,
        /// By name.
        arguments: Vec<String>,
    },
    /// Records whose step is not the one that the model states.
    Step {
        /// By name.
        files: Vec<String>,
        /// The records'.
        step: f64,
        /// The model's.
        model: f64,
        /// What the model counts time in.
        #[serde(default)]
        unit: String,
    },
    /// A free run is no better than a constant.
    FreeRunLost {
        /// The record.
        file: String,
        /// What it served for.
        role: Role,
        /// By name.
        channels: Vec<String>,
    },
    /// No start worked, and the least bad is what there is.
    NoStartWorked {
        /// How many were tried.
        tried: usize,
        /// Why the best one failed.
        why: String,
    },
    /// Other values of the constants explain the records nearly as well.
    OtherValues {
        /// Which.
        values: OtherValues,
    },
    /// Members that an ensemble was asked for and does not have.
    MembersMissing {
        /// How many there are.
        members: usize,
        /// How many were asked for.
        asked: usize,
        /// Whether the fit was stopped.
        stopped: bool,
    },
    /// A test that had a part in the fit.
    TestPlayedPart {
        /// The record.
        file: String,
    },
    /// A prediction leaves the finite numbers.
    LeavesNumbers {
        /// The record.
        file: String,
        /// Its name.
        state: String,
        /// After or among so many samples.
        samples: usize,
    },
    /// A network meets arguments unlike any in training.
    Extrapolates {
        /// The record.
        file: String,
        /// The part of the record.
        part: f64,
    },
    /// The first samples do not show where a prediction starts.
    StartUndetermined {
        /// The record.
        file: String,
        /// After or among so many samples.
        samples: usize,
        /// By name.
        states: Vec<String>,
    },
    /// Bands are wider than what training left unexplained.
    BandsSpread {
        /// The record.
        file: String,
        /// Its name.
        channel: String,
        /// Its unit.
        unit: String,
        /// Root mean square of the bands.
        spread: f64,
        /// What training left unexplained.
        left: f64,
    },
    /// Readings of a record that was predicted lie outside of their bands.
    OutsideBands {
        /// The record.
        file: String,
        /// Its name.
        channel: String,
        /// The part of its readings that lies inside.
        inside: f64,
    },
    /// There are no draws of θ.
    NoDraws {
        /// Its name.
        fit: String,
    },
    /// Of an ensemble, one member is adapted.
    OneMemberAdapted {
        /// Its name.
        fit: String,
        /// The member's.
        seed: u64,
    },
    /// A record follows the equations less closely than they claim.
    Loosened {
        /// The record.
        file: String,
        /// How many times.
        factor: f64,
    },
    /// A record of a group that was not learned from.
    NewGroup {
        /// The record.
        file: String,
        /// Its label, where it has one.
        group: Option<String>,
        /// The labels of those that were.
        known: Vec<String>,
    },
    /// Measurements surprise the filter by this factor of what it expects.
    Surprise {
        /// The record.
        file: String,
        /// How many times.
        factor: f64,
    },
    /// Readings of a channel that contradict the others and were set aside.
    SuspectReadings {
        /// The record.
        file: String,
        /// Its name.
        channel: String,
        /// All of them.
        readings: Vec<Suspect>,
    },
    /// At its guesses the model leaves the finite numbers.
    GuessesLeaveNumbers {
        /// Where and how.
        leaves: Box<Leaving>,
    },
    /// The equations are too stiff for the model's explicit method.
    TooStiff {
        /// Where and by how much.
        stiffness: Box<Stiffness>,
    },
    /// What a sensor, or the misfit of the model, shows to be wrong.
    #[serde(untagged)]
    Finding(Finding),
    /// As another version of Latens said it.
    #[serde(untagged)]
    Other(String),
}

impl Warning {
    /// In the words of a door.
    ///
    /// ```
    /// use latens::{Door, Warning};
    ///
    /// let warning = Warning::NoStartWorked { tried: 3, why: "it diverged".into() };
    /// assert!(warning.at(Door::CommandLine).ends_with("try more --starts"));
    /// assert!(warning.at(Door::Python).ends_with("try more starts="));
    /// ```
    pub fn at(&self, door: Door) -> String {
        worded(&self.words(), door)
    }

    /// For programs: its kind, its numbers, and the words of a door.
    pub fn to_json(&self, door: Door) -> serde_json::Value {
        let text = self.at(door);
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(mut object)) => {
                object.insert("text".into(), text.into());
                object.into()
            }
            _ => serde_json::json!({ "kind": "other", "text": text }),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::NotToldApart { states } => sight::together(states),
            Self::SignOpen { states } => sight::mirrored(states),
            Self::NothingFeels { change } => {
                let which = if change.constants.len() > 1 {
                    "one of them"
                } else {
                    "it"
                };
                let start = change.states.first().map_or(String::new(), |(state, _)| {
                    format!(", or say how well the start of {state} is known with start_deviation")
                });
                format!("{}; give {which} a value with ⟦fix⟧{start}", change.words())
            }
            Self::PoorlySeen { state } => {
                let when = match state.sight {
                    Sight::Partly | Sight::Undetermined => "before the fit, ",
                    _ => "",
                };
                format!("{when}{}", sight::state(state, false).unwrap_or_default())
            }
            Self::ArgumentsFollow {
                network,
                arguments,
                follow,
            } => sight::follow(network, arguments, *follow),
            Self::ArgumentsStill { network, arguments } => sight::still(network, arguments),
            Self::Step {
                files,
                step,
                model,
                unit,
            } => {
                let steps = format!(
                    "the step of {} is {}, the model's {}",
                    list(files),
                    text::with_unit(*step, unit),
                    text::with_unit(*model, unit)
                );
                match unit_factor(step / model) {
                    Some(factor) => format!(
                        "{steps}: {} times as {}, as if its times were counted in another unit; check the unit of its time column",
                        factor.max(1.0 / factor).round(),
                        if factor > 1.0 { "long" } else { "short" }
                    ),
                    None => format!(
                        "{steps}; the record's is used, which is harmless where the integration method is fine enough for it"
                    ),
                }
            }
            Self::FreeRunLost {
                file,
                role,
                channels,
            } => format!(
                "the free run over {file}{} predicts {} no better than a constant would: do not trust this model, however good its smoothed states look",
                match role {
                    Role::Validate => " (validation)",
                    Role::Test => " (test)",
                    Role::Train => "",
                },
                list(channels)
            ),
            Self::NoStartWorked { tried, why } => format!(
                "{} tried, none worked ({why}): the model or the data may be wrong; check units, signs and columns, or try more ⟦starts⟧",
                text::count(*tried, "start")
            ),
            Self::OtherValues { values } => values.words(),
            Self::MembersMissing {
                members,
                asked,
                stopped,
            } => format!(
                "the ensemble has {members} of {asked} members: {}",
                if *stopped {
                    "it was stopped before the others came to anything"
                } else {
                    "the other starts failed"
                }
            ),
            Self::TestPlayedPart { file } => {
                format!("{file} has played a part already: as a test it says nothing")
            }
            Self::LeavesNumbers {
                file,
                state,
                samples,
            } => format!(
                "the free run over {file} leaves the finite numbers in {state} after {samples} samples"
            ),
            Self::Extrapolates { file, part } => format!(
                "on {:.0} % of {file} a network meets values unlike any in training: the model guesses there",
                (100.0 * part).max(1.0)
            ),
            Self::StartUndetermined {
                file,
                samples,
                states,
            } => format!(
                "the first {samples} samples of {file} do not determine {}: the prediction starts from a guess; take more with ⟦warmup⟧",
                states.join(", ")
            ),
            Self::BandsSpread {
                file,
                channel,
                unit,
                spread,
                left,
            } => format!(
                "the bands of {channel} over {file} spread to {}, training left {}: what training did not determine decides this prediction",
                // a band that the data do not determine is known to its order of magnitude
                format!("{} {unit}", text::digits(*spread, 1)).trim_end(),
                format!("{} {unit}", text::digits(*left, 2)).trim_end()
            ),
            Self::OutsideBands {
                file,
                channel,
                inside,
            } => format!(
                "{} of the readings of {channel} in {file} lie in the 95 % bands of their prediction: the fit is surer of itself than this record bears out",
                text::percent(*inside)
            ),
            Self::NoDraws { fit } => format!(
                "{fit} holds no draws of θ (its solver makes none, a stream has gone on learning, or its Latens was older): bands count the start alone"
            ),
            Self::OneMemberAdapted { fit, seed } => format!(
                "{fit} is an ensemble; its best member (seed {seed}) alone is adapted and predicts"
            ),
            Self::Loosened { file, factor } => format!(
                "{file} follows the learned equations less closely than they claim: process noise taken {factor} times as large as the fit left it"
            ),
            Self::NewGroup { file, group, known } => {
                const SHOWN_GROUPS: usize = 5;
                let group = group.as_ref().map_or_else(
                    || "no group that is named".into(),
                    |label| format!("group {label}, which was not learned from"),
                );
                let more = if known.len() > SHOWN_GROUPS {
                    ", …"
                } else {
                    ""
                };
                let known = known[..known.len().min(SHOWN_GROUPS)].join(", ");
                format!(
                    "{file} is of {group} (those learned from: {known}{more}): it starts from the mean over groups, with their spread"
                )
            }
            Self::Surprise { file, factor } if *factor > 1.0 => format!(
                "on {file} the measurements surprise the filter {} times as much as it expects: states and bands are not to be trusted",
                text::number(*factor)
            ),
            Self::Surprise { file, factor } => format!(
                "on {file} the measurements surprise the filter only {} times as much as it expects: the bands are too wide",
                text::number(*factor)
            ),
            Self::SuspectReadings {
                file,
                channel,
                readings,
            } => suspect_readings(file, channel, readings),
            Self::GuessesLeaveNumbers { leaves } => leaves.words(),
            Self::TooStiff { stiffness } => stiffness.words(),
            Self::Finding(finding) => finding.words(),
            Self::Other(text) => text.clone(),
        }
    }

    /// What to know before time is spent on a fit.
    pub fn of_check(check: &Check) -> Vec<Self> {
        let mut warnings = Self::of_suspects(&check.suspects);
        warnings.extend(check.sensors.iter().cloned().map(Self::Finding));
        let stiffness = check.stiffness.iter().cloned().map(Box::new);
        warnings.extend(stiffness.map(|stiffness| Self::TooStiff { stiffness }));
        // networks at zero may well let a sound model grow beyond all numbers
        let telling = |l: &&Leaving| l.undefined || check.networks.is_empty();
        let leaves = check.leaves.as_ref().filter(telling);
        warnings.extend(leaves.map(|leaves| Self::GuessesLeaveNumbers {
            leaves: Box::new(leaves.clone()),
        }));
        if !leaves.is_some_and(|l| l.undefined) {
            warnings.extend(Self::of_states(check));
        }
        warnings
    }

    /// Of the states and the arguments of the networks.
    fn of_states(check: &Check) -> Vec<Self> {
        let together = check.together.iter().map(|group| Self::NotToldApart {
            states: group.clone(),
        });
        let mut warnings: Vec<Self> = together.collect();
        warnings.extend(check.mirrored.iter().map(|set| Self::SignOpen {
            states: set.clone(),
        }));
        let changes = check.invariances.iter().cloned();
        warnings.extend(changes.map(|change| Self::NothingFeels { change }));
        for state in &check.states {
            let member = check.together.iter().flatten().any(|n| *n == state.name);
            let fine = matches!(state.sight, Sight::Measured | Sight::Well);
            if !member && !fine {
                warnings.push(Self::PoorlySeen {
                    state: Box::new(state.clone()),
                });
            }
        }
        for coverage in &check.networks {
            let moving = coverage.arguments.len() - coverage.still.len();
            let follow = moving - coverage.directions;
            if follow > 0 {
                warnings.push(Self::ArgumentsFollow {
                    network: coverage.network.clone(),
                    arguments: coverage.dependent.clone(),
                    follow,
                });
            }
        }
        for coverage in &check.networks {
            // of a state that nothing shows that is no wonder, and said already
            let unseen = |name: &&String| {
                let state = check.states.iter().find(|s| s.name == **name);
                state.is_some_and(|s| !matches!(s.sight, Sight::Measured | Sight::Well))
            };
            let still: Vec<String> = coverage
                .still
                .iter()
                .filter(|n| !unseen(n))
                .cloned()
                .collect();
            if !still.is_empty() {
                warnings.push(Self::ArgumentsStill {
                    network: coverage.network.clone(),
                    arguments: still,
                });
            }
        }
        warnings
    }

    /// Readings that were set aside: one sentence for each channel of a record.
    pub fn of_suspects(suspects: &[Suspect]) -> Vec<Self> {
        let mut warnings: Vec<Self> = vec![];
        for suspect in suspects {
            let same = warnings.iter_mut().find_map(|warning| match warning {
                Self::SuspectReadings {
                    file,
                    channel,
                    readings,
                } => (*file == suspect.file && *channel == suspect.channel).then_some(readings),
                _ => None,
            });
            match same {
                Some(readings) => readings.push(suspect.clone()),
                None => warnings.push(Self::SuspectReadings {
                    file: suspect.file.clone(),
                    channel: suspect.channel.clone(),
                    readings: vec![suspect.clone()],
                }),
            }
        }
        warnings
    }

    /// Records whose step is not the one that the model states: one sentence for each such step.
    pub fn of_steps<'s>(
        model: &Model,
        records: impl IntoIterator<Item = (&'s str, &'s Record)>,
    ) -> Vec<Self> {
        let Some(assumed) = model.step else {
            return vec![];
        };
        let mut others: Vec<(f64, Vec<String>)> = vec![];
        for (file, record) in records {
            let step = record.step();
            // jitter of a clock: nobody needs to know
            if (step - assumed).abs() <= NOTABLE_STEP * assumed {
                continue;
            }
            let near = |other: &f64| (step - other).abs() <= Record::STEP_TOLERANCE * other;
            match others.iter_mut().find(|(other, _)| near(other)) {
                Some((_, files)) if files.iter().any(|f| f == file) => {}
                Some((_, files)) => files.push(file.into()),
                None => others.push((step, vec![file.into()])),
            }
        }
        let warnings = others.into_iter().map(|(step, files)| Self::Step {
            files,
            step,
            model: assumed,
            unit: model.time_unit.clone(),
        });
        warnings.collect()
    }

    /// Of a finished fit; `records` are those of its facts, `tests` what is to be said of the tests.
    pub(crate) fn of_fit(fit: &Fit, records: &[&Record], tests: Vec<Self>) -> Vec<Self> {
        let mut warnings = lost_free_runs(fit, records);
        // what the records show by themselves was said before the fit
        let findings = fit.facts.findings.iter();
        let findings = findings.filter(|f| !f.is_of_channel() && !f.is_of_record());
        warnings.extend(findings.cloned().map(Self::Finding));
        warnings.extend(tests);
        let facts = &fit.facts;
        let kept = facts.attempts.iter().find(|a| a.kept);
        if let Some(why) = kept.and_then(|kept| kept.failure.clone()) {
            warnings.push(Self::NoStartWorked {
                tried: facts.attempts.len(),
                why,
            });
        }
        let others = facts.other_values.iter().cloned();
        warnings.extend(others.map(|values| Self::OtherValues { values }));
        let (asked, members) = (facts.settings.ensemble, fit.members.len().max(1));
        if members < asked {
            warnings.push(Self::MembersMissing {
                members,
                asked,
                stopped: facts.stopped,
            });
        }
        warnings
    }

    /// Whether it says that a fit is not to be trusted: no start worked, or a free run is no better than a
    /// constant or leaves the finite numbers.
    pub fn is_distrust(&self) -> bool {
        matches!(
            self,
            Self::NoStartWorked { .. } | Self::FreeRunLost { .. } | Self::LeavesNumbers { .. }
        )
    }

    /// Of a fit that predicts; `adapts` says whether some of its constants are estimated again.
    pub(crate) fn of_use(fit: &Fit, adapts: bool) -> Vec<Self> {
        let mut warnings = vec![];
        if fit.draws.is_empty() {
            warnings.push(Self::NoDraws {
                fit: fit.name.clone(),
            });
        }
        if !fit.members.is_empty() && adapts {
            warnings.push(Self::OneMemberAdapted {
                fit: fit.name.clone(),
                seed: fit.facts.seed,
            });
        }
        warnings
    }

    /// Why a prediction of a file may be wrong: it leaves the finite numbers, or what training
    /// visited; its start is not known; or its bands are wider than what training left unexplained,
    /// so that what training did not determine decides it.
    pub fn of_prediction(facts: &Facts, model: &Model, file: &str, made: &Prediction) -> Vec<Self> {
        if let Some(Entry {
            row: samples,
            column: state,
        }) = made.states.first_lost()
        {
            return vec![Self::LeavesNumbers {
                file: file.into(),
                state: model.states[state].name.clone(),
                samples,
            }];
        }
        let mut warnings = vec![];
        if made.extrapolates() {
            warnings.push(Self::Extrapolates {
                file: file.into(),
                part: made.outside,
            });
        }
        let start = made.deviations.row(0).iter().enumerate();
        let unknown: Vec<String> = start
            .filter(|(i, std)| **std > DETERMINED_SCALE_PART * facts.scales.start_deviation(*i))
            .map(|(i, _)| model.states[i].name.clone())
            .collect();
        if !unknown.is_empty() {
            warnings.push(Self::StartUndetermined {
                file: file.into(),
                samples: made.from,
                states: unknown,
            });
        }
        for (k, channel) in model.measurements.iter().enumerate() {
            let deviations = made.output_deviations.column(k);
            let (sum, count) = deviations.fold((0.0, 0.0), |(s, n), std| (s + std * std, n + 1.0));
            let spread = f64::sqrt(sum / count);
            let left = left_unexplained(facts, k, &channel.name);
            // what bands were widened by is an error of the model, and not what training left open; nor is what pushes
            // the states about
            let widened = facts.proof.map_or(1.0, |proof| proof.widening);
            if facts.disturbed.is_none() && spread > left * widened {
                warnings.push(Self::BandsSpread {
                    file: file.into(),
                    channel: channel.name.clone(),
                    unit: channel.unit.clone(),
                    spread,
                    left,
                });
            }
        }
        warnings
    }

    /// Channels of a record whose readings lie outside of the bands that were foreseen for them. Errors of a prediction
    /// go together over many samples, so that only few readings inside say anything.
    pub(crate) fn of_foreseen(
        facts: &Facts,
        model: &Model,
        source: &Source,
        made: &Prediction,
    ) -> Vec<Self> {
        let channels = model.measurements.iter().enumerate();
        let outside = channels.filter_map(|(c, channel)| {
            let foreseen = made.outputs.column(c).zip(made.output_deviations.column(c));
            let readings = (made.from..source.record.len()).map(|k| source.record.output(k)[c]);
            let noise = facts.noise.measurement[c];
            let inside = |(y, (output, deviation)): (f64, (f64, f64))| {
                (y - output).powi(2)
                    < NORMAL_95_DEVIATIONS.powi(2) * (deviation * deviation + noise)
            };
            let taken = readings.zip(foreseen).filter(|(y, _)| y.is_finite());
            let inside: Vec<bool> = taken.map(inside).collect();
            let part = inside.iter().filter(|inside| **inside).count() as f64 / inside.len() as f64;
            let chance = (0.95 * 0.05 / inside.len() as f64).sqrt();
            let few = FEWEST_INSIDE_PART.min(0.95 - CHANCE_DEVIATIONS * chance);
            (part < few).then(|| Self::OutsideBands {
                file: source.file.clone(),
                channel: channel.name.clone(),
                inside: part,
            })
        });
        outside.collect()
    }

    /// Innovations that are not as large as the filter expects.
    pub(crate) fn of_surprise(fit: &Fit, file: &str, consistency: f64) -> Option<Self> {
        let sizes = fit.facts.noise.measurement.iter();
        let mut resolved = sizes.zip(&fit.facts.scales.range);
        // below the resolution nobody knows the noise, and smaller surprises are none
        let noisy = resolved.any(|(r, range)| r.sqrt() > 1.001 * RESOLUTION * range);
        let far = consistency > SURPRISE_FACTOR || (consistency < 1.0 / SURPRISE_FACTOR && noisy);
        far.then(|| Self::Surprise {
            file: file.into(),
            factor: consistency.sqrt(),
        })
    }
}

/// Readings that a sentence names by row and value; of more, only the rows of some.
const NAMED_READINGS: usize = 3;
const NAMED_ROWS: usize = 20;

/// The factor between two units of time that a ratio of steps looks like.
fn unit_factor(ratio: f64) -> Option<f64> {
    let near = |factor: &f64| (ratio / factor - 1.0).abs() < NEARLY_RATIO_PART;
    let all = TIME_UNIT_FACTORS
        .into_iter()
        .flat_map(|unit| [unit, 1.0 / unit]);
    all.into_iter().find(near)
}

fn suspect_readings(file: &str, channel: &str, readings: &[Suspect]) -> String {
    let row = |s: &Suspect| {
        format!(
            "{} ({} where {} was expected)",
            s.row,
            text::with_unit(s.value, &s.unit),
            text::number(s.expected)
        )
    };
    let (first, rest) = readings.split_at(readings.len().min(NAMED_READINGS));
    let named = first.iter().map(row);
    let rows = rest.iter().take(NAMED_ROWS).map(|s| s.row.to_string());
    let mut rows: Vec<String> = named.chain(rows).collect();
    if rest.len() > NAMED_ROWS {
        rows.push("…".into());
    }
    let single = readings.len() == 1;
    format!(
        "{} of {channel} in {file} {} the others and {} set aside: {} {}; look at the sensor, or fit with ⟦keep_suspects⟧",
        text::count(readings.len(), "reading"),
        if single { "contradicts" } else { "contradict" },
        if single { "was" } else { "were" },
        if single { "row" } else { "rows" },
        rows.join(", ")
    )
}

fn list(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    text::list(&names)
}

/// The error of the free runs over the training records, and at least the noise.
fn left_unexplained(facts: &Facts, channel: usize, name: &str) -> f64 {
    let trained = facts.records.iter().filter(|r| r.role == Role::Train);
    let noise = facts.noise.measurement[channel].sqrt();
    trained
        .filter_map(|r| r.rmse.get(name).copied().flatten())
        .fold(noise, f64::max)
}

/// Records that the fitted model cannot follow: worse than the mean of what was measured.
fn lost_free_runs(fit: &Fit, records: &[&Record]) -> Vec<Warning> {
    let mut warnings = vec![];
    for (facts, record) in fit.facts.records.iter().zip(records) {
        let channels = fit.model.measurements.iter().enumerate();
        let lost: Vec<String> = channels
            .filter(|(j, channel)| match facts.rmse.get(&channel.name) {
                Some(Some(error)) => *error >= deviation(record, facts.scored, *j),
                diverged => diverged.is_some(),
            })
            .map(|(_, channel)| channel.name.clone())
            .collect();
        if !lost.is_empty() {
            warnings.push(Warning::FreeRunLost {
                file: facts.file.clone(),
                role: facts.role,
                channels: lost,
            });
        }
    }
    warnings
}

/// Standard deviation of a channel over the last samples.
fn deviation(record: &Record, samples: usize, channel: usize) -> f64 {
    let last = &record.outputs[(record.len() - samples) * record.d_y..];
    let values = || {
        let values = last.iter().skip(channel).step_by(record.d_y);
        values.filter(|v| !v.is_nan())
    };
    let count = values().count() as f64;
    let mean = values().sum::<f64>() / count;
    (values().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt()
}
