//! Figures that stand still, as SVG: axes with units, lines, bands, dots, bars and arrows.

use std::fmt::Write;

use crate::colours::{COLOURS, style};
use crate::embedded;
use crate::scale::Scale;
use crate::shapes::shape;
use latens::text;

/// One pair of axes.
#[derive(Default)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub marks: Vec<Mark>,
    /// Under the title, in lines.
    pub note: String,
}

#[derive(Default)]
pub struct Axis {
    pub label: String,
    pub log: bool,
    /// Least and greatest value; those of the marks where it is not given.
    pub range: Option<[f64; 2]>,
    /// Whole numbers only.
    pub whole: bool,
}

/// Something drawn.
pub struct Mark {
    pub class: &'static str,
    /// Its name in the legend.
    pub label: String,
    pub shape: Shape,
}

pub enum Shape {
    Line(Vec<[f64; 2]>),
    /// Values that last until the next.
    Steps(Vec<[f64; 2]>),
    /// x, lower and upper end.
    Band(Vec<[f64; 3]>),
    Dots(Vec<[f64; 2]>),
    /// x, lower and upper end of a bar of its own at each.
    Whiskers(Vec<[f64; 3]>),
    /// Middle and height above zero, all of one width.
    Bars(Vec<[f64; 2]>, f64),
    /// Foot and direction, in units of the axes.
    Arrows(Vec<([f64; 2], [f64; 2])>),
    /// A horizontal line.
    Level(f64),
    /// Parts of 1 along the bottom, from the left end to the right: how much is where.
    Density(Vec<f64>),
}

impl Mark {
    pub fn new(class: &'static str, label: impl Into<String>, shape: Shape) -> Self {
        Self {
            class,
            label: label.into(),
            shape,
        }
    }

    /// The points that decide how far the axes go.
    fn extent(&self) -> Vec<[f64; 2]> {
        match &self.shape {
            Shape::Line(points) | Shape::Steps(points) | Shape::Dots(points) => points.clone(),
            Shape::Band(points) | Shape::Whiskers(points) => {
                let both = points.iter().flat_map(|p| [[p[0], p[1]], [p[0], p[2]]]);
                both.collect()
            }
            Shape::Bars(points, width) => {
                let bars = points.iter();
                bars.flat_map(|p| [[p[0] - width / 2.0, 0.0], [p[0] + width / 2.0, p[1]]])
                    .collect()
            }
            Shape::Arrows(arrows) => arrows.iter().map(|(foot, _)| *foot).collect(),
            Shape::Level(y) => vec![[f64::NAN, *y]],
            Shape::Density(_) => vec![],
        }
    }
}

/// A name with its unit, as on an axis.
pub fn labelled(name: &str, unit: &str) -> String {
    match unit {
        "" => format!("{name} (–)"),
        unit => format!("{name} ({unit})"),
    }
}

/// Text that may stand in HTML and SVG; characters that may not in any way are replaced.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {
                safe.push(char::REPLACEMENT_CHARACTER);
            }
            c => safe.push(c),
        }
    }
    safe
}

/// What was drawn, and where values stand in it.
struct Drawing {
    text: String,
    x: Scale,
    y: Scale,
}

fn element(drawing: &str, width: f64, height: f64, spoken: &str) -> String {
    format!(
        "<svg class=\"plot\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height}\">{drawing}</svg>",
        escape(spoken),
    )
}

const LEFT_MARGIN: f64 = 66.0;
const RIGHT_MARGIN: f64 = 14.0;
const BOTTOM_MARGIN: f64 = 38.0;
/// Width of a letter of the legend and the title, roughly.
const LETTER_WIDTH: f64 = 6.1;

impl Plot {
    /// As an element `<svg>` for a page, with a text for those who cannot see it.
    pub fn inline(&self, width: f64, height: f64, spoken: &str) -> String {
        element(&self.draw(width, height).text, width, height, spoken)
    }

    /// As a figure of a page: the drawing, and its numbers for those who point at it or save them.
    pub fn figure(&self, class: &str, width: f64, height: f64) -> String {
        let drawing = self.draw(width, height);
        format!(
            "<figure{class}>{}<script type=\"application/json\">{}</script></figure>\n",
            element(&drawing.text, width, height, &spoken(self)),
            embedded::json(self, [&drawing.x, &drawing.y]),
        )
    }

