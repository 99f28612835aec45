//! Captured rows of `django-celery-outbox`.

use jiff::Timestamp;
use sendoff::{Headers, Message, Uuid};
use sendoff_sink_celery::CeleryConfig;
use sendoff_sink_celery::config::{ExchangeType, QueueType};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::stored;

#[derive(Deserialize)]
pub(crate) struct Rows {
    pub(crate) vector: String,
    pub(crate) broker: String,
    pub(crate) variant: Option<String>,
    pub(crate) outbox_rows: Vec<Row>,
}

/// The columns of the message. Raw, because the order of keys counts.
#[derive(Deserialize)]
pub(crate) struct Row {
    task_id: String,
    task_name: String,
    args: Box<RawValue>,
    kwargs: Box<RawValue>,
    pub(crate) options: Box<RawValue>,
    sentry_trace_id: Option<String>,
    sentry_baggage: Option<String>,
}

impl Row {
    /// The message of the row, without the retry options of a Python producer.
    pub(crate) fn message(&self) -> Message {
        let options = self
            .options
            .get()
            .replace("\"retry\": true, ", "")
            .replace("\"retry\": false, ", "");
        let (args, kwargs) = (self.args.get(), self.kwargs.get());
        let payload = format!(r#"{{"args":{args},"kwargs":{kwargs},"options":{options}}}"#);
        let mut headers = Headers::new();
        for (name, value) in [
            ("sentry-trace", &self.sentry_trace_id),
            ("baggage", &self.sentry_baggage),
        ] {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                headers.insert(name, value);
            }
        }
        stored(
            Uuid::parse_str(&self.task_id).unwrap(),
            &self.task_name,
            payload,
            headers,
        )
    }

    pub(crate) fn eta(&self) -> Option<Timestamp> {
        let options: Value = serde_json::from_str(self.options.get()).unwrap();
        options["eta"].as_str().and_then(|eta| eta.parse().ok())
    }
}

/// The settings of the captured application.
pub(crate) fn config(variant: Option<&str>, origin: &str) -> CeleryConfig {
    let mut config: CeleryConfig = toml::from_str(
        r#"
        [[routes]]
        task = "demo.routed"
        queue = "routed_q"
        [[routes]]
        task = "demo.glob.*"
        queue = "glob_q"
        "#,
    )
    .unwrap();
    config.origin = Some(origin.to_owned());
    match variant {
        Some("maxpri10") => config.queue_max_priority = Some(10),
        Some("quorum") => {
            config.default_queue = "qcelery".to_owned();
            config.default_exchange_type = ExchangeType::Topic;
            config.default_queue_type = QueueType::Quorum;
            config.create_missing_queue_type = QueueType::Quorum;
            config.create_missing_queue_exchange_type = Some(ExchangeType::Topic);
        }
        _ => {}
    }
    config
}
