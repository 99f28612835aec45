//! The MySQL and MariaDB store of Sendoff.
//!
//! [`MysqlStore`] implements every trait of [`sendoff::store`] with `mysql_async`, in SQL that both MySQL 8.0.16 and
//! MariaDB 10.6 support. It has its own connections, so its session settings affect no other program.
//!
//! | part | file |
//! |---|---|
//! | migrate | `migrate.rs` |
//! | emit | `emit.rs` |
//! | claim | `lease.rs`, `guard.rs`, `history.rs` |
//! | read | `read.rs`, `lanes.rs`, `file.rs`, `decode.rs` |
//! | settle | `settle/` |
//! | operate | `operate/` |
//! | clean | `clean.rs` |
//!
//! ```no_run
//! use sendoff::store::MigrateStore;
//! use sendoff_store_mysql::{MysqlConfig, MysqlStore};
//!
//! # async fn start() -> sendoff::Result<()> {
//! let store = MysqlStore::new(MysqlConfig::new("mysql://shop@localhost/shop"))?;
//! store.migrate().await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod clean;
mod config;
mod conflict;
mod connect;
mod decode;
mod emit;
mod error;
mod file;
mod guard;
mod health;
mod history;
mod job;
mod lanes;
mod lease;
mod migrate;
mod operate;
mod pool;
mod read;
mod setting;
mod settle;
mod store;
mod texts;
mod tls;
mod url;
mod work;

/// Connections to the database, for stores of other tables. Transport, limits and errors are handled here only.
pub mod connection {
    pub use crate::conflict::Attempts;
    pub use crate::connect::Connector;
    pub use crate::pool::{Pool, PooledConnection};
}

pub use config::MysqlConfig;
pub use store::MysqlStore;
