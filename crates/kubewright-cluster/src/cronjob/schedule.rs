//! The times of cron schedules.
//!
//! When clocks go forward, times in the skipped hour do not occur. When they go back, times in the repeated
//! hour occur once.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, ToSpan as _};
use kubewright_apis::cron::{self, Fields, Times};

/// A schedule without a match in this many years never runs: 30 February.
const YEARS: i64 = 5;

/// A schedule in a time zone.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    times: Times,
    zone: TimeZone,
}

impl Schedule {
    /// Parses a schedule. A zone in the schedule takes precedence.
    pub(super) fn parse(text: &str, zone: TimeZone) -> Result<Self, String> {
        let schedule = cron::parse(text)?;
        let zone = match schedule.zone.as_deref() {
            None => zone,
            Some("" | "Local") => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|error| error.to_string())?,
        };
        Ok(Self { times: schedule.times, zone })
    }

    /// The first scheduled time after `moment`.
    pub(super) fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        match &self.times {
            Times::Every(seconds) => {
                let whole = Timestamp::from_second(moment.as_second()).ok()?;
                whole.checked_add(SignedDuration::from_secs(i64::try_from(*seconds).ok()?)).ok()
            }
            Times::At(fields) => self.after_by(fields, moment),
        }
    }

    /// The last scheduled time after `earliest` and not after `now`.
    pub(super) fn latest(&self, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if let Times::Every(seconds) = self.times {
            let (passed, every) = (now.duration_since(earliest).as_secs(), i64::try_from(seconds).ok()?);
            let whole = Timestamp::from_second(earliest.as_second() + passed / every * every).ok()?;
            return Some(whole).filter(|_| passed >= every);
        }
        // Search backwards in growing windows: a schedule of every minute has half a million times in a year.
        for hours in [1, 24, 24 * 32, 24 * 366 * YEARS] {
            let from =
                now.checked_sub(SignedDuration::from_hours(hours)).unwrap_or(Timestamp::MIN).max(earliest);
            let times = std::iter::successors(self.after(from), |time| self.after(*time));
            if let Some(last) = times.take_while(|time| *time <= now).last() {
                return Some(last);
            }
            if from == earliest {
                break;
            }
        }
        None
    }

    fn after_by(&self, fields: &Fields, moment: Timestamp) -> Option<Timestamp> {
        let start = moment.to_zoned(self.zone.clone()).datetime();
        let mut time = floor(start, Unit::Minute)?.checked_add(1.minute()).ok()?;
        let end = start.checked_add(Span::new().years(YEARS)).ok()?;
        while time < end {
            if !fields.months.contains(time.month()) {
                time = floor(time.first_of_month(), Unit::Day)?.checked_add(1.month()).ok()?;
            } else if !fields.is_day(time.day(), time.weekday().to_sunday_zero_offset()) {
                time = floor(time, Unit::Day)?.checked_add(1.day()).ok()?;
            } else if !fields.hours.contains(time.hour()) {
                time = floor(time, Unit::Hour)?.checked_add(1.hour()).ok()?;
            } else if !fields.minutes.contains(time.minute()) {
                time = time.checked_add(1.minute()).ok()?;
            } else {
                let zoned = self.zone.to_ambiguous_zoned(time).compatible().ok()?;
                if zoned.datetime() == time && zoned.timestamp() > moment {
                    return Some(zoned.timestamp());
                }
                time = time.checked_add(1.minute()).ok()?;
            }
        }
        None
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Day,
    Hour,
    Minute,
}

fn floor(time: DateTime, unit: Unit) -> Option<DateTime> {
    let time = time.with().second(0).subsec_nanosecond(0);
    let time = match unit {
        Unit::Minute => time,
        Unit::Hour => time.minute(0),
        Unit::Day => time.minute(0).hour(0),
    };
    time.build().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(schedule: &str, zone: TimeZone, moment: &str) -> Option<String> {
        let schedule = Schedule::parse(schedule, zone).expect("a schedule");
        schedule.after(moment.parse().unwrap()).map(|time| time.to_string())
    }

    #[test]
    fn every_field_is_matched() {
        // A Thursday.
        let now = "2026-01-01T00:00:30Z";
        for (schedule, next) in [
            ("* * * * *", "2026-01-01T00:01:00Z"),
            ("*/15 * * * *", "2026-01-01T00:15:00Z"),
            ("5,10 3-4 * * *", "2026-01-01T03:05:00Z"),
            ("50/5 * * * *", "2026-01-01T00:50:00Z"),
            ("0 0 * * MON-FRI", "2026-01-02T00:00:00Z"),
            ("0 0 * * 0", "2026-01-04T00:00:00Z"),
            ("0 12 29 feb ?", "2028-02-29T12:00:00Z"),
            ("0 0 13 * 5", "2026-01-02T00:00:00Z"),
            ("@monthly", "2026-02-01T00:00:00Z"),
            ("@hourly", "2026-01-01T01:00:00Z"),
            ("@every 90m", "2026-01-01T01:30:30Z"),
        ] {
            assert_eq!(after(schedule, TimeZone::UTC, now).as_deref(), Some(next), "{schedule}");
        }
        assert_eq!(after("0 0 30 2 *", TimeZone::UTC, now), None);
        assert_eq!(after(",, * * * *", TimeZone::UTC, now), None);
    }

    #[test]
    fn times_follow_the_zone_and_skip_the_missing_hour() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let next = |moment| after("30 2 * * *", berlin.clone(), moment);
        assert_eq!(next("2026-01-01T00:00:00Z").as_deref(), Some("2026-01-01T01:30:00Z"));
        assert_eq!(next("2026-07-01T00:00:00Z").as_deref(), Some("2026-07-01T00:30:00Z"));
        // On 29 March 2026 clocks go from 2 to 3.
        assert_eq!(next("2026-03-28T12:00:00Z").as_deref(), Some("2026-03-30T00:30:00Z"));
    }

    proptest! {
        #[test]
        fn the_latest_time_is_the_last_before_now(
            minute in 0_i8..60,
            step in 1_i8..30,
            start in 1_700_000_000_i64..1_800_000_000,
            passed in 0_i64..200_000,
        ) {
            let (earliest, now) =
                (Timestamp::from_second(start).unwrap(), Timestamp::from_second(start + passed).unwrap());
            for text in [format!("{minute} */{step} * * *"), format!("*/{step} * * * *")] {
                let schedule = Schedule::parse(&text, TimeZone::UTC).unwrap();
                let times = std::iter::successors(schedule.after(earliest), |time| schedule.after(*time));
                let last = times.take_while(|time| *time <= now).last();
                prop_assert_eq!(schedule.latest(earliest, now), last);
            }
        }
    }
}
