//! Maps the broker's codes and connection failures to outcomes.

use std::io;

use mqtt_protocol_core::mqtt::result_code::MqttError;
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::{Address, Refusal};

use crate::Version;
use crate::batch::End;
use crate::packet::Ack;
use crate::stream::Broken;

/// The outcome of a message, from the code of its confirmation.
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
        // 0x10: no subscribers. The broker accepted the message.
        0x00 | 0x10 => Outcome::Delivered,
        0x87 => refused(
            Outcome::Temporary,
            "not authorized",
            "allow the sink's user to publish to this topic",
        ),
        0x90 => refused(
            Outcome::Permanent,
            "topic name invalid",
            "change `topic` of the sink, then retry the message",
        ),
        0x97 => refused(
            Outcome::Temporary,
            "quota exceeded",
            "raise the quota on the broker, or consume faster",
        ),
        0x99 => refused(
            Outcome::Permanent,
            "payload format invalid",
            "change `format` of the sink, or the content type of the message",
        ),
        0x91 => refused(Outcome::Temporary, "packet identifier in use", "see the broker's log"),
        0x83 => refused(
            Outcome::Temporary,
            "implementation specific error",
            "see the broker's log",
        ),
        0x80 => refused(Outcome::Temporary, "unspecified error", "see the broker's log"),
        _ => refused(Outcome::Temporary, "unknown reason code", "see the broker's log"),
    }
}

/// The broker confirmed the first half of QoS 2 and refused the second.
pub(crate) fn half_confirmed(ack: &Ack) -> Outcome {
    let code = ack.code;
    let next = "see the broker's log; the message is sent again";
    Outcome::Unknown(
        format!("the MQTT broker accepted the message and then lost it (code 0x{code:02X}; {next})").into(),
    )
}

pub(crate) fn bad_topic(topic: &str, why: &str) -> Outcome {
    let shown: String = topic.chars().take(100).collect();
    let dots = if shown.len() < topic.len() { "…" } else { "" };
    let next = "change the message's topic, or `topic` of the sink";
    Outcome::Permanent(format!("the MQTT topic {shown:?}{dots} cannot be used: {why} ({next})").into())
}

pub(crate) fn header_too_long(size: usize) -> Outcome {
    let next = "emit a shorter header, or use `format = \"envelope\"` of the sink";
    Outcome::Permanent(format!("a header of the message has {size} bytes, and MQTT allows 65535 ({next})").into())
}

/// The protocol cannot carry the message, although the checks passed.
pub(crate) fn unwritable(error: MqttError) -> Outcome {
    Outcome::Permanent(
        format!("the message cannot be encoded as MQTT: {error} (emit it with another topic or other headers)").into(),
    )
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise the broker's packet limit, then retry the message, or send a reference";
    Outcome::Permanent(
        format!("the message needs a packet of {size} bytes, and the broker accepts {limit} ({next})").into(),
    )
}

pub(crate) fn unconfirmed(at: &Address) -> Outcome {
    let next = "check the broker; the message is sent again";
    Outcome::Unknown(format!("the MQTT broker at {at} did not confirm the message in time ({next})").into())
}

pub(crate) fn stuck(at: &Address) -> Outcome {
    let what = format!("not sent: the MQTT broker at {at} did not confirm earlier messages in time");
    Outcome::SinkDown(format!("{what} (check the broker)").into())
}

/// The connection broke after the message was sent.
pub(crate) fn lost(at: &Address, end: &End) -> Outcome {
    let why = why(end);
    let what = format!("the connection to the MQTT broker at {at} broke before the message was confirmed");
    Outcome::Unknown(format!("{what}: {why} (see the broker's log; the message is sent again)").into())
}

/// The connection broke before the message was sent.
pub(crate) fn unsent(at: &Address, end: &End) -> Outcome {
    let why = why(end);
    let what = format!("the connection to the MQTT broker at {at} broke before the message was sent");
    Outcome::SinkDown(format!("{what}: {why} (see the broker's log)").into())
}

/// New connections break immediately.
pub(crate) fn unsteady(at: &Address) -> Outcome {
    let next = "see the broker's log; if client_id is set, make sure that only one relay uses it";
    Outcome::SinkDown(format!("the MQTT broker at {at} closes new connections immediately ({next})").into())
}

