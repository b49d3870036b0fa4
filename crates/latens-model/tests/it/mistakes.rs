//! Mistakes in model files and where they must be found.

use latens_model::{Error, Model, ModelError};

/// Stands before the character that the caret must point at.
const MARK: char = '§';

pub fn mistakes(text: &str) -> ModelError {
    match Model::from_text("m.toml", text) {
        Err(Error::Mistakes(e)) => e,
        Err(e) => panic!("not a model error: {e}"),
        Ok(_) => panic!("no mistake was found in\n{text}"),
    }
}

/// The mistakes of `marked` are those expected, in order, each at its mark: (words of the message,
/// words of the help).
pub fn expect(marked: &str, expected: &[(&str, &str)]) {
    let mut places = Vec::new();
    let (mut line, mut column, mut text) = (1, 1, String::new());
    for c in marked.chars() {
        if c == MARK {
            places.push((line, column));
            continue;
        }
        text.push(c);
        (line, column) = if c == '\n' {
            (line + 1, 1)
        } else {
            (line, column + 1)
        };
    }
    let error = mistakes(&text);
    println!("{error}\n");
    let found: Vec<_> = error
        .diagnostics
        .iter()
        .map(|d| error.position(d.span.start))
        .collect();
    assert_eq!(error.diagnostics.len(), expected.len(), "\n{error}");
    assert_eq!(found, places, "\n{error}");
    for (d, (message, help)) in error.diagnostics.iter().zip(expected) {
        assert!(d.message.contains(message), "no {message:?} in\n{error}");
        let given = d.help.as_deref().unwrap_or("");
        assert!(
            !given.is_empty() && given.contains(help),
            "no {help:?} in\n{error}"
        );
    }
}

/// One mistake in a model that is otherwise right: x' = -x, measured.
pub fn expect_in(sections: &str, message: &str, help: &str) {
    let text = format!("{sections}\n[states.x]\nderivative = \"-x\"\n[measurements]\ny = \"x\"\n");
    expect(&text, &[(message, help)]);
}
