//! Pages of lists, and counts.

use serde::Serialize;

/// A page of a list. All lists have this shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageView<T> {
    /// The rows, in the order of the list.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` when this is the last page.
    pub next: Option<String>,
    /// How many rows were read, for a list that reads a limited number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned: Option<u64>,
    /// How far back the list has read, if it continues: the time of the last row that was read, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_back_to: Option<String>,
}

impl<T> PageView<T> {
    /// A list that is complete.
    pub fn whole(items: Vec<T>) -> Self {
        Self {
            items,
            next: None,
            scanned: None,
            looked_back_to: None,
        }
    }
}

/// A count that may have stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountView {
    /// The number that was counted.
    pub count: u64,
    /// Whether there may be more than were counted.
    pub capped: bool,
}

impl std::fmt::Display for CountView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.count.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        f.write_str(if self.capped { "+" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_stopped_early_has_a_plus() {
        let count = |count, capped| CountView { count, capped }.to_string();
        assert_eq!(count(10_000, true), "10,000+");
        assert_eq!(count(999, false), "999");
        assert_eq!(count(1_234_567, false), "1,234,567");
    }
}
