//! The queue that both relays fill, and that no worker empties.

use anyhow::Result;
use lapin::options::QueueDeleteOptions;
use lapin::{Connection, ConnectionProperties};

/// Removes it, so that every drain begins with an empty queue: adding to a fuller queue costs more.
pub(super) async fn remove(broker: &str, queue: &str) -> Result<()> {
    if broker.starts_with("redis") {
        let mut connection = redis::Client::open(broker)?.get_multiplexed_async_connection().await?;
        let () = redis::cmd("DEL").arg(queue).query_async(&mut connection).await?;
        return Ok(());
    }
    let connection = Connection::connect(broker, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel
        .queue_delete(queue.into(), QueueDeleteOptions::default())
        .await?;
    connection.close(200, "OK".into()).await?;
    Ok(())
}
