//! Whole files: they are well formed whatever the texts are, and show what they should.

use std::io::Read;

use flate2::Crc;
use flate2::read::ZlibDecoder;

use super::Form;
use crate::plot::{Mark, Plot, Shape, document};

/// One plot with marks of all kinds and a title.
fn drawing(title: &str) -> String {
    let wave: Vec<[f64; 2]> = (0..50)
        .map(|k| f64::from(k) / 5.0)
        .map(|x| [x, x.sin()])
        .collect();
    let band = wave
        .iter()
        .map(|p| [p[0], p[1] - 0.3, p[1] + 0.3])
        .collect();
    let arrows = wave.iter().map(|p| (*p, [0.5, 0.2])).collect();
    let mut gap = wave.clone();
    gap[7][1] = f64::NAN;
    let plot = Plot {
        title: title.into(),
        note: title.into(),
        marks: vec![
            Mark::new("data", title, Shape::Density(vec![1.0, 3.0, 0.0, 2.0])),
            Mark::new("estimate", "band", Shape::Band(band)),
            Mark::new("truth", "line", Shape::Line(gap.clone())),
            Mark::new("run4", "dots", Shape::Dots(gap.clone())),
            Mark::new("run5", "bars", Shape::Bars(gap, 0.3)),
            Mark::new("away", "arrows", Shape::Arrows(arrows)),
            Mark::new("bound", "level", Shape::Level(0.1)),
        ],
        ..Plot::default()
    };
    document([&plot, &plot], 2, [470.0, 230.0])
}

/// Texts that could break a file, or be missing from a font.
const HOSTILE: [&str; 6] = [
    "\"quotes' <tags> &amp; ]]> <!-- -->",
    "(((\\ )\\)) endstream endobj %%EOF <</A>>",
    "\u{1f600} 漢字 עברית \u{10ffff} \u{ffff} \u{202e}",
    "\u{0}\u{1}\u{7f}\u{85}\t\r\n\u{feff}",
    "",
    "θ̂₀ µ ≥ ∂²ν/∂t² → x′ (−½…)",
];

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut plain = vec![];
    ZlibDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

/// Width and pixels of a PNG, all of whose parts are looked at.
fn pixels(png: &[u8]) -> (usize, Vec<u8>) {
    let mut rest = png.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let (mut header, mut packed, mut kinds) = (vec![], vec![], vec![]);
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    while !rest.is_empty() {
        let length = number(&rest[..4]) as usize;
        let (kind, data) = (&rest[4..8], &rest[8..8 + length]);
        let mut crc = Crc::new();
        crc.update(&rest[4..8 + length]);
        assert_eq!(number(&rest[8 + length..12 + length]), crc.sum());
        match kind {
            b"IHDR" => header = data.to_vec(),
            b"IDAT" => packed = data.to_vec(),
            _ => {}
        }
        kinds.push(String::from_utf8_lossy(kind));
        rest = &rest[12 + length..];
    }
    assert_eq!(kinds, ["IHDR", "IDAT", "IEND"]);
    assert_eq!(header[8..], [8, 2, 0, 0, 0]);
    let (width, height) = (
        number(&header[..4]) as usize,
        number(&header[4..8]) as usize,
    );
    let mut pixels: Vec<u8> = vec![];
    for row in inflated(&packed).chunks(1 + 3 * width) {
        for (k, difference) in row[1..].iter().enumerate() {
            let back = if row[0] == 1 { 3 } else { 3 * width };
            let first = if row[0] == 1 {
                k < 3
            } else {
                pixels.len() < 3 * width
            };
            let before = if first {
                0
            } else {
                pixels[pixels.len() - back]
            };
            pixels.push(difference.wrapping_add(before));
        }
    }
    assert_eq!(pixels.len(), 3 * width * height);
    (width, pixels)
}

