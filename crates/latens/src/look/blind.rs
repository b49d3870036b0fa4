//! Gaps of a record over which nobody knows what its inputs do.
//!
//! Over a gap an input is taken as held, or as straight to its next value. How far it is from that over such a time is
//! in the record itself: wherever rows as far apart as the ends of the gap have others between them, these are what
//! the gap hides. Where they are as far from what would be taken as the input is from its mean, the input over the gap is
//! anybody's guess, and so are the states after it.

use std::ops::Range;

use super::finding::Finding;
use crate::model::{Hold, Model};
use crate::record::Record;

/// Rows are missing where a gap is so many times as long as most.
const MISSING_ROW_FACTOR: f64 = 1.5;
/// An input is not known over a gap where it is this part of its own standard deviation from what is taken.
const UNKNOWN_DEVIATION_PART: f64 = 0.5;
/// Gaps that make up less than this part of a record are not worth a word.
const MATERIAL_TIME_PART: f64 = 0.01;
/// Places of a record at the most that are compared with a gap.
const PLACES: usize = 500;

/// A gap over which inputs are not known.
struct Gap {
    /// The sample that it begins after.
    after: usize,
    inputs: Vec<usize>,
}

/// What is to be said of the inputs of each record.
pub fn findings(model: &Model, records: &[Record]) -> Vec<Finding> {
    let of_record = |record: &Record| {
        let gaps = gaps(model, record);
        let longest = gaps.iter().map(|gap| gap.after);
        let longest = longest.max_by(|a, b| record.gap(*a).total_cmp(&record.gap(*b)))?;
        let mut inputs: Vec<usize> = gaps.iter().flat_map(|gap| gap.inputs.clone()).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let names = inputs.iter().map(|k| model.inputs[*k].name.clone());
        Some(Finding::UnknownInputs {
            record: record.name.clone(),
            inputs: names.collect(),
            gaps: gaps.len(),
            part: part(record, &gaps),
            from: record.time[longest],
            to: record.time[longest + 1],
            unit: model.time_unit.clone(),
            contradicts: false,
        })
    };
    records.iter().filter_map(of_record).collect()
}

/// The samples between the gaps over which inputs are not known: the whole record where there is none.
pub fn stretches(model: &Model, record: &Record) -> Vec<Range<usize>> {
    let gaps = gaps(model, record);
    let starts = std::iter::once(0).chain(gaps.iter().map(|gap| gap.after + 1));
    let ends = gaps.iter().map(|gap| gap.after + 1);
    let ends = ends.chain(std::iter::once(record.len()));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// The part of a record's time that gaps make up.
fn part(record: &Record, gaps: &[Gap]) -> f64 {
    let time: f64 = gaps.iter().map(|gap| record.gap(gap.after)).sum();
    time / (record.time[record.len() - 1] - record.time[0])
}

fn gaps(model: &Model, record: &Record) -> Vec<Gap> {
    let mut lengths: Vec<f64> = record.gaps().collect();
    if lengths.len() < 2 || model.inputs.is_empty() {
        return vec![];
    }
    lengths.sort_unstable_by(f64::total_cmp);
    let usual = MISSING_ROW_FACTOR * lengths[lengths.len() / 2];
    let long = (0..lengths.len()).filter(|k| record.gap(*k) > usual);
    let inputs = 0..model.inputs.len();
    // who writes that an input is held is believed
    let believed = |k: &usize| model.hold[*k] == Hold::ZeroOrder && model.hold_is_given[*k];
    let inputs: Vec<Input> = (inputs.filter(|k| !believed(k)))
        .filter_map(|k| Input::new(model, record, k))
        .collect();
    let unknown = |after: usize| Gap {
        after,
        inputs: (inputs.iter())
            .filter(|input| input.is_unknown(record.gap(after), usual))
            .map(|input| input.place)
            .collect(),
    };
    let gaps = long.map(unknown).filter(|gap| !gap.inputs.is_empty());
    let gaps: Vec<Gap> = gaps.collect();
    if part(record, &gaps) < MATERIAL_TIME_PART {
        return vec![];
    }
    gaps
}

/// An input that moves.
struct Input<'a> {
    place: usize,
    time: &'a [f64],
    values: Vec<f64>,
    variance: f64,
    straight: bool,
}

