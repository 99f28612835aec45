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
