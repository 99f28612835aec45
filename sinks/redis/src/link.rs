//! A connection to one server, and the commands that go through it.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::task::JoinHandle;

use crate::error;

/// How many commands share one write and one answer. When the connection breaks, what was answered in full counts. Two that
/// belong together are in the same one, as it is even.
const CHUNK: usize = 50;

/// A connection. Dropping the last owner of it ends it.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    broken: AtomicBool,
}

impl Link {
    /// `driver` carries the bytes.
    pub(crate) fn new(connection: MultiplexedConnection, driver: JoinHandle<()>) -> Self {
        Self {
            connection,
            driver,
            broken: AtomicBool::new(false),
        }
    }

    /// Whether commands may be sent through it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.driver.is_finished() && !self.broken.load(Ordering::Relaxed)
    }

    /// Sends all commands at once and returns each one's answer. Answers to commands of a dropped call are thrown away by
    /// the driver, so that they are nobody else's.
    pub(crate) async fn send(&self, commands: Vec<Cmd>) -> Vec<RedisResult<Value>> {
        let chunks = commands.len().div_ceil(CHUNK);
        let mut commands = commands.into_iter();
        let sending: Vec<_> = (0..chunks)
            .map(|_| {
                let mut pipeline = Pipeline::with_capacity(CHUNK);
                for command in commands.by_ref().take(CHUNK) {
                    pipeline.add_command(command);
                }
                let mut connection = self.connection.clone();
                async move {
                    let sent = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await;
                    spread(sent, pipeline.len())
                }
            })
            .collect();
        let answers: Vec<_> = join_all(sending).await.into_iter().flatten().collect();
        if answers.iter().any(is_of_a_spent_link) {
            self.broken.store(true, Ordering::Relaxed);
        }
        answers
    }

    /// Asks for anything.
    pub(crate) async fn ping(&self) -> RedisResult<Value> {
        let answer = self.send(vec![redis::cmd("PING")]).await.pop();
        answer.unwrap_or(Ok(Value::Nil))
    }

    /// Ends it, whoever still uses it.
    pub(crate) fn end(&self) {
        self.broken.store(true, Ordering::Relaxed);
        self.driver.abort();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether another connection may do better.
fn is_of_a_spent_link(answer: &RedisResult<Value>) -> bool {
    match answer {
        Err(_) => true,
        Ok(Value::ServerError(refusal)) => error::is_of_a_bystander(refusal),
        Ok(_) => false,
    }
}

/// An answer for each command: its own, or what befell them all.
fn spread(sent: Result<Vec<Value>, RedisError>, count: usize) -> Vec<RedisResult<Value>> {
    match sent {
        Ok(values) if values.len() == count => values.into_iter().map(Ok).collect(),
        Ok(_) => vec![Ok(Value::Nil); count],
        Err(error) => vec![Err(error); count],
    }
}
