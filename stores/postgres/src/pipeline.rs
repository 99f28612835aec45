//! Statements that are sent together.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::Error;
use tokio_postgres::Row;

/// A statement on its way.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'a>>;

/// Sends all statements in order, then waits for all answers. The driver sends a statement when its future is first
/// polled, so polling in order is sending in order. A statement that fails does not keep the ones behind it from being
/// sent: inside a transaction the server refuses those by itself. The first error is returned.
pub(crate) async fn in_order(mut answers: Vec<Answer<'_>>) -> Result<Vec<Vec<Row>>, Error> {
    let mut found: Vec<Option<Result<Vec<Row>, Error>>> = answers.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (answer, found) in answers.iter_mut().zip(&mut found) {
            if found.is_none() {
                match answer.as_mut().poll(context) {
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
