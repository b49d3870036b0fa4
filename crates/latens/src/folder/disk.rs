//! A folder that is written whole or not at all, by one process at a time.
//!
//! Whoever writes `run` works in `run.unfinished`, beside it (a rename across file systems is not
//! atomic), and holds the lock in there, which ends with its process, however that ends:
//!
//! ```text
//! run.unfinished/lock           who holds it may write `run`
//!                new/           the files on their way to `run`; after an exchange, those of the old fit
//!                old/           the old fit, where folders cannot be exchanged
//!                *.checkpoint   what a fit has come to, see [`super::unfinished`]
//! ```
//!
//! A complete folder takes the target's name in one step. Where a fit is there already, the two change
//! places: at no moment is there none under its name. Systems without such an exchange rename the old
//! fit away first; killed between, it is put back by the next process.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{CHECKSUMS, ENSEMBLE, FACTS, FORESEEN, MODEL, STATES, STREAM, Sink, WEIGHTS};
use crate::Error;
use crate::fit::Fit;
use crate::record::{Others, locked, sync_folder_of};

/// What somebody made of the fit, and can make again.
const PAGE_FILE: &str = "report.html";

pub(super) const UNFINISHED_SUFFIX: &str = ".unfinished";
const LOCK_FILE: &str = "lock";
const NEW_FOLDER: &str = "new";
const OLD_FOLDER: &str = "old";

/// What stands where a fit shall be written.
enum Target {
    Free,
    Fit,
}

/// The right to write a folder: no other process has it while this one does.
#[derive(Debug)]
pub struct Claim {
    /// As the caller named it.
    folder: PathBuf,
    /// Where a link leads.
    real: PathBuf,
    unfinished: PathBuf,
    lock: Option<File>,
}

/// Whether a fit could be written here: worth asking before it is made. See [`Claim::check`].
///
/// # Errors
/// Those of [`Claim::new`] and [`Claim::check`].
pub fn check(folder: impl AsRef<Path>, replace: bool) -> Result<(), Error> {
    Claim::new(folder)?.check(replace)
}

