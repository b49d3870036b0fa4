//! Writes what is made from the table of settings; the argument is the repository.

use std::path::Path;
use std::{env, fs, io};

use latens_lab::generate::generated;

fn main() -> io::Result<()> {
    let root = env::args().nth(1).unwrap_or_else(|| ".".into());
    let root = Path::new(&root);
    for file in generated(root)? {
        fs::write(root.join(file.path), file.text)?;
        println!("{}", file.path);
    }
    Ok(())
}
