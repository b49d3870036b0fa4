//! Constants that records of one group share: the values of a one-way analysis with random effects, and what
//! a fit does with records of groups that it knows, and of others.

use crate::fixture::{defaults, sources};
use latens::fit::learn::{Data, learn};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::Equipment;
use latens::{Error, Fit, Model, PredictOptions, Record, Settings, Silent, Source};

/// Records with the labels of their groups.
fn labelled(model: &Model, records: &[(&str, Record)]) -> Vec<Source> {
    let bare: Vec<Record> = records.iter().map(|(_, record)| record.clone()).collect();
    let pairs = sources(model, &bare).into_iter().zip(records);
    pairs
        .map(|(source, (label, _))| Source {
            group: Some(label.to_string()),
            ..source
        })
        .collect()
}

fn fitted(model: &Model, train: &[Source], settings: &Settings) -> Result<Fit, Error> {
    let data = Data {
        train,
        validate: &[],
    };
    learn(model, data, settings, Equipment::default(), &mut Silent)
}

fn record(model: &Model, start: &[f64], noise: f64, seed: u64) -> Record {
    let simulation = Simulation {
        start: start.iter().copied().enumerate().collect(),
        noise: vec![Some(NoiseLevel::Absolute(noise))],
        seed,
        ..Simulation::default()
    };
    Record {
        name: format!("record {seed}"),
        ..simulate(model, &simulation).unwrap()
    }
}

/// A straight line: its slope is the constant, its start is free.
fn line(slope: f64) -> Model {
    let text = format!(
        "[time]\nstep = 0.1\n[states.x]\nderivative = \"k\"\n\
         [unknowns]\nk = {{ guess = 0, scale = 3, varies = \"group\" }}\n[measurements]\ny = \"x\"\n\
         [truth]\nk = {slope}\n[simulation]\nsteps = 60\n"
    );
    Model::from_text("line", &text).unwrap()
}

/// A slope by least squares.
struct Slope {
    value: f64,
    /// For noise of variance one.
    variance: f64,
}

fn least_squares(record: &Record) -> Slope {
    let n = record.len() as f64;
    let middle = record.time.iter().sum::<f64>() / n;
    let square: f64 = record.time.iter().map(|t| (t - middle).powi(2)).sum();
    let pairs = record.time.iter().zip(record.output_column(0));
    let sum: f64 = pairs.map(|(t, y)| (t - middle) * y).sum();
    Slope {
        value: sum / square,
        variance: 1.0 / square,
    }
}

/// A line of white noise has the slopes of least squares, so that the groups are those of a balanced one-way
/// analysis: s² + v is the variance of the groups' means, with v that of one of them, and each value is
/// drawn towards the mean by v/(s² + v).
#[test]
fn groups_are_shrunk_as_random_effects() {
    let slopes = [("a", 0.6), ("b", -0.3), ("c", 1.7), ("d", 0.2)];
    let mut records = vec![];
    for seed in 1..=8 {
        let (label, slope) = slopes[seed % 4];
        records.push((label, record(&line(slope), &[0.5], 3.0, seed as u64)));
    }
    let model = line(0.0);
    let fit = fitted(&model, &labelled(&model, &records), &defaults("batch")).unwrap();
    let k = &fit.constants()[0];
    let population = k.population.as_ref().unwrap();
    let noise = fit.facts.noise.measurement[0];
    let variance = noise * least_squares(&records[0].1).variance / 2.0;
    let mean_of = |label: &str| {
        let members = records.iter().filter(|(l, _)| *l == label);
        members
            .map(|(_, record)| least_squares(record).value)
            .sum::<f64>()
            / 2.0
    };
    let means: Vec<f64> = fit.model.groups().iter().map(|l| mean_of(l)).collect();
    let middle = means.iter().sum::<f64>() / 4.0;
    let square: f64 = means.iter().map(|m| (m - middle).powi(2)).sum();
    let spread = (square / 3.0 - variance).sqrt();
    assert!(
        (population.spread / spread - 1.0).abs() < 0.05,
        "{population:?} {spread}"
    );
    assert!((k.value - middle).abs() < 0.05 * k.std, "{k:?} {middle}");
    assert!((k.std / ((spread.powi(2) + variance) / 4.0).sqrt() - 1.0).abs() < 0.1);
    let shrinkage = variance / (population.spread.powi(2) + variance);
    assert!(shrinkage > 0.02, "the test tells shrinkage from none");
    for (value, mean) in population.records.iter().zip(&means) {
        assert!(
            (value.shrinkage / shrinkage - 1.0).abs() < 0.05,
            "{value:?} {shrinkage}"
        );
        let expected = mean + value.shrinkage * (k.value - mean);
        // a fit ends within such a part of a deviation
        assert!(
            (value.value - expected).abs() < 0.05 * value.std,
            "{value:?} {expected}"
        );
        assert_eq!(value.files.len(), 2);
    }
}

