//! The history of the database: which server answers, since when it runs, and the last number of a message.

use std::time::Duration;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::History;
use tokio::time::Instant;

use crate::decode::{number, text};
use crate::operate::only;
use crate::store::Inner;

/// Uptimes are told in whole seconds.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The lives of the server, as far as this process has seen them. The server does not tell when it was started, only for
/// how long it has run: what that gives for its start differs by a second from one answer to the next.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// How often it was started anew since this process looked first.
    starts: u64,
    /// For how long it had run, and when that was known.
    last: Option<(Duration, Instant)>,
}

impl Life {
    /// Takes note of an uptime that was asked for at `asked` and came at `came`. Returns the number of this life.
    fn seen(&mut self, uptime: Duration, asked: Instant, came: Instant) -> u64 {
        if let Some((before, at)) = self.last
            && uptime + TOLERANCE < before + asked.saturating_duration_since(at)
        {
            self.starts += 1;
        }
        self.last = Some((uptime, came));
        self.starts
    }
}

impl Inner {
    pub(crate) async fn history(&self, what: &str) -> Result<History> {
        let sql = &self.texts.history;
        // One at a time: an older answer must not be taken for a new life.
        let mut life = self.life.lock().await;
        let asked = Instant::now();
        let rows = self.lease_pool.rows(what, sql.at(1), ()).await?;
        let uptime = text(what, only(what, &rows)?, 1)?.parse().unwrap_or_default();
        let start = life.seen(Duration::from_secs(uptime), asked, Instant::now());
        drop(life);
        let rows = self.lease_pool.rows(what, sql.at(0), ()).await?;
        let server = text(what, only(what, &rows)?, 0)?;
        let names = &self.config.names;
        let values = params! { "schema" => names.schema(), "name" => format!("{}message", names.prefix()) };
        let rows = self.lease_pool.rows(what, sql.at(2), values).await?;
        Ok(History {
            server: format!("{server} start {start}"),
            head: number(what, only(what, &rows)?, 0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_that_falls_behind_is_another_life() {
        let (mut life, begin) = (Life::default(), Instant::now());
        let mut seen = |uptime, after| {
            let at = begin + Duration::from_millis(after);
            life.seen(Duration::from_secs(uptime), at, at + Duration::from_millis(10))
        };
        assert_eq!(seen(100, 0), 0);
        assert_eq!(seen(100, 1900), 0, "told in whole seconds");
        assert_eq!(seen(102, 2100), 0);
        assert_eq!(seen(50, 3100), 1, "it was started anew");
        assert_eq!(seen(51, 4100), 1);
        assert_eq!(seen(51, 9100), 2, "it has run for less than the time since");
        assert_eq!(seen(60, 9200), 2, "a clock that is set forward starts nothing");
    }
}
