//! Files that are written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file so that a reader sees the old content or the new one, never half of it.
///
/// `write` fills a temporary file in the same folder (a rename across file systems is not
/// atomic), which is synced and renamed over `path`; on an error or a panic it is removed and
/// `path` keeps what it had. A link is followed and the mode of an existing file kept.
/// A pipe or device, such as `/dev/stdout`, cannot be replaced and is written directly.
///
/// The temporary file has one name for all processes, and is locked: what a killed one has left is
/// written over by the next.
///
/// # Errors
/// Whatever `write` or the file system reports.
pub fn write_atomic<F>(path: &Path, write: F) -> io::Result<()>
where
    F: FnOnce(&mut BufWriter<File>) -> io::Result<()>,
{
    replace(path, true, write)
}

/// The same in less time: a power cut within some seconds may leave neither.
pub(crate) fn write_unsynced<F>(path: &Path, write: F) -> io::Result<()>
where
    F: FnOnce(&mut BufWriter<File>) -> io::Result<()>,
{
    replace(path, false, write)
}

fn replace<F>(path: &Path, synced: bool, write: F) -> io::Result<()>
where
    F: FnOnce(&mut BufWriter<File>) -> io::Result<()>,
{
    let existing = fs::metadata(path).ok();
    if existing
        .as_ref()
        .is_some_and(|m| !m.is_file() && !m.is_dir())
    {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (temporary, file) = Temporary::beside(&target)?;
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()?;
    if let Some(meta) = existing {
        out.get_ref().set_permissions(meta.permissions())?;
    }
    if synced {
        out.get_ref().sync_all()?;
    }
    temporary.rename_to(&target)?;
    if synced {
        sync_folder_of(&target);
    }
    Ok(())
}

/// A temporary file that is removed when dropped, unless it was renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
    /// Kept until the name is gone.
    _lock: File,
}

impl Temporary {
    fn beside(target: &Path) -> io::Result<(Self, File)> {
        let name = target.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file")
        })?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".latens-tmp");
        let path = target.with_file_name(hidden);
        let file = locked(&path, Others::Wait)?;
        file.set_len(0)?;
        let temporary = Self {
            path,
            renamed: false,
            _lock: file.try_clone()?,
        };
        Ok((temporary, file))
    }

    fn rename_to(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A new name survives a power cut only once its folder is on disk as well. Some file systems refuse
/// to sync a folder; the content is complete all the same.
pub(crate) fn sync_folder_of(path: &Path) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
}

/// What to do where another process has a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    Wait,
    Refuse,
}

/// Opens a file for one process at a time, until it is closed: a process that is killed leaves no lock.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where another process has it and is not waited for.
pub(crate) fn locked(path: &Path, others: Others) -> io::Result<File> {
    loop {
        let file = match open_own(path) {
            // left by somebody else, or a link that leads elsewhere
            Err(_) if others == Others::Wait && fs::remove_file(path).is_ok() => open_own(path)?,
            opened => opened?,
        };
        let taken = if others == Others::Wait {
            file.lock()
        } else {
            file.try_lock().map_err(io::Error::from)
        };
        match taken {
            // a file system without locks: there is nothing better
            Err(e) if e.kind() != io::ErrorKind::Unsupported => return Err(e),
            _ => {}
        }
        // the other process may have given it its name, or removed it
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options.open(path)
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let (open, named) = (file.metadata().map(place), fs::metadata(path).map(place));
    open.is_ok_and(|open| named.is_ok_and(|named| open == named))
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|e| e.unwrap().file_name()).collect()
    }

    #[test]
    fn replaces_the_file_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        write_atomic(&path, |w| w.write_all(b"old")).unwrap();
        write_atomic(&path, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    #[test]
    fn an_error_or_a_panic_keeps_the_old_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let full = write_atomic(&path, |w| {
            w.write_all(b"half of the new")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(full.unwrap_err().to_string(), "disk full");
        let panicked = std::panic::catch_unwind(|| {
            let _ = write_atomic(&path, |_| std::panic::resume_unwind(Box::new("stop")));
        });
        assert!(panicked.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["out.csv"]);
    }

    /// Whatever a killed process, or somebody else, has left under the temporary name.
    #[cfg(unix)]
    #[test]
    fn a_leftover_neither_blocks_nor_leads_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("out.csv"), folder.path().join("other"));
        let left = folder.path().join(".out.csv.latens-tmp");
        fs::write(&left, "a longer text than the one that is written").unwrap();
        write_atomic(&path, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::write(&other, "untouched").unwrap();
        std::os::unix::fs::symlink(&other, &left).unwrap();
        write_atomic(&path, |w| w.write_all(b"newer")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        assert_eq!(fs::read(&other).unwrap(), b"untouched");
        assert!(!left.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_is_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomic(&link, |w| w.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        write_atomic(Path::new("/dev/null"), |w| w.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
