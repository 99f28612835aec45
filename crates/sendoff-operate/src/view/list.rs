//! Pages and counts.

use serde::Serialize;

/// A page of a list. All lists have this shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageView<T> {
    /// The rows, in the order of the list.
    pub items: Vec<T>,
    /// Where the next page starts; `None` when there is none.
    pub next: Option<String>,
    /// How many rows were looked at, in a list that looks at a limited number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned: Option<u64>,
    /// How far the list has looked, if it goes on: the time of the last row that was looked at, RFC 3339.
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
