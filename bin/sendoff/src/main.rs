//! The `sendoff` binary.
fn main() {}
