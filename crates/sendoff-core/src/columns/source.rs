//! A row of a database, as messages, jobs and views are read from it.

use std::time::SystemTime;

use uuid::Uuid;

use crate::Headers;

/// A row of a driver. A store implements it; [`Outgoing`](crate::Outgoing), [`Job`](crate::store::Job) and
/// [`Stored`](crate::store::Stored) are read from it. An error says what a value is not, as in `is not UTF-8`.
pub trait ColumnSource {
    /// A text, or NULL.
    ///
    /// # Errors
    /// When the value is not text, or not UTF-8.
    fn text(&self, at: usize) -> Result<Option<&str>, &'static str>;

    /// Bytes, or NULL.
    ///
    /// # Errors
    /// When the value is not bytes.
    fn bytes(&self, at: usize) -> Result<Option<&[u8]>, &'static str>;

    /// An integer, or NULL.
    ///
    /// # Errors
    /// When the value is not an integer.
    fn integer(&self, at: usize) -> Result<Option<i64>, &'static str>;

    /// A point in time, or NULL.
    ///
    /// # Errors
    /// When the value is not a time.
    fn time(&self, at: usize) -> Result<Option<SystemTime>, &'static str>;

    /// A UUID, for an operator: any of the usual formats. `None` when it is not one.
    fn uuid(&self, at: usize) -> Option<Uuid> {
        Uuid::parse_str(self.text(at).ok()??).ok()
    }

    /// A text for an operator, who has to see what cannot be read: what is not UTF-8 is replaced.
    fn lossy(&self, at: usize) -> Option<String> {
        let bytes = self.bytes(at).ok()??;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Why a row is not a message, in words.
pub(crate) type Unreadable = String;

pub(crate) fn unreadable(name: &str, why: &str) -> Unreadable {
    format!("the column {name} {why}")
}

pub(crate) fn text(row: &impl ColumnSource, at: usize, name: &str) -> Result<Option<String>, Unreadable> {
    let text = row.text(at).map_err(|why| unreadable(name, why))?;
    Ok(text.map(str::to_owned))
}

/// An integer of a smaller type, from `least` on.
pub(crate) fn integer<T: TryFrom<i64>>(
    row: &impl ColumnSource,
    at: usize,
    name: &str,
    least: i64,
    most: i64,
) -> Result<Option<T>, Unreadable> {
    let Some(number) = row.integer(at).map_err(|why| unreadable(name, why))? else {
        return Ok(None);
    };
    let fit = (least..=most)
        .contains(&number)
        .then(|| T::try_from(number).ok())
        .flatten();
    fit.map(Some)
        .ok_or_else(|| unreadable(name, &format!("is out of range: {least} to {most}")))
}

/// A JSON object of strings; NULL is an empty one.
pub(crate) fn headers(row: &impl ColumnSource, at: usize) -> Result<Headers, Unreadable> {
    match row.text(at).map_err(|why| unreadable("headers", why))? {
        None => Ok(Headers::new()),
        Some(json) => Headers::from_json(json).map_err(|error| error.what().to_owned()),
    }
}
