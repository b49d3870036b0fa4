//! How fast a stream is, from the outside: lines into the program, lines out of it, pipes and text
//! included. The system is Hodgkin and Huxley's neuron with its network of 741 parameters.
//!
//! - latency: a line is written, its answer awaited, the next written;
//! - rows per second: lines are written as fast as they are taken;
//! - with `--hour`, the memory of the program over 3.6 million rows, an hour at 1 kHz.
//!
//! The run is fitted first, which takes about a minute; `LATENS_RUN` names one that is there.
//!
//! `cargo bench -p latens-cli --bench stream [-- --hour]`

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

const LATENS: &str = env!("CARGO_BIN_EXE_latens");
/// Rows that warm up.
const FIRST: usize = 1000;
const LATENCY_ROWS: usize = 20_000;
const HOUR: usize = 3_600_000;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let record = folder.path().join("hh.csv");
    latens(&["simulate", "hodgkin-huxley", "-o", text(&record)]);
    let run = std::env::var_os("LATENS_RUN").map(PathBuf::from);
    let run = run.unwrap_or_else(|| {
        let run = folder.path().join("run");
        latens(&[
            "fit",
            "hodgkin-huxley",
            text(&record),
            "-q",
            "-o",
            text(&run),
        ]);
        run
    });
    let lines = std::fs::read_to_string(&record).expect("the record");
    let lines: Vec<&str> = lines.split_inclusive('\n').collect();
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>12}",
        "", "50 %", "99 %", "longest", "rows/s"
    );
    for learn in [false, true] {
        let [median, most, longest] = latency(&run, learn, &lines);
        let rows = rate(&run, learn, &lines);
        let name = if learn { "learning" } else { "plain" };
        println!("{name:>8} {median:>7.0} µs {most:>7.0} µs {longest:>7.0} µs {rows:>12.0}");
    }
    if std::env::args().any(|a| a == "--hour") {
        for learn in [false, true] {
            hour(&run, learn);
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn latens(arguments: &[&str]) {
    let mut command = Command::new(LATENS);
    command.args(arguments).stdout(Stdio::null());
    assert!(command.status().expect("latens runs").success());
}

fn stream(run: &Path, learn: bool, input: Stdio) -> Child {
    let mut command = Command::new(LATENS);
    command
        .arg("stream")
        .arg(run)
        .arg(format!("--learn={learn}"));
    let command = command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().expect("latens runs")
}

fn ends(child: &mut Child) -> (ChildStdin, BufReader<ChildStdout>) {
    let input = child.stdin.take().expect("its input");
    (
        input,
        BufReader::new(child.stdout.take().expect("its output")),
    )
}

/// Median, 99th percentile and maximum in microseconds.
fn latency(run: &Path, learn: bool, lines: &[&str]) -> [f64; 3] {
    let mut child = stream(run, learn, Stdio::piped());
    let (mut input, mut output) = ends(&mut child);
    let mut answer = String::new();
    input.write_all(lines[0].as_bytes()).expect("the header");
    let mut times = vec![];
    for (k, line) in lines[1..=FIRST + LATENCY_ROWS].iter().enumerate() {
        let started = Instant::now();
        input.write_all(line.as_bytes()).expect("a line in");
        // the first answer has its header before it
        for _ in 0..1 + usize::from(k == 0) {
            answer.clear();
            output.read_line(&mut answer).expect("a line out");
        }
        if k >= FIRST {
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    drop(input);
    assert!(child.wait().expect("latens ends").success());
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[(part * (times.len() - 1) as f64).round() as usize];
    [at(0.5), at(0.99), at(1.0)]
}

/// Rows per second.
fn rate(run: &Path, learn: bool, lines: &[&str]) -> f64 {
    let mut child = stream(run, learn, Stdio::piped());
    let (mut input, output) = ends(&mut child);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let written = lines.iter().try_for_each(|l| input.write_all(l.as_bytes()));
            written.expect("lines in");
        });
        let mut answers = output.lines().skip(FIRST);
        answers.next();
        let started = Instant::now();
        let rows = answers.count();
        assert_eq!(rows, lines.len() - FIRST - 1);
        rows as f64 / started.elapsed().as_secs_f64()
    })
}

/// Memory over an hour's worth of rows.
fn hour(run: &Path, learn: bool) {
    let steps = (HOUR - 1).to_string();
    let mut simulation = Command::new(LATENS);
    simulation.args(["simulate", "hodgkin-huxley", "--steps", &steps]);
    let mut source = simulation
        .stdout(Stdio::piped())
        .spawn()
        .expect("latens runs");
    let input = source.stdout.take().expect("its output");
    let mut child = stream(run, learn, input.into());
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let mut rows = 0;
    for line in output.lines().skip(1) {
        rows += 1;
        let line = line.expect("a line out");
        if [FIRST, HOUR / 2, HOUR - 1].contains(&rows) {
            println!(
                "{} row {rows}: {}; {line}",
                if learn { "learning" } else { "plain" },
                resident(child.id())
            );
        }
    }
    assert_eq!(rows, HOUR);
    assert!(child.wait().expect("latens ends").success());
    assert!(source.wait().expect("latens ends").success());
}

/// `VmRSS` of a process, where the system tells.
fn resident(id: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS"));
    line.map_or("VmRSS unknown".into(), |l| {
        l.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}
