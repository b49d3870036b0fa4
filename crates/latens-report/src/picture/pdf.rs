//! A page as a PDF file: lines and areas as such, and text that can be searched and copied.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::pdf_text::Script;
use super::scene::{Clip, Colour, Fill, Item, Path, Scene, Segment, Stroke};

/// The file.
///
/// # Errors
/// No memory, or a page without size.
pub fn encode(scene: &Scene) -> Result<Vec<u8>, String> {
    if !(scene.width >= 1.0 && scene.height >= 1.0) {
        return Err("the figure has no size".into());
    }
    let mut page = Page {
        // y grows downwards
        content: format!("1 0 0 -1 0 {} cm\n", number(scene.height)),
        set: Default::default(),
        clip: None,
        opacities: vec![],
    };
    let mut scripts = [Script::new(false)?, Script::new(true)?];
    for item in &scene.items {
        match item {
            Item::Shape {
                path,
                fill,
                stroke,
                clip,
            } => page.shape(path, *fill, stroke.as_ref(), *clip),
            Item::Text(text) => {
                page.cut(None);
                page.paint(Fill {
                    colour: text.colour,
                    opacity: 1.0,
                });
                let script = &mut scripts[usize::from(text.bold)];
                page.content.push_str(&script.line(text));
            }
        }
    }
    page.cut(None);
    let mut file = File::new();
    let content = file.stream("", page.content.as_bytes())?;
    let mut fonts = String::new();
    for script in scripts.iter().filter(|s| s.is_used()) {
        let font = script.write(&mut file)?;
        let _ = write!(fonts, "/{} {font} 0 R", script.name());
    }
    let mut opacities = String::new();
    for (k, opacity) in page.opacities.iter().enumerate() {
        let _ = write!(opacities, "/G{k}<</ca {}>>", number(*opacity));
    }
    let parent = file.next() + 1;
    let page = file.object(&format!(
        "<</Type/Page/Parent {parent} 0 R/MediaBox[0 0 {} {}]/Contents {content} 0 R/Resources<</Font<<{fonts}>>/ExtGState<<{opacities}>>>>/Group<</S/Transparency/CS/DeviceRGB>>>>",
        number(scene.width),
        number(scene.height)
    ));
    let pages = file.object(&format!("<</Type/Pages/Count 1/Kids[{page} 0 R]>>"));
    let catalog = file.object(&format!("<</Type/Catalog/Pages {pages} 0 R>>"));
    let info = file.object("<</Producer(Latens)>>");
    Ok(file.finish(catalog, info))
}

/// A number as PDF has it: without an exponent, and no more digits than anybody sees.
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".into(),
        text => text.into(),
    }
}

/// The orders that draw a page.
struct Page {
    content: String,
    /// Colours, opacity, width, dashes and corners, as they were set last.
    set: [String; 6],
    clip: Option<Clip>,
    opacities: Vec<f64>,
}

impl Page {
    /// Sets one of the things that stay set, unless it is.
    fn set(&mut self, which: usize, order: String) {
        if self.set[which] != order {
            self.content.push_str(&order);
            self.set[which] = order;
        }
    }

    /// From here on only what is within shows.
    fn cut(&mut self, clip: Option<Clip>) {
        if self.clip == clip {
            return;
        }
        if self.clip.is_some() {
            self.content.push_str("Q\n");
        }
        if let Some([x0, y0, x1, y1]) = clip {
            let size = [x0, y0, x1 - x0, y1 - y0].map(number).join(" ");
            let _ = writeln!(self.content, "q {size} re W n");
        }
        // what was set within is forgotten
        self.set = Default::default();
        self.clip = clip;
    }

    fn paint(&mut self, fill: Fill) {
        let known = self.opacities.iter().position(|o| *o == fill.opacity);
        let k = known.unwrap_or(self.opacities.len());
        if known.is_none() {
            self.opacities.push(fill.opacity);
        }
        self.set(0, format!("/G{k} gs\n"));
        self.set(1, format!("{} rg\n", colour(fill.colour)));
    }

