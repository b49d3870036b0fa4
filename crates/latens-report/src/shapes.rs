//! The shapes of marks as elements of SVG.

use std::fmt::Write;

use crate::plot::{Mark, Shape};
use crate::scale::Scale;

/// Draws a mark.
pub fn shape(out: &mut String, mark: &Mark, x: &Scale, y: &Scale) {
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
        Shape::Whiskers(ends) => {
            let mut d = String::new();
            for [at, low, high] in ends.iter().filter(|e| e.iter().all(|v| v.is_finite())) {
                let _ = write!(d, "M{:.1} {:.1}V{:.1}", x.at(*at), y.at(*low), y.at(*high));
            }
            let _ = write!(out, "<path class=\"line {class}\" d=\"{d}\"/>");
        }
        Shape::Steps(points) => {
            let mut stairs: Vec<[f64; 2]> = vec![];
            for p in points {
                stairs.extend(stairs.last().map(|last| [p[0], last[1]]));
                stairs.push(*p);
            }
            let d = path(stairs.iter().map(|p| [x.at(p[0]), y.at(p[1])]));
            let _ = write!(out, "<path class=\"line {class}\" d=\"{d}\"/>");
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
    const VISIBLE_DISTANCE: f64 = 0.12;
    let mut kept: Vec<[f64; 2]> = points.first().copied().into_iter().collect();
    let mut from = 0;
    for to in 2..points.len() {
        let between = &points[from + 1..to];
        let far = |p: &[f64; 2]| distance(*p, points[from], points[to]) > VISIBLE_DISTANCE;
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

#[cfg(test)]
mod tests {
    use super::*;

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
