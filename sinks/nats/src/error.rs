//! Maps errors of the server and the client to outcomes.

use std::error::Error as _;

use async_nats::client::PublishError;
use async_nats::jetstream::{Error as ApiError, ErrorCode};
use async_nats::{ConnectError, ConnectErrorKind, PublishErrorKind, SubscribeError};
use sendoff::{ErrorKind, Outcome};
use sendoff_wire::Refusal;

use crate::subject::LONGEST;

/// The outcome of a message that the client did not accept.
pub(crate) fn not_taken(refused: &PublishError, subject: &str) -> Outcome {
    match refused.kind() {
        PublishErrorKind::MaxPayloadExceeded => Outcome::Permanent(
            format!(
                "NATS did not accept the message for {subject}: {refused} (raise max_payload on the server, then retry \
                 the message, or send a smaller one)"
            )
            .into(),
        ),
        PublishErrorKind::InvalidSubject => bad_subject(subject, "the NATS client refused it"),
        PublishErrorKind::Send => unsent(None),
    }
}

/// An acknowledgement that cannot be parsed.
pub(crate) fn strange() -> Outcome {
    Outcome::Unknown(
        "the answer is not a JetStream acknowledgement (check whether another client answers messages on this subject)"
            .into(),
    )
}

/// The outcome of a message that a stream refused.
pub(crate) fn stream(error: &ApiError) -> Outcome {
    let outcome = |kind: fn(sendoff::Reason) -> Outcome, next: &str| {
        kind(format!("the NATS stream refused the message: {error} ({next})").into())
    };
    match error.error_code() {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => outcome(
            Outcome::Permanent,
            "raise max_msg_size of the stream, then retry the message",
        ),
        ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => outcome(
            Outcome::Permanent,
            "emit fewer or smaller headers, or use format = \"envelope\"",
        ),
        ErrorCode::STREAM_NOT_MATCH => outcome(
            Outcome::Permanent,
            "add this subject to the stream in the sink's settings, then retry the message",
        ),
        ErrorCode::STREAM_SEALED => outcome(
            Outcome::Permanent,
            "use a stream that is not sealed, then retry the message",
        ),
        ErrorCode::STREAM_STORE_FAILED => outcome(
            Outcome::Temporary,
            "if the stream is full, raise its limits, consume faster, or let it discard old messages",
        ),
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::NO_LIMITS => outcome(
            Outcome::SinkDown,
            "give JetStream more storage; messages are deferred until then",
        ),
        ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
            outcome(Outcome::SinkDown, "enable JetStream on the server and for the account")
        }
        ErrorCode::CLUSTER_NOT_AVAILABLE
        | ErrorCode::CLUSTER_NOT_ACTIVE
        | ErrorCode::CLUSTER_NOT_LEADER
        | ErrorCode::CLUSTER_INCOMPLETE => outcome(Outcome::SinkDown, "check the servers of the cluster"),
        // There are about two hundred codes, and future servers will have more.
        _ => outcome(Outcome::Temporary, "see the server's log"),
    }
}

/// No subscriber, and no stream covers the subject.
pub(crate) fn no_stream(subject: &str) -> Outcome {
    let next = "create a stream that covers it, then retry the message";
    Outcome::Permanent(format!("no stream covers the subject {subject} ({next})").into())
}

/// A stream covers the subject, but gives no answer.
pub(crate) fn no_leader(subject: &str) -> Outcome {
    let next = "check the servers of the cluster";
    Outcome::Temporary(format!("the stream of the subject {subject} has no leader now ({next})").into())
}

/// No subscriber, and it is unknown whether a stream covers the subject.
pub(crate) fn no_stream_perhaps(subject: &str, why: &str) -> Outcome {
    let next = "create a stream that covers it, and allow this account to publish to $JS.API.STREAM.NAMES";
    Outcome::Temporary(format!("the subject {subject} has no subscriber, and JetStream {why} ({next})").into())
}

