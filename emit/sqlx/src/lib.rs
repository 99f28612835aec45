//! Emit Sendoff messages inside a sqlx transaction
