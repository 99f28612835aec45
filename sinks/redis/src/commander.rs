//! Commands to Redis and their answers, whatever they are for.

use redis::{Cmd, Value};
use sendoff::{Error, ErrorKind, Outcome, Result};
use sendoff_wire::Line;

use crate::dial::Dialer;
use crate::{Lack, RedisConfig, error};

/// Sends commands to the server of a [`RedisConfig`]: for sinks that write other things there than messages of ours.
pub struct Commander {
    line: Line<Dialer>,
    cluster: bool,
}

impl Commander {
    /// Sets it up. The first command connects, or [`Commander::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: RedisConfig) -> Result<Self> {
        config.validate()?;
        let (patience, cluster) = (config.connect_timeout, config.cluster);
        let line = Line::new(Dialer::new(config)?, patience);
        Ok(Self { line, cluster })
    }

    /// Sends all commands at once: an answer for each, in order, or what its lack means for a message that hangs on it. What the
    /// connection broke under may be sent again in [parts](sendoff_wire::Parts): one command may be the cause.
    pub async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        if commands.is_empty() {
            return Vec::new();
        }
        match self.line.get().await {
            Err(refusal) => vec![Err(Lack::Settled(refusal.outcome())); commands.len()],
            Ok(connection) => connection.send(commands).await,
        }
    }

    /// The same by a connection that nothing else is sent through, and that ends with it: for commands that one broke under.
    pub async fn send_apart(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        if commands.is_empty() {
            return Vec::new();
        }
        match self.line.apart().await {
            Err(refusal) => vec![Err(Lack::Settled(refusal.outcome())); commands.len()],
            Ok(connection) => {
                let answers = connection.send(commands).await;
                connection.end();
                answers
            }
        }
    }

    /// Asks whether Redis can be used, without writing.
    ///
    /// # Errors
    /// What stands in the way, with advice.
    pub async fn check(&self) -> Result<()> {
        let connection = self.line.get().await.map_err(Error::from)?;
        match connection.ping().await {
            Ok(Value::ServerError(refusal)) => match error::refused(&refusal, self.cluster) {
                Outcome::SinkDown(reason) | Outcome::Temporary(reason) => {
                    Err(Error::new(ErrorKind::Denied, reason.text()).next_step("see above"))
                }
                // Whatever else is wrong, it has answered.
                Outcome::Delivered | Outcome::Permanent(_) | Outcome::Unknown(_) | Outcome::NotYet(_) => Ok(()),
            },
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Unreachable, "Redis did not answer a PING")
                .because("the connection broke, or the answer took too long")
                .next_step("check that it runs, and what is between")),
        }
    }

    /// Ends the connection.
    pub async fn close(&self) {
        if let Some(connection) = self.line.hang_up().await {
            connection.end();
        }
    }
}
