//! One connection, and the commands that go through it.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::task::JoinHandle;

/// How many commands share one write and one answer. When the connection breaks, what was answered in full counts.
const CHUNK: usize = 50;

/// A connection. Dropping the last owner of it ends it.
pub(crate) struct Link {
    kind: Kind,
    broken: AtomicBool,
}

enum Kind {
    Node(MultiplexedConnection, JoinHandle<()>),
    Cluster(ClusterConnection),
}

impl Link {
    /// To one server. `driver` carries the bytes.
    pub(crate) fn node(connection: MultiplexedConnection, driver: JoinHandle<()>) -> Self {
        Self {
            kind: Kind::Node(connection, driver),
            broken: AtomicBool::new(false),
        }
    }

    /// To a cluster.
    pub(crate) fn cluster(connection: ClusterConnection) -> Self {
        Self {
            kind: Kind::Cluster(connection),
            broken: AtomicBool::new(false),
        }
    }

    /// Whether commands may be sent through it.
    pub(crate) fn is_usable(&self) -> bool {
        let ended = match &self.kind {
            Kind::Node(_, driver) => driver.is_finished(),
            // It mends itself.
            Kind::Cluster(_) => false,
        };
        !ended && !self.broken.load(Ordering::Relaxed)
    }

    /// Sends all commands at once and returns each one's answer. Answers to commands of a dropped call are thrown away by
    /// the driver, so that they are nobody else's.
    pub(crate) async fn send(&self, commands: Vec<Cmd>) -> Vec<RedisResult<Value>> {
        let answers = match &self.kind {
            Kind::Node(connection, _) => pipelined(connection, &commands).await,
            // One by one, as each may be another node's; all at the same time.
            Kind::Cluster(connection) => {
                let send = |command| {
                    let mut connection = connection.clone();
                    async move { connection.req_packed_command(command).await }
                };
                join_all(commands.iter().map(send)).await
            }
        };
        if answers.iter().any(Result::is_err) {
            self.broken.store(true, Ordering::Relaxed);
        }
        answers
    }

    /// Ends it, whoever still uses it.
    pub(crate) fn end(&self) {
        self.broken.store(true, Ordering::Relaxed);
        if let Kind::Node(_, driver) = &self.kind {
            driver.abort();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

async fn pipelined(connection: &MultiplexedConnection, commands: &[Cmd]) -> Vec<RedisResult<Value>> {
    let chunks = commands.chunks(CHUNK).map(|chunk| {
        let mut pipeline = Pipeline::with_capacity(chunk.len());
        for command in chunk {
            pipeline.add_command(command.clone());
        }
        let mut connection = connection.clone();
        async move {
            let sent = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await;
            spread(sent, pipeline.len())
        }
    });
    join_all(chunks).await.into_iter().flatten().collect()
}

/// An answer for each command: its own, or what befell them all.
fn spread(sent: Result<Vec<Value>, RedisError>, count: usize) -> Vec<RedisResult<Value>> {
    match sent {
        Ok(values) if values.len() == count => values.into_iter().map(Ok).collect(),
        Ok(_) => vec![Ok(Value::Nil); count],
        Err(error) => vec![Err(error); count],
    }
}
