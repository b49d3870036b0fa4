//! What the experiments share: files written whole, names that there are not, one thread for a cell.

use std::path::Path;

use latens::Error;
use latens::record::write_atomic;
use latens::suggest::suggest;
use serde::Serialize;

/// Writes a file whole, or not at all.
pub fn write_file(path: &Path, content: &str) -> Result<(), Error> {
    use std::io::Write;
    let written = write_atomic(path, |out| out.write_all(content.as_bytes()));
    written.map_err(|e| file_error("write", path, e))
}

/// Likewise as JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|e| file_error("write", path, e.into()))?;
    write_file(path, &format!("{text}\n"))
}

/// A file that could not be read or written.
pub fn file_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io {
        action,
        path: path.into(),
        source,
    }
}

/// A name that there is not.
pub fn unknown(noun: &str, name: &str, known: &[String]) -> Error {
    let hint = match suggest(name, known.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close}?"),
        None => format!("there are: {}", known.join(", ")),
    };
    Error::Setting(format!("there is no {noun} `{name}`; {hint}"))
}

/// Runs with all that would go parallel on this thread alone.
pub fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
