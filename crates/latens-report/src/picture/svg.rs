//! Reads the SVG that [`crate::plot`] writes: its elements, classes and style sheet, no more.
//!
//! What it does not know is an error rather than left out, so that a new kind of mark cannot be
//! missing from pictures unseen. An element with a place that is no number is left out, as browsers do.

use std::collections::HashMap;

use super::scene::{Clip, Item, Path, Point, Scene, Segment, Text, Transform};
use super::style::{Sheet, Style};

/// What a drawing shows.
///
/// # Errors
/// Something that pictures cannot show.
pub fn read(svg: &str) -> Result<Scene, String> {
    let mut reader = Reader {
        sheet: Sheet::default(),
        outer: vec![],
        state: State {
            style: Style::default(),
            place: Transform::NONE,
            clip: None,
        },
        clips: HashMap::new(),
        cutting: None,
        scene: Scene {
            width: 0.0,
            height: 0.0,
            items: vec![],
        },
    };
    // what we write has no bare < or > outside tags
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').ok_or("the drawing is cut off")?;
        match tag.strip_prefix('/') {
            Some(name) => reader.close(name),
            None => reader.open(&Tag::read(tag)?, text)?,
        }
    }
    Ok(reader.scene)
}

/// An element's name and attributes.
struct Tag<'s> {
    name: &'s str,
    attributes: Vec<(&'s str, &'s str)>,
}

impl<'s> Tag<'s> {
    fn read(tag: &'s str) -> Result<Self, String> {
        let tag = tag.strip_suffix('/').unwrap_or(tag);
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes = vec![];
        while !rest.trim().is_empty() {
            let parts = rest.split_once("=\"").and_then(|(name, after)| {
                let (value, after) = after.split_once('"')?;
                Some((name.trim(), value, after))
            });
            let (name, value, after) = parts.ok_or_else(|| format!("no attribute: {rest}"))?;
            attributes.push((name, value));
            rest = after;
        }
        Ok(Self { name, attributes })
    }

    /// An attribute as it stands.
    fn get(&self, name: &str) -> Option<&'s str> {
        let found = self.attributes.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| *value)
    }

    /// A number; 0 if it is not given.
    fn number(&self, name: &str) -> Result<f64, String> {
        self.get(name).map_or(Ok(0.0), number)
    }
}

/// What holds for the elements inside one.
#[derive(Clone)]
struct State {
    style: Style,
    place: Transform,
    clip: Option<Clip>,
}

struct Reader<'s> {
    sheet: Sheet,
    outer: Vec<State>,
    state: State,
    clips: HashMap<&'s str, Clip>,
    /// The name of the clip that is being read.
    cutting: Option<&'s str>,
    scene: Scene,
}

impl<'s> Reader<'s> {
    fn close(&mut self, name: &str) {
        match name {
            "g" => self.state = self.outer.pop().unwrap_or_else(|| self.state.clone()),
            "clipPath" => self.cutting = None,
            _ => {}
        }
    }

    fn open(&mut self, tag: &Tag<'s>, text: &str) -> Result<(), String> {
        match tag.name {
            "svg" => {
                (self.scene.width, self.scene.height) =
                    (tag.number("width")?, tag.number("height")?);
            }
            "style" => self.sheet = Sheet::read(text),
            "clipPath" => self.cutting = tag.get("id"),
            "g" => {
                let inner = self.inner(tag)?;
                self.outer.push(std::mem::replace(&mut self.state, inner));
            }
            "rect" => self.rectangle(tag)?,
            "circle" => {
                let middle = [tag.number("cx")?, tag.number("cy")?];
                self.shape(tag, Path::circle(middle, tag.number("r")?))?;
            }
            "path" => self.shape(tag, path(tag.get("d").unwrap_or_default())?)?,
            "text" => self.text(tag, text)?,
            name => return Err(format!("pictures cannot show the element <{name}>")),
        }
        Ok(())
    }

    /// What holds inside an element.
    fn inner(&self, tag: &Tag) -> Result<State, String> {
        let mut state = self.state.clone();
        let classes = tag.get("class").unwrap_or_default();
        self.sheet.apply(classes, &mut state.style)?;
        if let Some(fill) = tag.get("fill") {
            state.style.set("fill", fill)?;
        }
        if let Some(moved) = tag.get("transform") {
            state.place = state.place.after(&transform(moved)?);
        }
        if let Some(clip) = tag.get("clip-path") {
            let name = clip.strip_prefix("url(#").and_then(|c| c.strip_suffix(')'));
            let clip = name.and_then(|name| self.clips.get(name));
            state.clip = Some(*clip.ok_or("a clip that is not there")?);
        }
        Ok(state)
    }

    fn rectangle(&mut self, tag: &Tag<'s>) -> Result<(), String> {
        let corner = [tag.number("x")?, tag.number("y")?];
        let (width, height) = (tag.number("width")?, tag.number("height")?);
        if let Some(name) = self.cutting {
            let ends = [corner, [corner[0] + width, corner[1] + height]];
            let [[x0, y0], [x1, y1]] = ends.map(|p| self.state.place.at(p));
            self.clips.insert(name, [x0, y0, x1, y1]);
            return Ok(());
        }
        if width > 0.0 && height > 0.0 {
            self.shape(tag, Path::rectangle(corner, width, height))
        } else {
            Ok(())
        }
    }

    fn shape(&mut self, tag: &Tag, path: Path) -> Result<(), String> {
        let state = self.inner(tag)?;
        let fill = state.style.fill().filter(|_| path.has_inside());
        let stroke = state.style.stroke();
        if path.is_finite() && (fill.is_some() || stroke.is_some()) {
            self.scene.items.push(Item::Shape {
                path: path.through(&state.place),
                fill,
                stroke,
                clip: state.clip,
            });
        }
        Ok(())
    }

