//! Samples in, estimates out: cut, broken, interrupted, and gone on.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

use crate::program::{self, BINARY, Fixture, Place};
use serde_json::Value;

const SPRING: &str = "name = \"Spring\"\n[time]\nstep = 0.01\n[inputs]\nu = {}\n\
    [states.q]\nderivative = \"v\"\nstart = 1\n\
    [states.v]\nderivative = \"u - k*q\"\nstart = 0\n\
    [unknowns]\nk = { guess = 3, scale = 1, positive = true }\n\
    [measurements]\nq = \"q\"\n[truth]\nk = 4\n\
    [simulation]\nsteps = 400\ninputs = { u = \"sin(t)\" }\n";

/// A place with a run of a spring whose stiffness is not known, and a record of it.
fn with_run() -> Place {
    static RUN: Fixture = Fixture::new();
    RUN.place(|place| {
        place.write("spring.toml", SPRING);
        place.succeeds("simulate spring.toml --noise 0.01 -o record.csv");
        place.succeeds("fit spring.toml record.csv --passes 2 -q");
        place.succeeds("simulate spring.toml --noise 0.01 --seed 2 -o more.csv");
    })
}

fn start(place: &Place, line: &str) -> Child {
    let mut command = Command::new(BINARY);
    command.current_dir(place.path(".")).arg("stream");
    command.args(line.split_whitespace());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs `latens stream …` on some input.
fn stream(place: &Place, line: &str, input: &str) -> Output {
    let mut child = start(place, line);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // it may end before it has read everything
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let result = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    result
}

fn out(result: Output) -> String {
    let err = String::from_utf8(result.stderr).unwrap();
    assert!(result.status.success(), "{err}");
    String::from_utf8(result.stdout).unwrap()
}

fn err(result: &Output) -> String {
    String::from_utf8(result.stderr.clone()).unwrap()
}

/// The lines from `from` on, under the header.
fn part(text: &str, from: usize, to: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut part = lines[0].to_owned() + "\n";
    for line in &lines[from + 1..(to + 1).min(lines.len())] {
        part += &format!("{line}\n");
    }
    part
}

#[test]
fn cut_in_two_it_is_the_same_to_the_last_bit() {
    let place = with_run();
    let more = place.read("more.csv");
    let whole = "run --learn --forget 5000 --snapshot whole";
    let whole = out(stream(&place, whole, &more));
    assert!(whole.starts_with(
        "t,q.filtered,q.std,v.filtered,v.std,q.innovation,consistency,k.learned,k.std\n"
    ));
    assert_eq!(whole.lines().count(), 402);

    let first = "run --learn --forget 5000 --snapshot half --every 50";
    let first = out(stream(&place, first, &part(&more, 0, 130)));
    // how it learns is in the snapshot, which is replaced by the one that goes on from it
    let second = stream(&place, "half --snapshot half", &part(&more, 130, 1000));
    let both: Vec<String> = first
        .lines()
        .map(String::from)
        .chain(out(second).lines().skip(1).map(String::from))
        .collect();
    assert_eq!(both, whole.lines().collect::<Vec<_>>());
    for file in [
        "weights.safetensors",
        "stream.safetensors",
        "fit.json",
        "model.toml",
    ] {
        let bytes = |folder: &str| std::fs::read(place.path(&format!("{folder}/{file}"))).unwrap();
        assert!(bytes("half") == bytes("whole"), "{file}");
    }
    let facts: Value = serde_json::from_str(&place.read("whole/fit.json")).unwrap();
    assert_eq!(facts["stream"]["progress"]["samples"], 401);
    let learned = facts["unknowns"][0]["value"].as_f64().unwrap();
    let last = whole.lines().last().unwrap().split(',').nth(7).unwrap();
    assert_eq!(learned, last.parse::<f64>().unwrap());
    assert!((learned - 4.0).abs() < 0.2, "{learned}");
    // a snapshot is a run as any other, and no other run is replaced unasked
    place.succeeds("fit spring.toml record.csv --settings whole --passes 1 -q -o again");
    let refused = stream(&place, "run --snapshot again", &more);
    assert!(
        refused.status.code() == Some(1) && err(&refused).contains("--force"),
        "{}",
        err(&refused)
    );
    // but no fit, which learned from records, goes on from it
    let refused = place.fails(
        1,
        "fit spring.toml record.csv --resume whole --passes 9 -o other",
    );
    assert!(refused.contains("the snapshot of a stream"), "{refused}");
    // and its bands do not count what the fit did not know
    let shown = place.succeeds("predict whole more.csv");
    assert!(
        shown.err.contains("a stream has gone on learning"),
        "{}",
        shown.err
    );
}

#[test]
fn objects_in_objects_out_and_a_summary_for_programs() {
    let place = with_run();
    let lines = "{\"t\": 0, \"u\": 0, \"q\": 1}\n{\"t\": 0.01, \"u\": 0}\n{\"t\": 0.04, \"u\": 0, \"q\": 0.99}\n";
    let shown = out(stream(&place, "run", lines));
    let objects: Vec<Value> = shown
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[2]["t"], 0.04);
    assert!(objects[2]["states"]["v"].is_f64() && objects[2]["std"]["q"].is_f64());
    assert!(objects[1]["innovation"]["q"].is_null() && objects[1]["consistency"].is_null());
    assert!(out(stream(&place, "run --format csv", lines)).starts_with("t,q.filtered"));

    let shown = out(stream(
        &place,
        "run --json --learn",
        &place.read("more.csv"),
    ));
    let objects: Vec<Value> = shown
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(objects.len(), 402);
    let schema: Value = serde_json::from_str(&place.succeeds("schema stream").out).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for object in &objects {
        assert!(validator.is_valid(object), "{object}");
    }
    assert!(objects[400]["unknowns"]["k"]["std"].as_f64().unwrap() > 0.0);
    let summary = &objects[401]["summary"];
    assert_eq!(
        (&summary["samples"], &summary["broken"]),
        (&401.into(), &0.into())
    );
    let consistency = summary["consistency"].as_f64().unwrap();
    assert!((0.5..2.0).contains(&consistency), "{consistency}");
}