fn spring(k: f64) -> Model {
    let text = format!(
        "[time]\nstep = 0.05\nmethod = \"rk4\"\n[states.x]\nderivative = \"v\"\n[states.v]\nderivative = \"-k*x - c*v\"\n\
         [unknowns]\nk = {{ guess = 3, scale = 1, positive = true, varies = \"group\" }}\nc = {{ guess = 0.5 }}\n\
         [measurements]\nx = \"x\"\n[truth]\nk = {k}\nc = 0.3\n[simulation]\nsteps = 120\n"
    );
    Model::from_text("springs", &text).unwrap()
}

/// A fit for a group is an ordinary one with that group's value; a record of a known group is foreseen from
/// it, one of another from the population, which says less. A folder gives the same back.
#[test]
fn a_known_group_is_foreseen_better_than_a_new_one() {
    let stiffness = [("north", 3.2), ("south", 4.0), ("east", 4.6), ("west", 3.7)];
    let made = |(seed, k): (u64, f64)| {
        let start = [1.0 - 0.1 * seed as f64, 0.3 * seed as f64 - 1.0];
        record(&spring(k), &start, 0.02, seed + 1)
    };
    let train = (0..12).map(|seed| {
        let (label, k) = stiffness[seed / 3];
        (label, made((seed as u64, k)))
    });
    let train: Vec<(&str, Record)> = train.collect();
    let model = spring(4.0);
    let fit = fitted(&model, &labelled(&model, &train), &defaults("batch")).unwrap();
    assert_eq!(fit.model.states.len(), 2);
    let population = fit.constants()[0].population.as_ref().unwrap();
    for ((label, k), value) in stiffness.iter().zip(&population.records) {
        assert!(
            (value.value - k).abs() < 4.0 * value.std && value.std < 0.05,
            "{value:?}"
        );
        let alone = fit.for_group(Some(label)).unwrap();
        let constant = &alone.constants()[0];
        assert!((constant.value / value.value - 1.0).abs() < 1e-12);
        assert!((constant.std / value.std - 1.0).abs() < 1e-9);
        assert_eq!(alone.tracks.len(), 3);
        assert!(alone.model.groups().is_empty() && alone.model.system.inputs() == 0);
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run");
    fit.save(&place).unwrap();
    let loaded = Fit::load(&place).unwrap();
    let again = loaded.for_group(Some("west")).unwrap();
    again.save(folder.path().join("west")).unwrap();
    let west = Fit::load(folder.path().join("west")).unwrap();
    let next = made((20, 3.2));
    let foreseen = |fit: &Fit, label: Option<&str>| {
        let mut source = labelled(&model, &[("", next.clone())]).remove(0);
        source.group = label.map(String::from);
        let options = PredictOptions {
            warm_up: Some(6),
            ..PredictOptions::default()
        };
        fit.predict(&source, &options).unwrap()
    };
    let (known, new) = (foreseen(&fit, Some("north")), foreseen(&fit, None));
    assert_eq!(known.prediction.states.width(), 2);
    assert_eq!(new.prediction.states.width(), 2);
    let error = |p: &latens::fit::Predicted| p.facts.record.nrmse["x"].unwrap();
    assert!(
        error(&known) < 0.5 * error(&new),
        "{} {}",
        error(&known),
        error(&new)
    );
    let last = |p: &latens::fit::Predicted| p.prediction.deviations.last().unwrap()[0];
    assert!(last(&known) < 0.5 * last(&new), "the population says less");
    let bits = |p: &latens::fit::Predicted| p.prediction.states.clone().into_vec();
    assert_eq!(bits(&known), bits(&foreseen(&loaded, Some("north"))));
    assert_eq!(bits(&new), bits(&foreseen(&loaded, Some("south-east"))));
    assert_eq!(
        bits(&foreseen(&loaded, Some("west"))),
        bits(&foreseen(&west, None))
    );
    assert!(fit.stream(Default::default()).is_err());
    assert!(again.stream(Default::default()).is_ok());
    assert!(
        fit.for_group(None)
            .unwrap()
            .stream(Default::default())
            .is_ok()
    );
}

/// One group is an ordinary constant; a record without a group, or one to validate with of another, is
/// refused with what to do.
#[test]
fn what_has_no_group_is_refused() {
    let model = line(0.0);
    let made = |seed| record(&line(0.4), &[0.5], 0.1, seed);
    let mut train = labelled(&model, &[("a", made(1)), ("a", made(2))]);
    let single = fitted(&model, &train, &defaults("batch")).unwrap();
    assert!(single.model.groups().is_empty() && single.constants()[0].population.is_none());
    let data = Data {
        train: &train,
        validate: &labelled(&model, &[("b", made(3))]),
    };
    let settings = defaults("batch");
    let failed = learn(&model, data, &settings, Equipment::default(), &mut Silent);
    let said = failed.unwrap_err().to_string();
    assert!(said.contains("group b") && said.contains("test"), "{said}");
    train[1].group = None;
    let said = fitted(&model, &train, &settings).unwrap_err().to_string();
    assert!(
        said.contains("record 2 has no group") && said.contains("`k`"),
        "{said}"
    );
}
