//! The built program in a folder of its own.

// each test file uses its part of this
#![allow(dead_code)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

pub const BINARY: &str = env!("CARGO_BIN_EXE_latens");

/// A folder to work in, gone afterwards.
pub struct Place(tempfile::TempDir);

/// What the program said.
pub struct Shown {
    pub out: String,
    pub err: String,
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
        let result = self.run(line);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let shown = Shown {
            out: text(result.stdout),
            err: text(result.stderr),
        };
        assert!(result.status.success(), "latens {line}: {}", shown.err);
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
