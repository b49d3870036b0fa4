//! Long fits: settings that stay with the model, ensembles, Ctrl-C and what comes after it.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::program::{self, BINARY, Place};
use serde_json::Value;

/// A place with a model of a small network and a short record of it.
fn with_record() -> Place {
    let place = Place::new();
    place.succeeds("init harmonic-oscillator");
    let model = place.read("harmonic-oscillator.toml");
    let small = model.replace("[\"20 tanh\", \"20 tanh\"]", "[\"5 tanh\"]");
    assert_ne!(small, model);
    place.write("model.toml", &small);
    place.succeeds("simulate model.toml --steps 600 -o record.csv");
    place
}

fn facts(place: &Place, run: &str) -> Value {
    serde_json::from_str(&place.read(&format!("{run}/fit.json"))).unwrap()
}

#[test]
fn settings_stay_with_the_model_and_the_command_line_overrides_them() {
    let place = with_record();
    let model = place.read("model.toml");
    let section = "\n[fit]\nsolver = \"joint\"\npasses = 2\nseed = 7\nvalidate_tail = 0.25\n\
                   process_variance = { z = 1e-9 }\n";
    place.write("settled.toml", &(model.clone() + section));
    place.succeeds("fit settled.toml record.csv --seed 8 -q");
    let found = facts(&place, "run");
    let settings = &found["settings"];
    assert_eq!(settings["solver"], "joint");
    assert_eq!(
        (&settings["passes"], &settings["seed"]),
        (&2.into(), &8.into())
    );
    assert_eq!(settings["process_variance"]["z"], 1e-9);
    assert_eq!(found["records"][0]["samples"], 451);
    assert_eq!(found["records"][1]["role"], "validate");
    // the settings of a run are all there are
    place.succeeds("fit settled.toml record.csv --settings run -q -o again");
    assert_eq!(&facts(&place, "again")["settings"], settings);

    // the language knows no solvers: a name is looked up where they are
    place.write(
        "wrong.toml",
        &format!("{model}\n[fit]\nsolver = \"bacth\"\n"),
    );
    let shown = place.fails(1, "fit wrong.toml record.csv");
    assert!(
        shown.contains("`bacth` is not a solver\n") && shown.contains("solver = \"bacth\"\n"),
        "{shown}"
    );
    assert!(shown.contains("did you mean `batch`?"), "{shown}");

    place.write("wrong.toml", &(model + "\n[fit]\npass = 3\n"));
    let shown = place.fails(1, "fit wrong.toml record.csv");
    assert!(
        shown.starts_with("error: [fit] has no key `pass`"),
        "{shown}"
    );
    assert!(shown.contains("| pass = 3\n   | ^^^^\n"), "{shown}");
    assert!(shown.contains("did you mean `passes`?"), "{shown}");
}