impl Claim {
    /// Claims a folder, and removes what a killed process has left on its way to it.
    ///
    /// # Errors
    /// [`Error::Folder`] where another process writes it, [`Error::Io`] where it cannot be written.
    pub fn new(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        let failed = |e| Error::io("write", folder, e);
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
        let unfinished = beside(&real).map_err(failed)?;
        if let Some(parent) = unfinished.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let lock = loop {
            match fs::create_dir(&unfinished) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
                _ => {}
            }
            refuse_foreign(&unfinished)?;
            match locked(&unfinished.join(LOCK_FILE), Others::Refuse) {
                Ok(lock) => break lock,
                // another process has just finished, and removed the folder
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Err(Error::Folder {
                        path: folder.into(),
                        message: format!(
                            "another process is writing this folder (it works in {}); wait until it is done, or choose another name",
                            unfinished.display()
                        ),
                    });
                }
                Err(e) => return Err(Error::io("write", &unfinished, e)),
            }
        };
        let claim = Self {
            folder: folder.into(),
            real,
            unfinished,
            lock: Some(lock),
        };
        claim.tidy()?;
        Ok(claim)
    }

    /// Puts back or removes what a killed process has left.
    fn tidy(&self) -> Result<(), Error> {
        let [old, new] = [OLD_FOLDER, NEW_FOLDER].map(|name| self.unfinished.join(name));
        if old.exists() && !self.real.exists() {
            let restored = fs::rename(&old, &self.real);
            restored.map_err(|e| Error::io("restore", &self.folder, e))?;
        }
        [old, new].iter().try_for_each(|path| remove_fit(path))
    }

    /// Whether a fit may be written: an empty folder is used; one that holds no fit is never touched; a
    /// fit is replaced only where `replace` is set and nothing but the files of a fit is in it.
    ///
    /// # Errors
    /// [`Error::Folder`] with what to do.
    pub fn check(&self, replace: bool) -> Result<(), Error> {
        inspect(&self.folder, replace).map(drop)
    }

    /// Writes a fit, whole or not at all; where `replace` is set, in place of one that is there.
    ///
    /// # Errors
    /// Those of [`Claim::check`], and [`Error::Io`] where a file cannot be written: the folder is then as
    /// it was.
    pub fn write(&self, fit: &Fit, replace: bool) -> Result<(), Error> {
        self.fill(replace, |put| fit.each_file(put))
    }

    pub(super) fn fill(
        &self,
        replace: bool,
        fill: impl FnOnce(&mut Sink) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check(replace)?;
        let new = self.unfinished.join(NEW_FOLDER);
        let written = fs::create_dir(&new).map_err(|e| Error::io("write", &new, e));
        let written = written.and_then(|()| {
            fill(&mut |name, bytes| {
                let path = new.join(name);
                let inside = path.parent().map_or(Ok(()), fs::create_dir_all);
                let written = inside.and_then(|()| fs::write(&path, bytes));
                written.map_err(|e| Error::io("write", &path, e))
            })?;
            sync(&new);
            self.place(&new, replace)
        });
        // the old fit, or what could not be written
        let removed = remove_fit(&new);
        written.and(removed)
    }

    /// Gives a complete folder its name.
    fn place(&self, new: &Path, replace: bool) -> Result<(), Error> {
        let failed = |e| Error::io("write", &self.folder, e);
        // someone may have put something there while the fit ran
        match inspect(&self.folder, replace)? {
            Target::Free => {
                // an empty folder makes room; any other refuses to go
                let _ = fs::remove_dir(&self.real);
                fs::rename(new, &self.real).map_err(failed)?;
            }
            Target::Fit => {
                if !exchange(new, &self.real).map_err(failed)? {
                    let old = self.unfinished.join(OLD_FOLDER);
                    fs::rename(&self.real, &old).map_err(failed)?;
                    if let Err(e) = fs::rename(new, &self.real) {
                        let _ = fs::rename(&old, &self.real);
                        return Err(failed(e));
                    }
                    remove_fit(&old)?;
                }
            }
        }
        sync_folder_of(&self.real);
        Ok(())
    }

    /// Where it works.
    pub(super) fn unfinished(&self) -> &Path {
        &self.unfinished
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = self.tidy();
        let entries = fs::read_dir(&self.unfinished).into_iter().flatten();
        let mut names = entries.flatten().map(|e| e.file_name());
        // the lock marks the folder as ours as long as there is something in it
        if names.all(|name| name == LOCK_FILE) {
            let _ = fs::remove_file(self.unfinished.join(LOCK_FILE));
            drop(self.lock.take());
            let _ = fs::remove_dir(&self.unfinished);
        }
    }
}

/// `<name>.unfinished` beside the target.
pub(super) fn beside(target: &Path) -> io::Result<PathBuf> {
    let mut name = target.file_name().map(OsString::from).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path does not name a folder",
        )
    })?;
    name.push(UNFINISHED_SUFFIX);
    Ok(target.with_file_name(name))
}

/// A folder that happens to have the name of ours is left alone.
fn refuse_foreign(unfinished: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(unfinished) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|e| Error::io("look into", unfinished, e))?,
    };
    let mut names = entries.flatten().map(|e| e.file_name()).peekable();
    if names.peek().is_none() || names.any(|name| name == LOCK_FILE) {
        return Ok(());
    }
    Err(Error::Folder {
        path: unfinished.into(),
        message: "a fit would work in a folder of this name, and this one is not of Latens; move it, or choose another name for the fit".into(),
    })
}

/// Lets two folders change places in one step; `false` where the system cannot.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        // an old kernel, or a file system that does not know it
        Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_a: &Path, _b: &Path) -> io::Result<bool> {
    Ok(false)
}

