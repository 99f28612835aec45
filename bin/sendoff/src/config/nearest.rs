//! Suggestions for misspelt names.

/// The known name closest to `word`, if one is close enough.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|name| (distance(word, name), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    let close = name.len().min(word.len()) / 3 + 1;
    (distance <= close).then_some(name)
}

/// The edit distance: insertions, deletions, replacements, and swaps of neighbouring letters.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let same = one[i - 1] == other[j - 1];
            let mut least = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + usize::from(!same));
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let known = ["lease", "heartbeat", "idle_time", "max"];
        for (word, name) in [
            ("lesae", Some("lease")),
            ("Heartbeat", Some("heartbeat")),
            ("heart_beat", Some("heartbeat")),
            ("idletime", Some("idle_time")),
            ("mx", Some("max")),
            ("retention", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &known), name, "{word}");
        }
        assert_eq!(nearest("a", &[]), None);
    }
}
