//! What a claim gives.

use std::time::SystemTime;

use crate::Row;

/// The rows that were claimed together, in the order of their ids, and the stamp they carry.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The rows.
    pub rows: Vec<Row>,
    /// What was written to their `updated_at`: as long as a row has it, it is this claim's.
    pub stamp: Stamp,
}

/// The `updated_at` of a claim, as its database writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stamp {
    /// A point in time.
    At(SystemTime),
    /// Text, where the database has no type for it, or no time zone.
    Text(String),
}
