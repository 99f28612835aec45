//! Publishing to RabbitMQ, whatever the messages are: connections, confirms, returns, and what they mean as outcomes.
//!
//! For sinks that make their own messages. [`Publisher::publish`] takes messages as the broker takes them ([`Prepared`])
//! and gives an outcome for each:
//!
//! | what happened | outcome |
//! |---|---|
//! | confirmed, and not returned | delivered |
//! | returned as unroutable | permanent: says which binding is missing |
//! | too large; headers too large | permanent, not even sent |
//! | exchange missing or refused | permanent; the sink is down if all messages go to [one exchange](Settings::one_exchange) |
//! | not confirmed by a queue (nack) | temporary |
//! | connection lost, sent and not confirmed | unknown |
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

use std::time::Duration;

use lapin::protocol::AMQPError;
use lapin::types::ShortString;
use sendoff::sink::Limits;
use sendoff::{Outcome, Result};
use tokio::time::Instant;

use self::connect::Connector;
use self::pool::{Loan, Pool};
use self::probe::No;
use self::send::{End, Fate, Sent};
use crate::error::{self, Failure};

pub use self::prepared::Prepared;
pub use self::settings::Settings;
pub use self::topology::{Declare, Exchange, Queue, Topology};

/// A connection that was quiet for so long is asked whether the broker blocks us meanwhile, before it gets a batch.
const QUIET: Duration = Duration::from_secs(1);
/// How many names of exchanges are remembered a connection.
const KNOWN_EXCHANGES: usize = 10_000;

/// Publishes prepared messages to one broker. Each batch has a connection of its own while it is under way; connections
/// are made when they are needed and used again.
pub struct Publisher {
    pool: Pool,
}

/// What is left to do of a batch.
struct Work<'a> {
    messages: Vec<&'a Prepared>,
    outcomes: Vec<Option<Outcome>>,
    /// Places of messages without an outcome, in order.
    rest: Vec<usize>,
    /// A message among the rest made the broker close the channel: they go one by one until it is found.
    one_by_one: bool,
}

impl Publisher {
    /// Sets it up. The first batch connects, or [`Publisher::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](sendoff::ErrorKind::Invalid) when a setting or a file of it cannot be used.
    pub fn new(settings: Settings, topology: Topology) -> Result<Self> {
        Ok(Self {
            pool: Pool::new(Connector::new(settings, topology)?),
        })
    }

    /// Publishes a batch: one outcome a message, in order. The messages leave in the order of the batch; if one is not
    /// delivered, others behind it still are.
    ///
    /// May be dropped at any time: what was not confirmed by then is unknown, and the next batch is not disturbed.
    pub async fn publish<'a>(&self, messages: impl IntoIterator<Item = &'a Prepared> + Send) -> Vec<Outcome> {
        let messages: Vec<&Prepared> = messages.into_iter().collect();
        let mut work = Work {
            outcomes: vec![None; messages.len()],
            rest: (0..messages.len()).collect(),
            messages,
            one_by_one: false,
        };
        let patience = self.settings().confirm_timeout + self.settings().connect_timeout;
        let deadline = Instant::now() + patience;
        while !work.rest.is_empty() {
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

    /// Reaches the broker, logs in, and asks whether this exchange could be published to, without publishing.
    ///
    /// # Errors
    /// What stands in the way, with advice.
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

    /// How long a batch may take, with all that can go wrong.
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

    /// Ends the connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn settings(&self) -> &Settings {
        &self.pool.connector.settings
    }

    /// Settles as many messages as one connection can.
    async fn round(&self, work: &mut Work<'_>, mut link: Loan<'_>) {
        work.refuse_unsendable(self.settings().max_message_bytes, link.frame_max());
        match self.make_ready(work, &mut link).await {
            Ok(()) => {}
            Err(No::Blocked(failure)) => {
                work.settle_rest(&failure.outcome());
                return link.park(&failure);
            }
            // A connection that was quiet may have ended without our noticing; nothing was sent, so take another.
            Err(No::Broker(_)) if link.used => return,
            Err(No::Broker(failure)) => return work.settle_rest(&failure.outcome()),
            Err(No::Exchange(refusal)) => return work.settle_rest(&self.refused_exchange(&refusal)),
        }
        let count = if work.one_by_one { 1 } else { work.rest.len() };
        let places: Vec<usize> = work.rest.iter().copied().take(count).collect();
        let batch: Vec<&Prepared> = places.iter().map(|at| work.messages[*at]).collect();
        let Settings {
            window,
            confirm_timeout,
            ..
        } = self.settings();
        let sent = link.send(&batch, *window, *confirm_timeout).await;
        let end = work.settle(&places, sent);
        match end {
            None => link.give_back(),
            Some(End::Closed(error)) => match error::channel_error(&error) {
                // One message alone: it is the one.
                Some(refusal) if places.len() == 1 => {
                    let outcome = match error::is_about_exchange(refusal) {
                        true => self.refused_exchange(refusal),
                        false => error::of_message(refusal),
                    };
                    work.settle_one(places[0], outcome);
                    work.one_by_one = false;
                }
                Some(_) => work.one_by_one = true,
                None => {}
            },
            Some(End::Silent(_)) => {}
            Some(End::Blocked(failure)) => link.park(&failure),
        }
    }

    /// Sees to it that all exchanges of the rest can be published to; messages to others are settled.
    async fn make_ready(&self, work: &mut Work<'_>, link: &mut Loan<'_>) -> Result<(), No> {
        let Connector { settings, topology, .. } = &self.pool.connector;
        let mut quiet = link.last_confirm.elapsed() > QUIET;
        let mut at = 0;
        while let Some(place) = work.rest.get(at).copied() {
            let Prepared {
                exchange, routing_key, ..
            } = work.messages[place];
            if !quiet && link.known.contains(exchange) {
                at += 1;
                continue;
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
                    quiet = false;
                }
                Err(No::Exchange(refusal)) => {
                    let outcome = self.refused_exchange(&refusal);
                    if error::is_about_routing_key(&refusal) {
                        work.settle_one(place, outcome);
                    } else {
                        work.settle_all_to(exchange, &outcome);
                    }
                    at = 0;
                }
                Err(no) => return Err(no),
            }
        }
        Ok(())
    }

    /// What it means that an exchange cannot be published to.
    fn refused_exchange(&self, refusal: &AMQPError) -> Outcome {
        let failure = Failure::misplaced(refusal.clone());
        match self.settings().one_exchange && !error::is_about_routing_key(refusal) {
            true => failure.outcome(),
            false => failure.permanent(),
        }
    }
}