#[test]
fn an_ensemble_keeps_its_members_as_runs() {
    let place = with_record();
    let shown = place.succeeds("fit model.toml record.csv --ensemble 3 --passes 2 --json -q");
    let object: Value = serde_json::from_str(&shown.out).unwrap();
    let members = object["ensemble"].as_array().unwrap();
    let seeds: Vec<u64> = members
        .iter()
        .map(|m| m["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds, [1, 2, 3]);
    for (k, member) in members.iter().enumerate() {
        let run = format!("run/{}", member["run"].as_str().unwrap());
        assert_eq!(run, format!("run/ensemble/{}", k + 1));
        let facts_of_member = facts(&place, &run);
        assert_eq!(facts_of_member["seed"], member["seed"]);
        assert_eq!(facts_of_member["records"][0]["nrmse"], member["nrmse"][0]);
        assert!(place.path(&format!("{run}/weights.safetensors")).is_file());
    }
    assert!(object["records"][0]["nrmse"]["truth_v"].as_f64().unwrap() < 0.1);
    // it is replaced like any run
    let again = "fit model.toml record.csv --ensemble 2 --passes 1 -q --force";
    let shown = place.succeeds(again).out;
    assert!(shown.contains("member with seed 2: "), "{shown}");
    assert!(shown.contains("their median together: "), "{shown}");
    assert!(!place.path("run/ensemble/3").exists());
    let refused = place.fails(2, "fit model.toml record.csv --ensemble 2 --starts 2");
    assert!(refused.contains("cannot be used with"), "{refused}");
}

#[test]
fn a_run_is_resumed_on_its_own_model_and_records_only() {
    let place = with_record();
    place.succeeds("fit model.toml record.csv --solver alternating --passes 2 -q");
    let finished = place.fails(1, "fit model.toml record.csv --resume run -q");
    assert!(finished.contains("this fit is finished"), "{finished}");
    let record = place.read("record.csv");
    place.write("other.csv", &record.replacen("0.001,", "0.0010,", 1));
    let shown = place.fails(1, "fit model.toml other.csv --resume run --passes 3");
    let expected = "error: other.csv is not what the fit was made of (record.csv; the checksums";
    assert!(shown.starts_with(expected), "{shown}");
    let shown = place.fails(
        1,
        "fit harmonic-oscillator.toml record.csv --resume run --passes 3",
    );
    assert!(shown.contains("another model"), "{shown}");
    let shown = place.fails(
        1,
        "fit model.toml record.csv --resume run --validate-tail 0.2",
    );
    assert!(shown.contains("1 record(s), these are 2"), "{shown}");
    let shown = place.fails(1, "fit model.toml record.csv --resume run --solver joint");
    assert!(shown.contains("was learned by alternating"), "{shown}");
    // more passes go on; the run is replaced by what comes of it
    place.succeeds("fit model.toml record.csv --resume run --passes 3 -q");
    assert_eq!(facts(&place, "run")["passes"].as_array().unwrap().len(), 3);
}

/// A fit on its way, and what it says.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

fn begin(place: &Place, options: &str) -> Running {
    let mut child = Command::new(BINARY)
        .current_dir(place.path("."))
        .args(["fit", "model.toml", "record.csv"])
        .args(options.split(' '))
        // one start after another, however many cores there are
        .env("RAYON_NUM_THREADS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    Running { child, lines }
}

impl Running {
    /// Waits for a line that starts so.
    fn until(&mut self, start: &str) {
        let said: Vec<String> = self
            .lines
            .by_ref()
            .map_while(Result::ok)
            .take_while(|l| !l.starts_with(start))
            .collect();
        assert!(
            self.child.try_wait().unwrap().is_none(),
            "no {start}: {said:?}"
        );
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args([name, &pid]).status();
        assert!(kill.unwrap().success());
    }

    /// Its end: exit code and what it said, out and err.
    fn ends(mut self) -> (Option<i32>, String, String) {
        let err: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let end = self.child.wait_with_output().unwrap();
        let out = String::from_utf8(end.stdout).unwrap();
        (end.status.code(), out, err.join("\n"))
    }
}

/// Ctrl-C writes what there is, and the same command with --resume goes on with it.
#[cfg(unix)]
#[test]
fn an_interrupted_fit_leaves_a_run_that_goes_on() {
    // none of these would end by itself within a test
    for (options, first) in [
        ("--solver alternating --passes 1000000", "pass 1 of"),
        ("--starts 1000", "1 of 1000 starts done"),
        ("--ensemble 1000", "1 of 1000 starts done"),
    ] {
        let place = with_record();
        let mut running = begin(&place, options);
        running.until(first);
        // `timeout -s INT` sends two at once: they are one
        running.signal("-INT");
        running.signal("-INT");
        let (code, out, err) = running.ends();
        assert_eq!(code, Some(130), "{err}");
        assert!(
            err.contains("stopping soon; what was learned so far will be written"),
            "{err}"
        );
        assert!(
            out.contains("fit written to run, with its page report.html\nstopped after "),
            "{out}"
        );
        assert!(
            out.contains("the same command with --resume run goes on"),
            "{out}"
        );
        let found = facts(&place, "run");
        assert_eq!(found["stopped"], true);
        assert!(!found["passes"].as_array().unwrap().is_empty());
        assert!(found["records"][0]["nrmse"]["z"].is_f64());
        assert!(place.path("run/states.csv").is_file());
        let names = [
            "harmonic-oscillator.toml",
            "model.toml",
            "record.csv",
            "run",
            "run.unfinished",
        ];
        assert_eq!(place.names(), names);
    }
}

/// The files that are all of what was learned.
fn learned(place: &Place, run: &str) -> Vec<Vec<u8>> {
    let names = ["weights.safetensors", "states.csv"];
    let files = names.map(|file| std::fs::read(place.path(&format!("{run}/{file}"))).unwrap());
    files.to_vec()
}

/// Whatever ends a fit, a signal that asks or one that does not, it goes on to the same bits: with
/// --resume, or with the same command again.
#[cfg(unix)]
#[test]
fn a_fit_that_was_ended_goes_on_to_the_same_bits() {
    let place = with_record();
    place.succeeds("simulate model.toml --steps 10000 --noise 1% -o record.csv --force");
    place.succeeds("fit model.toml record.csv -q -o whole");
    for (signal, again) in [
        ("-TERM", "--resume run"),
        ("-HUP", "--resume run"),
        ("-KILL", "--resume run"),
        ("-KILL", "-o run"),
    ] {
        if signal == "-HUP" && program::under_nohup() {
            continue;
        }
        let _ = std::fs::remove_dir_all(place.path("run"));
        let mut running = begin(&place, "-o run");
        // simpler structures are done by then
        running.until("stage 1: ");
        running.signal(signal);
        let (code, ..) = running.ends();
        assert_eq!(code, if signal == "-KILL" { None } else { Some(130) });
        let shown = place.fails(1, "predict run.unfinished record.csv");
        assert!(shown.contains("this folder holds no fit"), "{shown}");
        if signal == "-TERM" {
            assert_eq!(facts(&place, "run")["stopped"], true);
            let shown = place.fails(1, "fit model.toml record.csv --resume run --solver joint");
            assert!(
                shown.contains("was learned by batch, not by joint"),
                "{shown}"
            );
            // into another folder, which leaves this one as it is
            let other = "fit model.toml record.csv --resume run -o other";
            let shown = place.succeeds(other);
            assert!(shown.err.starts_with("going on from the checkpoints"));
            assert_eq!(learned(&place, "other"), learned(&place, "whole"));
        }
        place.succeeds(&format!("fit model.toml record.csv {again} -q"));
        assert_eq!(learned(&place, "run"), learned(&place, "whole"), "{signal}");
        assert!(!place.path("run.unfinished").exists());
    }
}

/// A checkpoint that somebody changed is not gone on with; --resume says so, and a fit that was begun
/// with other records is none of these.
#[cfg(unix)]
#[test]
fn a_checkpoint_that_was_changed_is_an_error() {
    let place = with_record();
    let mut running = begin(&place, "--solver alternating --passes 1000000");
    running.until("pass 1 of");
    // the lock, what was begun, and a pass
    while std::fs::read_dir(place.path("run.unfinished"))
        .unwrap()
        .count()
        < 3
    {
        std::thread::yield_now();
    }
    running.signal("-KILL");
    running.ends();
    place.write("other.csv", &(place.read("record.csv") + "# more\n"));
    let shown = place.fails(1, "fit model.toml other.csv --resume run -q");
    assert!(shown.contains("is not what the fit was made of"), "{shown}");
    let folder = place.path("run.unfinished");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let Some(last) = bytes.last_mut() else {
            continue;
        };
        *last ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let shown = place.fails(1, "fit model.toml record.csv --resume run -q");
        assert!(shown.contains("damaged, or was changed"), "{shown}");
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
    }
    // with fewer passes than it has done it begins again, and ends
    place.succeeds("fit model.toml record.csv --resume run --passes 1 -q");
    assert_eq!(place.names().last().unwrap(), "run");
}

/// The second process is refused before it works; the first is as if it had not come.
#[cfg(unix)]
#[test]
fn two_processes_do_not_write_one_folder() {
    let place = with_record();
    let mut running = begin(&place, "--solver alternating --passes 1000000");
    running.until("pass 1 of");
    for second in [
        "fit model.toml record.csv -q --force",
        "fit model.toml record.csv -q --resume run",
        "fit model.toml record.csv -q --solver node-lstm",
        "demo -o run",
    ] {
        let shown = place.fails(1, second);
        assert!(
            shown.contains("another process is writing"),
            "{second}: {shown}"
        );
    }
    place.succeeds("fit model.toml record.csv -q --passes 2 -o elsewhere");
    running.signal("-TERM");
    let (code, ..) = running.ends();
    assert_eq!(code, Some(130));
    assert_eq!(facts(&place, "run")["stopped"], true);
}

/// A fit that is written and says nothing has an exit code of its own.
#[test]
fn a_fit_that_is_not_to_be_trusted_says_so_by_its_exit_code() {
    let place = with_record();
    let shown = place.distrusts("fit model.toml record.csv --solver rm --passes 1 -q");
    assert!(
        shown.err.contains("1 start tried, none worked"),
        "{}",
        shown.err
    );
    let shown = place.fails(1, "fit model.toml record.csv --resume run --passes 2 -q");
    assert!(shown.contains("rm cannot go on with a fit"), "{shown}");
    assert!(place.path("run/fit.json").is_file());
}

/// A second Ctrl-C, later than the two that `timeout` sends, does not wait for a run to be written.
#[cfg(unix)]
#[test]
fn a_second_ctrl_c_ends_a_fit_at_once() {
    let place = with_record();
    place.succeeds("simulate harmonic-oscillator.toml --steps 20000 -o record.csv --force");
    place.write("model.toml", &place.read("harmonic-oscillator.toml"));
    // a pass of so long a record lasts, and the first Ctrl-C waits for its end
    let recursion = "--solver alternating --passes 1000000";
    let mut running = begin(&place, recursion);
    running.until("pass 1 of");
    running.signal("-INT");
    running.until("stopping soon");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    running.signal("-INT");
    let (code, out, err) = running.ends();
    assert_eq!((code, out.as_str()), (Some(130), ""), "{err}");
    assert!(!place.path("run").exists());
}
