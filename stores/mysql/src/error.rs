//! Maps errors of the driver and the server to [`sendoff::Error`]. Only this file decides which errors are temporary.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use mysql_async::{DriverError, Error as MysqlError, IoError};
use sendoff::{Error, ErrorKind};

/// What the server said.
#[derive(Debug)]
pub(crate) struct ServerError {
    code: u16,
    message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

impl StdError for ServerError {}

/// Names what failed, and decides by the server's number what kind of failure it is.
pub(crate) fn from_driver(what: &str, error: MysqlError) -> Error {
    match error {
        MysqlError::Server(said) => {
            let kind = kind_of(said.code);
            let message = without_values(said.code, said.message);
            let wrapped = Error::new(kind, what).because(message.clone());
            let wrapped = match advice(kind, said.code) {
                Some(next) => wrapped.next_step(next),
                None => wrapped,
            };
            wrapped.with_source(ServerError {
                code: said.code,
                message,
            })
        }
        // Its words may quote the URL, and that may hold a password.
        MysqlError::Url(_) => bad_url(what),
        MysqlError::Io(error) => {
            let (kind, why, next) = match tls_error(&error) {
                Some(tls) => (ErrorKind::Denied, tls.to_string(), tls_advice(tls)),
                None => (ErrorKind::Unreachable, error.to_string(), UNREACHABLE),
            };
            Error::new(kind, what).because(why).next_step(next).with_source(error)
        }
        MysqlError::Driver(error) => from_connection(what, error),
        MysqlError::Other(error) => odd_answer(what, error.to_string()),
    }
}

/// Whether another transaction was in the way, so that the whole of it is to be done again: a deadlock, a lock that did
/// not come free, a row that changed under a snapshot, locks by name in a circle.
pub(crate) fn is_conflict(error: &Error) -> bool {
    let sources = std::iter::successors(StdError::source(error), |error| StdError::source(*error));
    sources
        .filter_map(|source| source.downcast_ref::<ServerError>())
        .any(|said| matches!(said.code, 1213 | 1205 | 1020 | 3058))
}

/// Whether the server has no locks by name: a cluster that does without (1235, and 1105 by its own rules), or no such
/// function at all.
pub(crate) fn has_no_names(error: &Error) -> bool {
    let sources = std::iter::successors(StdError::source(error), |error| StdError::source(*error));
    sources
        .filter_map(|source| source.downcast_ref::<ServerError>())
        .any(|said| matches!(said.code, 1235 | 1105 | 1305))
}

/// The URL is no use.
pub(crate) fn bad_url(what: &str) -> Error {
    Error::new(ErrorKind::Invalid, what)
        .because("the database's URL is invalid")
        .next_step("write the URL like mysql://user:password@host:3306/database")
}

/// The server did not answer in time.
pub(crate) fn timed_out(what: &str, after: Duration) -> Error {
    Error::new(ErrorKind::Unreachable, what)
        .because(format!("no answer within {after:?}"))
        .next_step("check the load and the locks of the database; a Rust program can raise `statement_timeout` of `MysqlConfig`")
}

/// The answer is not what the statement asks for.
pub(crate) fn odd_answer(what: &str, why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Backend, what)
        .because(why)
        .next_step("run `sendoff migrate`: the outbox's procedures and tables must have the version of this program")
}

/// What a failed handshake means; `None` for an error of the network.
fn tls_error(error: &IoError) -> Option<&rustls::Error> {
    let source = match error {
        IoError::Io(error) => error.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
        IoError::Tls(error) => StdError::source(error),
    };
    source.and_then(|source| source.downcast_ref())
}

fn tls_advice(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(_) => {
            "set sslrootcert in the database's URL to the certificate authority of the server, and use the host name in its \
             certificate; sslmode=require encrypts without checking the certificate"
        }
        _ => "check sslcert and sslkey in the database's URL, and read the server's log",
    }
}

