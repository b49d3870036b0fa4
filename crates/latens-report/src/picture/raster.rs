//! Areas as pixels.

use super::font::Font;
use super::scene::{Clip, Fill, Item, Path, Point, Scene, Transform};
use super::stroke;

/// Scan lines in a pixel. Along a scan line, what is covered of a pixel is exact.
const SCAN_LINES: usize = 8;
/// Bytes of a pixel.
pub const PIXEL_BYTES: usize = 3;
/// Pixels at the most: a gigabyte of memory.
const MOST_PIXELS: f64 = 3e8;

/// Red, green and blue of pixels, row by row, on white.
pub struct Canvas {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

/// Draws a page with so many pixels to a unit.
///
/// # Errors
/// A page that is too large.
pub fn draw(scene: &Scene, pixels: f64) -> Result<Canvas, String> {
    let size = [scene.width, scene.height].map(|v| (v * pixels).ceil());
    let fits = size.iter().all(|v| *v >= 1.0) && size[0] * size[1] <= MOST_PIXELS;
    if !fits {
        return Err("the figure is too large for a picture; write an .svg or .pdf".into());
    }
    let mut canvas = Canvas::new(size.map(|v| v as usize));
    let fonts = [Font::new(false)?, Font::new(true)?];
    let scale = Transform::scale(pixels, pixels);
    for item in &scene.items {
        match item {
            Item::Shape {
                path,
                fill,
                stroke,
                clip,
            } => {
                let path = path.through(&scale);
                let clip = clip.map(|clip| clip.map(|v| v * pixels));
                if let Some(fill) = fill {
                    canvas.fill(&inside(&path), *fill, clip);
                }
                if let Some(stroke) = stroke {
                    let mut stroke = stroke.clone();
                    stroke.width *= pixels;
                    stroke.dashes.iter_mut().for_each(|d| *d *= pixels);
                    let paint = Fill {
                        colour: stroke.colour,
                        opacity: 1.0,
                    };
                    canvas.fill(&stroke::areas(&path.straight(), &stroke), paint, clip);
                }
            }
            Item::Text(text) => {
                let outlines = fonts[usize::from(text.bold)].outlines(text);
                let paint = Fill {
                    colour: text.colour,
                    opacity: 1.0,
                };
                canvas.fill(&inside(&outlines.through(&scale)), paint, None);
            }
        }
    }
    Ok(canvas)
}

fn inside(path: &Path) -> Vec<Vec<Point>> {
    path.straight()
        .into_iter()
        .map(|line| line.points)
        .collect()
}

/// An edge that goes down the page, from one height to another.
struct Edge {
    top: f64,
    bottom: f64,
    /// Where it is at height 0, and how far it goes aside with each unit down.
    x: f64,
    slope: f64,
    /// 1 if the outline went down here, -1 if it went up.
    way: i32,
}

fn edges(polygons: &[Vec<Point>]) -> Vec<Edge> {
    let mut edges = vec![];
    for polygon in polygons {
        let next = polygon.iter().cycle().skip(1);
        for (p, q) in polygon.iter().zip(next).filter(|(p, q)| p[1] != q[1]) {
            let (way, [x0, y0], [x1, y1]) = if p[1] < q[1] {
                (1, *p, *q)
            } else {
                (-1, *q, *p)
            };
            let slope = (x1 - x0) / (y1 - y0);
            edges.push(Edge {
                top: y0,
                bottom: y1,
                x: x0 - slope * y0,
                slope,
                way,
            });
        }
    }
    edges.sort_by(|a, b| a.top.total_cmp(&b.top));
    edges
}

impl Canvas {
    fn new([width, height]: [usize; 2]) -> Self {
        Self {
            width,
            height,
            pixels: vec![255; PIXEL_BYTES * width * height],
        }
    }

