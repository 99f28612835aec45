//! What the client's and the brokers' errors mean.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use sendoff::{ErrorKind, Outcome, Reason};
use sendoff_wire::Refusal;

/// What became of a message, by its delivery report.
pub(crate) fn report(error: &KafkaError, topic: &str) -> Outcome {
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
        // Sent, perhaps more than once, and never confirmed; or confirmed by some replicas only.
        Code::MessageTimedOut | Code::RequestTimedOut | Code::NotEnoughReplicasAfterAppend | Code::PurgeInflight => {
            outcome(Outcome::Unknown, "check the brokers and the leader of the partition")
        }
        // The client has tried again as long as it may; whether one of the tries was stored cannot be told.
        _ => outcome(Outcome::Unknown, "see the logs of the brokers"),
    }
}

/// Whether a producer that reported this has to be replaced.
pub(crate) fn ends_the_producer(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::Fatal
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
pub(crate) fn refusal(error: &KafkaError, said: Option<&str>) -> Refusal {
    let (kind, next) = match error.rdkafka_error_code() {
        Some(Code::Authentication | Code::SaslAuthenticationFailed | Code::UnsupportedSASLMechanism) => {
            (ErrorKind::Denied, "check the user, the password and the mechanism")
        }
        Some(Code::SSL) => (
            ErrorKind::Denied,
            "check the tls settings and the brokers' certificates",
        ),
        _ if said.is_some_and(|said| said.to_lowercase().contains("authentication")) => {
            (ErrorKind::Denied, "check the user, the password and the mechanism")
        }
        _ => (
            ErrorKind::Unreachable,
            "check the brokers of the sink, that they run, and the firewall between",
        ),
    };
    let said = said.map(|said| format!("; {said}")).unwrap_or_default();
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
        report(&KafkaError::MessageProduction(code), "orders")
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
}
