//! The stores of relays and workers: one per database, behind the feature of its name.
//!
//! The traits of stores are in [`store`](crate::store).

#[cfg(feature = "mysql")]
#[doc(inline)]
pub use sendoff_store_mysql as mysql;

#[cfg(feature = "postgres")]
#[doc(inline)]
pub use sendoff_store_postgres as postgres;

#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use sendoff_store_sqlite as sqlite;
