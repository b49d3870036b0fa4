//! Pixels as a PNG file.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::raster::{Canvas, PIXEL_BYTES};

/// The file.
///
/// # Errors
/// No memory.
pub fn encode(canvas: &Canvas) -> Result<Vec<u8>, String> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let size = [canvas.width, canvas.height].map(|v| u32::try_from(v).unwrap_or(u32::MAX));
    let mut header = size.map(u32::to_be_bytes).concat();
    // eight bits each of red, green and blue; nothing fancy
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &header);
    let mut packed = ZlibEncoder::new(vec![], Compression::default());
    let mut above = vec![0; PIXEL_BYTES * canvas.width];
    for row in canvas.pixels.chunks(PIXEL_BYTES * canvas.width) {
        let (filter, bytes) = filtered(row, &above);
        let written = packed
            .write_all(&[filter])
            .and_then(|()| packed.write_all(&bytes));
        written.map_err(|e| e.to_string())?;
        above.copy_from_slice(row);
    }
    let packed = packed.finish().map_err(|e| e.to_string())?;
    chunk(&mut file, b"IDAT", &packed);
    chunk(&mut file, b"IEND", &[]);
    Ok(file)
}

/// A row as differences to what is left of it or above it, whichever has the smaller ones.
fn filtered(row: &[u8], above: &[u8]) -> (u8, Vec<u8>) {
    let left = [0; PIXEL_BYTES].iter().chain(row);
    let left: Vec<u8> = row
        .iter()
        .zip(left)
        .map(|(byte, left)| byte.wrapping_sub(*left))
        .collect();
    let up = row
        .iter()
        .zip(above)
        .map(|(byte, up)| byte.wrapping_sub(*up));
    let up: Vec<u8> = up.collect();
    let size = |bytes: &[u8]| -> u64 {
        bytes
            .iter()
            .map(|b| u64::from((*b as i8).unsigned_abs()))
            .sum()
    };
    if size(&left) < size(&up) {
        (1, left)
    } else {
        (2, up)
    }
}

fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(data);
    let mut crc = Crc::new();
    crc.update(kind);
    crc.update(data);
    file.extend(crc.sum().to_be_bytes());
}
