//! Emit Sendoff messages inside a diesel-async transaction
