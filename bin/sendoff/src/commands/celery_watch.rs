//! Probes and metrics of `sendoff celery-relay`: the same as those of `sendoff relay`, except that DogStatsD gets the
//! names and tags of django-celery-outbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::sink::Limits;
use sendoff::store::{DeadReason, Lane, LaneHead, StoreHealth};
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Reason, Result, Sink};
use sendoff_relay::{
    Claimed, HookFailures, Observer, PublishedBatch, PublishedMessage, RelayHealth, SettledBatch, SinkHealth,
    SinkState, WakeSource,
};
use sendoff_store_django_celery::{Beat, DjangoOutbox, Monitor, Settled, Stats};
use sendoff_watch::{Subject, Watch, WatchConfig, Watching};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// The name of the only sink in metrics.
const SINK: &str = "celery";
/// The tables have no lanes, so all rows count as one lane.
const LANE: Lane = 0;
/// Timeout of a count and of a check.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to check the broker.
const CHECK: Duration = Duration::from_secs(15);
/// How often to check a broker that is down.
const CHECK_AGAIN: Duration = Duration::from_secs(1);
/// Back off for 50× the duration of the last count, because a count reads the whole table.
const REST: u32 = 50;

/// The probes and metrics of a running relay.
pub(super) struct CeleryWatch {
    watching: Watching,
    subject: Arc<Subject>,
    _tasks: JoinSet<()>,
}

impl CeleryWatch {
    /// Starts the server, counts rows every `refresh`, and checks the broker.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it cannot listen on the address.
    pub(super) async fn start(
        config: WatchConfig,
        sink: Arc<dyn Sink>,
        outbox: DjangoOutbox,
        (stale, refresh): (Duration, Duration),
    ) -> Result<Self> {
        let refresh = refresh.min(config.interval).min(config.stall_after / 4);
        let mut watch = Watch::new(config);
        let subject = watch.subject("");
        let watching = watch.start(Vec::new()).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_counting(subject.clone(), outbox, stale, refresh));
        tasks.spawn(keep_checking(subject.clone(), sink));
        Ok(Self {
            watching,
            subject,
            _tasks: tasks,
        })
    }

    /// The same sink, with its outcomes reported to the metrics.
    pub(super) fn told(&self, sink: Arc<dyn Sink>, max_retries: u16) -> Arc<dyn Sink> {
        Arc::new(Told {
            name: SINK.into(),
            sink,
            subject: self.subject.clone(),
            max_retries: max_retries.into(),
        })
    }

    /// The monitor that passes the relay's health to the metrics.
    pub(super) fn monitor(&self) -> Arc<dyn Monitor> {
        Arc::new(Heard(self.subject.clone()))
    }

    /// Flushes metrics and stops.
    pub(super) async fn end(self) {
        self.watching.end().await;
    }
}

async fn keep_counting(subject: Arc<Subject>, outbox: DjangoOutbox, stale: Duration, refresh: Duration) {
    loop {
        let asked = Instant::now();
        match answered(outbox.stats(stale)).await {
            Ok(stats) => {
                subject.tell_store_health(asked, health(stats));
                subject.tell_schema(&Ok(()));
            }
            Err(error) => {
                subject.tell_unanswered(&error);
                subject.tell_schema(&Err(error));
            }
        }
        sleep(refresh.max(Duration::from_millis(100)).max(asked.elapsed() * REST)).await;
    }
}

async fn keep_checking(subject: Arc<Subject>, sink: Arc<dyn Sink>) {
    let name = Arc::from(SINK);
    loop {
        let checked = answered(sink.check()).await;
        let pause = if checked.is_ok() { CHECK } else { CHECK_AGAIN };
        subject.tell_checked(&name, checked.map_err(|error| error.to_string()));
        sleep(pause).await;
    }
}

async fn answered<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(PATIENCE, answer).await.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Unreachable,
            format!("no answer within {PATIENCE:?}"),
        ))
    })
}

