//! Cron schedules: when Jobs start.
//!
//! Pure: the current time is a parameter. Times are in UTC.

use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use kubewright::jiff::Timestamp;
use kubewright::jiff::tz::TimeZone;

/// The number of missed starts above which the schedule is not followed.
pub const MAX_MISSED: usize = 100;

/// A schedule with the fields minute, hour, day of month, month and day of week.
#[derive(Debug, Clone)]
pub struct Schedule(Cron);

/// A schedule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSchedule(String);

impl fmt::Display for InvalidSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSchedule {}

/// The starts of a schedule around a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starts {
    /// The latest start that is due.
    pub due: Option<Timestamp>,
    /// The first start in the future; `None` if there is none.
    pub next: Option<Timestamp>,
}

/// More than [`MAX_MISSED`] starts were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyMissed;

impl Schedule {
    /// Parses a schedule such as `*/5 8-18 * * MON-FRI`.
    ///
    /// Nicknames such as `@hourly`, seconds and years are not supported: version v2 has a field for each of the five
    /// parts, and no field for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidSchedule> {
        let fields = text.split_whitespace().count();
        if fields != 5 {
            let expected = "must have five fields: minute, hour, day of month, month and day of week";
            return Err(InvalidSchedule(format!("{expected}; found {fields}")));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| InvalidSchedule(error.to_string()))?;
        Ok(Self(cron))
    }

    /// The first start after a point in time. `None` for a date that does not exist, such as 30 February.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let time = time.to_zoned(TimeZone::UTC);
        self.0.find_next_occurrence(&time, false).ok().map(|next| next.timestamp())
    }

    /// The starts after `earliest`, seen at `now`. Starts that were missed are not caught up one by one: only the latest is
    /// due.
    pub fn starts(&self, earliest: Timestamp, now: Timestamp) -> Result<Starts, TooManyMissed> {
        let mut due = None;
        let mut missed = 0;
        // `earliest` is in the future if the clock was set back. Then nothing is due.
        let mut start = self.after(earliest).filter(|start| *start <= now);
        while let Some(time) = start {
            missed += 1;
            // The search for the latest start of a long period is expensive, and a wrong clock is a likely cause.
            if missed > MAX_MISSED {
                return Err(TooManyMissed);
            }
            due = start;
            start = self.after(time).filter(|start| *start <= now);
        }
        Ok(Starts { due, next: self.after(now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        time.parse().expect("a time")
    }

    fn starts(
        schedule: &str,
        earliest: &str,
        now: &str,
    ) -> Result<(Option<String>, Option<String>), TooManyMissed> {
        let schedule = Schedule::parse(schedule).expect("a schedule");
        let Starts { due, next } = schedule.starts(at(earliest), at(now))?;
        Ok((due.map(|time| time.to_string()), next.map(|time| time.to_string())))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the expected value is an Option")]
    fn some(time: &str) -> Option<String> {
        Some(time.to_owned())
    }

    #[test]
    fn nothing_is_due_before_the_first_start() {
        let starts = starts("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:59:59Z");
        assert_eq!(starts, Ok((None, some("2026-01-01T01:00:00Z"))));
    }

    #[test]
    fn a_start_is_due_at_its_time() {
        let starts = starts("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        assert_eq!(starts, Ok((some("2026-01-01T01:00:00Z"), some("2026-01-01T02:00:00Z"))));
    }

    #[test]
    fn only_the_latest_missed_start_is_due() {
        let starts = starts("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T05:30:00Z");
        assert_eq!(starts, Ok((some("2026-01-01T05:00:00Z"), some("2026-01-01T06:00:00Z"))));
    }

    #[test]
    fn a_hundred_missed_starts_are_accepted_and_one_more_is_not() {
        assert!(starts("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:40:59Z").is_ok());
        let more = starts("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:41:00Z");
        assert_eq!(more, Err(TooManyMissed));
    }

    #[test]
    fn nothing_is_due_while_the_clock_is_behind_the_last_start() {
        let starts = starts("0 * * * *", "2026-01-01T12:00:00Z", "2026-01-01T11:10:00Z");
        assert_eq!(starts, Ok((None, some("2026-01-01T12:00:00Z"))));
    }

    #[test]
    fn a_date_that_does_not_exist_has_no_start() {
        let starts = starts("0 0 30 2 *", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
        assert_eq!(starts, Ok((None, None)));
    }

    #[test]
    fn schedules_without_five_fields_are_invalid() {
        for text in ["", "* * * *", "@hourly", "0 * * * * *", "* * * * * Asia/Tokyo"] {
            let error = Schedule::parse(text).expect_err(text);
            assert!(error.to_string().starts_with("must have five fields"), "{error}");
        }
        for text in ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "a * * * *"] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
    }
}
