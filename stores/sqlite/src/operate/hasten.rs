//! Waiting messages become due.

use std::cmp::Ordering;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params_from_iter};
use sendoff::Result;
use sendoff::store::{Command, Filter, Hasten, Hastened, Lane, Place, Room};

use super::act::Batch;
use super::filter::{number, values};
use super::look::count;
use crate::row_id;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    pub(super) async fn hasten(
        &self,
        filter: &Filter,
        how: Hasten,
        after: Option<&Place>,
        limit: usize,
        command: &mut Command,
    ) -> Result<Hastened> {
        let leg = after.and_then(|place| place.leg.as_deref()).unwrap_or_default();
        let mut values = to_hasten(filter, how);
        values.extend([
            Value::Integer(after.map_or(-1, |place| i64::from(place.lane))),
            Value::Integer(after.map_or(0, |place| place.seq)),
            Value::Text(leg.to_owned()),
            Value::Blob(after.map_or_else(Vec::new, |place| place.id.with_text(<[u8]>::to_vec))),
            Value::Integer(number(limit)),
        ]);
        let batch = Batch {
            what: "messages could not be made due",
            action: how.action(),
            asked: how.asked(filter).to_string(),
        };
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let mut statement = tx.prepare_cached(sql.hasten.first())?;
            let places = statement.query_map(params_from_iter(values), place)?;
            let places: Vec<Place> = places.collect::<rusqlite::Result<_>>()?;
            let due = u64::try_from(places.len()).unwrap_or(u64::MAX);
            let next = if places.len() == limit {
                places.into_iter().max_by(in_order)
            } else {
                None
            };
            Ok(Hastened { due, next })
        };
        self.act_for(command, batch, act, |hastened| hastened.due).await
    }

    pub(super) async fn hasten_count(&self, filter: &Filter, how: Hasten) -> Result<u64> {
        let (sql, values) = (self.sql.clone(), to_hasten(filter, how));
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.hasten_count.first())?;
            statement.query_row(params_from_iter(values), |row| count(row, 0))
        };
        let what = "what can be made due could not be counted";
        self.operate.call(what, work).await
    }
}

/// The values of `to_hasten.sql`.
fn to_hasten(filter: &Filter, how: Hasten) -> Vec<Value> {
    let mut values = values(filter);
    values.extend([how.reset, how.scheduled].map(|flag| Value::Integer(i64::from(flag))));
    values
}

/// The order of the statement.
fn in_order(one: &Place, other: &Place) -> Ordering {
    let number = |place: &Place| (place.lane, place.seq);
    let ids = || one.id.with_text(|one| other.id.with_text(|other| one.cmp(other)));
    number(one)
        .cmp(&number(other))
        .then_with(|| one.leg.cmp(&other.leg))
        .then_with(ids)
}

fn place(row: &Row<'_>) -> rusqlite::Result<Place> {
    let leg: String = row.get(2)?;
    Ok(Place {
        room: Room::Waiting,
        lane: row.get::<_, Lane>(0)?,
        seq: row.get(1)?,
        id: row_id::read(row.get_ref(3)?),
        leg: Some(leg).filter(|leg| !leg.is_empty()).map(Into::into),
        spot: 0,
    })
}
