//! Figures that stand still, as SVG: axes with units, lines, bands, dots, bars and arrows.

use std::fmt::Write;

use crate::colours::{COLOURS, style};
use crate::scale::Scale;
use latens::text;

/// One pair of axes.
#[derive(Default)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub marks: Vec<Mark>,
    /// Under the title.
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
    /// x, lower and upper end.
    Band(Vec<[f64; 3]>),
    Dots(Vec<[f64; 2]>),
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
            Shape::Line(points) | Shape::Dots(points) => points.clone(),
            Shape::Band(points) => {
                let both = points.iter().flat_map(|p| [[p[0], p[1]], [p[0], p[2]]]);
                both.collect()
            }
            Shape::Bars(points, width) => {
                let each = points.iter();
                each.flat_map(|p| [[p[0] - width / 2.0, 0.0], [p[0] + width / 2.0, p[1]]])
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

const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 38.0;
/// Width of a letter of the legend and the title, roughly.
const LETTER: f64 = 6.1;

impl Plot {
    /// As an element `<svg>` for a page, with a text for those who cannot see it.
    pub fn inline(&self, width: f64, height: f64, spoken: &str) -> String {
        format!(
            "<svg class=\"plot\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width} {height}\">{}</svg>",
            escape(spoken),
            self.draw(width, height)
        )
    }

    fn draw(&self, width: f64, height: f64) -> String {
        let mut out = String::new();
        let mut top = 8.0;
        if !self.title.is_empty() {
            let _ = write!(
                out,
                "<text class=\"head\" x=\"{LEFT}\" y=\"{}\">{}</text>",
                top + 11.0,
                escape(&self.title)
            );
            top += 18.0;
        }
        if !self.note.is_empty() {
            let _ = write!(
                out,
                "<text class=\"note\" x=\"{LEFT}\" y=\"{}\">{}</text>",
                top + 9.0,
                escape(&self.note)
            );
            top += 15.0;
        }
        top += self.legend(&mut out, width, top);
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let extent: Vec<[f64; 2]> = self.marks.iter().flat_map(Mark::extent).collect();
        let xs = extent.iter().map(|p| p[0]);
        let ys = extent.iter().map(|p| p[1]);
        let x = Scale::new(&self.x, xs, [LEFT, right], 0.02);
        let y = Scale::new(&self.y, ys, [bottom, top], 0.06);
        for (at, label) in y.ticks(((bottom - top) / 34.0).max(2.0), self.y.whole) {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                at + 3.6
            );
        }
        for (at, label) in x.ticks(((right - LEFT) / 70.0).max(2.0), self.x.whole) {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                bottom + 14.0
            );
        }
        let middle = (LEFT + right) / 2.0;
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
            "<clipPath id=\"{clip}\"><rect x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath><g clip-path=\"url(#{clip})\">",
            right - LEFT,
            bottom - top
        );
        for mark in &self.marks {
            shape(&mut out, mark, &x, &y);
        }
        let _ = write!(
            out,
            "</g><rect class=\"frame\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            right - LEFT,
            bottom - top
        );
        out
    }

    /// The names of the marks in a row or more; gives its height.
    fn legend(&self, out: &mut String, width: f64, top: f64) -> f64 {
        let (mut x, mut y) = (LEFT, top + 8.0);
        let mut any = false;
        for mark in self.marks.iter().filter(|m| !m.label.is_empty()) {
            let length = 30.0 + LETTER * mark.label.chars().count() as f64;
            if any && x + length > width - RIGHT {
                (x, y) = (LEFT, y + 15.0);
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

fn shape(out: &mut String, mark: &Mark, x: &Scale, y: &Scale) {
    let class = mark.class;
    match &mark.shape {
        Shape::Line(points) => {
            let d = path(points.iter().map(|p| [x.at(p[0]), y.at(p[1])]));
            let _ = write!(out, "<path class=\"line {class}\" d=\"{d}\"/>");
        }
        Shape::Band(points) => {
            let known = points.iter().filter(|p| p.iter().all(|v| v.is_finite()));
            let known: Vec<&[f64; 3]> = known.collect();
            let up = known.iter().map(|p| [x.at(p[0]), y.at(p[2])]);
            let down = known.iter().rev().map(|p| [x.at(p[0]), y.at(p[1])]);
            let d = path(up.chain(down));
            let _ = write!(out, "<path class=\"band {class}\" d=\"{d}Z\"/>");
        }
        Shape::Dots(points) => {
            let _ = write!(out, "<g class=\"dots {class}\">");
            for p in points.iter().filter(|p| p.iter().all(|v| v.is_finite())) {
                let _ = write!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\"/>",
                    x.at(p[0]),
                    y.at(p[1])
                );
            }
            out.push_str("</g>");
        }
        Shape::Bars(points, width) => {
            let _ = write!(out, "<g class=\"bars {class}\">");
            for [middle, height] in points {
                let (left, right) = (x.at(middle - width / 2.0), x.at(middle + width / 2.0));
                let (foot, end) = (y.at(0.0), y.at(*height));
                let _ = write!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    foot.min(end),
                    (right - left).max(0.5) * 0.9,
                    (foot - end).abs()
                );
            }
            out.push_str("</g>");
        }
        Shape::Arrows(arrows) => {
            let mut d = String::new();
            for (foot, by) in arrows {
                let [x0, y0] = [x.at(foot[0]), y.at(foot[1])];
                let [x1, y1] = [x.at(foot[0] + by[0]), y.at(foot[1] + by[1])];
                let (dx, dy) = (x1 - x0, y1 - y0);
                if !(dx.is_finite() && dy.is_finite()) {
                    continue;
                }
                let _ = write!(
                    d,
                    "M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}L{:.1} {:.1}M{x1:.1} {y1:.1}L{:.1} {:.1}",
                    x1 - 0.3 * dx + 0.18 * dy,
                    y1 - 0.3 * dy - 0.18 * dx,
                    x1 - 0.3 * dx - 0.18 * dy,
                    y1 - 0.3 * dy + 0.18 * dx
                );
            }
            let _ = write!(out, "<path class=\"line {class}\" d=\"{d}\"/>");
        }
        Shape::Level(at) => {
            let _ = write!(
                out,
                "<path class=\"line {class}\" d=\"M{:.1} {:.1}H{:.1}\"/>",
                x.from,
                y.at(*at),
                x.to
            );
        }
        Shape::Density(parts) => {
            let most = parts.iter().copied().fold(0.0, f64::max);
            let (width, tall) = ((x.to - x.from) / parts.len() as f64, 0.16 * (y.from - y.to));
            let _ = write!(out, "<g class=\"bars {class}\">");
            for (k, part) in parts.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                // roots, so that what is seldom visited still shows
                let height = tall * (part / most).sqrt();
                let _ = write!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                    x.from + k as f64 * width,
                    y.from - height
                );
            }
            out.push_str("</g>");
        }
    }
}

