//! How long a text record of a million rows takes to load, beside reading its bytes alone.
//!
//! `cargo bench -p latens --bench csv`

use std::io::Write;
use std::time::Instant;

use latens::record::Table;

const ROWS: usize = 1_000_000;
const REPEATS: usize = 5;

/// Least of several times, in seconds.
fn least(mut work: impl FnMut()) -> f64 {
    let once = || {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64()
    };
    std::iter::repeat_with(once)
        .take(REPEATS)
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder for the file");
    let path = folder.path().join("log.csv");
    let mut text = Vec::new();
    writeln!(text, "t,u,q,v,w,y").expect("memory");
    for k in 0..ROWS {
        let t = k as f64 * 1e-3;
        let [u, q, v] = [(3.0 * t).sin(), (0.7 * t).cos() * 12.5, t.sqrt() - 40.0];
        let w = if k % 10 == 0 {
            format!("{:.6}", u * q)
        } else {
            String::new()
        };
        writeln!(text, "{t:.3},{u},{q},{v:.6},{w},{:e}", u * 1e-9).expect("memory");
    }
    std::fs::write(&path, &text).expect("the file is written");
    let bytes = least(|| {
        std::hint::black_box(std::fs::read(&path).expect("the file is read"));
    });
    let table = least(|| {
        let table = Table::read(&path).expect("the file is read");
        assert_eq!(table.columns()[0].len(), ROWS);
    });
    println!(
        "{ROWS} rows of 6 columns, {:.0} MB: bytes alone {bytes:.3} s, as a table {table:.3} s ({:.0} times as long, {:.0} MB/s)",
        text.len() as f64 / 1e6,
        table / bytes,
        text.len() as f64 / 1e6 / table
    );
}
