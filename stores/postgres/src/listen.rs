//! Wakes the relay by notifications of the database: `LISTEN` on a separate connection.

use std::future::poll_fn;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::emit::Names;
use sendoff::store::WakeListener;
use sendoff::{Error, ErrorKind, Result, Uuid};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

use crate::error::{from_driver, timed_out};
use crate::pipeline::Param;
use crate::store::Inner;

/// How long our own test signal may take to come back.
const ECHO: Duration = Duration::from_secs(2);

/// What the database's channel is called: the same for everybody who uses these tables.
pub(crate) fn channel(names: &Names) -> String {
    names.table("wake")
}

impl Inner {
    pub(crate) async fn listen(&self) -> Result<Option<Box<dyn WakeListener>>> {
        if !self.config.listen {
            return Ok(None);
        }
        let channel = channel(&self.config.names);
        let (client, mut connection) = self.connector.dial().await?;
        // Signals that pile up say no more than one.
        let (sender, signals) = mpsc::channel(64);
        let driver = tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(signal)) => {
                        let _ = sender.try_send(signal.payload().to_owned());
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(event = "listen_ended", %error, "connection for notifications ended");
                        break;
                    }
                }
            }
        });
        let mut listener = Listener {
            client,
            signals,
            driver: driver.abort_handle(),
        };
        listener.start(&channel, self.config.statement_timeout).await?;
        let works = self.hears(&mut listener, &channel).await?;
        if !works {
            tracing::warn!(
                event = "listen_silent",
                "notifications do not arrive, probably because of a connection pooler; the relay only polls; set listen = false in [database]"
            );
            return Ok(None);
        }
        Ok(Some(Box::new(listener)))
    }

    /// Whether a signal that another connection sends really comes. A pooler takes `LISTEN` without complaint and gives
    /// the server's connection to somebody else a moment later.
    async fn hears(&self, listener: &mut Listener, channel: &str) -> Result<bool> {
        let echo = Uuid::new_v4().to_string();
        let params: [Param<'_>; 2] = [(&channel, Type::TEXT), (&echo, Type::TEXT)];
        let what = "LISTEN failed";
        self.emit_pool.run(what, "SELECT pg_notify($1, $2)", &params).await?;
        let heard = timeout(ECHO, async {
            while let Some(signal) = listener.signals.recv().await {
                if signal == echo {
                    return true;
                }
            }
            false
        });
        Ok(heard.await.unwrap_or(false))
    }
}

struct Listener {
    /// Kept: the connection ends with it.
    client: Client,
    signals: mpsc::Receiver<String>,
    driver: AbortHandle,
}

impl Listener {
    async fn start(&self, channel: &str, limit: Duration) -> Result<()> {
        let what = "LISTEN failed";
        match timeout(limit, self.client.batch_execute(&format!("LISTEN \"{channel}\""))).await {
            Ok(listening) => listening.map_err(|error| from_driver(what, error)),
            Err(_) => Err(timed_out(what, limit)),
        }
    }
}

#[async_trait]
impl WakeListener for Listener {
    async fn woken(&mut self) -> Result<()> {
        match self.signals.recv().await {
            Some(_) => {
                while self.signals.try_recv().is_ok() {}
                Ok(())
            }
            None => Err(
                Error::new(ErrorKind::Unreachable, "the connection for notifications ended")
                    .because("the database closed the connection")
                    .next_step("call listen again; the relay polls in the meantime"),
            ),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
