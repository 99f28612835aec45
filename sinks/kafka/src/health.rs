//! Errors that the client reports in addition to delivery reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Notes whether brokers are reachable, and the last error.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Whether the cluster must answer a request before more messages are sent.
    doubtful: AtomicBool,
    /// Whether the producer cannot be used again.
    fatal: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
}

/// An error of the client.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) code: Option<Code>,
    pub(crate) reason: String,
}

impl Trouble {
    /// Whether a broker was reached, and one side refused the other.
    fn is_refusal(&self) -> bool {
        matches!(self.code, Some(Code::Authentication | Code::SSL))
    }
}

impl Health {
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Relaxed)
    }

    pub(crate) fn doubt(&self) {
        self.doubtful.store(true, Relaxed);
    }

    pub(crate) fn trust(&self) {
        self.doubtful.store(false, Relaxed);
        if let Ok(mut trouble) = self.trouble.lock() {
            *trouble = None;
        }
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.fatal.load(Relaxed)
    }

    pub(crate) fn end(&self) {
        self.fatal.store(true, Relaxed);
    }

    /// The last error since the cluster answered.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().map_or(None, |trouble| trouble.clone())
    }
}

impl ClientContext for Health {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(event = "librdkafka", facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(event = "librdkafka", %error, reason, "librdkafka");
        match error.rdkafka_error_code() {
            Some(Code::AllBrokersDown | Code::Authentication | Code::SSL) => self.doubt(),
            Some(Code::Fatal) => self.end(),
            _ => {}
        }
        let code = error.rdkafka_error_code();
        // "All brokers are down" follows the error of each broker, which is the better reason.
        if code != Some(Code::AllBrokersDown)
            && let Ok(mut trouble) = self.trouble.lock()
        {
            let reason = reason.to_owned();
            let new = Trouble { code, reason };
            // A host with several addresses may refuse the connection at one and be unreachable at the others.
            if new.is_refusal() || !trouble.as_ref().is_some_and(Trouble::is_refusal) {
                *trouble = Some(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_until_there_is_a_sign_of_life() {
        let health = Health::default();
        let reasons = || health.trouble().map(|trouble| trouble.reason);
        health.error(KafkaError::Global(Code::BrokerTransportFailure), "no way to ::1");
        assert_eq!(reasons().as_deref(), Some("no way to ::1"));
        health.error(KafkaError::Global(Code::SSL), "not the host that I meant");
        health.error(KafkaError::Global(Code::BrokerTransportFailure), "no way to ::1");
        health.error(KafkaError::Global(Code::AllBrokersDown), "1/1 brokers are down");
        assert_eq!(reasons().as_deref(), Some("not the host that I meant"));
        assert!(health.is_doubtful());
        health.trust();
        assert_eq!((reasons(), health.is_doubtful()), (None, false));
    }
}
