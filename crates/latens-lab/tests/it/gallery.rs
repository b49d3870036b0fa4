//! The gallery: every model is one, its truth and its guesses simulate, and guesses are a factor of two off.

use latens::Model;
use latens::simulate::{Simulation, simulate};
use latens_lab::gallery::{PROBLEMS, Variant};

/// The records of a problem: what is learned from, and the two that are held out.
const RECORDS: [Option<usize>; 3] = [None, Some(0), Some(1)];

fn record(model: &Model, held_out: Option<usize>, theta: Option<Vec<f64>>) -> latens::Record {
    let simulation = Simulation {
        held_out,
        theta,
        ..Simulation::default()
    };
    let made = simulate(model, &simulation);
    made.unwrap_or_else(|error| panic!("{}, {held_out:?}: {error}", model.name))
}

#[test]
fn truth_and_guesses_simulate() {
    for problem in PROBLEMS {
        let model = problem.right().unwrap();
        assert_eq!(model.truth.as_ref().unwrap().held_out.len(), 2);
        let shown = model.system.direct();
        let hidden = (0..model.states.len()).any(|i| !shown.contains(&Some(i)));
        assert!(hidden, "{}: nothing is hidden", problem.name);
        for held_out in RECORDS {
            let made = record(&model, held_out, None);
            assert!((400..=1001).contains(&made.len()), "{}", problem.name);
            let finite = made.truth.iter().flatten().chain(&made.outputs);
            assert!(finite.clone().all(|x| x.is_finite()), "{}", problem.name);
            // at the guesses, θ = 0
            let guessed = record(&model, held_out, Some(vec![0.0; model.system.parameters()]));
            let finite = guessed.truth.iter().flatten().chain(&guessed.outputs);
            assert!(finite.clone().all(|x| x.is_finite()), "{}", problem.name);
        }
    }
}

#[test]
fn guesses_are_a_factor_of_two_off() {
    let (mut high, mut low) = (0, 0);
    for problem in PROBLEMS {
        let (model, truth) = (problem.right().unwrap(), problem.true_constants().unwrap());
        for unknown in &model.unknowns {
            let ratio = unknown.guess / truth[&unknown.name];
            let (name, problem_name) = (&unknown.name, problem.name);
            let off = [(ratio - 2.0).abs() < 1e-9, (ratio - 0.5).abs() < 1e-9];
            assert!(
                off[0] || off[1],
                "{problem_name}: {name} is guessed {ratio} times its truth"
            );
            assert!(unknown.positive, "{problem_name}: {name}");
            high += usize::from(off[0]);
            low += usize::from(off[1]);
        }
    }
    assert!(high.min(low) > 25, "{high} too high, {low} too low");
}

#[test]
fn variants_are_models_of_the_same_records() {
    for problem in PROBLEMS {
        let right = problem.right().unwrap();
        for variant in [Variant::Network, Variant::Wrong] {
            let text = problem.variant_text(variant).unwrap();
            let name = format!("{}, {}", problem.name, variant.name());
            let model = Model::from_text(&name, &text).unwrap_or_else(|e| panic!("{e}"));
            assert!(model.truth.is_none(), "{name} has a truth of its own");
            let names = |model: &Model| -> Vec<String> {
                let both = model.inputs.iter().chain(&model.measurements);
                both.map(|q| q.name.clone()).collect()
            };
            assert_eq!(names(&model), names(&right), "{name}");
            let networks = model.system.networks().len();
            assert_eq!(networks, usize::from(variant == Variant::Network), "{name}");
            assert!(!problem.says(variant).is_empty());
        }
    }
}