impl<'a> Input<'a> {
    fn new(model: &Model, record: &'a Record, place: usize) -> Option<Self> {
        let values: Vec<f64> = record.input_column(place).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|u| (u - mean).powi(2));
        let variance = squares.sum::<f64>() / values.len() as f64;
        (variance > 0.0).then_some(Self {
            place,
            time: &record.time,
            values,
            variance,
            straight: model.hold[place] == Hold::FirstOrder,
        })
    }

    /// Whether rows that far apart say little of those between them; of a gap longer than what the record has
    /// elsewhere, as little as of the longest.
    fn is_unknown(&self, gap: f64, usual: f64) -> bool {
        let mut length = gap;
        while length > usual {
            if let Some(variance) = self.missed(length, usual) {
                return variance > UNKNOWN_DEVIATION_PART.powi(2) * self.variance;
            }
            length /= 2.0;
        }
        false
    }

    /// The mean square of how far rows are from what would be taken if they were missing between two others so far
    /// apart; nothing where no such rows have others between them.
    fn missed(&self, length: f64, usual: f64) -> Option<f64> {
        let samples = self.time.len();
        let (mut sum, mut count) = (0.0, 0_usize);
        for first in (0..samples).step_by(samples.div_ceil(PLACES)) {
            let last = self
                .time
                .partition_point(|t| *t < self.time[first] + length);
            // a gap that is as long itself shows nothing, and the end of a record is none
            let is_seen = |t: &[f64]| t[1] - t[0] <= usual.max(length / 4.0);
            if last >= samples
                || last < first + 2
                || !self.time[first..=last].windows(2).all(is_seen)
            {
                continue;
            }
            for k in first + 1..last {
                let taken = if self.straight {
                    let whole = self.time[last] - self.time[first];
                    let part = (self.time[k] - self.time[first]) / whole;
                    self.values[first] + part * (self.values[last] - self.values[first])
                } else {
                    self.values[first]
                };
                sum += (self.values[k] - taken).powi(2);
                count += 1;
            }
        }
        (count > 0).then(|| sum / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of 400 s with an input, without the rows that are missing.
    fn record(input: impl Fn(f64) -> f64, missing: impl Fn(usize) -> bool) -> Record {
        let time: Vec<f64> = (0..400)
            .filter(|k| !missing(*k))
            .map(|k| k as f64)
            .collect();
        Record {
            name: "r".into(),
            inputs: time.iter().map(|t| input(*t)).collect(),
            outputs: vec![0.0; time.len()],
            time,
            truth: None,
            d_u: 1,
            d_y: 1,
            d_x: 1,
            later: false,
        }
    }

    fn found(hold: &str, record: &Record) -> Vec<Range<usize>> {
        let text = format!(
            "[time]\nstep = 1\n{hold}\n[inputs]\nu = {{}}\n[states.x]\nderivative = \"u - x\"\n[measurements]\ny = \"x\"\n"
        );
        let model = Model::from_text("m", &text).unwrap();
        let stretches = stretches(&model, record);
        let told = findings(&model, std::slice::from_ref(record));
        assert_eq!(told.is_empty(), stretches.len() == 1);
        stretches
    }

    #[test]
    fn what_an_input_does_elsewhere_says_whether_it_is_known_over_a_gap() {
        let (straight, held) = ("hold = \"first-order\"", "hold = \"zero-order\"");
        let wave = |t: f64| (t / 6.0).sin() + (t / 2.7).cos();
        let stopped = |k: usize| (100..130).contains(&k);
        for hold in ["", straight] {
            // a logger that stopped; single rows, which a smooth input goes over; nothing missing
            assert_eq!(found(hold, &record(wave, stopped)), [0..100, 100..370]);
            assert_eq!(found(hold, &record(wave, |k| k % 9 == 4)).len(), 1);
            assert_eq!(found(hold, &record(wave, |_| false)).len(), 1);
            // both: only the long gap is named
            let both = record(wave, |k| stopped(k) || k % 9 == 4);
            assert_eq!(found(hold, &both).len(), 2);
            // an input that stands still, and one so slow that it hardly moves over the gap
            assert_eq!(found(hold, &record(|_| 1.0, stopped)).len(), 1);
            assert_eq!(
                found(hold, &record(|t| (t / 150.0).sin(), stopped)).len(),
                1
            );
        }
        // whoever says that it is held is believed
        assert_eq!(found(held, &record(wave, stopped)).len(), 1);
    }
}
