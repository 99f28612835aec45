//! Telling systemd that the service is up, and that it still works.

use std::ffi::OsString;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::health::SILENCE;

/// How systemd wants to be told: a unit with `Type=notify`, and `WatchdogSec=` if it is to restart a service that hangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Systemd {
    socket: OsString,
    watchdog: Option<Duration>,
}

impl Systemd {
    /// As the environment of the process says; `None` when systemd does not ask to be told.
    pub fn from_env(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> Option<Self> {
        let socket = variable("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())?;
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        // Set for this process, or for nobody in particular.
        let is_meant = number("WATCHDOG_PID").is_none_or(|meant| meant == u64::from(pid));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        Some(Self {
            socket,
            watchdog: watchdog.map(Duration::from_micros),
        })
    }

    /// Sends a state. That nobody listens is no error of the relay's.
    pub(crate) fn tell(&self, state: &str) {
        #[cfg(unix)]
        if let Err(error) = send(&self.socket, state) {
            tracing::debug!(event = "systemd_failed", %error, state, "systemd could not be told");
        }
        #[cfg(not(unix))]
        let _ = state;
    }

    /// Tells that the relay is up with its first pulse, and then keeps the watchdog quiet for as long as there are pulses.
    pub(crate) async fn keep_telling(self, mut pulses: watch::Receiver<Option<Instant>>) {
        if pulses.wait_for(Option::is_some).await.is_err() {
            return;
        }
        self.tell("READY=1\nSTATUS=delivering");
        let Some(watchdog) = self.watchdog else {
            return std::future::pending().await;
        };
        loop {
            // Only one that comes from now on counts.
            match timeout(SILENCE, pulses.changed()).await {
                Ok(Ok(())) => self.tell("WATCHDOG=1"),
                Ok(Err(_)) => return,
                Err(_) => {}
            }
            sleep(watchdog / 3).await;
        }
    }
}

#[cfg(unix)]
fn send(socket: &std::ffi::OsStr, state: &str) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::UnixDatagram;

    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        sender.send_to_addr(state.as_bytes(), &address)?;
        return Ok(());
    }
    sender.send_to(
        state.as_bytes(),
        std::path::Path::new(std::ffi::OsStr::from_bytes(socket.as_bytes())),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &'static [(&'static str, &'static str)]) -> Option<Systemd> {
        let find = |name: &str| {
            variables
                .iter()
                .find(|(of, _)| *of == name)
                .map(|(_, value)| OsString::from(value))
        };
        Systemd::from_env(find, 7)
    }

    #[test]
    fn systemd_is_told_what_it_asks_for_and_only_by_the_process_that_it_means() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("NOTIFY_SOCKET", "")]), None);
        let watchdog = |variables| with(variables).unwrap().watchdog;
        assert_eq!(watchdog(&[("NOTIFY_SOCKET", "/run/n")]), None);
        let quick = &[
            ("NOTIFY_SOCKET", "/run/n"),
            ("WATCHDOG_USEC", "3000000"),
            ("WATCHDOG_PID", "7"),
        ];
        assert_eq!(watchdog(quick), Some(Duration::from_secs(3)));
        let other = &[
            ("NOTIFY_SOCKET", "/run/n"),
            ("WATCHDOG_USEC", "3000000"),
            ("WATCHDOG_PID", "8"),
        ];
        assert_eq!(watchdog(other), None);
    }
}
