//! What the program says, and the form of its numbers and tables.

use std::io::{self, IsTerminal, Write};

pub use latens::text::{
    Side, count, error, list, number, percent, rough_seconds, seconds, shell, table, uncertain,
    visible,
};

use latens::{Door, Warning};

use crate::failure::Failure;

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let text = visible(text);
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(Failure::Output)
}

/// Writes one object to standard output.
pub fn print_json(object: &impl serde::Serialize) -> Result<(), Failure> {
    print(&format!("{:#}\n", serde_json::json!(object)))
}

/// Writes a line to standard error; nobody is left to hear that it failed.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", coloured(&visible(line)));
}

/// A message with its heading in colour, where it goes to a terminal and nobody has `NO_COLOR`.
fn coloured(message: &str) -> String {
    if !io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return message.into();
    }
    let line = |line: &str| {
        for (heading, colour) in [("error:", "1;31"), ("warning:", "1;33")] {
            if let Some(rest) = line.strip_prefix(heading) {
                return format!("\u{1b}[{colour}m{heading}\u{1b}[0m{rest}");
            }
        }
        line.to_string()
    };
    message.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Says a warning.
pub fn warning(warning: &Warning) {
    let text = format!("warning: {}", warning.at(Door::CommandLine));
    note(&text);
}

/// The command as it was given, in a form that a shell takes.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| shell::quoted(&word.to_string_lossy()));
    format!("latens {}", words.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_unit_or_two() {
        assert_eq!(seconds(3.21), "3.2 s");
        assert_eq!(seconds(75.0), "1 min 15 s");
        assert_eq!(seconds(7300.0), "2 h 1 min");
        let rough = [0.2, 19.7, 100.0, 7300.0].map(rough_seconds);
        assert_eq!(rough, ["1 s", "20 s", "2 min", "2.0 h"]);
    }
}
