//! What people do with a run: test it, predict, adapt, estimate, simulate; and programs with the JSON.

use crate::program::{Fixture, Place};
use serde_json::Value;

/// A slide whose friction is known and whose gain is not: linear, and learned in a moment.
const SLIDE: &str = r#"
name = "Slide"
[time]
step = 0.01
[inputs]
u = { unit = "V" }
[states.q]
derivative = "v"
start = 0
unit = "m"
[states.v]
derivative = "gain*u - drag*v"
start = 0
unit = "m/s"
[unknowns]
gain = { guess = 0.5, scale = 0.2, positive = true, unit = "m/s²/V" }
drag = { guess = 1, scale = 0.5, positive = true, unit = "1/s" }
[measurements]
q = { value = "q", unit = "m" }
[truth]
gain = 0.37
drag = 1.4
[simulation]
steps = 1500
inputs = { u = "2*sin(3*t) + sin(7*t)" }
"#;

/// A place with the model, a record of it and a fit to that, another start, and one with more drag.
fn slide() -> Place {
    static SLID: Fixture = Fixture::new();
    SLID.place(|place| {
        place.write("slide.toml", SLIDE);
        place.write("worn.toml", &SLIDE.replace("drag = 1.4", "drag = 1.6"));
        place.succeeds("simulate slide.toml --noise 3e-4 -o record.csv");
        place.succeeds("simulate slide.toml --noise 3e-4 --seed 2 --start v=0.4 -o other.csv");
        place.succeeds("simulate worn.toml --noise 3e-4 --seed 3 --start v=0.2 -o worn.csv");
        place.succeeds("fit slide.toml record.csv -q -o run");
    })
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The object that a verb prints, which must be what its schema says.
fn object(place: &Place, line: &str) -> Value {
    let verb = line.split(' ').next().unwrap();
    let schema = json(&place.succeeds(&format!("schema {verb}")).out);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let object = json(&place.succeeds(line).out);
    let mistakes: Vec<String> = validator
        .iter_errors(&object)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(mistakes.is_empty(), "{line}: {mistakes:?}\n{object:#}");
    object
}

#[test]
fn what_check_prints_is_what_its_schema_says() {
    let place = slide();
    let object = object(&place, "check slide.toml record.csv other.csv --json");
    assert_eq!(object["records"][1]["columns"][0]["role"], "time");
    assert!(object["states"][1]["sight"].is_string());
}

#[test]
fn a_test_record_is_scored_and_plays_no_part() {
    let place = slide();
    let fit = "fit slide.toml record.csv --test other.csv --warmup 200 -q";
    let object = object(&place, &format!("{fit} --json -o tested"));
    let test = &object["records"][1];
    assert_eq!(
        (&test["file"], &test["role"], &test["scored"]),
        (&"other.csv".into(), &"test".into(), &1301.into())
    );
    assert!(test["rmse"]["q"].as_f64().unwrap() < 0.01, "{test}");
    assert!(test["nrmse"]["truth_v"].as_f64().unwrap() < 0.01, "{test}");
    let weights = |run: &str| std::fs::read(place.path(&format!("{run}/weights.safetensors")));
    assert!(weights("run").unwrap() == weights("tested").unwrap());

    let shown = place.succeeds(&format!("{fit} -o again")).out;
    let expected = "other.csv, 1501 samples, test: 1301 samples predicted from the state that the first 200 show";
    assert!(shown.contains(expected), "{shown}");
    let refused = place.fails(
        1,
        "fit slide.toml record.csv --test other.csv --warmup 1501",
    );
    assert!(refused.contains("nothing is left to predict"), "{refused}");
}

#[test]
fn a_new_record_is_predicted_and_a_constant_adapted() {
    let place = slide();
    let plain = object(&place, "predict run worn.csv --warmup 600 --json");
    let adapted = object(
        &place,
        "predict run worn.csv --warmup 600 --adapt drag --json -o adapted.csv",
    );
    let error = |object: &Value| object["records"][0]["rmse"]["q"].as_f64().unwrap();
    assert!(
        error(&adapted) < 0.2 * error(&plain),
        "{plain:#} {adapted:#}"
    );
    let change = &adapted["records"][0]["adapted"][0];
    assert_eq!(change["name"], "drag");
    assert!(
        (change["before"].as_f64().unwrap() - 1.4).abs() < 0.02,
        "{change}"
    );
    assert!(
        (change["after"].as_f64().unwrap() - 1.6).abs() < 0.03,
        "{change}"
    );
    let shown = place
        .succeeds("predict run worn.csv --warmup 600 --adapt drag --force")
        .out;
    assert!(
        shown.contains("adapted on the first 600 samples\n    drag  "),
        "{shown}"
    );

    let table = place.read("adapted.csv");
    let header = "t,u,q,truth_q,truth_v,q.predicted,q.std,v.predicted,v.std,q.output,q.output_std";
    assert_eq!(table.lines().next(), Some(header));
    assert_eq!(table.lines().count(), 1 + 1501 - 600);

    let prediction = object(
        &place,
        "predict run record.csv other.csv --json -o both.csv",
    );
    let roles = [
        &prediction["records"][0]["role"],
        &prediction["records"][1]["role"],
    ];
    assert_eq!(roles, ["train", "test"]);
    assert_eq!(prediction["records"][0]["warmup"], 100);
    assert!(place.path("both_1.csv").is_file() && place.path("both_2.csv").is_file());

    let shown = place.fails(1, "predict run worn.csv --adapt drug");
    assert!(shown.contains("did you mean `drag`?"), "{shown}");
    let shown = place.fails(1, "predict run worn.csv");
    assert!(shown.contains("prediction.csv exists"), "{shown}");
    let shown = place.fails(1, "predict run worn.csv --warmup 5000 --force");
    assert!(shown.contains("bring a longer record"), "{shown}");
    let shown = place.fails(1, "predict nowhere worn.csv");
    assert!(
        shown.contains("there is no such folder of a fit"),
        "{shown}"
    );
}

#[test]
fn hidden_states_of_a_new_record_are_estimated() {
    let place = slide();
    let filter = object(&place, "estimate run other.csv --json");
    let smoother = object(
        &place,
        "estimate run other.csv --smooth --json -o smoothed.csv",
    );
    let entry = |object: &Value, key: &str| object["records"][0][key].clone();
    assert_eq!(
        (&filter["mode"], &smoother["mode"]),
        (&"filter".into(), &"smoother".into())
    );
    let consistency = entry(&filter, "consistency").as_f64().unwrap();
    assert!((0.5..2.0).contains(&consistency), "{filter:#}");
    let error = |object: &Value| entry(object, "nrmse")["truth_v"].as_f64().unwrap();
    assert!(
        error(&smoother) < error(&filter) && error(&filter) < 0.1,
        "{filter:#}"
    );
    let header = "t,u,q,truth_q,truth_v,q.filtered,q.std,v.filtered,v.std";
    assert_eq!(place.read("estimate.csv").lines().next(), Some(header));
    assert!(place.read("smoothed.csv").contains("v.smoothed,v.std"));

    // a record of another system, with the equations held to be exact
    let wrong = object(
        &place,
        "estimate run worn.csv --loosen 1e-3 --json -o wrong.csv",
    );
    assert!(
        entry(&wrong, "consistency").as_f64().unwrap() > 4.0,
        "{wrong:#}"
    );
    let warning = wrong["warnings"][0]["text"].as_str().unwrap();
    assert!(
        warning.contains("states and bands are not to be trusted"),
        "{warning}"
    );
}

#[test]
fn a_run_is_simulated_without_measurements() {
    let place = slide();
    place.succeeds("simulate slide.toml --start v=0.4 -o truth.csv");
    let record = place.read("truth.csv");
    let inputs = record.lines().map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{}\n", cells[..2].join(","))
    });
    place.write("inputs.csv", &inputs.collect::<String>());
    let line = "simulate run --input inputs.csv --start v=0.4 -o simulated.csv";
    let simulated = object(&place, &format!("{line} --json"));
    assert_eq!(simulated["samples"], 1501);
    let last = |name: &str, column: &str| -> f64 {
        let text = place.read(name);
        let at = text
            .lines()
            .next()
            .unwrap()
            .split(',')
            .position(|c| c == column)
            .unwrap();
        text.lines()
            .last()
            .unwrap()
            .split(',')
            .nth(at)
            .unwrap()
            .parse()
            .unwrap()
    };
    let (found, truth) = (
        last("simulated.csv", "q.predicted"),
        last("truth.csv", "truth_q"),
    );
    assert!(
        (found - truth).abs() < 5.0 * last("simulated.csv", "q.std"),
        "{found} {truth}"
    );
    assert!(place.fails(1, line).contains("--force"));
    let shown = place.fails(1, "simulate run");
    assert!(
        shown.contains("driven by u; give a file with --input"),
        "{shown}"
    );
    let shown = place.fails(1, "simulate slide.toml --input inputs.csv");
    assert!(shown.contains("no folder of one"), "{shown}");
    object(&place, "simulate slide.toml -o model.csv --json");
}

