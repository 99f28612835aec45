//! Publishing to RabbitMQ: connections, confirms, returns, and the outcomes they mean.
//!
//! For sinks that build their own messages. [`Publisher::publish`] takes encoded messages ([`Prepared`]) and returns an
//! outcome for each:
//!
//! | what happened | outcome |
//! |---|---|
//! | confirmed, and not returned | delivered |
//! | returned as unroutable | permanent; the reason names the missing binding |
//! | too large; headers too large | permanent, not sent |
//! | exchange missing or refused | permanent; the sink is down if all messages go to [one exchange](Settings::one_exchange) |
//! | not confirmed by a queue (nack) | temporary |
//! | connection lost with several messages | they are sent again, in smaller and smaller parts |
//! | connection lost again with one of them alone, or for another reason; sent and not confirmed | unknown |
//! | connection lost, not sent; unreachable; login refused; broker low on memory or disk | the sink is down |

mod connect;
mod declare;
mod kit;
mod link;
mod pool;
mod prepared;
mod probe;
mod send;
mod settings;
mod socket;
mod topology;
mod work;

use std::time::Duration;

use lapin::protocol::AMQPError;
use sendoff::sink::Limits;
use sendoff::{Outcome, Result};
use tokio::time::Instant;

use self::connect::Connector;
use self::pool::{Loan, Pool};
use self::probe::No;
use self::send::End;
use self::work::Work;
use crate::error::{self, Failure};

pub use self::prepared::Prepared;
pub use self::settings::Settings;
pub use self::topology::{Declare, Exchange, Queue, Topology};

/// After this idle time, a connection is checked for a blocking broker before it gets a batch.
const QUIET: Duration = Duration::from_secs(1);
/// How many names of exchanges are remembered per connection.
const KNOWN_EXCHANGES: usize = 10_000;

/// Publishes prepared messages to one broker. Each batch uses its own connection. Connections are opened when they are
/// needed, and reused.
pub struct Publisher {
    pool: Pool,
}

/// Builds the message at an index of a batch.
type Make<'a> = &'a (dyn Fn(usize) -> Result<Prepared, Outcome> + Send + Sync);

impl Publisher {
    /// Creates the publisher. The first batch or [`Publisher::check`] connects.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](sendoff::ErrorKind::Invalid) when a setting or one of its files cannot be used.
    pub fn new(settings: Settings, topology: Topology) -> Result<Self> {
        Ok(Self {
            pool: Pool::new(Connector::new(settings, topology)?),
        })
    }

