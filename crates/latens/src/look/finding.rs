//! What sensors and residuals show to be wrong, each a sentence with its size and its consequence.

use serde::{Deserialize, Serialize};

use super::noise::RESOLUTION;
use crate::text;

/// A factor on deviations that is worth a word.
const NOTABLE_WIDENING: f64 = 1.1;

/// So many times the noise is an error of the model.
const ERROR_NOISE_FACTOR: f64 = 3.0;

/// Something that a channel, or the misfit of a model, shows to be wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[allow(missing_docs, reason = "channel, file and unit are what they say")]
pub enum Finding {
    /// A channel repeats its readings.
    Held {
        channel: String,
        /// How often each is there, typically.
        samples: usize,
    },
    /// A channel has few values, a common step apart.
    Quantised {
        channel: String,
        unit: String,
        /// How many.
        values: usize,
        step: f64,
        /// The step as a part of the range.
        of_range: f64,
    },
    /// A channel stands at its highest or lowest value.
    Saturated {
        channel: String,
        unit: String,
        /// Whether that is the highest.
        highest: bool,
        value: f64,
        /// In this part of its readings.
        part: f64,
    },
    /// A channel is nothing but white noise.
    OnlyNoise { channel: String },
    /// Rows are missing over times in which inputs move: nobody knows what drives the states there.
    UnknownInputs {
        record: String,
        inputs: Vec<String>,
        /// How many such gaps.
        gaps: usize,
        /// The part of the record's time that they make up.
        part: f64,
        /// The longest of them.
        from: f64,
        to: f64,
        /// Of time.
        unit: String,
        /// Whether the model does not follow the record, which may be because of them.
        contradicts: bool,
    },
    /// The misfit is what a sensor makes that shows the past.
    Lags {
        file: String,
        channel: String,
        /// The input whose lag would look the same.
        input: Option<String>,
        /// How late, in time.
        lag: f64,
        unit: String,
        /// The part of the misfit's variance that this explains.
        explained: f64,
    },
    /// The misfit grows steadily with time.
    Drifts {
        file: String,
        channel: String,
        unit: String,
        /// From the first sample to the last.
        drift: f64,
        /// As a multiple of the noise.
        of_noise: f64,
        explained: f64,
    },
    /// The misfit is correlated from sample to sample: the model is wrong.
    Correlated {
        file: String,
        channel: String,
        unit: String,
        /// Over how many samples.
        samples: usize,
        /// The same in time.
        time: f64,
        time_unit: String,
        /// Root mean square of the misfit of the free run.
        misfit: f64,
        /// The same as a part of the range.
        of_range: f64,
        /// Its correlated part: the error of the model.
        model_error: f64,
        /// Its white part: what noise there is.
        noise: f64,
        /// What the misfit goes with.
        with: Option<Companion>,
        /// The misfit to which the same equations come from there, where that is far less.
        reachable: Option<f64>,
        /// By how much the deviations of predictions were widened because of it; `None` where the
        /// fit took it for noise.
        widening: Option<f64>,
    },
    /// The misfit is white, and a few readings are far out.
    HeavyTails {
        file: String,
        channel: String,
        /// Readings beyond five deviations, of all.
        readings: usize,
        all: usize,
    },
    /// Shorter steps would make another simulation: constants and hidden states make up for the steps.
    CoarseSteps {
        file: String,
        /// Where the simulation moves farthest.
        channel: String,
        method: String,
        /// How far, root mean square, in deviations of the noise and as a part of the range.
        of_noise: f64,
        of_range: f64,
        /// Sub-steps that would be finer.
        substeps: usize,
    },
    /// Inputs that go on moving are held over each sample.
    HeldInputs {
        file: String,
        /// Where the simulation would move farthest if they went straight to their next values.
        channel: String,
        inputs: Vec<String>,
        of_noise: f64,
        of_range: f64,
    },
    /// Inputs that go on moving, of which the file does not say what they do over a sample, are taken to go straight
    /// to their next values: the records ask for it.
    MovingInputs {
        file: String,
        /// Where the simulation moved farthest by it.
        channel: String,
        inputs: Vec<String>,
        of_noise: f64,
        of_range: f64,
        /// By so much ln p is higher; `None` where the model does not explain the records either way.
        gain: Option<f64>,
    },
    /// States move by more than the equations say: the records ask for process noise.
    Disturbed {
        /// The states whose equations are learned.
        states: Vec<Push>,
        /// By so much ln p is higher than under equations that hold exactly.
        gain: f64,
    },
    /// Measurements surprise the filter more, or less, than its bands say.
    BandsWrong {
        file: String,
        channel: String,
        /// Root mean square of the innovations, in their own deviations.
        factor: f64,
    },
}