#[test]
fn broken_lines_are_skipped_or_fatal() {
    let place = with_run();
    let lines =
        "t,u,q\n0,0,1\n0.01,,1\n0.02,0,high\n0.03,0,\n0.036,0,1\n0.04,0,1\n0.03,0,1\n0.05,0,1\n";
    let result = stream(&place, "run", lines);
    let warnings = err(&result);
    for part in [
        "warning: standard input: line 3, column 2 (u): the input is missing",
        "warning: standard input: line 4, column 3 (q): 'high' is not a number",
        "warning: standard input: line 8: time 0.03 follows 0.04",
        "5 samples in ",
        "3 broken lines skipped",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let shown = out(result);
    let times: Vec<&str> = shown
        .lines()
        .map(|l| l.split(',').next().unwrap())
        .collect();
    assert_eq!(times, ["t", "0", "0.03", "0.036", "0.04", "0.05"]);

    let strict = stream(&place, "run --strict --snapshot kept", lines);
    assert_eq!(strict.status.code(), Some(1));
    assert!(
        err(&strict).contains("error: standard input: line 3"),
        "{}",
        err(&strict)
    );
    let facts: Value = serde_json::from_str(&place.read("kept/fit.json")).unwrap();
    assert_eq!(facts["stream"]["progress"]["samples"], 1);

    let nameless = stream(&place, "run", "t,q\n0,1\n");
    assert_eq!(nameless.status.code(), Some(1));
    assert!(
        err(&nameless).contains("no column for input u"),
        "{}",
        err(&nameless)
    );
}

/// A time far in the future is one broken line, and a snapshot that cannot be written is tried again:
/// the stream answers every other sample.
#[test]
fn nothing_but_a_broken_sample_goes_unanswered() {
    let place = with_run();
    let mut child = start(&place, "run --learn --snapshot kept --every 2");
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut feed = |lines: &str, answered: usize| {
        stdin.write_all(lines.as_bytes()).unwrap();
        for _ in 0..answered {
            answers.next().unwrap().unwrap();
        }
    };
    feed("t,u,q\n0,0,1\n", 2);
    feed("0.01,0,1\n", 1);
    while !place.path("kept/fit.json").exists() {
        std::thread::yield_now();
    }
    // what is not ours is never replaced
    place.write("kept/notes.txt", "mine");
    feed("5000000,0,1\n", 0);
    feed("0.02,0,1\n0.03,0,1\n0.04,0,1\n0.05,0,1\n0.06,0,1\n", 5);
    std::fs::remove_file(place.path("kept/notes.txt")).unwrap();
    drop(stdin);
    let result = child.wait_with_output().unwrap();
    let said = err(&result);
    assert!(result.status.success(), "{said}");
    for part in [
        "line 4: time 5000000 is more than 10000 sample times after 0.01",
        "holds `notes.txt`, which is not part of a fit",
        "the stream goes on",
        "7 samples in",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let facts: Value = serde_json::from_str(&place.read("kept/fit.json")).unwrap();
    assert_eq!(facts["stream"]["progress"]["samples"], 7);
    assert!(!place.path("kept.unfinished").exists());
}

/// Ctrl-C, SIGTERM and SIGHUP while it waits for a line, and a reader that has had enough: all leave the
/// snapshot.
#[cfg(unix)]
#[test]
fn interrupted_or_left_alone_it_keeps_what_it_learned() {
    let place = with_run();
    let samples = |folder: &str| {
        let facts = place.read(&format!("{folder}/fit.json"));
        let facts: Value = serde_json::from_str(&facts).unwrap();
        facts["stream"]["progress"]["samples"].as_u64().unwrap()
    };
    let signals = ["-INT", "-TERM", "-HUP"].into_iter();
    for signal in signals.filter(|signal| *signal != "-HUP" || !program::under_nohup()) {
        let mut child = start(&place, "run --learn --snapshot stopped --force");
        let mut stdin = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in part(&place.read("more.csv"), 0, 3).lines() {
            stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        for _ in 0..4 {
            answers.next().unwrap().unwrap();
        }
        let other = stream(&place, "run --snapshot stopped --force", "");
        assert!(err(&other).contains("another process is writing"));
        let kill = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(samples("stopped"), 3);
        assert!(!place.path("stopped.unfinished").exists());
        std::fs::remove_dir_all(place.path("stopped")).unwrap();
    }

    let mut child = start(&place, "run --snapshot left");
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let _ = stdin.write_all(place.read("more.csv").as_bytes());
    drop(stdin);
    let result = child.wait_with_output().unwrap();
    assert!(
        result.status.success() && result.stderr.is_empty(),
        "{}",
        err(&result)
    );
    assert!(samples("left") >= 1);
}
