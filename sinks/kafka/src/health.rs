//! What the client says about the cluster beside its delivery reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Learns when no broker can be reached, and what the last trouble was.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Whether the cluster has to be asked for a sign of life before more is handed over.
    doubtful: AtomicBool,
    /// Whether the producer can do nothing any more.
    fatal: AtomicBool,
    said: Mutex<Option<String>>,
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
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.fatal.load(Relaxed)
    }

    pub(crate) fn end(&self) {
        self.fatal.store(true, Relaxed);
    }

    /// The last trouble, in the client's words.
    pub(crate) fn said(&self) -> Option<String> {
        self.said.lock().map_or(None, |said| said.clone())
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
        // "All brokers are down" follows what was wrong with each; that is the better reason.
        if error.rdkafka_error_code() != Some(Code::AllBrokersDown)
            && let Ok(mut said) = self.said.lock()
        {
            *said = Some(reason.to_owned());
        }
    }
}
