//! Declares queues that single messages need.

use sendoff::Outcome;
use tokio::time::timeout;

use super::{Publisher, Topology};
use crate::error::{self, Failure};

impl Publisher {
    /// Declares queues with their bindings, or checks that they exist. For callers that learn only from a message which
    /// queues it needs; [`Publisher::new`] takes the topology that every connection declares. A queue with other
    /// properties is used as it is: messages that it refuses are returned.
    ///
    /// # Errors
    /// The outcome of messages that need the queues: permanent when the broker refuses, for example because a queue is
    /// missing; the sink is down when the broker cannot be reached.
    pub async fn declare(&self, topology: &Topology) -> Result<(), Outcome> {
        loop {
            let mut link = self.pool.take().await.map_err(|failure| failure.outcome())?;
            let patience = self.settings().connect_timeout;
            let connection = &link.connection;
            let declaring = async {
                // A separate channel, because a refusal closes it.
                let channel = connection.create_channel().await?;
                topology.queues(&channel).await?;
                channel.close(200, "OK".into()).await
            };
            let error = match timeout(patience, declaring).await {
                Err(_) => return Err(Failure::silent(patience).outcome()),
                Ok(Ok(())) => {
                    link.give_back();
                    return Ok(());
                }
                Ok(Err(error)) => link.cause(error).await,
            };
            match error::channel_error(&error) {
                Some(refusal) if error::is_about_properties(refusal) => {
                    let why = refusal.get_message().as_str();
                    tracing::warn!(
                        event = "declare_differs",
                        why,
                        "queue or exchange exists with other properties; it is used unchanged"
                    );
                    link.give_back();
                    return Ok(());
                }
                Some(refusal) => {
                    let outcome = Failure::misplaced(refusal.clone()).permanent();
                    link.give_back();
                    return Err(outcome);
                }
                // An idle connection may have ended unnoticed.
                None if link.used => {}
                None => return Err(Failure::lost(&error).outcome()),
            }
        }
    }
}
