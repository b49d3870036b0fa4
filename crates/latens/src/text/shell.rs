//! Words of a command as a shell takes them.

/// A word that a shell takes for itself and nothing else, whatever is in it.
///
/// ```
/// use latens::text::shell::quoted;
///
/// assert_eq!(quoted("run/model.toml"), "run/model.toml");
/// assert_eq!(quoted("it's $(here)"), r"'it'\''s $(here)'");
/// assert_eq!(quoted("a\nb\u{1b}"), r"$'a\nb\u001b'");
/// ```
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    if !word.chars().any(super::is_hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // a terminal acts on these when they are pasted, in quotes or not
    let escaped = word.chars().map(|c| match c {
        '\n' => r"\n".into(),
        '\'' | '\\' => format!("\\{c}"),
        c if super::is_hidden(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.into(),
    });
    format!("$'{}'", escaped.collect::<String>())
}

/// The words of a command that [`quoted`] made; `None` where a shell would see more in it than words.
///
/// ```
/// use latens::text::shell::words;
///
/// let found = words(r"latens fit 'it'\''s.csv' --map q=y").unwrap();
/// assert_eq!(found, ["latens", "fit", "it's.csv", "--map", "q=y"]);
/// assert_eq!(words("latens fit a.csv; ls b"), None);
/// ```
pub fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c if c.is_alphanumeric() || "-_=./,:%+".contains(c) => {
                word.get_or_insert_default().push(c);
            }
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}
