//! Names and texts of a model in other languages. They come from a stranger's file: whatever they hold,
//! they end neither a comment nor a text, and are no word of the language.

use std::collections::HashSet;

use latens::model::Model;

/// Names of letters, digits and `_` alone, different within each kind. Languages put a prefix before
/// them, so that none is a word of the language or of another kind.
pub struct Names {
    /// Of the model itself.
    pub model: String,
    /// Of the states.
    pub states: Vec<String>,
    /// Of the inputs.
    pub inputs: Vec<String>,
    /// Of the measurements.
    pub outputs: Vec<String>,
    /// Of the learned constants.
    pub constants: Vec<String>,
    /// Of the networks.
    pub networks: Vec<String>,
}

impl Names {
    /// Those of a model.
    pub fn of(model: &Model) -> Self {
        Self {
            model: title(&model.name),
            states: distinct(model.states.iter().map(|s| s.name.as_str())),
            inputs: distinct(model.inputs.iter().map(|u| u.name.as_str())),
            outputs: distinct(model.measurements.iter().map(|y| y.name.as_str())),
            constants: distinct(model.unknowns.iter().map(|u| u.name.as_str())),
            networks: distinct(model.system.networks().iter().map(|n| n.name.as_str())),
        }
    }
}

/// A name of the letters that every compiler takes: others become their number.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            plain.push(c);
        } else {
            plain += &format!("u{:04x}", u32::from(c));
        }
    }
    plain
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .map(|name| {
            let mut name = plain(name);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        })
        .collect()
}

/// The name of a model, which may be any text, as the beginning of names: `hodgkin_huxley_neuron`.
fn title(name: &str) -> String {
    const TITLE_BYTES: usize = 40;
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
    let mut title = words.join("_").to_lowercase();
    title.truncate(TITLE_BYTES);
    let title = title.trim_end_matches('_');
    if title.starts_with(|c: char| c.is_ascii_alphabetic()) {
        title.into()
    } else {
        format!("model_{title}").trim_end_matches('_').into()
    }
}

/// A text in one line of a comment, whose ends and continuations it cannot write.
pub fn comment(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        let ends = matches!(
            (line.chars().last(), c),
            (Some('*'), '/') | (Some('/'), '*')
        );
        if ends {
            line.push(' ');
        }
        line.push(match c {
            '\\' => '|',
            c if is_invisible(c) => ' ',
            c => c,
        });
    }
    line.trim().into()
}

/// Controls, line ends of any kind, and what changes the direction of writing.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text in double quotes for JavaScript, also inside of a page.
pub fn script_text(text: &str) -> String {
    ascii_text(text, |c, out| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            *out += &format!("\\u{unit:04x}");
        }
    })
}

/// A text in double quotes for Python.
pub fn python_text(text: &str) -> String {
    ascii_text(text, |c, out| match u32::from(c) {
        _ if c.is_alphanumeric() => out.push(c),
        code @ 0x10000.. => *out += &format!("\\U{code:08x}"),
        code => *out += &format!("\\u{code:04x}"),
    })
}

fn ascii_text(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let harmless = c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '<' | '>' | '&');
        if harmless || c == ' ' {
            out.push(c);
        } else {
            escape(c, &mut out);
        }
    }
    out.push('"');
    out
}

/// A text between the quotes of an XML attribute.
pub fn xml_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&apos;",
            c if is_invisible(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A number that a reader of the language reads back bit for bit.
pub fn digits(value: f64) -> String {
    let text = format!("{value:?}");
    if value.is_sign_negative() && !value.is_nan() {
        format!("({text})")
    } else {
        text
    }
}

/// Numbers in a row, wrapped.
pub fn rows(values: &[f64], indent: &str, number: impl Fn(f64) -> String) -> String {
    const NUMBERS_A_LINE: usize = 5;
    let lines = values.chunks(NUMBERS_A_LINE).map(|chunk| {
        let numbers: Vec<String> = chunk.iter().map(|v| number(*v)).collect();
        format!("{indent}{}", numbers.join(", "))
    });
    lines.collect::<Vec<_>>().join(",\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two names that become one, a word of C, letters of other alphabets.
    #[test]
    fn names_are_plain_and_different() {
        let names = distinct(["φ", "u03c6", "double", "x_1"].into_iter());
        assert_eq!(names, ["u03c6", "u03c6_", "double", "x_1"]);
        assert_eq!(title("Hodgkin–Huxley neuron"), "hodgkin_huxley_neuron");
        assert_eq!(title("*/ system(\"rm\"); /*"), "system_rm");
        assert_eq!(title("…"), "model");
        assert_eq!(title("2 tanks"), "model_2_tanks");
    }

    #[test]
    fn no_text_ends_what_it_stands_in() {
        let text = "*/ /*/ \\\n?\u{202e}</script>\"'";
        assert_eq!(comment(text), "* / / * / | ? </script>\"'");
        for quoted in [script_text(text), python_text(text)] {
            let inside = &quoted[1..quoted.len() - 1];
            assert!(inside.chars().all(|c| c == ' ' || c.is_ascii_graphic()));
            assert!(!inside.contains(['"', '<', '>']), "{inside}");
        }
        assert!(!xml_text(text).contains(['<', '>', '"', '\n']));
    }
}