/// How far a state is pushed about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Push {
    /// The state.
    pub state: String,
    pub unit: String,
    /// Standard deviation from sample to sample.
    pub deviation: f64,
}

/// A signal that a misfit goes with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Companion {
    /// The input, state or square of it.
    pub signal: String,
    /// So many samples before.
    pub samples: usize,
    /// The part of the misfit's variance that it explains.
    pub explained: f64,
}

impl Finding {
    /// The channel it is about; nothing where it is about states.
    pub fn channel(&self) -> &str {
        match self {
            Self::Disturbed { .. } | Self::UnknownInputs { .. } => "",
            Self::Held { channel, .. }
            | Self::Quantised { channel, .. }
            | Self::Saturated { channel, .. }
            | Self::OnlyNoise { channel }
            | Self::Lags { channel, .. }
            | Self::Drifts { channel, .. }
            | Self::Correlated { channel, .. }
            | Self::HeavyTails { channel, .. }
            | Self::CoarseSteps { channel, .. }
            | Self::HeldInputs { channel, .. }
            | Self::MovingInputs { channel, .. }
            | Self::BandsWrong { channel, .. } => channel,
        }
    }

    /// Whether it is about a sensor, and the record shows it before anything is fitted.
    pub fn is_of_channel(&self) -> bool {
        matches!(
            self,
            Self::Held { .. }
                | Self::Quantised { .. }
                | Self::Saturated { .. }
                | Self::OnlyNoise { .. }
        )
    }

    /// Whether it is about what a record does not have.
    pub fn is_of_record(&self) -> bool {
        matches!(self, Self::UnknownInputs { .. })
    }

    /// Whether it is about the steps of the integration, and not about the misfit.
    pub fn is_of_steps(&self) -> bool {
        matches!(self, Self::CoarseSteps { .. })
    }

    /// Whether a model that fits so must not be called right.
    pub fn contradicts(&self) -> bool {
        matches!(
            self,
            Self::Correlated { .. }
                | Self::Lags { .. }
                | Self::Drifts { .. }
                | Self::Saturated { .. }
                | Self::OnlyNoise { .. }
                | Self::CoarseSteps { .. }
                | Self::UnknownInputs {
                    contradicts: true,
                    ..
                }
        )
    }

