//! What the client's and the brokers' errors mean.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::Refusal;

use crate::health::Trouble;

/// What became of a message, by its delivery report. One that took too long is explained by the trouble of the client.
pub(crate) fn report(error: &KafkaError, topic: &str, trouble: Option<&Trouble>) -> Outcome {
    let Some(code) = error.rdkafka_error_code() else {
        return Outcome::Unknown(format!("Kafka did not confirm the message: {error}").into());
    };
    let outcome = |kind: fn(Reason) -> Outcome, next: &str| {
        kind(format!("Kafka did not take the message for {topic}: {code} ({next})").into())
    };
    match code {
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
            outcome(Outcome::Permanent, "create the topic, then retry the message")
        }
        Code::InvalidTopic => outcome(Outcome::Permanent, "change the topic template of the sink"),
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize => outcome(
            Outcome::Permanent,
            "raise max.message.bytes of the topic and max_message_bytes of the sink, or send less",
        ),
        Code::InvalidRecord | Code::PolicyViolation | Code::InvalidTimestamp => outcome(
            Outcome::Permanent,
            "see the rules of the topic: keys, timestamps, schemas",
        ),
        Code::TopicAuthorizationFailed => outcome(Outcome::Temporary, "let our user write to the topic"),
        Code::NotEnoughReplicas | Code::ISRInsufficient => {
            outcome(Outcome::Temporary, "bring the missing replicas back")
        }
        Code::ThrottlingQuotaExceeded => outcome(Outcome::Temporary, "raise the quota"),
        Code::KafkaStorageError => outcome(Outcome::Temporary, "check the disks of the brokers"),
        Code::ClusterAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SSL => outcome(Outcome::SinkDown, "check the user, the password and the tls settings"),
        Code::QueueFull | Code::PurgeQueue => {
            outcome(Outcome::SinkDown, "it was not sent; the brokers are slow or gone")
        }
        // Sent, perhaps more than once, and never confirmed; or never sent, which cannot be told from it.
        Code::MessageTimedOut => {
            let said = trouble
                .map(|trouble| format!("; {}", trouble.reason))
                .unwrap_or_default();
            let next = "check the brokers and the leader of the partition";
            Outcome::Unknown(format!("Kafka did not confirm the message for {topic}: {code}{said} ({next})").into())
        }
        Code::RequestTimedOut | Code::NotEnoughReplicasAfterAppend | Code::PurgeInflight => {
            outcome(Outcome::Unknown, "check the brokers and the leader of the partition")
        }
        // The client has tried again as long as it may; whether one of the tries was stored cannot be told.
        _ => outcome(Outcome::Unknown, "see the logs of the brokers"),
    }
}

/// Whether it is the topic that is missing or refused, whatever the record is like.
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

/// What it means for the sink if all messages have this topic.
pub(crate) fn of_the_sink(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Permanent(reason) | Outcome::Temporary(reason) => Outcome::SinkDown(reason),
        outcome => outcome,
    }
}

/// Whether brokers say so about all records that were written together, of which one may be the cause: a batch that is larger than
/// the topic allows although each record would fit, or that has one record which the topic does not take.
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

/// Whether a producer that reported this has to be replaced.
pub(crate) fn ends_the_producer(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            // To go on after it, the client needs the next epoch of its producer id, which some brokers that speak Kafka
            // cannot give; a new producer needs nothing that the first one did not.
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
    let next = "change the message's topic or the topic template of the sink";
    Outcome::Permanent(format!("the Kafka topic {shown:?}{dots} cannot be used: {why} ({next})").into())
}

pub(crate) fn too_large(size: usize, limit: usize) -> Outcome {
    let next = "raise max_message_bytes of the sink and max.message.bytes of the topic, or send a reference";
    Outcome::Permanent(
        format!("the message makes a record of up to {size} bytes, and {limit} are allowed ({next})").into(),
    )
}

pub(crate) fn unanswered() -> Outcome {
    Outcome::Unknown("Kafka did not confirm the message in time (check the brokers)".into())
}

pub(crate) fn unsent(error: &KafkaError) -> Outcome {
    Outcome::SinkDown(format!("the message was not handed to Kafka's client: {error}").into())
}

/// Why the cluster cannot be used.
pub(crate) fn refusal(error: &KafkaError, trouble: Option<&Trouble>) -> Refusal {
    let code = trouble
        .and_then(|trouble| trouble.code)
        .or_else(|| error.rdkafka_error_code());
    let (kind, next) = match code {
        Some(Code::Authentication | Code::SaslAuthenticationFailed | Code::UnsupportedSASLMechanism) => {
            (ErrorKind::Denied, "check the user, the password and the mechanism")
        }
        // The client does not tell one from the other.
        Some(Code::SSL) => (
            ErrorKind::Denied,
            "set tls.ca_file to the authority of the brokers' certificates, and let the brokers be named, here and by \
             themselves (advertised.listeners), with host names that these are for",
        ),
        _ => (
            ErrorKind::Unreachable,
            "check the brokers of the sink, that they run, the firewall between, and whether they want tls or not",
        ),
    };
    let said = trouble
        .map(|trouble| format!("; {}", trouble.reason))
        .unwrap_or_default();
    Refusal {
        kind,
        what: "Kafka cannot be used".to_owned(),
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
            refusal(&down, Some(&Trouble { code, reason }))
        };
        for (code, kind, word) in [
            (Code::SSL, ErrorKind::Denied, "tls.ca_file"),
            (Code::Authentication, ErrorKind::Denied, "the password"),
            (Code::BrokerTransportFailure, ErrorKind::Unreachable, "that they run"),
        ] {
            let refusal = of(code);
            assert_eq!(refusal.kind, kind, "{code}");
            assert!(
                refusal.next.contains(word) && refusal.why.contains("as it says"),
                "{refusal:?}"
            );
        }
        assert_eq!(refusal(&down, None).kind, ErrorKind::Unreachable);
    }
}