fn from_connection(what: &str, error: DriverError) -> Error {
    let (kind, next) = match &error {
        DriverError::ConnectionClosed | DriverError::CantParseServerVersion { .. } | DriverError::PoolDisconnected => {
            (ErrorKind::Unreachable, UNREACHABLE)
        }
        DriverError::UnknownAuthPlugin { .. } | DriverError::MysqlOldPasswordDisabled => (
            ErrorKind::Unsupported,
            "change the user's authentication plugin to mysql_native_password or caching_sha2_password",
        ),
        DriverError::NoClientSslFlagFromServer => (
            ErrorKind::Unsupported,
            "enable TLS on the server, or set sslmode=disable in the database's URL if the network is trusted",
        ),
        DriverError::PacketTooLarge => (ErrorKind::Invalid, "raise max_allowed_packet of the server"),
        _ => return odd_answer(what, error.to_string()).with_source(error),
    };
    Error::new(kind, what)
        .because(error.to_string())
        .next_step(next)
        .with_source(error)
}

const UNREACHABLE: &str = "check that the database is running and reachable, then try again";

fn kind_of(code: u16) -> ErrorKind {
    match code {
        // No such table, procedure.
        1146 | 1305 => ErrorKind::SchemaMissing,
        // Unknown column; a procedure with other parameters.
        1054 | 1318 => ErrorKind::SchemaTooOld,
        // Access to database, table, column, routine; wrong password; a right that is lacking; a trigger without SUPER.
        1044 | 1045 | 1698 | 1142 | 1143 | 1370 | 1227 | 1419 | 1449 => ErrorKind::Denied,
        // The database that was asked for does not exist, or none was.
        1049 | 1046 => ErrorKind::Invalid,
        // Shutting down, killed, lost; a replica after a failover takes no writes.
        1053 | 1077 | 1079 | 1080 | 1152 | 1158 | 1159 | 1160 | 1161 | 1184 | 1927 | 1290 | 1836 | 3169 | 4031 => {
            ErrorKind::Unreachable
        }
        // Deadlock, lock timeout, changed row, deadlock of named locks; interrupted, too many connections, disk or table full.
        1213 | 1205 | 1020 | 3058 | 1317 | 1969 | 3024 | 1040 | 1203 | 1226 | 1021 | 1114 | 1206 | 3572 => {
            ErrorKind::Busy
        }
        _ => ErrorKind::Backend,
    }
}

fn advice(kind: ErrorKind, code: u16) -> Option<&'static str> {
    match (kind, code) {
        (ErrorKind::SchemaMissing | ErrorKind::SchemaTooOld, _) => {
            Some("run `sendoff migrate`, and check the schema and table prefix")
        }
        (ErrorKind::Denied, 1045 | 1698) => Some("check the user and password in the database's URL"),
        (ErrorKind::Denied, 1419) => Some(
            "set log_bin_trust_function_creators = 1, or migrate as a user with the SUPER privilege: the outbox has triggers",
        ),
        (ErrorKind::Denied, _) => Some("grant the user the privileges listed in the documentation of the MySQL store"),
        (ErrorKind::Invalid, _) => Some("check the database name in the URL"),
        (ErrorKind::Unreachable, _) => Some(UNREACHABLE),
        (ErrorKind::Busy, _) => Some("try again"),
        _ => None,
    }
}

/// The words of some errors quote a value of the row.
fn without_values(code: u16, message: String) -> String {
    match code {
        1062 => "a row with the same key already exists".to_owned(),
        1366 | 1292 | 1411 | 4025 | 3819 | 3140 | 3141 => {
            "a value does not match the type or a constraint of its column".to_owned()
        }
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_temporary() {
        for code in [1213, 1205, 3058, 1053, 1040, 1290, 1927] {
            assert!(Error::new(kind_of(code), "x").is_temporary(), "{code}");
        }
        for code in [1146, 1305, 1045, 1142, 1049, 1062, 1064, 0] {
            assert!(!Error::new(kind_of(code), "x").is_temporary(), "{code}");
        }
    }

    #[test]
    fn a_missing_table_tells_to_migrate() {
        assert_eq!(kind_of(1146), ErrorKind::SchemaMissing);
        assert!(
            advice(ErrorKind::SchemaMissing, 1146)
                .unwrap()
                .contains("sendoff migrate")
        );
    }

    #[test]
    fn values_of_rows_are_not_repeated() {
        let said = mysql_async::ServerError {
            code: 1062,
            message: "Duplicate entry 'hunter2' for key 'PRIMARY'".to_owned(),
            state: "23000".to_owned(),
        };
        let error = from_driver("x", MysqlError::Server(said));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
