//! Known names, with a suggestion for a misspelled one.

use sendoff::{Error, ErrorKind, Result};

/// The known names of one kind, such as sinks.
#[derive(Debug, Clone)]
pub struct KnownNames {
    kind: &'static str,
    names: Vec<String>,
}

impl KnownNames {
    /// The known names of this kind.
    pub fn new(kind: &'static str, names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        names.dedup();
        Self { kind, names }
    }

    /// Checks that a name is known. If no name is known, every name is accepted.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], with the known names and the nearest one.
    pub fn check(&self, name: &str) -> Result<()> {
        let Self { kind, names } = self;
        if names.is_empty() || names.iter().any(|known| known == name) {
            return Ok(());
        }
        let known = format!("known {kind}s: {}", names.join(", "));
        let next = match self.nearest(name) {
            Some(nearest) => format!("did you mean {nearest}? ({known})"),
            None => known,
        };
        Err(Error::new(ErrorKind::Invalid, format!("unknown {kind} {name:?}"))
            .because(format!("neither the configuration nor a running relay has this {kind}"))
            .next_step(next))
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        let near = self.names.iter().map(|known| (distance(name, known), known));
        let (distance, nearest) = near.min_by_key(|(distance, _)| *distance)?;
        (distance <= 1 + name.chars().count() / 3).then_some(nearest)
    }
}

/// How many characters must be changed, added, removed or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (
        one.to_lowercase().chars().collect(),
        other.to_lowercase().chars().collect(),
    );
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(a != b);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones_and_the_nearest() {
        let known = KnownNames::new("sink", ["rabbit", "audit", "audit"].map(str::to_owned));
        known.check("audit").unwrap();
        let error = known.check("adit").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(
            text.contains("did you mean audit?") && text.contains("audit, rabbit"),
            "{text}"
        );
        let text = known.check("webhook").unwrap_err().to_string();
        assert!(!text.contains("did you mean") && text.contains("known sinks"), "{text}");
        KnownNames::new("sink", []).check("anything").unwrap();
    }

    #[test]
    fn neighbours_that_changed_places_are_near() {
        assert_eq!(distance("rabibt", "rabbit"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("Kitten", "sitting"), 3);
    }
}
