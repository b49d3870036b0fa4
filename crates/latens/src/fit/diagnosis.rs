//! Tests of what is left of the records: is it white, is it normal, does it depend on an input or on a state?
//!
//! The residuals of the free run over each training record are tested channel by channel; where the user
//! states a process noise, a right model's free run is not white, and the innovations are tested in its
//! place. Every test has a p-value: how often noise alone, under a right model, looks like that. Neighbouring
//! residuals that are correlated count for as many independent ones as they are worth:
//!
//! ```text
//! var r(e, s) = (1 + 2 Σ_j ρ_e(j) ρ_s(j)) / n            correlation with a signal (Bartlett)
//! var m_k     = k! Σ_j ρ_e(j)^k / n                      third and fourth moment (Lobato and Velasco)
//! ```
//!
//! The sums end where ρ_e(j) is within chance, and no factor is below one. As many tests are made as
//! there are channels, inputs and states; the p-values that count are those for their number (Holm), and at
//! most one right model in twenty has one below 0.05. What was fitted makes the tests milder, never sharper.
//!
//! That something is significant does not say that it matters: [`ResidualTest::explained`] is the part of the
//! residuals' variance that is concerned, and a [finding](crate::look::Finding) is made of large ones alone.

use serde::{Deserialize, Serialize};

use super::residuals::MATERIAL_RANGE_PART;
use super::{Fit, Track, innovations};
use crate::described;
use crate::described::{Described, Value};
use crate::look::RESOLUTION;
use crate::model::settings::Level;
use crate::numerics::probability::{chi_square_tail, holm, least, normality, two_sided};
use crate::numerics::score;
use crate::numerics::whiteness;

/// Below this a p-value, for the number of tests, says that noise alone is not the reason.
pub const SIGNIFICANCE_LEVEL: f64 = 0.05;
/// Lags of the autocorrelation that are looked at.
const LAGS: usize = 20;
/// Samples before a residual at which an input may act on it.
const DELAYS: [usize; 7] = [0, 1, 2, 4, 8, 16, 32];
/// The fewest residuals that are tested.
const FEWEST_RESIDUALS: usize = 40;

/// What residuals are tested for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// Whether they are uncorrelated.
    Whiteness,
    /// Whether they are normal.
    Normality,
    /// Whether they are correlated with an input, now or some samples before.
    Input,
    /// Whether they depend on a state: a line, or a curve of second or third degree.
    State,
}

impl Described for Test {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Whiteness, Self::Normality, Self::Input, Self::State] })
    }
}

described! {
/// A test of residuals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResidualTest {
    /// The record.
    pub file: String,
    /// The channel.
    pub channel: String,
    /// What for.
    pub test: Test,
    /// The input or the state.
    pub signal: Option<String>,
    /// Samples by which the input comes before, where it is correlated most.
    pub delay: Option<usize>,
    /// How often noise alone looks like that, of this test by itself.
    pub p: f64,
    /// The same for the number of tests.
    pub p_adjusted: f64,
    /// The part of the residuals' variance that is correlated, or that the signal explains.
    pub explained: Option<f64>,
    /// As many independent residuals they are worth in this test.
    pub effective: f64,
}
}

impl ResidualTest {
    /// Whether noise alone is not the reason.
    pub fn is_rejected(&self) -> bool {
        self.p_adjusted < SIGNIFICANCE_LEVEL
    }

    /// What it says where it is rejected.
    pub fn words(&self) -> String {
        let signal = self.signal.as_deref().unwrap_or("");
        match (self.test, self.delay) {
            (Test::Whiteness, _) => "they are correlated over samples".into(),
            (Test::Normality, _) => "they are not normal".into(),
            (Test::Input, Some(0) | None) => format!("they are correlated with {signal}"),
            (Test::Input, Some(delay)) => {
                format!("they are correlated with {signal} {delay} samples before")
            }
            (Test::State, _) => format!("they depend on {signal}"),
        }
    }
}

/// All tests of a fit; none of a channel without noise to test.
pub(super) fn tests(fit: &Fit) -> Vec<ResidualTest> {
    let mut all = vec![];
    for track in fit.trained() {
        all.extend(of_track(fit, track));
    }
    let p: Vec<f64> = all.iter().map(|t| t.p).collect();
    for (test, adjusted) in all.iter_mut().zip(holm(&p)) {
        test.p_adjusted = adjusted;
    }
    all
}

