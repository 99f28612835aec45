//! The PostgreSQL store of Sendoff.
//!
//! [`PostgresStore`] implements every trait of [`sendoff::store`] with `tokio-postgres`. It works through a pooler that
//! gives out a connection per transaction: it uses no prepared statements beyond a call, no session state and no
//! session locks. Only notifications (`LISTEN`) need a direct connection; without it, relays poll.
//!
//! | part | file |
//! |---|---|
//! | migrate | `migrate.rs`, `roles.rs` |
//! | emit | `emit.rs` |
//! | claim | `lease.rs` |
//! | read | `read.rs`, `progress.rs`, `straggler.rs`, `lanes.rs`, `decode.rs` |
//! | settle | `settle/` |
//! | work | `work.rs`, `job.rs` |
//! | operate | `operate.rs`, `operate/` |
//! | clean | `clean.rs` |
//! | wake | `listen.rs` |
//! | connect | `connect.rs`, `url.rs`, `tls.rs`, `verify.rs` |
//!
//! Connections are encrypted according to `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the URL, with libpq's
//! meanings. Without `sslmode` in the URL, the mode is `prefer` on this machine and `verify-full` for any other host.
//!
//! ```no_run
//! use sendoff::store::MigrateStore;
//! use sendoff_store_postgres::{PostgresConfig, PostgresStore};
//!
//! # async fn start() -> sendoff::Result<()> {
//! let store = PostgresStore::new(PostgresConfig::new("postgres://localhost/shop"))?;
//! store.migrate().await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod ask;
mod clean;
mod config;
mod connect;
mod decode;
mod emit;
mod error;
mod health;
mod hosts;
mod job;
mod lanes;
mod large;
mod lease;
mod listen;
mod migrate;
mod notify;
mod operate;
mod pipeline;
mod pool;
mod progress;
mod read;
mod roles;
mod setting;
mod settle;
mod store;
mod straggler;
mod stretch;
mod texts;
mod tid;
mod tls;
mod url;
mod verify;
mod work;

/// Connections to the database, for stores of other tables. Transport, limits and errors are handled here only.
pub mod connection {
    pub use crate::connect::Connector;
    pub use crate::pipeline::{Param, Statement};
    pub use crate::pool::{Pool, PooledConnection};
}

pub use config::PostgresConfig;
pub use store::PostgresStore;
