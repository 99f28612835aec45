//! Publishing, checking, closing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::producer::FutureRecord;
use rdkafka::producer::future_producer::DeliveryFuture;
use sendoff::sink::Limits;
use sendoff::{Delivery, Error, ErrorKind, Outcome, Result, Sink};
use sendoff_wire::{Fate, Line, Refusal};
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
    /// For records that were refused together with others: each is asked for by itself.
    single: Line<Dialer>,
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
        let patience = config.connect_timeout + Duration::from_millis(500);
        let line = |single: bool| {
            let config = Arc::clone(&config);
            Line::new(Dialer { config, single }, patience)
        };
        Ok(Self {
            line: line(false),
            single: line(true),
            config,
        })
    }

    /// Hands messages to the producer of this line, and waits for their reports.
    async fn send<'a>(
        &self,
        line: &Line<Dialer>,
        messages: impl ExactSizeIterator<Item = &'a Arc<Delivery>> + Send,
    ) -> Vec<Fate> {
        let settled = |refusal: Refusal, count| vec![Fate::Settled(refusal.outcome()); count];
        let producer = match line.get().await {
            Ok(producer) => producer,
            Err(refusal) => return settled(refusal, messages.len()),
        };
        // The client would take the messages and sit on them.
        if producer.health.is_doubtful()
            && let Err(refusal) = producer.sign_of_life(self.config.connect_timeout, None).await
        {
            return settled(refusal, messages.len());
        }
        let shared = self.config.topic.as_fixed().is_some();
        let hand_over = |delivery: &Arc<Delivery>| match encode(&self.config, delivery) {
            Ok(outgoing) => hand_over(&producer, &outgoing, shared),
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
            // What it might still send would come after the relay's next try.
            let farewell = async {
                line.forget(&producer).await;
                producer.end().await;
            };
            let _ = timeout(FAREWELL, farewell).await;
        }
        fates
    }
}

/// Where a message is on its way.
enum Way {
    Decided(Outcome),
    Waiting(String, DeliveryFuture),
}

fn hand_over(producer: &Producer, outgoing: &Outgoing<'_>, shared: bool) -> Way {
    let record = FutureRecord::to(&outgoing.topic)
        .payload(&outgoing.encoded.body[..])
        .headers(outgoing.headers());
    let record = match &outgoing.key {
        Some(key) => record.key(key.as_str()),
        None => record,
    };
    match producer.client().send_result(record) {
        Ok(report) => Way::Waiting(outgoing.topic.clone(), report),
        Err((refused, _)) => Way::Decided(match error::report(&refused, &outgoing.topic, None) {
            // It never left this process.
            Outcome::Unknown(_) => error::unsent(&refused),
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
            error::unanswered()
        }
    };
    if let Outcome::Unknown(_) | Outcome::SinkDown(_) = outcome {
        producer.health.doubt();
    }
    Fate::Settled(outcome)
}

#[async_trait]
impl Sink for KafkaSink {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        let fates = self.send(&self.line, batch.iter()).await;
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
                "sent again in smaller parts"
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
            // Twice, for records that have to be sent again by themselves.
            timeout: Some(
                (config.connect_timeout + config.ack_timeout + GRACE + FAREWELL) * 2 + Duration::from_secs(2),
            ),
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
        for line in [&self.line, &self.single] {
            if let Some(producer) = line.hang_up().await {
                producer.flush(self.config.ack_timeout).await;
                producer.end().await;
            }
        }
    }
}
