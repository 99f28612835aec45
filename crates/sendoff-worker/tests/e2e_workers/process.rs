//! Worker processes as the test holds them.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::base::Base;
use crate::child::Order;

/// One of the places for a worker process; there is always one in it.
pub(crate) struct Process {
    child: Child,
    by_hand: bool,
}

impl Process {
    /// Starts the `nth` process of the test.
    pub(crate) fn start(base: &Base, journals: &Path, nth: usize, name: String, by_hand: bool) -> Self {
        let order = Order {
            url: base.url.clone(),
            schema: base.schema.clone(),
            name,
            by_hand,
            journal: journals.join(nth.to_string()),
        };
        let child = Command::new(std::env::current_exe().unwrap())
            .envs(order.variables())
            // It ends when the other end is gone.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, by_hand }
    }

    pub(crate) fn is_by_hand(&self) -> bool {
        self.by_hand
    }

    /// Fails when it ended by itself.
    pub(crate) fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "a worker process ended by itself: {ended:?}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killed already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
