//! Publishing: a batch to the disk, then confirmed.

use std::sync::Arc;

use async_trait::async_trait;
use sendoff::{Delivery, Error, ErrorKind, Outcome, Result, Sink};
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

use crate::FileConfig;
use crate::log::Log;

/// The sink.
pub struct FileSink {
    log: Arc<Mutex<Log>>,
}

impl FileSink {
    /// Sets it up. The file is opened by the first batch, or by [`Sink::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a value of the settings cannot be used.
    pub fn new(config: FileConfig) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            log: Arc::new(Mutex::new(Log::new(config))),
        })
    }

    /// Does something with the file on a thread that may block. The mutex is taken before, so that batches are written in
    /// the order they were handed over, and the work goes on to its end if this future is dropped.
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
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        if batch.is_empty() {
            return Vec::new();
        }
        let messages = batch.to_vec();
        let outcome = match self.with_log(move |log| log.append(&messages)).await {
            Ok(Ok(())) => Outcome::Delivered,
            Ok(Err(failure)) => failure.outcome(),
            Err(_) => Outcome::Unknown("the process stopped while it wrote to the file".into()),
        };
        vec![outcome; batch.len()]
    }

    async fn check(&self) -> Result<()> {
        match self.with_log(Log::check).await {
            Ok(checked) => checked.map_err(Error::from),
            Err(error) => Err(Error::new(ErrorKind::Backend, "the file could not be checked")
                .because("the process is stopping")
                .with_source(error)),
        }
    }

    async fn close(&self) {
        self.log.lock().await.close();
    }
}
