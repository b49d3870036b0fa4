//! A figure as a file: SVG as it is, PNG and PDF drawn from it.
//!
//! [`svg`] reads what [`crate::plot`] wrote into a `scene`; [`raster`] makes pixels of it and [`pdf`] a
//! page. Letters come from a font that the program carries, so that a picture is the same on all machines.

mod font;
mod pdf;
mod pdf_text;
mod png;
mod raster;
mod scene;
mod stroke;
mod style;
mod subset;
mod svg;
#[cfg(test)]
mod tests;

/// Pixels of a PNG for each unit of the figure: print quality at the width of a column.
const PIXELS: f64 = 3.0;

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

    /// The bytes of the file, from the SVG that [`crate::figures::draw`] gives.
    ///
    /// # Errors
    /// What stands in the way of a picture: an SVG that is not from here, or one that is too large.
    pub fn encode(self, svg: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Svg => Ok(svg.as_bytes().to_vec()),
            Self::Pdf => pdf::encode(&scene(svg)?),
            Self::Png => png::encode(&raster::draw(&scene(svg)?, PIXELS)?),
        }
    }
}

/// What a drawing shows, with its texts on the page.
fn scene(svg: &str) -> Result<scene::Scene, String> {
    let mut scene = svg::read(svg)?;
    font::fit(&mut scene)?;
    Ok(scene)
}