/// The streams of a PDF, all of whose offsets and lengths are looked at.
fn streams(pdf: &[u8]) -> Vec<Vec<u8>> {
    assert!(pdf.starts_with(b"%PDF-1.4\n") && pdf.ends_with(b"\n%%EOF\n"));
    let find = |word: &[u8], from: usize| {
        let found = pdf[from..].windows(word.len()).position(|w| w == word);
        found.map(|at| from + at)
    };
    let number = |from: usize| -> usize {
        let digits = pdf[from..].iter().take_while(|b| b.is_ascii_digit());
        let digits: Vec<u8> = digits.copied().collect();
        String::from_utf8(digits).unwrap().parse().unwrap()
    };
    let tail = pdf.len() - 30;
    let list = number(find(b"startxref\n", tail).unwrap() + 10);
    assert!(pdf[list..].starts_with(b"xref\n0 "));
    let size = number(list + 7);
    let first = find(b"f \n", list).unwrap() + 3;
    assert!(pdf[first + 20 * (size - 1)..].starts_with(b"trailer\n"));
    let mut streams = vec![];
    for k in 1..size {
        let entry = &pdf[first + 20 * (k - 1)..first + 20 * k];
        assert_eq!(&entry[10..], b" 00000 n \n");
        let at = number(first + 20 * (k - 1));
        assert!(pdf[at..].starts_with(format!("{k} 0 obj\n").as_bytes()));
        let body = at + format!("{k} 0 obj\n").len();
        let Some(after) = pdf[body..].strip_prefix(b"<</Length ") else {
            let end = find(b"\nendobj\n", body).unwrap();
            let body = std::str::from_utf8(&pdf[body..end]).unwrap();
            assert_eq!(body.matches("<<").count(), body.matches(">>").count());
            continue;
        };
        let length = number(pdf.len() - after.len());
        let start = find(b">>\nstream\n", body).unwrap() + 10;
        assert!(pdf[start + length..].starts_with(b"\nendstream\nendobj\n"));
        streams.push(inflated(&pdf[start..start + length]));
    }
    streams
}

#[test]
fn files_are_valid_whatever_the_texts_are() {
    for title in HOSTILE {
        let svg = drawing(title);
        let allowed = |c: char| !c.is_ascii_control() || "\t\r\n\x7f".contains(c);
        assert!(svg.chars().all(allowed), "{title:?}");
        let (width, pixels) = pixels(&Form::Png.encode(&svg).unwrap());
        assert_eq!((width, pixels.len()), (3 * 940, 3 * 9 * 940 * 230));
        let streams = streams(&Form::Pdf.encode(&svg).unwrap());
        // the page; program, letters and meaning of each font
        assert!(
            streams.len() == 4 || streams.len() == 7,
            "{}",
            streams.len()
        );
        let page = std::str::from_utf8(&streams[0]).unwrap();
        let count = |order: &str| page.lines().filter(|l| l.starts_with(order)).count();
        assert_eq!((count("q "), count("Q")), (2, 2));
        assert!(page.is_ascii() && !page.contains("NaN") && !page.contains("inf"));
        assert!(page.lines().all(|line| !line.contains('(')));
    }
}

/// Characters are what they are, even those beyond 16 bits and those that the font lacks.
#[test]
fn text_can_be_copied() {
    let streams = streams(&Form::Pdf.encode(&drawing("µμ 漢\u{1f600}")).unwrap());
    let meaning = String::from_utf8_lossy(&streams[3]);
    for code in ["<00b5>", "<03bc>", "<6f22>", "<d83dde00>"] {
        assert!(meaning.contains(code), "{code} {meaning}");
    }
}

#[test]
fn pixels_have_their_colours() {
    let square = |x: f64| vec![[x, 0.0], [x + 1.0, 0.0]];
    let wide = |class| {
        let band = square(0.0).iter().map(|p| [p[0], 0.0, 1.0]).collect();
        Mark::new(class, "", Shape::Band(band))
    };
    let plot = Plot {
        title: "█".into(),
        marks: vec![wide("estimate")],
        ..Plot::default()
    };
    let (width, pixels) = pixels(
        &Form::Png
            .encode(&document([&plot], 1, [300.0, 200.0]))
            .unwrap(),
    );
    assert_eq!((width, pixels.len() / width), (900, 3 * 600));
    let at = |x: usize, y: usize| &pixels[3 * (900 * y + x)..3 * (900 * y + x) + 3];
    assert_eq!(at(0, 0), [255; 3]);
    assert_eq!(at(899, 599), [255; 3]);
    // a fifth of #0072b2 on white, between two lines of the grid
    assert_eq!(at(540, 290), [204, 227, 240]);
    let ink = pixels
        .chunks(3)
        .filter(|p| **p == [0x1b, 0x1f, 0x24])
        .count();
    assert!(ink > 30, "{ink} pixels of the title");
}

/// A drawing that is cut off, or from elsewhere, is refused in words.
#[test]
fn strangers_are_refused() {
    for svg in [
        "<svg",
        "<svg width=\"9\" height=\"9\"><image/></svg>",
        "",
        "<svg width=\"1e9\" height=\"1e9\"></svg>",
    ] {
        let refused = Form::Png.encode(svg).unwrap_err();
        assert!(!refused.is_empty());
    }
    assert!(Form::Pdf.encode("").is_err());
    assert_eq!(Form::Svg.encode("<svg").unwrap(), b"<svg");
}
