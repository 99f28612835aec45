//! Emit Sendoff messages inside a tokio-postgres transaction
