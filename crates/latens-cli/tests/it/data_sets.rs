//! `latens data`: the list, and publishers' files as records where they are at hand.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::Place;
use latens::record::Table;

/// A file of `shared/datasets` beside the project, or of `LATENS_DATASETS`.
fn dataset(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = here.ancestors().map(|a| a.join("shared/datasets"));
    let folder = std::env::var_os("LATENS_DATASETS").map(PathBuf::from);
    let found = folder.into_iter().chain(folders).map(|f| f.join(name));
    let mut found = found.into_iter().filter(|p| p.is_file());
    let missing = || panic!("no data set {name}; set LATENS_DATASETS to its folder");
    found.next().unwrap_or_else(missing)
}

fn column(table: &Table, name: &str) -> Vec<f64> {
    let column = table.find(name).unwrap_or_else(|| panic!("no {name}"));
    table.values(column).unwrap().to_vec()
}

#[test]
fn what_is_known_is_listed_and_what_is_not_is_refused() {
    let place = Place::new();
    let listed = place.succeeds("data --json").out;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["emps", "silverbox", "coupled-drives"]);
    let shown = place.succeeds("data").out;
    assert!(shown.contains("nonlinearbenchmark.org"), "{shown}");
    place.write("other.mat", "not theirs");
    for line in ["data check other.mat", "data convert other.mat -o out.csv"] {
        let said = place.fails(1, line);
        assert!(
            said.contains("sha256") && said.contains("no file that latens knows"),
            "{said}"
        );
    }
    assert_eq!(place.names(), ["other.mat"]);
}

#[test]
#[ignore = "needs the data sets"]
fn a_publishers_file_becomes_records() {
    let mat = dataset("emps/DATA_EMPS.mat");
    let csv = dataset("emps/emps_train.csv");
    let place = Place::new();
    fs::copy(mat, place.path("download.mat")).unwrap();
    let said = place.succeeds("data check download.mat").out;
    assert!(
        said.contains("is DATA_EMPS.mat of emps, unchanged"),
        "{said}"
    );
    place.succeeds("data convert download.mat -o emps.csv");
    let said = place.fails(1, "data convert download.mat -o emps.csv");
    assert!(said.contains("--force"), "{said}");
    let (ours, theirs) = (
        Table::read(place.path("emps.csv")).unwrap(),
        Table::read(csv).unwrap(),
    );
    for (name, like) in [("t", "t"), ("u", "u_vir_V"), ("q", "y_qm_m")] {
        let (ours, theirs) = (column(&ours, name), column(&theirs, like));
        assert_eq!(ours.len(), theirs.len());
        let size = theirs.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 1e-10 * size, "{name}: {a} {b}");
        }
    }
}

#[test]
#[ignore = "needs the data sets"]
fn a_file_of_several_records_becomes_several_files() {
    let mat = dataset("coupled_electric_drives/DATAUNIF.MAT");
    let place = Place::new();
    fs::copy(&mat, place.path("d.mat")).unwrap();
    let done = place.succeeds("data convert d.mat -o ced.csv --json").out;
    let done: serde_json::Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done["records"].as_array().unwrap().len(), 4);
    for part in ["low_train", "low_test", "high_train", "high_test"] {
        let ours = Table::read(place.path(&format!("ced_{part}.csv"))).unwrap();
        let theirs = mat.with_file_name(format!("ced_{part}.csv"));
        let theirs = Table::read(theirs).unwrap();
        for (name, like) in [("t", "t"), ("u", "u_V"), ("y", "y")] {
            let (ours, theirs) = (column(&ours, name), column(&theirs, like));
            assert_eq!(ours.len(), theirs.len(), "{part} {name}");
            for (a, b) in ours.iter().zip(&theirs) {
                assert!((a - b).abs() < 1e-9, "{part} {name}: {a} {b}");
            }
        }
    }
}
