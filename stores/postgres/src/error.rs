//! Maps errors of the driver and the server to [`sendoff::Error`].

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use sendoff::{Error, ErrorKind};

/// What the server said, without the detail: that may hold a row's values.
#[derive(Debug)]
pub(crate) struct ServerError {
    code: String,
    message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)
    }
}

impl StdError for ServerError {}

/// Names what failed, and decides by SQLSTATE what kind of failure it is.
pub(crate) fn from_driver(what: &str, error: tokio_postgres::Error) -> Error {
    let Some(said) = error.as_db_error() else {
        return from_connection(what, error);
    };
    let code = said.code().code().to_owned();
    let kind = kind_of(&code);
    let wrapped = Error::new(kind, what).because(said.message());
    let wrapped = match advice(kind, &code) {
        Some(next) => wrapped.next_step(next),
        None => wrapped,
    };
    wrapped.with_source(ServerError {
        code,
        message: said.message().to_owned(),
    })
}

/// The server did not answer in time.
pub(crate) fn timed_out(what: &str, after: Duration) -> Error {
    Error::new(ErrorKind::Unreachable, what)
        .because(format!("no answer within {after:?}"))
        .next_step("check the load and the locks of the database; a Rust program can raise `statement_timeout` of `PostgresConfig`")
}

/// The answer is not what the statement asks for.
pub(crate) fn odd_answer(what: &str, why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Backend, what)
        .because(why)
        .next_step("run `sendoff migrate`: the outbox's functions and tables must have the version of this program")
}

/// An error that is not the server's: of the connection, or of reading an answer.
fn from_connection(what: &str, error: tokio_postgres::Error) -> Error {
    let io = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>());
    let said = error.to_string();
    let why = io.map_or_else(|| said.clone(), ToString::to_string);
    // The driver keeps its own kinds to itself; its words are what tells them apart.
    let (kind, next) = match said.as_str() {
        "error performing TLS handshake" => {
            let (kind, next) = handshake(io);
            return Error::new(kind, what)
                .because(why_tls(&error))
                .next_step(next)
                .with_source(error);
        }
        _ if io.is_some() || error.is_closed() => (ErrorKind::Unreachable, UNREACHABLE),
        "error connecting to server" | "timeout waiting for server" | "unexpected message from server" => {
            (ErrorKind::Unreachable, UNREACHABLE)
        }
        "authentication error" => (ErrorKind::Denied, "check the user and password in the database's URL"),
        "invalid configuration" | "invalid connection string" => {
            // Its source may quote the URL, and that may hold a password.
            return Error::new(ErrorKind::Invalid, what)
                .because("the URL of the database is invalid")
                .next_step("write the URL like postgres://user:password@host:5432/database");
        }
        _ => return odd_answer(what, why).with_source(error),
    };
    Error::new(kind, what).because(why).next_step(next).with_source(error)
}

/// What a failed handshake means: the server's certificate, the network, or a server without TLS.
fn handshake(io: Option<&std::io::Error>) -> (ErrorKind, &'static str) {
    let tls = io
        .and_then(std::io::Error::get_ref)
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (tls, io) {
        (Some(rustls::Error::InvalidCertificate(_)), _) => (
            ErrorKind::Denied,
            "set sslrootcert in the database's URL to the certificate authority of the server, and use the host name in its \
             certificate; sslmode=require encrypts without checking the certificate",
        ),
        (Some(_), _) => (
            ErrorKind::Denied,
            "check sslcert and sslkey in the database's URL, and read the server's log",
        ),
        (None, Some(_)) => (ErrorKind::Unreachable, UNREACHABLE),
        (None, None) => (
            ErrorKind::Unsupported,
            "enable TLS on the server, or set sslmode=disable in the database's URL if the network is trusted",
        ),
    }
}

/// What stands behind the driver's one sentence.
fn why_tls(error: &tokio_postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

const UNREACHABLE: &str = "check that the database is running and reachable, then try again";

fn kind_of(code: &str) -> ErrorKind {
    match code {
        // Undefined table, function, schema.
        "42P01" | "42883" | "3F000" => ErrorKind::SchemaMissing,
        // Undefined column: tables of another version.
        "42703" => ErrorKind::SchemaTooOld,
        // Insufficient privilege.
        "42501" => ErrorKind::Denied,
        // The database that was asked for does not exist.
        "3D000" => ErrorKind::Invalid,
        // Shutting down, starting up, idle session ended; a standby after a failover takes no writes.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25006" => ErrorKind::Unreachable,
        // Cancelled, in use, not available at once.
        "57014" | "55006" | "55P03" => ErrorKind::Busy,
        _ => match code.get(..2) {
            Some("08") => ErrorKind::Unreachable,
            Some("28") => ErrorKind::Denied,
            // Serialization failure, deadlock.
            Some("40") => ErrorKind::Busy,
            // Out of connections, memory, disk.
            Some("53") => ErrorKind::Busy,
            _ => ErrorKind::Backend,
        },
    }
}

fn advice(kind: ErrorKind, code: &str) -> Option<&'static str> {
    match kind {
        ErrorKind::SchemaMissing | ErrorKind::SchemaTooOld => {
            Some("run `sendoff migrate`, and check the schema and table prefix")
        }
        ErrorKind::Denied if code.starts_with("28") => Some("check the user and password in the database's URL"),
        ErrorKind::Denied => Some("grant the user one of the outbox's roles (`sendoff migrate` can create them)"),
        ErrorKind::Invalid => Some("check the database name in the URL"),
        ErrorKind::Unreachable => Some(UNREACHABLE),
        ErrorKind::Busy => Some("try again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_temporary() {
        for code in ["08006", "57P01", "57P03", "40P01", "40001", "55P03", "53300", "25006"] {
            assert!(Error::new(kind_of(code), "x").is_temporary(), "{code}");
        }
        for code in ["42P01", "42883", "42501", "28P01", "3D000", "22001", "XX000", ""] {
            assert!(!Error::new(kind_of(code), "x").is_temporary(), "{code}");
        }
    }

    #[test]
    fn a_missing_table_tells_to_migrate() {
        assert_eq!(kind_of("42P01"), ErrorKind::SchemaMissing);
        assert!(
            advice(ErrorKind::SchemaMissing, "42P01")
                .unwrap()
                .contains("sendoff migrate")
        );
    }
}
