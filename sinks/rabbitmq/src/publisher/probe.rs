//! Asking whether an exchange can be published to, without publishing.
//!
//! A broker that is low on memory tells so only to those who publish, and a missing or refused exchange ends the channel,
//! together with whatever else was on its way. So the question is asked with a message in a transaction that is rolled
//! back: the broker checks all that it checks, and routes nothing.

use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::protocol::AMQPError;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel};
use tokio::time::sleep;

use super::Topology;
use super::link::Link;
use crate::error::{self, Failure};

/// Why the answer is no.
pub(super) enum No {
    /// The exchange is missing, refuses us, or is not as it was to be declared.
    Exchange(AMQPError),
    /// The broker as a whole.
    Broker(Failure),
    /// The broker blocks us: the connection is worth keeping, because on it we learn when that is over.
    Blocked(Failure),
}

impl Link {
    /// Declares the exchange, if the topology wants it, and asks whether it can be published to.
    pub(super) async fn probe(
        &mut self,
        exchange: &ShortString,
        routing_key: &ShortString,
        topology: &Topology,
        patience: Duration,
    ) -> Result<(), No> {
        let channel = match self.prober.take() {
            Some(channel) if channel.status().connected() => channel,
            _ => self.transactional(patience).await?,
        };
        let asking = ask(&channel, exchange, routing_key, topology);
        let answer = tokio::select! {
            answer = asking => answer,
            reason = self.blocked() => return Err(No::Blocked(Failure::blocked(&reason))),
            () = sleep(patience) => return Err(No::Broker(Failure::silent(patience))),
        };
        match answer {
            Ok(()) => {
                self.prober = Some(channel);
                Ok(())
            }
            Err(error) => {
                let error = self.cause(error).await;
                Err(match error::channel_error(&error) {
                    Some(refusal) => No::Exchange(refusal.clone()),
                    None => No::Broker(Failure::lost(&error)),
                })
            }
        }
    }

    async fn transactional(&mut self, patience: Duration) -> Result<Channel, No> {
        let opening = async {
            let channel = self.connection.create_channel().await?;
            channel.tx_select().await?;
            Ok(channel)
        };
        match tokio::time::timeout(patience, opening).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(error)) => Err(No::Broker(Failure::lost(&error))),
            Err(_) => Err(No::Broker(Failure::silent(patience))),
        }
    }
}

async fn ask(
    channel: &Channel,
    exchange: &ShortString,
    routing_key: &ShortString,
    topology: &Topology,
) -> lapin::Result<()> {
    topology.exchange(channel, exchange).await?;
    // Returns when it is written: the client would let the rollback overtake it.
    channel
        .basic_publish(
            exchange.clone(),
            routing_key.clone(),
            BasicPublishOptions::default(),
            &[],
            BasicProperties::default(),
        )
        .await?;
    channel.tx_rollback().await
}
