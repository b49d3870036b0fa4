//! Lines as areas: with their width, their dashes and their corners.

use super::scene::{Point, Polyline, Stroke};

/// Polygons that cover a line. They lie over each other and go round the same way, so that what is
/// inside any of them is inside all of them together.
pub fn areas(lines: &[Polyline], stroke: &Stroke) -> Vec<Vec<Point>> {
    let mut areas = vec![];
    for line in lines {
        let mut points = line.points.clone();
        if line.closed {
            points.extend(line.points.first());
        }
        if total(&stroke.dashes) > 0.0 {
            for dash in dashes(&points, &stroke.dashes) {
                cover(&mut areas, dash, false, stroke);
            }
        } else {
            cover(&mut areas, points, line.closed, stroke);
        }
    }
    areas
}

fn total(lengths: &[f64]) -> f64 {
    lengths.iter().sum()
}

fn far(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// The dashes of a line.
fn dashes(points: &[Point], lengths: &[f64]) -> Vec<Vec<Point>> {
    let (mut found, mut dash) = (vec![], vec![]);
    // which dash or gap is being drawn, and how much of it is left
    let (mut turn, mut left) = (0, lengths[0]);
    dash.extend(points.first());
    for pair in points.windows(2) {
        let length = far(pair[0], pair[1]);
        let at =
            |along: f64| [0, 1].map(|i| pair[0][i] + along / length * (pair[1][i] - pair[0][i]));
        let mut along = 0.0;
        while length - along > left {
            along += left;
            if turn % 2 == 0 {
                dash.push(at(along));
                found.push(std::mem::take(&mut dash));
            } else {
                dash = vec![at(along)];
            }
            turn += 1;
            left = lengths[turn % lengths.len()];
        }
        left -= length - along;
        if turn % 2 == 0 {
            dash.push(pair[1]);
        }
    }
    found.push(dash);
    found
}

/// Covers a line; one that is closed ends with the point where it began.
fn cover(areas: &mut Vec<Vec<Point>>, mut points: Vec<Point>, closed: bool, stroke: &Stroke) {
    // a piece without length has no direction
    points.dedup_by(|a, b| far(*a, *b) < 1e-6);
    let half = stroke.width / 2.0;
    // to the right of each piece, half the width away
    let aside = |pair: &[Point]| {
        let ([x0, y0], [x1, y1]) = (pair[0], pair[1]);
        let length = far(pair[0], pair[1]);
        [half * (y1 - y0) / length, half * (x0 - x1) / length]
    };
    for pair in points.windows(2) {
        let ([x0, y0], [x1, y1], [dx, dy]) = (pair[0], pair[1], aside(pair));
        push(
            areas,
            vec![
                [x0 + dx, y0 + dy],
                [x1 + dx, y1 + dy],
                [x1 - dx, y1 - dy],
                [x0 - dx, y0 - dy],
            ],
        );
    }
    for three in points.windows(3) {
        corner(
            areas,
            three[1],
            [aside(&three[..2]), aside(&three[1..])],
            stroke,
        );
    }
    if let ([first, second, .., before, last], true) = (points.as_slice(), closed) {
        let turn = [aside(&[*before, *last]), aside(&[*first, *second])];
        corner(areas, *first, turn, stroke);
    }
}

/// Fills the wedge that two pieces leave open where they meet.
fn corner(areas: &mut Vec<Vec<Point>>, at: Point, [a, b]: [Point; 2], stroke: &Stroke) {
    let half = stroke.width / 2.0;
    let (cos, sin) = (
        (a[0] * b[0] + a[1] * b[1]) / (half * half),
        (a[0] * b[1] - a[1] * b[0]) / (half * half),
    );
    if cos > 0.9999 {
        return;
    }
    if stroke.round {
        let pieces = (4.0 * half.sqrt()).ceil().clamp(8.0, 40.0) as usize;
        let circle = (0..pieces).map(|k| {
            let angle = std::f64::consts::TAU * k as f64 / pieces as f64;
            [at[0] + half * angle.cos(), at[1] + half * angle.sin()]
        });
        return push(areas, circle.collect());
    }
    // the open side
    let side = if sin > 0.0 { 1.0 } else { -1.0 };
    let off = |by: Point, times: f64| [0, 1].map(|i| at[i] + side * times * by[i]);
    let mut wedge = vec![at, off(a, 1.0)];
    // a very sharp corner is cut off
    if cos > -0.8 {
        wedge.push(off([a[0] + b[0], a[1] + b[1]], 1.0 / (1.0 + cos)));
    }
    wedge.push(off(b, 1.0));
    push(areas, wedge);
}

/// Adds a polygon, going round the way that all do.
fn push(areas: &mut Vec<Vec<Point>>, mut polygon: Vec<Point>) {
    let next = polygon.iter().cycle().skip(1);
    let twice = polygon
        .iter()
        .zip(next)
        .map(|(p, q)| p[0] * q[1] - q[0] * p[1]);
    if twice.sum::<f64>() < 0.0 {
        polygon.reverse();
    }
    areas.push(polygon);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stroke(width: f64, dashes: &[f64]) -> Stroke {
        Stroke {
            colour: [0; 3],
            width,
            dashes: dashes.to_vec(),
            round: false,
        }
    }

    /// Dashes go on round corners, and are as long as they should be.
    #[test]
    fn dashes_have_their_lengths() {
        let bent = [[0.0, 0.0], [7.0, 0.0], [7.0, 7.0]];
        let found = dashes(&bent, &[5.0, 1.0]);
        let expected: [&[Point]; 3] = [
            &[[0.0, 0.0], [5.0, 0.0]],
            &[[6.0, 0.0], [7.0, 0.0], [7.0, 4.0]],
            &[[7.0, 5.0], [7.0, 7.0]],
        ];
        assert_eq!(found, expected);
    }

    /// A frame has sharp corners, at all four of them.
    #[test]
    fn frames_have_corners() {
        let frame = Polyline {
            points: vec![[0.0, 0.0], [9.0, 0.0], [9.0, 5.0], [0.0, 5.0]],
            closed: true,
        };
        let areas = areas(&[frame], &stroke(2.0, &[]));
        for tip in [[-1.0, -1.0], [10.0, -1.0], [10.0, 6.0], [-1.0, 6.0]] {
            let near = |p: &Point| far(*p, tip) < 1e-9;
            assert!(areas.iter().flatten().any(near), "{tip:?} {areas:?}");
        }
    }

    /// A dash that ends where the line bends, and a point that comes twice, leave nothing without a place.
    #[test]
    fn pieces_without_length_are_harmless() {
        let line = Polyline {
            points: vec![[0.0, 0.0], [5.0, 0.0], [5.0, 0.0], [5.0, 3.0], [5.0, 9.0]],
            closed: false,
        };
        for dashes in [&[5.0, 3.0] as &[f64], &[], &[2.5]] {
            let areas = areas(std::slice::from_ref(&line), &stroke(1.0, dashes));
            assert!(areas.iter().flatten().flatten().all(|v| v.is_finite()));
            assert!(areas.len() >= 2, "{areas:?}");
        }
    }
}
