//! Writes complete lines to a writer that may fail between any two bytes.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use sendoff::Outgoing;
use sendoff::envelope::Envelope;

/// The bytes per write, so that a batch of large payloads is not in memory a second time.
const CHUNK: usize = 64 * 1024;

pub(crate) struct Lines {
    writer: Box<dyn Write + Send>,
    /// Whether the last write failed in the middle of a line.
    torn: bool,
}

impl Lines {
    pub(crate) fn new(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            torn: false,
        }
    }

    pub(crate) fn append(&mut self, batch: &[Arc<Outgoing>]) -> io::Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK);
        if self.torn {
            // Ends the broken line, so that the next one is valid.
            chunk.push(b'\n');
        }
        for outgoing in batch {
            Envelope::of(outgoing).write_line(&mut chunk)?;
            if chunk.len() >= CHUNK {
                self.write(&chunk)?;
                chunk.clear();
            }
        }
        self.write(&chunk)?;
        self.writer.flush()
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.writer.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.torn = bytes[written - 1] != b'\n';
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A program that shares the pipe or terminal has made it non-blocking: wait for the reader anyway.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
