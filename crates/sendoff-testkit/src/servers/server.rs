//! What a test does with any server: kill it, stop it, start it again, pause it.

use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use super::port::Port;
use super::process::Process;

/// A server of one test. Its port and its data stay its own until this is dropped.
pub struct Server {
    process: Option<Process>,
    setup: Setup,
    port: Port,
    folder: TempDir,
}

/// How a server is started, and how one sees that it has.
pub(super) struct Setup {
    pub(super) name: &'static str,
    pub(super) command: Box<dyn Fn() -> Command + Send + Sync>,
    /// What a client says first, if anything.
    pub(super) hello: &'static [u8],
    /// How the answer of a server begins that is ready.
    pub(super) greeting: &'static [u8],
}

impl Server {
    pub(super) async fn start(setup: Setup, port: Port, folder: TempDir) -> Self {
        let mut server = Self {
            process: None,
            setup,
            port,
            folder,
        };
        server.restart().await;
        server
    }

    /// Its port (the one without TLS, if it has both).
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// Ends it without a warning, as a crash would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Ends it in good order.
    pub async fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
    }

    /// Starts it (again), on the same port and with the data that it has kept, and waits until it answers.
    pub async fn restart(&mut self) {
        self.kill();
        let Setup {
            name,
            command,
            hello,
            greeting,
        } = &self.setup;
        let log = self.folder.path().join("console.log");
        let process = self.process.insert(Process::start(name, command(), log));
        process.wait_until_ready(self.port.number, hello, greeting).await;
    }

    /// Stops it in its tracks: connections stay open and nothing is answered.
    pub fn pause(&self) {
        if let Some(process) = &self.process {
            process.signal(Signal::STOP);
        }
    }

    /// Lets it go on.
    pub fn resume(&self) {
        if let Some(process) = &self.process {
            process.signal(Signal::CONT);
        }
    }

    /// Where its data, its configuration and its log are.
    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

/// Lets a kind of server do all that a [`Server`] does.
macro_rules! is_a_server {
    ($kind:ty) => {
        impl std::ops::Deref for $kind {
            type Target = $crate::servers::Server;

            fn deref(&self) -> &Self::Target {
                &self.server
            }
        }

        impl std::ops::DerefMut for $kind {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.server
            }
        }
    };
}
pub(super) use is_a_server;
