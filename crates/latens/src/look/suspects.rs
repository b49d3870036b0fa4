//! Readings that contradict the others: what a broken sensor says, told from what was measured.
//!
//! A run of up to [`LONGEST_RUN`] readings of a channel is compared with what the readings before
//! and after it foretell: the neighbour on either side held, a line and a parabola through those on
//! either side, the line and the cubic between both sides. Its *contradiction* is the distance from
//! the nearest of these, of all its readings the least; 0 where a reading lies between its
//! neighbours. A step, a kink, a ramp, a peak that is sampled well: each is foretold by one side at
//! least, and contradicts nothing.
//!
//! A run is suspect where its contradiction is far larger than those of nearly all other runs of
//! the channel, than those around it, and than the noise. Everything in the definition errs on the
//! side of the reading: before anything is learned nobody knows what the system can do, and what is
//! not found here stands out from the fitted model ([`isolated`]).

use serde::{Deserialize, Serialize};

use super::scales;
use crate::described;
use crate::model::Model;
use crate::record::Record;

/// Readings in a row that may be wrong together: longer ones are an event, not a glitch.
const LONGEST_RUN: usize = 5;
/// More runs of several readings than this are events that recur, as the spikes of a neuron.
const MOST_RUNS: usize = 5;
/// Readings that are known to foretell a run, on each side.
const FORETELLING_READINGS: usize = 3;
/// Readings on each side whose contradictions say what is usual here.
const AROUND_READINGS: usize = 12;
/// Of them, so many of the largest do not count: they may be wrong themselves.
const FORGIVEN_CONTRADICTIONS: usize = 2;
/// The part of all runs that may be suspect at the most, and so have no part in what is usual.
const RARE_RUNS_PART: f64 = 0.03;
/// A reading after a gap this many times as long as most does not know those before it.
const FAR_GAP_FACTOR: f64 = 4.0;
/// Readings of a run are apart by at most this part of how far they are from the others.
const LEVEL_PART: f64 = 0.5;
/// Readings must contradict each other by this part of what a model says that they do.
const SUPPORT_PART: f64 = 0.5;
/// Or by so many standard deviations.
const CLEAR_DEVIATIONS: f64 = 8.0;
/// Values that repeat in this part of all readings come from a coarse scale.
const REPEATED_READINGS_PART: f64 = 0.1;
/// The most passes over a channel; each lays bare what others hid.
const MOST_PASSES: usize = 20;
/// The part of a channel's readings that may be set aside before the record is refused.
pub(crate) const REFUSED_PART: f64 = 0.2;

described! {
/// A reading that contradicts the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// The record, as the user named it.
    pub file: String,
    /// Its row there: 1 is the first after the names of the columns.
    pub row: usize,
    /// Its time.
    pub time: f64,
    /// The channel.
    pub channel: String,
    /// The channel's unit.
    pub unit: String,
    /// What was read.
    pub value: f64,
    /// What the other readings, or the fitted model, say instead.
    pub expected: f64,
    /// How far these are apart, in standard deviations.
    pub deviations: f64,
}
}

/// A reading of a record that is set aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// The sample, from 0.
    pub sample: usize,
    /// The channel, from 0.
    pub channel: usize,
    /// What was expected.
    pub expected: f64,
    /// How far off it is, in standard deviations.
    pub deviations: f64,
}

impl Finding {
    /// Which reading it is.
    pub fn place(&self) -> (usize, usize) {
        (self.sample, self.channel)
    }

    /// With its names: of a record called `file`, whose first row is `first_row`.
    pub fn named(&self, model: &Model, record: &Record, file: &str, first_row: usize) -> Suspect {
        let channel = &model.measurements[self.channel];
        Suspect {
            file: file.into(),
            row: first_row + self.sample,
            time: record.time[self.sample],
            channel: channel.name.clone(),
            unit: channel.unit.clone(),
            value: record.output(self.sample)[self.channel],
            expected: self.expected,
            deviations: self.deviations,
        }
    }
}

/// The record with what was found left out, as if it had never been measured.
pub fn without(record: &Record, findings: &[Finding]) -> Record {
    let mut used = record.clone();
    for finding in findings {
        used.outputs[finding.sample * used.d_y + finding.channel] = f64::NAN;
    }
    used
}

