//! The settings of a fit: one table, from which everything that knows a setting is made.
//!
//! A row of [`settings!`](self) is a setting: its name, its kind, its value where nobody says
//! otherwise, and its words. The struct [`Settings`], the layer [`SettingsLayer`] (what a `[fit]`
//! section, a command line or a Python call gives), the keys of `[fit]`, the JSON Schema, the
//! options and help texts of `latens fit`, the table in the documentation and the keywords of
//! Python all come from it. A new setting is a new row.
//!
//! Of several layers each overrides those before it; what nobody gives is the solver's own.

mod kinds;
mod words;

use serde::{Deserialize, Serialize};

use crate::file::{At, Fields, Reader};
use crate::limits::{PASSES, RELATIVE_NOISE, STARTS};
pub use kinds::{Form, Level, Owner, Variances};
use kinds::{Kind, Types};
pub use words::{markdown, python, schema};

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name, in `[fit]`, in Python, and with `-` for `_` on the command line.
    pub key: &'static str,
    /// What may be said of it.
    pub form: Form,
    /// What stands for its value in a help text.
    pub value_name: &'static str,
    /// Where it stands in a help text.
    pub group: Group,
    /// What it does.
    pub help: &'static str,
    /// An earlier name that is still understood.
    pub alias: Option<&'static str>,
}

/// What a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What most people set.
    Common,
    /// The noise of states and measurements.
    Noise,
    /// The learned parameters.
    Parameters,
    /// What only the recursions read.
    Recursions,
}

impl Group {
    /// Its heading in a help text.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Common => "Solver",
            Self::Noise => "Noise of states and measurements",
            Self::Parameters => {
                "Learned parameters θ (weights and unknown constants, all scaled to order one)"
            }
            Self::Recursions => {
                "What only the recursions read (alternating, joint, as-printed); batch does not"
            }
        }
    }
}

macro_rules! settings {
    (
        settings { $( $group:ident $name:ident: $kind:ident = $default:expr, $value:literal,
                      $(was $alias:literal,)? $help:literal; )* }
        choices { $( $c_group:ident $c_name:ident: $c_kind:ident, $c_value:literal, $c_help:literal; )* }
    ) => {
        /// All settings of a fit. All of them end up in `fit.json`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Settings {
            $( #[doc = $help] $(#[serde(alias = $alias)])?
               pub $name: <kinds::$kind as Types>::Value, )*
        }

        impl Default for Settings {
            /// What the first of the recursions takes; every solver says where it differs.
            fn default() -> Self {
                Self { $( $name: $default, )* }
            }
        }

        /// Settings as somebody gave them; none where nobody did.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct SettingsLayer {
            $( #[doc = $help] pub $name: <kinds::$kind as Types>::Given, )*
            $( #[doc = $c_help] pub $c_name: <kinds::$c_kind as Types>::Given, )*
        }

        /// All settings, in the order of a help text.
        pub const TABLE: &[Setting] = &[
            $( Setting {
                key: stringify!($c_name), form: <kinds::$c_kind as Kind>::FORM,
                value_name: $c_value, group: Group::$c_group, help: $c_help, alias: None,
            }, )*
            $( Setting {
                key: stringify!($name), form: <kinds::$kind as Kind>::FORM,
                value_name: $value, group: Group::$group, help: $help,
                alias: [$(Some($alias),)? None][0],
            }, )*
        ];

        impl SettingsLayer {
            /// Reads a section; the names in it go to `named`, with their places.
            pub(crate) fn read(
                reader: &mut Reader, fields: Fields, named: &mut Vec<(Owner, At<String>)>,
            ) -> Self {
                Self {
                    $( $name: {
                        let key = fields.key_of(stringify!($name));
                        kinds::$kind::read(reader, fields, key, named)
                    }, )*
                    $( $c_name: kinds::$c_kind::read(reader, fields, stringify!($c_name), named), )*
                }
            }

            /// Overrides settings by what was given.
            pub fn onto(&self, settings: &mut Settings) {
                $( kinds::$kind::apply(&self.$name, &mut settings.$name); )*
                self.levels_onto(settings);
                self.held_onto(settings);
            }
        }
    };
}

