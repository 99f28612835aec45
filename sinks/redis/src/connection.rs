//! A connection to one server or to a cluster.

use redis::{Cmd, RedisResult, Value};

use crate::cluster::Cluster;
use crate::error::{self, Lack};
use crate::link::Link;

pub(crate) enum Connection {
    Server(Link),
    Cluster(Cluster),
}

impl Connection {
    /// Sends all commands together. Returns for each, in order, its answer, or what its lack means for the message.
    pub(crate) async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Lack>> {
        match self {
            Self::Server(link) => {
                let answers = link.send(commands).await.into_iter();
                answers.map(|answer| error::judged(answer, false)).collect()
            }
            Self::Cluster(cluster) => cluster.send(commands).await,
        }
    }

    /// Sends a PING.
    pub(crate) async fn ping(&self) -> RedisResult<Value> {
        match self {
            Self::Server(link) => link.ping().await,
            Self::Cluster(cluster) => cluster.ping().await,
        }
    }

    /// Whether commands can be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        match self {
            Self::Server(link) => link.is_usable(),
            // It replaces lost nodes by itself. After it has lost all of them, only the settings can find the cluster
            // again.
            Self::Cluster(cluster) => cluster.is_usable(),
        }
    }

    /// Closes it, even if it is in use.
    pub(crate) fn end(&self) {
        match self {
            Self::Server(link) => link.end(),
            Self::Cluster(cluster) => cluster.end(),
        }
    }
}
