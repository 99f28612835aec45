//! What operators change: one transaction each, with its row in the audit.

use std::collections::BTreeSet;
use std::time::SystemTime;

use mysql_async::{Row, Value, params};
use sendoff::store::Filter;
use sendoff::{Error, ErrorKind, Result};
use serde_json::{Value as Json, json};

use super::filter::values;
use crate::conflict::transact;
use crate::decode::{from_time, limit, number, text, text_or_null};
use crate::pool::Lent;
use crate::store::Inner;

/// What an operator does, for the audit.
pub(crate) struct Act<'a> {
    /// What could not be done, should it fail.
    pub(crate) what: &'a str,
    /// The word for it.
    pub(crate) action: &'a str,
    /// To what, as JSON.
    pub(crate) filter: String,
    pub(crate) who: &'a str,
}

impl<'a> Act<'a> {
    fn new(what: &'a str, action: &'a str, filter: &Filter, who: &'a str) -> Result<Self> {
        let filter = serde_json::to_string(filter).map_err(|error| {
            Error::new(ErrorKind::Invalid, what)
                .because("the filter does not serialise")
                .with_source(error)
        })?;
        Ok(Self {
            what,
            action,
            filter,
            who,
        })
    }
}

impl Inner {
    pub(crate) async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        most: usize,
        who: &str,
    ) -> Result<u64> {
        let act = Act::new("dead letters could not be retried", "retry", filter, who)?;
        let mut values = values(filter);
        values.push(("limit", limit(most).into()));
        values.push(("until", until.map(from_time).into()));
        transact!(self.operate_pool, act.what, lent => self.bring_back(&mut lent, &act, &values).await)
    }

    async fn bring_back(&self, lent: &mut Lent, act: &Act<'_>, values: &[(&'static str, Value)]) -> Result<u64> {
        let sql = &self.texts.retry_dead;
        let letters = lent.rows(act.what, sql.at(0), values.to_vec()).await?;
        let mut back = 0;
        if let Some(rows) = places(act.what, &letters)? {
            lent.change(act.what, sql.at(1), params! { "rows" => &rows }).await?;
            back = lent.change(act.what, sql.at(2), params! { "rows" => rows }).await?;
        }
        self.write_audit(lent, act, back).await
    }

    pub(crate) async fn hasten(&self, filter: &Filter, reset: bool, most: usize, who: &str) -> Result<u64> {
        let action = if reset { "reset" } else { "hasten" };
        let act = Act::new("messages could not be made due", action, filter, who)?;
        let mut values = values(filter);
        values.push(("limit", limit(most).into()));
        values.push(("reset", reset.into()));
        transact!(self.operate_pool, act.what, lent => self.make_due(&mut lent, &act, &values, reset).await)
    }

    async fn make_due(
        &self,
        lent: &mut Lent,
        act: &Act<'_>,
        values: &[(&'static str, Value)],
        reset: bool,
    ) -> Result<u64> {
        let sql = &self.texts.hasten;
        let waiting = lent.rows(act.what, sql.at(0), values.to_vec()).await?;
        if let Some(rows) = places(act.what, &waiting)? {
            let values = params! { "rows" => rows, "reset" => reset };
            lent.change(act.what, sql.at(1), values).await?;
        }
        self.write_audit(lent, act, waiting.len() as u64).await
    }

    pub(crate) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        most: usize,
        who: &str,
    ) -> Result<u64> {
        let act = Act::new("dead letters could not be discarded", "discard", filter, who)?;
        let mut values = values(filter);
        values.push(("limit", limit(most).into()));
        values.push(("until", until.map(from_time).into()));
        let sql = &self.texts.discard_dead;
        transact!(self.operate_pool, act.what, lent => {
            self.unblock(&mut lent, &act, (sql.at(0), sql.at(1)), &values).await
        })
    }

    pub(crate) async fn release_key(&self, key: &str, leg: Option<&str>, who: &str) -> Result<u64> {
        let filter = Filter {
            key: Some(key.to_owned()),
            leg: leg.map(str::to_owned),
            ..Filter::default()
        };
        let act = Act::new("the key could not be released", "release", &filter, who)?;
        let values = [("key", Value::from(key)), ("leg", Value::from(leg))];
        let sql = &self.texts.release_key;
        transact!(self.operate_pool, act.what, lent => {
            self.unblock(&mut lent, &act, (sql.at(0), sql.at(1)), &values).await
        })
    }

    /// Finds dead letters, does something with them, and lets those go that waited behind them. What a relay is holding
    /// back at this very moment is not seen here; it finds such rows by itself.
    async fn unblock(
        &self,
        lent: &mut Lent,
        act: &Act<'_>,
        (find, change): (&str, &str),
        values: &[(&'static str, Value)],
    ) -> Result<u64> {
        let letters = lent.rows(act.what, find, values.to_vec()).await?;
        if let Some(rows) = places(act.what, &letters)? {
            lent.change(act.what, change, params! { "rows" => rows }).await?;
        }
        let mut keys: BTreeSet<(i64, String, String)> = BTreeSet::new();
        for letter in &letters {
            if let Some(key) = text_or_null(act.what, letter, 3)? {
                keys.insert((number(act.what, letter, 0)?, key, text(act.what, letter, 2)?));
            }
        }
        let keys: Vec<Json> = keys.iter().map(|(lane, key, leg)| json!([lane, key, leg])).collect();
        self.follow_on(lent, act.what, &keys).await?;
        self.write_audit(lent, act, letters.len() as u64).await
    }

    /// The last thing in the transaction.
    pub(crate) async fn write_audit(&self, lent: &mut Lent, act: &Act<'_>, affected: u64) -> Result<u64> {
        let values = params! {
            "who" => act.who,
            "action" => act.action,
            "filter" => &act.filter,
            "affected" => affected,
        };
        lent.change(act.what, self.texts.audit.first(), values).await?;
        Ok(affected)
    }
}

/// Rows that begin with lane, seq and leg, as the next statement takes them; `None` when there are none.
pub(super) fn places(what: &str, rows: &[Row]) -> Result<Option<String>> {
    let places = rows.iter().map(|row| {
        Ok(json!([
            number(what, row, 0)?,
            number(what, row, 1)?,
            text(what, row, 2)?
        ]))
    });
    let places: Vec<Json> = places.collect::<Result<_>>()?;
    Ok((!places.is_empty()).then(|| Json::from(places).to_string()))
}
