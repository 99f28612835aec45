//! Commands to a cluster: each finds its own node.
//!
//! The driver would follow slots that move, but by the same switch it would also send a command again whose answer was lost.
//! That may be a second copy which nobody knows of, and is the relay's to decide. So it tries nothing again, and what surely
//! was not carried out is tried again here.

use std::time::Duration;

use redis::aio::ConnectionLike as _;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::time::sleep;

/// How often a command goes where it is sent to, and how long it waits before it does the first time; twice as long each time
/// after that. Nodes need a moment to agree.
const TURNS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Sends a command to the node that has its key.
pub(crate) async fn send(mut connection: ClusterConnection, command: &Cmd) -> RedisResult<Value> {
    let mut answer = connection.req_packed_command(command).await;
    for turn in 0..TURNS {
        answer = match &answer {
            Err(away) => match kind(away) {
                // The driver has asked for the new places of all slots.
                Some(ServerErrorKind::Moved | ServerErrorKind::TryAgain) => {
                    sleep(PAUSE * 2_u32.pow(turn)).await;
                    connection.req_packed_command(command).await
                }
                Some(ServerErrorKind::Ask) => match importer(away) {
                    Some(node) => send_asking(&mut connection, command, node).await,
                    None => break,
                },
                _ => break,
            },
            Ok(_) => break,
        };
    }
    answer
}

/// Sends a command to the node that is about to get its slot.
async fn send_asking(
    connection: &mut ClusterConnection,
    command: &Cmd,
    node: SingleNodeRoutingInfo,
) -> RedisResult<Value> {
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.cmd("ASKING").add_command(command.clone());
    let answers = connection.route_pipeline(pipeline, 1, 1, node).await?;
    Ok(answers.into_iter().next().unwrap_or(Value::Nil))
}

fn importer(away: &RedisError) -> Option<SingleNodeRoutingInfo> {
    let (address, _slot) = away.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: port.parse().ok()?,
    })
}

fn kind(error: &RedisError) -> Option<ServerErrorKind> {
    match error.kind() {
        ErrorKind::Server(kind) => Some(kind),
        _ => None,
    }
}

/// Whether a node has answered, whatever it said.
pub(crate) fn is_answer(answer: &RedisResult<Value>) -> bool {
    match answer {
        Ok(_) => true,
        Err(error) => error.code().is_some(),
    }
}
