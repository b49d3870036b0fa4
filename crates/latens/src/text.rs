//! The form of numbers, lists and tables, in the terminal and on the page.

pub mod shell;

use std::borrow::Cow;

/// Whether a terminal acts on a character instead of showing it: control characters, and those that
/// turn the direction of what follows.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text for a terminal: lines and tabs are as they are, any other character that a terminal would act
/// on is shown. Names and files may be a stranger's.
///
/// ```
/// assert_eq!(latens::text::visible("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\n");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| is_hidden(c) && !['\n', '\t'].contains(&c);
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::new();
    for c in text.chars() {
        if acts(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Four significant digits, without an exponent where that is readable.
pub fn number(value: f64) -> String {
    digits(value, 4)
}

/// So many significant digits, without an exponent where that is readable.
///
/// ```
/// use latens::text::digits;
///
/// assert_eq!(digits(0.0312, 1), "0.03");
/// assert_eq!(digits(1.68, 2), "1.7");
/// assert_eq!(digits(4.2e-7, 1), "4e-7");
/// ```
pub fn digits(value: f64, digits: usize) -> String {
    let (size, others) = (value.abs(), digits - 1);
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (others as i32 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.others$e}")
    }
}

/// A number and its unit, where it has one.
pub fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().into()
}

/// A value and its standard deviation, to two digits of the latter: `0.3670 ± 0.0040`.
///
/// ```
/// use latens::text::uncertain;
///
/// assert_eq!(uncertain(424.0, 250.0), ("424".into(), "250".into()));
/// assert_eq!(uncertain(0.36704, 0.004007), ("0.3670".into(), "0.0040".into()));
/// ```
pub fn uncertain(value: f64, std: f64) -> (String, String) {
    if std == 0.0 {
        return (number(value), "0".into());
    }
    let decimals = 1.0 - std.log10().floor();
    if decimals <= 8.0 && value.abs().max(std) < 1e6 {
        let decimals = decimals.max(0.0) as usize;
        (format!("{value:.decimals$}"), format!("{std:.decimals$}"))
    } else {
        (number(value), format!("{std:.1e}"))
    }
}

/// A relative error, two digits; a free run that diverged has none.
pub fn error(value: Option<f64>) -> String {
    value.map_or("diverged".into(), |v| format!("{v:.1e}"))
}

/// A part of a whole for people, two digits.
pub fn percent(part: f64) -> String {
    let value = 100.0 * part;
    if !value.is_finite() {
        return "more than any number".into();
    }
    if value < 1e-4 {
        return "less than 0.0001 %".into();
    }
    let decimals = (1.0 - value.log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$} %")
}

/// A duration for people.
pub fn seconds(value: f64) -> String {
    if value < 60.0 {
        format!("{value:.1} s")
    } else {
        let whole = value.round() as u64;
        match whole / 3600 {
            0 => format!("{} min {} s", whole / 60, whole % 60),
            hours => format!("{hours} h {} min", whole / 60 % 60),
        }
    }
}

/// A duration that is a guess: 20 s, not 19.7 s.
pub fn rough_seconds(value: f64) -> String {
    match value < 90.0 {
        true => format!("{:.0} s", value.max(1.0)),
        false if value < 5400.0 => format!("{:.0} min", value / 60.0),
        false => format!("{:.1} h", value / 3600.0),
    }
}

/// A number of things: `1 stage`, `2 stages`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// Names in a row: `a, b and c`.
///
/// ```
/// assert_eq!(latens::text::list(&["a", "b", "c"]), "a, b and c");
/// ```
pub fn list(names: &[&str]) -> String {
    match names {
        [] => "nothing".into(),
        [only] => (*only).into(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Which side of its column a cell stands on.
#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Right,
}

/// Rows of cells in columns, two spaces apart, each line indented.
pub fn table(indent: usize, sides: &[Side], rows: &[Vec<String>]) -> String {
    let width = |k: usize| {
        let cells = rows.iter().filter_map(|row| row.get(k));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(sides).zip(&widths);
        let cells: Vec<String> = cells
            .map(|((cell, side), &width)| match side {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            })
            .collect();
        let line = format!("{}{}", " ".repeat(indent), cells.join("  "));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let shown = [0.0, 1.0, -0.25, 12.3456, 98765.4, 1e-4, -2.5e7].map(number);
        assert_eq!(
            shown,
            [
                "0", "1.000", "-0.2500", "12.35", "98765", "1.000e-4", "-2.500e7"
            ]
        );
    }

    #[test]
    fn values_are_as_precise_as_they_are_certain() {
        let shown = |value, std| {
            let (value, std) = uncertain(value, std);
            format!("{value} ± {std}")
        };
        assert_eq!(shown(0.36704, 0.004007), "0.3670 ± 0.0040");
        assert_eq!(shown(1234.56, 7.1), "1234.6 ± 7.1");
        assert_eq!(shown(424.0, 250.0), "424 ± 250");
        assert_eq!(shown(1.0, 0.0), "1.000 ± 0");
        assert_eq!(shown(1.0, 1e-12), "1.000 ± 1.0e-12");
        assert_eq!(shown(5e6, 2e4), "5.000e6 ± 2.0e4");
    }

    #[test]
    fn parts_have_two_digits() {
        let shown = [0.5, 0.0123, 2.1e-5, 1e-9].map(percent);
        assert_eq!(shown, ["50 %", "1.2 %", "0.0021 %", "less than 0.0001 %"]);
    }

    #[test]
    fn columns_are_aligned_and_lines_not_padded() {
        let rows = [["a", "1"], ["bcd", "µ"]].map(|r| r.map(String::from).to_vec());
        assert_eq!(
            table(1, &[Side::Left, Side::Right], &rows),
            " a    1\n bcd  µ\n"
        );
    }
}
