//! Publishes on one connection: messages are built and sent while earlier ones are confirmed.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt as _;
use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::{Channel, Confirmation, PublisherConfirm};
use tokio::time::{Instant, sleep_until, timeout};

use super::Prepared;
use super::link::Link;
use crate::error::Failure;

/// How many unconfirmed bytes may be sent; the client copies them.
const MAX_IN_FLIGHT_BYTES: usize = 8 << 20;
/// How long the sink waits for a block to end.
const BLOCKED_GRACE: Duration = Duration::from_secs(2);
/// How long the client may take to report what it has written before a connection ended.
const SORT_OUT: Duration = Duration::from_secs(1);

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was not written to the socket completely.
    Unsent,
    /// It was written to the socket.
    Sent,
    Acked,
    Nacked,
}

/// Why some messages were not confirmed.
pub(super) enum End {
    /// The channel or the connection ended.
    Closed(lapin::Error),
    /// The connection must be closed immediately: otherwise it might still send messages.
    Silent(Failure),
    Blocked(Failure),
}

/// The result of sending.
pub(super) struct Sent {
    /// The state of each message, with its index in the batch, in the order of sending.
    pub(super) fates: Vec<(usize, Fate)>,
    /// Messages that the broker returned as unroutable.
    pub(super) returned: Vec<BasicReturnMessage>,
    pub(super) end: Option<End>,
}

type Publishing<'a> = Pin<Box<dyn Future<Output = lapin::Result<PublisherConfirm>> + Send + 'a>>;

enum Stage<'a> {
    Writing(Publishing<'a>),
    Confirming(PublisherConfirm),
}

/// A message that is sent and not confirmed.
struct Flight<'a> {
    /// The index of its state in `fates`.
    at: usize,
    bytes: usize,
    stage: Stage<'a>,
}

impl Link {
    /// Publishes the messages of `feed`, in order, and waits for the confirms.
    pub(super) async fn send(
        &mut self,
        mut feed: impl FnMut() -> Option<(usize, Prepared)> + Send,
        window: usize,
        patience: Duration,
    ) -> Sent {
        let channel = self.channel.clone();
        let mut sent = Sent {
            fates: Vec::new(),
            returned: Vec::new(),
            end: None,
        };
        let mut flights: VecDeque<Flight<'_>> = VecDeque::new();
        let (mut fed, mut bytes) = (false, 0);
        let deadline = Instant::now() + patience;
        loop {
            while !fed && flights.len() < window && (flights.is_empty() || bytes < MAX_IN_FLIGHT_BYTES) {
                let Some((place, message)) = feed() else {
                    fed = true;
                    break;
                };
                let flight = start(&channel, sent.fates.len(), message);
                sent.fates.push((place, Fate::Unsent));
                bytes += flight.bytes;
                flights.push_back(flight);
            }
            // The oldest first: the broker confirms nearly in order, and one waker is enough.
            let Some(flight) = flights.front_mut() else { break };
            let landed = tokio::select! {
                biased;
                landed = land(&mut flight.stage, &mut sent.fates[flight.at].1) => landed,
                reason = self.blocked() => {
                    if timeout(BLOCKED_GRACE, self.unblocked()).await.is_err() {
                        sent.end = Some(End::Blocked(Failure::blocked(&reason)));
                        break;
                    }
                    continue;
                }
                () = sleep_until(deadline) => {
                    sent.end = Some(End::Silent(Failure::silent(patience)));
                    break;
                }
            };
            match landed {
                Ok(confirmation) => sent.confirm(flight.at, confirmation),
                Err(error) => {
                    sent.end = Some(End::Closed(error));
                    // This message is answered; answers of the others may follow.
                    flights.pop_front();
                    break;
                }
            }
            bytes -= flight.bytes;
            flights.pop_front();
        }
        match &mut sent.end {
            None => self.last_confirm = Instant::now(),
            Some(End::Blocked(_)) => sent.sort_out(flights, Duration::ZERO).await,
            Some(End::Silent(_)) => {
                self.kill();
                sent.sort_out(flights, SORT_OUT).await;
            }
            Some(End::Closed(error)) => {
                *error = self.cause(error.clone()).await;
                // If the broker closed only the channel, the client would still write to it.
                self.kill();
                sent.sort_out(flights, SORT_OUT).await;
            }
        }
        sent
    }
}

impl Sent {
    fn confirm(&mut self, at: usize, confirmation: Confirmation) {
        let (fate, returned) = match confirmation {
            Confirmation::Ack(returned) => (Fate::Acked, returned),
            Confirmation::Nack(returned) => (Fate::Nacked, returned),
            // Impossible in confirm mode. The message was written; nothing else is known.
            Confirmation::NotRequested => (Fate::Sent, None),
        };
        self.fates[at].1 = fate;
        self.returned.extend(returned);
    }

    /// Collects the states of the rest. Some messages may be confirmed behind one that is not.
    async fn sort_out(&mut self, flights: VecDeque<Flight<'_>>, limit: Duration) {
        let deadline = Instant::now() + limit;
        for mut flight in flights {
            let at = flight.at;
            let landing = land(&mut flight.stage, &mut self.fates[at].1);
            match tokio::time::timeout_at(deadline, landing).await {
                Ok(Ok(confirmation)) => self.confirm(at, confirmation),
                Ok(Err(_)) => {}
                // Unknown, so it counts as written.
                Err(_) => self.fates[at].1 = Fate::Sent,
            }
        }
    }
}

/// Queues a message in the client, which fixes its order.
fn start(channel: &Channel, at: usize, message: Prepared) -> Flight<'_> {
    let Prepared {
        exchange,
        routing_key,
        properties,
        body,
    } = message;
    let bytes = body.len();
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let mut publishing: Publishing<'_> = Box::pin(async move {
        channel
            .basic_publish(exchange, routing_key, options, &body, properties)
            .await
    });
    // The first poll queues it. No waker is needed per message: they are polled one after the other.
    let stage = match publishing.as_mut().now_or_never() {
        Some(Ok(confirm)) => Stage::Confirming(confirm),
        Some(Err(error)) => Stage::Writing(Box::pin(std::future::ready(Err(error)))),
        None => Stage::Writing(publishing),
    };
    Flight { at, bytes, stage }
}

/// Waits for the confirm of one message, and notes when it was written. The future may be dropped, and the call
/// repeated.
async fn land(stage: &mut Stage<'_>, fate: &mut Fate) -> lapin::Result<Confirmation> {
    if let Stage::Writing(publishing) = stage {
        *stage = Stage::Confirming(publishing.await?);
    }
    *fate = Fate::Sent;
    match stage {
        Stage::Confirming(confirm) => confirm.await,
        Stage::Writing(_) => std::future::pending().await,
    }
}