    /// Publishes a batch of `count` messages. Returns one outcome per message, in order. The messages are sent in the
    /// order of the batch; if one is not delivered, later ones still can be.
    ///
    /// `make` builds the message at an index of the batch, or returns its outcome instead. It is called just before the
    /// message is sent, so that the broker already has work, and again if the message must be sent again: then it must
    /// build the same message.
    ///
    /// The future may be dropped at any time: unconfirmed messages are then unknown, and the next batch is not
    /// affected.
    pub async fn publish(
        &self,
        count: usize,
        make: impl Fn(usize) -> Result<Prepared, Outcome> + Send + Sync,
    ) -> Vec<Outcome> {
        let mut work = Work::new(count, &make, self.settings().max_message_bytes);
        let patience = self.settings().confirm_timeout + self.settings().connect_timeout;
        let deadline = Instant::now() + patience;
        while work.is_open() {
            if Instant::now() > deadline {
                work.settle_rest(&Failure::silent(patience).outcome());
                break;
            }
            match self.pool.take().await {
                Ok(link) => self.round(&mut work, link).await,
                Err(failure) => work.settle_rest(&failure.outcome()),
            }
        }
        let unsettled = || Failure::silent(patience).unknown();
        work.outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(unsettled))
            .collect()
    }

    /// Connects, logs in, and checks whether this exchange accepts messages, without publishing.
    ///
    /// # Errors
    /// Why the broker or the exchange cannot be used, with advice.
    pub async fn check(&self, exchange: Option<(&str, &str)>) -> Result<()> {
        let mut link = self.pool.take().await?;
        if let Some((exchange, routing_key)) = exchange {
            let (exchange, routing_key) = (exchange.into(), routing_key.into());
            let Connector { settings, topology, .. } = &self.pool.connector;
            match link
                .probe(&exchange, &routing_key, topology, settings.connect_timeout)
                .await
            {
                Ok(()) => {}
                Err(No::Exchange(refusal)) => return Err(Failure::misplaced(refusal).into()),
                Err(No::Broker(failure)) => return Err(failure.into()),
                Err(No::Blocked(failure)) => {
                    link.park(&failure);
                    return Err(failure.into());
                }
            }
        }
        link.give_back();
        Ok(())
    }

    /// The limits of a batch, such as how long it may take.
    pub fn limits(&self) -> Limits {
        let Settings {
            connect_timeout,
            confirm_timeout,
            ..
        } = self.settings();
        Limits {
            batch: None,
            timeout: Some(*connect_timeout * 3 + *confirm_timeout + Duration::from_secs(3)),
        }
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn settings(&self) -> &Settings {
        &self.pool.connector.settings
    }

    /// Settles as many messages as possible on one connection.
    async fn round(&self, work: &mut Work<'_>, mut link: Loan<'_>) {
        work.frame_max = link.frame_max();
        let first = match self.first(work, &mut link).await {
            Ok(Some(first)) => first,
            Ok(None) => return link.give_back(),
            Err(No::Blocked(failure)) => {
                work.settle_rest(&failure.outcome());
                return link.park(&failure);
            }
            // An idle connection may have ended unnoticed; nothing was sent, so another one can be used.
            Err(No::Broker(_)) if link.used => return,
            Err(No::Broker(failure)) => return work.settle_rest(&failure.outcome()),
            Err(No::Exchange(refusal)) => return work.settle_rest(&self.refused_exchange(&refusal)),
        };
        let Settings {
            window,
            confirm_timeout,
            ..
        } = self.settings();
        let known = std::mem::take(&mut link.known);
        let sent = link.send(work.feed(first, &known), *window, *confirm_timeout).await;
        link.known = known;
        let alone = match sent.fates[..] {
            [(place, _)] => Some(place),
            _ => None,
        };
        match work.settle(sent) {
            None => link.give_back(),
            Some(End::Closed(error)) => match (error::channel_error(&error), alone) {
                // A single message was sent, so it is the cause.
                (Some(refusal), Some(place)) => {
                    let outcome = match error::is_about_exchange(refusal) {
                        true => self.refused_exchange(refusal),
                        false => error::of_message(refusal),
                    };
                    work.outcomes[place] = Some(outcome);
                    work.one_by_one = false;
                }
                (Some(_), None) => work.one_by_one = true,
                (None, _) => {}
            },
            Some(End::Silent(_)) => {}
            Some(End::Blocked(failure)) => link.park(&failure),
        }
    }

    /// The first message without an outcome whose exchange accepts messages. Messages before it with an exchange that
    /// does not are settled.
    async fn first(&self, work: &mut Work<'_>, link: &mut Loan<'_>) -> Result<Option<(usize, Prepared)>, No> {
        let Connector { settings, topology, .. } = &self.pool.connector;
        let quiet = link.last_confirm.elapsed() > QUIET;
        while let Some((place, message)) = work.next() {
            let Prepared {
                exchange, routing_key, ..
            } = &message;
            if !quiet && link.known.contains(exchange) {
                return Ok(Some((place, message)));
            }
            match link
                .probe(exchange, routing_key, topology, settings.connect_timeout)
                .await
            {
                Ok(()) => {
                    if link.known.len() >= KNOWN_EXCHANGES {
                        link.known.clear();
                    }
                    link.known.insert(exchange.clone());
                    return Ok(Some((place, message)));
                }
                Err(No::Exchange(refusal)) => {
                    let outcome = self.refused_exchange(&refusal);
                    if !error::is_about_routing_key(&refusal) {
                        work.refused.insert(message.exchange, outcome.clone());
                    }
                    work.outcomes[place] = Some(outcome);
                }
                Err(no) => return Err(no),
            }
        }
        Ok(None)
    }

    /// The outcome of messages to an exchange that does not accept them.
    fn refused_exchange(&self, refusal: &AMQPError) -> Outcome {
        let failure = Failure::misplaced(refusal.clone());
        match self.settings().one_exchange && !error::is_about_routing_key(refusal) {
            true => failure.outcome(),
            false => failure.permanent(),
        }
    }
}