fn health(stats: Stats) -> StoreHealth {
    let head = |(seq, age)| LaneHead {
        lane: LANE,
        seq,
        age,
        // The tables do not record which relays are alive.
        held: false,
    };
    StoreHealth {
        now: stats.now,
        ready: stats.eligible,
        waiting: stats.waiting,
        dead: stats.dead,
        oldest_due: None,
        heads: stats.first.zip(stats.oldest).map(head).into_iter().collect(),
        stray: None,
    }
}

/// Passes the relay's health to the metrics.
struct Heard(Arc<Subject>);

impl Monitor for Heard {
    fn beat(&self, beat: &Beat) {
        let Beat {
            at,
            in_flight,
            broker_down,
            unsettled,
            stopping,
        } = *beat;
        self.0.relay_health(&RelayHealth {
            at,
            lanes: vec![(LANE, in_flight)],
            in_flight,
            bytes_in_flight: 0,
            sinks: vec![SinkHealth {
                name: SINK.into(),
                state: if broker_down { SinkState::Down } else { SinkState::Up },
                paused: false,
                in_flight,
            }],
            wake_source: WakeSource::Poll,
            relays: 1,
            unsettled,
            read: None,
            stopping,
            hooks: HookFailures::default(),
        });
    }

    fn settled(&self, settled: &Settled) {
        let Settled { rows, took, lag } = *settled;
        self.0.settled(&SettledBatch {
            rows,
            lost: 0,
            took,
            lag,
        });
    }
}

/// A sink that reports its outcomes to the metrics.
struct Told {
    name: Arc<str>,
    sink: Arc<dyn Sink>,
    subject: Arc<Subject>,
    max_retries: u32,
}

#[async_trait]
impl Sink for Told {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let begun = Instant::now();
        let outcomes = self.sink.publish(batch).await;
        let told: Vec<Outcome> = outcomes.iter().map(charged).collect();
        let message = |(outgoing, outcome)| PublishedMessage {
            outgoing,
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
        for PublishedMessage { outgoing, outcome, .. } in messages {
            if !matches!(outcome, Outcome::Temporary(_) | Outcome::Permanent(_)) {
                continue;
            }
            if outgoing.attempts + 1 >= self.max_retries {
                self.subject.dead_lettered(outgoing, &self.name, DeadReason::Exhausted);
            } else {
                self.subject.retried(outgoing, &self.name);
            }
        }
        outcomes
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

/// The outcome as the celery relay treats it: a lost connection counts as a broker outage and charges no attempt.
fn charged(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Unknown(reason) => Outcome::SinkDown(Reason::new(reason.text())),
        Outcome::Delivered
        | Outcome::Temporary(_)
        | Outcome::Permanent(_)
        | Outcome::SinkDown(_)
        | Outcome::NotYet(_) => outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::UNIX_EPOCH;

    use sendoff::store::{RowRef, Table};
    use sendoff_watch::{StatsdConfig, StatsdTarget};

    use super::*;

    /// Answers by the task's name.
    struct Broker;

    #[async_trait]
    impl Sink for Broker {
        async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
            let outcome = |outgoing: &Arc<Outgoing>| match outgoing.topic.as_str() {
                "app.fails" => Outcome::Temporary("no".into()),
                "app.hangs" => Outcome::Unknown("hung up".into()),
                _ => Outcome::Delivered,
            };
            batch.iter().map(outcome).collect()
        }
    }

    fn task(name: &str, attempts: u32) -> Arc<Outgoing> {
        Arc::new(Outgoing {
            id: sendoff::Uuid::nil(),
            topic: name.to_owned(),
            attempts,
            ..Outgoing::blank(RowRef {
                table: Table::Ready,
                lane: 0,
                seq: 1,
                sink: None,
                id: sendoff::Uuid::nil().into(),
                locator: 0,
            })
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
                drop_in: true,
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
        let stats = Stats {
            eligible: 2,
            waiting: 1,
            dead: 7,
            oldest: None,
            first: None,
            now: UNIX_EPOCH,
        };
        told.subject.tell_store_health(Instant::now(), health(stats));
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
            "a lost connection charges no attempt: {heard}"
        );
    }
}
