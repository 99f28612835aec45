//! Emit Sendoff messages inside a sea-orm transaction