/// The model file that a run is exported to simulates as the run does; what exists stays.
#[test]
fn an_exported_model_file_is_the_run() {
    let place = slide();
    let object = object(&place, "export run --to toml -o learned.toml --json");
    assert_eq!(object["files"], serde_json::json!(["learned.toml"]));
    let start = "--start q=0.1,v=0.2";
    place.succeeds(&format!(
        "simulate learned.toml --steps 1500 {start} -o a.csv"
    ));
    place.succeeds(&format!("simulate run --input a.csv {start} -o b.csv"));
    let column = |file: &str, name: &str| -> Vec<f64> {
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let k = names.iter().position(|n| *n == name).unwrap();
        let cells = lines.map(|line| line.split(',').nth(k).unwrap());
        cells.map(|cell| cell.parse().unwrap()).collect()
    };
    for state in ["q", "v"] {
        let (a, b) = (
            column("a.csv", &format!("truth_{state}")),
            column("b.csv", &format!("{state}.predicted")),
        );
        assert_eq!(a.len(), 1501);
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 1e-13, "{state}: {a} {b}");
        }
    }
    let said = place.fails(1, "export run --to toml -o learned.toml");
    assert!(said.contains("--force"), "{said}");
    place.succeeds("export run --to toml -o learned.toml --force");
}

