//! Colours and the classes of marks.
//!
//! The colours are those of Okabe and Ito, which colour-blind people tell apart; what they mean also
//! shows in the dashes. A mark has a class, and [`style`] says what that looks like: in a page through
//! the page's variables, which follow light and dark, in a file of its own in full.

use std::fmt::Write;

/// The names of the colours, on white and on black.
pub const COLOURS: [(&str, &str, &str); 13] = [
    ("ink", "#1b1f24", "#e6e8eb"),
    ("soft", "#5f6873", "#9aa4b0"),
    ("rule", "#d9dde2", "#343b44"),
    ("paper", "#ffffff", "#14181d"),
    ("blue", "#0072b2", "#56b4e9"),
    ("pale", "#a3cbe3", "#2c5670"),
    ("green", "#009e73", "#1fc79a"),
    ("vermilion", "#d55e00", "#ff8a3d"),
    ("alarm", "#b04a00", "#ff8a3d"),
    ("purple", "#a6467f", "#e39ac4"),
    ("orange", "#b87f00", "#f0b429"),
    ("sky", "#2b8fc7", "#8fd0f5"),
    ("grey", "#8a929b", "#7d8792"),
];

/// What each class looks like; `$` stands before a colour.
const CLASSES: [(&str, &str); 27] = [
    ("frame", "fill:none;stroke:$rule"),
    ("grid", "stroke:$rule;stroke-width:.6"),
    ("tick", "fill:$soft;font-size:10.5px"),
    ("axis", "fill:$soft;font-size:11.5px"),
    ("head", "fill:$ink;font-size:12.5px;font-weight:600"),
    ("note", "fill:$soft;font-size:11px"),
    ("data", "stroke:$grey"),
    ("truth", "stroke:$ink;stroke-dasharray:5 3"),
    ("estimate", "stroke:$blue"),
    ("one_step", "stroke:$green;stroke-dasharray:2 2"),
    ("free_run", "stroke:$vermilion"),
    ("bound", "stroke:$soft;stroke-dasharray:4 3;stroke-width:1"),
    ("run0", "stroke:$blue;stroke-width:2.6"),
    ("run1", "stroke:$vermilion;stroke-dasharray:9 5"),
    ("run2", "stroke:$green;stroke-dasharray:3 5"),
    ("run3", "stroke:$purple;stroke-dasharray:1 3"),
    ("run4", "stroke:$orange;stroke-dasharray:8 2 2 2"),
    ("run5", "stroke:$sky;stroke-dasharray:1 2"),
    ("run6", "stroke:$grey"),
    ("run7", "stroke:$vermilion;stroke-dasharray:7 2"),
    ("run8", "stroke:$green"),
    ("run9", "stroke:$orange;stroke-dasharray:1 2"),
    ("run10", "stroke:$sky;stroke-dasharray:8 2 2 2"),
    ("run11", "stroke:$purple"),
    ("away", "stroke:$soft;stroke-width:.8"),
    ("faded", "stroke:$pale;stroke-width:1"),
    ("here", "stroke:$vermilion"),
];

/// The class of one of several runs, or lines.
pub fn of_run(run: usize) -> &'static str {
    [
        "run0", "run1", "run2", "run3", "run4", "run5", "run6", "run7", "run8", "run9", "run10",
        "run11",
    ][run % 12]
}

/// The rules of all classes, for elements of this class.
pub fn style(colour: impl Fn(&str) -> String) -> String {
    let mut css = String::from(
        ".plot text{font-family:Inter,\"Helvetica Neue\",Helvetica,Arial,\"Liberation Sans\",\"DejaVu Sans\",sans-serif}\
         .plot .line{fill:none;stroke-width:1.5;stroke-linejoin:round}\
         .plot .band{stroke:none;fill-opacity:.2}.plot .dots{stroke:none;fill-opacity:.75}\
         .plot .bars{stroke:none;fill-opacity:.55}",
    );
    for (class, rule) in CLASSES {
        let mut rule = rule.to_string();
        for (name, ..) in COLOURS {
            rule = rule.replace(&format!("${name}"), &colour(name));
        }
        match rule.strip_prefix("stroke:").filter(|_| class != "grid") {
            // areas have the colour of their line
            Some(rest) => {
                let colour = rest.split(';').next().unwrap_or_default();
                let areas = ["band", "dots", "bars"].map(|kind| format!(".plot .{kind}.{class}"));
                let areas = areas.join(",");
                let _ = write!(css, ".plot .line.{class}{{{rule}}}{areas}{{fill:{colour}}}");
            }
            None => {
                let _ = write!(css, ".plot .{class}{{{rule}}}");
            }
        }
    }
    css
}
