//! `latens data`: public data sets, where their publishers offer them, and a file of theirs as CSV.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use latens::record::sha256;
use latens::record::{Column, Table};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{output, text};

const AFTER_HELP: &str = "\
Nothing is downloaded: get a file from its publisher, then
  latens data check DATA_EMPS.mat
  latens data convert DATA_EMPS.mat -o emps.csv
  latens fit emps emps.csv -o run

A file is known by its sha256, whatever its name.";

/// Public data sets: what they are, where to get them, and their files as records
#[derive(Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Say which file of which data set this is, by its sha256
    Check {
        file: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Write its records as CSV
    Convert {
        file: PathBuf,
        /// The file to write; of several records each gets its name: out.csv, out_low_train.csv
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Replace what is there
        #[arg(long)]
        force: bool,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// A data set that others have measured.
struct DataSet {
    name: &'static str,
    title: &'static str,
    /// How it is scored.
    protocol: &'static str,
    /// Who offers it, and what they ask to be cited.
    publisher: &'static str,
    /// The built-in system or the worked example that goes with it.
    model: &'static str,
    files: &'static [File],
}

struct File {
    name: &'static str,
    sha256: &'static str,
    records: &'static [Part],
}

/// A record in a publisher's file.
struct Part {
    /// Appended to the name of the output where there are several.
    name: &'static str,
    /// (column of the record, variable of the file).
    columns: &'static [(&'static str, &'static str)],
    samples: Range<usize>,
    /// Time between samples, for a file without times.
    step: Option<f64>,
}

const EMPS_COLUMNS: &[(&str, &str)] = &[("t", "t"), ("u", "vir"), ("q", "qm")];
const EMPS_RECORD: &[Part] = &[Part {
    name: "",
    columns: EMPS_COLUMNS,
    samples: 0..24841,
    step: None,
}];
const LOW_LEVEL_COLUMNS: &[(&str, &str)] = &[("u", "u11"), ("y", "z11")];
const HIGH_LEVEL_COLUMNS: &[(&str, &str)] = &[("u", "u12"), ("y", "z12")];
const TRAINING_ROWS: Range<usize> = 0..400;
const TEST_ROWS: Range<usize> = 400..500;

const fn drives(
    name: &'static str,
    columns: &'static [(&'static str, &'static str)],
    samples: Range<usize>,
) -> Part {
    Part {
        name,
        columns,
        samples,
        step: Some(0.02),
    }
}

const DATA_SETS: &[DataSet] = &[
    DataSet {
        name: "emps",
        title: "Electro-mechanical positioning system: motor voltage and position, 1 ms",
        protocol: "train on DATA_EMPS.mat, test on DATA_EMPS_PULSES.mat; RMSE of the free run in mm, the first 20 test samples unscored",
        publisher: "nonlinearbenchmark.org; A. Janot, M. Gautier, M. Brunot, Data Set and Reference Models of EMPS, Workshop on Nonlinear System Identification Benchmarks, 2019",
        model: "emps",
        files: &[
            File {
                name: "DATA_EMPS.mat",
                sha256: "6cf6814ae14618795da0101aae2bb97ff0c6351b0501b5492751b02b07facf7e",
                records: EMPS_RECORD,
            },
            File {
                name: "DATA_EMPS_PULSES.mat",
                sha256: "0eab75bb1f6b16228ee78791343a88bf9bfd9a51036ac9807d7b5fc11c0e1704",
                records: EMPS_RECORD,
            },
        ],
    },
    DataSet {
        name: "silverbox",
        title: "Silverbox, an electronic Duffing oscillator: input and output voltage, 610.35 Hz",
        protocol: "train on the multisine part, test on the rest of it and on the arrow; RMSE of the free run in mV, the first 50 test samples unscored",
        publisher: "nonlinearbenchmark.org; T. Wigren, J. Schoukens, Three free data sets for development and benchmarking in nonlinear system identification, ECC 2013",
        model: "crates/latens-lab/models/silverbox/silverbox.toml",
        // no checksum of the publisher's file is known here
        files: &[],
    },
    DataSet {
        name: "coupled-drives",
        title: "Coupled electric drives: motor voltage and rectified pulley speed, 20 ms",
        protocol: "train on the first 400 of 500 samples, test on the last 100; RMSE of the free run, the first 10 test samples unscored",
        publisher: "nonlinearbenchmark.org; T. Wigren, M. Schoukens, Coupled Electric Drives Data Set and Reference Models, TR 2017-024, Uppsala University, 2017",
        model: "crates/latens-lab/models/coupled-drives/coupled-drives.toml",
        files: &[File {
            name: "DATAUNIF.MAT",
            sha256: "102c8d8012d6e850d50c13227b8c2280fe69f8bc4a845177f8bc3d761d152c89",
            records: &[
                drives("low_train", LOW_LEVEL_COLUMNS, TRAINING_ROWS),
                drives("low_test", LOW_LEVEL_COLUMNS, TEST_ROWS),
                drives("high_train", HIGH_LEVEL_COLUMNS, TRAINING_ROWS),
                drives("high_test", HIGH_LEVEL_COLUMNS, TEST_ROWS),
            ],
        }],
    },
];

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.verb {
        None => list(arguments.json),
        Some(Verb::Check { file, json }) => check(file, *json),
        Some(Verb::Convert {
            file,
            output,
            force,
            json,
        }) => convert(file, output, *force, *json),
    }
}

fn list(json: bool) -> Result<(), Failure> {
    if json {
        let all: Vec<Value> = DATA_SETS.iter().map(describe).collect();
        return text::print(&format!("{:#}\n", json!(all)));
    }
    let mut out = String::new();
    for set in DATA_SETS {
        out += &format!("{}\n  {}\n", set.name, set.title);
        out += &format!("  from    {}\n", set.publisher);
        out += &format!("  scored  {}\n", set.protocol);
        out += &format!("  model   {}\n", set.model);
        for file in set.files {
            out += &format!("  file    {}  sha256 {}\n", file.name, file.sha256);
        }
        if set.files.is_empty() {
            out += "  file    no checksum is known here; a record with the columns t, u, y can be used as it is\n";
        }
        out += "\n";
    }
    out += "latens data check FILE says whether a download is one of these; latens data convert FILE -o out.csv makes records of it.\n";
    text::print(&out)
}

fn describe(set: &DataSet) -> Value {
    let files = set.files.iter().map(|file| {
        let records = file.records.iter().map(|r| {
            json!({ "name": r.name, "samples": r.samples.len(),
                    "columns": r.columns.iter().map(|c| c.0).collect::<Vec<_>>() })
        });
        json!({ "name": file.name, "sha256": file.sha256, "records": records.collect::<Vec<_>>() })
    });
    json!({
        "name": set.name,
        "title": set.title,
        "publisher": set.publisher,
        "protocol": set.protocol,
        "model": set.model,
        "files": files.collect::<Vec<_>>(),
    })
}

/// Which known file this is.
fn identify(path: &Path) -> Result<(&'static DataSet, &'static File), Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::file("read", path, e))?;
    let sha256 = sha256(&bytes);
    let all = DATA_SETS.iter();
    let mut all = all.flat_map(|set| set.files.iter().map(move |file| (set, file)));
    all.find(|(_, file)| file.sha256 == sha256).ok_or_else(|| {
        Failure::Message(format!(
            "{} is no file that latens knows (sha256 {sha256}): it may be damaged or another version; `latens data` lists what is known, and `latens fit` reads .csv and .mat as they are",
            path.display()
        ))
    })
}