settings! {
    settings {
        Common solver: Name = "alternating".into(), "NAME",
            "How θ is learned; `latens fit --help` lists the solvers";
        Common passes: Count = 10, "N", was "epochs",
            "Tightening stages of batch at the most (it ends when the physics is exact), passes over the records of the recursions, steps of gradient descent of the methods of others";
        Common seed: Seed = 1, "S",
            "Seed of the networks' random start; where it fails, batch tries the next two";
        Common starts: Count = 1, "K",
            "Start from K seeds, the seed and those that follow, in parallel, and keep the one whose free run is best: over the validation records where there are any";
        Common ensemble: Count = 1, "K",
            "Fit from K seeds, the seed and those that follow, in parallel, and keep them all: predictions are their median, and bands count how far they are apart; not together with starts";
        Common keep_suspects: Flag = false, "BOOL",
            "Learn from every reading, those too that contradict all others; else they are set aside, and named";
        Noise hidden_noise: Relative = Level::Relative(0.1), "R", was "hidden",
            "Process noise of equations that depend on θ: standard deviation per sample, relative to scale·√(Δt/τ), τ the time in which the data move by their scale; batch begins there and tightens it tenfold or √10-fold each stage";
        Noise measurement_noise: Relative = Level::Relative(1.0), "R", was "measurement",
            "Measurement noise: standard deviation relative to the noise found in each channel";
        Noise start_noise: Relative = Level::Relative(1.0), "R", was "start",
            "Uncertainty of the start: standard deviation relative to each state's scale";
        Noise process_variance: StateVariances = Default::default(), "[STATE=]V", was "process_of",
            "Process noise Q_x as a variance per sample, by state (h=1e-6,V=1e-8), which batch then does not tighten; or of all states, and batch has one stage";
        Noise measurement_variance: ChannelVariances = Default::default(), "[CHANNEL=]V", was "measurement_of",
            "Measurement noise R_y as a variance, of all channels or by channel (V=0.01); batch then does not estimate it";
        Noise start_variance: StateVariances = Default::default(), "[STATE=]V", was "start_of",
            "Uncertainty P_x0 of the start as a variance, of all states or by state";
        Noise estimate_noise: Flag = false, "BOOL",
            "Estimate R_y from what the fit leaves over; batch only, and not of channels whose variance is given";
        Parameters fix: Values = Default::default(), "NAME=VALUE",
            "Fix unknown constants at these values, whatever the model file says of them";
        Parameters free: Constants = Default::default(), "NAME",
            "Learn constants that the model file fixes";
        Parameters first_order: Inputs = Default::default(), "INPUT",
            "Inputs that go straight to their next value over a sample, whatever the model file says; batch finds them itself where the file says nothing and an input goes on moving";
        Parameters parameter_variance: Positive = 1.0, "V",
            "Variance P_θ0 of θ before the data; given, batch does not estimate it";
        Parameters estimate_prior: Flag = false, "BOOL",
            "Let the evidence choose P_θ0 of each network's weights; batch only, and not where the variance is given unless asked for";
        Parameters simplify: Flag = false, "BOOL",
            "Try simpler functions than the file's networks too (none at all, linear, few units) and let the data choose; batch only";
        Parameters scale_outputs: Flag = true, "BOOL",
            "Scale network outputs to the rates of the hidden states";
        Parameters single_precision: Flag = false, "BOOL",
            "Store P_θ in single precision: half the memory, faster recursions for large networks";
        Recursions segments: Count = 1, "B", was "streams",
            "Segments of each record that update one θ together; joint takes 1";
        Recursions keep_best: Flag = true, "BOOL",
            "Keep the pass whose free run fits the measurements best, not the last";
        Recursions known_noise: Relative = Level::Relative(1e-4), "R", was "known",
            "Process noise of known equations, relative as the hidden noise is; batch takes a thousandth of that";
        Recursions parameter_drift: NotNegative = 1e-6, "V",
            "Variance Q_θ that θ gains per step of all segments, 0 for none";
        Recursions anneal: Factor = 0.5, "F",
            "Factor on Q_θ after each pass, at most 1";
        Recursions parameter_noise: Positive = 1.0, "C",
            "Noise of the θ step, as a multiple of the row's own standard deviation; larger learns slower; not joint";
        Recursions count_state_uncertainty: Flag = true, "BOOL",
            "Count the uncertainty of the states as noise of the θ step; not joint";
    }
    choices {
        Common validate_tail: Tail, "PART",
            "The part of every record, from its end, that is not learned from but validates: above 0, below 0.5";
        Recursions printed_settings: Flag, "BOOL",
            "Start from the paper's settings instead of the solver's own; not batch, which the paper does not have";
    }
}

impl SettingsLayer {
    /// A variance of everything stands in place of a relative level; what somebody knows is not
    /// estimated.
    fn levels_onto(&self, settings: &mut Settings) {
        if let Some(variance) = self.process_variance.all {
            settings.known_noise = Level::Variance(variance);
            settings.hidden_noise = Level::Variance(variance);
        }
        if let Some(variance) = self.measurement_variance.all {
            settings.measurement_noise = Level::Variance(variance);
        }
        if let Some(variance) = self.start_variance.all {
            settings.start_noise = Level::Variance(variance);
        }
        if self.parameter_variance.is_some() && self.estimate_prior.is_none() {
            settings.estimate_prior = false;
        }
    }
}

impl SettingsLayer {
    /// What is fixed here is not free any more, and the other way round.
    fn held_onto(&self, settings: &mut Settings) {
        settings.free.retain(|name| !self.fix.contains_key(name));
        settings.fix.retain(|name, _| !self.free.contains(name));
    }
}

