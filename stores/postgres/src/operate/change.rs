//! What operators change: one transaction each, with its row in the audit.

use std::collections::BTreeSet;
use std::time::SystemTime;

use sendoff::store::Filter;
use sendoff::{Error, ErrorKind, Result};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::filter::Columns;
use crate::decode::{column, number};
use crate::pipeline::{Param, Statement};
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
        limit: usize,
        who: &str,
    ) -> Result<u64> {
        let act = Act::new("dead letters could not be retried", "retry", filter, who)?;
        let (filter, limit) = (Columns::new(filter), number(limit));
        let mut params = filter.params();
        params.push((&limit, Type::INT8));
        params.push((&until, Type::TIMESTAMPTZ));
        let (lent, moved) = self.begin_act(&act, &self.texts.retry_dead, params).await?;
        self.end_act(lent, &act, moved.len() as u64).await
    }

    pub(crate) async fn hasten(&self, filter: &Filter, reset: bool, limit: usize, who: &str) -> Result<u64> {
        let action = if reset { "reset" } else { "hasten" };
        let act = Act::new("messages could not be made due", action, filter, who)?;
        let (filter, limit) = (Columns::new(filter), number(limit));
        let mut params = filter.params();
        params.push((&limit, Type::INT8));
        params.push((&reset, Type::BOOL));
        let (lent, due) = self.begin_act(&act, &self.texts.hasten, params).await?;
        self.end_act(lent, &act, due.len() as u64).await
    }

    pub(crate) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        who: &str,
    ) -> Result<u64> {
        let act = Act::new("dead letters could not be discarded", "discard", filter, who)?;
        let (filter, limit) = (Columns::new(filter), number(limit));
        let mut params = filter.params();
        params.push((&limit, Type::INT8));
        params.push((&until, Type::TIMESTAMPTZ));
        let (lent, gone) = self.begin_act(&act, &self.texts.discard_dead, params).await?;
        self.let_go(&lent, act.what, &gone).await?;
        self.end_act(lent, &act, gone.len() as u64).await
    }

    pub(crate) async fn release_key(&self, key: &str, leg: Option<&str>, who: &str) -> Result<u64> {
        let filter = Filter {
            key: Some(key.to_owned()),
            leg: leg.map(str::to_owned),
            ..Filter::default()
        };
        let act = Act::new("the key could not be released", "release", &filter, who)?;
        let params: Vec<Param<'_>> = vec![(&key, Type::TEXT), (&leg, Type::TEXT)];
        let (lent, released) = self.begin_act(&act, &self.texts.release_key, params).await?;
        self.let_go(&lent, act.what, &released).await?;
        self.end_act(lent, &act, released.len() as u64).await
    }

    /// The followers of dead letters that do not block any more. What a relay is holding back at this very moment is
    /// not seen here; it finds such rows by itself.
    async fn let_go(&self, lent: &Lent, what: &str, rows: &[Row]) -> Result<()> {
        let mut keys: BTreeSet<(i16, String, String)> = BTreeSet::new();
        for row in rows {
            if let Some(key) = column::<Option<String>>(what, row, 1)? {
                keys.insert((column(what, row, 0)?, key, column(what, row, 2)?));
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        let lanes: Vec<i16> = keys.iter().map(|(lane, ..)| *lane).collect();
        let names: Vec<&str> = keys.iter().map(|(_, key, _)| key.as_str()).collect();
        let legs: Vec<&str> = keys.iter().map(|(.., leg)| leg.as_str()).collect();
        let params: [Param<'_>; 3] = [
            (&lanes, Type::INT2_ARRAY),
            (&names, Type::TEXT_ARRAY),
            (&legs, Type::TEXT_ARRAY),
        ];
        lent.go_on(what, &self.texts.follow_on, &params).await?;
        Ok(())
    }

    /// Begins a transaction with this statement. Dropping the connection rolls back.
    pub(crate) async fn begin_act(&self, act: &Act<'_>, sql: &str, params: Vec<Param<'_>>) -> Result<(Lent, Vec<Row>)> {
        let lent = self.operate_pool.lend().await?;
        let mut found = lent.begin(act.what, &[Statement { sql, params }]).await?;
        Ok((lent, found.pop().unwrap_or_default()))
    }

    /// Writes the audit and commits.
    pub(crate) async fn end_act(&self, lent: Lent, act: &Act<'_>, affected: u64) -> Result<u64> {
        let count = i64::try_from(affected).unwrap_or(i64::MAX);
        let audit = Statement {
            sql: &self.texts.audit,
            params: vec![
                (&act.who, Type::TEXT),
                (&act.action, Type::TEXT),
                (&act.filter, Type::TEXT),
                (&count, Type::INT8),
            ],
        };
        lent.commit(act.what, &[audit]).await?;
        lent.give_back();
        Ok(affected)
    }
}
