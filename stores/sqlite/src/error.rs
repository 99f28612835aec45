//! Maps SQLite's errors to Sendoff's. Only this file decides which errors are temporary.

use rusqlite::ErrorCode;
use sendoff::{Error, ErrorKind};

/// An error that says what failed, why, and what to do next.
pub fn explain(what: &str, error: rusqlite::Error) -> Error {
    let (kind, next) = judge(&error);
    let because = match &error {
        // Its own words quote the whole statement.
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    };
    Error::new(kind, what)
        .because(because)
        .next_step(next)
        .with_source(error)
}

/// Whether the file may have been damaged, moved or replaced, so that a new connection must be opened.
pub fn breaks_connection(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ReadOnly
        )
    )
}

fn judge(error: &rusqlite::Error) -> (ErrorKind, &'static str) {
    const MIGRATE: &str = "run `sendoff migrate`";
    let words = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.as_str(),
        rusqlite::Error::SqliteFailure(_, Some(msg)) => msg.as_str(),
        _ => "",
    };
    if words.contains("no such table") || words.contains("no such index") {
        return (ErrorKind::SchemaMissing, MIGRATE);
    }
    if words.contains("no such column") || words.contains("has no column") {
        return (ErrorKind::SchemaTooOld, MIGRATE);
    }
    let Some(code) = error.sqlite_error_code() else {
        return (
            ErrorKind::Backend,
            "the tables are damaged, or this is a bug in Sendoff: please report it",
        );
    };
    match code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed
        | ErrorCode::OperationInterrupted
        | ErrorCode::OperationAborted
        | ErrorCode::SchemaChanged => (
            ErrorKind::Busy,
            "another program holds the write lock; the call is retried; keep the program's transactions short",
        ),
        ErrorCode::CannotOpen => (ErrorKind::Unreachable, "check that the path and its folder exist and are writable"),
        ErrorCode::SystemIoFailure => (ErrorKind::Unreachable, "check the disk and its file system"),
        ErrorCode::DiskFull => (ErrorKind::Unreachable, "free space on the disk"),
        ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied => (
            ErrorKind::Denied,
            "allow the program to write the file and its folder: the write-ahead log is created next to the file",
        ),
        ErrorCode::NotADatabase => (ErrorKind::Invalid, "check the path: the file is not an SQLite database, or is encrypted"),
        ErrorCode::DatabaseCorrupt => (
            ErrorKind::Backend,
            "the file is damaged: stop all programs that use it, then restore a backup or recover it (`sqlite3 FILE .recover`)",
        ),
        ErrorCode::NoLargeFileSupport | ErrorCode::TooBig | ErrorCode::OutOfMemory => {
            (ErrorKind::Backend, "check the size of the message and the free memory")
        }
        ErrorCode::ConstraintViolation => (
            ErrorKind::Backend,
            "compare the outbox's tables with the output of `sendoff migrate --dry-run`",
        ),
        ErrorCode::InternalMalfunction
        | ErrorCode::NotFound
        | ErrorCode::TypeMismatch
        | ErrorCode::ApiMisuse
        | ErrorCode::ParameterOutOfRange
        | ErrorCode::Unknown
        // The driver may learn new codes.
        | _ => (ErrorKind::Backend, "see the error code in SQLite's documentation; if it is a bug in Sendoff, please report it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_database_is_temporary_and_a_missing_table_is_not() {
        let busy = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None);
        let error = explain("settling failed", busy);
        assert!(error.kind() == ErrorKind::Busy && error.is_temporary());

        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let missing = connection.prepare("SELECT 1 FROM outbox_message").err().unwrap();
        let error = explain("reading failed", missing);
        assert_eq!(error.kind(), ErrorKind::SchemaMissing);
        assert!(!error.to_string().contains("SELECT"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }
}
