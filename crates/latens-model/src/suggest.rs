//! "Did you mean": the name closest to a misspelt one.

/// Bytes of a name that is compared with others.
const COMPARED_BYTES: usize = 100;

/// The candidate that `name` may have been meant to be: the same but for case, one that contains
/// it as a word (`u` in `u_vir_V`), or the nearest by edit distance, if near at all.
///
/// ```
/// use latens_model::suggest::suggest;
///
/// assert_eq!(suggest("fricton", ["gain", "friction"]).as_deref(), Some("friction"));
/// assert_eq!(suggest("pressure", ["gain", "friction"]), None);
/// ```
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let name = name.to_lowercase();
    let limit = name.chars().count().div_ceil(3);
    let rank = |candidate: &str| {
        // nobody misspells a name of that length, and to compare two takes time with both
        if name.len().max(candidate.len()) > COMPARED_BYTES {
            return None;
        }
        let candidate = candidate.to_lowercase();
        let distance = edit_distance(&name, &candidate);
        let mut words = candidate.split(|c: char| !c.is_alphanumeric());
        if distance == 0 {
            Some(0)
        } else if words.any(|word| word == name) {
            Some(1)
        } else {
            // A single letter is one edit away from every other one.
            (distance <= limit && name.chars().count() > 1).then_some(1 + distance)
        }
    };
    let ranked = candidates.into_iter().filter_map(|c| Some((rank(c)?, c)));
    ranked
        .min_by_key(|&(rank, _)| rank)
        .map(|(_, c)| c.to_owned())
}

/// Index of a name; `noun` says what it is a name of.
///
/// ```
/// use latens_model::suggest::find;
///
/// assert_eq!(find("v", &["q", "v"], "state"), Ok(1));
/// let words = find("vel", &["q", "v"], "state").unwrap_err();
/// assert_eq!(words, "there is no state `vel`; there are: q, v");
/// ```
///
/// # Errors
/// A sentence with what may have been meant.
pub fn find(name: &str, names: &[&str], noun: &str) -> Result<usize, String> {
    names.iter().position(|n| *n == name).ok_or_else(|| {
        let hint = match suggest(name, names.iter().copied()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("there are: {}", names.join(", ")),
        };
        format!("there is no {noun} `{name}`; {hint}")
    })
}

/// Number of letters to insert, delete, replace or swap with their neighbour to get from one word to
/// the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_or_absent() {
        let columns = ["t", "u_vir_V", "y_qm_m", "Voltage", "x"];
        let suggested = |name| suggest(name, columns);
        assert_eq!(suggested("u").as_deref(), Some("u_vir_V"));
        assert_eq!(suggested("qm").as_deref(), Some("y_qm_m"));
        assert_eq!(suggested("voltage").as_deref(), Some("Voltage"));
        assert_eq!(suggested("Votlage").as_deref(), Some("Voltage"));
        assert_eq!(suggested("T").as_deref(), Some("t"));
        assert_eq!(suggested("z"), None);
        assert_eq!(suggested("pressure"), None);
    }

    #[test]
    fn edit_distance_counts_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("abc", "abc"), 0);
        assert_eq!(edit_distance("fti", "fit"), 1);
    }
}
