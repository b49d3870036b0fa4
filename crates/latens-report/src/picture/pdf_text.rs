//! The text of a PDF: lines of letters, and the font that they are drawn with.

use std::fmt::Write as _;

use super::font::Font;
use super::pdf::{File, number};
use super::scene::{Text, Transform};
use super::subset::subset;

/// The lines in one face. Each character that they use has a number of its own, from 1 on, even if it
/// looks like another or is not in the font: so what is copied is what was meant.
pub struct Script {
    font: Font,
    bold: bool,
    used: Vec<char>,
}

impl Script {
    /// Without a line.
    ///
    /// # Errors
    /// Those of [`Font::new`].
    pub fn new(bold: bool) -> Result<Self, String> {
        Ok(Self {
            font: Font::new(bold)?,
            bold,
            used: vec![],
        })
    }

    /// Whether there is a line.
    pub fn is_used(&self) -> bool {
        !self.used.is_empty()
    }

    /// What the page calls the font.
    pub fn name(&self) -> &'static str {
        if self.bold { "F1" } else { "F0" }
    }

    /// The order that draws a line.
    pub fn line(&mut self, text: &Text) -> String {
        let (letters, width) = self.font.line(&text.text);
        let place = Transform::shift([-text.before * width * text.size, 0.0]);
        // letters stand upright although y grows downwards
        let place = text.place.after(&place).after(&Transform::scale(1.0, -1.0));
        let mut shown = String::new();
        let mut end = 0.0;
        for letter in letters {
            let off = letter.at - end;
            if off.abs() > 1e-4 {
                let _ = write!(shown, ">{}<", number(-1000.0 * off));
            }
            end = letter.at + letter.advance;
            let _ = write!(shown, "{:04x}", self.number(letter.char));
        }
        if shown.is_empty() {
            return String::new();
        }
        format!(
            "BT/{} {} Tf {} Tm[<{shown}>]TJ ET\n",
            self.name(),
            number(text.size),
            place.0.map(number).join(" ")
        )
    }

    /// The number of a character.
    fn number(&mut self, char: char) -> usize {
        let known = self.used.iter().position(|c| *c == char);
        known.unwrap_or_else(|| {
            self.used.push(char);
            self.used.len() - 1
        }) + 1
    }

    /// Writes the font, with no more letters than the lines have; gives its number in the file.
    ///
    /// # Errors
    /// No memory.
    pub fn write(&self, file: &mut File) -> Result<usize, String> {
        let face = &self.font.face;
        let used = || self.used.iter();
        let glyphs = || used().map(|c| face.glyph_index(*c).unwrap_or_default());
        let program = subset(face, glyphs())?;
        let program = file.stream(&format!("/Length1 {}", program.len()), &program)?;
        // from characters' numbers to letters of the font; number 0 stands for none
        let map: Vec<u8> = [0; 2]
            .into_iter()
            .chain(glyphs().flat_map(|g| g.0.to_be_bytes()))
            .collect();
        let map = file.stream("", &map)?;
        let meaning = file.stream("", self.meaning().as_bytes())?;
        let units = |units: i16| number(1000.0 * self.font.part(units));
        let bounds = face.global_bounding_box();
        let bounds = [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max];
        let name = format!("LATENS+{}", self.font.name);
        let described = file.object(&format!(
            "<</Type/FontDescriptor/FontName/{name}/Flags 4/FontBBox[{}]/ItalicAngle 0/Ascent {}/Descent {}/CapHeight {}/StemV {}/FontFile2 {program} 0 R>>",
            bounds.map(units).join(" "),
            units(face.ascender()),
            units(face.descender()),
            // that of DejaVu Sans
            units(1493),
            if self.bold { 160 } else { 90 }
        ));
        let widths = used().map(|c| number(1000.0 * self.font.line(c.encode_utf8(&mut [0; 4])).1));
        let widths: Vec<String> = widths.collect();
        let letters = file.object(&format!(
            "<</Type/Font/Subtype/CIDFontType2/BaseFont/{name}/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor {described} 0 R/W[1[{}]]/CIDToGIDMap {map} 0 R>>",
            widths.join(" ")
        ));
        Ok(file.object(&format!(
            "<</Type/Font/Subtype/Type0/BaseFont/{name}/Encoding/Identity-H/DescendantFonts[{letters} 0 R]/ToUnicode {meaning} 0 R>>"
        )))
    }

    /// What each number means, for those who copy and search.
    fn meaning(&self) -> String {
        let mut map = String::from(
            "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n\
             /CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n\
             /CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n\
             1 begincodespacerange\n<0000> <ffff>\nendcodespacerange\n",
        );
        let numbered: Vec<(usize, &char)> = (1..).zip(&self.used).collect();
        // no list may be longer
        for chunk in numbered.chunks(100) {
            let _ = writeln!(map, "{} beginbfchar", chunk.len());
            for (number, char) in chunk {
                let _ = write!(map, "<{number:04x}> <");
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(map, "{unit:04x}");
                }
                map.push_str(">\n");
            }
            map.push_str("endbfchar\n");
        }
        map + "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
    }
}
