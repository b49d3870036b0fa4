//! The layers of the library: a module uses what is below it, and nothing above.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Bottom to top; what is not among them is another crate's, or the root.
const LAYERS: [&str; 12] = [
    "described",
    "text",
    "record",
    "error",
    "numerics",
    "simulate",
    "filter",
    "look",
    "solve",
    "fit",
    "folder",
    "job",
];

/// Names of methods that the core knows nothing of.
const RIVALS: [&str; 4] = ["node-lstm", "spinode", "pr-ssm", "rm"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The Rust files of a folder, folders inside of it included.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            paths.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
}

/// The lines of code with their numbers: no comments, nothing that only tests see. Formatted code ends
/// an item at a brace as far in as the item began.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut lines_of_code = vec![];
    let mut lines = text.lines().enumerate();
    while let Some((k, line)) = lines.next() {
        let inner = line.trim_start();
        if inner == "#[cfg(test)]" {
            let end = format!("{}}}", &line[..line.len() - inner.len()]);
            let mut item = lines.by_ref().map(|(_, l)| l);
            let first = item.next().unwrap_or("");
            if first.ends_with('{') {
                item.find(|l| *l == end);
            }
        } else if !inner.starts_with("//") {
            lines_of_code.push((k + 1, line));
        }
    }
    lines_of_code
}

/// Whether a file is a module that only tests see.
fn only_tests(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "tests")
}

/// The module of a file, and how deep it lies: `fit` and 2 for `fit/learn.rs`.
fn module(path: &Path) -> (String, usize) {
    let inside = path.strip_prefix(source()).unwrap().with_extension("");
    let mut parts: Vec<String> = inside
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    (parts[0].clone(), parts.len())
}

/// The first names that follow a prefix: `a` of `crate::a::b`, `a` and `b` of `crate::{a::c, b}`.
fn names_after<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    let first = |path: &'t str| {
        let path = path.trim_start();
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
        &path[..end.unwrap_or(path.len())]
    };
    let mut names = vec![];
    for (at, _) in text.match_indices(prefix) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(first(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (k, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                '}' => {
                    names.push(first(&group[start..k]));
                    break;
                }
                ',' if depth == 0 => {
                    names.push(first(&group[start..k]));
                    start = k + 1;
                }
                _ => {}
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// What the root calls things of its modules: `Error` is of `error`.
fn root_names() -> BTreeMap<String, String> {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let mut names_of = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else {
            continue;
        };
        let (module, names) = path.split_once("::").unwrap_or((path, ""));
        let names = names.trim_matches(|c| c == '{' || c == '}');
        for name in names.split(',') {
            let name = name.rsplit("::").next().unwrap_or("").trim();
            names_of.insert(name.to_string(), module.trim().to_string());
        }
    }
    names_of
}

#[test]
fn no_module_uses_one_above_it() {
    let of_root = root_names();
    assert_eq!(of_root["Error"], "error", "{of_root:?}");
    let rank = |module: &str| LAYERS.iter().position(|layer| *layer == module);
    let (mut mistakes, mut uses) = (vec![], 0);
    for path in files(&source()) {
        let (user, depth) = module(&path);
        if user == "lib" || only_tests(&path) {
            continue;
        }
        let above = rank(&user);
        assert!(above.is_some(), "{user} has no place among the layers");
        let text = fs::read_to_string(&path).unwrap();
        let lines = code(&text);
        // `super` as often as the file lies deep is the root
        let prefixes = ["crate::".to_string(), "super::".repeat(depth)];
        for (k, (number, line)) in lines.iter().enumerate() {
            // a group may go on over several lines
            let mut line = (*line).to_string();
            if line.contains("::{") && !line.contains('}') {
                let more = lines[k + 1..].iter().map(|(_, l)| *l);
                let end = more.clone().position(|l| l.contains("};")).unwrap_or(0);
                more.take(end + 1).for_each(|l| line += l);
            }
            for prefix in &prefixes {
                for name in names_after(&line, prefix) {
                    let used = of_root.get(name).map_or(name, String::as_str);
                    // a module and a function of the root may share a name
                    let used = if rank(name).is_some() { name } else { used };
                    uses += 1;
                    if rank(used) > above {
                        let file = path.strip_prefix(source()).unwrap().display();
                        mistakes.push(format!(
                            "src/{file}:{number}: {user} uses {used}, which is above it"
                        ));
                    }
                }
            }
        }
    }
    assert!(uses > 200, "{uses} uses were found: the search is broken");
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

#[test]
fn uses_are_found() {
    let text = "use crate::{Error, fit::{Fit, Role}, look};\n    crate::solve::find(x)";
    let used = names_after(text, "crate::");
    assert_eq!(used, ["Error", "fit", "look", "solve"]);
    assert_eq!(names_after("pub(crate) fn a() {}", "crate::"), [""; 0]);
    assert_eq!(
        names_after("use super::super::fit;", "super::super::"),
        ["fit"]
    );
    assert_eq!(
        names_after("use super::super::super::fit;", "super::"),
        ["super"]
    );
    let text = "use a;\n// crate::b\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\nfn d() {}";
    let lines: Vec<usize> = code(text).into_iter().map(|(k, _)| k).collect();
    assert_eq!(lines, [1, 7]);
}

/// The crates, bottom to top: each uses those before it, and the page the exported JavaScript.
const CRATES: [(&str, &str); 7] = [
    ("latens-model", "crates/latens-model"),
    ("latens", "crates/latens"),
    ("latens-export", "crates/latens-export"),
    ("latens-report", "crates/latens-report"),
    ("latens-lab", "crates/latens-lab"),
    ("latens-cli", "crates/latens-cli"),
    ("latens-python", "python"),
];

#[test]
fn no_crate_uses_one_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut uses = 0;
    for (place, (user, folder)) in CRATES.iter().enumerate() {
        let manifest = fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        // what tests alone need may be above
        let (_, needed) = manifest.split_once("\n[dependencies]").unwrap();
        let needed = needed.split("\n[").next().unwrap();
        for (used, _) in &CRATES {
            let begins = |line: &&str| line.split([' ', '.', '=']).next() == Some(used);
            if needed.lines().any(|line| begins(&line)) {
                uses += 1;
                let below = CRATES[..place].iter().any(|(name, _)| name == used);
                assert!(below, "{user} uses {used}, which is not below it");
            }
        }
    }
    assert!(uses >= 8, "{uses} uses were found: the search is broken");
}

/// The language stands alone, and the core knows none of the methods that it is compared with.
#[test]
fn the_language_and_the_core_know_nothing_of_the_rest() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(crates.join("latens-model/Cargo.toml")).unwrap();
    let lines = manifest.lines().filter(|l| l.starts_with("latens"));
    assert_eq!(lines.collect::<Vec<_>>(), [""; 0]);
    for folder in ["latens/src", "latens-model/src"] {
        for path in files(&crates.join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            for (k, line) in text.lines().enumerate() {
                let parts = |c: char| !c.is_alphanumeric() && c != '-' && c != '_';
                let named = line.split(parts).find(|word| RIVALS.contains(word));
                assert!(named.is_none(), "{}:{}: {named:?}", path.display(), k + 1);
            }
        }
    }
}
