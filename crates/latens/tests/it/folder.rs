//! A fit on a disk: what is loaded is what was saved, and what is damaged is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use latens::Job;
use latens::fit::learn::{Data, learn};
use latens::fit::{Foreseen, Start};
use latens::folder::{Claim, check};
use latens::model::Method;
use latens::model::settings::Settings;
use latens::record::{Record, Source, Table, sha256};
use latens::simulate::{Simulation, simulate};
use latens::solve::Equipment;
use latens::solve::{self, Silent};
use latens::{Error, Facts, Fit, Model, Role};

const MODEL: &str = "model.toml";
const WEIGHTS: &str = "weights.safetensors";
const FACTS: &str = "fit.json";
const CHECKSUMS: &str = "checksums.sha256";

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

/// A folder of the time when no method meant Euler's is read as that, and what is saved of it names the method.
#[test]
fn no_method_meant_eulers() {
    let settings = Settings::default();
    let text = MODEL_TEXT.replace("[time]", "[time]\nmethod = \"euler\"");
    let euler = Model::from_text("spring.toml", &text).unwrap();
    let record = simulate(
        &euler,
        &Simulation {
            steps: Some(150),
            ..Simulation::default()
        },
    )
    .unwrap();
    let sources = vec![Source::of_record(record, &euler).unwrap()];
    let mut fit = fitted(&sources, &euler, &settings);
    // as it was written then: the same weights, and no method
    fit.model.text = MODEL_TEXT.into();
    fit.facts.model_sha256 = sha256(MODEL_TEXT.as_bytes());
    let mut files = fit.to_files().unwrap();
    let mut facts: serde_json::Value = serde_json::from_slice(&files[FACTS]).unwrap();
    facts["format"] = 1.into();
    files.insert(FACTS.into(), serde_json::to_vec(&facts).unwrap());
    let loaded = Fit::from_files(&files, "then").unwrap();
    assert_eq!(loaded.model.method, Method::Euler);
    let again = Fit::from_files(&loaded.to_files().unwrap(), "again").unwrap();
    assert_eq!(again.model.method, Method::Euler);
    assert_eq!(bits(&again.theta), bits(&fit.theta));
}

/// A fit, and a place for its folder.
struct Case {
    place: tempfile::TempDir,
    sources: Vec<Source>,
    fit: Fit,
}

fn settings(solver: &str, passes: usize) -> Settings {
    let defaults = solve::find(solver).unwrap().settings();
    Settings { passes, ..defaults }
}

fn fitted(sources: &[Source], model: &Model, settings: &Settings) -> Fit {
    let data = Data {
        train: sources,
        validate: &[],
    };
    let checkpoints = Equipment::default();
    learn(model, data, settings, checkpoints, &mut Silent).unwrap()
}

impl Case {
    /// Any fit, of one record.
    fn new() -> Self {
        static FIT: OnceLock<(Vec<Source>, Fit)> = OnceLock::new();
        let (sources, fit) = FIT.get_or_init(|| {
            let case = Self::fitted(1, &settings("alternating", 2));
            (case.sources, case.fit)
        });
        Self {
            place: tempfile::tempdir().unwrap(),
            sources: sources.clone(),
            fit: fit.clone(),
        }
    }

    fn fitted(records: usize, settings: &Settings) -> Self {
        let model = Model::from_text("spring.toml", MODEL_TEXT).unwrap();
        let simulations = (0..records).map(|k| Simulation {
            steps: Some(150),
            start: vec![(0, 1.0 + k as f64)],
            ..Simulation::default()
        });
        let records = simulations.map(|s| simulate(&model, &s).unwrap());
        let sources: Vec<Source> = records
            .map(|record| Source::of_record(record, &model).unwrap())
            .collect();
        Self {
            place: tempfile::tempdir().unwrap(),
            fit: fitted(&sources, &model, settings),
            sources,
        }
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("run")
    }

    fn save(&self, replace: bool) -> Result<(), Error> {
        if replace {
            self.fit.replace(self.folder())
        } else {
            self.fit.save(self.folder())
        }
    }

    fn saved(&self) -> Fit {
        self.save(false).unwrap();
        Fit::load(self.folder()).unwrap()
    }

