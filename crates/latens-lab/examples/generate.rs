//! Writes the files that are made from the table of settings; the argument is the repository.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    for file in latens_lab::generate::generated() {
        let path = Path::new(&root).join(file.path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, file.text)?;
        println!("{}", path.display());
    }
    Ok(())
}
