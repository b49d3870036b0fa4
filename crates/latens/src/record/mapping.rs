//! How the names of a model meet the names of a file.

use super::error::RecordError;

/// Which column of the file stands for which name of the model, where the two differ.
///
/// The names are those of the inputs and measurements, `t` for the time, and `truth_<state>` for
/// the true values of a state where a file knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    pairs: Vec<(String, String)>,
}

impl Mapping {
    /// Reads pairs of the form `name=column`, the model's name first.
    ///
    /// `t=` alone says to ignore the file's times and to count steps instead.
    ///
    /// # Errors
    /// Not of that form, or one name mapped twice.
    pub fn parse<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Result<Self, RecordError> {
        let mut mapping = Self::default();
        for text in texts {
            let text = text.as_ref();
            let (name, column) = match text.split_once('=') {
                Some((name, column)) => (name.trim(), column.trim()),
                None => ("", ""),
            };
            let name = if name == "time" { "t" } else { name };
            if name.is_empty() || (column.is_empty() && name != "t") {
                let text = text.to_owned();
                return Err(RecordError::MappingSyntax { text });
            }
            if let Some(first) = mapping.get(name) {
                return Err(RecordError::MappedTwice {
                    name: name.to_owned(),
                    first: first.to_owned(),
                    second: column.to_owned(),
                });
            }
            mapping.pairs.push((name.to_owned(), column.to_owned()));
        }
        Ok(mapping)
    }

    /// With the pairs of one file, which come before those of all.
    #[must_use]
    pub fn with(&self, of_file: Self) -> Self {
        let others = self
            .pairs
            .iter()
            .filter(|(name, _)| of_file.get(name).is_none());
        let others: Vec<_> = others.cloned().collect();
        Self {
            pairs: of_file.pairs.into_iter().chain(others).collect(),
        }
    }

    /// The column given for a name of the model.
    pub fn get(&self, name: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|(n, _)| n == name);
        pair.map(|(_, column)| column.as_str())
    }

    /// All pairs of model name and column, in the order given.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_with_the_model_name_first() {
        let mapping = Mapping::parse(["u=u_vir_V", " q = pos = mm ", "time=Time"]).unwrap();
        assert_eq!(mapping.get("u"), Some("u_vir_V"));
        assert_eq!(mapping.get("q"), Some("pos = mm"));
        assert_eq!(mapping.get("t"), Some("Time"));
        assert_eq!(mapping.get("u_vir_V"), None);
        assert_eq!(Mapping::parse(["t="]).unwrap().get("t"), Some(""));
    }

    #[test]
    fn broken_pairs_are_refused() {
        for text in ["u", "=x", "u=", ""] {
            assert_eq!(
                Mapping::parse([text]).unwrap_err().to_string(),
                format!(
                    "'{text}' is not a mapping; write name=column, the model's name first, e.g. V=voltage_mV"
                )
            );
        }
        assert_eq!(
            Mapping::parse(["u=a", "u=b"]).unwrap_err().to_string(),
            "'u' is mapped twice, to 'a' and to 'b'; keep one"
        );
    }
}
