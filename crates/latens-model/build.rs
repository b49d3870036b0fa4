//! Embeds every model file of `models/`: the program knows its systems by the folder alone.

use std::path::Path;
use std::{env, fs};

fn main() {
    // read when it runs, not when it is compiled: the checkout may have moved in between
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let folder = Path::new(&here).join("models");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder models/ is part of the crate")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    let mut code = String::from("[\n");
    for path in files {
        let path = path.canonicalize().expect("the file was just listed");
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        code += &format!(
            "    ({name:?}, include_str!({:?})),\n",
            path.display().to_string()
        );
    }
    code += "]\n";
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("systems.rs"), code).expect("OUT_DIR can be written");
}
