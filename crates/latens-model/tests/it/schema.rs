//! The JSON Schema of the model file says what the reader does.

use crate::oracle::case::{EVERYTHING, model_files};
use latens_model::network::Activation;
use latens_model::syntax::FUNCTIONS;
use latens_model::{KEYS, Method, Model, schema};
use serde_json::Value;

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

fn json(text: &str) -> Value {
    toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The part of the schema with the keys of a section, or of an entry of it.
fn section<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let mut part = schema;
    for word in name.split('.').filter(|w| !w.is_empty()) {
        part = &part["properties"][word];
    }
    for inside in ["additionalProperties", "items"] {
        if part[inside].is_object() {
            part = &part[inside];
        }
    }
    match part["anyOf"].as_array() {
        Some(forms) => forms.iter().find(|f| f["properties"].is_object()).unwrap(),
        None => part,
    }
}

#[test]
fn it_is_a_schema() {
    assert!(jsonschema::meta::is_valid(&schema()));
}

#[test]
fn model_files_fit() {
    let validator = validator();
    let mut texts = model_files();
    assert!(texts.len() >= 6);
    texts.push(EVERYTHING.into());
    for text in &texts {
        let value = json(text);
        let mistakes: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(mistakes.is_empty(), "{}: {mistakes:?}", value["name"]);
    }
}

#[test]
fn keys_are_those_of_the_reader() {
    let schema = schema();
    for (name, keys) in KEYS {
        let part = section(&schema, name);
        let properties = part["properties"].as_object().unwrap();
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        let mut expected = keys.to_vec();
        known.sort_unstable();
        expected.sort_unstable();
        assert_eq!(known, expected, "[{name}]");
        assert_eq!(part["additionalProperties"], false, "[{name}]");
        for (key, help) in properties {
            for text in ["title", "description"] {
                let text = help[text].as_str().unwrap_or("");
                assert!(!text.is_empty(), "[{name}] {key}");
            }
        }
    }
}

#[test]
fn choices_are_those_of_the_reader() {
    let schema = schema();
    let methods = Method::NAMES.iter().map(|(name, _)| Value::from(*name));
    let methods: Vec<Value> = methods.collect();
    let mut listed = schema["properties"]["time"]["properties"]["method"]["enum"]
        .as_array()
        .unwrap()
        .clone();
    listed.sort_by_key(|v| methods.iter().position(|m| m == v));
    assert_eq!(listed, methods);
    let layers = &section(&schema, "networks")["properties"]["layers"];
    let pattern = layers["items"]["pattern"].as_str().unwrap();
    let names = Activation::NAMES.map(|(name, _)| name).join("|");
    assert!(pattern.contains(&format!("({names})")), "{pattern}");
    let help = schema["$defs"]["expression"]["description"]
        .as_str()
        .unwrap();
    let words: Vec<&str> = help
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for (function, _) in FUNCTIONS {
        assert!(words.contains(&function), "{function} is not explained");
    }
}

/// What the schema refuses, the reader refuses too.
#[test]
fn wrong_files_do_not_fit() {
    let validator = validator();
    let model = |more: &str| {
        format!("{more}\n[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n")
    };
    assert!(validator.is_valid(&json(&model(""))));
    let fit =
        "[fit]\npasses = 3\nprocess_variance = { x = 1e-6 }\nstart_variance = 1\nanneal = 1\n";
    assert!(validator.is_valid(&json(&model(fit))));
    Model::from_text("m.toml", &model(fit)).unwrap_or_else(|e| panic!("{e}"));
    for entry in [
        "guess = 1, min = 0, max = 2",
        "value = \"2.1 ± 0.3\", prior = \"lognormal\"",
        "value = \"2.1 +- 0.3\", min = 1",
        "prior = \"uniform\", min = 0, max = 1",
        "value = 3, fixed = true",
    ] {
        let more = format!(
            "[unknowns]\np = {{ {entry} }}\n[states.z]\nderivative = \"p*z\"\n[fit]\nfix = {{ p = 1.5 }}"
        );
        assert!(validator.is_valid(&json(&model(&more))), "{entry}");
        Model::from_text("m.toml", &model(&more)).unwrap_or_else(|e| panic!("{e}"));
    }
    let mut wrong: Vec<String> = [
        "colour = \"red\"",
        "[time]\nstep = 0",
        "[time]\nsubsteps = 1.5",
        "[time]\nmethod = \"rk45\"",
        "[constants]\nk = true",
        "[constants]\nk = \"\"",
        "[constants]\n2k = 1",
        "[constants]\ntruth_k = 1",
        "[inputs]\nu = { units = \"V\" }",
        "[states.z]\nstart = 1",
        "[states.z]\nderivative = \"-z\"\nscale = -1",
        "[networks.f]\nskip = true\n[states.z]\nderivative = \"f(z)\"",
        "[networks.f]\nlayers = [\"20 tahn\"]\n[states.z]\nderivative = \"f(z)\"",
        "[networks.f]\nlayers = [\"0 tanh\"]\n[states.z]\nderivative = \"f(z)\"",
        "[networks.f]\nlayers = []\noutputs = [\"a\", \"a\"]\n[states.z]\nderivative = \"f(z).a\"",
        "[unknowns]\np = { scale = 1 }\n[states.z]\nderivative = \"p*z\"",
        "[unknowns]\np = { guess = -1, positive = true }\n[states.z]\nderivative = \"p*z\"",
        "[unknowns]\np = { guess = 1, value = 2 }\n[states.z]\nderivative = \"p*z\"",
        "[unknowns]\np = { value = \"2.1\" }\n[states.z]\nderivative = \"p*z\"",
        "[unknowns]\np = { guess = 1, prior = \"flat\" }\n[states.z]\nderivative = \"p*z\"",
        "[fit]\nfix = { x = true }",
        "[fit]\nfree = \"x\"",
        "[tables.c]\nx = [0]",
        "[simulation]\nsteps = 0",
        "[simulation]\nlqr = { state = { x = 1 } }",
        "[[simulation.held_out]]\nstart = { x = \"1\" }",
        "[fit]\npass = 3",
        "[fit]\npasses = 0",
        "[fit]\nhidden_noise = 0",
        "[fit]\nprocess_variance = { x = 0 }",
        "[fit]\nvalidate_tail = 0.5",
        "[fit]\nkeep_best = 1",
    ]
    .map(model)
    .into();
    wrong.push("[states.x]\nderivative = \"-x\"\n".into());
    wrong.push("[measurements]\ny = 1\n".into());
    wrong.push("[states.x]\nderivative = \"-x\"\n[measurements]\ny = { unit = \"m\" }\n".into());
    for text in wrong {
        assert!(!validator.is_valid(&json(&text)), "{text}");
        assert!(Model::from_text("m.toml", &text).is_err(), "{text}");
    }
}