fn why(end: &End) -> String {
    match end {
        End::Broken(broken) => self::broken(broken),
        End::Nonsense => "the broker sent an unexpected packet".to_owned(),
        End::Said(code, reason) => {
            let meaning = match code {
                0x81 | 0x82 => "the broker could not parse a packet",
                0x87 => "not authorized",
                0x89 => "the broker is busy",
                0x8B => "the broker is shutting down",
                0x8E => "another client uses the same client_id",
                0x93 => "too many unconfirmed messages",
                0x95 => "a packet was too large",
                0x97 => "the quota is exceeded",
                0x98 => "an administrator closed it",
                0x9D => "the broker has moved to another server",
                _ => "the broker closed it",
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
        Broken::Malformed => "the broker's answer is not MQTT".to_owned(),
    }
}

fn refusal(at: &Address, kind: ErrorKind, why: impl Into<String>, next: &str) -> Refusal {
    Refusal {
        kind,
        what: format!("cannot use the MQTT broker at {at}"),
        why: why.into(),
        next: next.to_owned(),
    }
}

pub(crate) fn unreachable(at: &Address, error: &io::Error) -> Refusal {
    let next = "check that the broker is running, that `url` of the sink is correct, and the firewall";
    refusal(at, ErrorKind::Unreachable, error.to_string(), next)
}

pub(crate) fn bad_host(at: &Address) -> Refusal {
    refusal(
        at,
        ErrorKind::Invalid,
        "its host name cannot be verified with TLS",
        "correct `url` of the sink",
    )
}

pub(crate) fn tls(at: &Address, error: &io::Error) -> Refusal {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => refusal(
            at,
            ErrorKind::Denied,
            error.to_string(),
            "use a broker certificate for this host name by a CA in tls.ca_file",
        ),
        Some(rustls::Error::AlertReceived(_)) => refusal(
            at,
            ErrorKind::Denied,
            error.to_string(),
            "see the broker's log; it may require a client certificate: tls.cert_file",
        ),
        Some(_) => refusal(
            at,
            ErrorKind::Invalid,
            error.to_string(),
            "check that the broker has TLS on this port",
        ),
        None => refusal(
            at,
            ErrorKind::Unreachable,
            error.to_string(),
            "check that the broker has TLS on this port",
        ),
    }
}

/// The connection ended before the broker answered CONNECT.
pub(crate) fn turned_away(at: &Address, end: &Broken) -> Refusal {
    let next = "see the broker's log; it may require mqtts:// or version = \"3.1.1\"";
    match end {
        Broken::Malformed => refusal(
            at,
            ErrorKind::Invalid,
            broken(end),
            "check the port in `url` of the sink",
        ),
        Broken::Closed | Broken::Io(_) => refusal(at, ErrorKind::Unreachable, broken(end), next),
    }
}

pub(crate) fn not_mqtt(at: &Address) -> Refusal {
    refusal(
        at,
        ErrorKind::Invalid,
        "its first packet is not a CONNACK",
        "check the port in `url` of the sink",
    )
}

pub(crate) fn qos_too_high(at: &Address, level: u8) -> Refusal {
    refusal(
        at,
        ErrorKind::Unsupported,
        format!("it does not support QoS {level}"),
        "use qos = 1, or another broker",
    )
}

pub(crate) fn no_retain(at: &Address) -> Refusal {
    refusal(
        at,
        ErrorKind::Unsupported,
        "it does not retain messages",
        "remove retain from the sink",
    )
}

/// The broker refused CONNECT.
pub(crate) fn refused(at: &Address, version: Version, code: u8, reason: Option<&str>) -> Refusal {
    let log_in = "check `user` and `password` of the sink";
    let old = "use `version = \"3.1.1\"` of the sink";
    let (kind, why, next) = match (version, code) {
        (Version::V5, 0x84 | 0x01) | (Version::V311, 1) => {
            (ErrorKind::Unsupported, "unsupported protocol version", old)
        }
        (Version::V5, 0x85) | (Version::V311, 2) => (
            ErrorKind::Invalid,
            "client identifier not valid",
            "change `client_id` of the sink",
        ),
        (Version::V5, 0x86) | (Version::V311, 4) => (ErrorKind::Denied, "bad user name or password", log_in),
        (Version::V5, 0x87) | (Version::V311, 5) => (ErrorKind::Denied, "not authorized", log_in),
        (Version::V5, 0x8A) => (ErrorKind::Denied, "banned", "ask the administrator of the broker"),
        (Version::V5, 0x8C) => (ErrorKind::Denied, "bad authentication method", log_in),
        (Version::V5, 0x88 | 0x89 | 0x97 | 0x9F) | (Version::V311, 3) => {
            (ErrorKind::Unreachable, "unavailable or busy", "see the broker's log")
        }
        (Version::V5, 0x9C | 0x9D) => (ErrorKind::Backend, "use another server", "change `url` of the sink"),
        (Version::V5 | Version::V311, _) => (
            ErrorKind::Backend,
            "the broker refused the connection",
            "see the log of the broker",
        ),
    };
    let told = reason.map(|reason| format!(", {reason:?}")).unwrap_or_default();
    refusal(at, kind, format!("{why}{told} (code 0x{code:02X})"), next)
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
        let at = Address::parse("mqtt://broker").unwrap();
        assert_eq!(refused(&at, Version::V5, 0x84, None).kind, ErrorKind::Unsupported);
        assert_eq!(refused(&at, Version::V5, 0x86, None).kind, ErrorKind::Denied);
        assert_eq!(refused(&at, Version::V311, 5, None).kind, ErrorKind::Denied);
        assert_eq!(refused(&at, Version::V311, 3, None).kind, ErrorKind::Unreachable);
    }
}
