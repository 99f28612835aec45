//! Publishes a batch with JetStream: sends all messages, then waits for all acknowledgements.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_nats::jetstream::Error as ApiError;
use async_nats::{Message, StatusCode, Subject};
use futures::FutureExt as _;
use sendoff::{Outcome, Outgoing};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::NatsConfig;
use crate::acks::Position;
use crate::encode::{Prepared, encode};
use crate::error;
use crate::link::{Link, News};
use crate::lookup::{Silence, lookup};

/// Pauses before sending again to a stream without a leader.
const ELECTION: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

/// Publishes a batch. Returns one outcome per message, in order.
pub(crate) async fn publish(link: &Link, config: &NatsConfig, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
    if let Some(why) = link.deaf() {
        return vec![Outcome::SinkDown(why.into()); batch.len()];
    }
    let mut pass = Pass::new(link, config, batch);
    pass.send(0..batch.len()).await;
    let mut homeless = pass.homeless();
    for pause in ELECTION {
        if homeless.is_empty() {
            break;
        }
        homeless = pass.still_covered(homeless).await;
        if homeless.is_empty() {
            break;
        }
        sleep(pause).await;
        pass.deadline = Instant::now() + config.ack_timeout;
        pass.send(homeless).await;
        homeless = pass.homeless();
    }
    pass.finish()
}

/// The state of a message.
enum Fate {
    Unsent,
    /// Not acknowledged yet.
    Sent(Subject),
    Decided(Outcome),
    /// The server reported no responders for its subject.
    Homeless(Subject),
}

/// The part of a stream's answer that all versions of the server share.
#[derive(Deserialize)]
struct Ack {
    error: Option<ApiError>,
    stream: Option<IgnoredAny>,
}

struct Pass<'a> {
    link: &'a Link,
    config: &'a NatsConfig,
    batch: &'a [Arc<Outgoing>],
    fates: Vec<Fate>,
    acks: Position<'a>,
    /// How many messages are sent and not acknowledged.
    in_flight: usize,
    news: watch::Receiver<News>,
    /// The subject of the previous message; usually the next one has the same.
    subject: Subject,
    deadline: Instant,
    /// Whether the server answered any message.
    answered: bool,
    /// Whether the server left a message unanswered.
    unanswered: bool,
}

impl Fate {
    /// The subject of a message that is not acknowledged yet.
    fn sent(&self) -> Option<&Subject> {
        match self {
            Self::Sent(subject) => Some(subject),
            Self::Unsent | Self::Decided(_) | Self::Homeless(_) => None,
        }
    }
}

impl<'a> Pass<'a> {
    fn new(link: &'a Link, config: &'a NatsConfig, batch: &'a [Arc<Outgoing>]) -> Self {
        Self {
            link,
            config,
            batch,
            fates: batch.iter().map(|_| Fate::Unsent).collect(),
            acks: link.dispatcher.place(),
            in_flight: 0,
            news: link.news.clone(),
            subject: Subject::from_static(""),
            deadline: Instant::now() + config.ack_timeout,
            answered: false,
            unanswered: false,
        }
    }

    /// Sends these messages, and waits for their acknowledgements.
    async fn send(&mut self, indexes: impl IntoIterator<Item = usize>) {
        let limit = self.link.client.max_payload();
        for index in indexes {
            self.fates[index] = Fate::Unsent;
            let prepared = match encode(self.config, &self.batch[index], limit) {
                Ok(prepared) => prepared,
                Err(outcome) => {
                    self.fates[index] = Fate::Decided(outcome);
                    continue;
                }
            };
            if let Some(denied) = self.news.borrow().denied(&prepared.subject) {
                self.fates[index] = Fate::Decided(denied);
                continue;
            }
            if self.in_flight >= self.config.max_in_flight {
                self.settle(self.config.max_in_flight / 2).await;
            }
            // The rest stays unsent: the connection is gone, or does not accept messages.
            if !self.hand_over(index, prepared).await {
                break;
            }
        }
        self.settle(0).await;
    }

    /// Waits for acknowledgements until this many are left.
    async fn settle(&mut self, left: usize) {
        loop {
            self.read_all();
            if self.in_flight <= left {
                return;
            }
            let fates = &self.fates;
            let concerns_us = |news: &News| {
                let mut sent = fates.iter().filter_map(Fate::sent);
                sent.any(|subject| news.verdict(subject).is_some())
            };
            let mut news = self.news.clone();
            let heard = async { news.wait_for(concerns_us).await.is_ok() };
            tokio::select! {
                biased;
                () = self.acks.wait_for(self.in_flight - left) => {}
                is_there = heard => {
                    // An acknowledgement may have arrived with the last bytes of the connection.
                    self.read_all();
                    self.give_up(|news, subject| {
                        news.verdict(subject).or_else(|| (!is_there).then(|| error::lost(None)))
                    });
                }
                () = sleep_until(self.deadline) => {
                    self.read_all();
                    self.give_up(|news, subject| {
                        Some(news.verdict(subject).unwrap_or_else(|| error::unanswered(subject)))
                    });
                }
            }
        }
    }

