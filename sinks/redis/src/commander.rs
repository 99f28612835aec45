//! Commands to Redis and their answers, whatever they are for.

use redis::{Cmd, RedisResult, Value};
use sendoff::{Error, ErrorKind, Outcome, Result};
use sendoff_wire::Line;

use crate::dial::Dialer;
use crate::{RedisConfig, error};

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

    /// Sends all commands at once: an answer for each, in order, or what its lack means for a message that hangs on it.
    pub async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Outcome>> {
        if commands.is_empty() {
            return Vec::new();
        }
        match self.line.get().await {
            Err(refusal) => vec![Err(refusal.outcome()); commands.len()],
            Ok(link) => {
                let answers = link.send(commands).await;
                answers.into_iter().map(|answer| self.answer(answer)).collect()
            }
        }
    }

    fn answer(&self, answer: RedisResult<Value>) -> Result<Value, Outcome> {
        match answer {
            Err(lost) => Err(match lost.clone().into_server_errors().as_deref() {
                // A cluster tells a refusal as an error of the call.
                Some([(_, refusal)]) => error::refused(refusal, self.cluster),
                _ => error::unanswered(&lost),
            }),
            Ok(Value::ServerError(refusal)) => Err(error::refused(&refusal, self.cluster)),
            Ok(value) => Ok(value),
        }
    }

    /// Asks whether Redis can be used, without writing.
    ///
    /// # Errors
    /// What stands in the way, with advice.
    pub async fn check(&self) -> Result<()> {
        let link = self.line.get().await.map_err(Error::from)?;
        let answers = link.send(vec![redis::cmd("PING")]).await;
        match answers.into_iter().next() {
            Some(Ok(Value::ServerError(refusal))) => match error::refused(&refusal, self.cluster) {
                Outcome::SinkDown(reason) | Outcome::Temporary(reason) => {
                    Err(Error::new(ErrorKind::Denied, reason.text()).next_step("see above"))
                }
                // Whatever else is wrong, it has answered.
                Outcome::Delivered | Outcome::Permanent(_) | Outcome::Unknown(_) | Outcome::NotYet(_) => Ok(()),
            },
            Some(Ok(_)) => Ok(()),
            Some(Err(_)) | None => Err(Error::new(ErrorKind::Unreachable, "Redis did not answer a PING")
                .because("the connection broke, or the answer took too long")
                .next_step("check that it runs, and what is between")),
        }
    }

    /// Ends the connection.
    pub async fn close(&self) {
        if let Some(link) = self.line.hang_up().await {
            link.end();
        }
    }
}
