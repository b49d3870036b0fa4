use std::path::PathBuf;

use super::*;
use crate::simulate::{Simulation, simulate};
use crate::solve::{Settings, Silent, Solver, fit};

/// A spring whose stiffness is an unknown constant and whose friction is a network.
const MODEL_TEXT: &str = r#"
name = "spring"
[time]
step = 0.01
[states.z]
derivative = "v"
start = 1
[states.v]
derivative = "-k*z + friction(v)"
start = 0
[networks.friction]
layers = ["4 tanh"]
skip = true
[unknowns]
k = { guess = 2, scale = 1, positive = true, unit = "1/s²" }
[measurements]
z = "z"
[truth]
k = 3
v = "-3*z - 0.3*v"
"#;

struct Case {
    place: tempfile::TempDir,
    model: Model,
    records: Vec<Record>,
    fit: Fit,
}

impl Case {
    fn new(records: usize, single_precision: bool) -> Self {
        let settings = Settings {
            epochs: 2,
            single_precision,
            ..Settings::new(Solver::Alternating)
        };
        Self::fitted(records, &settings)
    }

    fn fitted(records: usize, settings: &Settings) -> Self {
        let model = Model::from_text("spring.toml", MODEL_TEXT).unwrap();
        let each = (0..records).map(|k| Simulation {
            steps: Some(150),
            start: vec![(0, 1.0 + k as f64)],
            ..Simulation::default()
        });
        let records: Vec<Record> = each.map(|s| simulate(&model, &s).unwrap()).collect();
        let fit = fit(&model, &records, settings, &mut Silent).unwrap();
        let place = tempfile::tempdir().unwrap();
        Self {
            place,
            model,
            records,
            fit,
        }
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("run")
    }

