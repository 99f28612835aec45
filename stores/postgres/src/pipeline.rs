//! Sends several statements together, in one round trip.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use futures::TryStreamExt as _;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// A parameter with its type. Statements are never prepared, so the type is sent with each of them.
pub type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A SQL text with its parameters.
pub struct Statement<'a> {
    /// The SQL text, with placeholders `$1` and so on.
    pub sql: &'a str,
    /// The values of the placeholders.
    pub params: Vec<Param<'a>>,
}

/// What becomes of a row as soon as it arrives; it is told which statement it belongs to. A row that is kept takes several
/// times the memory of what is read out of it. `None`: there is no room for what is still to come.
pub(crate) type Take<'a, T> = &'a (dyn Fn(usize, Row) -> Option<T> + Send + Sync);

/// Why there is no answer.
pub(crate) enum Failed {
    Driver(Error),
    /// There is no room for it. The rest is still on its way, so the connection is of no use any more.
    NoRoom,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// One of them on its way.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<Vec<T>, Failed>> + Send + 'a>>;

/// Sends `first`, all statements and `last` in order, then waits for all answers: one round trip. Returns the rows of
/// the statements.
///
/// The driver sends a statement when its future is first polled, so polling in order is sending in order. A statement
/// that fails does not keep the ones behind it from being sent: inside a transaction the server refuses those by itself,
/// and `COMMIT` rolls back. The first error is returned.
pub(crate) async fn in_order<T: Send>(
    client: &Client,
    first: Option<&str>,
    statements: &[Statement<'_>],
    last: Option<&str>,
    take: Take<'_, T>,
) -> Result<Vec<Vec<T>>, Failed> {
    let mut answers: Vec<Answer<'_, T>> = Vec::with_capacity(statements.len() + 2);
    if let Some(sql) = first {
        answers.push(Box::pin(command(client, sql)));
    }
    for (at, statement) in statements.iter().enumerate() {
        answers.push(Box::pin(query(client, statement, at, take)));
    }
    if let Some(sql) = last {
        answers.push(Box::pin(command(client, sql)));
    }
    let found = all(answers).await?;
    Ok(found
        .into_iter()
        .skip(usize::from(first.is_some()))
        .take(statements.len())
        .collect())
}

async fn command<T>(client: &Client, sql: &str) -> Result<Vec<T>, Failed> {
    client.batch_execute(sql).await?;
    Ok(Vec::new())
}

async fn query<T>(client: &Client, statement: &Statement<'_>, at: usize, take: Take<'_, T>) -> Result<Vec<T>, Failed> {
    let params = statement.params.iter().map(|(value, kind)| (*value, kind.clone()));
    let mut rows = pin!(client.query_typed_raw(statement.sql, params).await?);
    let mut found = Vec::new();
    while let Some(row) = rows.try_next().await? {
        found.push(take(at, row).ok_or(Failed::NoRoom)?);
    }
    Ok(found)
}

async fn all<T>(mut answers: Vec<Answer<'_, T>>) -> Result<Vec<Vec<T>>, Failed> {
    let mut found: Vec<Option<Result<Vec<T>, Failed>>> = answers.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (answer, found) in answers.iter_mut().zip(&mut found) {
            if found.is_none() {
                match answer.as_mut().poll(context) {
                    // The answers behind it will not come.
                    Poll::Ready(Err(Failed::NoRoom)) => {
                        *found = Some(Err(Failed::NoRoom));
                        return Poll::Ready(());
                    }
                    Poll::Ready(result) => *found = Some(result),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    found.into_iter().flatten().collect()
}
