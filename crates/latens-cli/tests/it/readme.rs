//! The README prints what the program prints.
//!
//! The commands of its `sh` blocks run in a folder of their own, in order, and each `text` block is
//! held against what the block before it printed: the same words, numbers within 5 %, times not
//! compared. A line `…` stands for any lines, `…` at the end of a line for its rest.
//! `LATENS_BLESS=1 cargo test -p latens-cli readme` writes the new numbers into the README.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How far a printed number may be from the one in the README.
const TOLERANCE: f64 = 0.05;

/// A fenced block: its language, the number of its first line, from 0, and its lines.
struct Block {
    language: String,
    first: usize,
    lines: Vec<String>,
}

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = vec![];
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                found.push(Block {
                    language: language.into(),
                    first: number + 1,
                    lines: vec![],
                });
            }
            None if open => found
                .last_mut()
                .expect("one is open")
                .lines
                .push(line.into()),
            None => {}
        }
    }
    found
}

/// Standard output of a command of the README.
fn run(folder: &Path, line: &str) -> String {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("latens"));
    let mut program = Command::new(env!("CARGO_BIN_EXE_latens"));
    let result = program.current_dir(folder).args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{line}: {errors}");
    String::from_utf8(result.stdout).unwrap()
}

/// A word without what may stand around a number, and the number, where there is one.
fn number(word: &str) -> Option<f64> {
    let bare = word.trim_matches(|c: char| "(),;:%".contains(c));
    bare.parse().ok()
}

fn same_word(said: &str, printed: &str) -> bool {
    if said == printed {
        return true;
    }
    let punctuation = |word: &str| {
        let is_part = |c: &char| "(),;:%".contains(*c);
        word.chars().filter(is_part).collect::<String>()
    };
    match (number(said), number(printed)) {
        (Some(a), Some(b)) => {
            let near = (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
            near && punctuation(said) == punctuation(printed)
        }
        _ => false,
    }
}

/// Whether a word is the unit of a time that a fit took, which differs from run to run.
fn is_duration(words: &[&str], place: usize) -> bool {
    let last = place + 1 == words.len();
    let before_last = place + 2 == words.len() && words[place + 1] == "s";
    words.contains(&"seed") && words.contains(&"stages,") && (last || before_last)
}

fn same_line(said: &str, printed: &str) -> bool {
    let (said, rest) = match said.strip_suffix('…') {
        Some(start) => (start, true),
        None => (said, false),
    };
    let (said, printed): (Vec<&str>, Vec<&str>) = (
        said.split_whitespace().collect(),
        printed.split_whitespace().collect(),
    );
    let long_enough = if rest {
        printed.len() >= said.len()
    } else {
        printed.len() == said.len()
    };
    let mut pairs = said.iter().zip(&printed).enumerate();
    long_enough && pairs.all(|(k, (a, b))| is_duration(&said, k) || same_word(a, b))
}

/// The printed line for each line of a block, or the first line that was not printed.
fn matched<'p>(said: &[String], printed: &'p str) -> Result<Vec<Option<&'p str>>, String> {
    let printed: Vec<&str> = printed.lines().collect();
    let mut place = 0;
    let mut pairs = vec![];
    for (k, line) in said.iter().enumerate() {
        if line.trim() == "…" {
            let next = said.get(k + 1);
            place = match next {
                None => printed.len(),
                Some(next) => {
                    let found = printed[place..].iter().position(|p| same_line(next, p));
                    place + found.ok_or_else(|| next.clone())?
                }
            };
            pairs.push(None);
        } else if place < printed.len() && same_line(line, printed[place]) {
            pairs.push(Some(printed[place]));
            place += 1;
        } else {
            return Err(line.clone());
        }
    }
    match printed.get(place) {
        Some(left) => Err(format!("nothing of: {left}")),
        None => Ok(pairs),
    }
}

/// The same line, with the numbers that are printed now.
fn blessed(said: &[String], printed: &str) -> Option<Vec<String>> {
    // words must agree; only the numbers are taken over
    let masked = |line: &str| {
        let words = line.split_whitespace();
        let mask = |w: &str| number(w).map_or(w.to_owned(), |_| "#".to_owned());
        words.map(mask).collect::<Vec<_>>().join(" ")
    };
    let printed: Vec<&str> = printed.lines().collect();
    let mut place = 0;
    let mut lines = vec![];
    for line in said {
        if line.trim() == "…" {
            lines.push(line.clone());
            continue;
        }
        let wanted = masked(line);
        let found = printed[place..].iter().position(|p| masked(p) == wanted)?;
        place += found + 1;
        lines.push(printed[place - 1].to_owned());
    }
    Some(lines)
}

#[test]
fn the_readme_prints_what_the_program_prints() {
    let text = fs::read_to_string(readme()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let bless = std::env::var_os("LATENS_BLESS").is_some();
    let folder = tempfile::tempdir().unwrap();
    let (mut printed, mut compared) = (String::new(), 0);
    for block in blocks(&text) {
        match block.language.as_str() {
            "toml" => {
                let name = block.lines[0].strip_prefix("# ").expect("a file name");
                fs::write(folder.path().join(name), block.lines.join("\n")).unwrap();
            }
            "sh" => {
                let commands = block.lines.iter().filter(|l| l.starts_with("latens "));
                printed = commands.map(|line| run(folder.path(), line)).collect();
            }
            "text" => {
                compared += 1;
                match matched(&block.lines, &printed) {
                    Ok(_) => {}
                    Err(line) if !bless => panic!(
                        "README.md, block of line {}: `{line}` is not what is printed:\n{printed}",
                        block.first + 1
                    ),
                    Err(_) => {
                        let new = blessed(&block.lines, &printed)
                            .expect("words have changed, not only numbers: edit the README");
                        lines.splice(block.first..block.first + new.len(), new);
                    }
                }
            }
            _ => {}
        }
    }
    assert!(compared >= 3, "README.md shows {compared} outputs");
    if bless {
        fs::write(readme(), lines.join("\n") + "\n").unwrap();
    }
}

#[test]
fn the_readme_is_short_and_its_picture_comes_first() {
    let text = fs::read_to_string(readme()).unwrap();
    let count = text.lines().count();
    assert!(count <= 180, "README.md has {count} lines");
    let second = text.lines().filter(|l| !l.is_empty()).nth(1);
    assert!(second.is_some_and(|l| l.starts_with("![")), "{second:?}");
}

#[test]
fn words_count_and_numbers_nearly() {
    assert!(same_line(
        "gain  0.3700  ± 0.0021",
        "gain  0.3704 ± 0.00215"
    ));
    assert!(!same_line("gain  0.37", "gain  0.50"));
    assert!(!same_line("gain  0.37", "offset  0.37"));
    let time = "Slide: batch, 4 stages, seed 1, 0.9 s";
    assert!(same_line(time, "Slide: batch, 4 stages, seed 1, 7.1 s"));
    assert!(!same_line(time, "Slide: batch, 5 stages, seed 1, 0.9 s"));
    let said = ["a", "…", "z 2.0"].map(str::to_owned);
    assert!(matched(&said, "a\nb\nc\nz 2.05\n").is_ok());
    assert!(matched(&said, "a\nb\nz 2\nmore\n").is_err());
}
