//! What a check says about records: which states they show, and when; where they take networks.

use latens::look::check::{Check, Sight};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Record, fit, systems};

fn record(model: &Model, noise: f64, steps: Option<usize>) -> Record {
    let simulation = Simulation {
        steps,
        noise: vec![Some(NoiseLevel::OfRange(noise)); model.measurements.len()],
        ..Simulation::default()
    };
    simulate(model, &simulation).unwrap()
}

fn check(text: &str, noise: f64, steps: Option<usize>) -> (Check, Record) {
    let model = Model::from_text("model", text).unwrap();
    let record = record(&model, noise, steps);
    let check = fit::learn::check(&model, std::slice::from_ref(&record)).unwrap();
    (check, record)
}

fn sight(check: &Check, state: &str) -> Sight {
    let state_check = check.states.iter().find(|s| s.name == state);
    state_check.unwrap().sight
}

/// A measured x that feels the sum of a and b; w and d, which nothing measured feels, one with a
/// known equation; g, felt through a network only; r, which its own equation and the input tell.
const BUILT_TO_HIDE: &str = r#"
[time]
step = 0.01
[inputs]
u = {}
[states]
x = { derivative = "a + b - x + outer(g, r)", start = 0 }
a = { derivative = "first(x)", start = 1 }
b = { derivative = "second(x)", start = 0 }
w = { derivative = "third(x, w)", start = 1 }
d = { derivative = "-d", start = 1 }
g = { derivative = "fourth(x)", start = 1 }
r = { derivative = "u - 5*r", start = 0 }
[networks]
first = { layers = ["4 tanh"] }
second = { layers = ["4 tanh"] }
third = { layers = ["4 tanh"] }
fourth = { layers = ["4 tanh"] }
outer = { layers = ["4 tanh"] }
[measurements]
x = "x"
[truth]
x = "a + b - x + 0.1*g + r"
a = "-4*x"
b = "-2*x"
w = "x - w"
g = "-x"
[simulation]
steps = 1000
inputs = { u = "sin(t)" }
"#;

#[test]
fn what_nothing_shows_is_named() {
    for noise in [0.0, 0.02] {
        let (check, _) = check(BUILT_TO_HIDE, noise, None);
        assert_eq!(check.together, [["a", "b"]], "{noise}");
        for (state, expected) in [
            ("x", Sight::Measured),
            ("w", Sight::Isolated),
            ("d", Sight::Isolated),
            ("g", Sight::ThroughNetwork),
            ("r", Sight::Well),
        ] {
            assert_eq!(sight(&check, state), expected, "{state} with noise {noise}");
        }
    }
}

/// Only one of the two may be left: then it is determined.
#[test]
fn a_sum_of_one_is_told() {
    let text = BUILT_TO_HIDE.replace("\"a + b - x + outer(g, r)\"", "\"a - x\"");
    let text = text.replace("a + b - x + 0.1*g + r", "a - x");
    let unused = "outer = { layers = [\"4 tanh\"] }\n";
    let (check, _) = check(&text.replace(unused, ""), 0.01, None);
    assert_eq!(sight(&check, "a"), Sight::Well);
    assert_eq!(sight(&check, "b"), Sight::Isolated);
    assert!(check.together.is_empty());
}

/// No false alarm on the systems of the paper, with noise and without; but the gate h of a neuron
/// hardly moves the voltage between spikes, and noise hides it there.
#[test]
fn the_hidden_states_of_the_embedded_systems_are_determined() {
    for (name, text) in systems::SYSTEMS {
        if Model::from_text(name, text).unwrap().truth.is_none() {
            continue;
        }
        for noise in [0.0, 0.01] {
            let (check, _) = check(text, noise, Some(2500));
            for state in &check.states {
                let gate = *name == "hodgkin-huxley" && noise > 0.0 && state.name == "h";
                let fine = matches!(state.sight, Sight::Measured | Sight::Well)
                    || (gate && state.sight == Sight::Partly && state.determined > 0.5);
                assert!(fine, "{name} {} with noise {noise}: {state:?}", state.name);
            }
            assert!(check.together.is_empty(), "{name}");
        }
    }
}

/// ∂V'/∂h = −120·m³·(V − 50) is tiny while m is small: between spikes h is not seen.
#[test]
fn the_gate_of_the_neuron_is_seen_during_spikes() {
    let text = systems::find("hodgkin-huxley").unwrap();
    let (check, record) = check(text, 0.01, Some(6000));
    let h = &check.states[3];
    assert!((0.1..0.9).contains(&h.seen), "{h:?}");
    let when = h.when.as_ref().unwrap();
    assert!(
        when.above && ["m", "V"].contains(&when.signal.as_str()),
        "{when:?}"
    );
    let (mut during, mut after) = (vec![], vec![]);
    for moment in &check.moments {
        let k = record.time.partition_point(|t| *t < moment.time);
        match record.truth(k).unwrap()[2] {
            m if m > 0.5 => during.push(moment.seen[3]),
            m if m < 0.03 => after.push(moment.seen[3]),
            _ => {}
        }
    }
    assert!(
        during.len() > 5 && during.iter().all(|s| *s < 0.1),
        "{during:?}"
    );
    // a window that ends in the next spike sees it already
    let blind = after.iter().filter(|s| **s > 0.8).count();
    assert!(after.len() > 5 && 2 * blind > after.len(), "{after:?}");
}

