//! A user's mistakes in a model file: each is found, at its place, with advice, and alone.

use crate::mistakes::{expect, expect_in, mistakes};
use latens_model::Model;

#[test]
fn what_a_model_must_have() {
    expect("§", &[("the file is empty", "latens init")]);
    expect("§ \n\n", &[("the file is empty", "latens init")]);
    expect(
        "§[measurements]\ny = \"t\"\n",
        &[("the model has no states", "[states.x]")],
    );
    expect(
        "[states]\n§x = { start = 1 }\n[measurements]\ny = \"x\"\n",
        &[("state `x` has no equation", "derivative")],
    );
    expect(
        "§[states.x]\nderivative = \"-x\"\n",
        &[("the model measures nothing", "[measurements]")],
    );
    expect(
        "[states.x]\nderivative = \"-x\"\n[measurements]\n§y = { unit = \"m\" }\n",
        &[("measurement `y` measures nothing", "value = ")],
    );
    expect(
        "[constants]\nk = 1\n[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"§2*k\"\n",
        &[(
            "measurement `y` depends on no state",
            "expression of the states",
        )],
    );
    expect_in(
        "[networks.§f]\nlayers = [\"3 tanh\"]",
        "network `f` is never called",
        "derivative of a state",
    );
    // called, but only by what nobody uses
    expect_in(
        "[networks.§f]\nlayers = [\"3 tanh\"]\n[expressions]\ne = \"f(x)\"",
        "network `f` is never called",
        "derivative of a state",
    );
}

