//! Maps errors of the client and the brokers to outcomes.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::Refusal;

use crate::health::Trouble;

/// The outcome of a message, from its delivery report. The last error of the client explains a timeout.
pub(crate) fn report(error: &KafkaError, topic: &str, trouble: Option<&Trouble>) -> Outcome {
    let Some(code) = error.rdkafka_error_code() else {
        return Outcome::Unknown(
            format!("Kafka did not confirm the message for the topic {topic}: {error} (see the brokers' logs)").into(),
        );
    };
    let outcome = |kind: fn(Reason) -> Outcome, next: &str| {
        kind(format!("Kafka did not accept the message for the topic {topic}: {code} ({next})").into())
    };
    match code {
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
            outcome(Outcome::Permanent, "create the topic, then retry the message")
        }
        Code::InvalidTopic => outcome(Outcome::Permanent, "change `topic` of the sink"),
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize => outcome(
            Outcome::Permanent,
            "raise max.message.bytes of the topic and `max_message_bytes` of the sink, then retry the message",
        ),
        Code::InvalidRecord | Code::PolicyViolation | Code::InvalidTimestamp => outcome(
            Outcome::Permanent,
            "check the topic's rules for keys, timestamps and schemas",
        ),
        Code::TopicAuthorizationFailed => outcome(Outcome::Temporary, "allow the sink's user to write to the topic"),
        Code::NotEnoughReplicas | Code::ISRInsufficient => outcome(Outcome::Temporary, "restore the missing replicas"),
        Code::ThrottlingQuotaExceeded => outcome(Outcome::Temporary, "raise the quota of the sink's user"),
        Code::KafkaStorageError => outcome(Outcome::Temporary, "check the disks of the brokers"),
        Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SSL => outcome(Outcome::SinkDown, "check `user`, `password` and `tls` of the sink"),
        Code::QueueFull | Code::PurgeQueue => outcome(
            Outcome::SinkDown,
            "the message was not sent; check that the brokers are running and not overloaded",
        ),
        // The message was sent and not confirmed, or never sent; the client does not distinguish the two.
        Code::MessageTimedOut => {
            let said = trouble
                .map(|trouble| format!("; {}", trouble.reason))
                .unwrap_or_default();
            let next = "check the brokers and the leader of the partition";
            Outcome::Unknown(
                format!("Kafka did not confirm the message for the topic {topic}: {code}{said} ({next})").into(),
            )
        }
        Code::RequestTimedOut | Code::NotEnoughReplicasAfterAppend | Code::PurgeInflight => {
            outcome(Outcome::Unknown, "check the brokers and the leader of the partition")
        }
        // The client has used up its attempts; whether one of them was stored is unknown.
        _ => outcome(Outcome::Unknown, "see the brokers' logs"),
    }
}

/// Whether the topic is missing or refused, independent of the record.
pub(crate) fn is_about_the_topic(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::UnknownTopic
                | Code::UnknownTopicOrPartition
                | Code::UnknownPartition
                | Code::InvalidTopic
                | Code::TopicAuthorizationFailed
        )
    )
}

/// The outcome if all messages of the sink have this topic.
pub(crate) fn of_the_sink(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Permanent(reason) | Outcome::Temporary(reason) => Outcome::SinkDown(reason),
        outcome => outcome,
    }
}

/// Whether the error is about all records of one request, of which a single one may be the cause: a batch that is
/// larger than the topic allows although each record is not, or a batch with one record that the topic refuses.
pub(crate) fn is_of_a_whole_batch(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::MessageSizeTooLarge
                | Code::MessageBatchTooLarge
                | Code::InvalidMessageSize
                | Code::InvalidMessage
                | Code::InvalidRecord
                | Code::InvalidTimestamp
                | Code::PolicyViolation
        )
    )
}

/// Whether a producer with this error must be replaced.
pub(crate) fn ends_the_producer(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            // To continue, the client needs the next epoch of its producer id, which some Kafka-compatible brokers
            // cannot give; a new producer needs nothing more than the first one did.
            Code::MessageTimedOut
                | Code::Fatal
                | Code::OutOfOrderSequenceNumber
                | Code::InvalidProducerEpoch
                | Code::InvalidProducerIdMapping
                | Code::UnknownProducerId
                | Code::ProducerFenced
                | Code::Fenced
                | Code::GaplessGuarantee
                | Code::DestroyBroker
        )
    )
}