    fn record(&self, place: usize) -> &Record {
        &self.sources[place].record
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

/// The files of a fit in memory are those of the folder, and make the same fit.
#[test]
fn a_fit_needs_no_folder() {
    let settings = Settings {
        ensemble: 2,
        ..settings("batch", 2)
    };
    let case = Case::fitted(2, &settings);
    let files = case.fit.to_files().unwrap();
    case.save(false).unwrap();
    for (name, bytes) in &files {
        assert_eq!(
            &fs::read(case.folder().join(name)).unwrap(),
            bytes,
            "{name}"
        );
    }
    assert!(files.contains_key("ensemble/2/states_1.csv"));
    let (from_memory, from_disk) = (
        Fit::from_files(&files, "memory").unwrap(),
        Fit::load(case.folder()).unwrap(),
    );
    assert_eq!(bits(&from_memory.theta), bits(&from_disk.theta));
    assert_eq!(from_memory.draws, from_disk.draws);
    assert_eq!(
        bits(&from_memory.members[1].theta),
        bits(&from_disk.members[1].theta)
    );
    assert_eq!(from_memory.to_files().unwrap(), files);
    assert_eq!(from_disk.to_files().unwrap(), files);
    let mut damaged = files;
    damaged.remove("ensemble/1/weights.safetensors");
    let message = Fit::from_files(&damaged, "memory").unwrap_err().to_string();
    assert!(
        message.starts_with("cannot read memory/ensemble/1/weights.safetensors"),
        "{message}"
    );
}

#[test]
fn what_is_loaded_is_what_was_saved_bit_for_bit() {
    for single_precision in [false, true] {
        let settings = Settings {
            single_precision,
            ..settings("alternating", 2)
        };
        let case = Case::fitted(1, &settings);
        let loaded = case.saved();
        assert_eq!(bits(&loaded.theta), bits(&case.fit.theta));
        assert_eq!(
            bits(&loaded.covariance.clone().to_packed()),
            bits(&case.fit.covariance.clone().to_packed())
        );
        let (read, kept) = (
            loaded.model.system.networks(),
            case.fit.model.system.networks(),
        );
        assert_eq!(read.len(), kept.len());
        for (a, b) in read.iter().zip(kept) {
            assert_eq!(a.scaling, b.scaling);
        }
        assert_eq!(loaded.model.text, MODEL_TEXT);
        let (read, kept) = (&loaded.facts, &case.fit.facts);
        assert_eq!(read.settings, settings);
        assert_eq!(read.settings, kept.settings);
        assert_eq!(read.noise, kept.noise);
        assert_eq!(read.scales, kept.scales);
        assert_eq!(read.sample_time.to_bits(), kept.sample_time.to_bits());
        assert_eq!(read.passes.len(), 2);
        for (read, kept) in loaded.tracks.iter().zip(&case.fit.tracks) {
            assert_eq!(read.place, kept.place);
            assert_eq!(
                bits(read.smoothed.as_slice()),
                bits(kept.smoothed.as_slice())
            );
            assert_eq!(
                bits(read.deviations.as_slice()),
                bits(kept.deviations.as_slice())
            );
            assert_eq!(
                bits(read.one_step.as_slice()),
                bits(kept.one_step.as_slice())
            );
            assert_eq!(
                bits(read.free_run.as_slice()),
                bits(kept.free_run.as_slice())
            );
            assert_eq!(bits(&read.record.outputs), bits(&kept.record.outputs));
        }
        assert_eq!(loaded.tracks.len(), case.fit.tracks.len());
        assert!(loaded.missing.is_empty());
    }
}

/// What is loaded predicts what was fitted, to the last bit, bands and warnings included; one without
/// draws, as the recursions and the first versions wrote, counts the start alone in its bands.
#[test]
fn what_is_loaded_predicts_what_was_fitted() {
    for solver in ["batch", "alternating"] {
        let case = Case::fitted(2, &settings(solver, 3));
        let loaded = case.saved();
        assert_eq!(loaded.draws.is_empty(), solver == "alternating");
        assert_eq!(loaded.draws, case.fit.draws);
        let [a, b] =
            [&case.fit, &loaded].map(|fit| fit.free_run(case.record(1), Start::WarmUp(40)));
        for (read, kept) in [
            (&a.states, &b.states),
            (&a.deviations, &b.deviations),
            (&a.outputs, &b.outputs),
            (&a.output_deviations, &b.output_deviations),
        ] {
            assert_eq!(bits(read.as_slice()), bits(kept.as_slice()));
        }
        assert_eq!(a.outside.to_bits(), b.outside.to_bits());
        assert!(
            a.deviations
                .as_slice()
                .iter()
                .all(|d| d.is_finite() && *d > 0.0)
        );
    }
}

#[test]
fn a_fit_repeats_from_its_own_settings() {
    let case = Case::fitted(2, &settings("alternating", 2));
    let loaded = case.saved();
    let again = fitted(&case.sources, &loaded.model, &loaded.facts.settings);
    assert_eq!(bits(&again.theta), bits(&case.fit.theta));
}

#[test]
fn the_folder_holds_the_states_of_each_record() {
    let case = Case::fitted(2, &settings("alternating", 2));
    case.save(false).unwrap();
    for k in 1..=2 {
        let path = case.folder().join(format!("states_{k}.csv"));
        let table = Table::read(path).unwrap();
        assert_eq!(
            table.names().collect::<Vec<_>>().join(" "),
            "t z truth_z truth_v z.smoothed z.std z.one_step z.free_run v.smoothed v.std v.one_step v.free_run"
        );
    }
    let facts = Fit::load(case.folder()).unwrap().facts;
    let constant = &facts.unknowns[0];
    assert_eq!(
        (constant.name.as_str(), constant.unit.as_str()),
        ("k", "1/s²")
    );
    assert!(constant.value > 0.0 && constant.std > 0.0);
    let names: Vec<&str> = facts.records[1].nrmse.keys().map(String::as_str).collect();
    assert_eq!(names, ["truth_v", "truth_z", "z"]);
    let error_of = |name: &str| facts.records[1].nrmse[name].unwrap();
    let mean = facts.records[1].mean_nrmse.unwrap();
    assert!((mean - (error_of("truth_v") + error_of("truth_z")) / 2.0).abs() < 1e-15);
    assert_eq!(
        facts.records[1].mean_nrmse_hidden,
        Some(error_of("truth_v"))
    );
}

/// A test is kept as it was foreseen, bit for bit; one that says more than `fit.json` is not shown.
#[test]
fn the_folder_holds_what_was_foreseen() {
    let case = Case::fitted(2, &settings("alternating", 2));
    let mut job = Job::new(Model::from_text("spring.toml", MODEL_TEXT).unwrap()).unwrap();
    job.settings = settings("alternating", 2);
    job.add(Role::Train, case.sources[0].clone());
    job.add(Role::Test, case.sources[1].clone());
    let fit = job.run(&mut Silent).unwrap().fit;
    let files = fit.to_files().unwrap();
    let again = Fit::from_files(&files, "memory").unwrap();
    let ([made], [read]) = (fit.tests.as_slice(), again.tests.as_slice()) else {
        panic!("{:?}", again.missing)
    };
    assert_eq!((made.place, made.time.len()), (1, 151 - 15));
    let all = |t: &Foreseen| {
        let kinds = [
            &t.measured,
            &t.states,
            &t.deviations,
            &t.outputs,
            &t.output_deviations,
        ];
        let values = kinds.into_iter().flat_map(|v| v.as_slice().to_vec());
        bits(&t.time.iter().copied().chain(values).collect::<Vec<f64>>())
    };
    assert_eq!(all(made), all(read));
    // the error of the prediction is what the scores say
    let square = |(y, o): (f64, f64)| (y - o).powi(2);
    let pairs = made.measured.column(0).zip(made.outputs.column(0));
    let mean = pairs.map(square).sum::<f64>() / made.time.len() as f64;
    let rmse = fit.facts.records[1].rmse["z"].unwrap();
    assert!((mean.sqrt() / rmse - 1.0).abs() < 1e-9);

    let mut longer = files.clone();
    let text = String::from_utf8(files["foreseen.csv"].clone()).unwrap();
    let last = text.lines().last().unwrap();
    let (_, rest) = last.split_once(',').unwrap();
    let more: String = (0..20)
        .map(|k| format!("{},{rest}\n", 1e3 + f64::from(k)))
        .collect();
    longer.insert("foreseen.csv".into(), format!("{text}{more}").into_bytes());
    let sums = String::from_utf8(files[CHECKSUMS].clone()).unwrap();
    let sums = sums.replace(
        &sha256(&files["foreseen.csv"]),
        &sha256(&longer["foreseen.csv"]),
    );
    longer.insert(CHECKSUMS.into(), sums.into_bytes());
    let strange = Fit::from_files(&longer, "memory").unwrap();
    assert!(strange.tests.is_empty());
    assert!(
        strange.missing[0].contains("fit.json says at most 151"),
        "{:?}",
        strange.missing
    );
}

#[test]
fn a_fit_is_replaced_only_when_asked() {
    let case = Case::new();
    case.save(false).unwrap();
    let message = case.save(false).unwrap_err().to_string();
    assert!(message.contains("replace it with force"), "{message}");
    assert!(check(case.folder(), false).is_err());
    case.save(true).unwrap();
    assert_eq!(case.names(), ["run"]);
    assert!(Fit::load(case.folder()).is_ok());
}

#[test]
fn what_is_not_a_fit_is_never_touched() {
    let case = Case::new();
    let notes = case.folder().join("notes.txt");
    fs::create_dir(case.folder()).unwrap();
    fs::write(&notes, "mine").unwrap();
    for replace in [false, true] {
        let message = case.save(replace).unwrap_err().to_string();
        assert!(message.contains("holds no fit"), "{message}");
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

/// One process at a time has a folder; what a killed one has left on its way is removed, an old fit that
/// it had put away put back, and what is not ours left alone.
#[test]
fn a_claim_ends_with_its_process_and_what_it_left_is_tidied() {
    let case = Case::new();
    let claim = Claim::new(case.folder()).unwrap();
    let refused = Claim::new(case.folder()).unwrap_err().to_string();
    assert!(refused.contains("another process is writing"), "{refused}");
    assert!(case.save(false).is_err());
    claim.write(&case.fit, false).unwrap();
    drop(claim);
    assert_eq!(case.names(), ["run"]);

    let unfinished = case.place.path().join("run.unfinished");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("notes.txt"), "mine").unwrap();
    let refused = case.save(true).unwrap_err().to_string();
    assert!(refused.contains("is not of Latens"), "{refused}");
    fs::remove_file(unfinished.join("notes.txt")).unwrap();

    // killed while it wrote, between the two renames of a system without exchange
    fs::write(unfinished.join("lock"), "").unwrap();
    fs::create_dir(unfinished.join("new")).unwrap();
    fs::write(unfinished.join("new").join(MODEL), "half").unwrap();
    fs::rename(case.folder(), unfinished.join("old")).unwrap();
    assert!(check(case.folder(), true).is_ok());
    assert_eq!(case.names(), ["run"]);
    assert!(Fit::load(case.folder()).is_ok());
}

/// Nobody's notes are lost, however deep in a fit they lie.
#[test]
fn a_fit_with_notes_in_a_member_is_not_replaced() {
    let settings = Settings {
        ensemble: 2,
        ..settings("alternating", 1)
    };
    let case = Case::fitted(1, &settings);
    case.save(false).unwrap();
    for inside in [
        "ensemble/notes.txt",
        "ensemble/1/notes.txt",
        "states_2.csv/a",
    ] {
        let path = case.folder().join(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let message = case.save(true).unwrap_err().to_string();
        assert!(message.contains("not part of a fit"), "{message}");
        fs::remove_file(&path).unwrap();
    }
    fs::remove_dir(case.folder().join("states_2.csv")).unwrap();
    case.save(true).unwrap();
}

/// At no moment is there no fit under the name, nor one of two halves.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_sees_the_old_fit_or_the_new_one() {
    let case = Case::new();
    case.save(false).unwrap();
    let mut other = case.fit.clone();
    other.theta.iter_mut().for_each(|t| *t += 1.0);
    let thetas = [&case.fit.theta, &other.theta];
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for k in 0..100 {
                let fit = if k % 2 == 0 { &other } else { &case.fit };
                fit.replace(case.folder()).unwrap();
            }
        });
        while !writer.is_finished() {
            let fit = Fit::load(case.folder()).unwrap();
            assert!(thetas.contains(&&fit.theta) && fit.missing.is_empty());
        }
    });
}