#[test]
fn an_unknown_must_be_used() {
    let unused = |more: &str| {
        let text = format!("[unknowns]\n§p = {{ guess = 1 }}\n{more}");
        expect_in(&text, "unknown `p` is never used", "derivative of a state");
    };
    unused("");
    // used, but only by what is not learned: nobody, the truth, an input of the simulation
    unused("[expressions]\ne = \"p*x\"");
    unused("[truth]\np = 2\nx = \"-p*x\"");
    unused("[inputs]\nu = \"\"\n[truth]\np = 2\n[simulation.inputs]\nu = \"p*t\"");
    // by way of an expression is a use
    let text = "[unknowns]\np = { guess = 1 }\n[expressions]\ne = \"p*x\"\n\
                [states.x]\nderivative = \"e\"\n[measurements]\ny = \"x\"\n";
    Model::from_text("m.toml", text).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn follow_up_mistakes_are_not_reported() {
    // an equation that cannot be read is not a missing one, and may hold the only call
    expect(
        "[states.x]\nderivative = \"f(x) +§\"\n[networks.f]\nlayers = [\"3 tanh\"]\n[measurements]\ny = \"x\"\n",
        &[("ends where a value", "complete it")],
    );
    expect(
        "[states.x]\nderivative = \"p*§]\"\n[unknowns]\np = { guess = 1 }\n[measurements]\ny = \"x\"\n",
        &[("`]` has no meaning", "brackets")],
    );
    // one that is used where or how it may not be is not unused
    expect_in(
        "[unknowns]\np = { guess = 1 }\n[constants]\nk = \"2*§p\"",
        "`p` is not a constant",
        "numbers and other constants",
    );
    expect_in(
        "[networks.f]\nlayers = []\n[states.z]\nderivative = \"§f*z\"",
        "`f` is a function",
        "f(…)",
    );
    expect_in(
        "[unknowns]\n§k-1 = { guess = 1 }",
        "`k-1` cannot be used in an equation",
        "letters",
    );
    // the fault is the constant's, not the equation's
    expect_in(
        "[networks.f]\nlayers = []\n[constants]\nk = \"§f(1)\"\n[states.z]\nderivative = \"k + f(z)\"",
        "cannot be called in constant `k`",
        "derivatives of states",
    );
    // a list of outputs that cannot be read does not lack names
    expect_in(
        "[networks.f]\nlayers = []\noutputs = §\"a\"\n[states.z]\nderivative = \"f(z)\"",
        "expected a list",
        "names",
    );
    // nor is a measurement, a constant, an expression, an unknown, a table or a network
    expect(
        "[states.x]\nderivative = \"-x\"\n[measurements]\ny = §\"\"\n",
        &[("is empty", "write an equation")],
    );
    expect(
        "[states.x]\nderivative = \"-x\"\n[measurements]\ny = { §vaule = \"x\" }\n",
        &[("no key `vaule`", "`value`")],
    );
    expect(
        "[states.x]\n§derivatve = \"-x\"\n[measurements]\ny = \"x\"\n",
        &[("no key `derivatve`", "`derivative`")],
    );
    expect(
        "[states]\nx = §\"-x\"\n[measurements]\ny = \"x\"\n",
        &[("expected a table", "`derivative`")],
    );
    expect_in(
        "[constants]\nk = \"2*§\"\nl = \"2*k\"",
        "ends where",
        "complete",
    );
    expect_in(
        "[constants]\nk = §true\nl = \"2*k\"",
        "expected an equation",
        "quotes",
    );
    expect_in(
        "[constants]\nk = §inf\nl = \"2*k\"",
        "expected a finite number",
        "0.5",
    );
    expect_in(
        "[expressions]\na = \"(x§]\"\nb = \"2*a\"",
        "`]` has no meaning",
        "brackets",
    );
    expect_in(
        "[unknowns]\np = { guess = §-1, positive = true }\n[states.z]\nderivative = \"p*z\"",
        "guess is -1",
        "positive value",
    );
    expect_in(
        "[unknowns]\n§p = { scale = 1 }\n[states.z]\nderivative = \"p*z\"",
        "no guess",
        "guess = 90",
    );
    expect_in(
        "[unknowns]\np = §3\n[states.z]\nderivative = \"p*z\"",
        "expected a table",
        "guess = 90",
    );
    expect_in(
        "[tables.c]\nx = [0, 2, §1]\ny = [1, 2, 3]\n[expressions]\nb = \"c(x)\"",
        "does not increase at 1",
        "sort",
    );
    expect_in(
        "[inputs]\nu = §3\n[expressions]\nb = \"2*u\"",
        "expected a table",
        "unit",
    );
    // a section that is not there because of its name would be missed everywhere
    expect(
        "[§constant]\nk = 1\n[states.x]\nderivative = \"-k*x\"\n[measurements]\ny = \"x\"\n",
        &[("the model file has no key `constant`", "`constants`")],
    );
    expect(
        "[§state.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n",
        &[("no key `state`", "`states`")],
    );
    expect(
        "[states.x]\nderivative = \"-x\"\n[§measurments]\ny = \"x\"\n",
        &[("`measurments`", "`measurements`")],
    );
    expect(
        "states = §3\n[measurements]\ny = \"x\"\n",
        &[("expected a table", "[states]")],
    );
    // a constant named like a function takes nothing from the function
    expect_in(
        "[constants]\n§min = 60\n[expressions]\ne = \"min(x, 1)\"",
        "`min` is reserved",
        "another name",
    );
}

#[test]
fn several_mistakes_come_in_the_order_of_the_file() {
    expect(
        "[time]\nstep = §-1\n[measurements]\ny = \"x + §q\"\n[states.x]\nderivative = \"§r*x + §s\"\nstart = §\"2\"\n\
         [networks.§f]\nlayers = [\"3 §tahn\", §\"tanh\"]\n",
        &[
            ("step must be positive", "above zero"),
            ("unknown name `q`", ""),
            ("unknown name `r`", ""),
            ("unknown name `s`", ""),
            ("expected a finite number", "without quotes"),
            ("network `f` is never called", ""),
            ("unknown activation `tahn`", "did you mean `tanh`?"),
            ("`tanh` is not a layer", "20 tanh"),
        ],
    );
    // the truth shares an expression with the equations to learn: one mistake, said once
    expect(
        "[states.x]\nderivative = \"e\"\n[expressions]\ne = \"§q + §r\"\n[measurements]\ny = \"x + e\"\n\
         [truth]\nx = \"e + §w\"\n",
        &[("`q`", ""), ("`r`", ""), ("`w`", "")],
    );
}

#[test]
fn unknown_keys_of_every_section() {
    let help = |key: &str| format!("did you mean `{key}`?");
    for (section, key) in [
        ("§descripton = 1", "description"),
        ("[time]\n§metod = \"euler\"", "method"),
        ("[inputs]\nu = { §units = \"V\" }", "unit"),
        ("[states.z]\nderivative = \"-z\"\n§centre = 3", "center"),
        (
            "[networks.f]\nlayers = []\n§output = []\n[states.z]\nderivative = \"f(z)\"",
            "outputs",
        ),
        (
            "[unknowns]\np = { guess = 1, §postive = true }\n[states.z]\nderivative = \"p*z\"",
            "positive",
        ),
        ("[tables.c]\nx = [0]\ny = [0]\n§Period = 2", "period"),
        ("[simulation]\n§step = 5", "steps"),
        ("[simulation]\nlqr = { §state = { x = 1 } }", "states"),
        ("[[simulation.held_out]]\n§input = { u = 1 }", "inputs"),
    ] {
        expect_in(section, "has no key", &help(key));
    }
    expect_in(
        "[time]\n§colour = 1",
        "[time] has no key `colour`",
        "known here: unit, step, method, substeps",
    );
}

#[test]
fn values_out_of_range() {
    expect_in(
        "[time]\nstep = §-0.1",
        "step must be positive",
        "above zero",
    );
    expect_in(
        "[time]\nstep = §\"0.1\"",
        "expected a finite number",
        "without quotes",
    );
    expect_in(
        "[time]\nsubsteps = §1.5",
        "substeps must be a whole number",
        "1",
    );
    expect_in(
        "[time]\nmethod = §\"rk45\"",
        "`rk45` is not a method",
        "euler, semi-implicit-euler, rk4",
    );
    expect_in(
        "[time]\nmethod = \"sdirk4\"\ntolerance = §0",
        "tolerance must be from 1e-12 to 0.1",
        "1e-12",
    );
    expect_in(
        "[time]\nmethod = \"rk4\"\ntolerance = §1e-6",
        "an explicit method takes its sub-steps from `substeps`",
        "sdirk4",
    );
    expect_in("[time]\nunit = §3", "expected text in quotes", "");
    let unknown =
        |entry: &str| format!("[unknowns]\np = {{ {entry} }}\n[states.z]\nderivative = \"p*z\"");
    expect_in(
        &unknown("guess = §0, positive = true"),
        "`p` is positive but its guess is 0",
        "positive",
    );
    expect_in(
        &unknown("guess = 1, positive = §\"yes\""),
        "positive is true or false",
        "quotes",
    );
    expect_in(
        &unknown("guess = 1, scale = §0"),
        "scale must be positive",
        "above zero",
    );
    for (entry, message, help) in [
        (
            "guess = 1, min = §2, max = 1",
            "min of unknown `p` is not below max",
            "fixed = true",
        ),
        (
            "guess = §1, min = 2",
            "guess of unknown `p` is 1, below its min of 2",
            "between",
        ),
        (
            "guess = §3, min = 1, max = 2",
            "above its max of 2",
            "between",
        ),
        (
            "value = §\"2.1 ± 0.3\", guess = 1",
            "a value and a guess",
            "one of them",
        ),
        (
            "value = \"2.1 ± 0.3\", scale = §1",
            "said twice",
            "leave `scale` out",
        ),
        (
            "value = §\"2.1 ± 0.3\", fixed = true",
            "is fixed and has a prior",
            "fixed = true",
        ),
        (
            "guess = §1, prior = \"normal\", fixed = true",
            "is fixed and has a prior",
            "plain",
        ),
        (
            "value = §\"2.1\"",
            "`2.1` is not a value with its deviation",
            "2.1 ± 0.3",
        ),
        (
            "value = §\"2.1 ± 0\"",
            "deviation must be above zero",
            "fixed = true",
        ),
        (
            "value = §2.1",
            "how well is the value of unknown `p` known?",
            "guess = 2.1",
        ),
        (
            "guess = 1, prior = §\"normale\"",
            "is not a prior",
            "normal, lognormal, uniform",
        ),
    ] {
        expect_in(&unknown(entry), message, help);
    }
    let whole =
        |entry: &str| format!("[unknowns]\n§p = {{ {entry} }}\n[states.z]\nderivative = \"p*z\"");
    for (entry, message, help) in [
        (
            "guess = 1, prior = \"uniform\", min = 0",
            "has no end",
            "`min` and `max`",
        ),
        (
            "guess = 1, prior = \"normal\", positive = true",
            "not that of a positive",
            "min = 0",
        ),
        ("fixed = true", "no guess", "guess = 90"),
    ] {
        expect_in(&whole(entry), message, help);
    }
    expect_in(
        "[fit]\nfix = { p = 1 }\nfree = §[\"p\"]\n[unknowns]\np = { guess = 1 }\n[states.z]\nderivative = \"p*z\"",
        "`p` is fixed and freed",
        "leave it out",
    );
    expect_in(
        "[fit]\nfix = { §q = 1 }\n[unknowns]\np = { guess = 1 }\n[states.z]\nderivative = \"p*z\"",
        "`q` is not a constant of [unknowns]",
        "p",
    );
    expect_in(
        "[tables.§c]\nx = [0, 1]\ny = [1]",
        "`c` has 2 x and 1 y values",
        "as many",
    );
    expect_in(
        "[tables.c]\nx = [0, 1, §1]\ny = [1, 2, 3]",
        "does not increase at 1",
        "each x once",
    );
    expect_in(
        "[tables.c]\nx = [0, 1]\ny = [1, 2]\nperiod = §1",
        "span a whole period",
        "first point",
    );
    expect_in(
        "[tables.c]\nx = [0, §\"a\"]\ny = [1, 2]",
        "expected a finite number",
        "without quotes",
    );
    let network = |layers: &str| {
        format!("[networks.f]\nlayers = {layers}\n[states.z]\nderivative = \"f(z)\"")
    };
    expect_in(
        &network("[\"20 §sigmiod\"]"),
        "unknown activation `sigmiod`",
        "did you mean `sigmoid`?",
    );
    expect_in(
        &network("[\"20 §gauss\"]"),
        "unknown activation `gauss`",
        "one of tanh, sigmoid",
    );
    for layer in ["tanh", "20", "0 tanh", "-3 tanh", "20 tanh tanh", ""] {
        expect_in(
            &network(&format!("[§\"{layer}\"]")),
            "is not a layer",
            "20 tanh",
        );
    }
    expect_in(
        &network("§\"20 tanh\""),
        "expected a list",
        "[\"20 tanh\", \"10 sigmoid\"]",
    );
    expect_in(
        "[networks.§f]\n[states.z]\nderivative = \"f(z)\"",
        "network `f` has no layers",
        "layers = ",
    );
    for outputs in ["[]", "[\"a\", \"a\"]"] {
        let call = if outputs == "[]" { "f(z)" } else { "f(z).a" };
        expect_in(
            &format!(
                "[networks.§f]\nlayers = []\noutputs = {outputs}\n[states.z]\nderivative = \"{call}\""
            ),
            "need different names",
            "outputs = ",
        );
    }
}

#[test]
fn truth_and_simulation() {
    let model = "[unknowns]\nmass = { guess = 1 }\n[networks.f]\nlayers = []\n[inputs]\nu = \"N\"\n\
         [states.x]\nderivative = \"v\"\n[states.v]\nderivative = \"f(x)/mass + u\"\n\
         [measurements]\ny = \"x\"\n";
    let marked = |place: &str| model.replacen(place, &format!("§{place}"), 1);
    expect(
        &format!("{}[truth]\nmass = 2\n", marked("f(x)/mass")),
        &[("the truth of state `v` still calls network `f`", "[truth]")],
    );
    expect(
        &format!("{}[truth]\nv = \"-x/mass\"\n", marked("mass =")),
        &[("does not say what `mass` is", "add mass = … to [truth]")],
    );
    let with = |section: &str| format!("{model}[truth]\nmass = 2\nv = \"-x\"\n{section}");
    let state = "`w` is not a state";
    expect(
        &with("§w = \"x\""),
        &[(
            "`w` is not a state, an unknown or a measurement",
            "x, v, mass",
        )],
    );
    expect(
        &with("[simulation.lqr]\nstates = { §w = 1 }\ninputs = { u = 1 }"),
        &[(state, "there are: x, v")],
    );
    expect(
        &with("[simulation.lqr]\nstates = { x = 1 }\ninputs = { §U = 1 }"),
        &[("`U` is not an input", "`u`")],
    );
    expect(
        &with("[simulation.process_noise]\n§w = 1"),
        &[(state, "x, v")],
    );
    expect(
        &with("[[simulation.held_out]]\nstart = { §w = 1 }"),
        &[(state, "x, v")],
    );
    expect(
        &with("[[simulation.held_out]]\ninputs = { §w = 1 }"),
        &[("`w` is not an input", "u")],
    );
    expect(
        &with("[simulation.inputs]\nu = \"§f(x)\""),
        &[("cannot be called in input `u`", "derivatives of states")],
    );
    expect(
        &with("§[simulation.lqr]\nstates = { x = 1 }"),
        &[("regulator", "weights of inputs must be positive")],
    );
    // what the truth does not use may call networks
    let unused = model.replace("f(x)/mass", "e/mass") + "[expressions]\ne = \"f(x)\"\n";
    assert!(Model::from_text("m.toml", &format!("{unused}[truth]\nv = \"-x\"\n")).is_ok());
}

#[test]
fn bad_toml_is_reported_alone() {
    for (text, message, help) in [
        (
            "[states.x§\nderivative = \"-k*x\"\n",
            "unclosed table",
            "latens init",
        ),
        (
            "[states.x]\nderivative = \"-k*x§\n[measurements]\ny = \"x\"\n",
            "invalid basic string",
            "latens init",
        ),
        (
            "[states.x]\nderivative §\"-k*x\"\n",
            "key with no value, expected `=`",
            "latens init",
        ),
        (
            "[states.x]\nderivative = §-k*x\n",
            "must be quoted",
            "\"-k*x\"",
        ),
        (
            "[states.x]\nderivative = \"-x\"\n[states.§x]\nstart = 1\n",
            "duplicate key",
            "merge",
        ),
        (
            "[tables.c]\nx = [1, 2\n§y = [1, 2]\n",
            "missing comma between array elements",
            "latens init",
        ),
    ] {
        expect(text, &[(message, help)]);
    }
    // mistakes that leave the rest readable are all reported
    let twice = ("must be quoted", "in quotes");
    expect(
        "[states.x]\nderivative = §-x\n[measurements]\ny = §x\n",
        &[twice, twice],
    );
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.toml");
    let error = Model::from_file(&path).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read ") && error.contains("model.toml: No such file"),
        "{error}"
    );

    std::fs::write(&path, b"name = \"a\"\nunit = \"\xb5V\"\n").unwrap(); // Latin-1
    let error = Model::from_file(&path).unwrap_err().to_string();
    assert!(
        error.contains("model.toml: line 2 is not UTF-8 text; save the file as UTF-8"),
        "{error}"
    );

    std::fs::write(&path, "[states.x]\nderivative = \"-x\"\n").unwrap();
    let error = Model::from_file(&path).unwrap_err().to_string();
    assert!(
        error.contains("model.toml:1:1") && error.contains("measures nothing"),
        "{error}"
    );
}

