//! What a channel shows of its sensor before anything is fitted: one that holds its readings, has
//! few values, is at its end, or says nothing.

use super::finding::Finding;
use crate::model::Model;
use crate::numerics::whiteness;
use crate::record::Record;

/// Fewest readings that say anything of a sensor.
const FEWEST_READINGS: usize = 30;
/// A held sensor has at least this part of its neighbours equal …
const EQUAL_NEIGHBOURS_PART: f64 = 0.5;
/// … and a new value in at least this part of its runs of equal ones.
const NEW_VALUES_PART: f64 = 0.6;
/// The part of neighbours that are equal where a channel has steps: noise that moves a reading by a step and more
/// averages the steps away.
const QUANTISED_NEIGHBOURS_PART: f64 = 0.3;
/// How closely the distances of values are multiples of a step.
const STEP_TOLERANCE: f64 = 1e-3;
/// Part of the readings at the end of a sensor, and their least number in a run.
const AT_END_PART: f64 = 0.02;
const SATURATED_RUN_READINGS: usize = 3;
/// Parts of the range within which a channel is near an end, and beside it. Of what comes near it, a straight course
/// spends a tenth of the way beside it and one that turns round a third; one that dies away spends most.
const NEAR_END_PART: f64 = 0.1;
const BESIDE_END_PART: f64 = 0.01;
const DYING_READINGS_PART: f64 = 0.4;
/// Fewest readings beside the end that tell so.
const DYING_READINGS: usize = 3;

/// What every channel shows of its sensor.
pub fn findings(model: &Model, records: &[Record]) -> Vec<Finding> {
    let mut findings = vec![];
    for (c, channel) in model.measurements.iter().enumerate() {
        let readings = records.iter().map(|r| readings(r, c));
        let readings: Vec<Vec<f64>> = readings.filter(|r| r.len() >= FEWEST_READINGS).collect();
        if readings.is_empty() {
            continue;
        }
        let (name, unit) = (&channel.name, &channel.unit);
        if let Some(samples) = held(&readings) {
            findings.push(Finding::Held {
                channel: name.clone(),
                samples,
            });
        } else if let Some(Quantisation { values, step }) = quantised(&readings) {
            findings.push(Finding::Quantised {
                channel: name.clone(),
                unit: unit.clone(),
                values,
                step,
                of_range: 1.0 / steps_of(&readings, step),
            });
        } else if let Some(saturation) = saturated(&readings) {
            findings.push(Finding::Saturated {
                channel: name.clone(),
                unit: unit.clone(),
                highest: saturation.highest,
                value: saturation.value,
                part: saturation.part,
            });
        } else if readings.iter().all(|r| whiteness::is_white(r)) {
            findings.push(Finding::OnlyNoise {
                channel: name.clone(),
            });
        }
    }
    findings
}

/// The readings of a channel, those not taken left out.
fn readings(record: &Record, c: usize) -> Vec<f64> {
    let channel = record.outputs.iter().skip(c).step_by(record.d_y);
    channel.copied().filter(|y| y.is_finite()).collect()
}

/// Equal readings one after another.
struct EqualRun {
    value: f64,
    length: usize,
}

fn runs(readings: &[f64]) -> Vec<EqualRun> {
    let equal = readings.chunk_by(|a, b| a == b);
    let runs = equal.map(|run| EqualRun {
        value: run[0],
        length: run.len(),
    });
    runs.collect()
}

fn equal_neighbours(readings: &[Vec<f64>]) -> f64 {
    let pairs = readings.iter().flat_map(|r| r.windows(2));
    let count = pairs.clone().count() as f64;
    pairs.filter(|p| p[0] == p[1]).count() as f64 / count
}