/// The regulator makes u = −Kx: five arguments, four directions.
#[test]
fn arguments_that_follow_from_others_are_named() {
    let text = systems::find("cart-pole").unwrap();
    for noise in [0.0, 0.05] {
        let (check, _) = check(text, noise, None);
        let network = &check.networks[0];
        assert_eq!(network.arguments, ["z", "z_dot", "phi", "phi_dot", "u"]);
        assert_eq!(network.directions, 4, "{noise}: {network:?}");
        assert!(network.dependent.contains(&"u".into()), "{network:?}");
    }
    let text = "[time]\nstep = 0.1\n[inputs]\nu = {}\n[states.x]\nderivative = \"net(x, 2*u)\"\nstart = 1\n\
                [networks.net]\nlayers = [\"2 tanh\"]\n[measurements]\nx = \"x\"\n[truth]\nx = \"u - x\"\n\
                [simulation]\nsteps = 50\ninputs = { u = 3 }\n";
    let (check, _) = check(text, 0.0, None);
    let network = &check.networks[0];
    assert_eq!(network.still, ["2*u"]);
    assert_eq!((network.directions, network.cells), (1, 10));
    assert_eq!(network.ranges[1], (6.0, 6.0));
}

/// y acts on x only as y², and a network drives it: −y makes the same x, whatever the record. Where
/// its own equation is not odd, or x feels y itself, there is no mirror image.
#[test]
fn a_sign_that_nothing_feels_is_told() {
    let text = |x: &str, y: &str| {
        format!(
            r#"
[time]
step = 0.05
[states]
x = {{ derivative = "{x}", start = 1 }}
y = {{ derivative = "{y}", start = 1 }}
[networks]
f = {{ layers = ["4 tanh"] }}
[measurements]
x = "x"
[truth]
x = "{}"
y = "{}"
[simulation]
steps = 400
"#,
            x.replace("f(x)", "cos(x)"),
            y.replace("f(x)", "cos(x)")
        )
    };
    for (x, y, expected) in [
        ("4/(1 + y^2) - x", "f(x) - y", true),
        ("4/(1 + abs(y)) - x", "2*f(x) - sin(y)", true),
        ("y^2*f(x) - x", "-y", true),
        ("4/(1 + y^2) - x", "f(x) - y + 0.1*y^2", false),
        ("4/(1 + y^2) - x + 0.1*y", "f(x) - y", false),
        ("y*f(x) - x", "y*f(x) - 0.1*y", false),
    ] {
        let (check, _) = check(&text(x, y), 0.0, None);
        assert_eq!(check.mirrored.len(), usize::from(expected), "{x}, {y}");
    }
    for (name, text) in systems::SYSTEMS {
        let model = Model::from_text(name, text).unwrap();
        if model.truth.is_some() {
            let (check, _) = check(text, 0.01, Some(400));
            assert!(check.mirrored.is_empty(), "{name}");
        }
    }
}

/// A lake in two layers, of which the upper one is measured.
fn lake(mixing: &str, known: &str) -> Check {
    let text = format!(
        "[time]\nstep = 1\n[inputs]\nwind = {{}}\nTa = {{}}\n\
         [states]\nTs = {{ derivative = \"0.1*(Ta - Ts) - q\", start = 8 }}\n\
         Td = {{ derivative = \"0.25*q\", start = 4{known} }}\n\
         [expressions]\nq = \"{mixing}\"\n[networks.mix]\nlayers = [\"4 tanh\"]\n[measurements]\nTs = \"Ts\"\n\
         [truth]\nTs = \"0.1*(Ta - Ts) - (0.02 + 0.004*wind)*(Ts - Td)\"\nTd = \"0.25*(0.02 + 0.004*wind)*(Ts - Td)\"\n\
         [simulation]\nsteps = 200\ninputs = {{ wind = \"4 + 3*sin(0.9*t)\", Ta = \"15 - 12*cos(0.05*t)\" }}\n"
    );
    check(&text, 0.005, None).0
}

/// A constant added to the temperature below changes nothing where the mixing is another function of the difference:
/// the level is what the network's prior says, which the smoother does not know. Where the network cannot see the
/// difference, the start is known, or a known term feels the temperature, the level is pinned.
#[test]
fn a_level_that_a_network_makes_up_for_is_not_determined() {
    let open = lake("mix(wind, Ts - Td)*(Ts - Td)", "");
    assert_eq!(sight(&open, "Td"), Sight::UpToShift);
    assert_eq!(open.states[1].determined, 0.0);
    let words = latens::look::sight::states(&open);
    assert!(
        words[0].starts_with("Td is determined up to a shift only"),
        "{words:?}"
    );
    for (mixing, known) in [
        ("mix(wind)*(Ts - Td)", ""),
        ("mix(wind, Ts - Td)*(Ts - Td)", ", start_deviation = 0.1"),
        ("mix(wind, Ts - Td) + 0.01*(Ts - Td)*Ta", ""),
    ] {
        let pinned = lake(mixing, known);
        assert_ne!(sight(&pinned, "Td"), Sight::UpToShift, "{mixing}{known}");
    }
}
