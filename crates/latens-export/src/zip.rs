//! Zip files, as FMUs are: packed entries, their directory at the end.

use std::io::Write;

use flate2::Compression;
use flate2::Crc;
use flate2::write::DeflateEncoder;

/// The files of an archive, by name; all with one time, so that the same files make the same bytes.
pub fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    // 1980-01-01, the first day that the format knows
    const FILE_DATE: u16 = 0x21;
    const FORMAT_VERSION: u16 = 20;
    const UTF8_NAMES_FLAG: u16 = 1 << 11;
    const DEFLATE_METHOD: u16 = 8;
    let (mut out, mut directory) = (vec![], vec![]);
    for (name, bytes) in files {
        let mut sum = Crc::new();
        sum.update(bytes);
        let mut encoder = DeflateEncoder::new(vec![], Compression::default());
        let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
        let packed = packed.expect("memory takes all that is written");
        let mut about = vec![];
        for short in [
            FORMAT_VERSION,
            UTF8_NAMES_FLAG,
            DEFLATE_METHOD,
            0,
            FILE_DATE,
        ] {
            about.extend(short.to_le_bytes());
        }
        for long in [sum.sum(), packed.len() as u32, bytes.len() as u32] {
            about.extend(long.to_le_bytes());
        }
        about.extend((name.len() as u16).to_le_bytes());
        about.extend(0_u16.to_le_bytes());
        let place = out.len() as u32;
        out.extend(b"PK\x03\x04");
        out.extend(&about);
        out.extend(name.as_bytes());
        out.extend(packed);
        directory.extend(b"PK\x01\x02");
        directory.extend(FORMAT_VERSION.to_le_bytes());
        directory.extend(&about);
        // no comment, first disk, no attributes
        directory.extend([0; 10]);
        directory.extend(place.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (place, count) = (out.len() as u32, files.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(place.to_le_bytes());
    out.extend(0_u16.to_le_bytes());
    out
}
