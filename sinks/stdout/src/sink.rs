//! Publishing: lines, in the order of the batch.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Result, Sink};
use tokio::sync::Mutex;

use crate::StdoutConfig;
use crate::error::outcome;
use crate::lines::Lines;

/// Publishes messages to standard output.
pub struct StdoutSink {
    lines: Arc<Mutex<Lines>>,
    /// Whether other code in this process may print to the same output.
    shared: bool,
}

impl StdoutSink {
    /// Creates a sink that writes to standard output.
    ///
    /// # Errors
    /// When the process has no standard output.
    pub fn new(_config: &StdoutConfig) -> Result<Self> {
        let file = standard_output().map_err(|error| {
            Error::new(ErrorKind::Unreachable, "the stdout sink cannot use standard output")
                .because(error.to_string())
                .next_step("start the relay with standard output open, or use a file sink")
                .with_source(error)
        })?;
        Ok(Self {
            lines: Arc::new(Mutex::new(Lines::new(file))),
            shared: true,
        })
    }

    /// Creates a sink that writes the same lines to any other writer.
    pub fn to_writer(writer: impl Write + Send + 'static) -> Self {
        Self {
            lines: Arc::new(Mutex::new(Lines::new(writer))),
            shared: false,
        }
    }
}

#[async_trait]
impl Sink for StdoutSink {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        // Locked here and not on the blocking thread, so that batches are written in the order of the calls.
        let mut lines = Arc::clone(&self.lines).lock_owned().await;
        let (messages, shared) = (batch.to_vec(), self.shared);
        let writing = tokio::task::spawn_blocking(move || {
            // Other output comes before or after the batch, never in between.
            let mut others = shared.then(|| io::stdout().lock());
            if let Some(others) = &mut others {
                others.flush()?;
            }
            lines.append(&messages)
        });
        let result = match writing.await {
            Ok(Ok(())) => Outcome::Delivered,
            Ok(Err(error)) => outcome(&error),
            Err(_) => Outcome::Unknown(
                "the relay stopped while it wrote to standard output (the message is sent again)".into(),
            ),
        };
        vec![result; batch.len()]
    }
}

/// Standard output without the buffer of the standard library, which keeps bytes that it could not write, and treats a
/// closed output as written.
fn standard_output() -> io::Result<File> {
    #[cfg(unix)]
    let owned = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
    owned.map(File::from)
}
