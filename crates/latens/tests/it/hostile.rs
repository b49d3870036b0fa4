//! Files from strangers: none crashes the library, takes more than its limit, or is misread.
//!
//! The folder `shared/hostile` beside the project holds files on which version 0.1 failed; the tests that
//! read them are ignored without it. The others make their own.

use std::fs;
use std::path::{Path, PathBuf};

use latens::folder::Files;
use latens::record::Table;
use latens::record::lines::Lines;
use latens::stream::{Options, Sample};
use latens::{EstimateOptions, Fit, Model, PredictOptions, Record, Source};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

/// Changes of a folder that are tried.
const MUTATIONS: usize = 600;

fn hostile() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = here.ancestors().map(|a| a.join("shared/hostile"));
    folders.find(|f| f.is_dir()).expect("shared/hostile")
}

fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
    let mut paths: Vec<PathBuf> = entries.filter(|p| wanted(&name(p))).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

#[test]
#[ignore = "needs shared/hostile"]
fn hostile_models_are_refused_with_their_limit() {
    for path in files(&hostile(), |name| name.ends_with(".toml")) {
        let Err(error) = Model::from_file(&path) else {
            panic!("{} was accepted", path.display());
        };
        let message = error.to_string();
        let limit = message.contains("at most ") || message.contains("a whole number from 1 to ");
        assert!(limit, "{}: {message}", path.display());
    }
}

#[test]
#[ignore = "needs shared/hostile"]
fn hostile_records_are_refused() {
    let folder = hostile();
    let record = |name: &str| name.ends_with(".parquet") || name.ends_with(".mat");
    for path in files(&folder, record) {
        let message = Table::read(&path).unwrap_err().to_string();
        let words = ["is no readable", "is the most that is read"];
        assert!(words.iter().any(|w| message.contains(w)), "{message}");
    }
    let model = Model::from_file(folder.join("base/tinyk.toml")).unwrap();
    let far = Record::read(folder.join("gap1e300.csv"), &model).unwrap();
    let fit = Fit::load(folder.join("base/tinyk-run")).unwrap();
    let source = Source::of_record(far.clone(), &model).unwrap();
    let errors = [
        latens::check(&model, std::slice::from_ref(&far)).err(),
        latens::fit(&model, &[far]).err(),
        fit.predict(&source, &PredictOptions::default()).err(),
        fit.estimate(&source, &EstimateOptions::default()).err(),
    ];
    for error in errors {
        let message = error.expect("an error").to_string();
        assert!(message.contains("the longest gap is"), "{message}");
    }
}

/// Each of them has one number, list or path that cannot be.
#[test]
#[ignore = "needs shared/hostile"]
fn hostile_folders_are_refused() {
    let folder = hostile();
    let run = |name: &str| {
        ["run_", "rundir_", "resume_", "hostile_names"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let model = Model::from_file(folder.join("base/tinyk.toml")).unwrap();
    let record = Record::read(folder.join("base/tinyk.csv"), &model).unwrap();
    for path in files(&folder, run) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match Fit::load(&path) {
            Err(error) => assert!(error.to_string().contains("repeat the fit"), "{error}"),
            // a step that can be, and that the records do not have
            Ok(fit) => {
                assert!(name.starts_with("rundir_sample_time_1e"), "{name}");
                assert!(fit.tracks.is_empty() && fit.missing[0].contains("sample times"));
                exercise(&fit, &record);
            }
        }
    }
    // what they were made from is still read
    for base in ["tiny-run", "tinyk-run", "ho-run"] {
        let fit = Fit::load(folder.join("base").join(base)).unwrap();
        assert!(fit.missing.is_empty(), "{:?}", fit.missing);
    }
}

/// Everything that a fit serves for; an error is an answer, a panic or a loop without end is none.
fn exercise(fit: &Fit, record: &Record) {
    let source = Source::of_record(record.clone(), &fit.model).unwrap();
    let _ = fit.predict(&source, &PredictOptions::default());
    for smooth in [false, true] {
        let loosen = None;
        let _ = fit.estimate(&source, &EstimateOptions { smooth, loosen });
    }
    if let Ok(mut stream) = fit.stream(fit.stream_options()) {
        for k in 0..record.len() {
            let (time, input) = (Some(record.time[k]), record.input(k));
            let output = record.output(k);
            let _ = stream.step(Sample {
                time,
                input,
                output,
            });
        }
    }
    if let Ok(driving) = fit.undriven(20) {
        let _ = fit.simulate(driving, &fit.start(&[]));
    }
    let _ = latens_report::page::html(std::slice::from_ref(fit));
}

/// A fit of two members, its files, and those of a snapshot of a stream.
fn folders() -> [Files; 2] {
    let fit = latens::example_fit();
    let options = Options {
        learn: true,
        ..Options::default()
    };
    let record = &fit.tracks[0].record;
    let mut stream = fit.stream(options).unwrap();
    for k in 0..30 {
        let (time, input) = (Some(record.time[k]), record.input(k));
        let output = record.output(k);
        stream
            .step(Sample {
                time,
                input,
                output,
            })
            .unwrap();
    }
    let snapshot = fit.adapted(stream.state()).to_files().unwrap();
    let mut ensemble = fit.clone();
    ensemble.members = vec![fit.clone(), fit];
    let member = |k: usize| latens::fit::MemberFacts {
        seed: ensemble.facts.seed,
        weight: None,
        run: format!("ensemble/{}", k + 1),
        nrmse: vec![],
        mean_nrmse: vec![],
    };
    ensemble.facts.ensemble = (0..2).map(member).collect();
    [ensemble.to_files().unwrap(), snapshot]
}

/// Some bytes turned, cut out, put in or repeated.
fn damaged(bytes: &mut Vec<u8>, rng: &mut Pcg64) {
    let at = rng.random_range(0..bytes.len());
    let end = (at + rng.random_range(1..64)).min(bytes.len());
    match rng.random_range(0..6) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = rng.random_range(0..=255),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => bytes[at..end].fill(rng.random_range(0..=255)),
    }
}

