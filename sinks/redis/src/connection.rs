//! What commands go through: one server, or a cluster.

use redis::{Cmd, RedisResult, Value};

use crate::cluster::Cluster;
use crate::error::{self, Lack};
use crate::link::Link;

pub(crate) enum Connection {
    Server(Link),
    Cluster(Cluster),
}

impl Connection {
    /// Sends all commands at once: an answer for each, in order, or what its lack means for a message that hangs on it.
    pub(crate) async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        match self {
            Self::Server(link) => {
                let answers = link.send(commands).await.into_iter();
                answers.map(|answer| error::judged(answer, false)).collect()
            }
            Self::Cluster(cluster) => cluster.send(commands).await,
        }
    }

    /// Asks for anything.
    pub(crate) async fn ping(&self) -> RedisResult<Value> {
        match self {
            Self::Server(link) => link.ping().await,
            Self::Cluster(cluster) => cluster.ping().await,
        }
    }

    /// Whether commands may be sent through it.
    pub(crate) fn is_usable(&self) -> bool {
        match self {
            Self::Server(link) => link.is_usable(),
            // It mends itself when nodes are gone. Only the settings lead out of it when it has lost them all.
            Self::Cluster(cluster) => cluster.is_usable(),
        }
    }

    /// Ends it, whoever still uses it.
    pub(crate) fn end(&self) {
        match self {
            Self::Server(link) => link.end(),
            Self::Cluster(cluster) => cluster.end(),
        }
    }
}
