//! What a picture shows: shapes and texts in the order in which they are drawn.

/// A place; y grows downwards.
pub type Point = [f64; 2];

/// `[a, b, c, d, e, f]` takes (x, y) to (ax + cy + e, bx + dy + f), as in SVG and PDF.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transform(pub [f64; 6]);

impl Transform {
    /// All stays where it is.
    pub const NONE: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// By so much to the right and down.
    pub fn shift([x, y]: Point) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// So many times as large.
    pub fn scale(x: f64, y: f64) -> Self {
        Self([x, 0.0, 0.0, y, 0.0, 0.0])
    }

    /// Clockwise on the page.
    pub fn turn(degrees: f64) -> Self {
        let (sin, cos) = degrees.to_radians().sin_cos();
        Self([cos, sin, -sin, cos, 0.0, 0.0])
    }

    /// Where a place goes.
    pub fn at(&self, [x, y]: Point) -> Point {
        let [a, b, c, d, e, f] = self.0;
        [a * x + c * y + e, b * x + d * y + f]
    }

    /// `inner` first, then this.
    pub fn after(&self, inner: &Self) -> Self {
        let [a, b, c, d, ..] = self.0;
        let [p, q, r, s, x, y] = inner.0;
        let [e, f] = self.at([x, y]);
        Self([
            a * p + c * q,
            b * p + d * q,
            a * r + c * s,
            b * r + d * s,
            e,
            f,
        ])
    }
}

/// A piece of an outline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Segment {
    /// To where a new stretch begins.
    Move(Point),
    /// Straight on.
    Line(Point),
    /// A cubic Bézier curve: two handles and its end.
    Curve(Point, Point, Point),
    /// Back to where the stretch began.
    Close,
}

/// Some stretches, open or closed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path(pub Vec<Segment>);

/// A stretch as straight pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct Polyline {
    /// Its corners.
    pub points: Vec<Point>,
    /// Whether it ends where it began.
    pub closed: bool,
}

impl Path {
    /// The outline of a rectangle.
    pub fn rectangle([x, y]: Point, width: f64, height: f64) -> Self {
        Self(vec![
            Segment::Move([x, y]),
            Segment::Line([x + width, y]),
            Segment::Line([x + width, y + height]),
            Segment::Line([x, y + height]),
            Segment::Close,
        ])
    }

    /// A circle of four curves.
    pub fn circle([x, y]: Point, radius: f64) -> Self {
        // how far a handle stands off for a quarter of a circle
        let (r, k) = (radius, radius * 0.552_284_749_8);
        let curve = |a: Point, b: Point, c: Point| {
            let [a, b, c] = [a, b, c].map(|p| [x + p[0], y + p[1]]);
            Segment::Curve(a, b, c)
        };
        Self(vec![
            Segment::Move([x + r, y]),
            curve([r, k], [k, r], [0.0, r]),
            curve([-k, r], [-r, k], [-r, 0.0]),
            curve([-r, -k], [-k, -r], [0.0, -r]),
            curve([k, -r], [r, -k], [r, 0.0]),
            Segment::Close,
        ])
    }

    /// Moved, turned or made larger.
    pub fn through(&self, transform: &Transform) -> Self {
        let segments = self.0.iter().map(|segment| match *segment {
            Segment::Move(p) => Segment::Move(transform.at(p)),
            Segment::Line(p) => Segment::Line(transform.at(p)),
            Segment::Curve(a, b, c) => {
                Segment::Curve(transform.at(a), transform.at(b), transform.at(c))
            }
            Segment::Close => Segment::Close,
        });
        Self(segments.collect())
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let points = self.0.iter().map(|segment| match *segment {
            Segment::Move(p) | Segment::Line(p) => vec![p],
            Segment::Curve(a, b, c) => vec![a, b, c],
            Segment::Close => vec![],
        });
        points.flatten()
    }

    /// Whether all places are numbers.
    pub fn is_finite(&self) -> bool {
        self.points().flatten().all(f64::is_finite)
    }

    /// Whether there is something inside: no upright or level line has.
    pub fn has_inside(&self) -> bool {
        let wide = |axis: usize| {
            let (low, high) = self
                .points()
                .map(|p| p[axis])
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                    (low.min(v), high.max(v))
                });
            high > low
        };
        wide(0) && wide(1)
    }

    /// Curves as straight pieces that nobody sees if a unit is a pixel.
    pub fn straight(&self) -> Vec<Polyline> {
        let mut lines: Vec<Polyline> = vec![];
        for segment in &self.0 {
            match *segment {
                Segment::Move(p) => lines.push(Polyline {
                    points: vec![p],
                    closed: false,
                }),
                Segment::Close => {
                    if let Some(line) = lines.last_mut() {
                        line.closed = true;
                    }
                }
                Segment::Line(p) => {
                    if let Some(line) = lines.last_mut() {
                        line.points.push(p);
                    }
                }
                Segment::Curve(a, b, c) => {
                    if let Some(line) = lines.last_mut() {
                        bend(&mut line.points, [a, b, c]);
                    }
                }
            }
        }
        lines
    }
}

/// Appends a curve that begins at the last point.
fn bend(points: &mut Vec<Point>, [a, b, c]: [Point; 3]) {
    let Some(&from) = points.last() else {
        return;
    };
    let far = |p: Point, q: Point| (p[0] - q[0]).hypot(p[1] - q[1]);
    let length = far(from, a) + far(a, b) + far(b, c);
    let pieces = (1.5 * length.sqrt()).ceil().clamp(2.0, 40.0);
    for k in 1..=pieces as usize {
        let t = k as f64 / pieces;
        let u = 1.0 - t;
        let weights = [u * u * u, 3.0 * u * u * t, 3.0 * u * t * t, t * t * t];
        let at = |axis: usize| {
            let places = [from[axis], a[axis], b[axis], c[axis]];
            weights.iter().zip(places).map(|(w, p)| w * p).sum()
        };
        points.push([at(0), at(1)]);
    }
}

/// Red, green and blue.
pub type Colour = [u8; 3];

/// How an inside is painted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fill {
    pub colour: Colour,
    /// From 0, not seen, to 1, nothing seen through it.
    pub opacity: f64,
}

/// How a line is drawn; it ends as if it were cut off.
#[derive(Debug, Clone, PartialEq)]
pub struct Stroke {
    pub colour: Colour,
    pub width: f64,
    /// Lengths of dashes and gaps in turn; none for a whole line.
    pub dashes: Vec<f64>,
    /// Round corners, else sharp ones.
    pub round: bool,
}

/// Least x, least y, greatest x and greatest y of what is seen.
pub type Clip = [f64; 4];

/// A thing on the page.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Shape {
        path: Path,
        fill: Option<Fill>,
        stroke: Option<Stroke>,
        clip: Option<Clip>,
    },
    Text(Text),
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    pub text: String,
    /// From the text's own place at (0, 0) to the page.
    pub place: Transform,
    pub size: f64,
    pub bold: bool,
    pub colour: Colour,
    /// The part of its width that stands before its place: 0, ½ or 1.
    pub before: f64,
}

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    pub items: Vec<Item>,
}
