//! The SQLite store, room by room, against real files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod delivered;
mod emit;
mod history;
mod jobs;
mod key_order;
mod lease;
mod limits;
mod listen;
mod migrate;
mod operate;
mod operate_retry;
mod outbox;
mod read;
mod settle;
mod takeover;
mod unreadable;
