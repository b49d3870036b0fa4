//! A file from a stranger is refused with its limit, before it takes the time or the memory it asks for.

use latens_model::Model;
use latens_model::limits::{
    ARGUMENTS, CALLS, DEPTH, FILE_BYTES, HELD_OUT, LAYERS, MISTAKES, NAME_LENGTH, NAMES, NESTING,
    PARAMETERS, REGULATED_STATES, STATES, STEPS, SUBSTEPS, TOKENS, UNITS,
};

/// The smallest stack of a thread that a model may be read on: that of Windows' first one.
const SMALL_STACK: usize = 1 << 20;

/// A model of one state with this derivative.
fn model_text(derivative: &str, more: &str) -> String {
    format!("[states.x]\nderivative = \"{derivative}\"\n[measurements]\ny = \"x\"\n{more}")
}

/// What is wrong with a text; it is read on a small stack, which recursion must not exhaust.
fn read(text: String) -> Result<Model, String> {
    let small = std::thread::Builder::new().stack_size(SMALL_STACK);
    let read = move || Model::from_text("m.toml", &text).map_err(|e| e.to_string());
    small.spawn(read).unwrap().join().expect("no panic")
}

fn refused(text: String, words: &str) {
    let Err(message) = read(text) else {
        panic!("accepted: {words}");
    };
    assert!(message.contains(words), "{words}: {message}");
    assert!(message.len() < 100_000, "{words}: {} bytes", message.len());
}

/// x_0 = x, and each after it one operation more.
fn chain(length: usize) -> String {
    let mut text = model_text(&format!("e{length}"), "[expressions]\ne0 = \"sin(x)\"\n");
    for k in 1..=length {
        text += &format!("e{k} = \"sin(e{}) + x\"\n", k - 1);
    }
    text
}

/// A sum of many terms is a deep tree, and a chain of names is one that no single line shows.
#[test]
fn equations_are_as_deep_as_the_stack_allows() {
    for (term, sign) in [("x", "*"), ("x", "/"), ("sin(x)", "+"), ("x", "^")] {
        let tokens = if term == "x" { 2 } else { 5 };
        // a power of a power is nested, not only long
        let most = if sign == "^" {
            NESTING
        } else {
            TOKENS / tokens
        };
        read(model_text(&vec![term; most].join(sign), "")).unwrap();
    }
    refused(model_text(&vec!["x"; TOKENS].join("+"), ""), "too long");
    let nested = |depth: usize| format!("{}x{}", "sin(".repeat(depth), ")".repeat(depth));
    read(model_text(&nested(NESTING - 1), "")).unwrap();
    refused(model_text(&nested(NESTING), ""), "nested too deeply");
    read(chain(DEPTH / 4)).unwrap();
    refused(chain(DEPTH), &format!("more than {DEPTH} expressions"));
    // named in their order, no line leads far: only what all of them come to is deep
    let mut ordered = model_text("e0", "[expressions]\ne0 = \"sin(x)\"\n");
    let nested = |k: usize| format!("{}e{k}{}", "cos(".repeat(50), ")".repeat(50));
    for k in 1..200 {
        ordered += &format!("e{k} = \"{}\"\n", nested(k - 1));
    }
    for k in 1..200 {
        ordered += &format!("[states.s{k}]\nderivative = \"e{k}\"\n");
    }
    read(ordered).unwrap();
}