pub(crate) fn no_jetstream() -> Outcome {
    let next = "enable JetStream on the server and for the account, or set `mode = \"core\"` of the sink";
    Outcome::SinkDown(format!("JetStream is not enabled: there was no answer ({next})").into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise max_payload on the server, then retry the message, or send a reference";
    Outcome::Permanent(
        format!("the message has {size} bytes with its headers, and the server accepts {limit} ({next})").into(),
    )
}

pub(crate) fn bad_subject(subject: &str, why: &str) -> Outcome {
    let shown: String = subject.chars().take(100).collect();
    let dots = if shown.len() < subject.len() { "…" } else { "" };
    Outcome::Permanent(
        format!(
            "the NATS subject {shown:?}{dots} cannot be used: {why} (change the message's topic or subject of the \
             sink; at most {LONGEST} bytes)"
        )
        .into(),
    )
}

/// The server refused to publish to the subject.
pub(crate) fn denied(subject: &str) -> Outcome {
    let next = "allow it in the permissions of the user";
    Outcome::Temporary(format!("no permission to publish to the NATS subject {subject} ({next})").into())
}

/// The server refused the subscription for acknowledgements.
pub(crate) fn deaf(subject: &str) -> String {
    format!(
        "no permission to subscribe to the NATS subject {subject} for acknowledgements (allow it in the permissions \
         of the user, or set `inbox_prefix` of the sink)"
    )
}

pub(crate) fn unanswered(subject: &str) -> Outcome {
    let next = "check the server and the stream; the message is sent again";
    Outcome::Unknown(format!("NATS did not acknowledge the message for {subject} in time ({next})").into())
}

/// The connection broke after the message was sent.
pub(crate) fn lost(why: Option<&str>) -> Outcome {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let next = "check the server and the network; the message is sent again";
    Outcome::Unknown(format!("the connection to NATS broke before the acknowledgement{why} ({next})").into())
}

/// The connection broke before the message was sent.
pub(crate) fn unsent(why: Option<&str>) -> Outcome {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let next = "check the server and the network";
    Outcome::SinkDown(format!("the connection to NATS broke before the message was sent{why} ({next})").into())
}

pub(crate) fn stuck() -> Outcome {
    Outcome::SinkDown(
        "the message was not sent: the NATS server does not read fast enough, or not at all (check the server)".into(),
    )
}

/// The subscription for acknowledgements failed. `at` is the address.
pub(crate) fn no_dispatcher(error: &SubscribeError, at: &str) -> Refusal {
    Refusal {
        kind: ErrorKind::Unreachable,
        what: format!("cannot use NATS at {at}"),
        why: format!("it refused the subscription for acknowledgements: {error}"),
        next: "check that the server is running and that `inbox_prefix` of the sink is correct".to_owned(),
    }
}

/// Connecting failed. `at` is the address.
pub(crate) fn connect(error: &ConnectError, at: &str) -> Refusal {
    let (kind, next) = match error.kind() {
        ConnectErrorKind::ServerParse => (ErrorKind::Invalid, "correct `url` of the sink"),
        ConnectErrorKind::Dns => (ErrorKind::Unreachable, "check the host name in `url` of the sink"),
        ConnectErrorKind::Authentication => (ErrorKind::Invalid, "check `nkey` or `creds_file` of the sink"),
        ConnectErrorKind::AuthorizationViolation => (
            ErrorKind::Denied,
            "check `user`, `password`, `token`, `nkey` or `creds_file` of the sink",
        ),
        ConnectErrorKind::Tls => (ErrorKind::Invalid, "check `tls` of the sink"),
        ConnectErrorKind::TimedOut | ConnectErrorKind::MaxReconnects => (
            ErrorKind::Unreachable,
            "check that the server is running, and check the firewall",
        ),
        ConnectErrorKind::Io if is_certificate(error) => (
            ErrorKind::Denied,
            "use a server certificate for this host name by a CA in tls.ca_file",
        ),
        ConnectErrorKind::Io if speaks_of_authority(error) => (
            ErrorKind::Denied,
            "check `user`, `password`, `token`, `nkey` or `creds_file` of the sink",
        ),
        ConnectErrorKind::Io => (
            ErrorKind::Unreachable,
            "check that the server is running, that `url` of the sink is correct, and whether the server requires TLS",
        ),
    };
    Refusal {
        kind,
        what: format!("cannot use NATS at {at}"),
        why: error.to_string(),
        next: next.to_owned(),
    }
}

/// Whether TLS failed because of a certificate.
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

/// Whether the login was refused. Servers use several texts: an expired user, a revoked one, a wrong account.
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
            panic!("a bad subject must be permanent");
        };
        assert!(
            reason.text().len() < 400 && reason.text().contains("…"),
            "{}",
            reason.text()
        );
    }
}
