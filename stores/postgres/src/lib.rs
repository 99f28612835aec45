//! The PostgreSQL store of Sendoff
