//! Writes what is made from the table of settings; the argument is the repository.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let root = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    for made in latens_lab::generate::generated() {
        let path = Path::new(&root).join(made.path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let found = fs::read_to_string(&path).unwrap_or_default();
        let missing = || io::Error::other(format!("{} has no place for its table", made.path));
        fs::write(&path, made.file(&found).ok_or_else(missing)?)?;
        println!("{}", path.display());
    }
    Ok(())
}
