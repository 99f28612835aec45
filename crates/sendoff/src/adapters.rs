//! One adapter per database driver.
//!
//! The feature is enough: [`Outbox::emit`](crate::Outbox::emit) then accepts the transactions of the driver, and a service
//! imports nothing from here.

#[cfg(any(feature = "diesel-async-mysql", feature = "diesel-async-postgres"))]
#[doc(inline)]
pub use sendoff_diesel_async as diesel_async;

#[cfg(feature = "mysql-async")]
#[doc(inline)]
pub use sendoff_mysql_async as mysql_async;

#[cfg(feature = "rusqlite")]
#[doc(inline)]
pub use sendoff_rusqlite as rusqlite;

#[cfg(feature = "sea-orm")]
#[doc(inline)]
pub use sendoff_sea_orm as sea_orm;

#[cfg(any(feature = "sqlx-mysql", feature = "sqlx-postgres", feature = "sqlx-sqlite"))]
#[doc(inline)]
pub use sendoff_sqlx as sqlx;

#[cfg(feature = "tokio-postgres")]
#[doc(inline)]
pub use sendoff_tokio_postgres as tokio_postgres;
