//! Publishing, checking, closing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::producer::FutureRecord;
use rdkafka::producer::future_producer::DeliveryFuture;
use sendoff::sink::Limits;
use sendoff::{Delivery, Error, ErrorKind, Outcome, Result, Sink};
use sendoff_wire::Line;
use tokio::time::{Instant, timeout, timeout_at};

use crate::encode::{Outgoing, encode};
use crate::producer::{Dialer, Producer};
use crate::{KafkaConfig, error};

/// How much longer than the client we wait for its delivery report, which it makes about once a second.
const GRACE: Duration = Duration::from_secs(2);

/// How long a batch waits for the end of a producer that it has given up.
const FAREWELL: Duration = Duration::from_secs(2);

/// The sink.
pub struct KafkaSink {
    config: Arc<KafkaConfig>,
    line: Line<Dialer>,
}

impl KafkaSink {
    /// Sets it up. The brokers are asked for by the first batch, or by [`Sink::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a value of the settings cannot be used, [`ErrorKind::Unsupported`] for encryption that
    /// was not built in.
    pub fn new(config: KafkaConfig) -> Result<Self> {
        config.validate()?;
        let config = Arc::new(config);
        // The client's own limit comes first, with a better reason.
        let line = Line::new(
            Dialer(Arc::clone(&config)),
            config.connect_timeout + Duration::from_millis(500),
        );
        Ok(Self { config, line })
    }
}

/// Where a message is on its way.
enum Fate {
    Decided(Outcome),
    Waiting(String, DeliveryFuture),
}

fn hand_over(producer: &Producer, outgoing: &Outgoing<'_>) -> Fate {
    let record = FutureRecord::to(&outgoing.topic)
        .payload(&outgoing.encoded.body[..])
        .headers(outgoing.headers());
    let record = match &outgoing.key {
        Some(key) => record.key(key.as_str()),
        None => record,
    };
    match producer.client().send_result(record) {
        Ok(report) => Fate::Waiting(outgoing.topic.clone(), report),
        Err((refused, _)) => Fate::Decided(match error::report(&refused, &outgoing.topic, None) {
            // It never left this process.
            Outcome::Unknown(_) => error::unsent(&refused),
            outcome => outcome,
        }),
    }
}

async fn settle(producer: &Producer, topic: &str, report: DeliveryFuture, deadline: Instant) -> Outcome {
    let outcome = match timeout_at(deadline, report).await {
        Ok(Ok(Ok(_))) => return Outcome::Delivered,
        Ok(Ok(Err((refused, _)))) => {
            if error::ends_the_producer(&refused) {
                producer.health.end();
            }
            error::report(&refused, topic, producer.health.trouble().as_ref())
        }
        Ok(Err(_)) | Err(_) => {
            producer.health.end();
            error::unanswered()
        }
    };
    if let Outcome::Unknown(_) | Outcome::SinkDown(_) = outcome {
        producer.health.doubt();
    }
    outcome
}

#[async_trait]
impl Sink for KafkaSink {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        let producer = match self.line.get().await {
            Ok(producer) => producer,
            Err(refusal) => return vec![refusal.outcome(); batch.len()],
        };
        // The client would take the messages and sit on them.
        if producer.health.is_doubtful()
            && let Err(refusal) = producer.sign_of_life(self.config.connect_timeout, None).await
        {
            return vec![refusal.outcome(); batch.len()];
        }
        let hand_over = |delivery: &Arc<Delivery>| match encode(&self.config, delivery) {
            Ok(outgoing) => hand_over(&producer, &outgoing),
            Err(outcome) => Fate::Decided(outcome),
        };
        let fates: Vec<Fate> = batch.iter().map(hand_over).collect();
        let deadline = Instant::now() + self.config.ack_timeout + GRACE;
        let mut outcomes = Vec::with_capacity(batch.len());
        for fate in fates {
            outcomes.push(match fate {
                Fate::Decided(outcome) => outcome,
                Fate::Waiting(topic, report) => settle(&producer, &topic, report, deadline).await,
            });
        }
        if producer.health.is_fatal() {
            // What it might still send would come after the relay's next try.
            let farewell = async {
                self.line.forget(&producer).await;
                producer.end().await;
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
        outcomes
    }

    fn limits(&self) -> Limits {
        let config = &self.config;
        Limits {
            batch: None,
            timeout: Some(config.connect_timeout + config.ack_timeout + GRACE + FAREWELL + Duration::from_secs(2)),
        }
    }

    async fn check(&self) -> Result<()> {
        let producer = self.line.get().await.map_err(Error::from)?;
        let topic = self.config.topic.as_fixed().map(str::to_owned);
        let found = producer
            .sign_of_life(self.config.connect_timeout, topic.clone())
            .await?;
        match topic {
            Some(topic) if found == 0 => Err(Error::new(
                ErrorKind::NotFound,
                format!("the topic {topic} cannot be used"),
            )
            .because("the cluster does not know it, or does not show it to us")
            .next_step("create it, or let our user see it")),
            _ => Ok(()),
        }
    }

    async fn close(&self) {
        if let Some(producer) = self.line.hang_up().await {
            producer.flush(self.config.ack_timeout).await;
            producer.end().await;
        }
    }
}
