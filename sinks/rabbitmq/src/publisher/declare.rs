//! Declaring what a message needs, on the way to publishing it.

use sendoff::Outcome;
use tokio::time::timeout;

use super::{Publisher, Topology};
use crate::error::{self, Failure};

impl Publisher {
    /// Declares queues with their bindings, or asks for them: for those who learn only from a message which it needs. What
    /// every connection is to declare, whatever it publishes, is given to [`Publisher::new`]. What is there with other
    /// properties is left as it is: messages that it does not take are returned.
    ///
    /// # Errors
    /// The outcome for messages that need them: permanent when the broker refuses, as for a queue that is missing, and
    /// the sink is down when the broker cannot be asked.
    pub async fn declare(&self, topology: &Topology) -> Result<(), Outcome> {
        loop {
            let mut link = self.pool.take().await.map_err(|failure| failure.outcome())?;
            let patience = self.settings().connect_timeout;
            let connection = &link.connection;
            let declaring = async {
                // Of its own: a refusal closes the channel.
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
                        "RabbitMQ has it with other properties: it is used as it is"
                    );
                    link.give_back();
                    return Ok(());
                }
                Some(refusal) => {
                    let outcome = Failure::misplaced(refusal.clone()).permanent();
                    link.give_back();
                    return Err(outcome);
                }
                // A connection that was quiet may have ended without our noticing.
                None if link.used => {}
                None => return Err(Failure::lost(&error).outcome()),
            }
        }
    }
}
