//! The result of a claim.

use std::time::SystemTime;

use crate::Row;

/// The rows that were claimed together, in the order of their ids, with the stamp of the claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The claimed rows.
    pub rows: Vec<Row>,
    /// The value that the claim wrote to `updated_at` of its rows. While a row has this value, it belongs to this
    /// claim.
    pub stamp: Stamp,
}

/// The `updated_at` of a claim, in the form of its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stamp {
    /// The stamp as a point in time.
    At(SystemTime),
    /// The stamp as text, for databases whose type has no time zone, or that have no type for times.
    Text(String),
}
