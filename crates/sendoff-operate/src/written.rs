//! A filter as written, before its times are resolved by the database's clock.

use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use sendoff::Result;
use sendoff::store::Filter;

use crate::filter::validate;

/// A filter whose times may be ages. Ages count back from the database's clock, which
/// [`Operator::filter`](crate::Operator::filter) reads: the clocks of hosts differ, and the database sets `created_at`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WrittenFilter {
    /// All fields of the filter except the times.
    pub(crate) filter: Filter,
    pub(crate) created_from: Option<Moment>,
    pub(crate) created_until: Option<Moment>,
    pub(crate) died_from: Option<Moment>,
    pub(crate) died_until: Option<Moment>,
}

impl From<Filter> for WrittenFilter {
    fn from(filter: Filter) -> Self {
        let at = |time: Option<SystemTime>| time.map(Moment::At);
        Self {
            created_from: at(filter.created_from),
            created_until: at(filter.created_until),
            died_from: at(filter.died_from),
            died_until: at(filter.died_until),
            filter: Filter {
                created_from: None,
                created_until: None,
                died_from: None,
                died_until: None,
                ..filter
            },
        }
    }
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    At(SystemTime),
    Ago(Duration),
}

impl WrittenFilter {
    /// Whether the filter is empty, and so matches everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the filter selects by when dead letters died.
    pub fn has_time_of_death(&self) -> bool {
        self.died_from.is_some() || self.died_until.is_some()
    }

    /// Whether the filter has ages, which depend on the current time.
    pub fn has_ages(&self) -> bool {
        let is_age = |moment: Option<Moment>| matches!(moment, Some(Moment::Ago(_)));
        [self.created_from, self.created_until, self.died_from, self.died_until]
            .into_iter()
            .any(is_age)
    }

    /// The filter with ages resolved at the time `now`.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when nothing can match it.
    pub fn as_of(&self, now: SystemTime) -> Result<Filter> {
        let time = |moment: Moment| match moment {
            Moment::At(time) => time,
            Moment::Ago(age) => now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
        };
        let filter = Filter {
            created_from: self.created_from.map(time),
            created_until: self.created_until.map(time),
            died_from: self.died_from.map(time),
            died_until: self.died_until.map(time),
            ..self.filter.clone()
        };
        validate(&filter)?;
        Ok(filter)
    }

    /// Checks what does not depend on the time.
    pub(crate) fn check(&self) -> Result<()> {
        use Moment::{Ago, At};
        let is_mixed = |from, until| matches!((from, until), (Some(At(_)), Some(Ago(_))) | (Some(Ago(_)), Some(At(_))));
        if is_mixed(self.created_from, self.created_until) || is_mixed(self.died_from, self.died_until) {
            return validate(&self.filter);
        }
        self.as_of(SystemTime::UNIX_EPOCH + LONG).map(drop)
    }
}

/// Longer than any sensible age.
const LONG: Duration = Duration::from_secs(1000 * 366 * 86_400);

impl Moment {
    /// Reads a date, a time with its offset, or an age; `None` when it is none of them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Only for text that is just a date: jiff would also read a date from a time without an offset.
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
