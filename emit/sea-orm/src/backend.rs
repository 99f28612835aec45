//! The databases of sea-orm that Sendoff emits on.

use sea_orm::DbBackend;
use sendoff::emit::Dialect;
use sendoff::{Error, ErrorKind, Result};

/// The dialect of a database.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for one that Sendoff has no statements for.
pub(crate) fn dialect(backend: DbBackend) -> Result<Dialect> {
    match backend {
        DbBackend::Postgres => Ok(Dialect::Postgres),
        DbBackend::Sqlite => Ok(Dialect::Sqlite),
        other => Err(Error::new(ErrorKind::Unsupported, format!("no outbox on {other:?}"))
            .because("Sendoff emits on PostgreSQL and SQLite")
            .next_step("emit in a transaction on one of these")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_a_dialect_is_named() {
        let error = dialect(DbBackend::MySql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("MySql"), "{error}");
    }
}
