//! What the server's and the client's errors mean.

use std::error::Error as _;

use async_nats::client::PublishError;
use async_nats::jetstream::{Error as ApiError, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind, PublishErrorKind, SubscribeError};
use sendoff::{ErrorKind, Outcome};
use sendoff_wire::Refusal;

use crate::subject::LONGEST;

/// What became of a message that the client did not take.
pub(crate) fn not_taken(refused: &PublishError, subject: &str) -> Outcome {
    match refused.kind() {
        PublishErrorKind::MaxPayloadExceeded => Outcome::Permanent(
            format!("NATS did not take the message: {refused} (raise max_payload on the server, or send less)").into(),
        ),
        PublishErrorKind::InvalidSubject => bad_subject(subject, "the client refused it"),
        PublishErrorKind::Send => unsent(None),
    }
}

/// An acknowledgement that says neither yes nor no.
pub(crate) fn strange() -> Outcome {
    Outcome::Unknown(
        "the answer of NATS cannot be understood (check what listens on the subject beside the stream)".into(),
    )
}

/// What became of a message that a stream refused.
pub(crate) fn stream(error: &ApiError) -> Outcome {
    let outcome = |kind: fn(sendoff::Reason) -> Outcome, next: &str| {
        kind(format!("the stream refused the message: {error} ({next})").into())
    };
    match error.error_code() {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => outcome(
            Outcome::Permanent,
            "raise max_msg_size of the stream, then retry the message",
        ),
        ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => outcome(
            Outcome::Permanent,
            "send fewer headers, or use format = \"envelope\" without them",
        ),
        ErrorCode::STREAM_NOT_MATCH => outcome(
            Outcome::Permanent,
            "let the stream of the sink's settings cover this subject, then retry the message",
        ),
        ErrorCode::STREAM_SEALED => outcome(Outcome::Permanent, "send to a stream that is not sealed"),
        ErrorCode::STREAM_STORE_FAILED => outcome(
            Outcome::Temporary,
            "if it is full: raise its limits, consume it faster, or let it discard old messages",
        ),
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::NO_LIMITS => outcome(
            Outcome::SinkDown,
            "give JetStream more storage; messages wait until then",
        ),
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            outcome(Outcome::SinkDown, "enable JetStream on the server and for the account")
        }
        ErrorCode::CLUSTER_NOT_AVAILABLE
        | ErrorCode::CLUSTER_NOT_ACTIVE
        | ErrorCode::CLUSTER_NOT_LEADER
        | ErrorCode::CLUSTER_INCOMPLETE => outcome(Outcome::SinkDown, "check the servers of the cluster"),
        // There are some two hundred codes, and servers to come have more.
        _ => outcome(Outcome::Temporary, "see the log of the server"),
    }
}

/// Nobody listens on the subject, and no stream covers it.
pub(crate) fn no_stream(subject: &str) -> Outcome {
    let next = "create a stream that covers it, then retry the message";
    Outcome::Permanent(format!("no stream covers the subject {subject} ({next})").into())
}

/// A stream covers the subject, but nobody answers for it.
pub(crate) fn no_leader(subject: &str) -> Outcome {
    let next = "check the servers of the cluster";
    Outcome::Temporary(format!("the stream that covers the subject {subject} has no leader now ({next})").into())
}

/// Nobody listens on the subject, and whether a stream covers it cannot be told.
pub(crate) fn no_stream_perhaps(subject: &str, why: &str) -> Outcome {
    let next = "create a stream that covers it, and let this account ask $JS.API.STREAM.NAMES";
    Outcome::Temporary(format!("nobody listens on the subject {subject}, and JetStream {why} ({next})").into())
}