impl Work<'_> {
    fn refuse_unsendable(&mut self, max_message_bytes: usize, frame_max: usize) {
        let Self {
            messages,
            outcomes,
            rest,
            ..
        } = self;
        rest.retain(|at| match messages[*at].unsendable(max_message_bytes, frame_max) {
            Some(reason) => {
                outcomes[*at] = Some(Outcome::Permanent(reason));
                false
            }
            None => true,
        });
    }

    fn settle_one(&mut self, place: usize, outcome: Outcome) {
        self.outcomes[place] = Some(outcome);
        self.rest.retain(|at| *at != place);
    }

    fn settle_all_to(&mut self, exchange: &ShortString, outcome: &Outcome) {
        let Self {
            messages,
            outcomes,
            rest,
            ..
        } = self;
        rest.retain(|at| {
            let other = messages[*at].exchange != *exchange;
            if !other {
                outcomes[*at] = Some(outcome.clone());
            }
            other
        });
    }

    fn settle_rest(&mut self, outcome: &Outcome) {
        for at in self.rest.drain(..) {
            self.outcomes[at] = Some(outcome.clone());
        }
    }

    /// Settles what was sent. After the channel alone was closed, what was not confirmed is left to be sent again.
    fn settle(&mut self, places: &[usize], sent: Sent) -> Option<End> {
        let Sent { fates, returned, end } = sent;
        let (unsent, unconfirmed) = match &end {
            None => (None, None),
            Some(End::Closed(error)) if error::channel_error(error).is_some() => (None, None),
            Some(End::Closed(error)) => {
                let failure = Failure::lost(error);
                (Some(failure.outcome()), Some(failure.unknown()))
            }
            Some(End::Silent(failure)) => (Some(failure.outcome()), Some(failure.unknown())),
            Some(End::Blocked(failure)) => (Some(failure.outcome()), Some(failure.outcome())),
        };
        for (place, fate) in places.iter().zip(&fates) {
            self.outcomes[*place] = match fate {
                Fate::Acked => Some(Outcome::Delivered),
                Fate::Nacked => Some(error::nacked()),
                Fate::Sent => unconfirmed.clone(),
                Fate::Unsent => unsent.clone(),
            };
        }
        for message in returned {
            // The client does not know which message a return belongs to when several are confirmed at once.
            let is_it = |place: &&usize| {
                self.messages[**place].is(&message) && !matches!(self.outcomes[**place], Some(Outcome::Permanent(_)))
            };
            if let Some(place) = places.iter().find(is_it) {
                let text = message.reply_text.as_str();
                self.outcomes[*place] = Some(error::unroutable(self.messages[*place], message.reply_code, text));
            } else {
                // One of them was not routed, and nobody knows which: none of them may count as delivered.
                for place in places {
                    if self.outcomes[*place] == Some(Outcome::Delivered) {
                        let reason = "RabbitMQ returned a message of this batch that has no id of its own";
                        self.outcomes[*place] = Some(Outcome::Unknown(reason.into()));
                    }
                }
            }
        }
        let outcomes = &self.outcomes;
        self.rest.retain(|at| outcomes[*at].is_none());
        end
    }
}
