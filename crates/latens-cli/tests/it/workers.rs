//! `latens fit --backend processes`: the bits of one process, also when a worker is killed.

use crate::program::Place;

/// A small network and nine short records of it: two groups of a sum.
fn with_records() -> (Place, String) {
    let place = Place::new();
    place.succeeds("init harmonic-oscillator");
    let model = place.read("harmonic-oscillator.toml");
    let small = model.replace("[\"20 tanh\", \"20 tanh\"]", "[\"3 tanh\"]");
    assert_ne!(small, model);
    place.write("model.toml", &small);
    let mut records = String::new();
    for seed in 1..=9 {
        let options = format!("--steps 60 --noise 2% --seed {seed} --start z=1.{seed}");
        place.succeeds(&format!("simulate model.toml {options} -o {seed}.csv"));
        records += &format!(" {seed}.csv");
    }
    (place, format!("fit model.toml{records} -q --no-report"))
}

/// What a fit found, bit for bit.
fn numbers(place: &Place, run: &str) -> Vec<Vec<u8>> {
    let names = ["weights.safetensors", "states_1.csv", "states_9.csv"];
    let read = |name: &&str| std::fs::read(place.path(&format!("{run}/{name}"))).unwrap();
    names.iter().map(read).collect()
}

#[test]
fn processes_come_to_the_bits_of_one() {
    let (place, fit) = with_records();
    place.succeeds(&format!("{fit} -o one"));
    place.succeeds(&format!("{fit} --backend processes --workers 2 -o two"));
    assert_eq!(numbers(&place, "two"), numbers(&place, "one"));
    let refused = place.fails(1, &format!("{fit} --solver joint --backend processes"));
    assert!(
        refused.contains("joint learns in one process: --backend is for --solver batch"),
        "{refused}"
    );
    let refused = place.fails(2, &format!("{fit} --workers 2"));
    assert!(refused.contains("--backend"), "{refused}");
}

/// One of the workers is killed while the fit is on its way, and another takes its place; none is left in
/// the end.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_killed_is_replaced() {
    use crate::program::BINARY;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// The processes that a process has started.
    fn children(pid: u32) -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        let tasks = tasks.into_iter().flatten().filter_map(Result::ok);
        let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
        let pids = lists.filter_map(Result::ok).collect::<String>();
        pids.split_whitespace()
            .map(|p| p.parse().unwrap())
            .collect()
    }

    let (place, fit) = with_records();
    place.succeeds(&format!("{fit} -o one"));
    let mut child = Command::new(BINARY)
        .current_dir(place.path("."))
        .args(fit.split_whitespace())
        .args("--backend processes --workers 2 -o two".split(' '))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut seen, mut killed) = (BTreeSet::new(), None);
    // what is kept of a stage says that it is on its way
    let unfinished = place.path("two.unfinished");
    let stages = || std::fs::read_dir(&unfinished).map_or(0, |files| files.count());
    let first = std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(1));
        stages()
    })
    .take(60_000)
    .find(|count| *count > 0);
    assert!(first.is_some(), "nothing was kept");
    while child.try_wait().unwrap().is_none() {
        let now = children(child.id());
        if killed.is_none() && now.len() == 2 && stages() > 1 {
            let victim = now[0].to_string();
            let kill = Command::new("kill").args(["-KILL", &victim]).status();
            killed = kill.unwrap().success().then_some(victim);
        }
        seen.extend(now);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    assert!(killed.is_some() && seen.len() >= 3, "{seen:?}");
    assert_eq!(numbers(&place, "two"), numbers(&place, "one"));
    let left = seen
        .iter()
        .filter(|pid| Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(left.count(), 0);
}
