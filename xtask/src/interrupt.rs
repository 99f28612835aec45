//! Ctrl-C and SIGTERM, turned into a flag that every wait looks at.
//!
//! Nothing here exits the process: an interrupted wait returns an error, the error unwinds through the guards, and the
//! guards stop the servers and remove the scratch folder on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Catches the signals that ask a process to stop.
pub(crate) fn install() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&REQUESTED))
            .context("could not install the signal handler that stops the private servers")?;
    }
    Ok(())
}

/// Whether somebody asked this run to stop.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// An error when somebody asked this run to stop.
pub(crate) fn check() -> Result<()> {
    if requested() {
        bail!("interrupted: the private servers are being stopped");
    }
    Ok(())
}
