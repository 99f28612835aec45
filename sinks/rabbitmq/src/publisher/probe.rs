//! Checks whether an exchange accepts messages, without publishing.
//!
//! A broker that is low on memory reports that only to publishers, and a missing or refused exchange closes the
//! channel, together with all unconfirmed messages on it. So the check publishes a message in a transaction, and rolls
//! it back: the broker does all its checks, and routes nothing.

use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::protocol::AMQPError;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel};
use tokio::time::sleep;

use super::Topology;
use super::link::Link;
use crate::error::{self, Failure};

/// Why the exchange does not accept messages.
pub(super) enum No {
    /// The exchange is missing, refused, or has other properties than declared.
    Exchange(AMQPError),
    /// The broker as a whole cannot be used.
    Broker(Failure),
    /// The broker blocks publishers: the connection is kept, because the broker reports the end of the block on it.
    Blocked(Failure),
}

impl Link {
    /// Declares the exchange, if the topology says so, and checks whether it accepts messages.
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
    // Waits until it is written: otherwise the client would send the rollback before it.
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