/// A line through points, with gaps where one is no number.
fn path(points: impl Iterator<Item = [f64; 2]>) -> String {
    let (mut d, mut stretch) = (String::new(), vec![]);
    for point in points.chain([[f64::NAN; 2]]) {
        if point.iter().all(|v| v.is_finite()) {
            stretch.push(point);
            continue;
        }
        for (k, [x, y]) in bends(&stretch).into_iter().enumerate() {
            let pen = if k == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{pen}{x:.1} {y:.1}");
        }
        stretch.clear();
    }
    d
}

/// The points without which a line would look otherwise: none that is left out is farther from it
/// than nobody sees.
fn bends(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    const SEEN: f64 = 0.12;
    let mut kept: Vec<[f64; 2]> = points.first().copied().into_iter().collect();
    let mut from = 0;
    for to in 2..points.len() {
        let between = &points[from + 1..to];
        let far = |p: &[f64; 2]| distance(*p, points[from], points[to]) > SEEN;
        if between.iter().any(far) {
            from = to - 1;
            kept.push(points[from]);
        }
    }
    kept.extend(points.last().filter(|_| points.len() > 1));
    kept
}

/// From a point to a piece of a line.
fn distance(p: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let (along, to) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let length = along[0] * along[0] + along[1] * along[1];
    let part = if length > 0.0 {
        ((along[0] * to[0] + along[1] * to[1]) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (to[0] - part * along[0]).hypot(to[1] - part * along[1])
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
        let found = COLOURS.iter().find(|(own, ..)| *own == name);
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
            plot.draw(width, height)
        );
    }
    out + "</svg>\n"
}

/// A line for those who cannot see a plot: what it shows, and from where to where.
pub fn spoken(plot: &Plot) -> String {
    let names = plot.marks.iter().map(|m| m.label.as_str());
    let names: Vec<&str> = names.filter(|l| !l.is_empty()).collect();
    let what = if names.is_empty() {
        String::new()
    } else {
        format!(", showing {}", text::list(&names))
    };
    format!(
        "{}: {} over {}{what}",
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

    /// A wave of many points loses most of them and looks the same; a spike and a gap stay.
    #[test]
    fn lines_keep_their_bends() {
        let mut wave: Vec<[f64; 2]> = (0..1000)
            .map(|k| f64::from(k) * 0.4)
            .map(|x| [x, 80.0 * (x / 60.0).sin()])
            .collect();
        wave[500][1] = 200.0;
        let kept = bends(&wave);
        assert!(kept.len() < 100, "{}", kept.len());
        assert!(
            [0, 499, 500, 501, 999]
                .iter()
                .all(|&k| kept.contains(&wave[k]))
        );
        for p in &wave {
            let near = kept.windows(2).map(|w| distance(*p, w[0], w[1]));
            assert!(near.fold(f64::INFINITY, f64::min) < 0.13, "{p:?}");
        }
        // there and back on one line
        assert_eq!(bends(&[[0.0, 0.0], [0.0, 9.0], [0.0, 1.0]]).len(), 3);
        let gap = [[0.0, 0.0], [1.0, f64::NAN], [2.0, 0.0], [3.0, 0.0]];
        assert_eq!(path(gap.into_iter()), "M0.0 0.0M2.0 0.0L3.0 0.0");
    }
}