/// Something else in place of one value of an object.
fn changed(value: &mut Value, rng: &mut Pcg64) {
    let deeper = rng.random_range(0..10) > 0;
    match value {
        Value::Object(members) if deeper && !members.is_empty() => {
            let k = rng.random_range(0..members.len());
            let key = members.keys().nth(k).unwrap().clone();
            if rng.random_range(0..20) == 0 {
                members.remove(&key);
            } else {
                changed(&mut members[&key], rng);
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let k = rng.random_range(0..list.len());
            match rng.random_range(0..6) {
                0 => drop(list.remove(k)),
                1 => list.clear(),
                2 => {
                    let many = list.len() * 300;
                    *list = list.iter().cycle().take(many).cloned().collect();
                }
                _ => changed(&mut list[k], rng),
            }
        }
        other => {
            let number = other.as_f64().unwrap_or(1.0);
            let choices = [
                json!(null),
                json!(0),
                json!(-number),
                json!(number * 1e9),
                json!(number * 1e-300),
                json!(1e300),
                json!(u64::MAX),
                json!(4_611_686_018_427_387_904_u64),
                json!("../../outside"),
                json!("\u{1b}[2J</script>"),
                json!([]),
                json!({}),
                json!(true),
            ];
            *other = choices[rng.random_range(0..choices.len())].clone();
        }
    }
}

/// The folder as the first version wrote it, without checksums: nothing but the checks of each number
/// stands between it and the program.
fn unsigned(files: &Files) -> Files {
    let mut files = files.clone();
    files.retain(|name, _| !name.ends_with("checksums.sha256"));
    for (name, bytes) in &mut files {
        if name.ends_with("fit.json") {
            let mut facts: Value = serde_json::from_slice(bytes).unwrap();
            facts["format"] = json!(1);
            *bytes = serde_json::to_vec(&facts).unwrap();
        }
    }
    files
}

fn bits(fit: &Fit) -> Vec<u64> {
    let tracks = fit.tracks.iter().flat_map(|t| t.smoothed.as_slice());
    let numbers = fit.theta.iter().chain(tracks).map(|v| v.to_bits());
    numbers.chain(fit.members.iter().flat_map(bits)).collect()
}

/// Whether states were left out because their file is not what was written.
fn said(fit: &Fit) -> bool {
    let missing = !fit.missing.is_empty() && fit.tracks.len() < fit.facts.records.len();
    missing || fit.members.iter().any(said)
}

/// A folder that was changed anywhere is refused, or what was changed is left out and said.
#[test]
fn no_change_of_a_folder_is_taken_for_what_was_written() {
    let mut rng = Pcg64::seed_from_u64(16);
    let mut refused = 0;
    for files in folders() {
        let whole = Fit::from_files(&files, "run").unwrap();
        let names: Vec<&String> = files.keys().collect();
        for _ in 0..MUTATIONS / 2 {
            let mut changed_files = files.clone();
            let name = names[rng.random_range(0..names.len())];
            let bytes = changed_files.get_mut(name).unwrap();
            damaged(bytes, &mut rng);
            let same = bytes == &files[name];
            match Fit::from_files(&changed_files, "run") {
                Err(_) => refused += 1,
                Ok(fit) if name.contains("states") => assert!(same || said(&fit), "{name}"),
                // of a changed list of checksums, those that count are still there
                Ok(fit) => assert!(bits(&fit) == bits(&whole) || said(&fit), "{name}"),
            }
        }
    }
    assert!(refused > MUTATIONS / 3, "{refused}");
}

/// Without checksums a number that can be is taken, and what cannot be is refused: neither panics, here or
/// wherever the fit is used.
#[test]
fn no_change_of_a_folder_panics_wherever_it_is_used() {
    let mut rng = Pcg64::seed_from_u64(17);
    let record = latens::example_fit().tracks[0].record.slice(0..60);
    let (mut refused, mut used) = (0, 0);
    for files in folders() {
        let files = unsigned(&files);
        Fit::from_files(&files, "run").unwrap();
        let names: Vec<&String> = files.keys().collect();
        for k in 0..MUTATIONS / 2 {
            let mut changed_files = files.clone();
            let mut name = names[rng.random_range(0..names.len())].as_str();
            if k % 2 == 0 {
                name = "fit.json";
            }
            let bytes = changed_files.get_mut(name).unwrap();
            if name.ends_with("fit.json") {
                let mut facts = serde_json::from_slice(bytes).unwrap();
                changed(&mut facts, &mut rng);
                *bytes = serde_json::to_vec(&facts).unwrap();
            } else {
                damaged(bytes, &mut rng);
            }
            match Fit::from_files(&changed_files, "run") {
                Err(_) => refused += 1,
                Ok(fit) => {
                    used += 1;
                    exercise(&fit, &record);
                }
            }
        }
    }
    assert!(
        refused > MUTATIONS / 6 && used > MUTATIONS / 6,
        "{refused} {used}"
    );
}

/// Nothing outside of a folder is read, by whatever name.
#[test]
#[cfg(unix)]
fn no_link_leads_out_of_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    latens::example_fit().save(&run).unwrap();
    let elsewhere = place.path().join("weights");
    let weights = run.join("weights.safetensors");
    fs::rename(&weights, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &weights).unwrap();
    let message = Fit::load(&run).unwrap_err().to_string();
    assert!(message.contains("leads out of the folder"), "{message}");
    // a link to the folder itself is the user's own
    fs::remove_file(&weights).unwrap();
    fs::rename(&elsewhere, &weights).unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&run, &link).unwrap();
    assert!(Fit::load(&link).is_ok());
}