#[test]
fn a_run_is_exported_to_every_target() {
    let place = slide();
    for (target, files) in [
        ("c", vec!["slide.c", "slide.h"]),
        ("fmu", vec!["slide.fmu"]),
        ("js", vec!["slide.js"]),
        ("onnx", vec!["slide.onnx"]),
        ("python", vec!["slide.py"]),
    ] {
        let object = object(&place, &format!("export run --to {target} --json"));
        assert_eq!(object["files"], serde_json::json!(files));
        for file in files {
            assert!(place.path(file).exists(), "{file}");
        }
    }
    place.fails(2, "export run --to cobol");
}

/// The same data with and without drag: the one with drag is better, by a sentence and by its object; and its
/// constants have profiles, with a figure. Runs of other records are refused.
#[test]
fn models_are_compared_and_constants_profiled() {
    let place = slide();
    let without = SLIDE
        .replace(" - drag*v", "")
        .replace(
            "drag = { guess = 1, scale = 0.5, positive = true, unit = \"1/s\" }\n",
            "",
        )
        .replace("drag = 1.4\n", "");
    place.write("free.toml", &without);
    place.distrusts("fit free.toml record.csv -q --no-report -o free");
    let shown = place.succeeds("compare free run");
    assert!(
        shown.out.contains("run is better than free, beyond doubt"),
        "{}",
        shown.out
    );
    let found = object(&place, "compare free run --json");
    assert_eq!(found["models"][0]["run"], "run");
    assert_eq!(found["verdict"]["strength"], "decisive");
    place.succeeds("fit slide.toml other.csv -q --no-report -o other");
    let refused = place.fails(1, "compare run other");
    assert!(refused.contains("learned from other readings"), "{refused}");

    let found = object(&place, "profile run drag -o drag.svg --json -q");
    let drag = &found["constants"][0];
    assert!(drag["from"].as_f64().unwrap() < 1.4 + 0.1 && drag["to"].as_f64().unwrap() > 1.4 - 0.1);
    assert!(place.read("drag.svg").contains("rise of the objective"));
    assert!(
        place
            .fails(1, "profile run drga")
            .contains("did you mean `drag`?")
    );
}

