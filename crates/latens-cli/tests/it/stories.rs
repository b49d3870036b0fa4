//! What people do with the program, from the first file to the run folder, mistakes included.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::program::{BINARY, Place};

/// A place with a model and a short record of it.
fn with_record() -> Place {
    let place = Place::new();
    place.succeeds("init harmonic-oscillator");
    place.succeeds("simulate harmonic-oscillator.toml --steps 600 -o record.csv");
    place
}

#[test]
fn from_a_built_in_system_to_a_run() {
    let place = with_record();
    let shown =
        place.succeeds("fit harmonic-oscillator.toml record.csv --passes 2 --seed 3 -o run");
    assert!(shown.out.contains("v  m/s  hidden state"), "{}", shown.out);
    assert!(
        shown
            .out
            .ends_with("fit written to run, with its page report.html\n"),
        "{}",
        shown.out
    );
    assert_eq!(
        shown.err.lines().count(),
        3,
        "one line per stage, one for the refinement: {}",
        shown.err
    );
    assert!(
        shown.err.starts_with("stage 1: free-run error "),
        "{}",
        shown.err
    );

    let model = place.read("run/model.toml");
    assert_eq!(model, place.read("harmonic-oscillator.toml"));
    let facts: serde_json::Value = serde_json::from_str(&place.read("run/fit.json")).unwrap();
    assert_eq!(facts["settings"]["passes"], 2);
    assert_eq!(facts["solver"], "batch");
    assert_eq!(facts["seed"], 3);
    assert_eq!(
        facts["command"],
        "latens fit harmonic-oscillator.toml record.csv --passes 2 --seed 3 -o run"
    );
    assert_eq!(facts["passes"].as_array().unwrap().len(), 2);
    assert_eq!(facts["records"][0]["sha256"].as_str().unwrap().len(), 64);
    assert!(facts["records"][0]["nrmse"]["truth_v"].as_f64().unwrap() < 0.1);
    let states = place.read("run/states.csv");
    assert!(states.starts_with("t,z,truth_z,truth_v,z.smoothed,z.std,"));
    assert_eq!(states.lines().count(), 602);
    assert!(place.path("run/weights.safetensors").is_file());
    assert_eq!(
        place.names(),
        ["harmonic-oscillator.toml", "record.csv", "run"]
    );
}

#[test]
fn a_run_repeats_bit_for_bit_from_its_settings() {
    let place = with_record();
    place.succeeds(
        "fit harmonic-oscillator record.csv --passes 2 --parameter-variance 0.5 --hidden-noise 0.2 -q -o first",
    );
    place.succeeds("fit harmonic-oscillator record.csv --settings first -q -o second");
    let weights = |run: &str| fs::read(place.path(&format!("{run}/weights.safetensors"))).unwrap();
    assert!(weights("first") == weights("second"));
    let refused = place.fails(
        2,
        "fit harmonic-oscillator record.csv --settings first --solver joint",
    );
    assert!(refused.contains("cannot be used with"), "{refused}");
}