    fn read_all(&mut self) {
        for (index, ack) in self.acks.take() {
            let Some(fate) = self.fates.get_mut(index) else {
                continue;
            };
            match std::mem::replace(fate, Fate::Unsent) {
                Fate::Sent(subject) => {
                    self.in_flight -= 1;
                    self.fates[index] = self.read(subject, &ack);
                }
                // A second or late acknowledgement.
                other => *fate = other,
            }
        }
    }

    /// Settles the messages with a known outcome, without waiting for their acknowledgements.
    fn give_up(&mut self, known: impl Fn(&News, &str) -> Option<Outcome>) {
        let news = self.news.borrow();
        for fate in &mut self.fates {
            if let Some(outcome) = fate.sent().and_then(|subject| known(&news, subject)) {
                *fate = Fate::Decided(outcome);
                self.in_flight -= 1;
                self.unanswered = true;
            }
        }
    }

    async fn hand_over(&mut self, index: usize, prepared: Prepared) -> bool {
        if self.news.borrow().lost {
            return false;
        }
        let Prepared { subject, headers, body } = prepared;
        if *self.subject != *subject {
            self.subject = Subject::from(subject);
        }
        let subject = self.subject.clone();
        let address = self.acks.address(index);
        let client = &self.link.client;
        let mut sending = pin!(client.publish_with_reply_and_headers(subject.clone(), address, headers, body));
        // Usually it is sent immediately: then no task must be woken, and no timer is needed.
        let sent = match sending.as_mut().now_or_never() {
            Some(sent) => sent,
            None => tokio::select! {
                biased;
                sent = sending => sent,
                _ = self.news.wait_for(|news| news.lost) => return false,
                () = sleep_until(self.deadline) => {
                    self.unanswered = true;
                    return false;
                }
            },
        };
        self.fates[index] = match sent {
            Ok(()) => {
                self.in_flight += 1;
                Fate::Sent(subject)
            }
            // The message was not sent.
            Err(refused) => Fate::Decided(error::not_taken(&refused, &subject)),
        };
        true
    }

    fn read(&mut self, subject: Subject, ack: &Message) -> Fate {
        if ack.status == Some(StatusCode::NO_RESPONDERS) {
            self.answered = true;
            return Fate::Homeless(subject);
        }
        let outcome = match serde_json::from_slice(&ack.payload) {
            Ok(Ack {
                error: Some(refused), ..
            }) => error::stream(&refused),
            // A duplicate means the stream already stores the message: the first copy arrived.
            Ok(Ack { stream: Some(_), .. }) => Outcome::Delivered,
            Ok(Ack { stream: None, .. }) | Err(_) => {
                self.unanswered = true;
                return Fate::Decided(error::strange());
            }
        };
        self.answered = true;
        Fate::Decided(outcome)
    }

    fn homeless(&self) -> Vec<usize> {
        let is_homeless = |index: &usize| matches!(self.fates[*index], Fate::Homeless(_));
        (0..self.fates.len()).filter(is_homeless).collect()
    }

    /// Which of these messages to send again, because a stream covers their subject. The others are decided.
    async fn still_covered(&mut self, homeless: Vec<usize>) -> Vec<usize> {
        let mut known: BTreeMap<Subject, Option<Outcome>> = BTreeMap::new();
        let mut silence = None;
        let mut covered = Vec::new();
        for index in homeless {
            let Fate::Homeless(subject) = &self.fates[index] else {
                continue;
            };
            let decided = match (known.get(subject), silence) {
                (Some(decided), _) => decided.clone(),
                // JetStream did not answer once: asking again for every other subject would repeat the timeout.
                (None, Some(silence)) => Some(Silence::outcome(silence, subject)),
                (None, None) => {
                    let decided = lookup(&self.link.jetstream, subject).await.unwrap_or_else(|nothing| {
                        silence = Some(nothing);
                        Some(nothing.outcome(subject))
                    });
                    known.insert(subject.clone(), decided.clone());
                    decided
                }
            };
            match decided {
                None => covered.push(index),
                Some(outcome) => self.fates[index] = Fate::Decided(outcome),
            }
        }
        covered
    }

    fn finish(self) -> Vec<Outcome> {
        if self.unanswered && !self.answered {
            // The server may be stopped, or unreachable: the next batch opens a new connection to find out.
            self.link.silent.store(true, Relaxed);
        }
        let news = self.news.borrow();
        let unsent = if news.lost {
            error::unsent(news.said.as_deref())
        } else {
            error::stuck()
        };
        let outcome = |fate| match fate {
            Fate::Decided(outcome) => outcome,
            Fate::Unsent | Fate::Sent(_) => unsent.clone(),
            Fate::Homeless(subject) => error::no_leader(&subject),
        };
        self.fates.into_iter().map(outcome).collect()
    }
}
