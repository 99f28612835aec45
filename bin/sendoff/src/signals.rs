//! Ctrl-C and SIGTERM: the first signal starts a clean stop, the second ends the process immediately.

use sendoff::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

/// A token that the first signal cancels.
///
/// # Errors
/// When the operating system refuses a signal handler.
pub(crate) fn stop_token() -> Result<CancellationToken> {
    let stop = CancellationToken::new();
    let mut signals = Signals::new().map_err(|error| {
        Error::new(ErrorKind::Backend, "cannot install signal handlers")
            .because(error.to_string())
            .next_step("check whether a sandbox, such as a seccomp profile, forbids signal handlers")
            .with_source(error)
    })?;
    let token = stop.clone();
    tokio::spawn(async move {
        let name = signals.next().await.name;
        tracing::info!(event = "signal", name, "stopping (signal again to force)");
        token.cancel();
        let second = signals.next().await;
        tracing::warn!(
            event = "signal",
            name = second.name,
            "stopping now (forced by a second signal)"
        );
        std::process::exit(second.code);
    });
    Ok(stop)
}

struct Signal {
    name: &'static str,
    /// The exit code that shells report for a process killed by the signal.
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
            // No handler could be installed, so no signal ever arrives.
            std::future::pending::<()>().await;
        }
        Signal {
            name: "Ctrl-C",
            code: 130,
        }
    }
}