/// A channel of which too many readings were set aside, and how many.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany {
    pub channel: usize,
    pub count: usize,
}

/// The first channel of which too many readings were set aside to go on with the rest.
pub fn too_many(record: &Record, findings: &[Finding]) -> Option<TooMany> {
    (0..record.d_y).find_map(|c| {
        let count = findings.iter().filter(|f| f.channel == c).count();
        let all = record.outputs.iter().skip(c).step_by(record.d_y);
        let all = all.filter(|y| y.is_finite()).count();
        (count as f64 > REFUSED_PART * all as f64).then_some(TooMany { channel: c, count })
    })
}

/// Readings of a record that its other readings contradict grossly; nothing of a model is known.
pub fn gross(record: &Record) -> Vec<Finding> {
    let limits = Limits {
        usual: 8.0,
        around: 4.0,
        noise: 10.0,
        range: 0.05,
    };
    let mut findings = vec![];
    for channel in 0..record.d_y {
        let readings = Readings::of_channel(record, channel);
        let suspected = search(&readings, &limits, 0.0, &|run| {
            explained(record, &readings, run)
        });
        findings.extend(suspected.into_iter().map(|s| Finding {
            sample: readings.sample[s.place],
            channel,
            expected: s.expected,
            deviations: s.deviations,
        }));
    }
    findings.sort_by_key(Finding::place);
    findings
}

/// The readings of a channel beside what a model says of them.
pub struct Residuals {
    /// Of each reading.
    pub time: Vec<f64>,
    /// What was read.
    pub read: Vec<f64>,
    /// What the model says.
    pub expected: Vec<f64>,
    /// How far these are apart, in standard deviations, with its sign.
    pub deviations: Vec<f64>,
}

/// Readings whose residual stands out from those of their neighbours by at least so many standard
/// deviations; their places.
///
/// What neighbours share is the model's error, also where one is farther off than they are: by which a residual
/// stands out must be more than what is left of the readings beside it. So is a residual where the reading agrees with its
/// neighbours, and the model turns a corner that the signal does not: the readings themselves must
/// contradict each other by [`SUPPORT_PART`] of what the model claims, or by [`CLEAR_DEVIATIONS`] standard deviations.
pub fn isolated(residuals: &Residuals, least: f64) -> Vec<usize> {
    let limits = Limits {
        usual: 3.0,
        around: 3.0,
        noise: least,
        range: 0.0,
    };
    let readings = |value: &[f64]| Readings {
        sample: (0..residuals.time.len()).collect(),
        time: residuals.time.clone(),
        value: value.to_vec(),
    };
    let places = search(&readings(&residuals.deviations), &limits, 1.0, &|_| false);
    let places: Vec<usize> = places.into_iter().map(|s| s.place).collect();
    let read = readings(&residuals.read);
    let left = readings(&residuals.deviations);
    let stretches = read.stretches();
    let size = |k: &usize| (residuals.read[*k] - residuals.expected[*k]).abs();
    let supported = |run: &&[usize]| {
        let run_of = read.run(&stretches, run[0], run[run.len() - 1] + 1);
        let asked = |k: &usize| {
            let deviation = size(k) / residuals.deviations[*k].abs();
            f64::min(SUPPORT_PART * size(k), CLEAR_DEVIATIONS * deviation)
        };
        let asked = run.iter().map(asked).fold(f64::INFINITY, f64::min);
        let beside = [
            (run_of.before > 0).then(|| run_of.first - 1),
            (run_of.after > 0).then_some(run_of.end),
        ];
        let beside = beside.into_iter().flatten();
        let shared = beside.map(|k| left.value[k].abs()).fold(0.0, f64::max);
        read.contradiction(run_of) >= asked && left.contradiction(run_of) > shared
    };
    let runs = places.chunk_by(|a, b| a + 1 == *b);
    runs.filter(supported).flatten().copied().collect()
}

