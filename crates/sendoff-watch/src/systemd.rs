//! Notifies systemd that the service has started, and that it still works.

use std::ffi::OsString;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::health::SILENCE;

/// How to notify systemd. The unit has `Type=notify`, and `WatchdogSec=` if systemd should restart a service that hangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Systemd {
    socket: OsString,
    watchdog: Option<Duration>,
}

impl Systemd {
    /// Reads the environment of the process; `None` when systemd does not expect notifications.
    pub fn from_env(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> Option<Self> {
        let socket = variable("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())?;
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        // Set for this process, or for no particular one.
        let is_meant = number("WATCHDOG_PID").is_none_or(|meant| meant == u64::from(pid));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        Some(Self {
            socket,
            watchdog: watchdog.map(Duration::from_micros),
        })
    }

    /// Sends a state. The relay works even if this fails.
    pub(crate) fn tell(&self, state: &str) {
        #[cfg(unix)]
        if let Err(error) = send(&self.socket, state) {
            tracing::debug!(event = "systemd_failed", %error, state, "cannot notify systemd");
        }
        #[cfg(not(unix))]
        let _ = state;
    }

    /// Reports the relay as started with its first health report, then feeds the watchdog with every further one.
    pub(crate) async fn keep_telling(self, mut relay_healths: watch::Receiver<Option<Instant>>) {
        if relay_healths.wait_for(Option::is_some).await.is_err() {
            return;
        }
        self.tell("READY=1\nSTATUS=delivering");
        let Some(watchdog) = self.watchdog else {
            return std::future::pending().await;
        };
        loop {
            // Only health reports from now on count.
            match timeout(SILENCE, relay_healths.changed()).await {
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
