//! Keys whose later messages have to wait, and blocked rows that nothing blocks any more.

use rusqlite::{Connection, Row, Statement};
use sendoff::Result;
use sendoff::store::{BlockedKey, Lane, OwnerId};

use super::key::follow_on;
use crate::lease::{held, json, write};
use crate::store::Inner;

/// The keys in these lanes that are blocked.
pub(crate) async fn blocked_keys(store: &Inner, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
    let (sql, lanes) = (store.sql.clone(), json(lanes));
    let work = move |connection: &mut Connection| {
        let mut statement = connection.prepare_cached(sql.blocked_keys.first())?;
        keys(&mut statement, &lanes)
    };
    store.read.call("blocked keys could not be read", work).await
}

/// Lets go of held rows whose key an operator has freed while they were being held.
pub(crate) async fn release_orphans(store: &Inner, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
    const WHAT: &str = "held messages could not be let go";
    let (sql, asked) = (store.sql.clone(), json(lanes));
    // There are hardly ever any: looking needs no write lock, and does not keep settlements waiting.
    let look = move |connection: &mut Connection| {
        let mut statement = connection.prepare_cached(sql.release_orphans.first())?;
        keys(&mut statement, &asked).map(|found| !found.is_empty())
    };
    if !store.read.call(WHAT, look).await? {
        return Ok(0);
    }
    let (sql, lanes) = (store.sql.clone(), lanes.to_vec());
    let work = move |connection: &mut Connection| {
        let tx = write(connection)?;
        let held = held(&tx, &sql, &owner.to_string())?;
        let owned: Vec<Lane> = held.lanes.keys().copied().filter(|lane| lanes.contains(lane)).collect();
        let orphans = keys(&mut *tx.prepare_cached(sql.release_orphans.first())?, &json(&owned))?;
        let mut became_due = 0;
        for key in orphans {
            became_due += follow_on(&tx, &sql, key.lane, &key.key, &key.sink)?;
        }
        tx.commit()?;
        Ok(u64::try_from(became_due).unwrap_or_default())
    };
    store.settle.call(WHAT, work).await
}

fn keys(statement: &mut Statement<'_>, lanes: &str) -> rusqlite::Result<Vec<BlockedKey>> {
    let mut keys = Vec::new();
    let mut rows = statement.query([lanes])?;
    while let Some(row) = rows.next()? {
        // A key that is not UTF-8 makes its message unreadable, so nothing can follow it.
        keys.extend(blocked_key(row));
    }
    Ok(keys)
}

fn blocked_key(row: &Row<'_>) -> Option<BlockedKey> {
    Some(BlockedKey {
        lane: row.get(0).ok()?,
        key: row.get_ref(1).ok()?.as_str().ok()?.into(),
        sink: row.get_ref(2).ok()?.as_str().ok()?.into(),
    })
}
