//! Standard output as a Sendoff sink