    fn sources(&self) -> Vec<Source<'_>> {
        let each = self.records.iter().map(|record| Source {
            file: "spring.csv".into(),
            sha256: sha256(b"spring"),
            record,
        });
        each.collect()
    }

    fn save(&self, replace: bool) -> Result<(), Error> {
        let about = About {
            seconds: 1.5,
            threads: 1,
            ..About::default()
        };
        let facts = Facts::new(&self.fit, &self.sources(), about);
        save(&self.fit, &self.sources(), &facts, self.folder(), replace)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.place.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        names.collect()
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// The files of a run in memory are those of the folder, and make the same run.
#[test]
fn a_run_needs_no_folder() {
    let settings = Settings {
        epochs: 2,
        ensemble: 2,
        ..Settings::new(Solver::Batch)
    };
    let case = Case::fitted(2, &settings);
    let facts = Facts::new(&case.fit, &case.sources(), About::default());
    let own = files(&case.fit, &case.sources(), &facts).unwrap();
    save(&case.fit, &case.sources(), &facts, case.folder(), false).unwrap();
    fs::write(case.folder().join("report.html"), "made again").unwrap();
    fs::write(case.folder().join("notes.txt"), "not its own").unwrap();
    assert_eq!(load_files(case.folder()).unwrap(), own);
    assert!(own.contains_key("ensemble/2/states_1.csv"));
    let (one, other) = (
        from_files(&own, "memory").unwrap(),
        load(case.folder()).unwrap(),
    );
    assert_eq!(bits(&one.theta), bits(&other.theta));
    assert_eq!(one.draws, other.draws);
    assert_eq!(bits(&one.members[1].theta), bits(&other.members[1].theta));
    let again = case.place.path().join("again");
    save_files(&own, &again, false).unwrap();
    assert_eq!(load_files(&again).unwrap(), own);
    let mut damaged = own;
    damaged.remove("ensemble/1/weights.safetensors");
    let message = from_files(&damaged, "memory").unwrap_err().to_string();
    assert!(
        message.starts_with("cannot read memory/ensemble/1/weights.safetensors"),
        "{message}"
    );
}

#[test]
fn what_is_loaded_is_what_was_saved_bit_for_bit() {
    for single in [false, true] {
        let case = Case::new(1, single);
        case.save(false).unwrap();
        let run = load(case.folder()).unwrap();
        assert_eq!(bits(&run.theta), bits(&case.fit.theta));
        assert_eq!(
            bits(&run.covariance.clone().to_packed()),
            bits(&case.fit.covariance.clone().to_packed())
        );
        let (found, kept) = (
            run.model.system.networks(),
            case.fit.model.system.networks(),
        );
        assert_eq!(found.len(), kept.len());
        for (a, b) in found.iter().zip(kept) {
            assert_eq!(a.scaling, b.scaling);
        }
        assert_eq!(run.model.text, case.model.text);
        assert_eq!(run.facts.settings, case.fit.settings);
        assert_eq!(run.facts.noise, case.fit.noise);
        assert_eq!(run.facts.scales, case.fit.scales);
        assert_eq!(run.facts.sample_time.to_bits(), case.fit.dt.to_bits());
        assert_eq!(run.facts.epochs.len(), 2);
    }
}

/// A run predicts what its fit did, to the last bit, bands and warnings included; one without draws,
/// as the recursions and the first versions wrote, counts the start alone in its bands.
#[test]
fn a_run_predicts_what_its_fit_did() {
    use crate::estimate::Start;
    for solver in [Solver::Batch, Solver::Alternating] {
        let case = Case::fitted(
            2,
            &Settings {
                epochs: 3,
                ..Settings::new(solver)
            },
        );
        case.save(false).unwrap();
        let run = load(case.folder()).unwrap();
        assert_eq!(run.draws.is_empty(), solver == Solver::Alternating);
        assert_eq!(run.draws, case.fit.draws);
        let [a, b] = [case.fit.predictor(), run.predictor()]
            .map(|p| p.predict(&case.records[1], Start::WarmUp(40)));
        for (found, kept) in [
            (&a.states, &b.states),
            (&a.deviations, &b.deviations),
            (&a.outputs, &b.outputs),
            (&a.output_deviations, &b.output_deviations),
        ] {
            assert_eq!(bits(found), bits(kept));
        }
        assert_eq!(a.outside.to_bits(), b.outside.to_bits());
        assert!(a.deviations.iter().all(|d| d.is_finite() && *d > 0.0));
    }
}

#[test]
fn a_run_repeats_from_its_own_settings() {
    let case = Case::new(2, false);
    case.save(false).unwrap();
    let run = load(case.folder()).unwrap();
    let again = fit(&run.model, &case.records, &run.facts.settings, &mut Silent).unwrap();
    assert_eq!(bits(&again.theta), bits(&case.fit.theta));
}

#[test]
fn the_folder_holds_the_states_of_each_record() {
    let case = Case::new(2, false);
    case.save(false).unwrap();
    for k in 1..=2 {
        let path = case.folder().join(format!("states_{k}.csv"));
        let table = crate::record::Table::read(path).unwrap();
        assert_eq!(
            table.names().collect::<Vec<_>>().join(" "),
            "t z truth_z truth_v z.smoothed z.std z.one_step z.free_run v.smoothed v.std v.one_step v.free_run"
        );
    }
    let facts = load(case.folder()).unwrap().facts;
    let constant = &facts.unknowns[0];
    assert_eq!(
        (constant.name.as_str(), constant.unit.as_str()),
        ("k", "1/s²")
    );
    assert!(constant.value > 0.0 && constant.std > 0.0);
    let names: Vec<&str> = facts.records[1].nrmse.keys().map(String::as_str).collect();
    assert_eq!(names, ["truth_v", "truth_z", "z"]);
    let of = |name: &str| facts.records[1].nrmse[name].unwrap();
    let mean = facts.records[1].mean_nrmse.unwrap();
    assert!((mean - (of("truth_v") + of("truth_z")) / 2.0).abs() < 1e-15);
    assert_eq!(facts.records[1].mean_nrmse_hidden, Some(of("truth_v")));
}

#[test]
fn a_run_is_replaced_only_when_asked() {
    let case = Case::new(1, false);
    case.save(false).unwrap();
    let message = case.save(false).unwrap_err().to_string();
    assert!(message.contains("--force"), "{message}");
    assert!(check(case.folder(), false).is_err());
    case.save(true).unwrap();
    assert_eq!(case.names(), ["run"]);
    assert!(load(case.folder()).is_ok());
}

#[test]
fn what_is_not_a_run_is_never_touched() {
    let case = Case::new(1, false);
    let notes = case.folder().join("notes.txt");
    fs::create_dir(case.folder()).unwrap();
    fs::write(&notes, "mine").unwrap();
    for replace in [false, true] {
        let message = case.save(replace).unwrap_err().to_string();
        assert!(message.contains("not a run"), "{message}");
    }
    // nor is a run with something else in it
    fs::remove_file(&notes).unwrap();
    case.save(false).unwrap();
    fs::write(&notes, "mine").unwrap();
    let message = case.save(true).unwrap_err().to_string();
    assert!(message.contains("`notes.txt`"), "{message}");
    assert_eq!(fs::read(&notes).unwrap(), b"mine");
    assert_eq!(case.names(), ["run"]);
}

#[test]
fn an_error_on_the_way_leaves_the_old_run_and_nothing_else() {
    let case = Case::new(1, false);
    case.save(false).unwrap();
    let before = fs::read(case.folder().join(FACTS)).unwrap();
    let result = folder::write(&case.folder(), true, |put| {
        put(MODEL.into(), b"half".to_vec())?;
        Err(Error::Stopped)
    });
    assert!(matches!(result, Err(Error::Stopped)));
    assert_eq!(fs::read(case.folder().join(FACTS)).unwrap(), before);
    assert_eq!(case.names(), ["run"]);
}

#[test]
fn damage_is_named() {
    let case = Case::new(1, false);
    let message = |case: &Case| load(case.folder()).unwrap_err().to_string();
    assert!(message(&case).contains("no such run folder"));
    fs::create_dir(case.folder()).unwrap();
    assert!(message(&case).contains("it has no fit.json"));
    case.save(false).unwrap();
    let damage = |file: &str, change: &dyn Fn(&[u8]) -> Vec<u8>, expected: &str| {
        let path = case.folder().join(file);
        let good = fs::read(&path).unwrap();
        fs::write(&path, change(&good)).unwrap();
        let shown = message(&case);
        assert!(shown.contains(file) && shown.contains(expected), "{shown}");
        fs::write(&path, good).unwrap();
    };
    damage(FACTS, &|b| b[..b.len() / 2].to_vec(), "is damaged");
    damage(FACTS, &|_| b"{}".to_vec(), "no `format`");
    damage(FACTS, &|_| b"{\"format\": 99}".to_vec(), "format 99");
    damage(MODEL, &|b| [b, b"# edited\n"].concat(), "was changed");
    damage(WEIGHTS, &|b| b[..b.len() - 8].to_vec(), "is damaged");
    let text_of = |b: &[u8], from: &str, to: &str| {
        let at = b.windows(from.len()).position(|w| w == from.as_bytes());
        let mut changed = b.to_vec();
        changed[at.unwrap()..][..from.len()].copy_from_slice(to.as_bytes());
        changed
    };
    damage(
        WEIGHTS,
        &|b| text_of(b, "friction.scale", "friction.scala"),
        "`friction.scale`",
    );
    fs::remove_file(case.folder().join(WEIGHTS)).unwrap();
    assert!(message(&case).starts_with("cannot read "));
}
