//! The thread that starts the servers.

use std::io;
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Request = (Command, Sender<io::Result<Child>>);

/// Lives as long as the process. The kernel's death signal comes with the end of the *thread* that started a server, so
/// that one which was started by a passing thread would end with it.
static NURSERY: LazyLock<Sender<Request>> = LazyLock::new(|| {
    let (sender, requests) = channel::<Request>();
    thread::spawn(move || {
        for (mut command, answer) in requests {
            // Whoever asked has gone when this fails, and the child goes with the answer.
            let _ = answer.send(command.spawn());
        }
    });
    sender
});

/// Starts `command` from any thread.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    let (answer, started) = channel();
    let gone = || io::Error::other("the thread that starts servers has ended");
    NURSERY.send((command, answer)).map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_outlives_the_thread_that_asked_for_it() {
        let start = || {
            let mut command = Command::new("setpriv");
            command
                .args(["--pdeathsig=KILL", "cat"])
                .stdin(std::process::Stdio::piped());
            spawn(command).unwrap()
        };
        let mut server = thread::spawn(start).join().unwrap();
        // It ends by itself, and not by a signal, when there is nothing more to read.
        drop(server.stdin.take());
        assert!(server.wait().unwrap().success());
    }
}