pub(crate) fn no_jetstream() -> Outcome {
    let next = "enable it on the server and for the account, or set mode = \"core\"";
    Outcome::SinkDown(format!("JetStream does not answer: it is not enabled ({next})").into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise max_payload on the server, or store it elsewhere and send a reference";
    Outcome::Permanent(
        format!("the message has {size} bytes with its headers, and the server takes {limit} ({next})").into(),
    )
}

pub(crate) fn bad_subject(subject: &str, why: &str) -> Outcome {
    let shown: String = subject.chars().take(100).collect();
    let dots = if shown.len() < subject.len() { "…" } else { "" };
    Outcome::Permanent(
        format!(
            "the subject {shown:?}{dots} cannot be used: {why} (change the topic or the subject template; at most \
             {LONGEST} bytes)"
        )
        .into(),
    )
}

/// The server said that we may not publish to the subject.
pub(crate) fn denied(subject: &str) -> Outcome {
    let next = "allow it in the account's permissions";
    Outcome::Temporary(format!("NATS refused: no permission to publish to {subject} ({next})").into())
}

/// The server said that we may not receive acknowledgements.
pub(crate) fn deaf(subject: &str) -> String {
    format!(
        "NATS refused: no permission to subscribe to {subject}, where acknowledgements come (allow it in the account's \
         permissions, or set inbox_prefix)"
    )
}

pub(crate) fn unanswered() -> Outcome {
    Outcome::Unknown("NATS did not acknowledge the message in time (check the server and its stream)".into())
}

/// The connection broke after the message was handed to it.
pub(crate) fn lost(why: Option<&str>) -> Outcome {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Outcome::Unknown(format!("the connection to NATS broke before the message was acknowledged{why}").into())
}

/// The connection broke before the message was handed to it.
pub(crate) fn unsent(why: Option<&str>) -> Outcome {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Outcome::SinkDown(format!("the connection to NATS broke before the message was sent{why}").into())
}

pub(crate) fn stuck() -> Outcome {
    Outcome::SinkDown("NATS takes no more messages: it reads too slowly, or not at all (check the server)".into())
}

/// Why no acknowledgement could arrive.
pub(crate) fn no_desk(error: &SubscribeError) -> Refusal {
    Refusal {
        kind: ErrorKind::Unreachable,
        what: "NATS cannot be used".to_owned(),
        why: format!("it takes no subscription for acknowledgements: {error}"),
        next: "check that the server runs, and inbox_prefix".to_owned(),
    }
}

/// Why there is no connection.
pub(crate) fn connect(error: &ConnectError) -> Refusal {
    let (kind, next) = match error.kind() {
        ConnectErrorKind::ServerParse => (ErrorKind::Invalid, "check the url of the sink"),
        ConnectErrorKind::Dns => (ErrorKind::Unreachable, "check the host name in the url of the sink"),
        ConnectErrorKind::Authentication => (ErrorKind::Invalid, "check the nkey or the creds_file of the sink"),
        ConnectErrorKind::AuthorizationViolation => {
            (ErrorKind::Denied, "check the user, password, token, nkey or creds_file")
        }
        ConnectErrorKind::Tls => (ErrorKind::Invalid, "check the tls settings of the sink"),
        ConnectErrorKind::TimedOut | ConnectErrorKind::MaxReconnects => (
            ErrorKind::Unreachable,
            "check that the server runs, and the firewall between",
        ),
        ConnectErrorKind::Io if is_certificate(error) => (
            ErrorKind::Denied,
            "let the server show a certificate for this host name, by an authority in ca_file",
        ),
        ConnectErrorKind::Io if speaks_of_authority(error) => {
            (ErrorKind::Denied, "check the user, password, token, nkey or creds_file")
        }
        ConnectErrorKind::Io => (
            ErrorKind::Unreachable,
            "check the address, that the server runs, and whether it wants TLS",
        ),
    };
    Refusal {
        kind,
        what: "NATS cannot be used".to_owned(),
        why: error.to_string(),
        next: next.to_owned(),
    }
}

/// Whether TLS failed because of who the other side is.
fn is_certificate(error: &ConnectError) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return matches!(
                tls,
                rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_)
            );
        }
        source = error.source();
    }
    false
}

/// Servers say it in several ways: an expired user, a revoked one, a wrong account.
fn speaks_of_authority(error: &ConnectError) -> bool {
    let text = error.to_string().to_lowercase();
    text.contains("authentication") || text.contains("authorization")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u64) -> Outcome {
        let text = format!(r#"{{"code":503,"err_code":{code},"description":"maximum bytes exceeded"}}"#);
        let error: ApiError = serde_json::from_str(&text).unwrap();
        stream(&error)
    }

    #[test]
    fn a_full_stream_is_temporary_and_a_full_server_is_down() {
        assert!(
            matches!(refused(10077), Outcome::Temporary(reason) if reason.text().contains("maximum bytes exceeded"))
        );
        for code in [10002, 10023, 10028, 10047, 10076, 10039, 10008] {
            assert!(matches!(refused(code), Outcome::SinkDown(_)), "{code}");
        }
        for code in [10054, 10060, 10097, 10109] {
            assert!(matches!(refused(code), Outcome::Permanent(_)), "{code}");
        }
        assert!(matches!(refused(10999), Outcome::Temporary(_)));
    }

    #[test]
    fn a_subject_that_cannot_be_used_is_shown_in_part() {
        let Outcome::Permanent(reason) = bad_subject(&"ä".repeat(5000), "it is long") else {
            panic!("a bad subject is permanent");
        };
        assert!(
            reason.text().len() < 400 && reason.text().contains("…"),
            "{}",
            reason.text()
        );
    }
}
