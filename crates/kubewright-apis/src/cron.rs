//! Cron schedules: the grammar and messages of upstream's cron library.
//!
//! [`Schedule`] is the parsed form. Validation needs the message only; the CronJob controller computes run times from it.

use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_apimachinery::field::quote;

use crate::time_zone;

/// A parsed schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The zone of a `TZ=` prefix.
    pub zone: Option<String>,
    /// When it runs.
    pub times: Times,
}

/// When a schedule runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// After each interval, in whole seconds.
    Every(u64),
    /// At the minutes that match all fields.
    At(Box<Fields>),
}

/// The fields of a schedule. A field without a value, such as `,`, never matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields {
    /// 0 to 59.
    pub minutes: Field,
    /// 0 to 23.
    pub hours: Field,
    /// 1 to 31.
    pub days: Field,
    /// 1 to 12.
    pub months: Field,
    /// 0 to 6, from Sunday.
    pub weekdays: Field,
}

impl Fields {
    /// Whether a day matches. Both fields must match if one of them is `*`; otherwise one match suffices.
    pub fn is_day(&self, day: i8, weekday: i8) -> bool {
        let (day, day_of_week) = (self.days.contains(day), self.weekdays.contains(weekday));
        if self.days.star || self.weekdays.star { day && day_of_week } else { day || day_of_week }
    }
}

/// The values of a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Field {
    /// A bit per value.
    values: u64,
    /// Whether the field has a `*` without a step.
    star: bool,
}

impl Field {
    /// Whether the field has this value.
    pub fn contains(self, value: i8) -> bool {
        u32::try_from(value)
            .is_ok_and(|value| self.values.checked_shr(value).is_some_and(|bits| bits & 1 == 1))
    }
}

/// The bounds of a field.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOUR: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAY: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTH: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Parses a non-empty schedule.
pub fn parse(schedule: &str) -> Result<Schedule, String> {
    let (zone, schedule) = split_zone(schedule)?;
    let times = if schedule.starts_with('@') { descriptor(schedule)? } else { at(schedule)? };
    Ok(Schedule { zone, times })
}

/// Parses five fields.
fn at(schedule: &str) -> Result<Times, String> {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    };
    Ok(Times::At(Box::new(Fields {
        minutes: field(minutes, &MINUTE)?,
        hours: field(hours, &HOUR)?,
        days: field(days, &DAY)?,
        months: field(months, &MONTH)?,
        weekdays: field(weekdays, &WEEKDAY)?,
    })))
}

fn split_zone(schedule: &str) -> Result<(Option<String>, &str), String> {
    let Some(rest) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) else {
        return Ok((None, schedule));
    };
    let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    if zone.is_empty() || zone == "Local" || time_zone::is_known(zone) {
        Ok((Some(zone.to_owned()), rest.trim()))
    } else {
        Err(format!("provided bad location {zone}: unknown time zone {zone}"))
    }
}

fn descriptor(descriptor: &str) -> Result<Times, String> {
    match descriptor {
        "@yearly" | "@annually" => at("0 0 1 1 *"),
        "@monthly" => at("0 0 1 * *"),
        "@weekly" => at("0 0 * * 0"),
        "@daily" | "@midnight" => at("0 0 * * *"),
        "@hourly" => at("0 * * * *"),
        _ => match descriptor.strip_prefix("@every ") {
            Some(text) => match parse_go_duration(text) {
                Ok(nanoseconds) => {
                    Ok(Times::Every(u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(0).max(1)))
                }
                Err(error) => Err(format!("failed to parse duration {descriptor}: {error}")),
            },
            None => Err(format!("unrecognized descriptor: {descriptor}")),
        },
    }
}

/// Parses comma-separated ranges.
fn field(text: &str, bounds: &Bounds) -> Result<Field, String> {
    let mut field = Field::default();
    for expression in text.split(',').filter(|expression| !expression.is_empty()) {
        let range = range(expression, bounds)?;
        field.values |= range.values;
        field.star |= range.star;
    }
    Ok(field)
}

/// Parses `number`, `number-number` or `*`, optionally with `/step`.
fn range(expression: &str, bounds: &Bounds) -> Result<Field, String> {
    let parts: Vec<&str> = expression.split('/').collect();
    let limits: Vec<&str> = parts[0].split('-').collect();
    let is_star = matches!(limits[0], "*" | "?");
    let (start, mut end) = match limits[..] {
        _ if is_star => (bounds.min, bounds.max),
        [one] => {
            let number = number_or_name(one, bounds)?;
            (number, number)
        }
        [first, last] => (number_or_name(first, bounds)?, number_or_name(last, bounds)?),
        _ => {
            number_or_name(limits[0], bounds)?;
            return Err(format!("too many hyphens: {expression}"));
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            // `5/15` means from 5 to the maximum.
            if limits.len() == 1 {
                end = bounds.max;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {expression}")),
    };
    if start < bounds.min {
        let min = bounds.min;
        return Err(format!("beginning of range ({start}) below minimum ({min}): {expression}"));
    }
    if end > bounds.max {
        let max = bounds.max;
        return Err(format!("end of range ({end}) above maximum ({max}): {expression}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {expression}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    let mut values = 0;
    let mut value = start;
    while value <= end {
        values |= 1 << value;
        value = value.saturating_add(step);
    }
    Ok(Field { values, star: is_star && step == 1 })
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named {
        Some(position) => Ok(bounds.min + position as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let failed = |why: &str| {
        Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", quote(text)))
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return failed("invalid syntax");
    }
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => failed("value out of range"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_schedules_are_parsed() {
        for schedule in [
            "* * * * *",
            "*/15 0 1,15 * 1-5",
            "0 0 ? jan-MAR sun",
            "5/10 * * * *",
            "@hourly",
            "@every 1h30m",
            "@every 1s",
            // Upstream's parser skips empty items and accepts a field without any.
            ",, * * * *",
            "TZ=UTC * * * * *",
        ] {
            assert!(parse(schedule).is_ok(), "{schedule}");
        }
    }

    #[test]
    fn invalid_schedules_have_upstreams_message() {
        for (schedule, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
            ("TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where"),
        ] {
            assert_eq!(parse(schedule), Err(why.to_owned()), "{schedule}");
        }
    }

    fn fields(schedule: &str) -> Fields {
        match parse(schedule).unwrap().times {
            Times::At(fields) => *fields,
            Times::Every(_) => panic!("{schedule} has no fields"),
        }
    }

    #[test]
    fn a_field_without_a_value_never_matches() {
        let minutes = fields(",, * * * *").minutes;
        assert!((0..60).all(|minute| !minutes.contains(minute)));
    }

    #[test]
    fn a_star_with_a_step_does_not_require_both_day_fields() {
        // 2 January 2026 is a Friday.
        assert!(!fields("0 0 * * 1").is_day(2, 5));
        assert!(!fields("0 0 */2 * 1").is_day(2, 5));
        assert!(fields("0 0 */2 * 5").is_day(2, 5));
        assert!(fields("0 0 2 * 1").is_day(2, 5));
    }

    #[test]
    fn intervals_are_whole_seconds() {
        let every = |schedule| parse(schedule).unwrap().times;
        assert_eq!(every("@every 90m"), Times::Every(5400));
        assert_eq!(every("@every 1.5s"), Times::Every(1));
        assert_eq!(every("@every -1h"), Times::Every(1));
    }
}
