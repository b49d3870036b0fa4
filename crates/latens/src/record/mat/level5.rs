//! MATLAB level 5: tagged data elements, compressed with zlib by `-v7`.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::{Bytes, Fault, VALUES, Variable, numbers};

// Types of data elements.
const MATRIX_TYPE: u32 = 14;
const COMPRESSED_TYPE: u32 = 15;

pub(super) fn variables(bytes: &[u8], big: bool) -> Result<Vec<Variable>, Fault> {
    let mut file = Bytes { rest: bytes, big };
    let mut variables: Vec<Variable> = Vec::new();
    // bytes that may still be unpacked, and numbers that may still be read
    let (mut left, mut values) = (8 * VALUES, VALUES);
    while !file.rest.is_empty() {
        let damaged = || {
            Fault::Damaged(match variables.last() {
                Some(last) => format!("it is damaged or cut off after variable {}", last.name),
                None => "it is damaged or cut off before its first variable".to_owned(),
            })
        };
        let mut element = file.element().ok_or_else(damaged)?;
        let mut inflated = Vec::new();
        if element.kind == COMPRESSED_TYPE {
            let mut decoder = ZlibDecoder::new(element.content).take(left as u64 + 1);
            decoder.read_to_end(&mut inflated).map_err(|_| damaged())?;
            left = (left.checked_sub(inflated.len())).ok_or(Fault::TooLarge)?;
            let rest = &inflated;
            element = Bytes { rest, big }.element().ok_or_else(damaged)?;
        }
        if element.kind == MATRIX_TYPE {
            let variable = matrix(element.content, big).ok_or_else(damaged)?;
            values = (values.checked_sub(variable.values.len())).ok_or(Fault::TooLarge)?;
            // MATLAB keeps the data of objects in a variable without a name.
            if !variable.name.is_empty() {
                variables.push(variable);
            }
        }
    }
    Ok(variables)
}

fn matrix(rest: &[u8], big: bool) -> Option<Variable> {
    const COMPLEX_FLAG: u32 = 0x0800;
    const OPAQUE_CLASS: u32 = 17;
    let mut content = Bytes { rest, big };
    let rest = content.element()?.content;
    let flags = Bytes { rest, big }.u32()?;
    let class = flags & 0xff;
    let dimensions: Vec<u64> = match class {
        // Objects of classes have no dimensions of their own.
        OPAQUE_CLASS => Vec::new(),
        _ => integers(content.element()?.content, big)?,
    };
    let name = String::from_utf8_lossy(content.element()?.content).into_owned();
    let other = match class {
        1 => Some("cell array"),
        2 => Some("struct"),
        4 => Some("text"),
        5 => Some("sparse"),
        6..=15 if flags & COMPLEX_FLAG != 0 => Some("complex"),
        6..=15 if dimensions.len() != 2 => Some("more than two dimensions"),
        6..=15 => None,
        _ => Some("object"),
    };
    let mut variable = Variable {
        name,
        other,
        rows: 0,
        values: Vec::new(),
    };
    if other.is_none() {
        let count = dimensions[0].checked_mul(dimensions[1])?;
        if count > VALUES as u64 {
            return None;
        }
        if count > 0 {
            let element = content.element()?;
            variable.values = numbers(element.kind, element.content, big)?;
        }
        if count != variable.values.len() as u64 {
            return None;
        }
        variable.rows = usize::try_from(dimensions[0]).ok()?;
    }
    Some(variable)
}

fn integers(rest: &[u8], big: bool) -> Option<Vec<u64>> {
    let mut bytes = Bytes { rest, big };
    (0..rest.len() / 4)
        .map(|_| bytes.u32().map(u64::from))
        .collect()
}

/// A data element of level 5.
struct Element<'a> {
    /// The number of its type.
    kind: u32,
    content: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// The next data element.
    fn element(&mut self) -> Option<Element<'a>> {
        let word = self.u32()?;
        // Up to four bytes are packed into the tag, their number into its upper half.
        if word >> 16 != 0 {
            let packed = self.take(4)?;
            return Some(Element {
                kind: word & 0xffff,
                content: packed.get(..(word >> 16) as usize)?,
            });
        }
        let size = self.u32()? as usize;
        let content = self.take(size)?;
        if word != COMPRESSED_TYPE {
            let padding = size.next_multiple_of(8) - size;
            self.take(padding.min(self.rest.len()))?;
        }
        Some(Element {
            kind: word,
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::record::mat::parse;
    use crate::record::mat::tests::values;

    #[test]
    fn both_byte_orders_and_packed_elements_are_read() {
        for big in [false, true] {
            let half = |v: u16| {
                if big {
                    v.to_be_bytes()
                } else {
                    v.to_le_bytes()
                }
            };
            let word = |v: u32| {
                if big {
                    v.to_be_bytes()
                } else {
                    v.to_le_bytes()
                }
            };
            let words = |v: &[u32]| v.iter().flat_map(|&w| word(w)).collect::<Vec<_>>();
            // Flags of a double array, 3 × 1, its name packed into the tag; the values as
            // 16-bit integers, since they fit.
            let mut content = words(&[6, 8, 6, 0, 5, 8, 3, 1, (1 << 16) | 1]);
            content.extend(b"x\0\0\0");
            content.extend(words(&[3, 6]));
            content.extend([-1_i16, 2, 300].map(|v| half(v as u16)).concat());
            content.extend([0, 0]);
            let mut bytes = vec![b' '; 124];
            bytes.extend(half(0x0100));
            bytes.extend(if big { b"MI" } else { b"IM" });
            bytes.extend(words(&[14, content.len() as u32]));
            bytes.extend(content);
            assert_eq!(
                values(&parse("a", &bytes).unwrap(), "x"),
                [-1.0, 2.0, 300.0]
            );
        }
    }
}
