//! A figure as a file: SVG as it is, PNG and PDF drawn from it.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// Pixels of a PNG for each unit of the figure: print quality at the width of a column.
const PIXELS: f32 = 3.0;

/// The form of a figure's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Svg,
    Png,
    Pdf,
}

impl Form {
    /// By the ending of a file's name.
    pub fn of(path: &std::path::Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// What stands in the way of a picture: no fonts, or no memory.
    pub fn encode(self, svg: &str) -> Result<Vec<u8>, String> {
        if self == Self::Svg {
            return Ok(svg.as_bytes().to_vec());
        }
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        if fonts.is_empty() {
            return Err("this machine has no fonts to draw with: install some (for example DejaVu or Liberation), or write an .svg".into());
        }
        // what Helvetica falls back to where nobody has it
        let family = first_of(&fonts, &["Liberation Sans", "Arial", "DejaVu Sans"]);
        fonts.set_sans_serif_family(family);
        let options = usvg::Options {
            fontdb: Arc::new(fonts),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
        match self {
            Self::Pdf => {
                let (how, page) = (
                    svg2pdf::ConversionOptions::default(),
                    svg2pdf::PageOptions::default(),
                );
                svg2pdf::to_pdf(&tree, how, page).map_err(|e| e.to_string())
            }
            _ => {
                let size = tree.size().to_int_size().scale_by(PIXELS);
                let room = size.and_then(|s| Pixmap::new(s.width(), s.height()));
                let mut room = room.ok_or("the figure is too large for a picture")?;
                let scale = Transform::from_scale(PIXELS, PIXELS);
                resvg::render(&tree, scale, &mut room.as_mut());
                room.encode_png().map_err(|e| e.to_string())
            }
        }
    }
}

/// The first family that there is; else any.
fn first_of(fonts: &fontdb::Database, names: &[&str]) -> String {
    let has = |name: &&&str| {
        let mut all = fonts.faces().flat_map(|face| &face.families);
        all.any(|(family, _)| family == **name)
    };
    let any = fonts.faces().next().and_then(|face| face.families.first());
    let any = any.map_or(String::new(), |(family, _)| family.clone());
    names
        .iter()
        .find(has)
        .map_or(any, |name| (*name).to_string())
}
