//! The Rust blocks of these pages compile: they are documentation tests. Pages whose blocks are parts of a program are not
//! here; the programs in `examples/` show those.

/// Handle a message once.
#[doc = include_str!("../../docs/consuming.md")]
pub struct Consuming;

/// Idempotency keys.
#[doc = include_str!("../../docs/idempotency.md")]
pub struct Idempotency;

/// Rust handlers.
#[doc = include_str!("../../docs/sinks/handlers.md")]
pub struct Handlers;

/// Waking the relay after a commit.
#[doc = include_str!("../../docs/waking.md")]
pub struct Waking;

/// Hooks.
#[doc = include_str!("../../docs/hooks.md")]
pub struct Hooks;