fn inspect(folder: &Path, replace: bool) -> Result<Target, Error> {
    let fail = |message: String| {
        Err(Error::Folder {
            path: folder.into(),
            message,
        })
    };
    match fs::metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Target::Free),
        Err(e) => return Err(Error::io("look at", folder, e)),
        Ok(meta) if !meta.is_dir() => {
            return fail("this is a file; choose another name for the folder".into());
        }
        Ok(_) => {}
    }
    let names = names(folder)?;
    if names.is_empty() {
        return Ok(Target::Free);
    }
    if ![MODEL, FACTS].iter().all(|f| names.iter().any(|n| n == f)) {
        return fail("this folder exists and holds no fit; choose another name".into());
    }
    if !replace {
        return fail(
            "this folder holds a fit already; choose another name, or replace it with ⟦force⟧"
                .into(),
        );
    }
    match foreign(folder)? {
        Some(foreign) => fail(format!(
            "this folder holds `{foreign}`, which is not part of a fit, and is not replaced; move that file, or choose another name"
        )),
        None => Ok(Target::Fit),
    }
}

fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(folder).map_err(|e| Error::io("look into", folder, e))?;
    let names = entries.map(|e| Ok(e?.file_name().to_string_lossy().into_owned()));
    let names: io::Result<Vec<String>> = names.collect();
    names.map_err(|e| Error::io("look into", folder, e))
}

/// Something in a folder of a fit that is no part of one.
fn foreign(folder: &Path) -> Result<Option<String>, Error> {
    for name in names(folder)? {
        let path = folder.join(&name);
        let is_folder = path.is_dir() && !path.is_symlink();
        if name != ENSEMBLE {
            if is_folder || !belongs(&name) {
                return Ok(Some(name));
            }
            continue;
        }
        if !is_folder {
            return Ok(Some(name));
        }
        for member in names(&path)? {
            let inside = path.join(&member);
            let numbered = member.parse::<usize>().is_ok();
            let inside = if numbered && inside.is_dir() && !inside.is_symlink() {
                foreign(&inside)?.map(|foreign| format!("{member}/{foreign}"))
            } else {
                Some(member)
            };
            if let Some(foreign) = inside {
                return Ok(Some(format!("{ENSEMBLE}/{foreign}")));
            }
        }
    }
    Ok(None)
}

fn belongs(name: &str) -> bool {
    let table = name.strip_suffix(".csv");
    let number_of = |kind| table.and_then(|n| n.strip_prefix(kind));
    [MODEL, FACTS, WEIGHTS, STREAM, CHECKSUMS, PAGE_FILE].contains(&name)
        || name.ends_with(".latens-tmp")
        || number_of(STATES)
            .or_else(|| number_of(FORESEEN))
            .is_some_and(|n| {
                n.is_empty()
                    || n.strip_prefix('_')
                        .is_some_and(|n| n.parse::<usize>().is_ok())
            })
}

/// Removes the files of a fit, complete or not, and nothing else.
fn remove_fit(folder: &Path) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    if let Some(foreign) = foreign(folder)? {
        return Err(Error::Folder {
            path: folder.into(),
            message: format!(
                "this folder is to be removed and holds `{foreign}`, which is not part of a fit: move it to where it belongs"
            ),
        });
    }
    fs::remove_dir_all(folder).map_err(|e| Error::io("remove", folder, e))
}

/// Brings the files to the disk, so that a power cut after the rename finds them complete.
fn sync(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|e| e.path()) {
        if path.is_dir() {
            sync(&path);
        }
        if let Ok(file) = File::open(&path) {
            // some file systems refuse; the content is complete all the same
            let _ = file.sync_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_on_the_way_leaves_the_old_fit_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        fs::create_dir(&folder).unwrap();
        let files = [MODEL, FACTS].map(|name| folder.join(name));
        files
            .iter()
            .for_each(|file| fs::write(file, "old").unwrap());
        let claim = Claim::new(&folder).unwrap();
        let result = claim.fill(true, |put| {
            put(MODEL.into(), b"half".to_vec())?;
            Err(Error::Stopped)
        });
        assert!(matches!(result, Err(Error::Stopped)));
        drop(claim);
        let left = files.map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(left, ["old", "old"]);
        assert_eq!(names(place.path()).unwrap(), ["run"]);
    }
}
