//! Ports that stay a server's own, also while it is down.

use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};

/// Below what the kernel gives to outgoing connections: a client that tries a port of that range again and again while
/// its server is down may in the end be connected to itself.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

/// A port that no other test takes as long as this lives.
pub(super) struct Port {
    pub(super) number: u16,
    _lock: File,
}

impl Port {
    /// One that nobody uses.
    pub(super) fn reserve() -> Self {
        let folder = std::env::temp_dir().join("sendoff-test-ports");
        // It may be there, made by another account: then its files are tried one by one anyway.
        let _ = fs::create_dir_all(&folder);
        for _ in 0..10_000 {
            let number = fastrand::u16(RANGE);
            let path = folder.join(number.to_string());
            let open = OpenOptions::new().create(true).append(true).open(path);
            let Some(lock) = open.ok().filter(|file| file.try_lock().is_ok()) else {
                continue;
            };
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Self { number, _lock: lock };
            }
        }
        panic!("no free port between {} and {} on 127.0.0.1", RANGE.start, RANGE.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_nobody_elses_while_its_server_is_down() {
        let port = Port::reserve();
        let path = std::env::temp_dir()
            .join("sendoff-test-ports")
            .join(port.number.to_string());
        let other = OpenOptions::new().append(true).open(path).unwrap();
        assert!(other.try_lock().is_err());
        drop(port);
        assert!(other.try_lock().is_ok());
    }
}
