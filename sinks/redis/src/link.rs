//! One connection, and the commands that go through it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::task::JoinHandle;

use crate::{cluster, error};

/// How many commands share one write and one answer. When the connection breaks, what was answered in full counts.
const CHUNK: usize = 50;

/// After so many calls in a row that no node of a cluster has answered the cluster is looked for anew.
const UNHEARD: u32 = 2;

/// A connection. Dropping the last owner of it ends it.
pub(crate) struct Link {
    kind: Kind,
    broken: AtomicBool,
    /// How many calls in a row no server has answered.
    unheard: AtomicU32,
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
            unheard: AtomicU32::new(0),
        }
    }

    /// To a cluster.
    pub(crate) fn cluster(connection: ClusterConnection) -> Self {
        Self {
            kind: Kind::Cluster(connection),
            broken: AtomicBool::new(false),
            unheard: AtomicU32::new(0),
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
                let send = |command| cluster::send(connection.clone(), command);
                join_all(commands.iter().map(send)).await
            }
        };
        if self.is_spent(&answers) {
            self.broken.store(true, Ordering::Relaxed);
        }
        answers
    }

    /// Whether another connection may do better.
    fn is_spent(&self, answers: &[RedisResult<Value>]) -> bool {
        match &self.kind {
            Kind::Node(..) => answers.iter().any(|answer| match answer {
                Err(_) => true,
                Ok(Value::ServerError(refusal)) => error::is_of_a_bystander(refusal),
                Ok(_) => false,
            }),
            // It mends itself when a node is gone. Only the settings lead out of it when it has lost them all.
            Kind::Cluster(_) => {
                let heard = answers.is_empty() || answers.iter().any(cluster::is_answer);
                let unheard = if heard {
                    0
                } else {
                    self.unheard.load(Ordering::Relaxed) + 1
                };
                self.unheard.store(unheard, Ordering::Relaxed);
                unheard >= UNHEARD
            }
        }
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