/// A formula of the user is fitted in the place of the network; its model file is one that a fit takes, and
/// what exists stays.
#[test]
fn a_formula_takes_the_place_of_the_network() {
    let place = Place::new();
    let text = SLIDE.replace("drag*v", "friction(v)");
    let text = text.lines().filter(|line| !line.starts_with("drag"));
    let text = text
        .collect::<Vec<_>>()
        .join("\n")
        .replace("steps = 1500", "steps = 400");
    let truth = "[truth]\nv = \"0.37*u - 1.4*v\"";
    let text = text.replace("[truth]", truth) + "\n[networks.friction]\nlayers = [\"4 tanh\"]\n";
    place.write("slide.toml", &text);
    place.succeeds("simulate slide.toml --noise 3e-4 -o record.csv");
    place.succeeds("fit slide.toml record.csv -q --no-report --simplify=false -o run");
    let line = "distill run --candidates 1 --try viscous*v -o formulas --json -q";
    let object = object(&place, line);
    let formula = &object["formulas"][0];
    assert_eq!(formula["proposed"], true);
    let names = formula["constants"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|c| c["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"viscous"), "{names:?}");
    let text = place.read("formulas/1.toml");
    assert_eq!(formula["model"], text.as_str());
    assert!(!text.contains("[networks"), "{text}");
    let said = place.fails(1, "distill run -o formulas");
    assert!(said.contains("--force"), "{said}");
}

/// Springs of four plants, three records of each: what a plant's records share is found, and serves a new
/// record of a plant better than what the others say of it.
#[test]
fn records_of_a_group_share_a_constant() {
    const SPRING: &str = "name = \"Springs\"\n[time]\nstep = 0.05\nmethod = \"rk4\"\n[states.z]\nderivative = \"v\"\nstart = 1\n\
        [states.v]\nderivative = \"-k*z - c*v\"\nstart = 0\n[unknowns]\nk = { guess = 3, scale = 1, varies = \"group\" }\n\
        c = { guess = 0.5 }\n[measurements]\nz = \"z\"\n[truth]\nk = STIFFNESS\nc = 0.3\n[simulation]\nsteps = 100\n";
    let place = Place::new();
    let with_column = |file: &str, label: &str| {
        let text = place.read(file);
        let lines = text.lines().enumerate();
        let lines = lines.map(|(k, line)| {
            let cell = if k == 0 { "plant" } else { label };
            format!("{line},{cell}\n")
        });
        place.write(file, &lines.collect::<String>());
    };
    for (group, stiffness) in [("oslo", 3.2), ("bonn", 4.0), ("turin", 4.7), ("lyon", 3.6)] {
        place.write(
            "made.toml",
            &SPRING.replace("STIFFNESS", &stiffness.to_string()),
        );
        for k in 1..=4 {
            let file = format!("{group}-{k}.csv");
            let start = format!("z=0.{}{k} --start v={}", 4 + k, k as f64 - 2.5);
            place.succeeds(&format!(
                "simulate made.toml --start {start} --noise 0.01 --seed {k} -o {file}"
            ));
            with_column(&file, group);
        }
    }
    place.write("springs.toml", &SPRING.replace("STIFFNESS", "4"));
    let train = "oslo-1.csv oslo-2.csv oslo-3.csv bonn-1.csv bonn-2.csv bonn-3.csv turin-1.csv turin-2.csv \
                 turin-3.csv lyon-1.csv lyon-2.csv lyon-3.csv --map group=plant";
    let found = object(
        &place,
        &format!("fit springs.toml {train} -q --json -o run"),
    );
    let population = &found["unknowns"][0]["population"];
    assert_eq!(population["varies"], "group");
    let groups: Vec<&Value> = population["records"].as_array().unwrap().iter().collect();
    let labels: Vec<&str> = groups.iter().map(|g| g["file"].as_str().unwrap()).collect();
    assert_eq!(labels, ["oslo", "bonn", "turin", "lyon"]);
    assert_eq!(groups[2]["files"][1], "turin-2");
    assert!(
        (groups[2]["value"].as_f64().unwrap() - 4.7).abs() < 0.1,
        "{population}"
    );
    let shown = place.succeeds("report run -o page.html --force");
    assert!(
        place.read("page.html").contains("k in each group"),
        "{}",
        shown.out
    );
    let predict = |options: &str| {
        let line = format!("predict run oslo-4.csv --warmup 5 --force --json {options}");
        let found = object(&place, &line);
        let error = found["records"][0]["nrmse"]["z"].as_f64().unwrap();
        let mut warnings = found["warnings"].as_array().unwrap().iter();
        (error, warnings.any(|w| w["kind"] == "new-group"))
    };
    let (known, told) = predict("--map group=plant");
    assert_eq!(predict("--group oslo"), (known, false));
    assert_eq!(predict("--group oslo-4.csv=oslo"), (known, told));
    let (new, told) = predict("--group rome");
    assert!(known < 0.5 * new && told, "{known} {new}");
    place.succeeds("simulate run --steps 20 --group bonn -o bonn.csv");
    assert!(
        place
            .read("bonn.csv")
            .starts_with("t,z.predicted,z.std,v.predicted")
    );
    place.succeeds("export run --to js --group lyon -o lyon.js");
    // errors
    let said = place.fails(1, "fit springs.toml oslo-1.csv bonn-1.csv -q -o no");
    assert!(
        said.contains("has no group") && said.contains("--group"),
        "{said}"
    );
    let two = place
        .read("oslo-1.csv")
        .replacen("oslo", "rome", 3)
        .replacen("rome", "oslo", 2);
    place.write("two.csv", &two);
    let said = place.fails(
        1,
        "fit springs.toml two.csv bonn-1.csv --map group=plant -q -o no",
    );
    assert!(said.contains("line 4") && said.contains("'rome'"), "{said}");
    let said = place.fails(
        1,
        "fit springs.toml oslo-1.csv --group oslo-9.csv=oslo -q -o no",
    );
    assert!(said.contains("none of the records"), "{said}");
    place.write("slide.toml", SLIDE);
    place.succeeds("simulate slide.toml -o slide.csv");
    let said = place.fails(1, "fit slide.toml slide.csv --group a -q -o no");
    assert!(said.contains("varies by group"), "{said}");
    let said = place.fails(
        1,
        "fit springs.toml oslo-1.csv bonn-1.csv --map group=plant --solver joint -q -o no",
    );
    assert!(said.contains("how `k` varies"), "{said}");
}

/// Experiments for a constant: the best first, its input as a file that `latens simulate` takes, a picture; what exists
/// stays, and mistakes are told.
#[test]
fn the_next_experiment_is_proposed() {
    let place = slide();
    let line = "design run --input u=step:-9..9 --input u=sine:-1..1 --for drag --every 1,10 --candidates 4";
    let found = object(&place, &format!("{line} -o next --json -q"));
    assert_eq!(found["by"], "constants");
    let left = |k: usize| found["experiments"][k]["left"][0].as_f64().unwrap();
    assert_eq!(found["experiments"].as_array().unwrap().len(), 8);
    assert!(left(0) <= left(1) && left(0) < left(7) && left(7) < 1.0);
    assert!(found["experiments"][0]["every"] == 1 && found["experiments"][7]["every"] == 10);
    assert!(place.read("next/design.svg").starts_with("<svg"));
    assert!(
        place
            .read("next/1.csv")
            .starts_with("t,u,q.predicted,v.predicted\n")
    );
    place.succeeds("simulate run --input next/1.csv -o planned.csv");
    let shown = place.succeeds(&format!("{line} -q")).out;
    assert!(shown.starts_with("next: u: "), "{shown}");
    assert!(shown.contains("the first record once more"), "{shown}");
    let said = place.fails(1, &format!("{line} -o next"));
    assert!(said.contains("--force"), "{said}");
    let said = place.fails(1, "design run");
    assert!(
        said.contains("--start") && said.contains("--input"),
        "{said}"
    );
    let said = place.fails(1, "design run --start w=0..1");
    assert!(said.contains("`w`"), "{said}");
    let said = place.fails(1, "design run --start v=1..0");
    assert!(said.contains("no range"), "{said}");
}

/// A constant that varies has no state of its own where there is one record, or where it is fixed; and what was
/// learned from several is used on a new one.
#[test]
fn a_constant_that_varies_needs_several_records() {
    const SPRING: &str = "[time]\nstep = 0.05\nmethod = \"rk4\"\n[states.x]\nderivative = \"v\"\nstart = 1\n\
        [states.v]\nderivative = \"-k*x - c*v\"\nstart = 0\n[unknowns]\nk = { guess = 3, scale = 1, varies = \"record\" }\nc = { guess = 0.5 }\n\
        [measurements]\nx = \"x\"\n[truth]\nk = 4\nc = 0.3\n[simulation]\nsteps = 150\n";
    let place = Place::new();
    place.write("one.toml", SPRING);
    place.write("two.toml", &SPRING.replace("k = 4", "k = 4.5"));
    place.succeeds("simulate one.toml --noise 1% -o one.csv");
    place.succeeds("simulate two.toml --noise 1% -o two.csv");
    let constant = |line: &str| {
        let found = object(&place, &format!("{line} --force --json"));
        found["unknowns"]
            .as_array()
            .map_or(Value::Null, |all| all[0].clone())
    };
    let alone = constant("fit one.toml one.csv --test two.csv -o alone");
    assert!(alone["population"].is_null(), "{alone}");
    assert!((alone["value"].as_f64().unwrap() - 4.0).abs() < 0.1);
    place.succeeds("fit one.toml one.csv two.csv --fix k=4.2 -o fixed");
    let both = constant("fit one.toml one.csv two.csv -o both");
    let members = both["population"]["records"].as_array().unwrap();
    for (record, truth) in members.iter().zip([4.0, 4.5]) {
        assert!(
            (record["value"].as_f64().unwrap() - truth).abs() < 0.1,
            "{both}"
        );
    }
    place.succeeds("predict both two.csv");
    place.succeeds("report alone fixed -o page.html");
}
