//! The processor time of this process.

use std::time::Duration;

use anyhow::{Context, Result};

/// User and system time so far. The kernel counts in hundredths of a second.
pub(crate) fn used() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat
        .rsplit_once(") ")
        .context("/proc/self/stat has an unexpected format")?;
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || {
        anyhow::Ok(
            fields
                .next()
                .context("/proc/self/stat has an unexpected format")?
                .parse::<u64>()?,
        )
    };
    Ok(Duration::from_millis((ticks()? + ticks()?) * 10))
}
