//! Waiting messages become due.

use sendoff::store::{Command, Filter, Hasten, Hastened, Place, Room};
use sendoff::{Result, Uuid};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::change::Act;
use super::filter::Columns;
use super::only;
use crate::decode::{column, count, number, smallint};
use crate::pipeline::Param;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn hasten(
        &self,
        filter: &Filter,
        how: Hasten,
        after: Option<&Place>,
        limit: usize,
        command: &mut Command,
    ) -> Result<Hastened> {
        let who = command.who().to_owned();
        let act = Act {
            what: "messages could not be made due",
            action: how.action(),
            filter: how.asked(filter).to_string(),
            who: &who,
        };
        let (filter, limit) = (Columns::new(filter), number(limit));
        let (lane, seq) = after.map_or((-1, 0), |place| (smallint(place.lane), place.seq));
        let leg = after.and_then(|place| place.leg.as_deref()).unwrap_or_default();
        let mut params = to_hasten(&filter, &how);
        let id = after.map(|place| place.id.uuid()).unwrap_or_default();
        params.extend::<[Param<'_>; 5]>([
            (&lane, Type::INT2),
            (&seq, Type::INT8),
            (&leg, Type::TEXT),
            (&id, Type::UUID),
            (&limit, Type::INT8),
        ]);
        let (lent, found) = self.begin_act(&act, &self.texts.hasten, params).await?;
        let mut hastened = Hastened::default();
        if let Some(row) = found.first() {
            hastened.due = count(column(act.what, row, 0)?);
            if column::<i64>(act.what, row, 1)? == limit {
                hastened.next = Some(waiting_at(act.what, row)?);
            }
        }
        self.end_batch(lent, &act, command, hastened.due).await?;
        Ok(hastened)
    }

    pub(crate) async fn hasten_count(&self, filter: &Filter, how: Hasten) -> Result<u64> {
        let what = "what can be made due could not be counted";
        let filter = Columns::new(filter);
        let params = to_hasten(&filter, &how);
        let rows = self.operate_pool.run(what, &self.texts.hasten_count, &params).await?;
        column::<i64>(what, only(what, &rows)?, 0).map(count)
    }
}

/// The values of `to_hasten.sql`.
fn to_hasten<'a>(filter: &'a Columns<'_>, how: &'a Hasten) -> Vec<Param<'a>> {
    let mut params = filter.params();
    params.extend::<[Param<'_>; 2]>([(&how.reset, Type::BOOL), (&how.scheduled, Type::BOOL)]);
    params
}

/// The place at the end of a row of `hasten.sql`.
fn waiting_at(what: &str, row: &Row) -> Result<Place> {
    let leg: &str = column(what, row, 4)?;
    Ok(Place {
        room: Room::Waiting,
        lane: column::<i16>(what, row, 2)?.unsigned_abs(),
        seq: column(what, row, 3)?,
        id: column::<Uuid>(what, row, 5)?.into(),
        leg: Some(leg).filter(|leg| !leg.is_empty()).map(Into::into),
        spot: 0,
    })
}
