//! What `sendoff celery-relay` tells DogStatsD: the names and tags of django-celery-outbox.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::store::{DeadReason, Vitals};
use sendoff::{Delivery, Outcome, Reason, Result, Sink};
use sendoff_relay::{Claimed, Observer, PublishedBatch, PublishedMessage};
use sendoff_store_django_celery::DjangoOutbox;
use sendoff_watch::{StatsdConfig, Subject, Watch, WatchConfig, Watching};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The relay as DogStatsD hears of it.
pub(super) struct Statsd {
    watching: Watching,
    counting: JoinHandle<()>,
}

impl Statsd {
    /// Puts itself before the sink, and starts to count rows every `refresh`.
    ///
    /// # Errors
    /// None that a configuration which was checked would lead to.
    pub(super) async fn start(
        config: StatsdConfig,
        sink: Arc<dyn Sink>,
        max_retries: u16,
        outbox: DjangoOutbox,
        (stale, refresh): (Duration, Duration),
    ) -> Result<(Self, Arc<dyn Sink>)> {
        let mut watch = Watch::new(WatchConfig {
            statsd: Some(config),
            ..WatchConfig::default()
        });
        let subject = watch.subject("");
        let watching = watch.start(Vec::new()).await?;
        let counting = tokio::spawn(keep_counting(subject.clone(), outbox, stale, refresh));
        let told = Told {
            name: "celery".into(),
            sink,
            subject,
            max_retries: max_retries.into(),
        };
        Ok((Self { watching, counting }, Arc::new(told)))
    }

    /// Sends what is not sent yet.
    pub(super) async fn end(self) {
        self.counting.abort();
        self.watching.end().await;
    }
}

async fn keep_counting(subject: Arc<Subject>, outbox: DjangoOutbox, stale: Duration, refresh: Duration) {
    loop {
        if let Ok(stats) = outbox.stats(stale).await {
            subject.tell_vitals(Vitals {
                now: SystemTime::now(),
                ready: stats.eligible,
                waiting: stats.waiting,
                dead: stats.dead,
                oldest_due: stats.oldest,
                heads: Vec::new(),
            });
        }
        sleep(refresh.max(Duration::from_millis(100))).await;
    }
}

/// A sink whose answers are told.
struct Told {
    name: Arc<str>,
    sink: Arc<dyn Sink>,
    subject: Arc<Subject>,
    max_retries: u32,
}

#[async_trait]
impl Sink for Told {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        let begun = Instant::now();
        let outcomes = self.sink.publish(batch).await;
        let told: Vec<Outcome> = outcomes.iter().map(charged).collect();
        let message = |(delivery, outcome)| PublishedMessage {
            delivery,
            claim: Claimed {
                at: begun,
                caught_up: None,
            },
            outcome,
        };
        let messages: Vec<_> = batch.iter().zip(&told).map(message).collect();
        self.subject.published(&PublishedBatch {
            sink: &self.name,
            begun,
            answered: Instant::now(),
            messages: &messages,
        });
        for PublishedMessage { delivery, outcome, .. } in messages {
            let failed = matches!(outcome, Outcome::Temporary(_) | Outcome::Permanent(_));
            if failed && delivery.attempts + 1 >= self.max_retries {
                self.subject.dead_lettered(delivery, &self.name, DeadReason::Exhausted);
            }
        }
        outcomes
    }

    fn keeps_key_order(&self) -> bool {
        self.sink.keeps_key_order()
    }

    fn limits(&self) -> Limits {
        self.sink.limits()
    }

    async fn check(&self) -> Result<()> {
        self.sink.check().await
    }

    async fn close(&self) {
        self.sink.close().await;
    }
}

/// As that relay sees it: a broker that hung up is one that is down, and charges no attempt.
fn charged(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Unknown(reason) => Outcome::SinkDown(Reason::new(reason.text())),
        Outcome::Delivered | Outcome::Temporary(_) | Outcome::Permanent(_) | Outcome::SinkDown(_) => outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::UNIX_EPOCH;

    use sendoff::store::{Place, Room};
    use sendoff_watch::StatsdTarget;

    use super::*;

    /// Answers by the task's name.
    struct Broker;

    #[async_trait]
    impl Sink for Broker {
        async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
            let outcome = |delivery: &Arc<Delivery>| match delivery.topic.as_str() {
                "app.fails" => Outcome::Temporary("no".into()),
                "app.hangs" => Outcome::Unknown("hung up".into()),
                _ => Outcome::Delivered,
            };
            batch.iter().map(outcome).collect()
        }
    }

    fn task(name: &str, attempts: u32) -> Arc<Delivery> {
        Arc::new(Delivery {
            id: sendoff::Uuid::nil(),
            topic: name.to_owned(),
            payload: Default::default(),
            content_type: None,
            headers: Default::default(),
            key: None,
            aggregate_type: None,
            aggregate_id: None,
            schema_version: None,
            idempotency_key: None,
            priority: 0,
            created_at: UNIX_EPOCH,
            expires_at: None,
            attempts,
            max_attempts: None,
            place: Place {
                room: Room::Ready,
                lane: 0,
                seq: 1,
                leg: None,
                spot: 0,
            },
        })
    }

    #[tokio::test]
    async fn dogstatsd_hears_what_django_celery_outbox_would_have_told_it() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut watch = Watch::new(WatchConfig {
            statsd: Some(StatsdConfig {
                target: StatsdTarget::Udp {
                    host: "127.0.0.1".to_owned(),
                    port: socket.local_addr().unwrap().port(),
                },
                prefix: "celery_outbox".to_owned(),
                topic_tag: "task_name".to_owned(),
                tags: Vec::new(),
            }),
            ..WatchConfig::default()
        });
        let subject = watch.subject("");
        let watching = watch.start(Vec::new()).await.unwrap();
        let told = Told {
            name: "celery".into(),
            sink: Arc::new(Broker),
            subject,
            max_retries: 5,
        };
        let tasks = [
            task("app.add", 0),
            task("app.fails", 0),
            task("app.fails", 4),
            task("app.hangs", 4),
        ];
        assert_eq!(told.publish(&tasks).await.len(), 4);
        told.subject.tell_vitals(Vitals {
            now: UNIX_EPOCH,
            ready: 2,
            waiting: 1,
            dead: 7,
            oldest_due: None,
            heads: Vec::new(),
        });
        watching.end().await;
        let wanted = [
            "celery_outbox.messages.published:1|c|#task_name:app.add",
            "celery_outbox.messages.failed:2|c|#task_name:app.fails",
            "celery_outbox.messages.exceeded:1|c|#task_name:app.fails",
            "celery_outbox.queue.depth:3|g",
            "celery_outbox.dead_letter.count:7|g",
        ];
        let (mut heard, mut datagram) = (String::new(), [0; 65_536]);
        while !wanted.iter().all(|line| heard.lines().any(|heard| heard == *line)) {
            let length = socket
                .recv(&mut datagram)
                .unwrap_or_else(|error| panic!("{error}: {heard}"));
            heard.push_str(std::str::from_utf8(&datagram[..length]).unwrap());
            heard.push('\n');
        }
        assert!(heard.contains("celery_outbox.batch.duration_ms:"), "{heard}");
        assert!(
            !heard.contains("app.hangs"),
            "a broker that hung up charges nothing: {heard}"
        );
    }
}