#[test]
fn files_as_other_systems_write_them() {
    let text = "[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n";
    for text in [text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
        Model::from_text("m.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    }
    expect(
        "[states.x]\r\nderivative = \"-§q\"\r\n[measurements]\r\ny = \"x\"\r\n",
        &[("`q`", "define")],
    );
    // an equation over several lines keeps its places, one with escapes is pointed at as a whole
    expect(
        "[states.x]\nderivative = \"\"\"\n  -x\n  + §q\n\"\"\"\n[measurements]\ny = \"x\"\n",
        &[("`q`", "define")],
    );
}

#[test]
fn an_error_is_shown_with_its_line_a_caret_and_advice() {
    let text = "name = \"µ\"\n[states.x]\nderivative = \"-omga*x\"\n[constants]\nomega = 2\n\
                [measurements]\ny = \"x\"\nz = \"1\"\n";
    assert_eq!(
        mistakes(text).to_string(),
        "error: unknown name `omga`\n \
         --> m.toml:3:16\n  \
         |\n\
         3 | derivative = \"-omga*x\"\n  \
         |                ^^^^\n  \
         = help: did you mean `omega`?\n\
         \n\
         error: measurement `z` depends on no state\n \
         --> m.toml:8:6\n  \
         |\n\
         8 | z = \"1\"\n  \
         |      ^\n  \
         = help: a measurement is an expression of the states, for example \"V\""
    );
}

#[test]
fn settings_of_a_fit_are_checked_like_the_rest() {
    let wrong = |line: &str, message: &str, help: &str| {
        expect_in(&format!("[fit]\n{line}"), message, help);
    };
    wrong(
        "§pass = 3",
        "[fit] has no key `pass`",
        "did you mean `passes`?",
    );
    wrong(
        "passes = §0",
        "passes must be a whole number from 1",
        "for example",
    );
    wrong(
        "passes = §2.5",
        "passes must be a whole number",
        "for example",
    );
    wrong(
        "passes = §\"3\"",
        "expected a finite number",
        "without quotes",
    );
    wrong("starts = §2000000", "from 1 to 1000000", "for example");
    wrong(
        "seed = §-1",
        "seed must be a whole number from 0",
        "for example",
    );
    wrong("solver = §3", "expected text in quotes", "between");
    wrong(
        "keep_best = §1",
        "keep_best is true or false",
        "without quotes",
    );
    wrong(
        "hidden_noise = §-0.1",
        "hidden_noise must be positive",
        "above zero",
    );
    wrong(
        "anneal = §2",
        "anneal must be above 0 and at most 1",
        "at most 1",
    );
    wrong(
        "parameter_drift = §-1",
        "must be zero or above",
        "zero or above",
    );
    wrong("validate_tail = §0.5", "below 0.5", "below 0.5");
    wrong(
        "process_variance = §0",
        "process_variance must be positive",
        "above zero",
    );
    wrong(
        "process_variance = { x = §-1 }",
        "must be positive",
        "above zero",
    );
    wrong(
        "start_variance = { §z = 1 }",
        "`z` is not a state",
        "there are: x",
    );
    wrong(
        "measurement_variance = { §x = 1 }",
        "`x` is not a measurement",
        "there are: y",
    );
    let text = "§fit = 3\n[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n";
    expect(
        &text.replace("§fit = ", "fit = §"),
        &[("expected a table", "[fit]")],
    );
}

#[test]
fn settings_of_a_fit_are_read() {
    let text = "[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n\
                [fit]\nsolver = \"joint\"\npasses = 7\nseed = 9007199254740993\nkeep_best = false\n\
                process_variance = { x = 1e-6 }\nmeasurement_variance = 0.5\n";
    let fit = Model::from_text("m.toml", text).unwrap().fit;
    assert_eq!(fit.solver, Some("joint".into()));
    assert_eq!((fit.passes, fit.keep_best), (Some(7), Some(false)));
    assert_eq!(fit.seed, Some(9_007_199_254_740_993));
    assert_eq!(fit.process_variance.of["x"], 1e-6);
    assert_eq!(fit.measurement_variance.all, Some(0.5));
    assert_eq!(fit.ensemble, None);
}

/// A file of version 0.1, and so a folder that holds one, is still read.
#[test]
fn earlier_names_of_settings_are_understood() {
    let model = "[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n[fit]\n";
    let fit = |keys: &str| Model::from_text("m.toml", &format!("{model}{keys}")).map(|m| m.fit);
    let old = fit("epochs = 7\nstreams = 2\n").unwrap();
    assert_eq!(old, fit("passes = 7\nsegments = 2\n").unwrap());
    assert!(fit("epochs = 0\n").is_err());
    // a call is of today
    let model = Model::from_text("m.toml", model.trim_end_matches("[fit]\n")).unwrap();
    let call = model.settings("settings", "[fit]\nepochs = 7\n");
    let shown = call.unwrap_err().to_string();
    assert!(shown.contains("it is called `passes` now"), "{shown}");
}

/// The language knows no solver; whoever does learns where the name stands.
#[test]
fn a_misspelt_solver_is_shown_at_its_line() {
    let text =
        "[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n[fit]\nsolver = \"bacth\"\n";
    let model = Model::from_text("m.toml", text).unwrap();
    assert!(model.check_solver(&["joint", "bacth"]).is_ok());
    let shown = model.check_solver(&["joint", "batch"]).unwrap_err();
    assert_eq!(
        shown.to_string(),
        "error: `bacth` is not a solver\n --> m.toml:6:10\n  |\n6 | solver = \"bacth\"\n  |          ^^^^^^^\n  = help: did you mean `batch`?"
    );
}

/// The section alone gives the same, and its mistakes have the same words and places.
#[test]
fn settings_of_a_fit_are_read_from_a_text_of_their_own() {
    let rest = "[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n";
    let model = Model::from_text("m.toml", rest).unwrap();
    let section = "[fit]\npasses = 7\nmeasurement_variance = { y = 2 }\n";
    let whole = Model::from_text("m.toml", &format!("{rest}{section}")).unwrap();
    assert_eq!(model.settings("settings", section).unwrap(), whole.fit);
    let wrong = "[fit]\npasses = 0\npass = 7\nprocess_variance = { y = 2 }\n";
    let found = model.settings("m.toml", wrong).unwrap_err().to_string();
    let of_file = Model::from_text("m.toml", &format!("{wrong}{rest}"));
    assert_eq!(found, of_file.unwrap_err().to_string());
    assert_eq!(found.matches("error:").count(), 3, "{found}");
    assert!(model.settings("settings", "[fit]\npasses = =\n").is_err());
}