#[test]
fn a_model_has_so_much_of_everything_and_no_more() {
    let states = |count: usize| {
        let sections = (0..count).map(|k| format!("[states.s{k}]\nderivative = \"-s{k}\"\n"));
        format!(
            "{}[measurements]\ny = \"s0\"\n",
            sections.collect::<String>()
        )
    };
    read(states(STATES)).unwrap();
    refused(states(STATES + 1), &format!("at most {STATES}"));
    let regulated = states(REGULATED_STATES + 1)
        + "[inputs]\nu = \"\"\n[simulation.lqr]\nstates = { s0 = 1 }\ninputs = { u = 1 }\n";
    refused(regulated, &format!("at most {REGULATED_STATES}"));
    let held_out = "[[simulation.held_out]]\n".repeat(HELD_OUT + 1);
    refused(model_text("-x", &held_out), &format!("at most {HELD_OUT}"));
    let constants = (0..=NAMES).map(|k| format!("c{k} = {k}\n"));
    let constants = format!("[constants]\n{}", constants.collect::<String>());
    refused(model_text("-x", &constants), &format!("at most {NAMES}"));
    let long = "n".repeat(NAME_LENGTH + 1);
    refused(
        model_text("-x", &format!("[constants]\n{long} = 1\n")),
        "too long",
    );
    refused(model_text("-x", &" ".repeat(FILE_BYTES)), "more than 4 MB");
    let steps = |steps: u64| model_text("-x", &format!("[simulation]\nsteps = {steps}\n"));
    read(steps(STEPS as u64)).unwrap();
    let substeps = |steps: u64| model_text("-x", &format!("[time]\nsubsteps = {steps}\n"));
    read(substeps(SUBSTEPS as u64)).unwrap();
    for huge in [STEPS as u64 + 1, 1_000_000_000_000, i64::MAX as u64] {
        refused(steps(huge), &format!("from 1 to {STEPS}"));
        refused(substeps(huge), &format!("from 1 to {SUBSTEPS}"));
    }
    // every operation by every state: few states of long equations are as many as many of short
    let sum = "sin(x)+sin(x)";
    let many = (0..400).map(|k| {
        let terms = (0..40).map(|j| format!("sin({j}*s{k}+{k})*s{}", (k + j) % 400));
        let terms = terms.collect::<Vec<_>>().join("+");
        format!("[states.s{k}]\nderivative = \"{terms}\"\n")
    });
    refused(
        model_text(sum, &many.collect::<String>()),
        "derivatives (operations times",
    );
}

#[test]
fn networks_are_no_larger_than_can_be_learned() {
    let network =
        |layers: &str, call: &str| model_text(call, &format!("[networks.n]\nlayers = {layers}\n"));
    let units = |widths: &[usize]| {
        let layers: Vec<String> = widths.iter().map(|w| format!("\"{w} tanh\"")).collect();
        format!("[{}]", layers.join(", "))
    };
    for width in [UNITS + 1, 1_000_000_000, 1 << 33, usize::MAX] {
        let wide = network(&units(&[width, width]), "n(x)");
        refused(wide, &format!("at most {UNITS}"));
    }
    read(network(&units(&[1; LAYERS]), "n(x)")).unwrap();
    let deep = network(&units(&[1; LAYERS + 1]), "n(x)");
    refused(deep, &format!("at most {LAYERS}"));
    let square = network(&units(&[UNITS, UNITS]), "n(x)");
    refused(square, &format!("at most {PARAMETERS}"));
    let call = |count: usize| format!("n({})", vec!["x"; count].join(","));
    read(network(&units(&[2]), &call(ARGUMENTS))).unwrap();
    let many = network(&units(&[2]), &call(ARGUMENTS + 1));
    refused(many, &format!("at most {ARGUMENTS}"));
    // each call is one more unknown signal
    let nested = |depth: usize| format!("{}x{}", "n(".repeat(depth), ")".repeat(depth));
    read(network(&units(&[2]), &nested(CALLS))).unwrap();
    let many = network(&units(&[2]), &nested(CALLS + 1));
    refused(many, &format!("at most {CALLS}"));
}

/// A message is read by a person: a file of nothing but mistakes, or of one endless line, gives a short
/// one.
#[test]
fn messages_stay_short() {
    let lines = (0..50_000).map(|k| format!("k{k} = {{}}\n"));
    let Err(latens_model::Error::Mistakes(error)) = Model::from_text(
        "m.toml",
        &model_text("-x", &format!("[fit]\n{}", lines.collect::<String>())),
    ) else {
        panic!("mistakes")
    };
    assert_eq!(error.diagnostics.len(), MISTAKES);
    let long = "y".repeat(1_000_000);
    refused(model_text(&format!("x + {long}"), ""), "unknown name");
    let names = format!("[constants]\n{long}1 = 1\n{long}2 = 2\n");
    refused(model_text("-x", &names), "too long");
}