    /// What it is, and what follows from it.
    pub fn words(&self) -> String {
        match self {
            Self::Held { channel, samples } => format!(
                "{channel} repeats each value {samples} times: the sensor, or what wrote the record, holds its readings; leave the repeated cells empty, or the readings that are held count as new ones and are late"
            ),
            Self::Quantised {
                channel,
                unit,
                values,
                step,
                of_range,
            } => format!(
                "{channel} is quantised: it has {values} values, {} apart ({} of its range); nothing finer is in the record, and errors up to half of that are no noise",
                text::with_unit(*step, unit),
                text::percent(*of_range)
            ),
            Self::Saturated {
                channel,
                unit,
                highest,
                value,
                part,
            } => format!(
                "{channel} is saturated: it stands at its {} value, {}, in {} of its readings; the sensor is at its end there, so leave those cells empty",
                if *highest { "highest" } else { "lowest" },
                text::with_unit(*value, unit),
                text::percent(*part)
            ),
            Self::OnlyNoise { channel } => format!(
                "{channel} cannot be told from white noise: there is nothing in it to learn from; check its column, or sample faster"
            ),
            Self::UnknownInputs {
                record,
                inputs,
                gaps,
                part,
                from,
                to,
                unit,
                ..
            } => {
                let (names, s, _) = subject(inputs);
                let es = if s.is_empty() { "" } else { "es" };
                let longest = if *gaps > 1 { ", the longest" } else { "" };
                let from = text::number(*from);
                format!(
                    "rows of {record} are missing over {} ({} of its time{longest} from {from} to {}), over which nobody knows what {names} do{es}: what is taken there is a guess, and what follows is driven wrongly; cut the record there into several files, each of which has a start of its own, or, if held, hold = \"zero-order\" in [inputs] or [time] says so",
                    text::count(*gaps, "gap"),
                    text::percent(*part),
                    text::with_unit(*to, unit),
                )
            }
            Self::Lags {
                file,
                channel,
                input,
                lag,
                unit,
                explained,
            } => format!(
                "the misfit of {channel} on {file} is that of a sensor which lags by about {}{} (it explains {} of what is wrong): give it a lag in [measurements], lag = {{ guess = {} }}{}, and fit again",
                text::with_unit(*lag, unit),
                input.as_ref().map_or(String::new(), |u| format!(
                    ", or of {u} acting so much later"
                )),
                text::percent(*explained),
                text::digits(*lag, 2),
                input
                    .as_ref()
                    .map_or("", |_| ", or the input a delay in [inputs]")
            ),
            Self::Drifts {
                file,
                channel,
                unit,
                drift,
                of_noise,
                explained,
            } => format!(
                "the misfit of {channel} drifts by {} over {file} ({}{} of its variance): the sensor or the plant changes with time; add an offset to what is measured, with an unknown slope",
                text::with_unit(*drift, unit),
                if *of_noise < 1e4 {
                    format!("{} times the noise, ", rounded(*of_noise))
                } else {
                    String::new()
                },
                text::percent(*explained)
            ),
            Self::Correlated {
                file,
                channel,
                unit,
                samples,
                time,
                time_unit,
                misfit,
                of_range,
                model_error,
                noise,
                with,
                reachable,
                widening,
            } => {
                let time = if time_unit.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", text::with_unit(*time, time_unit))
                };
                let mut words = format!(
                    "the misfit of {channel} on {file} is correlated over {samples} samples{time}: "
                );
                words += &match reachable {
                    Some(least) => format!(
                        "it is {}, where the same equations come to {}, so the fit ended in the wrong place{}",
                        text::with_unit(*misfit, unit),
                        text::with_unit(*least, unit),
                        if *least > ERROR_NOISE_FACTOR * noise {
                            ", and even that is no noise: the model lacks something too"
                        } else {
                            ""
                        }
                    ),
                    None => format!(
                        "the model lacks something as slow as that; of {} ({} of the range), {} is error of the model and {}",
                        text::with_unit(*misfit, unit),
                        text::percent(*of_range),
                        text::with_unit(*model_error, unit),
                        if *noise > RESOLUTION * misfit / of_range {
                            format!("{} noise", text::with_unit(*noise, unit))
                        } else {
                            "hardly any noise".into()
                        }
                    ),
                };
                if let Some(with) = with {
                    words += &format!(
                        "; {} of the misfit goes with {}",
                        text::percent(with.explained),
                        with.words()
                    );
                }
                match widening {
                    Some(factor) if *factor > NOTABLE_WIDENING => {
                        let factor = rounded(*factor);
                        words += &format!(
                            "; deviations of predictions were widened {factor}-fold for it"
                        );
                    }
                    Some(_) => {}
                    None => {
                        words += "; deviations of constants take it for noise and are too small";
                    }
                }
                words
            }
            Self::HeavyTails {
                file,
                channel,
                readings,
                all,
            } => format!(
                "{readings} of {all} readings of {channel} on {file} are beyond five deviations of the noise, where normal noise has none: they pull the fit; look at them, and leave the cells of broken ones empty"
            ),
            Self::CoarseSteps {
                file,
                channel,
                method,
                of_noise,
                of_range,
                ..
            } => format!(
                "a step of {method} over a sample is too long: with shorter ones {channel} on {file} moves by {} times its noise ({} of its range), so that constants and hidden states make up for the steps and their deviations do not know it",
                rounded(*of_noise),
                text::percent(*of_range)
            ),
            Self::HeldInputs {
                file,
                channel,
                inputs,
                of_noise,
                of_range,
            } => {
                let (names, s, are) = subject(inputs);
                format!(
                    "{names} move{s} from sample to sample, and {are} held over each sample as a digital output is: if measured, write hold = \"first-order\" in [inputs] or [time], which moves {channel} on {file} by {} times its noise ({} of its range); if held, hold = \"zero-order\" says so",
                    rounded(*of_noise),
                    text::percent(*of_range)
                )
            }
            Self::MovingInputs {
                file,
                channel,
                inputs,
                of_noise,
                gain,
                ..
            } => {
                let (names, s, are) = subject(inputs);
                let gain = gain.map_or(String::new(), |gain| {
                    format!(", ln p is higher by {gain:.0}")
                });
                format!(
                    "{names} move{s} from sample to sample, and {are} taken to go straight to the next value, because the records ask for it ({channel} on {file} moves by {} times its noise{gain}): hold = \"first-order\" in [inputs] or [time] says so; if held, write hold = \"zero-order\"",
                    rounded(*of_noise),
                )
            }
            Self::Disturbed { states, gain } => {
                let pushes = states.iter().map(|push| {
                    let deviation = text::digits(push.deviation, 2);
                    let space = if push.unit.is_empty() { "" } else { " " };
                    format!("{} by {deviation}{space}{}", push.state, push.unit)
                });
                let pushes: Vec<String> = pushes.collect();
                let pushes: Vec<&str> = pushes.iter().map(String::as_str).collect();
                format!(
                    "the equations do not hold exactly: something pushes the states about, from sample to sample {} (standard deviation), at random or because a term is missing; the records are likelier so (ln p is higher by {gain:.0}); constants, states and bands count random pushes, and a free run drifts away by them",
                    text::list(&pushes)
                )
            }
            Self::BandsWrong {
                file,
                channel,
                factor,
            } if *factor > 1.0 => format!(
                "the surprises in {channel} on {file} are {} times as large as a filter expects: bands of estimates are too narrow",
                rounded(*factor)
            ),
            Self::BandsWrong {
                file,
                channel,
                factor,
            } => format!(
                "the surprises in {channel} on {file} are {} times smaller than a filter expects: bands of estimates are too wide",
                rounded(1.0 / *factor)
            ),
        }
    }

    /// What to do about it, where that is for the verdict to say.
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Self::Held { channel, .. } => {
                format!("leave the cells of {channel} that repeat a reading empty and fit again")
            }
            Self::Saturated { channel, .. } => {
                format!("leave the cells of {channel} at the end of the sensor empty and fit again")
            }
            Self::OnlyNoise { channel } => {
                format!("bring a record in which {channel} shows something")
            }
            Self::UnknownInputs {
                contradicts: false, ..
            } => return None,
            Self::UnknownInputs { record, .. } => format!(
                "cut {record} into several files at its gaps, over which nobody knows the inputs, and fit again"
            ),
            Self::Lags { channel, .. } => format!(
                "give the sensor of {channel} a lag in [measurements], and fit again"
            ),
            Self::Drifts { channel, .. } => format!(
                "add a drift of {channel} to the model, or correct the record, and fit again"
            ),
            Self::Correlated {
                reachable: Some(_), ..
            } => "do not use it as it is: try other guesses of its constants, more ⟦starts⟧ or another ⟦seed⟧, because its equations can follow the record better than it does".into(),
            Self::Correlated {
                channel,
                with,
                samples,
                ..
            } => {
                let with = with.as_ref().map_or(String::new(), |w| {
                    format!(" that goes with {}", w.words())
                });
                format!(
                    "do not use it as it is: look for what the equations lack in {channel}{with}, such as a state as slow as {samples} samples or a term that is not linear, and fit again; a network in its place may show what it is"
                )
            }
            Self::CoarseSteps {
                method, substeps, ..
            } => {
                let better = if method.ends_with("euler") {
                    "method = \"rk4\"".into()
                } else {
                    format!("substeps = {substeps}")
                };
                format!("write {better} into [time] and fit again")
            }
            Self::Disturbed { .. } => "if nothing pushes the states about in reality, look for what the equations lack, such as another state or a term that is not linear; a network in its place may show what it is".into(),
            Self::BandsWrong { .. }
            | Self::Quantised { .. }
            | Self::HeavyTails { .. }
            | Self::HeldInputs { .. }
            | Self::MovingInputs { .. } => {
                return None;
            }
        })
    }
}

impl Companion {
    fn words(&self) -> String {
        match self.samples {
            0 => self.signal.clone(),
            samples => format!("{} {samples} samples before", self.signal),
        }
    }
}

/// Inputs by name, with the endings of their verbs.
fn subject(inputs: &[String]) -> (String, &'static str, &'static str) {
    let names = text::list(&inputs.iter().map(String::as_str).collect::<Vec<_>>());
    match inputs.len() {
        1 => (names, "s", "is"),
        _ => (names, "", "are"),
    }
}

/// Two digits.
fn rounded(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}