/// The same of several records, each with what to call it.
pub fn named<'r>(
    model: &Model,
    records: impl IntoIterator<Item = (&'r str, &'r Record)>,
) -> Vec<Suspect> {
    let mut suspects = vec![];
    for (file, record) in records {
        let gross = gross(record);
        suspects.extend(gross.iter().map(|f| f.named(model, record, file, 1)));
    }
    suspects
}

/// How many times as large as something a contradiction must be.
struct Limits {
    /// As nearly all of its channel.
    usual: f64,
    /// As those around it.
    around: f64,
    /// As the noise.
    noise: f64,
    /// As the range of the channel, without its highest and lowest twentieth.
    range: f64,
}

/// The readings of a channel, those not taken left out.
#[derive(Clone)]
struct Readings {
    sample: Vec<usize>,
    time: Vec<f64>,
    value: Vec<f64>,
}

/// Some readings in a row, with the number of those at hand on each side.
#[derive(Clone, Copy)]
struct Run {
    first: usize,
    /// One after the last.
    end: usize,
    before: usize,
    after: usize,
}

impl Run {
    /// Of a stretch from its begin to its end.
    fn within(stretch: &[usize], first: usize, end: usize) -> Self {
        Self {
            first,
            end,
            before: (first - stretch[0]).min(FORETELLING_READINGS),
            after: (stretch[1] - end).min(FORETELLING_READINGS),
        }
    }

    /// Whether both sides are there to contradict it.
    fn inside(&self) -> bool {
        self.before.min(self.after) > 0 && self.before + self.after > 2
    }

    /// Whether one side is there, and the other is nothing at all.
    fn at_an_end(&self) -> bool {
        self.before.min(self.after) == 0 && self.before.max(self.after) == FORETELLING_READINGS
    }
}

impl Readings {
    fn of_channel(record: &Record, channel: usize) -> Self {
        let taken = (0..record.len()).filter(|&k| record.output(k)[channel].is_finite());
        let sample: Vec<usize> = taken.collect();
        Self {
            time: sample.iter().map(|&k| record.time[k]).collect(),
            value: sample.iter().map(|&k| record.output(k)[channel]).collect(),
            sample,
        }
    }

    fn len(&self) -> usize {
        self.value.len()
    }

    /// Where stretches without long gaps begin, and the end of the last.
    fn stretches(&self) -> Vec<usize> {
        let mut gaps: Vec<f64> = self.time.windows(2).map(|t| t[1] - t[0]).collect();
        let far = FAR_GAP_FACTOR * quantile(&mut gaps, 0.5);
        let pairs = self.time.windows(2).enumerate();
        let begins = pairs.filter(|(_, t)| t[1] - t[0] > far).map(|(k, _)| k + 1);
        let mut stretches = vec![0];
        stretches.extend(begins);
        stretches.push(self.len());
        stretches
    }

    /// All runs of a length.
    fn runs(&self, length: usize) -> Vec<Run> {
        let stretches = self.stretches();
        let runs = stretches.windows(2).flat_map(|pair| {
            let firsts = pair[0]..(pair[1] + 1).saturating_sub(length);
            firsts.map(|first| Run::within(pair, first, first + length))
        });
        runs.collect()
    }

    /// The run of some readings.
    fn run(&self, stretches: &[usize], first: usize, end: usize) -> Run {
        let mut pairs = stretches.windows(2);
        let stretch = pairs.find(|pair| pair[0] <= first && end <= pair[1]);
        Run::within(stretch.unwrap_or(&[first, end]), first, end)
    }

    /// The value at a time of the polynomial through some readings.
    fn through(&self, places: &[usize], time: f64) -> f64 {
        let mut sum = 0.0;
        for &i in places {
            let others = places.iter().filter(|&&j| j != i);
            let weight: f64 = others
                .map(|&j| (time - self.time[j]) / (self.time[i] - self.time[j]))
                .product();
            sum += weight * self.value[i];
        }
        sum
    }

    /// What both sides say of a time, where both are there; else the nearest reading.
    fn expected(&self, run: Run, k: usize) -> f64 {
        match (run.before > 0, run.after > 0) {
            (true, true) => self.through(&[run.first - 1, run.end], self.time[k]),
            (true, false) => self.value[run.first - 1],
            _ => self.value[run.end],
        }
    }

