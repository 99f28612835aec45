//! The steps of a plan, each as a statement.

use rusqlite::params;
use sendoff::store::{DeathStep, RowRef, SettlePlan, WaitStep};

use super::Settling;
use crate::clock::micros;
use crate::row_id::Id;

/// The delivery of a row as its table has it.
fn sink(row_ref: &RowRef) -> &str {
    row_ref.sink.as_deref().unwrap_or_default()
}

impl Settling<'_> {
    /// Copies what was confirmed, as long as the rows are there.
    pub(super) fn keep(&self, plan: &SettlePlan<'_>) -> rusqlite::Result<()> {
        for step in &plan.kept_ready {
            let row_ref = step.row_ref;
            let values = params![row_ref.seq, row_ref.lane, Id(&row_ref.id), step.sinks_json()];
            self.run(self.sql.settle_kept.first(), values)?;
        }
        for step in &plan.kept_waiting {
            let row_ref = step.row_ref;
            let (from, id) = (sink(row_ref), Id(&row_ref.id));
            let values = params![row_ref.lane, row_ref.seq, from, id, step.sinks_json()];
            self.run(self.sql.settle_done_kept.first(), values)?;
        }
        Ok(())
    }

    /// Carries out all but the copies, the steps for ready rows that are simply delivered, and those for keys.
    pub(super) fn steps(&self, plan: &SettlePlan<'_>) -> rusqlite::Result<()> {
        for row_ref in &plan.done {
            self.on_waiting(self.sql.settle_done.first(), row_ref)?;
        }
        self.wait_again(&plan.wait_again)?;
        self.wait_ready(&plan.wait_ready)?;
        self.split(&plan.split)?;
        self.die_ready(&plan.die_ready)?;
        self.die_waiting(&plan.die_waiting)?;
        self.wait_again(&plan.block_again)?;
        self.wait_ready(&plan.block_ready)?;
        self.split(&plan.block_split)?;
        for row_ref in &plan.remove_ready {
            self.remove_ready(row_ref)?;
        }
        for row_ref in &plan.remove_waiting {
            self.on_waiting(self.sql.remove_waiting.first(), row_ref)?;
        }
        Ok(())
    }

    pub(super) fn remove_ready(&self, row_ref: &RowRef) -> rusqlite::Result<()> {
        let values = params![row_ref.seq, row_ref.lane, Id(&row_ref.id)];
        self.run(self.sql.remove_ready.first(), values).map(drop)
    }

    fn on_waiting(&self, text: &str, row_ref: &RowRef) -> rusqlite::Result<()> {
        let values = params![row_ref.lane, row_ref.seq, sink(row_ref), Id(&row_ref.id)];
        self.run(text, values).map(drop)
    }

    /// When a delivery is due. One that is held has no time, until it is known at the end that nothing holds it.
    fn due_at(&self, step: &WaitStep<'_>) -> Option<i64> {
        step.state.map(|_| self.now.saturating_add(micros(step.delay)))
    }

    fn wait_ready(&self, steps: &[WaitStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let row_ref = step.row_ref;
            let (state, due_at) = (step.state_word(), self.due_at(step));
            let id = Id(&row_ref.id);
            let values = params![
                row_ref.seq,
                row_ref.lane,
                id,
                step.sink,
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
        for step in steps {
            let row_ref = step.row_ref;
            let (state, due_at) = (step.state_word(), self.due_at(step));
            let id = Id(&row_ref.id);
            let values = params![
                row_ref.lane,
                row_ref.seq,
                step.sink,
                id,
                state,
                due_at,
                step.charged,
                step.error,
                step.attempts
            ];
            self.run(self.sql.wait_again.first(), values)?;
        }
        Ok(())
    }

    fn split(&self, steps: &[WaitStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let row_ref = step.row_ref;
            let (state, due_at) = (step.state_word(), self.due_at(step));
            let id = Id(&row_ref.id);
            let values = params![
                row_ref.lane,
                row_ref.seq,
                step.sink,
                id,
                state,
                due_at,
                step.charged,
                step.error
            ];
            self.run(self.sql.split_waiting.first(), values)?;
        }
        Ok(())
    }

    fn die_ready(&self, steps: &[DeathStep<'_>]) -> rusqlite::Result<()> {
        for step in steps {
            let (row_ref, reason) = (step.row_ref, step.reason.as_str());
            let id = Id(&row_ref.id);
            let values = params![
                row_ref.seq,
                row_ref.lane,
                id,
                step.sink,
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
            let (row_ref, reason) = (step.row_ref, step.reason.as_str());
            let (from, id) = (sink(row_ref), Id(&row_ref.id));
            let (charged, blocks) = (step.charged, step.blocks);
            let values = params![
                row_ref.lane,
                row_ref.seq,
                from,
                id,
                step.sink,
                reason,
                step.error,
                charged,
                blocks
            ];
            self.run(self.sql.die_waiting.first(), values)?;
        }
        Ok(())
    }
}
