//! Messages to publish, and a sink to publish them with.

use std::sync::Arc;

use sendoff::{Outcome, Outgoing, Sink};
use sendoff_sink_http::{Endpoint, HttpConfig, HttpSink};
use sendoff_testkit::outgoing;

/// A payload, which no error may show.
pub(crate) const PAYLOAD: &str = r#"{"card":"4111-hunter2"}"#;

pub(crate) fn plain(payload: &str) -> Outgoing {
    outgoing("order.placed", payload.to_owned())
}

pub(crate) fn message() -> Arc<Outgoing> {
    Arc::new(plain(PAYLOAD))
}

pub(crate) fn messages(count: usize) -> Vec<Arc<Outgoing>> {
    (0..count).map(|_| message()).collect()
}

/// Settings that allow connections to this machine.
pub(crate) fn config(url: &str) -> HttpConfig {
    let mut config = HttpConfig::new(Endpoint::parse(url).unwrap());
    config.allow_private = vec!["127.0.0.0/8".parse().unwrap()];
    config
}

pub(crate) fn sink(url: &str) -> HttpSink {
    HttpSink::new(config(url)).unwrap()
}

/// The outcome of one message.
pub(crate) async fn publish(sink: &HttpSink, message: Outgoing) -> Outcome {
    let mut outcomes = sink.publish(&[Arc::new(message)]).await;
    assert_eq!(outcomes.len(), 1);
    outcomes.pop().unwrap()
}

/// The kind of an outcome, and its text, which must never show the payload.
#[track_caller]
pub(crate) fn told(outcome: &Outcome) -> (&'static str, String) {
    let (kind, text) = match outcome {
        Outcome::Delivered => ("delivered", String::new()),
        Outcome::Temporary(reason) => ("temporary", reason.text().to_owned()),
        Outcome::Permanent(reason) => ("permanent", reason.text().to_owned()),
        Outcome::Unknown(reason) => ("unknown", reason.text().to_owned()),
        Outcome::SinkDown(reason) => ("down", reason.text().to_owned()),
        Outcome::NotYet(reason) => ("not yet", reason.text().to_owned()),
    };
    assert!(!text.contains("hunter2"), "{text}");
    (kind, text)
}

#[track_caller]
pub(crate) fn expect(outcome: &Outcome, kind: &str, words: &[&str]) {
    let (found, text) = told(outcome);
    assert_eq!(found, kind, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} in {text:?}");
    }
}
