//! Waiting rows: of one leg, or not routed yet.

use rusqlite::params;
use sendoff::store::{DeadReason, Settlement, Verdict};

use super::Settling;
use super::key::{Keys, legs_behind};
use super::plan::kept_error;
use super::ready::PLACE_TAKEN;
use crate::clock::micros;

impl Settling<'_> {
    pub(super) fn settle_waiting(&self, settlement: &Settlement, keys: &mut Keys) -> rusqlite::Result<()> {
        match &settlement.place.leg {
            Some(leg) => {
                let verdict = settlement.legs.first().map_or(&Verdict::Delivered, |leg| &leg.verdict);
                self.settle_leg(settlement, leg, leg, verdict)?;
                keys.settled(settlement, leg, verdict);
                Ok(())
            }
            None => self.settle_unrouted(settlement, keys),
        }
    }

    /// A row that was not routed yet: as a ready row it becomes one row a leg, and legs that are not named are delivered.
    fn settle_unrouted(&self, settlement: &Settlement, keys: &mut Keys) -> rusqlite::Result<()> {
        let place = &settlement.place;
        let mut stays = false;
        if settlement.legs.is_empty() && self.keeps {
            self.run(
                self.sql.settle_done_kept.first(),
                params![place.lane, place.seq, "", ""],
            )?;
        }
        for leg in &settlement.legs {
            self.settle_leg(settlement, "", &leg.leg, &leg.verdict)?;
            keys.settled(settlement, &leg.leg, &leg.verdict);
            stays |= leg.leg.is_empty() && matches!(leg.verdict, Verdict::Retry { .. } | Verdict::Hold);
        }
        if !stays {
            self.run(self.sql.remove_waiting.first(), params![place.lane, place.seq, ""])?;
            if let Some(key) = &settlement.key {
                keys.gone(place.lane, key, "");
                // It stood before the rows of every leg, also of those that it was delivered to.
                for leg in legs_behind(self.tx, self.sql, place.lane, key, "")? {
                    keys.gone(place.lane, key, &leg);
                }
            }
        }
        Ok(())
    }

    /// `from` is the leg of the row, `leg` the one that is settled; they differ for a row that was not routed yet.
    fn settle_leg(&self, settlement: &Settlement, from: &str, leg: &str, verdict: &Verdict) -> rusqlite::Result<()> {
        let (lane, seq) = (settlement.place.lane, settlement.place.seq);
        let in_place = from == leg;
        let wait = if in_place {
            &self.sql.wait_again
        } else {
            &self.sql.split_waiting
        };
        let waits = match verdict {
            Verdict::Delivered => {
                if self.keeps && !leg.is_empty() {
                    self.run(self.sql.settle_done_kept.first(), params![lane, seq, from, leg])?;
                }
                if in_place {
                    self.run(self.sql.settle_done.first(), params![lane, seq, leg])?;
                }
                return Ok(());
            }
            Verdict::Dead {
                reason,
                error,
                charged,
                blocks,
            } => {
                self.die_waiting(settlement, (from, leg), *reason, error, *charged, *blocks)?;
                if in_place {
                    self.run(self.sql.remove_waiting.first(), params![lane, seq, leg])?;
                }
                return Ok(());
            }
            Verdict::Retry {
                state,
                delay,
                charged,
                error,
            } => {
                let due_at = self.now.saturating_add(micros(*delay));
                self.run(
                    wait.first(),
                    params![lane, seq, leg, state.as_str(), due_at, charged, kept_error(error)],
                )?
            }
            Verdict::Hold => {
                let nothing: Option<i64> = None;
                self.run(
                    wait.first(),
                    params![lane, seq, leg, "held", self.held_until(settlement), 0, nothing],
                )?
            }
        };
        if waits == 0 && !in_place {
            // As with ready rows: gone, or its place is taken by another message.
            self.die_waiting(
                settlement,
                (from, leg),
                DeadReason::Unreadable,
                PLACE_TAKEN,
                false,
                false,
            )?;
        }
        Ok(())
    }

    fn die_waiting(
        &self,
        settlement: &Settlement,
        (from, leg): (&str, &str),
        reason: DeadReason,
        error: &str,
        charged: bool,
        blocks: bool,
    ) -> rusqlite::Result<()> {
        let (lane, seq) = (settlement.place.lane, settlement.place.seq);
        let values = params![
            lane,
            seq,
            from,
            leg,
            reason.as_str(),
            kept_error(error),
            charged,
            blocks
        ];
        self.run(self.sql.die_waiting.first(), values)?;
        Ok(())
    }
}
