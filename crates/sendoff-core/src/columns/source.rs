//! A row of a database, from which messages, jobs and views are read.

use std::time::SystemTime;

use uuid::Uuid;

use crate::Headers;

/// A row of a database driver. A store implements this trait; [`Outgoing`](crate::Outgoing), [`Job`](crate::store::Job)
/// and [`Stored`](crate::store::Stored) are read from it. An error says what is wrong with the value, such as `is not
/// UTF-8`.
pub trait ColumnSource {
    /// Reads the text at position `at`; `None` for NULL.
    ///
    /// # Errors
    /// When the value is not text, or not UTF-8.
    fn text(&self, at: usize) -> Result<Option<&str>, &'static str>;

    /// Reads the bytes at position `at`; `None` for NULL.
    ///
    /// # Errors
    /// When the value is not bytes.
    fn bytes(&self, at: usize) -> Result<Option<&[u8]>, &'static str>;

    /// Reads the integer at position `at`; `None` for NULL.
    ///
    /// # Errors
    /// When the value is not an integer.
    fn integer(&self, at: usize) -> Result<Option<i64>, &'static str>;

    /// Reads the point in time at position `at`; `None` for NULL.
    ///
    /// # Errors
    /// When the value is not a time.
    fn time(&self, at: usize) -> Result<Option<SystemTime>, &'static str>;

    /// Reads the UUID at position `at`, in any of the usual formats, to show it to an operator. `None` when the value
    /// is not a UUID.
    fn uuid(&self, at: usize) -> Option<Uuid> {
        Uuid::parse_str(self.text(at).ok()??).ok()
    }

    /// Reads the text at position `at`, to show it to an operator. Bytes that are not UTF-8 are replaced.
    fn lossy(&self, at: usize) -> Option<String> {
        let bytes = self.bytes(at).ok()??;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Why a row is not a valid message, as text.
pub(crate) type Unreadable = String;

pub(crate) fn unreadable(name: &str, why: &str) -> Unreadable {
    format!("the column {name} {why}")
}

pub(crate) fn text(row: &impl ColumnSource, at: usize, name: &str) -> Result<Option<String>, Unreadable> {
    let text = row.text(at).map_err(|why| unreadable(name, why))?;
    Ok(text.map(str::to_owned))
}

/// Reads an integer of a smaller type that is at least `least`.
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

/// Reads headers from a JSON object of strings; NULL means no headers.
pub(crate) fn headers(row: &impl ColumnSource, at: usize) -> Result<Headers, Unreadable> {
    match row.text(at).map_err(|why| unreadable("headers", why))? {
        None => Ok(Headers::new()),
        Some(json) => Headers::from_json(json).map_err(|error| error.what().to_owned()),
    }
}
