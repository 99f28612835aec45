//! Publishes a batch on one connection: sends as many messages as the broker allows, and waits for all confirmations.

use std::collections::BTreeMap;
use std::sync::Arc;

use sendoff::{Outcome, Outgoing};
use sendoff_wire::Fate;
use tokio::time::{Instant, timeout_at};

use crate::encode::put_publish;
use crate::link::Use;
use crate::packet::{self, Ack, Incoming};
use crate::stream::Broken;
use crate::{MqttConfig, error};

const NOT_AUTHORIZED: u8 = 0x87;

/// How many bytes are encoded before they are written.
const ENOUGH: usize = 256 * 1024;

/// Publishes a part of a batch. Returns one fate per message, in order.
pub(crate) async fn publish(used: Use<'_>, config: &MqttConfig, batch: &[&Arc<Outgoing>]) -> Vec<Fate> {
    let deadline = Instant::now() + config.ack_timeout;
    let mut pass = Pass {
        used,
        config,
        batch,
        next: 0,
        waiting: BTreeMap::new(),
        outcomes: vec![None; batch.len()],
    };
    match timeout_at(deadline, pass.run()).await {
        Ok(Ok(())) => {
            pass.used.done();
            pass.outcomes.into_iter().flatten().map(Fate::Settled).collect()
        }
        // The connection is dropped with the pass. Otherwise a late confirmation would be read as another batch's.
        Ok(Err(end)) => {
            let fate = if end.may_be_due_to_a_message() {
                Fate::Broken
            } else {
                Fate::Settled
            };
            pass.cut_short(
                &fate(error::lost(&config.url, &end)),
                &fate(error::unsent(&config.url, &end)),
            )
        }
        Err(_) => {
            let (unknown, unsent) = (error::unconfirmed(&config.url), error::stuck(&config.url));
            pass.cut_short(&Fate::Settled(unknown), &Fate::Settled(unsent))
        }
    }
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It broke.
    Broken(Broken),
    /// The broker closed it, with a code and possibly a reason.
    Said(u8, Option<String>),
    /// The broker sent a packet that a publisher never gets.
    Nonsense,
}

impl End {
    /// Whether a single message may be the cause: one that is too large, or, with a broker that has no other way to
    /// report it, one that the user may not publish.
    fn may_be_due_to_a_message(&self) -> bool {
        match self {
            Self::Broken(Broken::Closed | Broken::Io(_)) => true,
            Self::Broken(Broken::Malformed) | Self::Nonsense => false,
            // Busy, shutting down, keep alive, taken over, too much at a time, too fast, by an administrator,
            // elsewhere.
            Self::Said(code, _) => !matches!(code, 0x89 | 0x8B | 0x8D | 0x8E | 0x93 | 0x96 | 0x98 | 0x9C..=0x9F),
        }
    }
}

/// A message that is sent and not confirmed.
struct Waiting {
    index: usize,
    /// QoS 2: the broker has confirmed the first half.
    is_received: bool,
}

struct Pass<'a> {
    used: Use<'a>,
    config: &'a MqttConfig,
    batch: &'a [&'a Arc<Outgoing>],
    /// The index of the first message that is not encoded yet.
    next: usize,
    waiting: BTreeMap<u16, Waiting>,
    outcomes: Vec<Option<Outcome>>,
}

impl Pass<'_> {
    async fn run(&mut self) -> Result<(), End> {
        loop {
            self.fill();
            if self.waiting.is_empty() {
                // The rest to write: the second half of a message that the broker refused meanwhile.
                return self.used.stream.flush().await.map_err(End::Broken);
            }
            let packet = self.used.stream.next().await.map_err(End::Broken)?;
            self.handle(packet)?;
        }
    }

    /// Encodes as much as the broker allows.
    fn fill(&mut self) {
        while self.next < self.batch.len()
            && self.waiting.len() < self.used.terms.window
            && self.used.stream.out.len() < ENOUGH
        {
            let index = self.next;
            self.next += 1;
            let id = self.free_id();
            let largest = self.used.terms.largest;
            match put_publish(self.config, self.batch[index], id, largest, &mut self.used.stream.out) {
                Ok(()) => {
                    self.waiting.insert(
                        id,
                        Waiting {
                            index,
                            is_received: false,
                        },
                    );
                }
                Err(outcome) => self.outcomes[index] = Some(outcome),
            }
        }
    }

    fn free_id(&mut self) -> u16 {
        loop {
            let id = self.used.next_id;
            self.used.next_id = id.checked_add(1).unwrap_or(1);
            if !self.waiting.contains_key(&id) {
                return id;
            }
        }
    }

    fn handle(&mut self, packet: Incoming) -> Result<(), End> {
        match packet {
            Incoming::PubAck(ack) => self.settle(&ack),
            Incoming::PubComp(ack) => self.settle(&ack),
            // Refused: there is no second half.
            Incoming::PubRec(ack) if ack.code >= 0x80 => self.settle(&ack),
            Incoming::PubRec(ack) => {
                let waiting = self.waiting.get_mut(&ack.id).ok_or(End::Nonsense)?;
                waiting.is_received = true;
                packet::put_pubrel(self.config.version, ack.id, &mut self.used.stream.out);
                Ok(())
            }
            Incoming::PingResp => Ok(()),
            Incoming::Disconnect { code, told } => Err(End::Said(code, told.reason)),
            Incoming::ConnAck { .. } => Err(End::Nonsense),
        }
    }

    fn settle(&mut self, ack: &Ack) -> Result<(), End> {
        let waiting = self.waiting.remove(&ack.id).ok_or(End::Nonsense)?;
        self.outcomes[waiting.index] = Some(if waiting.is_received && ack.code >= 0x80 {
            error::half_confirmed(ack)
        } else {
            match error::confirmed(ack) {
                // All messages have this topic.
                Outcome::Temporary(reason) if ack.code == NOT_AUTHORIZED && self.config.topic.as_fixed().is_some() => {
                    Outcome::SinkDown(reason)
                }
                outcome => outcome,
            }
        });
        Ok(())
    }

    fn cut_short(self, unknown: &Fate, unsent: &Fate) -> Vec<Fate> {
        let Self { next, outcomes, .. } = self;
        let fate = |(index, outcome): (usize, Option<Outcome>)| match outcome {
            Some(outcome) => Fate::Settled(outcome),
            None if index < next => unknown.clone(),
            None => unsent.clone(),
        };
        outcomes.into_iter().enumerate().map(fate).collect()
    }
}
