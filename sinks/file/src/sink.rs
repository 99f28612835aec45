//! Publishing: a batch is delivered after it is on the disk.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Result, Sink};
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

use crate::FileConfig;
use crate::log::Log;

/// Publishes messages to a file.
pub struct FileSink {
    log: Arc<Mutex<Log>>,
}

impl FileSink {
    /// Creates the sink. It opens the file when the first batch is published, or when [`Sink::check`] is called.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a setting cannot be used.
    pub fn new(config: FileConfig) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            log: Arc::new(Mutex::new(Log::new(config))),
        })
    }

    /// Runs `work` on a thread that may block. The mutex is taken before, so that batches are written in the order of
    /// the calls. The work runs to its end even if this future is dropped.
    async fn with_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Log) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let mut log = Arc::clone(&self.log).lock_owned().await;
        spawn_blocking(move || work(&mut log)).await
    }
}

#[async_trait]
impl Sink for FileSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        let messages = batch.to_vec();
        let outcome = match self.with_log(move |log| log.append(&messages)).await {
            Ok(Ok(())) => Outcome::Delivered,
            Ok(Err(failure)) => failure.outcome(),
            Err(_) => {
                Outcome::Unknown("the relay stopped while it wrote to the file (the message is sent again)".into())
            }
        };
        vec![outcome; batch.len()]
    }

    async fn check(&self) -> Result<()> {
        match self.with_log(Log::check).await {
            Ok(checked) => checked.map_err(Error::from),
            Err(error) => Err(Error::new(ErrorKind::Backend, "the file sink cannot check its file")
                .because("this process is stopping")
                .with_source(error)),
        }
    }

    async fn close(&self) {
        self.log.lock().await.close();
    }
}