/// Bytes with one text in place of another, of the same length.
fn text_of(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes());
    let mut changed = bytes.to_vec();
    changed[at.unwrap()..][..from.len()].copy_from_slice(to.as_bytes());
    changed
}

/// Makes a folder one of the first version, whose files have no checksums.
fn unsign(folder: &Path) {
    fs::remove_file(folder.join(CHECKSUMS)).unwrap();
    let facts = fs::read(folder.join(FACTS)).unwrap();
    let facts = text_of(&facts, "\"format\": 3", "\"format\": 1");
    fs::write(folder.join(FACTS), facts).unwrap();
}

#[test]
fn damage_is_named() {
    let case = Case::new();
    let message = |case: &Case| Fit::load(case.folder()).unwrap_err().to_string();
    assert!(message(&case).contains("no such folder of a fit"));
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
    fs::write(case.folder().join(CHECKSUMS), "").unwrap();
    assert!(message(&case).contains("fit.json: this file is damaged, or was changed"));
    case.save(true).unwrap();
    damage(
        FACTS,
        &|b| text_of(b, "\"seed\": 1", "\"seed\": 2"),
        "was changed",
    );
    damage(
        WEIGHTS,
        &|b| [&b[..b.len() - 1], &[1]].concat(),
        "was changed",
    );
    damage(FACTS, &|b| b[..b.len() / 2].to_vec(), "is damaged");
    damage(FACTS, &|_| b"{}".to_vec(), "no `format`");
    damage(FACTS, &|_| b"{\"format\": 99}".to_vec(), "format 99");
    damage(MODEL, &|b| [b, b"# edited\n"].concat(), "was changed");
    damage(WEIGHTS, &|b| b[..b.len() - 8].to_vec(), "is damaged");
    // as the first version wrote it: without checksums
    unsign(&case.folder());
    damage(
        WEIGHTS,
        &|b| text_of(b, "friction.scale", "friction.scala"),
        "`friction.scale`",
    );
    fs::remove_file(case.folder().join(WEIGHTS)).unwrap();
    assert!(message(&case).starts_with("cannot read "));
}

