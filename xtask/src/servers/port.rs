//! A free port on the loopback interface.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// Asks the kernel for a port that nobody listens on.
///
/// Another process can take it before the server binds it; the caller then starts again with the next one.
pub(crate) fn free() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}
