//! The SQLite store of Sendoff