    /// How far a run is from all that its neighbours foretell; a run that is not nearly level
    /// between its readings is a wave that was measured.
    fn contradiction(&self, run: Run) -> f64 {
        if self.is_peak(run) {
            return 0.0;
        }
        let contradictions = (run.first..run.end).map(|k| self.contradiction_of(run, k));
        let least = contradictions.fold(f64::INFINITY, f64::min);
        let off = (run.first..run.end).map(|k| self.value[k] - self.expected(run, k));
        let (low, high) = off.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (f64::min(low, v), f64::max(high, v))
        });
        if high - low > LEVEL_PART * least {
            return 0.0;
        }
        least
    }

    /// Whether the readings beside a run rise with it from those further away: a peak that was
    /// sampled, however coarsely.
    fn is_peak(&self, run: Run) -> bool {
        /// Of how far the run is off.
        const RISEN_PART: f64 = 0.2;
        if run.at_an_end() {
            let (near, far, edge) = if run.before == 0 {
                (run.end, run.end + FORETELLING_READINGS - 1, run.end - 1)
            } else {
                (run.first - 1, run.first - FORETELLING_READINGS, run.first)
            };
            let risen = self.value[edge] - self.value[far];
            return (self.value[near] - self.value[far]) * risen.signum()
                > RISEN_PART * risen.abs();
        }
        if run.before.min(run.after) < FORETELLING_READINGS {
            return false;
        }
        let far = [
            run.first - FORETELLING_READINGS,
            run.end + FORETELLING_READINGS - 1,
        ];
        let off = |k: usize| self.value[k] - self.through(&far, self.time[k]);
        let beside = [off(run.first - 1), off(run.end)];
        let least = (run.first..run.end)
            .map(off)
            .min_by(|a, b| a.abs().total_cmp(&b.abs()));
        least.is_some_and(|least| {
            beside
                .iter()
                .all(|b| b * least.signum() > RISEN_PART * least.abs())
        })
    }

    fn contradiction_of(&self, run: Run, k: usize) -> f64 {
        let (first, end) = (run.first, run.end);
        let (time, value) = (self.time[k], self.value[k]);
        let mut least = f64::INFINITY;
        let mut foretold = |places: &[usize]| {
            least = f64::min(least, (value - self.through(places, time)).abs());
        };
        for points in 1..=run.before {
            let places = [first - 1, first.wrapping_sub(2), first.wrapping_sub(3)];
            foretold(&places[..points]);
        }
        for points in 1..=run.after {
            foretold(&[end, end + 1, end + 2][..points]);
        }
        if run.inside() {
            foretold(&[first - 1, end]);
            if run.before.min(run.after) > 1 {
                foretold(&[first - 2, first - 1, end, end + 1]);
            }
            let (a, b) = (self.value[first - 1], self.value[end]);
            if (a.min(b)..=a.max(b)).contains(&value) {
                return 0.0;
            }
        }
        least
    }

    /// The same without some of them.
    fn without(&self, left_out: &[usize]) -> Self {
        let kept = (0..self.len()).filter(|k| left_out.binary_search(k).is_err());
        let kept: Vec<usize> = kept.collect();
        Self {
            sample: kept.iter().map(|&k| self.sample[k]).collect(),
            time: kept.iter().map(|&k| self.time[k]).collect(),
            value: kept.iter().map(|&k| self.value[k]).collect(),
        }
    }
}