    fn text(&mut self, tag: &Tag, text: &str) -> Result<(), String> {
        let state = self.inner(tag)?;
        let at = [tag.number("x")?, tag.number("y")?];
        let place = state.place.after(&Transform::shift(at));
        // as browsers do it: one space for many, none at the ends
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let text = plain(&words.join(" "));
        let colour = state.style.fill().map(|f| f.colour);
        if let Some(colour) = colour.filter(|_| place.0.iter().all(|v| v.is_finite())) {
            self.scene.items.push(Item::Text(Text {
                text,
                place,
                size: state.style.size,
                bold: state.style.bold,
                colour,
                before: match tag.get("text-anchor") {
                    Some("middle") => 0.5,
                    Some("end") => 1.0,
                    _ => 0.0,
                },
            }));
        }
        Ok(())
    }
}

/// Text without what [`crate::plot::escape`] put in.
fn plain(text: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        // last: what it gives may look like one of the others
        ("&amp;", "&"),
    ];
    let all = entities.iter();
    all.fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

/// `translate(x y)` and `rotate(degrees)`, one after the other.
fn transform(text: &str) -> Result<Transform, String> {
    let mut whole = Transform::NONE;
    for step in text.split(')').map(str::trim).filter(|s| !s.is_empty()) {
        let (name, numbers) = step.split_once('(').unwrap_or((step, ""));
        let numbers = numbers.split_whitespace().map(number);
        let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
        let step = match (name, numbers.as_slice()) {
            ("translate", &[x, y]) => Transform::shift([x, y]),
            ("rotate", &[degrees]) => Transform::turn(degrees),
            _ => return Err(format!("pictures cannot show the transform {text}")),
        };
        whole = whole.after(&step);
    }
    Ok(whole)
}

/// The data of a path: `M`, `L`, `H`, `V`, `h` and `Z`.
fn path(data: &str) -> Result<Path, String> {
    if data.contains("NaN") || data.contains("inf") {
        return Ok(Path::default());
    }
    let (mut segments, mut at): (Vec<Segment>, Point) = (vec![], [0.0; 2]);
    let mut rest = data;
    while let Some(command) = rest.chars().next() {
        let after = &rest[command.len_utf8()..];
        let end = after.find(|c: char| c.is_alphabetic());
        let (numbers, next) = after.split_at(end.unwrap_or(after.len()));
        let numbers = numbers.split_whitespace().map(number);
        let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
        match (command, numbers.as_slice()) {
            ('M' | 'L', &[x, y]) => at = [x, y],
            ('H', &[x]) => at[0] = x,
            ('V', &[y]) => at[1] = y,
            ('h', &[by]) => at[0] += by,
            ('Z', []) => {}
            _ => return Err(format!("pictures cannot show the path {command}{after}")),
        }
        segments.push(match command {
            'M' => Segment::Move(at),
            'Z' => Segment::Close,
            _ => Segment::Line(at),
        });
        rest = next;
    }
    Ok(Path(segments))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Style, place and clip reach what is drawn.
    #[test]
    fn elements_inherit() {
        let scene = read(
            "<svg class=\"plot\" width=\"9\" height=\"8\"><style>.plot text{font-family:\"A\",b}\
             .plot .dots{stroke:none;fill-opacity:.75}.plot .line.a{stroke:#010203;stroke-dasharray:5 3}\
             .plot .band.a,.plot .dots.a{fill:#ff0080}.plot .head{font-size:12.5px;font-weight:600}</style>\
             <g transform=\"translate(10 20)\"><clipPath id=\"c\"><rect x=\"1\" y=\"2\" width=\"3\" height=\"4\"/></clipPath>\
             <g clip-path=\"url(#c)\"><g class=\"dots a\"><circle cx=\"1\" cy=\"2\" r=\"2\"/><circle cx=\"NaN\" cy=\"2\" r=\"2\"/></g>\
             <path class=\"line a\" d=\"M1 2H3V5h-2L-1.5 0\"/></g>\
             <text class=\"head\" transform=\"translate(1 2) rotate(-90)\" text-anchor=\"end\"> a &amp;lt; \n b&#39;</text></g></svg>",
        );
        let scene = scene.unwrap();
        assert_eq!((scene.width, scene.height), (9.0, 8.0));
        let [
            Item::Shape {
                path, fill, clip, ..
            },
            Item::Shape {
                path: line,
                stroke: Some(stroke),
                ..
            },
            Item::Text(text),
        ] = scene.items.as_slice()
        else {
            panic!("{:?}", scene.items);
        };
        let fill = fill.unwrap();
        assert_eq!((fill.colour, fill.opacity), ([255, 0, 128], 0.75));
        assert_eq!(*clip, Some([11.0, 22.0, 14.0, 26.0]));
        assert_eq!(path.0[0], Segment::Move([13.0, 22.0]));
        assert_eq!(stroke.dashes, [5.0, 3.0]);
        let last = [[13.0, 22.0], [13.0, 25.0], [11.0, 25.0], [8.5, 20.0]].map(Segment::Line);
        assert_eq!(line.0[1..], last);
        assert_eq!(text.text, "a &lt; b'");
        assert!(text.bold && text.size == 12.5 && text.before == 1.0);
        let [x, y] = text.place.at([1.0, 0.0]);
        assert!((x - 11.0).abs() < 1e-12 && (y - 21.0).abs() < 1e-12);
    }

    /// What is not known is said, not left out.
    #[test]
    fn strangers_are_refused() {
        for svg in [
            "<svg><ellipse/></svg>",
            "<svg><path d=\"Q1 2\"/></svg>",
            "<svg",
        ] {
            assert!(read(svg).is_err(), "{svg}");
        }
    }
}
