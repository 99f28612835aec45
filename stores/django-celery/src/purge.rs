//! Selects dead letters to delete.

use std::time::Duration;

/// Selects dead letters to delete, by age and task. A field that is `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purge {
    /// Selects dead letters that died longer ago than this.
    pub older_than_dead: Option<Duration>,
    /// Selects dead letters whose task was emitted longer ago than this.
    pub older_than_created: Option<Duration>,
    /// Selects dead letters whose task name matches this pattern: `*` matches any text, `?` one character.
    pub task_name: Option<String>,
}

impl Purge {
    /// The pattern for `LIKE … ESCAPE '|'`.
    pub(crate) fn like(&self) -> String {
        let mut like = String::new();
        for letter in self.pattern().chars() {
            match letter {
                '*' => like.push('%'),
                '?' => like.push('_'),
                '%' | '_' | '|' => like.extend(['|', letter]),
                _ => like.push(letter),
            }
        }
        like
    }

    /// The pattern for SQLite's `GLOB`, to which brackets mean something.
    pub(crate) fn glob(&self) -> String {
        self.pattern().replace('[', "[[]")
    }

    fn pattern(&self) -> &str {
        self.task_name.as_deref().unwrap_or("*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_star_and_a_question_mark_stand_for_others() {
        let of = |name: &str| Purge {
            task_name: Some(name.to_owned()),
            ..Purge::default()
        };
        assert_eq!(
            (Purge::default().like(), Purge::default().glob()),
            ("%".into(), "*".into())
        );
        assert_eq!(of("a_b.*?|%").like(), "a|_b.%_|||%");
        assert_eq!(of("a[1].*").glob(), "a[[]1].*");
    }
}
