//! The databases of sea-orm that Sendoff supports.

use sea_orm::DbBackend;
use sendoff::emit::Dialect;
use sendoff::{Error, ErrorKind, Result};

/// The dialect of a database.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a database that Sendoff does not support.
pub(crate) fn dialect(backend: DbBackend) -> Result<Dialect> {
    match backend {
        DbBackend::Postgres => Ok(Dialect::Postgres),
        DbBackend::Sqlite => Ok(Dialect::Sqlite),
        DbBackend::MySql => Ok(Dialect::Mysql),
        other => Err(
            Error::new(ErrorKind::Unsupported, format!("Sendoff does not support {other:?}"))
                .because("Sendoff supports PostgreSQL, MySQL, MariaDB and SQLite")
                .next_step("emit in a transaction of one of these databases"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_database_of_sendoffs_has_its_dialect() {
        for (backend, expected) in [
            (DbBackend::Postgres, Dialect::Postgres),
            (DbBackend::MySql, Dialect::Mysql),
            (DbBackend::Sqlite, Dialect::Sqlite),
        ] {
            assert_eq!(dialect(backend).unwrap(), expected);
        }
    }
}
