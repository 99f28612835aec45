//! What a broker's codes and a connection's failures mean.

use std::io;

use mqtt_protocol_core::mqtt::result_code::MqttError;
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::Refusal;

use crate::Version;
use crate::batch::End;
use crate::packet::Ack;
use crate::stream::Broken;

/// What became of a message, by the code of its confirmation.
pub(crate) fn confirmed(ack: &Ack) -> Outcome {
    let refused = |kind: fn(Reason) -> Outcome, why: &str, next: &str| {
        let told = ack
            .reason
            .as_deref()
            .map(|reason| format!(", {reason:?}"))
            .unwrap_or_default();
        let code = ack.code;
        kind(format!("the MQTT broker refused the message: {why}{told} (code 0x{code:02X}; {next})").into())
    };
    match ack.code {
        // The second: nobody has subscribed. The broker did its part.
        0x00 | 0x10 => Outcome::Delivered,
        0x87 => refused(
            Outcome::Temporary,
            "not authorized",
            "let our user publish to this topic",
        ),
        0x90 => refused(
            Outcome::Permanent,
            "topic name invalid",
            "change the topic template of the sink",
        ),
        0x97 => refused(
            Outcome::Temporary,
            "quota exceeded",
            "raise the quota, or consume faster",
        ),
        0x99 => refused(
            Outcome::Permanent,
            "payload format invalid",
            "change the format or the content type",
        ),
        0x91 => refused(
            Outcome::Temporary,
            "packet identifier in use",
            "see the log of the broker",
        ),
        0x83 => refused(
            Outcome::Temporary,
            "implementation specific error",
            "see the log of the broker",
        ),
        0x80 => refused(Outcome::Temporary, "unspecified error", "see the log of the broker"),
        _ => refused(
            Outcome::Temporary,
            "a reason that MQTT does not know",
            "see the log of the broker",
        ),
    }
}

/// The broker took the message and then did not know it any more.
pub(crate) fn half_confirmed(ack: &Ack) -> Outcome {
    let code = ack.code;
    Outcome::Unknown(format!("the MQTT broker took the message and then lost it (code 0x{code:02X})").into())
}

pub(crate) fn bad_topic(topic: &str, why: &str) -> Outcome {
    let shown: String = topic.chars().take(100).collect();
    let dots = if shown.len() < topic.len() { "…" } else { "" };
    let next = "change the message's topic or the topic template of the sink";
    Outcome::Permanent(format!("the MQTT topic {shown:?}{dots} cannot be used: {why} ({next})").into())
}

pub(crate) fn header_too_long(size: usize) -> Outcome {
    let next = "shorten it, or use format = \"envelope\" without it";
    Outcome::Permanent(format!("a header has {size} bytes, and MQTT has room for 65535 ({next})").into())
}

/// Our own checks let something through that the protocol has no room for.
pub(crate) fn unwritable(error: MqttError) -> Outcome {
    Outcome::Permanent(format!("the message cannot be written as MQTT: {error} (change its topic or headers)").into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise the broker's largest packet, or store it elsewhere and send a reference";
    Outcome::Permanent(
        format!("the message makes a packet of {size} bytes, and the broker takes {limit} ({next})").into(),
    )
}

pub(crate) fn unconfirmed() -> Outcome {
    Outcome::Unknown("the MQTT broker did not confirm the message in time (check the broker)".into())
}

pub(crate) fn stuck() -> Outcome {
    Outcome::SinkDown("the MQTT broker confirms nothing, so that no more was sent (check the broker)".into())
}

/// The message was handed to a connection that broke.
pub(crate) fn lost(end: &End) -> Outcome {
    let why = why(end);
    Outcome::Unknown(format!("the connection to the MQTT broker broke before the message was confirmed: {why}").into())
}

/// The message was still ours when the connection broke.
pub(crate) fn unsent(end: &End) -> Outcome {
    let why = why(end);
    Outcome::SinkDown(format!("the connection to the MQTT broker broke before the message was sent: {why}").into())
}

/// Connections break as soon as they are made.
pub(crate) fn unsteady() -> Outcome {
    let next = "see the log of the broker; two relays with one client_id throw each other out";
    Outcome::SinkDown(format!("the MQTT broker ends our connections as soon as they are made ({next})").into())
}

fn why(end: &End) -> String {
    match end {
        End::Broken(broken) => self::broken(broken),
        End::Nonsense => "it sent a packet that does not belong there".to_owned(),
        End::Said(code, reason) => {
            let meaning = match code {
                0x81 | 0x82 => "it could not read what we sent",
                0x87 => "we are not authorized (any more)",
                0x89 => "it is busy",
                0x8B => "it shuts down",
                0x8E => "another client took over our client_id",
                0x93 => "we sent more than it allows at a time",
                0x95 => "a packet was too large",
                0x97 => "our quota is exceeded",
                0x98 => "an administrator ended it",
                0x9D => "it has moved to another server",
                _ => "see the log of the broker",
            };
            let told = reason
                .as_deref()
                .map(|reason| format!(", {reason:?}"))
                .unwrap_or_default();
            format!("{meaning}{told} (code 0x{code:02X})")
        }
    }
}

fn broken(broken: &Broken) -> String {
    match broken {
        Broken::Closed => "the broker closed it".to_owned(),
        Broken::Io(error) => error.to_string(),
        Broken::Malformed => "what it sends is not MQTT".to_owned(),
    }
}

fn refusal(kind: ErrorKind, why: impl Into<String>, next: &str) -> Refusal {
    Refusal {
        kind,
        what: "the MQTT broker cannot be used".to_owned(),
        why: why.into(),
        next: next.to_owned(),
    }
}

pub(crate) fn unreachable(error: &io::Error) -> Refusal {
    let next = "check the address, that the broker runs, and the firewall between";
    refusal(ErrorKind::Unreachable, error.to_string(), next)
}

pub(crate) fn bad_host() -> Refusal {
    refusal(
        ErrorKind::Invalid,
        "its host name cannot stand in a certificate",
        "check the url of the sink",
    )
}

pub(crate) fn tls(error: &io::Error) -> Refusal {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => refusal(
            ErrorKind::Denied,
            error.to_string(),
            "let the broker show a certificate for this host name, by an authority in ca_file",
        ),
        Some(rustls::Error::AlertReceived(_)) => refusal(
            ErrorKind::Denied,
            error.to_string(),
            "see the log of the broker; it may want a cert_file",
        ),
        Some(_) => refusal(
            ErrorKind::Invalid,
            error.to_string(),
            "check that the broker offers TLS on this port",
        ),
        None => refusal(
            ErrorKind::Unreachable,
            error.to_string(),
            "check that the broker offers TLS on this port",
        ),
    }
}

