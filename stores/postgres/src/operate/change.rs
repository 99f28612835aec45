//! What operators change: one transaction each, with its row in the audit.

use std::collections::BTreeSet;
use std::time::SystemTime;

use sendoff::store::{Action, Command, Filter};
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
    pub(crate) action: Action,
    /// To what, as JSON.
    pub(crate) filter: String,
    pub(crate) who: &'a str,
}

impl<'a> Act<'a> {
    pub(crate) fn new(what: &'a str, action: Action, filter: &Filter, who: &'a str) -> Result<Self> {
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
        command: &mut Command,
    ) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("dead letters could not be retried", Action::RetryDead, filter, &who)?;
        let (filter, limit) = (Columns::new(filter), number(limit));
        let mut params = filter.params();
        params.push((&limit, Type::INT8));
        params.push((&until, Type::TIMESTAMPTZ));
        let (lent, moved) = self.begin_act(&act, &self.texts.retry_dead, params).await?;
        let moved = moved.len() as u64;
        self.end_batch(lent, &act, command, moved).await?;
        Ok(moved)
    }

    pub(crate) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("dead letters could not be discarded", Action::DiscardDead, filter, &who)?;
        let (filter, limit) = (Columns::new(filter), number(limit));
        let mut params = filter.params();
        params.push((&limit, Type::INT8));
        params.push((&until, Type::TIMESTAMPTZ));
        let (lent, gone) = self.begin_act(&act, &self.texts.discard_dead, params).await?;
        self.let_go(&lent, act.what, &gone).await?;
        let gone = gone.len() as u64;
        self.end_batch(lent, &act, command, gone).await?;
        Ok(gone)
    }

    pub(crate) async fn release_key(&self, key: &str, leg: Option<&str>, who: &str) -> Result<u64> {
        let filter = Filter {
            key: Some(key.to_owned()),
            leg: leg.map(str::to_owned),
            ..Filter::default()
        };
        let act = Act::new("the key could not be released", Action::ReleaseKey, &filter, who)?;
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
        self.end_batch(lent, act, &mut Command::by(act.who), affected).await?;
        Ok(affected)
    }

    /// The same for one batch of a command: the first writes its row of the audit, the others add to it.
    pub(crate) async fn end_batch(
        &self,
        lent: Lent,
        act: &Act<'_>,
        command: &mut Command,
        affected: u64,
    ) -> Result<()> {
        let affected = i64::try_from(affected).unwrap_or(i64::MAX);
        let (row, action) = (command.row(), act.action.as_str());
        let audit = if row.is_some() {
            Statement {
                sql: &self.texts.audit_add,
                params: vec![(&row, Type::INT8), (&affected, Type::INT8)],
            }
        } else {
            Statement {
                sql: &self.texts.audit,
                params: vec![
                    (&act.who, Type::TEXT),
                    (&action, Type::TEXT),
                    (&act.filter, Type::TEXT),
                    (&affected, Type::INT8),
                ],
            }
        };
        let written = lent.commit(act.what, &[audit]).await?;
        lent.give_back();
        if let Some(row) = written.first().and_then(|rows| rows.first()) {
            command.is_noted(column(act.what, row, 0)?);
        }
        Ok(())
    }
}
