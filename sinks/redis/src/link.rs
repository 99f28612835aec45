//! A connection to one server, and the commands on it.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::task::JoinHandle;

use crate::error;

/// How many commands share one pipeline. When the connection breaks, only completely answered pipelines count. The
/// number is even, so that two commands that belong together are in the same pipeline.
const CHUNK: usize = 50;

/// A connection. It is closed when its last owner is dropped.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    broken: AtomicBool,
}

impl Link {
    /// `driver` is the task that reads and writes the socket.
    pub(crate) fn new(connection: MultiplexedConnection, driver: JoinHandle<()>) -> Self {
        Self {
            connection,
            driver,
            broken: AtomicBool::new(false),
        }
    }

    /// Whether commands can be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.driver.is_finished() && !self.broken.load(Ordering::Relaxed)
    }

    /// Sends all commands together, and returns the answer of each. If the call is dropped, the driver discards its
    /// answers, so that no other call gets them.
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

    /// Sends a PING.
    pub(crate) async fn ping(&self) -> RedisResult<Value> {
        let answer = self.send(vec![redis::cmd("PING")]).await.pop();
        answer.unwrap_or(Ok(Value::Nil))
    }

    /// Closes it, even if it is in use.
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

/// Whether a new connection may get another answer.
fn is_of_a_spent_link(answer: &RedisResult<Value>) -> bool {
    match answer {
        Err(_) => true,
        Ok(Value::ServerError(refusal)) => error::is_of_a_bystander(refusal),
        Ok(_) => false,
    }
}

/// The answer of each command: its own, or the error of all.
fn spread(sent: Result<Vec<Value>, RedisError>, count: usize) -> Vec<RedisResult<Value>> {
    match sent {
        Ok(values) if values.len() == count => values.into_iter().map(Ok).collect(),
        Ok(_) => vec![Ok(Value::Nil); count],
        Err(error) => vec![Err(error); count],
    }
}
