//! Publishing, checking, closing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::producer::FutureRecord;
use rdkafka::producer::future_producer::DeliveryFuture;
use sendoff::sink::Limits;
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Result, Sink};
use sendoff_wire::{Connections, Fate, Refusal};
use tokio::time::{Instant, timeout, timeout_at};

use crate::encode::{Prepared, encode};
use crate::producer::{Connector, Producer};
use crate::{KafkaConfig, error};

/// How much longer than the client's timeout the sink waits for a report, which the client sends about once a second.
const GRACE: Duration = Duration::from_secs(2);

/// How long a batch waits for a replaced producer to close.
const FAREWELL: Duration = Duration::from_secs(2);

/// Publishes messages to Kafka.
pub struct KafkaSink {
    config: Arc<KafkaConfig>,
    connections: Connections<Connector>,
    /// For records that were refused together with others: each is sent alone.
    single: Connections<Connector>,
}

impl KafkaSink {
    /// Creates the sink. It connects when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a setting cannot be used, [`ErrorKind::Unsupported`] for encryption that was not
    /// built in.
    pub fn new(config: KafkaConfig) -> Result<Self> {
        config.validate()?;
        let config = Arc::new(config);
        // The client's own timeout must expire first, because its error is better.
        let patience = config.connect_timeout + Duration::from_millis(500);
        let connections = |single: bool| {
            let config = Arc::clone(&config);
            Connections::new(Connector { config, single }, patience)
        };
        Ok(Self {
            connections: connections(false),
            single: connections(true),
            config,
        })
    }

    /// Sends messages with a producer of these connections, and waits for their reports.
    async fn send<'a>(
        &self,
        connections: &Connections<Connector>,
        messages: impl ExactSizeIterator<Item = &'a Arc<Outgoing>> + Send,
    ) -> Vec<Fate> {
        let settled = |refusal: Refusal, count| vec![Fate::Settled(refusal.outcome()); count];
        let producer = match connections.get().await {
            Ok(producer) => producer,
            Err(refusal) => return settled(refusal, messages.len()),
        };
        // Otherwise the client would accept the messages and keep them.
        if producer.health.is_doubtful()
            && let Err(refusal) = producer.sign_of_life(self.config.connect_timeout, None).await
        {
            return settled(refusal, messages.len());
        }
        let shared = self.config.topic.as_fixed().is_some();
        let hand_over = |outgoing: &Arc<Outgoing>| match encode(&self.config, outgoing) {
            Ok(prepared) => hand_over(&producer, &prepared, shared),
            Err(outcome) => Way::Decided(outcome),
        };
        let ways: Vec<Way> = messages.map(hand_over).collect();
        let deadline = Instant::now() + self.config.ack_timeout + GRACE;
        let mut fates = Vec::with_capacity(ways.len());
        for way in ways {
            fates.push(match way {
                Way::Decided(outcome) => Fate::Settled(outcome),
                Way::Waiting(topic, report) => settle(&producer, &topic, shared, report, deadline).await,
            });
        }
        if producer.health.is_fatal() {
            // Otherwise it might still send a message after the relay's next attempt.
            let farewell = async {
                connections.forget(&producer).await;
                producer.end().await;
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
        fates
    }
}

/// The state of a message.
enum Way {
    Decided(Outcome),
    Waiting(String, DeliveryFuture),
}

fn hand_over(producer: &Producer, prepared: &Prepared<'_>, shared: bool) -> Way {
    let record = FutureRecord::to(&prepared.topic)
        .payload(&prepared.encoded.body[..])
        .headers(prepared.headers());
    let record = match &prepared.key {
        Some(key) => record.key(key.as_str()),
        None => record,
    };
    match producer.client().send_result(record) {
        Ok(report) => Way::Waiting(prepared.topic.clone(), report),
        Err((refused, _)) => Way::Decided(match error::report(&refused, &prepared.topic, None) {
            // The message was not sent.
            Outcome::Unknown(_) => error::unsent(&refused, &prepared.topic),
            outcome if shared && error::is_about_the_topic(&refused) => error::of_the_sink(outcome),
            outcome => outcome,
        }),
    }
}

/// `shared`: all messages have this topic.
async fn settle(producer: &Producer, topic: &str, shared: bool, report: DeliveryFuture, deadline: Instant) -> Fate {
    let outcome = match timeout_at(deadline, report).await {
        Ok(Ok(Ok(_))) => return Fate::Settled(Outcome::Delivered),
        Ok(Ok(Err((refused, _)))) => {
            if error::ends_the_producer(&refused) {
                producer.health.end();
            }
            let outcome = error::report(&refused, topic, producer.health.trouble().as_ref());
            if error::is_of_a_whole_batch(&refused) {
                return Fate::Broken(outcome);
            }
            if shared && error::is_about_the_topic(&refused) {
                return Fate::Settled(error::of_the_sink(outcome));
            }
            outcome
        }
        Ok(Err(_)) | Err(_) => {
            producer.health.end();
            error::unanswered(topic)
        }
    };
    if let Outcome::Unknown(_) | Outcome::SinkDown(_) = outcome {
        producer.health.doubt();
    }
    Fate::Settled(outcome)
}

#[async_trait]
impl Sink for KafkaSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        let fates = self.send(&self.connections, batch.iter()).await;
        let broken = |(place, fate): (usize, &Fate)| matches!(fate, Fate::Broken(_)).then_some(place);
        let broken: Vec<usize> = fates.iter().enumerate().filter_map(broken).collect();
        let outcome = |fate: Fate| match fate {
            Fate::Settled(outcome) | Fate::Broken(outcome) => outcome,
        };
        let mut outcomes: Vec<Outcome> = fates.into_iter().map(outcome).collect();
        if !broken.is_empty() {
            tracing::debug!(
                event = "batch_broke",
                messages = broken.len(),
                "brokers refused the batch; sending it again in smaller parts"
            );
            let again = self.send(&self.single, broken.iter().map(|place| &batch[*place])).await;
            for (place, fate) in broken.into_iter().zip(again) {
                outcomes[place] = outcome(fate);
            }
        }
        outcomes
    }

    fn limits(&self) -> Limits {
        let config = &self.config;
        Limits {
            batch: None,
            // Twice, for records that must be sent again alone.
            timeout: Some(
                (config.connect_timeout + config.ack_timeout + GRACE + FAREWELL) * 2 + Duration::from_secs(2),
            ),
        }
    }

    async fn check(&self) -> Result<()> {
        let producer = self.connections.get().await.map_err(Error::from)?;
        let topic = self.config.topic.as_fixed().map(str::to_owned);
        let found = producer
            .sign_of_life(self.config.connect_timeout, topic.clone())
            .await?;
        match topic {
            Some(topic) if found == 0 => Err(Error::new(
                ErrorKind::NotFound,
                format!("the Kafka sink cannot use the topic {topic}"),
            )
            .because("the topic does not exist, or the sink's user may not describe it")
            .next_step("create the topic, or allow the sink's user to describe it")),
            _ => Ok(()),
        }
    }

    async fn close(&self) {
        for connections in [&self.connections, &self.single] {
            if let Some(producer) = connections.close().await {
                producer.flush(self.config.ack_timeout).await;
                producer.end().await;
            }
        }
    }
}