/// The value that a part of all do not exceed; 0 of none.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    let at = (part * values.len() as f64) as usize;
    if values.is_empty() {
        return 0.0;
    }
    let at = at.min(values.len() - 1);
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// Suspect readings with what was expected of them and how far they are off; `noise` is the standard
/// deviation where it is known. `explained` says of a run that something else is the reason.
///
/// Passes go on until nothing is found: of runs close to each other one hides what the other is,
/// and only the worst of them is taken in a pass.
fn search(
    readings: &Readings,
    limits: &Limits,
    noise: f64,
    explained: &dyn Fn(Run) -> bool,
) -> Vec<Suspected> {
    let mut suspected: Vec<Suspected> = vec![];
    let (mut left, mut places) = (readings.clone(), (0..readings.len()).collect::<Vec<_>>());
    for _ in 0..MOST_PASSES {
        let mut taken: Vec<Suspected> = vec![];
        for length in 1..=LONGEST_RUN {
            let scale = Scale::new(&left, limits, noise, length);
            let beyond = scale.beyond(&left);
            if length > 1 && beyond.len() > MOST_RUNS {
                continue;
            }
            for Contradicting {
                run,
                contradiction: deviations,
            } in beyond
            {
                let original = Run {
                    first: places[run.first],
                    end: places[run.end - 1] + 1,
                    ..run
                };
                if !explained(original) {
                    taken.extend((run.first..run.end).map(|place| Suspected {
                        place,
                        expected: left.expected(run, place),
                        deviations,
                    }));
                }
            }
            if !taken.is_empty() {
                break;
            }
        }
        if taken.is_empty() {
            break;
        }
        taken.sort_by_key(|s| s.place);
        let taken_places: Vec<usize> = taken.iter().map(|s| s.place).collect();
        suspected.extend(taken.into_iter().map(|s| Suspected {
            place: places[s.place],
            ..s
        }));
        left = left.without(&taken_places);
        places = (0..places.len())
            .filter(|k| taken_places.binary_search(k).is_err())
            .map(|k| places[k])
            .collect();
    }
    suspected.sort_by_key(|s| s.place);
    suspected
}

/// A reading that others contradict.
struct Suspected {
    place: usize,
    expected: f64,
    /// From what is expected.
    deviations: f64,
}

/// A run that contradicts the others, and by how much.
struct Contradicting {
    run: Run,
    contradiction: f64,
}

/// What is usual of the runs of a length.
struct Scale<'l> {
    limits: &'l Limits,
    runs: Vec<Run>,
    contradictions: Vec<f64>,
    /// What a contradiction inside of the record must exceed.
    least: f64,
    /// One standard deviation.
    deviation: f64,
    /// Without the highest and the lowest twentieth.
    low: f64,
    high: f64,
}

impl<'l> Scale<'l> {
    fn new(readings: &Readings, limits: &'l Limits, noise: f64, length: usize) -> Self {
        let runs = readings.runs(length);
        let contradictions = runs.iter().map(|run| {
            if run.inside() || run.at_an_end() {
                readings.contradiction(*run)
            } else {
                0.0
            }
        });
        let contradictions: Vec<f64> = contradictions.collect();
        let usual = quantile(&mut contradictions.clone(), 1.0 - RARE_RUNS_PART);
        let mut values = readings.value.clone();
        let (low, high) = (quantile(&mut values, 0.05), quantile(&mut values, 0.95));
        let noise = if noise > 0.0 {
            noise
        } else {
            let samples = readings.time.iter().zip(&readings.value);
            let samples = samples.map(|(&time, &value)| scales::Sample { time, value });
            scales::difference_noise(&[samples.collect()])
        };
        let coarse = coarseness(&readings.value);
        let least = (limits.usual * usual.max(coarse))
            .max(limits.noise * noise)
            .max(limits.range * (high - low));
        Self {
            limits,
            runs,
            contradictions,
            least,
            deviation: noise.max(0.5 * usual).max(coarse),
            low,
            high,
        }
    }

    /// The runs that contradict the others, the worst of those near each other, in standard deviations.
    fn beyond(&self, readings: &Readings) -> Vec<Contradicting> {
        let all = self.runs.iter().enumerate();
        let mut candidates: Vec<Contradicting> = all
            .filter(|(k, run)| {
                self.contradictions[*k] > self.least && self.stands_out(readings, *k, run)
            })
            .map(|(k, run)| Contradicting {
                run: *run,
                contradiction: self.contradictions[k],
            })
            .collect();
        let far = |run: &Run| {
            let around = run.first.saturating_sub(AROUND_READINGS)
                ..(run.end + AROUND_READINGS).min(readings.len());
            let mut values = readings.value[around].to_vec();
            let middle = quantile(&mut values, 0.5);
            (readings.value[run.first] - middle).abs()
        };
        candidates.sort_by(|a, b| far(&b.run).total_cmp(&far(&a.run)));
        let mut taken: Vec<Contradicting> = vec![];
        for Contradicting { run, contradiction } in candidates {
            let near = |Contradicting { run: other, .. }: &Contradicting| {
                run.first < other.end + FORETELLING_READINGS
                    && other.first < run.end + FORETELLING_READINGS
            };
            if !taken.iter().any(near) {
                taken.push(Contradicting {
                    run,
                    contradiction: contradiction / self.deviation.max(f64::MIN_POSITIVE),
                });
            }
        }
        taken
    }

