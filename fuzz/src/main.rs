//! The fuzz targets as a plain loop, for machines without a nightly toolchain:
//!
//!     cargo run --release --manifest-path fuzz/Cargo.toml -- model 60       a minute of one target
//!     cargo run --release --manifest-path fuzz/Cargo.toml -- model = 1234   input 1234 alone, to standard output
//!     cargo run --release --manifest-path fuzz/Cargo.toml -- seeds          writes the seeds of folders again
//!
//! Input k is a mutation of a seed by a generator of seed k: a finding is found again by its number.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use latens_fuzz::{TARGETS, files};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

static INPUT: AtomicU64 = AtomicU64::new(0);

/// An input that takes longer is said.
const SLOW: Duration = Duration::from_secs(5);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["seeds"] => write_seeds(),
        [target, "=", number] => {
            let bytes = input(&seeds(target), number.parse().expect("a number"));
            std::io::stdout()
                .write_all(&bytes)
                .expect("standard output");
        }
        [target, seconds] => run(target, seconds.parse().expect("seconds")),
        _ => eprintln!("TARGET SECONDS, or TARGET = NUMBER, or seeds"),
    }
}

fn run(target: &str, seconds: u64) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, read) = found.expect("a target: model, csv, mat, parquet, folder or stream");
    let seeds = seeds(target);
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("input {}: {panic}", INPUT.load(Ordering::Relaxed));
    }));
    let (started, end) = (Instant::now(), Duration::from_secs(seconds));
    let (mut taken, mut slow) = (0_u64, 0_u64);
    let mut said = 0;
    while started.elapsed() < end {
        let number = INPUT.load(Ordering::Relaxed);
        let bytes = input(&seeds, number);
        let clock = Instant::now();
        taken += u64::from(read(&bytes));
        if clock.elapsed() > SLOW {
            slow += 1;
            eprintln!("input {number} took {:?}", clock.elapsed());
        }
        INPUT.store(number + 1, Ordering::Relaxed);
        if started.elapsed().as_secs() / 10 > said {
            said = started.elapsed().as_secs() / 10;
            eprintln!("{target}: {} inputs", number + 1);
        }
    }
    let inputs = INPUT.load(Ordering::Relaxed);
    println!("{target}: {inputs} inputs in {seconds} s, {taken} taken, {slow} slow, no panic");
}

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target)
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder(target)).expect("a folder of seeds");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a seed"))
        .collect()
}

/// Each file of the small run, after its name.
fn write_seeds() {
    for (name, bytes) in files() {
        let seed = [name.as_bytes(), b"\n", bytes].concat();
        std::fs::write(folder("folder").join(name), seed).expect("a seed");
    }
}

/// A mutation of a seed.
fn input(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let mut rng = Pcg64::seed_from_u64(number);
    let mut bytes = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..1 << rng.random_range(0..5) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(1..=32)).min(bytes.len());
        match rng.random_range(0..9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random_range(0..=255),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].repeat(rng.random_range(1..40));
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &seeds[rng.random_range(0..seeds.len())];
                let from = rng.random_range(0..=other.len());
                let piece = &other[from..(from + 64).min(other.len())];
                bytes.splice(at..end, piece.iter().copied());
            }
            6 => {
                let words = [
                    "1e300",
                    "-1",
                    "0",
                    "9223372036854775807",
                    "1e-300",
                    "nan",
                    "[",
                    "(",
                    "\"",
                    "{}",
                ];
                let word = words[rng.random_range(0..words.len())];
                bytes.splice(at..end, word.bytes());
            }
            7 => {
                let number: u64 = 1 << rng.random_range(0..64);
                bytes.splice(at..end, number.to_le_bytes());
            }
            _ => bytes[at..end].fill(rng.random_range(0..=255)),
        }
    }
    bytes
}
