//! A folder that is written whole or not at all.
//!
//! The files go into a hidden folder beside the target (a rename across file systems is not
//! atomic), which takes the target's name when it is complete. An old fit is renamed away first
//! and removed last: whenever the program is killed, either fit is there in full, at worst the
//! old one as `.<name>.<pid>.old`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{CHECKSUMS, ENSEMBLE, FACTS, MODEL, STATES, STREAM, Sink, WEIGHTS};
use crate::Error;

/// What somebody made of the fit, and can make again.
const PAGE: &str = "report.html";

/// What stands where a fit shall be written.
enum Target {
    Free,
    Fit,
}

/// Whether a fit could be written here: worth asking before it is made.
///
/// An empty folder is used; one that holds no fit is never touched; a fit is replaced only where
/// `replace` is set and nothing but the files of a fit is in it.
///
/// # Errors
/// [`Error::Folder`] with what to do, [`Error::Io`] where the place cannot be written.
pub fn check(folder: impl AsRef<Path>, replace: bool) -> Result<(), Error> {
    let folder = folder.as_ref();
    inspect(folder, replace)?;
    Temporary::beside(folder).map(drop)
}

/// Fills a new folder with files and gives it its name.
pub fn write(
    folder: &Path,
    replace: bool,
    fill: impl FnOnce(&mut Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    inspect(folder, replace)?;
    let temporary = Temporary::beside(folder)?;
    fill(&mut |name, bytes| {
        let path = temporary.path.join(name);
        let inside = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = inside.and_then(|()| fs::write(&path, bytes));
        written.map_err(|e| Error::io("write", &path, e))
    })?;
    sync(&temporary.path);
    // someone may have written there while the fit ran
    let target = inspect(folder, replace)?;
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
    let failed = |e| Error::io("write", folder, e);
    match target {
        Target::Free => {
            // an empty folder makes room; any other refuses to go
            let _ = fs::remove_dir(&real);
            temporary.rename(&real).map_err(failed)
        }
        Target::Fit => {
            let old = hidden(&real, "old").map_err(failed)?;
            fs::rename(&real, &old).map_err(failed)?;
            if let Err(e) = temporary.rename(&real) {
                let _ = fs::rename(&old, &real);
                return Err(failed(e));
            }
            fs::remove_dir_all(&old).map_err(|e| Error::io("remove the old fit in", &old, e))
        }
    }
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
    let entries = fs::read_dir(folder).map_err(|e| Error::io("look into", folder, e))?;
    let names: Vec<String> = entries
        .filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
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
    match names.iter().find(|name| !belongs(name)) {
        Some(foreign) => fail(format!(
            "this folder holds `{foreign}`, which is not part of a fit, and is not replaced; move that file, or choose another name"
        )),
        None => Ok(Target::Fit),
    }
}

fn belongs(name: &str) -> bool {
    let states = name
        .strip_prefix(STATES)
        .and_then(|n| n.strip_suffix(".csv"));
    [MODEL, FACTS, WEIGHTS, STREAM, ENSEMBLE, CHECKSUMS, PAGE].contains(&name)
        || states.is_some_and(|n| {
            n.is_empty()
                || n.strip_prefix('_')
                    .is_some_and(|n| n.parse::<usize>().is_ok())
        })
}

/// `.<name>.<pid>.<what>` beside the target.
fn hidden(target: &Path, what: &str) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path does not name a folder",
        )
    })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.{what}", std::process::id()));
    Ok(target.with_file_name(hidden))
}

/// A folder that is removed when dropped, unless it was renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    fn beside(target: &Path) -> Result<Self, Error> {
        let real = fs::canonicalize(target).unwrap_or_else(|_| target.into());
        let create = || {
            let path = hidden(&real, "new")?;
            if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
                fs::create_dir_all(parent)?;
            }
            fs::create_dir(&path)?;
            Ok(path)
        };
        let path = create().map_err(|e| Error::io("write", target, e))?;
        let renamed = false;
        Ok(Self { path, renamed })
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Brings the files to the disk, so that a power cut after the rename finds them complete.
fn sync(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|e| e.path()) {
        if path.is_dir() {
            sync(&path);
        }
        if let Ok(file) = fs::File::open(&path) {
            // some file systems refuse; the content is complete all the same
            let _ = file.sync_all();
        }
    }
}