    /// Whether the contradiction of a run is larger than those around it. At an end of a stretch one
    /// side alone speaks: there it must be far larger than all of them, and out of the range.
    fn stands_out(&self, readings: &Readings, k: usize, run: &Run) -> bool {
        let length = run.end - run.first;
        let near = (k.saturating_sub(AROUND_READINGS + length)..=k + AROUND_READINGS + length)
            .filter(|&j| j < self.runs.len())
            .filter(|&j| {
                let other = &self.runs[j];
                other.end + 1 < run.first || run.end + 1 < other.first
            });
        let mut around: Vec<f64> = near.map(|j| self.contradictions[j]).collect();
        around.sort_unstable_by(|a, b| b.total_cmp(a));
        let contradiction = self.contradictions[k];
        if run.inside() {
            let usual = around.get(FORGIVEN_CONTRADICTIONS * length).copied();
            return contradiction > self.limits.around * usual.unwrap_or(f64::INFINITY);
        }
        let (value, range) = (readings.value[run.first], self.high - self.low);
        let out = (self.low - value).max(value - self.high);
        let largest = around.first().copied().unwrap_or(f64::INFINITY);
        out > range
            && contradiction > 2.0 * self.least
            && contradiction > 5.0 * self.limits.around * largest
    }
}

/// The smallest change that a coarse scale usually shows; 0 of values that hardly ever repeat.
fn coarseness(values: &[f64]) -> f64 {
    let changes = values.windows(2).map(|v| (v[1] - v[0]).abs());
    let mut moved: Vec<f64> = changes.filter(|c| *c > 0.0).collect();
    let still = values.len().saturating_sub(1 + moved.len());
    if still as f64 > REPEATED_READINGS_PART * values.len() as f64 {
        quantile(&mut moved, 0.5)
    } else {
        0.0
    }
}

