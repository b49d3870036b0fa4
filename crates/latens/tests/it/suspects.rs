//! Readings that are wrong: set aside before and after a fit, and named.

use latens::fit::{EstimateOptions, PredictOptions};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Fit, Job, Model, Record, Role, Silent, Source};

/// A slide with an unknown gain and friction, its position measured.
const SLIDE: &str = r#"
name = "Slide"
[time]
step = 0.05
method = "rk4"
[inputs]
u = "V"
[states.q]
derivative = "v"
start = 0
[states.v]
derivative = "gain*u - friction*v - q"
start = 0
[unknowns]
gain = { guess = 1, scale = 0.5 }
friction = { guess = 0.5, scale = 0.5 }
[measurements]
q = "q"
[truth]
gain = 1.3
friction = 0.3
[simulation]
steps = 600
inputs = { u = "sin(t) + sin(2.3*t)" }
"#;

fn record(model: &Model, seed: u64) -> Record {
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.01))],
        seed,
        ..Simulation::default()
    };
    simulate(model, &simulation).unwrap()
}

fn fit(model: &Model, record: Record, test: Option<Record>, keep: bool) -> Fit {
    let mut job = Job::new(model.clone()).unwrap();
    job.settings.keep_suspects = keep;
    job.add(Role::Train, Source::of_record(record, model).unwrap());
    if let Some(test) = test {
        job.add(Role::Test, Source::of_record(test, model).unwrap());
    }
    job.run(&mut Silent).unwrap().fit
}

fn rows(fit: &Fit) -> Vec<usize> {
    fit.facts.suspects.iter().map(|s| s.row).collect()
}

/// Gross readings, and one that only the fitted model can tell from the noise, are named and change
/// the constants by no more than as many empty cells would; without them nothing is set aside.
#[test]
fn wrong_readings_are_named_and_do_no_harm() {
    let model = Model::from_text("slide", SLIDE).unwrap();
    let (clean, mut broken, mut test) = (record(&model, 1), record(&model, 1), record(&model, 2));
    // noise of 1 % of a range of some nine
    let sigma = 0.09;
    broken.outputs[99] = 85.0;
    broken.outputs[399] = -85.0;
    broken.outputs[249] += 12.0 * sigma;
    test.outputs[19] = 85.0;
    test.outputs[299] = 85.0;
    let before = fit(&model, clean, None, false);
    assert_eq!(rows(&before), [0; 0]);
    let after = fit(&model, broken.clone(), Some(test.clone()), false);
    assert_eq!(rows(&after), [100, 250, 400, 20, 300]);
    let suspect = &after.facts.suspects[0];
    assert_eq!((suspect.value, suspect.channel.as_str()), (85.0, "q"));
    assert!(suspect.expected.abs() < 5.0 && suspect.deviations > 100.0);
    for (a, b) in before.constants().iter().zip(after.constants()) {
        assert!((a.value - b.value).abs() < 0.5 * a.std, "{a:?} {b:?}");
        assert!(b.std < 1.1 * a.std, "{a:?} {b:?}");
    }
    // what was set aside is not scored either
    let errors: Vec<f64> = after
        .facts
        .records
        .iter()
        .map(|r| r.nrmse["q"].unwrap())
        .collect();
    assert!(errors.iter().all(|e| *e < 0.02), "{errors:?}");
    let words: Vec<String> = after
        .facts
        .warnings
        .iter()
        .map(|w| w.at(latens::Door::CommandLine))
        .collect();
    assert!(words[0].starts_with("3 readings of q in "), "{words:?}");
    assert!(words[0].ends_with("look at the sensor, or fit with --keep-suspects"));

    let source = Source::of_record(test, &model).unwrap();
    let predicted = after.predict(&source, &PredictOptions::default()).unwrap();
    let named: Vec<usize> = predicted.facts.suspects.iter().map(|s| s.row).collect();
    assert_eq!(named, [20, 300]);
    let estimated = after
        .estimate(&source, &EstimateOptions::default())
        .unwrap();
    let named: Vec<usize> = estimated.facts.suspects.iter().map(|s| s.row).collect();
    assert_eq!(named, [20, 300]);
    assert!(estimated.facts.nrmse["truth_v"].unwrap() < 0.05);

    let kept = fit(&model, broken, None, true);
    assert_eq!(rows(&kept), [0; 0]);
}

/// A record of which nobody can tell what is right is refused, with what to do.
#[test]
fn a_record_full_of_them_is_refused() {
    let model = Model::from_text("slide", SLIDE).unwrap();
    let mut broken = record(&model, 1);
    // after the first fit these are more than a fifth
    for k in (0..broken.len()).filter(|k| k % 4 == 1) {
        broken.outputs[k] += if k % 8 == 1 { 2.0 } else { -2.0 };
    }
    let mut job = Job::new(model.clone()).unwrap();
    job.add(Role::Train, Source::of_record(broken, &model).unwrap());
    let error = job.run(&mut Silent).unwrap_err().to_string();
    assert!(error.contains("more than a fifth"), "{error}");
    assert!(error.contains("look at the sensor"), "{error}");
}
