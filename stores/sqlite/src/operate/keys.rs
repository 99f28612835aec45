//! Keys whose messages wait behind a failed one.

use rusqlite::{Connection, Row, Transaction, params};
use sendoff::store::{Action, Filter, KeyView, Lane};
use sendoff::{Result, Uuid};

use super::audit::write_audit;
use super::filter::{as_asked, number};
use super::look::count;
use crate::clock::to_time;
use crate::settle::{deliveries_behind, follow_on};
use crate::sql::Sql;
use crate::store::Inner;

/// A dead letter that is in the way no more, and the key that it was in the way of, if it was.
pub(super) struct Released {
    lane: Lane,
    key: Option<String>,
    sink: String,
}

impl Released {
    /// A row of lane, key and delivery. A key that is not UTF-8 has no followers: its messages are unreadable.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let text = |column| row.get_ref(column).map(|value| value.as_str().ok().map(str::to_owned));
        Ok(Self {
            lane: row.get(0)?,
            key: text(1)?,
            sink: text(2)?.unwrap_or_default(),
        })
    }
}

/// Lets those go that waited behind these letters.
pub(super) fn let_go(tx: &Transaction<'_>, sql: &Sql, released: &[Released]) -> rusqlite::Result<()> {
    for letter in released {
        let Some(key) = &letter.key else { continue };
        for sink in deliveries_behind(tx, sql, letter.lane, key, &letter.sink)? {
            follow_on(tx, sql, letter.lane, key, &sink)?;
        }
    }
    Ok(())
}

impl Inner {
    pub(super) async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.keys.first())?;
            let rows = statement.query_map([number(limit)], view)?;
            rows.collect()
        };
        self.operate.call("keys could not be listed", work).await
    }

    pub(super) async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        let (key, sink, who) = (key.to_owned(), sink.map(str::to_owned), who.to_owned());
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let mut statement = tx.prepare_cached(sql.release_key.first())?;
            let rows = statement.query_map(params![key, sink], Released::read)?;
            let released: Vec<Released> = rows.collect::<rusqlite::Result<_>>()?;
            let_go(tx, sql, &released)?;
            let asked = as_asked(&Filter {
                key: Some(key.clone()),
                sink: sink.clone(),
                ..Filter::default()
            });
            let released = u64::try_from(released.len()).unwrap_or(u64::MAX);
            write_audit(tx, sql, &who, Action::ReleaseKey, &asked, released)?;
            Ok(released)
        };
        self.act("the key could not be released", act).await
    }
}

fn view(row: &Row<'_>) -> rusqlite::Result<KeyView> {
    let text = |column| {
        let value = row.get_ref(column)?;
        Ok::<_, rusqlite::Error>(
            value
                .as_bytes_or_null()?
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        )
    };
    Ok(KeyView {
        key: text(0)?.unwrap_or_default(),
        sink: text(1)?.unwrap_or_default(),
        lane: row.get(2)?,
        blocked: count(row, 3)?,
        head: text(4)?.and_then(|id| Uuid::parse_str(&id).ok()),
        state: text(5)?.unwrap_or_default(),
        due_at: row.get::<_, Option<i64>>(6)?.map(to_time),
        last_error: text(7)?,
    })
}
