//! Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the process at once.

use sendoff::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

/// A token that the first signal cancels.
///
/// # Errors
/// When the system refuses to hand signals over.
pub(crate) fn stop_token() -> Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut signals = Signals::new().map_err(|error| {
        Error::new(ErrorKind::Backend, "signals cannot be received")
            .because(error.to_string())
            .next_step("check the limits of the process")
            .with_source(error)
    })?;
    let token = stop.clone();
    tokio::spawn(async move {
        let name = signals.next().await.name;
        tracing::info!(event = "signal", name, "stopping; the same once more ends at once");
        token.cancel();
        let second = signals.next().await;
        tracing::warn!(event = "signal", name = second.name, "ending at once");
        std::process::exit(second.code);
    });
    Ok(stop)
}

struct Signal {
    name: &'static str,
    /// As shells report a process that the signal ended.
    code: i32,
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal { name: "SIGINT", code: 130 },
            _ = self.terminate.recv() => Signal { name: "SIGTERM", code: 143 },
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            // No handler could be set, so none will ever come.
            std::future::pending::<()>().await;
        }
        Signal {
            name: "Ctrl-C",
            code: 130,
        }
    }
}
