//! Numbers as text, for the page.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in base 64.
pub fn encode(bytes: impl IntoIterator<Item = u8>) -> String {
    let bytes: Vec<u8> = bytes.into_iter().collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) as usize & 63;
            let used = digit <= three.len();
            text.push(if used { DIGITS[value] as char } else { '=' });
        }
    }
    text
}

/// Numbers of 32 bits: seven digits.
pub fn single(values: impl IntoIterator<Item = f64>) -> String {
    encode(values.into_iter().flat_map(|v| (v as f32).to_le_bytes()))
}

/// Numbers of 64 bits.
pub fn double(values: impl IntoIterator<Item = f64>) -> String {
    encode(values.into_iter().flat_map(f64::to_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648.
    #[test]
    fn as_the_standard_has_it() {
        let encoded = |text: &str| encode(text.bytes());
        let shown = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(encoded);
        assert_eq!(
            shown,
            [
                "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"
            ]
        );
        assert_eq!(single([1.0]), "AACAPw==");
    }
}
