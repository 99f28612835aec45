//! Claim: registers relays, and leases lanes to them.

use std::time::Duration;

use sendoff::store::{Heartbeat, History, Lane, LaneGrant, LiveRelay, OwnerId, Quarantined, RelayCard, RowId, RowRef};
use sendoff::{Error, ErrorKind, Result, Uuid};
use tokio_postgres::types::Type;

use crate::decode::{column, micros, number, smallints};
use crate::pipeline::{Param, Statement};
use crate::store::Inner;

/// How long to wait for settlements that were ended: twice, then the next heartbeat looks again.
pub(crate) const END_PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(200)];

impl Inner {
    pub(crate) async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        let lease = micros(lease);
        let params: [Param<'_>; 6] = [
            (&owner.0, Type::UUID),
            (&card.name, Type::TEXT),
            (&lease, Type::INT8),
            (&card.version, Type::TEXT),
            (&card.config, Type::TEXT),
            (&card.routes, Type::TEXT),
        ];
        self.lease_pool
            .run("the relay could not be registered", &self.texts.register, &params)
            .await?;
        Ok(())
    }

    pub(crate) async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        let what = "the lease could not be renewed";
        let lease = micros(lease);
        let params: [Param<'_>; 2] = [(&owner.0, Type::UUID), (&lease, Type::INT8)];
        let statements = [
            Statement {
                sql: &self.texts.heartbeat,
                params: params.to_vec(),
            },
            Statement {
                sql: &self.texts.relays,
                params: Vec::new(),
            },
            Statement {
                sql: &self.texts.history,
                params: Vec::new(),
            },
        ];
        let connection = self.lease_pool.get().await?;
        let mut found = connection.run_all(what, &statements).await?;
        let history = match found.pop().unwrap_or_default().first() {
            None => None,
            Some(row) => Some(History {
                server: column(what, row, 0)?,
                head: column(what, row, 1)?,
            }),
        };
        let (relays, renewed) = (found.pop().unwrap_or_default(), found.pop().unwrap_or_default());
        let relay = |row| {
            Ok(LiveRelay {
                owner: OwnerId(column(what, row, 0)?),
                config: column(what, row, 1)?,
                routes: column(what, row, 2)?,
            })
        };
        let relays = relays.iter().map(relay).collect::<Result<_>>()?;
        connection.give_back();
        Ok(Heartbeat {
            alive: !renewed.is_empty(),
            relays,
            history,
        })
    }

    pub(crate) async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        let what = "lanes could not be leased";
        let limit = number(limit);
        let params: [Param<'_>; 2] = [(&owner.0, Type::UUID), (&limit, Type::INT8)];
        let rows = self.lease_pool.run(what, &self.texts.acquire, &params).await?;
        let mut grants = Vec::with_capacity(rows.len());
        for row in &rows {
            if !column::<bool>(what, row, 0)? {
                return Err(Error::new(ErrorKind::LeaseLost, what)
                    .because("the relay's lease expired or was revoked")
                    .next_step("register again with a new owner id"));
            }
            let Some(lane) = column::<Option<i16>>(what, row, 1)? else {
                continue;
            };
            let quarantined = column::<Option<i64>>(what, row, 4)?;
            grants.push(LaneGrant {
                lane: lane.unsigned_abs(),
                epoch: column(what, row, 2)?,
                crashes: column::<i32>(what, row, 3)?.unsigned_abs(),
                quarantined: match quarantined {
                    None => None,
                    Some(first) => Some(Quarantined {
                        first,
                        last: column::<Option<i64>>(what, row, 5)?.unwrap_or(first),
                        id: column::<Option<Uuid>>(what, row, 6)?.map(Into::into),
                        sink: column::<Option<&str>>(what, row, 7)?.map(Into::into),
                        crashes: column::<i32>(what, row, 8)?.unsigned_abs(),
                    }),
                },
            });
        }
        grants.sort_unstable_by_key(|grant| grant.lane);
        Ok(grants)
    }

    pub(crate) async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let lanes = smallints(lanes);
        let params: [Param<'_>; 2] = [(&owner.0, Type::UUID), (&lanes, Type::INT2_ARRAY)];
        self.lease_pool
            .run("lanes could not be released", &self.texts.release, &params)
            .await?;
        Ok(())
    }

    pub(crate) async fn deregister(&self, owner: OwnerId) -> Result<()> {
        let params: [Param<'_>; 1] = [(&owner.0, Type::UUID)];
        self.lease_pool
            .run("the relay could not be deregistered", &self.texts.deregister, &params)
            .await?;
        Ok(())
    }

    pub(crate) async fn evict(&self) -> Result<u64> {
        let what = "expired relays could not be evicted";
        let mut freed = self.lease_pool.run(what, &self.texts.evict, &[]).await?.len();
        // What is left is locked by a settlement that outlived its relay's lease. Ended, it is gone in a moment.
        for pause in END_PAUSES {
            let ended = self.lease_pool.run(what, &self.texts.end_settlements, &[]).await?;
            let Some(row) = ended.first() else { break };
            tell_ended(column(what, row, 0)?);
            tokio::time::sleep(pause).await;
            freed += self.lease_pool.run(what, &self.texts.evict, &[]).await?.len();
        }
        Ok(freed as u64)
    }

    pub(crate) async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let lanes = smallints(lanes);
        let params: [Param<'_>; 2] = [(&owner.0, Type::UUID), (&lanes, Type::INT2_ARRAY)];
        self.lease_pool
            .run(
                "the quarantine of lanes could not be cleared",
                &self.texts.clear_quarantine,
                &params,
            )
            .await?;
        Ok(())
    }

    /// Durable whatever the database's own setting is: after a crash of server and relay this note is all that tells
    /// which message it was.
    pub(crate) async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        let lane = smallints(&[lane])[0];
        let quarantined = Quarantined::of(rows);
        let quarantined = quarantined.as_ref();
        let (first, last) = (quarantined.map(|rows| rows.first), quarantined.map(|rows| rows.last));
        let id = quarantined.and_then(|rows| rows.id.as_ref()).map(RowId::uuid);
        let sink = quarantined.and_then(|rows| rows.sink.as_deref());
        let params: [Param<'_>; 6] = [
            (&owner.0, Type::UUID),
            (&lane, Type::INT2),
            (&first, Type::INT8),
            (&last, Type::INT8),
            (&id, Type::UUID),
            (&sink, Type::TEXT),
        ];
        let durable = Statement {
            sql: "SET LOCAL synchronous_commit = on",
            params: Vec::new(),
        };
        let quarantined = Statement {
            sql: &self.texts.quarantine,
            params: params.to_vec(),
        };
        let connection = self.lease_pool.get().await?;
        connection
            .run_all("the quarantined message could not be written", &[durable, quarantined])
            .await?;
        connection.give_back();
        Ok(())
    }
}

/// Says that settlements were ended, if some were.
pub(crate) fn tell_ended(ended: i32) {
    if ended > 0 {
        tracing::warn!(
            event = "session_ended",
            "settlement took longer than the lease of its relay; the database session of this relay was ended"
        );
    }
}
