//! Emit Sendoff messages inside a rusqlite transaction