/// What cannot be is refused by its name, whoever wrote the folder.
#[test]
fn facts_that_cannot_be_are_named() {
    use latens::fit::MemberFacts;
    use latens::solve::checkpoint::Checkpoint;
    let member = |run: &str| MemberFacts {
        seed: 1,
        weight: None,
        run: run.into(),
        nrmse: vec![],
        mean_nrmse: vec![],
    };
    type Change = Box<dyn Fn(&mut Facts)>;
    let changes: [(&str, Change); 12] = [
        (
            "`noise.process` has 1",
            Box::new(|f| f.noise.process.truncate(1)),
        ),
        (
            "`noise.measurement` has the value -1",
            Box::new(|f| f.noise.measurement[0] = -1.0),
        ),
        (
            "`scales.scale` has the value 0",
            Box::new(|f| f.scales.scale[1] = 0.0),
        ),
        (
            "`sample_time` has the value 0",
            Box::new(|f| f.sample_time = 0.0),
        ),
        ("`unknowns` are not those", Box::new(|f| f.unknowns.clear())),
        (
            "`regions.points` has 2",
            Box::new(|f| f.regions[0].points[0].push(0.0)),
        ),
        (
            "at most 1000 starts",
            Box::new(|f| f.settings.ensemble = 1_000_000),
        ),
        (
            "at most 1000000",
            Box::new(|f| f.settings.hidden_noise = 1e9.into()),
        ),
        ("`solver` is joint", Box::new(|f| f.solver = "joint".into())),
        (
            "not in the folder ensemble/1",
            Box::new(move |f| f.ensemble = vec![member(".")]),
        ),
        (
            "`checkpoint` is not one of the solver batch",
            Box::new(|f| f.checkpoint = Some(Checkpoint::Pass(2))),
        ),
        (
            "`checkpoint.prior` has 1",
            Box::new(|f| match &mut f.checkpoint {
                Some(Checkpoint::Stage(stage)) => stage.prior.truncate(1),
                other => panic!("{other:?}"),
            }),
        ),
    ];
    let case = Case::fitted(1, &settings("batch", 1));
    for (expected, change) in changes {
        let mut fit = case.fit.clone();
        change(&mut fit.facts);
        let files = fit.to_files().unwrap();
        let message = Fit::from_files(&files, "run").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// A member is a fit of the same model, and no ensemble: else a folder could hold itself.
#[test]
fn a_member_belongs_to_its_ensemble() {
    let settings = Settings {
        ensemble: 2,
        ..settings("alternating", 1)
    };
    let case = Case::fitted(1, &settings);
    assert!(Fit::from_files(&case.fit.to_files().unwrap(), "run").is_ok());
    let refused = |change: &dyn Fn(&mut Fit), expected: &str| {
        let mut fit = case.fit.clone();
        change(&mut fit.members[1]);
        let files = fit.to_files().unwrap();
        let message = Fit::from_files(&files, "run").unwrap_err().to_string();
        assert!(message.starts_with("run/ensemble/2/fit.json"), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    let other = |m: &mut Fit| m.facts.model_sha256 = sha256(b"another");
    refused(&other, "a fit of another model");
    refused(&|m| m.facts.seed += 1, "another seed");
    refused(&|m| m.facts.sample_time *= 2.0, "another sample time");
    let ensemble = case.fit.facts.ensemble.clone();
    refused(
        &|m| m.facts.ensemble.clone_from(&ensemble),
        "an ensemble itself",
    );
}
