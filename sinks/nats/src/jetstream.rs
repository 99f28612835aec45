//! A batch through JetStream: everything sent, then every acknowledgement awaited.

use std::collections::{BTreeMap, VecDeque};
use std::future::IntoFuture;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use futures::FutureExt as _;
use sendoff::{Delivery, Outcome};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::NatsConfig;
use crate::encode::{Outgoing, encode};
use crate::error;
use crate::link::{Link, News};
use crate::lookup::{Silence, lookup};

/// Pauses before sending again to a stream that is between two leaders.
const ELECTION: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

/// Publishes a batch. One outcome a message, in its order.
pub(crate) async fn publish(link: &Link, config: &NatsConfig, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
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

type Ack = Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>;

struct Waiting {
    index: usize,
    subject: Subject,
    ack: Ack,
}

/// Where a message is on its way.
enum Fate {
    Unsent,
    Decided(Outcome),
    /// Nobody listens on its subject.
    Homeless(Subject),
}

struct Pass<'a> {
    link: &'a Link,
    config: &'a NatsConfig,
    batch: &'a [Arc<Delivery>],
    fates: Vec<Fate>,
    waiting: VecDeque<Waiting>,
    news: watch::Receiver<News>,
    /// Of the message before: mostly the next one's, too.
    subject: Subject,
    deadline: Instant,
    /// Whether the server answered anything at all.
    answered: bool,
    /// Whether it left anything unanswered.
    unanswered: bool,
}

impl<'a> Pass<'a> {
    fn new(link: &'a Link, config: &'a NatsConfig, batch: &'a [Arc<Delivery>]) -> Self {
        Self {
            link,
            config,
            batch,
            fates: batch.iter().map(|_| Fate::Unsent).collect(),
            waiting: VecDeque::with_capacity(batch.len().min(config.max_in_flight)),
            news: link.news.clone(),
            subject: Subject::from_static(""),
            deadline: Instant::now() + config.ack_timeout,
            answered: false,
            unanswered: false,
        }
    }

    /// Sends these, and awaits what became of them.
    async fn send(&mut self, indexes: impl IntoIterator<Item = usize>) {
        let limit = self.link.client.max_payload();
        for index in indexes {
            self.fates[index] = Fate::Unsent;
            let outgoing = match encode(self.config, &self.batch[index], limit) {
                Ok(outgoing) => outgoing,
                Err(outcome) => {
                    self.fates[index] = Fate::Decided(outcome);
                    continue;
                }
            };
            if let Some(denied) = self.news.borrow().denied(&outgoing.subject) {
                self.fates[index] = Fate::Decided(denied);
                continue;
            }
            if self.waiting.len() >= self.config.max_in_flight {
                self.settle_oldest(self.waiting.len().div_ceil(2)).await;
            }
            // What follows stays unsent: the connection is gone, or takes nothing.
            if !self.hand_over(index, outgoing).await {
                break;
            }
        }
        self.settle_oldest(self.waiting.len()).await;
    }

    /// Acknowledgements come about in the order of their messages: once the last of them is there, nobody has to be woken
    /// for the others.
    async fn settle_oldest(&mut self, count: usize) {
        let mut oldest: VecDeque<Waiting> = self.waiting.drain(..count).collect();
        if let Some(last) = oldest.pop_back() {
            self.settle(last).await;
        }
        for waiting in oldest {
            self.settle(waiting).await;
        }
    }

    async fn hand_over(&mut self, index: usize, outgoing: Outgoing) -> bool {
        if self.news.borrow().lost {
            return false;
        }
        let Outgoing { subject, headers, body } = outgoing;
        if *self.subject != *subject {
            self.subject = Subject::from(subject);
        }
        let subject = self.subject.clone();
        let message = PublishMessage::build().payload(body).headers(headers);
        let mut sending = pin!(self.link.jetstream.send_publish(subject.clone(), message));
        // Mostly it is sent at once: then nobody has to be woken, and no timer is needed.
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
        match sent {
            Ok(ack) => self.waiting.push_back(Waiting {
                index,
                subject,
                ack: PublishAckFuture::into_future(ack),
            }),
            Err(refused) => {
                let outcome = match error::publish(&refused) {
                    // It never left this process.
                    Some(Outcome::Unknown(_)) | None => error::unsent(None),
                    Some(outcome) => outcome,
                };
                self.fates[index] = Fate::Decided(outcome);
            }
        }
        true
    }

    async fn settle(&mut self, waiting: Waiting) {
        let Waiting {
            index,
            subject,
            mut ack,
        } = waiting;
        if let Some(answer) = ack.as_mut().now_or_never() {
            self.fates[index] = self.read(subject, answer);
            return;
        }
        let deadline = self.deadline;
        let heard = async {
            match self.news.wait_for(|news| news.verdict(&subject).is_some()).await {
                Ok(news) => news.verdict(&subject),
                Err(_) => None,
            }
        };
        // In this order, because an acknowledgement may have come in with the last bytes of the connection.
        let answer = tokio::select! {
            biased;
            answer = &mut ack => Ok(answer),
            verdict = heard => Err(verdict.unwrap_or_else(|| error::lost(None))),
            () = sleep_until(deadline) => Err(error::unanswered()),
        };
        self.fates[index] = match answer {
            Ok(answer) => self.read(subject, answer),
            Err(outcome) => {
                self.unanswered = true;
                Fate::Decided(outcome)
            }
        };
    }

    fn read(&mut self, subject: Subject, answer: Result<PublishAck, PublishError>) -> Fate {
        match answer {
            // A duplicate is in the stream already: the first copy arrived after all.
            Ok(_) => {
                self.answered = true;
                Fate::Decided(Outcome::Delivered)
            }
            Err(refused) => match error::publish(&refused) {
                Some(Outcome::Unknown(reason)) => {
                    self.unanswered = true;
                    Fate::Decided(Outcome::Unknown(reason))
                }
                Some(outcome) => {
                    self.answered = true;
                    Fate::Decided(outcome)
                }
                None => {
                    self.answered = true;
                    Fate::Homeless(subject)
                }
            },
        }
    }

    fn homeless(&self) -> Vec<usize> {
        let is_homeless = |index: &usize| matches!(self.fates[*index], Fate::Homeless(_));
        (0..self.fates.len()).filter(is_homeless).collect()
    }

    /// Those of the homeless messages whose subject a stream covers: worth another try. The fate of the others is decided.
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
                // It said nothing once: asking for every other subject would take the patience as many times.
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
            // It may be stopped, or behind a broken network: the next batch has to find out with a new connection.
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
            Fate::Unsent => unsent.clone(),
            Fate::Homeless(subject) => error::no_leader(&subject),
        };
        self.fates.into_iter().map(outcome).collect()
    }
}
