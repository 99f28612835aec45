//! Exchanges and queues to declare before publishing.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};
use serde::{Deserialize, Serialize};

/// Whether the sink declares exchanges and queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Declare {
    /// The sink declares nothing.
    #[default]
    Off,
    /// The sink checks that exchanges and queues exist.
    Passive,
    /// The sink creates exchanges and queues that are missing. The user needs the permission to configure them.
    Active,
}

/// The exchanges and queues that a connection declares before it publishes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// Whether exchanges and queues are declared.
    pub declare: Declare,
    /// The properties of every exchange that messages are published to; not set: exchanges are not declared.
    pub exchange: Option<Exchange>,
    /// The queues to declare, with their bindings.
    pub queues: Vec<Queue>,
}

/// The properties of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The type of the exchange.
    pub kind: ExchangeKind,
    /// Whether the exchange survives a restart of the broker.
    pub durable: bool,
}

/// A queue with its properties and bindings.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// The name of the queue.
    pub name: ShortString,
    /// Whether the queue survives a restart of the broker.
    pub durable: bool,
    /// The arguments of the queue, for example `x-queue-type`.
    pub arguments: FieldTable,
    /// The exchanges that the queue is bound to, each with a binding key.
    pub bindings: Vec<(ShortString, ShortString)>,
}

impl Topology {
    /// Declares an exchange, if exchanges are declared. The default exchange always exists.
    pub(super) async fn exchange(&self, channel: &Channel, name: &ShortString) -> lapin::Result<()> {
        let Some(exchange) = self.exchange.as_ref().filter(|_| !name.as_str().is_empty()) else {
            return Ok(());
        };
        let options = ExchangeDeclareOptions {
            passive: match self.declare {
                Declare::Off => return Ok(()),
                Declare::Passive => true,
                Declare::Active => false,
            },
            durable: exchange.durable,
            ..ExchangeDeclareOptions::default()
        };
        let kind = exchange.kind.clone();
        channel
            .exchange_declare(name.clone(), kind, options, FieldTable::default())
            .await
    }

    /// Declares the queues, and the exchanges that they are bound to.
    pub(super) async fn queues(&self, channel: &Channel) -> lapin::Result<()> {
        let passive = match self.declare {
            Declare::Off => return Ok(()),
            Declare::Passive => true,
            Declare::Active => false,
        };
        for queue in &self.queues {
            let options = QueueDeclareOptions {
                passive,
                durable: queue.durable,
                ..QueueDeclareOptions::default()
            };
            channel
                .queue_declare(queue.name.clone(), options, queue.arguments.clone())
                .await?;
            // AMQP can create a binding, but not check for it.
            for (exchange, key) in queue.bindings.iter().filter(|_| !passive) {
                self.exchange(channel, exchange).await?;
                let (queue, exchange, key) = (queue.name.clone(), exchange.clone(), key.clone());
                channel
                    .queue_bind(queue, exchange, key, QueueBindOptions::default(), FieldTable::default())
                    .await?;
            }
        }
        Ok(())
    }
}