/// Whether an input that jumps where a run is may be the reason for it: unless it jumps as far
/// elsewhere, and there the channel keeps still.
fn explained(record: &Record, readings: &Readings, run: Run) -> bool {
    let sample = |k: usize| readings.sample[k];
    let from = if run.first > 0 {
        sample(run.first - 1)
    } else {
        0
    };
    let to = sample(run.end - 1);
    let misfit = |k: usize| (readings.value[k] - readings.expected(run, k)).abs();
    let size = (run.first..run.end).map(misfit).fold(0.0, f64::max);
    (0..record.d_u).any(|j| {
        let input = |k: usize| record.input(k)[j];
        let changes = (1..record.len()).map(|k| (input(k) - input(k - 1)).abs());
        let changes: Vec<f64> = changes.collect();
        let jump = changes[from.min(changes.len())..to.min(changes.len())]
            .iter()
            .fold(0.0, |a, b| f64::max(a, *b));
        let typical = quantile(&mut changes.clone(), 0.9);
        if jump <= 3.0 * typical || jump == 0.0 {
            return false;
        }
        // how far the channel moves where the input jumps at least half as far
        let elsewhere = (1..readings.len()).filter(|&k| !(run.first..=run.end).contains(&k));
        let mut moves: Vec<f64> = elsewhere
            .filter(|&k| {
                let between = sample(k - 1)..sample(k);
                changes[between].iter().any(|c| *c >= 0.5 * jump)
            })
            .map(|k| (readings.value[k] - readings.value[k - 1]).abs())
            .collect();
        moves.len() < 3 || quantile(&mut moves, 0.5) > 0.25 * size
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// A record of one channel, a sample each second.
    fn record(values: impl IntoIterator<Item = f64>) -> Record {
        let outputs: Vec<f64> = values.into_iter().collect();
        Record {
            name: "r".into(),
            time: (0..outputs.len()).map(|k| k as f64).collect(),
            inputs: vec![],
            outputs,
            truth: None,
            d_u: 0,
            d_y: 1,
            d_x: 0,
            later: false,
        }
    }

    fn rows(record: &Record) -> Vec<usize> {
        gross(record).iter().map(|f| f.sample).collect()
    }

    fn normal(rng: &mut Pcg64) -> f64 {
        let (a, b) = (rng.random::<f64>(), rng.random::<f64>());
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Of a model that says nothing.
    fn residuals(values: &[f64]) -> Residuals {
        Residuals {
            time: (0..values.len()).map(|k| k as f64).collect(),
            read: values.to_vec(),
            expected: vec![0.0; values.len()],
            deviations: values.to_vec(),
        }
    }

    /// A slow wave around 20 with noise of 0.1.
    fn room(samples: usize) -> Record {
        let mut rng = Pcg64::seed_from_u64(7);
        let wave = |k: usize| 20.0 + 3.0 * (0.02 * k as f64).sin();
        record((0..samples).map(|k| wave(k) + 0.1 * normal(&mut rng)))
    }

    /// What a broken sensor says is found where it is: alone, several times, held for a while, close to
    /// another, at the very start as some sensors do, and beside a gap.
    #[test]
    fn what_a_broken_sensor_says_is_found() {
        for broken in [
            vec![300],
            vec![20, 300, 500, 777],
            vec![300, 301, 302],
            vec![300, 302],
            vec![0],
            vec![999],
            vec![400],
        ] {
            let mut record = room(1000);
            record.outputs[401..430].fill(f64::NAN);
            broken.iter().for_each(|&k| record.outputs[k] = 85.0);
            assert_eq!(rows(&record), broken);
        }
        let mut record = room(1000);
        record.outputs[300] = 24.0;
        let findings = gross(&record);
        let expected = 20.0 + 3.0 * 6f64.sin();
        assert_eq!(findings.len(), 1);
        assert!(
            (findings[0].expected - expected).abs() < 0.3,
            "{findings:?}"
        );
        let apart = (24.0 - expected) / 0.1;
        assert!(
            (findings[0].deviations / apart - 1.0).abs() < 0.4,
            "{findings:?}"
        );
        assert!(without(&record, &findings).outputs[300].is_nan());
    }

    /// Signals that jump, spike, ring and stand still are what was measured.
    #[test]
    fn real_signals_are_left_alone() {
        let at = |k: usize| k as f64;
        let every = |period: usize, width: usize| {
            record((0..2000).map(move |k| f64::from(u8::from(k % period < width))))
        };
        let chirp = |k: usize| (std::f64::consts::PI * at(k) * at(k) / 4000.0).sin();
        let spike = |k: usize| 100.0 * (-0.5 * ((at(k % 40) - 20.0) / 1.5).powi(2)).exp() - 65.0;
        let mut rng = Pcg64::seed_from_u64(1);
        let coarse = room(2000)
            .outputs
            .into_iter()
            .map(|y| (2.0 * y).round() / 2.0);
        let mut dropouts = room(2000);
        for k in 0..2000 {
            if rng.random::<f64>() < 0.3 || (700..900).contains(&k) {
                dropouts.outputs[k] = f64::NAN;
            }
        }
        let signals = [
            (
                "a step",
                record((0..500).map(|k| f64::from(u8::from(k > 200)))),
            ),
            ("a square wave", every(50, 25)),
            ("short pulses", every(20, 2)),
            ("single pulses", every(25, 1)),
            ("a fast square wave", every(4, 2)),
            (
                "a chirp to half the sampling rate",
                record((0..2000).map(chirp)),
            ),
            ("a train of narrow spikes", record((0..2000).map(spike))),
            ("a coarse scale", record(coarse)),
            ("a decay", record((0..300).map(|k| 5.0 * 0.6f64.powi(k)))),
            ("a kink", record((0..300).map(|k| (at(k) - 150.0).abs()))),
            ("lost samples", dropouts),
            ("nothing", record(std::iter::repeat_n(3.0, 100))),
            ("few", record([1.0, 5.0, -3.0])),
        ];
        for (name, record) in signals {
            assert_eq!(rows(&record), [0; 0], "{name}");
        }
    }

    /// White noise and random walks have no suspects, whatever the seed; nor have residuals that are
    /// white.
    #[test]
    fn noise_alone_is_never_suspect() {
        for seed in 0..20 {
            let mut rng = Pcg64::seed_from_u64(seed);
            let white: Vec<f64> = (0..5000).map(|_| normal(&mut rng)).collect();
            let walk = white.iter().scan(0.0, |sum, v| {
                *sum += v;
                Some(*sum)
            });
            assert_eq!(rows(&record(walk)), [0; 0], "{seed}");
            let record = record(white);
            assert_eq!(rows(&record), [0; 0], "{seed}");
            assert_eq!(isolated(&residuals(&record.outputs), 6.0), [0; 0]);
        }
    }

    /// A residual of seven deviations is found among white ones, and not where its neighbours share it.
    #[test]
    fn residuals_are_judged_by_their_neighbours() {
        let mut rng = Pcg64::seed_from_u64(3);
        let mut white: Vec<f64> = (0..2000).map(|_| normal(&mut rng)).collect();
        white[800] = 9.0;
        assert_eq!(isolated(&residuals(&white), 4.5), [800]);
        // the signal is even, and the model has a corner there
        let corner = Residuals {
            read: vec![0.0; white.len()],
            expected: white.iter().map(|r| -r).collect(),
            ..residuals(&white)
        };
        assert_eq!(isolated(&corner, 4.5), [0; 0]);
        for (k, value) in white.iter_mut().enumerate().take(820).skip(780) {
            let bump = 9.0 * (-0.5 * ((k as f64 - 800.0) / 6.0).powi(2)).exp();
            *value = bump + 0.3 * normal(&mut rng);
        }
        assert_eq!(isolated(&residuals(&white), 4.5), [0; 0]);
    }

    /// The peak of an epidemic that a prediction has missed: its neighbours are nearly as far off, so that the model is
    /// wrong there. A reading that is farther off than all that the model has missed is wrong all the same.
    #[test]
    fn a_peak_that_a_model_has_missed_is_no_wrong_reading() {
        let mut cases = Residuals {
            time: (4..40).map(f64::from).collect(),
            read: vec![4215.0, 6889.0, 4943.0, 1880.0, 760.0, 300.0],
            expected: vec![405.0, 251.0, 152.0, 90.0, 52.0, 30.0],
            deviations: vec![],
        };
        cases.read.resize(36, 8.0);
        cases.expected.resize(36, 5.0);
        let deviations = |cases: &Residuals| -> Vec<f64> {
            let pairs = cases.read.iter().zip(&cases.expected);
            pairs.map(|(y, e)| (y - e) / 94.0).collect()
        };
        cases.deviations = deviations(&cases);
        assert_eq!(isolated(&cases, 6.0), [0; 0]);
        cases.read[1] = 85000.0;
        cases.deviations = deviations(&cases);
        assert_eq!(isolated(&cases, 6.0), [1]);
    }

    /// A pulse that an input makes is what was measured; the same pulse where the input often jumps and
    /// the channel keeps still is not.
    #[test]
    fn a_jump_of_an_input_is_a_reason() {
        let mut record = room(1000);
        record.outputs[300] = 30.0;
        record.d_u = 1;
        record.inputs = (0..1000).map(|k| f64::from(u8::from(k == 299))).collect();
        assert_eq!(rows(&record), [0; 0]);
        record.inputs = (0..1000)
            .map(|k| f64::from(u8::from(k % 100 == 99)))
            .collect();
        assert_eq!(rows(&record), [300]);
    }

    #[test]
    fn a_record_full_of_them_is_too_much() {
        let record = room(100);
        let finding = |sample| Finding {
            sample,
            channel: 0,
            expected: 0.0,
            deviations: 9.0,
        };
        let some: Vec<Finding> = (0..20).map(finding).collect();
        let more: Vec<Finding> = (0..21).map(finding).collect();
        assert_eq!(too_many(&record, &some), None);
        let refused = too_many(&record, &more).unwrap();
        assert_eq!((refused.channel, refused.count), (0, 21));
    }
}
