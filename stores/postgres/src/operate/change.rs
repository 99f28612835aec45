//! Changes by operators: one function each, which also writes the audit row.

use std::time::SystemTime;

use sendoff::store::{Command, Filter};
use sendoff::{Error, ErrorKind, Result};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::only;
use crate::decode::{column, count, number};
use crate::pipeline::Param;
use crate::store::Inner;

/// A filter as the functions take it and the audit has it.
pub(crate) fn as_json(what: &str, filter: &Filter) -> Result<String> {
    serde_json::to_string(filter).map_err(|error| {
        Error::new(ErrorKind::Invalid, what)
            .because("the filter cannot be serialised")
            .with_source(error)
    })
}

/// What a function did; its columns begin with the row of the audit, and how much that was.
pub(crate) struct Done {
    pub(crate) affected: u64,
    pub(crate) row: Row,
}

impl Inner {
    pub(crate) async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let (what, sql) = ("dead letters could not be retried", &self.texts.retry_dead);
        self.act_on_dead(what, sql, filter, until, limit, command).await
    }

    pub(crate) async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let (what, sql) = ("dead letters could not be discarded", &self.texts.discard_dead);
        self.act_on_dead(what, sql, filter, until, limit, command).await
    }

    async fn act_on_dead(
        &self,
        what: &str,
        sql: &str,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let (filter, limit) = (as_json(what, filter)?, number(limit));
        let params: [Param<'_>; 3] = [(&filter, Type::TEXT), (&limit, Type::INT8), (&until, Type::TIMESTAMPTZ)];
        Ok(self.act(what, sql, &params, command).await?.affected)
    }

    pub(crate) async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        let params: [Param<'_>; 2] = [(&key, Type::TEXT), (&sink, Type::TEXT)];
        let (what, sql) = ("the key could not be released", &self.texts.release_key);
        self.act_at_once(what, sql, &params, who).await
    }

    /// Calls a function that is one batch of a command: the first writes its row of the audit, the others add to it. `params` come
    /// behind the name and before the row.
    pub(crate) async fn act(&self, what: &str, sql: &str, params: &[Param<'_>], command: &mut Command) -> Result<Done> {
        let (who, noted) = (command.who(), command.row());
        let mut all: Vec<Param<'_>> = vec![(&who, Type::TEXT)];
        all.extend_from_slice(params);
        all.push((&noted, Type::INT8));
        let done = self.call(what, sql, &all).await?;
        command.is_noted(column(what, &done.row, 0)?);
        Ok(done)
    }

    /// Calls a function that is a whole command. Returns how much it changed.
    pub(crate) async fn act_at_once(&self, what: &str, sql: &str, params: &[Param<'_>], who: &str) -> Result<u64> {
        let mut all: Vec<Param<'_>> = vec![(&who, Type::TEXT)];
        all.extend_from_slice(params);
        Ok(self.call(what, sql, &all).await?.affected)
    }

    async fn call(&self, what: &str, sql: &str, params: &[Param<'_>]) -> Result<Done> {
        let mut rows = self.operate_pool.run(what, sql, params).await?;
        let affected = count(column(what, only(what, &rows)?, 1)?);
        let row = rows.swap_remove(0);
        Ok(Done { affected, row })
    }
}