fn of_track(fit: &Fit, track: &Track) -> Vec<ResidualTest> {
    let (model, record, facts) = (&fit.model, &track.record, &fit.facts);
    if !track.free_run.is_finite() {
        return vec![];
    }
    let residuals: Vec<Vec<(usize, f64)>> =
        if matches!(facts.settings.hidden_noise, Level::Variance(_)) {
            innovations::normalised(fit, track).unwrap_or_default()
        } else {
            let outputs = score::outputs(&model.system, record, &fit.theta, &track.free_run);
            let residuals_of = |c: usize| {
                let pairs = record.output_column(c).zip(outputs.column(c)).enumerate();
                let residuals = pairs.map(|(k, (y, h))| (k, y - h));
                residuals.filter(|(_, r)| r.is_finite()).collect()
            };
            (0..model.measurements.len()).map(residuals_of).collect()
        };
    let mut tests = vec![];
    // without noise, a small misfit is what the solver leaves of the last digits
    let testable = |c: usize, residuals: &[(usize, f64)]| {
        let range = facts.scales.range[c];
        let square = residuals.iter().map(|(_, r)| r * r).sum::<f64>() / residuals.len() as f64;
        let noisy = facts.noise.measurement[c].sqrt() > 1.001 * RESOLUTION * range;
        noisy || square.sqrt() > MATERIAL_RANGE_PART * range
    };
    for (c, residuals) in residuals
        .iter()
        .enumerate()
        .filter(|(c, residuals)| testable(*c, residuals))
    {
        if let Some(residuals) = Residuals::new(residuals) {
            let inputs = model.inputs.iter().enumerate().map(|(j, input)| {
                let values: Vec<f64> = record.input_column(j).collect();
                residuals.on_input(&input.name, &values)
            });
            let states = model.states.iter().enumerate().map(|(i, state)| {
                let values: Vec<f64> = track.free_run.column(i).collect();
                residuals.on_state(&state.name, &values)
            });
            let alone = [residuals.whiteness(), residuals.normality()];
            let made = alone.into_iter().chain(inputs).chain(states).flatten();
            tests.extend(made.map(|test| ResidualTest {
                file: fit.facts_of(track).file.clone(),
                channel: model.measurements[c].name.clone(),
                ..test
            }));
        }
    }
    tests
}

/// The residuals of a channel over a record.
struct Residuals {
    /// Their samples.
    places: Vec<usize>,
    values: Vec<f64>,
    /// The same about their mean.
    about: Vec<f64>,
    /// Their correlation from lag 1 on, up to where it is within chance.
    correlation: Vec<f64>,
}

impl Residuals {
    fn new(residuals: &[(usize, f64)]) -> Option<Self> {
        let values: Vec<f64> = residuals.iter().map(|(_, r)| *r).collect();
        let (mean, variance) = whiteness::mean_and_variance(&values);
        if values.len() < FEWEST_RESIDUALS || !variance.is_finite() || variance <= 0.0 {
            return None;
        }
        let about: Vec<f64> = values.iter().map(|v| v - mean).collect();
        let chance = 2.0 / (values.len() as f64).sqrt();
        let lags = 1..values.len() / 4;
        let correlation = lags.map(|lag| correlation(&about, &about, lag));
        Some(Self {
            places: residuals.iter().map(|(k, _)| *k).collect(),
            correlation: correlation.take_while(|r| *r > chance).collect(),
            values,
            about,
        })
    }

    fn count(&self) -> f64 {
        self.values.len() as f64
    }

    fn test(&self, test: Test, p: f64) -> ResidualTest {
        ResidualTest {
            file: String::new(),
            channel: String::new(),
            test,
            signal: None,
            delay: None,
            p,
            p_adjusted: p,
            explained: None,
            effective: self.count(),
        }
    }

    /// By neighbouring ones (Ljung and Box), and by sums over blocks, which show what is slow.
    fn whiteness(&self) -> Option<ResidualTest> {
        let n = self.count();
        let lags = LAGS.min(self.values.len() / 4);
        let squares = (1..=lags).map(|lag| {
            let r = correlation(&self.about, &self.about, lag);
            r * r / (n - lag as f64)
        });
        let neighbours = chi_square_tail(n * (n + 2.0) * squares.sum::<f64>(), lags as f64);
        let blocks = whiteness::block_sums(&self.values);
        let blocks = least(
            blocks
                .iter()
                .map(|b| chi_square_tail(b.ratio * b.blocks, b.blocks)),
        );
        let colour = whiteness::colour(&self.values);
        let neighbouring = self.correlation.first().copied().unwrap_or(0.0);
        Some(ResidualTest {
            explained: colour.map(|c| c.shared.max(neighbouring)),
            ..self.test(Test::Whiteness, least([neighbours, blocks]))
        })
    }

