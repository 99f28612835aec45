//! An outbox whose messages are with slow sinks while its server is replaced, or while its relay vanishes.
#![allow(dead_code, unused_imports, reason = "every test binary uses a part of it")]

mod endpoint;
mod fates;
mod orders;
mod rows;
mod scene;

pub(crate) use endpoint::{Gate, SINKS};
pub(crate) use fates::assert_accounted;
pub(crate) use orders::{AT_ONCE, emit, new_orders, old_orders, plain_orders, try_emit};
pub(crate) use rows::{count, number, rows, try_rows};
pub(crate) use scene::{Entry, PATIENCE, Scene, lanes_of, ready};