/// The connection ended before the broker answered our introduction.
pub(crate) fn turned_away(end: &Broken) -> Refusal {
    let next = "see the log of the broker; perhaps it wants mqtts:// or version = \"3.1.1\"";
    match end {
        Broken::Malformed => refusal(ErrorKind::Invalid, broken(end), "check the port in the url of the sink"),
        Broken::Closed | Broken::Io(_) => refusal(ErrorKind::Unreachable, broken(end), next),
    }
}

pub(crate) fn not_mqtt() -> Refusal {
    refusal(
        ErrorKind::Invalid,
        "its first packet is not an answer",
        "check the port in the url of the sink",
    )
}

pub(crate) fn qos_too_high(level: u8) -> Refusal {
    refusal(
        ErrorKind::Unsupported,
        format!("it does not offer QoS {level}"),
        "use qos = 1, or another broker",
    )
}

pub(crate) fn no_retain() -> Refusal {
    refusal(ErrorKind::Unsupported, "it retains no messages", "take retain out")
}

/// The broker's answer to our introduction was no.
pub(crate) fn refused(version: Version, code: u8, reason: Option<&str>) -> Refusal {
    let log_in = "check the user and the password";
    let old = "use version = \"3.1.1\"";
    let (kind, why, next) = match (version, code) {
        (Version::V5, 0x84 | 0x01) | (Version::V311, 1) => {
            (ErrorKind::Unsupported, "unsupported protocol version", old)
        }
        (Version::V5, 0x85) | (Version::V311, 2) => {
            (ErrorKind::Invalid, "client identifier not valid", "change client_id")
        }
        (Version::V5, 0x86) | (Version::V311, 4) => (ErrorKind::Denied, "bad user name or password", log_in),
        (Version::V5, 0x87) | (Version::V311, 5) => (ErrorKind::Denied, "not authorized", log_in),
        (Version::V5, 0x8A) => (ErrorKind::Denied, "banned", "ask the administrator of the broker"),
        (Version::V5, 0x8C) => (ErrorKind::Denied, "bad authentication method", log_in),
        (Version::V5, 0x88 | 0x89 | 0x97 | 0x9F) | (Version::V311, 3) => (
            ErrorKind::Unreachable,
            "unavailable or busy",
            "see the log of the broker",
        ),
        (Version::V5, 0x9C | 0x9D) => (ErrorKind::Backend, "use another server", "change the url of the sink"),
        (Version::V5 | Version::V311, _) => (ErrorKind::Backend, "it refused us", "see the log of the broker"),
    };
    let told = reason.map(|reason| format!(", {reason:?}")).unwrap_or_default();
    refusal(kind, format!("{why}{told} (code 0x{code:02X})"), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u8) -> Outcome {
        confirmed(&Ack {
            id: 1,
            code,
            reason: None,
        })
    }

    #[test]
    fn codes_mean_what_the_specification_says() {
        assert_eq!((of(0), of(0x10)), (Outcome::Delivered, Outcome::Delivered));
        for code in [0x80, 0x83, 0x87, 0x91, 0x97, 0xFF] {
            assert!(matches!(of(code), Outcome::Temporary(_)), "{code:x}");
        }
        for code in [0x90, 0x99] {
            assert!(matches!(of(code), Outcome::Permanent(_)), "{code:x}");
        }
    }

    #[test]
    fn an_old_broker_is_told_from_one_that_does_not_know_us() {
        assert_eq!(refused(Version::V5, 0x84, None).kind, ErrorKind::Unsupported);
        assert_eq!(refused(Version::V5, 0x86, None).kind, ErrorKind::Denied);
        assert_eq!(refused(Version::V311, 5, None).kind, ErrorKind::Denied);
        assert_eq!(refused(Version::V311, 3, None).kind, ErrorKind::Unreachable);
    }
}
