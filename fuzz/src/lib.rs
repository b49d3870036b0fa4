//! What each reader of Latens is given when it is fuzzed: any bytes, which it must take or refuse, and
//! what is taken must be of use. A function for each target, which `cargo fuzz` and the plain loop in
//! `main.rs` both call; whether the bytes were taken is what it gives back.

use std::sync::OnceLock;

use latens::folder::Files;
use latens::record::lines::Lines;
use latens::record::{Layout, Mapping, Table};
use latens::simulate::{Simulation, simulate};
use latens::stream::{Options, Sample};
use latens::{EstimateOptions, Fit, Model, PredictOptions, Record, Source};

pub const TARGETS: [(&str, fn(&[u8]) -> bool); 6] = [
    ("model", model),
    ("csv", csv),
    ("mat", mat),
    ("parquet", parquet),
    ("folder", folder),
    ("stream", stream),
];

const MODEL: &str = r#"
name = "spring"
[time]
step = 0.05
[states.z]
derivative = "v"
start = 1
[states.v]
derivative = "-k*z + friction(v)"
start = 0
[networks.friction]
layers = ["2 tanh"]
[unknowns]
k = { guess = 2, scale = 1, positive = true }
[measurements]
z = "z"
[truth]
k = 3
v = "-3*z - 0.3*v"
"#;

/// A small fit and its record.
fn fitted() -> &'static (Fit, Record) {
    static FIT: OnceLock<(Fit, Record)> = OnceLock::new();
    FIT.get_or_init(|| {
        let model = Model::from_text("spring", MODEL).expect("a model");
        let simulation = Simulation {
            steps: Some(80),
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).expect("a record");
        let fit = latens::fit(&model, std::slice::from_ref(&record)).expect("a fit");
        (fit, record)
    })
}

/// Its files as the first version wrote them, without checksums, which would find every change.
pub fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = fitted().0.to_files().expect("files");
        files.remove("checksums.sha256");
        let facts = files.get_mut("fit.json").expect("facts");
        let mut value: serde_json::Value = serde_json::from_slice(facts).expect("JSON");
        value["format"] = 1.into();
        *facts = serde_json::to_vec(&value).expect("JSON");
        files
    })
}

/// A model file; one that is read is simulated for a while.
pub fn model(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let Ok(model) = Model::from_text("m.toml", text) else {
        return false;
    };
    let simulation = Simulation {
        steps: Some(3),
        ..Simulation::default()
    };
    let _ = simulate(&model, &simulation);
    let _ = model.signals();
    true
}

fn table(name: &str, bytes: &[u8]) -> bool {
    let Ok(table) = Table::from_bytes(name, bytes) else {
        return false;
    };
    for column in 0..table.columns().len() {
        let _ = table.values(column);
    }
    let model = &fitted().0.model;
    if let Ok(record) = Record::from_table(&table, &Layout::of(model), &Mapping::default(), None) {
        let _ = latens::check(model, &[record]);
    }
    true
}

/// A text table; one that fits the model is looked at as before a fit.
pub fn csv(bytes: &[u8]) -> bool {
    table("a.csv", bytes)
}

/// A MATLAB file.
pub fn mat(bytes: &[u8]) -> bool {
    table("a.mat", bytes)
}

/// A Parquet file.
pub fn parquet(bytes: &[u8]) -> bool {
    table("a.parquet", bytes)
}

/// A run folder in which one file is another: the first line is its name, the rest its content. One that is
/// loaded is used in every way.
pub fn folder(bytes: &[u8]) -> bool {
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
        return false;
    };
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut changed = files().clone();
    if !changed.contains_key(&name) {
        return false;
    }
    changed.insert(name, bytes[end + 1..].to_vec());
    let Ok(fit) = Fit::from_files(&changed, "run") else {
        return false;
    };
    let record = &fitted().1;
    if let Ok(source) = Source::of_record(record.clone(), &fitted().0.model) {
        let _ = fit.predict(&source, &PredictOptions::default());
        let _ = fit.estimate(&source, &EstimateOptions::default());
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
    let _ = latens_report::page::html(std::slice::from_ref(&fit));
    true
}

/// The lines of a stream, each a sample or an error.
pub fn stream(bytes: &[u8]) -> bool {
    let fit = &fitted().0;
    let mut lines = Lines::new("stdin", Layout::of(&fit.model), Mapping::default());
    let options = Options {
        learn: true,
        ..Options::default()
    };
    let Ok(mut stream) = fit.stream(options) else {
        return false;
    };
    let mut taken = false;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if let Ok(true) = lines.read(line) {
            let row = lines.row();
            let (time, input, output) = (row.time, &row.inputs[..], &row.outputs[..]);
            taken |= stream
                .step(Sample {
                    time,
                    input,
                    output,
                })
                .is_ok();
        }
    }
    taken
}
