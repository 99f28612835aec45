//! Ready rows that are not simply delivered: one waiting or dead row a leg.

use rusqlite::params;
use sendoff::store::{DeadReason, LegSettlement, Settlement, Verdict};

use super::Settling;
use super::key::Keys;
use super::plan::kept_error;
use crate::clock::micros;

/// What a message is given up with when its place among the waiting ones is taken.
pub(super) const PLACE_TAKEN: &str = "another message waits under its number: it was inserted with a seq of its own";

impl Settling<'_> {
    pub(super) fn settle_ready(&self, settlement: &Settlement, keys: &mut Keys) -> rusqlite::Result<()> {
        for leg in &settlement.legs {
            self.settle_ready_leg(settlement, leg)?;
            keys.settled(settlement, &leg.leg, &leg.verdict);
        }
        let place = &settlement.place;
        self.run(self.sql.remove_ready.first(), params![place.seq, place.lane])?;
        Ok(())
    }

    fn settle_ready_leg(&self, settlement: &Settlement, leg: &LegSettlement) -> rusqlite::Result<()> {
        let (seq, lane, leg, verdict) = (settlement.place.seq, settlement.place.lane, &*leg.leg, &leg.verdict);
        let waits = match verdict {
            Verdict::Delivered => {
                if self.keeps {
                    self.run(self.sql.settle_kept.first(), params![seq, lane, leg])?;
                }
                return Ok(());
            }
            Verdict::Dead {
                reason,
                error,
                charged,
                blocks,
            } => return self.die_ready(seq, lane, leg, *reason, error, *charged, *blocks),
            Verdict::Retry {
                state,
                delay,
                charged,
                error,
            } => {
                let due_at = self.now.saturating_add(micros(*delay));
                let values = params![seq, lane, leg, state.as_str(), due_at, charged, kept_error(error)];
                self.run(self.sql.wait_ready.first(), values)?
            }
            Verdict::Hold => {
                let nothing: Option<i64> = None;
                let values = params![seq, lane, leg, "held", self.held_until(settlement), 0, nothing];
                self.run(self.sql.wait_ready.first(), values)?
            }
        };
        if waits == 0 {
            // The row is gone, and this does nothing; or its place is taken, and the message must not be lost.
            self.die_ready(seq, lane, leg, DeadReason::Unreadable, PLACE_TAKEN, false, false)?;
        }
        Ok(())
    }

    /// When a held row is due. Without a key there is nothing to wait for; with one it is decided when all settlements
    /// of the key are known.
    pub(super) fn held_until(&self, settlement: &Settlement) -> Option<i64> {
        settlement.key.is_none().then_some(self.now)
    }

    #[allow(clippy::too_many_arguments, reason = "the parameters of the statement, in its order")]
    fn die_ready(
        &self,
        seq: i64,
        lane: u16,
        leg: &str,
        reason: DeadReason,
        error: &str,
        charged: bool,
        blocks: bool,
    ) -> rusqlite::Result<()> {
        let values = params![seq, lane, leg, reason.as_str(), kept_error(error), charged, blocks];
        self.run(self.sql.die_ready.first(), values)?;
        Ok(())
    }
}
