//! A relay in a separate process: how fast it drains, and what that costs.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::table::{BACKLOG, Table};

/// The result of a drain.
pub(super) struct Drain {
    /// Tasks per second.
    pub(super) rate: f64,
    /// Processor time of the relay per task.
    pub(super) cpu_us: f64,
    /// Its peak memory.
    pub(super) rss_mib: f64,
}

/// Is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fills the table and lets the relay empty it. The clock starts when the first tasks are gone, so that the start of
/// the program is not measured. Only single rows are looked up in between, and the table is counted at the start and
/// at the end: on a busy machine, repeated counting would distort the measurement.
pub(super) async fn drain(table: &Table, mut command: Command) -> Result<Drain> {
    table.fill().await?;
    let (first, last) = table.ends().await?;
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut relay = Running(quiet.spawn()?);
    let begun = Instant::now();
    let pid = relay.0.id();
    let mut start: Option<(Instant, i64, f64)> = None;
    loop {
        match start {
            None if !table.has(first).await? => start = Some((Instant::now(), table.left().await?, cpu_us(pid)?)),
            // Earlier tasks may be sent after the last one, if a batch had to be sent again.
            Some((since, before, cpu_before)) if !table.has(last).await? && table.left().await? == 0 => {
                let tasks = before as f64;
                return Ok(Drain {
                    rate: tasks / since.elapsed().as_secs_f64(),
                    cpu_us: (cpu_us(pid)? - cpu_before) / tasks,
                    rss_mib: peak_mib(pid)?,
                });
            }
            None | Some(_) => {}
        }
        ensure!(relay.0.try_wait()?.is_none(), "the relay ended by itself");
        ensure!(
            begun.elapsed() < Duration::from_secs(300),
            "{} of {BACKLOG} tasks are left after five minutes",
            table.left().await?
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// User and system time so far, of all threads. The kernel counts in hundredths of a second.
fn cpu_us(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat
        .rsplit_once(") ")
        .context("/proc/PID/stat has an unexpected format")?;
    let mut fields = fields.split(' ').skip(11);
    let mut ticks = || {
        anyhow::Ok(
            fields
                .next()
                .context("/proc/PID/stat has an unexpected format")?
                .parse::<f64>()?,
        )
    };
    Ok((ticks()? + ticks()?) * 10_000.0)
}

fn peak_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .context("no VmHWM")?;
    let kib: f64 = line
        .split_whitespace()
        .nth(1)
        .context("VmHWM has an unexpected format")?
        .parse()?;
    Ok(kib / 1024.0)
}
