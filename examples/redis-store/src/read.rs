//! `Reader`: reads the lanes of a relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::store::{History, InFlight, Lane, LaneGrant, Page, ReadRequest, Reader, Row, RowRef, Table};
use sendoff::{Result, Uuid};
use serde_json::json;

use crate::content::Content;
use crate::relay::{COMMON_LANES, LANES, SPECIAL_LANES};
use crate::rows::{delivery_of, id_of, seq_of};
use crate::script::Script;

/// Remembers how far each lane was read. Numbers are assigned at the commit, one script after the other, so no message
/// appears behind that mark.
pub(crate) struct RedisReader {
    script: Script,
    /// The last number that was read, by lane.
    floors: BTreeMap<Lane, i64>,
    hand: InFlight,
    /// The history of the server at the last read.
    history: Option<History>,
    /// The common lane that the next page begins with, so that a busy lane does not starve the others.
    turn: usize,
}

/// A member and its stored content, as the script returns them.
type ReadyRow = (Lane, String, Option<Vec<u8>>);
type WaitingRow = (Lane, String, Vec<u8>, u32);

impl RedisReader {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script,
            floors: BTreeMap::new(),
            hand: InFlight::default(),
            history: None,
            turn: 0,
        }
    }

    /// Whether the server has another history than at the last read. Then all lanes are read from the beginning.
    async fn starts_over(&mut self) -> Result<bool> {
        let args = json!({"fresh": Uuid::new_v4()});
        let (server, head) = self.script.call("history", &args).await?;
        let history = History { server, head };
        let before = self.history.replace(history.clone());
        let is_another = before.is_some_and(|before| history.breaks_with(&before).is_some());
        if is_another {
            self.hand = InFlight::default();
            self.floors.values_mut().for_each(|floor| *floor = 0);
        }
        Ok(is_another)
    }

    /// The lanes in the order of this page: urgent ones, common ones in rotation, low-priority ones.
    fn order(&mut self) -> Vec<Lane> {
        let (mut common, rest): (Vec<Lane>, Vec<Lane>) = self.floors.keys().partition(|lane| **lane < COMMON_LANES);
        if !common.is_empty() {
            self.turn = (self.turn + 1) % common.len();
            common.rotate_left(self.turn);
        }
        let is_urgent = |lane: &Lane| *lane < COMMON_LANES + SPECIAL_LANES;
        let (urgent, idle): (Vec<Lane>, Vec<Lane>) = rest.into_iter().partition(is_urgent);
        [urgent, common, idle].concat()
    }

    async fn read_ready(&mut self, request: &ReadRequest, page: &mut Page) -> Result<()> {
        let floor = |lane: Lane| self.floors.get(&lane).copied().unwrap_or_default().to_string();
        let floors: Vec<String> = (0..LANES).map(floor).collect();
        let args = json!({"lanes": self.order(), "floors": floors, "limit": request.limit.max(1),
            // Half of it, so that neither table delays the other.
            "bytes": (request.bytes / if request.due { 2 } else { 1 }).max(1).to_string()});
        let (now, more, rows): (i64, u8, Vec<ReadyRow>) = self.script.call("read_ready", &args).await?;
        page.more |= more == 1;
        for (lane, member, content) in rows {
            let row_ref = row_ref(Table::Ready, lane, &member);
            self.floors.insert(lane, row_ref.seq);
            if self.hand.take(&row_ref) {
                page.rows
                    .push(row(row_ref, content.as_deref().unwrap_or_default(), 0, now));
            }
        }
        Ok(())
    }

    async fn read_due(&mut self, request: &ReadRequest, page: &mut Page) -> Result<()> {
        let lanes: Vec<Lane> = self.floors.keys().copied().collect();
        let args = json!({"lanes": lanes, "skip": request.skip_sinks});
        let mut due: Vec<(Lane, String, f64)> = self.script.call("due", &args).await?;
        due.sort_by(|(_, a_member, a), (_, b_member, b)| a.total_cmp(b).then_with(|| a_member.cmp(b_member)));
        let mut row_refs = Vec::new();
        for (lane, member, _) in due {
            if row_refs.len() == request.limit.max(1) {
                page.more = true;
                break;
            }
            if self.hand.take(&row_ref(Table::Waiting, lane, &member)) {
                row_refs.push((lane, member));
            }
        }
        if row_refs.is_empty() {
            return Ok(());
        }
        let bytes = request.bytes.saturating_sub(page.rows.iter().map(Row::bytes).sum());
        let args = json!({"places": row_refs, "bytes": bytes.to_string()});
        let fetched: Result<(i64, Vec<WaitingRow>, usize)> = self.script.call("fetch", &args).await;
        let (now, rows, looked_at) = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                // No row is returned, so none may stay in flight.
                let forgotten = row_refs
                    .iter()
                    .map(|(lane, member)| row_ref(Table::Waiting, *lane, member));
                self.hand.begin(&ReadRequest {
                    forgotten: forgotten.collect(),
                    ..ReadRequest::default()
                });
                return Err(error);
            }
        };
        if let Some(left @ [_, ..]) = row_refs.get(looked_at..) {
            page.more = true;
            let forgotten = left.iter().map(|(lane, member)| row_ref(Table::Waiting, *lane, member));
            self.hand.begin(&ReadRequest {
                forgotten: forgotten.collect(),
                ..ReadRequest::default()
            });
        }
        for (lane, member, content, attempts) in rows {
            page.rows
                .push(row(row_ref(Table::Waiting, lane, &member), &content, attempts, now));
        }
        Ok(())
    }
}