    /// Paints what the polygons go round, more often one way than the other.
    fn fill(&mut self, polygons: &[Vec<Point>], paint: Fill, clip: Option<Clip>) {
        let page = [0.0, 0.0, self.width as f64, self.height as f64];
        let clip = clip.map_or(page, |c| {
            [
                c[0].max(page[0]),
                c[1].max(page[1]),
                c[2].min(page[2]),
                c[3].min(page[3]),
            ]
        });
        let edges = edges(polygons);
        let Some(top) = edges.first().map(|e| e.top.max(clip[1])) else {
            return;
        };
        let bottom = edges.iter().map(|e| e.bottom).fold(top, f64::max);
        let rows = top.floor() as usize..bottom.min(clip[3]).ceil().max(0.0) as usize;
        let mut cover = vec![0.0; self.width + 2];
        let (mut near, mut coming): (Vec<&Edge>, _) = (vec![], edges.iter().peekable());
        let mut crossings = vec![];
        for row in rows {
            let (from, to) = (row as f64, row as f64 + 1.0);
            while let Some(edge) = coming.next_if(|e| e.top < to) {
                near.push(edge);
            }
            near.retain(|e| e.bottom > from);
            let mut seen = [self.width, 0];
            for line in 0..SCAN_LINES {
                let y = from + (line as f64 + 0.5) / SCAN_LINES as f64;
                if y < clip[1] || y >= clip[3] {
                    continue;
                }
                let crossed = near.iter().filter(|e| e.top <= y && y < e.bottom);
                crossings.clear();
                crossings.extend(crossed.map(|e| (e.x + e.slope * y, e.way)));
                crossings.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                spans(&crossings, [clip[0], clip[2]], &mut cover, &mut seen);
            }
            self.blend(row, &mut cover, seen, paint);
        }
    }

    /// Lays a colour over a row, as far as it is covered, and clears `cover`.
    fn blend(&mut self, row: usize, cover: &mut [f64], [from, to]: [usize; 2], paint: Fill) {
        let mut covered = 0.0;
        let pixels = &mut self.pixels[PIXEL_BYTES * self.width * row..][..PIXEL_BYTES * self.width];
        let touched = pixels.chunks_exact_mut(PIXEL_BYTES).zip(&*cover);
        for (pixel, more) in touched.take(to).skip(from) {
            covered += more;
            let opacity = paint.opacity * (covered / SCAN_LINES as f64).clamp(0.0, 1.0);
            if opacity > 0.0 {
                for (part, colour) in pixel.iter_mut().zip(paint.colour) {
                    let below = f64::from(*part);
                    *part = (below + opacity * (f64::from(colour) - below)).round() as u8;
                }
            }
        }
        if from < to {
            cover[from..to].fill(0.0);
        }
    }
}

/// Adds what is inside along a scan line: `cover` holds by how much each pixel is covered more than
/// the one to its left, `seen` the pixels that are touched.
fn spans(
    crossings: &[(f64, i32)],
    [left, right]: [f64; 2],
    cover: &mut [f64],
    seen: &mut [usize; 2],
) {
    let mut rounds = 0;
    for (k, &(from, way)) in crossings.iter().enumerate() {
        rounds += way;
        let Some(&(to, _)) = crossings.get(k + 1).filter(|_| rounds != 0) else {
            continue;
        };
        let (from, to) = (from.max(left), to.min(right));
        if from < to {
            for (x, sign) in [(from, 1.0), (to, -1.0)] {
                let (pixel, part) = (x as usize, x.fract());
                cover[pixel] += sign * (1.0 - part);
                cover[pixel + 1] += sign * part;
            }
            seen[0] = seen[0].min(from as usize);
            seen[1] = seen[1].max(to as usize + 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half covered is half painted; where polygons lie over each other, paint is laid once.
    #[test]
    fn pixels_are_covered_as_much_as_they_are() {
        let square = |x: f64, y: f64| vec![[x, y], [x + 2.0, y], [x + 2.0, y + 2.0], [x, y + 2.0]];
        let paint = Fill {
            colour: [0, 0, 0],
            opacity: 0.5,
        };
        let mut canvas = Canvas::new([6, 5]);
        canvas.fill(&[square(1.5, 1.0), square(2.5, 1.0)], paint, None);
        let row = |canvas: &Canvas, y: usize| -> Vec<u8> {
            canvas.pixels[18 * y..18 * (y + 1)]
                .iter()
                .step_by(3)
                .copied()
                .collect()
        };
        assert_eq!(row(&canvas, 0), [255; 6]);
        assert_eq!(row(&canvas, 1), [255, 191, 128, 128, 191, 255]);
        assert_eq!(row(&canvas, 3), [255; 6]);
        // cut, and hanging over all edges of the page
        let mut canvas = Canvas::new([6, 5]);
        let large = vec![[-9.0, -9.0], [20.0, -9.0], [20.0, 20.0], [-9.0, 20.0]];
        canvas.fill(
            std::slice::from_ref(&large),
            paint,
            Some([1.0, 1.0, 3.25, 2.5]),
        );
        assert_eq!(row(&canvas, 1), [255, 128, 128, 223, 255, 255]);
        assert_eq!(row(&canvas, 2), [255, 191, 191, 239, 255, 255]);
        assert_eq!(row(&canvas, 3), [255; 6]);
        canvas.fill(
            &[large],
            Fill {
                opacity: 1.0,
                ..paint
            },
            None,
        );
        assert!(canvas.pixels.iter().all(|p| *p == 0));
    }
}