impl Settings {
    /// Whether a channel's noise is the user's.
    pub fn noise_given(&self, channel: &str) -> bool {
        matches!(self.measurement_noise, Level::Variance(_))
            || self.measurement_variance.contains_key(channel)
    }

    /// What makes no sense in itself, for a model with these states and channels.
    ///
    /// # Errors
    /// In words, what does not.
    pub fn check(&self, states: &[&str], channels: &[&str]) -> Result<(), String> {
        if [self.passes, self.segments, self.starts, self.ensemble].contains(&0) {
            return Err("passes, starts, ensemble and segments must be at least 1".into());
        }
        if self.starts.max(self.ensemble) > STARTS || self.passes.max(self.segments) > PASSES {
            return Err(format!(
                "there are at most {STARTS} starts or members of an ensemble, and {PASSES} passes or segments"
            ));
        }
        if self.starts > 1 && self.ensemble > 1 {
            return Err(
                "an ensemble keeps all its starts; give ⟦starts⟧ or ⟦ensemble⟧, not both".into(),
            );
        }
        let levels = [
            self.known_noise,
            self.hidden_noise,
            self.measurement_noise,
            self.start_noise,
        ];
        let relative = levels.iter().any(|level| match level {
            Level::Relative(size) => *size > RELATIVE_NOISE,
            Level::Variance(_) => false,
        });
        if relative {
            return Err(format!(
                "a noise that is given relative to what the data show is at most {RELATIVE_NOISE}"
            ));
        }
        let levels = levels.map(|(Level::Variance(v) | Level::Relative(v))| v);
        let others = [self.parameter_variance, self.parameter_noise, self.anneal];
        let named = [
            (&self.process_variance, states, "state"),
            (&self.start_variance, states, "state"),
            (&self.measurement_variance, channels, "measurement"),
        ];
        let overrides = named.iter().flat_map(|(variances, ..)| variances.values());
        let mut all = levels.iter().chain(&others).chain(overrides);
        if !all.all(|v| *v > 0.0 && v.is_finite())
            || !(0.0..f64::MAX).contains(&self.parameter_drift)
            || self.anneal > 1.0
        {
            return Err("variances and noise levels must be positive and finite, the anneal factor at most 1".into());
        }
        for (variances, known, noun) in named {
            if let Some(name) = variances.keys().find(|n| !known.contains(&n.as_str())) {
                let known = known.join(", ");
                return Err(format!("there is no {noun} `{name}`; there are: {known}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(name: &str, value: f64) -> Variances {
        Variances {
            all: None,
            of: [(name.to_string(), value)].into(),
        }
    }

    fn resolved(layers: &[&SettingsLayer]) -> Settings {
        let mut settings = Settings {
            estimate_prior: true,
            ..Settings::default()
        };
        layers.iter().for_each(|layer| layer.onto(&mut settings));
        settings
    }

    #[test]
    fn a_later_layer_overrides_an_earlier_one() {
        let file = SettingsLayer {
            solver: Some("joint".into()),
            passes: Some(7),
            seed: Some(3),
            process_variance: by_name("x", 1e-3),
            parameter_variance: Some(0.5),
            ..SettingsLayer::default()
        };
        let line = SettingsLayer {
            seed: Some(4),
            ..SettingsLayer::default()
        };
        let expected = Settings {
            solver: "joint".into(),
            passes: 7,
            seed: 4,
            process_variance: [("x".to_string(), 1e-3)].into(),
            parameter_variance: 0.5,
            ..Settings::default()
        };
        assert_eq!(resolved(&[&file, &line]), expected);
        // what is said of all states replaces what an earlier layer said of one
        let line = SettingsLayer {
            process_variance: Variances {
                all: Some(1e-6),
                ..Variances::default()
            },
            estimate_prior: Some(true),
            ..SettingsLayer::default()
        };
        let both = resolved(&[&file, &line]);
        assert!(both.process_variance.is_empty() && both.estimate_prior);
        assert_eq!(both.hidden_noise, Level::Variance(1e-6));
        // what an earlier layer asked to be estimated and a later one knows is not estimated
        let file = SettingsLayer {
            estimate_prior: Some(true),
            ..SettingsLayer::default()
        };
        let line = SettingsLayer {
            parameter_variance: Some(0.5),
            ..SettingsLayer::default()
        };
        assert!(!resolved(&[&file, &line]).estimate_prior);
    }

    /// `fit.json` of version 0.1 is still read.
    #[test]
    fn earlier_names_are_understood() {
        let new = serde_json::to_string(&Settings::default()).unwrap();
        let old = new
            .replace("\"passes\"", "\"epochs\"")
            .replace("\"segments\"", "\"streams\"")
            .replace("\"hidden_noise\"", "\"hidden\"")
            .replace("\"process_variance\"", "\"process_of\"");
        assert_ne!(new, old);
        assert_eq!(
            serde_json::from_str::<Settings>(&old).unwrap(),
            Settings::default()
        );
    }
}
