//! `RelayStore`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{
    Backlog, BlockedKey, Heartbeat, History, Lane, LaneGrant, LaneHead, LiveRelay, OwnerId, Quarantined, Reader,
    RelayCard, RelayStore, RowId, RowRef, SettlePlan, SettleReport, Settlement, StoreHealth,
};
use sendoff::{Result, Uuid};
use serde_json::{Value, json};

use crate::content::{Content, time};
use crate::read::RedisReader;
use crate::rows::seq_of;
use crate::settle::settlement;
use crate::{RedisStore, micros, retention};

/// Lanes for messages with a key, or with neither a key nor a priority.
pub(crate) const COMMON_LANES: Lane = 64;
/// Lanes for urgent messages, and as many for low-priority ones, after the common lanes.
pub(crate) const SPECIAL_LANES: Lane = 8;
pub(crate) const LANES: Lane = COMMON_LANES + 2 * SPECIAL_LANES;

/// A lane, its epoch, its crashes, its quarantined rows (the first and the last number, sink and id) and their crashes.
type Grant = (
    Lane,
    i64,
    u32,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<String>,
    u32,
);

#[async_trait]
impl RelayStore for RedisStore {
    fn lanes(&self) -> Lane {
        LANES
    }

    async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        let args = json!({
            "owner": owner.0, "name": card.name, "lease": micros(lease),
            "version": card.version, "config": card.config, "routes": card.routes,
        });
        self.script.call("register", &args).await
    }

    async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        let args = json!({"owner": owner.0, "lease": micros(lease), "fresh": Uuid::new_v4()});
        let answer = self.script.call("heartbeat", &args).await?;
        let (alive, relays, (server, head)): (u8, Vec<(String, String, String)>, (String, i64)) = answer;
        let relay = |(owner, config, routes): (String, String, String)| {
            let owner = OwnerId(owner.parse().ok()?);
            Some(LiveRelay { owner, config, routes })
        };
        let mut relays: Vec<LiveRelay> = relays.into_iter().filter_map(relay).collect();
        relays.sort_unstable_by_key(|relay| relay.owner);
        Ok(Heartbeat {
            alive: alive == 1,
            relays,
            history: Some(History { server, head }),
        })
    }

    async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        let args = json!({"owner": owner.0, "limit": limit});
        let grants: Vec<Grant> = self.script.call("acquire", &args).await?;
        let grant = |(lane, epoch, crashes, first, last, sink, id, quarantine_crashes): Grant| LaneGrant {
            lane,
            epoch,
            crashes,
            quarantined: first.map(|first| Quarantined {
                first,
                last: last.unwrap_or(first),
                id: id.map(|id| RowId::from_text(id.as_bytes())),
                sink: sink.map(Arc::from),
                crashes: quarantine_crashes,
            }),
        };
        Ok(grants.into_iter().map(grant).collect())
    }

    async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.script.call("release", &of(owner, lanes)).await
    }

    async fn deregister(&self, owner: OwnerId) -> Result<()> {
        self.script.call("deregister", &json!({"owner": owner.0})).await
    }

    async fn evict(&self) -> Result<u64> {
        self.script.call("evict", &json!({})).await
    }

    async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.script.call("clear_quarantine", &of(owner, lanes)).await
    }

    async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        let mut args = json!({"owner": owner.0, "lane": lane});
        if let Some(quarantined) = Quarantined::of(rows) {
            args["first"] = quarantined.first.to_string().into();
            args["last"] = quarantined.last.to_string().into();
            if let Some(id) = &quarantined.id {
                args["id"] = id.uuid().to_string().into();
            }
            if let Some(sink) = quarantined.sink.as_deref() {
                args["sink"] = sink.into();
            }
        }
        self.script.call("quarantine", &args).await
    }

    fn keeps_delivered(&self) -> bool {
        self.retention.is_some()
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(RedisReader::new(self.script.clone()))
    }

    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        let found: Vec<(Lane, String, String)> = self.script.call("blocked_keys", &json!({"lanes": lanes})).await?;
        Ok(found.into_iter().map(blocked).collect())
    }

    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        // Of two epochs of a lane, rows that were read under the older one are not settled.
        let epochs = SettlePlan::epochs(settlements);
        let is_current = |of: &&Settlement| epochs.get(&of.row_ref.lane) == Some(&of.epoch);
        let lanes = epochs.iter().map(|(lane, epoch)| (lane, epoch.to_string()));
        let args = json!({
            "owner": owner.0,
            "keep": self.retention.is_some(),
            "lanes": lanes.collect::<Vec<_>>(),
            "settlements": settlements.iter().filter(is_current).map(settlement).collect::<Vec<_>>(),
        });
        let answer = self.script.call("settle", &args).await?;
        let (lost, freed, woke): (Vec<Lane>, Vec<(Lane, String, String)>, u8) = answer;
        Ok(SettleReport {
            lost,
            freed: freed.into_iter().map(blocked).collect(),
            woke: woke == 1,
        })
    }

    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        self.script.call("release_orphans", &of(owner, lanes)).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        let (ready, due, waiting, dead) = self.script.call("backlog", &json!({})).await?;
        Ok(Backlog {
            ready,
            due,
            waiting,
            dead,
        })
    }

    async fn health(&self) -> Result<Option<StoreHealth>> {
        type Head = (Lane, String, Vec<u8>, u8);
        let answer = self.script.call("health", &json!({})).await?;
        let (now, oldest_due, heads): (i64, Option<i64>, Vec<Head>) = answer;
        let age = |since: i64| Duration::from_micros(u64::try_from(now - since).unwrap_or_default());
        let head = |(lane, member, content, held): Head| LaneHead {
            lane,
            seq: seq_of(&member),
            age: Content::read(&content).map_or(Duration::ZERO, |content| age(content.created_at)),
            held: held == 1,
        };
        let Backlog {
            ready,
            due,
            waiting,
            dead,
        } = self.backlog().await?;
        Ok(Some(StoreHealth {
            now: time(now),
            ready,
            waiting: due + waiting,
            dead,
            oldest_due: oldest_due.map(age),
            heads: heads.into_iter().map(head).collect(),
            stray: None,
        }))
    }

    async fn paused(&self) -> Result<Vec<(String, String)>> {
        let pauses = self.pauses_by_name().await?;
        Ok(pauses.into_iter().map(|(what, _)| what).collect())
    }

    async fn clean(&self, limit: usize) -> Result<u64> {
        let args = retention(limit, self.retention, self.dead_retention);
        let (deleted, _): (u64, i64) = self.script.call("clean_up", &args).await?;
        Ok(deleted)
    }
}

fn of(owner: OwnerId, lanes: &[Lane]) -> Value {
    json!({"owner": owner.0, "lanes": lanes})
}

fn blocked((lane, key, sink): (Lane, String, String)) -> BlockedKey {
    BlockedKey {
        lane,
        key: key.into(),
        sink: sink.into(),
    }
}