    fn normality(&self) -> Option<ResidualTest> {
        let worth = |power: i32| {
            let sum: f64 = self.correlation.iter().map(|r| r.powi(power)).sum();
            self.count() / (1.0 + 2.0 * sum)
        };
        let effective = [worth(3), worth(4)];
        let p = normality(&self.values, effective)?;
        Some(ResidualTest {
            effective: effective[0],
            ..self.test(Test::Normality, p)
        })
    }

    /// Correlation with an input at several delays.
    fn on_input(&self, name: &str, values: &[f64]) -> Option<ResidualTest> {
        let at = |delay: usize| {
            let signal = self.places.iter().map(|k| values[k.saturating_sub(delay)]);
            self.against(&signal.collect::<Vec<_>>())
        };
        let correlations: Option<Vec<Against>> = DELAYS.iter().map(|&d| at(d)).collect();
        self.most(Test::Input, name, correlations?)
            .map(|(place, test)| ResidualTest {
                delay: Some(DELAYS[place]),
                ..test
            })
    }

    /// Correlation with the curves of a state.
    fn on_state(&self, name: &str, values: &[f64]) -> Option<ResidualTest> {
        let state: Vec<f64> = self.places.iter().map(|k| values[*k]).collect();
        let curves = whiteness::curves(&state)?;
        let correlations: Option<Vec<Against>> =
            curves.iter().map(|curve| self.against(curve)).collect();
        self.most(Test::State, name, correlations?)
            .map(|(_, test)| test)
    }

    /// The correlation with a signal, and its chance; `None` where the signal does not move.
    fn against(&self, signal: &[f64]) -> Option<Against> {
        let (mean, variance) = whiteness::mean_and_variance(signal);
        let size = signal.iter().map(|s| s.abs()).fold(0.0, f64::max);
        if !variance.is_finite() || variance <= (1e-9 * size).powi(2) {
            return None;
        }
        let signal: Vec<f64> = signal.iter().map(|s| s - mean).collect();
        let both = self.correlation.iter().enumerate();
        let both = both.map(|(j, r)| r * correlation(&signal, &signal, j + 1));
        let factor = (1.0 + 2.0 * both.sum::<f64>()).max(1.0);
        let product: f64 = self.about.iter().zip(&signal).map(|(e, s)| e * s).sum();
        let squares: f64 = self.about.iter().map(|e| e * e).sum();
        let signal_squares: f64 = signal.iter().map(|s| s * s).sum();
        let r = product / (squares * signal_squares).sqrt();
        let effective = self.count() / factor;
        Some(Against {
            p: two_sided(r * effective.sqrt()),
            explained: r * r,
            effective,
        })
    }

    /// The strongest of several correlations as one test, with its place.
    fn most(
        &self,
        test: Test,
        name: &str,
        correlations: Vec<Against>,
    ) -> Option<(usize, ResidualTest)> {
        let p = least(correlations.iter().map(|a| a.p));
        let most = (0..correlations.len()).max_by(|&a, &b| {
            correlations[a]
                .explained
                .total_cmp(&correlations[b].explained)
        })?;
        Some((
            most,
            ResidualTest {
                signal: Some(name.into()),
                explained: Some(correlations[most].explained),
                effective: correlations[most].effective,
                ..self.test(test, p)
            },
        ))
    }
}

/// A correlation with a signal.
struct Against {
    p: f64,
    explained: f64,
    effective: f64,
}

