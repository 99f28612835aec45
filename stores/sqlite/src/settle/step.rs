//! The steps of a plan, each by its statement.

use rusqlite::params;
use sendoff::store::{DeathStep, KeepStep, Place, SettlePlan, WaitStep};

use super::Settling;
use crate::clock::micros;
use crate::row_id::Id;

/// The leg of a row as its table has it.
fn leg(place: &Place) -> &str {
    place.leg.as_deref().unwrap_or_default()
}

impl Settling<'_> {
    /// Carries out all but those for ready rows that are simply delivered, and for keys.
    pub(super) fn steps(&self, plan: &SettlePlan<'_>) -> rusqlite::Result<()> {
        self.confirmed(&plan.confirmed)?;
        self.done(&plan.done)?;
        self.confirmed_waiting(&plan.confirmed_waiting)?;
        self.wait_again(&plan.wait_again)?;
        self.wait_ready(&plan.wait_ready)?;
        self.split(&plan.split)?;
        self.die_ready(&plan.die_ready)?;
        self.die_waiting(&plan.die_waiting)?;
        self.wait_again(&plan.hold_again)?;
        self.wait_ready(&plan.hold_ready)?;
        self.split(&plan.hold_split)?;
        for place in &plan.remove_ready {
            self.remove_ready(place)?;
        }
        for place in &plan.remove_waiting {
            self.on_waiting(self.sql.remove_waiting.first(), place)?;
        }
        Ok(())
    }

    pub(super) fn remove_ready(&self, place: &Place) -> rusqlite::Result<()> {
        let values = params![place.seq, place.lane, Id(&place.id)];
        self.run(self.sql.remove_ready.first(), values).map(drop)
    }

    /// Keeps a copy of a ready row, where delivered messages are kept.
    pub(super) fn keep_ready(&self, place: &Place, leg: &str) -> rusqlite::Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let values = params![place.seq, place.lane, Id(&place.id), leg];
        self.run(self.sql.settle_kept.first(), values).map(drop)
    }

    fn keep_waiting(&self, place: &Place, as_leg: &str) -> rusqlite::Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let values = params![place.lane, place.seq, leg(place), Id(&place.id), as_leg];
        self.run(self.sql.settle_done_kept.first(), values).map(drop)
    }

    fn on_waiting(&self, text: &str, place: &Place) -> rusqlite::Result<()> {
        let values = params![place.lane, place.seq, leg(place), Id(&place.id)];
        self.run(text, values).map(drop)
    }

    fn confirmed(&self, steps: &[KeepStep<'_>]) -> rusqlite::Result<()> {
        steps.iter().try_for_each(|step| self.keep_ready(step.place, step.leg))
    }

    fn confirmed_waiting(&self, steps: &[KeepStep<'_>]) -> rusqlite::Result<()> {
        steps
            .iter()
            .try_for_each(|step| self.keep_waiting(step.place, step.leg))
    }

    fn done(&self, places: &[&Place]) -> rusqlite::Result<()> {
        for place in places {
            self.keep_waiting(place, leg(place))?;
            self.on_waiting(self.sql.settle_done.first(), place)?;
        }
        Ok(())
    }

    /// When a leg is due. One that is held has no time, until it is known at the end that nothing holds it.
    fn due_at(&self, step: &WaitStep<'_>) -> Option<i64> {
        step.state.map(|_| self.now.saturating_add(micros(step.delay)))
    }

    fn wait_ready(&self, steps: &[WaitStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let place = step.place;
            let (state, due_at) = (step.state_word(), self.due_at(step));
            let id = Id(&place.id);
            let values = params![
                place.seq,
                place.lane,
                id,
                step.leg,
                state,
                due_at,
                step.charged,
                step.error
            ];
            self.run(self.sql.wait_ready.first(), values)?;
        }
        Ok(())
    }

    fn wait_again(&self, steps: &[WaitStep<'_>]) -> rusqlite::Result<()> {
        self.wait_on(self.sql.wait_again.first(), steps)
    }

    fn split(&self, steps: &[WaitStep<'_>]) -> rusqlite::Result<()> {
        self.wait_on(self.sql.split_waiting.first(), steps)
    }

    fn wait_on(&self, text: &str, steps: &[WaitStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let place = step.place;
            let (state, due_at) = (step.state_word(), self.due_at(step));
            let id = Id(&place.id);
            let values = params![
                place.lane,
                place.seq,
                step.leg,
                id,
                state,
                due_at,
                step.charged,
                step.error
            ];
            self.run(text, values)?;
        }
        Ok(())
    }

    fn die_ready(&self, steps: &[DeathStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let (place, reason) = (step.place, step.reason.as_str());
            let id = Id(&place.id);
            let values = params![
                place.seq,
                place.lane,
                id,
                step.leg,
                reason,
                step.error,
                step.charged,
                step.blocks
            ];
            self.run(self.sql.die_ready.first(), values)?;
        }
        Ok(())
    }

    fn die_waiting(&self, steps: &[DeathStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let (place, reason) = (step.place, step.reason.as_str());
            let (from, id) = (leg(place), Id(&place.id));
            let (charged, blocks) = (step.charged, step.blocks);
            let values = params![
                place.lane, place.seq, from, id, step.leg, reason, step.error, charged, blocks
            ];
            self.run(self.sql.die_waiting.first(), values)?;
        }
        Ok(())
    }
}