#[async_trait]
impl Reader for RedisReader {
    fn gained(&mut self, grants: &[LaneGrant]) {
        for grant in grants {
            self.hand.drop_lane(grant.lane);
            self.floors.insert(grant.lane, 0);
        }
    }

    fn lost(&mut self, lanes: &[Lane]) {
        let lanes: BTreeSet<Lane> = lanes.iter().copied().collect();
        for lane in lanes {
            self.hand.drop_lane(lane);
            self.floors.remove(&lane);
        }
    }

    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        self.hand.begin(&request);
        // Forgotten rows are behind the mark. The mark goes back, and rows in flight are skipped again.
        for row_ref in request.forgotten.iter().filter(|row_ref| row_ref.table == Table::Ready) {
            if let Some(floor) = self.floors.get_mut(&row_ref.lane) {
                *floor = (row_ref.seq - 1).min(*floor);
            }
        }
        let mut page = Page::default();
        if self.starts_over().await? {
            page.history_changed = true;
            return Ok(page);
        }
        if request.ready {
            self.read_ready(&request, &mut page).await?;
        }
        if request.due
            && let Err(error) = self.read_due(&request, &mut page).await
        {
            let read = page.rows.iter().map(|row| row.row_ref().clone());
            let forgotten: Vec<RowRef> = read.collect();
            for row_ref in &forgotten {
                self.floors
                    .entry(row_ref.lane)
                    .and_modify(|floor| *floor = (row_ref.seq - 1).min(*floor));
            }
            self.hand.begin(&ReadRequest {
                forgotten,
                ..ReadRequest::default()
            });
            return Err(error);
        }
        Ok(page)
    }
}

fn row_ref(table: Table, lane: Lane, member: &str) -> RowRef {
    let sink = delivery_of(member);
    RowRef {
        table,
        lane,
        seq: seq_of(member),
        id: id_of(member),
        sink: (!sink.is_empty()).then(|| Arc::from(sink)),
        locator: 0,
    }
}

fn row(row_ref: RowRef, content: &[u8], attempts: u32, now: i64) -> Row {
    let read = Content::read(content).and_then(|content| {
        let is_expired = content.expires_at.is_some_and(|at| at <= now);
        Ok((is_expired, content.outgoing(row_ref.clone(), attempts)?))
    });
    match read {
        Ok((true, outgoing)) => Row::Expired(Arc::new(outgoing)),
        Ok((false, outgoing)) => Row::Message(Arc::new(outgoing)),
        Err(why) => Row::Unreadable { row_ref, why },
    }
}
