//! A filter as it was written, before the database was asked for its time.

use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use sendoff::Result;
use sendoff::store::Filter;

use crate::filter::validate;

/// A filter whose times may be ages. They count back from the database's clock, which
/// [`Operator::filter`](crate::Operator::filter) asks for: hosts' clocks differ, and messages were created by that one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WrittenFilter {
    /// All but the times.
    pub(crate) filter: Filter,
    pub(crate) created_from: Option<Moment>,
    pub(crate) created_until: Option<Moment>,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    At(SystemTime),
    Ago(Duration),
}

impl WrittenFilter {
    /// Whether it says nothing, and so fits everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it matters what time it is.
    pub fn has_ages(&self) -> bool {
        let is_age = |moment: Option<Moment>| matches!(moment, Some(Moment::Ago(_)));
        is_age(self.created_from) || is_age(self.created_until)
    }

    /// The filter, when it is `now`.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when nothing can fit it.
    pub fn as_of(&self, now: SystemTime) -> Result<Filter> {
        let time = |moment: Moment| match moment {
            Moment::At(time) => time,
            Moment::Ago(age) => now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
        };
        let filter = Filter {
            created_from: self.created_from.map(time),
            created_until: self.created_until.map(time),
            ..self.filter.clone()
        };
        validate(&filter)?;
        Ok(filter)
    }

    /// Checks what does not depend on the time.
    pub(crate) fn check(&self) -> Result<()> {
        use Moment::{Ago, At};
        match (self.created_from, self.created_until) {
            (Some(At(_)), Some(Ago(_))) | (Some(Ago(_)), Some(At(_))) => validate(&self.filter),
            _ => self.as_of(SystemTime::UNIX_EPOCH + LONG).map(drop),
        }
    }
}

/// Longer than any age that makes sense.
const LONG: Duration = Duration::from_secs(1000 * 366 * 86_400);

impl Moment {
    /// Reads a date, a time with its offset, or an age; `None` when it is none of them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Only what has no more than a date in it: jiff would read one out of a time without an offset, too.
        if text.len() == "2026-01-31".len()
            && let Ok(date) = text.parse::<Date>()
        {
            let midnight = date.to_zoned(TimeZone::UTC).ok()?;
            return Some(Self::At(midnight.timestamp().into()));
        }
        if let Ok(time) = text.parse::<Timestamp>() {
            return Some(Self::At(time.into()));
        }
        let age: Span = text.parse().ok()?;
        let age = age.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        age.try_into().ok().map(Self::Ago)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn moments_are_dates_times_or_ages() {
        let at = |days: u32| Some(Moment::At(SystemTime::UNIX_EPOCH + days * DAY));
        assert_eq!(Moment::parse("1970-01-02"), at(1));
        assert_eq!(Moment::parse("1970-01-03T01:00:00+01:00"), at(2));
        assert_eq!(Moment::parse("7d"), Some(Moment::Ago(7 * DAY)));
        assert_eq!(Moment::parse("1h30m"), Some(Moment::Ago(Duration::from_secs(5400))));
        assert_eq!(Moment::parse("250ms"), Some(Moment::Ago(Duration::from_millis(250))));
        for text in ["", "yesterday", "-1d", "2026-01-31T12:00", "3mo", "7"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn ages_count_back_from_the_given_time() {
        let written = WrittenFilter {
            created_from: Some(Moment::Ago(2 * DAY)),
            created_until: Some(Moment::Ago(DAY)),
            ..WrittenFilter::default()
        };
        assert!(written.has_ages() && !written.is_empty());
        let now = SystemTime::UNIX_EPOCH + 10 * DAY;
        let filter = written.as_of(now).unwrap();
        assert_eq!(filter.created_from, Some(now - 2 * DAY));
        assert_eq!(filter.created_until, Some(now - DAY));
    }

    #[test]
    fn what_nothing_can_fit_is_refused_as_soon_as_it_is_known() {
        let of = |from, until| WrittenFilter {
            created_from: Some(from),
            created_until: Some(until),
            ..WrittenFilter::default()
        };
        let at = |days: u32| Moment::At(SystemTime::UNIX_EPOCH + days * DAY);
        assert!(of(at(2), at(1)).check().is_err());
        assert!(of(Moment::Ago(DAY), Moment::Ago(2 * DAY)).check().is_err());
        let depends = of(at(9), Moment::Ago(2 * DAY));
        depends.check().unwrap();
        assert!(depends.as_of(SystemTime::UNIX_EPOCH + 10 * DAY).is_err());
        assert!(depends.as_of(SystemTime::UNIX_EPOCH + 12 * DAY).is_ok());
    }
}
