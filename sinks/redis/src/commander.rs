//! Commands to Redis and their answers.

use redis::{Cmd, Value};
use sendoff::{Error, ErrorKind, Outcome, Result};
use sendoff_wire::Connections;

use crate::connect::Connector;
use crate::{Lack, RedisConfig, error};

/// Sends commands to the server of a [`RedisConfig`], for sinks that write other data than Sendoff's messages.
pub struct Commander {
    connections: Connections<Connector>,
    cluster: bool,
}

impl Commander {
    /// Creates the commander. The first command or [`Commander::check`] connects.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: RedisConfig) -> Result<Self> {
        config.validate()?;
        let (patience, cluster) = (config.connect_timeout, config.cluster);
        let connections = Connections::new(Connector::new(config)?, patience);
        Ok(Self { connections, cluster })
    }

    /// Sends all commands together. Returns for each, in order, its answer, or why there is none. Commands whose
    /// connection broke may be sent again in [parts](sendoff_wire::Parts), because one command may be the cause.
    pub async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        if commands.is_empty() {
            return Vec::new();
        }
        match self.connections.get().await {
            Err(refusal) => vec![Err(Lack::Settled(refusal.outcome())); commands.len()],
            Ok(connection) => connection.send(commands).await,
        }
    }

    /// Sends all commands together on a separate connection, which is closed afterwards. For commands whose connection
    /// broke; see [`Commander::send`].
    pub async fn send_apart(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        if commands.is_empty() {
            return Vec::new();
        }
        match self.connections.apart().await {
            Err(refusal) => vec![Err(Lack::Settled(refusal.outcome())); commands.len()],
            Ok(connection) => {
                let answers = connection.send(commands).await;
                connection.end();
                answers
            }
        }
    }

    /// Checks whether Redis can be used, without writing.
    ///
    /// # Errors
    /// Why Redis cannot be used, with advice.
    pub async fn check(&self) -> Result<()> {
        let connection = self.connections.get().await.map_err(Error::from)?;
        match connection.ping().await {
            Ok(Value::ServerError(refusal)) => match error::refused(&refusal, self.cluster) {
                Outcome::SinkDown(reason) | Outcome::Temporary(reason) => {
                    Err(Error::new(ErrorKind::Denied, reason.text()))
                }
                // The server answered; these outcomes concern single messages.
                Outcome::Delivered | Outcome::Permanent(_) | Outcome::Unknown(_) | Outcome::NotYet(_) => Ok(()),
            },
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Unreachable, "Redis did not answer a PING")
                .because("the connection broke, or the answer took too long")
                .next_step("check that Redis is running, and check the network")),
        }
    }

    /// Closes the connection to Redis.
    pub async fn close(&self) {
        if let Some(connection) = self.connections.close().await {
            connection.end();
        }
    }
}
