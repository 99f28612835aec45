//! Claim: registers relays, and leases lanes to them.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use sendoff::store::{Heartbeat, Lane, LaneGrant, LiveRelay, OwnerId, Quarantined, RelayCard, RowRef};
use sendoff::{Error, ErrorKind, Result};

use crate::clock::micros;
use crate::connect::Opened;
use crate::history::history;
use crate::row_id::{self, Id};
use crate::sql::Sql;
use crate::store::Inner;

/// The lanes that an owner holds, with their epochs, at this moment of the database's clock.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) lanes: BTreeMap<Lane, i64>,
    pub(crate) now: i64,
}

/// What the owner holds; no lanes at all when its lease is not valid. To be asked inside the transaction that acts on it.
pub(crate) fn held(tx: &Transaction<'_>, sql: &Sql, owner: &str) -> rusqlite::Result<Held> {
    let mut held = Held {
        lanes: BTreeMap::new(),
        now: 0,
    };
    let mut statement = tx.prepare_cached(sql.check_lanes.first())?;
    let mut rows = statement.query([owner])?;
    while let Some(row) = rows.next()? {
        held.lanes.insert(row.get(0)?, row.get(1)?);
        held.now = row.get(2)?;
    }
    Ok(held)
}

/// Strikes off relays whose lease has run out, and frees their lanes. Returns how many.
pub(crate) fn strike_off(tx: &Transaction<'_>, sql: &Sql) -> rusqlite::Result<u64> {
    tx.prepare_cached(sql.evict.at(1))?.execute([])?;
    let freed = tx.prepare_cached(sql.evict.at(2))?.execute([])?;
    Ok(u64::try_from(freed).unwrap_or_default())
}

/// A transaction that holds the write lock from its beginning. One that would ask for it later could be refused at once,
/// without the busy timeout, because somebody wrote after it had begun to read.
pub(crate) fn write(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Lanes as the JSON that statements take them in.
pub(crate) fn json(lanes: &[Lane]) -> String {
    format!("{lanes:?}")
}

impl Inner {
    pub(crate) async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        let (sql, card) = (self.sql.clone(), card.clone());
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            tx.prepare_cached(sql.register.first())?.execute(params![
                owner.to_string(),
                card.name,
                micros(lease),
                card.version,
                card.config,
                card.routes
            ])?;
            tx.commit()
        };
        self.lease.call("the relay could not be registered", work).await
    }

    pub(crate) async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        let sql = self.sql.clone();
        let work = move |opened: &mut Opened| {
            let file = opened.file;
            let tx = write(opened)?;
            let renew = params![owner.to_string(), micros(lease)];
            let alive = tx.prepare_cached(sql.heartbeat.first())?.execute(renew)? == 1;
            let found: Vec<(String, String, String)> = tx
                .prepare_cached(sql.relays.first())?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let history = history(&tx, &sql, file)?;
            tx.commit()?;
            // A row that is no relay's, because its owner is no UUID, takes no part in the sharing of lanes.
            let relay = |(owner, config, routes): (String, String, String)| {
                let owner = OwnerId(owner.parse().ok()?);
                Some(LiveRelay { owner, config, routes })
            };
            let relays = found.into_iter().filter_map(relay).collect();
            Ok(Heartbeat {
                alive,
                relays,
                history: Some(history),
            })
        };
        self.lease.call_opened("the lease could not be renewed", work).await
    }

    pub(crate) async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let owner = owner.to_string();
            let valid = tx
                .prepare_cached(sql.relays.first())?
                .query_map([], |row| row.get::<_, String>(0))?
                .any(|relay| relay.is_ok_and(|relay| relay == owner));
            if !valid {
                return Ok(None);
            }
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let grants: Vec<LaneGrant> = tx
                .prepare_cached(sql.acquire.first())?
                .query_map(params![owner, limit], grant)?
                .collect::<rusqlite::Result<_>>()?;
            tx.commit()?;
            Ok(Some(grants))
        };
        let granted = self.lease.call("lanes could not be leased", work).await?;
        granted.ok_or_else(|| lease_lost("lanes could not be leased"))
    }

    pub(crate) async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let (sql, lanes) = (self.sql.clone(), json(lanes));
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            tx.prepare_cached(sql.release.first())?
                .execute(params![owner.to_string(), lanes])?;
            tx.commit()
        };
        self.lease.call("lanes could not be released", work).await
    }

    pub(crate) async fn deregister(&self, owner: OwnerId) -> Result<()> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            for statement in [sql.deregister.at(0), sql.deregister.at(1), sql.deregister.at(2)] {
                tx.prepare_cached(statement)?.execute([owner.to_string()])?;
            }
            tx.commit()
        };
        self.lease.call("the relay could not be deregistered", work).await
    }

    pub(crate) async fn evict(&self) -> Result<u64> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let needed: bool = connection
                .prepare_cached(sql.evict.at(0))?
                .query_row([], |row| row.get(0))?;
            if !needed {
                return Ok(0);
            }
            let tx = write(connection)?;
            let freed = strike_off(&tx, &sql)?;
            tx.commit()?;
            Ok(freed)
        };
        self.lease.call("expired relays could not be evicted", work).await
    }

    pub(crate) async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let (sql, lanes) = (self.sql.clone(), json(lanes));
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            tx.prepare_cached(sql.clear_quarantine.first())?
                .execute(params![owner.to_string(), lanes])?;
            tx.commit()
        };
        self.lease
            .call("the quarantine of lanes could not be cleared", work)
            .await
    }

    pub(crate) async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        let (sql, quarantined) = (self.sql.clone(), Quarantined::of(rows));
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let quarantined = quarantined.as_ref();
            let (first, last) = (quarantined.map(|rows| rows.first), quarantined.map(|rows| rows.last));
            let id = quarantined.and_then(|rows| rows.id.as_ref()).map(Id);
            let sink = quarantined.and_then(|rows| rows.sink.as_deref());
            tx.prepare_cached(sql.quarantine.first())?.execute(params![
                owner.to_string(),
                lane,
                first,
                last,
                id,
                sink
            ])?;
            tx.commit()
        };
        self.lease
            .call("the quarantined message could not be written", work)
            .await
    }
}

fn grant(row: &Row<'_>) -> rusqlite::Result<LaneGrant> {
    let quarantined = match row.get::<_, Option<i64>>(3)? {
        None => None,
        Some(first) => Some(Quarantined {
            first,
            last: row.get::<_, Option<i64>>(4)?.unwrap_or(first),
            sink: row.get::<_, Option<String>>(5)?.map(Into::into),
            id: match row.get_ref(6)? {
                ValueRef::Null => None,
                id => Some(row_id::read(id)),
            },
            crashes: row.get(7)?,
        }),
    };
    Ok(LaneGrant {
        lane: row.get(0)?,
        epoch: row.get(1)?,
        crashes: row.get(2)?,
        quarantined,
    })
}

fn lease_lost(what: &str) -> Error {
    Error::new(ErrorKind::LeaseLost, what)
        .because("the relay no longer holds the lease")
        .next_step("register again with a new owner id")
}
