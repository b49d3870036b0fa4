//! The same bits on every instruction set: fits and streams on the widest that this machine has, and
//! on AVX2. Where it has nothing wider, both are the same path.

use std::fs::{File, read, read_dir};
use std::path::PathBuf;
use std::process::Command;

use crate::program::{BINARY, Place};

/// The two ways to run: what `LATENS_SIMD` says.
const WAYS: [&str; 2] = ["", "avx2"];

/// Runs `latens …` with the instruction set that is named, and gives what it prints.
fn run(place: &Place, simd: &str, line: &str, input: Option<&str>) -> Vec<u8> {
    let mut command = Command::new(BINARY);
    command
        .current_dir(place.path("."))
        .env("LATENS_SIMD", simd);
    if let Some(input) = input {
        command.stdin(File::open(place.path(input)).unwrap());
    }
    let result = command.args(line.split_whitespace()).output().unwrap();
    let err = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{simd} latens {line}: {err}");
    result.stdout
}

/// Fits both ways and compares all states and weights to the last bit.
fn assert_same(place: &Place, line: &str) {
    let found = WAYS.map(|simd| {
        run(
            place,
            simd,
            &format!("fit {line} -o run --force --no-report -q"),
            None,
        );
        let files = read_dir(place.path("run"))
            .unwrap()
            .map(|e| e.unwrap().path());
        let results = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("states") || name == "weights.safetensors"
        };
        let mut files: Vec<PathBuf> = files.filter(results).collect();
        files.sort();
        assert!(files.len() > 1);
        files
            .iter()
            .map(|path| read(path).unwrap())
            .collect::<Vec<_>>()
    });
    // not one message with all their bytes
    assert!(
        found[0] == found[1],
        "{line} depends on the instruction set"
    );
}

#[test]
fn fits_of_every_own_solver() {
    let place = Place::new();
    place.succeeds("simulate harmonic-oscillator --steps 300 -o record.csv");
    place.succeeds("simulate harmonic-oscillator --steps 200 --held-out 1 -o other.csv");
    for solver in ["joint", "alternating", "as-printed"] {
        let line = format!("harmonic-oscillator record.csv --solver {solver} --epochs 2");
        assert_same(&place, &line);
    }
    for options in ["", "--ensemble 2", "--validate-tail 0.2", "other.csv"] {
        assert_same(
            &place,
            &format!("harmonic-oscillator record.csv --epochs 3 {options}"),
        );
    }
}

/// 741 weights, most of them not determined: every kernel at its full size.
#[test]
fn a_fit_with_many_weights() {
    let place = Place::new();
    place.succeeds("simulate hodgkin-huxley --steps 1500 -o record.csv");
    assert_same(&place, "hodgkin-huxley record.csv --epochs 2");
}

#[test]
fn streams() {
    let place = Place::new();
    place.succeeds("simulate harmonic-oscillator --steps 300 --noise 0.1% -o record.csv");
    place.succeeds("fit harmonic-oscillator record.csv --epochs 2 --no-report -q");
    place.succeeds("simulate harmonic-oscillator --steps 300 --noise 0.1% --seed 2 -o more.csv");
    let found = WAYS.map(|simd| run(&place, simd, "stream run --learn", Some("more.csv")));
    assert!(!found[0].is_empty() && found[0] == found[1]);
}