/// Any line of a stream is a sample, a comment, or an error with its number.
#[test]
fn no_line_of_a_stream_panics() {
    let fit = latens::example_fit();
    let mut rng = Pcg64::seed_from_u64(18);
    let seeds = [
        &b"t,z\n0,1\n0.1,2\n# x\n\"0.2\",\n"[..],
        b"{\"t\": 0, \"z\": 1}\n{\"t\": 1e3, \"z\": null}\n",
    ];
    let mut samples = 0;
    for k in 0..4000 {
        let mut text = seeds[k % 2].to_vec();
        for _ in 0..rng.random_range(0..4) {
            if !text.is_empty() {
                damaged(&mut text, &mut rng);
            }
        }
        let layout = latens::record::Layout::of(&fit.model);
        let mut lines = Lines::new("stdin", layout, latens::record::Mapping::default());
        let mut stream = fit.stream(Options::default()).unwrap();
        for line in text.split_inclusive(|b| *b == b'\n') {
            if let Ok(true) = lines.read(line) {
                let row = lines.row();
                let (time, input, output) = (row.time, &row.inputs[..], &row.outputs[..]);
                let taken = stream.step(Sample {
                    time,
                    input,
                    output,
                });
                samples += usize::from(taken.is_ok());
            }
        }
    }
    assert!(samples > 4000, "{samples}");
}

/// The reference lists every limit with its number.
#[test]
fn the_limits_of_the_documents_are_those_of_the_code() {
    use latens::model::limits as model;
    use latens::record::limits as record;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/limits.md");
    let page = fs::read_to_string(path).unwrap().replace(',', "");
    for (quantity, most) in [
        ("bytes of the file", model::FILE_BYTES as f64),
        ("names of all kinds", model::NAMES as f64),
        ("characters of a name", model::NAME_LENGTH as f64),
        (
            "states and likewise inputs and measurements",
            model::STATES as f64,
        ),
        (
            "numbers names and signs of one expression",
            model::TOKENS as f64,
        ),
        ("brackets", model::NESTING as f64),
        ("expressions inside each other", model::DEPTH as f64),
        ("operations times states", model::DERIVATIVES as f64),
        ("hidden layers", model::LAYERS as f64),
        ("units of a layer", model::UNITS as f64),
        ("arguments of a network", model::ARGUMENTS as f64),
        ("calls of networks", model::CALLS as f64),
        ("learned parameters", model::PARAMETERS as f64),
        ("`substeps`", model::SUBSTEPS as f64),
        ("`steps` of a simulation", model::STEPS as f64),
        ("held-out experiments", model::HELD_OUT as f64),
        (
            "states of a model with a regulator",
            model::REGULATED_STATES as f64,
        ),
        ("passes of a solver", model::PASSES as f64),
        ("starts or members", model::STARTS as f64),
        ("a noise relative", model::RELATIVE_NOISE),
        ("bytes of a file", record::FILE_BYTES as f64),
        ("numbers in a table", record::VALUES as f64),
        ("columns", record::COLUMNS as f64),
        ("sample times between two samples", record::GAP),
        ("sample times from the first sample", record::SPARSITY),
        ("sub-steps from the first sample", record::SUBSTEPS),
    ] {
        let row = page
            .lines()
            .find(|l| l.starts_with(&format!("| {quantity}")));
        let row = row.unwrap_or_else(|| panic!("no row {quantity}"));
        assert!(row.ends_with(&format!("| {most} |")), "{row}: {most}");
    }
}
