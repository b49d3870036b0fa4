//! `checksums.sha256`: the SHA-256 of every other file of a fit, in the form that `sha256sum -c` reads.
//!
//! It tells damage and changes by hand from what was written; whoever makes a folder to deceive makes
//! the checksums too, so every number is checked for itself as well ([`mod@super::check`]).

use super::CHECKSUMS;
use crate::record::sha256;

/// Checksums by name.
#[derive(Default)]
pub(super) struct Checksums(Vec<(String, String)>);

impl Checksums {
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        self.0.push((sha256(bytes), name.into()));
    }

    pub fn encode(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(sum, name)| format!("{sum}  {name}\n"));
        lines.collect::<String>().into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().filter_map(|line| line.split_once("  "));
        Self(lines.map(|(sum, name)| (sum.into(), name.into())).collect())
    }

    /// Whether a file was written.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, n)| n == name)
    }

    /// Whether a file is the one that was written.
    pub fn verify(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let sum = sha256(bytes);
        if self.0.iter().any(|(s, n)| *s == sum && n == name) {
            return Ok(());
        }
        Err(format!(
            "this file is damaged, or was changed after the fit: its checksum is not in {CHECKSUMS}; restore it or repeat the fit"
        ))
    }
}