pub(crate) fn bad_topic(topic: &str, why: &str) -> Outcome {
    let shown: String = topic.chars().take(100).collect();
    let dots = if shown.len() < topic.len() { "…" } else { "" };
    let next = "change the message's topic, or `topic` of the sink";
    Outcome::Permanent(format!("the Kafka topic {shown:?}{dots} cannot be used: {why} ({next})").into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise `max_message_bytes` of the sink and max.message.bytes of the topic, then retry the message, or \
                send a reference";
    Outcome::Permanent(
        format!("the message needs a record of up to {size} bytes, and {limit} are allowed ({next})").into(),
    )
}

pub(crate) fn unanswered(topic: &str) -> Outcome {
    let next = "check the brokers; the message is sent again";
    Outcome::Unknown(format!("Kafka did not confirm the message for the topic {topic} in time ({next})").into())
}

pub(crate) fn unsent(error: &KafkaError, topic: &str) -> Outcome {
    let next = "check the settings of the sink and the brokers' logs";
    Outcome::SinkDown(format!("the message for the topic {topic} was not sent: {error} ({next})").into())
}

/// Why the cluster cannot be used. `at` is the list of brokers.
pub(crate) fn refusal(at: &str, error: &KafkaError, trouble: Option<&Trouble>) -> Refusal {
    let code = trouble
        .and_then(|trouble| trouble.code)
        .or_else(|| error.rdkafka_error_code());
    let (kind, next) = match code {
        Some(Code::Authentication | Code::SaslAuthenticationFailed | Code::UnsupportedSASLMechanism) => (
            ErrorKind::Denied,
            "check `user`, `password` and `mechanism` of the sink",
        ),
        // The client does not distinguish an unknown CA from a wrong host name.
        Some(Code::SSL) => (
            ErrorKind::Denied,
            "set `tls.ca_file` of the sink to the CA of the brokers' certificates; `brokers` of the sink and \
             advertised.listeners of the brokers must use host names that are in these certificates",
        ),
        _ => (
            ErrorKind::Unreachable,
            "check that the brokers run; check `brokers` of the sink, the firewall, and whether the brokers require TLS",
        ),
    };
    let said = trouble
        .map(|trouble| format!("; {}", trouble.reason))
        .unwrap_or_default();
    Refusal {
        kind,
        what: format!("cannot use Kafka at {at}"),
        why: format!("{error}{said}"),
        next: next.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: Code) -> Outcome {
        report(&KafkaError::MessageProduction(code), "orders", None)
    }

    #[test]
    fn codes_decide_what_becomes_of_a_message() {
        for code in [Code::UnknownTopic, Code::MessageSizeTooLarge, Code::InvalidRecord] {
            assert!(matches!(of(code), Outcome::Permanent(_)), "{code}");
        }
        for code in [Code::TopicAuthorizationFailed, Code::NotEnoughReplicas] {
            assert!(matches!(of(code), Outcome::Temporary(_)), "{code}");
        }
        for code in [Code::ClusterAuthorizationFailed, Code::QueueFull] {
            assert!(matches!(of(code), Outcome::SinkDown(_)), "{code}");
        }
        for code in [
            Code::MessageTimedOut,
            Code::NotEnoughReplicasAfterAppend,
            Code::Fatal,
            Code::NetworkException,
        ] {
            assert!(matches!(of(code), Outcome::Unknown(_)), "{code}");
        }
    }

    #[test]
    fn a_producer_that_has_given_up_a_message_on_its_way_is_replaced() {
        let ends = |code| ends_the_producer(&KafkaError::MessageProduction(code));
        assert!(ends(Code::MessageTimedOut) && ends(Code::Fatal));
        assert!(!ends(Code::MessageSizeTooLarge) && !ends(Code::QueueFull));
    }

    #[test]
    fn what_the_client_complains_of_decides_the_advice() {
        let down = KafkaError::MetadataFetch(Code::BrokerTransportFailure);
        let of = |code| {
            let reason = "as it says".to_owned();
            let code = Some(code);
            refusal("a:9092", &down, Some(&Trouble { code, reason }))
        };
        for (code, kind, word) in [
            (Code::SSL, ErrorKind::Denied, "tls.ca_file"),
            (Code::Authentication, ErrorKind::Denied, "password"),
            (
                Code::BrokerTransportFailure,
                ErrorKind::Unreachable,
                "that the brokers run",
            ),
        ] {
            let refusal = of(code);
            assert_eq!(refusal.kind, kind, "{code}");
            assert!(
                refusal.next.contains(word) && refusal.why.contains("as it says"),
                "{refusal:?}"
            );
        }
        assert_eq!(refusal("a:9092", &down, None).kind, ErrorKind::Unreachable);
    }
}
