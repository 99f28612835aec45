//! In-process Rust handlers as a Sendoff sink