/// The correlation of two sequences of mean zero, the second `lag` samples later.
fn correlation(a: &[f64], b: &[f64], lag: usize) -> f64 {
    let product: f64 = a.iter().zip(&b[lag..]).map(|(x, y)| x * y).sum();
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    product / (square(a) * square(b)).sqrt()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_pcg::Pcg64;

    use super::*;

    fn white(rng: &mut Pcg64, n: usize) -> Vec<f64> {
        (0..n).map(|_| StandardNormal.sample(rng)).collect()
    }

    fn autoregression(rng: &mut Pcg64, n: usize, a: f64) -> Vec<f64> {
        let mut state = 0.0;
        let states = white(rng, n).into_iter().map(|e| {
            state = a * state + (1.0 - a * a).sqrt() * e;
            state
        });
        states.collect()
    }

    fn tested(values: &[f64], input: &[f64], state: &[f64]) -> Vec<ResidualTest> {
        let at_samples: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
        let residuals = Residuals::new(&at_samples).unwrap();
        let tests = [
            residuals.whiteness(),
            residuals.normality(),
            residuals.on_input("u", input),
            residuals.on_state("x", state),
        ];
        tests.into_iter().flatten().collect()
    }

    /// White noise beside slow and fast signals: each test by itself, and all for their number, are
    /// below 0.05 in about one case of twenty, or less. Of 400 sequences, 5 % with three deviations are 33.
    #[test]
    fn noise_is_rarely_called_anything_else() {
        let mut counts = [0; 5];
        for seed in 0..400 {
            let mut rng = Pcg64::seed_from_u64(seed);
            let n = [60, 201, 1000, 1700][seed as usize % 4];
            let slow = [0.0, 0.9, 0.99][seed as usize % 3];
            let input = autoregression(&mut rng, n, slow);
            let state = autoregression(&mut rng, n, slow);
            let tests = tested(&white(&mut rng, n), &input, &state);
            for (count, test) in counts.iter_mut().zip(&tests) {
                *count += usize::from(test.p < SIGNIFICANCE_LEVEL);
            }
            let adjusted = holm(&tests.iter().map(|t| t.p).collect::<Vec<_>>());
            counts[4] += usize::from(adjusted.iter().any(|p| *p < SIGNIFICANCE_LEVEL));
        }
        assert!(counts.iter().all(|c| *c <= 33), "{counts:?}");
    }

    /// Correlated residuals beside an independent slow signal: without the effective size most of them
    /// would seem to depend on it.
    #[test]
    fn correlated_residuals_count_for_what_they_are_worth() {
        let (mut counted, mut naive) = (0, 0);
        for seed in 0..200 {
            let mut rng = Pcg64::seed_from_u64(1000 + seed);
            let values = autoregression(&mut rng, 1000, 0.95);
            let signal = autoregression(&mut rng, 1000, 0.95);
            let tests = tested(&values, &signal, &signal);
            assert!(tests[0].p < 1e-6, "not white");
            counted += usize::from(tests[2].p < SIGNIFICANCE_LEVEL)
                + usize::from(tests[3].p < SIGNIFICANCE_LEVEL);
            let as_if = two_sided((tests[2].explained.unwrap() * 1000.0).sqrt());
            naive += usize::from(as_if < SIGNIFICANCE_LEVEL);
        }
        assert!(naive > 100, "{naive} of 200");
        assert!(counted < 60, "{counted} of 400");
    }

    /// A twentieth of the variance that an input makes five samples later, a curve of a state, and tails of
    /// Student's t with three degrees of freedom are each found by their own test.
    #[test]
    fn what_is_there_is_found() {
        let mut rng = Pcg64::seed_from_u64(7);
        let (noise, state) = (white(&mut rng, 1500), white(&mut rng, 1500));
        let input = autoregression(&mut rng, 1500, 0.9);
        let delayed: Vec<f64> = (0..1500)
            .map(|k| noise[k] + 0.23 * input[k.saturating_sub(4)])
            .collect();
        let tests = tested(&delayed, &input, &state);
        assert!(
            tests[2].p < 1e-6 && tests[2].delay == Some(4),
            "{:?}",
            tests[2]
        );
        assert!(tests[3].p > 0.01, "{:?}", tests[3]);
        let curved: Vec<f64> = (0..1500)
            .map(|k| noise[k] + 0.3 * (state[k].abs() - 0.798))
            .collect();
        let tests = tested(&curved, &input, &state);
        assert!(tests[3].p < 1e-4 && tests[0].p > 1e-3, "{tests:?}");
        let student = |rng: &mut Pcg64| {
            let z = white(rng, 4);
            z[0] / ((z[1] * z[1] + z[2] * z[2] + z[3] * z[3]) / 3.0).sqrt()
        };
        let heavy: Vec<f64> = (0..1500).map(|_| student(&mut rng)).collect();
        assert!(tested(&heavy, &input, &state)[1].p < 1e-9);
    }
}