fn check(path: &Path, json: bool) -> Result<(), Failure> {
    let (set, file) = identify(path)?;
    if json {
        let found = json!({ "file": path.display().to_string(), "data": set.name,
                            "name": file.name, "sha256": file.sha256 });
        return text::print(&format!("{found:#}\n"));
    }
    text::print(&format!(
        "{} is {} of {}, unchanged (sha256 {})\n",
        path.display(),
        file.name,
        set.name,
        file.sha256
    ))
}

fn convert(path: &Path, output: &Path, force: bool, json: bool) -> Result<(), Failure> {
    let (set, file) = identify(path)?;
    let table = Table::read(path)?;
    let paths: Vec<PathBuf> = file.records.iter().map(|r| r.path(output)).collect();
    paths.iter().try_for_each(|p| output::free(p, force))?;
    for (record, path) in file.records.iter().zip(&paths) {
        output::write(Some(path), &record.cut(&table)?)?;
    }
    if json {
        let records = file.records.iter().zip(&paths).map(|(r, p)| {
            json!({ "file": p.display().to_string(), "samples": r.samples.len(),
                    "columns": r.columns.iter().map(|c| c.0).collect::<Vec<_>>() })
        });
        let done = json!({ "data": set.name, "name": file.name, "sha256": file.sha256,
                           "records": records.collect::<Vec<_>>() });
        return text::print(&format!("{done:#}\n"));
    }
    Ok(())
}

impl Part {
    /// `out.csv`, or `out_low_train.csv`.
    fn path(&self, output: &Path) -> PathBuf {
        if self.name.is_empty() {
            return output.into();
        }
        let stem = output.file_stem().unwrap_or_default().to_string_lossy();
        let extension = output.extension().unwrap_or("csv".as_ref());
        output.with_file_name(format!(
            "{stem}_{}.{}",
            self.name,
            extension.to_string_lossy()
        ))
    }

    /// The record's part of the publisher's file.
    fn cut(&self, table: &Table) -> Result<Table, Failure> {
        let mut columns = vec![];
        if let Some(step) = self.step {
            let time = self.samples.clone().map(|k| k as f64 * step);
            columns.push(Column::new("t", time.collect()));
        }
        for (name, variable) in self.columns {
            let values = table
                .find(variable)
                .map(|c| table.values(c))
                .transpose()?
                .and_then(|v| v.get(self.samples.clone()));
            let values = values.ok_or_else(|| {
                Failure::Message(format!("the file has no `{variable}` of this length"))
            })?;
            columns.push(Column::new(*name, values.to_vec()));
        }
        Ok(Table::new("converted", columns)?)
    }
}
