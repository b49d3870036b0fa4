//! Checkpoints: what a fit on its way to `run` has come to, in `run.unfinished`.
//!
//! `begun.checkpoint` says what the fit was begun with ([`Begun`], as JSON); the others are parts of it
//! that are done ([`crate::solve::kept`]), each under a digest of what it begins with. The first line of
//! a file is the SHA-256 of the rest. The folder is gone when the fit is finished, and is never a fit
//! itself.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::disk::{Claim, beside};
use super::{FILE_BYTES, read_inside};
use crate::Error;
use crate::fit::begun::Begun;
use crate::fit::learn::Data;
use crate::model::Model;
use crate::record::{sha256, write_unsynced};
use crate::solve::kept::Keep;

const CHECKPOINT_EXTENSION: &str = ".checkpoint";
const BEGUN_FILE: &str = "begun";
/// Hexadecimal digits of the checksum, and the end of its line.
const HEAD_BYTES: usize = 65;

/// What a fit that was on its way to a folder was begun with; `None` where there is none.
///
/// # Errors
/// [`Error::Folder`] where its checkpoints were changed or cannot be read.
pub fn begun(folder: impl AsRef<Path>) -> Result<Option<Begun>, Error> {
    let folder = folder.as_ref();
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
    let Ok(unfinished) = beside(&real) else {
        return Ok(None);
    };
    if unfinished.join(file_name(BEGUN_FILE)).exists() {
        read_begun(&unfinished).map(Some)
    } else {
        Ok(None)
    }
}

/// The checkpoints of a fit on its way to a folder.
pub struct Unfinished<'c> {
    claim: &'c Claim,
    /// Whether the last one could be written.
    written: AtomicBool,
    failed: Box<dyn Fn(&Error) + Sync + 'c>,
}

impl Claim {
    /// Goes on with the checkpoints of a fit of the same model and records; where those that are there
    /// are of others, or damaged, they are removed. `failed` hears of one that cannot be written; the
    /// fit goes on without.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be written at all.
    pub fn checkpoints<'c>(
        &'c self,
        begun: &Begun,
        failed: impl Fn(&Error) + Sync + 'c,
    ) -> Result<Unfinished<'c>, Error> {
        let same = |before: Begun| {
            (before.model_sha256, before.records)
                == (begun.model_sha256.clone(), begun.records.clone())
        };
        if !read_begun(self.unfinished()).is_ok_and(same) {
            self.forget_checkpoints();
        }
        let unfinished = Unfinished {
            claim: self,
            written: AtomicBool::new(true),
            failed: Box::new(failed),
        };
        let json = serde_json::to_vec_pretty(begun).expect("plain values");
        unfinished.write(BEGUN_FILE, &json)?;
        Ok(unfinished)
    }

    /// Checks the checkpoints that are to be gone on with.
    ///
    /// # Errors
    /// [`Error::Folder`] where one was changed, [`Error::Setting`] where they are of another model or of
    /// other records.
    pub fn check_checkpoints(&self, model: &Model, data: Data) -> Result<(), Error> {
        read_begun(self.unfinished())?.belongs_to(model, data)?;
        for name in self.checkpoint_names() {
            let path = self.unfinished().join(file_name(&name));
            // what a power cut leaves of a file that had not come to the disk
            if fs::metadata(&path).is_ok_and(|meta| meta.len() > 0) {
                read(self.unfinished(), &name)?;
            }
        }
        Ok(())
    }

    /// Takes the checkpoints of another folder.
    ///
    /// # Errors
    /// Those of [`Claim::new`] for that folder, [`Error::Io`] where they cannot be copied.
    pub fn copy_checkpoints(&self, from: impl AsRef<Path>) -> Result<(), Error> {
        let from = Self::new(from)?;
        for name in from.checkpoint_names() {
            let [source, target] = [&from, self].map(|c| c.unfinished().join(file_name(&name)));
            let copied = fs::copy(&source, &target);
            copied.map_err(|e| Error::io("write", &target, e))?;
        }
        Ok(())
    }

    /// Removes them: the fit is finished, or nothing would come of it.
    pub fn forget_checkpoints(&self) {
        for name in self.checkpoint_names() {
            // one that stays does no harm
            let _ = fs::remove_file(self.unfinished().join(file_name(&name)));
        }
    }

    fn checkpoint_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.unfinished()).into_iter().flatten();
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(CHECKPOINT_EXTENSION)?.to_string())
        });
        names.collect()
    }
}

impl Unfinished<'_> {
    /// Whether some part of the fit is done already.
    pub fn goes_on(&self) -> bool {
        self.claim
            .checkpoint_names()
            .iter()
            .any(|name| name != BEGUN_FILE)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.claim.unfinished().join(file_name(name));
        let sum = sha256(bytes);
        // a power cut may cost some seconds more; the fit does not wait for the disk
        let written = write_unsynced(&path, |out| {
            writeln!(out, "{sum}")?;
            out.write_all(bytes)
        });
        written.map_err(|e| Error::io("write", &path, e))
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // nothing was learned that could be gone on with
        if !self.goes_on() {
            self.claim.forget_checkpoints();
        }
    }
}

impl Keep for Unfinished<'_> {
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        read(self.claim.unfinished(), name).ok()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        // one that is too large to be read is not written
        if bytes.len() as u64 > FILE_BYTES - HEAD_BYTES as u64 {
            return;
        }
        let written = self.write(name, bytes);
        let before = self.written.swap(written.is_ok(), Ordering::Relaxed);
        if let Err(error) = written
            && before
        {
            (self.failed)(&error);
        }
    }

    fn forget(&self, beginning: &str) {
        let names = self.claim.checkpoint_names().into_iter();
        for name in names.filter(|name| name.starts_with(beginning)) {
            let _ = fs::remove_file(self.claim.unfinished().join(file_name(&name)));
        }
    }
}

fn file_name(name: &str) -> String {
    format!("{name}{CHECKPOINT_EXTENSION}")
}

fn read_begun(unfinished: &Path) -> Result<Begun, Error> {
    let json = read(unfinished, BEGUN_FILE)?;
    serde_json::from_slice(&json).map_err(|e| Error::Folder {
        path: unfinished.join(file_name(BEGUN_FILE)),
        message: format!("this is no beginning of a fit ({e}); remove the folder, and fit again"),
    })
}

/// What is in a checkpoint, where it is what was written.
fn read(unfinished: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let path = unfinished.join(file_name(name));
    let root = fs::canonicalize(unfinished).map_err(|e| Error::io("read", unfinished, e))?;
    let mut bytes = read_inside(&root, &path)?;
    let content = bytes.get(HEAD_BYTES..).map(sha256);
    if content.is_some_and(|sum| bytes.starts_with(format!("{sum}\n").as_bytes())) {
        return Ok(bytes.split_off(HEAD_BYTES));
    }
    Err(Error::Folder {
        path,
        message: "this checkpoint is damaged, or was changed: its checksum differs; remove it to learn this part again".into(),
    })
}
