//! A JSON lines file as a Sendoff sink
