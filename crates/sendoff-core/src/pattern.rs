//! Topic patterns of routes and handlers.

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};

use crate::{Error, ErrorKind, Result};

/// A topic pattern: `*` matches any text, including dots; `?` matches one character; `{a,b}` matches alternatives.
///
/// ```
/// use sendoff::Pattern;
///
/// let orders: Pattern = "order.*".parse()?;
/// assert!(orders.matches("order.placed") && orders.matches("order.line.added"));
/// assert!(!orders.matches("orders"));
/// # Ok::<(), sendoff::Error>(())
/// ```
#[derive(Clone)]
pub struct Pattern {
    text: String,
    matcher: GlobMatcher,
}

/// Prints the text only: the compiled matcher is long and not useful.
impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

impl Pattern {
    /// Whether the pattern matches `topic`.
    pub fn matches(&self, topic: &str) -> bool {
        self.matcher.is_match(topic)
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Topics are not paths: a star matches slashes too, and a backslash only escapes.
        match GlobBuilder::new(text)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
        {
            Ok(glob) if !text.is_empty() => Ok(Self {
                text: text.to_owned(),
                matcher: glob.compile_matcher(),
            }),
            Ok(_) => Err(Error::new(ErrorKind::Invalid, "a topic pattern is empty").next_step("write * to match all")),
            Err(error) => Err(
                Error::new(ErrorKind::Invalid, format!("the topic pattern {text:?} is invalid"))
                    .because(error.kind().to_string())
                    .next_step("write a pattern like order.* or {order,invoice}.paid"),
            ),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_pattern_says_how_to_write_it() {
        let error = "order.[".parse::<Pattern>().unwrap_err();
        assert!(error.to_string().contains("order.*"), "{error}");
        assert!("".parse::<Pattern>().is_err());
    }

    #[test]
    fn a_star_crosses_dots_and_slashes() {
        let all: Pattern = "*".parse().unwrap();
        assert!(all.matches("a.b/c"));
    }
}