    fn pen(&mut self, stroke: &Stroke) {
        self.set(2, format!("{} RG\n", colour(stroke.colour)));
        self.set(3, format!("{} w\n", number(stroke.width)));
        let dashes: Vec<String> = stroke.dashes.iter().map(|d| number(*d)).collect();
        self.set(4, format!("[{}] 0 d\n", dashes.join(" ")));
        self.set(5, format!("{} j\n", u8::from(stroke.round)));
    }

    fn shape(
        &mut self,
        path: &Path,
        fill: Option<Fill>,
        stroke: Option<&Stroke>,
        clip: Option<Clip>,
    ) {
        self.cut(clip);
        if let Some(fill) = fill {
            self.paint(fill);
        }
        if let Some(stroke) = stroke {
            self.pen(stroke);
        }
        for segment in &path.0 {
            let (points, order) = match segment {
                Segment::Move(p) => (vec![p], "m"),
                Segment::Line(p) => (vec![p], "l"),
                Segment::Curve(a, b, c) => (vec![a, b, c], "c"),
                Segment::Close => (vec![], "h"),
            };
            for value in points.into_iter().flatten() {
                let _ = write!(self.content, "{} ", number(*value));
            }
            self.content.push_str(order);
            self.content.push('\n');
        }
        self.content.push_str(match (fill, stroke) {
            (Some(_), Some(_)) => "B\n",
            (Some(_), None) => "f\n",
            (None, Some(_)) => "S\n",
            (None, None) => "n\n",
        });
    }
}

fn colour(colour: Colour) -> String {
    let parts = colour.map(|c| number(f64::from(c) / 255.0));
    parts.join(" ")
}

/// The objects of a file, each with a number from 1 on.
pub struct File {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl File {
    fn new() -> Self {
        Self {
            // letters beyond ASCII say that the file is not text
            bytes: b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec(),
            places: vec![],
        }
    }

    /// The number that the next object will have.
    fn next(&self) -> usize {
        self.places.len() + 1
    }

    /// Adds an object; gives its number.
    pub fn object(&mut self, body: &str) -> usize {
        self.add(body.as_bytes())
    }

    fn add(&mut self, body: &[u8]) -> usize {
        let number = self.next();
        self.places.push(self.bytes.len());
        self.bytes.extend(format!("{number} 0 obj\n").bytes());
        self.bytes.extend(body);
        self.bytes.extend(b"\nendobj\n");
        number
    }

    /// Adds data with entries of its dictionary, packed; gives its number.
    ///
    /// # Errors
    /// No memory.
    pub fn stream(&mut self, entries: &str, data: &[u8]) -> Result<usize, String> {
        let mut packed = ZlibEncoder::new(vec![], Compression::best());
        let packed = packed.write_all(data).and_then(|()| packed.finish());
        let packed = packed.map_err(|e| e.to_string())?;
        let head = format!(
            "<</Length {}/Filter/FlateDecode{entries}>>\nstream\n",
            packed.len()
        );
        let body = [head.as_bytes(), &packed, b"\nendstream"].concat();
        Ok(self.add(&body))
    }

    /// The whole file, with the list of where its objects are.
    fn finish(mut self, catalog: usize, info: usize) -> Vec<u8> {
        let (start, size) = (self.bytes.len(), self.next());
        let mut list = format!("xref\n0 {size}\n0000000000 65535 f \n");
        for place in &self.places {
            let _ = writeln!(list, "{place:010} 00000 n ");
        }
        let _ = write!(
            list,
            "trailer\n<</Size {size}/Root {catalog} 0 R/Info {info} 0 R>>\nstartxref\n{start}\n%%EOF\n"
        );
        self.bytes.extend(list.bytes());
        self.bytes
    }
}
