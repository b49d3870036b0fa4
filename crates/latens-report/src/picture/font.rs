//! The letters of pictures: DejaVu Sans Condensed, thin and thick, which the program carries with it.
//!
//! It is about as wide as Helvetica, for which the figures have room; DejaVu Sans is wider. A character
//! that it lacks is drawn as an empty box.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::scene::{Item, Path, Point, Scene, Segment, Text, Transform};

const PLAIN: &[u8] = include_bytes!("../../fonts/DejaVuSansCondensed.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSansCondensed-Bold.ttf");

/// One face; lengths are parts of the letters' size.
pub struct Font {
    pub face: Face<'static>,
    /// As PostScript names it.
    pub name: &'static str,
    /// Units of the file in the size.
    em: f64,
}

/// A letter of a line.
pub struct Letter {
    pub char: char,
    pub glyph: GlyphId,
    /// Where it begins.
    pub at: f64,
    /// How much farther the next one would begin, were it not moved nearer or off.
    pub advance: f64,
}

impl Font {
    /// The thin or the thick face.
    ///
    /// # Errors
    /// None, unless the program was built with another file in the font's place.
    pub fn new(bold: bool) -> Result<Self, String> {
        let (data, name) = if bold {
            (BOLD, "DejaVuSansCondensed-Bold")
        } else {
            (PLAIN, "DejaVuSansCondensed")
        };
        let face = Face::parse(data, 0).map_err(|e| format!("{name}: {e}"))?;
        let em = f64::from(face.units_per_em());
        Ok(Self { face, name, em })
    }

    /// A length of the file as a part of the size.
    pub fn part(&self, units: i16) -> f64 {
        f64::from(units) / self.em
    }

    /// The letters of a line side by side, and its width.
    pub fn line(&self, text: &str) -> (Vec<Letter>, f64) {
        let (mut letters, mut at): (Vec<Letter>, f64) = (vec![], 0.0);
        for char in text.chars() {
            let glyph = self.face.glyph_index(char).unwrap_or_default();
            if let Some(before) = letters.last() {
                at += self.kerning(before.glyph, glyph);
            }
            let advance = self.face.glyph_hor_advance(glyph).unwrap_or_default();
            let advance = f64::from(advance) / self.em;
            letters.push(Letter {
                char,
                glyph,
                at,
                advance,
            });
            at += advance;
        }
        (letters, at)
    }

    /// How much farther off than usual two letters stand.
    fn kerning(&self, left: GlyphId, right: GlyphId) -> f64 {
        let tables = self.face.tables().kern.iter();
        let mut tables = tables.flat_map(|kern| kern.subtables);
        let units = tables.find_map(|table| table.glyphs_kerning(left, right));
        units.map_or(0.0, |units| self.part(units))
    }

    /// A line's outlines on the page.
    pub fn outlines(&self, text: &Text) -> Path {
        let (letters, width) = self.line(&text.text);
        let mut path = Path::default();
        let scale = text.size / self.em;
        for letter in letters {
            let start = (letter.at - text.before * width) * text.size;
            let place = text.place.after(&Transform::shift([start, 0.0]));
            let place = place.after(&Transform::scale(scale, -scale));
            let mut pen = Pen::default();
            // spaces have no outline
            let _ = self.face.outline_glyph(letter.glyph, &mut pen);
            path.0.extend(Path(pen.segments).through(&place).0);
        }
        path
    }
}

/// Makes lines that would run off the right side of the page as small as it takes, within reason.
///
/// # Errors
/// Those of [`Font::new`].
pub fn fit(scene: &mut Scene) -> Result<(), String> {
    const MARGIN: f64 = 4.0;
    const LEAST_SHRINKAGE: f64 = 0.7;
    let fonts = [Font::new(false)?, Font::new(true)?];
    for item in &mut scene.items {
        let Item::Text(text) = item else {
            continue;
        };
        let [along, aside, .., x, _] = text.place.0;
        if text.before == 0.0 && along > 0.0 && aside == 0.0 {
            let (_, width) = fonts[usize::from(text.bold)].line(&text.text);
            let (room, width) = (scene.width - MARGIN - x, width * text.size);
            if width > room {
                text.size *= (room / width).clamp(LEAST_SHRINKAGE, 1.0);
            }
        }
    }
    Ok(())
}

/// Takes down an outline.
#[derive(Default)]
struct Pen {
    segments: Vec<Segment>,
    at: Point,
}

impl Pen {
    fn to(&mut self, segment: Segment, at: Point) {
        self.segments.push(segment);
        self.at = at;
    }
}

fn point(x: f32, y: f32) -> Point {
    [f64::from(x), f64::from(y)]
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.to(Segment::Move(point(x, y)), point(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.to(Segment::Line(point(x, y)), point(x, y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (from, handle, end) = (self.at, point(x1, y1), point(x, y));
        // the same curve with two handles
        let near = |p: Point| [0, 1].map(|i| p[i] + 2.0 / 3.0 * (handle[i] - p[i]));
        self.to(Segment::Curve(near(from), near(end), end), end);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let curve = Segment::Curve(point(x1, y1), point(x2, y2), point(x, y));
        self.to(curve, point(x, y));
    }

    fn close(&mut self) {
        self.segments.push(Segment::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our texts need no box; letters that go well together stand nearer; strangers get a box.
    #[test]
    fn letters_are_there() {
        for bold in [false, true] {
            let font = Font::new(bold).unwrap();
            let ours = "Ab9 −–—θνσλδµμ²³⁻¹₀₂·×±°½√∂∞≤≥→←′″…’‖ΔΣΩÅéßŁЖ";
            for c in ours.chars() {
                assert!(font.face.glyph_index(c).is_some(), "{c}");
            }
            let (_, near) = font.line("AV");
            let alone: f64 = ["A", "V"].iter().map(|c| font.line(c).1).sum();
            assert!(near < alone, "{near} {alone}");
            let (letters, width) = font.line("漢\u{1f600}\u{1}");
            assert_eq!(letters.len(), 3);
            assert!(letters.iter().all(|l| l.glyph == GlyphId(0)) && width > 1.0);
        }
    }

    /// A line that is a little too long is made smaller; one that fits is left alone.
    #[test]
    fn lines_stay_on_the_page() {
        let size = |line: &str| {
            let text = Text {
                text: line.into(),
                place: Transform::shift([10.0, 10.0]),
                size: 10.0,
                bold: false,
                colour: [0; 3],
                before: 0.0,
            };
            let mut scene = Scene {
                width: 100.0,
                height: 20.0,
                items: vec![Item::Text(text)],
            };
            fit(&mut scene).unwrap();
            match &scene.items[0] {
                Item::Text(text) => text.size,
                Item::Shape { .. } => unreachable!("a text stays a text"),
            }
        };
        assert_eq!((size("it fits"), size("")), (10.0, 10.0));
        let little = size("mmmmmmmmmmm");
        assert!(little < 10.0 && little > 7.0, "{little}");
        let (_, width) = Font::new(false).unwrap().line("mmmmmmmmmmm");
        assert!((10.0 + little * width - 96.0).abs() < 1e-9);
        assert_eq!(size(&"m".repeat(99)), 7.0);
    }
}
