//! Claim: registers relays, and leases lanes to them.

use std::time::Duration;

use mysql_async::params;
use sendoff::store::{Heartbeat, Lane, LaneGrant, LiveRelay, OwnerId, Quarantined, RelayCard, RowRef};
use sendoff::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::conflict::transact;
use crate::decode::{
    count, hex, id_hex, lane, list, micros, number, number_or_null, row_id_or_null, text, text_or_null, unhex,
};
use crate::guard::sessions_of;
use crate::pool::PooledConnection;
use crate::store::Inner;

/// How long a transaction may outlive its relay's lease.
const MOMENT: Duration = Duration::from_millis(500);

/// How often, and after which pause, to look whether a transaction that was ended is gone: it may have much to undo. What
/// is left is found by the next eviction.
const ROUNDS: usize = 20;
const PAUSE: Duration = Duration::from_millis(25);

impl Inner {
    pub(crate) async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        let what = "the relay could not be registered";
        self.guard.learn(lease);
        transact!(self.lease_pool, owner, what, connection => {
            let values = params! {
                "owner" => owner.to_string(),
                "name" => &card.name,
                "version" => &card.version,
                "config" => &card.config,
                "routes" => &card.routes,
                "lease" => micros(lease),
            };
            connection.change(what, self.texts.register.first(), values).await.map(drop)
        })
    }

    pub(crate) async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        let what = "the lease could not be renewed";
        self.guard.learn(lease);
        let (alive, relays) = transact!(self.lease_pool, owner, what, connection => self.renew(&mut connection, what, owner, lease).await)?;
        // Not in the transaction: it waits for nobody while it has a lock on the relay's row.
        let history = Some(self.history(what).await?);
        Ok(Heartbeat { alive, relays, history })
    }

    async fn renew(
        &self,
        connection: &mut PooledConnection,
        what: &str,
        owner: OwnerId,
        lease: Duration,
    ) -> Result<(bool, Vec<LiveRelay>)> {
        let values = params! { "owner" => owner.to_string(), "lease" => micros(lease) };
        let renewed = connection.change(what, self.texts.heartbeat.first(), values).await?;
        let rows = connection.rows(what, self.texts.relays.first(), ()).await?;
        let mut relays = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Ok(id) = text(what, row, 0)?.parse() {
                relays.push(LiveRelay {
                    owner: OwnerId(id),
                    config: text(what, row, 1)?,
                    routes: text(what, row, 2)?,
                });
            }
        }
        Ok((renewed > 0, relays))
    }

    pub(crate) async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        let what = "lanes could not be leased";
        transact!(self.lease_pool, owner, what, connection => self.take_lanes(&mut connection, what, owner, limit).await)
    }

    async fn take_lanes(
        &self,
        connection: &mut PooledConnection,
        what: &str,
        owner: OwnerId,
        limit: usize,
    ) -> Result<Vec<LaneGrant>> {
        let sql = &self.texts.acquire;
        let id = owner.to_string();
        if connection
            .rows(what, sql.at(0), params! { "owner" => &id })
            .await?
            .is_empty()
        {
            return Err(Error::new(ErrorKind::LeaseLost, what)
                .because("the relay's lease expired or was revoked")
                .next_step("register again with a new owner id"));
        }
        let free = connection.rows(what, sql.at(1), ()).await?;
        let free = free.iter().map(|row| lane(what, row, 0)).collect::<Result<Vec<_>>>()?;
        let (mut grants, mut rest) = (Vec::new(), free.as_slice());
        while grants.len() < limit && !rest.is_empty() {
            let (asked, others) = rest.split_at(rest.len().min(limit - grants.len()));
            rest = others;
            let locked = connection
                .text(what, &sql.at(2).replace("{lanes}", &list(asked)))
                .await?;
            for row in &locked {
                grants.push(LaneGrant {
                    lane: lane(what, row, 0)?,
                    epoch: number(what, row, 1)?,
                    crashes: small(number(what, row, 2)?),
                    quarantined: match number_or_null(what, row, 3)? {
                        None => None,
                        Some(first) => Some(Quarantined {
                            first,
                            last: number_or_null(what, row, 4)?.unwrap_or(first),
                            sink: text_or_null(what, row, 5)?
                                .and_then(|sink| unhex(&sink))
                                .map(Into::into),
                            id: row_id_or_null(row, 6),
                            crashes: small(number(what, row, 7)?),
                        }),
                    },
                });
            }
        }
        grants.sort_unstable_by_key(|grant| grant.lane);
        let taken: Vec<Lane> = grants.iter().map(|grant| grant.lane).collect();
        let take = sql.at(3).replace("{lanes}", &list(&taken));
        connection.change(what, &take, params! { "owner" => id }).await?;
        Ok(grants)
    }

    pub(crate) async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let what = "lanes could not be released";
        let sql = &self.texts.release;
        let give_back = sql.at(1).replace("{lanes}", &list(lanes));
        transact!(self.lease_pool, owner, what, connection => {
            let owner = owner.to_string();
            match connection.rows(what, sql.at(0), params! { "owner" => &owner }).await {
                Ok(me) if me.is_empty() => Ok(()),
                Ok(_) => connection.change(what, &give_back, params! { "owner" => owner }).await.map(drop),
                Err(error) => Err(error),
            }
        })
    }

    pub(crate) async fn deregister(&self, owner: OwnerId) -> Result<()> {
        let what = "the relay could not be deregistered";
        let sql = &self.texts.deregister;
        let id = owner.to_string();
        transact!(self.lease_pool, owner, what, connection => {
            match connection.change(what, sql.at(0), params! { "owner" => &id }).await {
                Ok(_) => connection.change(what, sql.at(1), params! { "owner" => &id }).await.map(drop),
                Err(error) => Err(error),
            }
        })?;
        self.take_back_crashes(what, owner).await
    }

    /// The owner lives: what was counted against it on lanes that others hold by now was no crash.
    async fn take_back_crashes(&self, what: &str, owner: OwnerId) -> Result<()> {
        let (sql, id) = (&self.texts.deregister, owner.to_string());
        let counted = self
            .lease_pool
            .rows(what, sql.at(2), params! { "owner" => &id })
            .await?;
        let lanes = counted
            .iter()
            .map(|row| lane(what, row, 0))
            .collect::<Result<Vec<_>>>()?;
        if lanes.is_empty() {
            return Ok(());
        }
        let take_back = sql.at(3).replace("{lanes}", &list(&lanes));
        transact!(self.lease_pool, owner, what, connection => {
            connection.change(what, &take_back, params! { "owner" => &id }).await.map(drop)
        })
    }

    pub(crate) async fn evict(&self) -> Result<u64> {
        let what = "expired relays could not be evicted";
        let needed = self.lease_pool.rows(what, self.texts.evict.at(0), ()).await?;
        let needed = needed.first().map_or(Ok(0), |row| number(what, row, 0))?;
        if needed == 0 {
            return Ok(0);
        }
        let freed = transact!(self.lease_pool, what, connection => self.strike_off(&mut connection, what).await)?;
        Ok(freed + self.end_stuck(what).await?)
    }

    /// Strikes off relays that are past their lease and have a transaction under way. One that its process will still end
    /// has a moment for it; then its connection is ended, whatever became of the process.
    pub(crate) async fn end_stuck(&self, what: &str) -> Result<u64> {
        let mut freed = 0;
        for _ in 0..ROUNDS {
            let values = params! { "moment" => micros(MOMENT) };
            let stuck = self.lease_pool.rows(what, self.texts.evict.at(5), values).await?;
            let mut ended = false;
            for row in &stuck {
                ended |= self.end_sessions(what, &text(what, row, 0)?).await?;
            }
            if !ended {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            freed += transact!(self.lease_pool, what, connection => self.strike_off(&mut connection, what).await)?;
        }
        Ok(freed)
    }

    /// Ends the connections with a transaction of this relay. Tells whether there were any.
    async fn end_sessions(&self, what: &str, owner: &str) -> Result<bool> {
        if !self.guard.has_names() {
            return Ok(false);
        }
        let found = self.lease_pool.rows(what, &sessions_of(owner), ()).await?;
        let Some(row) = found.first() else { return Ok(false) };
        let mut ended = false;
        for at in 0..row.len() {
            let Some(session) = number_or_null(what, row, at)? else {
                continue;
            };
            let mut connection = self.lease_pool.get().await?;
            match connection.script(what, &format!("KILL {session}")).await {
                Ok(()) => {
                    tracing::warn!(
                        event = "session_ended",
                        owner,
                        session,
                        "relay's lease expired during its transaction; the database session of this relay was ended"
                    );
                    ended = true;
                }
                // Gone by itself, or another account's: the server's limits of time end that.
                Err(error) if error.kind() != ErrorKind::Unreachable => {
                    tracing::debug!(event = "session_not_ended", owner, session, %error, "cannot end the session of a relay whose lease expired; the session ends by its timeout");
                }
                Err(error) => return Err(error),
            }
            connection.give_back();
        }
        Ok(ended)
    }

    pub(crate) async fn strike_off(&self, connection: &mut PooledConnection, what: &str) -> Result<u64> {
        let sql = &self.texts.evict;
        let gone = connection.rows(what, sql.at(1), ()).await?;
        let gone: Vec<Value> = gone
            .iter()
            .map(|row| Ok(json!([text(what, row, 0)?])))
            .collect::<Result<_>>()?;
        if !gone.is_empty() {
            let rows = Value::from(gone).to_string();
            connection.change(what, sql.at(2), params! { "rows" => rows }).await?;
        }
        let orphaned = connection.rows(what, sql.at(3), ()).await?;
        let orphaned: Vec<Value> = orphaned
            .iter()
            .map(|row| Ok(json!([number(what, row, 0)?, text(what, row, 1)?])))
            .collect::<Result<_>>()?;
        if orphaned.is_empty() {
            return Ok(0);
        }
        let rows = Value::from(orphaned).to_string();
        connection.change(what, sql.at(4), params! { "rows" => rows }).await
    }

    pub(crate) async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let what = "the quarantine of lanes could not be cleared";
        let sql = self.texts.clear_quarantine.first().replace("{lanes}", &list(lanes));
        transact!(self.lease_pool, owner, what, connection => {
            connection.change(what, &sql, params! { "owner" => owner.to_string() }).await.map(drop)
        })
    }

    pub(crate) async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        let what = "the quarantined message could not be written";
        let (sql, quarantined) = (&self.texts.quarantine, Quarantined::of(rows));
        let quarantined = quarantined.as_ref();
        transact!(self.lease_pool, owner, what, connection => {
            let values = params! {
                "owner" => owner.to_string(),
                "lane" => lane,
                "first" => quarantined.map(|rows| rows.first),
                "last" => quarantined.map(|rows| rows.last),
                "sink" => quarantined.and_then(|rows| rows.sink.as_deref()).map(hex),
                "id" => quarantined.and_then(|rows| rows.id.as_ref()).map(id_hex),
            };
            let others = params! { "owner" => owner.to_string(), "lane" => lane };
            match connection.change(what, sql.at(0), values).await {
                Ok(_) => connection.change(what, sql.at(1), others).await.map(drop),
                Err(error) => Err(error),
            }
        })
    }
}

fn small(number: i64) -> u32 {
    u32::try_from(count(number)).unwrap_or(u32::MAX)
}
