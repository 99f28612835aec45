//! Waiting messages become due.

use mysql_async::{Row, Value, params};
use sendoff::Result;
use sendoff::store::{Command, Filter, Hasten, Hastened, Place, Room, RowId};

use super::change::{Act, places};
use super::filter::values;
use super::only;
use crate::conflict::transact;
use crate::decode::{count, id_hex, lane, limit, number, text, unhex, unhex_bytes};
use crate::pool::Lent;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn hasten(
        &self,
        filter: &Filter,
        how: Hasten,
        after: Option<&Place>,
        most: usize,
        command: &mut Command,
    ) -> Result<Hastened> {
        let who = command.who().to_owned();
        let act = Act {
            what: "messages could not be made due",
            action: how.action(),
            filter: how.asked(filter).to_string(),
            who: &who,
        };
        let leg = after.and_then(|place| place.leg.as_deref()).unwrap_or_default();
        let mut values = self.to_hasten(filter, how).await;
        values.push(("behind_lane", after.map_or(-1, |place| i64::from(place.lane)).into()));
        values.push(("behind_seq", after.map_or(0, |place| place.seq).into()));
        values.push(("behind_leg", leg.into()));
        let id = after.map_or_else(String::new, |place| id_hex(&place.id));
        values.push(("behind_id", id.into()));
        values.push(("limit", limit(most).into()));
        let row = command.row();
        let (hastened, row) = transact!(self.operate_pool, act.what, lent => {
            self.make_due(&mut lent, &act, row, &values, how.reset, most).await
        })?;
        command.is_noted(row);
        Ok(hastened)
    }

    async fn make_due(
        &self,
        lent: &mut Lent,
        act: &Act<'_>,
        row: Option<i64>,
        values: &[(&'static str, Value)],
        reset: bool,
        most: usize,
    ) -> Result<(Hastened, i64)> {
        let sql = &self.texts.hasten;
        let waiting = lent.rows(act.what, sql.at(0), values.to_vec()).await?;
        if let Some(rows) = places(act.what, &waiting)? {
            let values = params! { "rows" => rows, "reset" => reset };
            lent.change(act.what, sql.at(1), values).await?;
        }
        let due = waiting.len() as u64;
        let next = waiting.last().filter(|_| waiting.len() == most);
        let next = next.map(|row| waiting_at(act.what, row)).transpose()?;
        let row = self.write_batch(lent, act, row, due).await?;
        Ok((Hastened { due, next }, row))
    }

    pub(crate) async fn hasten_count(&self, filter: &Filter, how: Hasten) -> Result<u64> {
        let what = "what can be made due could not be counted";
        let values = self.to_hasten(filter, how).await;
        let rows = self
            .operate_pool
            .rows(what, self.texts.hasten_count.first(), values)
            .await?;
        number(what, only(what, &rows)?, 0).map(count)
    }

    /// The values of `to_hasten.sql`. Scheduled messages that no relay has come across yet are filed first, to be found.
    async fn to_hasten(&self, filter: &Filter, how: Hasten) -> Vec<(&'static str, Value)> {
        if how.scheduled {
            self.file_all().await;
        }
        let mut values = values(filter);
        values.push(("reset", how.reset.into()));
        values.push(("scheduled", how.scheduled.into()));
        values
    }
}

/// Where a row of `hasten.sql` is.
fn waiting_at(what: &str, row: &Row) -> Result<Place> {
    let leg = unhex(&text(what, row, 2)?).filter(|leg| !leg.is_empty());
    Ok(Place {
        room: Room::Waiting,
        lane: lane(what, row, 0)?,
        seq: number(what, row, 1)?,
        id: RowId::from_text(&unhex_bytes(&text(what, row, 3)?).unwrap_or_default()),
        leg: leg.map(Into::into),
        spot: 0,
    })
}