    fn draw(&self, width: f64, height: f64) -> Drawing {
        let mut out = String::new();
        let mut top = 8.0;
        if !self.title.is_empty() {
            let _ = write!(
                out,
                "<text class=\"head\" x=\"{LEFT_MARGIN}\" y=\"{}\">{}</text>",
                top + 11.0,
                escape(&self.title)
            );
            top += 18.0;
        }
        for line in self.note.lines() {
            let _ = write!(
                out,
                "<text class=\"note\" x=\"{LEFT_MARGIN}\" y=\"{}\">{}</text>",
                top + 9.0,
                escape(line)
            );
            top += 15.0;
        }
        top += self.legend(&mut out, width, top);
        let (right, bottom) = (width - RIGHT_MARGIN, height - BOTTOM_MARGIN);
        let extent: Vec<[f64; 2]> = self.marks.iter().flat_map(Mark::extent).collect();
        let xs = extent.iter().map(|p| p[0]);
        let ys = extent.iter().map(|p| p[1]);
        let x = Scale::new(&self.x, xs, [LEFT_MARGIN, right], 0.02);
        let y = Scale::new(&self.y, ys, [bottom, top], 0.06);
        for (at, label) in y.ticks(((bottom - top) / 34.0).max(2.0), self.y.whole) {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT_MARGIN} {at:.1}H{right:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT_MARGIN - 6.0,
                at + 3.6
            );
        }
        for (at, label) in x.ticks(((right - LEFT_MARGIN) / 70.0).max(2.0), self.x.whole) {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                bottom + 14.0
            );
        }
        let middle = (LEFT_MARGIN + right) / 2.0;
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            height - 8.0,
            escape(&self.x.label)
        );
        let centre = (top + bottom) / 2.0;
        let _ = write!(
            out,
            "<text class=\"axis\" transform=\"translate(12 {centre:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(&self.y.label)
        );
        // each drawing cuts at its own frame; names need only be unlike within a page
        let clip = format!("c{:x}", hash(&format!("{out}{width}{height}")));
        let _ = write!(
            out,
            "<clipPath id=\"{clip}\"><rect x=\"{LEFT_MARGIN}\" y=\"{top}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath><g clip-path=\"url(#{clip})\">",
            right - LEFT_MARGIN,
            bottom - top
        );
        for mark in &self.marks {
            shape(&mut out, mark, &x, &y);
        }
        let _ = write!(
            out,
            "</g><rect class=\"frame\" x=\"{LEFT_MARGIN}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            right - LEFT_MARGIN,
            bottom - top
        );
        Drawing { text: out, x, y }
    }

    /// The names of the marks in a row or more; gives its height.
    fn legend(&self, out: &mut String, width: f64, top: f64) -> f64 {
        let (mut x, mut y) = (LEFT_MARGIN, top + 8.0);
        let mut any = false;
        for mark in self.marks.iter().filter(|m| !m.label.is_empty()) {
            let length = 30.0 + LETTER_WIDTH * mark.label.chars().count() as f64;
            if any && x + length > width - RIGHT_MARGIN {
                (x, y) = (LEFT_MARGIN, y + 15.0);
            }
            any = true;
            let class = mark.class;
            let swatch = match mark.shape {
                Shape::Band(_) | Shape::Bars(..) | Shape::Density(_) => format!(
                    "<rect class=\"{} {class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"18\" height=\"8\"/>",
                    if matches!(mark.shape, Shape::Band(_)) {
                        "band"
                    } else {
                        "bars"
                    },
                    y - 4.0
                ),
                Shape::Dots(_) => format!(
                    "<circle class=\"dots {class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\"/>",
                    x + 9.0
                ),
                Shape::Whiskers(_) => format!(
                    "<path class=\"line {class}\" d=\"M{0:.1} {1:.1}V{2:.1}M{3:.1} {1:.1}V{2:.1}\"/>",
                    x + 6.0,
                    y - 5.0,
                    y + 5.0,
                    x + 12.0
                ),
                _ => format!("<path class=\"line {class}\" d=\"M{x:.1} {y:.1}h18\"/>"),
            };
            let _ = write!(
                out,
                "{swatch}<text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 22.0,
                y + 3.6,
                escape(&mark.label)
            );
            x += length;
        }
        if any { y - top + 12.0 } else { 4.0 }
    }
}

fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Plots in rows, as an SVG file of its own on white.
pub fn document<'p>(
    plots: impl IntoIterator<Item = &'p Plot>,
    columns: usize,
    [width, height]: [f64; 2],
) -> String {
    let plots: Vec<&Plot> = plots.into_iter().collect();
    let columns = columns.clamp(1, plots.len().max(1));
    let rows = plots.len().div_ceil(columns);
    let (w, h) = (width * columns as f64, height * rows as f64);
    let colour = |name: &str| {
        let found = COLOURS.iter().find(|(key, ..)| *key == name);
        found.map_or(String::new(), |(_, light, _)| (*light).to_string())
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\"><style>{}</style><rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>",
        style(colour)
    );
    for (k, plot) in plots.iter().enumerate() {
        let (x, y) = ((k % columns) as f64 * width, (k / columns) as f64 * height);
        let _ = write!(
            out,
            "<g transform=\"translate({x} {y})\">{}</g>",
            plot.draw(width, height).text
        );
    }
    out + "</svg>\n"
}

/// A line for those who cannot see a plot: what it shows, and from where to where.
pub fn spoken(plot: &Plot) -> String {
    let names = plot.marks.iter().map(|m| m.label.as_str());
    let names: Vec<&str> = names.filter(|l| !l.is_empty()).collect();
    let labels = if names.is_empty() {
        String::new()
    } else {
        format!(", showing {}", text::list(&names))
    };
    format!(
        "{}: {} over {}{labels}",
        plot.title, plot.y.label, plot.x.label
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a model calls itself cannot leave its place.
    #[test]
    fn names_are_only_names() {
        let plot = Plot {
            title: "<script>alert(1)</script>".into(),
            ..Plot::default()
        };
        let svg = plot.inline(300.0, 200.0, "\"><script>");
        assert!(!svg.contains("<script"), "{svg}");
    }
}