#[test]
fn json_is_one_object_and_progress_stays_apart() {
    let place = with_record();
    place.succeeds("simulate harmonic-oscillator --steps 600 --held-out 1 -o second.csv");
    let shown = place.succeeds("fit harmonic-oscillator record.csv second.csv --passes 1 --json");
    let object: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(object["run"], "run");
    assert_eq!(object["solver"], "batch");
    assert_eq!(object["seed"], 1);
    assert!(object["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(object["warnings"].as_array().unwrap().len(), 0);
    let second = &object["records"][1];
    assert_eq!(
        (&second["file"], &second["role"]),
        (&"second.csv".into(), &"train".into())
    );
    assert_eq!(second["scored"], 601);
    assert!(second["rmse"]["z"].is_f64() && second["nrmse"]["truth_v"].is_f64());
    assert!(object["evidence"].is_f64());
    assert!(object["determined"].as_f64().unwrap() <= object["directions"].as_f64().unwrap());
    assert!(object["noise"]["z"]["of_range"].as_f64().unwrap() < 0.01);
    assert!(place.path("run/states_1.csv").is_file() && place.path("run/states_2.csv").is_file());

    let systems = place.succeeds("systems --json").out;
    let systems: serde_json::Value = serde_json::from_str(&systems).unwrap();
    assert_eq!(systems.as_array().unwrap().len(), 6);
    let schema = place.succeeds("schema").out;
    assert!(serde_json::from_str::<serde_json::Value>(&schema).is_ok());
}

#[test]
fn a_mistake_in_the_model_is_shown_where_it_stands() {
    let place = with_record();
    let model = place.read("harmonic-oscillator.toml");
    place.write(
        "wrong.toml",
        &model.replace("acceleration(z, v)", "acceleration(z, w)"),
    );
    let shown = place.fails(1, "fit wrong.toml record.csv");
    assert!(shown.starts_with("error: unknown name `w`"), "{shown}");
    assert!(shown.contains("wrong.toml:15:31"), "{shown}");
    assert!(
        shown.contains(
            "| derivative = \"acceleration(z, w)\"\n   |                               ^\n"
        ),
        "{shown}"
    );
    let shown = place.fails(1, "fit wrog.toml record.csv");
    assert!(shown.contains("did you mean wrong.toml?"), "{shown}");
    let shown = place.fails(1, "init harmonic-oscilator");
    assert!(
        shown.contains("did you mean harmonic-oscillator?"),
        "{shown}"
    );
}

#[test]
fn faults_of_the_data_name_line_and_column() {
    let place = with_record();
    let record = place.read("record.csv");
    let mut lines: Vec<&str> = record.lines().collect();
    lines[4] = "0.003,high,1,1";
    place.write("text.csv", &lines.join("\n"));
    let shown = place.fails(1, "fit harmonic-oscillator text.csv");
    assert!(
        shown.starts_with("error: text.csv: line 5, column 2 (z): 'high' is not a number"),
        "{shown}"
    );
    let shown = place.fails(1, "fit harmonic-oscillator none.csv");
    assert!(
        shown.starts_with("error: there is no file none.csv"),
        "{shown}"
    );
}

#[test]
fn columns_are_mapped() {
    let place = with_record();
    let record = place.read("record.csv");
    place.write(
        "log.csv",
        &record.replacen("t,z,truth_z,truth_v", "clock,position,a,b", 1),
    );
    let shown = place.fails(1, "fit harmonic-oscillator log.csv");
    assert!(
        shown.contains("no column for measurement z") && shown.contains("--map z="),
        "{shown}"
    );
    let map = "--map z=position --map t=clock";
    place.succeeds(&format!(
        "fit harmonic-oscillator log.csv {map} --passes 1 -q"
    ));
    let states = place.read("run/states.csv");
    assert!(
        states.starts_with("t,z,z.smoothed,"),
        "no truth without its column"
    );
}

#[test]
fn nothing_is_overwritten_unasked() {
    let place = with_record();
    assert!(
        place
            .fails(1, "init harmonic-oscillator")
            .contains("--force")
    );
    place.succeeds("init harmonic-oscillator --force");
    assert!(
        place
            .fails(1, "simulate harmonic-oscillator -o record.csv")
            .contains("--force")
    );
    let fit = "fit harmonic-oscillator record.csv --passes 1 -q";
    place.succeeds(fit);
    let before = place.read("run/fit.json");
    assert!(place.fails(1, fit).contains("--force"));
    assert_eq!(place.read("run/fit.json"), before);
    place.succeeds(&format!("{fit} --seed 2 --force"));
    assert_ne!(place.read("run/fit.json"), before);

    fs::create_dir(place.path("mine")).unwrap();
    place.write("mine/notes.txt", "keep");
    let shown = place.fails(1, &format!("{fit} -o mine --force"));
    assert!(shown.contains("holds no fit"), "{shown}");
    assert_eq!(place.read("mine/notes.txt"), "keep");
}

#[test]
fn noise_and_starts_are_by_name_or_for_all() {
    let place = Place::new();
    let first = |options: &str| {
        let shown = place.succeeds(&format!("simulate hodgkin-huxley --steps 1 {options}"));
        let row = shown.out.lines().nth(1).unwrap().to_owned();
        row.split(',')
            .map(|c| c.parse::<f64>().unwrap())
            .collect::<Vec<_>>()
    };
    // t, I, V, n, m, truth_V, …
    let plain = first("--start V=-60,h=0.5");
    assert_eq!((plain[2], plain[5], plain[8]), (-60.0, -60.0, 0.5));
    let noisy = first("--noise V=0.5");
    assert!(noisy[2] != noisy[5] && noisy[3] == noisy[6]);
    assert_eq!(noisy, first("--noise V=0.5 --seed 1"));
    assert_ne!(noisy, first("--noise V=0.5 --seed 2"));
    let relative = first("--noise 1%");
    assert!((2..5).all(|k| relative[k] != relative[k + 3]));
    let shown = place.fails(1, "simulate hodgkin-huxley --noise U=1");
    assert!(shown.contains("there is no measurement `U`"), "{shown}");
    place.fails(2, "simulate hodgkin-huxley --noise=-1");
    place.fails(2, "simulate hodgkin-huxley --steps 0");
}

#[test]
fn a_step_that_differs_from_the_models_is_a_warning() {
    let place = with_record();
    let model = place.read("harmonic-oscillator.toml");
    place.write("coarse.toml", &model.replace("step = 1e-3", "step = 0.002"));
    let shown = place.succeeds("fit coarse.toml record.csv --passes 1 --json -q");
    assert!(
        shown.err.starts_with("warning: the step of record.csv is"),
        "{}",
        shown.err
    );
    let object: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(object["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn a_model_that_learned_nothing_is_called_so() {
    let place = Place::new();
    place.write(
        "wrong.toml",
        "[time]\nstep = 0.1\n[states.x]\nderivative = \"1\"\n[states.v]\nderivative = \"net(x)\"\n\
         [networks.net]\nlayers = [\"2 tanh\"]\n[measurements]\nx = \"x\"\n",
    );
    let rows = (0..200).map(|k| format!("{}\n", -0.1 * f64::from(k)));
    place.write("falling.csv", &format!("x\n{}", rows.collect::<String>()));
    let shown = place.distrusts("fit wrong.toml falling.csv --passes 1 -q");
    let expected = "warning: v is unobservable: nothing that is measured depends on it";
    assert!(shown.err.starts_with(expected), "{}", shown.err);
    let expected = "warning: the free run over falling.csv predicts x no better than a constant";
    assert!(shown.err.contains(expected), "{}", shown.err);
    assert!(place.read("run/fit.json").contains("\"poorly-seen\""));
    let expected = " starts tried, none worked (";
    assert!(shown.err.contains(expected), "{}", shown.err);
    let failed = "start with seed 3: ";
    assert!(shown.out.contains(failed), "{}", shown.out);
    // what nothing measured feels is not called poorly determined, but not seen
    let unseen = "of v the records say nothing by themselves";
    assert!(shown.out.contains(unseen), "{}", shown.out);
}

#[test]
fn a_check_says_what_a_record_can_tell() {
    let place = with_record();
    let record = place.read("record.csv");
    let rows = record.lines().enumerate().map(|(k, line)| match k {
        0 => {
            line.replacen("t,z", "t,position,", 1)
                .replace(",,", ",note,")
                + "\n"
        }
        // every third position is missing
        k => {
            let mut cells: Vec<&str> = line.split(',').collect();
            cells.insert(2, "text");
            cells[1] = if k % 3 == 0 { "" } else { cells[1] };
            cells.join(",") + "\n"
        }
    });
    place.write("log.csv", &rows.collect::<String>());
    let model = "harmonic-oscillator.toml";
    let shown = place
        .succeeds(&format!("check {model} log.csv --map z=position"))
        .out;
    for part in [
        "log.csv: 601 samples over 0.6000 s, one every",
        "position  measurement z",
        "33 %",
        "not used: note\n",
        "acceleration(z, v) moves in 2 of 2 directions",
        "in short\n  v is well determined\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = place.succeeds(&format!("check {model} log.csv --map z=position --json"));
    assert!(shown.err.is_empty());
    let object: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(object["records"][0]["columns"][1]["column"], "position");
    assert_eq!(object["records"][0]["columns"][1]["missing"], 200);
    assert_eq!(object["states"][1]["sight"], "well");
    assert!(!object["moments"].as_array().unwrap().is_empty());
    assert_eq!(object["warnings"].as_array().unwrap().len(), 0);
    let shown = place.fails(1, &format!("check {model} log.csv"));
    assert!(shown.contains("no column for measurement z"), "{shown}");
    place.write(
        "blind.toml",
        &place
            .read(model)
            .replace("derivative = \"v\"", "derivative = \"-z\""),
    );
    let shown = place.succeeds("check blind.toml record.csv").out;
    assert!(
        shown.contains("v is unobservable: nothing that is measured"),
        "{shown}"
    );
    assert_eq!(
        place.names(),
        ["blind.toml", model, "log.csv", "record.csv"],
        "a check writes nothing"
    );
}

#[test]
fn divergence_has_an_exit_code_of_its_own() {
    let place = Place::new();
    place.write(
        "blow-up.toml",
        "[time]\nstep = 1\n[states.x]\nderivative = \"x^2\"\nstart = 10\n[measurements]\nx = \"x\"\n",
    );
    let shown = place.fails(3, "simulate blow-up.toml");
    assert!(
        shown.starts_with("error: the simulation diverged at step"),
        "{shown}"
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(BINARY)
        .args(["simulate", "harmonic-oscillator", "--steps", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "t,z,truth_z,truth_v\n");
    let result = child.wait_with_output().unwrap();
    assert!(result.status.success() && result.stderr.is_empty());
}

#[test]
fn the_demo_tells_what_it_learned() {
    let place = Place::new();
    let shown = place.succeeds("demo harmonic-oscillator --passes 2").out;
    for part in [
        "What is known\n  z' = v\n",
        "nobody measured v",
        "learned v'",
        "A model trained on one trajectory",
        "v' = -omega^2*z",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(place.fails(1, "demo emps").contains("no [truth] section"));
    // it leaves a run with its page, and replaces its own but nobody else's
    assert!(place.path("latens-demo/report.html").is_file());
    place.succeeds("demo harmonic-oscillator --passes 1");
    place.succeeds("fit harmonic-oscillator latens-demo/states.csv --passes 1 -o mine -q");
    let refused = place.fails(1, "demo harmonic-oscillator --passes 1 -o mine");
    assert!(refused.contains("holds a fit already"), "{refused}");
}

/// Loggers write dates, decimal days, other names and commas at the end of lines; one file came from
/// a colleague, one through a pipe.
#[test]
fn a_log_is_read_as_people_write_it() {
    let place = Place::new();
    place.write(
        "tank.toml",
        "[time]\nunit = \"h\"\nstep = 0.5\n[states]\nq = { derivative = \"-k*q\", start = 1 }\n\
         [unknowns]\nk = { guess = 1 }\n[measurements]\nq = \"q\"\n",
    );
    let q = |k: usize| (-0.05 * k as f64).exp();
    let log = |head: &str, line: &dyn Fn(usize) -> String| {
        let lines = (0..40).map(|k| format!("{}\n", line(k)));
        format!("{head}\n{}", lines.collect::<String>())
    };
    let clock = |k: usize| format!("{:02}:{:02}", 2 + k / 2, 30 * (k % 2));
    let dates = |k| format!("2026-11-16T{}:00+01:00,{},", clock(k), q(k));
    place.write("dates.csv", &log("logged,q,", &dates));
    let named = |k| format!("11/16/2026 {};{}", clock(k), q(k));
    place.write("named.csv", &log("Time;level", &named));
    let minutes = |k: usize| format!("{},{}", 30 * k, q(k));
    place.write("minutes.csv", &log("t,q", &minutes));
    for line in [
        "check tank.toml dates.csv",
        "check tank.toml named.csv:q=level",
        "check tank.toml - < dates.csv",
    ] {
        let shown = place.succeeds(line).out;
        assert!(
            shown.contains("40 samples over 19.50 h, one every 0.5000 h"),
            "{shown}"
        );
        assert!(!shown.contains("the step of"), "{shown}");
    }
    let shown = place.succeeds("check tank.toml minutes.csv").out;
    assert!(
        shown.contains("60 times as long, as if its times were counted in another unit"),
        "{shown}"
    );
    let shown = place.fails(1, "check tank.toml named.csv:q=Level");
    assert!(shown.contains("did you mean level?"), "{shown}");
}