fn distinct(readings: &[Vec<f64>]) -> Vec<f64> {
    let mut values: Vec<f64> = readings.iter().flatten().copied().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

/// How often a held reading is repeated, typically.
fn held(readings: &[Vec<f64>]) -> Option<usize> {
    if equal_neighbours(readings) < EQUAL_NEIGHBOURS_PART {
        return None;
    }
    let runs = readings.iter().flat_map(|r| runs(r));
    let mut lengths: Vec<usize> = runs.map(|run| run.length).collect();
    lengths.sort_unstable();
    let new = distinct(readings).len() as f64 >= NEW_VALUES_PART * lengths.len() as f64;
    // one long rest among readings that all differ is no sensor that holds
    let typical = lengths[lengths.len() / 2];
    (new && lengths.len() >= 5 && typical >= 2).then_some(typical)
}

/// The range in steps.
fn steps_of(readings: &[Vec<f64>], step: f64) -> f64 {
    let values = distinct(readings);
    (values[values.len() - 1] - values[0]) / step
}

/// The standard deviation of what is lost where a channel is rounded to steps: the error is anything up to half of
/// one. 0 where it has none, or the noise hides them.
pub(super) fn rounding_noise(readings: &[Vec<f64>]) -> f64 {
    quantised(readings).map_or(0.0, |quantisation| quantisation.step / 12f64.sqrt())
}

/// How many values a channel has, and the step between them.
struct Quantisation {
    values: usize,
    step: f64,
}

/// The steps of a channel, where its values are few.
fn quantised(readings: &[Vec<f64>]) -> Option<Quantisation> {
    let all: usize = readings.iter().map(Vec::len).sum();
    let values = distinct(readings);
    let few = values.len() > 1 && values.len() <= all / 4;
    if !few || equal_neighbours(readings) < QUANTISED_NEIGHBOURS_PART {
        return None;
    }
    let range = values[values.len() - 1] - values[0];
    // values that a file writes with rounding are equal for all that
    let apart = values.windows(2).map(|v| v[1] - v[0]);
    let apart: Vec<f64> = apart.filter(|d| *d > 1e-9 * range).collect();
    let step = apart.iter().copied().fold(f64::INFINITY, f64::min);
    let whole = |d: &f64| (d / step - (d / step).round()).abs() <= STEP_TOLERANCE * (d / step);
    (apart.len() > 1 && apart.iter().all(whole)).then_some(Quantisation {
        values: apart.len() + 1,
        step,
    })
}

/// An end of its range at which a channel stays.
struct Saturation {
    /// Whether it is the highest value, or the lowest.
    highest: bool,
    value: f64,
    /// Of its readings.
    part: f64,
}

/// The end of its range at which a channel stays in most of its readings, if any.
fn saturated(readings: &[Vec<f64>]) -> Option<Saturation> {
    let values = distinct(readings);
    let all: usize = readings.iter().map(Vec::len).sum();
    let ends = [(true, values.len() - 1), (false, 0)];
    let ends = ends.into_iter().filter(|_| values.len() > 1);
    let ends = ends.map(|(highest, at)| (highest, values[at]));
    let saturations = ends.filter_map(|(highest, value)| {
        let at_end = readings.iter().flatten().filter(|y| **y == value).count();
        let runs = readings.iter().flat_map(|r| runs(r));
        let long = runs.filter(|r| r.value == value && r.length >= SATURATED_RUN_READINGS);
        let part = at_end as f64 / all as f64;
        // a plant at rest stands at one end of its range once, a sensor comes back to its own
        let stands = part >= AT_END_PART && long.count() >= 2;
        (stands && !dies_away(readings, value, values[values.len() - 1] - values[0])).then_some(
            Saturation {
                highest,
                value,
                part,
            },
        )
    });
    saturations.max_by(|a, b| a.part.total_cmp(&b.part))
}

/// Whether a channel comes to an end of its range as what dies away comes to its last value, and is there because
/// nothing is left that it resolves: the cases of an epidemic, the activity of a tracer. What a sensor cuts off gets there
/// at the pace that it has.
fn dies_away(readings: &[Vec<f64>], value: f64, range: f64) -> bool {
    let (mut near, mut beside) = (0, 0);
    for record in readings {
        let stretches = record.chunk_by(|a, b| {
            let is_near = |y: f64| (y - value).abs() <= NEAR_END_PART * range;
            is_near(*a) == is_near(*b)
        });
        let stands = |stretch: &&[f64]| {
            let mut runs = runs(stretch).into_iter();
            runs.any(|run| run.value == value && run.length >= SATURATED_RUN_READINGS)
        };
        for y in stretches.filter(stands).flatten() {
            let distance = (y - value).abs();
            near += usize::from(distance > 0.0);
            beside += usize::from(distance > 0.0 && distance <= BESIDE_END_PART * range);
        }
    }
    beside >= DYING_READINGS && beside as f64 >= DYING_READINGS_PART * near as f64
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_pcg::Pcg64;

    use super::*;

    fn wave(n: usize) -> Vec<f64> {
        (0..n)
            .map(|k| (0.05 * k as f64).sin() + 0.3 * (0.017 * k as f64).cos())
            .collect()
    }

    fn findings_of(readings: Vec<f64>) -> Vec<Finding> {
        let text = crate::systems::find("harmonic-oscillator").unwrap();
        let model = Model::from_text("ho", text).unwrap();
        let n = readings.len();
        let record = Record {
            name: "record".into(),
            time: (0..n).map(|k| 0.1 * k as f64).collect(),
            inputs: vec![],
            outputs: readings,
            truth: None,
            d_u: 0,
            d_y: 1,
            d_x: 2,
            later: false,
        };
        findings(&model, &[record])
    }

    fn white(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = Pcg64::seed_from_u64(seed);
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    #[test]
    fn a_sound_sensor_has_no_finding() {
        assert_eq!(findings_of(wave(1000)), []);
        let noisy = wave(1000).into_iter().zip(white(1, 1000));
        assert_eq!(findings_of(noisy.map(|(y, e)| y + 0.05 * e).collect()), []);
        // written with two digits, as files are
        let noisy = wave(1000).into_iter().zip(white(1, 1000));
        let rounded = noisy.map(|(y, e)| ((y + 0.05 * e) * 100.0).round() / 100.0);
        assert_eq!(findings_of(rounded.collect()), []);
        // a plant that rests before it moves
        let mut rest = vec![-1.3; 100];
        rest.extend(wave(900));
        assert_eq!(findings_of(rest), []);
    }

    #[test]
    fn a_sensor_that_holds_is_found_with_its_length() {
        let wave = wave(1000);
        let held = (0..1000).map(|k| wave[k / 10 * 10]).collect();
        let findings = findings_of(held);
        assert!(
            matches!(&findings[..], [Finding::Held { samples: 10, .. }]),
            "{findings:?}"
        );
    }

    #[test]
    fn few_values_are_found_with_their_step() {
        let findings = findings_of(wave(1000).iter().map(|y| (y / 0.2).round() * 0.2).collect());
        let [Finding::Quantised { step, values, .. }] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert!(
            (step - 0.2).abs() < 1e-9 && (10..16).contains(values),
            "{findings:?}"
        );
    }

    #[test]
    fn a_sensor_at_its_end_is_found_with_its_value() {
        let findings = findings_of(wave(1000).iter().map(|y| y.min(0.5)).collect());
        let [
            Finding::Saturated {
                highest: true,
                value,
                part,
                ..
            },
        ] = &findings[..]
        else {
            panic!("{findings:?}");
        };
        assert_eq!(*value, 0.5);
        assert!((0.2..0.5).contains(part), "{findings:?}");
    }

    /// Counts of an epidemic that ends are 0 in many weeks, with a case now and then; a sensor that cannot show
    /// less than a level comes to it at a pace.
    #[test]
    fn what_has_died_away_is_no_fault() {
        let cases = [
            16, 20, 39, 74, 137, 310, 568, 1123, 1950, 2835, 3669, 3450, 2551, 1656, 987, 572, 308,
            171, 79, 45, 23, 15, 5, 2, 2, 2, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(findings_of(cases.map(f64::from).to_vec()), []);
        for lowest in [-1.2, -1.0, -0.5] {
            let findings = findings_of(wave(1000).iter().map(|y| y.max(lowest)).collect());
            let found = matches!(&findings[..], [Finding::Saturated { highest: false, .. }]);
            assert!(found, "{lowest}: {findings:?}");
        }
    }

    #[test]
    fn noise_alone_is_said_to_be_that() {
        let findings = findings_of(white(2, 201));
        assert!(
            matches!(&findings[..], [Finding::OnlyNoise { .. }]),
            "{findings:?}"
        );
    }
}
