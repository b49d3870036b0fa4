//! A font file with no more than the letters that a page shows.

use std::collections::BTreeSet;

use ttf_parser::{Face, GlyphId, Tag};

/// The tables that a PDF wants of a font, in the order of their names.
const TABLES: [&[u8; 4]; 6] = [b"glyf", b"head", b"hhea", b"hmtx", b"loca", b"maxp"];

/// The font's file, in which all other letters are empty; letters keep their numbers.
///
/// # Errors
/// None, unless the font is not what the program was built with.
pub fn subset(face: &Face, glyphs: impl IntoIterator<Item = GlyphId>) -> Result<Vec<u8>, String> {
    let table = |name: &[u8; 4]| {
        let found = face.raw_face().table(Tag::from_bytes(name));
        found.ok_or_else(|| format!("the font has no {}", String::from_utf8_lossy(name)))
    };
    let (glyf, loca) = (table(b"glyf")?, table(b"loca")?);
    let long = table(b"head")?.get(51) == Some(&1);
    let outline = |glyph: u16| -> Option<&[u8]> {
        let at = |k: usize| -> Option<usize> {
            Some(if long {
                word(loca, 4 * k)? << 16 | word(loca, 4 * k + 2)?
            } else {
                2 * word(loca, 2 * k)?
            })
        };
        glyf.get(at(usize::from(glyph))?..at(usize::from(glyph) + 1)?)
    };
    // letters such as é are made of others
    let mut kept = BTreeSet::from([0]);
    let mut wanted: Vec<u16> = glyphs.into_iter().map(|g| g.0).collect();
    while let Some(glyph) = wanted.pop() {
        if kept.insert(glyph) {
            wanted.extend(parts(outline(glyph).unwrap_or_default()));
        }
    }
    let (mut outlines, mut places) = (vec![], vec![]);
    for glyph in 0..face.number_of_glyphs() {
        places.extend(length(&outlines).to_be_bytes());
        if kept.contains(&glyph) {
            outlines.extend(outline(glyph).unwrap_or_default());
            pad(&mut outlines);
        }
    }
    places.extend(length(&outlines).to_be_bytes());
    let mut tables = vec![];
    for name in TABLES {
        tables.push(match name {
            b"glyf" => outlines.clone(),
            b"loca" => places.clone(),
            b"head" => {
                let mut head = table(name)?.to_vec();
                let whole = head.len() >= 54;
                head.resize(54, 0);
                // the check sum of the whole file, which nobody checks; long places
                head[8..12].fill(0);
                head[50..52].copy_from_slice(&[0, 1]);
                whole.then_some(head).ok_or("the font's head is cut off")?
            }
            _ => table(name)?.to_vec(),
        });
    }
    Ok(file(&tables))
}

/// Tables after each other, with a list of where they are.
fn file(tables: &[Vec<u8>]) -> Vec<u8> {
    let mut file = vec![0, 1, 0, 0];
    // the number of tables and three numbers for those who search them by halves
    file.extend([6u16, 64, 2, 32].map(u16::to_be_bytes).concat());
    let mut at = length(&file) + 16 * TABLES.len() as u32;
    for (name, table) in TABLES.iter().zip(tables) {
        let mut padded = table.clone();
        pad(&mut padded);
        let words = padded.chunks_exact(4);
        let words = words.map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
        let sum = words.fold(0, u32::wrapping_add);
        file.extend(*name);
        file.extend([sum, at, length(table)].map(u32::to_be_bytes).concat());
        at += length(&padded);
    }
    for table in tables {
        file.extend(table);
        pad(&mut file);
    }
    file
}

/// The letters that a letter is made of.
fn parts(outline: &[u8]) -> Vec<u16> {
    const WORDS_FLAG: usize = 1;
    const MORE_PARTS_FLAG: usize = 0x20;
    // how many numbers say how large a part is, one, two or four
    const SCALE_FLAGS: [(usize, usize); 3] = [(0x8, 2), (0x40, 4), (0x80, 8)];
    let mut found = vec![];
    // a count below zero says that it is made of others
    if word(outline, 0).is_none_or(|count| count < 0x8000) {
        return found;
    }
    let mut at = 10;
    while let (Some(flags), Some(glyph)) = (word(outline, at), word(outline, at + 2)) {
        found.push(glyph as u16);
        at += if flags & WORDS_FLAG != 0 { 8 } else { 6 };
        let scale = SCALE_FLAGS.iter().find(|(flag, _)| flags & flag != 0);
        at += scale.map_or(0, |(_, bytes)| *bytes);
        if flags & MORE_PARTS_FLAG == 0 {
            break;
        }
    }
    found
}

/// Two bytes as a number.
fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let pair = bytes.get(at..at + 2)?;
    Some(usize::from(pair[0]) << 8 | usize::from(pair[1]))
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::font::Font;
    use ttf_parser::Rect;

    /// The letters that are kept look as before, with their parts; others are empty.
    #[test]
    fn a_subset_is_a_font() {
        struct Nothing;
        impl ttf_parser::OutlineBuilder for Nothing {
            fn move_to(&mut self, _: f32, _: f32) {}
            fn line_to(&mut self, _: f32, _: f32) {}
            fn quad_to(&mut self, _: f32, _: f32, _: f32, _: f32) {}
            fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, _: f32, _: f32) {}
            fn close(&mut self) {}
        }
        let font = Font::new(false).unwrap();
        let glyph = |c| font.face.glyph_index(c).unwrap();
        let bytes = subset(&font.face, ['é', 'ά', '2'].map(glyph)).unwrap();
        assert!(bytes.len() < 10_000, "{}", bytes.len());
        let small = Face::parse(&bytes, 0).unwrap();
        let seen = |face: &Face, c| -> Option<Rect> { face.outline_glyph(glyph(c), &mut Nothing) };
        for c in ['é', 'e', 'ά', '2'] {
            assert!(seen(&small, c).is_some());
            assert_eq!(seen(&small, c), seen(&font.face, c), "{c}");
        }
        assert!(seen(&font.face, 'Q').is_some() && seen(&small, 'Q').is_none());
    }
}
