//! The built program in a folder of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

pub const BINARY: &str = env!("CARGO_BIN_EXE_latens");

/// A folder to work in, gone afterwards.
pub struct Place(tempfile::TempDir);

/// What the program said.
pub struct Shown {
    pub out: String,
    pub err: String,
}

/// What lies in a place, made once and laid out again for each test that needs it.
pub struct Fixture(OnceLock<BTreeMap<PathBuf, Vec<u8>>>);

impl Fixture {
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// A place of its own with all that `make` left in the first.
    pub fn place(&self, make: impl FnOnce(&Place)) -> Place {
        let files = self.0.get_or_init(|| {
            let place = Place::new();
            make(&place);
            let mut files = BTreeMap::new();
            collect(place.0.path(), Path::new(""), &mut files);
            files
        });
        let place = Place::new();
        for (name, bytes) in files {
            let path = place.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        place
    }
}

/// The files of a folder by their path inside of it.
fn collect(root: &Path, inside: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(root.join(inside)).unwrap() {
        let name = inside.join(entry.unwrap().file_name());
        let path = root.join(&name);
        if path.is_dir() {
            collect(root, &name, files);
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// All that lies in the folder, hidden files too, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(BINARY);
        command.current_dir(self.0.path());
        let (arguments, input) = line.split_once(" < ").unwrap_or((line, ""));
        if !input.is_empty() {
            command.stdin(fs::File::open(self.path(input.trim())).unwrap());
        }
        command.args(arguments.split_whitespace()).output().unwrap()
    }

    /// Runs `latens …`, which must succeed.
    pub fn succeeds(&self, line: &str) -> Shown {
        self.ends(0, line)
    }

    /// Runs `latens fit …`, which must write a fit that is not to be trusted.
    pub fn distrusts(&self, line: &str) -> Shown {
        self.ends(4, line)
    }

    fn ends(&self, code: i32, line: &str) -> Shown {
        let result = self.run(line);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let shown = Shown {
            out: text(result.stdout),
            err: text(result.stderr),
        };
        let said = &shown.err;
        assert_eq!(result.status.code(), Some(code), "latens {line}: {said}");
        shown
    }

    /// Runs `latens …`, which must fail with this code; gives what it said.
    pub fn fails(&self, code: i32, line: &str) -> String {
        let result = self.run(line);
        let err = String::from_utf8(result.stderr).unwrap();
        assert_eq!(result.status.code(), Some(code), "latens {line}: {err}");
        assert!(result.stdout.is_empty());
        err
    }
}

/// Whether the tests were started by `nohup`: what they start ignores SIGHUP too, as it should.
#[cfg(unix)]
pub fn under_nohup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}
