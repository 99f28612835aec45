//! The RabbitMQ that the tests share: it takes seconds to start, so only tests that kill it start one of their own.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use super::instance::Instance;
use super::{account, port};
use crate::packages;

/// How the tests start instances of their own, too.
const SCRIPT: &str = include_str!("../../../crates/sendoff-testkit/src/servers/rabbitmq.sh");

/// A running RabbitMQ with the user `guest` and the virtual host `/`.
pub(crate) struct RabbitMq {
    port: u16,
    home: PathBuf,
    _instance: Instance,
}

impl RabbitMq {
    /// Starts it and waits until it answers.
    pub(crate) fn start(scratch: &Path) -> Result<Self> {
        packages::RABBITMQ.file()?;
        let home = scratch.join("rabbitmq");
        std::fs::create_dir(&home)?;
        account::give(&home)?;
        let (port, epmd, dist) = (port::free()?, port::free()?, port::free()?);
        let mut command = account::command(Path::new("sh"));
        command.args(["-c", SCRIPT, "rabbitmq"]).arg(&home).current_dir(&home);
        command.args([port, epmd, dist, 0].map(|port| port.to_string()));
        // Nothing in it is worth an orderly stop.
        let mut instance = Instance::start("RabbitMQ", &mut command, Signal::KILL, scratch.join("rabbitmq.log"))?;
        instance.wait_until(|| answers(port))?;
        Ok(Self {
            port,
            home,
            _instance: instance,
        })
    }

    /// What the tests read to find it. The folder is what `rabbitmqctl` needs.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 2] {
        let url = format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port);
        [
            ("SENDOFF_TEST_RABBITMQ_URL", url.into()),
            ("SENDOFF_TEST_RABBITMQ_HOME", self.home.clone().into()),
        ]
    }
}

/// Whether it offers a connection: a port that accepts is open long before that.
fn answers(port: u16) -> bool {
    let offered = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        let mut frame = [0; 3];
        stream.read_exact(&mut frame)?;
        // A method on channel 0.
        Ok(frame == [1, 0, 0])
    };
    offered().unwrap_or(false)
}
