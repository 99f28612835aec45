//! Reading the lanes of a relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::store::{History, InHand, Lane, LaneGrant, Page, Place, ReadRequest, Reader, Room, Row};
use sendoff::{Result, Uuid};
use serde_json::json;

use crate::content::Content;
use crate::relay::{COMMON_LANES, LANES, SPECIAL_LANES};
use crate::rows::{id_of, leg_of, seq_of};
use crate::script::Script;

/// Remembers how far each lane was read. Numbers are given at the commit, one script after the other, so no message ever
/// appears behind that mark.
pub(crate) struct RedisReader {
    script: Script,
    /// The last number that was read, by lane.
    floors: BTreeMap<Lane, i64>,
    hand: InHand,
    /// The history of the server at the last read.
    history: Option<History>,
    /// Where among the common lanes the next page begins, so that a hot lane does not starve those behind it.
    turn: usize,
}

/// A member and what is stored for it, as the script answers.
type ReadyRow = (Lane, String, Option<Vec<u8>>);
type WaitingRow = (Lane, String, Vec<u8>, u32);

impl RedisReader {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script,
            floors: BTreeMap::new(),
            hand: InHand::default(),
            history: None,
            turn: 0,
        }
    }

    /// Whether the server's history is not the one of the last read, continued. Then all lanes are read from their beginning.
    async fn starts_over(&mut self) -> Result<bool> {
        let args = json!({"fresh": Uuid::new_v4()});
        let (server, head) = self.script.call("history", &args).await?;
        let history = History { server, head };
        let before = self.history.replace(history.clone());
        let is_another = before.is_some_and(|before| history.breaks_with(&before).is_some());
        if is_another {
            self.hand = InHand::default();
            self.floors.values_mut().for_each(|floor| *floor = 0);
        }
        Ok(is_another)
    }

    /// The lanes in the order of this page: urgent ones, common ones in turn, idle ones.
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
            // Not all of it, so that neither table keeps the other waiting.
            "bytes": (request.bytes / if request.due { 2 } else { 1 }).max(1).to_string()});
        let (now, more, rows): (i64, u8, Vec<ReadyRow>) = self.script.call("read_ready", &args).await?;
        page.more |= more == 1;
        for (lane, member, content) in rows {
            let place = place(Room::Ready, lane, &member);
            self.floors.insert(lane, place.seq);
            if self.hand.take(&place) {
                page.rows
                    .push(row(place, content.as_deref().unwrap_or_default(), 0, now));
            }
        }
        Ok(())
    }

    async fn read_due(&mut self, request: &ReadRequest, page: &mut Page) -> Result<()> {
        let lanes: Vec<Lane> = self.floors.keys().copied().collect();
        let args = json!({"lanes": lanes, "skip": request.skip_legs});
        let mut due: Vec<(Lane, String, f64)> = self.script.call("due", &args).await?;
        due.sort_by(|(_, a_member, a), (_, b_member, b)| a.total_cmp(b).then_with(|| a_member.cmp(b_member)));
        let mut places = Vec::new();
        for (lane, member, _) in due {
            if places.len() == request.limit.max(1) {
                page.more = true;
                break;
            }
            if self.hand.take(&place(Room::Waiting, lane, &member)) {
                places.push((lane, member));
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let bytes = request.bytes.saturating_sub(page.rows.iter().map(Row::bytes).sum());
        let args = json!({"places": places, "bytes": bytes.to_string()});
        let fetched: Result<(i64, Vec<WaitingRow>, usize)> = self.script.call("fetch", &args).await;
        let (now, rows, looked_at) = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                // Nothing is returned, so nothing may stay in hand.
                let forgotten = places.iter().map(|(lane, member)| place(Room::Waiting, *lane, member));
                self.hand.begin(&ReadRequest {
                    forgotten: forgotten.collect(),
                    ..ReadRequest::default()
                });
                return Err(error);
            }
        };
        if let Some(left @ [_, ..]) = places.get(looked_at..) {
            page.more = true;
            let forgotten = left.iter().map(|(lane, member)| place(Room::Waiting, *lane, member));
            self.hand.begin(&ReadRequest {
                forgotten: forgotten.collect(),
                ..ReadRequest::default()
            });
        }
        for (lane, member, content, attempts) in rows {
            page.rows
                .push(row(place(Room::Waiting, lane, &member), &content, attempts, now));
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
        // What was forgotten lies behind the mark: it goes back, and what is in hand is passed over once more.
        for place in request.forgotten.iter().filter(|place| place.room == Room::Ready) {
            if let Some(floor) = self.floors.get_mut(&place.lane) {
                *floor = (place.seq - 1).min(*floor);
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
            let read = page.rows.iter().map(|row| row.place().clone());
            let forgotten: Vec<Place> = read.collect();
            for place in &forgotten {
                self.floors
                    .entry(place.lane)
                    .and_modify(|floor| *floor = (place.seq - 1).min(*floor));
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

fn place(room: Room, lane: Lane, member: &str) -> Place {
    let leg = leg_of(member);
    Place {
        room,
        lane,
        seq: seq_of(member),
        id: id_of(member),
        leg: (!leg.is_empty()).then(|| Arc::from(leg)),
        spot: 0,
    }
}

fn row(place: Place, content: &[u8], attempts: u32, now: i64) -> Row {
    let read = Content::read(content).and_then(|content| {
        let is_expired = content.expires_at.is_some_and(|at| at <= now);
        Ok((is_expired, content.delivery(place.clone(), attempts)?))
    });
    match read {
        Ok((true, delivery)) => Row::Expired(Arc::new(delivery)),
        Ok((false, delivery)) => Row::Message(Arc::new(delivery)),
        Err(why) => Row::Unreadable { place, why },
    }
}
